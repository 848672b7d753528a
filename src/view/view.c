#include "view/view.h"

#include "verdict/facts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- one role --- */

static double over(double amount, double by)
{
    return by > 0 ? amount / by : NAN;
}

/* When the start began that a sample belongs to, in the time of the records. */
static double start_of(const pace__history *history, const pace__sample *sample)
{
    unsigned start = 0;

    for (size_t i = 0; i < history->mark_count; i++) {
        if (history->mark[i].kind == PACE__MARK_START && start++ == sample->start)
            return history->mark[i].t;
    }
    return 0;
}

/* What the kernel counts begins with the process, not with training: without an earlier sample it is no rate. Its time goes
 * on behind the last step, while `seconds` stands still. */
static void fill_usage(const pace__sample *since, const pace__sample *earlier, pace__role_view *view)
{
    double passed_s = earlier ? fmax(since->seconds, since->t - earlier->t) : 0;

    view->cores = over(since->user_s + since->system_s, passed_s);
    view->disk_read_per_s = over(since->read_bytes, passed_s);
    view->disk_write_per_s = over(since->write_bytes, passed_s);
}

void pace__view_between(const pace__history *history, const pace__sample *later, const pace__sample *earlier,
                        pace__role_view *view)
{
    pace__sample since = pace__sample_since(later, earlier);
    const pace__sample *before = earlier && earlier->start == later->start ? earlier : NULL;
    double passed_s = later->t - (before ? before->t : start_of(history, later));
    /* Training may have ended in between; then nothing is done, in all of the time that passed. */
    double trained_s = since.seconds > 0 ? since.seconds : passed_s;
    double split_s = since.data_s + since.compute_s + since.communicate_s + since.still_s + since.wait_s;

    fill_usage(&since, before, view);
    view->recent_rows = since.rows;
    view->rows_per_s = over(since.rows, trained_s);
    view->sent_per_s = over(since.own_sent_bytes, trained_s);
    view->received_per_s = over(since.own_received_bytes, trained_s);
    view->data = over(since.data_s, split_s);
    view->compute = over(since.compute_s, split_s);
    view->communicate = over(since.communicate_s, split_s);
    view->still = over(since.still_s, split_s);
    view->wait = over(since.wait_s, split_s);
    view->queue = over(since.requests, since.looks);
    view->staleness = over(since.stale_pushes, since.pushes);
}

/* Between its last two samples of this start; 0: there is one. */
static double usual_gap_s(const pace__seen_role *role)
{
    const pace__sample *newest = &role->samples[role->count - 1];

    return role->count > 1 && newest[-1].start == newest->start ? newest->t - newest[-1].t : 0;
}

/* The newest sample that is at least `recent_s` older, of the same start; or else the oldest of it that is older at all;
 * NULL: there is none. */
static const pace__sample *earlier_than(const pace__seen_role *role, double recent_s)
{
    const pace__sample *newest = &role->samples[role->count - 1], *found = NULL;

    for (const pace__sample *sample = newest; sample-- > role->samples && sample->start == newest->start;) {
        if (sample->seconds < newest->seconds || sample->t < newest->t)
            found = sample;
        if (newest->t - sample->t >= recent_s)
            break;
    }
    return found;
}

/* A role whose next sample is late by so much has done nothing since, as far as anybody knows. */
static void fade(pace__role_view *view, double recent_s, double late_s)
{
    double share = fmin(1, fmax(0, 1 - late_s / recent_s));

    view->recent_rows *= share;
    view->rows_per_s *= share;
    view->cores *= share;
    view->sent_per_s *= share;
    view->received_per_s *= share;
    view->disk_read_per_s *= share;
    view->disk_write_per_s *= share;
}

static bool has_spoken(const pace__history *history, const pace__seen_role *role)
{
    unsigned start = history->starts ? history->starts - 1 : 0;

    return role->count > 0 && role->samples[role->count - 1].start == start;
}

static void view_role(const pace__history *history, const pace__seen_role *role, double recent_s,
                      pace__role_view *view)
{
    *view = (pace__role_view){.name = role->name,
                              .host = role->host,
                              .waits_for = -1,
                              .silent_s = NAN,
                              .rows_per_s = NAN,
                              .row_share = NAN,
                              .cores = NAN,
                              .sent_per_s = NAN,
                              .received_per_s = NAN,
                              .disk_read_per_s = NAN,
                              .disk_write_per_s = NAN,
                              .data = NAN,
                              .compute = NAN,
                              .communicate = NAN,
                              .still = NAN,
                              .wait = NAN,
                              .queue = NAN,
                              .staleness = NAN};
    if (!has_spoken(history, role))
        return;
    view->is_known = true;
    view->newest = role->samples[role->count - 1];
    view->silent_s = history->last_t - view->newest.t;
    view->is_silent = view->silent_s > fmax(PACE__VIEW_SILENT_S, 2 * usual_gap_s(role));
    const pace__sample *earlier = earlier_than(role, recent_s);
    bool is_whole =
        !earlier || view->newest.t - earlier->t < recent_s; /* nothing of this start is left out */

    pace__view_between(history, &view->newest, is_whole ? NULL : earlier, view);
    if (is_whole && earlier) {
        pace__sample since = pace__sample_since(&view->newest, earlier);

        fill_usage(&since, earlier, view);
    }
    fade(view, recent_s, view->silent_s - usual_gap_s(role));
    /* Of a whole start, as the summary decides it. */
    int longest = isinf(recent_s) ? view->newest.waited_for : view->newest.waits_for;

    view->waits_for = view->wait > 0 ? longest : -1;
}

/* --- all of them --- */

/* Those that have no rows have no share; if nobody has any now, the rows so far are shared. */
static void share_rows(pace__view *view)
{
    double rates = 0, rows = 0, recent = 0;

    for (size_t i = 0; i < view->role_count; i++) {
        rates += view->roles[i].rows_per_s > 0 ? view->roles[i].rows_per_s : 0;
        rows += view->roles[i].newest.rows;
        recent += view->roles[i].recent_rows;
    }
    for (size_t i = 0; i < view->role_count; i++) {
        pace__role_view *role = &view->roles[i];

        if (role->newest.rows > 0)
            role->row_share = recent > 0 ? over(role->recent_rows, recent) : over(role->newest.rows, rows);
    }
    view->rows_per_s = view->role_count ? rates : NAN;
}

static const pace__mark *last_start(const pace__history *history)
{
    for (size_t i = history->mark_count; i-- > 0;) {
        if (history->mark[i].kind == PACE__MARK_START)
            return &history->mark[i];
    }
    return NULL;
}

static double batch_of(const pace__history *history)
{
    const char *batch = pace__history_setting(history, "batch");

    return batch ? strtod(batch, NULL) : 0;
}

/* Records of steps may be minutes apart; samples are not. */
static void find_position(pace__view *view)
{
    const pace__mark *start = last_start(view->history);
    double rows = 0, batch = batch_of(view->history);

    view->newest = view->history->step_count ? &view->history->step[view->history->step_count - 1] : NULL;
    view->step = view->newest ? view->newest->step : 0;
    if (start && start->step > view->step)
        view->step = start->step;
    view->position = (double)view->step;
    for (size_t i = 0; i < view->role_count; i++)
        rows += view->roles[i].newest.rows;
    if (start && batch > 0)
        view->position = fmax(view->position, (double)start->step + floor(rows / batch));
    if (view->steps > 0)
        view->position = fmin(view->position, (double)view->steps);
}

/* By the rows of the last minute, stalls included. */
static void find_left(pace__view *view)
{
    double rows = 0, batch = batch_of(view->history), left = (double)view->steps - view->position;

    view->left_s = NAN;
    if (view->standing != PACE__STANDS_RUNNING || view->steps == 0)
        return;
    for (size_t i = 0; i < view->role_count; i++) {
        pace__role_view minute;

        view_role(view->history, &view->history->roles[i], PACE__VIEW_VERDICT_S, &minute);
        rows += minute.rows_per_s > 0 ? minute.rows_per_s : 0;
    }
    if (left <= 0)
        view->left_s = 0;
    else if (rows > 0 && batch > 0)
        view->left_s = left * batch / rows;
}

bool pace__view_make(const pace__history *history, pace__view *view)
{
    bool goes_on = history->standing == PACE__STANDS_RUNNING;

    *view = (pace__view){.history = history, .standing = history->standing, .steps = history->steps};
    view->roles = calloc(history->role_count ? history->role_count : 1, sizeof *view->roles);
    if (!view->roles)
        return false;
    for (; view->role_count < history->role_count; view->role_count++)
        view_role(history, &history->roles[view->role_count], goes_on ? PACE__VIEW_RECENT_S : INFINITY,
                  &view->roles[view->role_count]);
    share_rows(view);
    find_position(view);
    find_left(view);
    view->scored = history->eval_count ? &history->eval[history->eval_count - 1] : NULL;
    pace__verdict_from(history, goes_on ? fmax(0, history->last_t - PACE__VIEW_VERDICT_S) : 0,
                       &view->verdict);
    return true;
}

void pace__view_release(pace__view *view)
{
    free(view->roles);
    view->roles = NULL;
}

size_t pace__view_losses(const pace__history *history, size_t count, double *losses)
{
    size_t records = history->step_count, shown = records < count ? records : count;

    for (size_t i = 0; i < shown; i++) {
        size_t from = i * records / shown, to = (i + 1) * records / shown, finite = 0;
        double sum = 0;

        for (size_t j = from; j < to; j++) {
            if (isfinite(history->step[j].loss)) {
                sum += history->step[j].loss;
                finite++;
            }
        }
        losses[i] = finite ? sum / (double)finite : NAN;
    }
    return shown;
}
