/*
 * child.h - a job of paceline as a child process, from its start to its end.
 *
 *     pace__job_end end;
 *     status = pace__child_run(words, stop, log, &end);        // PACE_INTERRUPTED: it was stopped, and has ended
 *     if (end.code != 0)
 *         ... end.last ...                                     // the last thing that it said
 *
 * 1. It hears nothing of our terminal: Ctrl-C reaches us alone, and we pass a stop on as SIGTERM, which a job answers with an
 *    orderly end; a second stop, or none within PACE__CHILD_STOP_S, ends it and all that it has started at once.
 * 2. It ends when we end, however we end.
 * 3. PACELINE_* variables are not passed on: the words say everything.
 */
#ifndef SERIES_CHILD_H
#define SERIES_CHILD_H

#include <paceline/log.h>
#include <paceline/options.h>
#include <stddef.h>

#define PACE__CHILD_STOP_S   30.0
#define PACE__CHILD_LAST_MAX 512
#define PACE__CHILD_OUT_MAX  65536

typedef struct pace__job_end {
    int code;                        /* its exit code; 128 and more: ended by a signal */
    double seconds;                  /* from its start to its end */
    char last[PACE__CHILD_LAST_MAX]; /* its last error; if it has said none, its last line */
    char out[PACE__CHILD_OUT_MAX];   /* what it has printed, as far as there is room */
} pace__job_end;

/* `stop` as in <paceline/train.h>; may be NULL. */
pace_status pace__child_run(char *const *words, const _Atomic int *stop, const pace_log *log,
                            pace__job_end *end);

/* The words of this program with a verb: options of the parts, which may be NULL, and then `more`, which ends with NULL or is
 * NULL. To be freed by pace_options_free_words. */
pace_status pace__child_words(const char *verb, const pace_option_part *parts, const char *const *more,
                              const pace_log *log, char ***words);

#endif
