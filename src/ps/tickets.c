/*
 * A range of rows goes
 *
 *     not yet  -> handed     take: it is a worker's
 *     handed   -> reported   done: every shard has applied it
 *     handed   -> again      lose: its worker has died
 *     again    -> handed     take: it is another worker's, before any new one
 *
 * and the job from gate to gate, the last of which is the end:
 *
 *     running  -> at a gate  all rows before it are handed out; the chief hears of it when all are reported
 *     at a gate -> running   pass
 *     at a gate -> over      pass, and the chief has ended the job
 *
 * 1. done.low <= next <= gate <= end. Gates stand between steps, and no range crosses one.
 * 2. Rows below next are handed, again or reported, each in one range; rows from next on are in none.
 * 3. While ranges are to be handed out again there are no new ones: handed and again never have more than
 *    PACE__INTERVALS_MAX together.
 */
#include "ps/tickets.h"

#include <assert.h>

/* The first gate behind `place`, or the end. */
static uint64_t gate_behind(const pace__tickets *tickets, uint64_t place)
{
    assert(place <= tickets->end);
    uint64_t step = pace__steps_of(&tickets->steps, place),
             gate = pace__steps_of(&tickets->steps, tickets->end);

    for (int i = 0; i < 2; i++) { /* in steps: behind the end there may be more rows than can be counted */
        uint64_t every = tickets->gate_every[i], at = every ? (step / every + 1) * every : gate;

        gate = at < gate ? at : gate;
    }
    return pace__steps_rows_before(&tickets->steps, gate);
}

/* Invariant 1. */
static bool in_order(const pace__tickets *tickets)
{
    return tickets->done.low <= tickets->next && tickets->next <= tickets->gate &&
           tickets->gate <= tickets->end;
}

bool pace__ticket_fits(const pace__ticket *ticket, const pace__steps *steps, uint64_t last_step,
                       uint64_t rows_max)
{
    if (ticket->kind == PACE__TICKET_END)
        return true;
    if (ticket->kind != PACE__TICKET_ROWS || ticket->step >= last_step || ticket->rows > rows_max)
        return false;
    uint64_t first = pace__steps_rows_before(steps, ticket->step),
             rows = pace__steps_rows_in(steps, ticket->step);

    return ticket->first >= first && ticket->first - first < rows && ticket->rows >= 1 &&
           ticket->rows <= rows - (ticket->first - first);
}

void pace__tickets_init(pace__tickets *tickets, const pace__steps *steps, unsigned workers,
                        uint64_t first_step, uint64_t last_step, uint64_t staleness,
                        const uint64_t gate_every[2])
{
    assert(workers >= 1 && first_step <= last_step);
    tickets->steps = *steps;
    tickets->range_rows = (steps->batch + workers - 1) / workers;
    tickets->next = pace__steps_rows_before(steps, first_step);
    tickets->end = pace__steps_rows_before(steps, last_step);
    tickets->staleness = staleness;
    tickets->gate_every[0] = gate_every[0];
    tickets->gate_every[1] = gate_every[1];
    tickets->passed_end = false;
    tickets->handed_count = tickets->again_count = 0;
    tickets->gate = gate_behind(tickets, tickets->next);
    pace__intervals_init(&tickets->done, tickets->next);
    assert(in_order(tickets) && tickets->range_rows > 0);
}

/* --- who has what --- */

static void hand_out(pace__tickets *tickets, unsigned worker, const pace__ticket *ticket)
{
    assert(ticket->rows > 0 && ticket->first + ticket->rows <= tickets->next);
    assert(tickets->handed_count + tickets->again_count < PACE__INTERVALS_MAX); /* invariant 3 */
    tickets->handed[tickets->handed_count++] = (pace__handed){ticket->first, ticket->rows, worker};
}

static bool take_back(pace__tickets *tickets, unsigned worker, uint64_t first, uint64_t rows)
{
    for (size_t i = 0; i < tickets->handed_count; i++) {
        const pace__handed *range = &tickets->handed[i];

        if (range->first == first && range->rows == rows && range->worker == worker) {
            tickets->handed[i] = tickets->handed[--tickets->handed_count];
            return true;
        }
    }
    return false;
}

bool pace__tickets_done(pace__tickets *tickets, unsigned worker, uint64_t first, uint64_t rows)
{
    return take_back(tickets, worker, first, rows) &&
           pace__intervals_add(&tickets->done, first, first + rows) == PACE__INTERVAL_NEW;
}

uint64_t pace__tickets_lose(pace__tickets *tickets, unsigned worker)
{
    uint64_t rows = 0;

    for (size_t i = tickets->handed_count; i-- > 0;) {
        if (tickets->handed[i].worker != worker)
            continue;
        rows += tickets->handed[i].rows;
        assert(tickets->again_count < PACE__INTERVALS_MAX);
        tickets->again[tickets->again_count++] = tickets->handed[i];
        tickets->handed[i] = tickets->handed[--tickets->handed_count];
    }
    return rows;
}

/* --- handing out --- */

/* False: the rows of this step have to wait for those of earlier ones. */
static bool is_fresh_enough(const pace__tickets *tickets, uint64_t step)
{
    if (tickets->staleness == PACE__STALENESS_UNBOUNDED || step <= tickets->staleness)
        return true;
    return tickets->done.low >= pace__steps_rows_before(&tickets->steps, step - tickets->staleness);
}

static pace__ticket take_again(pace__tickets *tickets)
{
    pace__handed range = tickets->again[--tickets->again_count];

    return (pace__ticket){PACE__TICKET_ROWS, range.first, range.rows,
                          pace__steps_of(&tickets->steps, range.first)};
}

pace__ticket pace__tickets_take(pace__tickets *tickets, unsigned worker)
{
    bool chief = worker == 0;
    uint64_t step = pace__steps_of(&tickets->steps, tickets->next);
    uint64_t step_end = pace__steps_rows_before(&tickets->steps, step + 1);
    pace__ticket ticket = {PACE__TICKET_NONE, tickets->next, 0, step};

    assert(in_order(tickets));
    if (tickets->passed_end) {
        ticket.kind = PACE__TICKET_END;
    } else if (tickets->again_count > 0) { /* invariant 3; and older than all else: nothing holds it back */
        ticket = take_again(tickets);
    } else if (tickets->next == tickets->end) { /* the chief ends last: nothing is under way any more */
        ticket.kind = !chief || tickets->done.low == tickets->end ? PACE__TICKET_END : PACE__TICKET_NONE;
    } else if (tickets->next == tickets->gate) {
        ticket.kind = chief && tickets->done.low == tickets->gate ? PACE__TICKET_GATE : PACE__TICKET_NONE;
    } else if (is_fresh_enough(tickets, step)) {
        ticket.kind = PACE__TICKET_ROWS;
        ticket.rows =
            step_end - tickets->next < tickets->range_rows ? step_end - tickets->next : tickets->range_rows;
        tickets->next += ticket.rows;
    }
    if (ticket.kind == PACE__TICKET_ROWS)
        hand_out(tickets, worker, &ticket);
    return ticket;
}

void pace__tickets_gate_soon(pace__tickets *tickets)
{
    uint64_t step = pace__steps_of(&tickets->steps, tickets->next);
    uint64_t here = pace__steps_rows_before(&tickets->steps, step);
    uint64_t gate = here == tickets->next ? here : pace__steps_rows_before(&tickets->steps, step + 1);

    if (gate < tickets->gate)
        tickets->gate = gate;
    assert(in_order(tickets));
}

void pace__tickets_pass(pace__tickets *tickets, bool ended)
{
    tickets->gate = gate_behind(tickets, tickets->next);
    tickets->passed_end = ended;
    assert(in_order(tickets));
}
