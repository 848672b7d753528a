/* What a rank holds: a shard, a replica, the counter; and the model as a whole, for the chief. */
#include "roles/process.h"

#include <stdlib.h>

/* Async: rows that are computed on weights which do not know each other. More cost accuracy
 * (docs/decisions/0009). */
#define ROWS_IN_FLIGHT_MAX 20000
/* Async: pushes of each worker that may come while another computes, before its own counts for less. */
#define FRESH_PUSHES 8

/* --- the plan --- */

pace__exchange pace__exchange_of(int mode)
{
    return mode == PACE_MODE_ALLREDUCE || mode == PACE_MODE_LOCAL   ? PACE__EXCHANGE_MERGE
           : mode == PACE_MODE_PS_ASYNC || mode == PACE_MODE_PS_SSP ? PACE__EXCHANGE_ASYNC
                                                                    : PACE__EXCHANGE_SYNC;
}

uint64_t pace__member_rows_max(const pace__job *job)
{
    uint64_t workers = (uint64_t)job->cluster.workers;

    return (job->order.batch + workers - 1) / workers;
}

size_t pace__member_keys_max(const pace__job *job)
{
    return pace__model_keys_max(&job->model, pace__member_rows_max(job));
}

unsigned pace__member_depth(const pace__job *job)
{
    return pace__exchange_of(job->mode) == PACE__EXCHANGE_ASYNC && 2 * job->order.batch <= ROWS_IN_FLIGHT_MAX
               ? 2
               : 1;
}

pace__client_plan pace__member_client_plan(const pace__job *job)
{
    return (pace__client_plan){.shards = pace__shards(&job->cluster),
                               .first_rank = pace__shard_rank(&job->cluster, 0),
                               .exchange = pace__exchange_of(job->mode),
                               .keys = job->shape.keys,
                               .keys_max = pace__member_keys_max(job),
                               .dim = job->shape.dim};
}

pace__shard_plan pace__member_shard_plan(const pace__job *job, unsigned shard)
{
    const pace_train_config *config = job->config;
    pace__exchange exchange = pace__exchange_of(job->mode);
    pace__shard_plan plan = {
        .exchange = exchange,
        .workers = job->cluster.workers,
        .steps = job->order,
        .first_step = job->position.step,
        .rate = {config->optimiser.schedule, job->lr, config->optimiser.warmup, job->steps},
        .keys_max = pace__member_keys_max(job),
        .fresh_pushes = FRESH_PUSHES * (uint64_t)job->cluster.workers};

    plan.table = (pace__table_plan){.keys = job->shape.keys,
                                    .dim = job->shape.dim,
                                    .shard = shard,
                                    .shards = (unsigned)pace__shards(&job->cluster),
                                    .sums = exchange != PACE__EXCHANGE_ASYNC,
                                    .optim = job->model.optim,
                                    .stats_first = pace__shape_stats_first(&job->shape),
                                    .stats = job->shape.stats_rows};
    if (exchange == PACE__EXCHANGE_MERGE) /* sums only */
        plan.table.optim = pace__optim_make(PACE_SGD, job->lr, 0, 0, 0);
    return plan;
}

/* --- what this rank holds --- */

static uint64_t step_of_shard(const void *user)
{
    return pace__shard_step(user);
}

static uint64_t step_of_replica(const void *user)
{
    return ((const pace__member *)user)->replica_step;
}

static pace_status open_counter(pace__member *member)
{
    const pace__job *job = member->job;
    const pace_train_config *config = job->config;
    uint64_t gates[2] = {(uint64_t)config->faults.checkpoint_every,
                         job->scores_on_the_way ? (uint64_t)config->records.eval_every : 0};
    uint64_t staleness =
        job->mode == PACE_MODE_PS_SSP ? (uint64_t)config->cluster.staleness : PACE__STALENESS_UNBOUNDED;
    pace__tickets *tickets = malloc(sizeof *tickets);

    if (!tickets)
        return pace_fail(member->self.log, PACE_FAILED, "out of memory");
    pace__tickets_init(tickets, &job->order, (unsigned)job->cluster.workers, job->position.step, job->steps,
                       staleness, gates);
    pace_status status = pace__counter_create(member->self.link, job->cluster.workers, tickets,
                                              member->self.log, &member->counter);

    free(tickets);
    return status;
}

/* The whole model, on every worker. */
static pace_status open_replica(pace__member *member)
{
    const pace__job *job = member->job;
    pace__table_plan plan = {.keys = job->shape.keys,
                             .dim = job->shape.dim,
                             .shards = 1,
                             .optim = job->model.optim,
                             .stats_first = pace__shape_stats_first(&job->shape),
                             .stats = job->shape.stats_rows};
    uint64_t step = job->position.step;

    member->replica_step = step;
    pace_status status = pace__table_init(&member->replica, &plan, member->self.log);

    pace__job_stand_behind(job, &member->replica.optim,
                           step); /* for penalties that are still to be applied */
    return status;
}

pace_status pace__member_open_holdings(pace__member *member)
{
    pace__job *job = member->job;
    bool merge = member->exchange == PACE__EXCHANGE_MERGE, worker = member->role == PACE__WORKER;
    int first = pace__shard_rank(&job->cluster, 0), shard = member->self.number - first;
    bool holds = shard >= 0 && shard < pace__shards(&job->cluster);
    pace__keeper_plan keeper = {.table = &member->replica,
                                .steps = job->order,
                                .exact_steps = pace__is_sync(member),
                                .step = step_of_replica,
                                .user = member};
    pace_status status = PACE_OK;

    if (holds) {
        pace__shard_plan plan = pace__member_shard_plan(job, (unsigned)shard);

        status = pace__shard_create(member->self.link, &plan, member->self.log, &member->shard);
    }
    if (!status && merge && worker)
        status = open_replica(member);
    if (!status && holds && !merge) {
        keeper.table = pace__shard_table(member->shard);
        keeper.step = step_of_shard;
        keeper.user = member->shard;
    }
    if (!status && keeper.table->records)
        status = pace__keeper_create(member->self.link, &keeper, member->self.log, &member->keeper);
    if (!status && member->exchange == PACE__EXCHANGE_ASYNC && member->self.number == first)
        status = open_counter(member);
    pace__member_open_losses(member);
    pace__link_on_idle(member->self.link, pace__member_serve, member);
    return status;
}

const pace__table *pace__member_table(const pace__member *member)
{
    bool merge = member->exchange == PACE__EXCHANGE_MERGE;

    if (merge) /* all replicas are the same, and the chief's is the one that counts */
        return member->self.number == 0 && member->replica.records ? &member->replica : NULL;
    return member->shard ? pace__shard_table(member->shard) : NULL;
}

void pace__member_close_holdings(pace__member *member)
{
    pace__link_on_idle(member->self.link, NULL, NULL);
    pace__save_holder_close(member);
    pace__member_save_close(member);
    pace__member_close_losses(member);
    pace__counter_free(member->counter);
    pace__keeper_free(member->keeper);
    pace__table_release(&member->replica);
    pace__shard_free(member->shard);
}

/* A slow server is slow in what it serves; a slow worker is so in what it computes. */
static pace_status poll_shard(pace__member *member, bool *busy)
{
    uint64_t before = pace__shard_stats_of(member->shard)->busy_ns;
    pace_status status = pace__shard_poll(member->shard, busy);

    if (member->role == PACE__PS)
        pace__faults_drag(&member->job->faults, pace__shard_stats_of(member->shard)->busy_ns - before);
    return status;
}

pace_status pace__member_serve(void *user, bool *busy)
{
    pace__member *member = user;
    pace_status status = member->serve_status;

    if (!status && member->shard)
        status = poll_shard(member, busy);
    if (!status && member->keeper)
        status = pace__keeper_poll(member->keeper, busy);
    if (!status && member->counter)
        status = pace__counter_poll(member->counter, busy);
    if (!status)
        status = pace__save_holder_poll(member, busy);
    if (!status && member->self.number == 0)
        status = pace__job_save_poll(member->job);
    if (!status && member->watches_evaluator)
        status =
            pace__link_check(member->self.link, pace__cluster_size(&member->job->cluster) - 1, "its scores");
    if (!status)
        status = pace__member_look_for_losses(member, busy);
    if (member->role == PACE__PS && member->shard)
        pace__faults_at(&member->job->faults, PACE__AT_STEP, pace__shard_step(member->shard));
    else
        pace__faults_at(&member->job->faults, PACE__AT_TIME, 0);
    member->serve_status = status;
    return status;
}

/* --- the model as a whole --- */

unsigned pace__member_holders(const pace__member *member)
{
    return member->exchange == PACE__EXCHANGE_MERGE ? 1 : (unsigned)pace__shards(&member->job->cluster);
}

pace__holder pace__member_holder(const pace__member *member, unsigned index)
{
    const pace__job *job = member->job;

    if (member->exchange == PACE__EXCHANGE_MERGE)
        return pace__holder_of(job->shape.keys, 1, 0, (int)index);
    return pace__holder_of(job->shape.keys, pace__member_holders(member), index,
                           pace__shard_rank(&job->cluster, 0));
}

pace_status pace__member_assemble(void *user)
{
    pace__member *member = user;
    pace__job *job = member->job;
    pace_status status = PACE_OK;

    for (unsigned i = 0; i < pace__member_holders(member) && !status; i++) {
        pace__holder holder = pace__member_holder(member, i);

        status =
            pace__fetch_state(member->self.link, &holder, job->floats, job->parameters, member->self.log);
    }
    job->is_settled = false;
    return status;
}

pace_status pace__member_send_out_model(pace__member *member)
{
    const pace__job *job = member->job;
    unsigned holders = member->exchange == PACE__EXCHANGE_MERGE ? (unsigned)job->cluster.workers
                                                                : pace__member_holders(member);
    pace_status status = PACE_OK;

    for (unsigned i = 0; i < holders && !status; i++) {
        pace__holder holder = pace__member_holder(member, i);

        status =
            pace__store_state(member->self.link, &holder, job->floats, job->parameters, member->self.log);
    }
    return status;
}
