/*
 * tries.h - what is to be tried: an option of train with a range or a list of values, as `--try lr=0.01..0.3` says it.
 *
 *     status = pace__tries_read(&texts, model, log, &tries);
 *     ... tries.of[i].row->name, tries.of[i].values ...
 *     pace__tries_release(&tries);                                  // after a failure, too
 *
 * 1. What may be tried decides what a run comes to, and not who computes it: options whose mark is identity or length, but for
 *    the model itself and the rows that it is compared by, and a few that say how workers share what they learn.
 * 2. All values are ones that the option takes.
 * 3. A range is of numbers. It is on a logarithmic scale if both ends are above 0 and a factor of PACE__FAR_APART or more
 *    lies between them.
 */
#ifndef TUNE_TRIES_H
#define TUNE_TRIES_H

#include <paceline/train.h>

#define PACE__TRIES_MAX      16
#define PACE__TRY_VALUES_MAX 64
#define PACE__FAR_APART      10.0
#define PACE__TRY_TEXT_MAX   4096
#define PACE__TRY_WHOLE_MAX  1e15 /* of a range */

typedef struct pace__try {
    const pace_option *row;
    bool own;                                 /* of the kind of model, not of all */
    const char *values[PACE__TRY_VALUES_MAX]; /* a list, in `text` */
    size_t count;                             /* 0: a range */
    double low, high;
    bool logarithmic;
    char *text;
} pace__try;

typedef struct pace__tries {
    pace__try of[PACE__TRIES_MAX];
    size_t count;
} pace__tries;

/* "lr=0.01..0.3", "l2=0,1e-6": a comma within a value is written as "\,". PACE_USAGE names the try and what is wrong with it. */
pace_status pace__tries_read(const pace_texts *texts, int model, const pace_log *log, pace__tries *tries);
void pace__tries_release(pace__tries *tries);

/* The option's field in a config. */
void *pace__try_field(const pace__try *try, pace_train_config *config);

#endif
