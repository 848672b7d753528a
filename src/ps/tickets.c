#include "ps/tickets.h"

/* The first gate behind `place`, or the end. */
static uint64_t gate_behind(const pace__tickets *tickets, uint64_t place)
{
    uint64_t step = pace__steps_of(&tickets->steps, place), gate = tickets->end;

    for (int i = 0; i < 2; i++) {
        uint64_t every = tickets->gate_every[i];
        uint64_t at = every ? pace__steps_rows_before(&tickets->steps, (step / every + 1) * every) : gate;

        gate = at < gate ? at : gate;
    }
    return gate;
}

void pace__tickets_init(pace__tickets *tickets, const pace__steps *steps, unsigned workers,
                        uint64_t first_step, uint64_t last_step, uint64_t staleness,
                        const uint64_t gate_every[2])
{
    *tickets = (pace__tickets){.steps = *steps,
                               .share = (steps->batch + workers - 1) / workers,
                               .next = pace__steps_rows_before(steps, first_step),
                               .end = pace__steps_rows_before(steps, last_step),
                               .staleness = staleness,
                               .gate_every = {gate_every[0], gate_every[1]}};
    tickets->gate = gate_behind(tickets, tickets->next);
    pace__intervals_init(&tickets->done, tickets->next);
}

bool pace__tickets_done(pace__tickets *tickets, uint64_t first, uint64_t rows)
{
    return rows <= tickets->next && first <= tickets->next - rows &&
           pace__intervals_add(&tickets->done, first, first + rows) == PACE__INTERVAL_NEW;
}

/* False: the rows of this step have to wait for those of earlier ones. */
static bool is_fresh_enough(const pace__tickets *tickets, uint64_t step)
{
    if (tickets->staleness == PACE__STALENESS_UNBOUNDED || step <= tickets->staleness)
        return true;
    return tickets->done.low >= pace__steps_rows_before(&tickets->steps, step - tickets->staleness);
}

pace__ticket pace__tickets_take(pace__tickets *tickets, bool chief)
{
    uint64_t step = pace__steps_of(&tickets->steps, tickets->next);
    uint64_t step_end = pace__steps_rows_before(&tickets->steps, step + 1);
    pace__ticket ticket = {PACE__TICKET_NONE, tickets->next, 0, step};

    if (tickets->passed_end) {
        ticket.kind = PACE__TICKET_END;
    } else if (tickets->next == tickets->end) { /* the chief ends last: nothing is under way any more */
        ticket.kind = !chief || tickets->done.low == tickets->end ? PACE__TICKET_END : PACE__TICKET_NONE;
    } else if (tickets->next == tickets->gate) {
        ticket.kind = chief && tickets->done.low == tickets->gate ? PACE__TICKET_GATE : PACE__TICKET_NONE;
    } else if (is_fresh_enough(tickets, step)) {
        ticket.kind = PACE__TICKET_ROWS;
        ticket.rows = step_end - tickets->next < tickets->share ? step_end - tickets->next : tickets->share;
        tickets->next += ticket.rows;
    }
    return ticket;
}

void pace__tickets_gate_soon(pace__tickets *tickets)
{
    uint64_t step = pace__steps_of(&tickets->steps, tickets->next);
    uint64_t here = pace__steps_rows_before(&tickets->steps, step);
    uint64_t gate = here == tickets->next ? here : pace__steps_rows_before(&tickets->steps, step + 1);

    if (gate < tickets->gate)
        tickets->gate = gate;
}

void pace__tickets_pass(pace__tickets *tickets, bool ended)
{
    tickets->gate = gate_behind(tickets, tickets->next);
    tickets->passed_end = ended;
}
