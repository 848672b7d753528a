/*
 * What the charts show, for assets/report.js: {"runs": [{"name": ..., "marks": [...], "loss": {...}, ...}, ...]}.
 *
 * A line over steps and time is {"step": [...], "t": [...], "y": [...]}; one over time {"t": [...], "y": [...]}.
 */
#include "report/markup.h"
#include "report/page.h"
#include "report/thin.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Marks on an axis; of more, as many as that, evenly. */
#define MARKS_MAX 200

static void put_key(FILE *out, bool first, const char *name)
{
    fprintf(out, "%s\"%s\":", first ? "" : ",", name);
}

/* --- lines over steps and time --- */

typedef double value_of(const pace__history *history, size_t place);

static double step_of(const pace__history *history, size_t place)
{
    return (double)history->step[place].step;
}

static double step_time(const pace__history *history, size_t place)
{
    return history->step[place].t;
}

static double step_loss(const pace__history *history, size_t place)
{
    return history->step[place].loss;
}

static double step_speed(const pace__history *history, size_t place)
{
    return history->step[place].rows_per_s;
}

static double eval_step(const pace__history *history, size_t place)
{
    return (double)history->eval[place].step;
}

static double eval_time(const pace__history *history, size_t place)
{
    return history->eval[place].t;
}

static double eval_loss(const pace__history *history, size_t place)
{
    return history->eval[place].logloss;
}

static double eval_auc(const pace__history *history, size_t place)
{
    return history->eval[place].auc;
}

static double eval_accuracy(const pace__history *history, size_t place)
{
    return history->eval[place].accuracy;
}

static void put_values(FILE *out, const pace__history *history, value_of *value, const size_t *kept,
                       size_t count)
{
    fputc('[', out);
    for (size_t i = 0; i < count; i++) {
        if (i)
            fputc(',', out);
        pace__json_number(out, value(history, kept[i]));
    }
    fputc(']', out);
}

/* Thinned by what it shows: steps and times are those of the points that stay. */
static void put_curve(FILE *out, const char *name, const pace__history *history, size_t all, value_of *step,
                      value_of *t, value_of *y)
{
    double *values = malloc((all + 1) * sizeof *values);
    size_t kept[PACE__CHART_POINTS], count = 0;

    for (size_t i = 0; values && i < all; i++)
        values[i] = y(history, i);
    if (values)
        count = pace__thin(values, all, PACE__CHART_POINTS, kept);
    put_key(out, false, name);
    fputs("{\"step\":", out);
    put_values(out, history, step, kept, count);
    put_key(out, false, "t");
    put_values(out, history, t, kept, count);
    put_key(out, false, "y");
    put_values(out, history, y, kept, count);
    fputc('}', out);
    free(values);
}

static void put_curves(FILE *out, const pace__history *history)
{
    put_curve(out, "loss", history, history->step_count, step_of, step_time, step_loss);
    put_curve(out, "speed", history, history->step_count, step_of, step_time, step_speed);
    put_curve(out, "test_loss", history, history->eval_count, eval_step, eval_time, eval_loss);
    put_curve(out, "auc", history, history->eval_count, eval_step, eval_time, eval_auc);
    put_curve(out, "accuracy", history, history->eval_count, eval_step, eval_time, eval_accuracy);
}

/* --- marks --- */

/* Restarts: every start but the first. */
static void put_marks(FILE *out, const pace__history *history)
{
    size_t starts = 0, checkpoints = 0, every, seen = 0;
    bool first = true;

    for (size_t i = 0; i < history->mark_count; i++)
        checkpoints += history->mark[i].kind == PACE__MARK_CHECKPOINT;
    every = checkpoints / MARKS_MAX + 1;
    put_key(out, false, "marks");
    fputc('[', out);
    for (size_t i = 0; i < history->mark_count; i++) {
        const pace__mark *mark = &history->mark[i];
        bool is_restart = mark->kind == PACE__MARK_START && starts++ > 0 && starts < MARKS_MAX,
             is_checkpoint = mark->kind == PACE__MARK_CHECKPOINT && seen++ % every == 0;

        if (!is_restart && !is_checkpoint)
            continue;
        fprintf(out, "%s[%d,", first ? "" : ",", is_restart);
        pace__json_number(out, (double)mark->step);
        fputc(',', out);
        pace__json_number(out, mark->t);
        fputc(']', out);
        first = false;
    }
    fputc(']', out);
}

/* --- lines of roles --- */

static void put_x(FILE *out, const pace__point *points, const size_t *kept, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i)
            fputc(',', out);
        pace__json_number(out, points[kept[i]].x);
    }
}

static void put_y(FILE *out, const pace__point *points, const size_t *kept, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i)
            fputc(',', out);
        pace__json_number(out, points[kept[i]].y);
    }
}

static void put_line(FILE *out, const char *name, const pace__point *points, size_t all)
{
    double *values = malloc((all + 1) * sizeof *values);
    size_t kept[PACE__CHART_POINTS], count = 0;

    for (size_t i = 0; values && i < all; i++)
        values[i] = points[i].y;
    if (values)
        count = pace__thin(values, all, PACE__CHART_POINTS, kept);
    put_key(out, false, name);
    fputs("{\"t\":[", out);
    put_x(out, points, kept, count);
    fputs("],\"y\":[", out);
    put_y(out, points, kept, count);
    fputs("]}", out);
    free(values);
}

/* Behind a name: ,1,2,3] */
static void end_with_numbers(FILE *out, const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fputc(',', out);
        pace__json_number(out, values[i]);
    }
    fputc(']', out);
}

static const char *const measure_names[PACE__MEASURES] = {[PACE__MEASURE_CPU] = "cpu",
                                                          [PACE__MEASURE_MEMORY] = "memory",
                                                          [PACE__MEASURE_NETWORK] = "network",
                                                          [PACE__MEASURE_DISK] = "disk",
                                                          [PACE__MEASURE_ROWS] = "rows",
                                                          [PACE__MEASURE_ROW_WORK] = "work",
                                                          [PACE__MEASURE_INTERFACE] = "interface"};

static void put_share(FILE *out, bool first, double share)
{
    fputs(first ? "" : ",", out);
    pace__json_number(out, share);
}

static void put_split(FILE *out, const pace__split *split)
{
    fputc('[', out);
    put_share(out, true, split->data);
    put_share(out, false, split->compute);
    put_share(out, false, split->communicate);
    put_share(out, false, split->still);
    put_share(out, false, split->wait);
    fputc(']', out);
}

static void put_splits(FILE *out, const pace__seen_role *role)
{
    pace__split splits[PACE__SPLIT_POINTS];
    size_t count = pace__role_splits(role, splits);

    put_key(out, false, "splits");
    fputc('[', out);
    for (size_t i = 0; i < count; i++) {
        fputs(i ? ",[" : "[", out);
        pace__json_number(out, splits[i].t);
        fputc(',', out);
        put_split(out, &splits[i]);
        fputc(']', out);
    }
    fputc(']', out);
}

/* Interfaces are those of a host: of its first role. */
static bool is_first_of_host(const pace__history *history, size_t role)
{
    for (size_t i = 0; i < role; i++) {
        if (strcmp(history->roles[i].host, history->roles[role].host) == 0)
            return false;
    }
    return true;
}

static void put_role(FILE *out, const pace__page_run *run, size_t place)
{
    const pace__history *history = run->history;
    const pace__seen_role *role = &history->roles[run->shown[place]];
    pace__sample total = pace__role_total(role);
    pace__split split = pace__split_of(&total);
    pace__point *points = malloc((role->count + 1) * sizeof *points);

    fputs(place ? ",{\"name\":" : "{\"name\":", out);
    pace__json_text(out, role->name);
    put_key(out, false, "host");
    pace__json_text(out, role->host);
    put_key(out, false, "split");
    put_split(out, &split);
    put_splits(out, role);
    for (pace__measure measure = 0; points && measure < PACE__MEASURES; measure++) {
        if (measure != PACE__MEASURE_INTERFACE || is_first_of_host(history, run->shown[place]))
            put_line(out, measure_names[measure], points, pace__role_line(role, measure, points));
    }
    fputc('}', out);
    free(points);
}

/* The mean of those who have no line of their own. */
static void put_others(FILE *out, const pace__page_run *run)
{
    const pace__history *history = run->history;
    pace__point points[PACE__SPLIT_POINTS];
    pace__sample total = {0};
    size_t others = history->role_count - run->shown_count;

    for (size_t i = 0, place = 0; i < history->role_count; i++) {
        if (place < run->shown_count && run->shown[place] == i) {
            place++;
            continue;
        }
        pace__sample each = pace__role_total(&history->roles[i]);

        total.data_s += each.data_s;
        total.compute_s += each.compute_s;
        total.communicate_s += each.communicate_s;
        total.still_s += each.still_s;
        total.wait_s += each.wait_s;
    }
    pace__split split = pace__split_of(&total);

    fprintf(out, ",{\"name\":\"mean of %zu others\",\"others\":true", others);
    put_key(out, false, "split");
    put_split(out, &split);
    for (pace__measure measure = 0; measure < PACE__MEASURE_INTERFACE; measure++)
        put_line(out, measure_names[measure], points,
                 pace__others_line(history, run->shown, run->shown_count, measure, points));
    fputc('}', out);
}

static void put_roles(FILE *out, const pace__page_run *run)
{
    put_key(out, false, "roles");
    fputc('[', out);
    for (size_t i = 0; i < run->shown_count; i++)
        put_role(out, run, i);
    if (run->history->role_count > run->shown_count)
        put_others(out, run);
    fputc(']', out);
}

/* --- bars --- */

static void put_servers(FILE *out, const pace__history *history)
{
    size_t count = 0;

    put_key(out, false, "servers");
    fputc('[', out);
    for (size_t i = 0; i < history->role_count && count < PACE__TABLE_ROWS; i++) {
        pace__sample total = pace__role_total(&history->roles[i]);

        if (total.requests == 0)
            continue;
        fputs(count++ ? ",[" : "[", out);
        pace__json_text(out, history->roles[i].name);
        end_with_numbers(out,
                         (const double[]){total.requests, total.own_received_bytes, total.own_sent_bytes}, 3);
    }
    fputc(']', out);
}

static void put_shares(FILE *out, const pace__history *history)
{
    size_t count = 0;

    put_key(out, false, "shares");
    fputc('[', out);
    for (size_t i = 0; i < history->role_count && count < PACE__TABLE_ROWS; i++) {
        pace__sample total = pace__role_total(&history->roles[i]);

        if (total.rows == 0)
            continue;
        fputs(count++ ? ",[" : "[", out);
        pace__json_text(out, history->roles[i].name);
        end_with_numbers(out, &total.rows, 1);
    }
    fputc(']', out);
}

/* --- what the summary has: lists of numbers, or of a few numbers each --- */

#define TOGETHER_MAX 3

static void put_number(FILE *out, const cJSON *value)
{
    pace__json_number(out, cJSON_IsNumber(value) ? value->valuedouble : NAN);
}

static void put_item(FILE *out, const cJSON *item)
{
    const cJSON *number;
    int count = 0;

    if (!cJSON_IsArray(item)) {
        put_number(out, item);
        return;
    }
    fputc('[', out);
    cJSON_ArrayForEach(number, item)
    {
        if (count++ == TOGETHER_MAX)
            break;
        fputs(count > 1 ? "," : "", out);
        put_number(out, number);
    }
    fputc(']', out);
}

static void put_numbers(FILE *out, const cJSON *list)
{
    const cJSON *item;
    bool first = true;

    fputc('[', out);
    cJSON_ArrayForEach(item, list)
    {
        fputs(first ? "" : ",", out);
        put_item(out, item);
        first = false;
    }
    fputc(']', out);
}

static void put_list(FILE *out, const char *name, const cJSON *from)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(from, name);

    put_key(out, false, name);
    if (cJSON_IsArray(list) && cJSON_GetArraySize(list) <= PACE__CHART_POINTS)
        put_numbers(out, list);
    else
        fputs("[]", out);
}

static void put_summary(FILE *out, const cJSON *summary)
{
    const cJSON *curves = cJSON_GetObjectItemCaseSensitive(summary, "curves");

    put_list(out, "staleness", summary);
    put_list(out, "bins", curves);
    put_list(out, "roc", curves);
}

static void put_run(FILE *out, const pace__page_run *run, bool fully)
{
    put_key(out, true, "name");
    pace__json_text(out, run->name);
    put_key(out, false, "scored");
    pace__json_text(out, pace__history_scored(run->history));
    put_curves(out, run->history);
    put_marks(out, run->history);
    put_summary(out, run->history->summary);
    if (fully) {
        put_roles(out, run);
        put_servers(out, run->history);
        put_shares(out, run->history);
    }
}

void pace__page_put_data(FILE *out, const pace__page_run *runs, size_t count)
{
    fputs("{\"runs\":[", out);
    for (size_t i = 0; i < count; i++) {
        fputs(i ? ",\n{" : "\n{", out);
        put_run(out, &runs[i], count <= PACE__PAGE_RUNS_FULLY);
        fputc('}', out);
    }
    fputs("]}", out);
}
