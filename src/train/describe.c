/* What --dry-run tells of a job of several processes. */
#include "data/slice.h"
#include "model/keys.h"
#include "train/member.h"

#include <inttypes.h>

/* How many keys a worker's part of the first step has: what will travel is known only from the rows. */
static pace_status count_keys(const pace__job *job, uint32_t *keys)
{
    const pace__store_info *info = &job->store.info;
    pace__slice slice = {0};
    pace__key_finder finder = {0};
    pace__key_batch batch = {0};
    uint64_t first, rows;
    pace_status status = pace__slice_init(&slice, &job->store, PACE__TRAIN, job->config->seed,
                                          pace__member_rows_max(job), job->log);

    /* The last worker's part is never smaller than another's. */
    pace__steps_slice(&job->order, 0, (unsigned)job->cluster.workers - 1, (unsigned)job->cluster.workers,
                      &first, &rows);
    if (!status)
        status = pace__slice_read(&slice, first, rows);
    if (!status)
        status = pace__key_finder_init(&finder, info->ids_seen, info->like, job->log);
    if (!status)
        status = pace__key_batch_init(&batch, info->ids_seen, pace__row_start(&slice.rows, slice.rows.rows),
                                      job->log);
    if (!status) {
        pace__keys_find(&finder, &slice.rows, &batch);
        *keys = batch.count;
    }
    pace__key_batch_release(&batch);
    pace__key_finder_release(&finder);
    pace__slice_release(&slice);
    return status;
}

static uint64_t memory_of(const pace__job *job, int rank)
{
    int shard = rank - pace__shard_rank(&job->cluster, 0);
    uint64_t ids = (uint64_t)job->store.info.ids_seen + 1, bytes = 0;
    uint64_t model = ids * pace__job_optim(job).width * sizeof(float);

    if (shard >= 0 && shard < pace__shards(&job->cluster)) {
        pace__shard_plan plan = pace__member_shard_plan(job, (unsigned)shard);

        bytes += pace__shard_memory(&plan);
        if (job->mode != PACE_MODE_ALLREDUCE) /* to be written to a checkpoint */
            bytes += model / (uint64_t)pace__shards(&job->cluster);
    }
    if (job->mode == PACE_MODE_ALLREDUCE && rank == 0)
        bytes += model;
    if (pace__role_of(&job->cluster, rank) == PACE__WORKER)
        bytes += pace__worker_memory(job) + (job->mode == PACE_MODE_ALLREDUCE ? model : 0) +
                 (rank == 0 ? model : 0);
    if (pace__role_of(&job->cluster, rank) == PACE__EVALUATOR)
        bytes += ids * 3 * sizeof(float);
    return bytes;
}

static void describe_rank(const pace__member *member, int rank)
{
    const pace__job *job = member->job;
    int shard = rank - pace__shard_rank(&job->cluster, 0);
    char holds[96] = "";

    if (shard >= 0 && shard < pace__shards(&job->cluster)) {
        pace__holder part = pace__holder_of((uint64_t)job->store.info.ids_seen + 1,
                                            (unsigned)pace__shards(&job->cluster), (unsigned)shard, 0);

        snprintf(holds, sizeof holds,
                 job->mode == PACE_MODE_ALLREDUCE ? ", a replica, sums %u gradients"
                                                  : ", holds %u parameters",
                 part.places);
    }
    pace_say(member->log, PACE_INFO, "%s: at most %.1f MB%s", pace__link_name(member->link, rank),
             (double)memory_of(job, rank) / 1e6, holds);
}

pace_status pace__member_describe(const pace__member *member)
{
    const pace__job *job = member->job;
    uint32_t keys = 0;
    pace_status status = count_keys(job, &keys);
    double shards = pace__shards(&job->cluster), sent = shards * sizeof(pace__push) + keys * 8.0;
    double received = shards * sizeof(pace__reply) + keys * 4.0;

    if (status)
        return status;
    if (job->mode == PACE_MODE_ALLREDUCE) /* everyone gets all sums */
        received = shards * sizeof(pace__reply) + keys * 8.0 * job->cluster.workers;
    for (int rank = 0; rank < pace__cluster_size(&job->cluster); rank++)
        describe_rank(member, rank);
    pace_say(member->log, PACE_INFO,
             "each worker and step: %" PRIu64
             " rows, %u parameters; about %.1f kB to the shards and %.1f kB back",
             pace__member_rows_max(job), keys, sent / 1e3, received / 1e3);
    return PACE_OK;
}
