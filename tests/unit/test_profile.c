/* Profiles of whole jobs, whose ranks are threads: everyone is in it, and nothing else changes. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "model_files.h"
#include "support.h"

#include "history/history.h"
#include "jobs.h"
#include "tiny_texts.h"

#define ROWS 900

static pace_train_config settings(void **state, int model)
{
    pace_train_config config;

    pace_train_defaults(model, &config);
    config.data = in(state, "set");
    config.run = in(state, "run");
    config.force = true;
    config.cluster.threads = 1;
    config.cluster.workers = 1;
    config.length.batch = 50;
    config.length.epochs = 2;
    config.faults.checkpoint_seconds = 0;
    return config;
}

static void write_clicks(void **state)
{
    tiny_set set =
        tiny_make((tiny_plan){.train = ROWS, .test = 100, .ids = 50, .columns = 7, .parts = 2, .seed = 3});

    tiny_write(&set, in(state, "set"));
    tiny_free(&set);
}

/* --- what a run says of itself --- */

static cJSON *read_ops(void **state)
{
    char *text;

    assert_ok(pace_train_profile(in(state, "run"), &said_log, &text));
    cJSON *ops = cJSON_Parse(text);

    assert_non_null(ops);
    free(text);
    return ops;
}

static const cJSON *group_named(const cJSON *ops, const char *name)
{
    const cJSON *group;

    cJSON_ArrayForEach(group, cJSON_GetObjectItem(ops, "groups"))
    {
        if (strcmp(cJSON_GetObjectItem(group, "group")->valuestring, name) == 0)
            return group;
    }
    fail_msg("there is no group \"%s\"", name);
    return NULL;
}

/* Calls of an operation of a group; 0: it has none. */
static int calls_of(const cJSON *ops, const char *group, const char *name)
{
    const cJSON *op;
    int calls = 0;

    cJSON_ArrayForEach(op, cJSON_GetObjectItem(group_named(ops, group), "ops"))
    {
        if (strcmp(cJSON_GetObjectItem(op, "op")->valuestring, name) == 0)
            calls += cJSON_GetObjectItem(op, "calls")->valueint;
    }
    return calls;
}

/* The verdict is told of it. */
static void check_record(void **state)
{
    pace__history *history;

    assert_ok(pace__history_open(in(state, "run"), &said_log, &history));
    assert_true(history->profile.peak_gbytes_s > 0 && history->profile.seconds > 0);
    assert_true(history->profile.share >= 0 && history->profile.share <= 1);
    pace__history_close(history);
}

/* With and without, it is the same model; the profile is read. */
static cJSON *compare(void **state, pace_train_config config)
{
    sha bare = sha_of(&config);

    assert_false(pace__exists(in(state, "run/profile")));
    config.records.profile = 12;
    assert_sha(&config, bare);
    assert_true(pace__exists(in(state, "run/profile/trace.json.gz")));
    check_record(state);
    return read_ops(state);
}

/* --- clicks --- */

static void synchronous_jobs_are_profiled(void **state)
{
    pace_train_config config = settings(state, PACE_MODEL_LOGREG);

    write_clicks(state);
    lay_out(&config, (layout){PACE_MODE_PS_SYNC, 2, 2, -1, true});
    config.records.eval_every = 5;
    cJSON *ops = compare(state, config);

    assert_int_equal(cJSON_GetObjectItem(ops, "first_step")->valueint, 3); /* a tenth of 36 is left out */
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(ops, "clocks")), 5);
    assert_int_equal(calls_of(ops, "workers", "gradient"), 24); /* of two workers */
    assert_int_equal(calls_of(ops, "workers", "X.W"), 24);
    assert_in_range(calls_of(ops, "parameter servers", "apply a step, answer all"), 20, 26);
    assert_true(calls_of(ops, "evaluator", "score") > 0);
    cJSON_Delete(ops);
    lay_out(&config, (layout){PACE_MODE_ALLREDUCE, 3, 0, -1, false});
    ops = compare(state, config);
    assert_int_equal(calls_of(ops, "workers", "gradient"), 36);
    assert_in_range(calls_of(ops, "workers", "apply a step"), 33, 39);
    cJSON_Delete(ops);
}

static void asynchronous_jobs_are_profiled(void **state)
{
    static const layout layouts[] = {{PACE_MODE_PS_ASYNC, 2, 1, -1, true},
                                     {PACE_MODE_PS_SSP, 3, 0, 2, false}};
    pace_train_config config = settings(state, PACE_MODEL_LOGREG);
    pace_train_result result;

    write_clicks(state);
    config.length.epochs *= 5; /* servers hear of the profile by and by, and steps are short */
    config.records.profile = 90;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        lay_out(&config, layouts[i]);
        said_clear();
        assert_ok(train_ranks(&config, NULL, &result));
        cJSON *ops = read_ops(state);

        assert_true(calls_of(ops, "workers", "gradient") > 0);
        assert_true(calls_of(ops, layouts[i].ps ? "parameter servers" : "workers", "serve a push") > 0);
        cJSON_Delete(ops);
    }
}

static void threads_are_profiled(void **state)
{
    pace_train_config config = settings(state, PACE_MODEL_LOGREG);
    pace_train_result bare, result;

    write_clicks(state);
    config.cluster.threads = 3;
    config.mode = PACE_MODE_LOCAL;
    assert_ok(pace_train(&config, &said_log, NULL, &bare));
    config.records.profile = 12;
    assert_ok(pace_train(&config, &said_log, NULL, &result));
    assert_string_equal(result.model_sha256, bare.model_sha256);
    check_record(state);
    cJSON *ops = read_ops(state);
    int threads = cJSON_GetObjectItem(group_named(ops, "workers"), "threads")->valueint;

    assert_in_range(threads, 1, 3); /* a thread may have nothing to do */
    assert_true(calls_of(ops, "workers", "X.W") >= 11);
    assert_true(calls_of(ops, "workers", "reduce") >= 11);
    cJSON_Delete(ops);
}

static void an_interrupted_run_has_a_profile(void **state)
{
    pace_train_config config = settings(state, PACE_MODEL_LOGREG);

    write_clicks(state);
    config.records.profile = 1000;
    config.records.log_every = 1;
    lay_out(&config, (layout){PACE_MODE_PS_SYNC, 2, 1, -1, true});
    interrupt(config, 20);
    cJSON *ops = read_ops(state);

    assert_in_range(calls_of(ops, "workers", "gradient"), 2 * 14, 2 * 22);
    cJSON_Delete(ops);
}

/* --- networks --- */

static void layers_are_profiled(void **state)
{
    pace_train_config config = settings(state, PACE_MODEL_RNN);
    tiny_texts set = tiny_texts_make(
        (tiny_texts_plan){.train = 300, .test = 50, .words = 30, .length = 9, .parts = 2, .seed = 5});

    tiny_texts_write(&set, in(state, "set"));
    tiny_texts_free(&set);
    config.mode = PACE_MODE_ALLREDUCE;
    config.cluster.threads = 2;
    config.own.rnn.layers = 2;
    config.own.rnn.hidden = 16;
    config.own.rnn.embed = 8;
    config.length.epochs = 4;
    cJSON *ops = compare(state, config);

    assert_true(calls_of(ops, "workers", "lstm 0 forward") >= 12);
    assert_int_equal(calls_of(ops, "workers", "lstm 1 forward"), calls_of(ops, "workers", "lstm 1 back"));
    assert_true(calls_of(ops, "workers", "embed") > 0 && calls_of(ops, "workers", "head forward") > 0);
    assert_int_equal(cJSON_GetObjectItem(group_named(ops, "workers"), "dropped_spans")->valueint, 0);
    cJSON_Delete(ops);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(synchronous_jobs_are_profiled), TEST(asynchronous_jobs_are_profiled),
        TEST(threads_are_profiled),          TEST(an_interrupted_run_has_a_profile),
        TEST(layers_are_profiled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
