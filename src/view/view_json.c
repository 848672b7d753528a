#include "base/json.h"
#include "verdict/facts.h"
#include "view/view.h"

#include <math.h>

/* {"run":..., each member with a comma in front but the first. */
static void put_key(pace__json *json, const char *before, const char *key)
{
    pace__json_raw(json, before);
    pace__json_string(json, key);
    pace__json_raw(json, ":");
}

static void put_real(pace__json *json, const char *key, double value)
{
    put_key(json, ",", key);
    pace__json_real(json, value);
}

/* Rates and shares need no more than six digits, and travel once a second. */
static void put_rough(pace__json *json, const char *key, double value)
{
    double unit = value != 0 && isfinite(value) ? pow(10, floor(log10(fabs(value))) - 5) : 1;

    /* Below 1 the unit is no exact number, but its inverse is. */
    put_real(json, key, unit < 1 ? rint(value / unit) / rint(1 / unit) : rint(value / unit) * unit);
}

static void put_count(pace__json *json, const char *key, uint64_t value)
{
    put_key(json, ",", key);
    pace__json_unsigned(json, value);
}

static void put_text(pace__json *json, const char *key, const char *value)
{
    put_key(json, ",", key);
    if (value)
        pace__json_string(json, value);
    else
        pace__json_raw(json, "null");
}

/* Amounts of the newest sample are given as they are in metrics.jsonl; what is a count has no fraction. */
static void put_amounts(pace__json *json, const pace__sample *sample)
{
    put_real(json, "seconds", sample->seconds);
    put_real(json, "rows", sample->rows);
    put_real(json, "rss_bytes", sample->rss_bytes);
    put_real(json, "cpu_s", sample->user_s + sample->system_s);
    put_real(json, "bytes_sent", sample->own_sent_bytes);
    put_real(json, "bytes_received", sample->own_received_bytes);
    put_real(json, "wait_s", sample->wait_s);
}

static void put_role(pace__json *json, const pace__view *view, const pace__role_view *role)
{
    put_key(json, "{", "role");
    pace__json_string(json, role->name);
    put_text(json, "host", role->host[0] ? role->host : NULL);
    if (role->is_known) {
        put_rough(json, "silent_s", role->silent_s);
        put_key(json, ", ", "silent");
        pace__json_raw(json, role->is_silent ? "true" : "false");
        put_amounts(json, &role->newest);
        put_rough(json, "rows_per_s", role->rows_per_s);
        put_rough(json, "share", role->row_share);
        put_rough(json, "cores", role->cores);
        put_rough(json, "sent_per_s", role->sent_per_s);
        put_rough(json, "received_per_s", role->received_per_s);
        put_rough(json, "disk_read_per_s", role->disk_read_per_s);
        put_rough(json, "disk_write_per_s", role->disk_write_per_s);
        put_rough(json, "data", role->data);
        put_rough(json, "compute", role->compute);
        put_rough(json, "communicate", role->communicate);
        put_rough(json, "still", role->still);
        put_rough(json, "wait", role->wait);
        put_text(json, "waits_for", role->waits_for >= 0 ? view->roles[role->waits_for].name : NULL);
        put_rough(json, "queue", role->queue);
        put_rough(json, "staleness", role->staleness);
    }
    pace__json_raw(json, "}");
}

static void put_roles(pace__json *json, const pace__view *view)
{
    put_key(json, ",", "roles");
    pace__json_raw(json, "[");
    for (size_t i = 0; i < view->role_count; i++) {
        pace__json_raw(json, i ? "," : "");
        put_role(json, view, &view->roles[i]);
    }
    pace__json_raw(json, "]");
}

static void put_scores(pace__json *json, const char *set, const pace__eval_record *scored)
{
    put_key(json, ",", set);
    if (!scored) {
        pace__json_raw(json, "null");
        return;
    }
    put_key(json, "{", "step");
    pace__json_unsigned(json, scored->step);
    put_count(json, "n", scored->rows);
    put_real(json, "logloss", scored->logloss);
    put_real(json, "auc", scored->auc);
    put_real(json, "accuracy", scored->accuracy);
    put_real(json, "f1", scored->f1);
    pace__json_raw(json, "}");
}

static void put_lacks(pace__json *json, const pace__history *history)
{
    put_key(json, ",", "lacks");
    pace__json_raw(json, "[");
    for (size_t i = 0; i < PACE__HISTORY_LACKS_MAX && history->lacks[i]; i++) {
        pace__json_raw(json, i ? "," : "");
        pace__json_string(json, history->lacks[i]);
    }
    pace__json_raw(json, "]");
}

void pace__view_put(pace__json *json, const pace__view *view)
{
    const pace__history *history = view->history;
    const pace__step_record *newest = view->newest;

    put_key(json, "{", "run");
    pace__json_string(json, history->path);
    put_text(json, "standing", pace__standing_name(view->standing));
    put_text(json, "model", pace__history_setting(history, "model"));
    put_text(json, "mode", pace__history_setting(history, "mode"));
    put_real(json, "t", history->last_t);
    put_count(json, "starts", history->starts);
    put_count(json, "restarts", history->state.restarts);
    put_count(json, "step", view->step);
    put_real(json, "position", view->position);
    put_count(json, "steps", view->steps);
    put_rough(json, "left_s", view->left_s);
    put_rough(json, "rows_per_s", view->rows_per_s);
    put_real(json, "rows", newest ? (double)newest->rows : NAN);
    put_real(json, "epoch", newest ? newest->epoch : NAN);
    put_real(json, "loss", newest ? newest->loss : NAN);
    put_real(json, "lr", newest ? newest->lr : NAN);
    if (history->of_validation)
        put_scores(json, "validation", view->scored);
    put_scores(json, "test",
               !history->of_validation ? view->scored
               : history->has_tested   ? &history->tested
                                       : NULL);
    put_key(json, ",", "bottleneck");
    pace__verdict_put(json, history, &view->verdict);
    put_roles(json, view);
    put_lacks(json, history);
    pace__json_raw(json, "}");
}
