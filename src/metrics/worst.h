/*
 * worst.h - the surest of a model's mistakes, kept while rows are scored.
 *
 *     pace__worst worst = {0};
 *     ... pace__scoring.mistake = pace__worst_add, .user = &worst ...
 */
#ifndef METRICS_WORST_H
#define METRICS_WORST_H

#include "metrics/scoring.h"

#include <paceline/score.h>

typedef struct pace__worst {
    uint64_t total; /* mistakes */
    uint64_t count;
    pace__mistake items[PACE_EVAL_WORST]; /* the surest first; of equal ones the first row */
} pace__worst;

pace__mistake_fn pace__worst_add; /* `user` is a pace__worst */

#endif
