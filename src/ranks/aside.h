/*
 * aside.h - work that may block for long, done on another thread while its rank gives signs of life.
 *
 * A disk may take minutes to sync a file, or to read one for the first time, and the thread that waits for it can do
 * nothing else: its rank would be silent, and taken for dead. So whatever a rank has to ask of files goes aside.
 *
 *     status = pace__rank_aside(&rank, "writing model.safetensors", write_model, &writing);
 *
 * 1. Slow is told from hung by who beats. Signs of life are given by the thread that owns the link, in a loop that
 *    looks whether the work is over: if that thread hangs there are none, and the deadline finds it, whatever other
 *    threads do. And nobody beats for work that has no name and no end: each piece has PACE__ASIDE_MAX_S, after which
 *    the rank fails and says what it was at.
 * 2. What takes longer than the deadline is said once: the others wait, and so does whoever watches.
 * 3. The work must not use the link; all else of its rank it has to itself, and what it writes can be read behind it.
 *    It may be called in idle functions, but not in another one's work.
 * 4. In a job of one rank nobody waits, and it is simply done.
 */
#ifndef RANKS_ASIDE_H
#define RANKS_ASIDE_H

#include "ranks/rank.h"

#define PACE__ASIDE_MAX_S 3600.0

typedef pace_status pace__aside_fn(void *user);

/* Its status is the work's. That of the link, if it fails meanwhile, comes again in the next wait. */
pace_status pace__rank_aside(pace__rank *self, const char *what, pace__aside_fn *work, void *user);

/*
 * The same for work that is mostly short and comes often, reading rows say: it goes aside only the first time, and
 * when the last time was slow. *slow, true at first, is kept by the caller.
 */
pace_status pace__rank_aside_if(pace__rank *self, bool *slow, const char *what, pace__aside_fn *work,
                                void *user);

#endif
