/* Models as those see them who spread their training: keys, slots and gradients, against the same computed
 * by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "made_models.h"

/* --- logistic regression, in double precision --- */

/* By key: the gradient, and whether any of the rows has it. */
typedef struct linear {
    double loss, *gradient;
    bool *used;
    float *logits; /* (rows) */
} linear;

static linear make_linear(uint32_t ids, size_t rows)
{
    return (linear){.gradient = tiny_alloc((ids + (size_t)1) * sizeof(double)),
                    .used = tiny_alloc(ids + (size_t)1),
                    .logits = tiny_alloc(rows * sizeof(float))};
}

static void free_linear(linear *self)
{
    free(self->gradient);
    free(self->used);
    free(self->logits);
}

/* One row of features; the bias is the key behind them, which is "unseen" in rows. */
static void add_row(linear *self, size_t row, uint32_t ids, const uint32_t *features, const float *values,
                    size_t count, uint8_t label)
{
    double logit = (double)weight_of(ids);

    for (size_t i = 0; i < count; i++)
        logit += features[i] == ids ? 0 : (double)weight_of(features[i]) * (values ? (double)values[i] : 1);
    double p = 1 / (1 + exp(-logit)), slope = p - label;

    self->loss -= log(label ? p : 1 - p);
    self->logits[row] = (float)logit;
    self->gradient[ids] += slope;
    self->used[ids] = true;
    for (size_t i = 0; i < count; i++) {
        if (features[i] == ids)
            continue;
        self->gradient[features[i]] += slope * (values ? (double)values[i] : 1);
        self->used[features[i]] = true;
    }
}

/* Gradients by slot are those by key, of all keys that matter, each once. */
static void compare_linear(const made *self, const linear *expected)
{
    const pace__key_batch *keys = &self->batch.keys;
    uint32_t used = 0;

    assert_near(self->task.loss, expected->loss, 1e-4, "the loss", 0);
    for (uint64_t key = 0; key < self->shape.keys; key++)
        used += expected->used[key];
    assert_int_equal(keys->count, used);
    for (uint32_t slot = 0; slot < keys->count; slot++) {
        assert_true(expected->used[keys->keys[slot]]);
        assert_near((double)self->task.sums[slot], expected->gradient[keys->keys[slot]], 1e-4, "key",
                    keys->keys[slot]);
    }
}

/* The caller's weights stay what they are, however often the model is told to use them. */
static void check_linear_logits(made *self, const pace__rows *rows, const linear *expected)
{
    float *weights = all_weights(&self->shape), *same = all_weights(&self->shape);
    float *logits = tiny_alloc(rows->rows * sizeof *logits);
    size_t bias = (size_t)self->shape.keys - 1;

    for (int round = 0; round < 4; round++) {
        float more = round == 3 ? 1 : 0; /* changed between two calls */

        if (round != 1)
            pace__model_use(self->model, weights);
        weights[bias] += more;
        same[bias] += more;
        assert_ok(pace__model_logits(self->model, rows, logits));
        for (size_t row = 0; row < rows->rows; row++)
            assert_near((double)(logits[row] - more), (double)expected->logits[row], 1e-5, "row", row);
        assert_memory_equal(weights, same, (size_t)self->shape.keys * sizeof *weights);
    }
    free(weights);
    free(same);
    free(logits);
}

/* --- on sparse rows --- */

static linear solve_sparse(const pace__rows *rows, uint32_t ids)
{
    linear solved = make_linear(ids, rows->rows);

    for (size_t row = 0; row < rows->rows; row++) {
        uint64_t at = pace__row_start(rows, row), end = pace__row_start(rows, row + 1);

        add_row(&solved, row, ids, rows->ids + at, rows->values ? rows->values + at : NULL, end - at,
                rows->label[row]);
    }
    return solved;
}

static void check_sparse(const tiny_set *set)
{
    static const size_t sizes[] = {200, 1, 0, 63, 64, 65, 140};
    pace__model_plan plan = logreg_plan(&set->info, 1, PACE_ADAGRAD);
    uint32_t ids = set->info.ids_seen;
    pace__rows all = tiny_view(set, PACE__TRAIN);
    made *self = make_model(&plan, 200, 1);

    assert_int_equal(self->shape.keys, ids + 1);
    assert_int_equal(self->shape.dim, 1);
    assert_int_equal(self->shape.dense_rows, 0);
    assert_false(pace__model_begins_random(&plan));
    for (size_t i = 0, first = 0; i < sizeof sizes / sizeof *sizes; first += sizes[i++]) {
        pace__rows rows = pace__rows_slice(&all, first, sizes[i]);
        linear expected = solve_sparse(&rows, ids);

        expected.used[ids] = true; /* the bias is there without rows, too */
        fetch(self, &rows);
        assert_ok(pace__model_gradient(self->model, &self->task));
        compare_linear(self, &expected);
        free_linear(&expected);
    }
    linear expected = solve_sparse(&all, ids);

    check_linear_logits(self, &all, &expected);
    free_linear(&expected);
    free_made(self);
    pace__model_plan_release(&plan);
}

static void logreg_on_sparse_rows(void **state)
{
    (void)state;
    for (int layout = 0; layout < 8; layout++) {
        tiny_set set = tiny_make((tiny_plan){.train = 600,
                                             .ids = layout & 1 ? 300 : 5000, /* most, or few of them */
                                             .columns = layout & 1 ? 11 : 0,
                                             .has_values = layout & 2,
                                             .unseen = layout & 4,
                                             .seed = 40 + (uint64_t)layout});

        set.info.like = layout & 4;
        check_sparse(&set);
        tiny_free(&set);
    }
}

/* --- how many keys --- */

/* Rows whose entries are all different: no rows need more keys. Then there are no other ids left. */
static void keys_at_most(void **state)
{
    enum { COLUMNS = 5, ROWS = 8, IDS = 30 };
    uint32_t ids[ROWS * COLUMNS], length[ROWS];
    uint8_t label[ROWS] = {0};
    pace__store_info info = {.columns = COLUMNS, .row_entries_max = COLUMNS, .ids_seen = IDS};
    pace__rnn_config config = usual;

    (void)state;
    config.words = IDS;
    config.length = COLUMNS;
    pace__model_plan plans[] = {logreg_plan(&info, 1, PACE_SGD), rnn_plan_of(&info, &config)};

    for (uint32_t i = 0; i < ROWS * COLUMNS; i++) {
        ids[i] = i % IDS;
        length[i / COLUMNS] = COLUMNS;
    }
    for (size_t i = 0; i < 2 * (ROWS + 1); i++) {
        const pace__model_plan *plan = &plans[i % 2];
        size_t rows_max = i / 2, most = pace__model_keys_max(plan, rows_max);
        pace__rows rows = {.rows = rows_max, .columns = COLUMNS, .ids = ids, .label = label};
        made *self = make_model(plan, rows_max, 1);
        uint64_t entries = rows_max * COLUMNS < IDS ? rows_max * COLUMNS : IDS;
        uint64_t others = i % 2 ? self->shape.dense_rows : 1; /* the bias */

        rows.length = i % 2 ? length : NULL;
        fetch(self, &rows);
        assert_int_equal(self->batch.keys.count, entries + others);
        assert_in_range(most, entries + others, self->shape.keys);
        assert_int_equal(pace__model_keys_max(plan, UINT64_MAX), self->shape.keys);
        free_made(self);
    }
    pace__model_free(NULL);
    pace__model_plan_release(&plans[0]);
    pace__model_plan_release(&plans[1]);
}

/* --- something else on the way --- */

static void logreg_lets_others_work(void **state)
{
    tiny_set set = tiny_make((tiny_plan){.train = 2000, .ids = 300, .columns = 5, .seed = 3});
    pace__model_plan plan = logreg_plan(&set.info, 1, PACE_SGD);
    pace__rows rows = tiny_view(&set, PACE__TRAIN);
    made *self = make_model(&plan, rows.rows, 1);
    calls seen = {0};

    (void)state;
    fetch(self, &rows);
    self->task.ready = count_calls;
    self->task.user = &seen;
    assert_ok(pace__model_gradient(self->model, &self->task));
    assert_in_range(seen.count, 3, 2000 / 64 + 1);
    seen = (calls){.most = 2};
    assert_int_equal(pace__model_gradient(self->model, &self->task), PACE_BAD_DATA);
    assert_int_equal(seen.count, 2);
    free_made(self);
    pace__model_plan_release(&plan);
    tiny_free(&set);
}

/* --- on texts --- */

/* The words and n-grams of a row, each once. */
static size_t features_of(const pace__rows *rows, size_t row, uint32_t words, unsigned ngram,
                          uint32_t *features)
{
    const uint32_t *ids = pace__row_words(rows, row);
    size_t count = 0;

    for (unsigned length = 1; length <= ngram; length++) {
        for (uint32_t first = 0; first + length <= rows->length[row]; first++) {
            uint32_t id = length == 1 ? ids[first] : pace__ngram_id(ids + first, length, words);
            bool known = length == 1 && id == PACE__ID_EMPTY; /* stands alone */

            for (size_t i = 0; i < count; i++)
                known |= features[i] == id;
            features[count] = id;
            count += !known;
        }
    }
    return count;
}

static linear solve_texts(const pace__rows *rows, const tiny_texts *set, unsigned ngram)
{
    uint32_t words = set->info.ids_seen, ids = pace__ngram_ids(words, ngram), features[200];
    linear solved = make_linear(ids, rows->rows);

    for (size_t row = 0; row < rows->rows; row++) {
        size_t count = features_of(rows, row, words, ngram, features);

        assert_in_range(count, 0, (uint64_t)set->plan.length * ngram);
        add_row(&solved, row, ids, features, NULL, count, rows->label[row]);
    }
    return solved;
}

static void check_texts(const tiny_texts *set, unsigned ngram)
{
    pace__model_plan plan = logreg_plan(&set->info, ngram, PACE_ADAGRAD);
    pace__rows all = tiny_texts_view(set, PACE__TRAIN);
    made *self = make_model(&plan, 70, 1);

    assert_int_equal(self->shape.keys, pace__ngram_ids(set->info.ids_seen, ngram) + 1);
    assert_int_equal(self->shape.dim, 1);
    assert_int_equal(plan.entries_max, set->plan.length * ngram);
    for (size_t first = 0; first < all.rows; first += 70) {
        pace__rows rows = pace__rows_slice(&all, first, all.rows - first < 70 ? all.rows - first : 70);
        linear expected = solve_texts(&rows, set, ngram);

        fetch(self, &rows);
        assert_ok(pace__model_gradient(self->model, &self->task));
        compare_linear(self, &expected);
        free_linear(&expected);
    }
    linear expected = solve_texts(&all, set, ngram);

    check_linear_logits(self, &all, &expected);
    free_linear(&expected);
    free_made(self);
    pace__model_plan_release(&plan);
}

static void logreg_on_texts(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        tiny_texts set = tiny_texts_make(
            (tiny_texts_plan){.train = 150, .words = 40, .length = 12, .front = i % 2, .seed = 5 + i});

        check_texts(&set, i == 3 ? 1 : i + 1);
        tiny_texts_free(&set);
    }
}

/* --- files --- */

static void files_hold_the_weights(void **state)
{
    tiny_texts set = tiny_texts_make((tiny_texts_plan){.train = 20, .words = 30, .length = 8, .seed = 2});
    pace__model_plan plans[] = {rnn_plan(&set, 6), logreg_plan(&set.info, 1, PACE_SGD)};
    pace__origin origin;
    char sha256[PACE__SHA256_HEX];
    rnn_file rnn;
    linear_file flat;
    pace__store store;

    tiny_texts_write(&set, in(state, "set"));
    assert_ok(pace__store_open(in(state, "set"), &store, &said_log));
    for (int i = 0; i < 2; i++) {
        pace__shape shape = plans[i].shape;
        float *weights = all_weights(&shape);

        assert_ok(pace__origin_read(&store, &said_log, &origin));
        assert_ok(pace__model_write(&plans[i], weights, &origin, in(state, "model.safetensors"), sha256,
                                    &said_log));
        pace__origin_release(&origin);
        if (i == 0) {
            size_t words = (size_t)own_of(&plans[0])->config.words * shape.dim;

            assert_ok(rnn_read(in(state, "model.safetensors"), &rnn));
            assert_memory_equal(rnn.embedding, weights, words * sizeof *weights);
            assert_memory_equal(rnn.dense, weights + words, shape.dense * sizeof *weights);
            rnn_release(&rnn);
        } else {
            assert_ok(linear_read(in(state, "model.safetensors"), &flat));
            assert_true(flat.bias == weights[shape.keys - 1]);
            for (uint64_t id = 0; id + 1 < shape.keys; id++)
                assert_true(linear_find(&flat, id) == weights[id]);
            linear_release(&flat);
        }
        free(weights);
        pace__model_plan_release(&plans[i]);
    }
    pace__store_close(&store);
    tiny_texts_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logreg_on_sparse_rows),
        cmocka_unit_test(keys_at_most),
        cmocka_unit_test(logreg_lets_others_work),
        cmocka_unit_test(logreg_on_texts),
        cmocka_unit_test_setup_teardown(files_hold_the_weights, make_directory, remove_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
