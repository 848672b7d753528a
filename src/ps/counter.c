/*
 * A customer, as the counter sees it:
 *
 *     content -> waits     it has asked for a ticket
 *     waits   -> content   one was to be had, and is on its way
 *     any     -> lost      its rows are handed out again; it is not heard or served any more
 *
 * 1. A ticket stays where it is until it has left; a customer whose last one has not is served later, and
 *    `behind` says that there is one. Else somebody is served only when something was heard or lost: nothing
 *    but a report, a gate, a pass or a loss makes rows available. Slices become available as time goes by.
 * 2. An asker has at most one ask on its way, and waits for at most one ticket. Between two asks it has room
 *    for PACE__ASK_REPORTS_MAX reports.
 */
#include "ps/counter.h"

#include "base/clock.h"
#include "ps/wire.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

/* --- handing out --- */

typedef struct customer {
    bool waits; /* for a ticket */
    bool lost;
    bool kept; /* the ticket must stay in place: see pace__link_abandon */
    pace__ticket ticket;
    pace__request send;
} customer;

struct pace__counter {
    pace__link *link;
    const pace_log *log;
    pace__tickets tickets;
    pace__slices *slices; /* NULL: tickets are handed out */
    int workers;
    customer *customers;
    bool behind; /* someone's last ticket had not left when the next was due */
    pace__ask ask;
    pace__request receive;
};

static void post_receive(pace__counter *counter)
{
    pace__link_receive(counter->link, PACE__LINK_ANY, PACE__TAG_ASK, &counter->ask, sizeof counter->ask,
                       &counter->receive);
}

static pace_status create(pace__link *link, int workers, const pace_log *log, pace__counter **counter)
{
    pace__counter *created = calloc(1, sizeof *created);
    customer *customers = calloc((size_t)workers, sizeof *customers);

    assert(workers >= 1 && workers <= pace__link_size(link));
    if (!created || !customers) {
        free(created);
        free(customers);
        return pace_fail(log, PACE_FAILED, "out of memory");
    }
    created->link = link;
    created->log = log;
    created->workers = workers;
    created->customers = customers;
    post_receive(created);
    *counter = created;
    return PACE_OK;
}

pace_status pace__counter_create(pace__link *link, int workers, const pace__tickets *tickets,
                                 const pace_log *log, pace__counter **counter)
{
    pace_status status = create(link, workers, log, counter);

    if (!status)
        (*counter)->tickets = *tickets;
    return status;
}

pace_status pace__counter_create_for_slices(pace__link *link, int workers, pace__slices *slices,
                                            const pace_log *log, pace__counter **counter)
{
    pace_status status = create(link, workers, log, counter);

    if (!status)
        (*counter)->slices = slices;
    return status;
}

void pace__counter_free(pace__counter *counter)
{
    if (!counter)
        return;
    pace__link_cancel(counter->link, &counter->receive);
    bool all_left = true;

    for (int worker = 0; worker < counter->workers; worker++) {
        all_left = all_left && !counter->customers[worker].kept;
        pace__link_settle(counter->link, &counter->customers[worker].send);
    }
    if (all_left) /* else a ticket for a lost worker may still be read from there */
        free(counter->customers);
    free(counter);
}

/* The chief, at a gate or on its way to one; false: it is at none. */
static bool hear_chief(pace__counter *counter, uint64_t flags)
{
    bool passes = flags & (PACE__ASK_PASS | PACE__ASK_END), ends = flags & PACE__ASK_END;

    if (counter->slices) {
        if (flags & PACE__ASK_GATE)
            pace__slices_gate_soon(counter->slices);
        return !passes || pace__slices_pass(counter->slices, ends, pace__now_ns());
    }
    if (flags & PACE__ASK_GATE)
        pace__tickets_gate_soon(&counter->tickets);
    if (passes)
        pace__tickets_pass(&counter->tickets, ends);
    return true;
}

static pace_status hear(pace__counter *counter)
{
    const pace__ask *ask = &counter->ask;
    int worker = counter->receive.peer;

    bool leads = ask->flags & (PACE__ASK_GATE | PACE__ASK_PASS | PACE__ASK_END);

    if (counter->receive.bytes != sizeof *ask || worker >= counter->workers ||
        ask->reports > (counter->slices ? 0 : PACE__ASK_REPORTS_MAX) || (leads && worker != 0))
        return pace_fail(counter->log, PACE_BUG, "%s asks for rows in a way that cannot be",
                         pace__link_name(counter->link, worker));
    if (counter->customers[worker].lost) /* said before it died: its rows have been handed out again */
        return PACE_OK;
    for (uint64_t i = 0; i < ask->reports; i++) {
        if (!pace__tickets_done(&counter->tickets, (unsigned)worker, ask->done[i].first,
                                ask->done[i].last - ask->done[i].first))
            return pace_fail(counter->log, PACE_BUG,
                             "%s reports rows %" PRIu64 " to %" PRIu64 ", which it does not have",
                             pace__link_name(counter->link, worker), ask->done[i].first, ask->done[i].last);
    }
    if (!hear_chief(counter, ask->flags))
        return pace_fail(counter->log, PACE_BUG, "%s passes a gate at which nobody stands",
                         pace__link_name(counter->link, worker));
    counter->customers[worker].waits |= (ask->flags & PACE__ASK_TICKET) != 0;
    return PACE_OK;
}

static pace_status serve(pace__counter *counter, int worker)
{
    customer *to = &counter->customers[worker];
    bool free_to_send = false;

    assert(to->waits && !to->lost);
    pace_status status = pace__link_done(counter->link, &to->send, &free_to_send);

    counter->behind |= !free_to_send; /* invariant 1 */
    if (status || !free_to_send)
        return status;
    if (counter->tickets.handed_count == PACE__INTERVALS_MAX)
        return pace_fail(counter->log, PACE_BUG,
                         "%s asks for rows, but %d ranges are not reported yet: more than workers can hold",
                         pace__link_name(counter->link, worker), PACE__INTERVALS_MAX);
    to->ticket = counter->slices ? pace__slices_take(counter->slices, worker, pace__now_ns())
                                 : pace__tickets_take(&counter->tickets, (unsigned)worker);
    if (to->ticket.kind == PACE__TICKET_NONE)
        return PACE_OK;
    to->waits = false;
    pace__link_send(counter->link, worker, PACE__TAG_TICKET, &to->ticket, sizeof to->ticket, &to->send);
    return PACE_OK;
}

pace_status pace__counter_poll(pace__counter *counter, bool *busy)
{
    bool heard = false;
    pace_status status = pace__link_done(counter->link, &counter->receive, &heard);

    if (status || !(heard || counter->behind || counter->slices)) /* invariant 1 */
        return status;
    if (heard) {
        *busy = true;
        status = hear(counter);
        if (!status)
            post_receive(counter);
    }
    counter->behind = false;
    for (int worker = 0; worker < counter->workers && !status; worker++) {
        if (counter->customers[worker].waits)
            status = serve(counter, worker);
    }
    return status;
}

uint64_t pace__counter_lose(pace__counter *counter, int worker)
{
    assert(worker > 0 && worker < counter->workers);
    customer *to = &counter->customers[worker];

    if (to->lost) /* what must be kept is known from the first time only */
        return 0;
    to->waits = false;
    to->lost = true;
    to->kept = !pace__link_abandon(counter->link, &to->send);
    counter->behind = true; /* someone may wait for rows, and now there are some */
    return pace__tickets_lose(&counter->tickets, (unsigned)worker);
}

/* --- asking --- */

void pace__asker_init(pace__asker *asker, pace__link *link, int rank)
{
    *asker = (pace__asker){.link = link, .rank = rank};
}

void pace__asker_close(pace__asker *asker)
{
    pace__link_settle(asker->link, &asker->send);
    pace__link_cancel(asker->link, &asker->receive);
}

void pace__asker_done(pace__asker *asker, uint64_t first, uint64_t rows)
{
    assert(!pace__asker_full(asker));
    asker->next.done[asker->next.reports++] = (pace__interval){first, first + rows};
}

bool pace__asker_full(const pace__asker *asker)
{
    return asker->next.reports == PACE__ASK_REPORTS_MAX;
}

pace_status pace__asker_send(pace__asker *asker, uint64_t flags)
{
    pace_status status = pace__link_wait(asker->link, &asker->send, "a message to leave");

    if (status) { /* the job ends: nobody will hear of these rows, but there is room for others */
        asker->next.reports = 0;
        return status;
    }
    assert(!asker->send.active && asker->next.reports <= PACE__ASK_REPORTS_MAX);
    asker->sent = asker->next;
    asker->sent.flags = flags;
    asker->next = (pace__ask){0};
    if (flags & PACE__ASK_TICKET) {
        assert(!asker->waiting);
        asker->waiting = true;
        pace__link_receive(asker->link, asker->rank, PACE__TAG_TICKET, &asker->ticket, sizeof asker->ticket,
                           &asker->receive);
    }
    pace__link_send(asker->link, asker->rank, PACE__TAG_ASK, &asker->sent, sizeof asker->sent, &asker->send);
    return PACE_OK;
}

pace_status pace__asker_poll(pace__asker *asker, bool *got, pace__ticket *ticket)
{
    *got = false;
    if (!asker->waiting)
        return PACE_OK;
    pace_status status = pace__link_done(asker->link, &asker->receive, got);

    if (!status && *got)
        status = pace__link_fits(asker->link, &asker->receive, sizeof asker->ticket, "a ticket");
    if (!status && *got) {
        asker->waiting = false;
        *ticket = asker->ticket;
    }
    return status;
}
