/* The factorization machine as a kind: on sparse rows, a row of parameters per feature, and the bias. */
#include "model/fm/kind.h"

#include "math/softplus.h"
#include "model/defaults.h"
#include "model/fm/fm.h"
#include "model/fm/fm_file.h"
#include "model/heaviest.h"
#include "model/settings.h"
#include "watch/spans.h"

#include <cjson/cJSON.h>
#include <stdlib.h>

/* A chance to do something else after so many rows. */
#define READY_ROWS 512
/* A look at the stop flag and the loss at least every so many rows. */
#define CHECK_ROWS 16384
/* Rows that a data set is known by. */
#define LOOK_ROWS 4096
#define BATCH     128
#define FACTORS   8

_Static_assert(sizeof(pace_fm_options) <= sizeof(pace_model_options), "it lies in the same place");

static unsigned factors_of(const pace__model_plan *plan)
{
    return ((const pace__fm_own *)plan->own)->factors;
}

/* Features; the bias comes behind them. */
static uint32_t ids_of(const pace__model_plan *plan)
{
    return (uint32_t)plan->shape.keys - 1;
}

/* --- the options --- */

static const pace_option options[] = {
    {"factors", 0, PACE_OPT_INT, offsetof(pace_fm_options, factors), "8", "K",
     "numbers of each feature that are multiplied with those of others", .min = 1,
     .max = PACE__FM_FACTORS_MAX, .mark = PACE_MARK_IDENTITY, .group = "Factorization machines"},
    {0},
};

static pace_status check(const pace_train_config *config, const pace_log *log)
{
    pace_status status = pace__refuse_network_options(config, "fm", log);

    if (!status && (config->optimiser.l1 > 0 || config->optimiser.l2 > 0))
        status = pace_fail(log, PACE_USAGE, "--l1 and --l2 are for --model logreg; fm has fewer --factors");
    return status ? status : pace__check_network(config, "fm", log);
}

static void settle(pace_train_config *config, const pace__dataset *data)
{
    pace__choose(&config->optimiser.rule, PACE_OPTIMIZER_AUTO, PACE_ADAGRAD);
    pace__choose(&config->optimiser.schedule, PACE_SCHEDULE_AUTO, PACE_SCHEDULE_CONSTANT);
    pace__choose_integer(&config->length.batch, 0, BATCH);
    pace__choose_integer(&config->length.epochs, 0, pace__sparse_epochs(data));
    if (config->optimiser.rule == PACE_ADAGRAD)
        pace__choose_real(&config->optimiser.lr, 0, pace__pairs_rate(data));
    pace__choose_integer(&config->own.fm.factors, 0, FACTORS);
    pace__settle_linear(config);
}

/* --- the plan --- */

pace_status pace__fm_model_plan(const pace__dataset *data, unsigned factors, int64_t seed,
                                const pace_log *log, pace__model_plan *plan)
{
    pace__fm_own *own = malloc(sizeof *own);

    if (!own)
        return pace_fail(log, PACE_FAILED, "out of memory");
    *own = (pace__fm_own){factors, seed};
    *plan = (pace__model_plan){.kind = &pace__kind_fm,
                               .data = *data,
                               .shape = {.keys = (uint64_t)data->ids + 1, .dim = 1 + factors, .outputs = 1},
                               .entries_max = data->row_entries_max,
                               .weights = (uint64_t)data->ids * (1 + factors),
                               .guess = M_LN2,
                               .row_weight = 1,
                               .check_rows = CHECK_ROWS,
                               .look_rows = LOOK_ROWS,
                               .own = own};
    return PACE_OK;
}

static pace_status make_plan(const pace__plan_request *request, const pace_log *log, pace__model_plan *plan)
{
    const pace_fm_options *own = (const pace_fm_options *)&request->config->own;

    if (request->data->kind != PACE__ROWS_SPARSE)
        return pace_fail(log, PACE_USAGE,
                         "%s: has no rows of features: --model fm needs a data set made by 'paceline prep "
                         "clicks'",
                         request->config->data);
    return pace__fm_model_plan(request->data, (unsigned)own->factors, request->config->seed, log, plan);
}

/* --- computing --- */

static pace_status open_fm(pace__model *model)
{
    return pace__key_finder_init(&model->finder, ids_of(&model->plan), model->plan.data.like, model->log);
}

static void close_fm(pace__model *model)
{
    (void)model; /* the finder is all there is */
}

static uint64_t memory(const pace__model_plan *plan, uint64_t rows_max, int threads, bool scores_only)
{
    (void)threads;
    (void)scores_only;
    return ((uint64_t)ids_of(plan) + 1 + rows_max * plan->entries_max) * sizeof(uint32_t);
}

static pace_status find(pace__model *model, const pace__rows *rows, uint64_t place, pace__model_batch *batch)
{
    uint64_t entries = rows->rows ? pace__row_start(rows, rows->rows) : 0;
    pace_status status = PACE_OK;

    (void)place;
    if (!batch->keys.slots || entries > batch->keys.entries_max)
        status = pace__key_batch_grow(&batch->keys, ids_of(&model->plan), entries, model->log);
    if (status)
        return status;
    pace__keys_find(&model->finder, rows, &batch->keys);
    batch->sparse = batch->keys.count;
    return PACE_OK;
}

/* The derivative of the loss by the logit; adds the loss. */
static float slope_of(double logit, uint8_t label, double *loss)
{
    double rest = exp(-fabs(logit)), p = logit >= 0 ? 1 / (1 + rest) : rest / (1 + rest);

    *loss += pace__softplus(label ? -logit : logit);
    return (float)(p - label);
}

/* Slot 0 is the bias, whose factors are 0 for ever; the last is "unseen", all 0. */
static pace_status gradient(pace__model *model, pace__task *task)
{
    const pace__key_batch *keys = &task->batch->keys;
    const pace__rows *rows = &keys->rows;
    unsigned factors = factors_of(&model->plan);
    size_t dim = model->plan.shape.dim;
    float sums[PACE__FM_FACTORS_MAX];
    pace_status status = PACE_OK;

    memset(task->weights + keys->count * dim, 0, dim * sizeof *task->weights);
    memset(task->sums, 0, ((size_t)keys->count + 1) * dim * sizeof *task->sums);
    task->loss = 0;
    uint64_t entries = rows->rows ? pace__row_start(rows, rows->rows) : 0;
    PACE__SPAN_OF("rows there and back", NULL, entries * 8 * dim, entries * 16 * dim);

    for (size_t row = 0; row < rows->rows && !status; row++) {
        double logit = (double)task->weights[0] + pace__fm_logit(rows, row, task->weights, factors, sums);
        float slope = slope_of(logit, rows->label[row], &task->loss);

        task->sums[0] += slope;
        pace__fm_add_gradient(rows, row, task->weights, factors, sums, slope, task->sums);
        if (row % READY_ROWS == READY_ROWS - 1 && task->ready)
            status = task->ready(task->user, 0);
    }
    return status;
}

/* The bias lies where rows say "unseen", whose parameters are 0: it steps aside while they are summed. */
static pace_status answers(pace__model *model, const pace__rows *rows, double *found)
{
    unsigned factors = factors_of(&model->plan);
    float *bias = model->weights + (size_t)ids_of(&model->plan) * model->plan.shape.dim, value = *bias;
    float sums[PACE__FM_FACTORS_MAX];

    *bias = 0;
    for (size_t row = 0; row < rows->rows; row++)
        found[row] = (double)value + pace__fm_logit(rows, row, model->weights, factors, sums);
    *bias = value;
    return PACE_OK;
}

static pace_status logits(pace__model *model, const pace__rows *rows, float *found)
{
    unsigned factors = factors_of(&model->plan);
    float *bias = model->weights + (size_t)ids_of(&model->plan) * model->plan.shape.dim, value = *bias;
    float sums[PACE__FM_FACTORS_MAX];

    *bias = 0;
    for (size_t row = 0; row < rows->rows; row++)
        found[row] = (float)((double)value + pace__fm_logit(rows, row, model->weights, factors, sums));
    *bias = value;
    return PACE_OK;
}

static pace_status first_weights(const pace__model_plan *plan, size_t stride, float *rows,
                                 const pace_log *log)
{
    const pace__fm_own *own = plan->own;
    size_t ids = ids_of(plan);

    (void)log;
    for (size_t key = 0; key < ids; key++) {
        rows[key * stride] = 0;
        pace__fm_init_factors(own->seed, key, own->factors, rows + key * stride + 1);
    }
    memset(rows + ids * stride, 0, plan->shape.dim * sizeof *rows);
    return PACE_OK;
}

/* --- another model's values --- */

static pace_status fits(const pace__plan_request *request, const pace_log *log)
{
    const pace_fm_options *own = (const pace_fm_options *)&request->config->own;

    return pace__same_size(request, "factors", own->factors, factors_of(&request->begins->model->plan), log);
}

static pace_status adopt(const pace__model_plan *plan, const pace__loaded *from, const pace__names *names,
                         const float *values, size_t stride, float *rows, const pace_log *log,
                         pace__overlap *overlap)
{
    size_t dim = plan->shape.dim, ids = ids_of(plan);

    (void)log;
    for (size_t id = 0; id < names->count; id++) {
        if (names->place[id] == PACE__NAME_NEW)
            continue;
        memcpy(rows + id * stride, values + names->place[id] * dim, dim * sizeof *rows);
        overlap->taken += dim;
    }
    memcpy(rows + ids * stride, values + ids_of(&from->plan) * dim, dim * sizeof *rows);
    overlap->left = from->count * dim - overlap->taken;
    return PACE_OK;
}

/* --- files --- */

static pace_status write(const pace__model_plan *plan, const float *weights, const pace__origin *origin,
                         const char *path, char sha256[PACE__SHA256_HEX], const pace_log *log)
{
    return pace__fm_file_write(path, origin, weights, factors_of(plan), ids_of(plan), sha256, log);
}

static pace_status read(const pace__model_file *file, const pace__dataset *data, const pace_log *log,
                        pace__loaded *loaded)
{
    pace__dataset rows = *data;
    pace__fm_file model;
    pace_status status = pace__fm_file_read(file, data, &model, log);

    if (status)
        return status;
    rows.ids = model.count; /* a key is the rank of its id */
    loaded->weights = model.weights;
    loaded->ids = model.ids;
    loaded->count = model.count;
    return pace__fm_model_plan(&rows, model.factors, 0, log, &loaded->plan);
}

static float weight_at(const pace__loaded *loaded, uint32_t place)
{
    return loaded->weights[(size_t)place * loaded->plan.shape.dim];
}

static void describe(const pace__loaded *loaded, const pace__portrait *portrait)
{
    size_t dim = loaded->plan.shape.dim;
    double weights = 0, factors = 0;
    cJSON *to = portrait->to;

    for (size_t i = 0; i < loaded->count * dim; i++) {
        double square = (double)loaded->weights[i] * (double)loaded->weights[i];

        *(i % dim ? &factors : &weights) += square;
    }
    cJSON_AddStringToObject(to, "model", "fm");
    cJSON_AddNumberToObject(to, "factors", (double)dim - 1);
    cJSON_AddNumberToObject(to, "features", (double)loaded->plan.data.features);
    cJSON_AddNumberToObject(to, "weights", loaded->count);
    cJSON_AddNumberToObject(to, "norm", sqrt(weights));
    cJSON_AddNumberToObject(to, "norm_factors", sqrt(factors));
    cJSON_AddNumberToObject(to, "bias", (double)weight_at(loaded, loaded->count));
    portrait->add_origin(portrait->user, to);
    pace__add_heaviest(loaded, portrait, weight_at);
}

const pace__kind pace__kind_fm = {
    .info =
        {"fm", "a factorization machine, on clicks: pairs of features count, too",
         "By the data: --lr (adagrad) 1 / entries of a row, 0.03 to 0.15; up to 10 epochs of short rows of "
         "which there are ten\nfor each feature.",
         options},
    .one_thread = true,
    .check = check,
    .settle = settle,
    .remedies = "a lower --lr, or fewer --factors",
    .plan = make_plan,
    .open = open_fm,
    .close = close_fm,
    .memory = memory,
    .find = find,
    .gradient = gradient,
    .logits = logits,
    .answers = answers,
    .terms = pace__fm_terms,
    .first_weights = first_weights,
    .fits = fits,
    .adopt = adopt,
    .write = write,
    .read = read,
    .describe = describe,
};
