#include "threads/crew.h"
#include "base/clock.h"
#include "base/locale.h"
#include "threads/thread.h"
#include "watch/spans.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct phase {
    _Alignas(64) atomic_uint next, done;
} phase;

/* A thread's own place: not shared with others in a cache line. */
typedef struct member {
    _Alignas(64) pace__crew *crew;
    int thread;
    unsigned at; /* phase */
    pthread_t handle;
} member;

struct pace__crew {
    int threads, started;
    unsigned phases_max;
    void *arg;
    member *members;
    phase *phases;
    _Alignas(64) atomic_uint opened; /* phases that have begun */
    atomic_bool stop;
    pthread_mutex_t lock;
    pthread_cond_t begin, end;
    void (*work)(void *arg, int thread);
    void (*poke)(void *arg);
    uint64_t poked_ns; /* when, or the begin of the run; thread 0's */
    uint64_t turn;     /* runs begun */
    int working;
    bool leave;
    pace__spans *spans; /* of whoever made it */
};

/* Under the lock. */
static void await_turn(pace__crew *crew, uint64_t seen)
{
    PACE__SPAN("wait for work");
    while (crew->turn == seen && !crew->leave)
        pthread_cond_wait(&crew->begin, &crew->lock);
}

static void *run_member(void *arg)
{
    PACE__C_LOCALE();
    member *me = arg;
    pace__crew *crew = me->crew;
    uint64_t seen = 0;

    pace__spans_join(crew->spans, "thread", me->thread);
    pthread_mutex_lock(&crew->lock);
    for (;;) {
        await_turn(crew, seen);
        if (crew->leave)
            break;
        seen = crew->turn;
        me->at = 0;
        pthread_mutex_unlock(&crew->lock);
        crew->work(crew->arg, me->thread);
        pthread_mutex_lock(&crew->lock);
        if (--crew->working == 0)
            pthread_cond_signal(&crew->end);
    }
    pthread_mutex_unlock(&crew->lock);
    pace__spans_leave();
    return NULL;
}

static pace_status start(pace__crew *crew, const pace_log *log)
{
    for (crew->started = 1; crew->started < crew->threads; crew->started++) {
        member *next = &crew->members[crew->started];
        int error = pthread_create(&next->handle, NULL, run_member, next);

        if (error)
            return pace_fail(log, PACE_FAILED, "cannot start %d threads: %s", crew->threads, strerror(error));
    }
    return PACE_OK;
}

static void *aligned(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);

    if (memory)
        memset(memory, 0, bytes);
    return memory;
}

pace_status pace__crew_create(int threads, unsigned phases_max, void *arg, const pace_log *log,
                              pace__crew **crew)
{
    if (threads < 1 || threads > PACE_THREADS_MAX)
        return pace_fail(log, PACE_USAGE, "%d threads: between 1 and %d are possible", threads,
                         PACE_THREADS_MAX);
    pace__crew *self = aligned(sizeof *self);

    if (!self)
        return pace_fail(log, PACE_FAILED, "out of memory");
    self->threads = threads;
    self->started = 1;
    self->phases_max = phases_max;
    self->arg = arg;
    self->spans = pace__spans_here();
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->begin, NULL);
    pthread_cond_init(&self->end, NULL);
    self->members = aligned((size_t)threads * sizeof *self->members);
    self->phases = aligned(phases_max * sizeof *self->phases);
    pace_status status = PACE_OK;

    if (!self->members || !self->phases)
        status = pace_fail(log, PACE_FAILED, "out of memory");
    for (int thread = 0; !status && thread < threads; thread++)
        self->members[thread] = (member){.crew = self, .thread = thread};
    if (!status)
        status = start(self, log);
    if (status)
        pace__crew_free(self);
    else
        *crew = self;
    return status;
}

void pace__crew_free(pace__crew *crew)
{
    if (!crew)
        return;
    pthread_mutex_lock(&crew->lock);
    crew->leave = true;
    pthread_cond_broadcast(&crew->begin);
    pthread_mutex_unlock(&crew->lock);
    for (int thread = 1; thread < crew->started; thread++)
        pthread_join(crew->members[thread].handle, NULL);
    pthread_cond_destroy(&crew->end);
    pthread_cond_destroy(&crew->begin);
    pthread_mutex_destroy(&crew->lock);
    free(crew->members);
    free(crew->phases);
    free(crew);
}

void pace__crew_run(pace__crew *crew, void (*work)(void *arg, int thread), void (*poke)(void *arg))
{
    for (unsigned i = 0; i < crew->phases_max; i++) {
        atomic_store_explicit(&crew->phases[i].next, 0, memory_order_relaxed);
        atomic_store_explicit(&crew->phases[i].done, 0, memory_order_relaxed);
    }
    atomic_store(&crew->opened, 0);
    atomic_store(&crew->stop, false);
    crew->members[0].at = 0;
    crew->poke = poke;
    crew->poked_ns = poke ? pace__now_ns() : 0;
    pthread_mutex_lock(&crew->lock);
    crew->work = work;
    crew->turn++;
    crew->working = crew->threads - 1;
    pthread_cond_broadcast(&crew->begin);
    pthread_mutex_unlock(&crew->lock);
    work(crew->arg, 0);
    pthread_mutex_lock(&crew->lock);
    while (crew->working > 0)
        pthread_cond_wait(&crew->end, &crew->lock);
    pthread_mutex_unlock(&crew->lock);
}

void pace__crew_stop(pace__crew *crew)
{
    atomic_store(&crew->stop, true);
}

bool pace__crew_stopped(const pace__crew *crew)
{
    return atomic_load_explicit(&crew->stop, memory_order_relaxed);
}

bool pace__crew_poke(pace__crew *crew, int thread)
{
    if (thread == 0 && crew->poke && !pace__crew_stopped(crew) &&
        pace__now_ns() - crew->poked_ns > PACE__CREW_POKE_NS) {
        crew->poke(crew->arg);
        crew->poked_ns = pace__now_ns();
    }
    return pace__crew_stopped(crew);
}

/* Thread 0 comes to a phase when all before it are over. False: the run is being stopped. */
static bool await_phase(const pace__crew *crew, unsigned at)
{
    unsigned turns = 0;

    if (atomic_load_explicit(&crew->opened, memory_order_acquire) > at)
        return true;
    PACE__SPAN("wait for threads");
    while (atomic_load_explicit(&crew->opened, memory_order_acquire) <= at) {
        if (pace__crew_stopped(crew))
            return false;
        pace__back_off(&turns);
    }
    return true;
}

static void await_tasks(pace__crew *crew, const phase *now, unsigned tasks)
{
    unsigned turns = 0;

    if (atomic_load(&now->done) >= tasks)
        return;
    PACE__SPAN("wait for threads");
    while (atomic_load(&now->done) < tasks && !pace__crew_poke(crew, 0))
        pace__back_off(&turns);
}

bool pace__crew_phase(pace__crew *crew, int thread, unsigned tasks,
                      void (*task)(void *arg, int thread, unsigned index))
{
    unsigned at = crew->members[thread].at++, index;
    phase *now = &crew->phases[at];

    assert(at < crew->phases_max);
    if (thread == 0)
        atomic_store_explicit(&crew->opened, at + 1, memory_order_release);
    if (!await_phase(crew, at))
        return false;
    while (!pace__crew_stopped(crew) && (index = atomic_fetch_add(&now->next, 1)) < tasks) {
        task(crew->arg, thread, index);
        atomic_fetch_add(&now->done, 1);
        pace__crew_poke(crew, thread);
    }
    if (thread == 0)
        await_tasks(crew, now, tasks);
    return !pace__crew_stopped(crew);
}
