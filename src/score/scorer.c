#include "score/scorer.h"

#include "model/file.h"
#include "metrics/scoring.h"
#include "threads/thread.h"

#include <assert.h>
#include <paceline/train.h>
#include <stdlib.h>
#include <string.h>

/* --- opening --- */

static pace_status find_model(const char *path, int *kind, const pace_log *log)
{
    pace__model_file file;
    pace_status status = pace__model_file_open(path, &file, log);

    if (status)
        return status;
    /* What is none of them is for pace__linear_read to refuse. */
    *kind = pace__model_file_is(&file, "rnn")   ? PACE_MODEL_RNN
            : pace__model_file_is(&file, "cnn") ? PACE_MODEL_CNN
                                                : PACE_MODEL_LOGREG;
    pace__model_file_close(&file);
    return PACE_OK;
}

/* Takes the weights of all keys, (keys + 1, dim), which stay the caller's. */
static pace_status use_model(pace__scorer *self, const pace__model_plan *plan, float *weights)
{
    pace__model_free(self->model);
    self->model = NULL;
    pace_status status = pace__model_create(plan, PACE__SCORE_ROWS, pace__cores(), self->log, &self->model);

    if (!status)
        pace__model_use(self->model, weights);
    return status;
}

/* Weights by the ids of rows, and the bias behind them, which become the scorer's. */
static pace_status use_linear(pace__scorer *self, float *weights)
{
    pace__model_plan plan = {.kind = PACE_MODEL_LOGREG, .info = &self->info, .ngram = self->linear.ngram};
    pace_status status = use_model(self, &plan, weights);

    if (status) {
        free(weights);
        return status;
    }
    free(self->weights);
    self->weights = weights;
    return PACE_OK;
}

/* All 0 but the bias, which is behind them, with the spare one that a model asks for. */
static pace_status allocate(const pace__scorer *self, uint32_t ids, float **weights)
{
    float *allocated = calloc((size_t)ids + 2, sizeof *allocated);

    if (!allocated)
        return pace_fail(self->log, PACE_FAILED, "out of memory: %u weights", ids);
    allocated[ids] = self->linear.bias;
    *weights = allocated;
    return PACE_OK;
}

/* What a data set would say of its texts. */
static void expect_texts(pace__scorer *self)
{
    self->info = (pace__store_info){.encoding = self->encoding,
                                    .columns = self->encoding.length,
                                    .ids_seen = (uint32_t)self->encoding.features,
                                    .row_entries_max = self->encoding.length};
}

static pace_status open_linear(pace__scorer *self, const char *path)
{
    pace__linear *linear = &self->linear;
    float *weights = NULL;
    pace_status status = pace__linear_read(path, linear, self->log);

    if (status)
        return status;
    self->encoding = linear->encoding;
    self->vocabulary = linear->vocabulary;
    if (!self->vocabulary)
        return PACE_OK; /* the ids of rows are a data set's: fit() goes on */
    uint32_t ids = pace__ngram_ids((uint32_t)linear->encoding.features, linear->ngram);

    status = allocate(self, ids, &weights);
    if (status)
        return status;
    for (uint32_t i = 0; i < linear->count; i++)
        weights[linear->ids[i]] = linear->weight[i];
    expect_texts(self);
    return use_linear(self, weights);
}

static pace_status open_rnn(pace__scorer *self, const char *path)
{
    pace_status status = pace__rnn_file_read(path, &self->saved, self->log);

    if (status)
        return status;
    self->encoding = self->saved.encoding;
    self->vocabulary = self->saved.vocabulary;
    expect_texts(self);
    pace__model_plan plan = {.kind = PACE_MODEL_RNN, .info = &self->info, .rnn = self->saved.config};

    return use_model(self, &plan, self->saved.embedding);
}

/* Nothing is frozen: all values are handed over with every call. */
static pace_status open_cnn(pace__scorer *self, const char *path)
{
    pace__cnn_file *network = &self->network;
    pace_status status = pace__cnn_file_read(path, network, self->log);

    if (status)
        return status;
    self->encoding = network->encoding;
    self->names = &network->names;
    pace__cnn_plan plan = {
        .config = &network->config, .rows_max = PACE__SCORE_ROWS, .threads = pace__cores()};

    return pace__cnn_create(&plan, self->log, &self->cnn);
}

pace_status pace__scorer_open(const char *path, const pace_log *log, pace__scorer *scorer)
{
    int kind;
    pace_status status = find_model(path, &kind, log);

    *scorer = (pace__scorer){.log = log};
    if (!status)
        status = kind == PACE_MODEL_RNN   ? open_rnn(scorer, path)
                 : kind == PACE_MODEL_CNN ? open_cnn(scorer, path)
                                          : open_linear(scorer, path);
    if (status)
        pace__scorer_close(scorer);
    return status;
}

void pace__scorer_close(pace__scorer *scorer)
{
    pace__model_free(scorer->model);
    pace__cnn_free(scorer->cnn);
    free(scorer->weights);
    pace__cnn_file_release(&scorer->network);
    pace__rnn_file_release(&scorer->saved);
    pace__linear_release(&scorer->linear);
    *scorer = (pace__scorer){0};
}

/* --- rows --- */

/* The model's weights by the data set's compact ids. */
static pace_status weights_for(const pace__scorer *self, const pace__store *store, float **weights)
{
    uint64_t *original;
    uint32_t count = store->info.ids_seen;
    pace_status status = pace__store_read_ids(store, &original, self->log);

    if (status)
        return status;
    status = allocate(self, count, weights);
    for (uint32_t i = 0; !status && i < count; i++)
        (*weights)[i] = pace__linear_find(&self->linear, original[i]);
    free(original);
    return status;
}

pace_status pace__scorer_fit(pace__scorer *scorer, const pace__store *store)
{
    pace_status status = pace__encoding_fits(&scorer->encoding, &store->info.encoding, scorer->log);
    float *weights = NULL;

    if (status || scorer->vocabulary || scorer->cnn)
        return status;
    status = weights_for(scorer, store, &weights);
    if (status)
        return status;
    scorer->info = store->info;
    scorer->info.command = NULL; /* the store's, which may be closed before the scorer */
    return use_linear(scorer, weights);
}

uint32_t pace__scorer_outputs(const pace__scorer *scorer)
{
    return scorer->cnn ? scorer->network.net.outputs : 1;
}

pace_status pace__scorer_logits(pace__scorer *scorer, const pace__rows *rows, float *logits)
{
    if (scorer->cnn)
        return pace__cnn_logits(scorer->cnn, rows, scorer->network.weights, scorer->network.stats, logits);
    assert(scorer->model); /* of clicks: fit() comes first */
    return pace__model_logits(scorer->model, rows, logits);
}

/* --- texts as they come --- */

pace_status pace__text_batch_init(pace__text_batch *batch, const pace__scorer *scorer)
{
    uint32_t length = scorer->encoding.length;

    assert(scorer->vocabulary);
    *batch = (pace__text_batch){.scorer = scorer};
    batch->ids = malloc((size_t)PACE__TEXT_BATCH_ROWS * length * sizeof *batch->ids);
    if (!batch->ids)
        return pace_fail(scorer->log, PACE_FAILED, "out of memory: texts of %u words", length);
    batch->rows = (pace__rows){.columns = length,
                               .ids = batch->ids,
                               .label = batch->label,
                               .length = batch->length,
                               .front = scorer->encoding.pad_front};
    return PACE_OK;
}

void pace__text_batch_release(pace__text_batch *batch)
{
    pace__tokens_release(&batch->tokens);
    free(batch->ids);
    *batch = (pace__text_batch){0};
}

pace_status pace__text_batch_add(pace__text_batch *batch, const char *text, size_t size)
{
    const pace__scorer *scorer = batch->scorer;
    uint32_t columns = batch->rows.columns;
    size_t row = batch->rows.rows;

    assert(row < PACE__TEXT_BATCH_ROWS);
    pace_status status = pace__tokenise(&batch->tokens, text, size, scorer->log);

    if (status)
        return status;
    uint32_t *ids = batch->ids + row * columns;
    uint32_t length = pace__vocabulary_encode(scorer->vocabulary, &scorer->encoding, &batch->tokens, ids);
    uint32_t padding = columns - length;

    if (batch->rows.front)
        memmove(ids + padding, ids, length * sizeof *ids);
    memset(batch->rows.front ? ids : ids + length, 0, padding * sizeof *ids); /* PACE__ID_PAD */
    batch->length[row] = length;
    batch->rows.rows++;
    return PACE_OK;
}

void pace__text_batch_clear(pace__text_batch *batch)
{
    batch->rows.rows = 0;
}
