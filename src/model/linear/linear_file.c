#include "model/linear/linear_file.h"

#include "model/ids.h"
#include "model/linear/ngrams.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PHRASES "ngrams"

/* What the two long tensors are written from. */
typedef struct sorted {
    const pace__origin *origin; /* NULL: a place is its own id */
    const float *weight;
    size_t stride;
    uint32_t own;          /* those of the data set; the others are carried along */
    const uint32_t *order; /* places by rising original id */
    uint32_t count;
} sorted;

static float weight_at(const sorted *from, uint32_t place)
{
    return place < from->own ? from->weight[place * from->stride]
                             : from->origin->carried_weights[place - from->own];
}

static pace_status fill_ids(void *user, uint64_t offset, void *buffer, size_t bytes)
{
    const sorted *from = user;
    const uint32_t *order = from->order + offset / sizeof(uint64_t);
    uint64_t *ids = buffer;

    for (size_t i = 0; i < bytes / sizeof *ids; i++)
        ids[i] = from->origin ? pace__origin_id(from->origin, from->own, order[i]) : order[i];
    return PACE_OK;
}

static pace_status fill_weights(void *user, uint64_t offset, void *buffer, size_t bytes)
{
    const sorted *from = user;
    const uint32_t *order = from->order + offset / sizeof(float);
    float *weight = buffer;

    for (size_t i = 0; i < bytes / sizeof *weight; i++)
        weight[i] = weight_at(from, order[i]);
    return PACE_OK;
}

/* `ngram` is "" where there are no texts. */
static pace_status write_file(const char *path, const pace__origin *origin, sorted *from, float bias,
                              const char *ngram, const pace__phrases *phrases, char sha256[PACE__SHA256_HEX],
                              const pace_log *log)
{
    uint64_t count = from->count;
    pace__tensor tensors[] = {
        {.name = "ids", .dtype = PACE__U64, .rank = 1, .shape = {count}, .fill = fill_ids, .user = from},
        {.name = "weight",
         .dtype = PACE__F32,
         .rank = 1,
         .shape = {count},
         .fill = fill_weights,
         .user = from},
        {.name = "bias", .dtype = PACE__F32, .rank = 1, .shape = {1}, .data = &bias},
        {.name = PHRASES,
         .dtype = PACE__U32,
         .rank = 2,
         .shape = {phrases->count, phrases->ngram},
         .data = phrases->words},
    };
    pace__model_contents contents = {.kind = "logreg",
                                     .own = {*ngram ? "ngram" : NULL, ngram},
                                     .tensors = tensors,
                                     .count = phrases->count > 0 ? 4 : 3};

    return pace__model_file_write(path, &contents, origin, sha256, log);
}

pace_status pace__linear_write(const char *path, const pace__origin *origin, const float *weight,
                               size_t stride, uint32_t count, float bias, char sha256[PACE__SHA256_HEX],
                               const pace_log *log)
{
    uint32_t *order;
    pace_status status = pace__ids_order_all(origin, count, &order, log);

    if (status)
        return status;
    sorted from = {origin, weight, stride, count, order, count + origin->carried};

    status = write_file(path, origin, &from, bias, "", &(pace__phrases){0}, sha256, log);
    free(order);
    return status;
}

pace_status pace__linear_write_text(const char *path, const pace__origin *origin, unsigned ngram,
                                    const float *weight, uint32_t count, float bias,
                                    const pace__phrases *phrases, char sha256[PACE__SHA256_HEX],
                                    const pace_log *log)
{
    uint32_t *places = malloc(((size_t)count + 1) * sizeof *places), used = 0;
    char text[16];

    if (!places)
        return pace_fail(log, PACE_FAILED, "out of memory: a model of %u weights", count);
    for (uint32_t id = 0; id < count; id++) {
        places[used] = id;
        used += weight[id] != 0;
    }
    snprintf(text, sizeof text, "%u", ngram);
    pace_status status = write_file(path, origin, &(sorted){NULL, weight, 1, count, places, used}, bias, text,
                                    phrases, sha256, log);

    free(places);
    return status;
}

/* --- reading --- */

static const pace__tensor_info *find_vector(const pace__safetensors *file, const char *name,
                                            pace__dtype dtype)
{
    const pace__tensor_info *tensor = pace__safetensors_find(file, name);

    return tensor && tensor->dtype == dtype && tensor->rank == 1 ? tensor : NULL;
}

static pace_status check_numbers(const pace__linear *model, uint64_t features, const char *path,
                                 const pace_log *log)
{
    for (uint32_t i = 0; i < model->count; i++) {
        if (!isfinite(model->weight[i]))
            return pace_fail(log, PACE_BAD_DATA, "%s: the weight of id %llu is not a number", path,
                             (unsigned long long)model->ids[i]);
    }
    if (!isfinite(model->bias))
        return pace_fail(log, PACE_BAD_DATA, "%s: the bias is not a number", path);
    return pace__ids_check(model->ids, model->count, features, path, log);
}

/* The number of words that a feature has at most; 0: there is no such number. */
static unsigned read_ngram(const pace__safetensors *file)
{
    const char *text = pace__safetensors_metadata(file, "ngram");
    bool known = text && text[0] >= '1' && text[0] <= '0' + PACE__NGRAM_MAX && text[1] == '\0';

    return known ? (unsigned)(text[0] - '0') : 0;
}

static pace_status read_numbers(const pace__model_file *file, uint64_t features, pace__linear *model,
                                const pace_log *log)
{
    const pace__tensor_info *ids = find_vector(file->tensors, "ids", PACE__U64);
    const pace__tensor_info *weight = find_vector(file->tensors, "weight", PACE__F32);
    const pace__tensor_info *bias = find_vector(file->tensors, "bias", PACE__F32);

    if (!ids || !weight || !bias || ids->elements != weight->elements || bias->elements != 1 ||
        ids->elements >= UINT32_MAX)
        return pace_fail(log, PACE_BAD_DATA,
                         "%s: damaged: tensors ids, weight, bias are missing or differ in size", file->path);
    model->count = (uint32_t)ids->elements;
    model->ids = malloc(ids->bytes + 1);
    model->weight = malloc(weight->bytes + 2 * sizeof *model->weight);
    if (!model->ids || !model->weight)
        return pace_fail(log, PACE_FAILED, "%s: out of memory for %u weights", file->path, model->count);
    pace_status status = pace__safetensors_read(file->tensors, ids, 0, model->ids, ids->bytes, log);

    if (!status)
        status = pace__safetensors_read(file->tensors, weight, 0, model->weight, weight->bytes, log);
    if (!status)
        status = pace__safetensors_read(file->tensors, bias, 0, &model->bias, sizeof model->bias, log);
    return status ? status : check_numbers(model, features, file->path, log);
}

/* Of a model on texts, the words of which are below `words`. */
static pace_status read_phrases(const pace__model_file *file, uint32_t words, pace__linear *model,
                                const pace_log *log)
{
    const pace__tensor_info *tensor = pace__safetensors_find(file->tensors, PHRASES);

    if (!tensor)
        return PACE_OK;
    if (model->ngram < 2 || tensor->dtype != PACE__U32 || tensor->rank != 2 ||
        tensor->shape[1] != model->ngram || tensor->shape[0] > PACE__PHRASES_MAX)
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged: tensor \"" PHRASES "\" has no words of n-grams",
                         file->path);
    model->phrases = (pace__phrases){
        .ngram = model->ngram, .count = (uint32_t)tensor->shape[0], .words = malloc(tensor->bytes + 1)};
    if (!model->phrases.words)
        return pace_fail(log, PACE_FAILED, "%s: out of memory for the words of n-grams", file->path);
    pace_status status =
        pace__safetensors_read(file->tensors, tensor, 0, model->phrases.words, tensor->bytes, log);

    if (!status && !pace__phrases_check(&model->phrases, words))
        status = pace_fail(log, PACE_BAD_DATA, "%s: damaged: tensor \"" PHRASES "\" has no words of n-grams",
                           file->path);
    return status;
}

pace_status pace__linear_read(const pace__model_file *file, const pace__dataset *data, pace__linear *model,
                              const pace_log *log)
{
    pace__linear loaded = {0};
    uint64_t features = data->features;

    if (data->kind != PACE__ROWS_SPARSE && data->kind != PACE__ROWS_TEXT)
        return pace_fail(log, PACE_BAD_DATA, "%s: a linear model, but its encoding is one of pictures",
                         file->path);
    if (data->kind == PACE__ROWS_TEXT) {
        loaded.ngram = read_ngram(file->tensors);
        if (loaded.ngram == 0)
            return pace_fail(log, PACE_BAD_DATA,
                             "%s: damaged: a model on texts without its length of n-grams", file->path);
        features = pace__ngram_ids(data->ids, loaded.ngram);
    }
    pace_status status = read_numbers(file, features, &loaded, log);

    if (!status && data->kind == PACE__ROWS_TEXT)
        status = read_phrases(file, data->ids, &loaded, log);
    if (status)
        pace__linear_release(&loaded);
    else
        *model = loaded;
    return status;
}

void pace__linear_release(pace__linear *model)
{
    pace__phrases_release(&model->phrases);
    free(model->weight);
    free(model->ids);
    *model = (pace__linear){0};
}
