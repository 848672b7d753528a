/* A run as lines of text: at several widths and heights, with many roles, with none, killed, damaged, gone. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support.h"
#include "top/line.h"

#include "made_runs.h"

#include <paceline/top.h>

#define TEXT_MAX (1 << 20)

static pace_top *look(const char *path)
{
    pace_top *top;

    assert_int_equal(pace_top_open(path, &said_log, &top), PACE_OK);
    return top;
}

/* All lines, each ended; and none is too wide, nor are there too many. */
static char *draw(pace_top *top, pace_top_size size)
{
    size_t count;
    const pace_top_line *lines = pace_top_draw(top, &size, &count);
    char *text = calloc(1, TEXT_MAX), *end = text;

    assert_non_null(lines);
    assert_non_null(text);
    assert_true(size.rows == 0 || count <= (size_t)size.rows);
    for (size_t i = 0; i < count; i++) {
        if (pace__text_columns(lines[i].text, true) > size.columns)
            fail_msg("more than %d columns: %s", size.columns, lines[i].text);
        for (const char *c = lines[i].text; *c; c++)
            assert_true((unsigned char)*c >= 0x20 && *c != 0x7f && (size.utf8 || (unsigned char)*c < 0x80));
        end += sprintf(end, "%s\n", lines[i].text);
    }
    return text;
}

static void expect(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in:\n%s", part, text);
}

static void expect_not(const char *text, const char *part)
{
    if (strstr(text, part))
        fail_msg("\"%s\" is in:\n%s", part, text);
}

static void put_job(made_run *run, int workers)
{
    char name[32];

    made_start(run, 0, 1000);
    for (int t = 1; t <= 20; t++) {
        for (int i = 0; i < workers; i++) {
            snprintf(name, sizeof name, i ? "worker%d" : "chief", i);
            made_sample(run, (made_state){.role = name,
                                          .waits_for = "ps0",
                                          .t = t,
                                          .rows = 100.0 * t,
                                          .compute_s = 0.29 * t,
                                          .wait_s = 0.71 * t,
                                          .cpu_s = 0.3 * t,
                                          .rss_bytes = 512 << 20});
            made_flow(run, t, name, "ps0", 1e6 * t, 2e6 * t);
        }
        made_sample(run, (made_state){.role = "ps0",
                                      .t = t,
                                      .communicate_s = 0.9 * t,
                                      .wait_s = 0.1 * t,
                                      .requests = 100.0 * t,
                                      .looks = 50.0 * t});
        made_step(run, t, (unsigned)t, 1.0 / t);
    }
    made_line(run, "{\"kind\":\"eval\",\"t\":20,\"step\":20,\"set\":\"test\",\"n\":100,\"logloss\":0.49123,"
                   "\"auc\":0.74706,"
                   "\"accuracy\":0.76819}");
}

static void columns_come_with_the_width(void **state)
{
    made_run run = made_begin(in(state, "run"));

    put_job(&run, 2);
    made_end(&run, PACE__RUN_INTERRUPTED);
    pace_top *top = look(run.path);
    static const int widths[] = {20, 60, 80, 120, 200, 500};
    char *text;

    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        text = draw(top, (pace_top_size){.columns = widths[i], .utf8 = true});
        expect(text, "chief");
        expect(text, "interrupted");
        free(text);
    }
    text = draw(top, (pace_top_size){.columns = 60, .utf8 = true});
    expect(text, "role    rows/s share   CPU  memory   net/s wait for\n");
    expect(text, "chief      100   50%   30%  512MiB 2.86MiB  71% ps0\n");
    expect(text, "step 40 of 1,000 (4 %), 200 rows/s"); /* by the rows of both */
    expect(text, "loss 0.05000 █");
    expect(text, "test at step 20: log-loss 0.49123 AUC 0.74706 accuracy\n0.76819\n");
    expect(text, "What would help:");
    expect_not(text, "sent/s");
    free(text);
    text = draw(top, (pace_top_size){.columns = 80, .utf8 = true});
    expect(text, "sent/s");
    expect_not(text, "net/s");
    expect_not(text, "host");
    free(text);
    text = draw(top, (pace_top_size){.columns = 200, .utf8 = true});
    expect(text, "queue");
    expect(text, "disk r/s");
    expect(text, "host");
    free(text);
    pace_top_close(top);
}

static void without_utf8_all_is_ascii(void **state)
{
    made_run run = made_begin(in(state, "r\u00fcn \u4e2d\x1b[2J"));

    put_job(&run, 1);
    made_end(&run, PACE__RUN_INTERRUPTED);
    pace_top *top = look(run.path);
    char *text = draw(top, (pace_top_size){.columns = 80});

    expect(text, "r?n ??[2J");
    expect(text, "loss 0.05000 ^");
    free(text);
    text = draw(top, (pace_top_size){.columns = 80, .utf8 = true});
    expect(text, "r\u00fcn \u4e2d?[2J");
    free(text);
    pace_top_close(top);
}

static void of_many_roles_some_are_shown(void **state)
{
    made_run run = made_begin(in(state, "run"));

    put_job(&run, 64);
    made_end(&run, PACE__RUN_RUNNING);
    pace_top *top = look(run.path);
    char *text = draw(top, (pace_top_size){.columns = 80, .rows = 24, .utf8 = true});

    expect(text, "killed");
    expect(text, "chief");
    expect(text, "roles 1 to");
    expect(text, "of 65");
    expect(text, "What would help:");
    expect_not(text, "worker63");
    free(text);
    text = draw(top, (pace_top_size){.columns = 80, .rows = 24, .first = 1000, .utf8 = true});
    assert_in_range(pace_top_first(top), 1, 64);
    expect(text, "worker63");
    expect(text, "to 65 of 65");
    expect_not(text, "chief  ");
    free(text);
    text = draw(top, (pace_top_size){.columns = 80, .utf8 = true});
    expect(text, "chief");
    expect(text, "worker63");
    expect_not(text, "roles 1 to");
    free(text);
    text = draw(top, (pace_top_size){.columns = 60, .rows = 16, .utf8 = true});
    expect(text, "worker5"); /* before all of the words below */
    free(text);
    for (int rows = 1; rows < 30; rows++) {
        text = draw(top, (pace_top_size){.columns = 60, .rows = rows, .utf8 = true});
        expect(text, "killed");
        free(text);
    }
    pace_top_close(top);
}

static void a_run_without_steps_says_so(void **state)
{
    made_run run = made_begin(in(state, "run"));

    made_end(&run, PACE__RUN_FAILED);
    pace_top *top = look(run.path);
    char *text = draw(top, (pace_top_size){.columns = 80, .utf8 = true});

    expect(text, "failed");
    expect(text, "no steps yet");
    free(text);
    pace_top_close(top);
}

static void what_is_missing_is_named(void **state)
{
    made_run run = made_begin(in(state, "run"));
    char path[600];

    put_job(&run, 1);
    made_line(&run, "{\"kind\":\"sam");
    made_end(&run, PACE__RUN_DONE);
    snprintf(path, sizeof path, "%s/config.yaml", run.path);
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof path, "%s/state.json", run.path);
    FILE *file = fopen(path, "w");

    fputs("{\"incarnation\": ", file);
    fclose(file);
    pace_top *top = look(run.path);
    char *text = draw(top, (pace_top_size){.columns = 80, .utf8 = true});

    expect(text, "unknown");
    expect(text, "Missing: ");
    expect(text, "config.yaml");
    expect(text, "state.json");
    expect(text, "1 lines of metrics.jsonl");
    expect(text, "chief");
    free(text);
    pace_top_close(top);
}

static void one_looks_while_it_goes_on_ends_and_goes_away(void **state)
{
    made_run run = made_begin(in(state, "run"));

    made_hold(&run);
    made_standing(&run, PACE__RUN_RUNNING);
    made_start(&run, 0, 1000);
    pace_top *top = look(run.path);
    char *text = draw(top, (pace_top_size){.columns = 80, .utf8 = true});

    expect(text, "running");
    free(text);
    put_job(&run, 1);
    pace_top_update(top);
    text = draw(top, (pace_top_size){.columns = 80, .utf8 = true});
    expect(text, "step 20 of 1,000");
    expect(text, "left");
    free(text);
    made_end(&run, PACE__RUN_DONE);
    pace_top_update(top);
    text = draw(top, (pace_top_size){.columns = 80, .utf8 = true});
    expect(text, "done");
    expect_not(text, "left");
    free(text);
    assert_int_equal(pace__remove_tree(run.path, NULL), PACE_OK);
    pace_top_update(top);
    text = draw(top, (pace_top_size){.columns = 80, .utf8 = true});
    expect(text, "gone");
    expect(text, "chief");
    expect_not(text, "Missing");
    free(text);
    pace_top_close(top);
}

static void what_is_no_run_is_refused(void **state)
{
    pace_top *top;

    said[0] = '\0';
    assert_int_equal(pace_top_open(in(state, "none"), &said_log, &top), PACE_NO_INPUT);
    expect(said, "none: ");
    assert_int_equal(pace_top_open(in(state, ""), &said_log, &top), PACE_NO_INPUT);
    expect(said, "is no run directory");
}

static void amounts_are_short(void **state)
{
    char text[PACE__AMOUNT_TEXT];

    (void)state;
    assert_string_equal(pace__text_count(1070000, text), "1.07M");
    assert_string_equal(pace__text_count(NAN, text), "-");
    assert_string_equal(pace__text_bytes(1023.9, text), "1.00KiB");
    assert_string_equal(pace__text_bytes(512 << 20, text), "512MiB");
    assert_string_equal(pace__text_percent(0.714, text), "71%");
    assert_string_equal(pace__text_seconds(3723, text), "1:02:03 h");
    assert_string_equal(pace__text_whole(1234567, text), "1,234,567");
    assert_int_equal(pace__text_wrap("one two three", 9, true), 7);
    assert_int_equal(pace__text_wrap("one", 9, true), 3);
    assert_int_equal(pace__text_wrap("abcdefgh", 3, true), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(columns_come_with_the_width, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(without_utf8_all_is_ascii, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(of_many_roles_some_are_shown, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(a_run_without_steps_says_so, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(what_is_missing_is_named, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(one_looks_while_it_goes_on_ends_and_goes_away, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(what_is_no_run_is_refused, make_directory, remove_directory),
        cmocka_unit_test(amounts_are_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
