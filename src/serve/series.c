/* The course of a run so far. A page that is opened late begins with this; from then on it adds what each second brings. */
#include "serve/texts.h"

#include <math.h>

#define STEPS_MAX       400 /* points of a curve */
#define SAMPLES_MAX     240 /* of a role */
#define SAMPLES_MIN     30
#define SAMPLES_ALL_MAX 8000 /* of all roles together */
#define EVALS_MAX       400
#define MARKS_MAX       100

static void put_rough(pace__json *json, const char *before, double value)
{
    double unit = value != 0 && isfinite(value) ? pow(10, floor(log10(fabs(value))) - 4) : 1;

    pace__json_raw(json, before);
    pace__json_real(json, unit < 1 ? rint(value / unit) / rint(1 / unit) : rint(value / unit) * unit);
}

/* The first and the last of `all` are among those that are shown. */
static size_t place(size_t i, size_t shown, size_t all)
{
    return shown > 1 ? i * (all - 1) / (shown - 1) : all - 1;
}

static size_t at_most(size_t count, size_t most)
{
    return count < most ? count : most;
}

/* [t, step, loss] */
static void put_losses(pace__json *json, const pace__history *history)
{
    size_t shown = at_most(history->step_count, STEPS_MAX);

    pace__json_raw(json, "\"loss\":[");
    for (size_t i = 0; i < shown; i++) {
        const pace__step_record *at = &history->step[place(i, shown, history->step_count)];

        put_rough(json, i ? ",[" : "[", at->t);
        pace__json_raw(json, ",");
        pace__json_unsigned(json, at->step);
        put_rough(json, ",", at->loss);
        pace__json_raw(json, "]");
    }
    pace__json_raw(json, "]");
}

/* [t, step, log-loss, AUC, accuracy] */
static void put_scores(pace__json *json, const pace__history *history)
{
    size_t shown = at_most(history->eval_count, EVALS_MAX);

    pace__json_raw(json, history->of_validation ? ",\"validation\":[" : ",\"test\":[");
    for (size_t i = 0; i < shown; i++) {
        const pace__eval_record *at = &history->eval[place(i, shown, history->eval_count)];

        put_rough(json, i ? ",[" : "[", at->t);
        pace__json_raw(json, ",");
        pace__json_unsigned(json, at->step);
        put_rough(json, ",", at->logloss);
        put_rough(json, ",", at->auc);
        put_rough(json, ",", at->accuracy);
        pace__json_raw(json, "]");
    }
    pace__json_raw(json, "]");
}

/* When the job was started again. */
static void put_starts(pace__json *json, const pace__history *history)
{
    size_t starts = 0;

    pace__json_raw(json, ",\"starts\":[");
    for (size_t i = 0; i < history->mark_count && starts < MARKS_MAX; i++) {
        if (history->mark[i].kind == PACE__MARK_START)
            put_rough(json, starts++ ? "," : "", history->mark[i].t);
    }
    pace__json_raw(json, "]");
}

/* [t, rows/s, cores, bytes/s with others, share of waiting, memory]: as members of what comes each second. */
static void put_point(pace__json *json, const pace__history *history, const pace__sample *sample,
                      const pace__sample *before)
{
    pace__role_view view = {0};

    pace__view_between(history, sample, before, &view);
    put_rough(json, "[", sample->t);
    put_rough(json, ",", view.rows_per_s);
    put_rough(json, ",", view.cores);
    put_rough(json, ",", view.sent_per_s + view.received_per_s);
    put_rough(json, ",", view.wait);
    put_rough(json, ",", sample->rss_bytes);
    pace__json_raw(json, "]");
}

/* As rates of a run that goes on are: of so many seconds, or from the start on. */
static const pace__sample *before_of(const pace__seen_role *role, size_t at)
{
    const pace__sample *sample = &role->samples[at], *found = NULL;

    while (at-- > 0 && role->samples[at].start == sample->start) {
        found = &role->samples[at];
        if (sample->t - found->t >= PACE__VIEW_RECENT_S)
            break;
    }
    return found;
}

static void put_role(pace__json *json, const pace__history *history, const pace__seen_role *role, size_t most)
{
    size_t shown = at_most(role->count, most);

    pace__json_raw(json, "{\"role\":");
    pace__json_string(json, role->name);
    pace__json_raw(json, ",\"points\":[");
    for (size_t i = 0; i < shown; i++) {
        size_t at = place(i, shown, role->count);

        pace__json_raw(json, i ? "," : "");
        put_point(json, history, &role->samples[at], before_of(role, at));
    }
    pace__json_raw(json, "]}");
}

void pace__series_put(pace__json *json, const pace__history *history)
{
    size_t most = history->role_count ? SAMPLES_ALL_MAX / history->role_count : 0;

    most = most > SAMPLES_MAX ? SAMPLES_MAX : most < SAMPLES_MIN ? SAMPLES_MIN : most;
    pace__json_raw(json, "{");
    put_losses(json, history);
    put_scores(json, history);
    put_starts(json, history);
    pace__json_raw(json, ",\"roles\":[");
    for (size_t i = 0; i < history->role_count; i++) {
        pace__json_raw(json, i ? "," : "");
        put_role(json, history, &history->roles[i], most);
    }
    pace__json_raw(json, "]}");
}
