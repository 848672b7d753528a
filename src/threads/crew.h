/*
 * crew.h - threads that stay, and share out the tasks of one phase after the other.
 *
 *     static void work(void *arg, int thread)                  // runs on every thread
 *     {
 *         network *self = arg;
 *
 *         if (!pace__crew_phase(self->crew, thread, layers, pack_task) ||
 *             !pace__crew_phase(self->crew, thread, chunks, chunk_task))
 *             return;
 *         if (thread == 0)
 *             say_that_all_chunks_are_done(self);
 *     }
 *
 *     pace__crew_create(threads, 2, self, log, &self->crew);   // two phases at most
 *     pace__crew_run(self->crew, work, NULL);
 *
 * Thread 0 is the caller of pace__crew_run; the others sleep between runs. In a run every thread calls
 * pace__crew_phase for the same phases, with the same number of tasks, in the same order.
 *
 * 1. A phase begins when thread 0 comes to it, which it does when the phase before is over. All tasks of a
 * phase see what was done before it: by tasks of the phases before, and by thread 0 in between.
 * 2. Only on thread 0 a phase is over when pace__crew_phase returns. Elsewhere it means that no task is left
 * to begin; what tasks have written is there for other threads from the next phase on.
 * 3. Which thread does which task is left to chance; tasks begin in the order of their numbers. Results must
 * not depend on it.
 * 4. Someone can be given a chance to do something else meanwhile: `poke` of pace__crew_run, called on thread
 * 0 every PACE__CREW_POKE_NS or a little later, behind tasks, while it waits for others, and where a task
 * calls pace__crew_poke.
 * 5. Whoever calls pace__crew_stop ends the run: tasks that have not begun are not done, and phases return
 * false on every thread. Long tasks ask pace__crew_poke whether to go on.
 */
#ifndef THREADS_CREW_H
#define THREADS_CREW_H

#include <paceline/log.h>
#include <stdbool.h>

#define PACE__CREW_POKE_NS 300000

typedef struct pace__crew pace__crew;

/* `arg` is what work, tasks and poke are called with. A run has at most phases_max phases. */
pace_status pace__crew_create(int threads, unsigned phases_max, void *arg, const pace_log *log,
                              pace__crew **crew);
void pace__crew_free(pace__crew *crew); /* NULL is allowed */

/* Calls work(arg, thread) on every thread, and returns when all have returned. NULL: nobody is poked. */
void pace__crew_run(pace__crew *crew, void (*work)(void *arg, int thread), void (*poke)(void *arg));

/* Runs tasks 0 .. tasks - 1 together with the other threads. False: the run is being stopped. */
bool pace__crew_phase(pace__crew *crew, int thread, unsigned tasks,
                      void (*task)(void *arg, int thread, unsigned index));

/* In a task that takes long, on any thread: cheap, to be called often. True: the run is being stopped. */
bool pace__crew_poke(pace__crew *crew, int thread);

void pace__crew_stop(pace__crew *crew);
bool pace__crew_stopped(const pace__crew *crew);

#endif
