/* What --dry-run tells of a job of several processes. */
#include "data/store/slice.h"
#include "roles/process.h"

#include <inttypes.h>

/* How many keys a worker's part of the first step has: what will travel is known only from the rows. */
static pace_status count_keys(const pace__job *job, uint32_t *keys)
{
    uint64_t first, rows, rows_max = pace__member_rows_max(job);
    pace__slice slice = {0};
    pace__model *model = NULL;
    pace__model_batch batch = {0};
    bool merge = pace__exchange_of(job->mode) == PACE__EXCHANGE_MERGE;

    if (job->shape.keys == job->shape.dense_rows) { /* every row needs all of them */
        *keys = merge ? 0 : job->shape.dense_rows;
        return PACE_OK;
    }
    pace_status status =
        pace__slice_init(&slice, &job->store, PACE__TRAIN, job->config->seed, rows_max, job->log);

    /* The last worker's part is never smaller than another's. */
    pace__steps_slice(&job->order, 0, (unsigned)job->cluster.workers - 1, (unsigned)job->cluster.workers,
                      &first, &rows);
    if (!status)
        status = pace__slice_read(&slice, first, rows);
    if (!status)
        status = pace__model_create(&job->model, rows_max, job->threads, false, job->log, &model);
    if (!status)
        status = pace__model_find(model, &slice.rows, first, &batch);
    *keys = merge ? batch.sparse : batch.keys.count;
    pace__model_batch_release(&batch);
    pace__model_free(model);
    pace__slice_release(&slice);
    return status;
}

static uint64_t memory_of(const pace__job *job, int rank)
{
    int shard = rank - pace__shard_rank(&job->cluster, 0);
    bool merge = pace__exchange_of(job->mode) == PACE__EXCHANGE_MERGE;
    uint64_t bytes = 0, model = job->shape.keys * job->floats * sizeof(float);

    if (shard >= 0 && shard < pace__shards(&job->cluster)) {
        pace__shard_plan plan = pace__member_shard_plan(job, (unsigned)shard);

        bytes += pace__shard_memory(&plan);
        if (!merge) /* to be written to a checkpoint */
            bytes += model / (uint64_t)pace__shards(&job->cluster);
    }
    if (merge && rank == 0)
        bytes += model;
    if (pace__role_of(&job->cluster, rank) == PACE__WORKER)
        bytes += pace__worker_memory(job) + (merge ? model : 0) + (rank == 0 ? model : 0);
    if (rank == 0 && job->scores_on_the_way)
        bytes += pace__job_scorer_memory(job);
    if (pace__role_of(&job->cluster, rank) == PACE__EVALUATOR)
        bytes += pace__job_scorer_memory(job) + job->model.value_bytes +
                 job->shape.keys * (2 * job->shape.dim + UINT64_C(1)) * sizeof(float);
    return bytes;
}

static void describe_rank(const pace__member *member, int rank)
{
    const pace__job *job = member->job;
    int shard = rank - pace__shard_rank(&job->cluster, 0);
    char holds[96] = "";

    if (shard >= 0 && shard < pace__shards(&job->cluster)) {
        pace__holder part =
            pace__holder_of(job->shape.keys, (unsigned)pace__shards(&job->cluster), (unsigned)shard, 0);
        uint64_t parameters = (uint64_t)part.places * job->shape.dim;

        snprintf(holds, sizeof holds,
                 pace__exchange_of(job->mode) == PACE__EXCHANGE_MERGE ? ", a replica, sums %" PRIu64
                                                                        " gradients"
                                                                      : ", holds %" PRIu64 " parameters",
                 parameters);
    }
    pace_say(member->self.log, PACE_INFO, "%s: at most %.1f MB%s", pace__link_name(member->self.link, rank),
             (double)memory_of(job, rank) / 1e6, holds);
}

pace_status pace__member_describe(const pace__member *member)
{
    const pace__job *job = member->job;
    uint32_t keys = 0;
    pace_status status = count_keys(job, &keys);
    double shards = pace__shards(&job->cluster), row = 4.0 * job->shape.dim;
    double sent = shards * sizeof(pace__push) + keys * (row + 4),
           received = shards * sizeof(pace__reply) + keys * row;

    if (status)
        return status;
    if (pace__exchange_of(job->mode) == PACE__EXCHANGE_MERGE) /* everyone gets all sums */
        received = shards * sizeof(pace__reply) + keys * (row + 4) * job->cluster.workers;
    if (pace__exchange_of(job->mode) == PACE__EXCHANGE_MERGE && job->cluster.workers > 1) {
        sent += 2 * 4.0 * (double)job->shape.dense; /* dense sums: a part to each owner, sums to all */
        received += 2 * 4.0 * (double)job->shape.dense;
    }
    for (int rank = 0; rank < pace__cluster_size(&job->cluster); rank++)
        describe_rank(member, rank);
    pace_say(member->self.log, PACE_INFO,
             "each worker and step: %" PRIu64 " rows, %" PRIu64
             " parameters by key; about %.1f kB to others and %.1f kB back",
             pace__member_rows_max(job), (uint64_t)keys * job->shape.dim, sent / 1e3, received / 1e3);
    return PACE_OK;
}
