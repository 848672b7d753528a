/* What inspect says of a convolutional network. */
#include "model/cnn/kind.h"

#include <cjson/cJSON.h>
#include <stdio.h>

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
    cJSON_AddNumberToObject(each, "parameters", (double)parameters);
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
static void add_config(const pace__model_file *file, cJSON *to)
{
    cJSON *config = cJSON_Parse(pace__safetensors_metadata(file->tensors, "config"));

    while (config && config->child) {
        cJSON *member = cJSON_DetachItemViaPointer(config, config->child);

        cJSON_AddItemToObject(to, member->string, member);
    }
    cJSON_Delete(config);
}

void pace__cnn_describe(const pace__loaded *loaded, const pace__portrait *portrait)
{
    const pace__cnn_net *net = &((const pace__cnn_own *)loaded->plan.own)->net;
    const pace__dataset *data = &loaded->plan.data;
    cJSON *to = portrait->to;
    char input[48];

    cJSON_AddStringToObject(to, "model", "cnn");
    add_config(portrait->file, to);
    snprintf(input, sizeof input, "%ux%ux%u", data->height, data->width, data->channels);
    cJSON_AddStringToObject(to, "input", input);
    cJSON_AddNumberToObject(to, "parameters", (double)net->weights);
    cJSON_AddNumberToObject(to, "statistics", (double)net->stats);
    portrait->add_origin(portrait->user, to);
    add_layers(net, to);
}
