/* How fast jobs are expected to be: against runs that were measured, and the shape of it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "forecast/forecast.h"

#include <math.h>
#include <paceline/kernels.h>

static pace__forecast_input clicks(void)
{
    return (pace__forecast_input){.work = {.order = pace__steps_make(2000000, 512),
                                           .steps = 3907,
                                           .entries = 39,
                                           .row_ns = 190,
                                           .by_columns = true,
                                           .flows = true,
                                           .one_thread = true,
                                           .curve = {{1024, 7579}, {4096, 20000}},
                                           .points = 2,
                                           .keys_all = 1.9e6,
                                           .dim = 1,
                                           .dense = 1},
                                  .machine = {.cores = 2, .link_bytes_s = 125e6, .latency_s = 60e-6},
                                  .costs = pace__unit_costs_of(PACE_KERNELS_V4)};
}

static pace__forecast_input network(void)
{
    pace__forecast_input made = clicks();

    made.work.by_columns = made.work.flows = made.work.one_thread = false;
    made.work.row_ns = 1e6;
    made.work.points = 0;
    made.work.dim = 64;
    made.work.dense = 130000;
    return made;
}

static double rate(const pace__forecast_input *in, pace__setup setup)
{
    return pace__forecast_of(in, &setup).rows_s;
}

static void keys_follow_the_curve(void **state)
{
    pace__workload work = {.curve = {{1, 40}, {25, 500}, {100, 1000}}, .points = 3, .keys_all = 5000};

    (void)state;
    assert_float_equal(pace__workload_keys(&work, 100), 1000, 1e-6);
    assert_float_equal(pace__workload_keys(&work, 400), 2000, 1e-6);
    assert_float_equal(pace__workload_keys(&work, 1e6), 5000, 1e-6); /* there are no more */
    assert_float_equal(pace__workload_keys(&work, 0.5), 20, 1e-6);
    assert_float_equal(pace__workload_keys(&work, 5), sqrt(40 * 500), 1e-6);
    work.points = 0;
    assert_true(pace__workload_keys(&work, 100) == 0);
}

/* A step without messages is its rows; twice the cores are nearly twice as fast. */
static void one_process_computes(void **state)
{
    pace__forecast_input in = network();
    pace__setup setup = {.mode = PACE_MODE_LOCAL, .workers = 1, .hosts = 1, .threads = 1, .batch = 128};
    double one, two;

    (void)state;
    in.work.dense = 0;
    one = rate(&in, setup);
    assert_float_equal(one, 1000, 1e-6);
    setup.threads = 2;
    two = rate(&in, setup);
    assert_true(two > 1.8 * one && two <= 2 * one);
    setup.threads = 8; /* there are two cores */
    assert_float_equal(rate(&in, setup), two, 1e-9);
    in.machine.cores = 0.25;
    assert_float_equal(rate(&in, setup), 250, 1e-6);
}

/* Networks that compute for long scale; those that are sent for longer than they compute do not. */
static void links_are_shared(void **state)
{
    pace__forecast_input in = network();
    pace__setup one = {.mode = PACE_MODE_LOCAL, .workers = 1, .hosts = 1, .threads = 1, .batch = 128},
                many = {.mode = PACE_MODE_ALLREDUCE, .workers = 8, .hosts = 8, .threads = 1, .batch = 128};

    (void)state;
    assert_true(rate(&in, many) > 4 * rate(&in, one) && rate(&in, many) < 8 * rate(&in, one));
    in.machine.link_bytes_s = 1e6;
    assert_true(rate(&in, many) < rate(&in, one));
    assert_true(pace__forecast_of(&in, &many).network_s > pace__forecast_of(&in, &many).compute_s);
    many.hosts = 1; /* no link, but two cores for eight */
    assert_true(rate(&in, many) < 2 * rate(&in, one));
}

/* Workers on one machine share its cores, whatever they exchange. */
static void cores_are_shared(void **state)
{
    pace__forecast_input in = clicks();

    (void)state;
    for (int mode = PACE_MODE_ALLREDUCE; mode <= PACE_MODE_LOCAL_SGD; mode++) {
        pace__setup two = {.mode = mode, .workers = 2, .hosts = 1, .threads = 1, .batch = 10000},
                    eight = {.mode = mode, .workers = 8, .hosts = 1, .threads = 1, .batch = 10000};

        assert_true(rate(&in, eight) < 1.3 * rate(&in, two));
    }
}

/* Half the bytes are less than half of the time, but less. */
static void narrow_wires_help_slow_links(void **state)
{
    pace__forecast_input in = clicks();
    pace__setup wide = {.mode = PACE_MODE_PS_SYNC, .workers = 4, .hosts = 4, .threads = 1, .batch = 10000},
                narrow = wide;

    (void)state;
    narrow.narrow = true;
    in.machine.link_bytes_s = 1e6;
    assert_true(rate(&in, narrow) > 1.1 * rate(&in, wide) && rate(&in, narrow) < 2 * rate(&in, wide));
    wide.mode = narrow.mode = PACE_MODE_LOCAL_SGD;
    assert_true(rate(&in, narrow) > 1.3 * rate(&in, wide) && rate(&in, narrow) < 2 * rate(&in, wide));
}

static void merging_pays_on_long_epochs(void **state)
{
    pace__forecast_input in = clicks();
    pace__setup one = {.mode = PACE_MODE_LOCAL, .workers = 1, .hosts = 1, .threads = 1, .batch = 512},
                eight = {.mode = PACE_MODE_LOCAL_SGD, .workers = 8, .hosts = 8, .threads = 1, .batch = 512};

    (void)state;
    in.work.order = pace__steps_make(100000000, 512);
    in.work.steps = in.work.order.per_epoch;
    assert_true(rate(&in, eight) > 3 * rate(&in, one) && rate(&in, eight) < 8 * rate(&in, one));
    in.work.order = pace__steps_make(100000, 512);
    in.work.steps = in.work.order.per_epoch;
    assert_true(rate(&in, eight) < 2 * rate(&in, one));
    eight.workers = 1; /* nobody to merge with */
    assert_float_equal(rate(&in, eight), rate(&in, one), 1e-6);
}

/* Catching up with penalties is most of the block rule's time. */
static void penalties_take_time(void **state)
{
    pace__forecast_input in = clicks();
    pace__setup one = {.mode = PACE_MODE_LOCAL, .workers = 1, .hosts = 1, .threads = 1, .batch = 512};
    double without = rate(&in, one);

    (void)state;
    in.work.penalised = true;
    assert_true(rate(&in, one) < without / 4);
}

/* Nothing is said of differences that forecasts cannot tell. */
static void margins_are_kept(void **state)
{
    (void)state;
    assert_true(pace__forecast_is_slower(0.99 * (1 - PACE__FORECAST_MARGIN), 1));
    assert_false(pace__forecast_is_slower(1.01 * (1 - PACE__FORECAST_MARGIN), 1));
    assert_false(pace__forecast_is_slower(2, 1));
}

static void rates_have_two_digits(void **state)
{
    static const struct {
        double rows_s;
        const char *text;
    } rates[] = {{0.234, "0.23"},       {5.43, "5.4"},           {838, "840"},
                 {999999, "1 million"}, {2.44e6, "2.4 million"}, {1.437e8, "140 million"}};
    char text[PACE__RATE_TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        assert_string_equal(pace__rate_words(rates[i].rows_s, text), rates[i].text);
}

/* Rounds of more steps send less; with one step each they gain nothing beside sums of gradients. */
static void averaging_pays_on_slow_links(void **state)
{
    pace__forecast_input in = network();
    pace__setup setup = {
        .mode = PACE_MODE_LOCAL_SGD, .workers = 8, .hosts = 8, .threads = 2, .batch = 512, .exact = true};
    pace__setup reduced = setup;

    (void)state;
    reduced.mode = PACE_MODE_ALLREDUCE;
    in.work.state = 1;
    in.machine.link_bytes_s = 1.25e6;
    assert_true(rate(&in, setup) > 3 * rate(&in, reduced));
    in.work.exchange = 64;
    assert_true(rate(&in, setup) < 1.05 * rate(&in, reduced));
    in.work.state = 3; /* of Adam */
    double one_step = rate(&in, setup);

    in.work.exchange = 640;
    assert_true(rate(&in, setup) > 3 * one_step);
    in.work.steps = 1; /* by itself, the first step is averaged, too */
    assert_float_equal(rate(&in, setup), one_step, one_step * 0.01);
}

/* What is known may come from a run of other steps: as many rows in steps of its own are what a job has. */
static void steps_are_the_jobs_own(void **state)
{
    pace__forecast_input in = network();
    pace__setup setup = {
        .mode = PACE_MODE_LOCAL_SGD, .workers = 8, .hosts = 8, .threads = 1, .batch = 512, .exact = true};

    (void)state;
    in.work.state = 1;
    in.machine.link_bytes_s = 1.25e6;
    in.work.order = pace__steps_make(2000000, 512);
    in.work.steps = 40;
    double own = rate(&in, setup);

    in.work.order = pace__steps_make(2000000, 128);
    in.work.steps = 160;
    assert_float_equal(rate(&in, setup), own, 1e-9 * own);
    in.work.steps = 7;
    setup.steps = 40;
    assert_float_equal(rate(&in, setup), own, 1e-9 * own);
    setup.steps = 400; /* longer rounds: fewer flushes for a row */
    assert_true(rate(&in, setup) > 2 * own);
}

/* Rows behind the start, which all workers train, are trained by one each. */
static void a_stretch_may_leave_out_the_start(void **state)
{
    pace__forecast_input in = clicks();
    pace__setup setup = {.mode = PACE_MODE_LOCAL_SGD, .workers = 8, .hosts = 8, .threads = 1, .batch = 512};

    (void)state;
    in.machine.link_bytes_s = 1e12;
    in.costs.merged_key = in.costs.hot_key = 0; /* merging costs nothing */
    double whole = rate(&in, setup);

    setup.to = 2000000;
    assert_float_equal(rate(&in, setup), whole, 1e-9 * whole);
    setup.from = 31744; /* 62 steps: a 64th of the rows, in whole steps */
    assert_true(rate(&in, setup) > 1.05 * whole && rate(&in, setup) < 1.3 * whole);
    setup.from = setup.to = 1000000; /* nothing: as if it was not said */
    assert_true(rate(&in, setup) > 0);
}

/* Hosts that stand still for 6 ms of 7: who waits for two servers waits for the later one. */
static void the_last_of_several_servers_counts(void **state)
{
    pace__forecast_input in = clicks();
    pace__setup one = {.mode = PACE_MODE_PS_SYNC,
                       .workers = 4,
                       .ps = 1,
                       .hosts = 5,
                       .threads = 1,
                       .batch = 100,
                       .exact = true},
                two = one;

    (void)state;
    in.machine.cores = 0.15;
    in.machine.pause_s = 6e-3;
    two.ps = 2;
    two.hosts = 6;
    assert_true(rate(&in, two) < 0.9 * rate(&in, one));
    in.machine.cores = 1; /* no slices */
    in.machine.pause_s = 0;
    assert_true(rate(&in, two) > 0.9 * rate(&in, one));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_follow_the_curve),
        cmocka_unit_test(averaging_pays_on_slow_links),
        cmocka_unit_test(one_process_computes),
        cmocka_unit_test(links_are_shared),
        cmocka_unit_test(cores_are_shared),
        cmocka_unit_test(narrow_wires_help_slow_links),
        cmocka_unit_test(merging_pays_on_long_epochs),
        cmocka_unit_test(penalties_take_time),
        cmocka_unit_test(margins_are_kept),
        cmocka_unit_test(rates_have_two_digits),
        cmocka_unit_test(steps_are_the_jobs_own),
        cmocka_unit_test(a_stretch_may_leave_out_the_start),
        cmocka_unit_test(the_last_of_several_servers_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
