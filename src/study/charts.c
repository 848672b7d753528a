/*
 * charts.c - which plots a kind of study has, and what is in them:
 *
 *     {"title": "Speedup", "type": "line", "x": "workers", "y": "speedup", "unit": "real", "log": false,
 *      "series": [{"label": "allreduce", "style": "", "points": [[1, 1, 1, 1], [2, 1.8, 1.7, 1.9]]},
 *                 {"label": "ideal", "style": "ideal", "points": [[1, 1], [2, 2]]}]}
 *
 * Points are x, median, lowest, highest. Of type "bar" there is "labels", and x is a place among them.
 */
#include "study/page.h"

#include <assert.h>
#include <math.h>
#include <string.h>

typedef enum ideal {
    IDEAL_NONE,
    IDEAL_GROWS, /* as many times as there are workers */
    IDEAL_SHRINKS,
    IDEAL_STAYS
} ideal;

typedef enum chart_type { CHART_LINE, CHART_BAR, CHART_EPOCHS, CHART_TIME } chart_type;

typedef struct chart {
    const char *title;
    pace__column x, y;
    chart_type type;
    ideal ideal;
    bool log; /* the x axis */
} chart;

#define CHARTS_MAX 6

static const chart charts[PACE__STUDY_KINDS][CHARTS_MAX] = {
    [PACE__SCALING] = {{"Time", PACE__C_WORKERS, PACE__C_TIME, CHART_LINE, IDEAL_SHRINKS},
                       {"Throughput", PACE__C_WORKERS, PACE__C_ROWS_S, CHART_LINE, IDEAL_GROWS},
                       {"Speedup", PACE__C_WORKERS, PACE__C_SPEEDUP, CHART_LINE, IDEAL_GROWS},
                       {"Efficiency", PACE__C_WORKERS, PACE__C_EFFICIENCY, CHART_LINE, IDEAL_STAYS}},
    [PACE__WEAK] = {{"Time for the same rows of each worker", PACE__C_WORKERS, PACE__C_TIME, CHART_LINE,
                     IDEAL_STAYS},
                    {"Throughput", PACE__C_WORKERS, PACE__C_ROWS_S, CHART_LINE, IDEAL_GROWS},
                    {"Weak speedup", PACE__C_WORKERS, PACE__C_SPEEDUP, CHART_LINE, IDEAL_GROWS},
                    {"Efficiency", PACE__C_WORKERS, PACE__C_EFFICIENCY, CHART_LINE, IDEAL_STAYS}},
    [PACE__BATCH] = {{"Time for the same rows", PACE__C_BATCH, PACE__C_TIME, CHART_LINE, .log = true},
                     {"Throughput", PACE__C_BATCH, PACE__C_ROWS_S, CHART_LINE, .log = true},
                     {"Test log-loss", PACE__C_BATCH, PACE__C_LOGLOSS, CHART_LINE, .log = true},
                     {"Accuracy", PACE__C_BATCH, PACE__C_ACCURACY, CHART_LINE, .log = true},
                     {"Traffic for each row", PACE__C_BATCH, PACE__C_ROW_BYTES, CHART_LINE, .log = true}},
    [PACE__MODES] = {{"Time", PACE__C_MODE, PACE__C_TIME, CHART_BAR},
                     {"Throughput", PACE__C_MODE, PACE__C_ROWS_S, CHART_BAR},
                     {"Test log-loss", PACE__C_MODE, PACE__C_LOGLOSS, CHART_BAR},
                     {"Sent", PACE__C_MODE, PACE__C_SENT, CHART_BAR},
                     {"CPU of all processes", PACE__C_MODE, PACE__C_CPU, CHART_BAR},
                     {"Memory of all processes", PACE__C_MODE, PACE__C_MEMORY, CHART_BAR}},
    [PACE__BALANCE] = {{"Time", PACE__C_BALANCE, PACE__C_TIME, CHART_BAR},
                       {"Throughput", PACE__C_BALANCE, PACE__C_ROWS_S, CHART_BAR}},
    [PACE__PREP] = {{"Time", PACE__C_WORKERS, PACE__C_TIME, CHART_LINE, IDEAL_SHRINKS},
                    {"Throughput", PACE__C_WORKERS, PACE__C_ROWS_S, CHART_LINE, IDEAL_GROWS},
                    {"Speedup", PACE__C_WORKERS, PACE__C_SPEEDUP, CHART_LINE, IDEAL_GROWS},
                    {"Efficiency", PACE__C_WORKERS, PACE__C_EFFICIENCY, CHART_LINE, IDEAL_STAYS}},
    [PACE__SERVERS] = {{"Time", PACE__C_PS, PACE__C_TIME, CHART_LINE},
                       {"Throughput", PACE__C_PS, PACE__C_ROWS_S, CHART_LINE},
                       {"Sent in a second", PACE__C_PS, PACE__C_NETWORK, CHART_LINE}},
    [PACE__CONVERGE] = {{"Loss against epochs", PACE__C_TO_EPOCHS, PACE__C_TRAIN_LOSS, CHART_EPOCHS},
                        {"Loss against time", PACE__C_TO_TIME, PACE__C_TRAIN_LOSS, CHART_TIME},
                        {"Time to the threshold", PACE__C_WORKERS, PACE__C_TO_TIME, CHART_LINE,
                         IDEAL_SHRINKS},
                        {"Epochs to the threshold", PACE__C_WORKERS, PACE__C_TO_EPOCHS, CHART_LINE,
                         IDEAL_STAYS}},
    [PACE__COST] = {{"Money against time", PACE__C_COST_TIME, PACE__C_COST, CHART_LINE},
                    {"Cost by workers", PACE__C_WORKERS, PACE__C_COST, CHART_LINE},
                    {"Time by workers", PACE__C_WORKERS, PACE__C_COST_TIME, CHART_LINE}},
};

static bool has_points(const pace__figures *figures, const chart *of)
{
    for (size_t row = 0; row < figures->count; row++) {
        const pace__result *last = figures->rows[row].last;

        if (of->type == CHART_EPOCHS || of->type == CHART_TIME ? last && last->curve.count > 1
                                                               : pace__figure(figures, row, of->y).count > 0)
            return true;
    }
    return false;
}

/* The chart of that place, of those that have anything to show; NULL: no more. */
static const chart *chart_at(const pace__figures *figures, size_t place)
{
    for (size_t i = 0; i < CHARTS_MAX && charts[figures->section->kind][i].title; i++) {
        const chart *of = &charts[figures->section->kind][i];

        if (has_points(figures, of) && place-- == 0)
            return of;
    }
    return NULL;
}

size_t pace__charts_count(const pace__figures *figures)
{
    size_t count = 0;

    while (chart_at(figures, count))
        count++;
    return count;
}

const char *pace__chart_title(const pace__figures *figures, size_t place)
{
    assert(chart_at(figures, place));
    return chart_at(figures, place)->title;
}

/* --- lines: rows that differ in nothing but x --- */

static const pace__cell_of *cell_of(const pace__figures *figures, size_t row)
{
    return &figures->section->cells[figures->rows[row].cell];
}

/* Of weak, the batch is that of a worker. */
static double batch_of(const pace__figures *figures, size_t row)
{
    const pace__cell_of *cell = cell_of(figures, row);

    return (double)cell->batch / (figures->section->kind == PACE__WEAK ? (double)cell->workers : 1);
}

static bool is_of_line(const pace__figures *figures, size_t left, size_t right, pace__column x)
{
    const pace__cell_of *a = cell_of(figures, left), *b = cell_of(figures, right);
    bool workers = x == PACE__C_WORKERS || x == PACE__C_COST_TIME;

    return (x == PACE__C_MODE || a->mode == b->mode) &&
           (workers || x == PACE__C_MODE || a->workers == b->workers) &&
           (x == PACE__C_PS || x == PACE__C_MODE || a->ps == b->ps) &&
           (x == PACE__C_BATCH || batch_of(figures, left) == batch_of(figures, right)) &&
           (x == PACE__C_BALANCE || a->balance == b->balance) &&
           figures->rows[left].price == figures->rows[right].price;
}

static bool begins_line(const pace__figures *figures, size_t row, pace__column x)
{
    for (size_t i = 0; i < row; i++) {
        if (is_of_line(figures, i, row, x))
            return false;
    }
    return true;
}

/* Does anything else than x set these two apart, in a column? */
static bool varies(const pace__figures *figures, pace__column column)
{
    char first[PACE__FIGURE_TEXT], other[PACE__FIGURE_TEXT];

    for (size_t row = 1; row < figures->count; row++) {
        pace__figure_text(figures, 0, column, true, first);
        if (strcmp(first, pace__figure_text(figures, row, column, true, other)) != 0)
            return true;
    }
    return false;
}

#define LABEL 160

/* "ps-sync, 2 workers": what sets a line apart from others. */
static const char *label_of(const pace__figures *figures, size_t row, pace__column x, char text[LABEL])
{
    static const struct {
        pace__column column;
        const char *behind;
        bool counted; /* one of them has no s */
    } parts[] = {{PACE__C_MACHINE, ""},
                 {PACE__C_MODE, ""},
                 {PACE__C_WORKERS, " worker", true},
                 {PACE__C_PS, " server", true},
                 {PACE__C_BATCH, " rows a step"},
                 {PACE__C_BALANCE, ""}};
    char word[PACE__FIGURE_TEXT];
    bool weak = figures->section->kind == PACE__WEAK;

    text[0] = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        pace__column column = parts[i].column;

        if (column == x || !varies(figures, column) ||
            (x == PACE__C_COST_TIME && column == PACE__C_WORKERS) ||
            (x == PACE__C_MODE && column != PACE__C_BATCH) || (weak && column == PACE__C_BATCH) ||
            (column == PACE__C_PS && cell_of(figures, row)->ps < 0))
            continue;
        pace__figure_text(figures, row, column, true, word);
        snprintf(text + strlen(text), LABEL - strlen(text), "%s%s%s%s", text[0] ? ", " : "", word,
                 parts[i].behind, parts[i].counted && strcmp(word, "1") != 0 ? "s" : "");
    }
    if (!text[0])
        snprintf(text, LABEL, "%s",
                 figures->section->kind == PACE__PREP || x == PACE__C_MODE || x == PACE__C_BALANCE
                     ? "measured"
                     : pace__mode_word(cell_of(figures, row)->mode));
    return text;
}

/* --- points --- */

static void put_point(FILE *out, bool first, const double *numbers, size_t count)
{
    fputs(first ? "[" : ",[", out);
    for (size_t i = 0; i < count; i++) {
        if (i)
            fputc(',', out);
        pace__json_number(out, numbers[i]);
    }
    fputc(']', out);
}

static void begin_series(FILE *out, bool first, const char *label, const char *style)
{
    fprintf(out, "%s{\"label\":", first ? "" : ",");
    pace__json_text(out, label);
    fprintf(out, ",\"style\":\"%s\",\"points\":[", style);
}

/* A column in the place of the measured one: what was published. */
static pace__column published_of(pace__column column)
{
    return column == PACE__C_SPEEDUP    ? PACE__C_PUBLISHED_SPEEDUP
           : column == PACE__C_ACCURACY ? (pace__column)(PACE__C_PUBLISHED + PACE__M_ACCURACY)
                                        : PACE__COLUMNS;
}

static double x_of(const pace__figures *figures, size_t row, pace__column x)
{
    return x == PACE__C_MODE || x == PACE__C_BALANCE ? (double)row : pace__figure(figures, row, x).median;
}

static void put_line(FILE *out, const pace__figures *figures, size_t line, pace__column x, pace__column y)
{
    bool first = true;

    for (size_t row = line; row < figures->count; row++) {
        pace__spread spread = pace__figure(figures, row, y);

        if (!is_of_line(figures, line, row, x) || spread.count == 0)
            continue;
        put_point(out, first, (double[]){x_of(figures, row, x), spread.median, spread.low, spread.high}, 4);
        first = false;
    }
    fputs("]}", out);
}

static bool line_has(const pace__figures *figures, size_t line, pace__column x, pace__column y)
{
    for (size_t row = line; y < PACE__COLUMNS && row < figures->count; row++) {
        if (is_of_line(figures, line, row, x) && pace__figure(figures, row, y).count > 0)
            return true;
    }
    return false;
}

/* From the row with the fewest workers on. */
static void put_ideal(FILE *out, const pace__figures *figures, size_t line, const chart *of)
{
    size_t base = pace__figures_base(figures, line);
    double from = (double)cell_of(figures, base)->workers, value = pace__figure(figures, base, of->y).median;
    bool first = true;

    begin_series(out, false, "ideal", "ideal");
    for (size_t row = line; row < figures->count; row++) {
        double workers = (double)cell_of(figures, row)->workers;

        if (!is_of_line(figures, line, row, of->x))
            continue;
        put_point(out, first,
                  (double[]){workers, of->ideal == IDEAL_GROWS     ? value * workers / from
                                      : of->ideal == IDEAL_SHRINKS ? value * from / workers
                                                                   : value},
                  2);
        first = false;
    }
    fputs("]}", out);
}

/* Ideals of several lines would hide them, where they are not the same. */
static bool has_one_ideal(const pace__figures *figures, const chart *of)
{
    size_t lines = 0;

    for (size_t row = 0; row < figures->count; row++)
        lines += begins_line(figures, row, of->x);
    return of->ideal && (lines == 1 || of->y == PACE__C_SPEEDUP || of->y == PACE__C_EFFICIENCY);
}

static void put_lines(FILE *out, const pace__figures *figures, const chart *of)
{
    char label[LABEL];
    bool first = true;

    for (size_t row = 0; row < figures->count; row++) {
        if (!begins_line(figures, row, of->x) || !line_has(figures, row, of->x, of->y))
            continue;
        begin_series(out, first, label_of(figures, row, of->x, label), "");
        put_line(out, figures, row, of->x, of->y);
        if (line_has(figures, row, of->x, published_of(of->y))) {
            begin_series(out, false, "published", "published");
            put_line(out, figures, row, of->x, published_of(of->y));
        }
        if (of->y == PACE__C_ROWS_S && line_has(figures, row, of->x, PACE__C_PREDICTED)) {
            char said[LABEL + 16];

            snprintf(said, sizeof said, "%s%spredicted", strcmp(label, "measured") == 0 ? "" : label,
                     strcmp(label, "measured") == 0 ? "" : ", ");
            begin_series(out, false, said, "predicted");
            put_line(out, figures, row, of->x, PACE__C_PREDICTED);
        }
        first = false;
    }
    if (!first && has_one_ideal(figures, of))
        put_ideal(out, figures, 0, of);
}

/* --- curves: one run of each cell --- */

static void put_curve(FILE *out, const pace__curve *curve, const double *x)
{
    for (size_t i = 0; i < curve->count; i++)
        put_point(out, i == 0, (double[]){x[i], curve->loss[i]}, 2);
    fputs("]}", out);
}

static void put_curves(FILE *out, const pace__figures *figures, const chart *of)
{
    char label[LABEL];
    double furthest = 0;
    bool first = true;

    for (size_t row = 0; row < figures->count; row++) {
        const pace__result *last = figures->rows[row].last;

        if (!last || last->curve.count < 2)
            continue;
        const double *x = of->type == CHART_EPOCHS ? last->curve.epoch : last->curve.t;

        begin_series(out, first, label_of(figures, row, of->x, label), "curve");
        put_curve(out, &last->curve, x);
        furthest = fmax(furthest, x[last->curve.count - 1]);
        first = false;
    }
    if (isfinite(figures->threshold) && !first) {
        begin_series(out, false, "threshold", "ideal");
        put_point(out, true, (double[]){0, figures->threshold}, 2);
        put_point(out, false, (double[]){furthest, figures->threshold}, 2);
        fputs("]}", out);
    }
}

/* --- all of it --- */

static const char *unit_name(pace__column column)
{
    static const char *const names[] = {
        [PACE__COUNT] = "count", [PACE__REAL] = "real", [PACE__SECONDS] = "seconds",
        [PACE__BYTES] = "bytes", [PACE__RATE] = "rate", [PACE__SHARE] = "share"};

    return names[pace__column_unit(column)];
}

static void put_labels(FILE *out, const pace__figures *figures, pace__column x)
{
    char text[PACE__FIGURE_TEXT];

    fputs(",\"labels\":[", out);
    for (size_t row = 0; row < figures->count; row++) {
        if (row)
            fputc(',', out);
        pace__json_text(out, pace__figure_text(figures, row, x, true, text));
    }
    fputc(']', out);
}

static const char *x_title(const pace__figures *figures, const chart *of)
{
    if (of->type == CHART_EPOCHS)
        return "epochs";
    if (of->type == CHART_TIME || of->x == PACE__C_COST_TIME)
        return "time";
    return of->x == PACE__C_BATCH ? "rows in a step" : pace__column_heading(figures, of->x);
}

static const char *y_title(const pace__figures *figures, const chart *of)
{
    const pace__result *last = figures->rows[0].last;

    if (of->type == CHART_EPOCHS || of->type == CHART_TIME)
        return last && last->curve.of_test ? "test log-loss" : "training loss";
    if (of->y == PACE__C_COST && figures->study->prices.count)
        return figures->study->prices.of[0].currency;
    return pace__column_heading(figures, of->y);
}

static void put_chart(FILE *out, const pace__figures *figures, const chart *of)
{
    bool seconds = of->type == CHART_TIME || of->x == PACE__C_COST_TIME;

    fputs("{\"title\":", out);
    pace__json_text(out, of->title);
    fprintf(out, ",\"type\":\"%s\",\"x\":", of->type == CHART_BAR ? "bar" : "line");
    pace__json_text(out, x_title(figures, of));
    fputs(",\"y\":", out);
    pace__json_text(out, y_title(figures, of));
    fprintf(out, ",\"unit\":\"%s\",\"xunit\":\"%s\",\"log\":%s",
            of->type == CHART_EPOCHS || of->type == CHART_TIME ? "real" : unit_name(of->y),
            seconds ? "seconds" : "count", of->log ? "true" : "false");
    if (of->type == CHART_BAR)
        put_labels(out, figures, of->x);
    fputs(",\"series\":[", out);
    if (of->type == CHART_EPOCHS || of->type == CHART_TIME)
        put_curves(out, figures, of);
    else
        put_lines(out, figures, of);
    fputs("]}", out);
}

void pace__charts_put(FILE *out, const pace__figures *figures)
{
    const chart *of;

    fputc('[', out);
    for (size_t i = 0; (of = chart_at(figures, i)); i++) {
        if (i)
            fputs(",\n", out);
        put_chart(out, figures, of);
    }
    fputc(']', out);
}
