/* Logistic regression as a model: on sparse rows, and on texts as bags of words and n-grams. */
#include "data/text/vocabulary.h"
#include "model/linear/linear_file.h"
#include "model/linear/logreg.h"
#include "model/model.h"

#include <stdlib.h>

/* A chance to do something else after so many rows. */
#define READY_ROWS 512

typedef struct logreg {
    pace__logreg view;
    pace__share whole;
    pace__ngram_rows text; /* of logits() */
} logreg;

static bool is_text(const pace__model_plan *plan)
{
    return plan->info->encoding.kind == PACE__TEXT;
}

/* Features; the bias comes behind them. */
static uint32_t ids_of(const pace__model_plan *plan)
{
    return is_text(plan) ? pace__ngram_ids(plan->info->ids_seen, plan->ngram) : plan->info->ids_seen;
}

static pace__shape shape(const pace__model_plan *plan)
{
    return (pace__shape){.keys = (uint64_t)ids_of(plan) + 1, .dim = 1, .outputs = 1};
}

static uint32_t entries_max(const pace__model_plan *plan)
{
    return is_text(plan) ? plan->info->columns * plan->ngram : plan->info->row_entries_max;
}

static pace_status open_logreg(pace__model *model)
{
    const pace__store_info *info = model->plan.info;
    uint32_t columns = is_text(&model->plan) ? 0 : info->columns;
    logreg *own = model->own = calloc(1, sizeof *own);

    if (!own)
        return pace_fail(model->log, PACE_FAILED, "out of memory");
    pace__logreg_view_init(&own->view, columns, info->has_values, &model->plan.optim, info->like);
    own->whole = pace__logreg_share(&own->view, 0, 1);
    return pace__key_finder_init(&model->finder, ids_of(&model->plan), info->like, model->log);
}

static void close_logreg(pace__model *model)
{
    logreg *own = model->own;

    if (own)
        pace__ngram_rows_release(&own->text);
    free(own);
}

static uint64_t memory(const pace__model_plan *plan, uint64_t rows_max, int threads)
{
    (void)threads;
    return ((uint64_t)ids_of(plan) + 1 + rows_max * entries_max(plan)) * sizeof(uint32_t);
}

static pace_status find(pace__model *model, const pace__rows *rows, uint64_t place, pace__model_batch *batch)
{
    const pace__model_plan *plan = &model->plan;
    pace_status status = PACE_OK;

    (void)place;
    if (is_text(plan)) {
        status = pace__ngrams_expand(rows, plan->info->ids_seen, plan->ngram, &batch->text, model->log);
        rows = &batch->text.rows;
    }
    if (status)
        return status;
    uint64_t entries = rows->rows ? pace__row_start(rows, rows->rows) : 0;

    if (!batch->keys.slots || entries > batch->keys.entries_max)
        status = pace__key_batch_grow(&batch->keys, ids_of(plan), entries, model->log);
    if (status)
        return status;
    pace__keys_find(&model->finder, rows, &batch->keys);
    batch->sparse = batch->keys.count;
    return PACE_OK;
}

static pace_status gradient(pace__model *model, pace__task *task)
{
    logreg *own = model->own;
    const pace__key_batch *keys = &task->batch->keys;
    const pace__rows *rows = &keys->rows;
    int64_t dots[PACE__BLOCK_ROWS];
    float slope[PACE__BLOCK_ROWS];
    pace_status status = PACE_OK;

    pace__logreg_view_set(&own->view, task->weights, keys->count);
    memset(task->sums, 0, ((size_t)keys->count + 1) * sizeof(float));
    task->loss = 0;
    for (size_t at = 0; at < rows->rows && !status; at += PACE__BLOCK_ROWS) {
        size_t count = rows->rows - at < PACE__BLOCK_ROWS ? rows->rows - at : PACE__BLOCK_ROWS;

        pace__logreg_dots(&own->view, rows, at, count, &own->whole, 0, dots);
        task->loss += pace__logreg_gradient(&own->view, rows, at, count, dots, slope);
        pace__keys_accumulate(keys, at, count, slope, task->sums);
        if (at % READY_ROWS == READY_ROWS - PACE__BLOCK_ROWS && task->ready)
            status = task->ready(task->user, 0);
    }
    return status;
}

/* The bias lies where rows say "unseen", whose weight is 0: it steps aside while they are summed. */
static void linear_logits(float *weights, uint32_t ids, const pace__rows *rows, float *found)
{
    float bias = weights[ids];

    weights[ids] = 0;
    pace__linear_logits(weights, bias, rows, found);
    weights[ids] = bias;
}

static pace_status logits(pace__model *model, const pace__rows *rows, float *found)
{
    logreg *own = model->own;
    const pace__model_plan *plan = &model->plan;
    pace_status status = PACE_OK;

    if (is_text(plan)) {
        status = pace__ngrams_expand(rows, plan->info->ids_seen, plan->ngram, &own->text, model->log);
        rows = &own->text.rows;
    }
    if (!status)
        linear_logits(model->weights, ids_of(plan), rows, found);
    return status;
}

static pace_status write_sparse(const pace__store *store, const float *weights, const char *path,
                                char sha256[PACE__SHA256_HEX], const pace_log *log)
{
    uint32_t ids = store->info.ids_seen;
    uint64_t *original;
    pace_status status = pace__store_read_ids(store, &original, log);

    if (status)
        return status;
    status =
        pace__linear_write(path, &store->info.encoding, original, weights, 1, ids, weights[ids], sha256, log);
    free(original);
    return status;
}

static pace_status write(const pace__model_plan *plan, const pace__store *store, const float *weights,
                         const char *path, char sha256[PACE__SHA256_HEX], const pace_log *log)
{
    if (!is_text(plan))
        return write_sparse(store, weights, path, sha256, log);
    pace__vocabulary *vocabulary;
    pace_status status = pace__vocabulary_read(store->path, &store->info.encoding, log, &vocabulary);

    if (status)
        return status;
    status = pace__linear_write_text(path, &store->info.encoding, vocabulary, plan->ngram, weights,
                                     ids_of(plan), weights[ids_of(plan)], sha256, log);
    pace__vocabulary_free(vocabulary);
    return status;
}

const pace__model_kind pace__model_logreg = {
    .shape = shape,
    .entries_max = entries_max,
    .open = open_logreg,
    .close = close_logreg,
    .memory = memory,
    .find = find,
    .gradient = gradient,
    .logits = logits,
    .write = write,
};
