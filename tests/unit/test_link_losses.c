/* Links between threads on which something goes wrong: deadlines, failures, losses. The same over MPI: tests/mpi. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "links.h"

/* --- deadlines --- */

/* Rank 1 says something once and then hangs until rank 0 has given up. */
static pace_status hang(job *self, pace__link *link, int rank)
{
    pace_status status = PACE_OK;
    pace__request request = {0};
    int number = 1;

    if (rank == 1) {
        send_now(link, 0, 0, &number, sizeof number);
        await_flag(self, 1);
        pace__link_close(link);
        return PACE_OK;
    }
    receive_now(link, 1, 0, &number, sizeof number);
    pace__link_set_name(link, 1, "worker1 (rank 1, host b)");
    pace__link_set_step(link, 1234);
    uint64_t begin = pace__now_ns();

    pace__link_receive(link, 1, 1, &number, sizeof number, &request);
    status = pace__link_wait(link, &request, "its weights");
    require(pace__now_ns() - begin >= 190 * MS);
    require(pace__link_wait_ns(link, 1) >= 190 * MS);
    require(pace__link_wait_ns(link, 0) == 0);
    atomic_store(&self->flag, 1);
    pace__link_fail(link, status, "told");
    pace__link_close(link);
    return status;
}

static void a_peer_that_hangs_is_named(void **state)
{
    job self = {.work = hang};

    (void)state;
    open_job(&self, 2, 2, 200 * MS, LONG_NS);
    pace_status status = run_job(&self);

    assert_said("step 1234: worker1 (rank 1, host b) has given no sign of life for ");
    assert_failed(status, PACE_LOST, " s; rank 0 was waiting for its weights");
}

static void a_peer_that_never_came_has_its_own_deadline(void **state)
{
    job self = {0};
    pace__request request = {0};
    char byte = 0;

    (void)state;
    open_job(&self, 2, 2, 30 * MS, 300 * MS);
    uint64_t begin = pace__now_ns();

    pace__link_send(self.links[0], 1, 0, &byte, 1, &request); /* a send is waited for no longer than that */
    pace_status status = pace__link_wait(self.links[0], &request, "a send");

    assert_true(pace__now_ns() - begin >= 290 * MS);
    assert_said("rank 1 has never been heard of, for ");
    assert_failed(status, PACE_LOST, " s; rank 0 was waiting for a send");
    pace__link_fail(self.links[0], status, "told");
    pace__link_close(self.links[0]);
    pace__link_fail(self.links[1], status, "told"); /* the job has ended: nobody waits for rank 0 */
    pace__link_close(self.links[1]);
}

static void a_wait_for_oneself_ends_too(void **state)
{
    job self = {0};
    pace__request request = {0};
    char byte;

    (void)state;
    open_job(&self, 1, 1, 100 * MS, 100 * MS);
    pace__link_receive(self.links[0], 0, 0, &byte, 1, &request);
    pace_status status = pace__link_wait(self.links[0], &request, "itself");

    assert_failed(status, PACE_LOST, "rank 0 has never been heard of");
    pace__link_fail(self.links[0], status, "told");
    pace__link_close(self.links[0]);
}

static void a_receive_from_any_ends_too(void **state)
{
    job self = {0};
    pace__request request = {0};
    char byte;

    (void)state;
    open_job(&self, 3, 3, 50 * MS, 100 * MS);
    pace__link_receive(self.links[0], PACE__LINK_ANY, 0, &byte, 1, &request);
    pace_status status = pace__link_wait(self.links[0], &request, "work");

    assert_said("nobody has given a sign of life for ");
    assert_failed(status, PACE_LOST, " s; rank 0 was waiting for work");
    for (int i = 0; i < 3; i++) {
        pace__link_fail(self.links[i], status, "told");
        pace__link_close(self.links[i]);
    }
}

/* Who fails frees its buffers while others still run: between threads they must not reach into them. */
static void what_a_failed_rank_was_sending_stays_unread(void **state)
{
    job self = {0};
    pace__request out = {0}, in = {0};
    char *gone = malloc(4096), here[4096] = {0};
    bool done;

    (void)state;
    assert_non_null(gone);
    open_job(&self, 2, 2, LONG_NS, LONG_NS);
    memset(gone, 'x', 4096);
    pace__link_send(self.links[0], 1, 0, gone, 4096, &out);
    pace__link_fail(self.links[0], PACE_BAD_DATA, "told");
    free(gone);
    pace__link_receive(self.links[1], 0, 0, here, sizeof here, &in);
    pace__link_done(self.links[1], &in, &done);
    assert_false(done);
    assert_int_equal(here[0], 0);
    pace__link_cancel(self.links[1], &in);
    pace__link_settle(self.links[0], &out); /* as a caller may, later */
    for (int i = 0; i < 2; i++)
        pace__link_close(self.links[i]);
}

/* The deadline of tests in which nobody may miss it, and how long their ranks are slow. */
#define KEPT_NS (600 * (uint64_t)MS)
#define SLOW_NS (2 * KEPT_NS)
/* Of ranks in circles and chains: they are heard of several times in it, also on a busy machine. */
#define CIRCLE_NS (400 * (uint64_t)MS)

static void compute(pace__link *link, uint64_t ns)
{
    uint64_t begin = pace__now_ns();
    unsigned turns = 0;

    while (pace__now_ns() - begin < ns) {
        if (link)
            require(pace__link_pulse(link) == PACE_OK);
        pace__back_off(&turns);
    }
}

/* Each waits for the next, and the last is slow: the one in the middle is alive while it waits itself. */
static pace_status chain(job *self, pace__link *link, int rank)
{
    int number = 7;

    if (rank == self->size - 1)
        compute(link, SLOW_NS);
    else
        receive_now(link, rank + 1, 0, &number, sizeof number);
    if (rank > 0)
        send_now(link, rank - 1, 0, &number, sizeof number);
    require(number == 7);
    return PACE_OK;
}

static void a_slow_peer_is_waited_for(void **state)
{
    job self = {.work = chain};

    (void)state;
    open_job(&self, 3, 3, KEPT_NS, KEPT_NS);
    assert_ok(run_job(&self));
    for (int i = 0; i < 3; i++)
        pace__link_close(self.links[i]);
    assert_string_equal(said, "");
}

/* Each waits for the next, and the last for the first: all give signs of life, and nobody ever sends. */
static pace_status circle(job *self, pace__link *link, int rank)
{
    pace__request request = {0};
    int own = 1, got, next = (rank + 1) % self->size, before = (rank + self->size - 1) % self->size;

    pace__link_receive(link, before, 0, &got, sizeof got, &request);
    send_now(link, next, 0, &own, sizeof own);
    require(pace__link_wait(link, &request, "a greeting") == PACE_OK);
    pace__link_receive(link, next, 1, &got, sizeof got, &request);
    pace_status status = pace__link_wait(link, &request, "what never comes");

    require(status == PACE_LOST);
    pace__link_fail(link, status, "told");
    pace__link_close(link);
    return status;
}

static void ranks_that_wait_for_each_other_give_up(void **state)
{
    (void)state;
    for (int size = 2; size <= 4; size += 2) {
        job self = {.work = circle};
        uint64_t begin = pace__now_ns();

        open_job(&self, size, size, CIRCLE_NS, LONG_NS);
        pace_status status = run_job(&self);

        assert_true(pace__now_ns() - begin >= PACE__LINK_STANDSTILL * CIRCLE_NS);
        assert_int_equal(status, PACE_LOST);
        assert_said("has only waited, like whoever is waited for there, for ");
        assert_said("was waiting for what never comes");
    }
}

/* The last in the chain is at work for longer than ranks that only wait may; or it waits for what is no rank. */
static pace_status long_chain(job *self, pace__link *link, int rank)
{
    uint64_t begin = pace__now_ns();
    unsigned turns = 0;
    int number = 7;

    for (int i = 1; i < self->size && rank == 0; i++) /* all are heard of: now deadlines count */
        send_now(link, i, 1, &number, sizeof number);
    if (rank > 0)
        receive_now(link, 0, 1, &number, sizeof number);
    if (rank == self->size - 1 && !self->seed)
        compute(link, 2 * PACE__LINK_STANDSTILL * CIRCLE_NS);
    while (rank == self->size - 1 && self->seed &&
           pace__now_ns() - begin < 2 * PACE__LINK_STANDSTILL * CIRCLE_NS)
        require(pace__link_turn(link, NULL, 0, "its disk", &turns) == PACE_OK);
    if (rank < self->size - 1)
        receive_now(link, rank + 1, 0, &number, sizeof number);
    if (rank > 0)
        send_now(link, rank - 1, 0, &number, sizeof number);
    return PACE_OK;
}

static void work_at_the_end_of_a_chain_is_waited_for(void **state)
{
    (void)state;
    for (uint64_t disk = 0; disk < 2; disk++) {
        job self = {.work = long_chain, .seed = disk};

        open_job(&self, 4, 4, CIRCLE_NS, LONG_NS);
        assert_ok(run_job(&self));
        for (int i = 0; i < 4; i++)
            pace__link_close(self.links[i]);
        assert_string_equal(said, "");
    }
}

/* Rank 0 does not listen for long, and rank 1 gives its next sign only a little later. */
static pace_status be_away(job *self, pace__link *link, int rank)
{
    int number = 7;

    if (rank == 0) {
        receive_now(link, 1, 0, &number, sizeof number);
        compute(link, KEPT_NS / 4); /* time enough to note when rank 1 was last heard of */
        compute(NULL, SLOW_NS);
        atomic_store(&self->flag, 1);
        receive_now(link, 1, 0, &number, sizeof number);
        return PACE_OK;
    }
    send_now(link, 0, 0, &number, sizeof number);
    await_flag(self, 1); /* without a pulse: it is rank 0's silence that would hide this one's */
    compute(NULL, KEPT_NS / 4);
    send_now(link, 0, 0, &number, sizeof number);
    return PACE_OK;
}

static void silence_counts_only_while_one_listens(void **state)
{
    job self = {.work = be_away};

    (void)state;
    open_job(&self, 2, 2, KEPT_NS, KEPT_NS);
    assert_ok(run_job(&self));
    pace__link_close(self.links[0]);
    pace__link_close(self.links[1]);
    assert_string_equal(said, "");
}

/* Rank 0 waits in a loop of its own for all; rank 2 hangs, rank 1 does not. */
static pace_status wait_for_all(job *self, pace__link *link, int rank)
{
    static const int all[] = {0, 1, 2};
    pace_status status = PACE_OK;
    unsigned turns = 0;

    if (rank == 0) {
        while (!(status = pace__link_turn(link, all, 3, "everybody", &turns)))
            ;
        atomic_store(&self->flag, 1);
    } else if (rank == 1) {
        send_now(link, 0, 0, NULL, 0);
        while (!(status = pace__link_pulse(link)))
            sched_yield();
    } else {
        await_flag(self, 1);
        status = PACE_FAILED;
    }
    pace__link_fail(link, status, "told");
    pace__link_close(link);
    return status;
}

static void one_silent_peer_of_several_is_named(void **state)
{
    job self = {.work = wait_for_all};
    pace__request request = {0};

    (void)state;
    open_job(&self, 3, 3, KEPT_NS, KEPT_NS);
    pace__link_receive(self.links[0], 1, 0, NULL, 0, &request);
    pace__link_set_name(self.links[0], 0, "chief");
    pace_status status = run_job(&self);

    assert_said("rank 2 has never been heard of, for ");
    assert_failed(status, PACE_LOST, " s; chief was waiting for everybody");
}

/* --- failures --- */

/* Rank 2 fails; rank 0 waits for rank 1, and rank 1 for rank 2. */
static pace_status fail_one(job *self, pace__link *link, int rank)
{
    pace_status status = PACE_BAD_DATA;
    char byte;
    pace__request request = {0};

    (void)self;
    if (rank < 2) {
        pace__link_receive(link, rank + 1, 0, &byte, 1, &request);
        status = pace__link_wait(link, &request, "it");
        require(status == PACE_BAD_DATA);
        require(pace__link_pulse(link) == PACE_BAD_DATA);
    }
    pace__link_fail(link, status, "worker2 (rank 2, host c): step 5: part-00001.h5 is damaged");
    pace__link_close(link);
    return status;
}

static void a_failure_reaches_everyone_and_is_told_once(void **state)
{
    job self = {.work = fail_one};

    (void)state;
    open_job(&self, 3, 3, LONG_NS, LONG_NS);
    uint64_t begin = pace__now_ns();

    assert_failed(run_job(&self), PACE_BAD_DATA,
                  "E worker2 (rank 2, host c): step 5: part-00001.h5 is damaged\n");
    assert_true(pace__seconds_since(begin) < 10);
}

/* Rank 0 does not listen: after two seconds the other ends the job. */
static pace_status fail_alone(job *self, pace__link *link, int rank)
{
    if (rank == 1) {
        pace__link_fail(link, PACE_IO, "disk full");
        pace__link_close(link);
        atomic_store(&self->flag, 1);
        return PACE_OK;
    }
    await_flag(self, 1);
    pace__link_fail(link, PACE_FAILED, "because of the other");
    pace__link_close(link);
    return PACE_OK;
}

static void a_failure_does_not_need_rank_0(void **state)
{
    job self = {.work = fail_alone};

    (void)state;
    open_job(&self, 2, 2, LONG_NS, LONG_NS);
    uint64_t begin = pace__now_ns();

    assert_ok(run_job(&self));
    assert_true(pace__seconds_since(begin) >= 1.9);
}

/* Rank 0 fails with operations under way of every kind; the other goes on to use them. */
static pace_status fail_in_the_middle(job *self, pace__link *link, int rank)
{
    float *floats = calloc(1000, sizeof *floats);
    pace__request in = {0}, out = {0}, sum = {0};
    pace_status status = PACE_FAILED;

    require(floats != NULL);
    if (rank == 1)
        await_flag(self, 1);
    pace__link_receive(link, 1 - rank, 0, floats, 4000, &in);
    pace__link_send(link, 1 - rank, rank == 0 ? 0 : 1, floats, 4000, &out);
    pace__link_sum(link, floats, 1000, &sum);
    if (rank == 1)
        status = pace__link_wait(link, &sum, "the sum");
    pace__link_fail(link, status, "told");
    pace__link_close(link);
    free(floats);
    if (rank == 0)
        atomic_store(&self->flag, 1);
    return status;
}

static void a_failed_link_lets_go_of_buffers(void **state)
{
    job self = {.work = fail_in_the_middle};

    (void)state;
    open_job(&self, 2, 2, LONG_NS, LONG_NS);
    assert_int_equal(run_job(&self), PACE_FAILED);
    assert_string_equal(said, "");
}

/* Pulses until something is wrong, but not for long. */
static pace_status pulse_until_failed(pace__link *link)
{
    uint64_t begin = pace__now_ns();
    pace_status status;

    while (!(status = pace__link_pulse(link)) && pace__seconds_since(begin) < 5)
        sched_yield();
    return status;
}

/* To rank 0, as one of the messages that links send by themselves. */
static void assert_own_message_fails(int tag, const void *bytes, size_t size, const char *message)
{
    job self = {0};
    pace__request request = {.peer = 0, .tag = tag, .active = true, .bytes = size};
    pace_status status = PACE_OK;

    open_job(&self, 2, 2, LONG_NS, LONG_NS);
    self.links[1]->carrier->send(self.links[1], 0, tag, bytes, size, &request);
    status = pulse_until_failed(self.links[0]);
    assert_failed(status, PACE_BUG, message);
    for (uint64_t begin = pace__now_ns(); pace__now_ns() - begin < 5 * MS;) /* it is not looked at again */
        assert_int_equal(pace__link_pulse(self.links[0]), PACE_BUG);
    for (int i = 0; i < 2; i++) {
        pace__link_fail(self.links[i], PACE_BUG, "told");
        pace__link_close(self.links[i]);
    }
    assert_string_equal(said, "");
}

static void messages_of_links_are_checked(void **state)
{
    pace__notice good = {PACE_OK, "nothing is wrong"};
    char bytes[9] = {1};

    (void)state;
    assert_own_message_fails(PACE__TAG_FAILURE, &good, sizeof good, "a failure of rank 1 that cannot be");
    assert_own_message_fails(PACE__TAG_FAILURE, &(int){PACE_IO}, sizeof(int),
                             "a failure of rank 1 that cannot be");
    assert_own_message_fails(PACE__TAG_ALIVE, bytes, 9,
                             "a message of rank 1 with tag 24 is longer than 8 bytes");
    assert_own_message_fails(PACE__TAG_ALIVE, bytes, 1, "a sign of life of rank 1 that cannot be");
}

/* Who ends a job because of a failure may call it something else; asked again, the link does not. */
static void the_first_failure_stays(void **state)
{
    job self = {0};
    pace__request request = {0};
    char byte;
    bool done;

    (void)state;
    open_job(&self, 1, 1, 20 * MS, 20 * MS);
    pace__link_receive(self.links[0], 0, 0, &byte, 1, &request);
    assert_failed(pace__link_wait(self.links[0], &request, "it"), PACE_LOST,
                  "rank 0 has never been heard of");
    pace__link_fail(self.links[0], PACE_IO, "told");
    assert_int_equal(pace__link_pulse(self.links[0]), PACE_LOST);
    assert_int_equal(pace__link_done(self.links[0], &request, &done), PACE_LOST);
    pace__link_close(self.links[0]);
}

/* In one turn of rank 1's wait: what it sends is taken, and rank 0 ends the job. */
static pace_status take_and_fail(void *user, bool *busy)
{
    job *self = user;
    static char byte;
    static pace__request in;
    bool done;

    *busy = true;
    if (atomic_exchange(&self->flag, 1))
        return PACE_OK;
    pace__link_receive(self->links[0], 1, 0, &byte, 1, &in);
    assert_ok(pace__link_done(self->links[0], &in, &done));
    assert_true(done);
    pace__link_fail(self->links[0], PACE_IO, "told");
    assert_int_equal(pulse_until_failed(self->links[1]), PACE_IO);
    return PACE_OK;
}

static void a_send_that_is_over_is_not_given_up(void **state)
{
    job self = {0};
    pace__request out = {0};
    char byte = 1;

    (void)state;
    open_job(&self, 2, 2, LONG_NS, LONG_NS);
    pace__link_on_idle(self.links[1], take_and_fail, &self);
    pace__link_send(self.links[1], 0, 0, &byte, 1, &out);
    pace__link_settle(self.links[1], &out);
    assert_false(out.active);
    assert_int_equal(self.links[1]->under_way, 0);
    for (int i = 0; i < 2; i++)
        pace__link_close(self.links[i]);
}

/* --- losses --- */

/* Rank 1 falls silent; rank 0 is told by its idle function that it has died. */
typedef struct loser {
    pace__link *link;
    int calls;
} loser;

static pace_status lose_soon(void *user, bool *busy)
{
    loser *self = user;

    (void)busy;
    if (++self->calls == 300)
        pace__link_lose(self->link, 1);
    return PACE_OK;
}

/* Of every kind, and each lets go of its buffer. */
static void a_wait_for_a_lost_peer_ends(void **state)
{
    job self = {0};
    pace__request in = {0}, out = {0}, settled = {0};
    char got = 0, byte = 1;
    bool done;

    (void)state;
    open_job(&self, 3, 3, LONG_NS, LONG_NS);
    pace__link *link = self.links[0];
    loser other = {.link = link};

    pace__link_on_idle(link, lose_soon, &other);
    pace__link_receive(link, 1, 0, &got, 1, &in);
    pace__link_send(link, 1, 0, &byte, 1, &out);
    pace__link_send(link, 1, 1, &byte, 1, &settled);
    assert_false(pace__link_is_lost(link, 1));
    assert_int_equal(pace__link_wait(link, &in, "its weights"), PACE_LOST); /* in the middle of the wait */
    assert_true(pace__link_is_lost(link, 1) && !pace__link_is_lost(link, 2));
    assert_int_equal(pace__link_wait(link, &out, "a message to leave"),
                     PACE_LOST); /* and one that begins later */
    assert_true(in.active && out.active);
    assert_true(pace__link_abandon(link, &in) && pace__link_abandon(link, &out));
    assert_true(!in.active && !out.active);
    assert_true(pace__link_abandon(link, &in)); /* nothing to let go of */
    pace__link_settle(link, &settled);
    assert_false(settled.active);
    pace__link_send(self.links[1], 0, 0, &byte, 1, &out); /* the buffers are nobody's: this goes nowhere */
    assert_ok(pace__link_done(self.links[1], &out, &done));
    assert_true(!done && got == 0);
    pace__link_lose(link, 1); /* twice is once */
    assert_ok(pace__link_pulse(link));
    assert_string_equal(said, "");
    pace__link_on_idle(link, NULL, NULL);
    pace__link_abandon(self.links[1], &out);
    for (int i = 0; i < 3; i++)
        pace__link_close(self.links[i]);
    assert_string_equal(said, "");
}

static void never_cancel(pace__link *link, pace__request *request)
{
    (void)link;
    fail_msg("cancels a message to rank %d", request->peer);
}

/* MPI may wait for ever to cancel a send to the dead. */
static void a_send_to_a_rank_that_is_lost_meanwhile_is_abandoned(void **state)
{
    job self = {0};
    pace__request out = {0};
    char byte = 1;

    (void)state;
    open_job(&self, 2, 2, LONG_NS, LONG_NS);
    pace__link *link = self.links[0];
    loser other = {.link = link};
    const pace__carrier *carrier = link->carrier;
    pace__carrier without_cancel = *carrier;

    without_cancel.cancel = never_cancel;
    link->carrier = &without_cancel;
    pace__link_on_idle(link, lose_soon, &other);
    pace__link_send(link, 1, 0, &byte, 1, &out);
    pace__link_settle(link, &out);
    assert_true(!out.active && pace__link_is_lost(link, 1));
    link->carrier = carrier;
    for (int i = 0; i < 2; i++)
        pace__link_close(self.links[i]);
    assert_string_equal(said, "");
}

/* What had come before it died is taken all the same. */
static void a_message_of_a_lost_peer_counts(void **state)
{
    job self = {0};
    pace__request in = {0}, out = {0};
    int got = 0, number = 5;

    (void)state;
    open_job(&self, 2, 2, LONG_NS, LONG_NS);
    pace__link_receive(self.links[0], 1, 0, &got, sizeof got, &in);
    pace__link_send(self.links[1], 0, 0, &number, sizeof number, &out);
    pace__link_lose(self.links[0], 1);
    assert_ok(pace__link_wait(self.links[0], &in, "it"));
    assert_int_equal(got, 5);
    assert_ok(pace__link_wait(self.links[1], &out, "a send"));
    pace__link_close(self.links[0]);
    pace__link_close(self.links[1]);
}

/* Rank 0 has lost rank 1, and goes on with rank 2 for longer than the deadline: nobody blames the dead. Rank
 * 2 has not been told, but does not wait for it. */
static pace_status go_on_without(job *self, pace__link *link, int rank)
{
    static const int both[] = {1, 2};
    pace__request in = {0};
    int number = 7;
    bool done = false;
    unsigned turns = 0;

    if (rank == 1) {
        send_now(link, 0, 0, &number, sizeof number);
        atomic_store(&self->flag, 1); /* and is silent from here on */
        await_flag(self, 2);
        return PACE_OK;
    }
    if (rank == 2) {
        compute(link, SLOW_NS);
        send_now(link, 0, 0, &number, sizeof number);
        return PACE_OK;
    }
    receive_now(link, 1, 0, &number, sizeof number);
    await_flag(self, 1);
    pace__link_lose(link, 1);
    pace__link_receive(link, 2, 0, &number, sizeof number, &in);
    while (!done) {
        require(pace__link_turn(link, both, 2, "both", &turns) == PACE_OK);
        require(pace__link_turn(link, both, 1, "the dead", &turns) == PACE_OK);
        require(pace__link_done(link, &in, &done) == PACE_OK);
    }
    atomic_store(&self->flag, 2);
    return PACE_OK;
}

static void a_lost_peer_is_not_blamed(void **state)
{
    job self = {.work = go_on_without};

    (void)state;
    open_job(&self, 3, 3, KEPT_NS, LONG_NS);
    uint64_t begin = pace__now_ns();

    assert_ok(run_job(&self));
    assert_true(pace__now_ns() - begin > KEPT_NS);
    for (int i = 0; i < 3; i++)
        pace__link_close(self.links[i]);
    assert_string_equal(said, "");
}

/* Of a rank that has lost another, with a sign of life to it under way that nobody takes. */
static void a_link_with_losses_closes(void **state)
{
    job self = {0};
    pace__request in = {0};
    char byte;

    (void)state;
    open_job(&self, 3, 3, 60 * MS, LONG_NS);
    pace__link_receive(self.links[0], 1, 0, &byte, 1, &in);
    compute(self.links[0], 60 * MS); /* gives signs */
    pace__link_lose(self.links[0], 1);
    assert_true(pace__link_abandon(self.links[0], &in));
    compute(self.links[0], 60 * MS); /* gives no more to that one */
    uint64_t begin = pace__now_ns();

    pace__link_close(self.links[0]);
    assert_true(pace__seconds_since(begin) < 5);
    pace__link_close(self.links[2]);
    pace__link_close(self.links[1]);
    assert_string_equal(said, "");
}

/* Rank 1 comes back when it was given up, and waits for an end that comes late. */
static pace_status come_back(job *self, pace__link *link, int rank)
{
    pace_status status = PACE_OK;
    unsigned turns = 0;
    int number = 1, chief = 0;

    if (rank == 0) {
        receive_now(link, 1, 0, &number, sizeof number);
        pace__link_let_go(link, 1);
        require(pace__link_is_lost(link, 1));
        compute(link, SLOW_NS);
        atomic_store(&self->flag, 1);
        return PACE_OK;
    }
    send_now(link, 0, 0, &number, sizeof number);
    while (!status && atomic_load(&self->flag) == 0)
        status = pace__link_turn(link, &chief, 1, "the end", &turns);
    return status;
}

static void who_is_let_go_can_wait(void **state)
{
    job self = {.work = come_back};

    (void)state;
    open_job(&self, 2, 2, KEPT_NS, LONG_NS);
    assert_ok(run_job(&self));
    assert_false(pace__link_can_dismiss(self.links[0])); /* threads cannot be ended */
    for (int i = 0; i < 2; i++)
        pace__link_close(self.links[i]);
    assert_string_equal(said, "");
}

/* Silence is told without a failure. */
static void silence_can_be_asked_for(void **state)
{
    job self = {0};
    pace__request in = {0};
    char byte = 0;

    (void)state;
    open_job(&self, 2, 2, 60 * MS, 60 * MS);
    pace__link_receive(self.links[0], 1, 0, &byte, 1, &in);
    assert_false(pace__link_is_silent(self.links[0], 1));
    uint64_t until_ns = pace__now_ns() + LONG_NS;

    while (!pace__link_is_silent(self.links[0], 1) && pace__now_ns() < until_ns)
        compute(self.links[0], 10 * MS);
    assert_true(pace__link_is_silent(self.links[0], 1));
    send_now(self.links[1], 0, 0, &byte, 1);
    assert_ok(pace__link_wait(self.links[0], &in, "a byte"));
    assert_false(pace__link_is_silent(self.links[0], 1));
    for (int i = 0; i < 2; i++)
        pace__link_close(self.links[i]);
    assert_string_equal(said, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_that_hangs_is_named),
        cmocka_unit_test(a_peer_that_never_came_has_its_own_deadline),
        cmocka_unit_test(a_wait_for_oneself_ends_too),
        cmocka_unit_test(a_receive_from_any_ends_too),
        cmocka_unit_test(what_a_failed_rank_was_sending_stays_unread),
        cmocka_unit_test(a_slow_peer_is_waited_for),
        cmocka_unit_test(ranks_that_wait_for_each_other_give_up),
        cmocka_unit_test(work_at_the_end_of_a_chain_is_waited_for),
        cmocka_unit_test(silence_counts_only_while_one_listens),
        cmocka_unit_test(one_silent_peer_of_several_is_named),
        cmocka_unit_test(a_failure_reaches_everyone_and_is_told_once),
        cmocka_unit_test(a_failure_does_not_need_rank_0),
        cmocka_unit_test(a_failed_link_lets_go_of_buffers),
        cmocka_unit_test(messages_of_links_are_checked),
        cmocka_unit_test(the_first_failure_stays),
        cmocka_unit_test(a_send_that_is_over_is_not_given_up),
        cmocka_unit_test(a_wait_for_a_lost_peer_ends),
        cmocka_unit_test(a_send_to_a_rank_that_is_lost_meanwhile_is_abandoned),
        cmocka_unit_test(a_message_of_a_lost_peer_counts),
        cmocka_unit_test(a_lost_peer_is_not_blamed),
        cmocka_unit_test(a_link_with_losses_closes),
        cmocka_unit_test(who_is_let_go_can_wait),
        cmocka_unit_test(silence_can_be_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
