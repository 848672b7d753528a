#include "study/table.h"

#include "base/json.h"
#include "series/listing.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- notes --- */

static const char *failure_note(const pace__figures *figures, size_t row, char text[PACE__NOTE_TEXT])
{
    const pace__figures_row *of = &figures->rows[row];
    char words[PACE__CELL_TEXT];

    snprintf(
        text, PACE__NOTE_TEXT, "failed: %s: exit code %d: %s",
        pace__cell_words(&figures->section->cells[of->cell], figures->section->kind == PACE__PREP, words),
        of->bad->status, of->bad->error);
    return text;
}

static const char *threshold_note(const pace__figures *figures, char text[PACE__NOTE_TEXT])
{
    const pace__result *last = NULL;

    for (size_t i = 0; i < figures->count && !last; i++)
        last = figures->rows[i].last;
    if (!isfinite(figures->threshold) || !last)
        return NULL;
    snprintf(text, PACE__NOTE_TEXT, "threshold: a %s of %.5g%s",
             last->curve.of_test ? "test log-loss" : "training loss", figures->threshold,
             figures->section->threshold > 0 ? "" : ", the lowest that every run has reached");
    return text;
}

static const char *price_note(const pace__figures *figures, char text[PACE__NOTE_TEXT])
{
    if (figures->section->kind != PACE__COST || figures->study->prices.count == 0)
        return NULL;
    snprintf(text, PACE__NOTE_TEXT,
             "cost: machines x price x time, by the second; times are those measured here, divided by each "
             "type's speed");
    return text;
}

/* Without hosts, all of a cell's processes are on this machine. */
static bool is_crowded(const pace__figures *figures)
{
    const pace__section *section = figures->section;

    for (size_t i = 0; i < section->count && !section->base.cluster.hosts; i++) {
        const pace__cell_of *cell = &section->cells[i];

        if (cell->workers + (cell->ps > 0 ? cell->ps : 0) > section->slots)
            return true;
    }
    return false;
}

static const char *prediction_note(const pace__figures *figures, char text[PACE__NOTE_TEXT])
{
    pace__foretold_errors errors = pace__figures_errors(figures);
    char words[PACE__CELL_TEXT], causes[96] = "";

    if (errors.count == 0)
        return NULL;
    if (errors.causes)
        snprintf(causes, sizeof causes, "; the bottleneck was the predicted one in %zu of %zu",
                 errors.causes_right, errors.causes);
    snprintf(
        text, PACE__NOTE_TEXT,
        "predicted from some seconds of one process here (give or take %.0f %%) before anything else ran: "
        "off by %.0f %% in the median, %.0f %% at worst (%s)%s%s",
        100 * figures->section->foretold_spread, 100 * errors.median, 100 * errors.worst,
        pace__cell_words(&figures->section->cells[figures->rows[errors.worst_row].cell], false, words),
        causes,
        is_crowded(figures)
            ? ". Processes that outnumber the cores of this machine wait for their turn in every "
              "step, which is not foreseen"
            : "");
    return text;
}

const char *pace__table_note(const pace__figures *figures, size_t place, char text[PACE__NOTE_TEXT])
{
    const char *(*const others[])(const pace__figures *, char *) = {threshold_note, price_note,
                                                                    prediction_note};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (others[i](figures, text) && place-- == 0)
            return text;
    }
    for (size_t row = 0; row < figures->count; row++) {
        if (figures->rows[row].bad && place-- == 0)
            return failure_note(figures, row, text);
    }
    return NULL;
}

static void put_notes(FILE *out, const pace__figures *figures, const char *before)
{
    char text[PACE__NOTE_TEXT];

    if (figures->section->about)
        fprintf(out, "%s%s\n", before, figures->section->about);
    for (size_t i = 0; pace__table_note(figures, i, text); i++)
        fprintf(out, "%s%s\n", before, text);
}

/* --- a terminal, Markdown --- */

static const char *heading(const void *user, size_t column)
{
    const pace__figures *figures = user;

    return pace__column_heading(figures, figures->columns[column]);
}

static bool is_left(const void *user, size_t column)
{
    return pace__column_is_left(((const pace__figures *)user)->columns[column]);
}

_Static_assert(PACE__FIGURE_TEXT <= PACE__LISTING_TEXT, "a figure fits a cell");

static const char *cell(const void *user, size_t row, size_t column, char text[PACE__LISTING_TEXT])
{
    const pace__figures *figures = user;

    return pace__figure_text(figures, row, figures->columns[column], false, text);
}

static pace__listing listing_of(const pace__figures *figures)
{
    return (pace__listing){.rows = figures->count,
                           .columns = figures->column_count,
                           .user = figures,
                           .heading = heading,
                           .is_left = is_left,
                           .cell = cell};
}

void pace__table_put_text(FILE *out, const pace__figures *figures)
{
    pace__listing listing = listing_of(figures);

    fprintf(out, "%s\n", figures->section->title);
    pace__listing_put_text(out, &listing);
    put_notes(out, figures, "  ");
}

void pace__table_put_markdown(FILE *out, const pace__figures *figures)
{
    pace__listing listing = listing_of(figures);

    fprintf(out, "## %s\n\n", figures->section->title);
    pace__listing_put_markdown(out, &listing);
    fputc('\n', out);
    put_notes(out, figures, "- ");
    fputc('\n', out);
}

/* --- CSV --- */

/* A column of which repetitions may differ. */
static bool has_spread(pace__column column)
{
    return !pace__column_is_text(column) && column > PACE__C_RUNS && column < PACE__C_PUBLISHED_SPEEDUP &&
           column != PACE__C_PREDICTED;
}

void pace__table_put_csv(FILE *out, const pace__figures *figures)
{
    char text[PACE__FIGURE_TEXT];

    fputs("section", out);
    for (size_t i = 0; i < figures->column_count; i++) {
        const char *name = pace__column_name(figures->columns[i]);

        fprintf(out, ",%s", name);
        if (has_spread(figures->columns[i]))
            fprintf(out, ",%s_low,%s_high", name, name);
    }
    fputc('\n', out);
    for (size_t row = 0; row < figures->count; row++) {
        fputs(figures->section->name, out);
        for (size_t i = 0; i < figures->column_count; i++) {
            pace__column column = figures->columns[i];

            if (pace__column_is_text(column)) {
                pace__csv_put_quoted(out, pace__figure_text(figures, row, column, true, text));
                continue;
            }
            pace__spread spread = pace__figure(figures, row, column);

            pace__csv_put_number(out, spread.median);
            if (has_spread(column)) {
                pace__csv_put_number(out, spread.low);
                pace__csv_put_number(out, spread.high);
            }
        }
        fputc('\n', out);
    }
}

/* --- JSON --- */

static void add_figure(cJSON *object, const pace__figures *figures, size_t row, pace__column column)
{
    char text[PACE__FIGURE_TEXT];
    const char *name = pace__column_name(column);

    if (column == PACE__C_RUNS) {
        cJSON_AddNumberToObject(object, name, (double)figures->rows[row].done);
        cJSON_AddNumberToObject(object, "failed", (double)figures->rows[row].failed);
        return;
    }
    if (pace__column_is_text(column)) {
        cJSON_AddStringToObject(object, name, pace__figure_text(figures, row, column, true, text));
        return;
    }
    pace__spread spread = pace__figure(figures, row, column);

    if (spread.count == 0) {
        cJSON_AddNullToObject(object, name);
    } else if (!has_spread(column)) {
        cJSON_AddNumberToObject(object, name, spread.median);
    } else {
        cJSON *figure = cJSON_AddObjectToObject(object, name);

        cJSON_AddNumberToObject(figure, "median", spread.median);
        cJSON_AddNumberToObject(figure, "low", spread.low);
        cJSON_AddNumberToObject(figure, "high", spread.high);
    }
}

/* A message may quote bytes of a file. */
static void add_error(cJSON *row, const pace__result *bad)
{
    char *valid = pace__json_valid(strdup(bad->error));

    cJSON_AddNumberToObject(row, "exit_code", bad->status);
    cJSON_AddStringToObject(row, "error", valid ? valid : "");
    free(valid);
}

static void add_prediction(cJSON *section, const pace__figures *figures)
{
    pace__foretold_errors errors = pace__figures_errors(figures);
    cJSON *object = errors.count ? cJSON_AddObjectToObject(section, "prediction") : NULL;

    if (!object)
        return;
    cJSON_AddNumberToObject(object, "rows", (double)errors.count);
    cJSON_AddNumberToObject(object, "median_error", errors.median);
    cJSON_AddNumberToObject(object, "worst_error", errors.worst);
    cJSON_AddNumberToObject(object, "bottlenecks", (double)errors.causes);
    cJSON_AddNumberToObject(object, "bottlenecks_right", (double)errors.causes_right);
}

static cJSON *section_json(const pace__figures *figures)
{
    cJSON *section = cJSON_CreateObject(), *rows;

    cJSON_AddStringToObject(section, "section", figures->section->name);
    cJSON_AddStringToObject(section, "kind", pace__study_kind_names[figures->section->kind]);
    if (isfinite(figures->threshold))
        cJSON_AddNumberToObject(section, "threshold", figures->threshold);
    if (figures->section->kind == PACE__COST && figures->study->prices.count)
        cJSON_AddStringToObject(section, "currency", figures->study->prices.of[0].currency);
    add_prediction(section, figures);
    rows = cJSON_AddArrayToObject(section, "rows");
    for (size_t row = 0; row < figures->count; row++) {
        cJSON *object = cJSON_CreateObject();

        for (size_t i = 0; i < figures->column_count; i++)
            add_figure(object, figures, row, figures->columns[i]);
        if (figures->rows[row].bad)
            add_error(object, figures->rows[row].bad);
        cJSON_AddItemToArray(rows, object);
    }
    return section;
}

char *pace__table_json(const pace__figures *figures, size_t count)
{
    cJSON *object = cJSON_CreateObject(), *sections = cJSON_AddArrayToObject(object, "sections");

    if (count > 0)
        cJSON_AddStringToObject(object, "study", figures->study->name);
    for (size_t i = 0; i < count; i++)
        cJSON_AddItemToArray(sections, section_json(&figures[i]));
    char *text = cJSON_PrintUnformatted(object);

    cJSON_Delete(object);
    return text;
}
