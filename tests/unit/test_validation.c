/* Validation rows: of the data set's own, or the last of its training rows; and the best state by them, of one process. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/store/slice.h"

#include "lone_runs.h"

#include <paceline/score.h>

/* --- rows --- */

static void assert_row(const pace__slice *slice, uint64_t at, const tiny_rows *rows, uint64_t row)
{
    uint64_t first = rows->start[row], length = rows->start[row + 1] - first;
    uint64_t start = pace__row_start(&slice->rows, at);

    assert_int_equal(slice->rows.label[at], rows->label[row]);
    assert_int_equal(pace__row_start(&slice->rows, at + 1) - start, length);
    assert_memory_equal(slice->rows.ids + start, rows->ids + first, length * 4);
}

/* All rows of a set, in the order of an epoch: stretch by stretch, of a length that nothing else has. */
static void assert_rows(const pace__store *store, int set, const tiny_rows *rows, uint64_t first)
{
    uint64_t count = store->info.rows[set], run, entries = 0, positives = 0;
    pace__order order = pace__order_make(count, 7, 0);
    pace__slice slice;

    assert_ok(pace__slice_init(&slice, store, set, 7, 97, &said_log));
    for (uint64_t at = 0; at < count; at += slice.rows.rows) {
        assert_ok(pace__slice_read(&slice, at, count - at < 97 ? count - at : 97));
        for (uint64_t i = 0; i < slice.rows.rows; i++) {
            assert_row(&slice, i, rows, first + pace__order_row(&order, at + i, &run));
            positives += slice.rows.label[i];
        }
        entries += pace__row_start(&slice.rows, slice.rows.rows);
    }
    assert_int_equal(entries, store->info.entries[set]);
    if (store->info.positives[set] != UINT64_MAX)
        assert_int_equal(positives, store->info.positives[set]);
    pace__slice_release(&slice);
}

/* Wherever the cut falls: within a part, a block of sums, or between two of them. */
static void the_last_rows_are_set_apart(void **state)
{
    static const double fractions[] = {0.1, 0.25, 0.3333, 0.9, 1.0 / ROWS, 1 - 1.0 / ROWS};

    for (size_t l = 0; l < 4; l++) {
        tiny_set set = tiny_make(layouts[l]);
        const tiny_rows *rows = &set.rows[PACE__TRAIN];
        pace__store store;

        tiny_write(&set, in(state, "set"));
        assert_ok(pace__store_open(in(state, "set"), &store, &said_log));
        uint64_t content = pace__store_content(&store);

        for (size_t f = 0; f < 6; f++) {
            uint64_t apart = (uint64_t)llround(fractions[f] * ROWS);

            assert_ok(pace__store_carve(&store, fractions[f], &said_log)); /* from the whole, each time */
            assert_int_equal(store.info.rows[PACE__TRAIN], ROWS - apart);
            assert_int_equal(store.info.rows[PACE__VALIDATION], apart);
            assert_rows(&store, PACE__TRAIN, rows, 0);
            assert_rows(&store, PACE__VALIDATION, rows, ROWS - apart);
            assert_int_equal(pace__store_content(&store), content);
        }
        assert_ok(pace__store_carve(&store, 0, &said_log));
        assert_memory_equal(store.info.rows, set.info.rows, sizeof set.info.rows);
        assert_memory_equal(store.info.entries, set.info.entries, sizeof set.info.entries);
        assert_rows(&store, PACE__TRAIN, rows, 0);
        assert_failed(pace__store_carve(&store, 0.0001, &said_log), PACE_USAGE, "leaves none to validate on");
        assert_failed(pace__store_carve(&store, 0.9999, &said_log), PACE_USAGE, "leaves none to train on");
        pace__store_close(&store);
        tiny_free(&set);
    }
}

static void a_set_may_have_its_own(void **state)
{
    for (size_t l = 0; l < 4; l++) {
        tiny_plan plan = layouts[l];

        plan.validation = 333;
        tiny_set set = tiny_make(plan);
        pace__store store;

        assert_ok(pace__remove_tree(in(state, "set"), &said_log));
        tiny_write(&set, in(state, "set"));
        assert_ok(pace__store_seal(in(state, "set"), &said_log));
        assert_ok(pace__store_open(in(state, "set"), &store, &said_log));
        assert_true(pace__store_has_sums(&store));
        assert_rows(&store, PACE__TRAIN, &set.rows[PACE__TRAIN], 0);
        assert_rows(&store, PACE__TEST, &set.rows[PACE__TEST], 0);
        assert_rows(&store, PACE__VALIDATION, &set.rows[PACE__VALIDATION], 0);
        uint64_t content = pace__store_content(&store);

        pace__store_close(&store);
        set.rows[PACE__VALIDATION].label[7] ^= 1;
        tiny_write(&set, in(state, "other"));
        assert_ok(pace__store_open(in(state, "other"), &store, &said_log));
        assert_int_not_equal(pace__store_content(&store), content); /* another data set */
        pace__store_close(&store);
        tiny_free(&set);
    }
}

/* --- the best --- */

/* Rows of noise: what is learned of them is of no use for others soon. */
static pace_train_config overfitting(void **state, uint64_t validation)
{
    make_set(state, "set",
             (tiny_plan){.train = 300,
                         .test = 200,
                         .validation = validation,
                         .ids = 280,
                         .entries = 10,
                         .parts = 2,
                         .seed = 3});
    pace_train_config config = settings(in(state, "set"), in(state, "run"));

    config.length.epochs = 20;
    config.optimiser.lr = 0.6;
    config.records.eval_every = 4;
    config.length.keep_best = true;
    return config;
}

/* Its model is that of a run which had ended there. */
static void assert_is_of_step(const pace_train_config *config, const pace_train_result *result, uint64_t step)
{
    pace_train_config shorter = *config;

    assert_int_equal(result->best_step, step);
    shorter.length.keep_best = false;
    shorter.length.steps = (int64_t)step;
    shorter.force = true;
    shorter.resume = false;
    assert_string_equal(train(&shorter).model_sha256, result->model_sha256);
}

static void the_model_is_that_of_the_best_evaluation(void **state)
{
    for (int set = 0; set < 3; set++) { /* of its own; of the training rows; the test rows */
        for (int threads = 1; threads <= 2; threads++) {
            pace_train_config config = overfitting(state, set == 0 ? 200 : 0);

            config.validation = set == 1 ? 0.3 : 0;
            config.optimiser.l2 = 0.001; /* what is still to be applied depends on the step */
            config.cluster.threads = threads;
            pace_train_result result = train(&config);
            const pace_scores *judged = set == 2 ? &result.test : &result.validation;

            assert_int_equal(result.steps, 60);
            assert_true(result.best_step < 40 && result.best_step % 4 == 0);
            assert_true(judged->logloss == result.best_logloss);
            assert_true(result.has_validation == (set < 2) && result.has_test);
            assert_int_equal(strstr(said, "goes by the test rows") != NULL, set == 2);
            assert_int_equal(count_entries(in(state, "run/checkpoints")), 2); /* the last, and the best */
            assert_is_of_step(&config, &result, result.best_step);
            config.length.keep_best = false;
            config.force = true;
            pace_train_result last = train(&config);

            assert_int_equal(last.best_step, 0);
            assert_true((set == 2 ? last.test : last.validation).logloss > judged->logloss);
        }
    }
}

/* The last state is one to choose from, wherever evaluations fall. */
static void the_last_may_be_the_best(void **state)
{
    make_set(state, "set", layouts[2]);
    pace_train_config config = settings(in(state, "set"), in(state, "run"));

    config.length.keep_best = true;
    config.optimiser.lr = 0.001;                    /* it learns, slowly */
    for (int64_t every = 9; every <= 10; every++) { /* 54 steps */
        config.records.eval_every = every;
        pace_train_result result = train(&config);

        assert_int_equal(result.best_step, 54);
        assert_true(result.best_logloss == result.test.logloss);
        assert_is_of_step(&config, &result, 54);
    }
}

static void early_stops_keep_the_best(void **state)
{
    pace_train_config config = overfitting(state, 200);

    config.length.keep_best = false; /* goes without saying */
    config.length.early_stop = 3;
    pace_train_result result = train(&config);

    assert_said("stopping early");
    assert_int_equal(result.best_step + 3 * 4, result.steps);
    config.length.early_stop = 0;
    assert_is_of_step(&config, &result, result.best_step);
}

/* --- going on --- */

static void whoever_goes_on_knows_the_best(void **state)
{
    for (int every = 0; every < 2; every++) {
        pace_train_config config = overfitting(state, 200), again;

        config.faults.checkpoint_every = every ? 7 : 0;
        config.faults.keep = 1;
        config.records.log_every = 1;
        pace_train_result whole = train(&config);

        for (int64_t step = (int64_t)whole.best_step - 3; step < 60; step += 17) {
            interrupt(config, step);
            again = config;
            resume(&again);
            pace_train_result result = train(&again);

            assert_string_equal(result.model_sha256, whole.model_sha256);
            assert_int_equal(result.best_step, whole.best_step);
            assert_true(result.best_logloss == whole.best_logloss);
            assert_int_equal(result.steps, 60); /* from the last, not from the best */
            assert_true(result.test.logloss == whole.test.logloss);
        }
        again.length.epochs = 23; /* of a finished run, as if it had been so long */
        pace_train_result longer = train(&again);

        assert_int_equal(longer.steps, 69);
        assert_int_equal(longer.best_step, whole.best_step);
        assert_string_equal(longer.model_sha256, whole.model_sha256);
    }
}

static void a_finished_run_may_change_its_mind(void **state)
{
    pace_train_config config = overfitting(state, 200);
    pace_train_result best = train(&config);

    resume(&config);
    train(&config);
    assert_said("nothing left to do");
    config.length.keep_best = false;
    pace_train_result last = train(&config);

    assert_said("goes on with --keep-best false (was true)");
    assert_int_equal(last.best_step, 0);
    assert_true(last.validation.logloss > best.validation.logloss);
    config.length.keep_best = true;
    assert_string_equal(train(&config).model_sha256, best.model_sha256);
}

/* What was not kept cannot be chosen. */
static void a_best_that_was_not_kept_is_forgotten(void **state)
{
    pace_train_config config = overfitting(state, 200);

    config.length.keep_best = false;
    config.length.epochs = 10;
    config.faults.checkpoint_seconds = 1e6;
    train(&config);
    config.length.epochs = 20;
    config.length.keep_best = true;
    resume(&config);
    pace_train_result result = train(&config);

    assert_said("the best state so far was not kept");
    assert_true(result.best_step > 30);
    pace_train_config shorter = config;

    shorter.force = true;
    shorter.resume = shorter.length.keep_best = false;
    shorter.length.steps = (int64_t)result.best_step;
    assert_string_equal(train(&shorter).model_sha256, result.model_sha256);
}

static void a_best_that_is_gone_is_told(void **state)
{
    pace_train_config config = overfitting(state, 200);
    char path[512];

    pace_train_result whole = train(&config);

    snprintf(path, sizeof path, "%s/step-%012d.0001", in(state, "run/checkpoints"), (int)whole.best_step);
    assert_ok(pace__remove_tree(path, NULL));
    assert_ok(pace__remove_tree(in(state, "run/model.safetensors"), NULL));
    resume(&config);
    pace_train_result result = train(&config);

    assert_said("it was the best state so far, which is looked for among those that follow");
    assert_int_equal(result.best_step, 60);
}

/* A flipped bit in it: no model is made of that. */
static void a_damaged_best_makes_no_model(void **state)
{
    pace_train_config config = overfitting(state, 200);
    char path[512];
    pace_train_result whole = train(&config), result;

    snprintf(path, sizeof path, "%s/step-%012d.0001/part-00000-of-00001.safetensors",
             in(state, "run/checkpoints"), (int)whole.best_step);
    FILE *part = fopen(path, "r+b");

    assert_non_null(part);
    assert_int_equal(fseek(part, -5, SEEK_END), 0);
    assert_int_equal(fputc(0x55, part), 0x55);
    assert_int_equal(fclose(part), 0);
    assert_ok(pace__remove_tree(in(state, "run/model.safetensors"), NULL));
    resume(&config);
    said_clear();
    assert_failed(pace_train(&config, &said_log, NULL, &result), PACE_BAD_DATA, "it is the best state");
    assert_false(pace__exists(in(state, "run/model.safetensors")));
    config.length.keep_best = false;
    assert_int_equal(train(&config).best_step, 0);
}

/* --- what is refused --- */

static void contradictions_are_refused(void **state)
{
    pace_train_config config = overfitting(state, 200);

    config.validation = 0.1;
    fail_to_train(&config, PACE_USAGE, "has 200 validation rows of its own");
    config.validation = 0;
    config.records.eval_every = 0;
    fail_to_train(&config, PACE_USAGE, "--keep-best needs --eval-every and rows to score");
    config.records.eval_every = 4;
    config.mode = PACE_MODE_ALLREDUCE;
    config.cluster.evaluator = true;
    fail_to_train(&config, PACE_USAGE, "--keep-best decides at fixed steps");
    config = overfitting(state, 0);
    config.validation = 0.001;
    fail_to_train(&config, PACE_USAGE, "leaves none to validate on");
    make_set(state, "set", (tiny_plan){.train = 300, .ids = 280, .parts = 2, .seed = 3});
    config.validation = 0;
    fail_to_train(&config, PACE_USAGE, "--keep-best needs --eval-every and rows to score");
    config.validation = 0.2;
    config.length.epochs = 2;
    pace_train_result result = train(&config);

    assert_true(result.has_validation && !result.has_test);
}

/* Another fraction is another job. */
static void a_run_keeps_its_fraction(void **state)
{
    pace_train_config config = overfitting(state, 0);

    config.validation = 0.2;
    config.records.log_every = 1;
    interrupt(config, 20);
    resume(&config);
    config.validation = 0.3;
    fail_to_train(&config, PACE_USAGE, "validation");
    config.validation = 0.2;
    train(&config);
    config.validation = 0;
    fail_to_train(&config, PACE_USAGE, "--validation");
}

static void eval_scores_them(void **state)
{
    pace_train_config config = overfitting(state, 200);
    pace_train_result result = train(&config);
    pace_eval_config eval = {.run = in(state, "run"), .data = in(state, "set"), .set = PACE_SET_VALIDATION};
    pace_scores scores;

    assert_ok(pace_eval(&eval, &said_log, NULL, &scores));
    assert_true(scores.n == 200 && scores.logloss == result.validation.logloss);
    eval.set = PACE_SET_AUTO;
    assert_ok(pace_eval(&eval, &said_log, NULL, &scores));
    assert_true(scores.logloss == result.test.logloss);
    make_set(state, "bare", (tiny_plan){.train = 300, .ids = 280, .parts = 2, .seed = 3});
    eval.data = in(state, "bare");
    eval.set = PACE_SET_VALIDATION;
    assert_failed(pace_eval(&eval, &said_log, NULL, &scores), PACE_BAD_DATA,
                  "has no validation rows of its own");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_last_rows_are_set_apart),
        TEST(a_set_may_have_its_own),
        TEST(the_model_is_that_of_the_best_evaluation),
        TEST(the_last_may_be_the_best),
        TEST(early_stops_keep_the_best),
        TEST(whoever_goes_on_knows_the_best),
        TEST(a_finished_run_may_change_its_mind),
        TEST(a_best_that_was_not_kept_is_forgotten),
        TEST(a_best_that_is_gone_is_told),
        TEST(a_damaged_best_makes_no_model),
        TEST(contradictions_are_refused),
        TEST(a_run_keeps_its_fraction),
        TEST(eval_scores_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
