/*
 * rank.h - one rank of a job of several: who it is, what it says, how it fails.
 *
 * Whatever a job is for, its ranks find each other in one way. Each has its end of the link (net/link.h); here
 * it gets a name for messages, a log of its own, and one way to fail. Then all of them compare what they are
 * about to do (hello.h).
 *
 *     pace__rank self;
 *
 *     pace__rank_open(&self, link, &cluster, false, log);
 *     status = pace__rank_greet(&self, "seed=1 rows=100", "data set");
 *     if (!status)
 *         status = work(&self);              // says everything to self.log, calls pace__rank_pulse now and then
 *     if (status)
 *         pace__rank_fail(&self, status);    // rank 0 says why, and ends all
 *     pace__rank_close(&self);
 *
 * 1. Rank 0 speaks for the job, and tells one error. Of what another rank says as errors the first is kept, behind
 *    its name, and pace__rank_fail sends it to rank 0, who says it: "worker1 (rank 1, host b), step 7: disk full".
 *    Ranks that are threads of one process share its log and speak for themselves.
 * 2. Warnings of other ranks pass once `warns` is set: until then all ranks look at the same things, and one of
 *    them is enough to tell. What else they say is dropped.
 * 3. Once a step is set, errors name it. Those of rank 0 then get its name, too, unless they have one already.
 * 4. Any thread may write to the log; all else is for the thread that owns the link.
 */
#ifndef RANKS_RANK_H
#define RANKS_RANK_H

#include "launch/cluster.h"
#include "net/link.h"
#include "threads/background.h"

#include <stdatomic.h>

#define PACE__NO_STEP UINT64_MAX

typedef struct pace__rank {
    pace__link *link;
    int number;
    pace__cluster cluster;
    char role[PACE__ROLE_TEXT], host[PACE__HOST_TEXT];
    char (*hosts)[PACE__HOST_TEXT]; /* of all ranks, once they have greeted each other; NULL until then */
    const pace_log *log;            /* for all that this rank says */
    pace_log caller_log; /* what was given to it, which hears one error: whatever says more ends there */
    bool warns;          /* see 2 */

    /* Private. */
    const pace_log *given_log, *outer_log;
    pace_log own_log, link_log;
    bool speaks, failed;
    uint64_t step;
    atomic_bool kept;
    atomic_bool told; /* an error, to whoever gave the log: the first is the last */
    char reason[PACE__LINK_REASON_MAX];
    pace_status (*look)(void *user);
    void *look_user;
    pace__background *background; /* aside.h; NULL: nothing was done there yet */
    double aside_max_s;
} pace__rank;

/* Takes over the link. `speaks`: the ranks are threads of one process. It must not move until it is closed. */
void pace__rank_open(pace__rank *self, pace__link *link, const pace__cluster *cluster, bool speaks,
                     const pace_log *log);
/* Closes the link. A zeroed rank is allowed. */
void pace__rank_close(pace__rank *self);

/* What else may end the job, a request to stop say: asked in every wait of the link, and in every pulse. */
void pace__rank_watch(pace__rank *self, pace_status (*look)(void *user), void *user);
/* To be called often by whoever works for long: signs of life, failures of others, and what is watched. Its
 * argument is the rank. */
pace_status pace__rank_pulse(void *self);

/* Where what it says goes from now on, and from there to caller_log; NULL: straight there, as at first. */
void pace__rank_set_log(pace__rank *self, const pace_log *log);

/* Which step messages name from now on; PACE__NO_STEP: none. */
void pace__rank_set_step(pace__rank *self, uint64_t step);

/* Tells the others that this rank has failed, once: before anything that messages may still use is released.
 * Over MPI it does not return. */
void pace__rank_fail(pace__rank *self, pace_status status);

/* How messages call a rank: "ps0 (rank 4, host b)"; without a host that is not known yet. */
void pace__rank_set_name(pace__rank *self, int rank, const char *host);

#endif
