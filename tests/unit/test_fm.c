/* Factorization machines: sums over pairs, gradients by differences, what a file brings back. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/store/describe.h"
#include "model/fm/fm.h"
#include "model/fm/kind.h"
#include "score/scorer.h"

#include "support.h"

#define ROWS 40

static const tiny_plan layouts[] = {
    {.train = ROWS, .test = ROWS, .ids = 25, .columns = 6, .seed = 1},
    {.train = ROWS, .test = ROWS, .ids = 25, .columns = 0, .has_values = true, .seed = 2},
    {.train = ROWS, .test = ROWS, .ids = 300, .columns = 0, .seed = 3},
    {.train = ROWS, .test = ROWS, .ids = 25, .columns = 3, .has_values = true, .unseen = true, .seed = 4},
};
#define LAYOUTS (sizeof layouts / sizeof *layouts)

static const unsigned sizes[] = {1, 3, 8, 17};

/* Some number of about that size, by its place. */
static float value_of(uint64_t place, double size)
{
    return (float)(((double)(pace__mix64(place + 5) >> 11) * 0x1p-53 - 0.5) * 2 * size);
}

static pace__model_plan make_plan(const tiny_set *set, unsigned factors)
{
    pace__dataset data = pace__store_describe(&set->info);
    pace__model_plan plan;

    data.like = set->plan.unseen;
    assert_ok(pace__fm_model_plan(&data, factors, 7, &said_log, &plan));
    return plan;
}

/* Of all keys, and a row more; those of the bias are its weight alone. */
static float *make_weights(const pace__model_plan *plan)
{
    size_t dim = plan->shape.dim, count = (size_t)plan->shape.keys * dim;
    float *weights = tiny_alloc((count + dim) * sizeof *weights);

    for (size_t i = 0; i <= count - dim; i++)
        weights[i] = value_of(i, 0.4);
    return weights;
}

/* As it is defined: every pair for itself, in double precision. */
static double plain_logit(const pace__rows *rows, size_t row, const float *weights, uint32_t ids, size_t dim)
{
    uint64_t first = pace__row_start(rows, row), last = pace__row_start(rows, row + 1);
    double logit = (double)weights[ids * dim];

    for (uint64_t i = first; i < last; i++) {
        double x = rows->values ? (double)rows->values[i] : 1;

        if (rows->ids[i] == ids)
            continue;
        logit += (double)weights[rows->ids[i] * dim] * x;
        for (uint64_t j = i + 1; j < last; j++) {
            double y = rows->values ? (double)rows->values[j] : 1;

            for (size_t f = 1; rows->ids[j] < ids && f < dim; f++)
                logit +=
                    (double)weights[rows->ids[i] * dim + f] * (double)weights[rows->ids[j] * dim + f] * x * y;
        }
    }
    return logit;
}

static double plain_loss(const pace__rows *rows, const float *weights, uint32_t ids, size_t dim)
{
    double loss = 0;

    for (size_t row = 0; row < rows->rows; row++) {
        double logit = plain_logit(rows, row, weights, ids, dim);

        loss += log1p(exp(rows->label[row] ? -logit : logit));
    }
    return loss;
}

/* --- against the definition --- */

static void check_logits(const tiny_set *set, unsigned factors)
{
    pace__model_plan plan = make_plan(set, factors);
    pace__rows rows = tiny_view(set, PACE__TRAIN);
    float *weights = make_weights(&plan), *same = make_weights(&plan), found[ROWS];
    double answers[ROWS];
    pace__model *model;

    assert_ok(pace__model_create(&plan, 7, 1, true, &said_log, &model));
    pace__model_use(model, weights);
    assert_ok(pace__model_logits(model, &rows, found));
    assert_ok(pace__model_answers(model, &rows, answers));
    for (size_t row = 0; row < rows.rows; row++) {
        double expected = plain_logit(&rows, row, same, set->info.ids_seen, plan.shape.dim);

        assert_float_equal(found[row], expected, 2e-5 * (1 + fabs(expected)));
        assert_true((float)answers[row] == found[row]);
    }
    assert_memory_equal(weights, same, (size_t)plan.shape.keys * plan.shape.dim * sizeof *weights);
    pace__model_free(model);
    pace__model_plan_release(&plan);
    free(weights);
    free(same);
}

static void logits_are_sums_over_pairs(void **state)
{
    (void)state;
    for (size_t l = 0; l < LAYOUTS; l++) {
        tiny_set set = tiny_make(layouts[l]);

        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            check_logits(&set, sizes[k]);
        tiny_free(&set);
    }
}

/* What the gradient by slot says of a key; 0 if no row has it. */
static double gradient_of(const pace__task *task, uint64_t key, size_t dim, size_t at)
{
    const pace__key_batch *keys = &task->batch->keys;

    for (uint32_t slot = 0; slot < keys->count; slot++) {
        if (keys->keys[slot] == key)
            return (double)task->sums[slot * dim + at];
    }
    return 0;
}

static void compare_differences(const pace__task *task, const pace__model_plan *plan, const pace__rows *rows,
                                float *weights)
{
    size_t dim = plan->shape.dim;
    uint32_t ids = plan->data.ids;

    for (uint64_t key = 0; key < plan->shape.keys; key++) {
        for (size_t at = 0; at < (key == ids ? 1 : dim); at++) {
            float *weight = weights + key * dim + at, was = *weight;

            *weight = was + 0x1p-10f;
            double more = plain_loss(rows, weights, ids, dim);

            *weight = was - 0x1p-10f;
            double less = plain_loss(rows, weights, ids, dim), expected = (more - less) * 0x1p9;

            *weight = was;
            if (fabs(gradient_of(task, key, dim, at) - expected) > 1e-4 * (1 + fabs(expected)))
                fail_msg("key %llu, %zu: %g instead of %g", (unsigned long long)key, at,
                         gradient_of(task, key, dim, at), expected);
        }
    }
}

static void check_gradient(const tiny_set *set, unsigned factors)
{
    pace__model_plan plan = make_plan(set, factors);
    pace__rows rows = tiny_view(set, PACE__TRAIN);
    size_t dim = plan.shape.dim, room = pace__model_keys_max(&plan, ROWS) + 1;
    float *weights = make_weights(&plan);
    pace__model_batch batch = {0};
    pace__model *model;
    pace__task task = {.batch = &batch,
                       .weights = tiny_alloc(room * dim * sizeof(float)),
                       .sums = tiny_alloc(room * dim * sizeof(float))};

    assert_ok(pace__model_create(&plan, ROWS, 1, false, &said_log, &model));
    assert_ok(pace__model_find(model, &rows, 0, &batch));
    for (size_t i = 0; i < room * dim; i++)
        task.weights[i] = task.sums[i] = 1e9f; /* must be set */
    for (uint32_t slot = 0; slot < batch.keys.count; slot++)
        memcpy(task.weights + slot * dim, weights + batch.keys.keys[slot] * dim, dim * sizeof *weights);
    assert_ok(pace__model_gradient(model, &task));
    assert_float_equal(task.loss, plain_loss(&rows, weights, plan.data.ids, dim), 1e-3);
    compare_differences(&task, &plan, &rows, weights);
    for (size_t at = 1; at < dim; at++)
        assert_true(task.sums[at] == 0); /* the bias has no factors */
    pace__model_batch_release(&batch);
    pace__model_free(model);
    pace__model_plan_release(&plan);
    free(task.weights);
    free(task.sums);
    free(weights);
}

static void gradients_are_differences_of_the_loss(void **state)
{
    (void)state;
    for (size_t l = 0; l < LAYOUTS; l++) {
        tiny_set set = tiny_make(layouts[l]);

        check_gradient(&set, l == 2 ? 2 : 5);
        tiny_free(&set);
    }
}

/* --- the beginning --- */

static void first_values_depend_on_seed_and_key(void **state)
{
    tiny_set set = tiny_make(layouts[0]);
    pace__model_plan plan = make_plan(&set, 8);
    size_t dim = plan.shape.dim, stride = dim + 3, keys = (size_t)plan.shape.keys;
    float *rows = tiny_alloc(keys * stride * sizeof *rows), factors[8];

    (void)state;
    assert_true(pace__model_begins_random(&plan));
    for (size_t i = 0; i < keys * stride; i++)
        rows[i] = 5;
    assert_ok(pace__model_first_weights(&plan, stride, rows, &said_log));
    for (size_t key = 0; key < keys; key++) {
        assert_true(rows[key * stride] == 0 && rows[key * stride + dim] == 5);
        pace__fm_init_factors(7, key, 8, factors);
        for (size_t f = 0; f < 8; f++)
            assert_true(rows[key * stride + 1 + f] == (key == keys - 1 ? 0 : factors[f]));
    }
    pace__fm_init_factors(8, 0, 8, factors);
    assert_memory_not_equal(factors, rows + 1, sizeof factors);
    free(rows);
    pace__model_plan_release(&plan);
    tiny_free(&set);
}

/* --- files --- */

static void write_model(void **state, const tiny_set *set, const pace__model_plan *plan, const float *weights)
{
    pace__origin origin;
    pace__store store;

    tiny_write(set, in(state, "set"));
    assert_ok(pace__store_open(in(state, "set"), &store, &said_log));
    assert_ok(pace__origin_read(&store, &said_log, &origin));
    assert_ok(pace__model_write(plan, weights, &origin, in(state, "model"), NULL, &said_log));
    pace__origin_release(&origin);
    pace__store_close(&store);
}

/* The same logits, by a data set's ids and by places in the model's list. */
static void models_come_back(void **state)
{
    tiny_set set = tiny_make(layouts[3]);
    pace__model_plan plan = make_plan(&set, 5);
    pace__rows rows = tiny_view(&set, PACE__TEST);
    float *weights = make_weights(&plan), found[ROWS];
    pace__scorer scorer;
    pace__store store;

    write_model(state, &set, &plan, weights);
    assert_ok(pace__scorer_open(in(state, "model"), &said_log, &scorer));
    assert_int_equal(scorer.saved.model.count, set.info.ids_seen);
    for (uint32_t id = 0; id < set.info.ids_seen; id++) {
        uint32_t place = pace__scorer_place(&scorer, 5 * (uint64_t)id + 3);

        assert_memory_equal(scorer.saved.model.weights + place * plan.shape.dim,
                            weights + id * plan.shape.dim, plan.shape.dim * sizeof *weights);
    }
    assert_ok(pace__store_open(in(state, "set"), &store, &said_log));
    assert_ok(pace__scorer_fit(&scorer, &store));
    assert_ok(pace__scorer_logits(&scorer, &rows, found));
    for (size_t row = 0; row < rows.rows; row++)
        assert_float_equal(found[row], plain_logit(&rows, row, weights, set.info.ids_seen, plan.shape.dim),
                           1e-4);
    pace__store_close(&store);
    pace__scorer_close(&scorer);
    pace__model_plan_release(&plan);
    free(weights);
    tiny_free(&set);
}

/* Refused, or another model that is a valid one. */
static void every_flipped_byte_is_survived(void **state)
{
    tiny_set set = tiny_make(layouts[0]);
    pace__model_plan plan = make_plan(&set, 2);
    float *weights = make_weights(&plan);
    unsigned whole = 0, refused = 0;
    char *bytes;
    size_t size;

    write_model(state, &set, &plan, weights);
    assert_ok(pace__read_file(in(state, "model"), 1 << 16, &bytes, &size, &said_log));
    int fd = open(in(state, "model"), O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    for (size_t at = 0; at < size; at++) {
        char flipped = (char)(bytes[at] ^ (1 << at % 8));
        pace__saved saved;

        assert_int_equal(pwrite(fd, &flipped, 1, (off_t)at), 1);
        said_clear();
        pace_status status = pace__saved_open(in(state, "model"), &said_log, &saved);

        if (status)
            assert_failed(status, PACE_BAD_DATA, in(state, "model"));
        refused += status != PACE_OK;
        whole += status == PACE_OK;
        pace__saved_close(&saved);
        assert_int_equal(pwrite(fd, bytes + at, 1, (off_t)at), 1);
    }
    assert_true(whole > 0 && refused > 0);
    close(fd);
    free(bytes);
    free(weights);
    pace__model_plan_release(&plan);
    tiny_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_sums_over_pairs),
        cmocka_unit_test(gradients_are_differences_of_the_loss),
        cmocka_unit_test(first_values_depend_on_seed_and_key),
        cmocka_unit_test_setup_teardown(models_come_back, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(every_flipped_byte_is_survived, make_directory, remove_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
