/* What is said of one run alone besides its roles: what happened to it, its profile, its options. */
#include "report/markup.h"
#include "report/page.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>

#define PROFILE_GROUPS_MAX 8

/* --- what happened --- */

static void put_mark(FILE *out, const pace__mark *mark, size_t starts)
{
    char text[160], amount[PACE__AMOUNT_TEXT], bytes[PACE__AMOUNT_TEXT];

    if (mark->kind == PACE__MARK_CHECKPOINT)
        snprintf(text, sizeof text, "checkpoint of %s; training stood still for %s",
                 pace__amount(mark->bytes, PACE__BYTES, bytes),
                 pace__amount(mark->amount, PACE__SECONDS, amount));
    else if (mark->kind == PACE__MARK_START)
        snprintf(text, sizeof text, "%s%s%s", starts > 1 ? "started again" : "started",
                 mark->kernels[0] ? ", with kernels " : "", mark->kernels);
    else
        snprintf(text, sizeof text, "from here on, samples are kept every %s s",
                 pace__amount(mark->amount, PACE__COUNT, amount));
    pace__row_begin(out);
    pace__put_cell_amount(out, mark->t, PACE__SECONDS);
    pace__put_cell_amount(out, mark->kind == PACE__MARK_THINNED ? NAN : (double)mark->step, PACE__COUNT);
    pace__put_cell(out, text);
    pace__row_end(out);
}

/* When the records first tell of that step, or of one behind it. */
static double time_of(const pace__history *history, uint64_t step)
{
    for (size_t i = 0; i < history->step_count; i++) {
        if (history->step[i].step >= step)
            return history->step[i].t;
    }
    return NAN;
}

/* One division: "the last of 37 changes of shares: 29 7 28 rows". */
static void put_division(FILE *out, const pace__page_run *run, size_t index, const char *which)
{
    const pace__divisions *all = &run->divisions;
    const uint32_t *rows = all->rows + index * all->workers;
    char text[256];
    size_t used = (size_t)snprintf(text, sizeof text, "%s:", which);

    for (unsigned i = 0; i < all->workers && used < sizeof text - 32; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, " %" PRIu32, rows[i]);
    snprintf(text + used, sizeof text - used, "%s rows", used < sizeof text - 32 ? "" : " ...");
    pace__row_begin(out);
    pace__put_cell_amount(out, time_of(run->history, all->from[index]), PACE__SECONDS);
    pace__put_cell_amount(out, (double)all->from[index], PACE__COUNT);
    pace__put_cell(out, text);
    pace__row_end(out);
}

/* There may be thousands: the first, the one that promised most, the last. */
static void put_changes(FILE *out, const pace__page_run *run)
{
    size_t changes = run->divisions.count - 1, best = 0;
    char which[96];

    for (size_t i = 1; i <= changes; i++)
        best = run->divisions.from[i] == run->shares.gain_from ? i : best;
    snprintf(which, sizeof which, "the first of %zu changes of shares", changes);
    put_division(out, run, 1, changes > 1 ? which : "the shares changed");
    snprintf(which, sizeof which, "the change that was to bring most, steps %.0f %% shorter",
             100 * run->shares.gain);
    if (best > 0 && run->shares.gain > 0)
        put_division(out, run, best, which);
    if (changes > 1)
        put_division(out, run, changes, "the last change of shares");
}

/* Starts and thinning all, checkpoints evenly. */
void pace__page_put_events(FILE *out, const pace__page_run *run)
{
    static const char *const headings[] = {">Time", ">Step", "What", NULL};
    const pace__history *history = run->history;
    size_t starts = 0, every = history->mark_count / PACE__TABLE_ROWS + 1, rows = 0;

    if (history->mark_count == 0 && run->divisions.count < 2 && !run->shares_lack)
        return;
    fputs("<h3>What happened</h3>\n", out);
    if (run->shares_lack) {
        fputs("<p class=\"lack\">", out);
        pace__text(out, run->shares_lack);
        fputs("</p>\n", out);
    }
    if (every > 1)
        fprintf(out, "<p>One checkpoint in %zu is listed.</p>\n", every);
    fprintf(out, "<details class=\"numbers\"><summary>Starts and checkpoints%s</summary>\n",
            run->divisions.count > 1 ? ", shares of the workers" : "");
    pace__table_begin(out, headings);
    for (size_t i = 0; i < history->mark_count && rows < 2 * PACE__TABLE_ROWS; i++) {
        const pace__mark *mark = &history->mark[i];

        starts += mark->kind == PACE__MARK_START;
        if (mark->kind == PACE__MARK_CHECKPOINT && i % every != 0)
            continue;
        put_mark(out, mark, starts);
        rows++;
    }
    if (run->divisions.count > 1)
        put_changes(out, run);
    pace__table_end(out);
    fputs("</details>\n", out);
}

/* --- the profile: whatever it has --- */

static double member_number(const cJSON *object, const char *name)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, name);

    return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

static void put_op(FILE *out, const cJSON *op)
{
    pace__row_begin(out);
    pace__put_cell(out, cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(op, "op")));
    pace__put_cell(out, cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(op, "shape")));
    pace__put_cell_amount(out, member_number(op, "calls"), PACE__COUNT);
    pace__put_cell_amount(out, member_number(op, "total_s"), PACE__SECONDS);
    pace__put_cell_amount(out, member_number(op, "share"), PACE__SHARE);
    pace__put_cell_amount(out, member_number(op, "gflops"), PACE__REAL);
    pace__put_cell_amount(out, member_number(op, "gbytes_s"), PACE__REAL);
    pace__put_cell_amount(out, member_number(op, "of_peak"), PACE__SHARE);
    pace__row_end(out);
}

/* The threads of one kind of role. */
static void put_group(FILE *out, const cJSON *group)
{
    static const char *const headings[] = {"Operation", "Shape",    ">Calls", ">Time",
                                           ">Share",    ">GFLOP/s", ">GB/s",  ">Of the machine's peak",
                                           NULL};
    const cJSON *ops = cJSON_GetObjectItemCaseSensitive(group, "ops"), *op;
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(group, "group"));
    int rows = 0;

    fputs("<h4>", out);
    pace__text(out, name ? name : "threads");
    fputs("</h4>\n", out);
    pace__table_begin(out, headings);
    cJSON_ArrayForEach(op, ops)
    {
        if (rows++ == PACE__TABLE_ROWS)
            break;
        put_op(out, op);
    }
    pace__table_end(out);
    if (cJSON_GetArraySize(ops) > PACE__TABLE_ROWS)
        fprintf(out, "<p>The first %d of %d.</p>\n", PACE__TABLE_ROWS, cJSON_GetArraySize(ops));
}

/* It may be of an earlier start of the run. */
static void put_profiled_steps(FILE *out, const cJSON *profile)
{
    double first = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(profile, "first_step")),
           end = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(profile, "end_step"));
    char from[PACE__AMOUNT_TEXT], to[PACE__AMOUNT_TEXT];

    if (first >= 0 && end > first)
        fprintf(out, "<p>Of steps %s to %s.</p>\n", pace__amount(first, PACE__COUNT, from),
                pace__amount(end - 1, PACE__COUNT, to));
}

/* watch/ops.h says what it holds. */
void pace__page_put_profile(FILE *out, const pace__page_run *run)
{
    const cJSON *groups = cJSON_GetObjectItemCaseSensitive(run->profile, "groups"), *group;
    int shown = 0;

    if (!run->profile)
        return;
    fputs("<h3>Profile</h3>\n", out);
    put_profiled_steps(out, run->profile);
    if (!cJSON_IsArray(groups)) {
        fputs("<p class=\"lack\">profile/ops.json has no operations.</p>\n", out);
        return;
    }
    cJSON_ArrayForEach(group, groups)
    {
        if (shown++ == PROFILE_GROUPS_MAX)
            break;
        put_group(out, group);
    }
}

/* --- options --- */

void pace__page_put_settings(FILE *out, const pace__page_run *run)
{
    static const char *const headings[] = {"Option", "Value", NULL};
    const pace__history *history = run->history;

    if (history->setting_count == 0) {
        fputs("<p class=\"lack\">Its options are not known.</p>\n", out);
        return;
    }
    fputs("<details class=\"numbers\"><summary>All options</summary>\n", out);
    pace__table_begin(out, headings);
    for (size_t i = 0; i < history->setting_count; i++) {
        pace__row_begin(out);
        pace__put_cell(out, history->settings[i].name);
        pace__put_cell(out, history->settings[i].value);
        pace__row_end(out);
    }
    pace__table_end(out);
    fputs("</details>\n", out);
}
