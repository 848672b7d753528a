/* The recurrent network as those see it who spread its training: slots, gradients and logits, against the
 * same computed by hand; and its first weights. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "made_models.h"

#define RNN_ROWS 30

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rnn_gradients),     cmocka_unit_test(rnn_tells_what_is_ready),
        cmocka_unit_test(rnn_logits),        cmocka_unit_test(rnn_drops_words),
        cmocka_unit_test(rnn_begins_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
