#include "score/scorer.h"

#include "base/file.h"
#include "base/thread.h"
#include "data/reader.h"
#include "data/safetensors.h"
#include "model/logreg.h"

#include <assert.h>
#include <paceline/train.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- opening --- */

static pace_status find_model(const char *path, int *model, const pace_log *log)
{
    pace__safetensors *file;
    pace_status status = pace__safetensors_open(path, log, &file);

    if (status)
        return status;
    const char *kind = pace__safetensors_metadata(file, "model");

    /* What is neither is for pace__linear_read to refuse. */
    *model = kind && strcmp(kind, "rnn") == 0 ? PACE_MODEL_RNN : PACE_MODEL_LOGREG;
    pace__safetensors_close(file);
    return PACE_OK;
}

/* The weights of words and n-grams by id. */
static pace_status spread_weights(pace__scorer *self)
{
    const pace__linear *linear = &self->linear;
    uint32_t ids = pace__ngram_ids((uint32_t)linear->encoding.features, linear->ngram);

    self->weight = calloc((size_t)ids + 1, sizeof *self->weight);
    if (!self->weight)
        return pace_fail(self->log, PACE_FAILED, "out of memory: %u weights", ids);
    for (uint32_t i = 0; i < linear->count; i++)
        self->weight[linear->ids[i]] = linear->weight[i];
    return PACE_OK;
}

static pace_status open_linear(pace__scorer *self, const char *path)
{
    pace_status status = pace__linear_read(path, &self->linear, self->log);

    if (status)
        return status;
    self->encoding = self->linear.encoding;
    self->vocabulary = self->linear.vocabulary;
    return self->vocabulary ? spread_weights(self) : PACE_OK;
}

static pace_status open_rnn(pace__scorer *self, const char *path)
{
    pace_status status = pace__rnn_file_read(path, &self->saved, self->log);

    if (status)
        return status;
    self->encoding = self->saved.encoding;
    self->vocabulary = self->saved.vocabulary;
    return pace__rnn_create(&self->saved.config, PACE__PIECE_ROWS, pace__cores(), false, self->log,
                            &self->rnn);
}

pace_status pace__scorer_open(const char *path, const pace_log *log, pace__scorer *scorer)
{
    struct stat info;
    bool is_run = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    char *name = is_run ? pace__format("%s/model.safetensors", path) : strdup(path);

    *scorer = (pace__scorer){.log = log};
    pace_status status =
        name ? find_model(name, &scorer->model, log) : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status)
        status = scorer->model == PACE_MODEL_RNN ? open_rnn(scorer, name) : open_linear(scorer, name);
    free(name);
    if (status)
        pace__scorer_close(scorer);
    return status;
}

void pace__scorer_close(pace__scorer *scorer)
{
    pace__rnn_free(scorer->rnn);
    pace__rnn_file_release(&scorer->saved);
    pace__ngram_rows_release(&scorer->features);
    free(scorer->weight);
    pace__linear_release(&scorer->linear);
    *scorer = (pace__scorer){0};
}

/* --- rows of a data set --- */

/* The model's weights by the data set's compact ids; "unseen", the last one, is 0. */
static pace_status weights_for(const pace__store *store, const pace__linear *model, float **weight,
                               const pace_log *log)
{
    uint64_t *original;
    uint32_t count = store->info.ids_seen;
    pace_status status = pace__store_read_ids(store, &original, log);

    if (status)
        return status;
    float *found = calloc((size_t)count + 1, sizeof *found);

    if (found)
        for (uint32_t i = 0; i < count; i++)
            found[i] = pace__linear_find(model, original[i]);
    free(original);
    if (!found)
        return pace_fail(log, PACE_FAILED, "out of memory: %u weights", count);
    *weight = found;
    return PACE_OK;
}

pace_status pace__scorer_fit(pace__scorer *scorer, const pace__store *store)
{
    pace_status status = pace__encoding_fits(&scorer->encoding, &store->info.encoding, scorer->log);
    float *weight = NULL;

    if (status || scorer->vocabulary)
        return status;
    status = weights_for(store, &scorer->linear, &weight, scorer->log);
    if (!status) {
        free(scorer->weight);
        scorer->weight = weight;
    }
    return status;
}

/* Words are their own slots: the whole embedding is there. */
static pace_status rnn_logits(pace__scorer *self, const pace__rows *rows, float *logits)
{
    pace_status status = PACE_OK;

    for (size_t at = 0; at < rows->rows && !status;) {
        size_t count = rows->rows - at < PACE__PIECE_ROWS ? rows->rows - at : PACE__PIECE_ROWS;
        pace__rows some = pace__rows_slice(rows, at, count);
        pace__rnn_batch batch = {.rows = &some,
                                 .slots = self->saved.config.words,
                                 .embedding = self->saved.embedding,
                                 .dense = self->saved.dense};

        status = pace__rnn_logits(self->rnn, &batch, logits + at);
        at += count;
    }
    return status;
}

pace_status pace__scorer_logits(pace__scorer *scorer, const pace__rows *rows, float *logits)
{
    pace_status status = PACE_OK;

    if (scorer->model == PACE_MODEL_RNN)
        return rnn_logits(scorer, rows, logits);
    assert(scorer->weight); /* fit() comes first */
    if (scorer->vocabulary) {
        status = pace__ngrams_expand(rows, (uint32_t)scorer->encoding.features, scorer->linear.ngram,
                                     &scorer->features, scorer->log);
        rows = &scorer->features.rows;
    }
    if (!status)
        pace__linear_logits(scorer->weight, scorer->linear.bias, rows, logits);
    return status;
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
