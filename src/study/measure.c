/* measure.c - what a job has left, as figures. */
#include "history/history.h"
#include "study/result.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

/* Members of summary.json. */
static const struct {
    pace__metric metric;
    const char *path;
} summed[] = {
    {PACE__M_SECONDS, "seconds"},
    {PACE__M_ROWS_S, "samples_per_second"},
    {PACE__M_ROWS, "samples"},
    {PACE__M_STEPS, "steps"},
    {PACE__M_EPOCHS, "epochs"},
    {PACE__M_BATCH, "batch"},
    {PACE__M_ACCURACY, "test.accuracy"},
    {PACE__M_AUC, "test.auc"},
    {PACE__M_LOGLOSS, "test.logloss"},
    {PACE__M_F1, "test.f1"},
    {PACE__M_TRAIN_LOSS, "train_loss"},
    {PACE__M_SENT, "bytes_sent"},
    {PACE__M_RECEIVED, "bytes_received"},
    {PACE__M_RESTARTS, "restarts"},
    {PACE__M_IMBALANCE, "imbalance.bytes"},
};

/* Of every role, what its last sample says. */
static void take_resources(const pace__history *history, pace__result *result)
{
    double cpu_s = 0, memory = 0, read = 0, written = 0;
    size_t seen = 0;

    for (size_t i = 0; i < history->role_count; i++) {
        const pace__seen_role *role = &history->roles[i];

        if (role->count == 0)
            continue;
        const pace__sample *last = &role->samples[role->count - 1];

        cpu_s += last->user_s + last->system_s;
        memory += last->rss_max_bytes;
        read += last->read_bytes;
        written += last->write_bytes;
        seen++;
    }
    if (seen == 0)
        return;
    result->value[PACE__M_CPU_S] = cpu_s;
    result->value[PACE__M_MEMORY] = memory;
    result->value[PACE__M_DISK_READ] = read;
    result->value[PACE__M_DISK_WRITTEN] = written;
}

/* --- the curve --- */

/* Scores of test rows, if there are enough of them to be a curve. */
#define SCORES_MIN 3

static void add_point(pace__curve *curve, double t, double epoch, double loss)
{
    if (!isfinite(loss) || !isfinite(t) || !isfinite(epoch) || curve->count == PACE__CURVE_MAX)
        return;
    curve->t[curve->count] = t;
    curve->epoch[curve->count] = epoch;
    curve->loss[curve->count++] = loss;
}

/* The record that point i of `shown` shows; the last is the last. */
static size_t place_of(size_t i, size_t shown, size_t all)
{
    return shown < 2 ? all - 1 : i * (all - 1) / (shown - 1);
}

static void take_curve(const pace__history *history, pace__curve *curve)
{
    curve->of_test = history->eval_count >= SCORES_MIN;
    size_t all = curve->of_test ? history->eval_count : history->step_count;
    size_t shown = all < PACE__CURVE_MAX ? all : PACE__CURVE_MAX;

    for (size_t i = 0; i < shown; i++) {
        size_t place = place_of(i, shown, all);

        if (curve->of_test)
            add_point(curve, history->eval[place].t, history->eval[place].epoch,
                      history->eval[place].logloss);
        else
            add_point(curve, history->step[place].t, history->step[place].epoch, history->step[place].loss);
    }
}

/* "network: ps0 sends ..." */
static void take_bottleneck(const char *text, char word[PACE__BOTTLENECK_MAX])
{
    size_t length = text ? strcspn(text, ":") : 0;

    snprintf(word, PACE__BOTTLENECK_MAX, "%.*s", (int)length, text ? text : "");
}

pace_status pace__measure_run(const char *run, const pace_log *log, pace__result *result)
{
    pace__history *history;
    pace_status status = pace__history_open(run, log, &history);

    if (status)
        return status;
    if (!history->summary) {
        status = pace_fail(log, PACE_FAILED, "%s: it has ended, but there is no summary.json", run);
    } else {
        for (size_t i = 0; i < sizeof summed / sizeof *summed; i++)
            result->value[summed[i].metric] = pace__history_number(history, summed[i].path);
        take_resources(history, result);
        take_curve(history, &result->curve);
        take_bottleneck(pace__history_text(history, "bottleneck"), result->bottleneck);
    }
    pace__history_close(history);
    return status;
}

/* --- prep --- */

static double number_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

pace_status pace__measure_prep(const char *json, const pace_log *log, pace__result *result)
{
    cJSON *object = cJSON_Parse(json);
    double seconds = number_of(object, "seconds"),
           rows = number_of(object, "train_rows") + number_of(object, "test_rows");

    result->value[PACE__M_SECONDS] = seconds;
    result->value[PACE__M_ROWS] = rows;
    result->value[PACE__M_ROWS_S] = seconds > 0 ? rows / seconds : NAN;
    result->value[PACE__M_INPUT_BYTES] = number_of(object, "bytes_read");
    cJSON_Delete(object);
    return isfinite(seconds) ? PACE_OK
                             : pace_fail(log, PACE_FAILED, "prep has printed no result that can be read");
}
