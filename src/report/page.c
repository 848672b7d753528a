#include "report/page.h"

#include "report/assets.h"
#include "report/document.h"
#include "report/markup.h"
#include "report/thin.h"

#include <assert.h>
#include <errno.h>
#include <paceline/version.h>
#include <stdlib.h>
#include <string.h>

static void put_details(FILE *out, const pace__page_run *run, size_t index)
{
    pace__page_put_roles(out, run, index);
    pace__page_put_model(out, run);
    pace__page_put_mistakes(out, run);
    pace__page_put_profile(out, run);
    pace__page_put_events(out, run);
}

static void put_one_run(FILE *out, const pace__page_run *run)
{
    fputs("<section id=\"verdict\"><h2>What takes the time</h2>\n", out);
    pace__page_put_verdict(out, run);
    fputs("</section>\n", out);
    pace__page_put_curves(out, run, 1);
    pace__page_put_scores(out, run, 1);
    fputs("<section id=\"details\"><h2>Who did what</h2>\n", out);
    put_details(out, run, 0);
    fputs("</section>\n<section id=\"options\"><h2>Configuration</h2>\n", out);
    pace__page_put_settings(out, run);
    fputs("</section>\n", out);
}

/* Charts of a run that is folded are drawn when it is opened. */
static void put_folded(FILE *out, const pace__page_run *run, size_t index, bool fully)
{
    fputs("<details class=\"run\"><summary><h3>", out);
    pace__text(out, run->name);
    fputs("</h3></summary>\n", out);
    pace__page_put_verdict(out, run);
    if (fully)
        put_details(out, run, index);
    pace__page_put_settings(out, run);
    fputs("</details>\n", out);
}

static void put_many_runs(FILE *out, const pace__page_run *runs, size_t count)
{
    bool fully = count <= PACE__PAGE_RUNS_FULLY;

    pace__page_put_comparison(out, runs, count);
    pace__page_put_curves(out, runs, count);
    pace__page_put_scores(out, runs, count);
    fputs("<section id=\"details\"><h2>Each run</h2>\n", out);
    if (!fully)
        fprintf(out, "<p>Of more than %d runs, roles are not shown: a report of one run has them.</p>\n",
                PACE__PAGE_RUNS_FULLY);
    for (size_t i = 0; i < count; i++)
        put_folded(out, &runs[i], i, fully);
    fputs("</section>\n", out);
}

static void put_footer(FILE *out, const pace__page_run *runs, size_t count)
{
    fprintf(
        out,
        "<footer><p>Marks on the axes: <span class=\"mark\">dashed lines</span> are restarts, ticks at the "
        "bottom checkpoints. Lines have at most %d points: of more, the lowest and the highest of every "
        "stretch are shown. Splits over time are means of up to %d stretches. A role is sampled once a "
        "second; "
        "times are of training, without the time between two starts.</p>\n<p>Written by paceline "
        "%s.</p></footer>\n",
        PACE__CHART_POINTS, PACE__SPLIT_POINTS, pace_version());
    fputs("<script type=\"application/json\" id=\"data\">", out);
    pace__page_put_data(out, runs, count);
    fputs("</script>\n", out);
}

static pace_status put_page(FILE *out, const pace__page_run *runs, size_t count, const pace_log *log)
{
    const pace__asset script = {pace__asset_report_js, pace__asset_report_js_size};
    char several[32];

    snprintf(several, sizeof several, "%zu runs", count);
    pace_status status = pace__document_begin(out, count == 1 ? runs[0].name : several, &script, log);

    if (status)
        return status;
    fputs("<main>\n", out);
    pace__page_put_header(out, runs, count);
    if (count == 1)
        put_one_run(out, runs);
    else
        put_many_runs(out, runs, count);
    fputs("</main>\n", out);
    put_footer(out, runs, count);
    pace__document_end(out, &script);
    return PACE_OK;
}

/* In memory, which is all that can fail. */
static pace_status put_in_memory(const pace__page_run *runs, size_t count, const pace_log *log, char **html,
                                 size_t *size)
{
    FILE *out = open_memstream(html, size);

    if (!out)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace_status status = put_page(out, runs, count, log);
    bool failed = ferror(out) != 0;

    failed |= fclose(out) != 0;
    if (!status && failed)
        status = pace_fail(log, PACE_FAILED, "out of memory");
    if (status) {
        free(*html);
        *html = NULL;
    }
    return status;
}

pace_status pace__page_make(const pace__page *page, const pace_log *log, char **html, size_t *size)
{
    pace__page_run runs[PACE__PAGE_RUNS_MAX] = {0};
    pace_status status = PACE_OK;

    assert(page->count > 0 && page->count <= PACE__PAGE_RUNS_MAX);
    for (size_t i = 0; i < page->count && !status; i++)
        status = pace__page_run_open(&runs[i], page, i, log);
    if (!status)
        status = put_in_memory(runs, page->count, log, html, size);
    for (size_t i = 0; i < page->count; i++)
        pace__page_run_close(&runs[i]);
    return status;
}
