/*
 * thread.h - a team of threads for one parallel stretch, and polite waiting.
 */
#ifndef THREADS_THREAD_H
#define THREADS_THREAD_H

#include "base/machine.h"

#include <paceline/log.h>
#include <sched.h>
#include <time.h>

#define PACE_THREADS_MAX 256

/* The cores that this process may use. */
int pace__cores(void);

/*
 * Calls work(arg, 0) ... work(arg, threads - 1), each on a thread of its own (the last on the caller's), and
 * waits for all. Returns the status of the lowest-numbered call that did not return PACE_OK.
 */
pace_status pace__team(int threads, pace_status (*work)(void *arg, int thread), void *arg,
                       const pace_log *log);

/*
 * Moves the calling thread, number `thread` of a team, to a core of its own, if there are enough, without
 * tying it to it: threads that go in step lose milliseconds when two of them begin on the same core. `before`: teams
 * of as many threads that other processes may have on this machine, and which do the same.
 */
void pace__spread(int thread, int threads, int before);

/*
 * One turn of a wait loop: first pauses (tens of microseconds in all), then lets others run (about a
 * millisecond), then sleeps 50 us at a time, so that nobody spins on an oversubscribed machine.
 */
static inline void pace__back_off(unsigned *turns)
{
    unsigned turn = (*turns)++;

    if (turn < 1000) {
        pace__pause();
    } else if (turn < 2000) {
        sched_yield();
    } else {
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
}

#endif
