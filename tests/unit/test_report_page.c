/* The pure parts of a report, and pages of run directories that are whole, empty, damaged and hostile. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "report/compare.h"
#include "report/markup.h"
#include "report/page.h"
#include "report/report.h"
#include "report/thin.h"

#include "support.h"

#include <cjson/cJSON.h>
#include <paceline/report.h>

/* --- thinning --- */

static void few_points_all_stay(void **state)
{
    (void)state;
    const double values[] = {1, NAN, 3, INFINITY, 5};
    size_t kept[8];

    assert_int_equal(pace__thin(values, 5, 8, kept), 3);
    assert_int_equal(kept[0], 0);
    assert_int_equal(kept[1], 2);
    assert_int_equal(kept[2], 4);
    assert_int_equal(pace__thin(values, 0, 8, kept), 0);
}

static void what_sticks_out_stays(void **state)
{
    (void)state;
    enum { ALL = 100000, MOST = 500 };
    static double values[ALL];
    static size_t kept[MOST];
    bool high = false, low = false, none = false;

    for (size_t i = 0; i < ALL; i++)
        values[i] = (double)(i % 10);
    values[4321] = 1e6;
    values[77777] = -1e6;
    values[50000] = NAN;
    size_t count = pace__thin(values, ALL, MOST, kept);

    assert_true(count > MOST - 10 && count <= MOST);
    assert_int_equal(kept[0], 0);
    assert_int_equal(kept[count - 1], ALL - 1);
    for (size_t i = 0; i < count; i++) {
        assert_true(i == 0 || kept[i] > kept[i - 1]);
        high |= kept[i] == 4321;
        low |= kept[i] == 77777;
        none |= kept[i] == 50000;
    }
    assert_true(high && low && !none);
}

/* Every length around the limit, down to the smallest. */
static void any_length_fits(void **state)
{
    (void)state;
    double values[64];
    size_t kept[64];

    for (size_t i = 0; i < 64; i++)
        values[i] = (double)(i * 37 % 64);
    for (size_t count = 0; count <= 64; count++) {
        for (size_t most = 4; most <= 64; most++)
            assert_true(pace__thin(values, count, most, kept) <= most);
    }
}

/* --- texts and numbers --- */

static char *written(void (*write)(FILE *out, const char *text), const char *text)
{
    char *to;
    size_t size;
    FILE *out = open_memstream(&to, &size);

    write(out, text);
    fclose(out);
    return to;
}

static void assert_written(void (*write)(FILE *out, const char *text), const char *text, const char *expected)
{
    char *to = written(write, text);

    assert_string_equal(to, expected);
    free(to);
}

static void texts_mean_nothing(void **state)
{
    (void)state;
    assert_written(pace__text, "<script>alert(\"a & 'b'\")</script>",
                   "&lt;script&gt;alert(&quot;a &amp; &#39;b&#39;&quot;)&lt;/script&gt;");
    assert_written(pace__text, "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f");
    assert_written(pace__text, "\xff\x01<", "\xef\xbf\xbd\xef\xbf\xbd&lt;");
    assert_written(pace__json_text, "</script><!-- \" \\", "\"\\u003c/script>\\u003c!-- \\\" \\\\\"");
    assert_written(pace__json_text, "\xff", "\"\\ufffd\"");
}

static void assert_amount(double value, pace__unit unit, const char *expected)
{
    char text[PACE__AMOUNT_TEXT];

    assert_string_equal(pace__amount(value, unit, text), expected);
}

static void numbers_can_be_read(void **state)
{
    (void)state;
    assert_amount(0, PACE__COUNT, "0");
    assert_amount(999, PACE__COUNT, "999");
    assert_amount(1234567, PACE__COUNT, "1,234,567");
    assert_amount(-1234, PACE__COUNT, "-1,234");
    assert_amount(0.490541, PACE__REAL, "0.49054");
    assert_amount(0.0123, PACE__SECONDS, "12.3 ms");
    assert_amount(0.5, PACE__SECONDS, "0.50 s");
    assert_amount(75.25, PACE__SECONDS, "75.2 s");
    assert_amount(725, PACE__SECONDS, "12 min 05 s");
    assert_amount(7500, PACE__SECONDS, "2 h 05 min");
    assert_amount(0, PACE__BYTES, "0 B");
    assert_amount(999, PACE__BYTES, "999 B");
    assert_amount(12345678, PACE__BYTES, "12.3 MB");
    assert_amount(999999, PACE__BYTES, "1.00 MB");
    assert_amount(1.5e9, PACE__RATE, "1.50 GB/s");
    assert_amount(0.1234, PACE__SHARE, "12.3 %");
    assert_amount(1, PACE__SHARE, "100 %");
    assert_amount(0, PACE__SHARE, "0 %");
    assert_amount(NAN, PACE__COUNT, "\xe2\x80\x93");
    assert_amount(INFINITY, PACE__BYTES, "very large");
    assert_amount(-1e300, PACE__COUNT, "very small");
}

static void rows_of_a_table_are_spread(void **state)
{
    (void)state;
    assert_int_equal(pace__table_place(0, 1, 10), 9);
    assert_int_equal(pace__table_place(0, 3, 101), 0);
    assert_int_equal(pace__table_place(1, 3, 101), 50);
    assert_int_equal(pace__table_place(2, 3, 101), 100);
}

/* --- options that differ --- */

static pace__setting first_settings[] = {{"data", "set"}, {"run", "a"}, {"batch", "100"}, {"lr", "0.1"}},
                     second_settings[] = {
                         {"data", "set"}, {"run", "b"}, {"batch", "1000"}, {"lr", "0.1"}, {"cell", "gru"}};

static void options_that_differ_come_first(void **state)
{
    (void)state;
    pace__history first = {.settings = first_settings, .setting_count = 4},
                  second = {.settings = second_settings, .setting_count = 5}, *runs[] = {&first, &second};
    size_t count;
    pace__compared *rows = pace__compare_settings(runs, 2, &count);
    static const char *const names[] = {"batch", "cell", "data", "lr"};

    assert_int_equal(count, 4);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(rows[i].name, names[i]);
        assert_int_equal(rows[i].differs, i < 2);
    }
    free(rows);
    rows = pace__compare_settings(runs, 1, &count);
    assert_int_equal(count, 3);
    assert_false(rows[0].differs);
    free(rows);
    first.setting_count = 0;
    assert_null(pace__compare_settings(runs, 1, &count));
    assert_int_equal(count, 0);
}

/* --- roles --- */

static pace__sample sample_at(double t, unsigned start)
{
    double s = t - 10 * start;

    return (pace__sample){.t = t,
                          .seconds = s,
                          .data_s = 0.25 * s,
                          .compute_s = 0.5 * s,
                          .wait_s = 0.25 * s,
                          .user_s = 5 + s,
                          .rows = 100 * s,
                          .rss_bytes = 1000 + t,
                          .waits_for = -1,
                          .start = start};
}

/* Ten seconds, killed, ten more. */
static void lines_of_a_role_that_was_started_again(void **state)
{
    (void)state;
    pace__sample samples[20];
    pace__point points[20];
    pace__split splits[PACE__SPLIT_POINTS];
    pace__seen_role role = {.name = "chief", .samples = samples, .count = 20};

    for (unsigned i = 0; i < 20; i++)
        samples[i] = sample_at(i + 1, i / 10);
    assert_int_equal(pace__role_line(&role, PACE__MEASURE_CPU, points), 18);
    for (size_t i = 0; i < 18; i++)
        assert_true(fabs(points[i].y - 1) < 1e-9);
    assert_int_equal(pace__role_line(&role, PACE__MEASURE_MEMORY, points), 20);
    assert_int_equal(pace__role_splits(&role, splits), 20);
    for (size_t i = 0; i < 20; i++) {
        assert_true(fabs(splits[i].compute - 0.5) < 1e-9);
        assert_true(fabs(splits[i].data + splits[i].compute + splits[i].wait - 1) < 1e-9);
    }
    pace__sample total = pace__role_total(&role);

    assert_true(fabs(total.rows - 2000) < 1e-6 && fabs(total.seconds - 20) < 1e-9);
}

static void many_roles_are_few_lines(void **state)
{
    (void)state;
    enum { ROLES = 64 };
    pace__seen_role roles[ROLES] = {0};
    pace__sample samples[ROLES][3];
    pace__history history = {.roles = roles, .role_count = ROLES, .last_t = 3};
    pace__point points[PACE__SPLIT_POINTS];
    size_t shown[PACE__SHOWN_ROLES];

    for (size_t i = 0; i < ROLES; i++) {
        snprintf(roles[i].name, sizeof roles[i].name, i ? "worker%zu" : "chief", i);
        roles[i].samples = samples[i];
        roles[i].count = 3;
        for (unsigned j = 0; j < 3; j++) {
            samples[i][j] = sample_at(j + 1, 0);
            samples[i][j].user_s = (double)((i * 7) % ROLES) * (j + 1);
        }
    }
    assert_int_equal(pace__shown_roles(&history, shown), PACE__SHOWN_ROLES);
    assert_int_equal(shown[0], 0); /* the chief, however idle */
    for (size_t i = 1; i < PACE__SHOWN_ROLES; i++)
        assert_true(shown[i] > shown[i - 1] && (shown[i] * 7) % ROLES >= ROLES - PACE__SHOWN_ROLES);
    assert_int_equal(pace__others_line(&history, shown, PACE__SHOWN_ROLES, PACE__MEASURE_CPU, points), 2);
    assert_true(points[0].y > 0 && points[0].y < ROLES);
}

/* --- pages --- */

static void make_run(void **state, const char *name)
{
    char path[600];

    snprintf(path, sizeof path, "%s/logs", in(state, name));
    assert_ok(pace__make_dirs(path, &said_log));
    snprintf(path, sizeof path, "%s/logs/paceline.log", in(state, name));
    put_text(path, "");
}

static void put_file(void **state, const char *run, const char *name, const char *text)
{
    char path[600];

    snprintf(path, sizeof path, "%s/%s", in(state, run), name);
    put_text(path, text);
}

/* The page of these runs; to be freed. */
static char *page_of(void **state, const char *first, const char *second)
{
    pace__history *runs[2] = {0};
    pace__page page = {.runs = runs, .count = second ? 2 : 1};
    char *html = NULL;
    size_t size;

    assert_ok(pace__history_open(in(state, first), &said_log, &runs[0]));
    if (second)
        assert_ok(pace__history_open(in(state, second), &said_log, &runs[1]));
    assert_ok(pace__page_make(&page, &said_log, &html, &size));
    assert_int_equal(size, strlen(html));
    pace__history_close(runs[0]);
    pace__history_close(runs[1]);
    return html;
}

static void assert_in(const char *html, const char *part)
{
    if (!strstr(html, part))
        fail_msg("the page has no %s", part);
}

/* What the charts get, as JSON. */
static cJSON *data_of(const char *html)
{
    const char *begin = strstr(html, "id=\"data\">") + strlen("id=\"data\">"),
               *end = strstr(begin, "</script>");
    cJSON *data = cJSON_ParseWithLength(begin, (size_t)(end - begin));

    assert_non_null(data);
    return data;
}

static void an_empty_run_says_what_it_lacks(void **state)
{
    make_run(state, "empty");
    char *html = page_of(state, "empty", NULL);

    assert_in(html, "No step was recorded");
    assert_in(html, "nothing is known of steps and roles");
    assert_in(html, "There is no model yet");
    assert_in(html, "No role has reported");
    assert_in(html, "There is no verdict");
    cJSON_Delete(data_of(html));
    free(html);
}

#define STEPS                                                                                                \
    "{\"kind\":\"start\",\"t\":0,\"step\":0,\"steps\":100,\"kernels\":\"v4\"}\n"                             \
    "{\"kind\":\"step\",\"t\":1,\"step\":10,\"loss\":0.7,\"rows_per_s\":1000}\n"                             \
    "{\"kind\":\"sample\",\"t\":1,\"role\":\"chief\",\"seconds\":1,\"compute_s\":0.5,\"wait_s\":0.5,"        \
    "\"rows\":1000,\"user_s\":1}\n"

/* As a run leaves them: even at first. */
static void append_shares(void **state, const char *run, uint64_t from, uint32_t first, double gain)
{
    char path[600];

    snprintf(path, sizeof path, "%s/shares.jsonl", in(state, run));
    assert_ok(pace__shares_append(path, from, 2, (uint32_t[]){first, 64 - first}, gain, &said_log));
}

/* However many there are, a few lines. */
static void changes_of_shares_are_told(void **state)
{
    make_run(state, "shares");
    put_file(state, "shares", "metrics.jsonl", STEPS);
    append_shares(state, "shares", 0, 32, 0);
    char *html = page_of(state, "shares", NULL);

    assert_null(strstr(html, "shares of the workers"));
    free(html);
    append_shares(state, "shares", 6, 40, 0.25);
    html = page_of(state, "shares", NULL);
    assert_in(html, "the shares changed: 40 24 rows");
    assert_null(strstr(html, "the last change"));
    free(html);
    append_shares(state, "shares", 10, 51, 0.59);
    for (uint64_t from = 20; from < 300; from++)
        append_shares(state, "shares", from, (uint32_t)(from % 60), 0.04);
    html = page_of(state, "shares", NULL);
    assert_in(html, "Starts and checkpoints, shares of the workers");
    assert_in(html, "the first of 282 changes of shares: 40 24 rows");
    assert_in(html, "to bring most, steps 59 % shorter: 51 13 rows");
    assert_in(html, "the last change of shares: 59 5 rows");
    assert_null(strstr(html, ": 30 34 rows"));
    free(html);
    put_file(state, "shares", "shares.jsonl", "{\n"); /* damaged: the rest is shown */
    html = page_of(state, "shares", NULL);
    assert_in(html, "The shares of the workers cannot be read: ");
    assert_in(html, "Starts and checkpoints<");
    free(html);
}

/* Half a line, a line that is none, members of other types: the rest is shown. */
static void a_half_written_run_shows_the_rest(void **state)
{
    make_run(state, "half");
    put_file(state, "half", "metrics.jsonl",
             STEPS "garbage\n"
                   "{\"kind\":\"step\",\"t\":2,\"step\":\"x\",\"loss\":[],\"rows_per_s\":{}}\n"
                   "{\"kind\":\"start\",\"t\":2,\"step\":5,\"incarnation\":2,\"kernels\":\"v<3\"}\n"
                   "{\"kind\":\"checkpoint\",\"t\":3,\"step\":20,\"bytes\":1000,\"stall_s\":0.1}\n"
                   "{\"kind\":\"step\",\"t\":3,\"st");
    put_file(state, "half", "config.yaml", "model: logreg\nbatch: 100\n");
    put_file(state, "half", "summary.json", "{ not JSON");
    put_file(state, "half", "state.json", "{}");
    assert_ok(pace__make_dirs(in(state, "half/profile"), &said_log));
    put_file(state, "half", "profile/ops.json",
             "{\"groups\": [{\"ops\": [{\"op\": \"gemm<1>\", \"shape\": \"8x8\", \"calls\": 1234567}, 5, "
             "{\"share\": \"x\"}]}, 7]}");
    char *html = page_of(state, "half", NULL);
    cJSON *data = data_of(html), *run = cJSON_GetArrayItem(cJSON_GetObjectItem(data, "runs"), 0);

    assert_in(html, "1 lines of metrics.jsonl cannot be read");
    assert_in(html, "summary.json");
    assert_in(html, "gemm&lt;1&gt;");
    assert_in(html, "1,234,567");
    assert_in(html, "started again, with kernels v&lt;3");
    assert_in(html, "<dt>Kernels</dt><dd>v4, then v&lt;3</dd>");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(cJSON_GetObjectItem(run, "loss"), "y")), 1);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(run, "marks")), 2);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(run, "roles")), 1);
    cJSON_Delete(data);
    free(html);
}

/* Names, options and files that would like to be code. */
static void nothing_becomes_code(void **state)
{
    static const char evil[] = "<img src=x onerror=alert(1)>";

    make_run(state, evil);
    put_file(state, evil, "metrics.jsonl",
             STEPS "{\"kind\":\"sample\",\"t\":2,\"role\":\"<b>\",\"seconds\":1}\n");
    put_file(state, evil, "config.yaml",
             "model: \"</script><script>alert(2)</script>\"\ndata: <svg/onload=alert(3)>\n");
    assert_ok(pace__make_dirs(in(state, "<img src=x onerror=alert(1)>/profile"), &said_log));
    put_file(state, evil, "profile/ops.json",
             "{\"groups\": [{\"group\": \"</h4><script>\", \"ops\": [{\"op\": \"</td><script>\", \"shape\": "
             "\"\\u0000\\ud800\"}]}]}");
    char *html = page_of(state, evil, NULL);

    assert_null(strstr(html, "<img"));
    assert_null(strstr(html, "<script>alert"));
    assert_null(strstr(html, "<svg/onload"));
    assert_null(strstr(html, "</td><script>"));
    assert_in(html, "Content-Security-Policy");
    assert_in(html, "default-src 'none'");
    assert_null(strstr(html, "unsafe-inline"));
    cJSON *data = data_of(html);

    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(
                            cJSON_GetArrayItem(cJSON_GetObjectItem(data, "runs"), 0), "name")),
                        evil);
    cJSON_Delete(data);
    free(html);
}

static void two_runs_are_compared(void **state)
{
    make_run(state, "one");
    make_run(state, "two");
    put_file(state, "one", "metrics.jsonl", STEPS);
    put_file(state, "two", "metrics.jsonl", STEPS);
    put_file(state, "one", "config.yaml", "model: logreg\nbatch: 100\nrun: one\n");
    put_file(state, "two", "config.yaml", "model: logreg\nbatch: 1000\nrun: two\n");
    char *html = page_of(state, "one", "two"), *again = page_of(state, "one", "two");

    assert_string_equal(html, again);
    assert_in(html, "<h1>2 runs</h1>");
    assert_in(html, "<tr><td>batch</td><td>100</td><td>1000</td></tr>");
    assert_null(strstr(html, "<tr><td>model</td><td>logreg</td><td>logreg</td></tr>"));
    free(again);
    free(html);
}

/* RUN/report.html: a link in its place is replaced, not followed; another file is replaced, too. */
static void a_planted_link_is_not_followed(void **state)
{
    struct stat info;

    make_run(state, "run");
    put_text(in(state, "precious"), "precious");
    assert_int_equal(symlink(in(state, "precious"), in(state, "run/report.html")), 0);
    assert_ok(pace__report_leave(in(state, "run"), &said_log));
    assert_int_equal(lstat(in(state, "run/report.html"), &info), 0);
    assert_true(S_ISREG(info.st_mode));
    assert_int_equal(stat(in(state, "precious"), &info), 0);
    assert_int_equal(info.st_size, strlen("precious"));
    assert_ok(pace__report_leave(in(state, "run"), &said_log));
}

static void usage_is_checked(void **state)
{
    const char *runs[PACE_REPORT_RUNS_MAX + 1];
    pace_report_config config = {.output = in(state, "out.html")};
    uint64_t bytes;

    assert_failed(pace_report(&config, &said_log, &bytes), PACE_USAGE, "no run");
    for (size_t i = 0; i <= PACE_REPORT_RUNS_MAX; i++)
        runs[i] = in(state, "none");
    config.runs = (pace_texts){runs, PACE_REPORT_RUNS_MAX + 1};
    assert_failed(pace_report(&config, &said_log, &bytes), PACE_USAGE, "has room for 32");
    config.runs.count = 1;
    assert_failed(pace_report(&config, &said_log, &bytes), PACE_NO_INPUT, "none: ");
    make_run(state, "run");
    runs[0] = in(state, "run");
    assert_ok(pace_report(&config, &said_log, &bytes));
    assert_true(bytes > 100000);
    assert_failed(pace_report(&config, &said_log, &bytes), PACE_USAGE, "exists; use --force");
    config.force = true;
    assert_ok(pace_report(&config, &said_log, &bytes));
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_points_all_stay),
        cmocka_unit_test(what_sticks_out_stays),
        cmocka_unit_test(any_length_fits),
        cmocka_unit_test(texts_mean_nothing),
        cmocka_unit_test(numbers_can_be_read),
        cmocka_unit_test(rows_of_a_table_are_spread),
        cmocka_unit_test(options_that_differ_come_first),
        cmocka_unit_test(lines_of_a_role_that_was_started_again),
        cmocka_unit_test(many_roles_are_few_lines),
        IN_DIRECTORY(an_empty_run_says_what_it_lacks),
        IN_DIRECTORY(changes_of_shares_are_told),
        IN_DIRECTORY(a_half_written_run_shows_the_rest),
        IN_DIRECTORY(nothing_becomes_code),
        IN_DIRECTORY(two_runs_are_compared),
        IN_DIRECTORY(a_planted_link_is_not_followed),
        IN_DIRECTORY(usage_is_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
