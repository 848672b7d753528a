/*
 * The tables of parameters that a process holds: a shard, a replica; the counter beside them; and all of them
 * together, for the chief.
 *
 * 1. Who holds what follows from the plan alone: a shard, the ranks that it names; a replica, every worker of an
 *    allreduce, and of local-sgd by steps; the keys that it owns, every worker of local-sgd, which merges them itself; the
 *    counter, the first shard of an asynchronous mode, and where there are backup workers. A process that holds a table keeps it for others
 *    (ps/snapshot.h): of a shard of sums, which goes with a replica, the replica.
 * 2. Tables are made before the start and released behind the end. Between, only pace__process_serve moves them, on
 *    the process's one thread; a replica is moved by its worker.
 * 3. Serving that has failed is not tried again: everything it moves may be half moved.
 * 4. States that are gathered or dealt out are clean: nobody computes meanwhile.
 */
#include "roles/process.h"

#include <assert.h>
#include <stdlib.h>

_Static_assert(PACE__WORKERS_MAX *PACE__RANGES_MAX <= PACE__INTERVALS_MAX,
               "the counter and the shards keep in mind what all workers have");

/* --- what this rank holds --- */

static uint64_t step_of_shard(const void *user)
{
    return pace__shard_step(user);
}

static uint64_t step_of_replica(const void *user)
{
    return ((const pace__process *)user)->replica_step;
}

static uint64_t step_of_merged(const void *user)
{
    return ((const pace__process *)user)->merged_step;
}

/* Steps behind which the chief has something to do on a clean state. */
static void find_gates(const pace__job *job, uint64_t gates[2])
{
    const pace_train_config *config = job->config;

    gates[0] = (uint64_t)config->faults.checkpoint_every;
    gates[1] = job->plan.scores_on_the_way ? (uint64_t)config->records.eval_every : 0;
}

static pace_status open_counter(pace__process *process)
{
    const pace__job *job = process->job;
    uint64_t gates[2];

    if (job->plan.backups)
        return pace__counter_create_for_slices(process->self.link, job->plan.cluster.workers,
                                               pace__shard_slices(process->shard), process->self.log,
                                               &process->counter);
    pace__tickets *tickets = malloc(sizeof *tickets);

    assert(process->shard && !pace__plan_is_sync(&job->plan)); /* invariant 1 */
    if (!tickets)
        return pace_fail(process->self.log, PACE_FAILED, "out of memory");
    find_gates(job, gates);
    pace__tickets_init(tickets, &job->plan.order, (unsigned)job->plan.cluster.workers, job->position.step,
                       job->plan.steps, job->plan.staleness, gates);
    pace_status status = pace__counter_create(process->self.link, job->plan.cluster.workers, tickets,
                                              process->self.log, &process->counter);

    free(tickets);
    return status;
}

/* The whole model, on every worker. */
static pace_status open_replica(pace__process *process)
{
    const pace__job *job = process->job;
    pace__table_plan plan = pace__plan_trained(&job->plan);
    uint64_t step = job->position.step;

    process->replica_step = step;
    pace_status status = pace__table_init(&process->replica, &plan, process->self.log);

    /* For penalties that are still to be applied. */
    pace__plan_stand_behind(&job->plan, &process->replica.optim, step);
    return status;
}

pace_status pace__process_open_tables(pace__process *process)
{
    pace__job *job = process->job;
    bool merge = pace__plan_has_replicas(&job->plan), worker = process->role == PACE__WORKER;
    int shard = pace__plan_shard_of(&job->plan, process->self.number);
    pace__keeper_plan keeper = {.table = &process->replica,
                                .steps = job->plan.order,
                                .exact_steps = pace__plan_is_sync(&job->plan),
                                .step = step_of_replica,
                                .user = process};
    pace_status status = PACE_OK;

    assert(!process->shard && !process->replica.records && !process->keeper); /* invariant 2 */
    pace__process_open_profile(process);
    if (shard >= 0 && pace__plan_merges(&job->plan)) {
        pace__table_plan plan = pace__plan_owned(&job->plan, (unsigned)shard);

        status = pace__table_init(&process->merged, &plan, process->self.log);
        process->merged_step = job->position.step;
        keeper.table = &process->merged;
        keeper.step = step_of_merged;
    } else if (shard >= 0) {
        pace__shard_plan plan = pace__plan_shard(&job->plan, (unsigned)shard, job->position.step);

        find_gates(job, plan.gate_every);
        plan.gate_every[2] = job->plan.order.per_epoch; /* whose loss is that of its rows alone */
        status = pace__shard_create(process->self.link, &plan, process->self.log, &process->shard);
    }
    if (!status && worker && (merge || job->plan.by_steps))
        status = open_replica(process);
    if (!status && process->shard && !merge) {
        keeper.table = pace__shard_table(process->shard);
        keeper.step = step_of_shard;
        keeper.user = process->shard;
    }
    if (!status && keeper.table->records)
        status = pace__keeper_create(process->self.link, &keeper, process->self.log, &process->keeper);
    if (!status && (!pace__plan_is_sync(&job->plan) || job->plan.backups) && shard == 0)
        status = open_counter(process);
    pace__process_open_losses(process);
    pace__link_on_idle(process->self.link, pace__process_serve, process);
    if (!status && worker && job->craft && !pace__job_is_over(job))
        status = job->craft->open(process);
    return status;
}

const pace__table *pace__process_table(const pace__process *process)
{
    if (pace__plan_has_replicas(
            &process->job->plan)) /* all replicas are the same, and the chief's is the one that counts */
        return process->self.number == 0 && process->replica.records ? &process->replica : NULL;
    if (process->merged.records)
        return &process->merged;
    return process->shard ? pace__shard_table(process->shard) : NULL;
}

void pace__process_close_tables(pace__process *process)
{
    if (process->own)
        process->job->craft->close(process);
    pace__link_on_idle(process->self.link, NULL, NULL);
    pace__save_holder_close(process);
    pace__process_save_close(process);
    pace__process_close_losses(process);
    pace__counter_free(process->counter);
    pace__keeper_free(process->keeper);
    pace__table_release(&process->merged);
    pace__table_release(&process->replica);
    pace__shard_free(process->shard);
}

/* A slow server is slow in what it serves; a slow worker is so in what it computes. */
static pace_status poll_shard(pace__process *process, bool *busy)
{
    uint64_t before = pace__shard_stats_of(process->shard)->busy_ns, step = pace__shard_step(process->shard);
    pace_status status = pace__shard_poll(process->shard, busy);

    if (process->role == PACE__PS)
        process->times.communicate_ns += pace__faults_drag(
            &process->job->faults, step, pace__shard_stats_of(process->shard)->busy_ns - before);
    return status;
}

pace_status pace__process_serve(void *user, bool *busy)
{
    pace__process *process = user;
    pace_status status = process->serve_status; /* invariant 3 */

    if (!status && process->shard)
        status = poll_shard(process, busy);
    if (!status && process->keeper)
        status = pace__keeper_poll(process->keeper, busy);
    if (!status && process->counter)
        status = pace__counter_poll(process->counter, busy);
    if (!status)
        status = pace__save_holder_poll(process, busy);
    if (!status && process->self.number == 0)
        status = pace__job_save_poll(process->job);
    if (!status && process->watches_evaluator)
        status = pace__link_check(process->self.link, pace__cluster_size(&process->job->plan.cluster) - 1,
                                  "its scores");
    if (!status && process->is_ending && process->self.number == 0 && process->job->plan.cluster.evaluator)
        status = pace__chief_drop_verdicts(process);
    if (!status)
        status = pace__process_look_for_losses(process, busy);
    if (!status)
        status = pace__process_poll_profile(process, busy);
    if (!status)
        status = pace__process_sample(process);
    if (process->role == PACE__PS && process->shard)
        pace__faults_at(&process->job->faults, PACE__AT_STEP, pace__shard_step(process->shard));
    else
        pace__faults_at(&process->job->faults, PACE__AT_TIME, 0);
    process->serve_status = status;
    return status;
}

/* --- all of them together --- */

pace_status pace__process_gather(pace__process *process)
{
    pace__job *job = process->job;
    pace_status status = PACE_OK;

    assert(process->self.number == 0 && job->parameters);
    for (unsigned i = 0; i < pace__plan_holders(&job->plan) && !status; i++) {
        pace__holder holder = pace__plan_holder(&job->plan, i);

        status = pace__fetch_state(process->self.link, &holder, job->plan.floats, job->parameters,
                                   process->self.log);
    }
    job->is_settled = false;
    return status;
}

pace_status pace__process_deal_out(pace__process *process)
{
    const pace__job *job = process->job;
    unsigned holders = pace__plan_has_replicas(&job->plan) ? (unsigned)job->plan.cluster.workers
                                                           : pace__plan_holders(&job->plan);
    pace_status status = PACE_OK;

    assert(process->self.number == 0 && job->parameters && !job->is_settled); /* with optimiser state */
    for (unsigned i = 0; i < holders && !status; i++) {
        pace__holder holder = pace__plan_holder(&job->plan, i);

        status = pace__store_state(process->self.link, &holder, job->plan.floats, job->parameters,
                                   process->self.log);
    }
    return status;
}

pace_status pace__process_check_rows(const pace__process *process, uint64_t last_step)
{
    if (process->merged.records && process->merged_step != last_step)
        return pace_fail(process->self.log, PACE_BUG,
                         "its parameters are those behind step %llu, and the job ends behind step %llu",
                         (unsigned long long)process->merged_step, (unsigned long long)last_step);
    return process->shard
               ? pace__shard_check(process->shard, pace__plan_rows_before(&process->job->plan, last_step))
               : PACE_OK;
}
