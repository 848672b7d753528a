/* Which rows come next: simulated workers that take ranges, finish them in any order, and report them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/random.h"
#include "launch/cluster.h"
#include "ps/client.h"
#include "ps/tickets.h"

#include <string.h>

#define ROWS_MAX    4096
#define WORKERS_MAX 6
#define HELD_MAX    3
#define TURNS_MAX   200000

/* --- a model --- */

/* What the tickets must agree with; kept row by row. */
typedef struct model {
    pace__steps steps;
    pace__tickets tickets;
    unsigned workers;
    uint64_t staleness, gate_every[2], first_step, last_step;
    pace__random random;
    bool reported[ROWS_MAX];
    uint64_t next, end; /* handed out so far; of the job */
    pace__interval held[WORKERS_MAX][HELD_MAX];
    unsigned held_count[WORKERS_MAX];
    bool ended[WORKERS_MAX];
    bool lost[WORKERS_MAX];
    pace__interval again[WORKERS_MAX * HELD_MAX]; /* of lost workers */
    unsigned again_count;
    uint64_t gate_step; /* the next gate; last_step: none */
    bool at_gate;       /* the chief stands at it */
    bool stopped;       /* the chief has ended the job at a gate */
    unsigned gates, soon, losses;
} model;

static uint64_t below(model *self, uint64_t limit)
{
    return pace__random_below(&self->random, limit);
}

static uint64_t rows_before(const model *self, uint64_t step)
{
    return pace__steps_rows_before(&self->steps, step);
}

/* The first step above `step` behind which there is a gate. */
static uint64_t gate_above(const model *self, uint64_t step)
{
    for (step++; step < self->last_step; step++) {
        for (int i = 0; i < 2; i++) {
            if (self->gate_every[i] && step % self->gate_every[i] == 0)
                return step;
        }
    }
    return self->last_step;
}

static bool all_reported(const model *self, uint64_t before)
{
    for (uint64_t row = rows_before(self, self->first_step); row < before; row++) {
        if (!self->reported[row])
            return false;
    }
    return true;
}

static model make_model(uint64_t seed)
{
    static const uint64_t bounds[] = {0, 0, 1, 2, 5, PACE__STALENESS_UNBOUNDED};
    model self = {.random = pace__random_at(seed, 0)};

    self.steps = pace__steps_make(1 + below(&self, 300), 1 + below(&self, 70));
    self.workers = 1 + (unsigned)below(&self, WORKERS_MAX);
    self.staleness = bounds[below(&self, 6)];
    for (int i = 0; i < 2; i++)
        self.gate_every[i] = below(&self, 3) ? 0 : 1 + below(&self, 9);
    self.first_step = below(&self, 3) ? 0 : below(&self, 2 * self.steps.per_epoch);
    self.last_step = self.first_step + below(&self, 40);
    while (rows_before(&self, self.last_step) > ROWS_MAX)
        self.last_step--;
    if (self.last_step < self.first_step)
        self.first_step = self.last_step;
    pace__tickets_init(&self.tickets, &self.steps, self.workers, self.first_step, self.last_step,
                       self.staleness, self.gate_every);
    self.next = rows_before(&self, self.first_step);
    self.end = rows_before(&self, self.last_step);
    self.gate_step = gate_above(&self, self.first_step);
    return self;
}

/* --- what a ticket must be --- */

static bool is_too_early(const model *self, uint64_t step)
{
    return self->staleness != PACE__STALENESS_UNBOUNDED && step > self->staleness &&
           !all_reported(self, rows_before(self, step - self->staleness));
}

/* A range that a lost worker had comes back as it was. */
static bool comes_again(model *self, unsigned worker, const pace__ticket *ticket)
{
    for (unsigned i = 0; i < self->again_count; i++) {
        if (self->again[i].first != ticket->first)
            continue;
        assert_int_equal(self->again[i].last, ticket->first + ticket->rows);
        assert_int_equal(pace__steps_of(&self->steps, ticket->first), ticket->step);
        self->held[worker][self->held_count[worker]++] = self->again[i];
        self->again[i] = self->again[--self->again_count];
        return true;
    }
    return false;
}

static void check_rows(model *self, unsigned worker, const pace__ticket *ticket)
{
    uint64_t last = ticket->first + ticket->rows;

    if (comes_again(self, worker, ticket))
        return;
    assert_int_equal(self->again_count, 0); /* they come first */
    assert_false(self->stopped || self->at_gate);
    assert_int_equal(ticket->first, self->next);
    assert_true(ticket->rows > 0);
    assert_true(ticket->rows <= (self->steps.batch + self->workers - 1) / self->workers);
    assert_int_equal(pace__steps_of(&self->steps, ticket->first), ticket->step);
    assert_int_equal(pace__steps_of(&self->steps, last - 1), ticket->step);
    assert_true(last <= rows_before(self, self->gate_step));
    assert_false(is_too_early(self, ticket->step));
    self->held[worker][self->held_count[worker]++] = (pace__interval){ticket->first, last};
    self->next = last;
}

static void check_gate(model *self, unsigned worker, const pace__ticket *ticket)
{
    uint64_t place = rows_before(self, self->gate_step);

    assert_int_equal(worker, 0);
    assert_true(self->gate_step < self->last_step);
    assert_int_equal(ticket->step, self->gate_step);
    assert_int_equal(self->next, place);
    assert_true(all_reported(self, place));
    self->at_gate = true;
    self->gates++;
}

static void check_end(model *self, unsigned worker)
{
    assert_true(self->stopped || self->next == self->end);
    assert_true(worker > 0 || self->stopped || all_reported(self, self->end));
    self->ended[worker] = true;
}

/* Nobody is held back without a reason. */
static void check_none(const model *self, unsigned worker)
{
    bool chief = worker == 0, out = self->next == self->end;
    bool gate = !out && self->next == rows_before(self, self->gate_step);

    if (out)
        assert_true(chief && !all_reported(self, self->end));
    else if (gate)
        assert_true(!chief || !all_reported(self, self->next));
    else
        assert_true(is_too_early(self, pace__steps_of(&self->steps, self->next)));
    assert_false(self->stopped);
    assert_int_equal(self->again_count, 0);
}

static void take(model *self, unsigned worker)
{
    pace__ticket ticket = pace__tickets_take(&self->tickets, worker);

    switch (ticket.kind) {
    case PACE__TICKET_ROWS:
        check_rows(self, worker, &ticket);
        break;
    case PACE__TICKET_GATE:
        check_gate(self, worker, &ticket);
        break;
    case PACE__TICKET_END:
        check_end(self, worker);
        break;
    default:
        assert_int_equal(ticket.kind, PACE__TICKET_NONE);
        check_none(self, worker);
    }
}

/* --- what workers do --- */

/* Any of the ranges it has, not the oldest. */
static void report(model *self, unsigned worker)
{
    unsigned which = (unsigned)below(self, self->held_count[worker]);
    pace__interval done = self->held[worker][which];

    assert_false(pace__tickets_done(&self->tickets, worker + 1, done.first, done.last - done.first));
    assert_true(pace__tickets_done(&self->tickets, worker, done.first, done.last - done.first));
    assert_false(pace__tickets_done(&self->tickets, worker, done.first, done.last - done.first));
    self->held[worker][which] = self->held[worker][--self->held_count[worker]];
    memset(&self->reported[done.first], true, done.last - done.first);
}

/* It dies with whatever it has. */
static void lose(model *self, unsigned worker)
{
    uint64_t rows = 0;

    for (unsigned i = 0; i < self->held_count[worker]; i++) {
        self->again[self->again_count++] = self->held[worker][i];
        rows += self->held[worker][i].last - self->held[worker][i].first;
    }
    assert_int_equal(pace__tickets_lose(&self->tickets, worker), rows);
    self->held_count[worker] = 0;
    self->lost[worker] = self->ended[worker] = true;
    self->losses++;
}

static void pass_gate(model *self)
{
    bool ends = below(self, 20) == 0;

    pace__tickets_pass(&self->tickets, ends);
    self->at_gate = false;
    self->stopped = ends;
    self->gate_step = gate_above(self, self->gate_step);
}

/* At the place that comes next if a step begins there, or else where the step ends. */
static void ask_for_gate(model *self)
{
    uint64_t step = pace__steps_of(&self->steps, self->next);

    pace__tickets_gate_soon(&self->tickets);
    step += rows_before(self, step) < self->next;
    if (step < self->gate_step)
        self->gate_step = step;
    self->soon++;
}

static bool is_over(const model *self)
{
    for (unsigned worker = 0; worker < self->workers; worker++) {
        if (!self->ended[worker] || self->held_count[worker] > 0)
            return false;
    }
    return true;
}

static void simulate(uint64_t seed, unsigned *gates, unsigned *soon, unsigned *losses)
{
    static model self;
    unsigned turns = 0;

    self = make_model(seed);
    for (; !is_over(&self) && turns < TURNS_MAX; turns++) {
        unsigned worker = (unsigned)below(&self, self.workers);

        if (worker == 0 && self.at_gate) {
            if (below(&self, 3) == 0)
                pass_gate(&self);
        } else if (worker == 0 && !self.ended[0] && below(&self, 50) == 0) {
            ask_for_gate(&self);
        } else if (worker > 0 && !self.lost[worker] && below(&self, 100) == 0) {
            lose(&self, worker);
        } else if (self.held_count[worker] > 0 && below(&self, 2)) {
            report(&self, worker);
        } else if (!self.ended[worker] && self.held_count[worker] < HELD_MAX) {
            take(&self, worker);
        }
    }
    assert_true(is_over(&self));
    assert_true(self.stopped || (self.next == self.end && all_reported(&self, self.end)));
    assert_int_equal(self.tickets.done.low, self.next);
    assert_int_equal(self.tickets.done.count, 0);
    *gates += self.gates;
    *soon += self.soon;
    *losses += self.losses;
}

static void any_order(void **state)
{
    static uint64_t seed;
    unsigned gates = 0, soon = 0, losses = 0;

    *state = &seed;
    for (seed = 1; seed <= 1500; seed++)
        simulate(seed, &gates, &soon, &losses);
    assert_true(gates > 500 && soon > 500 && losses > 500);
}

static int print_seed(void **state)
{
    print_message("ended at seed %llu\n", (unsigned long long)*(uint64_t *)*state);
    return 0;
}

/* --- by hand --- */

static pace__tickets *make_tickets(pace__steps steps, unsigned workers, uint64_t first, uint64_t last,
                                   uint64_t staleness, uint64_t every)
{
    static pace__tickets tickets;

    pace__tickets_init(&tickets, &steps, workers, first, last, staleness, (uint64_t[2]){every, 0});
    return &tickets;
}

static void assert_ticket(pace__tickets *tickets, bool chief, pace__ticket_kind kind, uint64_t first,
                          uint64_t rows, uint64_t step)
{
    pace__ticket got = pace__tickets_take(tickets, chief ? 0 : 1);

    assert_int_equal(got.kind, kind);
    if (kind == PACE__TICKET_ROWS) {
        assert_int_equal(got.first, first);
        assert_int_equal(got.rows, rows);
    }
    if (kind == PACE__TICKET_ROWS || kind == PACE__TICKET_GATE)
        assert_int_equal(got.step, step);
}

/* Whoever has them reports the ranges that make up these rows. */
static void report_rows(pace__tickets *tickets, uint64_t first, uint64_t rows)
{
    uint64_t reported = 0;

    for (size_t i = tickets->handed_count; i-- > 0;) {
        pace__handed range = tickets->handed[i];

        if (range.first < first || range.first >= first + rows)
            continue;
        assert_true(pace__tickets_done(tickets, range.worker, range.first, range.rows));
        reported += range.rows;
    }
    assert_int_equal(reported, rows);
}

/* 10 rows in an epoch, 4 in a step: 4 4 2; three workers take 2 rows at a time. Staleness 0: in step. */
static void no_staleness_is_in_step(void **state)
{
    pace__tickets *tickets = make_tickets(pace__steps_make(10, 4), 3, 0, 4, 0, 0);

    (void)state;
    assert_ticket(tickets, false, PACE__TICKET_ROWS, 0, 2, 0);
    assert_ticket(tickets, true, PACE__TICKET_ROWS, 2, 2, 0);
    assert_ticket(tickets, false, PACE__TICKET_NONE, 0, 0, 0);
    report_rows(tickets, 2, 2);
    assert_ticket(tickets, false, PACE__TICKET_NONE, 0, 0, 0);
    report_rows(tickets, 0, 2);
    assert_ticket(tickets, false, PACE__TICKET_ROWS, 4, 2, 1);
    assert_ticket(tickets, false, PACE__TICKET_ROWS, 6, 2, 1);
    report_rows(tickets, 4, 2);
    report_rows(tickets, 6, 2);
    assert_ticket(tickets, false, PACE__TICKET_ROWS, 8, 2, 2); /* the short step that ends the epoch */
    assert_ticket(tickets, false, PACE__TICKET_NONE, 0, 0, 0);
    report_rows(tickets, 8, 2);
    assert_ticket(tickets, false, PACE__TICKET_ROWS, 10, 2, 3);
    assert_ticket(tickets, false, PACE__TICKET_ROWS, 12, 2, 3);
    assert_ticket(tickets, false, PACE__TICKET_END, 0, 0, 0);
    assert_ticket(tickets, true, PACE__TICKET_NONE, 0, 0, 0); /* rows are still out */
    report_rows(tickets, 10, 4);
    assert_ticket(tickets, true, PACE__TICKET_END, 0, 0, 0);
}

/* A run that goes on at step 5, with other workers than before. */
static void begins_in_the_middle(void **state)
{
    pace__tickets *tickets = make_tickets(pace__steps_make(10, 4), 4, 5, 8, 1, 6);

    (void)state;
    assert_ticket(tickets, false, PACE__TICKET_ROWS, 18, 1, 5);
    assert_ticket(tickets, false, PACE__TICKET_ROWS, 19, 1, 5);
    assert_ticket(tickets, true, PACE__TICKET_NONE, 0, 0, 0);
    report_rows(tickets, 18, 2);
    assert_ticket(tickets, false, PACE__TICKET_NONE, 0, 0, 0);
    assert_ticket(tickets, true, PACE__TICKET_GATE, 0, 0, 6);
    pace__tickets_pass(tickets, false);
    for (uint64_t row = 20; row < 28; row++)
        assert_ticket(tickets, false, PACE__TICKET_ROWS, row, 1, row < 24 ? 6 : 7);
    assert_ticket(tickets, false, PACE__TICKET_END, 0, 0, 0);
}

/* --- many workers, far rows --- */

typedef struct held {
    pace__ticket ticket;
    unsigned worker;
} held;

/* Every worker has all that it may have, some are lost, and ranges come back in any order: the last first, so
 * that nearly all of them lie apart. */
static void as_many_workers_as_there_may_be(void **state)
{
    static held out[PACE__WORKERS_MAX * PACE__RANGES_MAX];
    const size_t all = sizeof out / sizeof *out;
    const uint64_t epoch = 100000, first = (UINT64_C(1) << 33) / epoch * 98, last = first + 98;
    pace__steps steps = pace__steps_make(epoch, PACE__WORKERS_MAX); /* 98 steps: a row for each worker */
    pace__tickets *tickets =
        make_tickets(steps, PACE__WORKERS_MAX, first, last, PACE__STALENESS_UNBOUNDED, 0);

    (void)state;
    for (size_t i = 0; i < all; i++) {
        out[i] = (held){pace__tickets_take(tickets, (unsigned)i % PACE__WORKERS_MAX),
                        (unsigned)i % PACE__WORKERS_MAX};
        assert_int_equal(out[i].ticket.kind, PACE__TICKET_ROWS);
        assert_int_equal(out[i].ticket.first, pace__steps_rows_before(&steps, first) + i);
    }
    for (unsigned worker = 1; worker < PACE__WORKERS_MAX; worker += 2)
        assert_int_equal(pace__tickets_lose(tickets, worker), PACE__RANGES_MAX);
    for (size_t i = 0; i < all; i++) { /* those of the lost go to their neighbours */
        if (out[i].worker % 2)
            out[i] = (held){pace__tickets_take(tickets, out[i].worker - 1), out[i].worker - 1};
    }
    assert_int_equal(tickets->again_count, 0);
    for (size_t part = 0; part < 2; part++) { /* every other one, and then the rest */
        for (size_t i = all; i-- > 0;) {
            if ((out[i].ticket.first + part) % 2 == 0)
                assert_true(
                    pace__tickets_done(tickets, out[i].worker, out[i].ticket.first, out[i].ticket.rows));
        }
    }
    assert_int_equal(tickets->done.low, pace__steps_rows_before(&steps, first) + all);
    assert_int_equal(tickets->done.count, 0);
}

/* The same tickets wherever the job begins. */
static void far_rows_are_handed_out_alike(void **state)
{
    const uint64_t rows[] = {UINT64_C(1) << 31, UINT64_C(1) << 32, UINT64_C(1) << 33, UINT64_C(1) << 61};
    const pace__steps steps = pace__steps_make(100, 24);

    (void)state;
    for (int i = 0; i < 4; i++) {
        uint64_t epoch = rows[i] / 100, begin = epoch * 100;
        pace__tickets *tickets = make_tickets(steps, 2, epoch * 5, epoch * 5 + 10, 1, 0);

        for (uint64_t step = 0; step < 10; step++) {
            uint64_t first = pace__steps_rows_before(&steps, step),
                     in_step = pace__steps_rows_in(&steps, step);

            for (uint64_t at = 0; at < in_step; at += 12)
                assert_ticket(tickets, false, PACE__TICKET_ROWS, begin + first + at,
                              in_step - at < 12 ? in_step - at : 12, 5 * epoch + step);
            report_rows(tickets, begin + first, in_step);
        }
        assert_ticket(tickets, true, PACE__TICKET_END, 0, 0, 0);
    }
}

/* `--checkpoint-every` may be 1e15, to say never: its gate is behind more rows than 64 bits can count. */
static void a_gate_beyond_all_rows(void **state)
{
    const uint64_t every = UINT64_C(1) << 44, batch = 1 << 20;
    pace__tickets *tickets =
        make_tickets(pace__steps_make(8 * batch, batch), 1, 3, 6, PACE__STALENESS_UNBOUNDED, every);

    (void)state;
    for (uint64_t step = 3; step < 6; step++)
        assert_ticket(tickets, false, PACE__TICKET_ROWS, step * batch, batch, step);
    assert_ticket(tickets, false, PACE__TICKET_END, 0, 0, 0);
}

/* A gate that was asked for stands behind the step under way, once, and does not move the regular ones. */
static void a_gate_soon(void **state)
{
    pace__tickets *tickets = make_tickets(pace__steps_make(100, 4), 1, 0, 20, PACE__STALENESS_UNBOUNDED, 5);

    (void)state;
    for (uint64_t step = 0; step < 3; step++)
        assert_ticket(tickets, false, PACE__TICKET_ROWS, 4 * step, 4, step);
    pace__tickets_gate_soon(tickets);
    assert_ticket(tickets, true, PACE__TICKET_NONE, 0, 0, 0); /* rows are out */
    report_rows(tickets, 0, 12);
    assert_ticket(tickets, false, PACE__TICKET_NONE, 0, 0, 0); /* not the chief */
    assert_ticket(tickets, true, PACE__TICKET_GATE, 0, 0, 3);
    pace__tickets_pass(tickets, false);
    assert_ticket(tickets, true, PACE__TICKET_ROWS, 12, 4, 3);
    assert_ticket(tickets, true, PACE__TICKET_ROWS, 16, 4, 4);
    report_rows(tickets, 12, 8);
    assert_ticket(tickets, true, PACE__TICKET_GATE, 0, 0, 5);
    pace__tickets_pass(tickets, true);
    assert_ticket(tickets, true, PACE__TICKET_END, 0, 0, 0);
    assert_ticket(tickets, false, PACE__TICKET_END, 0, 0, 0);
}

static void nothing_to_do(void **state)
{
    pace__tickets *tickets = make_tickets(pace__steps_make(10, 4), 2, 3, 3, 0, 1);

    (void)state;
    assert_ticket(tickets, false, PACE__TICKET_END, 0, 0, 0);
    assert_ticket(tickets, true, PACE__TICKET_END, 0, 0, 0);
}

static void reports_that_cannot_be(void **state)
{
    pace__tickets *tickets = make_tickets(pace__steps_make(100, 10), 2, 1, 9, PACE__STALENESS_UNBOUNDED, 0);

    (void)state;
    for (uint64_t first = 10; first < 40; first += 5)
        assert_ticket(tickets, false, PACE__TICKET_ROWS, first, 5, first / 10);
    assert_true(pace__tickets_done(tickets, 1, 20, 5));
    assert_false(pace__tickets_done(tickets, 1, 20, 5));               /* again */
    assert_false(pace__tickets_done(tickets, 1, 15, 10));              /* half of it again */
    assert_false(pace__tickets_done(tickets, 1, 40, 5));               /* not handed out */
    assert_false(pace__tickets_done(tickets, 1, 35, 6));               /* the last row was not */
    assert_false(pace__tickets_done(tickets, 1, 5, 5));                /* before the beginning */
    assert_false(pace__tickets_done(tickets, 1, 30, UINT64_MAX - 10)); /* ends before it begins */
    assert_false(pace__tickets_done(tickets, 1, UINT64_MAX, 5));
    assert_false(pace__tickets_done(tickets, 0, 10, 5)); /* somebody else's */
    report_rows(tickets, 10, 10);
    report_rows(tickets, 25, 15);
    assert_int_equal(tickets->done.low, 40);
}

/* The last ranges of a job come back when their worker dies: the chief, who ends last, takes them. */
static void a_loss_at_the_end(void **state)
{
    pace__tickets *tickets = make_tickets(pace__steps_make(8, 4), 2, 0, 2, 0, 0);

    (void)state;
    assert_ticket(tickets, true, PACE__TICKET_ROWS, 0, 2, 0);
    assert_ticket(tickets, false, PACE__TICKET_ROWS, 2, 2, 0);
    report_rows(tickets, 0, 4);
    assert_ticket(tickets, true, PACE__TICKET_ROWS, 4, 2, 1);
    assert_ticket(tickets, false, PACE__TICKET_ROWS, 6, 2, 1);
    report_rows(tickets, 4, 2);
    assert_ticket(tickets, true, PACE__TICKET_NONE, 0, 0, 0);
    assert_int_equal(pace__tickets_lose(tickets, 1), 2);
    assert_ticket(tickets, true, PACE__TICKET_ROWS, 6, 2, 1);
    assert_false(pace__tickets_done(tickets, 1, 6, 2)); /* a late word of the dead */
    report_rows(tickets, 6, 2);
    assert_ticket(tickets, true, PACE__TICKET_END, 0, 0, 0);
}

static void tickets_from_elsewhere_are_looked_at(void **state)
{
    pace__steps steps = pace__steps_make(25, 10); /* steps of 10, 10 and 5 rows */
    static const struct {
        uint64_t kind, first, rows, step;
        bool fits;
    } cases[] = {
        {PACE__TICKET_ROWS, 0, 5, 0, true},           {PACE__TICKET_ROWS, 5, 5, 0, true},
        {PACE__TICKET_ROWS, 6, 5, 0, false},          {PACE__TICKET_ROWS, 0, 6, 0, false},
        {PACE__TICKET_ROWS, 0, 0, 0, false},          {PACE__TICKET_ROWS, 10, 1, 0, false},
        {PACE__TICKET_ROWS, 9, 1, 1, false},          {PACE__TICKET_ROWS, 20, 5, 2, true},
        {PACE__TICKET_ROWS, 25, 5, 3, true},          {PACE__TICKET_ROWS, 35, 5, 4, false},
        {PACE__TICKET_ROWS, UINT64_MAX, 2, 0, false}, {PACE__TICKET_END, 9, 9, 9, true},
        {PACE__TICKET_NONE, 0, 5, 0, false},          {99, 0, 5, 0, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pace__ticket ticket = {cases[i].kind, cases[i].first, cases[i].rows, cases[i].step};

        assert_int_equal(pace__ticket_fits(&ticket, &steps, 4, 5), cases[i].fits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_staleness_is_in_step),
        cmocka_unit_test(begins_in_the_middle),
        cmocka_unit_test(a_gate_beyond_all_rows),
        cmocka_unit_test(as_many_workers_as_there_may_be),
        cmocka_unit_test(far_rows_are_handed_out_alike),
        cmocka_unit_test(a_gate_soon),
        cmocka_unit_test(nothing_to_do),
        cmocka_unit_test(reports_that_cannot_be),
        cmocka_unit_test(a_loss_at_the_end),
        cmocka_unit_test(tickets_from_elsewhere_are_looked_at),
        cmocka_unit_test_teardown(any_order, print_seed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
