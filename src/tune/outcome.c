#include "tune/outcome.h"

#include "base/json.h"
#include "history/history.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const pace__score_names[PACE__SCORES] = {
    [PACE__SCORE_LOGLOSS] = "logloss",
    [PACE__SCORE_ACCURACY] = "accuracy",
    [PACE__SCORE_AUC] = "auc",
    [PACE__SCORE_F1] = "f1",
};

const char *const pace__score_titles[PACE__SCORES] = {
    [PACE__SCORE_LOGLOSS] = "log-loss",
    [PACE__SCORE_ACCURACY] = "accuracy",
    [PACE__SCORE_AUC] = "AUC",
    [PACE__SCORE_F1] = "F1",
};

double pace__outcome_loss(const pace__outcome *outcome, pace__score score)
{
    if (!outcome->there || outcome->status || outcome->validation.n == 0)
        return NAN;
    return score == PACE__SCORE_LOGLOSS ? outcome->validation.value[score]
                                        : 1 - outcome->validation.value[score];
}

bool pace__outcome_is_final(const pace__outcome *outcome)
{
    int status = outcome->status;

    return outcome->there && (status == PACE_OK || status == PACE_USAGE || status == PACE_BAD_DATA ||
                              (status == PACE_FAILED && strstr(outcome->error, "diverged")));
}

/* --- writing --- */

cJSON *pace__scored_to_json(const pace__scored *scored)
{
    if (scored->n == 0)
        return cJSON_CreateNull();
    cJSON *object = cJSON_CreateObject();

    cJSON_AddNumberToObject(object, "n", scored->n);
    for (int i = 0; i < PACE__SCORES; i++) {
        if (isfinite(scored->value[i]))
            cJSON_AddNumberToObject(object, pace__score_names[i], scored->value[i]);
    }
    return object;
}

/* A message may quote bytes of a file. */
static void add_text(cJSON *object, const char *name, const char *text)
{
    char *valid = pace__json_valid(strdup(text));

    cJSON_AddStringToObject(object, name, valid ? valid : "");
    free(valid);
}

cJSON *pace__outcome_to_json(const pace__outcome *outcome, const pace__tries *tries, const char *candidate)
{
    cJSON *line = cJSON_CreateObject(), *settings;

    add_text(line, "candidate", candidate);
    cJSON_AddNumberToObject(line, "part", outcome->part);
    cJSON_AddNumberToObject(line, "steps", (double)outcome->steps);
    cJSON_AddNumberToObject(line, "status", outcome->status);
    cJSON_AddNumberToObject(line, "seconds", outcome->seconds);
    cJSON_AddBoolToObject(line, "went_on", outcome->went_on);
    if (outcome->error[0])
        add_text(line, "error", outcome->error);
    settings = cJSON_AddObjectToObject(line, "settings");
    for (size_t i = 0; i < tries->count; i++) {
        if (outcome->settings[i][0])
            add_text(settings, tries->of[i].row->name, outcome->settings[i]);
    }
    cJSON_AddItemToObject(line, "validation", pace__scored_to_json(&outcome->validation));
    cJSON_AddItemToObject(line, "test", pace__scored_to_json(&outcome->test));
    return line;
}

/* --- reading --- */

static double number_of(const cJSON *object, const char *name, double otherwise)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    return cJSON_IsNumber(item) ? item->valuedouble : otherwise;
}

/* A whole number within the limits, or what is said to be one otherwise. */
static int64_t whole_of(const cJSON *object, const char *name, int64_t most, int64_t otherwise)
{
    double value = number_of(object, name, NAN);

    return value >= 0 && value <= (double)most ? (int64_t)value : otherwise;
}

static void take_text(const cJSON *object, const char *name, char *text, size_t size)
{
    const char *found = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

    snprintf(text, size, "%s", found ? found : "");
}

static pace__scored take_scores(const cJSON *object)
{
    pace__scored scored = {.n = fmax(number_of(object, "n", 0), 0)};

    for (int i = 0; i < PACE__SCORES; i++)
        scored.value[i] = number_of(object, pace__score_names[i], NAN);
    return scored;
}

#define STEPS_MAX ((int64_t)1 << 53)

bool pace__outcome_from_json(const cJSON *line, const pace__tries *tries, pace__outcome *outcome)
{
    const cJSON *settings = cJSON_GetObjectItemCaseSensitive(line, "settings");

    *outcome = (pace__outcome){
        .part = (unsigned)whole_of(line, "part", 1000, 0),
        .status = (int)whole_of(line, "status", 255, PACE_FAILED),
        .went_on = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(line, "went_on")),
        .steps = whole_of(line, "steps", STEPS_MAX, 0),
        .seconds = number_of(line, "seconds", 0),
        .validation = take_scores(cJSON_GetObjectItemCaseSensitive(line, "validation")),
        .test = take_scores(cJSON_GetObjectItemCaseSensitive(line, "test")),
    };
    take_text(line, "error", outcome->error, sizeof outcome->error);
    for (size_t i = 0; i < tries->count; i++)
        take_text(settings, tries->of[i].row->name, outcome->settings[i], sizeof outcome->settings[i]);
    outcome->there = outcome->part > 0;
    return outcome->there;
}

/* --- of a run --- */

/* "validation.logloss" and so on, of a summary. */
static pace__scored read_scores(const pace__history *history, const char *set)
{
    pace__scored scored;
    char path[64];

    snprintf(path, sizeof path, "%s.n", set);
    scored.n = pace__history_number(history, path);
    if (!(scored.n > 0))
        scored.n = 0;
    for (int i = 0; i < PACE__SCORES; i++) {
        snprintf(path, sizeof path, "%s.%s", set, pace__score_names[i]);
        scored.value[i] = pace__history_number(history, path);
    }
    return scored;
}

static void read_settings(const pace__history *history, const pace__tries *tries, pace__outcome *outcome)
{
    for (size_t i = 0; i < tries->count; i++) {
        const char *value = pace__history_setting(history, tries->of[i].row->name);

        snprintf(outcome->settings[i], sizeof outcome->settings[i], "%s", value ? value : "");
    }
}

pace_status pace__outcome_measure(const char *run, const pace__tries *tries, const pace_log *log,
                                  pace__outcome *outcome)
{
    pace__history *history;
    pace_status status = pace__history_open(run, log, &history);

    if (status)
        return status;
    outcome->validation = read_scores(history, "validation");
    outcome->test = read_scores(history, "test");
    read_settings(history, tries, outcome);
    if (!history->summary)
        status = pace_fail(log, PACE_FAILED, "%s: it has ended, but there is no summary.json", run);
    else if (outcome->validation.n == 0)
        status = pace_fail(log, PACE_FAILED, "%s: its summary.json has no scores of validation rows", run);
    pace__history_close(history);
    return status;
}
