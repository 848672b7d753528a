/* Who computes which slice: simulated workers that are slow, hang for a while and come back, against what must be true of
 * every step. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/random.h"
#include "ps/slices.h"

#include <string.h>

#define WORKERS_MAX 7
#define STEPS_MAX   40
#define TURNS_MAX   200000
#define SECOND_NS   UINT64_C(1000000000)

/* --- a model --- */

typedef enum doing {
    SPARE,
    COMPUTES,
    WAITS,
    ENDED
} doing; /* WAITS: has brought a slice, and wants the next step's */

typedef struct simulated {
    doing doing;
    uint64_t step;
    int slice;
    bool hangs;
} simulated;

typedef struct model {
    pace__slices slices;
    pace__slices_plan plan;
    pace__random random;
    uint64_t now_ns;
    simulated workers[WORKERS_MAX];
    int hanging, hanging_max;                 /* workers, at a time */
    unsigned applied[STEPS_MAX][WORKERS_MAX]; /* results of each slice that counted */
    bool stopped;
    uint64_t gates, repeats, let_go;
} model;

static uint64_t below(model *self, uint64_t limit)
{
    return pace__random_below(&self->random, limit);
}

static model make_model(uint64_t seed)
{
    model self = {.random = pace__random_at(seed, 0), .now_ns = 77 * SECOND_NS};
    int workers = 2 + (int)below(&self, WORKERS_MAX - 1),
        slices = 1 + (int)below(&self, (uint64_t)workers - 1);
    uint64_t first = below(&self, 3) ? 0 : below(&self, 10);

    self.plan = (pace__slices_plan){.slices = slices,
                                    .workers = workers,
                                    .first_step = first,
                                    .end = first + 1 + below(&self, 30),
                                    .gated = true,
                                    .grace_ns = below(&self, 2) ? PACE__SLICES_GRACE_NS : UINT64_MAX};
    for (int i = 0; i < PACE__SLICES_GATES; i++)
        self.plan.gate_every[i] = below(&self, 3) ? 0 : 1 + below(&self, 9);
    self.hanging_max = workers - slices;
    assert_true(pace__slices_init(&self.slices, &self.plan, self.now_ns));
    for (int i = 0; i < workers; i++)
        self.workers[i] = i < slices ? (simulated){COMPUTES, first, i, false} : (simulated){.doing = SPARE};
    return self;
}

/* --- what they do --- */

static bool is_gate(const model *self, uint64_t step)
{
    for (int i = 0; i < PACE__SLICES_GATES; i++) {
        if (self->plan.gate_every[i] && step % self->plan.gate_every[i] == 0)
            return true;
    }
    return step == self->plan.end;
}

/* Behind an update: whoever has waited for it goes on. */
static void answer_all(model *self)
{
    for (int i = 0; i < self->plan.workers; i++) {
        simulated *worker = &self->workers[i];

        if (worker->doing != WAITS)
            continue;
        pace__slice_look look = pace__slices_look(&self->slices, i, worker->step + 1);

        if (worker->step + 1 == self->plan.end || look == PACE__SLICE_PAST)
            worker->doing = SPARE;
        else if (look == PACE__SLICE_NOW &&
                 (i != 0 || self->slices.step < self->slices.gate)) /* the chief stops itself */
            *worker = (simulated){COMPUTES, worker->step + 1, worker->slice, worker->hangs};
    }
}

static void apply(model *self)
{
    for (int slice = 0; slice < self->plan.slices; slice++) {
        assert_true(self->slices.at[slice].in);
        self->applied[self->slices.step][slice]++;
    }
    pace__slices_next(&self->slices, self->now_ns);
    if (is_gate(self, self->slices.step))
        assert_int_equal(self->slices.gate, self->slices.step);
    answer_all(self);
}

static void push(model *self, int index)
{
    simulated *worker = &self->workers[index];
    bool missing = worker->step == self->slices.step && !self->slices.at[worker->slice].in;

    assert_true(worker->step <= self->slices.step); /* none is handed out before the step before is applied */
    bool first = pace__slices_put(&self->slices, index, worker->step, worker->slice, self->now_ns);

    assert_int_equal(first, missing);
    worker->doing = first ? WAITS : SPARE;
    self->repeats += !first;
    if (self->slices.in_count == self->plan.slices)
        apply(self);
}

static void act_at_gate(model *self, bool ends)
{
    assert_true(self->slices.step == self->slices.gate);
    self->gates++;
    for (int i = 1; i < self->plan.workers;
         i++) /* nobody computes what could be applied while the chief acts */
        assert_false(self->workers[i].doing == COMPUTES && self->workers[i].step == self->slices.step);
    self->stopped = ends;
    if (ends)
        self->workers[0].doing = SPARE;
    assert_true(pace__slices_pass(&self->slices, ends, self->now_ns));
    answer_all(self);
}

/* Longest ago, among those that are missing. */
static uint64_t oldest_ns(const model *self)
{
    uint64_t oldest = UINT64_MAX;

    for (int i = 0; i < self->plan.slices; i++) {
        const pace__slice_state *at = &self->slices.at[i];

        if (!at->in && at->handed_ns < oldest)
            oldest = at->handed_ns;
    }
    return oldest;
}

static void check_slice(model *self, const pace__ticket *ticket, uint64_t oldest)
{
    assert_int_equal(ticket->step, self->slices.step);
    assert_true(ticket->step < self->slices.gate && ticket->first < (uint64_t)self->plan.slices);
    assert_false(self->slices.at[ticket->first].in);
    assert_true(self->now_ns - oldest >= PACE__SLICE_PATIENCE_MIN_NS);
}

static void ask(model *self, int index)
{
    simulated *worker = &self->workers[index];
    uint64_t oldest = oldest_ns(self);
    pace__ticket ticket = pace__slices_take(&self->slices, index, self->now_ns);

    if (ticket.kind == PACE__TICKET_SLICE) {
        check_slice(self, &ticket, oldest);
        *worker = (simulated){COMPUTES, ticket.step, (int)ticket.first, false};
    } else if (ticket.kind == PACE__TICKET_GATE) {
        assert_int_equal(index, 0);
        act_at_gate(self, false);
    } else if (ticket.kind == PACE__TICKET_END) {
        assert_true(self->slices.over);
        for (int i = 1; i < self->plan.workers && index == 0; i++) /* nobody waits for an answer any more */
            assert_int_equal(self->workers[i].doing, ENDED);
        worker->doing = ENDED;
    } else if (ticket.kind == PACE__TICKET_LET_GO) {
        simulated *late = &self->workers[ticket.first];

        assert_true(index == 0 && ticket.first > 0 && ticket.first < (uint64_t)self->plan.workers);
        assert_true(late->doing != ENDED && self->now_ns - self->slices.over_ns >= self->plan.grace_ns);
        late->doing = ENDED;
        self->let_go++;
    } else { /* no worker waits while there is a slice that is late */
        assert_int_equal(ticket.kind, PACE__TICKET_NONE);
        assert_true(self->slices.over || self->slices.step == self->slices.gate ||
                    self->now_ns - oldest < PACE__SLICE_PATIENCE_FIRST_NS ||
                    self->now_ns - oldest < PACE__SLICE_PATIENCE * self->slices.half_ns);
    }
}

static void move(model *self, int index)
{
    simulated *worker = &self->workers[index];

    if (index > 0 && worker->doing == COMPUTES && below(self, 8) == 0 && self->hanging < self->hanging_max) {
        worker->hangs = true;
        self->hanging++;
    }
    /* Some come back soon, some only when all others are done, or not at all. */
    bool waited_for = self->plan.grace_ns == UINT64_MAX;

    if (worker->hangs && ((waited_for && self->slices.over) || (index % 2 == 0 && below(self, 50) == 0))) {
        worker->hangs = false;
        self->hanging--;
    }
    if (worker->hangs)
        return;
    if (index == 0 && worker->doing == WAITS && !self->slices.over &&
        self->slices.step == self->slices.gate && worker->step + 1 == self->slices.step)
        act_at_gate(self, below(self, 20) == 0);
    else if (worker->doing == COMPUTES)
        push(self, index);
    else if (worker->doing == SPARE)
        ask(self, index);
}

static bool all_ended(const model *self)
{
    for (int i = 0; i < self->plan.workers; i++) {
        if (self->workers[i].doing != ENDED)
            return false;
    }
    return true;
}

static void check_applied(const model *self)
{
    for (uint64_t step = self->plan.first_step; step < self->slices.step; step++) {
        for (int slice = 0; slice < self->plan.slices; slice++)
            assert_int_equal(self->applied[step][slice], 1);
    }
    assert_true(self->stopped || self->slices.step == self->plan.end);
}

static void every_slice_counts_once(void **state)
{
    uint64_t gates = 0, repeats = 0, let_go = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        model self = make_model(seed);
        int turns = 0;

        for (; !all_ended(&self) && turns < TURNS_MAX; turns++) {
            self.now_ns += below(&self, 10) ? below(&self, SECOND_NS / 1000) : below(&self, 2 * SECOND_NS);
            if (below(&self, 60) == 0)
                pace__slices_gate_soon(&self.slices);
            move(&self, (int)below(&self, (uint64_t)self.plan.workers));
        }
        if (turns == TURNS_MAX)
            fail_msg("seed %llu: stuck in step %llu", (unsigned long long)seed,
                     (unsigned long long)self.slices.step);
        check_applied(&self);
        gates += self.gates;
        repeats += self.repeats;
        let_go += self.let_go;
        pace__slices_release(&self.slices);
    }
    assert_true(gates > 1500 && repeats > 100 && let_go > 100);
}

/* --- by hand --- */

static pace__slices two_of_three(uint64_t now_ns)
{
    pace__slices slices;
    pace__slices_plan plan = {.slices = 2, .workers = 3, .end = 5, .gated = true, .gate_every = {4}};

    assert_true(pace__slices_init(&slices, &plan, now_ns));
    return slices;
}

static void who_is_faster_has_the_slice(void **state)
{
    pace__slices slices = two_of_three(0);
    uint64_t ms = 1000000;

    (void)state;
    assert_true(pace__slices_put(&slices, 0, 0, 0, 10 * ms)); /* half of them took 10 ms */
    assert_int_equal(pace__slices_take(&slices, 2, 20 * ms - 1).kind, PACE__TICKET_NONE);
    pace__ticket ticket = pace__slices_take(&slices, 2, 20 * ms);

    assert_true(ticket.kind == PACE__TICKET_SLICE && ticket.first == 1 && ticket.step == 0);
    assert_true(pace__slices_put(&slices, 2, 0, 1, 25 * ms));
    assert_false(pace__slices_put(&slices, 1, 0, 1, 26 * ms)); /* the same, too late */
    pace__slices_next(&slices, 30 * ms);
    assert_int_equal(slices.at[1].worker, 2);
    assert_false(pace__slices_put(&slices, 1, 0, 1, 31 * ms)); /* of a step that is over */
    assert_int_equal(pace__slices_look(&slices, 1, 0), PACE__SLICE_PAST);
    assert_int_equal(pace__slices_look(&slices, 1, 1), PACE__SLICE_NOW);
    assert_int_equal(pace__slices_look(&slices, 1, 2), PACE__SLICE_WAIT);
    /* Now worker 1 is spare, and waits until somebody is late by the last step's measure. */
    assert_int_equal(pace__slices_take(&slices, 1, 50 * ms - 1).kind, PACE__TICKET_NONE);
    assert_int_equal(pace__slices_take(&slices, 1, 50 * ms).kind, PACE__TICKET_SLICE);
    pace__slices_release(&slices);
}

static void gates_hold_all_but_the_chief(void **state)
{
    pace__slices slices = two_of_three(0);

    (void)state;
    assert_int_equal(slices.gate, 4);
    pace__slices_gate_soon(&slices); /* behind the step under way */
    assert_int_equal(slices.gate, 1);
    assert_false(pace__slices_pass(&slices, false, 0)); /* nobody stands there */
    assert_true(pace__slices_put(&slices, 0, 0, 0, 1) && pace__slices_put(&slices, 1, 0, 1, 2));
    pace__slices_next(&slices, 3);
    assert_int_equal(pace__slices_look(&slices, 1, 1), PACE__SLICE_WAIT);
    assert_int_equal(pace__slices_look(&slices, 0, 1), PACE__SLICE_NOW);
    assert_int_equal(pace__slices_take(&slices, 2, 100 * SECOND_NS).kind, PACE__TICKET_NONE);
    assert_int_equal(pace__slices_take(&slices, 0, 100 * SECOND_NS).kind, PACE__TICKET_GATE);
    assert_true(pace__slices_pass(&slices, false, 200 * SECOND_NS));
    assert_int_equal(slices.gate, 4);
    assert_int_equal(pace__slices_look(&slices, 1, 1), PACE__SLICE_NOW);
    /* What the chief has taken is nobody's delay. */
    assert_int_equal(pace__slices_take(&slices, 2, 200 * SECOND_NS).kind, PACE__TICKET_NONE);
    pace__slices_release(&slices);
}

/* The chief ends behind all others, but waits for nobody longer than the grace. */
static void who_hangs_at_the_end_is_let_go(void **state)
{
    pace__slices slices;
    pace__slices_plan plan = {.slices = 1, .workers = 4, .end = 1, .gated = true, .grace_ns = SECOND_NS};

    (void)state;
    assert_true(pace__slices_init(&slices, &plan, 0));
    assert_true(pace__slices_put(&slices, 0, 0, 0, 1));
    pace__slices_next(&slices, 2);
    assert_int_equal(pace__slices_take(&slices, 2, 3).kind, PACE__TICKET_NONE);
    assert_true(pace__slices_pass(&slices, false, SECOND_NS));
    assert_int_equal(pace__slices_take(&slices, 2, SECOND_NS).kind, PACE__TICKET_END);
    assert_int_equal(pace__slices_take(&slices, 0, 2 * SECOND_NS - 1).kind, PACE__TICKET_NONE);
    for (uint64_t late = 1; late <= 3; late += 2) {
        pace__ticket ticket = pace__slices_take(&slices, 0, 2 * SECOND_NS);

        assert_true(ticket.kind == PACE__TICKET_LET_GO && ticket.first == late);
    }
    assert_int_equal(pace__slices_take(&slices, 0, 2 * SECOND_NS).kind, PACE__TICKET_END);
    assert_int_equal(pace__slices_take(&slices, 1, 9 * SECOND_NS).kind, PACE__TICKET_END); /* should it ask */
    pace__slices_release(&slices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_slice_counts_once),
        cmocka_unit_test(who_is_faster_has_the_slice),
        cmocka_unit_test(gates_hold_all_but_the_chief),
        cmocka_unit_test(who_hangs_at_the_end_is_let_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
