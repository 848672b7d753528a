#include "model/model.h"

#include <stdlib.h>

static const pace__model_kind *kind_of(const pace__model_plan *plan)
{
    return plan->kind == PACE_MODEL_CNN   ? &pace__model_cnn
           : plan->kind == PACE_MODEL_RNN ? &pace__model_rnn
                                          : &pace__model_logreg;
}

bool pace__model_pools(const pace__model_plan *plan)
{
    return plan->kind == PACE_MODEL_CNN && plan->cnn.first_trained < plan->net->units;
}

pace__shape pace__model_shape(const pace__model_plan *plan)
{
    return kind_of(plan)->shape(plan);
}

uint32_t pace__model_entries_max(const pace__model_plan *plan)
{
    return kind_of(plan)->entries_max(plan);
}

size_t pace__model_keys_max(const pace__model_plan *plan, uint64_t rows)
{
    pace__shape shape = pace__model_shape(plan);
    uint64_t per_row = pace__model_entries_max(plan), all = shape.keys - shape.dense_rows;

    if (per_row > 0 && rows > all / per_row)
        return (size_t)shape.keys;
    /* One more for what every batch has besides its entries: the bias. */
    return (size_t)(rows * per_row < all ? rows * per_row + 1 : all) + shape.dense_rows;
}

pace_status pace__model_create(const pace__model_plan *plan, uint64_t rows_max, int threads,
                               const pace_log *log, pace__model **model)
{
    pace__model *created = calloc(1, sizeof *created);

    if (!created)
        return pace_fail(log, PACE_FAILED, "out of memory");
    *created = (pace__model){.kind = kind_of(plan),
                             .plan = *plan,
                             .shape = pace__model_shape(plan),
                             .rows_max = rows_max,
                             .threads = threads,
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

uint64_t pace__model_memory(const pace__model_plan *plan, uint64_t rows_max, int threads)
{
    return kind_of(plan)->memory(plan, rows_max, threads);
}

uint64_t pace__model_batch_memory(const pace__model_plan *plan, uint64_t rows_max)
{
    bool augments = plan->kind == PACE_MODEL_CNN && plan->info->encoding.kind == PACE__IMAGE &&
                    pace__cnn_augments(&plan->cnn);

    return augments ? rows_max * plan->info->columns : 0;
}

pace_status pace__model_find(pace__model *model, const pace__rows *rows, uint64_t place,
                             pace__model_batch *batch)
{
    return model->kind->find(model, rows, place, batch);
}

void pace__model_batch_release(pace__model_batch *batch)
{
    pace__key_batch_release(&batch->keys);
    pace__ngram_rows_release(&batch->text);
    free(batch->words);
    free(batch->pixels);
    batch->words = NULL;
    batch->pixels = NULL;
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

bool pace__model_begins_random(const pace__model_plan *plan)
{
    return kind_of(plan)->first_weights != NULL;
}

pace_status pace__model_first_weights(const pace__model_plan *plan, size_t stride, float *rows,
                                      const pace_log *log)
{
    return kind_of(plan)->first_weights(plan, stride, rows, log);
}

pace_status pace__model_write(const pace__model_plan *plan, const pace__store *store, const float *weights,
                              const char *path, char sha256[PACE__SHA256_HEX], const pace_log *log)
{
    return kind_of(plan)->write(plan, store, weights, path, sha256, log);
}
