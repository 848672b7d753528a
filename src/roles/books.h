/*
 * books.h - the chief's books: what all workers have done, as far as it has heard, and what is due for it.
 *
 *     status = pace__books_keep(&books, &answer);       // after every answer
 *     status = pace__books_at_gate(&books, step);       // async: a clean state behind `step`
 *     status = pace__books_close(&books, client);       // async: behind the last step
 *
 * In synchronous modes an answer is a clean state, and is reported and acted on (job/boundary.h) at once. In
 * asynchronous ones it is only reported: for a clean state the chief asks for a gate (ps/tickets.h).
 */
#ifndef ROLES_BOOKS_H
#define ROLES_BOOKS_H

#include "roles/process.h"

typedef struct pace__books {
    pace__boundary *boundary; /* NULL: this worker is not the chief */
    /* private */
    pace__process *process;
    pace__asker *asker; /* the worker's */
    uint64_t rows;      /* booked so far, and their loss */
    double loss;
    uint64_t reported_step;
    bool gate_asked; /* a clean state is wanted: to stop, or to save */
} pace__books;

void pace__books_open(pace__books *books, pace__process *process, pace__boundary *boundary,
                      pace__asker *asker);
pace_status pace__books_keep(pace__books *books, const pace__answer *answer);
pace_status pace__books_at_gate(pace__books *books, uint64_t step);
pace_status pace__books_close(pace__books *books, pace__client *client);

#endif
