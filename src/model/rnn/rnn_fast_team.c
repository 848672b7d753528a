/* The threads of a fast network, and how they share the tasks of a phase. */
#include "base/clock.h"
#include "math/gemm.h"
#include "model/rnn/rnn_fast.h"
#include "threads/thread.h"

#include <stdlib.h>
#include <string.h>

/* How often the caller gets a chance to do something else. */
#define POKE_NS 300000

typedef struct member {
    pace__rnn_fast *self;
    int thread;
} member;

static void *run_member(void *arg)
{
    member me = *(member *)arg;
    pace__rnn_fast *self = me.self;
    uint64_t seen = 0;

    free(arg);
    pace__gemm_alone();
    pthread_mutex_lock(&self->lock);
    for (;;) {
        while (self->turn == seen && !self->leave)
            pthread_cond_wait(&self->begin, &self->lock);
        if (self->leave)
            break;
        seen = self->turn;
        pthread_mutex_unlock(&self->lock);
        pace__rnn_work(self, me.thread);
        pthread_mutex_lock(&self->lock);
        if (--self->working == 0)
            pthread_cond_signal(&self->end);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

pace_status pace__rnn_team_start(pace__rnn_fast *self)
{
    for (self->started = 1; self->started < self->threads; self->started++) {
        member *next = malloc(sizeof *next);

        if (!next)
            return pace_fail(self->log, PACE_FAILED, "out of memory");
        *next = (member){self, self->started};
        int error = pthread_create(&self->handles[self->started], NULL, run_member, next);

        if (error) {
            free(next);
            return pace_fail(self->log, PACE_FAILED, "cannot start %d threads: %s", self->threads,
                             strerror(error));
        }
    }
    return PACE_OK;
}

void pace__rnn_team_stop(pace__rnn_fast *self)
{
    pthread_mutex_lock(&self->lock);
    self->leave = true;
    pthread_cond_broadcast(&self->begin);
    pthread_mutex_unlock(&self->lock);
    for (int thread = 1; thread < self->started; thread++)
        pthread_join(self->handles[thread], NULL);
}

void pace__rnn_team_run(pace__rnn_fast *self)
{
    for (int phase = 0; phase < PACE__RNN_PHASES; phase++) {
        atomic_store(&self->next[phase], 0);
        atomic_store(&self->done[phase], 0);
    }
    atomic_store(&self->stop, false);
    pthread_mutex_lock(&self->lock);
    self->turn++;
    self->working = self->threads - 1;
    pthread_cond_broadcast(&self->begin);
    pthread_mutex_unlock(&self->lock);
    pace__gemm_alone();
    pace__rnn_work(self, 0);
    pthread_mutex_lock(&self->lock);
    while (self->working > 0)
        pthread_cond_wait(&self->end, &self->lock);
    pthread_mutex_unlock(&self->lock);
}

/* --- phases --- */

static void tell(pace__rnn_fast *self)
{
    self->status = self->batch->ready(self->batch->user, self->ready_first);
    self->ready_time_ns = pace__now_ns();
    if (self->status)
        atomic_store(&self->stop, true);
}

bool pace__rnn_poke(pace__rnn_fast *self, int thread)
{
    if (thread == 0 && self->batch->ready && self->training && !self->status &&
        pace__now_ns() - self->ready_time_ns > POKE_NS)
        tell(self);
    return atomic_load_explicit(&self->stop, memory_order_relaxed);
}

void pace__rnn_ready(pace__rnn_fast *self, size_t first)
{
    self->ready_first = first;
    if (self->batch->ready && !self->status)
        tell(self);
}

void pace__rnn_phase(pace__rnn_fast *self, int thread, int phase, unsigned tasks,
                     void (*task)(pace__rnn_fast *self, int thread, unsigned index))
{
    unsigned index, turns = 0;

    while ((index = atomic_fetch_add(&self->next[phase], 1)) < tasks) {
        if (!pace__rnn_poke(self, thread))
            task(self, thread, index);
        atomic_fetch_add(&self->done[phase], 1);
    }
    while (atomic_load(&self->done[phase]) < tasks) {
        pace__rnn_poke(self, thread);
        pace__back_off(&turns);
    }
}
