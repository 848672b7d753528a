/*
 * divisions.h - how the rows of a step are divided among workers that are not equal, from a step on.
 *
 *     pace__divisions divisions = {0};                               // none: all have equal shares
 *     pace__divisions_add(&divisions, 120, 4, (uint32_t[]){38, 38, 39, 13});
 *     const uint32_t *rows = pace__divisions_at(&divisions, 130);
 *     pace__divisions_release(&divisions);
 *
 * A division says how many rows of a whole step each worker has; of a shorter one, at the end of an epoch, each has its
 * part of them. Plain values: who decides them is in shares/balance.h, a run keeps all of them (run/shares.h), a checkpoint those that
 * the steps behind it begin with.
 *
 * 1. `from` rises, and so does a list only grow at its end: a division takes the place of all that were to begin with its
 *    own step or later.
 * 2. All are of the same number of workers: one of another number begins a new list.
 */
#ifndef CHECKPOINT_DIVISIONS_H
#define CHECKPOINT_DIVISIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACE__SHARES_MAX 4096 /* workers */

typedef struct pace__divisions {
    unsigned workers;
    size_t count;
    uint64_t *from; /* (count) */
    uint32_t *rows; /* (count, workers) */
    /* private */
    size_t room; /* of both arrays, in front of which... */
    size_t gone; /* ... so many divisions were that are forgotten */
} pace__divisions;

/* False: out of memory, and nothing has changed. */
bool pace__divisions_add(pace__divisions *divisions, uint64_t from, unsigned workers, const uint32_t *rows);
/* The rows of each worker in a whole step; NULL: none was ever set for it, and all are equal. In log(count). */
const uint32_t *pace__divisions_at(const pace__divisions *divisions, uint64_t step);
/* Those that no step from `step` on goes by. Nothing is moved: a step of a run that repeats many thousands may ask for it. */
void pace__divisions_forget(pace__divisions *divisions, uint64_t step);
void pace__divisions_release(pace__divisions *divisions);

/* Rows of a whole step; 0: more than 2^32, or than a division can have workers. */
uint64_t pace__division_batch(const uint32_t *rows, unsigned workers);

#endif
