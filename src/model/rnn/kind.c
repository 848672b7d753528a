/* The recurrent network as a kind: a row of parameters per word, and dense ones behind. */
#include "model/rnn/kind.h"

#include "base/memory.h"
#include "base/random.h"
#include "files/file.h"
#include "files/sha256.h"
#include "model/rnn/rnn_file.h"
#include "model/settings.h"
#include "model/tensors.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

/* Sets these draws apart from all others of the same seed. */
#define WORD_DROPOUT_STREAM UINT64_C(0x776f726473)

/* A look at the stop flag and the loss at least every so many rows. */
#define CHECK_ROWS 1024
/* Rows that a data set is known by. */
#define LOOK_ROWS 4096

/* Of a batch: its rows' words with some of them dropped. */
typedef struct dropped {
    uint32_t *words;
    size_t words_max;
} dropped;

typedef struct rnn_model {
    pace__rnn *rnn;
    /* Of logits(): */
    pace__model_batch batch;
    float *embedding; /* of the words in the batch */
    size_t embedding_bytes;
} rnn_model;

static const pace__rnn_config *config_of(const pace__model_plan *plan)
{
    return &((const pace__rnn_own *)plan->own)->config;
}

/* --- the plan --- */

static pace__shape shape_of(const pace__rnn_config *config)
{
    size_t dense = pace__rnn_dense(config);
    uint32_t dense_rows = (uint32_t)((dense + config->embed - 1) / config->embed);

    return (pace__shape){.keys = (uint64_t)config->words + dense_rows,
                         .dim = config->embed,
                         .dense_rows = dense_rows,
                         .dense = dense,
                         .outputs = 1};
}

pace_status pace__rnn_model_plan(const pace__dataset *data, const pace__rnn_config *config,
                                 double word_dropout, const pace_log *log, pace__model_plan *plan)
{
    pace__shape shape = shape_of(config);
    pace__rnn_own *own = malloc(sizeof *own);

    if (!own)
        return pace_fail(log, PACE_FAILED, "out of memory");
    *own = (pace__rnn_own){*config, word_dropout};
    *plan = (pace__model_plan){.kind = &pace__kind_rnn,
                               .data = *data,
                               .shape = shape,
                               .entries_max = config->length,
                               .weights = (uint64_t)config->words * config->embed + shape.dense,
                               .guess = M_LN2,
                               .row_weight = pace__row_weight_max(config->weight),
                               .check_rows = CHECK_ROWS,
                               .look_rows = LOOK_ROWS,
                               .penalised = true,
                               .own = own};
    return PACE_OK;
}

static pace_status make_plan(const pace__plan_request *request, const pace_log *log, pace__model_plan *plan)
{
    const pace_train_config *config = request->config;
    const pace_rnn_options *own = &config->own.rnn;
    const pace__dataset *data = request->data;
    pace__rnn_config rnn = {.words = data->ids,
                            .length = data->columns,
                            .embed = (uint32_t)own->embed,
                            .hidden = (uint32_t)own->hidden,
                            .layers = (uint32_t)own->layers,
                            .dense = (uint32_t)own->dense,
                            .cell = own->cell,
                            .pooling = own->pooling,
                            .both = own->bidirectional == PACE_DIRECTIONS_BOTH,
                            .dropout = (float)config->optimiser.dropout,
                            .loss = own->loss,
                            .focal = (float)own->focal,
                            .seed = config->seed,
                            .bf16 = config->precision == PACE_PRECISION_BF16};

    if (data->kind != PACE__ROWS_TEXT)
        return pace_fail(log, PACE_USAGE,
                         "%s: has no texts: --model rnn needs a data set made by 'paceline prep reviews'",
                         config->data);
    pace_status status = pace__class_weights(request, rnn.weight, log);

    if (!status)
        status = pace__rnn_model_plan(data, &rnn, own->word_dropout, log, plan);
    if (status)
        return status;
    plan->clip = config->optimiser.clip;
    plan->vectors = own->embeddings;
    return PACE_OK;
}

/* Vectors by what the file holds: "0f3c..."; a file of gigabytes is not read through for that. */
static char *words(const pace__model_plan *plan)
{
    char hex[PACE__SHA256_HEX] = "no";

    if (plan->vectors && pace__sha256_sample(plan->vectors, hex, NULL))
        strcpy(hex, "unreadable");
    return pace__format(" embeddings=%.16s", hex);
}

/* --- computing --- */

/* Words of so many rows, each once. */
static uint64_t distinct_max(const pace__rnn_config *config, uint64_t rows)
{
    return rows * config->length < config->words ? rows * config->length : config->words;
}

static pace_status open_rnn(pace__model *model)
{
    const pace__rnn_config *config = config_of(&model->plan);
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

static uint64_t memory(const pace__model_plan *plan, uint64_t rows_max, int threads, bool scores_only)
{
    const pace__rnn_config *config = config_of(plan);

    (void)scores_only;
    return pace__rnn_memory(config, rows_max, threads) + config->words * sizeof(uint32_t);
}

/* A copy of the rows in which some words are unknown. Which ones depends on seed and place alone. */
static pace_status drop_words(pace__model *model, const pace__rows *rows, uint64_t place, dropped *to)
{
    const pace__rnn_own *own = model->plan.own;
    size_t count = rows->rows * rows->columns;
    uint64_t limit = (uint64_t)(own->word_dropout * 0x1p32);

    if (count > to->words_max) {
        free(to->words);
        to->words = malloc(count * sizeof *to->words);
        to->words_max = to->words ? count : 0;
    }
    if (count > 0 && !to->words)
        return pace_fail(model->log, PACE_FAILED, "out of memory");
    for (size_t row = 0; row < rows->rows; row++) {
        const uint32_t *from = pace__row_words(rows, row);
        uint32_t *words_of_row = to->words + (from - rows->ids);
        pace__random draws = pace__random_at((uint64_t)own->config.seed ^ WORD_DROPOUT_STREAM, place + row);

        for (uint32_t i = 0; i < rows->length[row]; i++)
            words_of_row[i] = pace__random_next(&draws) >> 32 < limit ? PACE__ID_UNKNOWN : from[i];
    }
    return PACE_OK;
}

static pace_status find(pace__model *model, const pace__rows *rows, uint64_t place, pace__model_batch *batch)
{
    const pace__shape *all = &model->plan.shape;
    const pace__rnn_own *own = model->plan.own;
    uint32_t first_dense = own->config.words;
    size_t entries = rows->rows * rows->columns + all->dense_rows;
    pace__rows seen = *rows;
    pace_status status = PACE_OK;

    if (place != PACE__NO_PLACE && own->word_dropout > 0) {
        status = drop_words(model, rows, place, batch->own);
        seen.ids = ((const dropped *)batch->own)->words;
    }
    if (!status && (!batch->keys.slots || entries > batch->keys.entries_max))
        status = pace__key_batch_grow(&batch->keys, first_dense + all->dense_rows, entries, model->log);
    if (status)
        return status;
    pace__keys_find_words(&model->finder, &seen, &batch->keys);
    batch->sparse = batch->keys.count;
    for (uint32_t i = 0; i < all->dense_rows; i++)
        batch->keys.keys[batch->keys.count++] = first_dense + i;
    return PACE_OK;
}

static void release_batch(void *own)
{
    free(((dropped *)own)->words);
}

static pace_status gradient(pace__model *model, pace__task *task)
{
    const pace__shape *all = &model->plan.shape;
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
                             .words_ready = task->sparse_ready,
                             .user = task->user};
    pace_status status = pace__rnn_gradient(((rnn_model *)model->own)->rnn, &batch);

    memset(dense_sums + all->dense, 0, (all->dense_rows * (size_t)all->dim - all->dense) * sizeof(float));
    task->loss = batch.loss;
    return status;
}

/* Of some rows; the embedding of their words is gathered, so that it takes the time of words that occur. */
static pace_status some_logits(pace__model *model, const pace__rows *rows, float *found)
{
    const pace__rnn_config *config = config_of(&model->plan);
    rnn_model *own = model->own;
    pace_status status = pace__model_find(model, rows, PACE__NO_PLACE, &own->batch);

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
    const pace__rnn_config *config = config_of(&model->plan);
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
    const pace__rnn_config *config = config_of(plan);
    pace__shape all = plan->shape;
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

/* --- another model's values --- */

/* What decides shapes. Pooling and loss do not: they may become others. */
static pace_status fits(const pace__plan_request *request, const pace_log *log)
{
    static const char *const cells[] = {[PACE_CELL_LSTM] = "lstm", [PACE_CELL_GRU] = "gru"};
    static const char *const directions[] = {"false", "true"};
    const pace_rnn_options *own = &request->config->own.rnn;
    const pace__rnn_config *theirs = config_of(&request->begins->model->plan);
    pace_status status = pace__same_word(request, "cell", cells[own->cell], cells[theirs->cell], log);

    if (!status)
        status = pace__same_size(request, "layers", own->layers, theirs->layers, log);
    if (!status)
        status = pace__same_size(request, "hidden", own->hidden, theirs->hidden, log);
    if (!status)
        status = pace__same_size(request, "embed", own->embed, theirs->embed, log);
    if (!status)
        status = pace__same_size(request, "dense", own->dense, theirs->dense, log);
    return status ? status
                  : pace__same_word(request, "bidirectional", directions[own->bidirectional],
                                    directions[theirs->both], log);
}

/* Rows of words by the words, dense ones as they are. */
static pace_status adopt(const pace__model_plan *plan, const pace__loaded *from, const pace__names *names,
                         const float *values, size_t stride, float *rows, const pace_log *log,
                         pace__overlap *overlap)
{
    uint32_t words = config_of(plan)->words, theirs = config_of(&from->plan)->words;
    size_t dim = plan->shape.dim;

    (void)log;
    assert(plan->shape.dense == from->plan.shape.dense && dim == from->plan.shape.dim);
    for (size_t word = 0; word < names->count; word++) {
        if (names->place[word] == PACE__NAME_NEW)
            continue;
        memcpy(rows + word * stride, values + names->place[word] * dim, dim * sizeof *rows);
        overlap->taken += dim;
    }
    for (size_t i = 0; i < plan->shape.dense_rows; i++)
        memcpy(rows + (words + i) * stride, values + (theirs + i) * dim, dim * sizeof *rows);
    overlap->taken += plan->shape.dense;
    overlap->left = from->plan.weights - overlap->taken;
    return PACE_OK;
}

/* --- files --- */

static pace_status write(const pace__model_plan *plan, const float *weights, const pace__origin *origin,
                         const char *path, char sha256[PACE__SHA256_HEX], const pace_log *log)
{
    const pace__rnn_config *config = config_of(plan);

    return pace__rnn_file_write(path, config, origin, weights, config->embed,
                                weights + (size_t)config->words * config->embed, sha256, log);
}

static pace_status read(const pace__model_file *file, const pace__dataset *data, const pace_log *log,
                        pace__loaded *loaded)
{
    pace__rnn_file model;
    pace_status status = pace__rnn_file_read(file, data, &model, log);

    if (status)
        return status;
    status = pace__rnn_model_plan(data, &model.config, 0, log, &loaded->plan);
    loaded->weights = model.embedding;
    return status;
}

static void describe(const pace__loaded *loaded, const pace__portrait *portrait)
{
    const pace__shape *shape = &loaded->plan.shape;
    cJSON *to = portrait->to;

    cJSON_AddStringToObject(to, "model", "rnn");
    cJSON_AddNumberToObject(to, "parameters", (double)loaded->plan.weights);
    cJSON_AddNumberToObject(to, "parameters_dense", (double)shape->dense);
    portrait->add_origin(portrait->user, to);
    cJSON *config = cJSON_Parse(pace__safetensors_metadata(portrait->file->tensors, "config"));

    if (config)
        cJSON_AddItemToObject(to, "config", config);
    pace__add_tensors(portrait->file->tensors, to);
}

const pace__kind pace__kind_rnn = {
    .info =
        {"rnn", "a recurrent network over the words of texts",
         "By the data: where rows have room for more than 100 words, texts are read in both directions, and "
         "the mean is taken;\nof these 4 epochs, and up to 8 where 4 are less than 64 steps.",
         pace__rnn_options},
    .has_bf16 = true,
    .by_steps = true,
    .check = pace__rnn_check,
    .settle = pace__rnn_settle,
    .remedies = "more --dropout and --word-dropout, or a smaller --hidden and --embed",
    .has_logloss = pace__rnn_has_logloss,
    .plan = make_plan,
    .words = words,
    .open = open_rnn,
    .close = close_rnn,
    .memory = memory,
    .find = find,
    .batch_bytes = sizeof(dropped),
    .release_batch = release_batch,
    .gradient = gradient,
    .logits = logits,
    .first_weights = first_weights,
    .fits = fits,
    .adopt = adopt,
    .write = write,
    .read = read,
    .describe = describe,
};
