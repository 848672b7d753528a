/* The recurrent network as a model: a row of parameters per word, and dense ones behind. */
#include "base/memory.h"
#include "base/random.h"
#include "data/text/vocabulary.h"
#include "model/model.h"
#include "model/rnn/rnn_file.h"

#include <stdlib.h>
#include <string.h>

/* Sets these draws apart from all others of the same seed. */
#define WORD_DROPOUT_STREAM UINT64_C(0x776f726473)

typedef struct rnn_model {
    pace__rnn *rnn;
    /* Of logits(): */
    pace__model_batch batch;
    float *embedding; /* of the words in the batch */
    size_t embedding_bytes;
} rnn_model;

static pace__shape shape(const pace__model_plan *plan)
{
    const pace__rnn_config *rnn = &plan->rnn;
    size_t dense = pace__rnn_dense(rnn);
    uint32_t dense_rows = (uint32_t)((dense + rnn->embed - 1) / rnn->embed);

    return (pace__shape){.keys = (uint64_t)rnn->words + dense_rows,
                         .dim = rnn->embed,
                         .dense_rows = dense_rows,
                         .dense = dense,
                         .outputs = 1};
}

static uint32_t entries_max(const pace__model_plan *plan)
{
    return plan->rnn.length;
}

/* Words of so many rows, each once. */
static uint64_t distinct_max(const pace__rnn_config *config, uint64_t rows)
{
    return rows * config->length < config->words ? rows * config->length : config->words;
}

static pace_status open_rnn(pace__model *model)
{
    const pace__rnn_config *config = &model->plan.rnn;
    rnn_model *own = model->own = calloc(1, sizeof *own);

    if (!own)
        return pace_fail(model->log, PACE_FAILED, "out of memory");
    pace_status status =
        pace__rnn_create(config, model->rows_max, model->threads, false, model->log, &own->rnn);

    return status ? status : pace__key_finder_init(&model->finder, config->words, false, model->log);
}

static void close_rnn(pace__model *model)
{
    rnn_model *own = model->own;

    if (!own)
        return;
    pace__model_batch_release(&own->batch);
    pace__pages_free(own->embedding, own->embedding_bytes);
    pace__rnn_free(own->rnn);
    free(own);
}

static uint64_t memory(const pace__model_plan *plan, uint64_t rows_max, int threads)
{
    return pace__rnn_memory(&plan->rnn, rows_max, threads) + plan->rnn.words * sizeof(uint32_t);
}

/* A copy of the rows in which some words are unknown. Which ones depends on seed and place alone. */
static pace_status drop_words(pace__model *model, const pace__rows *rows, uint64_t place,
                              pace__model_batch *batch)
{
    size_t count = rows->rows * rows->columns;
    uint64_t limit = (uint64_t)(model->plan.word_dropout * 0x1p32);

    if (count > batch->words_max) {
        free(batch->words);
        batch->words = malloc(count * sizeof *batch->words);
        batch->words_max = batch->words ? count : 0;
    }
    if (count > 0 && !batch->words)
        return pace_fail(model->log, PACE_FAILED, "out of memory");
    for (size_t row = 0; row < rows->rows; row++) {
        const uint32_t *from = pace__row_words(rows, row);
        uint32_t *to = batch->words + (from - rows->ids);
        pace__random draws =
            pace__random_at((uint64_t)model->plan.rnn.seed ^ WORD_DROPOUT_STREAM, place + row);

        for (uint32_t i = 0; i < rows->length[row]; i++)
            to[i] = pace__random_next(&draws) >> 32 < limit ? PACE__ID_UNKNOWN : from[i];
    }
    return PACE_OK;
}

static pace_status find(pace__model *model, const pace__rows *rows, uint64_t place, pace__model_batch *batch)
{
    const pace__shape *all = &model->shape;
    uint32_t words = model->plan.rnn.words;
    size_t entries = rows->rows * rows->columns + all->dense_rows;
    pace__rows seen = *rows;
    pace_status status = PACE_OK;

    if (place != PACE__NO_PLACE && model->plan.word_dropout > 0) {
        status = drop_words(model, rows, place, batch);
        seen.ids = batch->words;
    }
    if (!status && (!batch->keys.slots || entries > batch->keys.entries_max))
        status = pace__key_batch_grow(&batch->keys, words + all->dense_rows, entries, model->log);
    if (status)
        return status;
    pace__keys_find_words(&model->finder, &seen, &batch->keys);
    batch->sparse = batch->keys.count;
    for (uint32_t i = 0; i < all->dense_rows; i++)
        batch->keys.keys[batch->keys.count++] = words + i;
    return PACE_OK;
}

static pace_status gradient(pace__model *model, pace__task *task)
{
    const pace__shape *all = &model->shape;
    size_t sparse = (size_t)task->batch->sparse * all->dim;
    float *dense_sums = task->dense_sums ? task->dense_sums : task->sums + sparse;
    pace__rnn_batch batch = {.rows = &task->batch->keys.rows,
                             .place = task->place,
                             .slots = task->batch->sparse,
                             .embedding = task->weights,
                             .dense = task->weights + sparse,
                             .embedding_sums = task->sums,
                             .dense_sums = dense_sums,
                             .ready = task->ready,
                             .user = task->user};
    pace_status status = pace__rnn_gradient(((rnn_model *)model->own)->rnn, &batch);

    memset(dense_sums + all->dense, 0, (all->dense_rows * (size_t)all->dim - all->dense) * sizeof(float));
    task->loss = batch.loss;
    return status;
}

/* Of some rows; the embedding of their words is gathered, so that it takes the time of words that occur. */
static pace_status some_logits(pace__model *model, const pace__rows *rows, float *found)
{
    const pace__rnn_config *config = &model->plan.rnn;
    rnn_model *own = model->own;
    pace_status status = find(model, rows, PACE__NO_PLACE, &own->batch);

    if (status)
        return status;
    for (size_t i = 0; i < own->batch.sparse; i++)
        memcpy(own->embedding + i * config->embed,
               model->weights + (size_t)own->batch.keys.keys[i] * config->embed,
               config->embed * sizeof(float));
    pace__rnn_batch batch = {.rows = &own->batch.keys.rows,
                             .slots = own->batch.sparse,
                             .embedding = own->embedding,
                             .dense = model->weights + (size_t)config->words * config->embed};

    return pace__rnn_logits(own->rnn, &batch, found);
}

static pace_status logits(pace__model *model, const pace__rows *rows, float *found)
{
    const pace__rnn_config *config = &model->plan.rnn;
    rnn_model *own = model->own;
    pace_status status = PACE_OK;

    if (!own->embedding) {
        own->embedding_bytes = distinct_max(config, model->rows_max) * config->embed * sizeof(float);
        own->embedding = pace__pages_alloc(own->embedding_bytes);
        if (!own->embedding)
            return pace_fail(model->log, PACE_FAILED, "out of memory");
    }
    for (size_t at = 0; at < rows->rows && !status;) {
        size_t count = rows->rows - at < model->rows_max ? rows->rows - at : (size_t)model->rows_max;
        pace__rows some = pace__rows_slice(rows, at, count);

        status = some_logits(model, &some, found + at);
        at += count;
    }
    return status;
}

static pace_status first_weights(const pace__model_plan *plan, size_t stride, float *rows,
                                 const pace_log *log)
{
    const pace__rnn_config *config = &plan->rnn;
    pace__shape all = shape(plan);
    float *dense = calloc((size_t)all.dense_rows * all.dim, sizeof *dense);

    if (!dense)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace__rnn_init_dense(config, dense);
    for (uint32_t word = 0; word < config->words; word++)
        pace__rnn_init_word(config, word, rows + word * stride);
    for (size_t i = 0; i < all.dense_rows; i++)
        memcpy(rows + (config->words + i) * stride, dense + i * all.dim, all.dim * sizeof *dense);
    free(dense);
    return PACE_OK;
}

static pace_status write(const pace__model_plan *plan, const pace__store *store, const float *weights,
                         const char *path, char sha256[PACE__SHA256_HEX], const pace_log *log)
{
    const pace__rnn_config *config = &plan->rnn;
    pace__vocabulary *vocabulary;
    char *text = NULL;
    size_t size = 0;
    pace_status status = pace__vocabulary_read(store->path, &store->info.encoding, log, &vocabulary);

    if (status)
        return status;
    status = pace__vocabulary_to_text(vocabulary, log, &text, &size);
    if (!status)
        status = pace__rnn_file_write(path, config, &store->info.encoding, text, size, weights, config->embed,
                                      weights + (size_t)config->words * config->embed, sha256, log);
    free(text);
    pace__vocabulary_free(vocabulary);
    return status;
}

const pace__model_kind pace__model_rnn = {
    .shape = shape,
    .entries_max = entries_max,
    .open = open_rnn,
    .close = close_rnn,
    .memory = memory,
    .find = find,
    .gradient = gradient,
    .logits = logits,
    .first_weights = first_weights,
    .write = write,
};
