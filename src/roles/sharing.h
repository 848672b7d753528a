/*
 * sharing.h - shares of synchronous steps that follow the speed of the workers (--balance): who measures, who decides,
 * and when everyone goes by it.
 *
 *     if (pace__sharing_knows(&sharing, step))                            // else wait for the chief: sharing_poll
 *         pace__share_slice(..., pace__sharing_at(&sharing, step), ...);   // whose rows are whose
 *     ...
 *     pace__sharing_computed(&sharing, step, rows, seconds);              // every worker, of each step
 *     pace__sharing_act(&sharing, steps_done);                            // the chief, behind each step
 *
 * Every `every` steps is a *point*. Behind the step before point d each worker sends the chief what it has measured since the
 * last one; the chief takes what has come, decides (shares/balance.h), and tells everyone how step d + LAG and all behind it are
 * divided, or that nothing changes.
 *
 * 1. A worker takes a step only when it knows how that is divided; all have heard the same, so all rows of a step are somebody's, once.
 * 2. LAG is such that nobody can have taken step d + LAG before point d: it is taken behind the computing of step d, whose
 *    weights exist only when all have done step d - 1. So the word of the chief is mostly there when it is wanted.
 * 3. What is new is on disk (run/shares.h) before it is told. A job that starts again goes by what is there as far as
 *    that reaches, and decides from then on.
 * 4. Nothing waits for measurements: those that have not come count at the next point.
 * 5. Nobody waits at the end for what it has sent: where training was stopped, the other side may listen no more.
 *
 * With --balance off nothing is told, and all shares are even; the first steps are measured all the same, so that the chief can
 * say what balancing would bring.
 */
#ifndef ROLES_SHARING_H
#define ROLES_SHARING_H

#include "roles/process.h"
#include "shares/balance.h"

typedef struct pace__sharing_word pace__sharing_word;
typedef struct pace__sharing_box pace__sharing_box;

typedef struct pace__sharing {
    /* private */
    pace__process *process;
    bool measures;               /* off: only in the first steps */
    uint64_t every;              /* steps between two points; 0: nothing is decided any more */
    uint64_t known_before;       /* steps whose division is known */
    uint64_t warm_step;          /* the first that is measured */
    pace__divisions *divisions;  /* the chief's are the job's */
    pace__divisions own;         /* of others */
    pace__timing timing, *sent;  /* since the last point; on its way */
    pace__request send, receive; /* others: to and from the chief */
    pace__sharing_word *word;    /* what is received, or told */

    /* The chief's. */
    pace__balance balance;
    pace__sharing_box *boxes; /* (workers) */
    uint32_t *next;           /* (workers) */
    bool slow;                /* the disk, when a line was last written */
    uint64_t recorded_ns;     /* when what steps cost was last recorded */
} pace__sharing;

pace_status pace__sharing_open(pace__sharing *sharing, pace__process *process);
void pace__sharing_close(pace__sharing *sharing); /* a zeroed one is allowed */

bool pace__sharing_knows(const pace__sharing *sharing, uint64_t step);
/* The rows of each worker in a whole step, to be asked for a step that it knows; NULL: even shares. */
const uint32_t *pace__sharing_at(const pace__sharing *sharing, uint64_t step);
/* Others: takes what the chief has told. Steps before `step` are taken, and how they were divided is forgotten. */
pace_status pace__sharing_poll(pace__sharing *sharing, uint64_t step, bool *busy);

/* What a step has cost: rows, of texts as if all had the same length. */
void pace__sharing_computed(pace__sharing *sharing, uint64_t step, double rows, double seconds);
/* The chief: the steps before `step` are done. */
pace_status pace__sharing_act(pace__sharing *sharing, uint64_t step);

#endif
