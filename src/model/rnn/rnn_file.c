#include "model/rnn/rnn_file.h"

#include "base/json.h"
#include "files/file.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

/* Members of "config". One more would mean something that this program does not know. */
#define CONFIG_MEMBERS 8

static const char *const cell_names[] = {[PACE_CELL_LSTM] = "lstm", [PACE_CELL_GRU] = "gru"};
static const char *const pooling_names[] = {
    [PACE_POOL_LAST] = "last", [PACE_POOL_MEAN] = "mean", [PACE_POOL_MAX] = "max"};
static const char *const loss_names[] = {
    [PACE_LOSS_BCE] = "bce", [PACE_LOSS_FOCAL] = "focal", [PACE_LOSS_HINGE] = "hinge"};

/* --- writing --- */

static char *config_to_json(const pace__rnn_config *config)
{
    return pace__format("{\"cell\":\"%s\",\"layers\":%u,\"both\":%s,\"embed\":%u,\"hidden\":%u,\"dense\":%u,"
                        "\"pooling\":\"%s\",\"loss\":\"%s\"}",
                        cell_names[config->cell], config->layers, config->both ? "true" : "false",
                        config->embed, config->hidden, config->dense, pooling_names[config->pooling],
                        loss_names[config->loss]);
}

/* Rows that may have something else behind them. */
typedef struct strided {
    const float *rows;
    size_t embed, stride;
} strided;

static pace_status fill_embedding(void *user, uint64_t offset, void *buffer, size_t bytes)
{
    const strided *from = user;
    size_t first = (size_t)offset / sizeof(float);
    float *values = buffer;

    for (size_t i = 0; i < bytes / sizeof *values; i++)
        values[i] = from->rows[(first + i) / from->embed * from->stride + (first + i) % from->embed];
    return PACE_OK;
}

pace_status pace__rnn_file_write(const char *path, const pace__rnn_config *config, const pace__origin *origin,
                                 const float *embedding, size_t stride, const float *dense,
                                 char sha256[PACE__SHA256_HEX], const pace_log *log)
{
    assert(origin->vocabulary && stride >= config->embed);
    pace__tensor tensors[PACE__RNN_TENSORS_MAX + 1];
    pace__rnn_tensor parts[PACE__RNN_TENSORS_MAX];
    unsigned count = pace__rnn_tensors(config, parts);
    strided from = {embedding, config->embed, stride};
    char *json = config_to_json(config);

    tensors[0] = (pace__tensor){.name = "embedding.weight",
                                .dtype = PACE__F32,
                                .rank = 2,
                                .shape = {config->words, config->embed},
                                .fill = fill_embedding,
                                .user = &from};
    for (unsigned i = 0; i < count; i++)
        tensors[i + 1] = (pace__tensor){.name = parts[i].name,
                                        .dtype = PACE__F32,
                                        .rank = parts[i].rank,
                                        .shape = {parts[i].shape[0], parts[i].shape[1]},
                                        .data = dense + parts[i].at};
    pace__model_contents contents = {
        .kind = "rnn", .own = {"config", json}, .tensors = tensors, .count = count + 1};
    pace_status status = json ? pace__model_file_write(path, &contents, origin, sha256, log)
                              : pace_fail(log, PACE_FAILED, "out of memory");

    free(json);
    return status;
}

/* --- reading --- */

static pace_status bad_config(const char *path, const char *what, const pace_log *log)
{
    return pace_fail(log, PACE_BAD_DATA, "%s: the network's config has no valid \"%s\"", path, what);
}

static bool read_units(const cJSON *object, const char *member, uint32_t min, uint32_t max, uint32_t *units)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, member);

    if (!cJSON_IsNumber(item) || !(item->valuedouble >= min) || !(item->valuedouble <= max))
        return false;
    *units = (uint32_t)item->valuedouble;
    return *units == item->valuedouble;
}

static pace_status config_from_json(const cJSON *object, const char *path, pace__rnn_config *config,
                                    const pace_log *log)
{
    const cJSON *both = cJSON_GetObjectItemCaseSensitive(object, "both");

    if (!cJSON_IsObject(object) || cJSON_GetArraySize(object) != CONFIG_MEMBERS)
        return pace_fail(log, PACE_BAD_DATA,
                         "%s: the network's config is damaged, or made by a newer paceline", path);
    config->cell = pace__json_choice(object, "cell", cell_names, 2);
    config->pooling = pace__json_choice(object, "pooling", pooling_names, 3);
    config->loss = pace__json_choice(object, "loss", loss_names, 3);
    config->both = cJSON_IsTrue(both);
    if (config->cell < 0)
        return bad_config(path, "cell", log);
    if (config->pooling < 0)
        return bad_config(path, "pooling", log);
    if (config->loss < 0)
        return bad_config(path, "loss", log);
    if (!cJSON_IsBool(both))
        return bad_config(path, "both", log);
    if (!read_units(object, "layers", 1, PACE__RNN_LAYERS_MAX, &config->layers))
        return bad_config(path, "layers", log);
    if (!read_units(object, "embed", 1, PACE__RNN_UNITS_MAX, &config->embed))
        return bad_config(path, "embed", log);
    if (!read_units(object, "hidden", 1, PACE__RNN_UNITS_MAX, &config->hidden))
        return bad_config(path, "hidden", log);
    if (!read_units(object, "dense", 0, PACE__RNN_UNITS_MAX, &config->dense))
        return bad_config(path, "dense", log);
    return PACE_OK;
}

static pace_status read_metadata(const pace__model_file *file, const pace__dataset *data,
                                 pace__rnn_file *model, const pace_log *log)
{
    const char *config = NULL;

    if (data->kind != PACE__ROWS_TEXT)
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged: the encoding is not one of texts", file->path);
    pace_status status = pace__model_file_json(file, "config", &config, log);

    if (status)
        return status;
    cJSON *object = cJSON_ParseWithOpts(config, NULL, true);

    model->config = (pace__rnn_config){.words = data->ids, .length = data->columns, .weight = {1, 1}};
    status = config_from_json(object, file->path, &model->config, log);
    cJSON_Delete(object);
    return status;
}

static pace_status allocate(const pace__model_file *file, pace__rnn_file *model, const pace_log *log)
{
    const pace__rnn_config *config = &model->config;
    uint64_t embedding = (uint64_t)config->words * config->embed, all = embedding + pace__rnn_dense(config);
    pace_status status = pace__model_file_holds(file, all, log);

    if (status)
        return status;
    /* Dense weights fill whole rows, and one more is the model's own (pace__model_use). */
    uint64_t rows = (all + config->embed - 1) / config->embed + 1;

    model->embedding = calloc((size_t)rows, config->embed * sizeof *model->embedding);
    if (!model->embedding)
        return pace_fail(log, PACE_FAILED, "%s: out of memory for %llu weights", file->path,
                         (unsigned long long)all);
    model->dense = model->embedding + embedding;
    return PACE_OK;
}

static pace_status read_weights(const pace__model_file *file, pace__rnn_file *model, const pace_log *log)
{
    pace__rnn_tensor tensors[PACE__RNN_TENSORS_MAX];
    unsigned count = pace__rnn_tensors(&model->config, tensors);
    const uint64_t shape[2] = {model->config.words, model->config.embed};
    pace_status status = allocate(file, model, log);

    if (!status)
        status = pace__model_file_weights(file, "embedding.weight", 2, shape, model->embedding, log);
    for (unsigned i = 0; i < count && !status; i++)
        status = pace__model_file_weights(file, tensors[i].name, tensors[i].rank, tensors[i].shape,
                                          model->dense + tensors[i].at, log);
    return status;
}

pace_status pace__rnn_file_read(const pace__model_file *file, const pace__dataset *data,
                                pace__rnn_file *model, const pace_log *log)
{
    pace__rnn_file loaded = {0};
    pace_status status = read_metadata(file, data, &loaded, log);

    if (!status)
        status = read_weights(file, &loaded, log);
    if (status)
        pace__rnn_file_release(&loaded);
    else
        *model = loaded;
    return status;
}

void pace__rnn_file_release(pace__rnn_file *model)
{
    free(model->embedding);
    *model = (pace__rnn_file){0};
}
