#include "model/model.h"

#include <assert.h>
#include <stdlib.h>

/* --- the plan --- */

/* Can it begin with that one? */
static pace_status check_forerunner(const pace__kind *kind, const pace__plan_request *request,
                                    const pace_log *log)
{
    const pace__forerunner *begins = request->begins;

    if (!begins)
        return PACE_OK;
    if (begins->model->plan.kind != kind)
        return pace_fail(log, PACE_USAGE,
                         "--init %s: is a model of kind %s, and this one is of kind %s (--model)",
                         begins->path, begins->model->plan.kind->info.name, kind->info.name);
    return kind->fits ? kind->fits(request, log) : PACE_OK;
}

pace_status pace__model_plan_make(const pace__kind *kind, const pace__plan_request *request,
                                  const pace_log *log, pace__model_plan *plan)
{
    *plan = (pace__model_plan){.kind = kind};
    pace_status status = check_forerunner(kind, request, log);

    if (!status)
        status = kind->plan(request, log, plan);

    if (status)
        pace__model_plan_release(plan);
    return status;
}

void pace__model_plan_release(pace__model_plan *plan)
{
    if (plan->own && plan->kind->release_plan)
        plan->kind->release_plan(plan);
    else
        free(plan->own);
    *plan = (pace__model_plan){0};
}

pace__model_plan pace__plan_for(const pace__model_plan *plan, const pace__dataset *data)
{
    pace__model_plan other = *plan;

    assert(plan->data.kind == PACE__ROWS_SPARSE && data->kind == PACE__ROWS_SPARSE);
    other.data = *data;
    other.shape.keys += (uint64_t)data->ids - plan->data.ids;
    other.entries_max = data->row_entries_max;
    return other;
}

size_t pace__model_keys_max(const pace__model_plan *plan, uint64_t rows)
{
    const pace__shape *shape = &plan->shape;
    uint64_t per_row = plan->entries_max, all = shape->keys - shape->dense_rows;

    if (per_row > 0 && rows > all / per_row)
        return (size_t)shape->keys;
    /* One more for what every batch has besides its entries: the bias. */
    return (size_t)(rows * per_row < all ? rows * per_row + 1 : all) + shape->dense_rows;
}

/* --- computing --- */

pace_status pace__model_create(const pace__model_plan *plan, uint64_t rows_max, int threads, bool scores_only,
                               const pace_log *log, pace__model **model)
{
    pace__model *created = calloc(1, sizeof *created);

    if (!created)
        return pace_fail(log, PACE_FAILED, "out of memory");
    *created = (pace__model){.kind = plan->kind,
                             .plan = *plan,
                             .rows_max = rows_max,
                             .threads = threads,
                             .scores_only = scores_only,
                             .log = log};
    pace_status status = created->kind->open(created);

    if (status)
        pace__model_free(created);
    else
        *model = created;
    return status;
}

void pace__model_free(pace__model *model)
{
    if (!model)
        return;
    model->kind->close(model);
    pace__key_finder_release(&model->finder);
    free(model);
}

uint64_t pace__model_memory(const pace__model_plan *plan, uint64_t rows_max, int threads, bool scores_only)
{
    return plan->kind->memory(plan, rows_max, threads, scores_only);
}

pace_status pace__model_find(pace__model *model, const pace__rows *rows, uint64_t place,
                             pace__model_batch *batch)
{
    if (!batch->own && model->kind->batch_bytes > 0) {
        batch->own = calloc(1, model->kind->batch_bytes);
        if (!batch->own)
            return pace_fail(model->log, PACE_FAILED, "out of memory");
    }
    batch->kind = model->kind;
    return model->kind->find(model, rows, place, batch);
}

void pace__model_batch_release(pace__model_batch *batch)
{
    pace__key_batch_release(&batch->keys);
    if (batch->own)
        batch->kind->release_batch(batch->own);
    free(batch->own);
    batch->own = NULL;
}

pace_status pace__model_gradient(pace__model *model, pace__task *task)
{
    return model->kind->gradient(model, task);
}

void pace__model_use(pace__model *model, float *weights)
{
    model->weights = weights;
}

pace_status pace__model_logits(pace__model *model, const pace__rows *rows, float *logits)
{
    return model->kind->logits(model, rows, logits);
}

pace_status pace__model_answers(pace__model *model, const pace__rows *rows, double *logits)
{
    float *rounded = (float *)logits;

    assert(model->plan.shape.outputs == 1);
    if (model->kind->answers)
        return model->kind->answers(model, rows, logits);
    pace_status status = model->kind->logits(model, rows, rounded);

    /* From the last to the first: a double takes the place of floats that are done with. */
    for (size_t row = rows->rows; !status && row-- > 0;)
        logits[row] = (double)rounded[row];
    return status;
}

bool pace__model_has_terms(const pace__model_plan *plan)
{
    return plan->kind->terms != NULL;
}

pace_status pace__model_terms(pace__model *model, const pace__rows *rows, size_t row, pace__term_fn *tell,
                              void *user)
{
    return model->kind->terms(model, rows, row, tell, user);
}

pace_status pace__model_features(pace__model *model, const pace__rows *rows, float *features)
{
    assert(model->plan.extracts);
    return model->kind->features(model, rows, features);
}

bool pace__model_begins_random(const pace__model_plan *plan)
{
    return plan->kind->first_weights != NULL;
}

pace_status pace__model_first_weights(const pace__model_plan *plan, size_t stride, float *rows,
                                      const pace_log *log)
{
    return plan->kind->first_weights(plan, stride, rows, log);
}

pace_status pace__model_adopt(const pace__model_plan *plan, const pace__loaded *from,
                              const pace__names *names, const float *values, size_t stride, float *rows,
                              const pace_log *log, pace__overlap *overlap)
{
    assert(plan->kind == from->plan.kind);
    *overlap = (pace__overlap){0};
    return plan->kind->adopt(plan, from, names, values, stride, rows, log, overlap);
}

/* --- files --- */

pace_status pace__model_write(const pace__model_plan *plan, const float *weights, const pace__origin *origin,
                              const char *path, char sha256[PACE__SHA256_HEX], const pace_log *log)
{
    return plan->kind->write(plan, weights, origin, path, sha256, log);
}

pace_status pace__model_read(const pace__model_file *file, const pace__dataset *data, const pace_log *log,
                             pace__loaded *loaded)
{
    const pace__kind *kind = pace__kind_named(pace__model_file_kind(file));

    assert(kind);
    *loaded = (pace__loaded){.plan.kind = kind};
    pace_status status = kind->read(file, data, log, loaded);

    if (status)
        pace__loaded_release(loaded);
    return status;
}

void pace__loaded_release(pace__loaded *loaded)
{
    pace__model_plan_release(&loaded->plan);
    free(loaded->weights);
    free(loaded->ids);
    free(loaded->phrases);
    *loaded = (pace__loaded){0};
}

void pace__model_describe(const pace__loaded *loaded, const pace__portrait *portrait)
{
    loaded->plan.kind->describe(loaded, portrait);
}
