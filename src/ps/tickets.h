/*
 * tickets.h - which rows come next: the one counter of the asynchronous modes. A pure state machine.
 *
 * Workers take ranges of ceil(batch / workers) rows, in order, none across the end of a step, and report each
 * range back once every shard has applied it. Three things hold ranges back:
 * 1. Staleness N (ps-ssp): rows of step t are handed out only when all rows of steps < t - N are reported.
 * 2. A gate: a step behind which the chief has something to do on a clean state (a checkpoint, say). Rows
 *    behind it wait until everything before it is reported and the chief, who is then told so, has passed it.
 * 3. The end. The chief hears of it when every row is reported.
 *
 * The counter knows who has which ranges. Those of a worker that was lost are handed out again, each as it
 * was: a shard that has applied one already knows it by its rows.
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
    PACE__TICKET_SLICE,  /* slices.h: slice `first` of that step */
    PACE__TICKET_LET_GO, /* slices.h, for the chief: worker `first` is not waited for any more */
} pace__ticket_kind;

typedef struct pace__ticket {
    uint64_t kind; /* pace__ticket_kind; eight bytes each: tickets travel */
    uint64_t first, rows;
    uint64_t step; /* of the rows; of a gate, the steps before it */
} pace__ticket;

/* A range that was handed out and is not yet reported. */
typedef struct pace__handed {
    uint64_t first, rows;
    unsigned worker;
} pace__handed;

typedef struct pace__tickets {
    pace__steps steps;
    uint64_t range_rows; /* that a worker takes at a time */
    uint64_t next, end;  /* rows handed out, rows of the whole job */
    uint64_t staleness;
    uint64_t gate_every[2]; /* steps; 0: none */
    uint64_t gate;          /* its place; `end` if there is none before */
    bool passed_end;        /* the chief has ended the job */
    size_t handed_count;
    pace__handed handed[PACE__INTERVALS_MAX];
    size_t again_count; /* of lost workers */
    pace__handed again[PACE__INTERVALS_MAX];
    pace__intervals done;
} pace__tickets;

void pace__tickets_init(pace__tickets *tickets, const pace__steps *steps, unsigned workers,
                        uint64_t first_step, uint64_t last_step, uint64_t staleness,
                        const uint64_t gate_every[2]);

/* Can a worker have been given these rows, or this end? For those who get tickets from elsewhere. */
bool pace__ticket_fits(const pace__ticket *ticket, const pace__steps *steps, uint64_t last_step,
                       uint64_t rows_max);

/* A range that a worker reports; false: it does not have it, or the window is full: a bug. */
bool pace__tickets_done(pace__tickets *tickets, unsigned worker, uint64_t first, uint64_t rows);

/* Worker 0 is the chief. No more than PACE__INTERVALS_MAX ranges may be out: the caller has looked. */
pace__ticket pace__tickets_take(pace__tickets *tickets, unsigned worker);

/* What the worker has will be handed out again; returns the rows. */
uint64_t pace__tickets_lose(pace__tickets *tickets, unsigned worker);

/* A gate behind the step that is being handed out, as soon as can be: the chief has to stop, or to save. */
void pace__tickets_gate_soon(pace__tickets *tickets);

/* The chief has passed the gate it stood at; `ended`: nobody goes on. */
void pace__tickets_pass(pace__tickets *tickets, bool ended);

#endif
