#include "threads/thread.h"

#include "base/locale.h"
#include "watch/spans.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

/* Members start together or not at all: one that works may wait for any other. */
typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum { CLOSED, OPEN, CANCELLED } state;
    pace__spans *spans; /* of the caller */
} gate;

typedef struct member {
    gate *gate;
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

void pace__spread(int thread, int threads, int before)
{
    cpu_set_t allowed, one;
    int core = 0, place;

    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || threads > CPU_COUNT(&allowed))
        return;
    place = (int)(((int64_t)before * threads + thread) % CPU_COUNT(&allowed));
    for (int passed = 0;; core++) {
        if (CPU_ISSET((size_t)core, &allowed) && passed++ == place)
            break;
    }
    CPU_ZERO(&one);
    CPU_SET((size_t)core, &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0)
        sched_setaffinity(0, sizeof allowed, &allowed);
}

static void *run_member(void *arg)
{
    PACE__C_LOCALE();
    member *self = arg;

    pthread_mutex_lock(&self->gate->lock);
    while (self->gate->state == CLOSED)
        pthread_cond_wait(&self->gate->changed, &self->gate->lock);
    bool open = self->gate->state == OPEN;

    pthread_mutex_unlock(&self->gate->lock);
    pace__spans_join(self->gate->spans, "thread", self->thread);
    self->status = open ? self->work(self->arg, self->thread) : PACE_OK;
    pace__spans_leave();
    return NULL;
}

static void set_gate(gate *start, int state)
{
    pthread_mutex_lock(&start->lock);
    start->state = state;
    pthread_cond_broadcast(&start->changed);
    pthread_mutex_unlock(&start->lock);
}

pace_status pace__team(int threads, pace_status (*work)(void *arg, int thread), void *arg,
                       const pace_log *log)
{
    gate start = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, CLOSED, pace__spans_here()};
    member members[PACE_THREADS_MAX];
    pace_status status = PACE_OK;
    int started = 0;

    if (threads < 1 || threads > PACE_THREADS_MAX)
        return pace_fail(log, PACE_USAGE, "%d threads: between 1 and %d are possible", threads,
                         PACE_THREADS_MAX);
    for (; started < threads - 1 && !status; started++) {
        members[started] = (member){.gate = &start, .work = work, .arg = arg, .thread = started};
        int error = pthread_create(&members[started].handle, NULL, run_member, &members[started]);

        if (error) {
            status = pace_fail(log, PACE_FAILED, "cannot start %d threads: %s", threads, strerror(error));
            break;
        }
    }
    set_gate(&start, status ? CANCELLED : OPEN);
    if (!status)
        status = work(arg, threads - 1);
    for (int i = started - 1; i >= 0; i--) {
        pthread_join(members[i].handle, NULL);
        if (members[i].status)
            status = members[i].status;
    }
    pthread_cond_destroy(&start.changed);
    pthread_mutex_destroy(&start.lock);
    return status;
}
