#include "score/scorer.h"

#include "data/store/describe.h"
#include "metrics/scoring.h"
#include "threads/thread.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- opening --- */

/* Takes the weights of all keys, (keys + 1, dim). */
static pace_status use_model(pace__scorer *self, const pace__model_plan *plan, float *weights)
{
    pace__model_free(self->model);
    self->model = NULL;
    pace_status status =
        pace__model_create(plan, PACE__SCORE_ROWS, pace__cores(), true, self->log, &self->model);

    if (!status)
        pace__model_use(self->model, weights);
    return status;
}

static bool is_sparse(const pace__scorer *self)
{
    return self->saved.model.plan.data.kind == PACE__ROWS_SPARSE;
}

pace_status pace__scorer_open(const char *path, const pace_log *log, pace__scorer *scorer)
{
    const pace__loaded *loaded = &scorer->saved.model;

    *scorer = (pace__scorer){.log = log};
    pace_status status = pace__saved_open(path, log, &scorer->saved);

    if (!status && is_sparse(scorer))
        status = pace__id_index_init(&scorer->ids, loaded->ids, loaded->count, log);
    if (!status)
        status = use_model(scorer, &loaded->plan, loaded->weights);
    if (status)
        pace__scorer_close(scorer);
    return status;
}

void pace__scorer_close(pace__scorer *scorer)
{
    pace__model_free(scorer->model);
    free(scorer->weights);
    pace__id_index_release(&scorer->ids);
    pace__saved_close(&scorer->saved);
    *scorer = (pace__scorer){0};
}

/* --- rows --- */

/* The model's rows of parameters in the order of the data set's ids, then the others; unknown ones are 0. */
static pace_status arrange(const pace__scorer *self, const pace__model_plan *plan, const uint64_t *original,
                           float **weights)
{
    const pace__loaded *from = &self->saved.model;
    size_t dim = plan->shape.dim, ids = plan->data.ids, others = (size_t)plan->shape.keys - ids;
    float *found = calloc(((size_t)plan->shape.keys + 1) * dim, sizeof *found);

    if (!found)
        return pace_fail(self->log, PACE_FAILED, "out of memory: %zu weights", ids);
    for (size_t i = 0; i < ids; i++) {
        size_t place = pace__scorer_place(self, original[i]);

        if (place < from->count)
            memcpy(found + i * dim, from->weights + place * dim, dim * sizeof *found);
    }
    memcpy(found + ids * dim, from->weights + from->count * dim, others * dim * sizeof *found);
    *weights = found;
    return PACE_OK;
}

/* By name, where both have names: checksums, by which they are told apart, say nothing to anybody. */
static pace_status classes_fit(const pace__scorer *scorer, const pace__store *store)
{
    const pace__encoding *model = &scorer->saved.encoding, *data = &store->info.encoding;
    pace__class_names names;

    if (!pace__has_classes(model) || !pace__has_classes(data) || model->class_names == data->class_names)
        return PACE_OK;
    pace_status status = pace__class_names_read(store->path, data, scorer->log, &names);

    if (status)
        return status;
    status = pace__class_names_fit(&scorer->saved.names, &names, store->path, scorer->log);
    pace__class_names_release(&names);
    return status;
}

pace_status pace__scorer_fit(pace__scorer *scorer, const pace__store *store)
{
    pace_status status = classes_fit(scorer, store);

    if (status)
        return status;
    status = pace__encoding_fits(&scorer->saved.encoding, &store->info.encoding, scorer->log);
    uint64_t *original;
    float *weights = NULL;

    if (status || !is_sparse(scorer))
        return status;
    pace__dataset data = pace__store_describe(&store->info);
    pace__model_plan plan = pace__plan_for(&scorer->saved.model.plan, &data);

    status = pace__store_read_ids(store, &original, scorer->log);
    if (status)
        return status;
    status = arrange(scorer, &plan, original, &weights);
    free(original);
    if (!status)
        status = use_model(scorer, &plan, weights);
    if (status) {
        free(weights);
        return status;
    }
    free(scorer->weights);
    scorer->weights = weights;
    return PACE_OK;
}

uint32_t pace__scorer_outputs(const pace__scorer *scorer)
{
    return scorer->saved.model.plan.shape.outputs;
}

pace_status pace__scorer_logits(pace__scorer *scorer, const pace__rows *rows, float *logits)
{
    assert(scorer->model);
    return pace__model_logits(scorer->model, rows, logits);
}

/* --- texts as they come --- */

pace_status pace__text_batch_init(pace__text_batch *batch, const pace__scorer *scorer)
{
    uint32_t length = scorer->saved.encoding.length;

    assert(scorer->saved.vocabulary);
    *batch = (pace__text_batch){.scorer = scorer};
    batch->ids = malloc((size_t)PACE__TEXT_BATCH_ROWS * length * sizeof *batch->ids);
    if (!batch->ids)
        return pace_fail(scorer->log, PACE_FAILED, "out of memory: texts of %u words", length);
    batch->rows = (pace__rows){.columns = length,
                               .ids = batch->ids,
                               .label = batch->label,
                               .length = batch->length,
                               .front = scorer->saved.encoding.pad_front};
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
    uint32_t length =
        pace__vocabulary_encode(scorer->saved.vocabulary, &scorer->saved.encoding, &batch->tokens, ids);
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
