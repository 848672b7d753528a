#include "roles/pool.h"

#include "ps/wire.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SIZES 14 /* 1 .. PACE__POOL_MAX */
_Static_assert(1 << (SIZES - 1) == PACE__POOL_MAX, "the largest bucket");

/* Bucket i has 2^i floats. */
static size_t bucket_at(unsigned bucket)
{
    return ((size_t)1 << bucket) - 1;
}

pace_status pace__pool_open(pace__pool *pool, int workers, pace__link *link, const pace_log *log)
{
    size_t bounds[SIZES + 1];

    for (unsigned i = 0; i <= SIZES; i++)
        bounds[i] = bucket_at(i);
    pool->values = calloc(bounds[SIZES], sizeof *pool->values);
    if (!pool->values)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace__reduce_plan plan = {.workers = workers,
                              .tag = PACE__TAG_POOL,
                              .gradients = pool->values,
                              .bounds = bounds,
                              .buckets = SIZES};

    return pace__reduce_create(link, &plan, log, &pool->reduce);
}

void pace__pool_close(pace__pool *pool)
{
    pace__reduce_free(pool->reduce);
    free(pool->values);
    *pool = (pace__pool){0};
}

pace_status pace__pool_sum(pace__pool *pool, float *values, size_t count)
{
    unsigned bucket = 0;

    assert(count > 0 && count <= PACE__POOL_MAX);
    while ((size_t)1 << bucket < count)
        bucket++;
    float *own = pool->values + bucket_at(bucket);

    memcpy(own, values, count * sizeof *own);
    memset(own + count, 0, (((size_t)1 << bucket) - count) * sizeof *own);
    pace_status status = pace__reduce_start(pool->reduce, bucket);

    if (!status)
        status = pace__reduce_finish(pool->reduce);
    if (!status)
        memcpy(values, own, count * sizeof *own);
    return status;
}
