/* Workers that train by themselves and merge: ranks that are threads, from a data set to a model. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "merging_jobs.h"
#include "thinned.h"

#define ROWS 6007

/* All parameters are hot; or most are not. Rows with columns, as the fast kernels want them, and any others. */
static const tiny_plan layouts[] = {
    {.train = ROWS, .test = 500, .ids = 311, .columns = 7, .parts = 2, .seed = 1},
    {.train = ROWS, .test = 500, .ids = 40000, .columns = 9, .parts = 3, .seed = 2},
    {.train = ROWS, .test = 500, .ids = 40000, .has_values = true, .parts = 3, .seed = 3},
};

/* Texts; of single words all parameters are hot, of two nearly none. */
static void make_words(void **state)
{
    make_text_set(state, (tiny_texts_plan){
                             .train = ROWS, .test = 500, .words = 300, .length = 11, .parts = 3, .seed = 5});
}

static pace_train_config of_words(void **state, int64_t workers, int64_t ngram)
{
    pace_train_config config = settings(state, workers);

    config.own.logreg.ngram = ngram;
    return config;
}

/* --- the same bytes --- */

static void threads_and_records_change_nothing(void **state)
{
    for (size_t l = 0; l < 3; l++) {
        make_set(state, layouts[l]);
        for (int64_t workers = 1 + THINNED(2); workers <= 4; workers += l == 1 ? THINNED(2) : 2) {
            pace_train_config config = settings(state, workers);
            sha expected = sha_of(&config);

            config.cluster.threads = 2;
            config.records.log_every = 1;
            config.records.eval_every = 7;
            config.faults.checkpoint_every = 9;
            assert_sha(&config, expected);
        }
    }
}

static void rules_and_schedules(void **state)
{
    make_set(state, layouts[1]);
    for (int schedule = PACE_SCHEDULE_CONSTANT; schedule <= PACE_SCHEDULE_INVSQRT;
         schedule += 3 * THINNED(2)) {
        pace_train_config config = settings(state, 3);

        config.optimiser.rule = PACE_FTRL;
        config.optimiser.l1 = 0.1;
        config.optimiser.l2 = 0.1;
        config.optimiser.schedule = schedule;
        ends_like_an_undisturbed_one(state, config, 41, 0);
    }
}

/* Lazy penalties are brought up to the same row by everyone, also by who goes on from a checkpoint. */
static void penalties_and_sgd(void **state)
{
    static const double l1[] = {0, 1e-3, 1e-4, 1e-3, 0}, l2[] = {1e-3, 0, 1e-3, 1e-3, 0};

    for (size_t i = 0; i < 5; i += THINNED(4)) {
        make_set(state, layouts[i % 3]);
        pace_train_config config = settings(state, 2 + (int64_t)i % 3);

        config.optimiser.rule = i < 3 ? PACE_ADAGRAD : PACE_SGD;
        config.optimiser.l1 = l1[i];
        config.optimiser.l2 = l2[i];
        config.optimiser.schedule = i == 2 ? PACE_SCHEDULE_LINEAR : PACE_SCHEDULE_CONSTANT;
        sha expected = sha_of(&config);

        config.cluster.threads = 2;
        config.records.eval_every = 7;
        assert_sha(&config, expected);
        config.cluster.threads = 1;
        config.records.eval_every = 0;
        ends_like_an_undisturbed_one(state, config, 61, 0);
    }
}

static void an_interrupted_run_ends_like_an_undisturbed_one(void **state)
{
    static const int64_t steps[] = {1, 21, 45, 60, 61, 100};

    for (size_t l = 0; l < 3; l++) {
        make_set(state, layouts[l]);
        for (size_t s = l; s < 6; s += 3 * THINNED(2))
            ends_like_an_undisturbed_one(state, settings(state, 2 + (int64_t)(s + l) % 3), steps[s], 100);
    }
}

/* --wire bf16: what is rounded is rounded for all alike, and nothing of it is remembered beside the parameters. */
static void rounded_changes_end_like_undisturbed_ones(void **state)
{
    static const int rules[] = {PACE_ADAGRAD, PACE_FTRL, PACE_SGD, PACE_ADAGRAD, PACE_SGD};

    for (size_t i = 0; i < 5; i += THINNED(4)) {
        make_set(state, layouts[(i + 1) % 3]);
        pace_train_config config = settings(state, 2 + (int64_t)i % 3);

        config.optimiser.rule = rules[i];
        config.optimiser.l1 = i > 2 ? 1e-4 : 0;
        config.optimiser.l2 = i > 2 ? 1e-3 : 0;
        config.optimiser.schedule = i == 1 ? PACE_SCHEDULE_LINEAR : PACE_SCHEDULE_CONSTANT;
        sha wide = sha_of(&config);

        config.cluster.wire = PACE_WIRE_BF16;
        assert_string_not_equal(sha_of(&config).hex, wide.hex);
        ends_like_an_undisturbed_one(state, config, 61, 0);
    }
}

static void texts_end_like_undisturbed_ones(void **state)
{
    static const int rules[] = {PACE_ADAGRAD, PACE_FTRL, PACE_SGD, PACE_ADAGRAD};

    make_words(state);
    for (size_t i = 0; i < 4; i++) {
        pace_train_config config = of_words(state, 2 + (int64_t)i % 3, 1);

        config.optimiser.rule = rules[i];
        config.optimiser.l1 = i > 1 ? 1e-4 : 0;
        config.optimiser.l2 = i > 1 ? 1e-3 : 0;
        config.optimiser.schedule = i % 2 ? PACE_SCHEDULE_LINEAR : PACE_SCHEDULE_CONSTANT;
        config.cluster.wire = i == 3 ? PACE_WIRE_BF16 : PACE_WIRE_F32;
        ends_like_an_undisturbed_one(state, config, 21 + 20 * (int64_t)i, 100);
    }
    ends_like_an_undisturbed_one(state, of_words(state, 3, 2), 61, 0);
}

/* Each thread owns features of its own. */
static void threads_and_records_change_nothing_of_texts(void **state)
{
    make_words(state);
    for (int64_t ngram = 1; ngram <= 2; ngram++) {
        pace_train_config config = of_words(state, 2 + ngram, ngram);
        sha expected = sha_of(&config);

        config.cluster.threads = 2;
        config.records.log_every = 1;
        config.records.eval_every = 7;
        config.faults.checkpoint_every = 9;
        assert_sha(&config, expected);
    }
}

/* What all train is trained as one process does it; so is everything by one worker. */
static void texts_begin_like_mode_local(void **state)
{
    static const int rules[] = {PACE_ADAGRAD, PACE_FTRL, PACE_SGD};

    make_words(state);
    for (size_t i = 0; i < 6; i++) {
        pace_train_config config = of_words(state, i < 3 ? 3 : 1, 2);

        config.optimiser.rule = rules[i % 3];
        config.optimiser.l1 = config.optimiser.l2 = i % 3 == 1 ? 0 : 1e-3;
        config.optimiser.schedule = /* a flush brings all of FTRL's weights to its rate */
            rules[i % 3] == PACE_FTRL ? PACE_SCHEDULE_CONSTANT : PACE_SCHEDULE_LINEAR;
        config.length.epochs = 0;
        config.length.steps = i < 3 ? 8 : 80; /* the start has 800 rows, an epoch 61 steps */
        pace_train_result merged = i < 3 ? train(&config) : train_alone(&config);

        config.mode = PACE_MODE_LOCAL;
        config.cluster.workers = 1;
        config.cluster.exchange = 0;
        pace_train_result local = train_alone(&config);

        assert_string_equal(merged.model_sha256, local.model_sha256);
    }
}

/* Nothing is gathered before everyone stands at the end. */
static void a_job_may_end_with_its_start(void **state)
{
    make_set(state, layouts[0]);
    pace_train_config config = settings(state, 4);

    config.length.epochs = 0;
    config.length.steps = 5;
    sha expected = sha_of(&config);

    for (int i = 0; i < 20; i++)
        assert_sha(&config, expected);
}

static void other_workers_may_go_on(void **state)
{
    make_set(state, layouts[1]);
    pace_train_config config = settings(state, 2);

    config.records.log_every = 1;
    interrupt(config, 70);
    config = resumed(config);
    config.cluster.workers = 4;
    pace_train_result result = train(&config);

    assert_int_equal(result.samples, 2 * ROWS);
}

/* --- what it comes to --- */

/* Those of the start are trained by all; they count once. */
static void rows_are_counted(void **state)
{
    make_set(state, layouts[1]);
    pace_train_config config = settings(state, 4);

    train(&config);
    assert_true(number_in_summary(state, "samples") == 2 * ROWS);
    assert_true(number_in_summary(state, "rows_computed") == 2 * ROWS + 3 * 800);
    assert_true(number_in_summary(state, "rounds") > 10);
    assert_true(number_in_summary(state, "flushes") == 1 + 2 * 4);
}

/* One worker is mode local, whatever it is called. */
static void one_worker_is_mode_local(void **state)
{
    make_set(state, layouts[2]);
    pace_train_config config = settings(state, 1);
    config.cluster.wire = PACE_WIRE_BF16; /* nothing travels */
    pace_train_result merged = train_alone(&config);

    config.cluster.wire = PACE_WIRE_F32;
    config.mode = PACE_MODE_LOCAL;
    config.cluster.exchange = 0;
    assert_string_equal(train_alone(&config).model_sha256, merged.model_sha256);
}

/* Fewer rows than workers in a round, in a flush, at all. */
static void few_rows_are_enough(void **state)
{
    static const uint64_t sizes[] = {1, 3, 7, 65, 130};

    for (size_t s = 0; s < 5; s++) {
        tiny_plan plan = layouts[0];

        plan.train = sizes[s];
        plan.test = 5;
        make_set(state, plan);
        pace_train_config config = settings(state, 5);

        config.length.batch = s % 2 ? 1 : 3;
        config.length.epochs = 3;
        config.cluster.exchange = 2;
        assert_int_equal(train(&config).samples, 3 * sizes[s]);
        make_text_set(state, (tiny_texts_plan){.train = sizes[s], .test = 5, .words = 20, .length = 4});
        config.own.logreg.ngram = 1;
        assert_int_equal(train(&config).samples, 3 * sizes[s]);
    }
}

/* --- what is refused --- */

static void refuse(const pace_train_config *config, const char *reason)
{
    fail_to_train(config, PACE_USAGE, reason);
}

static void what_it_cannot_do_is_refused(void **state)
{
    make_set(state, layouts[0]);
    pace_train_config config = settings(state, 2);

    config.optimiser.exact = true;
    refuse(&config, "row after row");
    config = settings(state, 2);
    config.length.batch = 513;
    refuse(&config, "512 rows");
    config = settings(state, 2);
    config.cluster.ps = 1;
    refuse(&config, "has no --ps");
    config = settings(state, 2);
    config.cluster.evaluator = true;
    refuse(&config, "has no --evaluator");
    config = settings(state, 2);
    config.optimiser.rule = PACE_ADAM;
    refuse(&config, "adam goes on moving them");
    config = settings(state, 2);
    config.mode = PACE_MODE_ALLREDUCE;
    refuse(&config, "--exchange is for --mode local-sgd");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(threads_and_records_change_nothing),
        TEST(rules_and_schedules),
        TEST(penalties_and_sgd),
        TEST(an_interrupted_run_ends_like_an_undisturbed_one),
        TEST(rounded_changes_end_like_undisturbed_ones),
        TEST(texts_end_like_undisturbed_ones),
        TEST(threads_and_records_change_nothing_of_texts),
        TEST(texts_begin_like_mode_local),
        TEST(a_job_may_end_with_its_start),
        TEST(other_workers_may_go_on),
        TEST(rows_are_counted),
        TEST(one_worker_is_mode_local),
        TEST(few_rows_are_enough),
        TEST(what_it_cannot_do_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
