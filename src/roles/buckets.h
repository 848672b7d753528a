/*
 * buckets.h - dense gradients of an all-reduce: summed over the workers in buckets that set out as soon as
 * the backward pass has filled them.
 *
 *     pace__buckets_begin(&buckets);                   // then the model fills buckets.sums, from its end
 *     pace__buckets_start(&buckets, first);            // sums[first ..] is complete
 *     status = pace__buckets_finish(&buckets);         // buckets.sums holds those of all workers
 *
 * Every worker does so in every step, also in one that the chief ends instead: whoever has begun to sum
 * waits for all.
 */
#ifndef ROLES_BUCKETS_H
#define ROLES_BUCKETS_H

#include "job/job.h"
#include "net/reduce.h"

typedef struct pace__buckets {
    pace__reduce *reduce; /* NULL: nothing is summed this way */
    float *sums;          /* (dense_rows, dim) the rest of the last row stays 0 */
    uint32_t *keys;       /* (dense_rows) */
    /* private */
    size_t bytes; /* of sums */
    size_t *bounds;
    size_t count, left; /* buckets, and those that have not set out: they go from the last to the first */
    uint64_t busy_ns;   /* spent on sending and adding up */
} pace__buckets;

pace_status pace__buckets_open(pace__buckets *buckets, const pace__job *job, pace__link *link);
void pace__buckets_close(pace__buckets *buckets); /* a zeroed one is allowed */

void pace__buckets_begin(pace__buckets *buckets);
/* Would start(first) let any set out? */
bool pace__buckets_due(const pace__buckets *buckets, size_t first);
pace_status pace__buckets_start(pace__buckets *buckets, size_t first);
/* Moves on what is under way; never waits. */
pace_status pace__buckets_poll(pace__buckets *buckets);
pace_status pace__buckets_finish(pace__buckets *buckets);

#endif
