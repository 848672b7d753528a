/* rnn_batches.h - batches of random rows and weights for recurrent networks, and what networks make of them: for tests that
 * compare. Include it behind <cmocka.h>. */
#ifndef UNIT_RNN_BATCHES_H
#define UNIT_RNN_BATCHES_H

#include "base/random.h"
#include "model/rnn/rnn.h"
#include "model/rnn/rnn_fast.h"
#include "support.h"

#define SEED 20240607

/* A batch with everything that it points to. */
typedef struct made {
    pace__rnn_config config;
    pace__rows rows;
    pace__rnn_batch batch;
    uint32_t *ids, *length;
    uint8_t *label;
    float *embedding, *dense;
    size_t dense_size, embedding_size;
} made;

static const pace__rnn_config usual = {
    .words = 300,
    .length = 7,
    .embed = 9,
    .hidden = 20,
    .layers = 1,
    .loss = PACE_LOSS_BCE,
    .weight = {1, 1},
    .seed = 7,
};

static inline float *floats(size_t count)
{
    float *values = calloc(count ? count : 1, sizeof *values);

    assert_non_null(values);
    return values;
}

static inline float draw_float(pace__random *random)
{
    return (float)(pace__random_unit(random) - 0.5);
}

/* Slots of rows in which some words are frequent; slot 3 is never met. */
static inline void make_rows(made *it, size_t rows, bool full, pace__random *random)
{
    uint32_t columns = it->config.length;

    it->ids = calloc(rows * columns + 1, sizeof *it->ids);
    it->length = calloc(rows + 1, sizeof *it->length);
    it->label = calloc(rows + 1, 1);
    assert_true(it->ids && it->length && it->label);
    for (size_t row = 0; row < rows; row++) {
        it->label[row] = (uint8_t)pace__random_below(random, 2);
        it->length[row] = full ? columns : 1 + (uint32_t)pace__random_below(random, columns);
        for (uint32_t i = 0; i < columns; i++) {
            uint32_t slot =
                (uint32_t)pace__random_below(random, 1 + pace__random_below(random, it->batch.slots));

            it->ids[row * columns + i] = slot == 3 ? 4 : slot;
        }
    }
    it->rows = (pace__rows){.rows = rows,
                            .columns = columns,
                            .ids = it->ids,
                            .label = it->label,
                            .length = it->length,
                            .front = pace__random_below(random, 2)};
    /* Padding may be any number. */
    for (size_t row = 0; row < rows; row++) {
        uint32_t pads = columns - it->length[row], first = it->rows.front ? 0 : it->length[row];

        for (uint32_t i = 0; i < pads; i++)
            it->ids[row * columns + first + i] = UINT32_MAX;
    }
}

static inline made make(pace__rnn_config config, size_t rows, bool full, uint64_t seed)
{
    pace__random random = pace__random_at(SEED, seed);
    made it = {.config = config};

    it.batch = (pace__rnn_batch){.slots = 60, .place = 1000 * seed};
    make_rows(&it, rows, full, &random);
    it.dense_size = pace__rnn_dense(&config);
    it.embedding_size = (size_t)it.batch.slots * config.embed;
    it.dense = floats(it.dense_size);
    it.embedding = floats(it.embedding_size);
    /* Large enough that the gates are not all in the middle. */
    for (size_t i = 0; i < it.dense_size; i++)
        it.dense[i] = draw_float(&random);
    for (size_t i = 0; i < it.embedding_size; i++)
        it.embedding[i] = 3 * draw_float(&random);
    it.batch.embedding = it.embedding;
    it.batch.dense = it.dense;
    it.batch.embedding_sums = floats(it.embedding_size);
    it.batch.dense_sums = floats(it.dense_size);
    return it;
}

static inline void unmake(made *it)
{
    free(it->ids);
    free(it->length);
    free(it->label);
    free(it->dense);
    free(it->embedding);
    free(it->batch.dense_sums);
    free(it->batch.embedding_sums);
}

/* Results of one computation; sums, embedding sums and logits in one array. */
typedef struct results {
    float *values;
    size_t count;
    double loss;
} results;

static inline results keep(const made *it, const float *logits)
{
    results kept = {.count = it->dense_size + it->embedding_size + it->rows.rows, .loss = it->batch.loss};

    kept.values = floats(kept.count);
    memcpy(kept.values, it->batch.dense_sums, it->dense_size * sizeof(float));
    memcpy(kept.values + it->dense_size, it->batch.embedding_sums, it->embedding_size * sizeof(float));
    memcpy(kept.values + it->dense_size + it->embedding_size, logits, it->rows.rows * sizeof(float));
    return kept;
}

static inline void spoil(made *it)
{
    memset(it->batch.dense_sums, 0x7f, it->dense_size * sizeof(float));
    memset(it->batch.embedding_sums, 0x7f, it->embedding_size * sizeof(float));
    it->batch.loss = -1;
}

static inline results run_plain(made *it)
{
    float *logits = floats(it->rows.rows);

    spoil(it);
    it->batch.rows = &it->rows;
    assert_ok(pace__rnn_plain_gradient(&it->config, &it->batch, &said_log));
    assert_ok(pace__rnn_plain_logits(&it->config, &it->batch, logits, &said_log));
    results kept = keep(it, logits);

    free(logits);
    return kept;
}

/* The second gradient of a network must be that of a new one. */
static inline results run_with(made *it, int threads, int kernels, const pace__bf16_kernels *bf16)
{
    float *logits = floats(it->rows.rows);
    pace__rnn_fast *fast;

    it->batch.rows = &it->rows;
    assert_ok(pace__rnn_fast_create_with(&it->config, it->rows.rows + 60, threads, kernels, bf16, &said_log,
                                         &fast));
    assert_ok(pace__rnn_fast_gradient(fast, &it->batch));
    assert_ok(pace__rnn_fast_logits(fast, &it->batch, logits));
    spoil(it);
    assert_ok(pace__rnn_fast_gradient(fast, &it->batch));
    pace__rnn_fast_free(fast);
    results kept = keep(it, logits);

    free(logits);
    return kept;
}

static inline results run_fast(made *it, int threads, int kernels)
{
    return run_with(it, threads, kernels, NULL);
}

static inline void assert_same_bits(const results *one, const results *other)
{
    assert_int_equal(one->count, other->count);
    assert_memory_equal(one->values, other->values, one->count * sizeof *one->values);
    assert_true(one->loss == other->loss);
}

/* --- networks --- */

#define NETWORKS     (2 * 3 * 2 * 3 * 2)
#define ODD_NETWORKS (2 * 8)

/* Every cell, depth, direction and pooling, with dropout and without. */
static inline pace__rnn_config any_network(unsigned kind)
{
    pace__rnn_config config = usual;

    config.cell = kind % 2 ? PACE_CELL_GRU : PACE_CELL_LSTM;
    config.layers = 1 + kind / 2 % 3;
    config.both = kind / 6 % 2;
    config.pooling = (int[]){PACE_POOL_LAST, PACE_POOL_MEAN, PACE_POOL_MAX}[kind / 12 % 3];
    config.dropout = kind / 36 ? 0.4f : 0;
    config.dense = kind % 5 < 2 ? 0 : 13;
    return config;
}

/* Sizes that are no multiples of anything, and some that are. */
static inline pace__rnn_config odd_network(unsigned i)
{
    static const uint32_t hidden[] = {1, 15, 16, 17, 32, 50, 64, 70};
    pace__rnn_config config = usual;

    config.cell = i % 2 ? PACE_CELL_GRU : PACE_CELL_LSTM;
    config.hidden = hidden[i / 2];
    config.embed = (uint32_t[]){1, 16, 33, 100, 64}[i % 5];
    config.layers = 2;
    config.both = i % 3 == 0;
    config.dense = (uint32_t[]){0, 1, 64, 65}[i % 4];
    config.length = 5;
    return config;
}

#endif
