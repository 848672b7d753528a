#include "job/cost.h"

#include "data/store/reader.h"
#include "data/store/slice.h"
#include "data/store/sums.h"
#include "metrics/metrics.h"
#include "metrics/scoring.h"

pace__reading_cost pace__reading_cost_of(const pace__job_plan *plan, const pace__store_info *info)
{
    return (pace__reading_cost){.batch_bytes = pace__slice_memory(info, plan->rows_max),
                                .pieces_bytes = pace__reader_memory(info, plan->threads),
                                .sums_bytes = pace__sums_memory(info)};
}

/* Parameters with optimiser state, all of them. */
static uint64_t model_bytes(const pace__job_plan *plan)
{
    return plan->model.shape.keys * plan->floats * sizeof(float);
}

static uint64_t scorer_bytes(const pace__job_plan *plan)
{
    return pace__model_memory(&plan->model, PACE__SCORE_ROWS, plan->threads, true);
}

/* Dense gradients that are summed in buckets: a worker's own, and others' parts. */
static uint64_t buckets_bytes(const pace__job_plan *plan)
{
    const pace__shape *shape = &plan->model.shape;

    return pace__plan_has_replicas(plan) ? 2 * (uint64_t)shape->dense_rows * shape->dim * sizeof(float) : 0;
}

/* What computes, without what it holds for the job. */
static uint64_t computing_bytes(const pace__job_plan *plan, const pace__reading_cost *reading)
{
    uint64_t rows = plan->rows_max, entries = rows * plan->model.entries_max;
    uint64_t batch = reading->batch_bytes + entries * sizeof(uint32_t) + rows * plan->model.batch_row_bytes +
                     2 * plan->keys_max * (plan->model.shape.dim + UINT64_C(1)) * sizeof(float);

    return (plan->depth + 1) * batch + reading->sums_bytes +
           pace__model_memory(&plan->model, rows, plan->threads, false) + plan->model.value_bytes;
}

static uint64_t worker_bytes(const pace__job_plan *plan, const pace__reading_cost *reading)
{
    pace__client_plan client = pace__plan_client(plan);

    return pace__client_memory(&client) + computing_bytes(plan, reading) + buckets_bytes(plan);
}

/* Its shard, and the copy of it while a checkpoint is written. Shards of an all-reduce hold sums: no part of any. */
static uint64_t shard_bytes(const pace__job_plan *plan, unsigned index)
{
    pace__shard_plan shard = pace__plan_shard(plan, index, 0);
    uint64_t copy = model_bytes(plan) / (uint64_t)pace__shards(&plan->cluster);

    return pace__shard_memory(&shard) + (pace__plan_has_replicas(plan) ? 0 : copy);
}

/* A worker that merges: its replica, what that was like at the last flush, the keys that it owns with a copy of them while a
 * checkpoint is written, and messages, which have two floats of each parameter both ways. */
static uint64_t merger_bytes(const pace__job_plan *plan, const pace__reading_cost *reading)
{
    uint64_t workers = (uint64_t)plan->cluster.workers, keys = plan->model.shape.keys;
    uint64_t hot = keys < PACE__HOT_MAX ? keys : PACE__HOT_MAX;

    /* Of texts gradients of a step are added up, and rows of features made. */
    uint64_t sums = plan->exact ? keys * (sizeof(float) + sizeof(uint32_t)) +
                                      2 * PACE__PIECE_ROWS * plan->model.entries_max * sizeof(uint32_t)
                                : 0;

    return 2 * model_bytes(plan) + 2 * model_bytes(plan) / workers + 2 * keys * 2 * sizeof(float) + sums +
           hot * (plan->narrow ? 14 : 11) * sizeof(float) + reading->pieces_bytes + reading->sums_bytes;
}

/* The same by steps: what computes, its replica, the keys that it owns with a copy of them, and messages both ways. */
static uint64_t averager_bytes(const pace__job_plan *plan, const pace__reading_cost *reading)
{
    pace__table_plan replica = pace__plan_trained(plan);
    uint64_t workers = (uint64_t)plan->cluster.workers, keys = plan->model.shape.keys;

    return computing_bytes(plan, reading) + 3 * pace__table_bytes(&replica) + keys * 3 * sizeof(uint32_t) +
           2 * model_bytes(plan) / workers;
}

/* The chief: a copy of all parameters to be read, another of its replica while a checkpoint is written, and what
 * scores. */
static uint64_t chief_bytes(const pace__job_plan *plan)
{
    return model_bytes(plan) + (pace__plan_has_replicas(plan) ? model_bytes(plan) : 0) +
           (plan->scores_on_the_way ? scorer_bytes(plan) : 0);
}

static uint64_t evaluator_bytes(const pace__job_plan *plan)
{
    const pace__shape *shape = &plan->model.shape;

    return scorer_bytes(plan) + plan->model.value_bytes +
           shape->keys * (2 * shape->dim + UINT64_C(1)) * sizeof(float);
}

uint64_t pace__cost_memory(const pace__job_plan *plan, const pace__reading_cost *reading, int rank)
{
    pace__role role = pace__role_of(&plan->cluster, rank);
    int shard = pace__plan_shard_of(plan, rank);
    uint64_t bytes = shard >= 0 && !plan->merges ? shard_bytes(plan, (unsigned)shard) : 0;

    if (plan->by_columns) {
        pace__columns_cost parts = pace__cost_columns(plan, reading);

        return 2 * parts.parameters + parts.gradients + parts.reading + parts.scoring;
    }
    if (plan->by_steps)
        bytes += averager_bytes(plan, reading);
    else if (plan->merges)
        bytes += merger_bytes(plan, reading);
    else if (role == PACE__WORKER)
        bytes += worker_bytes(plan, reading) + (pace__plan_has_replicas(plan) ? model_bytes(plan) : 0);
    if (rank == 0)
        bytes += chief_bytes(plan);
    if (role == PACE__EVALUATOR)
        bytes += evaluator_bytes(plan);
    return bytes;
}

pace__columns_cost pace__cost_columns(const pace__job_plan *plan, const pace__reading_cost *reading)
{
    const pace__dataset *data = &plan->model.data;
    uint64_t most = data->test_rows > data->validation_rows ? data->test_rows : data->validation_rows;
    uint64_t scored = most < PACE__METRICS_EXACT_ROWS ? most : PACE__METRICS_EXACT_ROWS;

    return (pace__columns_cost){
        .parameters = ((uint64_t)data->ids + 1) * plan->model.optim.width * sizeof(float),
        .gradients = plan->exact ? ((uint64_t)data->ids + 1) * (sizeof(float) + sizeof(uint32_t)) : 0,
        .reading = reading->pieces_bytes + reading->sums_bytes,
        .scoring = scored * sizeof(double)};
}

pace__merge_cost pace__cost_merging(const pace__job_plan *plan)
{
    double keys = (double)plan->model.shape.keys, hot = keys < PACE__HOT_MAX ? keys : PACE__HOT_MAX;
    double others = (double)(plan->cluster.workers - 1) / plan->cluster.workers;
    pace__merge_cost cost;

    pace__rounds_count(&plan->rounds, 0, plan->order.rows, &cost.rounds, &cost.flushes);
    double point = plan->narrow ? 4 : 8;

    cost.round = 2 * hot * point * others; /* changes to those who merge them, merged ones to all */
    cost.flush = 2 * keys * point * others;
    if (plan->by_steps) { /* nothing but flushes, of rows with the rule's state */
        cost.round = 0;
        cost.flush = 2 * keys * (double)(plan->floats - plan->model.shape.dim) * sizeof(float) * others;
    }
    return cost;
}

pace__step_cost pace__cost_step(const pace__job_plan *plan, uint32_t keys)
{
    const pace__shape *shape = &plan->model.shape;
    double shards = pace__shards(&plan->cluster), row = 4.0 * shape->dim;
    pace__step_cost cost = {.sent = shards * sizeof(pace__push) + keys * (row / (plan->narrow ? 2 : 1) + 4),
                            .received = shards * sizeof(pace__reply) + keys * row};

    if (!pace__plan_has_replicas(plan))
        return cost;
    /* Everyone gets all sums. */
    cost.received = shards * sizeof(pace__reply) + keys * (row + 4) * plan->cluster.workers;
    if (plan->cluster.workers > 1) { /* dense sums: a part to each owner, sums to all */
        cost.sent += 2 * 4.0 * (double)shape->dense;
        cost.received += 2 * 4.0 * (double)shape->dense;
    }
    return cost;
}
