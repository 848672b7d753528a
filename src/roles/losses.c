/*
 * Going on without a worker that has died: asynchronous modes with parameter servers of their own.
 *
 * The supervisor sees the death and tells the chief (launch/orders.h); the chief tells the servers. Each
 * forgets the worker: its messages, its place among those that are waited for. The counter hands out its rows
 * again, and a shard that has applied some of them already knows them by their interval and drops the repeat.
 * So every row is still applied exactly once, and the others never stop.
 *
 * And ending without a worker that hangs, or is slow, where there are more than steps need (ps/slices.h).
 */
#include "base/clock.h"
#include "roles/process.h"

#include <inttypes.h>
#include <paceline/relay.h>
#include <stdlib.h>

#define LOOK_EVERY_NS 10000000
/* How long a rank waits to be let go. */
#define GOODBYE_NS 2000000000u

bool pace__job_outlives(const pace__job_plan *plan)
{
    return !pace__plan_is_sync(plan) && plan->cluster.ps > 0 && plan->cluster.workers > 1;
}

/* MPICH's mpiexec ends the others, and takes a rank that leaves without MPI_Finalize for a failure. */
bool pace__job_outlives_here(const pace__job_plan *plan)
{
    return pace__job_outlives(plan) && pace_relay_wanted() && getenv("OMPI_COMM_WORLD_SIZE");
}

static bool outlives(const pace__process *process)
{
    return pace__job_outlives_here(&process->job->plan);
}

static void listen(pace__process *process)
{
    pace__link_receive(process->self.link, 0, PACE__TAG_LOST, &process->loss_word, sizeof process->loss_word,
                       &process->loss_receive);
}

void pace__process_open_losses(pace__process *process)
{
    process->orders.fd = -1;
    if (!outlives(process))
        return;
    if (process->self.number == 0)
        pace__orders_open(&process->orders);
    if (process->role == PACE__PS)
        listen(process);
}

void pace__process_close_losses(pace__process *process)
{
    for (int i = 0; i < process->loss_count; i++) {
        for (int ps = 0; ps < process->job->plan.cluster.ps; ps++)
            pace__link_settle(process->self.link, &process->losses[i].sends[ps]);
        free(process->losses[i].sends);
    }
    free(process->losses);
    pace__link_cancel(process->self.link, &process->loss_receive);
}

static pace_status tell_servers(pace__process *process, int rank)
{
    const pace__cluster *cluster = &process->job->plan.cluster;

    if (!process->losses) /* once, since messages are sent from there */
        process->losses = calloc((size_t)cluster->workers, sizeof *process->losses);
    pace__request *sends = calloc((size_t)cluster->ps, sizeof *sends);

    if (!process->losses || !sends) {
        free(sends);
        return pace_fail(process->self.log, PACE_FAILED, "out of memory");
    }
    pace__loss *loss = &process->losses[process->loss_count++];

    *loss = (pace__loss){(uint64_t)rank, sends};
    for (int ps = 0; ps < cluster->ps; ps++)
        pace__link_send(process->self.link, cluster->workers + ps, PACE__TAG_LOST, &loss->rank,
                        sizeof loss->rank, &sends[ps]);
    return PACE_OK;
}

static pace_status hear_order(pace__process *process, bool *busy)
{
    uint64_t now = pace__now_ns();
    int rank;

    if (now - process->orders_ns < LOOK_EVERY_NS)
        return PACE_OK;
    process->orders_ns = now;
    if (!pace__orders_next(&process->orders, &rank) || rank <= 0 ||
        rank >= process->job->plan.cluster.workers || pace__link_is_lost(process->self.link, rank))
        return PACE_OK;
    *busy = true;
    pace__link_lose(process->self.link, rank);
    return tell_servers(process, rank);
}

static pace_status hear_chief(pace__process *process, bool *busy)
{
    bool came = false;
    pace_status status = pace__link_done(process->self.link, &process->loss_receive, &came);

    if (!status && came)
        status = pace__link_fits(process->self.link, &process->loss_receive, sizeof process->loss_word,
                                 "the rank that was lost");
    if (status || !came)
        return status;
    *busy = true;
    if (process->loss_word == 0 || process->loss_word >= (uint64_t)process->job->plan.cluster.workers)
        return pace_fail(process->self.log, PACE_BUG, "%s has lost rank %" PRIu64 ", which is no worker",
                         pace__link_name(process->self.link, 0), process->loss_word);
    int rank = (int)process->loss_word;

    pace__link_lose(process->self.link, rank);
    pace__shard_lose(process->shard, rank);
    uint64_t rows = process->counter ? pace__counter_lose(process->counter, rank) : 0;

    if (rows > 0)
        pace_say(process->self.log, PACE_WARN, "%" PRIu64 " rows of %s are handed out again", rows,
                 pace__link_name(process->self.link, rank));
    listen(process);
    return PACE_OK;
}

pace_status pace__process_look_for_losses(pace__process *process, bool *busy)
{
    pace_status status = PACE_OK;

    if (process->orders.fd >= 0)
        status = hear_order(process, busy);
    if (!status && process->loss_receive.active && process->shard)
        status = hear_chief(process, busy);
    return status;
}

/* --- at the end --- */

void pace__process_let_go(pace__process *process, int rank)
{
    pace_say(
        process->job->log, PACE_WARN,
        "%s is let go: nothing is left to compute, and it has not asked for work for %.3g s; the job ends "
        "without it",
        pace__link_name(process->self.link, rank), (double)PACE__SLICES_GRACE_NS * 1e-9);
    pace__link_let_go(process->self.link, rank);
    process->let_go++;
}

/* What is under way with those who were let go never ends; so nothing is released, and nobody blamed: the chief writes its
 * last files, and whoever started it may go on for long. If it dies, the launcher ends everybody. */
static pace_status wait_for_dismissal(pace__process *process)
{
    pace_status status = PACE_OK;
    bool busy;

    pace__job_close_stage(process->job, process->ending.status);
    while (!status) {
        status = pace__process_serve(process, &busy);
        if (!status)
            status = pace__link_pulse(process->self.link);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_EVERY_NS}, NULL);
    }
    return status;
}

/* What a worker holds others may need until they have ended, too; so nobody goes before all have, which the chief says. */
static pace_status leave_together(pace__process *process)
{
    pace__request word = {0};

    if (process->self.number == 0)
        return pace__process_tell_all(process, PACE__TAG_END, &process->ending, sizeof process->ending);
    pace__link_receive(process->self.link, 0, PACE__TAG_END, &process->ending, sizeof process->ending, &word);
    pace_status status = pace__link_wait(process->self.link, &word, "the end of the job");

    if (!status)
        status = pace__link_fits(process->self.link, &word, sizeof process->ending, "the end of the job");
    pace__link_cancel(process->self.link, &word);
    return status;
}

static void leave_one_by_one(pace__process *process)
{
    uint64_t until = pace__now_ns() + GOODBYE_NS;
    pace__request word = {0};
    unsigned turns = 0;
    bool done = false;
    int chief = 0;

    pace__link_leave_alone(process->self.link);
    if (process->self.number == 0) {
        pace__process_tell_all(process, PACE__TAG_END, &process->ending, sizeof process->ending);
        return;
    }
    pace__link_receive(process->self.link, 0, PACE__TAG_END, &process->ending, sizeof process->ending, &word);
    pace_status status = pace__link_done(process->self.link, &word, &done);

    while (!status && !done && pace__now_ns() < until) {
        status = pace__link_turn(process->self.link, &chief, 1, "the end of the job", &turns);
        if (!status)
            status = pace__link_done(process->self.link, &word, &done);
    }
    if (!done) /* this process is about to end */
        pace__link_abandon(process->self.link, &word);
}

pace_status pace__process_part(pace__process *process)
{
    bool chief = process->self.number == 0;

    if (process->ending.let_go && !chief)
        return wait_for_dismissal(process);
    if (!process->ending.let_go && !outlives(process))
        return leave_together(process);
    if (process->ending.let_go)
        pace__link_dismiss(process->self.link);
    else
        leave_one_by_one(process);
    return PACE_OK;
}
