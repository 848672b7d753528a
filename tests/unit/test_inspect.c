/* What inspect says of runs that have not finished, and of checkpoints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checkpoint/checkpoint.h"
#include "support.h"

#include <cjson/cJSON.h>
#include <paceline/inspect.h>

#define KEYS  11
#define WIDTH 2
#define PARTS 3
#define JOB   "data=\"x\" batch=512"

/* A run as a killed process leaves it. */
static void make_run(void **state, const char *state_json)
{
    assert_ok(pace__make_dirs(in(state, "run/logs"), &said_log));
    put_text(in(state, "run/logs/paceline.log"), "");
    if (state_json)
        put_text(in(state, "run/state.json"), state_json);
}

/* RUN/checkpoints/step-...; without `commit` it has no manifest. */
static char *make_checkpoint(void **state, uint64_t step, uint64_t incarnation, bool commit)
{
    float parameters[KEYS * WIDTH];
    pace__part_record records[PARTS];
    pace__manifest manifest = {
        .incarnation = incarnation,
        .position = {.step = step, .best_logloss = INFINITY, .last_epoch_loss = NAN, .seconds = 1.5},
        .keys = KEYS,
        .width = WIDTH,
        .job = JOB,
        .parts = PARTS,
        .part = records};
    char *path;

    for (int i = 0; i < KEYS * WIDTH; i++)
        parameters[i] = (float)i + (float)step;
    assert_ok(pace__checkpoint_begin(in(state, "run/checkpoints"), step, incarnation, &said_log, &path));
    for (unsigned part = 0; part < PARTS; part++) /* 4, 4 and 3 keys */
        assert_ok(pace__part_write(path, part, PARTS, parameters, KEYS / PARTS + (part < KEYS % PARTS), WIDTH,
                                   &records[part], &said_log));
    if (commit)
        assert_ok(pace__checkpoint_commit(path, &manifest, &said_log));
    return path;
}

static void change_byte(const char *path)
{
    char *bytes;
    size_t size;

    assert_ok(pace__read_file(path, 1 << 20, &bytes, &size, &said_log));
    bytes[size / 2] ^= 1;
    assert_ok(pace__write_file_atomically(path, bytes, size, &said_log));
    free(bytes);
}

static cJSON *inspect(const char *path)
{
    pace_inspect_config config = {.path = path, .top = 5};
    char *text;

    assert_ok(pace_inspect(&config, &said_log, &text));
    cJSON *found = cJSON_Parse(text);

    free(text);
    assert_non_null(found);
    assert_int_equal(errors_said(), 0);
    return found;
}

/* Of "a.b.c"; NULL: there is none. */
static const cJSON *member(const cJSON *object, const char *path)
{
    char names[64], *rest;

    snprintf(names, sizeof names, "%s", path);
    for (char *name = strtok_r(names, ".", &rest); name && object; name = strtok_r(NULL, ".", &rest))
        object = cJSON_GetObjectItemCaseSensitive(object, name);
    return object;
}

static void assert_number(const cJSON *object, const char *path, double wanted)
{
    const cJSON *item = member(object, path);

    if (!cJSON_IsNumber(item) || item->valuedouble != wanted)
        fail_msg("%s is %g, not %g", path, item ? item->valuedouble : NAN, wanted);
}

static void assert_text(const cJSON *object, const char *path, const char *wanted)
{
    const cJSON *item = member(object, path);

    assert_true(cJSON_IsString(item));
    assert_string_equal(item->valuestring, wanted);
}

static void unfinished_runs_say_how_they_ended(void **state)
{
    char *paths[3];

    make_run(state,
             "{\"incarnation\": 3, \"restarts\": 2, \"checkpoint\": 200, \"ending\": \"interrupted\"}\n");
    paths[0] = make_checkpoint(state, 100, 1, true);
    paths[1] = make_checkpoint(state, 200, 2, true);
    paths[2] = make_checkpoint(state, 300, 3, false);
    cJSON *found = inspect(in(state, "run"));

    assert_text(found, "what", "run");
    assert_true(cJSON_IsFalse(member(found, "finished")));
    assert_text(found, "ending", "interrupted");
    assert_number(found, "incarnation", 3);
    assert_number(found, "restarts", 2);
    assert_number(found, "checkpoints.count", 2);
    assert_number(found, "checkpoints.unfinished", 1);
    assert_null(member(found, "checkpoints.damaged"));
    assert_number(found, "checkpoints.newest.step", 200);
    assert_number(found, "checkpoints.newest.incarnation", 2);
    assert_text(found, "checkpoints.newest.path", paths[1]);
    assert_string_equal(said, "");
    cJSON_Delete(found);

    /* The newest whole one. */
    char *part = pace__format("%s/part-00002-of-00003.safetensors", paths[1]);

    change_byte(part);
    found = inspect(in(state, "run"));
    assert_number(found, "checkpoints.count", 2);
    assert_number(found, "checkpoints.damaged", 1);
    assert_number(found, "checkpoints.newest.step", 100);
    assert_text(found, "checkpoints.newest.path", paths[0]);
    assert_said(part); /* as a warning */
    cJSON_Delete(found);
    free(part);

    part = pace__format("%s/manifest.json", paths[0]);
    change_byte(part);
    found = inspect(in(state, "run"));
    assert_number(found, "checkpoints.damaged", 2);
    assert_true(cJSON_IsNull(member(found, "checkpoints.newest")));
    cJSON_Delete(found);
    free(part);
    for (int i = 0; i < 3; i++)
        free(paths[i]);
}

static void runs_with_little_in_them(void **state)
{
    static const char *const states[] = {
        NULL,
        "",
        "{",
        "[3]",
        "{}",
        "{\"ending\": 7, \"incarnation\": {}}",
        "{\"ending\": {\"ending\": 1}, \"restarts\": [], \"incarnation\": 4}"};

    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        make_run(state, states[i]);
        cJSON *found = inspect(in(state, "run"));

        assert_true(cJSON_IsFalse(member(found, "finished")));
        assert_number(found, "checkpoints.count", 0);
        assert_true(cJSON_IsNull(member(found, "checkpoints.newest")));
        assert_null(member(found, "checkpoints.unfinished"));
        assert_false(cJSON_IsObject(member(found, "ending")));
        assert_null(member(found, "restarts"));
        if (i >= 1 && i <= 3)
            assert_said("W ");
        else
            assert_string_equal(said, "");
        said_clear();
        cJSON_Delete(found);
    }
}

/* A run that has finished at `step`, of which something is wrong: that is the error, and the rest is told. */
static void assert_rest_is_told(const char *run, double step, pace_status wrong, const char *part)
{
    pace_inspect_config config = {.path = run, .top = 5};
    char *text = NULL;

    assert_failed(pace_inspect(&config, &said_log, &text), wrong, part);
    cJSON *found = cJSON_Parse(text);

    free(text);
    assert_true(cJSON_IsTrue(member(found, "finished")));
    assert_text(found, "ending", "done");
    assert_number(found, "checkpoints.newest.step", step);
    cJSON_Delete(found);
}

static void finished_runs_that_lack_something(void **state)
{
    const char *run = in(state, "run"), *summary = in(state, "run/summary.json");

    make_run(state, "{\"incarnation\": 1, \"restarts\": 0, \"checkpoint\": 7, \"ending\": \"done\"}\n");
    free(make_checkpoint(state, 7, 1, true));
    assert_rest_is_told(run, 7, PACE_NO_INPUT, "summary.json: is gone, though the run has finished");
    put_text(summary, "{\"steps\": 7, \"model_sha256\": \"0\"}");
    assert_rest_is_told(run, 7, PACE_NO_INPUT, "model.safetensors: is gone, though the run has finished");
    put_text(in(state, "run/model.safetensors"), "damaged");
    assert_rest_is_told(run, 7, PACE_BAD_DATA, "train --resume writes it again");
    put_text(summary, "{\"steps\": 7,");
    assert_rest_is_told(run, 7, PACE_BAD_DATA, summary);
}

static void checkpoints_are_described(void **state)
{
    char *path = make_checkpoint(state, 1200, 3, true);
    cJSON *found = inspect(path);

    assert_text(found, "what", "checkpoint");
    assert_true(cJSON_IsTrue(member(found, "whole")));
    assert_number(found, "step", 1200);
    assert_number(found, "incarnation", 3);
    assert_number(found, "seconds", 1.5);
    assert_number(found, "keys", KEYS);
    assert_number(found, "width", WIDTH);
    assert_text(found, "job", JOB);
    const cJSON *parts = member(found, "parts");
    double bytes = 0;

    assert_int_equal(cJSON_GetArraySize(parts), PARTS);
    for (int i = 0; i < PARTS; i++) {
        const cJSON *part = cJSON_GetArrayItem(parts, i);
        char name[64], file[600];
        struct stat info;

        snprintf(name, sizeof name, "part-%05d-of-%05d.safetensors", i, PARTS);
        snprintf(file, sizeof file, "%s/%s", path, name);
        assert_text(part, "name", name);
        assert_int_equal(stat(file, &info), 0);
        assert_number(part, "bytes", (double)info.st_size);
        bytes += (double)info.st_size;
    }
    assert_number(found, "bytes", bytes);
    cJSON_Delete(found);
    char *part = pace__format("%s/part-00001-of-00003.safetensors", path);

    found = inspect(part);
    assert_text(found, "what", "checkpoint part");
    cJSON_Delete(found);
    assert_string_equal(said, "");

    pace_inspect_config config = {.path = path};
    char *json = NULL;

    change_byte(part);
    assert_failed(pace_inspect(&config, &said_log, &json), PACE_BAD_DATA, part);
    assert_int_equal(unlink(part), 0);
    assert_failed(pace_inspect(&config, &said_log, &json), PACE_BAD_DATA, part);
    assert_null(json);
    free(part);
    free(path);
}

static void what_is_no_checkpoint_is_refused(void **state)
{
    char *path = make_checkpoint(state, 5, 1, false), *text = NULL;
    pace_inspect_config config = {.path = path};

    assert_failed(pace_inspect(&config, &said_log, &text), PACE_BAD_DATA,
                  "an unfinished checkpoint: it has no manifest.json");
    free(path);
    path = make_checkpoint(state, 5, 2, true);
    char *manifest = pace__format("%s/manifest.json", path);

    config.path = path;
    put_text(manifest, "{}");
    assert_failed(pace_inspect(&config, &said_log, &text), PACE_BAD_DATA, manifest);
    config.path = *state;
    assert_failed(pace_inspect(&config, &said_log, &text), PACE_BAD_DATA,
                  "neither a data set (no part-00000.h5) nor a run directory");
    assert_null(text);
    free(manifest);
    free(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(unfinished_runs_say_how_they_ended), TEST(runs_with_little_in_them),
        TEST(finished_runs_that_lack_something),  TEST(checkpoints_are_described),
        TEST(what_is_no_checkpoint_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
