/* The progress line: what is left is judged by the time in which the work moved, and a line is never cut. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "progress.h"

#include "support.h"

#define TOTAL 100000

typedef struct watcher {
    cli_console console;
    cli_progress progress;
} watcher;

static void open_watcher(watcher *self)
{
    cli_console_init(&self->console);
    self->console.terminal =
        true; /* so that nothing is written as a line; the live one goes to standard error */
    cli_progress_init(&self->progress, &self->console);
}

static void tell_more(watcher *self, const char *phase, double seconds, int before, int done, double still_s)
{
    pace_field fields[] = {PACE_TEXT("phase", phase),     PACE_INT("done", done),
                           PACE_INT("total", TOTAL),      PACE_TEXT("unit", "rows"),
                           PACE_REAL("still_s", still_s), PACE_REAL("loss", 0.4512),
                           PACE_INT("before", before)};

    cli_progress_record(&self->progress, &(pace_record){"progress", seconds, fields, 7});
}

static void tell(watcher *self, const char *phase, double seconds, int done, double still_s)
{
    tell_more(self, phase, seconds, 0, done, still_s);
}

/* A thousand rows a second; returns the next row. */
static int go_on(watcher *self, double from_s, int seconds, int done, double still_s)
{
    for (int i = 0; i < seconds; i++, done += 1000)
        tell(self, "train", from_s + i, done, still_s);
    return done;
}

static void assert_rate(const watcher *self, double rate)
{
    double found = self->progress.phases[0].rate;

    if (found < 0.99 * rate || found > 1.01 * rate)
        fail_msg("%g rows a second instead of %g", found, rate);
}

static void scores_and_checkpoints_do_not_count(void **state)
{
    watcher self;

    (void)state;
    open_watcher(&self);
    int done = go_on(&self, 0, 10, 0, 0);

    assert_rate(&self, 1000);
    tell(&self, "score", 20, 500, 0);
    go_on(&self, 40, 2, done, 30); /* stood still for 30 of 31 seconds */
    assert_rate(&self, 1000);
}

static void what_was_done_before_does_not_count(void **state)
{
    watcher self;

    (void)state;
    open_watcher(&self);
    go_on(&self, 5, 3, 50000, 0);
    assert_rate(&self, 1000);
}

/* The first rows wait for cold files, the others come fifty times as fast: what is left is judged by these. */
static void a_slow_beginning_does_not_count(void **state)
{
    char line[CLI_LINE_MAX];
    watcher self;

    (void)state;
    open_watcher(&self);
    for (int i = 0; i <= 10; i++)
        tell(&self, "train", 0.1 * i, i < 2 ? 100 * i : 5000 * (i - 1), 0);
    assert_rate(&self, 50000);
    cli_progress_line(&self.progress.phases[0], 60, line);
    assert_string_equal(line, "train   45 %  45 k of 100 k rows  49.9 k rows/s  1 s left");
}

/* Started again at the very row that was last seen, or behind it. */
static void a_restart_does_not_count(void **state)
{
    watcher self;

    (void)state;
    open_watcher(&self);
    int done = go_on(&self, 0, 10, 0, 0);

    cli_progress_record(&self.progress, &(pace_record){"start", 60, NULL, 0});
    go_on(&self, 60, 3, done, 0);
    assert_rate(&self, 1000);
}

/* A step that takes long is told again and again: it is not slower for that. */
static void nothing_new_changes_nothing(void **state)
{
    watcher self;

    (void)state;
    open_watcher(&self);
    int done = go_on(&self, 0, 10, 0, 0);

    for (int i = 0; i < 4; i++)
        tell(&self, "train", 9.2 + 0.2 * i, done - 1000, 0);
    assert_rate(&self, 1000);
}

static bool ends_with(const char *line, const char *end)
{
    size_t length = strlen(line), size = strlen(end);

    return length >= size && strcmp(line + length - size, end) == 0;
}

static void what_does_not_fit_is_left_out(void **state)
{
    char line[CLI_LINE_MAX];
    watcher self;

    (void)state;
    open_watcher(&self);
    go_on(&self, 0, 43, 0, 0);
    for (int columns = 24; columns < 140; columns++) {
        cli_progress_line(&self.progress.phases[0], columns, line);
        if ((int)strlen(line) >= columns || !strstr(line, "train") || !strstr(line, " 42 %") ||
            !(ends_with(line, " s left") || ends_with(line, " loss 0.4512")))
            fail_msg("of %d columns: \"%s\"", columns, line);
    }
    cli_progress_line(&self.progress.phases[0], 60, line);
    assert_string_equal(line, "train   42 %  42 k of 100 k rows  1 k rows/s  58 s left");
}

/* The count, the time and the rate of one start. */
static void the_sum_of_a_resumed_run_adds_up(void **state)
{
    char line[CLI_LINE_MAX];
    watcher self;

    (void)state;
    open_watcher(&self);
    go_on(&self, 0, 11, 0, 0);
    cli_progress_sum(&self.progress.phases[0], line);
    assert_string_equal(line, "train  10,000 rows in 10.0 s, 1 k rows/s  loss 0.4512");
    cli_progress_record(&self.progress, &(pace_record){"start", 20, NULL, 0});
    for (int i = 0; i <= 10; i++)
        tell_more(&self, "train", 20 + i, 90000, 90000 + 1000 * i, 0);
    cli_progress_sum(&self.progress.phases[0], line);
    assert_string_equal(line, "train  10,000 of 100,000 rows in 10.0 s, 1 k rows/s  loss 0.4512");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_and_checkpoints_do_not_count),
        cmocka_unit_test(what_was_done_before_does_not_count),
        cmocka_unit_test(a_slow_beginning_does_not_count),
        cmocka_unit_test(the_sum_of_a_resumed_run_adds_up),
        cmocka_unit_test(a_restart_does_not_count),
        cmocka_unit_test(nothing_new_changes_nothing),
        cmocka_unit_test(what_does_not_fit_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
