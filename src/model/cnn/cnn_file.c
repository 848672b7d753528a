#include "model/cnn/cnn_file.h"

#include "base/json.h"
#include "files/file.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Members of "config". One more would mean something that this program does not know. */
#define CONFIG_MEMBERS 7

static const char *const head_names[] = {"softmax", "logit"};     /* by one_logit */
static const char *const padding_names[] = {"symmetric", "same"}; /* by same */

/* --- writing --- */

#define NUMBER_BYTES 32

/* The fewest digits that read back as the same float. */
static const char *number(float value, char text[NUMBER_BYTES])
{
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, NUMBER_BYTES, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value)
            break;
    }
    return text;
}

/* One number per channel: [127.5,127.5,127.5] */
static void list_numbers(const float *values, uint32_t count, char text[4 * NUMBER_BYTES])
{
    char digits[NUMBER_BYTES];
    size_t used = 0;

    for (uint32_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, 4 * NUMBER_BYTES - used, "%s%s", i ? "," : "[",
                                 number(values[i], digits));
    snprintf(text + used, 4 * NUMBER_BYTES - used, "]");
}

static char *config_to_json(const pace__cnn_config *config)
{
    char width[NUMBER_BYTES], epsilon[NUMBER_BYTES], mean[4 * NUMBER_BYTES], deviation[4 * NUMBER_BYTES];

    list_numbers(config->mean, config->channels, mean);
    list_numbers(config->deviation, config->channels, deviation);
    return pace__format("{\"arch\":\"%s\",\"width\":%s,\"head\":\"%s\",\"padding\":\"%s\",\"epsilon\":%s,"
                        "\"mean\":%s,\"deviation\":%s}",
                        pace__cnn_arch_names[config->arch], number(config->width, width),
                        head_names[config->one_logit], padding_names[config->same],
                        number(config->epsilon, epsilon), mean, deviation);
}

static void list_tensors(const pace__cnn_tensor *parts, unsigned count, const float *weights,
                         const float *stats, pace__tensor *tensors)
{
    for (unsigned i = 0; i < count; i++) {
        tensors[i] = (pace__tensor){.name = parts[i].name, .dtype = PACE__F32, .rank = parts[i].rank};
        memcpy(tensors[i].shape, parts[i].shape, sizeof parts[i].shape);
        tensors[i].data = (parts[i].stats ? stats : weights) + parts[i].at;
    }
}

/* Everything that needs memory of its own while the file is written. */
typedef struct writing {
    pace__cnn_net net;
    pace__cnn_tensor parts[PACE__CNN_TENSORS_MAX];
    pace__tensor tensors[PACE__CNN_TENSORS_MAX];
} writing;

static pace_status write_file(const char *path, writing *self, const pace__cnn_config *config,
                              const char *json, const pace__origin *origin, const float *weights,
                              const float *stats, char sha256[PACE__SHA256_HEX], const pace_log *log)
{
    pace__model_contents contents = {.kind = "cnn", .own = {"config", json}, .tensors = self->tensors};
    pace_status status = pace__cnn_net_make(config, log, &self->net);

    if (status)
        return status;
    unsigned count = pace__cnn_tensors(&self->net, self->parts);

    list_tensors(self->parts, count, weights, stats, self->tensors);
    contents.count = count;
    return pace__model_file_write(path, &contents, origin, sha256, log);
}

pace_status pace__cnn_file_write(const char *path, const pace__cnn_config *config, const pace__origin *origin,
                                 const float *weights, const float *stats, char sha256[PACE__SHA256_HEX],
                                 const pace_log *log)
{
    char *json = config_to_json(config);
    writing *self = malloc(sizeof *self);

    assert(origin->class_names);
    pace_status status = json && self
                             ? write_file(path, self, config, json, origin, weights, stats, sha256, log)
                             : pace_fail(log, PACE_FAILED, "out of memory");

    free(self);
    free(json);
    return status;
}

/* --- reading --- */

static pace_status bad_config(const char *path, const char *what, const pace_log *log)
{
    return pace_fail(log, PACE_BAD_DATA, "%s: the network's config has no valid \"%s\"", path, what);
}

/* A finite float above `above`. */
static bool to_float(const cJSON *item, double above, float *value)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble > above) || !isfinite((float)item->valuedouble))
        return false;
    *value = (float)item->valuedouble;
    return (double)*value > above; /* it may have been rounded to 0 */
}

/* One for each channel; of grey pictures it is the others', too. */
static bool to_floats(const cJSON *list, uint32_t channels, double above, float values[3])
{
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != (int)channels)
        return false;
    for (int i = 0; i < 3; i++) {
        if (!to_float(cJSON_GetArrayItem(list, i < (int)channels ? i : 0), above, &values[i]))
            return false;
    }
    return true;
}

static const cJSON *member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static pace_status config_from_json(const cJSON *object, const char *path, pace__cnn_config *config,
                                    const pace_log *log)
{
    if (!cJSON_IsObject(object) || cJSON_GetArraySize(object) != CONFIG_MEMBERS)
        return pace_fail(log, PACE_BAD_DATA,
                         "%s: the network's config is damaged, or made by a newer paceline", path);
    int arch = pace__json_choice(object, "arch", pace__cnn_arch_names, 4);
    int head = pace__json_choice(object, "head", head_names, 2);
    int padding = pace__json_choice(object, "padding", padding_names, 2);

    if (arch < 0)
        return bad_config(path, "arch", log);
    if (head < 0 || (head == 1 && config->classes != 2))
        return bad_config(path, "head", log);
    if (padding < 0)
        return bad_config(path, "padding", log);
    if (!to_float(member(object, "width"), 0, &config->width))
        return bad_config(path, "width", log);
    if (!to_float(member(object, "epsilon"), 0, &config->epsilon))
        return bad_config(path, "epsilon", log);
    if (!to_floats(member(object, "mean"), config->channels, -HUGE_VAL, config->mean))
        return bad_config(path, "mean", log);
    if (!to_floats(member(object, "deviation"), config->channels, 0, config->deviation))
        return bad_config(path, "deviation", log);
    config->arch = arch;
    config->one_logit = head == 1;
    config->same = padding == 1;
    return PACE_OK;
}

static pace_status read_metadata(const pace__model_file *file, const pace__dataset *data,
                                 pace__cnn_file *model, const pace_log *log)
{
    const char *config = NULL;

    if (data->kind != PACE__ROWS_PICTURES)
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged: the encoding is not one of pictures", file->path);
    pace_status status = pace__model_file_json(file, "config", &config, log);

    if (status)
        return status;
    cJSON *object = cJSON_ParseWithOpts(config, NULL, true);

    model->config = (pace__cnn_config){.height = data->height,
                                       .side = data->width,
                                       .channels = data->channels,
                                       .classes = data->classes,
                                       .weight = {1, 1}};
    status = config_from_json(object, file->path, &model->config, log);
    cJSON_Delete(object);
    /* What would be a user's mistake elsewhere is damage here. */
    if (!status && pace__cnn_net_make(&model->config, NULL, &model->net))
        status = pace_fail(log, PACE_BAD_DATA, "%s: damaged: there is no such network for such pictures",
                           file->path);
    return status;
}

static pace_status check_variance(const pace__model_file *file, const pace__cnn_tensor *tensor,
                                  const float *values, const pace_log *log)
{
    for (size_t i = 0; i < tensor->size; i++) {
        if (!(values[i] >= 0))
            return pace_fail(log, PACE_BAD_DATA, "%s: value %zu of %s is below 0", file->path, i,
                             tensor->name);
    }
    return PACE_OK;
}

static pace_status read_weights(const pace__model_file *file, pace__cnn_file *model, const pace_log *log)
{
    pace__cnn_tensor tensors[PACE__CNN_TENSORS_MAX];
    unsigned count = pace__cnn_tensors(&model->net, tensors);
    size_t all = model->net.weights + model->net.stats;
    pace_status status = pace__model_file_holds(file, all, log);

    if (status)
        return status;
    model->weights = calloc(all, sizeof *model->weights);
    if (!model->weights)
        return pace_fail(log, PACE_FAILED, "%s: out of memory for %zu weights", file->path, all);
    model->stats = model->weights + model->net.weights;
    for (unsigned i = 0; i < count && !status; i++) {
        float *values = (tensors[i].stats ? model->stats : model->weights) + tensors[i].at;
        size_t length = strlen(tensors[i].name), suffix = strlen(".variance");

        status =
            pace__model_file_weights(file, tensors[i].name, tensors[i].rank, tensors[i].shape, values, log);
        if (!status && length > suffix && strcmp(tensors[i].name + length - suffix, ".variance") == 0)
            status = check_variance(file, &tensors[i], values, log);
    }
    return status;
}

pace_status pace__cnn_file_read(const pace__model_file *file, const pace__dataset *data,
                                pace__cnn_file *model, const pace_log *log)
{
    pace__cnn_file loaded = {0};
    pace_status status = read_metadata(file, data, &loaded, log);

    if (!status)
        status = read_weights(file, &loaded, log);
    if (status)
        pace__cnn_file_release(&loaded);
    else
        *model = loaded;
    return status;
}

void pace__cnn_file_release(pace__cnn_file *model)
{
    free(model->weights);
    *model = (pace__cnn_file){0};
}
