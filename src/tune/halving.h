/*
 * halving.h - how a budget is spent: many candidates for a short time, the better ones longer, the best to the end. Functions
 * of plain values.
 *
 *     pace__rungs rungs = pace__rungs_make(20, UINT64_MAX, 5000, true);       // 62 for a ninth, 20 for a third, 6 whole
 *     kept = pace__rungs_promoted(loss, count, rungs.candidates[1], chosen);
 *
 * 1. The budget is in runs of full length, and an upper limit: a rung is counted as if its runs began anew. Those that go on
 *    from the rung before take less.
 * 2. Candidate 0, the defaults, reaches the last rung unless it fails: whatever wins there is at least as good.
 * 3. Among equals the earlier candidate is better.
 */
#ifndef TUNE_HALVING_H
#define TUNE_HALVING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACE__RUNGS_MAX      3
#define PACE__RUNG_FACTOR    3
#define PACE__RUNG_STEPS_MIN 20 /* a shorter run says nothing */
#define PACE__CANDIDATES_MAX 1000

typedef struct pace__rungs {
    size_t count;
    unsigned part[PACE__RUNGS_MAX];     /* runs have 1/part of their length: 9, 3, 1 */
    size_t candidates[PACE__RUNGS_MAX]; /* at most */
} pace__rungs;

/* `available`: how many candidates there are, the defaults among them; `steps`: of a run of full length. Without halving, or if
 * the budget does for all of them, there is one rung. */
pace__rungs pace__rungs_make(int64_t budget, uint64_t available, int64_t steps, bool halving);

/* In runs of full length. */
double pace__rungs_cost(const pace__rungs *rungs);

/* The places of the best `keep` of so many losses (NAN: it has failed), the best first. How many there are. */
size_t pace__rungs_best(const double *loss, size_t count, size_t keep, size_t *chosen);
/* Those that go on: 0 in the place of the last of them, unless it is among them or has failed. */
size_t pace__rungs_promoted(const double *loss, size_t count, size_t keep, size_t *chosen);

/* Steps of a run that has 1/part of its length: at least one. */
int64_t pace__rung_steps(int64_t steps, unsigned part);

#endif
