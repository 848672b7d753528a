/* What inspect says of a model, or of any other file of tensors. */
#include "model/tensors.h"
#include "saved/saved.h"
#include "score/inspect.h"

#include <inttypes.h>
#include <stdio.h>

/* A word, or that it is an n-gram: which one, its hash does not tell. */
static void name_text_feature(const pace__saved *model, uint64_t id, char *name, size_t size)
{
    uint32_t words = pace__vocabulary_ids(model->vocabulary);

    if (id >= words) {
        snprintf(name, size, "n-gram %" PRIu64, id - words);
        return;
    }
    pace__word word = pace__vocabulary_word(model->vocabulary, (uint32_t)id);

    snprintf(name, size, "%.*s", (int)word.size, word.text);
}

/* "C14 + 1234" for Criteo's columns, else the id alone. */
static void name_feature(void *user, uint64_t id, char *name, size_t size)
{
    const pace__saved *model = user;
    const pace__encoding *encoding = &model->encoding;
    unsigned column = 0;
    char label[4];

    if (encoding->kind == PACE__TEXT) {
        name_text_feature(model, id, name, size);
        return;
    }
    if (encoding->kind != PACE__CRITEO) {
        snprintf(name, size, "%" PRIu64, id);
        return;
    }
    while (column + 1 < PACE__CRITEO_COLUMNS && encoding->column_base[column + 1] <= id)
        column++;
    pace__criteo_column_name(column, label);
    snprintf(name, size, "%s+%" PRIu64, label, id - encoding->column_base[column]);
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
