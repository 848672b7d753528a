/* Networks whose workers take steps of their own and average: ranks that are threads, from a data set to a model. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "picture_jobs.h"

#define TEXT_ROWS  730
#define TEXT_BATCH 50

static void make_words(void **state, uint64_t train)
{
    tiny_texts set = tiny_texts_make(
        (tiny_texts_plan){.train = train, .test = 200, .words = 30, .length = 9, .parts = 3, .seed = 1});

    tiny_texts_write(&set, in(state, "set"));
    tiny_texts_free(&set);
}

static pace_train_config averaging(pace_train_config config, int64_t workers, int64_t exchange)
{
    lay_out(&config, (layout){PACE_MODE_LOCAL_SGD, workers, -1, -1, false});
    config.cluster.exchange = exchange;
    return config;
}

/* A recurrent network; 15 steps in an epoch. */
static pace_train_config of_words(void **state, int64_t workers, int64_t exchange)
{
    pace_train_config config = settings(state);

    config.model = PACE_MODEL_RNN;
    config.own.rnn = (pace_rnn_options){
        .pooling = PACE_POOL_AUTO, .dense = -1, .word_dropout = -1, .focal = 2, .embed = 6, .hidden = 5};
    config.optimiser.lr = 0.03;
    config.length.batch = TEXT_BATCH;
    config.optimiser.dropout = -1;
    return averaging(config, workers, exchange);
}

static pace_train_config of_pictures(void **state, int64_t workers, int64_t exchange)
{
    return averaging(settings(state), workers, exchange);
}

/* --- the same bytes --- */

static void threads_and_records_change_nothing(void **state)
{
    for (int pictures = 0; pictures < 2; pictures++) {
        if (pictures)
            make_set(state, "set", plain_set);
        else
            make_words(state, TEXT_ROWS);
        for (int64_t workers = 2; workers <= 4; workers += 2) {
            pace_train_config config =
                pictures ? of_pictures(state, workers, 20) : of_words(state, workers, 100);

            config.cluster.outer_lr = 0.8;
            config.cluster.outer_momentum = 0.5;
            sha expected = sha_of(&config);

            config.cluster.threads = 2;
            config.records.log_every = 1;
            config.records.eval_every = 3;
            config.faults.checkpoint_every = 2;
            assert_sha(&config, expected);
            config.cluster.outer_momentum = 0.4; /* it matters */
            assert_string_not_equal(sha_of(&config).hex, expected.hex);
        }
    }
}

/* With the momentum from flush to flush, the rule's state, and statistics of batch norm. */
static void an_interrupted_run_ends_like_an_undisturbed_one(void **state)
{
    static const int rules[] = {PACE_ADAM, PACE_MOMENTUM, PACE_ADAGRAD, PACE_SGD};

    make_words(state, TEXT_ROWS);
    for (size_t i = 0; i < 4; i++) {
        pace_train_config config = of_words(state, 2 + (int64_t)i % 3, 100);

        config.optimiser.rule = rules[i];
        config.cluster.outer_momentum = i % 2 ? 0.5 : 0;
        config.optimiser.schedule = i % 2 ? PACE_SCHEDULE_COSINE : PACE_SCHEDULE_CONSTANT;
        ends_like_an_undisturbed_one(state, config, 3 + 7 * (int64_t)i, 100);
    }
    make_set(state, "set", plain_set);
    ends_like_an_undisturbed_one(state, of_pictures(state, 3, 20), 9, 0);
}

static void other_workers_may_go_on(void **state)
{
    make_words(state, TEXT_ROWS);
    pace_train_config config = of_words(state, 2, 100);

    config.records.log_every = 1;
    interrupt(config, 12);
    config = resumed(config);
    config.cluster.workers = 4;
    assert_int_equal(train(&config).samples, 2 * TEXT_ROWS);
}

/* --- what it comes to --- */

static void rows_and_flushes_are_counted(void **state)
{
    make_words(state, TEXT_ROWS);
    pace_train_config config = of_words(state, 2, 99); /* of each worker, who has 25 in a step: four steps */

    train(&config);
    assert_true(number_in_summary(state, "samples") == 2 * TEXT_ROWS);
    assert_true(number_in_summary(state, "rows_computed") == 2 * TEXT_ROWS);
    assert_true(number_in_summary(state, "round_steps") == 4);
    /* Behind each step, then behind up to three: an eighth of those before. */
    assert_true(number_in_summary(state, "flushes") == 15 + 8);
    assert_true(number_in_summary(state, "bytes_per_row") > 0);
}

static void it_learns(void **state)
{
    make_words(state, TEXT_ROWS);
    for (int64_t workers = 2; workers <= 4; workers++) {
        pace_train_config config = of_words(state, workers, 100);

        config.length.epochs = 8;
        pace_train_result result = train(&config);

        assert_learned(&result, "words", (size_t)workers);
    }
    make_set(state, "set", plain_set);
    for (int64_t workers = 2; workers <= 4; workers += 2) {
        pace_train_config config = of_pictures(state, workers, 30);

        config.length.epochs = 12;
        pace_train_result result = train(&config);

        assert_learned(&result, "pictures", (size_t)workers);
    }
}

/* Plain steps that are averaged at once are steps of all: what a part of a step stands for, and how statistics and decay are
 * merged, is right to the last digits. */
static void averaging_every_step_is_allreduce(void **state)
{
    double averaged[2 * PER_EPOCH], summed[2 * PER_EPOCH];

    make_set(state, "set", plain_set);
    for (int64_t workers = 2; workers <= 3; workers++) {
        pace_train_config config = of_pictures(state, workers, 1);

        config.length.batch = 24; /* 230 rows: a last step of 14 */
        config.optimiser.rule = PACE_SGD;
        config.optimiser.schedule = PACE_SCHEDULE_CONSTANT;
        config.length.steps = 9; /* whose parts are as long as each other */
        config.records.log_every = 1;
        config.own.cnn.bn = PACE_BN_LOCAL;
        double logloss = train(&config).test.logloss;

        assert_int_equal(read_losses(state, averaged, 2 * PER_EPOCH), 9);
        config.mode = PACE_MODE_ALLREDUCE;
        config.cluster.exchange = 0;
        double expected = train(&config).test.logloss;

        assert_int_equal(read_losses(state, summed, 2 * PER_EPOCH), 9);
        for (int i = 0; i < 9; i++)
            assert_true(fabs(averaged[i] - summed[i]) < 1e-4);
        assert_true(fabs(logloss - expected) < 1e-3);
    }
}

/* Also of pieces of a step without a row. */
static void few_rows_are_enough(void **state)
{
    static const uint64_t sizes[] = {1, 3, 7, 65};

    for (size_t s = 0; s < 4; s++) {
        make_words(state, sizes[s]);
        pace_train_config config = of_words(state, 5, s % 2 ? 0 : 2);

        config.length.batch = s % 2 ? 6 : 3;
        config.length.epochs = 3;
        assert_int_equal(train(&config).samples, 3 * sizes[s]);
    }
}

static void one_worker_is_mode_local(void **state)
{
    make_words(state, TEXT_ROWS);
    pace_train_config config = of_words(state, 1, 100);
    pace_train_result averaged = train_alone(&config);

    config.mode = PACE_MODE_LOCAL;
    config.cluster.exchange = 0;
    assert_string_equal(train_alone(&config).model_sha256, averaged.model_sha256);
}

/* --- what is refused --- */

static void what_it_cannot_do_is_refused(void **state)
{
    make_words(state, TEXT_ROWS);
    pace_train_config config = of_words(state, 2, 0);

    config.cluster.evaluator = true;
    fail_to_train(&config, PACE_USAGE, "has no --evaluator");
    config = of_words(state, 2, 0);
    config.mode = PACE_MODE_ALLREDUCE;
    config.cluster.outer_momentum = 0.5;
    fail_to_train(&config, PACE_USAGE, "--outer-momentum is for --mode local-sgd");
    config.cluster.outer_momentum = 0; /* given, too */
    fail_to_train(&config, PACE_USAGE, "--outer-momentum is for --mode local-sgd");
    config = of_words(state, 2, 0);
    config.model = PACE_MODEL_LOGREG;
    config.own.logreg = (pace_logreg_options){.ngram = 1};
    config.optimiser.rule = PACE_ADAGRAD;
    config.cluster.outer_lr = 0.5;
    fail_to_train(&config, PACE_USAGE, "are for networks");
    config.cluster.outer_lr = 0;
    config.cluster.outer_momentum = 0;
    fail_to_train(&config, PACE_USAGE, "are for networks");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(threads_and_records_change_nothing),
        TEST(an_interrupted_run_ends_like_an_undisturbed_one),
        TEST(other_workers_may_go_on),
        TEST(rows_and_flushes_are_counted),
        TEST(it_learns),
        TEST(averaging_every_step_is_allreduce),
        TEST(few_rows_are_enough),
        TEST(one_worker_is_mode_local),
        TEST(what_it_cannot_do_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
