/* Models as those see them who spread their training: keys, slots and gradients, against the same computed
 * by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/store/describe.h"

#include "model_files.h"
#include "support.h"

#include "tiny_texts.h"

static void assert_near(double found, double expected, double tolerance, const char *what, size_t at)
{
    if (!(fabs(found - expected) <= tolerance * (1 + fabs(expected))))
        fail_msg("%s %zu: %.9g instead of %.9g", what, at, found, expected);
}

/* A weight for every key, of some size. */
static float weight_of(uint64_t key)
{
    return (float)((double)(pace__mix64(key + 99) >> 11) * 0x1p-53 - 0.5);
}

static const pace__rnn_config usual = {.embed = 5,
                                       .hidden = 4,
                                       .layers = 2,
                                       .dense = 3,
                                       .cell = PACE_CELL_LSTM,
                                       .pooling = PACE_POOL_MEAN,
                                       .both = true,
                                       .dropout = 0.3f,
                                       .loss = PACE_LOSS_BCE,
                                       .focal = 2,
                                       .weight = {1, 2},
                                       .seed = 7};

/* --- plans, to be released --- */

static pace__model_plan logreg_plan(const pace__store_info *info, unsigned ngram, int rule)
{
    pace__dataset data = pace__store_describe(info);
    pace__model_plan plan;

    assert_ok(pace__logreg_model_plan(&data, ngram, &said_log, &plan));
    plan.optim = pace__optim_make(rule, 0.1, 0, 0, 0);
    return plan;
}

static pace__model_plan rnn_plan_of(const pace__store_info *info, const pace__rnn_config *config)
{
    pace__dataset data = pace__store_describe(info);
    pace__model_plan plan;

    assert_ok(pace__rnn_model_plan(&data, config, 0, &said_log, &plan));
    return plan;
}

static pace__rnn_own *own_of(const pace__model_plan *plan)
{
    return plan->own;
}

/* --- some rows, and what a model makes of them --- */

typedef struct made {
    pace__model_plan plan;
    pace__shape shape;
    pace__model *model;
    pace__model_batch batch;
    pace__task task;
    size_t room; /* rows of parameters in task.weights and .sums */
} made;

static made *make_model(const pace__model_plan *plan, uint64_t rows_max, int threads)
{
    made *self = tiny_alloc(sizeof *self);

    said_clear();
    self->plan = *plan;
    self->shape = plan->shape;
    assert_ok(pace__model_create(plan, rows_max, threads, false, &said_log, &self->model));
    assert_true(pace__model_memory(plan, rows_max, threads, false) > 0);
    self->room = pace__model_keys_max(plan, rows_max) + 1;
    self->task = (pace__task){.batch = &self->batch,
                              .weights = tiny_alloc(self->room * self->shape.dim * sizeof(float)),
                              .sums = tiny_alloc(self->room * self->shape.dim * sizeof(float))};
    return self;
}

static void free_made(made *self)
{
    pace__model_batch_release(&self->batch);
    pace__model_free(self->model);
    free(self->task.weights);
    free(self->task.sums);
    free(self);
}

/* The keys of the rows, and their weights, as a worker gets them; what must be set holds something else. */
static void fetch(made *self, const pace__rows *rows)
{
    unsigned dim = self->shape.dim;
    const pace__key_batch *keys = &self->batch.keys;

    assert_ok(pace__model_find(self->model, rows, PACE__NO_PLACE, &self->batch));
    assert_true(keys->count < self->room);
    assert_int_equal(self->batch.sparse + self->shape.dense_rows, keys->count);
    for (size_t i = 0; i < self->room * dim; i++)
        self->task.sums[i] = self->task.weights[i] = 1e9f;
    for (uint32_t slot = 0; slot < keys->count; slot++) {
        assert_true(keys->keys[slot] < self->shape.keys);
        for (unsigned at = 0; at < dim; at++)
            self->task.weights[slot * dim + at] = weight_of((uint64_t)keys->keys[slot] * dim + at);
    }
}

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

/* Weights of all keys, as for scoring. */
static float *all_weights(const pace__shape *shape)
{
    size_t count = (size_t)shape->keys * shape->dim;
    float *weights = tiny_alloc((count + shape->dim) * sizeof *weights);

    for (size_t i = 0; i < count; i++)
        weights[i] = weight_of(i);
    return weights;
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

typedef struct calls {
    unsigned count, most;
    size_t first; /* of the last */
} calls;

static pace_status count_calls(void *user, size_t first)
{
    calls *self = user;

    assert_true(self->count == 0 || first <= self->first);
    self->first = first;
    self->count++;
    return self->count == self->most ? PACE_BAD_DATA : PACE_OK;
}

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

/* --- the recurrent network --- */

#define RNN_ROWS 30

static pace__model_plan rnn_plan(const tiny_texts *set, unsigned variant)
{
    pace__rnn_config config = usual;

    config.words = set->info.ids_seen;
    config.length = set->plan.length;
    config.cell = variant & 1 ? PACE_CELL_GRU : PACE_CELL_LSTM;
    config.both = variant & 2;
    config.layers = 1 + variant % 3;
    config.embed = variant & 1 ? 7 : 5;
    config.pooling = (int)(variant % 3);
    config.dense = variant & 4 ? 3 : 0;
    config.dropout = variant & 2 ? 0.3f : 0;
    return rnn_plan_of(&set->info, &config);
}

/* A batch made by hand: words have slots in the order in which they occur. */
typedef struct by_hand {
    pace__rows rows;
    uint32_t slots[RNN_ROWS * 12], keys[RNN_ROWS * 12];
    float *embedding, *dense, *embedding_sums, *dense_sums;
    pace__rnn_batch batch;
} by_hand;

static uint32_t hand_slot(by_hand *self, uint32_t word)
{
    uint32_t slot = 0;

    while (slot < self->batch.slots && self->keys[slot] != word)
        slot++;
    self->keys[slot] = word;
    self->batch.slots += slot == self->batch.slots;
    return slot;
}

static by_hand *make_by_hand(const pace__rnn_config *config, const pace__rows *rows, uint64_t place)
{
    by_hand *self = tiny_alloc(sizeof *self);
    size_t dense = pace__rnn_dense(config), words;

    assert_true(rows->rows <= RNN_ROWS && rows->columns <= 12);
    self->rows = *rows;
    self->rows.ids = self->slots;
    for (size_t row = 0; row < rows->rows; row++) {
        const uint32_t *ids = pace__row_words(rows, row);

        for (uint32_t i = 0; i < rows->length[row]; i++)
            self->slots[ids + i - rows->ids] = hand_slot(self, ids[i]);
    }
    words = (size_t)self->batch.slots * config->embed;
    self->embedding = tiny_alloc(words * sizeof(float));
    self->embedding_sums = tiny_alloc(words * sizeof(float));
    self->dense = tiny_alloc(dense * sizeof(float));
    self->dense_sums = tiny_alloc(dense * sizeof(float));
    for (size_t i = 0; i < words; i++)
        self->embedding[i] =
            weight_of((uint64_t)self->keys[i / config->embed] * config->embed + i % config->embed);
    for (size_t i = 0; i < dense; i++)
        self->dense[i] = weight_of((uint64_t)config->words * config->embed + i);
    self->batch = (pace__rnn_batch){.rows = &self->rows,
                                    .place = place,
                                    .slots = self->batch.slots,
                                    .embedding = self->embedding,
                                    .dense = self->dense,
                                    .embedding_sums = self->embedding_sums,
                                    .dense_sums = self->dense_sums};
    return self;
}

static void free_by_hand(by_hand *self)
{
    free(self->embedding);
    free(self->embedding_sums);
    free(self->dense);
    free(self->dense_sums);
    free(self);
}

/* The plain network rounds in another order. */
static void compare_near(const made *self, const by_hand *hand, const float *dense_sums)
{
    size_t sparse = (size_t)hand->batch.slots * self->shape.dim;

    assert_near(self->task.loss, hand->batch.loss, 1e-5, "the loss", 0);
    for (size_t i = 0; i < sparse; i++)
        assert_near((double)self->task.sums[i], (double)hand->embedding_sums[i], 2e-5, "word's", i);
    for (size_t i = 0; i < self->shape.dense; i++)
        assert_near((double)dense_sums[i], (double)hand->dense_sums[i], 2e-5, "dense", i);
}

static void compare_bits(const made *self, const by_hand *hand, const float *dense_sums)
{
    size_t sparse = (size_t)hand->batch.slots * self->shape.dim;

    assert_true(self->task.loss == hand->batch.loss);
    assert_memory_equal(self->task.sums, hand->embedding_sums, sparse * sizeof(float));
    assert_memory_equal(dense_sums, hand->dense_sums, self->shape.dense * sizeof(float));
}

/* What is left of the last dense row. */
static void assert_rest_is_0(const pace__shape *shape, const float *dense)
{
    for (size_t i = shape->dense; i < (size_t)shape->dense_rows * shape->dim; i++)
        assert_true(dense[i] == 0);
}

/* Gradients of dense rows behind the others, or somewhere else. */
static void check_gradient(made *self, const pace__rows *rows, uint64_t place)
{
    const pace__rnn_config *config = &own_of(&self->plan)->config;
    const pace__key_batch *keys = &self->batch.keys;
    by_hand *hand = make_by_hand(config, rows, place);
    size_t dense_floats = (size_t)self->shape.dense_rows * self->shape.dim;
    float *elsewhere = tiny_alloc(dense_floats * sizeof *elsewhere);
    pace__rnn *rnn;

    fetch(self, rows);
    assert_int_equal(self->batch.sparse, hand->batch.slots);
    assert_memory_equal(keys->keys, hand->keys, hand->batch.slots * sizeof *hand->keys);
    for (uint32_t i = 0; i < self->shape.dense_rows; i++)
        assert_int_equal(keys->keys[self->batch.sparse + i], config->words + i);
    float *dense_sums = self->task.sums + (size_t)self->batch.sparse * self->shape.dim;

    self->task.place = place;
    assert_ok(pace__model_gradient(self->model, &self->task));
    assert_ok(pace__rnn_plain_gradient(config, &hand->batch, &said_log));
    compare_near(self, hand, dense_sums);
    assert_ok(pace__rnn_create(config, RNN_ROWS, 1, false, &said_log, &rnn));
    assert_ok(pace__rnn_gradient(rnn, &hand->batch));
    compare_bits(self, hand, dense_sums);
    assert_rest_is_0(&self->shape, dense_sums);
    memset(elsewhere, 0xff, dense_floats * sizeof *elsewhere);
    fetch(self, rows);
    self->task.dense_sums = elsewhere;
    assert_ok(pace__model_gradient(self->model, &self->task));
    compare_bits(self, hand, elsewhere);
    assert_rest_is_0(&self->shape, elsewhere);
    for (size_t i = 0; i < dense_floats; i++)
        assert_true(dense_sums[i] == 1e9f);
    self->task.dense_sums = NULL;
    pace__rnn_free(rnn);
    free(elsewhere);
    free_by_hand(hand);
}

#define VARIANTS 12

static tiny_texts make_rnn_texts(unsigned variant)
{
    return tiny_texts_make((tiny_texts_plan){
        .train = 50, .words = 40, .length = 10 + variant % 3, .front = variant % 2, .seed = 20 + variant});
}

static void rnn_gradients(void **state)
{
    unsigned with_rest = 0;

    (void)state;
    for (unsigned variant = 0; variant < VARIANTS; variant++) {
        tiny_texts set = make_rnn_texts(variant);
        pace__model_plan plan = rnn_plan(&set, variant);
        pace__rows all = tiny_texts_view(&set, PACE__TRAIN);
        made *self = make_model(&plan, RNN_ROWS, 1 + (int)variant % 3);
        const pace__rnn_config *config = &own_of(&plan)->config;
        uint64_t dim = config->embed, dense = pace__rnn_dense(config);

        assert_int_equal(self->shape.dim, dim);
        assert_int_equal(self->shape.dense, dense);
        assert_int_equal(self->shape.dense_rows, (dense + dim - 1) / dim);
        assert_int_equal(self->shape.keys, config->words + self->shape.dense_rows);
        with_rest += dense % dim != 0;
        for (size_t first = 0; first < 40; first += 17) { /* of 30, 30, 16 rows, and few again */
            size_t count = all.rows - first < RNN_ROWS ? all.rows - first : RNN_ROWS;
            pace__rows rows = pace__rows_slice(&all, first, count), few = pace__rows_slice(&all, first, 3);

            check_gradient(self, &rows, 100000 * first);
            check_gradient(self, &few, first);
        }
        free_made(self);
        pace__model_plan_release(&plan);
        tiny_texts_free(&set);
    }
    assert_in_range(with_rest, 3, VARIANTS);
}

static void rnn_tells_what_is_ready(void **state)
{
    (void)state;
    for (unsigned variant = 0; variant < VARIANTS; variant++) {
        tiny_texts set = make_rnn_texts(variant);
        pace__model_plan plan = rnn_plan(&set, variant);
        pace__rows all = tiny_texts_view(&set, PACE__TRAIN), rows = pace__rows_slice(&all, 0, RNN_ROWS);
        made *self = make_model(&plan, RNN_ROWS, 1);
        calls seen = {.first = SIZE_MAX};

        fetch(self, &rows);
        self->task.ready = count_calls;
        self->task.user = &seen;
        assert_ok(pace__model_gradient(self->model, &self->task));
        assert_true(seen.count > 0 && seen.first == 0);
        seen = (calls){.most = 1};
        assert_int_equal(pace__model_gradient(self->model, &self->task), PACE_BAD_DATA);
        assert_int_equal(seen.count, 1);
        free_made(self);
        pace__model_plan_release(&plan);
        tiny_texts_free(&set);
    }
}

/* More rows than a batch may have go in pieces. The weights stay the caller's, who may change them. */
static void check_logits(made *self, const pace__rows *all, float *weights, size_t rows_max)
{
    const pace__rnn_config *config = &own_of(&self->plan)->config;
    float *found = tiny_alloc(all->rows * sizeof *found), expected[RNN_ROWS], plain[RNN_ROWS];
    pace__rnn *rnn;

    assert_ok(pace__rnn_create(config, rows_max, 1, false, &said_log, &rnn));
    assert_ok(pace__model_logits(self->model, all, found));
    for (size_t first = 0; first < all->rows; first += rows_max) {
        size_t count = all->rows - first < rows_max ? all->rows - first : rows_max;
        pace__rows rows = pace__rows_slice(all, first, count);
        by_hand *hand = make_by_hand(config, &rows, 0);

        memcpy(hand->dense, weights + (size_t)config->words * config->embed,
               self->shape.dense * sizeof(float));
        assert_ok(pace__rnn_logits(rnn, &hand->batch, expected));
        assert_memory_equal(found + first, expected, count * sizeof *expected);
        assert_ok(pace__rnn_plain_logits(config, &hand->batch, plain, &said_log));
        for (size_t i = 0; i < count; i++)
            assert_near((double)expected[i], (double)plain[i], 1e-5, "row", first + i);
        free_by_hand(hand);
    }
    pace__rnn_free(rnn);
    free(found);
}

static void rnn_logits(void **state)
{
    (void)state;
    for (unsigned variant = 0; variant < VARIANTS; variant++) {
        static const size_t most[] = {RNN_ROWS, 7, 1};
        tiny_texts set = make_rnn_texts(variant);
        pace__model_plan plan = rnn_plan(&set, variant);
        pace__rows all = tiny_texts_view(&set, PACE__TRAIN);
        size_t rows_max = most[variant % 3];
        made *self = make_model(&plan, rows_max, 1 + (int)variant % 2);
        float *weights = all_weights(&self->shape);

        pace__model_use(self->model, weights);
        check_logits(self, &all, weights, rows_max);
        for (size_t i = 0; i < self->shape.dense; i++)
            weights[(size_t)own_of(&plan)->config.words * self->shape.dim + i] *= -0.5f;
        check_logits(self, &all, weights, rows_max);
        free(weights);
        free_made(self);
        pace__model_plan_release(&plan);
        tiny_texts_free(&set);
    }
}

/* --- first weights --- */

/* The word that a slot of the batch stands for. */
static uint32_t word_at(const made *self, size_t row, uint32_t at)
{
    const pace__rows *rows = &self->batch.keys.rows;

    return self->batch.keys.keys[pace__row_words(rows, row)[at]];
}

/* In training some words are unknown: always the same ones for the same place, however rows are batched. */
static void rnn_drops_words(void **state)
{
    tiny_texts set = tiny_texts_make(
        (tiny_texts_plan){.train = 200, .words = 40, .length = 12, .front = true, .seed = 77});
    pace__model_plan plan = rnn_plan(&set, 0);
    pace__rows all = tiny_texts_view(&set, PACE__TRAIN);
    uint64_t dropped = 0, words = 0, differ = 0;

    (void)state;
    own_of(&plan)->word_dropout = 0.25;
    made *whole = make_model(&plan, 200, 1), *part = make_model(&plan, 200, 1);

    assert_ok(pace__model_find(whole->model, &all, 1000, &whole->batch));
    for (size_t row = 0; row < all.rows; row++) {
        pace__rows one = pace__rows_slice(&all, row, 1);

        assert_ok(pace__model_find(part->model, &one, 1000 + row, &part->batch));
        for (uint32_t i = 0; i < all.length[row]; i++) {
            uint32_t word = word_at(whole, row, i), was = pace__row_words(&all, row)[i];

            assert_int_equal(word_at(part, 0, i), word);
            assert_true(word == was || word == PACE__ID_UNKNOWN);
            dropped += word != was;
            words += was != PACE__ID_UNKNOWN;
        }
        assert_ok(pace__model_find(part->model, &one, 5000 + row, &part->batch)); /* another epoch */
        for (uint32_t i = 0; i < all.length[row]; i++)
            differ += word_at(part, 0, i) != word_at(whole, row, i);
    }
    assert_in_range(dropped, words / 5, words * 3 / 10);
    assert_true(differ > words / 4);
    assert_ok(pace__model_find(whole->model, &all, PACE__NO_PLACE, &whole->batch));
    for (size_t row = 0; row < all.rows; row++)
        for (uint32_t i = 0; i < all.length[row]; i++)
            assert_int_equal(word_at(whole, row, i), pace__row_words(&all, row)[i]);
    free_made(part);
    free_made(whole);
    pace__model_plan_release(&plan);
    tiny_texts_free(&set);
}

static void rnn_begins_random(void **state)
{
    (void)state;
    for (unsigned variant = 0; variant < VARIANTS; variant++) {
        tiny_texts set = make_rnn_texts(variant);
        pace__model_plan plan = rnn_plan(&set, variant);
        const pace__rnn_config *config = &own_of(&plan)->config;
        pace__shape shape = plan.shape;
        size_t dim = shape.dim, stride = dim * (1 + variant % 3); /* room for state behind the weights */
        float *rows = tiny_alloc(shape.keys * stride * sizeof *rows), word[16];
        float *dense = tiny_alloc(shape.dense_rows * dim * sizeof *dense);

        assert_true(pace__model_begins_random(&plan));
        for (size_t i = 0; i < shape.keys * stride; i++)
            rows[i] = 5;
        assert_ok(pace__model_first_weights(&plan, stride, rows, &said_log));
        pace__rnn_init_dense(config, dense);
        for (uint32_t key = 0; key < shape.keys; key++) {
            bool is_word = key < config->words;

            if (is_word)
                pace__rnn_init_word(config, key, word);
            assert_memory_equal(rows + key * stride, is_word ? word : dense + (key - config->words) * dim,
                                dim * sizeof *rows);
            for (size_t i = dim; i < stride; i++)
                assert_true(rows[key * stride + i] == 5);
        }
        free(dense);
        free(rows);
        pace__model_plan_release(&plan);
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
        cmocka_unit_test(rnn_gradients),
        cmocka_unit_test(rnn_tells_what_is_ready),
        cmocka_unit_test(rnn_logits),
        cmocka_unit_test(rnn_drops_words),
        cmocka_unit_test(rnn_begins_random),
        cmocka_unit_test_setup_teardown(files_hold_the_weights, make_directory, remove_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
