#include "model/linear/linear_file.h"

#include "model/file.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INDEX_BITS 16

/* What the two long tensors are written from. */
typedef struct sorted {
    const uint64_t *original; /* NULL: a place is its own id */
    const float *weight;
    size_t stride;
    const uint32_t *order; /* places by rising original id */
    uint32_t count;
} sorted;

/* Sorts places by their original id, two bytes at a time; digits that are equal everywhere cost one pass of
 * reading. */
static uint32_t *sort_places(uint32_t *places, uint32_t *scratch, const uint64_t *original, size_t count,
                             size_t *starts)
{
    for (size_t i = 0; i < count; i++)
        places[i] = (uint32_t)i;
    for (unsigned shift = 0; shift < 64; shift += 16) {
        memset(starts, 0, 65537 * sizeof *starts);
        for (size_t i = 0; i < count; i++)
            starts[((original[i] >> shift) & 65535) + 1]++;
        if (count == 0 || starts[((original[0] >> shift) & 65535) + 1] == count)
            continue;
        for (size_t digit = 0; digit < 65536; digit++)
            starts[digit + 1] += starts[digit];
        for (size_t i = 0; i < count; i++)
            scratch[starts[(original[places[i]] >> shift) & 65535]++] = places[i];
        uint32_t *swap = places;

        places = scratch;
        scratch = swap;
    }
    return places;
}

static pace_status fill_ids(void *user, uint64_t offset, void *buffer, size_t bytes)
{
    const sorted *from = user;
    const uint32_t *order = from->order + offset / sizeof(uint64_t);
    uint64_t *ids = buffer;

    for (size_t i = 0; i < bytes / sizeof *ids; i++)
        ids[i] = from->original ? from->original[order[i]] : order[i];
    return PACE_OK;
}

static pace_status fill_weights(void *user, uint64_t offset, void *buffer, size_t bytes)
{
    const sorted *from = user;
    const uint32_t *order = from->order + offset / sizeof(float);
    float *weight = buffer;

    for (size_t i = 0; i < bytes / sizeof *weight; i++)
        weight[i] = from->weight[order[i] * from->stride];
    return PACE_OK;
}

/* What models on texts have besides. */
typedef struct text_parts {
    char ngram[4];
    char *vocabulary;
    size_t size;
} text_parts;

static pace_status write_file(const char *path, const pace__encoding *encoding, sorted *from, float bias,
                              const text_parts *text, char sha256[PACE__SHA256_HEX], const pace_log *log)
{
    char *json = pace__encoding_to_json(encoding);

    if (!json)
        return pace_fail(log, PACE_FAILED, "out of memory");
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
        {.name = "vocabulary", .dtype = PACE__U8, .rank = 1, .shape = {text ? text->size : 0}},
    };
    pace__text_pair metadata[] = {
        {"format", "paceline"}, {"model", "logreg"}, {"encoding", json}, {"ngram", text ? text->ngram : ""}};

    tensors[3].data = text ? text->vocabulary : NULL;
    pace_status status =
        pace__safetensors_write(path, tensors, text ? 4 : 3, metadata, text ? 4 : 3, sha256, log);

    free(json);
    return status;
}

pace_status pace__linear_write(const char *path, const pace__encoding *encoding, const uint64_t *original,
                               const float *weight, size_t stride, uint32_t count, float bias,
                               char sha256[PACE__SHA256_HEX], const pace_log *log)
{
    uint32_t *places = malloc((2 * (size_t)count + 1) * sizeof *places);
    size_t *starts = malloc(65537 * sizeof *starts);
    pace_status status;

    if (places && starts) {
        uint32_t *order = sort_places(places, places + count, original, count, starts);

        status = write_file(path, encoding, &(sorted){original, weight, stride, order, count}, bias, NULL,
                            sha256, log);
    } else {
        status = pace_fail(log, PACE_FAILED, "out of memory: a model of %u weights", count);
    }
    free(starts);
    free(places);
    return status;
}

pace_status pace__linear_write_text(const char *path, const pace__encoding *encoding,
                                    const pace__vocabulary *vocabulary, unsigned ngram, const float *weight,
                                    uint32_t count, float bias, char sha256[PACE__SHA256_HEX],
                                    const pace_log *log)
{
    text_parts text = {0};
    uint32_t *places = malloc(((size_t)count + 1) * sizeof *places), used = 0;
    pace_status status = places ? pace__vocabulary_to_text(vocabulary, log, &text.vocabulary, &text.size)
                                : pace_fail(log, PACE_FAILED, "out of memory: a model of %u weights", count);

    assert(count == pace__ngram_ids((uint32_t)encoding->features, ngram));
    for (uint32_t id = 0; id < count && !status; id++) {
        places[used] = id;
        used += weight[id] != 0;
    }
    snprintf(text.ngram, sizeof text.ngram, "%u", ngram);
    if (!status)
        status =
            write_file(path, encoding, &(sorted){NULL, weight, 1, places, used}, bias, &text, sha256, log);
    free(text.vocabulary);
    free(places);
    return status;
}

static const pace__tensor_info *find_vector(const pace__safetensors *file, const char *name,
                                            pace__dtype dtype)
{
    const pace__tensor_info *tensor = pace__safetensors_find(file, name);

    return tensor && tensor->dtype == dtype && tensor->rank == 1 ? tensor : NULL;
}

/* index[k] is the first place whose id, shifted, is at least k: a search then looks at a few neighbours only.
 */
static pace_status build_index(pace__linear *model, const pace_log *log)
{
    model->index = malloc((((size_t)1 << INDEX_BITS) + 2) * sizeof *model->index);
    if (!model->index)
        return pace_fail(log, PACE_FAILED, "out of memory");
    uint64_t largest = model->count ? model->ids[model->count - 1] : 0;
    uint32_t place = 0;

    for (model->shift = 0; largest >> model->shift >> INDEX_BITS; model->shift++)
        ;
    for (uint64_t key = 0; key <= (UINT64_C(1) << INDEX_BITS) + 1; key++) {
        while (place < model->count && model->ids[place] >> model->shift < key)
            place++;
        model->index[key] = place;
    }
    return PACE_OK;
}

static pace_status check_numbers(const pace__linear *model, const char *path, const pace_log *log)
{
    for (uint32_t i = 0; i < model->count; i++) {
        if (i > 0 && model->ids[i] <= model->ids[i - 1])
            return pace_fail(log, PACE_BAD_DATA, "%s: damaged: ids do not rise at entry %u", path, i);
        if (!isfinite(model->weight[i]))
            return pace_fail(log, PACE_BAD_DATA, "%s: the weight of id %llu is not a number", path,
                             (unsigned long long)model->ids[i]);
    }
    if (!isfinite(model->bias))
        return pace_fail(log, PACE_BAD_DATA, "%s: the bias is not a number", path);
    uint64_t features = model->ngram ? pace__ngram_ids((uint32_t)model->encoding.features, model->ngram)
                                     : model->encoding.features;

    if (model->count && model->ids[model->count - 1] >= features)
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged: id %llu is beyond its %llu features", path,
                         (unsigned long long)model->ids[model->count - 1], (unsigned long long)features);
    return PACE_OK;
}

/* The number of words that a feature has at most; 0: there is no such number. */
static unsigned read_ngram(const pace__safetensors *file)
{
    const char *text = pace__safetensors_metadata(file, "ngram");
    bool known = text && text[0] >= '1' && text[0] <= '0' + PACE__NGRAM_MAX && text[1] == '\0';

    return known ? (unsigned)(text[0] - '0') : 0;
}

static pace_status read_text(const pace__model_file *file, pace__linear *model, const pace_log *log)
{
    model->ngram = read_ngram(file->tensors);
    if (model->ngram == 0)
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged: a model on texts without its length of n-grams",
                         file->path);
    return pace__model_file_vocabulary(file, &model->encoding, &model->vocabulary, log);
}

static pace_status read_numbers(const pace__model_file *file, pace__linear *model, const pace_log *log)
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
    model->weight = malloc(weight->bytes + 1);
    if (!model->ids || !model->weight)
        return pace_fail(log, PACE_FAILED, "%s: out of memory for %u weights", file->path, model->count);
    pace_status status = pace__safetensors_read(file->tensors, ids, 0, model->ids, ids->bytes, log);

    if (!status)
        status = pace__safetensors_read(file->tensors, weight, 0, model->weight, weight->bytes, log);
    if (!status)
        status = pace__safetensors_read(file->tensors, bias, 0, &model->bias, sizeof model->bias, log);
    if (!status)
        status = check_numbers(model, file->path, log);
    return status ? status : build_index(model, log);
}

pace_status pace__linear_read(const char *path, pace__linear *model, const pace_log *log)
{
    pace__model_file file;
    pace__linear loaded = {0};
    pace_status status = pace__model_file_open(path, &file, log);

    if (status)
        return status;
    status = pace__model_file_encoding(&file, "logreg", &loaded.encoding, log);
    if (!status && pace__has_classes(&loaded.encoding))
        status = pace_fail(log, PACE_BAD_DATA, "%s: a linear model, but its encoding is one of pictures",
                           file.path);
    if (!status && loaded.encoding.kind == PACE__TEXT)
        status = read_text(&file, &loaded, log);
    if (!status)
        status = read_numbers(&file, &loaded, log);
    pace__model_file_close(&file);
    if (status)
        pace__linear_release(&loaded);
    else
        *model = loaded;
    return status;
}

void pace__linear_release(pace__linear *model)
{
    pace__vocabulary_free(model->vocabulary);
    free(model->index);
    free(model->weight);
    free(model->ids);
    *model = (pace__linear){0};
}

float pace__linear_find(const pace__linear *model, uint64_t id)
{
    uint64_t key = id >> model->shift;

    if (key >> INDEX_BITS)
        return 0;
    uint32_t low = model->index[key], high = model->index[key + 1];

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (model->ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < model->count && model->ids[low] == id ? model->weight[low] : 0;
}
