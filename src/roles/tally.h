/*
 * tally.h - the chief's tally: what all workers have done, as far as it has heard, and what is due for it.
 *
 *     status = pace__tally_keep(&tally, &answer);       // after every answer
 *     status = pace__tally_at_gate(&tally, step);       // async: a clean state behind `step`
 *     status = pace__tally_close(&tally, client);       // async: behind the last step
 *
 * In synchronous modes an answer is a clean state, and is reported and acted on (job/boundary.h) at once. In
 * asynchronous ones, and with backup workers, since a step can be applied without the chief, it is only reported: for a clean state the chief asks for a gate (ps/tickets.h).
 */
#ifndef ROLES_TALLY_H
#define ROLES_TALLY_H

#include "roles/process.h"

typedef struct pace__tally {
    pace__boundary *boundary; /* NULL: this worker is not the chief */
    /* private */
    pace__process *process;
    pace__asker *asker; /* the worker's */
    uint64_t rows;      /* booked so far, and their loss */
    double loss;
    uint64_t reported_step;
    bool gate_asked; /* a clean state is wanted: to stop, or to save */
} pace__tally;

void pace__tally_open(pace__tally *tally, pace__process *process, pace__boundary *boundary,
                      pace__asker *asker);
pace_status pace__tally_keep(pace__tally *tally, const pace__answer *answer);
/* Without an answer, which who is spare may not get for long: asks for a gate, if a clean state is wanted. */
pace_status pace__tally_look(pace__tally *tally);
/* Backups: waits until all shards have reached the step, and keeps what they say. Nothing may be pending. */
pace_status pace__tally_catch_up(pace__tally *tally, pace__client *client, uint64_t step);
pace_status pace__tally_at_gate(pace__tally *tally, uint64_t step);
pace_status pace__tally_close(pace__tally *tally, pace__client *client);

#endif
