/* What inspect says of a model, or of any other file of tensors. */
#include "model/tensors.h"
#include "saved/saved.h"
#include "score/inspect.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* A word, or that it is an n-gram that has no name in the model. */
static void name_text_feature(const pace__saved *model, uint64_t id, char *name, size_t size)
{
    uint32_t words = pace__vocabulary_ids(model->vocabulary);

    if (id >= words)
        snprintf(name, size, "n-gram %" PRIu64, id - words);
    else
        pace__saved_phrase(model, &(uint32_t){(uint32_t)id}, 1, name, size);
}

static void name_feature(void *user, uint64_t id, char *name, size_t size)
{
    const pace__saved *model = user;

    assert(size >= PACE__FEATURE_NAME_BYTES);
    if (model->encoding.kind == PACE__TEXT)
        name_text_feature(model, id, name, size);
    else
        pace__feature_name(&model->encoding, id, name);
}

static void name_phrase(void *user, const uint32_t *words, unsigned count, char *name, size_t size)
{
    pace__saved_phrase(user, words, count, name, size);
}

static void add_classes(cJSON *to, const pace__class_names *names)
{
    cJSON *list = cJSON_AddArrayToObject(to, "classes");

    for (uint32_t i = 0; i < names->count; i++)
        cJSON_AddItemToArray(list, cJSON_CreateString(names->items[i]));
}

static void add_origin(void *user, cJSON *to)
{
    const pace__saved *model = user;

    if (model->names.count > 0)
        add_classes(to, &model->names);
    pace__add_encoding(to, &model->encoding);
    if (model->vocabulary)
        pace__add_vocabulary(to, model->vocabulary);
}

pace_status pace__describe_model(const pace__model_file *file, const pace_inspect_config *config, cJSON *to,
                                 const pace_log *log)
{
    pace__saved model;
    pace_status status = pace__saved_read(file, log, &model);

    if (status)
        return status;
    pace__portrait portrait = {.to = to,
                               .file = file,
                               .top = (size_t)config->top,
                               .add_origin = add_origin,
                               .name = name_feature,
                               .name_phrase = name_phrase,
                               .user = &model};

    pace__model_describe(&model.model, &portrait);
    pace__saved_close(&model);
    return PACE_OK;
}

/* Any other safetensors file: a part of a checkpoint, someone else's weights. */
void pace__describe_tensors(const pace__model_file *file, cJSON *to)
{
    const char *format = pace__safetensors_metadata(file->tensors, "format"),
               *job = pace__safetensors_metadata(file->tensors, "job");

    if (format)
        cJSON_AddStringToObject(to, "format", format);
    if (job)
        cJSON_AddStringToObject(to, "job", job);
    pace__add_tensors(file->tensors, to);
}
