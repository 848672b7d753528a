#include "study/page.h"

#include "report/document.h"
#include "study/assets.h"
#include "study/table.h"

#include <inttypes.h>
#include <paceline/version.h>
#include <stdlib.h>

static size_t count_runs(const pace__study *study, bool failed)
{
    size_t count = 0;

    for (size_t i = 0; i < study->result_count; i++)
        count += (study->results[i].status != 0) == failed;
    return count;
}

static size_t count_asked(const pace__study *study)
{
    size_t count = 0;

    for (size_t i = 0; i < study->section_count; i++)
        count += study->sections[i].count * (size_t)study->repeat;
    return count;
}

static void put_header(FILE *out, const pace__study *study)
{
    size_t done = count_runs(study, false), failed = count_runs(study, true), asked = count_asked(study);

    fputs("<h1>Study ", out);
    pace__text(out, study->name);
    fprintf(out, "</h1>\n<p class=\"subtitle\">%zu of %zu runs", done, asked);
    fputs("; figures are medians, bars reach from the lowest to the highest run.</p>\n", out);
    if (failed)
        fprintf(out, "<p class=\"lack\">%zu run%s failed.</p>\n", failed, failed == 1 ? " has" : "s have");
    if (done + failed < asked)
        fprintf(out,
                "<p class=\"lack\">%zu runs are still missing: the same command goes on with them.</p>\n",
                asked - done - failed);
}

static void put_table(FILE *out, const pace__figures *figures)
{
    const char *headings[PACE__COLUMNS + 1];
    char texts[PACE__COLUMNS][PACE__FIGURE_TEXT], text[PACE__FIGURE_TEXT];

    for (size_t i = 0; i < figures->column_count; i++) {
        snprintf(texts[i], sizeof texts[i], "%s%s", pace__column_is_left(figures->columns[i]) ? "" : ">",
                 pace__column_heading(figures, figures->columns[i]));
        headings[i] = texts[i];
    }
    headings[figures->column_count] = NULL;
    pace__table_begin(out, headings);
    for (size_t row = 0; row < figures->count; row++) {
        pace__row_begin(out);
        for (size_t i = 0; i < figures->column_count; i++) {
            pace__figure_text(figures, row, figures->columns[i], false, text);
            if (pace__column_is_left(figures->columns[i]))
                pace__put_cell(out, text);
            else
                pace__put_cell_number(out, text);
        }
        pace__row_end(out);
    }
    pace__table_end(out);
}

static void put_notes(FILE *out, const pace__figures *figures)
{
    char text[PACE__NOTE_TEXT];

    for (size_t i = 0; pace__table_note(figures, i, text); i++) {
        fputs("<p>", out);
        pace__text(out, text);
        fputs("</p>\n", out);
    }
}

/* The canvases are filled by assets/study.js, which goes by data-section and data-chart. */
static void put_charts(FILE *out, const pace__figures *figures)
{
    fputs("<div class=\"charts\">\n", out);
    for (size_t i = 0; i < pace__charts_count(figures); i++) {
        fputs("<figure class=\"chart\"><figcaption>", out);
        pace__text(out, pace__chart_title(figures, i));
        fprintf(
            out,
            "</figcaption><div class=\"plot\"><canvas data-section=\"%zu\" data-chart=\"%zu\" role=\"img\" "
            "aria-label=\"",
            figures->place, i);
        pace__text(out, pace__chart_title(figures, i));
        fputs("; the table has its figures\"></canvas></div></figure>\n", out);
    }
    fputs("</div>\n", out);
}

static void put_section(FILE *out, const pace__figures *figures)
{
    fputs("<section><h2>", out);
    pace__text(out, figures->section->title);
    fputs("</h2>\n", out);
    if (figures->section->about) {
        fputs("<p>", out);
        pace__text(out, figures->section->about);
        fputs("</p>\n", out);
    }
    put_charts(out, figures);
    put_table(out, figures);
    put_notes(out, figures);
    fputs("</section>\n", out);
}

pace_status pace__study_page(FILE *out, const pace__figures *figures, size_t count, const pace_log *log)
{
    const pace__asset script = {pace__asset_study_js, pace__asset_study_js_size};
    const pace__study *study = figures->study;
    pace_status status = pace__document_begin(out, study->name, &script, log);

    if (status)
        return status;
    fputs("<main>\n", out);
    put_header(out, study);
    for (size_t i = 0; i < count; i++)
        put_section(out, &figures[i]);
    fprintf(out,
            "</main>\n<footer><p>Dashed grey lines are what would be ideal, dotted ones what others have "
            "published, on "
            "their machines. results.jsonl beside this file has every run.</p><p>Written by paceline "
            "%s.</p></footer>\n",
            pace_version());
    fputs("<script type=\"application/json\" id=\"data\">[", out);
    for (size_t i = 0; i < count; i++) {
        if (i)
            fputs(",\n", out);
        pace__charts_put(out, &figures[i]);
    }
    fputs("]</script>\n", out);
    pace__document_end(out, &script);
    return PACE_OK;
}
