/* picture_jobs.h - training on tiny pictures, for the tests of it. Include it behind <cmocka.h>. */
#ifndef UNIT_PICTURE_JOBS_H
#define UNIT_PICTURE_JOBS_H

#include "jobs.h"
#include "model_files.h"
#include "tiny_pictures.h"
#include "tiny_texts.h"

#define ROWS      230 /* no multiple of a batch */
#define TEST_ROWS 60
#define BATCH     30
#define PER_EPOCH 8
#define SIDE      8

static const tiny_pictures_plan plain_set = {
    .train = ROWS, .test = TEST_ROWS, .side = SIDE, .classes = 3, .parts = 3, .seed = 1};

/* As prep leaves it. */
static inline void make_set(void **state, const char *name, tiny_pictures_plan plan)
{
    tiny_pictures set = tiny_pictures_make(plan);

    tiny_pictures_write(&set, in(state, name));
    assert_ok(pace__store_seal(in(state, name), &said_log));
    tiny_pictures_free(&set);
}

static inline void make_clicks(void **state, const char *name)
{
    tiny_set set = tiny_make((tiny_plan){.train = 100, .ids = 40, .columns = 5, .seed = 3});

    tiny_write(&set, in(state, name));
    tiny_free(&set);
}

static inline void make_texts(void **state, const char *name)
{
    tiny_texts set = tiny_texts_make(
        (tiny_texts_plan){.train = 50, .test = 10, .words = 30, .length = 9, .parts = 1, .seed = 1});

    tiny_texts_write(&set, in(state, name));
    tiny_texts_free(&set);
}

/* What the options leave open, and a small network on pictures as they are. */
static inline pace_train_config settings(void **state)
{
    return (pace_train_config){.data = in(state, "set"),
                               .run = in(state, "run"),
                               .model = PACE_MODEL_CNN,
                               ONE_PROCESS,
                               .optimiser.rule = PACE_OPTIMIZER_AUTO,
                               .optimiser.schedule = PACE_SCHEDULE_AUTO,
                               .optimiser.momentum = 0.9,
                               .optimiser.clip = -1,
                               .optimiser.lr = 0.01,
                               .length.batch = BATCH,
                               .length.epochs = 2,
                               .faults.keep = 2,
                               .seed = 7,
                               .force = true,
                               .optimiser.dropout = 0,
                               .own.cnn.width = 0.125,
                               .own.cnn.augment = "none"};
}

/* Classes are about as frequent as each other: who guesses has null_logloss. */
static inline void assert_learned(const pace_train_result *result, const char *what, size_t which)
{
    const pace_scores *test = &result->test;

    if (!(test->logloss < 0.7 * test->null_logloss && test->accuracy > test->null_accuracy + 0.2 &&
          isfinite(result->train_loss)))
        fail_msg("%s %zu: log-loss %g, by guessing %g; accuracy %g, by guessing %g", what, which,
                 test->logloss, test->null_logloss, test->accuracy, test->null_accuracy);
}

static inline bool same_number(double left, double right)
{
    return left == right || (isnan(left) && isnan(right));
}

static inline void assert_same_scores(const pace_scores *left, const pace_scores *right)
{
    assert_int_equal(left->n, right->n);
    assert_int_equal(left->classes, right->classes);
    assert_true(left->accuracy == right->accuracy && left->precision == right->precision);
    assert_true(left->recall == right->recall && left->f1 == right->f1);
    assert_true(same_number(left->auc, right->auc) && same_number(left->top5, right->top5));
    assert_true(fabs(left->logloss - right->logloss) < 1e-6);
}

/* What eval says of the run that has just ended is what the run has said. */
static inline void eval_agrees(void **state, const pace_scores *test)
{
    pace_eval_config eval = {.run = in(state, "run"), .data = in(state, "set")};
    pace_scores scores;

    assert_ok(pace_eval(&eval, &said_log, NULL, &scores));
    assert_same_scores(&scores, test);
    eval.set = PACE_SET_TRAIN;
    assert_ok(pace_eval(&eval, &said_log, NULL, &scores));
    assert_int_equal(scores.n, ROWS);
}

static inline sha sha_in(const pace_train_result *result)
{
    sha found;

    memcpy(found.hex, result->model_sha256, sizeof found.hex);
    return found;
}

/* The largest difference of two values over the largest value. */
static inline double array_distance(const float *left, const float *right, size_t count)
{
    double most = 0, largest = 0;

    for (size_t i = 0; i < count; i++) {
        most = fmax(most, fabs((double)left[i] - right[i]));
        largest = fmax(largest, fabs((double)left[i]));
    }
    return most / largest;
}

/* Of weights, or of running statistics, whatever is more. */
static inline double model_distance(const cnn_file *left, const cnn_file *right)
{
    assert_int_equal(left->net.weights, right->net.weights);
    assert_int_equal(left->net.stats, right->net.stats);
    return fmax(array_distance(left->weights, right->weights, left->net.weights),
                array_distance(left->stats, right->stats, left->net.stats));
}

#endif
