/* Shares of steps, in jobs whose ranks are threads, between which a message lasts until it is received: what was decided, or
 * recorded, reaches everyone, and nobody is told of steps that never come. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "thinned.h"
#include "trials.h"

#include "run/shares.h"

#define WORKERS  3
#define RECORDED 400 /* steps, more than any job here has */

static const trial trials[] = {
    {PACE_MODEL_LOGREG, "clicks", 20, 0},
    {PACE_MODEL_RNN, "texts", 12, 0}, /* whose rows are dealt out by words */
    {PACE_MODEL_CNN, "pictures", BATCH, 0},
};
#define TRIALS (sizeof trials / sizeof *trials)

static const layout layouts[] = {{PACE_MODE_ALLREDUCE, WORKERS, -1, -1, false},
                                 {PACE_MODE_PS_SYNC, WORKERS, 0, -1, false},
                                 {PACE_MODE_PS_SYNC, WORKERS, 1, -1, true}};
#define LAYOUTS (sizeof layouts / sizeof *layouts)

/* The record of a run in which every step is divided in another way: some have no rows, others all of them. */
static void record(void **state, uint32_t batch)
{
    pace__divisions divisions = {0};
    uint32_t random = 1;

    for (uint64_t step = 0; step < RECORDED; step++) {
        random = random * 1664525 + 1013904223;
        uint32_t first = (random >> 8) % (batch + 1), second = (random >> 16) % (batch + 1 - first);

        assert_true(pace__divisions_add(&divisions, step, WORKERS,
                                        (uint32_t[]){first, second, batch - first - second}));
    }
    assert_ok(pace__shares_write(in(state, "other/shares.jsonl"), &divisions, &said_log));
    pace__divisions_release(&divisions);
}

/* Stopped and resumed, too; the record goes on far behind the last step. */
static void records_are_repeated_whole_or_in_part(void **state)
{
    for (size_t t = 0; t < TRIALS; t++) {
        pace_train_config config = config_of(state, &trials[t]), other = config;
        char balance[4096];

        other.run = in(state, "other");
        other.length.steps = 1;
        train(&other);
        record(state, (uint32_t)trials[t].batch);
        snprintf(balance, sizeof balance, "replay:%s", in(state, "other"));
        config.cluster.balance = balance;
        for (size_t i = 0; i < LAYOUTS; i++) {
            lay_out(&config, layouts[i]);
            ends_like_an_undisturbed_one(state, config, 5, 0);
        }
    }
}

/* Decided behind every step, and stopped at any. */
static void what_is_decided_may_end_at_any_step(void **state)
{
    pace_train_config config = config_of(state, &trials[0]);

    config.faults.inject = "slow:worker1=20x";
    config.cluster.balance = "1";
    config.records.log_every = 1;
    for (size_t i = 0; i < LAYOUTS; i++) {
        lay_out(&config, layouts[i]);
        for (int64_t step = 1; step < 8; step += THINNED(2)) {
            interrupt(config, step);
            pace_train_config again = resumed(config);

            assert_int_equal(train(&again).samples, 3 * 430);
        }
    }
}

static void fail_to_go_on(pace_train_config config, pace_status expected, const char *message)
{
    pace_train_result result;

    said_clear();
    assert_failed(train_ranks(&config, NULL, &result), expected, message);
}

/* A run that was not divided cannot begin to repeat another; nor does one go by divisions of other steps. */
static void what_does_not_fit_is_refused(void **state)
{
    pace_train_config config = config_of(state, &trials[0]);
    pace__divisions wrong = {0};

    lay_out(&config, layouts[0]);
    config.records.log_every = 1;
    interrupt(config, 5);
    config = resumed(config);
    config.cluster.balance = "replay:nowhere";
    fail_to_go_on(config, PACE_USAGE, "it can only be repeated from the beginning");
    config.cluster.balance = "auto";
    assert_true(pace__divisions_add(&wrong, 0, WORKERS, (uint32_t[]){7, 7, 7}));
    assert_ok(pace__shares_write(in(state, "run/shares.jsonl"), &wrong, &said_log));
    pace__divisions_release(&wrong);
    fail_to_go_on(config, PACE_BAD_DATA, "the workers do not share the 20 rows of a step");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_sets, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(records_are_repeated_whole_or_in_part),
        TEST(what_is_decided_may_end_at_any_step),
        TEST(what_does_not_fit_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
