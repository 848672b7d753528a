/*
 * deaths.c - which rank has ended, and how, as mpirun's state machine tells; and does the job survive it?
 *
 *     running -> ended    mpirun says how; the first news counts (note_end)
 *     ended   -> judged   some time later, when what the rank itself said last has come (is_ripe)
 *     judged  -> gone     it was a death, and the job survives it
 *     gone    -> told     the chief knows (launch/orders.h)
 *
 * 1. Of the deaths that are ripe at one moment, one that the job does not survive ends it, and none of the
 *    others is survived: whoever is gone is a worker, not the chief, and the chief was there to be told.
 * 2. A rank that has left, or said an error, has not died; nor has one that ended after another had failed.
 * 3. A rank is judged once. After that only its being told is left to be done.
 * 4. Nothing is judged once the launcher ends the ranks, be it by our signal: they all end then.
 */
#include "base/clock.h"
#include "launch/internal.h"
#include "launch/orders.h"

#include <assert.h>

#define SETTLE_S      0.3 /* what a rank said last may come behind the news of its death */
#define SETTLE_LEFT_S 1.0 /* or of its leaving, which is how ranks end well after a loss */

static const char *how_it_ended(pace__event_kind end)
{
    return end == PACE__EVENT_KILLED      ? "was killed by a signal"
           : end == PACE__EVENT_NO_DAEMON ? "was lost with its host"
                                          : "ended without a word";
}

/* When the ranks are looked at. */
typedef struct moment {
    uint64_t now_ns;
    bool over; /* nothing more will be heard */
} moment;

/* Is it time to judge what the launcher has told of it? There is nothing to wait for when all is over; but a
 * launcher that ends for a reason of its own loses its daemons, too. */
static bool is_ripe(const pace__rank_state *rank, moment at)
{
    double settle_s = rank->end == PACE__EVENT_LEFT ? SETTLE_LEFT_S : SETTLE_S;

    if (at.over)
        return rank->end && !rank->judged && rank->end != PACE__EVENT_NO_DAEMON;
    return rank->end && !rank->judged && (double)(at.now_ns - rank->end_ns) * 1e-9 > settle_s;
}

/* Not, if it has said why, or if another rank had failed before: invariant 2. */
static bool is_death(const pace__launch_job *job, const pace__rank_state *rank)
{
    bool late = job->broken_ns && job->broken_ns < rank->end_ns;

    return !rank->left && !rank->complained && !late;
}

/* While the chief is there. mpirun counts a rank that calls MPI_Abort twice, and would end the job early. */
static bool is_survivable(const pace__launch_job *job, int rank, moment at)
{
    return !at.over && !job->gave_up_ns && job->started && rank > 0 && rank < job->plan->cluster.workers &&
           job->ranks[rank].end != PACE__EVENT_ABORTED;
}

/* What a rank leaves of itself, or aborts, before the job has begun, it will again; but not if that was for another one,
 * which was killed, or lost with its host. */
static pace_status status_of_death(const pace__launch_job *job)
{
    if (!pace__never_began(job))
        return PACE_LOST;
    for (int i = 0; i < job->size; i++) {
        if (job->ranks[i].end == PACE__EVENT_KILLED || job->ranks[i].end == PACE__EVENT_NO_DAEMON)
            return PACE_LOST;
    }
    return PACE_FAILED;
}

/* The first of those that the job does not survive, by when it was heard of: others may follow from it. -1: none. */
static int first_death(const pace__launch_job *job, moment at)
{
    int first = -1;

    for (int i = 0; i < job->size; i++) {
        const pace__rank_state *rank = &job->ranks[i];

        if (is_ripe(rank, at) && is_death(job, rank) && !is_survivable(job, i, at) &&
            (first < 0 || rank->end_ns < job->ranks[first].end_ns))
            first = i;
    }
    return first;
}

/* A death that ends the job comes before those that it would have survived. */
static bool end_by_death(pace__launch_job *job, moment at)
{
    char name[PACE__WHO_TEXT];
    int rank = first_death(job, at);

    if (rank < 0)
        return false;
    pace__end_job(job, status_of_death(job), "%s %s%s", pace__who(job, rank, name),
                  how_it_ended(job->ranks[rank].end), pace__never_began(job) ? " before training began" : "");
    return true;
}

static void tell_chief(const pace__launch_job *job)
{
    for (int i = 1; i < job->size; i++) {
        char text[PACE__ORDER_TEXT];
        pace__rank_state *rank = &job->ranks[i];

        assert(!rank->gone || rank->judged);
        if (rank->gone && !rank->told)
            rank->told = pace__child_tell(&job->launcher, text, pace__order_lost(i, text));
    }
}

void pace__look_at_deaths(pace__launch_job *job, bool over)
{
    char name[PACE__WHO_TEXT];
    moment at = {pace__now_ns(), over}; /* one for all: who ripens meanwhile is judged the next time */

    if (!job->outlives || job->kills || job->ends_itself_ns || (job->ranks[0].left && !job->gave_up_ns) ||
        end_by_death(job, at))
        return;
    for (int i = 0; i < job->size; i++) {
        pace__rank_state *rank = &job->ranks[i];

        if (!is_ripe(rank, at))
            continue;
        rank->judged = true;
        rank->gone = is_death(job, rank);
        assert(!rank->gone || is_survivable(job, i, at)); /* invariant 1 */
        if (rank->gone)
            pace_say(job->log, PACE_WARN, "%s %s; the others go on without it", pace__who(job, i, name),
                     how_it_ended(rank->end));
        else if (!rank->left && !job->broken_ns)
            job->broken_ns = pace__now_ns();
    }
    tell_chief(job);
}

void pace__look_whether_all_ended(pace__launch_job *job)
{
    for (int rank = 0; rank < job->size; rank++) {
        if (!job->ranks[rank].left && !job->ranks[rank].end)
            return;
    }
    job->all_ended_ns = pace__now_ns();
}

/* The first news of a rank is how it ended; what follows is the launcher's clean-up. */
static void note_end(pace__launch_job *job, int number, pace__event_kind end)
{
    assert(number >= 0 && number < job->size && end != PACE__EVENT_NONE);
    pace__rank_state *rank = &job->ranks[number];

    if (rank->end)
        return;
    rank->end = end;
    rank->end_ns = pace__now_ns();
    pace__look_whether_all_ended(job);
}

/* Before all have started mpirun ends by itself, and its own sentences say more. */
static void lose_daemon(pace__launch_job *job, int daemon)
{
    bool known = false;

    if (job->hellos < job->size) {
        job->broken_ns = job->broken_ns ? job->broken_ns : pace__now_ns();
        return;
    }
    for (int rank = 0; rank < job->size; rank++) {
        if (job->ranks[rank].daemon != daemon)
            continue;
        known = true;
        note_end(job, rank, PACE__EVENT_NO_DAEMON);
    }
    if (!known)
        pace__end_job(job, PACE_LOST, "the launcher has lost the connection to one of the hosts");
}

void pace__take_event(pace__launch_job *job, const pace__event *event)
{
    if (event->kind == PACE__EVENT_NONE)
        return;
    if (event->kind == PACE__EVENT_NO_DAEMON) {
        if (!job->all_ended_ns && !job->kills && !job->ends_itself_ns)
            lose_daemon(job, event->number);
        return;
    }
    if (event->number < 0 || event->number >= job->size)
        return;
    if (event->kind == PACE__EVENT_RUNNING)
        job->ranks[event->number].daemon = event->speaker ? event->speaker : job->ranks[event->number].daemon;
    else if (event->kind == PACE__EVENT_ENDING) /* a daemon that is cut off ends only its own */
        job->ends_itself_ns =
            job->ends_itself_ns || event->speaker != 0 ? job->ends_itself_ns : pace__now_ns();
    else if (event->kind == PACE__EVENT_NO_PROGRAM)
        pace__end_job(job, PACE_FAILED, PACE__NO_PROGRAM_TEXT, job->ranks[event->number].host,
                      job->plan->words[0]);
    else
        note_end(job, event->number, event->kind);
}
