/*
 *     idle    -> working   start: there is a task
 *     working -> idle      the task is over
 *     idle    -> ended     free, which waits for the task that is under way
 *
 * 1. The task stays from start to its end, and only its owner's thread sets it, only the other one clears it:
 *    whoever finds none, under the lock, sees all that the last one has written.
 * 2. Nothing is started once it is ending.
 */
#include "threads/background.h"

#include "base/clock.h"
#include "base/locale.h"
#include "watch/spans.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct pace__background {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* both sides wait for it: a task was given, a task is over */
    /* Under the lock. */
    void (*task)(void *user); /* NULL: idle. Stays until it is over */
    void *user;
    bool ending;
    pace__spans *spans; /* of whoever made it */
};

static void *work(void *arg)
{
    PACE__C_LOCALE();
    pace__background *self = arg;

    pace__spans_join(self->spans, "background", -1);
    pthread_mutex_lock(&self->lock);
    for (;;) {
        while (!self->task && !self->ending)
            pthread_cond_wait(&self->changed, &self->lock);
        if (!self->task)
            break;
        void (*task)(void *user) = self->task;
        void *user = self->user;

        pthread_mutex_unlock(&self->lock);
        task(user);
        pthread_mutex_lock(&self->lock);
        assert(self->task == task); /* invariant 1 */
        self->task = NULL;
        pthread_cond_broadcast(&self->changed);
    }
    pthread_mutex_unlock(&self->lock);
    pace__spans_leave();
    return NULL;
}

static void release(pace__background *self)
{
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

/* Waits are timed by a clock that nobody sets. */
static void init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

pace_status pace__background_create(const pace_log *log, pace__background **background)
{
    pace__background *self = calloc(1, sizeof *self);

    if (!self)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pthread_mutex_init(&self->lock, NULL);
    init_condition(&self->changed);
    self->spans = pace__spans_here();
    int error = pthread_create(&self->thread, NULL, work, self);

    if (error) {
        release(self);
        return pace_fail(log, PACE_FAILED, "cannot start a thread: %s", strerror(error));
    }
    *background = self;
    return PACE_OK;
}

void pace__background_free(pace__background *background)
{
    if (!background)
        return;
    pthread_mutex_lock(&background->lock);
    assert(!background->ending);
    background->ending = true;
    pthread_cond_broadcast(&background->changed);
    pthread_mutex_unlock(&background->lock);
    pthread_join(background->thread, NULL);
    assert(!background->task);
    release(background);
}

void pace__background_start(pace__background *background, void (*task)(void *user), void *user)
{
    assert(task);
    pthread_mutex_lock(&background->lock);
    assert(!background->task && !background->ending);
    background->task = task;
    background->user = user;
    pthread_cond_broadcast(&background->changed);
    pthread_mutex_unlock(&background->lock);
}

bool pace__background_idle(pace__background *background)
{
    pthread_mutex_lock(&background->lock);
    bool idle = !background->task;

    pthread_mutex_unlock(&background->lock);
    return idle;
}

void pace__background_wait(pace__background *background)
{
    pthread_mutex_lock(&background->lock);
    while (background->task)
        pthread_cond_wait(&background->changed, &background->lock);
    pthread_mutex_unlock(&background->lock);
}

bool pace__background_wait_for(pace__background *background, uint64_t most_ns)
{
    uint64_t until_ns = pace__now_ns() + most_ns;
    struct timespec until = {(time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
    int result = 0;

    pthread_mutex_lock(&background->lock);
    while (background->task && result == 0)
        result = pthread_cond_timedwait(&background->changed, &background->lock, &until);
    bool idle = !background->task;

    pthread_mutex_unlock(&background->lock);
    return idle;
}
