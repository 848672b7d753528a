/*
 * crew.h - threads that stay, and share out the tasks of one phase after the other.
 *
 *     work(arg, thread):
 *         while (pace__crew_phase(crew, thread, tasks, task, arg))  -- all threads run the phase's tasks
 *             ...
 *
 * Thread 0 is the caller of pace__crew_run; the others sleep between runs. In a run every thread calls
 * pace__crew_phase for the same phases in the same order. A phase begins when thread 0 comes to it: what it
 * has done since the phase before, the others see. Which thread does which task is left to chance; results
 * must not depend on it.
 *
 * `poke` is called on thread 0 between tasks and while it waits; it may end the run (pace__crew_stop): then
 * tasks that have not begun are not done, and phases return false.
 */
#ifndef THREADS_CREW_H
#define THREADS_CREW_H

#include <paceline/log.h>
#include <stdbool.h>

typedef struct pace__crew pace__crew;

pace_status pace__crew_create(int threads, unsigned phases_max, void (*poke)(void *arg), void *arg,
                              const pace_log *log, pace__crew **crew);
void pace__crew_free(pace__crew *crew); /* NULL is allowed */

/* Calls work(arg, thread) on every thread, and returns when all have returned. */
void pace__crew_run(pace__crew *crew, void (*work)(void *arg, int thread));

/* False: the run is being stopped. Only on thread 0 the phase is over when it returns. */
bool pace__crew_phase(pace__crew *crew, int thread, unsigned tasks,
                      void (*task)(void *arg, int thread, unsigned index));
void pace__crew_stop(pace__crew *crew);
bool pace__crew_stopped(const pace__crew *crew);

#endif
