/* The convolutional network as a kind: all its parameters are dense, running statistics in front. */
#include "model/cnn/kind.h"

#include "files/file.h"
#include "math/bf16.h"
#include "model/cnn/cnn_file.h"
#include "model/settings.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Floats of a row: few enough that rows spread evenly over servers, enough that their keys cost little. */
#define ROW_FLOATS 64

/* A look at the stop flag and the loss at least every so many rows. */
#define CHECK_ROWS 1024
/* Bytes of pictures, or features, that a data set is known by. */
#define LOOK_BYTES (UINT64_C(4) << 20)

/* Of a batch: its pictures as training sees them. */
typedef struct augmented {
    uint8_t *pixels;
    size_t pixels_max;
} augmented;

typedef struct cnn_model {
    pace__cnn *cnn;
    pace__cnn_tensor tensors[PACE__CNN_TENSORS_MAX];
    unsigned tensor_count;
    float *pairs; /* (rows_max, 2) of logits(): two classes with a logit each */
} cnn_model;

static const pace__cnn_own *own_of(const pace__model_plan *plan)
{
    return plan->own;
}

static const pace__cnn_net *net_of(const pace__model *model)
{
    return &own_of(&model->plan)->net;
}

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

/* --- the plan --- */

/* For a network that is to be trained two classes have one logit between them. */
static pace__shape shape_of(const pace__cnn_net *net, uint32_t outputs)
{
    uint32_t stats_rows = rows_of(trained_stats(net)), rows = stats_rows + rows_of(trained_weights(net));

    return (pace__shape){.keys = rows,
                         .dim = ROW_FLOATS,
                         .dense_rows = rows,
                         .dense = weights_at(net) + trained_weights(net),
                         .stats_rows = stats_rows,
                         .outputs = outputs};
}

/* Everything that follows from its own part. */
static void complete(pace__model_plan *plan, const pace__dataset *data, uint32_t outputs, pace__cnn_own *own)
{
    const pace__cnn_net *net = &own->net;
    bool augments = data->kind == PACE__ROWS_PICTURES && pace__cnn_augments(&own->config);

    *plan = (pace__model_plan){.kind = &pace__kind_cnn,
                               .data = *data,
                               .shape = shape_of(net, outputs),
                               .weights = trained_weights(net),
                               .guess = log(own->config.classes),
                               .row_weight = pace__row_weight_max(own->config.weight),
                               .check_rows = CHECK_ROWS,
                               .look_rows = LOOK_BYTES / data->columns + 1,
                               .value_bytes = (net->weights + net->stats) * sizeof(float),
                               .batch_row_bytes = augments ? data->columns : 0,
                               .begins_with = own->pretrained[0] ? own->pretrained : NULL,
                               .features = net->features,
                               .layers = net->units,
                               .own = own};
}

static pace_status make_plan(const pace__plan_request *request, const pace_log *log, pace__model_plan *plan)
{
    const pace_train_config *config = request->config;
    const pace__dataset *data = request->data;

    if (data->kind != PACE__ROWS_PICTURES && data->kind != PACE__ROWS_FEATURES)
        return pace_fail(log, PACE_USAGE,
                         "%s: has no pictures: --model cnn needs a data set made by 'paceline prep images'",
                         config->data);
    pace__cnn_own *own = plan->own = calloc(1, sizeof *own);

    if (!own)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace_status status = pace__cnn_configure(request, log, own);

    if (status)
        return status;
    own->bf16 = config->precision == PACE_PRECISION_BF16;
    complete(plan, data, own->config.classes == 2 ? 1 : own->config.classes, own);
    plan->clip = config->optimiser.clip;
    /* Sums of every trained batch norm, there and back. */
    plan->pools = config->own.cnn.bn == PACE_BN_GLOBAL ? 2 * (own->net.units - own->config.first_trained) : 0;
    plan->extracts = strcmp(config->own.cnn.train, "top") == 0;
    plan->feature_cache = config->own.cnn.feature_cache;
    return PACE_OK;
}

static void release_plan(pace__model_plan *plan)
{
    free(own_of(plan)->weights);
    free(plan->own);
}

static char *words(const pace__model_plan *plan)
{
    return pace__format(" pretrained=%s", plan->begins_with ? plan->begins_with : "none");
}

static unsigned facts(const pace__model_plan *plan, const pace_train_config *config, pace__fact *to)
{
    to[0] = (pace__fact){"arch", pace__cnn_arch_names[config->own.cnn.arch]};
    to[1] = (pace__fact){"train", config->own.cnn.train};
    to[2] = (pace__fact){"pretrained_sha256", plan->begins_with};
    return 3;
}

/* --- computing --- */

static pace__cnn_plan cnn_plan(const pace__model_plan *plan, uint64_t rows_max, int threads, bool scores_only)
{
    const pace__cnn_own *own = own_of(plan);

    return (pace__cnn_plan){.config = &own->config,
                            .frozen_weights = own->weights,
                            .frozen_stats = own->stats,
                            .rows_max = rows_max,
                            .threads = threads,
                            .trains = !scores_only};
}

static pace_status open_cnn(pace__model *model)
{
    pace__cnn_plan plan = cnn_plan(&model->plan, model->rows_max, model->threads, model->scores_only);
    cnn_model *own = model->own = calloc(1, sizeof *own);

    if (!own)
        return pace_fail(model->log, PACE_FAILED, "out of memory");
    own->tensor_count = pace__cnn_tensors(net_of(model), own->tensors);
    own->pairs = malloc((size_t)model->rows_max * 2 * sizeof *own->pairs);
    if (!own->pairs)
        return pace_fail(model->log, PACE_FAILED, "out of memory");
    pace_status status = own_of(&model->plan)->bf16 ? pace__bf16_use(model->log, &plan.bf16) : PACE_OK;

    return status ? status : pace__cnn_create(&plan, model->log, &own->cnn);
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

static uint64_t memory(const pace__model_plan *plan, uint64_t rows_max, int threads, bool scores_only)
{
    pace__cnn_plan cnn = cnn_plan(plan, rows_max, threads, scores_only);

    return pace__cnn_memory(&cnn);
}

/* --- a step --- */

static pace_status augment(pace__model *model, const pace__rows *rows, uint64_t place, augmented *to)
{
    size_t bytes = rows->rows * rows->columns;

    if (bytes > to->pixels_max) {
        free(to->pixels);
        to->pixels = malloc(bytes);
        to->pixels_max = to->pixels ? bytes : 0;
    }
    if (bytes > 0 && !to->pixels)
        return pace_fail(model->log, PACE_FAILED, "out of memory");
    for (size_t row = 0; row < rows->rows; row++)
        pace__cnn_augment(&own_of(&model->plan)->config, place + row, rows->pixels + row * rows->columns,
                          to->pixels + row * rows->columns);
    return PACE_OK;
}

static void release_batch(void *own)
{
    free(((augmented *)own)->pixels);
}

static pace_status find(pace__model *model, const pace__rows *rows, uint64_t place, pace__model_batch *batch)
{
    uint32_t all = model->plan.shape.dense_rows;
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
    if (place != PACE__NO_PLACE && rows->pixels && pace__cnn_augments(&own_of(&model->plan)->config)) {
        status = augment(model, rows, place, batch->own);
        batch->keys.rows.pixels = ((const augmented *)batch->own)->pixels;
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
    size_t trained_at = net_of(model)->trained_at;
    float factor = (float)(own_of(&model->plan)->decay * (double)self->task->batch->keys.rows.rows);

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
    return task->ready ? task->ready(task->user, weights_at(net_of(self->model)) + first) : PACE_OK;
}

static pace_status sum(void *user, float *values, size_t count)
{
    const passing *self = user;

    return self->task->sum(self->task->user, values, count);
}

static pace_status gradient(pace__model *model, pace__task *task)
{
    const pace__cnn_net *net = net_of(model);
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
           ((size_t)model->plan.shape.dense_rows * ROW_FLOATS - at - weights) * sizeof *sums);
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
    const pace__cnn_net *net = net_of(model);
    const float *stats = model->weights, *weights = model->weights + weights_at(net);

    return net->outputs > model->plan.shape.outputs
               ? paired_logits(model, rows, weights, stats, found)
               : pace__cnn_logits(((cnn_model *)model->own)->cnn, rows, weights, stats, found);
}

static pace_status features(pace__model *model, const pace__rows *rows, float *found)
{
    return pace__cnn_features(((cnn_model *)model->own)->cnn, rows, found);
}

static int feature_words(const pace__model_plan *plan, char *text, size_t size)
{
    const pace__cnn_own *own = own_of(plan);
    const pace__cnn_config *cnn = &own->config;

    return snprintf(text, size,
                    "arch=%d width=%.9g same=%d epsilon=%.9g mean=%.9g,%.9g,%.9g deviation=%.9g,%.9g,%.9g "
                    "weights=%s layers=%u",
                    cnn->arch, cnn->width, cnn->same, cnn->epsilon, cnn->mean[0], cnn->mean[1], cnn->mean[2],
                    cnn->deviation[0], cnn->deviation[1], cnn->deviation[2], own->pretrained, own->net.units);
}

/* --- first values, and the file --- */

/* From two arrays to rows of parameters, and back. */
static void to_rows(const pace__cnn_net *net, const float *weights, const float *stats, float *rows)
{
    memcpy(rows, stats + net->stats_trained_at, trained_stats(net) * sizeof *rows);
    memcpy(rows + weights_at(net), weights + net->trained_at, trained_weights(net) * sizeof *rows);
}

void pace__cnn_from_rows(const pace__cnn_net *net, const float *rows, float *weights, float *stats)
{
    memcpy(stats + net->stats_trained_at, rows, trained_stats(net) * sizeof *rows);
    memcpy(weights + net->trained_at, rows + weights_at(net), trained_weights(net) * sizeof *rows);
}

static pace_status first_weights(const pace__model_plan *plan, size_t stride, float *rows,
                                 const pace_log *log)
{
    const pace__cnn_own *own = own_of(plan);
    size_t count = plan->shape.dense_rows;
    float *values = calloc(count * ROW_FLOATS, sizeof *values);

    if (!values)
        return pace_fail(log, PACE_FAILED, "out of memory");
    to_rows(&own->net, own->weights, own->stats, values);
    for (size_t i = 0; i < count; i++)
        memcpy(rows + i * stride, values + i * ROW_FLOATS, ROW_FLOATS * sizeof *values);
    free(values);
    return PACE_OK;
}

/* --- another model's values --- */

/* All values of two networks, which differ in their heads. */
typedef struct both_values {
    const pace__cnn_own *ours, *theirs;
    float *to;
    const float *from;
} both_values;

/* Outputs by class; a logit between two is one of the same two. Returns how many of the head's rows. */
static uint32_t adopt_head(const both_values *self, const pace__names *names)
{
    const pace__cnn_net *net = &self->ours->net, *theirs = &self->theirs->net;
    uint32_t taken = 0;

    if (self->ours->config.one_logit != self->theirs->config.one_logit)
        return 0;
    for (uint32_t output = 0; output < net->outputs; output++) {
        uint32_t place = net->outputs == names->count ? names->place[output]
                         : names->same                ? output
                                                      : PACE__NAME_NEW;

        if (place == PACE__NAME_NEW)
            continue;
        memcpy(self->to + net->head_weight_at + (size_t)output * net->features,
               self->from + theirs->head_weight_at + (size_t)place * net->features,
               net->features * sizeof *self->to);
        self->to[net->head_bias_at + output] = self->from[theirs->head_bias_at + place];
        taken++;
    }
    return taken;
}

static void adopt_values(const both_values *self, const pace__names *names, pace__overlap *overlap)
{
    const pace__cnn_net *net = &self->ours->net, *theirs = &self->theirs->net;
    size_t body = net->head_weight_at, trained = body > net->trained_at ? body - net->trained_at : 0,
           row = net->features + (size_t)1;
    uint32_t outputs = adopt_head(self, names);

    assert(body == theirs->head_weight_at && net->stats == theirs->stats);
    memcpy(self->to, self->from, body * sizeof *self->to);
    memcpy(self->to + net->weights, self->from + theirs->weights, net->stats * sizeof *self->to);
    overlap->taken = trained + outputs * row;
    overlap->left = (theirs->outputs - outputs) * row;
}

/* What is frozen was taken by the plan. */
static pace_status adopt(const pace__model_plan *plan, const pace__loaded *from, const pace__names *names,
                         const float *values, size_t stride, float *rows, const pace_log *log,
                         pace__overlap *overlap)
{
    const pace__cnn_own *own = own_of(plan), *their_own = own_of(&from->plan);
    const pace__cnn_net *net = &own->net, *theirs = &their_own->net;
    size_t count = plan->shape.dense_rows, floats = count * ROW_FLOATS;
    float *packed =
              calloc(floats + net->weights + net->stats + theirs->weights + theirs->stats, sizeof *packed),
          *to = packed + floats, *taken = to + net->weights + net->stats;

    if (!packed)
        return pace_fail(log, PACE_FAILED, "out of memory");
    for (size_t i = 0; i < count; i++)
        memcpy(packed + i * ROW_FLOATS, rows + i * stride, ROW_FLOATS * sizeof *packed);
    pace__cnn_from_rows(net, packed, to, to + net->weights);
    pace__cnn_from_rows(theirs, values, taken, taken + theirs->weights);
    adopt_values(&(both_values){own, their_own, to, taken}, names, overlap);
    to_rows(net, to, to + net->weights, packed);
    for (size_t i = 0; i < count; i++)
        memcpy(rows + i * stride, packed + i * ROW_FLOATS, ROW_FLOATS * sizeof *packed);
    free(packed);
    return PACE_OK;
}

static pace_status write(const pace__model_plan *plan, const float *weights, const pace__origin *origin,
                         const char *path, char sha256[PACE__SHA256_HEX], const pace_log *log)
{
    const pace__cnn_own *own = own_of(plan);
    const pace__cnn_net *net = &own->net;
    float *all = malloc((net->weights + net->stats) * sizeof *all), *stats = all + net->weights;

    if (!all)
        return pace_fail(log, PACE_FAILED, "out of memory");
    memcpy(all, own->weights, net->weights * sizeof *all);
    memcpy(stats, own->stats, net->stats * sizeof *all);
    pace__cnn_from_rows(net, weights, all, stats);
    pace_status status = pace__cnn_file_write(path, &own->config, origin, all, stats, sha256, log);

    free(all);
    return status;
}

/* Nothing is frozen: all values are parameters, and two classes may have a logit each. */
static pace_status read(const pace__model_file *file, const pace__dataset *data, const pace_log *log,
                        pace__loaded *loaded)
{
    pace__cnn_file model;
    pace_status status = pace__cnn_file_read(file, data, &model, log);

    if (status)
        return status;
    pace__cnn_own *own = calloc(1, sizeof *own);
    size_t floats = weights_at(&model.net) + (size_t)rows_of(model.net.weights) * ROW_FLOATS + ROW_FLOATS;

    loaded->weights = calloc(floats, sizeof *loaded->weights);
    if (own && loaded->weights) {
        own->config = model.config;
        own->net = model.net;
        complete(&loaded->plan, data, model.net.outputs, own);
        to_rows(&model.net, model.weights, model.stats, loaded->weights);
    } else {
        free(own);
        status = pace_fail(log, PACE_FAILED, "out of memory");
    }
    pace__cnn_file_release(&model);
    return status;
}

const pace__kind pace__kind_cnn = {
    .info = {"cnn", "a convolutional network on pictures",
             "Mobilenets: 32 rows in a step, dropout 0.2. With --train top: 50 epochs at 0.01 (adam), no "
             "dropout. Momentum: 0.05.\nBy the data: up to 40 epochs of so few pictures that 10 are less "
             "than 256 steps.",
             pace__cnn_options},
    .has_bf16 = true,
    .by_steps = true,
    .has_values = true,
    .check = pace__cnn_check,
    .settle = pace__cnn_settle,
    .remedies = "--augment flip,crop,colour, --dropout 0.3, or weights to begin with (--pretrained)",
    .plan = make_plan,
    .release_plan = release_plan,
    .words = words,
    .facts = facts,
    .open = open_cnn,
    .close = close_cnn,
    .memory = memory,
    .find = find,
    .batch_bytes = sizeof(augmented),
    .release_batch = release_batch,
    .gradient = gradient,
    .logits = logits,
    .first_weights = first_weights,
    .fits = pace__cnn_fits,
    .adopt = adopt,
    .features = features,
    .feature_words = feature_words,
    .write = write,
    .read = read,
    .describe = pace__cnn_describe,
};
