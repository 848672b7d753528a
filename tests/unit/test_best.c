/* The best state of jobs of several ranks, in every mode: the model is its model, and who goes on still knows it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "jobs.h"
#include "support.h"

typedef struct trial {
    layout layout;
    int64_t exchange;
    bool same; /* the same bytes each time */
} trial;

static const trial trials[] = {
    {{PACE_MODE_ALLREDUCE, 2, -1, -1, false}, 0, true}, {{PACE_MODE_PS_SYNC, 2, 2, -1, false}, 0, true},
    {{PACE_MODE_PS_SYNC, 3, 0, -1, false}, 0, true},    {{PACE_MODE_LOCAL_SGD, 2, -1, -1, false}, 200, true},
    {{PACE_MODE_PS_ASYNC, 2, 1, -1, false}, 0, false},  {{PACE_MODE_PS_SSP, 2, 1, 2, false}, 0, false},
};
#define TRIALS (sizeof trials / sizeof *trials)

/* Rows of noise: what is learned of them is of no use for others soon. */
static pace_train_config overfitting(void **state, const trial *of)
{
    tiny_set set = tiny_make((tiny_plan){
        .train = 300, .test = 200, .validation = 200, .ids = 280, .entries = 10, .parts = 2, .seed = 3});
    pace_train_config config = {.data = in(state, "set"),
                                .run = in(state, "run"),
                                .cluster.deadline = 60,
                                .cluster.exchange = of->exchange,
                                .cluster.threads = 1,
                                .optimiser.rule = PACE_ADAGRAD,
                                .optimiser.lr = 0.8,
                                .length.batch = 50,
                                .length.epochs = 10,
                                .length.keep_best = true,
                                .records.eval_every = 4,
                                .records.log_every = 1,
                                .faults.keep = 1,
                                .seed = 7,
                                .force = true};

    tiny_write(&set, in(state, "set"));
    tiny_free(&set);
    lay_out(&config, of->layout);
    return config;
}

static void every_mode_keeps_it(void **state)
{
    for (size_t t = 0; t < TRIALS; t++) {
        pace_train_config config = overfitting(state, &trials[t]), plain = config;
        pace_train_result best = train(&config);

        assert_int_equal(best.steps, 60);
        assert_true(best.best_step > 0 && best.best_step < 50);
        assert_true(best.validation.logloss == best.best_logloss);
        assert_int_equal(count_entries(in(state, "run/checkpoints")), 2);
        plain.length.keep_best = false;
        assert_true(train(&plain).validation.logloss > best.best_logloss);
        plain.length.steps = (int64_t)best.best_step;
        if (trials[t].same)
            assert_sha(&plain, *(sha *)best.model_sha256);
    }
}

static void synchronous_modes_go_on_from_the_last(void **state)
{
    for (size_t t = 0; t < TRIALS && trials[t].same; t++) {
        pace_train_config config = overfitting(state, &trials[t]);
        pace_train_result whole = train(&config);

        interrupt(config, (int64_t)whole.best_step + 9);
        pace_train_config again = resumed(config);
        pace_train_result result = train(&again);

        assert_int_equal(result.steps, 60);
        assert_string_equal(result.model_sha256, whole.model_sha256);
        assert_int_equal(result.best_step, whole.best_step);
    }
}

static void early_stops_keep_it(void **state)
{
    for (size_t t = 0; t < TRIALS; t++) {
        pace_train_config config = overfitting(state, &trials[t]);

        config.length.keep_best = false;
        config.length.early_stop = 4;
        pace_train_result result = train(&config);

        assert_true(result.steps < 60 && result.best_step < result.steps);
        assert_true(result.validation.logloss == result.best_logloss);
    }
}

/* An evaluator scores the validation rows on the way, and both at the end. */
static void an_evaluator_scores_both(void **state)
{
    trial with = trials[1];

    with.layout.evaluator = true;
    pace_train_config config = overfitting(state, &with);

    config.length.keep_best = false;
    pace_train_result result = train(&config);

    with.layout.evaluator = false;
    config = overfitting(state, &with);
    config.length.keep_best = false;
    pace_train_result alone = train(&config);

    assert_true(result.has_validation && result.has_test);
    assert_true(result.validation.logloss == alone.validation.logloss);
    assert_true(result.test.logloss == alone.test.logloss);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_mode_keeps_it),
        TEST(synchronous_modes_go_on_from_the_last),
        TEST(early_stops_keep_it),
        TEST(an_evaluator_scores_both),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
