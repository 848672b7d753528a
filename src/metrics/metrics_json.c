#include "base/json.h"
#include "base/locale.h"
#include "metrics/metrics.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>

#define JSON_BYTES_MAX 1024

static void write_real(pace__json *json, const char *name, double value)
{
    pace__json_raw(json, name);
    pace__json_real(json, value);
}

static void write_count(pace__json *json, const char *name, uint64_t value)
{
    pace__json_raw(json, name);
    pace__json_unsigned(json, value);
}

static void write_yes_no(pace__json *json, const pace_scores *scores)
{
    write_real(json, ", \"calibration\": ", scores->mean_predicted / scores->mean_actual);
    write_real(json, ", \"mean_predicted\": ", scores->mean_predicted);
    write_real(json, ", \"mean_actual\": ", scores->mean_actual);
    write_count(json, ", \"confusion\": {\"tp\": ", scores->true_positives);
    write_count(json, ", \"fp\": ", scores->false_positives);
    write_count(json, ", \"tn\": ", scores->true_negatives);
    write_count(json, ", \"fn\": ", scores->false_negatives);
    pace__json_raw(json, "}");
}

/* Not "classes": that is where eval lists them. */
static void write_classes(pace__json *json, const pace_scores *scores)
{
    write_real(json, ", \"top5_accuracy\": ", scores->top5);
    write_count(json, ", \"class_count\": ", scores->classes);
}

char *pace_scores_to_json(const pace_scores *scores)
{
    PACE__C_LOCALE();
    char *text = malloc(JSON_BYTES_MAX);
    pace__json json = {.text = text, .capacity = JSON_BYTES_MAX};

    if (!text)
        return NULL;
    write_real(&json, "{\"accuracy\": ", scores->accuracy);
    write_real(&json, ", \"precision\": ", scores->precision);
    write_real(&json, ", \"recall\": ", scores->recall);
    write_real(&json, ", \"f1\": ", scores->f1);
    write_real(&json, ", \"auc\": ", scores->auc);
    write_real(&json, ", \"logloss\": ", scores->logloss);
    write_count(&json, ", \"n\": ", scores->n);
    write_real(&json, ", \"null_accuracy\": ", scores->null_accuracy);
    write_real(&json, ", \"null_logloss\": ", scores->null_logloss);
    if (scores->classes > 2)
        write_classes(&json, scores);
    else
        write_yes_no(&json, scores);
    pace__json_raw(&json, "}");
    assert(json.size < json.capacity);
    text[json.size] = '\0';
    return text;
}

static double number_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static uint64_t count_of(const cJSON *object, const char *name)
{
    uint64_t count = 0;

    (void)pace__json_count(object, name, &count);
    return count;
}

void pace__scores_from_json(const cJSON *object, pace_scores *scores)
{
    const cJSON *confusion = cJSON_GetObjectItemCaseSensitive(object, "confusion");

    *scores = (pace_scores){.n = count_of(object, "n"),
                            .accuracy = number_of(object, "accuracy"),
                            .precision = number_of(object, "precision"),
                            .recall = number_of(object, "recall"),
                            .f1 = number_of(object, "f1"),
                            .auc = number_of(object, "auc"),
                            .logloss = number_of(object, "logloss"),
                            .true_positives = count_of(confusion, "tp"),
                            .false_positives = count_of(confusion, "fp"),
                            .true_negatives = count_of(confusion, "tn"),
                            .false_negatives = count_of(confusion, "fn"),
                            .mean_predicted = number_of(object, "mean_predicted"),
                            .mean_actual = number_of(object, "mean_actual"),
                            .null_accuracy = number_of(object, "null_accuracy"),
                            .null_logloss = number_of(object, "null_logloss"),
                            .classes = count_of(object, "class_count"),
                            .top5 = number_of(object, "top5_accuracy")};
}
