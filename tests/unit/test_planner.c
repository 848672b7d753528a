/* What plan is made of: words, factors, predictions, failures. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "plan/calibrate.h"
#include "plan/choose.h"
#include "plan/words.h"

#include <math.h>
#include <paceline/kernels.h>
#include <string.h>

/* Hosts with two cores each, all that a row needs. */
static pace__calibration clicks(void)
{
    return (pace__calibration){.input = {.work = {.order = pace__steps_make(2000000, 1000),
                                                  .steps = 2000,
                                                  .entries = 39,
                                                  .row_ns = 100,
                                                  .by_columns = true,
                                                  .flows = true,
                                                  .one_thread = true,
                                                  .curve = {{1, 40}, {256, 3048}, {16384, 63555}},
                                                  .points = 3,
                                                  .keys_all = 2e6,
                                                  .dim = 1},
                                         .machine = {.cores = 2, .link_bytes_s = 125e6, .latency_s = 60e-6},
                                         .costs = pace__unit_costs_of(PACE_KERNELS_V4)},
                               .columns = 1,
                               .steps = 1,
                               .rows = 2e6};
}

static pace__setup with(int mode, int workers, int ps, uint64_t batch)
{
    return (pace__setup){.mode = mode,
                         .workers = workers,
                         .ps = ps,
                         .hosts = workers + ps,
                         .threads = 1,
                         .batch = batch,
                         .exact = mode != PACE_MODE_LOCAL_SGD};
}

static void lists_are_read(void **state)
{
    pace__number_list numbers;

    (void)state;
    assert_int_equal(pace__words_numbers("workers", "1,2,1k", 1, 2000, NULL, &numbers), PACE_OK);
    assert_int_equal(numbers.count, 3);
    assert_int_equal(numbers.items[2], 1000);
    assert_int_equal(pace__words_numbers("workers", "0", 1, 10, NULL, &numbers), PACE_USAGE);
    assert_int_equal(pace__words_numbers("workers", "1,,2", 1, 10, NULL, &numbers), PACE_USAGE);
    assert_int_equal(pace__words_numbers("workers", "", 1, 10, NULL, &numbers), PACE_USAGE);
    assert_int_equal(pace__words_modes("local,ps-sync", NULL, &numbers), PACE_OK);
    assert_int_equal(numbers.items[1], PACE_MODE_PS_SYNC);
    assert_int_equal(pace__words_modes("auto", NULL, &numbers), PACE_USAGE);
    assert_int_equal(pace__words_modes("synchronous", NULL, &numbers), PACE_USAGE);
}

static void speeds_and_times_have_units(void **state)
{
    static const char *const wrong[] = {"1",        "gbit",   "-1gbit",  "0mbit",
                                        "nan gbit", "1 gbit", "infgbit", "50us"};
    double value;

    (void)state;
    assert_int_equal(pace__words_net("100mbit", NULL, &value), PACE_OK);
    assert_float_equal(value, 12.5e6, 1e-6);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(pace__words_net(wrong[i], NULL, &value), PACE_USAGE);
    assert_int_equal(pace__words_latency("50us", NULL, &value), PACE_OK);
    assert_float_equal(value, 50e-6, 1e-12);
    assert_int_equal(pace__words_latency("50", NULL, &value), PACE_USAGE);
}

static pace_status price(pace__hourly *prices, const char *first, const char *second)
{
    const char *items[] = {first, second};

    return pace__words_prices(&(pace_texts){items, second ? 2 : 1}, NULL, prices);
}

static void prices_are_of_one_currency(void **state)
{
    pace__hourly prices;

    (void)state;
    assert_int_equal(price(&prices, "0.35EUR", NULL), PACE_OK);
    assert_float_equal(prices.worker, 0.35, 1e-9);
    assert_float_equal(prices.ps, 0.35, 1e-9);
    assert_string_equal(prices.currency, "EUR");
    assert_int_equal(price(&prices, "0.35EUR", "ps=0.2EUR"), PACE_OK);
    assert_float_equal(prices.ps, 0.2, 1e-9);
    assert_int_equal(price(&prices, "0.35EUR", "ps=0.2USD"), PACE_USAGE);
    assert_int_equal(price(&prices, "0.35", "ps=0.2USD"), PACE_USAGE);
    assert_int_equal(price(&prices, "ps=0.2", NULL), PACE_USAGE);
    assert_int_equal(price(&prices, "-1", NULL), PACE_USAGE);
    assert_int_equal(price(&prices, "cheap", NULL), PACE_USAGE);
    assert_int_equal(price(&prices, "1,5EUR", NULL), PACE_USAGE);
}

/* Costs that are scaled by what was found say what was measured. */
static void a_factor_is_found_again(void **state)
{
    pace__calibration known = clicks();
    pace__setup setup = with(PACE_MODE_PS_SYNC, 4, 1, 1000);
    pace__forecast_input slow = known.input;

    (void)state;
    pace__costs_scale(&slow, 1, 2.5);
    double rows_s = pace__forecast_of(&slow, &setup).rows_s;

    assert_float_equal(pace__factor_of(&known.input, &setup, false, rows_s), 2.5, 1e-6);
    setup = with(PACE_MODE_LOCAL, 1, 0, 512);
    slow = known.input;
    pace__costs_scale(&slow, 0.3, 1);
    rows_s = pace__forecast_of(&slow, &setup).rows_s;
    assert_float_equal(pace__factor_of(&known.input, &setup, true, rows_s), 0.3, 1e-6);
}

static void more_machines_and_faster_links_are_no_slower(void **state)
{
    pace__calibration known = clicks();
    static const int modes[] = {PACE_MODE_ALLREDUCE, PACE_MODE_PS_SYNC, PACE_MODE_PS_ASYNC};

    (void)state;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        pace__setup setup = with(modes[i], 8, modes[i] == PACE_MODE_ALLREDUCE ? 0 : 2, 10000);
        double usual = pace__predict(&known, &setup).rows_s;

        known.input.machine.link_bytes_s /= 10;
        assert_true(pace__predict(&known, &setup).rows_s <= usual);
        known.input.machine.link_bytes_s *= 100;
        assert_true(pace__predict(&known, &setup).rows_s >= usual);
        known.input.machine.link_bytes_s /= 10;
    }
}

static void a_prediction_adds_up(void **state)
{
    pace__calibration known = clicks();
    pace__setup setup = with(PACE_MODE_PS_SYNC, 4, 1, 1000), alone = pace__setup_alone(&setup);

    (void)state;
    known.spread = 0.25;
    known.still_s = 3;
    pace__prediction made = pace__predict(&known, &setup);

    assert_float_equal(made.epoch_s, 2e6 / made.rows_s, 1e-9);
    assert_float_equal(made.seconds, made.epoch_s + 3, 1e-9);
    assert_float_equal(made.low * 1.25, made.rows_s, 1e-3);
    assert_float_equal(made.high, made.rows_s * 1.25, 1e-3);
    assert_float_equal(made.rows_s * made.forecast.step_s, 1000, 1e-6);
    assert_float_equal(pace__predict(&known, &alone).efficiency, 1, 1e-9);
}

/* The words are those of verdicts. */
static void bottlenecks_are_those_that_were_made(void **state)
{
    pace__calibration known = clicks();
    pace__setup setup = with(PACE_MODE_PS_SYNC, 4, 1, 20);

    (void)state;
    assert_int_equal(pace__predict(&known, &setup).cause, PACE__CAUSE_STEPS);
    setup = with(PACE_MODE_PS_SYNC, 4, 1, 10000);
    known.input.machine.link_bytes_s = 1e6;
    assert_int_equal(pace__predict(&known, &setup).cause, PACE__CAUSE_NETWORK);
    known = clicks();
    known.input.costs.shard_key = 1000;
    assert_int_equal(pace__predict(&known, &setup).cause, PACE__CAUSE_SERVER);
    known = clicks();
    known.input.work.row_ns = 1e6;
    assert_int_equal(pace__predict(&known, &setup).cause, PACE__CAUSE_COMPUTE);
}

static void failures_cost_what_is_lost(void **state)
{
    (void)state;
    assert_float_equal(pace__seconds_with_failures(1000, 8, 0, 60), 1000, 0);
    assert_float_equal(pace__seconds_with_failures(1000, 10, 1e5, 90), 1000 / (1 - 10 / 1e5 * 50), 1e-9);
    assert_true(isinf(pace__seconds_with_failures(1e6, 1000, 1e5, 0))); /* it never comes to an end */
    assert_true(pace__seconds_with_failures(1e4, 10, 1e6, 600) <
                pace__seconds_with_failures(1e4, 10, 1e6, 0));
}

/* By what the job was asked for, not by the one checkpoint at the end of a short run. */
static void checkpoints_are_as_often_as_was_asked_for(void **state)
{
    pace__calibration known = clicks();

    (void)state;
    assert_float_equal(pace__save_every_s(&known, 1000, 100), 0, 0);
    known.save_every_s = 300;
    assert_float_equal(pace__save_every_s(&known, 1000, 100), 300, 0);
    known.save_every_steps = 50;
    assert_float_equal(pace__save_every_s(&known, 1000, 100), 5, 1e-9);
    assert_float_equal(pace__save_every_s(&known, 10, 100), 300, 0);
    known.save_every_s = 0;
    assert_float_equal(pace__save_every_s(&known, 10, 100), 500, 1e-9);
}

static pace__measured measured(const double *seconds, size_t count)
{
    pace__step_record steps[64] = {{.t = 1}};
    pace__mark start = {.kind = PACE__MARK_START, .t = 0.5};
    pace__history history = {.step = steps, .step_count = count + 1, .mark = &start, .mark_count = 1};

    for (size_t i = 0; i < count; i++)
        steps[i + 1] = (pace__step_record){.t = steps[i].t + seconds[i], .rows = 100 * (i + 1)};
    return pace__measure(&history, false);
}

/* The start, and what took several times as long as usual, count for nothing. */
static void a_run_is_measured_once_it_is_warm(void **state)
{
    double seconds[32];

    (void)state;
    for (size_t i = 0; i < 32; i++)
        seconds[i] = i < 4 ? 5 : i == 20 ? 30 : i % 2 ? 0.9 : 1.1;
    pace__measured was = measured(seconds, 32);

    assert_float_equal(was.rows_s, 100, 1.5);
    assert_true(was.spread > 0.02 && was.spread < 0.08);
    was = measured(seconds, 0);
    assert_true(was.rows_s == 0 && isinf(was.spread));
}

/* More processes only if they are faster beyond what predictions are off; and no more than that takes. */
static void more_processes_have_to_be_worth_it(void **state)
{
    pace__choice choices[] = {{100, 1}, {120, 2}, {129, 4}, {90, 8}};
    pace__chosen chosen = pace__choose_job(choices, 4);

    (void)state;
    assert_int_equal(chosen.alone, 0);
    assert_int_equal(chosen.fastest, 2);
    assert_int_equal(chosen.taken, 0); /* 29 % are less than predictions have been off */
    choices[2].rows_s = 200;
    assert_int_equal(pace__choose_job(choices, 4).taken, 2);
    choices[1].rows_s = 195; /* nearly as fast, by half as many */
    assert_int_equal(pace__choose_job(choices, 4).taken, 1);
    choices[3].rows_s = 260;
    assert_int_equal(pace__choose_job(choices, 4).taken, 3);
    assert_int_equal(pace__choose_job(choices, 1).taken, 0);
    assert_int_equal(pace__choose_job(choices + 1, 3).alone, 0);
    choices[3].processes = 1; /* of as many processes the faster one */
    assert_int_equal(pace__choose_job(choices, 4).alone, 3);
}

/* Two records say little, however alike they are. */
static void few_records_are_not_trusted(void **state)
{
    pace__step_record steps[] = {{.t = 1, .rows = 100}, {.t = 2, .rows = 200}, {.t = 3.1, .rows = 300}};
    pace__history history = {.step = steps, .step_count = 3, .last_t = 3.1};
    pace__measured was = pace__measure(&history, true);

    (void)state;
    assert_int_equal(was.records, 2);
    assert_true(was.spread > 0.5 && was.spread < 0.7); /* 12.7 x .0476 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_read),
        cmocka_unit_test(speeds_and_times_have_units),
        cmocka_unit_test(prices_are_of_one_currency),
        cmocka_unit_test(a_factor_is_found_again),
        cmocka_unit_test(more_machines_and_faster_links_are_no_slower),
        cmocka_unit_test(a_prediction_adds_up),
        cmocka_unit_test(bottlenecks_are_those_that_were_made),
        cmocka_unit_test(failures_cost_what_is_lost),
        cmocka_unit_test(checkpoints_are_as_often_as_was_asked_for),
        cmocka_unit_test(a_run_is_measured_once_it_is_warm),
        cmocka_unit_test(more_processes_have_to_be_worth_it),
        cmocka_unit_test(few_records_are_not_trusted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
