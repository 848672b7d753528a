/*
 * choose.h - which of several jobs to run, if all that is known of them is what was predicted: a function of plain values.
 *
 * 1. One process, or as few as there may be, unless more of them are faster by more than predictions have been off: who asks
 *    for machines must not become slower by them.
 * 2. Of those that are nearly as fast as the fastest, the one with the fewest processes.
 */
#ifndef PLAN_CHOOSE_H
#define PLAN_CHOOSE_H

#include <stddef.h>

/* By so much were predictions of jobs off that nothing was fitted to (docs/scaling.md). */
#define PACE__CHOICE_GAIN 1.3
/* As fast as the fastest, but for so much. */
#define PACE__CHOICE_NEARLY 0.95

typedef struct pace__choice {
    double rows_s;
    int processes;
} pace__choice;

/* The place of the one to take, and of the fastest with the fewest processes, which it was compared with; of the fastest of
 * all. There is one at least. */
typedef struct pace__chosen {
    size_t taken, alone, fastest;
} pace__chosen;

pace__chosen pace__choose_job(const pace__choice *choices, size_t count);

#endif
