/*
 * pool.h - a few numbers that the workers of a step add up in the middle of it, like the sums of batch norm.
 *
 * All workers call sum() equally often with equal counts. It waits for the slowest of them; whatever this rank
 * serves goes on meanwhile.
 */
#ifndef ROLES_POOL_H
#define ROLES_POOL_H

#include "net/reduce.h"

#define PACE__POOL_MAX 8192 /* floats at a time */

typedef struct pace__pool {
    pace__reduce *reduce; /* NULL: nothing is added up */
    /* private */
    float *values; /* a bucket for each size: 1, 2, 4 ... */
} pace__pool;

pace_status pace__pool_open(pace__pool *pool, int workers, pace__link *link, const pace_log *log);
void pace__pool_close(pace__pool *pool); /* a zeroed one is allowed */

/* In place, in the order of the workers: the same bits for all. */
pace_status pace__pool_sum(pace__pool *pool, float *values, size_t count);

#endif
