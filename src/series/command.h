/*
 * command.h - train as one of many jobs: what all of them are told, and whether one of them would be taken.
 *
 *     status = pace__command_read(words, pace_study_options, log, &base, &options);   // "--data=d", "--epochs=2", ...
 *     ... config = base, with what is this job's own ...
 *     status = pace__command_foresee(&config, log, &foreseen);      // a dry run: nothing is started
 *     status = pace__command_words(&config, more, log, &words);     // for child.h
 */
#ifndef SERIES_COMMAND_H
#define SERIES_COMMAND_H

#include <paceline/train.h>

/* The options of train in words, which a NULL ends. Texts of the config belong to *options, which is to be freed, after a
 * failure, too. Variables of the table `ours` are known. */
pace_status pace__command_read(const char *const *words, const pace_option *ours, const pace_log *log,
                               pace_train_config *config, pace_options **options);

/* "--epochs=2 --seed=7": which jobs these are, but for run and data. To be freed; NULL when out of memory. */
char *pace__command_line(const pace_train_config *config);

/* "paceline train --data=d --run=r ...": what does it, to be pasted into a shell. Likewise. */
char *pace__command_paste(const pace_train_config *config);

/* Words with blanks between them. To be freed; NULL when out of memory. */
char *pace__words_joined(const char *const *words, size_t count);

/* The words of a process that does it, and then `more`, which ends with NULL. To be freed by pace_options_free_words. */
pace_status pace__command_words(const pace_train_config *config, const char *const *more, const pace_log *log,
                                char ***words);

/* What a dry run says. */
typedef struct pace__foreseen {
    char error[PACE_LOG_TEXT_MAX]; /* the first; "": none */
    double rows_s;                 /* that are expected; NAN: nobody knows */
    int64_t steps;                 /* of all; 0: only its hosts know */
    bool open_end;                 /* it can be made longer later, and is what it would have been */
    int64_t validation_rows;
} pace__foreseen;

/* The status is that of the job; of what is not its fault there is a message. */
pace_status pace__command_foresee(const pace_train_config *config, const pace_log *log,
                                  pace__foreseen *foreseen);

/* A log that keeps the first error, in foreseen->error. */
pace_log pace__foreseen_log(pace__foreseen *foreseen);

#endif
