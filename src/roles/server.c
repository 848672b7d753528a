/*
 * A parameter server: holds a shard, and serves it until the chief says how the job ended.
 *
 * What it does for others happens in its waits (pace__process_serve): pushes are taken, steps applied, keys answered,
 * parts of checkpoints written, rows handed out. Workers and the evaluator come here, too, when their own work is
 * done: what they hold is served to the end.
 *
 * A worker that is silent for longer than the deadline is lost, and the job with it. With backup workers, as many as
 * there are of these may be silent, while steps go on: then they are missed by nobody, which is said. Where others wait for
 * longer than the deadline, one of them may have hung between two shards.
 */
#include "base/clock.h"
#include "roles/process.h"

#include <stdlib.h>

typedef struct server {
    pace__process *process;
    bool serves; /* it is a server, not somebody whose own work is done */
    int *peers;  /* (workers) whom it waits for; at first the chief */
    bool *away;  /* (workers) silent, and not missed */
} server;

/* Or nobody waits for them here: the chief is at something else, or all are at work. */
static bool steps_go_on(const pace__process *process, size_t missing)
{
    const pace__slices *slices = pace__shard_slices(process->shard);

    return missing == (size_t)process->job->plan.cluster.workers || slices->step == slices->gate ||
           pace__now_ns() - slices->begun_ns < pace__link_deadline_ns(process->self.link);
}

/* The first shard speaks for all. */
static void note_away(server *self, int worker, bool away)
{
    pace__process *process = self->process;

    if (self->away[worker] == away)
        return;
    self->away[worker] = away;
    if (process->counter && away)
        pace_say(process->self.log, PACE_WARN,
                 "%s has given no sign of life for %.3g s; it is not missed, since others compute its slices",
                 pace__link_name(process->self.link, worker),
                 (double)pace__link_deadline_ns(process->self.link) * 1e-9);
    else if (process->counter)
        pace_say(process->self.log, PACE_WARN, "%s is back", pace__link_name(process->self.link, worker));
}

/* Whose silence would be somebody's death: not that of those who are not missed. The chief always is. */
static size_t whom_to_miss(server *self)
{
    pace__process *process = self->process;
    size_t all = pace__shard_waits_for(process->shard, self->peers), count = 0;
    int backups = process->job->plan.backups, silent = 0;

    if (!backups || !steps_go_on(process, all))
        return all;
    for (int worker = 1; worker < process->job->plan.cluster.workers; worker++)
        silent += pace__link_is_silent(process->self.link, worker);
    for (size_t i = 0; i < all; i++) {
        int worker = self->peers[i];
        bool away = worker > 0 && silent <= backups && pace__link_is_silent(process->self.link, worker);

        note_away(self, worker, away);
        if (!away)
            self->peers[count++] = worker;
    }
    return count;
}

static pace_status turn(server *self, unsigned *turns)
{
    pace__process *process = self->process;
    const char *what = self->serves ? "its gradients" : "the end";
    size_t count = 1;

    if (process->shard)
        pace__rank_set_step(&process->self, pace__shard_step(process->shard));
    if (self->serves && process->shard) {
        pace__profile_at(&process->profile, pace__shard_reached(process->shard));
        count = whom_to_miss(self);
    }
    return pace__link_turn(process->self.link, self->peers, count, what, turns);
}

pace_status pace__server_run(pace__process *process)
{
    size_t workers = (size_t)process->job->plan.cluster.workers;
    server self = {.process = process,
                   .serves = process->role == PACE__PS,
                   .peers = calloc(workers, sizeof *self.peers),
                   .away = calloc(workers, sizeof *self.away)};
    pace_status status =
        self.peers && self.away ? PACE_OK : pace_fail(process->self.log, PACE_FAILED, "out of memory");
    bool ended = false;
    unsigned turns = 0;

    while (!status) {
        status = pace__link_done(process->self.link, &process->end_receive, &ended);
        if (status || ended)
            break;
        status = turn(&self, &turns);
    }
    free(self.peers);
    free(self.away);
    return status;
}
