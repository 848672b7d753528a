#include "study/result.h"

#include "base/json.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const pace__metric_names[PACE__METRICS] = {
    [PACE__M_SECONDS] = "seconds",
    [PACE__M_WALL] = "wall_seconds",
    [PACE__M_ROWS_S] = "samples_per_second",
    [PACE__M_ROWS] = "samples",
    [PACE__M_STEPS] = "steps",
    [PACE__M_EPOCHS] = "epochs",
    [PACE__M_BATCH] = "batch",
    [PACE__M_ACCURACY] = "accuracy",
    [PACE__M_AUC] = "auc",
    [PACE__M_LOGLOSS] = "logloss",
    [PACE__M_F1] = "f1",
    [PACE__M_TRAIN_LOSS] = "train_loss",
    [PACE__M_CPU_S] = "cpu_seconds",
    [PACE__M_MEMORY] = "memory_bytes",
    [PACE__M_SENT] = "bytes_sent",
    [PACE__M_RECEIVED] = "bytes_received",
    [PACE__M_DISK_READ] = "disk_read_bytes",
    [PACE__M_DISK_WRITTEN] = "disk_written_bytes",
    [PACE__M_IMBALANCE] = "server_imbalance",
    [PACE__M_RESTARTS] = "restarts",
    [PACE__M_INPUT_BYTES] = "input_bytes",
    [PACE__M_EXPECTED_ROWS_S] = "expected_samples_per_second",
};

void pace__result_clear(pace__result *result)
{
    memset(result, 0, sizeof *result);
    for (int i = 0; i < PACE__METRICS; i++)
        result->value[i] = NAN;
}

/* --- writing --- */

static void add_values(cJSON *line, const pace__result *result)
{
    cJSON *values = cJSON_AddObjectToObject(line, "values");

    for (int i = 0; i < PACE__METRICS; i++) {
        if (isfinite(result->value[i]))
            cJSON_AddNumberToObject(values, pace__metric_names[i], result->value[i]);
    }
}

static void add_settings(cJSON *line, const pace__cell_of *cell)
{
    cJSON *settings = cJSON_AddObjectToObject(line, "settings");

    cJSON_AddStringToObject(settings, "mode", pace__mode_word(cell->mode));
    cJSON_AddNumberToObject(settings, "workers", (double)cell->workers);
    if (cell->ps >= 0)
        cJSON_AddNumberToObject(settings, "ps", (double)cell->ps);
    if (cell->batch)
        cJSON_AddNumberToObject(settings, "batch", (double)cell->batch);
    if (cell->steps)
        cJSON_AddNumberToObject(settings, "steps", (double)cell->steps);
    cJSON_AddStringToObject(settings, "balance", pace__balance_names[cell->balance]);
}

static void add_curve(cJSON *line, const pace__curve *curve)
{
    cJSON *object = curve->count ? cJSON_AddObjectToObject(line, "curve") : NULL;

    if (!object)
        return;
    cJSON_AddStringToObject(object, "of", curve->of_test ? "test" : "training");
    cJSON_AddItemToObject(object, "t", cJSON_CreateDoubleArray(curve->t, (int)curve->count));
    cJSON_AddItemToObject(object, "epoch", cJSON_CreateDoubleArray(curve->epoch, (int)curve->count));
    cJSON_AddItemToObject(object, "loss", cJSON_CreateDoubleArray(curve->loss, (int)curve->count));
}

/* A message may quote bytes of a file. */
static void add_error(cJSON *line, const pace__result *result)
{
    char *valid = pace__json_valid(strdup(result->error));

    cJSON_AddStringToObject(line, "error", valid ? valid : "");
    free(valid);
}

cJSON *pace__result_to_json(const pace__result *result, const char *section, const pace__cell_of *cell)
{
    char key[PACE__CELL_TEXT];
    cJSON *line = cJSON_CreateObject();

    cJSON_AddStringToObject(line, "section", section);
    cJSON_AddStringToObject(line, "cell", pace__cell_key(cell, key));
    cJSON_AddNumberToObject(line, "repeat", result->repeat);
    add_settings(line, cell);
    cJSON_AddNumberToObject(line, "status", result->status);
    if (result->error[0])
        add_error(line, result);
    add_values(line, result);
    if (result->bottleneck[0])
        cJSON_AddStringToObject(line, "bottleneck", result->bottleneck);
    add_curve(line, &result->curve);
    return line;
}

/* --- reading --- */

static double number_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static void take_text(const cJSON *object, const char *name, char *text, size_t size)
{
    const char *found = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

    snprintf(text, size, "%s", found ? found : "");
}

/* Its length, or the shortest's. */
static size_t take_numbers(const cJSON *curve, const char *name, double *to)
{
    size_t count = 0;
    const cJSON *item;

    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(curve, name))
    {
        if (count == PACE__CURVE_MAX)
            break;
        to[count++] = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    }
    return count;
}

static void take_curve(const cJSON *line, pace__curve *curve)
{
    const cJSON *object = cJSON_GetObjectItemCaseSensitive(line, "curve");
    char of[16];
    size_t t = take_numbers(object, "t", curve->t), epoch = take_numbers(object, "epoch", curve->epoch);

    curve->count = take_numbers(object, "loss", curve->loss);
    curve->count = t < curve->count ? t : curve->count;
    curve->count = epoch < curve->count ? epoch : curve->count;
    take_text(object, "of", of, sizeof of);
    curve->of_test = strcmp(of, "test") == 0;
}

void pace__result_from_json(const cJSON *line, pace__result *result)
{
    const cJSON *values = cJSON_GetObjectItemCaseSensitive(line, "values");
    double repeat = number_of(line, "repeat"), status = number_of(line, "status");

    pace__result_clear(result);
    result->repeat = repeat >= 1 && repeat <= 1e6 ? (int)repeat : 0;
    result->status = status >= 0 && status <= 255 ? (int)status : PACE_FAILED;
    take_text(line, "error", result->error, sizeof result->error);
    take_text(line, "bottleneck", result->bottleneck, sizeof result->bottleneck);
    for (int i = 0; i < PACE__METRICS; i++)
        result->value[i] = number_of(values, pace__metric_names[i]);
    take_curve(line, &result->curve);
}
