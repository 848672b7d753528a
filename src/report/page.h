/*
 * page.h - runs as one HTML document that needs nothing else: no network, no other file, and to be read no script either.
 *
 *     pace__page page = {.runs = runs, .count = 2};
 *     status = pace__page_make(&page, log, &html, &size);
 *
 * The document has tables, written here, and the data of its charts as JSON, which assets/report.js draws with Chart.js.
 * Whatever a run lacks is said where it would be, and the rest is shown.
 *
 * 1. Every text of a run goes through markup.h, and the document allows no code but the build's own (document.h): nothing in
 *    a run can become code or be loaded.
 * 2. Its size is bounded: charts have at most PACE__CHART_POINTS points a line and PACE__SHOWN_ROLES lines of roles, tables
 *    PACE__TABLE_ROWS rows. What is thinned or left out is said.
 * 3. The same runs give the same bytes.
 */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include "history/history.h"
#include "report/roles.h"
#include "run/shares.h"
#include "verdict/verdict.h"

#include <paceline/log.h>
#include <stdio.h>

#define PACE__PAGE_RUNS_MAX 32
/* Of more runs, roles are not shown. */
#define PACE__PAGE_RUNS_FULLY 4
#define PACE__TABLE_ROWS      200
#define PACE__CURVE_ROWS      25
#define PACE__TOP_FEATURES    20

struct cJSON;

typedef struct pace__page_run {
    const pace__history *history;
    char *name;
    pace__verdict verdict;
    size_t shown[PACE__SHOWN_ROLES], shown_count;
    struct cJSON *model; /* what inspect says of it; NULL: why not is in model_lack */
    char *model_lack;
    struct cJSON *profile;     /* profile/ops.json; NULL: there is none */
    pace__divisions divisions; /* shares.jsonl; none: why it cannot be read is in shares_lack */
    pace__shares_facts shares;
    char *shares_lack;
} pace__page_run;

typedef struct pace__page {
    pace__history **runs;
    size_t count;
    /* A larger model is not read for its heaviest features; 0: any is. For who has no time. */
    size_t model_bytes_max;
} pace__page;

/* *html is to be freed. */
pace_status pace__page_make(const pace__page *page, const pace_log *log, char **html, size_t *size);

/* --- the parts of it, internal to report --- */

/* run.c: what else than its records a run has. */
pace_status pace__page_run_open(pace__page_run *run, const pace__page *page, size_t index,
                                const pace_log *log);
void pace__page_run_close(pace__page_run *run); /* a zeroed one is allowed */

/* data.c: what the charts show, a JSON object. */
void pace__page_put_data(FILE *out, const pace__page_run *runs, size_t count);

/* header.c, and how far a run has come, by its summary or its records; NAN: unknown. */
void pace__page_put_header(FILE *out, const pace__page_run *runs, size_t count);
double pace__page_steps(const pace__history *history);
double pace__page_seconds(const pace__history *history);

/* time.c, comparison.c, course.c */
void pace__page_put_verdict(FILE *out, const pace__page_run *run);
void pace__page_put_comparison(FILE *out, const pace__page_run *runs, size_t count);
void pace__page_put_curves(FILE *out, const pace__page_run *runs, size_t count);

/* scores.c */
void pace__page_put_scores(FILE *out, const pace__page_run *runs, size_t count);
void pace__page_put_model(FILE *out, const pace__page_run *run);

/* mistakes.c, of one run: nothing if it has none to show. */
void pace__page_put_mistakes(FILE *out, const pace__page_run *run);

/* roles_section.c, of one run: its roles; and usage_section.c, a part of that. */
void pace__page_put_roles(FILE *out, const pace__page_run *run, size_t index);
void pace__page_put_usage(FILE *out, const pace__page_run *run, size_t index);

/* details.c, of one run: what happened to it, its profile, its options. */
void pace__page_put_events(FILE *out, const pace__page_run *run);
void pace__page_put_profile(FILE *out, const pace__page_run *run);
void pace__page_put_settings(FILE *out, const pace__page_run *run);

/* figure.c: a chart with its table behind it. index is that of the run; -1: all of them. */
void pace__figure_begin(FILE *out, const char *chart, int index, const char *title);
void pace__figure_table(FILE *out); /* what follows is its table */
void pace__figure_end(FILE *out);
/* One of so many rows of a table that shows `shown` of them, evenly and the last one too. */
size_t pace__table_place(size_t row, size_t shown, size_t all);

#endif
