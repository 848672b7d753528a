/*
 * pool.h - a few numbers that the workers of a step add up in the middle of it, like the sums of batch norm.
 *
 * All workers call sum() equally often with equal counts. It waits for the slowest of them; whatever this rank
 * serves goes on meanwhile.
 *
 * Few numbers go whole from everyone to everyone, who adds them up for itself: one message lies between the last worker
 * that comes and the sum. More go in pieces to owners, and back (net/reduce.h): twice the way, a fraction of the bytes. Both
 * add in the order of the workers, and give the same bits.
 */
#ifndef ROLES_POOL_H
#define ROLES_POOL_H

#include "net/reduce.h"

#define PACE__POOL_MAX   8192 /* floats at a time */
#define PACE__POOL_WHOLE 8192 /* floats times workers, up to which they go whole */

typedef struct pace__pool {
    pace__reduce *reduce; /* NULL: nothing is added up */
    /* private */
    float *values; /* a bucket for each size: 1, 2, 4 ... */
    pace__link *link;
    int workers;
    float *parts;                    /* (workers, count) of a sum that goes whole */
    pace__request *sends, *receives; /* (workers) the own are not used */
    int *awaited;                    /* (workers) scratch */
} pace__pool;

pace_status pace__pool_open(pace__pool *pool, int workers, pace__link *link, const pace_log *log);
void pace__pool_close(pace__pool *pool); /* a zeroed one is allowed */

/* In place, in the order of the workers: the same bits for all. */
pace_status pace__pool_sum(pace__pool *pool, float *values, size_t count);

#endif
