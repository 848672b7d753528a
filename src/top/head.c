/* Above the table: which run, how far it is, how it does. */
#include "top/screen.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define QUIET_S   10.0 /* a run that goes on, and says nothing for so long, is said to be quiet */
#define SPARK_MAX 120
#define ROOMY     70 /* columns in which all of the progress fits */

static pace__line begin_line(const pace_top_size *size)
{
    return (pace__line){.columns_max = size->columns, .is_utf8 = size->utf8};
}

/* What is to be wrapped, not cut. */
static pace__line begin_wide(const pace_top_size *size)
{
    return (pace__line){.columns_max = PACE__LINE_COLUMNS_MAX, .is_utf8 = size->utf8};
}

/* --- which run --- */

static void describe_standing(const pace__view *view, const pace__screen_news *news, char *text, size_t bytes)
{
    char time[PACE__AMOUNT_TEXT], quiet[PACE__AMOUNT_TEXT];
    int used = snprintf(text, bytes, "%s", news->is_gone ? "gone" : pace__standing_name(view->standing));

    if (view->history->last_t > 0)
        used += snprintf(text + used, bytes - (size_t)used, ", %s",
                         pace__text_seconds(view->history->last_t, time));
    if (view->history->starts > 1)
        used += snprintf(text + used, bytes - (size_t)used, ", start %u", view->history->starts);
    if (view->standing == PACE__STANDS_RUNNING && !news->is_gone && news->quiet_s >= QUIET_S)
        snprintf(text + used, bytes - (size_t)used, ", nothing new for %s",
                 pace__text_seconds(news->quiet_s, quiet));
}

static pace_top_style style_of(const pace__view *view, const pace__screen_news *news)
{
    if (news->is_gone)
        return PACE_TOP_BAD;
    switch (view->standing) {
    case PACE__STANDS_RUNNING:
    case PACE__STANDS_DONE:
        return PACE_TOP_GOOD;
    case PACE__STANDS_KILLED:
    case PACE__STANDS_FAILED:
        return PACE_TOP_BAD;
    default:
        return PACE_TOP_TITLE;
    }
}

/* The end of a long path tells more than its beginning. */
static const char *end_of_path(const char *path, int columns, bool is_utf8)
{
    while (*path && pace__text_columns(path, is_utf8) > columns)
        path++;
    return path;
}

/* The name to the left, how it stands to the right, which is never cut. */
static void draw_title(pace__screen *screen, const pace__view *view, const pace__screen_news *news,
                       const pace_top_size *size)
{
    pace__line line = begin_line(size);
    char standing[160];

    describe_standing(view, news, standing, sizeof standing);
    int right = pace__text_columns(standing, size->utf8), left = size->columns - right - 2;

    if (left > 0)
        pace__line_put(&line, end_of_path(view->history->path, left, size->utf8));
    pace__line_pad(&line, size->columns - right);
    pace__line_put(&line, standing);
    pace__screen_add(screen, line.text, style_of(view, news));
}

static void draw_job(pace__screen *screen, const pace__view *view, const pace_top_size *size)
{
    static const struct {
        const char *name, *before, *behind;
    } settings[] = {{"model", "", ""}, {"mode", ", ", ""}, {"batch", ", batch ", ""}, {"data", ", on ", ""}};
    pace__line line = begin_line(size);

    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const char *value = pace__history_setting(view->history, settings[i].name);

        if (value)
            pace__line_format(&line, "%s%.200s%s", line.columns ? settings[i].before : "", value,
                              settings[i].behind);
    }
    if (line.columns)
        pace__screen_add(screen, line.text, PACE_TOP_FAINT);
}

/* --- how far --- */

static void draw_progress(pace__screen *screen, const pace__view *view, const pace_top_size *size)
{
    pace__line line = begin_wide(size);
    char at[PACE__AMOUNT_TEXT], all[PACE__AMOUNT_TEXT], text[PACE__AMOUNT_TEXT];

    if (!view->newest && view->position == 0 && view->steps == 0) {
        pace__screen_add(screen, "no steps yet", PACE_TOP_PLAIN);
        return;
    }
    pace__line_format(&line, "step %s", pace__text_whole(view->position, at));
    if (view->steps > 0)
        pace__line_format(&line, " of %s (%.0f %%)", pace__text_whole((double)view->steps, all),
                          floor(100 * view->position / (double)view->steps));
    if (view->newest && isfinite(view->newest->epoch) && size->columns >= ROOMY)
        pace__line_format(&line, view->newest->epoch < 100 ? ", epoch %.3g" : ", epoch %.0f",
                          view->newest->epoch);
    if (isfinite(view->rows_per_s))
        pace__line_format(&line, ", %s rows/s", pace__text_count(view->rows_per_s, text));
    if (isfinite(view->left_s))
        pace__line_format(&line, ", %s left", pace__text_seconds(view->left_s, text));
    pace__screen_wrap(screen, line.text, size, PACE_TOP_PLAIN);
}

/* --- how well --- */

/* From the lowest to the highest of all, in eight heights; ASCII has a few characters that look like heights. */
static void draw_spark(pace__line *line, const double *values, size_t count)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, *const plain[] = {
                                                                                      "_", "_", ".", ".",
                                                                                      "-", "-", "^", "^"};
    double low = INFINITY, high = -INFINITY;

    for (size_t i = 0; i < count; i++) {
        low = fmin(low, values[i]); /* which leave NAN aside */
        high = fmax(high, values[i]);
    }
    for (size_t i = 0; i < count; i++) {
        double height = high > low ? (values[i] - low) / (high - low) : 0;
        int level = (int)fmin(floor(8 * height), 7);

        if (!isfinite(values[i]))
            pace__line_put(line, " ");
        else
            pace__line_put(line, line->is_utf8 ? blocks[level] : plain[level]);
    }
}

static void draw_loss(pace__screen *screen, const pace__view *view, const pace_top_size *size)
{
    pace__line line = begin_line(size);
    double losses[SPARK_MAX];

    if (!view->newest)
        return;
    pace__line_format(&line, "loss %.5f ", view->newest->loss);
    int room = size->columns - line.columns;
    size_t count = pace__view_losses(view->history,
                                     (size_t)(room < 0           ? 0
                                              : room < SPARK_MAX ? room
                                                                 : SPARK_MAX),
                                     losses);

    draw_spark(&line, losses, count);
    pace__screen_add(screen, line.text, PACE_TOP_PLAIN);
}

static void draw_scores(pace__screen *screen, const pace__view *view, const pace_top_size *size)
{
    const pace__eval_record *scored = view->scored;
    pace__line line = begin_wide(size);
    char step[PACE__AMOUNT_TEXT];

    if (!scored)
        return;
    pace__line_format(&line, "%s at step %s:", pace__history_scored(view->history),
                      pace__text_whole((double)scored->step, step));
    if (isfinite(scored->logloss))
        pace__line_format(&line, " log-loss %.5f", scored->logloss);
    if (isfinite(scored->auc))
        pace__line_format(&line, " AUC %.5f", scored->auc);
    if (isfinite(scored->accuracy))
        pace__line_format(&line, " accuracy %.5f", scored->accuracy);
    pace__screen_wrap(screen, line.text, size, PACE_TOP_PLAIN);
}

void pace__head_draw(pace__screen *screen, const pace__view *view, const pace__screen_news *news,
                     const pace_top_size *size)
{
    draw_title(screen, view, news, size);
    draw_job(screen, view, size);
    draw_progress(screen, view, size);
    draw_loss(screen, view, size);
    draw_scores(screen, view, size);
}
