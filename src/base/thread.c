#include "base/thread.h"

#include <pthread.h>
#include <string.h>

typedef struct member {
    pace_status (*work)(void *arg, int thread);
    void *arg;
    int thread;
    pace_status status;
    pthread_t handle;
} member;

int pace__cores(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int cores = CPU_COUNT(&set);

    return cores < PACE_THREADS_MAX ? cores : PACE_THREADS_MAX;
}

static void *run_member(void *arg)
{
    member *self = arg;

    self->status = self->work(self->arg, self->thread);
    return NULL;
}

pace_status pace__team(int threads, pace_status (*work)(void *arg, int thread), void *arg,
                       const pace_log *log)
{
    member members[PACE_THREADS_MAX];
    pace_status status = PACE_OK;
    int started = 0;

    if (threads < 1 || threads > PACE_THREADS_MAX)
        return pace_fail(log, PACE_USAGE, "%d threads: between 1 and %d are possible", threads,
                         PACE_THREADS_MAX);
    for (; started < threads - 1; started++) {
        members[started] = (member){.work = work, .arg = arg, .thread = started};
        int error = pthread_create(&members[started].handle, NULL, run_member, &members[started]);

        if (error) {
            status = pace_fail(log, PACE_FAILED, "cannot start a thread: %s", strerror(error));
            break;
        }
    }
    if (!status)
        status = work(arg, threads - 1);
    for (int i = started - 1; i >= 0; i--) {
        pthread_join(members[i].handle, NULL);
        if (members[i].status)
            status = members[i].status;
    }
    return status;
}
