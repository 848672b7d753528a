/* Run directories as others find them: whole, going on, gone back, damaged, far too large. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "history/history.h"
#include "verdict/facts.h"

#include "support.h"

#include <sys/file.h>

/* A directory with a log, which makes it a run. */
static const char *make_run(void **state)
{
    const char *run = in(state, "run");

    assert_int_equal(mkdir(run, 0755), 0);
    assert_int_equal(mkdir(in(state, "run/logs"), 0755), 0);
    put_text(in(state, "run/logs/paceline.log"), "");
    return run;
}

static void add_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "a");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static bool lacks(const pace__history *history, const char *words)
{
    for (size_t i = 0; i < PACE__HISTORY_LACKS_MAX; i++) {
        if (history->lacks[i] && strstr(history->lacks[i], words))
            return true;
    }
    return false;
}

static const char lines[] =
    "{\"kind\":\"start\",\"t\":0.1,\"step\":0,\"steps\":200,\"incarnation\":1}\n"
    "{\"kind\":\"sample\",\"t\":1,\"role\":\"chief\",\"seconds\":1,\"rows\":50,\"compute_s\":0.5,\"wait_s\":"
    "0.4,"
    "\"waits_for\":\"ps0\",\"net_sent_bytes\":1000000}\n"
    "{\"kind\":\"flow\",\"t\":1,\"role\":\"chief\",\"peer\":\"ps0\",\"seconds\":1,\"bytes_sent\":70,"
    "\"bytes_received\":30,\"messages\":4,\"wait_s\":0.4}\n"
    "{\"kind\":\"step\",\"t\":1.5,\"step\":100,\"epoch\":0.5,\"rows\":100,\"loss\":0.6,\"rows_per_s\":66}\n"
    "{\"kind\":\"eval\",\"t\":1.6,\"step\":100,\"epoch\":0.5,\"n\":10,\"logloss\":0.55,\"auc\":null}\n"
    "{\"kind\":\"sample\",\"t\":2,\"role\":\"chief\",\"seconds\":2,\"rows\":120,\"compute_s\":1.2,\"wait_s\":"
    "0.7,"
    "\"waits_for\":\"ps0\",\"net_sent_bytes\":1000500}\n"
    "{\"kind\":\"profile\",\"t\":2.05,\"memory_share\":0.5,\"gbytes_s\":7,\"peak_gbytes_s\":12}\n"
    "{\"kind\":\"checkpoint\",\"t\":2.1,\"step\":110,\"bytes\":4096,\"parts\":1,\"stall_s\":0.01}\n";

static void all_that_is_there(void **state)
{
    const char *run = make_run(state);
    pace__history *history;

    put_text(in(state, "run/metrics.jsonl"), lines);
    put_text(in(state, "run/config.yaml"), "model: \"logreg\"\nbatch: 512\nhosts: null\n# checksum: 12\n");
    put_text(in(state, "run/cluster.json"), "{\"ranks\": [{\"rank\": 0, \"role\": \"chief\", \"host\": "
                                            "\"a\"}, {\"role\": \"ps0\", \"host\": \"b\"}]}");
    put_text(
        in(state, "run/state.json"),
        "{\"id\": 5, \"incarnation\": 1, \"restarts\": 0, \"checkpoint\": 110, \"ending\": \"running\"}\n");
    assert_ok(pace__history_open(run, &said_log, &history));
    assert_int_equal(history->standing, PACE__STANDS_KILLED);
    assert_string_equal(pace__history_setting(history, "model"), "logreg");
    assert_string_equal(pace__history_setting(history, "batch"), "512");
    assert_null(pace__history_setting(history, "absent"));
    assert_int_equal(history->steps, 200);
    assert_int_equal(history->step_count, 1);
    assert_int_equal(history->step[0].step, 100);
    assert_true(isnan(history->step[0].lr));
    assert_int_equal(history->eval_count, 1);
    assert_true(isnan(history->eval[0].auc));
    assert_int_equal(history->mark_count, 2);
    assert_int_equal(history->role_count, 2);
    assert_string_equal(history->roles[1].name, "ps0");
    assert_string_equal(history->roles[1].host, "b");
    const pace__seen_role *chief = &history->roles[0];

    assert_int_equal(chief->count, 2);
    assert_int_equal(chief->samples[1].waits_for, 1);
    assert_true(chief->samples[0].own_sent_bytes == 70 && chief->samples[1].own_sent_bytes == 70);
    pace__sample since = pace__sample_since(&chief->samples[1], &chief->samples[0]);

    assert_true(fabs(since.compute_s - 0.7) < 1e-9 && since.rows == 70 && since.net_sent_bytes == 500);
    assert_true(pace__sample_since(&chief->samples[0], NULL).net_sent_bytes == 0);
    assert_true(history->profile.share == 0.5 && history->profile.gbytes_s == 7 &&
                history->profile.peak_gbytes_s == 12);
    assert_null(history->lacks[0]);
    pace__history_close(history);
}

static void what_comes_while_one_looks(void **state)
{
    const char *run = make_run(state), *metrics = in(state, "run/metrics.jsonl");
    char *path = strdup(metrics);
    pace__history *history;

    put_text(path, lines);
    assert_ok(pace__history_open(run, &said_log, &history));
    assert_false(pace__history_update(history));
    add_text(path, "{\"kind\":\"step\",\"t\":3,\"step\":120,"); /* half a line */
    assert_false(pace__history_update(history));
    assert_int_equal(history->step_count, 1);
    add_text(path, "\"loss\":0.5}\n");
    assert_true(pace__history_update(history));
    assert_int_equal(history->step_count, 2);
    assert_true(history->step[1].loss == 0.5);
    unsigned generation = history->generation;

    put_text(path, "{\"kind\":\"start\",\"t\":0.1,\"step\":0,\"steps\":9}\n"); /* begun anew */
    assert_true(pace__history_update(history));
    assert_int_equal(history->step_count, 0);
    assert_int_equal(history->steps, 9);
    assert_int_equal(history->generation, generation + 1);
    pace__history_close(history);
    free(path);
}

static void restarts_count_from_zero(void **state)
{
    const char *run = make_run(state);
    pace__history *history;

    put_text(in(state, "run/metrics.jsonl"), lines);
    add_text(
        in(state, "run/metrics.jsonl"),
        "{\"kind\":\"start\",\"t\":2.2,\"step\":110,\"steps\":200,\"incarnation\":2}\n"
        "{\"kind\":\"sample\",\"t\":3.3,\"role\":\"chief\",\"seconds\":1,\"rows\":40,\"compute_s\":0.8}\n"
        "{\"kind\":\"step\",\"t\":1,\"step\":130}\n"); /* a clock that went back */
    assert_ok(pace__history_open(run, &said_log, &history));
    const pace__sample *samples = history->roles[0].samples;
    pace__verdict verdict;

    assert_int_equal(samples[2].start, 1);
    assert_true(pace__sample_since(&samples[2], &samples[1]).rows == 40);
    assert_true(samples[2].own_sent_bytes == 0);
    assert_true(history->step[1].t == 3.3);   /* time never falls */
    pace__verdict_from(history, 0, &verdict); /* of the last start alone: 1 s */
    assert_int_equal(verdict.cause, PACE__CAUSE_COMPUTE);
    assert_true(fabs(verdict.all_s - 1) < 1e-6);
    pace__history_close(history);
}

/* The chief makes the records, and then meets the others. */
static void hosts_that_are_told_late(void **state)
{
    const char *run = make_run(state);
    pace__history *history;

    put_text(in(state, "run/metrics.jsonl"), lines);
    assert_ok(pace__history_open(run, &said_log, &history));
    assert_string_equal(history->roles[0].host, "");
    put_text(in(state, "run/cluster.json"), "{\"ranks\": [{\"role\": \"chief\", \"host\": \"a\"}]}");
    pace__history_update(history);
    assert_string_equal(history->roles[0].host, "a");
    pace__history_close(history);
}

/* More samples than are kept, all of one second: nothing to choose by. */
static void very_many_samples(void **state)
{
    const char *run = make_run(state);
    FILE *file = fopen(in(state, "run/metrics.jsonl"), "w");
    pace__history *history;

    assert_non_null(file);
    for (size_t i = 0; i < PACE__HISTORY_RECORDS_MAX + 100; i++)
        assert_true(fputs("{\"kind\":\"sample\",\"t\":0,\"role\":\"chief\"}\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_ok(pace__history_open(run, &said_log, &history));
    assert_in_range(history->roles[0].count, 1, PACE__HISTORY_RECORDS_MAX);
    assert_true(lacks(history, "very many samples"));
    pace__history_update(history);
    assert_true(lacks(history, "very many samples"));
    pace__history_close(history);
}

static void somebody_has_it(void **state)
{
    const char *run = make_run(state);
    pace__history *history;
    int fd = open(in(state, "run/logs/paceline.log"), O_RDWR);

    assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
    assert_ok(pace__history_open(run, &said_log, &history));
    assert_int_equal(history->standing, PACE__STANDS_RUNNING);
    close(fd);
    pace__history_update(history);
    assert_int_equal(history->standing, PACE__STANDS_UNKNOWN);
    assert_true(lacks(history, "metrics.jsonl"));
    assert_true(lacks(history, "config.yaml"));
    pace__history_close(history);
}

static void what_is_odd_is_named(void **state)
{
    const char *run = make_run(state);
    pace__history *history;

    put_text(in(state, "run/metrics.jsonl"),
             "no JSON\n[1]\n{}\n{\"kind\":\"step\"}\n{\"kind\":\"step\",\"t\":-1}\n\n"
             "{\"kind\":\"sample\",\"t\":1,\"role\":\"../evil\"}\n{\"kind\":\"sample\",\"t\":1,\"role\":7}\n"
             "{\"kind\":\"flow\",\"t\":1,\"role\":\"chief\",\"peer\":\"ps0\"}\n"
             "{\"kind\":\"step\",\"t\":1,\"step\":-3,\"loss\":\"x\"}\n");
    put_text(in(state, "run/summary.json"), "{\"steps\": 3,\n  \"checksum\": \"00\"\n}\n");
    put_text(in(state, "run/cluster.json"), "{");
    put_text(in(state, "run/state.json"), "nonsense");
    assert_int_equal(mkfifo(in(state, "run/config.yaml"), 0600), 0);
    assert_ok(pace__history_open(run, &said_log, &history));
    assert_int_equal(history->unreadable, 5);
    assert_int_equal(history->step_count, 1);
    assert_int_equal(history->step[0].step, 0);
    assert_true(isnan(history->step[0].loss));
    assert_null(history->summary);
    for (size_t i = 0; i < history->role_count; i++)
        assert_int_equal(history->roles[i].count, 0);
    assert_true(lacks(history, "summary.json"));
    assert_true(lacks(history, "cluster.json"));
    assert_true(lacks(history, "state.json"));
    assert_true(lacks(history, "config.yaml"));
    assert_true(lacks(history, "5 lines"));
    pace__history_close(history);
}

static void no_run_at_all(void **state)
{
    pace__history *history;

    assert_int_equal(pace__history_open(in(state, "none"), &said_log, &history), PACE_NO_INPUT);
    assert_int_equal(mkdir(in(state, "empty"), 0755), 0);
    assert_int_equal(pace__history_open(in(state, "empty"), &said_log, &history), PACE_NO_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_that_is_there, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(what_comes_while_one_looks, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(restarts_count_from_zero, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(hosts_that_are_told_late, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(very_many_samples, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(somebody_has_it, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(what_is_odd_is_named, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(no_run_at_all, make_directory, remove_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
