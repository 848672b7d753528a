/*
 * Going on without a worker that has died: asynchronous modes with parameter servers of their own.
 *
 * The supervisor sees the death and tells the chief (launch/orders.h); the chief tells the servers. Each
 * forgets the worker: its messages, its place among those that are waited for. The counter hands out its rows
 * again, and a shard that has applied some of them already knows them by their interval and drops the repeat.
 * So every row is still applied exactly once, and the others never stop.
 */
#include "base/clock.h"
#include "roles/process.h"

#include <inttypes.h>
#include <paceline/relay.h>
#include <stdlib.h>

#define LOOK_EVERY_NS 10000000
/* How long a rank waits to be let go. */
#define GOODBYE_NS 2000000000u

bool pace__job_outlives(const pace__job *job)
{
    return pace__exchange_of(job->mode) == PACE__EXCHANGE_ASYNC && job->cluster.ps > 0 &&
           job->cluster.workers > 1;
}

/* MPICH's mpiexec ends the others, and takes a rank that leaves without MPI_Finalize for a failure. */
bool pace__job_outlives_here(const pace__job *job)
{
    return pace__job_outlives(job) && pace_relay_wanted() && getenv("OMPI_COMM_WORLD_SIZE");
}

static bool outlives(const pace__member *member)
{
    return pace__job_outlives_here(member->job);
}

static void listen(pace__member *member)
{
    pace__link_receive(member->self.link, 0, PACE__TAG_LOST, &member->loss_word, sizeof member->loss_word,
                       &member->loss_receive);
}

void pace__member_open_losses(pace__member *member)
{
    member->orders.fd = -1;
    if (!outlives(member))
        return;
    if (member->self.number == 0)
        pace__orders_open(&member->orders);
    if (member->role == PACE__PS)
        listen(member);
}

void pace__member_close_losses(pace__member *member)
{
    for (int i = 0; i < member->loss_count; i++) {
        for (int ps = 0; ps < member->job->cluster.ps; ps++)
            pace__link_settle(member->self.link, &member->losses[i].sends[ps]);
        free(member->losses[i].sends);
    }
    free(member->losses);
    pace__link_cancel(member->self.link, &member->loss_receive);
}

static pace_status tell_servers(pace__member *member, int rank)
{
    const pace__cluster *cluster = &member->job->cluster;

    if (!member->losses) /* once, since messages are sent from there */
        member->losses = calloc((size_t)cluster->workers, sizeof *member->losses);
    pace__request *sends = calloc((size_t)cluster->ps, sizeof *sends);

    if (!member->losses || !sends) {
        free(sends);
        return pace_fail(member->self.log, PACE_FAILED, "out of memory");
    }
    pace__loss *loss = &member->losses[member->loss_count++];

    *loss = (pace__loss){(uint64_t)rank, sends};
    for (int ps = 0; ps < cluster->ps; ps++)
        pace__link_send(member->self.link, cluster->workers + ps, PACE__TAG_LOST, &loss->rank,
                        sizeof loss->rank, &sends[ps]);
    return PACE_OK;
}

static pace_status hear_order(pace__member *member, bool *busy)
{
    uint64_t now = pace__now_ns();
    int rank;

    if (now - member->orders_ns < LOOK_EVERY_NS)
        return PACE_OK;
    member->orders_ns = now;
    if (!pace__orders_next(&member->orders, &rank) || rank <= 0 || rank >= member->job->cluster.workers ||
        pace__link_is_lost(member->self.link, rank))
        return PACE_OK;
    *busy = true;
    pace__link_lose(member->self.link, rank);
    return tell_servers(member, rank);
}

static pace_status hear_chief(pace__member *member, bool *busy)
{
    bool came = false;
    pace_status status = pace__link_done(member->self.link, &member->loss_receive, &came);

    if (status || !came)
        return status;
    int rank = (int)member->loss_word;

    *busy = true;
    if (rank <= 0 || rank >= member->job->cluster.workers)
        return pace_fail(member->self.log, PACE_BUG, "the chief has lost rank %d, which is no worker", rank);
    pace__link_lose(member->self.link, rank);
    pace__shard_lose(member->shard, rank);
    uint64_t rows = member->counter ? pace__counter_lose(member->counter, rank) : 0;

    if (rows > 0)
        pace_say(member->self.log, PACE_WARN, "%" PRIu64 " rows of %s are handed out again", rows,
                 pace__link_name(member->self.link, rank));
    listen(member);
    return PACE_OK;
}

pace_status pace__member_look_for_losses(pace__member *member, bool *busy)
{
    pace_status status = PACE_OK;

    if (member->orders.fd >= 0)
        status = hear_order(member, busy);
    if (!status && member->loss_receive.active && member->shard)
        status = hear_chief(member, busy);
    return status;
}

void pace__member_part(pace__member *member)
{
    uint64_t until = pace__now_ns() + GOODBYE_NS;
    pace__request word = {0};
    unsigned turns = 0;
    bool done = false;
    int chief = 0;

    if (!outlives(member))
        return;
    pace__link_leave_alone(member->self.link);
    if (member->self.number == 0) {
        pace__member_tell_all(member, PACE__TAG_END, &member->ending, sizeof member->ending);
        return;
    }
    pace__link_receive(member->self.link, 0, PACE__TAG_END, &member->ending, sizeof member->ending, &word);
    pace_status status = pace__link_done(member->self.link, &word, &done);

    while (!status && !done && pace__now_ns() < until) {
        status = pace__link_turn(member->self.link, &chief, 1, "the end of the job", &turns);
        if (!status)
            status = pace__link_done(member->self.link, &word, &done);
    }
    if (!done) /* this process is about to end */
        pace__link_abandon(member->self.link, &word);
}
