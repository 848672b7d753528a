/* The result of an evaluation as JSON: the scores, and what there is to say of classes and pictures. */
#include "base/json.h"
#include "base/locale.h"

#include <assert.h>
#include <paceline/score.h>
#include <stdlib.h>
#include <string.h>

static void write_class(pace__json *json, const pace_class_scores *classes, uint32_t i)
{
    pace__json_raw(json, i ? ", {\"name\": " : "{\"name\": ");
    pace__json_string(json, classes->names[i]);
    pace__json_raw(json, ", \"n\": ");
    pace__json_unsigned(json, classes->n[i]);
    pace__json_raw(json, ", \"predicted\": ");
    pace__json_unsigned(json, classes->predicted[i]);
    pace__json_raw(json, ", \"precision\": ");
    pace__json_real(json, classes->precision[i]);
    pace__json_raw(json, ", \"recall\": ");
    pace__json_real(json, classes->recall[i]);
    pace__json_raw(json, ", \"f1\": ");
    pace__json_real(json, classes->f1[i]);
    pace__json_raw(json, "}");
}

static void write_confusion(pace__json *json, const pace_class_scores *classes)
{
    pace__json_raw(json, ", \"confusion\": [");
    for (uint32_t row = 0; row < classes->classes; row++) {
        pace__json_raw(json, row ? ", [" : "[");
        for (uint32_t column = 0; column < classes->classes; column++) {
            pace__json_raw(json, column ? ", " : "");
            pace__json_unsigned(json, classes->confusion[(size_t)row * classes->classes + column]);
        }
        pace__json_raw(json, "]");
    }
    pace__json_raw(json, "]");
}

static void write_mistake(pace__json *json, const pace_eval_result *result, size_t i)
{
    const pace_mistake *mistake = &result->worst[i];

    pace__json_raw(json, i ? ", {\"path\": " : "{\"path\": ");
    pace__json_string(json, mistake->path);
    pace__json_raw(json, ", \"class\": ");
    pace__json_string(json, result->classes.names[mistake->actual]);
    pace__json_raw(json, ", \"predicted\": ");
    pace__json_string(json, result->classes.names[mistake->predicted]);
    pace__json_raw(json, ", \"probability\": ");
    pace__json_real(json, mistake->probability);
    pace__json_raw(json, "}");
}

/* `scores` is an object, of which the last brace is left off. The scores of two classes have "confusion". */
static void write_all(pace__json *json, const char *scores, const pace_eval_result *result)
{
    pace__json_raw(json, scores);
    pace__json_raw(json, ", \"classes\": [");
    for (uint32_t i = 0; i < result->classes.classes; i++)
        write_class(json, &result->classes, i);
    pace__json_raw(json, "]");
    if (result->classes.confusion && result->classes.classes > 2)
        write_confusion(json, &result->classes);
    pace__json_raw(json, ", \"mistakes\": ");
    pace__json_unsigned(json, result->mistakes);
    pace__json_raw(json, ", \"errors\": [");
    for (size_t i = 0; i < result->worst_count; i++)
        write_mistake(json, result, i);
    pace__json_raw(json, "]}");
}

char *pace_eval_result_to_json(const pace_eval_result *result)
{
    PACE__C_LOCALE();
    char *scores = pace_scores_to_json(&result->scores);
    pace__json json = {0};

    if (!scores || result->classes.classes == 0)
        return scores;
    scores[strlen(scores) - 1] = '\0';
    write_all(&json, scores, result);
    size_t size = json.size;
    char *text = malloc(size + 1);

    if (text) {
        json = (pace__json){.text = text, .capacity = size};
        write_all(&json, scores, result);
        assert(json.size == size);
        text[size] = '\0';
    }
    free(scores);
    return text;
}
