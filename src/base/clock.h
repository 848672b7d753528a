/*
 * clock.h - monotonic time: to measure with, and as a clock that is passed to those who decide by it.
 *
 *     took_s = pace__seconds_since(start_ns);                       // how long something took
 *     if (pace__clock_seconds_since(&job->clock, last_ns) >= 60)    // is it time to do something?
 *
 * A zeroed clock is the real one. Another one is moved by whoever made it: a test, a simulator.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t pace__now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline double pace__seconds_since(uint64_t start_ns)
{
    return (double)(pace__now_ns() - start_ns) * 1e-9;
}

/* Processor time of the calling thread. */
static inline uint64_t pace__busy_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

typedef struct pace__clock {
    uint64_t (*now_ns)(void *user); /* never goes back; NULL: pace__now_ns */
    void *user;
} pace__clock;

static inline uint64_t pace__clock_now_ns(const pace__clock *clock)
{
    return clock->now_ns ? clock->now_ns(clock->user) : pace__now_ns();
}

static inline double pace__clock_seconds_since(const pace__clock *clock, uint64_t start_ns)
{
    return (double)(pace__clock_now_ns(clock) - start_ns) * 1e-9;
}

#endif
