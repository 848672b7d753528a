/*
 * slices.h - who computes which slice of a synchronous step, where there are more workers than slices: --backup-workers.
 * A pure state machine.
 *
 * A step is cut into as many slices as there are workers without backups. Whoever has brought the first result of a slice
 * has it in the next step, too: so where nobody is slow, nobody asks, and the others are *spare*. A spare worker asks,
 * and is given a slice that is late: one that is missing long after half of them were in. The first result counts, and
 * with it the slice; whoever comes too late is spare from then on.
 *
 *     if (pace__slices_put(&slices, worker, step, slice, now_ns)) ...          // the first result of that slice
 *     if (slices.in_count == slices.count) ... pace__slices_next(&slices, now_ns);      // behind the update
 *     ticket = pace__slices_take(&slices, worker, now_ns);                     // somebody spare asks
 *
 * Gates are as in tickets.h: steps whose weights nobody but the chief gets until it has acted on the state before them.
 * The last one is the end. Behind it every worker is told, and the chief when all others are: nobody waits for an answer
 * any more then. Who has not asked within the plan's grace has nothing to give that anybody wants: the chief is told to let
 * it go.
 */
#ifndef PS_SLICES_H
#define PS_SLICES_H

#include "ps/tickets.h"

#define PACE__SLICES_GATES 3
/* A slice is late so many times as long after it was handed out as half of a step's slices took; not before MIN, and in
 * the first step, of which nobody knows how long it takes, after FIRST. */
#define PACE__SLICE_PATIENCE          2
#define PACE__SLICE_PATIENCE_MIN_NS   UINT64_C(2000000)
#define PACE__SLICE_PATIENCE_FIRST_NS UINT64_C(1000000000)
/* The usual grace: far longer than a message takes, and nobody minds it at the end of a job. */
#define PACE__SLICES_GRACE_NS UINT64_C(1000000000)

typedef struct pace__slice_state {
    int worker; /* whose result is in; until one is, who was given it last */
    bool in;
    uint64_t handed_ns;
} pace__slice_state;

typedef struct pace__slices_plan {
    int slices, workers;
    uint64_t first_step, end;                /* steps */
    bool gated;                              /* false: gates are somebody else's business */
    uint64_t grace_ns;                       /* at the end; UINT64_MAX: everyone is waited for */
    uint64_t gate_every[PACE__SLICES_GATES]; /* steps; 0: none */
} pace__slices_plan;

typedef struct pace__slices {
    pace__slices_plan plan;
    uint64_t step; /* under way: those before are applied */
    uint64_t gate; /* weights of steps from here on have to wait */
    bool over;     /* the chief has passed the end, or has ended the job */
    uint64_t over_ns;
    bool *told; /* (workers) they have heard so, or are let go */
    int in_count;
    uint64_t begun_ns, half_ns; /* the step; how long it took until half of a step's slices were in, lately */
    pace__slice_state *at;      /* (slices) */
} pace__slices;

bool pace__slices_init(pace__slices *slices, const pace__slices_plan *plan,
                       uint64_t now_ns);         /* false: no memory */
void pace__slices_release(pace__slices *slices); /* a zeroed one is allowed */

/* A result of a step that is not over: is it the first of its slice? One of a step before is not. */
bool pace__slices_put(pace__slices *slices, int worker, uint64_t step, int slice, uint64_t now_ns);
/* All are in, and applied. */
void pace__slices_next(pace__slices *slices, uint64_t now_ns);

typedef enum pace__slice_look {
    PACE__SLICE_WAIT, /* for steps before, or the chief */
    PACE__SLICE_NOW,
    PACE__SLICE_PAST, /* nobody wants a result of that step any more */
} pace__slice_look;

/* May a worker have the weights of a step? */
pace__slice_look pace__slices_look(const pace__slices *slices, int worker, uint64_t step);

/* For a worker that has nothing to do: a slice (`first`, of `step`), for the chief a gate, or who is let go, an end, or
 * nothing yet: time will tell. */
pace__ticket pace__slices_take(pace__slices *slices, int worker, uint64_t now_ns);

/* A gate behind the step under way: the chief has to stop, or to save. */
void pace__slices_gate_soon(pace__slices *slices);
/* The chief has acted at the gate; `ended`: nobody goes on. False: it does not stand at one. */
bool pace__slices_pass(pace__slices *slices, bool ended, uint64_t now_ns);

#endif
