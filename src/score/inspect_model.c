/* What inspect says of a model, or of any other file of tensors. */
#include "model/file.h"
#include "data/tensors/safetensors.h"
#include "model/cnn/cnn_file.h"
#include "model/linear/linear_file.h"
#include "model/rnn/rnn_file.h"
#include "score/inspect.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A word, or that it is an n-gram: which one, its hash does not tell. */
static void name_text_feature(const pace__linear *model, uint64_t id, char *name, size_t size)
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
static void name_feature(const pace__linear *model, uint64_t id, char *name, size_t size)
{
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

/* Keeps the `top` heaviest places in a heap whose root is the lightest of them. */
static void sift_down(const pace__linear *model, uint32_t *heap, size_t count, size_t at)
{
    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= count)
            return;
        if (child + 1 < count && fabsf(model->weight[heap[child + 1]]) < fabsf(model->weight[heap[child]]))
            child++;
        if (fabsf(model->weight[heap[at]]) <= fabsf(model->weight[heap[child]]))
            return;
        uint32_t swap = heap[at];

        heap[at] = heap[child];
        heap[child] = swap;
        at = child;
    }
}

static void add_heaviest(const pace__linear *model, size_t top, cJSON *to)
{
    size_t count = top < model->count ? top : model->count;
    uint32_t *heap = malloc((count + 1) * sizeof *heap);
    cJSON *list = cJSON_AddArrayToObject(to, "heaviest");

    for (uint32_t i = 0; heap && i < count; i++)
        heap[i] = i;
    for (size_t at = count; heap && at-- > 0;)
        sift_down(model, heap, count, at);
    for (uint32_t i = (uint32_t)count; heap && count > 0 && i < model->count; i++) {
        if (fabsf(model->weight[i]) <= fabsf(model->weight[heap[0]]))
            continue;
        heap[0] = i;
        sift_down(model, heap, count, 0);
    }
    for (size_t left = count; heap && left > 0;
         left--) { /* the root is the lightest: fill the list from its end */
        cJSON *each = cJSON_CreateObject();
        char name[PACE__TOKEN_BYTES_MAX + 1];

        name_feature(model, model->ids[heap[0]], name, sizeof name);
        cJSON_AddStringToObject(each, "feature", name);
        pace__add_number(each, "id", (double)model->ids[heap[0]]);
        pace__add_number(each, "weight", model->weight[heap[0]]);
        cJSON_InsertItemInArray(list, 0, each);
        heap[0] = heap[left - 1];
        sift_down(model, heap, left - 1, 0);
    }
    free(heap);
}

static double features_of(const pace__linear *model)
{
    return model->vocabulary ? pace__ngram_ids((uint32_t)model->encoding.features, model->ngram)
                             : (double)model->encoding.features;
}

pace_status pace__describe_linear(const char *path, const pace_inspect_config *config, cJSON *to,
                                  const pace_log *log)
{
    pace__linear model;
    uint32_t zeros = 0;
    double squares = 0;
    pace_status status = pace__linear_read(path, &model, log);

    if (status)
        return status;
    for (uint32_t i = 0; i < model.count; i++) {
        zeros += model.weight[i] == 0;
        squares += (double)model.weight[i] * model.weight[i];
    }
    cJSON_AddStringToObject(to, "model", "logreg");
    if (model.vocabulary)
        pace__add_number(to, "ngram", model.ngram);
    pace__add_number(to, "features", features_of(&model));
    pace__add_number(to, "weights", model.count);
    pace__add_number(to, "weights_zero", zeros);
    pace__add_number(to, "norm", sqrt(squares));
    pace__add_number(to, "bias", model.bias);
    pace__add_encoding(to, &model.encoding);
    if (model.vocabulary)
        pace__add_vocabulary(to, model.vocabulary);
    add_heaviest(&model, (size_t)config->top, to);
    pace__linear_release(&model);
    return PACE_OK;
}

static void add_tensors(const pace__safetensors *file, cJSON *to)
{
    cJSON *list = cJSON_AddArrayToObject(to, "tensors");

    for (size_t i = 0; i < pace__safetensors_count(file); i++) {
        const pace__tensor_info *tensor = pace__safetensors_at(file, i);
        cJSON *each = cJSON_CreateObject(), *shape = cJSON_AddArrayToObject(each, "shape");

        cJSON_AddItemToArray(list, each);
        cJSON_AddStringToObject(each, "name", tensor->name);
        cJSON_AddStringToObject(each, "type", pace__dtype_name(tensor->dtype));
        for (unsigned d = 0; d < tensor->rank; d++)
            cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)tensor->shape[d]));
    }
}

/* The network as the file has it, which has been read and found sound. */
static pace_status add_network(const char *path, cJSON *to, const pace_log *log)
{
    pace__safetensors *file;
    pace_status status = pace__safetensors_open(path, log, &file);

    if (status)
        return status;
    cJSON *config = cJSON_Parse(pace__safetensors_metadata(file, "config"));

    if (config)
        cJSON_AddItemToObject(to, "config", config);
    add_tensors(file, to);
    pace__safetensors_close(file);
    return PACE_OK;
}

pace_status pace__describe_rnn(const char *path, cJSON *to, const pace_log *log)
{
    pace__rnn_file model;
    pace_status status = pace__rnn_file_read(path, &model, log);

    if (status)
        return status;
    const pace__rnn_config *config = &model.config;
    double dense = (double)pace__rnn_dense(config), embedding = (double)config->words * config->embed;

    cJSON_AddStringToObject(to, "model", "rnn");
    pace__add_number(to, "parameters", dense + embedding);
    pace__add_number(to, "parameters_dense", dense);
    pace__add_encoding(to, &model.encoding);
    pace__add_vocabulary(to, model.vocabulary);
    pace__rnn_file_release(&model);
    return add_network(path, to, log);
}

/* --- networks on pictures --- */

static size_t parameters_of(const pace__cnn_unit *unit)
{
    uint32_t inputs = unit->depthwise ? 1 : unit->in_channels;

    return (size_t)unit->channels * inputs * unit->kernel * unit->kernel + 2 * (size_t)unit->channels;
}

/* A line of the table: what it makes of a picture, height x width x channels. */
static void add_layer(cJSON *list, const char *name, const char *what, const char *shape, size_t parameters)
{
    cJSON *each = cJSON_CreateObject();

    cJSON_AddItemToArray(list, each);
    cJSON_AddStringToObject(each, "name", name);
    cJSON_AddStringToObject(each, "layer", what);
    cJSON_AddStringToObject(each, "shape", shape);
    pace__add_number(each, "parameters", (double)parameters);
}

static void add_layers(const pace__cnn_net *net, cJSON *to)
{
    cJSON *list = cJSON_AddArrayToObject(to, "layers");
    char what[80], shape[48];

    for (uint32_t i = 0; i < net->units; i++) {
        const pace__cnn_unit *unit = &net->unit[i];

        snprintf(what, sizeof what, "%s %ux%u stride %u%s%s", unit->depthwise ? "depthwise" : "convolution",
                 unit->kernel, unit->kernel, unit->stride, unit->add == PACE__CNN_NOTHING ? "" : " + ",
                 unit->add == PACE__CNN_NOTHING ? "" : net->unit[unit->add].name);
        snprintf(shape, sizeof shape, "%ux%ux%u", unit->height, unit->width, unit->channels);
        add_layer(list, unit->name, what, shape, parameters_of(unit));
    }
    snprintf(shape, sizeof shape, "%u", net->outputs);
    add_layer(list, "head", "dense", shape, (size_t)net->outputs * net->features + net->outputs);
}

/* The network as the file tells it: its architecture, width, padding and so on, each a member. */
static pace_status add_config(const char *path, cJSON *to, const pace_log *log)
{
    pace__model_file file;
    pace_status status = pace__model_file_open(path, &file, log);

    if (status)
        return status;
    cJSON *config = cJSON_Parse(pace__safetensors_metadata(file.tensors, "config"));

    while (config && config->child) {
        cJSON *member = cJSON_DetachItemViaPointer(config, config->child);

        cJSON_AddItemToObject(to, member->string, member);
    }
    cJSON_Delete(config);
    pace__model_file_close(&file);
    return PACE_OK;
}

static void add_classes(cJSON *to, const pace__class_names *names)
{
    cJSON *list = cJSON_AddArrayToObject(to, "classes");

    for (uint32_t i = 0; i < names->count; i++)
        cJSON_AddItemToArray(list, cJSON_CreateString(names->items[i]));
}

pace_status pace__describe_cnn(const char *path, cJSON *to, const pace_log *log)
{
    pace__cnn_file model;
    char input[48];
    pace_status status = pace__cnn_file_read(path, &model, log);

    if (status)
        return status;
    const pace__encoding *encoding = &model.encoding;

    cJSON_AddStringToObject(to, "model", "cnn");
    status = add_config(path, to, log);
    snprintf(input, sizeof input, "%ux%ux%u", encoding->height, encoding->width, encoding->channels);
    cJSON_AddStringToObject(to, "input", input);
    pace__add_number(to, "parameters", (double)model.net.weights);
    pace__add_number(to, "statistics", (double)model.net.stats);
    add_classes(to, &model.names);
    pace__add_encoding(to, encoding);
    add_layers(&model.net, to);
    pace__cnn_file_release(&model);
    return status;
}

/* Any other safetensors file: a part of a checkpoint, someone else's weights. */
pace_status pace__describe_tensors(const char *path, cJSON *to, const pace_log *log)
{
    pace__safetensors *file;
    pace_status status = pace__safetensors_open(path, log, &file);

    if (status)
        return status;
    const char *format = pace__safetensors_metadata(file, "format"),
               *job = pace__safetensors_metadata(file, "job");

    if (format)
        cJSON_AddStringToObject(to, "format", format);
    if (job)
        cJSON_AddStringToObject(to, "job", job);
    add_tensors(file, to);
    pace__safetensors_close(file);
    return PACE_OK;
}
