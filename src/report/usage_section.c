/* What the roles of one run used of their machines: over time, and in all. */
#include "report/markup.h"
#include "report/page.h"

#include <math.h>
#include <stdlib.h>

/* Moments of which a table tells. */
#define MOMENTS 12

/* --- in all --- */

static size_t at_most(size_t count, size_t most)
{
    return count < most ? count : most;
}

static void put_total(FILE *out, const pace__seen_role *role)
{
    pace__sample total = pace__role_total(role);

    pace__row_begin(out);
    pace__put_cell(out, role->name);
    pace__put_cell(out, role->host);
    pace__put_cell_amount(out, total.user_s, PACE__SECONDS);
    pace__put_cell_amount(out, total.system_s, PACE__SECONDS);
    pace__put_cell_amount(out, total.delay_s, PACE__SECONDS);
    pace__put_cell_amount(out, total.rss_max_bytes, PACE__BYTES);
    pace__put_cell_amount(out, total.major_faults, PACE__COUNT);
    pace__put_cell_amount(out, total.own_sent_bytes, PACE__BYTES);
    pace__put_cell_amount(out, total.own_received_bytes, PACE__BYTES);
    pace__put_cell_amount(out, total.read_bytes, PACE__BYTES);
    pace__put_cell_amount(out, total.write_bytes, PACE__BYTES);
    pace__row_end(out);
}

static void put_totals(FILE *out, const pace__history *history)
{
    static const char *const headings[] = {
        "Role",          "Host",  ">CPU, user", ">CPU, system", ">No processor free", ">Memory, most",
        ">Major faults", ">Sent", ">Received",  ">Disk read",   ">Disk written",      NULL};

    fputs("<details class=\"numbers\"><summary>In all</summary>\n", out);
    pace__table_begin(out, headings);
    for (size_t i = 0; i < at_most(history->role_count, PACE__TABLE_ROWS); i++)
        put_total(out, &history->roles[i]);
    pace__table_end(out);
    fputs("</details>\n", out);
}

static bool has_rates(const pace__history *history)
{
    for (size_t i = 0; i < history->role_count; i++) {
        if (history->roles[i].count > 1)
            return true;
    }
    return false;
}

/* --- over time --- */

typedef struct measured {
    pace__measure measure;
    const char *chart, *title;
    pace__unit unit;
} measured;

static const measured all[] = {
    {PACE__MEASURE_CPU, "cpu", "CPU", PACE__REAL},
    {PACE__MEASURE_MEMORY, "memory", "Memory (resident)", PACE__BYTES},
    {PACE__MEASURE_NETWORK, "network", "Network: with other roles, sent and received", PACE__RATE},
    {PACE__MEASURE_INTERFACE, "interface", "Network interfaces, by host, all but loopback", PACE__RATE},
    {PACE__MEASURE_DISK, "disk", "Disk, read and written", PACE__RATE},
    {PACE__MEASURE_ROWS, "rows", "Rows a second, by worker: their shares", PACE__COUNT},
    {PACE__MEASURE_ROW_WORK, "work", "Reading and computing for a row, by worker", PACE__SECONDS},
};

/* The lines of the roles that are shown. */
typedef struct lines {
    pace__point *points[PACE__SHOWN_ROLES];
    size_t counts[PACE__SHOWN_ROLES], longest;
} lines;

static void find_lines(const pace__page_run *run, pace__measure measure, lines *found)
{
    *found = (lines){0};
    for (size_t i = 0; i < run->shown_count; i++) {
        const pace__seen_role *role = &run->history->roles[run->shown[i]];

        found->points[i] = malloc((role->count + 1) * sizeof *found->points[i]);
        if (found->points[i])
            found->counts[i] = pace__role_line(role, measure, found->points[i]);
        found->longest = found->counts[i] > found->longest ? found->counts[i] : found->longest;
    }
}

/* What was last said by then; NAN: nothing yet. */
static double value_at(const lines *from, size_t line, double t)
{
    double value = NAN;

    for (size_t i = 0; i < from->counts[line] && from->points[line][i].x <= t; i++)
        value = from->points[line][i].y;
    return value;
}

static void put_moments(FILE *out, const pace__page_run *run, const measured *what)
{
    const char *headings[PACE__SHOWN_ROLES + 2] = {">Time"};
    char names[PACE__SHOWN_ROLES][PACE__ROLE_TEXT + 1];
    size_t rows;
    lines found;

    find_lines(run, what->measure, &found);
    for (size_t i = 0; i < run->shown_count; i++) {
        snprintf(names[i], sizeof names[i], ">%s", run->history->roles[run->shown[i]].name);
        headings[i + 1] = names[i];
    }
    rows = at_most(found.longest, MOMENTS);
    pace__table_begin(out, headings);
    for (size_t row = 0; row < rows; row++) {
        double t = run->history->last_t * (double)(row + 1) / (double)rows;

        pace__row_begin(out);
        pace__put_cell_amount(out, t, PACE__SECONDS);
        for (size_t i = 0; i < run->shown_count; i++)
            pace__put_cell_amount(out, value_at(&found, i, t), what->unit);
        pace__row_end(out);
    }
    pace__table_end(out);
    for (size_t i = 0; i < run->shown_count; i++)
        free(found.points[i]);
}

void pace__page_put_usage(FILE *out, const pace__page_run *run, size_t index)
{
    fputs("<h3>What each role used</h3>\n", out);
    if (!has_rates(run->history)) {
        fputs("<p>Roles are sampled once a second: there are too few samples to draw.</p>\n", out);
    } else {
        fputs("<div class=\"charts\">\n", out);
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            pace__figure_begin(out, all[i].chart, (int)index, all[i].title);
            pace__figure_table(out);
            put_moments(out, run, &all[i]);
            pace__figure_end(out);
        }
        fputs("</div>\n", out);
    }
    put_totals(out, run->history);
}
