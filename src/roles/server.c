/*
 * A parameter server: holds a shard, and serves it until the chief says how the job ended.
 *
 * What it does for others happens in its waits (pace__process_serve): pushes are taken, steps applied, keys answered,
 * parts of checkpoints written, rows handed out. Workers and the evaluator come here, too, when their own work is
 * done: what they hold is served to the end.
 */
#include "roles/process.h"

#include <stdlib.h>

pace_status pace__server_run(pace__process *process)
{
    bool server = process->role == PACE__PS, ended = false;
    const char *what = server ? "its gradients" : "the end";
    int *peers = calloc((size_t)process->job->plan.cluster.workers, sizeof *peers); /* [0]: the chief */
    pace_status status = peers ? PACE_OK : pace_fail(process->self.log, PACE_FAILED, "out of memory");
    unsigned turns = 0;

    while (!status) {
        size_t count = 1;

        status = pace__link_done(process->self.link, &process->end_receive, &ended);
        if (status || ended)
            break;
        if (process->shard)
            pace__rank_set_step(&process->self, pace__shard_step(process->shard));
        if (server && process->shard)
            pace__profile_at(&process->profile, pace__shard_reached(process->shard));
        if (server && process->shard) /* whose silence would be somebody's death */
            count = pace__shard_waits_for(process->shard, peers);
        status = pace__link_turn(process->self.link, peers, count, what, &turns);
    }
    free(peers);
    return status;
}
