/* The roles of one run: where their time went, and who did how much; usage_section.c has what they used. */
#include "base/shares.h"
#include "report/markup.h"
#include "report/page.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t at_most(size_t count, size_t most)
{
    return count < most ? count : most;
}

/* Whom it waited for longest, in its last start. */
static const char *waited_for(const pace__history *history, const pace__seen_role *role)
{
    const pace__dealings *longest = NULL;

    for (size_t i = 0; i < role->dealings_count; i++) {
        if (role->dealings[i].wait_s > (longest ? longest->wait_s : 0))
            longest = &role->dealings[i];
    }
    return longest ? history->roles[longest->peer].name : NULL;
}

/* --- time --- */

static void put_split_row(FILE *out, const pace__history *history, const pace__seen_role *role)
{
    pace__sample total = pace__role_total(role);
    pace__split split = pace__split_of(&total);

    pace__row_begin(out);
    pace__put_cell(out, role->name);
    pace__put_cell_amount(out, total.seconds, PACE__SECONDS);
    pace__put_cell_amount(out, split.data, PACE__SHARE);
    pace__put_cell_amount(out, split.compute, PACE__SHARE);
    pace__put_cell_amount(out, split.communicate, PACE__SHARE);
    pace__put_cell_amount(out, split.still, PACE__SHARE);
    pace__put_cell_amount(out, split.wait, PACE__SHARE);
    pace__put_cell(out, waited_for(history, role));
    pace__row_end(out);
}

static void put_legend(FILE *out)
{
    static const char *const names[][2] = {{"data", "data: reads rows"},
                                           {"compute", "compute"},
                                           {"communicate", "communicate: packs, sends, serves"},
                                           {"still", "still: scores or saves"},
                                           {"wait", "wait"}};

    fputs("<ul class=\"legend\">", out);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        fprintf(out, "<li><span class=\"swatch s-%s\"></span>%s</li>", names[i][0], names[i][1]);
    fputs("</ul>\n", out);
}

/* Of a role, over time: small ones beside each other. The number behind the colon is that of the role. */
static void put_split_charts(FILE *out, const pace__page_run *run, size_t index)
{
    char chart[32], title[PACE__ROLE_TEXT + PACE__HOST_TEXT + 8];
    bool any = false;

    for (size_t i = 0; i < run->shown_count; i++)
        any |= run->history->roles[run->shown[i]].count > 2;
    if (!any)
        return;
    fputs("<div class=\"charts small\">\n", out);
    for (size_t i = 0; i < run->shown_count; i++) {
        const pace__seen_role *role = &run->history->roles[run->shown[i]];

        snprintf(chart, sizeof chart, "splits:%zu", i);
        snprintf(title, sizeof title, "%s over time", role->name);
        pace__figure_begin(out, chart, (int)index, title);
        fputs("</figure>\n", out);
    }
    fputs("</div>\n", out);
}

static void put_time(FILE *out, const pace__page_run *run, size_t index)
{
    static const char *const headings[] = {"Role",   ">Training", ">Data",      ">Compute", ">Communicate",
                                           ">Still", ">Wait",     "Waited for", NULL};
    const pace__history *history = run->history;

    fputs("<h3>Where the time went</h3>\n", out);
    put_legend(out);
    pace__figure_begin(out, "split", (int)index, "Shares of training time, by role");
    pace__figure_table(out);
    pace__table_begin(out, headings);
    for (size_t i = 0; i < at_most(history->role_count, PACE__TABLE_ROWS); i++)
        put_split_row(out, history, &history->roles[i]);
    pace__table_end(out);
    pace__figure_end(out);
    put_split_charts(out, run, index);
}

/* --- who did how much --- */

static void put_servers(FILE *out, const pace__page_run *run, size_t index)
{
    static const char *const headings[] = {"Server",         ">Requests",        ">Received", ">Sent",
                                           ">At once, mean", ">Staleness, mean", NULL};
    const pace__history *history = run->history;
    pace__shares bytes = {0}, requests = {0};
    char text[PACE__AMOUNT_TEXT];

    for (size_t i = 0; i < history->role_count; i++) {
        pace__sample total = pace__role_total(&history->roles[i]);

        if (total.requests == 0)
            continue;
        pace__shares_add(&bytes, total.own_received_bytes + total.own_sent_bytes);
        pace__shares_add(&requests, total.requests);
    }
    if (requests.count == 0)
        return;
    pace__figure_begin(out, "servers", (int)index, "Servers: bytes received and sent");
    if (requests.count > 1) {
        fprintf(out, "<p>The busiest has %s times the mean in bytes, ",
                pace__amount(pace__shares_skew(&bytes), PACE__REAL, text));
        fprintf(out, "%s times in requests.</p>\n",
                pace__amount(pace__shares_skew(&requests), PACE__REAL, text));
    }
    pace__figure_table(out);
    pace__table_begin(out, headings);
    for (size_t i = 0; i < at_most(history->role_count, PACE__TABLE_ROWS); i++) {
        pace__sample total = pace__role_total(&history->roles[i]);

        if (total.requests == 0)
            continue;
        pace__row_begin(out);
        pace__put_cell(out, history->roles[i].name);
        pace__put_cell_amount(out, total.requests, PACE__COUNT);
        pace__put_cell_amount(out, total.own_received_bytes, PACE__BYTES);
        pace__put_cell_amount(out, total.own_sent_bytes, PACE__BYTES);
        pace__put_cell_amount(out, total.looks > 0 ? total.requests / total.looks : NAN, PACE__REAL);
        pace__put_cell_amount(out, total.pushes > 0 ? total.stale_pushes / total.pushes : NAN, PACE__REAL);
        pace__row_end(out);
    }
    pace__table_end(out);
    pace__figure_end(out);
}

static void put_staleness(FILE *out, const pace__page_run *run, size_t index)
{
    static const char *const headings[] = {">Pushes applied since", ">Pushes", NULL};
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(run->history->summary, "staleness"), *bin;
    double number = 0;

    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) == 0)
        return;
    pace__figure_begin(out, "staleness", (int)index,
                       "Staleness: pushes by how many others were applied since their weights were read");
    pace__figure_table(out);
    pace__table_begin(out, headings);
    cJSON_ArrayForEach(bin, list)
    {
        pace__row_begin(out);
        pace__put_cell_amount(out, number++, PACE__COUNT);
        pace__put_cell_amount(out, cJSON_IsNumber(bin) ? bin->valuedouble : NAN, PACE__COUNT);
        pace__row_end(out);
        if (number == PACE__TABLE_ROWS)
            break;
    }
    pace__table_end(out);
    pace__figure_end(out);
}

static void put_shares(FILE *out, const pace__page_run *run, size_t index)
{
    static const char *const headings[] = {"Worker", ">Rows", ">Share", NULL};
    const pace__history *history = run->history;
    double all = 0;
    size_t workers = 0;

    for (size_t i = 0; i < history->role_count; i++) {
        double rows = pace__role_total(&history->roles[i]).rows;

        all += rows;
        workers += rows > 0;
    }
    if (workers < 2)
        return;
    pace__figure_begin(out, "shares", (int)index, "Shares of the rows, by worker");
    pace__figure_table(out);
    pace__table_begin(out, headings);
    for (size_t i = 0; i < at_most(history->role_count, PACE__TABLE_ROWS); i++) {
        double rows = pace__role_total(&history->roles[i]).rows;

        if (rows == 0)
            continue;
        pace__row_begin(out);
        pace__put_cell(out, history->roles[i].name);
        pace__put_cell_amount(out, rows, PACE__COUNT);
        pace__put_cell_amount(out, rows / all, PACE__SHARE);
        pace__row_end(out);
    }
    pace__table_end(out);
    pace__figure_end(out);
}

void pace__page_put_roles(FILE *out, const pace__page_run *run, size_t index)
{
    const pace__history *history = run->history;
    size_t samples = 0;

    for (size_t i = 0; i < history->role_count; i++)
        samples += history->roles[i].count;
    if (samples == 0) {
        fputs("<p class=\"lack\">No role has reported what it did.</p>\n", out);
        return;
    }
    if (history->role_count > PACE__SHOWN_ROLES)
        fprintf(out,
                "<p>Of %zu roles, charts show the chief and those with the most CPU time, %d in all, and the "
                "mean of "
                "the others; tables have %s.</p>\n",
                history->role_count, PACE__SHOWN_ROLES,
                history->role_count > PACE__TABLE_ROWS ? "the first 200" : "all of them");
    put_time(out, run, index);
    pace__page_put_usage(out, run, index);
    if (history->role_count < 2) /* it has done all of it */
        return;
    fputs("<h3>Who did how much</h3>\n<div class=\"charts\">\n", out);
    put_shares(out, run, index);
    put_servers(out, run, index);
    put_staleness(out, run, index);
    fputs("</div>\n", out);
}
