/*
 * A slice of the step under way goes
 *
 *     handed  -> handed   take: it is late, and somebody else tries, too
 *     handed  -> in       put: the first result, whoever brings it
 *     in      -> handed   next: the following step's, of the same worker
 *
 * 1. gate > step, or step == gate: then nobody but the chief has weights of the step, and no slice of it is handed out
 *    or brought. A gate is passed from there only.
 * 2. A worker that has brought a slice asks for nothing until the step is over; so no two slices that are in have the
 *    same worker.
 * 3. `over` is never taken back; each worker is told once, or let go, and told if it comes back after all. The chief comes last, and nobody tells it.
 */
#include "ps/slices.h"

#include <assert.h>
#include <stdlib.h>

static uint64_t gate_behind(const pace__slices *slices)
{
    const pace__slices_plan *plan = &slices->plan;
    uint64_t gate = plan->end;

    if (!plan->gated)
        return UINT64_MAX;
    for (int i = 0; i < PACE__SLICES_GATES; i++) {
        uint64_t every = plan->gate_every[i], at = every ? (slices->step / every + 1) * every : gate;

        gate = at < gate ? at : gate;
    }
    return gate;
}

/* Everyone who has a slice has it from now on. */
static void begin(pace__slices *slices, uint64_t now_ns)
{
    slices->begun_ns = now_ns;
    for (int i = 0; i < slices->plan.slices; i++)
        slices->at[i].handed_ns = now_ns;
}

bool pace__slices_init(pace__slices *slices, const pace__slices_plan *plan, uint64_t now_ns)
{
    assert(plan->slices >= 1 && plan->slices < plan->workers && plan->first_step <= plan->end);
    *slices = (pace__slices){.plan = *plan, .step = plan->first_step};
    slices->gate = gate_behind(slices);
    slices->at = calloc((size_t)plan->slices, sizeof *slices->at);
    slices->told = calloc((size_t)plan->workers, sizeof *slices->told);
    if (!slices->at || !slices->told) {
        pace__slices_release(slices);
        return false;
    }
    for (int i = 0; i < plan->slices; i++)
        slices->at[i].worker = i;
    begin(slices, now_ns);
    return true;
}

void pace__slices_release(pace__slices *slices)
{
    free(slices->at);
    free(slices->told);
    slices->at = NULL;
    slices->told = NULL;
}

bool pace__slices_put(pace__slices *slices, int worker, uint64_t step, int slice, uint64_t now_ns)
{
    assert(slice >= 0 && slice < slices->plan.slices && step <= slices->step);
    pace__slice_state *at = &slices->at[slice];

    if (step < slices->step || at->in)
        return false;
    assert(slices->step < slices->gate); /* invariant 1 */
    *at = (pace__slice_state){.worker = worker, .in = true, .handed_ns = at->handed_ns};
    slices->in_count++;
    if (slices->in_count == (slices->plan.slices + 1) / 2)
        slices->half_ns = now_ns - slices->begun_ns;
    return true;
}

void pace__slices_next(pace__slices *slices, uint64_t now_ns)
{
    assert(slices->in_count == slices->plan.slices && slices->step < slices->gate);
    slices->step++;
    slices->in_count = 0;
    for (int i = 0; i < slices->plan.slices; i++)
        slices->at[i].in = false;
    begin(slices, now_ns);
}

pace__slice_look pace__slices_look(const pace__slices *slices, int worker, uint64_t step)
{
    if (step < slices->step || (slices->over && worker != 0))
        return PACE__SLICE_PAST;
    return step > slices->step || (step == slices->gate && worker != 0) ? PACE__SLICE_WAIT : PACE__SLICE_NOW;
}

/* --- handing out --- */

static uint64_t patience_of(const pace__slices *slices)
{
    uint64_t patience_ns = PACE__SLICE_PATIENCE * slices->half_ns;

    if (slices->half_ns == 0)
        return PACE__SLICE_PATIENCE_FIRST_NS;
    return patience_ns > PACE__SLICE_PATIENCE_MIN_NS ? patience_ns : PACE__SLICE_PATIENCE_MIN_NS;
}

/* The one that is missing and was handed out longest ago, if that is long; or -1. */
static int find_late(const pace__slices *slices, uint64_t now_ns)
{
    const pace__slice_state *at = slices->at;
    int found = -1;

    for (int i = 0; i < slices->plan.slices; i++) {
        if (!at[i].in && (found < 0 || at[i].handed_ns < at[found].handed_ns))
            found = i;
    }
    return found >= 0 && now_ns - at[found].handed_ns >= patience_of(slices) ? found : -1;
}

/* Invariant 3: the chief ends behind all others, of whom one is let go at a time. */
static void take_end(pace__slices *slices, int worker, uint64_t now_ns, pace__ticket *ticket)
{
    int missing = 1;

    slices->told[worker] = true;
    while (missing < slices->plan.workers && slices->told[missing])
        missing++;
    if (worker > 0 || missing == slices->plan.workers) {
        ticket->kind = PACE__TICKET_END;
    } else if (now_ns - slices->over_ns >= slices->plan.grace_ns) {
        slices->told[missing] = true;
        ticket->kind = PACE__TICKET_LET_GO;
        ticket->first = (uint64_t)missing;
    }
}

pace__ticket pace__slices_take(pace__slices *slices, int worker, uint64_t now_ns)
{
    bool chief = worker == 0;
    pace__ticket ticket = {.kind = PACE__TICKET_NONE, .step = slices->step};

    if (slices->over) {
        take_end(slices, worker, now_ns, &ticket);
    } else if (slices->step == slices->gate) {
        ticket.kind = chief ? PACE__TICKET_GATE : PACE__TICKET_NONE;
    } else {
        int slice = find_late(slices, now_ns);

        if (slice < 0)
            return ticket;
        slices->at[slice].worker = worker;
        slices->at[slice].handed_ns = now_ns;
        ticket.kind = PACE__TICKET_SLICE;
        ticket.first = (uint64_t)slice;
    }
    return ticket;
}

/* --- gates --- */

void pace__slices_gate_soon(pace__slices *slices)
{
    if (slices->step < slices->gate)
        slices->gate = slices->step + 1;
}

bool pace__slices_pass(pace__slices *slices, bool ended, uint64_t now_ns)
{
    if (slices->over || slices->step != slices->gate)
        return false;
    slices->over = ended || slices->step == slices->plan.end;
    slices->over_ns = now_ns;
    if (slices->over)
        return true;
    slices->gate = gate_behind(slices);
    begin(slices, now_ns);
    return true;
}
