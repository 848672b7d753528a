/*
 * 1. A replica stands at replica_step: all steps before are in it, nothing of that one. It moves on by one step at a
 *    time, from sums that are the same for all.
 * 2. Before a row is updated it is brought up to the step (take_merged), wherever it was read: so what penalties do to
 *    it does not depend on who reads it when.
 */
#include "roles/replica.h"

#include "roles/clip.h"
#include "watch/spans.h"

#include <assert.h>

/* Sums of a shard come as places on it; they become keys, and what was penalised lazily is brought up. */
static pace_status take_merged(pace__process *process, pace__client *client, uint32_t shard, uint64_t step,
                               double *squares)
{
    pace__job *job = process->job;
    pace__table *replica = &process->replica;
    uint32_t shards = (uint32_t)job->plan.cluster.workers;
    const float *sums;
    uint32_t *keys, count = pace__client_merged(client, (int)shard, &sums, &keys);

    for (uint32_t i = 0; i < count; i++)
        keys[i] = keys[i] * shards + shard;
    if (!pace__table_places_valid(replica, keys, count))
        return pace_fail(job->log, PACE_BUG, "%s has summed the gradient of a parameter that does not exist",
                         pace__link_name(process->self.link, (int)shard));
    /* Invariant 2. Also those that only others have read, and at the rate at which they did. */
    pace__table_catch_up(replica, keys, count, pace__plan_rows_before(&job->plan, step));
    if (pace__clips(&job->plan))
        *squares += pace__clip_squares(sums, (size_t)count * job->plan.model.shape.dim);
    return PACE_OK;
}

pace_status pace__replica_update(pace__process *process, pace__client *client, pace__buckets *dense,
                                 uint64_t step)
{
    pace__job *job = process->job;
    const pace__shape *shape = &job->plan.model.shape;
    pace__table *replica = &process->replica;
    uint32_t shards = (uint32_t)job->plan.cluster.workers;
    uint64_t rows = pace__steps_rows_in(&job->plan.order, step);
    double squares = 0;

    assert(process->replica_step == step && step < job->plan.steps); /* invariant 1 */
    PACE__SPAN("apply a step");
    pace_status status = PACE_OK;

    /* The last dense sums are still on their way. */
    for (uint32_t shard = 0; shard < shards && !status; shard++) {
        status = take_merged(process, client, shard, step, &squares);
        if (!status)
            status = pace__buckets_poll(dense);
    }
    if (!status)
        status = pace__buckets_finish(dense);
    if (status)
        return status;
    if (dense->reduce && pace__clips(&job->plan))
        squares += pace__clip_squares(dense->sums + (size_t)shape->stats_rows * shape->dim,
                                      shape->dense - (size_t)shape->stats_rows * shape->dim);
    float scale = pace__optim_scale(&replica->optim, rows) * pace__clip_factor(&job->plan, squares, rows);

    pace__optim_begin_step(&replica->optim, pace__plan_rate(&job->plan, step), step);
    for (uint32_t shard = 0; shard < shards; shard++) {
        const float *sums;
        uint32_t *keys, count = pace__client_merged(client, (int)shard, &sums, &keys);

        pace__table_update(replica, keys, sums, count, scale);
    }
    if (dense->reduce)
        pace__table_update(replica, dense->keys, dense->sums, shape->dense_rows, scale);
    process->replica_step = step + 1;
    return PACE_OK;
}
