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
    size_t count = (size_t)workers;

    pool->link = link;
    pool->workers = workers;
    pool->values = calloc(bounds[SIZES], sizeof *pool->values);
    pool->parts = calloc(PACE__POOL_WHOLE, sizeof *pool->parts);
    pool->sends = calloc(count, sizeof *pool->sends);
    pool->receives = calloc(count, sizeof *pool->receives);
    pool->awaited = calloc(count, sizeof *pool->awaited);
    if (!pool->values || !pool->parts || !pool->sends || !pool->receives || !pool->awaited)
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
    free(pool->awaited);
    free(pool->receives);
    free(pool->sends);
    free(pool->parts);
    free(pool->values);
    *pool = (pace__pool){0};
}

/* --- whole --- */

/* Moves on what is under way with a peer. */
static pace_status look_at(pace__pool *pool, int peer, size_t count, bool *over)
{
    bool had = !pool->receives[peer].active, got, gone;
    pace_status status = pace__link_done(pool->link, &pool->receives[peer], &got);

    if (!status)
        status = pace__link_done(pool->link, &pool->sends[peer], &gone);
    if (!status && got && !had)
        status =
            pace__link_fits(pool->link, &pool->receives[peer], count * sizeof(float), "its part of a sum");
    *over = !status && got && gone;
    return status;
}

/* Until everybody's part is here, and the own with everybody. */
static pace_status await_parts(pace__pool *pool, size_t count)
{
    unsigned turns = 0;
    size_t before = SIZE_MAX;

    for (;;) {
        size_t left = 0;
        pace_status status = PACE_OK;

        for (int peer = 0; peer < pool->workers && !status; peer++) {
            bool over = true;

            if (peer != pace__link_rank(pool->link))
                status = look_at(pool, peer, count, &over);
            if (!over)
                pool->awaited[left++] = peer;
        }
        if (status || left == 0)
            return status;
        if (left < before)
            turns = 0;
        before = left;
        status = pace__link_turn(pool->link, pool->awaited, left, "the sums of a step", &turns);
        if (status)
            return status;
    }
}

static pace_status sum_whole(pace__pool *pool, float *values, size_t count)
{
    int rank = pace__link_rank(pool->link);
    size_t bytes = count * sizeof *values;
    float *own = pool->parts + (size_t)rank * count;

    memcpy(own, values, bytes);
    for (int peer = 0; peer < pool->workers; peer++) {
        if (peer == rank)
            continue;
        pace__link_receive(pool->link, peer, PACE__TAG_POOL, pool->parts + (size_t)peer * count, bytes,
                           &pool->receives[peer]);
        pace__link_send(pool->link, peer, PACE__TAG_POOL, own, bytes, &pool->sends[peer]);
    }
    pace_status status = await_parts(pool, count);

    if (status)
        return status;
    memcpy(values, pool->parts, bytes);
    for (size_t at = count; at < count * (size_t)pool->workers; at += count)
        for (size_t i = 0; i < count; i++)
            values[i] += pool->parts[at + i];
    return PACE_OK;
}

/* --- in pieces --- */

static pace_status sum_in_pieces(pace__pool *pool, float *values, size_t count)
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

pace_status pace__pool_sum(pace__pool *pool, float *values, size_t count)
{
    return count * (size_t)pool->workers <= PACE__POOL_WHOLE ? sum_whole(pool, values, count)
                                                             : sum_in_pieces(pool, values, count);
}
