/*
 * tickets.h - which rows come next: the one counter of the asynchronous modes. A pure state machine.
 *
 * Workers take ranges of ceil(batch / workers) rows, in order, none across the end of a step, and report each
 * range back once every shard has applied it. Three things hold ranges back:
 * 1. Staleness N (ps-ssp): rows of step t are handed out only when all rows of steps < t - N are reported.
 * 2. A gate: a step behind which the chief has something to do on a clean state (a checkpoint, say). Rows
 *    behind it wait until everything before it is reported and the chief, who is then told so, has passed it.
 * 3. The end. The chief hears of it when every row is reported.
 */
#ifndef PS_TICKETS_H
#define PS_TICKETS_H

#include "ps/intervals.h"
#include "ps/steps.h"

#define PACE__STALENESS_UNBOUNDED UINT64_MAX

typedef enum pace__ticket_kind {
    PACE__TICKET_NONE, /* nothing to be had now: ask again when something was reported */
    PACE__TICKET_ROWS,
    PACE__TICKET_GATE, /* for the chief: the state is that after step `step` */
    PACE__TICKET_END,
} pace__ticket_kind;

typedef struct pace__ticket {
    uint64_t kind; /* pace__ticket_kind; eight bytes each: tickets travel */
    uint64_t first, rows;
    uint64_t step; /* of the rows; of a gate, the steps before it */
} pace__ticket;

typedef struct pace__tickets {
    pace__steps steps;
    uint64_t share;     /* rows in a range */
    uint64_t next, end; /* rows handed out, rows of the whole job */
    uint64_t staleness;
    uint64_t gate_every[2]; /* steps; 0: none */
    uint64_t gate;          /* its place; `end` if there is none before */
    bool passed_end;        /* the chief has ended the job */
    pace__intervals done;
} pace__tickets;

void pace__tickets_init(pace__tickets *tickets, const pace__steps *steps, unsigned workers,
                        uint64_t first_step, uint64_t last_step, uint64_t staleness,
                        const uint64_t gate_every[2]);

/* Rows that a worker reports; false: they were reported before, or the window is full: a bug. */
bool pace__tickets_done(pace__tickets *tickets, uint64_t first, uint64_t rows);

pace__ticket pace__tickets_take(pace__tickets *tickets, bool chief);

/* A gate behind the step that is being handed out, as soon as can be: the chief was asked to stop. */
void pace__tickets_gate_soon(pace__tickets *tickets);

/* The chief has passed the gate it stood at; `ended`: nobody goes on. */
void pace__tickets_pass(pace__tickets *tickets, bool ended);

#endif
