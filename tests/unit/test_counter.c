/* The counter of rows and who asks it: rows that come again, reports and asks that cannot be. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "net/link.h"
#include "ps/counter.h"
#include "ps/wire.h"

#include "support.h"

static pace_status ask_counter(pace__ask ask, size_t bytes, int worker, bool *answered)
{
    pace__link_options options = {60000000000u, 60000000000u, .log = &said_log};
    static pace__tickets tickets;
    pace__steps steps = pace__steps_make(20, 8);
    pace__link *links[3];
    pace__counter *counter;
    pace__request send = {0}, receive = {0};
    pace__ticket ticket;
    bool busy = false, left;

    said_clear();
    assert_ok(pace__link_open_threads(3, 2, &options, links));
    pace__tickets_init(&tickets, &steps, 2, 0, 100, 0, (uint64_t[2]){0, 0});
    assert_ok(pace__counter_create(links[0], 2, &tickets, &said_log, &counter));
    pace__link_receive(links[worker], 0, PACE__TAG_TICKET, &ticket, sizeof ticket, &receive);
    pace__link_send(links[worker], 0, PACE__TAG_ASK, &ask, bytes, &send);
    pace_status status = pace__counter_poll(counter, &busy);

    assert_true(busy);
    assert_ok(pace__link_done(links[worker], &send, &left));
    assert_ok(pace__link_done(links[worker], &receive, answered));
    assert_true(!*answered || (ticket.kind == PACE__TICKET_ROWS && ticket.rows == 4));
    pace__link_cancel(links[worker], &receive);
    pace__counter_free(counter);
    for (int rank = 0; rank < 3; rank++)
        pace__link_close(links[rank]);
    return status;
}

static void asks_that_cannot_be(void **state)
{
    pace__ask good = {.flags = PACE__ASK_TICKET}, rows = {PACE__ASK_TICKET, 1, {{0, 4}}};
    pace__ask back = {PACE__ASK_TICKET, 1, {{4, 0}}}, many = {PACE__ASK_TICKET, PACE__ASK_REPORTS_MAX + 1};
    pace__ask passes = {.flags = PACE__ASK_PASS};
    bool answered;

    (void)state;
    assert_ok(ask_counter(good, sizeof good, 1, &answered));
    assert_true(answered);
    assert_failed(ask_counter(rows, sizeof rows, 1, &answered), PACE_BUG,
                  "rank 1 reports rows 0 to 4, which it does not have");
    assert_false(answered);
    assert_failed(ask_counter(back, sizeof back, 1, &answered), PACE_BUG, "rank 1 reports rows 4 to 0");
    assert_failed(ask_counter(many, sizeof many, 1, &answered), PACE_BUG, "rank 1 asks for rows in a way");
    assert_failed(ask_counter(good, sizeof good - 1, 1, &answered), PACE_BUG,
                  "rank 1 asks for rows in a way");
    assert_failed(ask_counter(good, sizeof good, 2, &answered), PACE_BUG, "rank 2 asks for rows in a way");
    assert_failed(ask_counter(passes, sizeof passes, 1, &answered), PACE_BUG,
                  "rank 1 asks for rows in a way");
    assert_ok(ask_counter(passes, sizeof passes, 0, &answered)); /* the chief may */
}

/* Of slices there is nothing to report, and the chief passes only gates at which it stands. */
static void asks_for_slices_that_cannot_be(void **state)
{
    static const struct {
        pace__ask ask;
        int worker;
        const char *why;
    } asks[] = {
        {{PACE__ASK_TICKET, 1, {{0, 4}}}, 1, "rank 1 asks for rows in a way that cannot be"},
        {{.flags = PACE__ASK_GATE}, 1, "rank 1 asks for rows in a way that cannot be"},
        {{.flags = PACE__ASK_PASS}, 0, "rank 0 passes a gate at which nobody stands"},
        {{.flags = PACE__ASK_END}, 0, "rank 0 passes a gate at which nobody stands"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
        pace__link_options options = {60000000000u, 60000000000u, .log = &said_log};
        pace__slices_plan plan = {.slices = 1, .workers = 2, .end = 5, .gated = true};
        pace__link *links[2];
        pace__slices slices;
        pace__counter *counter;
        pace__request send = {0};
        bool busy = false, left;

        said_clear();
        assert_true(pace__slices_init(&slices, &plan, 0));
        assert_ok(pace__link_open_threads(2, 2, &options, links));
        assert_ok(pace__counter_create_for_slices(links[0], 2, &slices, &said_log, &counter));
        pace__link_send(links[asks[i].worker], 0, PACE__TAG_ASK, &asks[i].ask, sizeof asks[i].ask, &send);
        assert_failed(pace__counter_poll(counter, &busy), PACE_BUG, asks[i].why);
        assert_ok(pace__link_done(links[asks[i].worker], &send, &left));
        pace__counter_free(counter);
        pace__slices_release(&slices);
        for (int rank = 0; rank < 2; rank++)
            pace__link_close(links[rank]);
    }
}

/* Asks for a ticket on behalf of a worker; true if one has come. */
static bool ask_for_rows(pace__asker *asker, pace__counter *counter, pace__ticket *ticket)
{
    bool busy = false, got;

    if (!asker->waiting)
        assert_ok(pace__asker_send(asker, PACE__ASK_TICKET));
    for (int i = 0; i < 4; i++)
        assert_ok(pace__counter_poll(counter, &busy));
    assert_ok(pace__asker_poll(asker, &got, ticket));
    return got;
}

/* Two workers in step. The second dies with the rows 4 to 8: whoever waits gets them, and its report comes
 * too late. */
static void rows_of_a_lost_worker_come_again(void **state)
{
    pace__link_options options = {60000000000u, 60000000000u, .log = &said_log};
    static pace__tickets tickets;
    pace__steps steps = pace__steps_make(20, 8);
    pace__link *links[3];
    pace__counter *counter;
    pace__asker askers[2];
    pace__ticket ticket;
    bool busy = false;

    (void)state;
    said_clear();
    assert_ok(pace__link_open_threads(3, 2, &options, links));
    pace__tickets_init(&tickets, &steps, 2, 0, 100, 0, (uint64_t[2]){0, 0});
    assert_ok(pace__counter_create(links[2], 2, &tickets, &said_log, &counter));
    for (int worker = 0; worker < 2; worker++) {
        pace__asker_init(&askers[worker], links[worker], 2);
        assert_true(ask_for_rows(&askers[worker], counter, &ticket));
        assert_true(ticket.kind == PACE__TICKET_ROWS && ticket.first == 4 * (uint64_t)worker);
    }
    pace__asker_done(&askers[0], 0, 4);
    assert_false(ask_for_rows(&askers[0], counter, &ticket)); /* the next step waits for the rows 4 to 8 */
    pace__asker_done(&askers[1], 4, 4);
    assert_ok(pace__asker_send(&askers[1], PACE__ASK_TICKET)); /* on its way when the counter hears */
    pace__link_lose(links[2], 1);
    assert_int_equal(pace__counter_lose(counter, 1), 4);
    assert_ok(pace__counter_poll(counter, &busy));
    assert_true(ask_for_rows(&askers[0], counter, &ticket));
    assert_true(ticket.kind == PACE__TICKET_ROWS && ticket.first == 4 && ticket.rows == 4 &&
                ticket.step == 0);
    pace__asker_done(&askers[0], 4, 4);
    assert_true(ask_for_rows(&askers[0], counter, &ticket));
    assert_true(ticket.kind == PACE__TICKET_ROWS && ticket.first == 8 && ticket.step == 1);
    assert_string_equal(said, "");
    pace__counter_free(counter);
    pace__link_lose(links[1], 2);
    for (int worker = 0; worker < 2; worker++)
        pace__asker_close(&askers[worker]);
    for (int rank = 0; rank < 3; rank++)
        pace__link_close(links[rank]);
}

/* A worker that takes rows and reports none: not what the counter can keep in mind, and no reason to abort. */
static void a_worker_that_reports_nothing(void **state)
{
    pace__link_options options = {60000000000u, 60000000000u, .log = &said_log};
    static pace__tickets tickets;
    pace__steps steps = pace__steps_make(20, 8);
    pace__link *links[2];
    pace__counter *counter;
    pace__asker asker;
    pace__ticket ticket;
    bool busy = false;

    (void)state;
    said_clear();
    assert_ok(pace__link_open_threads(2, 1, &options, links));
    pace__tickets_init(&tickets, &steps, 1, 0, 2 * PACE__INTERVALS_MAX, PACE__STALENESS_UNBOUNDED,
                       (uint64_t[2]){0, 0});
    assert_ok(pace__counter_create(links[1], 1, &tickets, &said_log, &counter));
    pace__asker_init(&asker, links[0], 1);
    for (int i = 0; i < PACE__INTERVALS_MAX; i++)
        assert_true(ask_for_rows(&asker, counter, &ticket) && ticket.kind == PACE__TICKET_ROWS);
    assert_ok(pace__asker_send(&asker, PACE__ASK_TICKET));
    assert_failed(pace__counter_poll(counter, &busy), PACE_BUG,
                  "rank 0 asks for rows, but 8192 ranges are not reported yet: more than workers can hold");
    pace__counter_free(counter);
    pace__asker_close(&asker);
    for (int rank = 0; rank < 2; rank++)
        pace__link_close(links[rank]);
}

/* Reports that could not be sent because the job has failed make room for others, which nobody will hear. */
static void reports_of_a_failed_job(void **state)
{
    pace__link_options options = {60000000000u, 60000000000u, .log = &said_log};
    pace__link *links[2];
    pace__asker asker;

    (void)state;
    said_clear();
    assert_ok(pace__link_open_threads(2, 1, &options, links));
    pace__asker_init(&asker, links[1], 0);
    for (uint64_t i = 0; !pace__asker_full(&asker); i++)
        pace__asker_done(&asker, 4 * i, 4);
    assert_ok(pace__asker_send(&asker, 0)); /* nobody receives it */
    for (uint64_t i = 0; !pace__asker_full(&asker); i++)
        pace__asker_done(&asker, 100 + 4 * i, 4);
    pace__link_fail(links[0], PACE_IO, "told");
    assert_int_equal(pace__asker_send(&asker, 0), PACE_IO);
    pace__asker_done(&asker, 200, 4);
    assert_int_equal(asker.sent.flags, 0); /* it is still being sent */
    assert_int_equal(asker.sent.reports, PACE__ASK_REPORTS_MAX);
    pace__asker_close(&asker);
    for (int rank = 0; rank < 2; rank++)
        pace__link_close(links[rank]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_that_cannot_be),
        cmocka_unit_test(asks_for_slices_that_cannot_be),
        cmocka_unit_test(rows_of_a_lost_worker_come_again),
        cmocka_unit_test(a_worker_that_reports_nothing),
        cmocka_unit_test(reports_of_a_failed_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
