/* The convolutional network as a model: all its parameters are dense, running statistics in front. */
#include "base/memory.h"
#include "data/picture/class_names.h"
#include "model/cnn/cnn_file.h"
#include "model/model.h"

#include <stdlib.h>
#include <string.h>

/* Floats of a row: few enough that rows spread evenly over servers, enough that their keys cost little. */
#define ROW_FLOATS 64

typedef struct cnn_model {
    pace__cnn *cnn;
    pace__cnn_tensor tensors[PACE__CNN_TENSORS_MAX];
    unsigned tensor_count;
    float *pairs; /* (rows_max, 2) of logits(): two classes with a logit each */
} cnn_model;

static uint32_t rows_of(size_t floats)
{
    return (uint32_t)((floats + ROW_FLOATS - 1) / ROW_FLOATS);
}

static size_t trained_weights(const pace__cnn_net *net)
{
    return net->weights - net->trained_at;
}

static size_t trained_stats(const pace__cnn_net *net)
{
    return net->stats - net->stats_trained_at;
}

/* Where the weights begin in what lies by slot: behind the statistics. */
static size_t weights_at(const pace__cnn_net *net)
{
    return (size_t)rows_of(trained_stats(net)) * ROW_FLOATS;
}

static pace__shape shape(const pace__model_plan *plan)
{
    const pace__cnn_net *net = plan->net;
    uint32_t stats_rows = rows_of(trained_stats(net)), rows = stats_rows + rows_of(trained_weights(net));

    return (pace__shape){.keys = rows,
                         .dim = ROW_FLOATS,
                         .dense_rows = rows,
                         .dense = weights_at(net) + trained_weights(net),
                         .stats_rows = stats_rows,
                         .outputs = plan->cnn.classes == 2 ? 1 : plan->cnn.classes};
}

static uint32_t entries_max(const pace__model_plan *plan)
{
    (void)plan;
    return 0;
}

static pace__cnn_plan cnn_plan(const pace__model_plan *plan, uint64_t rows_max, int threads)
{
    return (pace__cnn_plan){.config = &plan->cnn,
                            .frozen_weights = plan->net_weights,
                            .frozen_stats = plan->net_stats,
                            .rows_max = rows_max,
                            .threads = threads,
                            .trains = !plan->scores_only};
}

static pace_status open_cnn(pace__model *model)
{
    pace__cnn_plan plan = cnn_plan(&model->plan, model->rows_max, model->threads);
    cnn_model *own = model->own = calloc(1, sizeof *own);

    if (!own)
        return pace_fail(model->log, PACE_FAILED, "out of memory");
    own->tensor_count = pace__cnn_tensors(model->plan.net, own->tensors);
    own->pairs = malloc((size_t)model->rows_max * 2 * sizeof *own->pairs);
    if (!own->pairs)
        return pace_fail(model->log, PACE_FAILED, "out of memory");
    return pace__cnn_create(&plan, model->log, &own->cnn);
}

static void close_cnn(pace__model *model)
{
    cnn_model *own = model->own;

    if (!own)
        return;
    pace__cnn_free(own->cnn);
    free(own->pairs);
    free(own);
}

static uint64_t memory(const pace__model_plan *plan, uint64_t rows_max, int threads)
{
    pace__cnn_plan cnn = cnn_plan(plan, rows_max, threads);

    return pace__cnn_memory(&cnn);
}

/* --- a step --- */

static pace_status augment(pace__model *model, const pace__rows *rows, uint64_t place,
                           pace__model_batch *batch)
{
    size_t bytes = rows->rows * rows->columns;

    if (bytes > batch->pixels_max) {
        free(batch->pixels);
        batch->pixels = malloc(bytes);
        batch->pixels_max = batch->pixels ? bytes : 0;
    }
    if (bytes > 0 && !batch->pixels)
        return pace_fail(model->log, PACE_FAILED, "out of memory");
    for (size_t row = 0; row < rows->rows; row++)
        pace__cnn_augment(&model->plan.cnn, place + row, rows->pixels + row * rows->columns,
                          batch->pixels + row * rows->columns);
    return PACE_OK;
}

static pace_status find(pace__model *model, const pace__rows *rows, uint64_t place, pace__model_batch *batch)
{
    uint32_t all = model->shape.dense_rows;
    pace_status status = PACE_OK;

    if (batch->keys.count != all) {
        status = pace__key_batch_grow(&batch->keys, all, all, model->log);
        if (status)
            return status;
        for (uint32_t i = 0; i < all; i++)
            batch->keys.keys[i] = i;
        batch->keys.count = all;
    }
    batch->keys.rows = *rows;
    if (place != PACE__NO_PLACE && rows->pixels && pace__cnn_augments(&model->plan.cnn)) {
        status = augment(model, rows, place, batch);
        batch->keys.rows.pixels = batch->pixels;
    }
    return status;
}

/* A gradient under way: what is ready gets its penalty before it is handed on. */
typedef struct passing {
    pace__model *model;
    pace__task *task;
    const float *weights; /* trained ones */
    float *sums;
    size_t first; /* from here on the penalty is in */
} passing;

static void add_penalty(const passing *self, size_t first, size_t last)
{
    const pace__model *model = self->model;
    const cnn_model *own = model->own;
    size_t trained_at = model->plan.net->trained_at;
    float factor = (float)(model->plan.decay * (double)self->task->batch->keys.rows.rows);

    for (unsigned i = 0; factor > 0 && i < own->tensor_count; i++) {
        const pace__cnn_tensor *tensor = &own->tensors[i];

        if (!tensor->decays || tensor->at + tensor->size <= trained_at + first ||
            tensor->at >= trained_at + last)
            continue;
        size_t from = tensor->at > trained_at + first ? tensor->at - trained_at : first;
        size_t to =
            tensor->at + tensor->size < trained_at + last ? tensor->at + tensor->size - trained_at : last;

        for (size_t at = from; at < to; at++)
            self->sums[at] += factor * self->weights[at];
    }
}

static pace_status ready(void *user, size_t first)
{
    passing *self = user;
    const pace__task *task = self->task;

    if (first < self->first) {
        add_penalty(self, first, self->first);
        self->first = first;
    }
    /* In the forward pass nothing is complete, not even statistics. */
    return task->ready ? task->ready(task->user, weights_at(self->model->plan.net) + first) : PACE_OK;
}

static pace_status sum(void *user, float *values, size_t count)
{
    const passing *self = user;

    return self->task->sum(self->task->user, values, count);
}

static pace_status gradient(pace__model *model, pace__task *task)
{
    const pace__cnn_net *net = model->plan.net;
    size_t stats = trained_stats(net), weights = trained_weights(net), at = weights_at(net);
    float *sums = task->dense_sums ? task->dense_sums : task->sums;
    passing under_way = {model, task, task->weights + at, sums + at, weights};
    pace__cnn_batch batch = {.rows = &task->batch->keys.rows,
                             .place = task->place,
                             .weights = task->weights + at,
                             .stats = task->weights,
                             .step_rows = task->step_rows,
                             .sums = sums + at,
                             .stats_sums = sums,
                             .ready = ready,
                             .sum = task->sum ? sum : NULL,
                             .user = &under_way};
    pace_status status = PACE_OK;

    /* Who goes by his own rows and has none, as in the short step that ends an epoch, has no statistics. */
    if (batch.rows->rows > 0 || batch.sum)
        status = pace__cnn_gradient(((cnn_model *)model->own)->cnn, &batch);
    else
        memset(sums, 0, (at + weights) * sizeof *sums);
    if (under_way.first > 0)
        add_penalty(&under_way, 0, under_way.first);
    memset(sums + stats, 0, (at - stats) * sizeof *sums);
    memset(sums + at + weights, 0,
           ((size_t)model->shape.dense_rows * ROW_FLOATS - at - weights) * sizeof *sums);
    task->loss = batch.loss;
    return status;
}

/* --- scoring --- */

/* Two classes with a logit each have one logit between them. */
static pace_status paired_logits(pace__model *model, const pace__rows *rows, const float *weights,
                                 const float *stats, float *found)
{
    cnn_model *own = model->own;
    pace_status status = PACE_OK;

    for (size_t at = 0; at < rows->rows && !status;) {
        size_t count = rows->rows - at < model->rows_max ? rows->rows - at : (size_t)model->rows_max;
        pace__rows some = pace__rows_slice(rows, at, count);

        status = pace__cnn_logits(own->cnn, &some, weights, stats, own->pairs);
        for (size_t i = 0; i < count && !status; i++)
            found[at + i] = own->pairs[2 * i + 1] - own->pairs[2 * i];
        at += count;
    }
    return status;
}

static pace_status logits(pace__model *model, const pace__rows *rows, float *found)
{
    const pace__cnn_net *net = model->plan.net;
    const float *stats = model->weights, *weights = model->weights + weights_at(net);

    return net->outputs == 2 ? paired_logits(model, rows, weights, stats, found)
                             : pace__cnn_logits(((cnn_model *)model->own)->cnn, rows, weights, stats, found);
}

/* --- first values, and the file --- */

static pace_status first_weights(const pace__model_plan *plan, size_t stride, float *rows,
                                 const pace_log *log)
{
    const pace__cnn_net *net = plan->net;
    pace__shape all = shape(plan);
    float *values = calloc((size_t)all.dense_rows * ROW_FLOATS, sizeof *values);

    if (!values)
        return pace_fail(log, PACE_FAILED, "out of memory");
    memcpy(values, plan->net_stats + net->stats_trained_at, trained_stats(net) * sizeof *values);
    memcpy(values + weights_at(net), plan->net_weights + net->trained_at,
           trained_weights(net) * sizeof *values);
    for (size_t i = 0; i < all.dense_rows; i++)
        memcpy(rows + i * stride, values + i * ROW_FLOATS, ROW_FLOATS * sizeof *values);
    free(values);
    return PACE_OK;
}

/* Rows of features stand for pictures: the file is about those. */
static pace__encoding picture_encoding(const pace__store_info *info)
{
    pace__encoding encoding = info->encoding;

    encoding.kind = PACE__IMAGE;
    encoding.features = encoding.origin = 0;
    return encoding;
}

static pace_status write(const pace__model_plan *plan, const pace__store *store, const float *weights,
                         const char *path, char sha256[PACE__SHA256_HEX], const pace_log *log)
{
    const pace__cnn_net *net = plan->net;
    pace__encoding encoding = picture_encoding(&store->info);
    pace__class_names names = {0};
    float *all = malloc((net->weights + net->stats) * sizeof *all), *stats = all + net->weights;
    pace_status status = all ? pace__class_names_read(store->path, &store->info.encoding, log, &names)
                             : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status) {
        memcpy(all, plan->net_weights, net->weights * sizeof *all);
        memcpy(stats, plan->net_stats, net->stats * sizeof *all);
        memcpy(stats + net->stats_trained_at, weights, trained_stats(net) * sizeof *all);
        memcpy(all + net->trained_at, weights + weights_at(net), trained_weights(net) * sizeof *all);
        status = pace__cnn_file_write(path, &plan->cnn, &encoding, &names, all, stats, sha256, log);
    }
    pace__class_names_release(&names);
    free(all);
    return status;
}

const pace__model_kind pace__model_cnn = {
    .shape = shape,
    .entries_max = entries_max,
    .open = open_cnn,
    .close = close_cnn,
    .memory = memory,
    .find = find,
    .gradient = gradient,
    .logits = logits,
    .first_weights = first_weights,
    .write = write,
};
