#include "model/fm/fm_file.h"

#include "model/fm/fm.h"
#include "model/ids.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- writing --- */

/* Rows in the order of their original ids; of each row, `width` floats from `first` on. */
typedef struct sorted {
    const pace__origin *origin;
    uint32_t own; /* those of the data set; the others are carried along */
    const uint32_t *order;
    const float *rows;
    size_t dim, first, width;
} sorted;

static const float *row_at(const sorted *from, uint32_t place)
{
    return place < from->own ? from->rows + place * from->dim
                             : from->origin->carried_weights + (place - from->own) * from->dim;
}

static pace_status fill_ids(void *user, uint64_t offset, void *buffer, size_t bytes)
{
    const sorted *from = user;
    const uint32_t *order = from->order + offset / sizeof(uint64_t);
    uint64_t *ids = buffer;

    for (size_t i = 0; i < bytes / sizeof *ids; i++)
        ids[i] = pace__origin_id(from->origin, from->own, order[i]);
    return PACE_OK;
}

static pace_status fill_floats(void *user, uint64_t offset, void *buffer, size_t bytes)
{
    const sorted *from = user;
    size_t first = (size_t)offset / sizeof(float);
    float *values = buffer;

    for (size_t i = 0; i < bytes / sizeof *values; i++) {
        size_t row = (first + i) / from->width, at = (first + i) % from->width;

        values[i] = row_at(from, from->order[row])[from->first + at];
    }
    return PACE_OK;
}

pace_status pace__fm_file_write(const char *path, const pace__origin *origin, const float *weights,
                                unsigned factors, uint32_t count, char sha256[PACE__SHA256_HEX],
                                const pace_log *log)
{
    size_t dim = factors + (size_t)1;
    char config[32];
    uint32_t *order;
    pace_status status = pace__ids_order_all(origin, count, &order, log);

    if (status)
        return status;
    uint64_t all = (uint64_t)count + origin->carried;
    sorted weight = {origin, count, order, weights, dim, 0, 1}, factor = weight;

    factor.first = 1;
    factor.width = factors;
    pace__tensor tensors[] = {
        {"ids", PACE__U64, 1, {all}, .fill = fill_ids, .user = &weight},
        {"weight", PACE__F32, 1, {all}, .fill = fill_floats, .user = &weight},
        {"factors", PACE__F32, 2, {all, factors}, .fill = fill_floats, .user = &factor},
        {"bias", PACE__F32, 1, {1}, .data = weights + count * dim},
    };
    pace__model_contents contents = {.kind = "fm", .own = {"config", config}, .tensors = tensors, .count = 4};

    snprintf(config, sizeof config, "{\"factors\":%u}", factors);
    status = pace__model_file_write(path, &contents, origin, sha256, log);
    free(order);
    return status;
}

/* --- reading --- */

static pace_status read_config(const pace__model_file *file, unsigned *factors, const pace_log *log)
{
    const char *text = NULL;
    pace_status status = pace__model_file_json(file, "config", &text, log);

    if (status)
        return status;
    cJSON *object = cJSON_ParseWithOpts(text, NULL, true);
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, "factors");
    double value = cJSON_IsNumber(item) && cJSON_GetArraySize(object) == 1 ? item->valuedouble : 0;

    cJSON_Delete(object);
    if (!(value >= 1 && value <= PACE__FM_FACTORS_MAX) || value != (unsigned)value)
        return pace_fail(log, PACE_BAD_DATA, "%s: its config is damaged, or made by a newer paceline",
                         file->path);
    *factors = (unsigned)value;
    return PACE_OK;
}

static pace_status read_ids(const pace__model_file *file, uint64_t features, pace__fm_file *model,
                            const pace_log *log)
{
    const pace__tensor_info *ids = pace__safetensors_find(file->tensors, "ids");

    if (!ids || ids->dtype != PACE__U64 || ids->rank != 1 || ids->elements >= UINT32_MAX - 1)
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged: it has no ids", file->path);
    model->count = (uint32_t)ids->elements;
    model->ids = malloc(ids->bytes + 1);
    if (!model->ids)
        return pace_fail(log, PACE_FAILED, "%s: out of memory for %u ids", file->path, model->count);
    pace_status status = pace__safetensors_read(file->tensors, ids, 0, model->ids, ids->bytes, log);

    return status ? status : pace__ids_check(model->ids, model->count, features, file->path, log);
}

/* All in one piece, then row by row to its place. */
static pace_status read_weights(const pace__model_file *file, pace__fm_file *model, const pace_log *log)
{
    size_t count = model->count, factors = model->factors, dim = factors + 1;
    const uint64_t shape[2] = {count, factors}, one = 1;
    pace_status status = pace__model_file_holds(file, (uint64_t)count * dim + 1, log);

    if (status)
        return status;
    float *factor = malloc((count * factors + 1) * sizeof *factor),
          *weight = malloc((count + 1) * sizeof *weight);

    model->weights = calloc((count + 2) * dim, sizeof *model->weights);
    if (!factor || !weight || !model->weights)
        status = pace_fail(log, PACE_FAILED, "%s: out of memory for %zu weights", file->path, count * dim);
    if (!status)
        status = pace__model_file_weights(file, "weight", 1, shape, weight, log);
    if (!status)
        status = pace__model_file_weights(file, "factors", 2, shape, factor, log);
    if (!status)
        status = pace__model_file_weights(file, "bias", 1, &one, model->weights + count * dim, log);
    for (size_t i = 0; i < count && !status; i++) {
        model->weights[i * dim] = weight[i];
        memcpy(model->weights + i * dim + 1, factor + i * factors, factors * sizeof *factor);
    }
    free(weight);
    free(factor);
    return status;
}

pace_status pace__fm_file_read(const pace__model_file *file, const pace__dataset *data, pace__fm_file *model,
                               const pace_log *log)
{
    pace__fm_file loaded = {0};

    if (data->kind != PACE__ROWS_SPARSE)
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged: the encoding is not one of sparse rows",
                         file->path);
    pace_status status = read_config(file, &loaded.factors, log);

    if (!status)
        status = read_ids(file, data->features, &loaded, log);
    if (!status)
        status = read_weights(file, &loaded, log);
    if (status)
        pace__fm_file_release(&loaded);
    else
        *model = loaded;
    return status;
}

void pace__fm_file_release(pace__fm_file *model)
{
    free(model->weights);
    free(model->ids);
    *model = (pace__fm_file){0};
}
