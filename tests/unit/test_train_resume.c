/* Runs that are resumed: the same bytes wherever they were interrupted, and what is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "run/runstate.h"

#include "lone_runs.h"

/* --- interruption --- */

static void resume_once_at(const pace_train_config *config, int64_t step, const char *expected)
{
    pace_train_config again = *config;

    interrupt(*config, step);
    again.force = false;
    again.resume = true;
    assert_string_equal(train(&again).model_sha256, expected);
}

static void an_interrupted_run_ends_like_an_undisturbed_one(void **state)
{
    static const int64_t steps[] = {1, 17, 18, 19, 30, 53}; /* an epoch has 18 */

    for (size_t l = 0; l < 4; l++) {
        for (int exact = 0; exact < 2; exact++) {
            pace_train_config config = settings(in(state, "set"), in(state, "run"));
            char expected[65];

            make_set(state, "set", layouts[l]);
            config.records.log_every = 1;
            config.optimiser.exact = exact;
            config.optimiser.l2 = exact ? 0.001 : 0;
            memcpy(expected, train(&config).model_sha256, sizeof expected);
            for (size_t s = 0; s < 6; s++) {
                config.cluster.threads = 1 + (int64_t)s % 3;
                resume_once_at(&config, steps[s], expected);
            }
        }
    }
}

static void every_optimiser_resumes(void **state)
{
    make_set(state, "set", layouts[3]);
    for (int optimizer = PACE_SGD; optimizer <= PACE_ADAM; optimizer++) {
        pace_train_config config = settings(in(state, "set"), in(state, "run"));
        char expected[65];

        config.records.log_every = 1;
        config.optimiser.rule = optimizer;
        config.optimiser.schedule = PACE_SCHEDULE_COSINE;
        config.optimiser.warmup = 5;
        memcpy(expected, train(&config).model_sha256, sizeof expected);
        resume_once_at(&config, 20, expected);
    }
}

static void a_run_may_be_interrupted_again_and_again(void **state)
{
    make_set(state, "set", layouts[0]);
    pace_train_config config = settings(in(state, "set"), in(state, "run"));

    config.records.log_every = 1;
    pace_train_result expected = train(&config);

    for (int64_t step = 5; step < 54; step += 9) {
        interrupt(config, step);
        config.force = false;
        config.resume = true;
    }
    pace_train_result result = train(&config);

    assert_string_equal(result.model_sha256, expected.model_sha256);
    assert_int_equal(result.steps, expected.steps);
    assert_int_equal(result.samples, expected.samples);
    assert_true(fabs(result.train_loss - expected.train_loss) < 1e-9);
}

/* --- checkpoints --- */

typedef enum damage { CUT, FLIP, EMPTY, DELETE, DAMAGES } damage;

static void damage_file(const char *path, damage how)
{
    struct stat info;
    unsigned char byte;
    int fd = open(path, O_RDWR | O_CLOEXEC);

    assert_int_equal(fstat(fd, &info), 0);
    assert_int_equal(pread(fd, &byte, 1, info.st_size / 2), 1);
    byte ^= 4;
    if (how == FLIP)
        assert_int_equal(pwrite(fd, &byte, 1, info.st_size / 2), 1);
    else if (how == DELETE)
        assert_int_equal(unlink(path), 0);
    else
        assert_int_equal(ftruncate(fd, how == CUT ? info.st_size - 10 : 0), 0);
    assert_int_equal(close(fd), 0);
}

static const char *const checkpoint_files[] = {"manifest.json", "part-00000-of-00001.safetensors"};

static void damage_checkpoint(void **state, int64_t step, int file, damage how)
{
    char path[512];

    snprintf(path, sizeof path, "%s/run/checkpoints/step-%012ld.0001/%s", (const char *)*state, step,
             checkpoint_files[file]);
    damage_file(path, how);
}

/* The steps of the "step" records: each once, in their order, at times that only grow. */
static void check_records(void **state, int64_t last)
{
    char *text = get_text(in(state, "run/metrics.jsonl")), *rest = text;
    int64_t next = 1;
    double before = 0;

    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        cJSON *record = cJSON_Parse(line);
        double t = cJSON_GetObjectItem(record, "t")->valuedouble;

        assert_true(t >= before);
        before = t;
        if (strcmp(cJSON_GetObjectItem(record, "kind")->valuestring, "step") == 0)
            assert_int_equal((int64_t)cJSON_GetObjectItem(record, "step")->valuedouble, next++);
        cJSON_Delete(record);
    }
    assert_int_equal(next, last + 1);
    free(text);
}

/* Whatever happens to whichever file of the newest one. */
static void a_damaged_checkpoint_falls_back_to_the_one_before(void **state)
{
    make_set(state, "set", layouts[2]);
    char expected[65];

    for (int file = 0; file < 2; file++) {
        for (int how = 0; how < DAMAGES; how++) {
            pace_train_config config = settings(in(state, "set"), in(state, "run")), again;

            config.records.log_every = 1;
            config.faults.checkpoint_every = 5;
            config.faults.keep = 3;
            again = config;
            resume(&again);
            memcpy(expected, train(&config).model_sha256, sizeof expected);
            interrupt(config, 12); /* leaves 5, 10 and 12 */
            assert_int_equal(count_entries(in(state, "run/checkpoints")), 3);
            damage_checkpoint(state, 12, file, how);
            put_text(in(state, "run/checkpoints/step-000000000012.0001/manifest.json.tmp-0123456789abcdef"),
                     "left by a kill");
            assert_string_equal(train(&again).model_sha256, expected);
            if (file > 0 || how != DELETE) { /* one without a manifest is no checkpoint */
                assert_said("W ");
                assert_said("step-000000000012.0001/");
                assert_said(checkpoint_files[file]);
                assert_said("trying the one before");
            }
            assert_said("resuming from");
            assert_said("step-000000000010.0001\n");
            check_records(state, 54);
            assert_true(in_summary(state, "rows_computed_twice") == 200);
            assert_true(in_summary(state, "rows_computed") == 3 * ROWS + 200);
            assert_true(in_summary(state, "restarts") == 0); /* it had been interrupted */
            assert_int_equal(count_entries(in(state, "run/checkpoints")), 3);
            assert_true(is_there(state, 45, 2) && is_there(state, 50, 2) && is_there(state, 54, 2));
        }
    }
}

/* A hash of what a run is: its files but for the log and the state. */
static void hash_run(void **state, char hex[PACE__SHA256_HEX])
{
    char *command =
        pace__format("cd '%s' && find . -type f ! -path './logs/*' ! -name state.json | LC_ALL=C sort | "
                     "xargs sha256sum | sha256sum",
                     in(state, "run"));
    FILE *pipe = popen(command, "r");

    assert_non_null(pipe);
    assert_int_equal(fread(hex, 1, PACE__SHA256_HEX - 1, pipe), PACE__SHA256_HEX - 1);
    hex[PACE__SHA256_HEX - 1] = '\0';
    assert_int_equal(pclose(pipe), 0);
    free(command);
}

static void without_a_whole_checkpoint_nothing_is_touched(void **state)
{
    make_set(state, "set", layouts[2]);
    pace_train_config config = settings(in(state, "set"), in(state, "run"));
    char before[PACE__SHA256_HEX], after[PACE__SHA256_HEX];

    config.faults.checkpoint_every = 20;
    train(&config);
    damage_checkpoint(state, 40, 0, CUT);
    damage_checkpoint(state, 54, 1, FLIP);
    hash_run(state, before);
    resume(&config);
    config.length.epochs = 5;
    fail_to_train(&config, PACE_BAD_DATA, "none of its 2 checkpoints is usable; --force starts over");
    hash_run(state, after);
    assert_string_equal(before, after);
    assert_ok(pace__remove_tree(in(state, "run/checkpoints"), &said_log));
    hash_run(state, before);
    fail_to_train(&config, PACE_BAD_DATA,
                  "no checkpoint any more, but there was one of step 54; --force starts over");
    hash_run(state, after);
    assert_string_equal(before, after);
}

/* Killed before its first checkpoint: all of it comes again. */
static void a_run_without_a_checkpoint_begins_again(void **state)
{
    make_set(state, "set", layouts[2]);
    pace_train_config config = settings(in(state, "set"), in(state, "run"));
    char expected[65];

    config.records.log_every = 1;
    memcpy(expected, train(&config).model_sha256, sizeof expected);
    assert_ok(pace__runstate_write(in(state, "run"), &(pace__runstate){.incarnation = 1}, &said_log));
    assert_int_equal(unlink(in(state, "run/model.safetensors")), 0);
    assert_int_equal(unlink(in(state, "run/summary.json")), 0);
    resume(&config);
    assert_string_equal(train(&config).model_sha256, expected);
    assert_said("W ");
    assert_said("begins at step 0");
    check_records(state, 54);
    assert_true(in_summary(state, "restarts") == 1);
    assert_true(in_summary(state, "rows_computed_twice") == 3 * ROWS);
}

static void a_finished_run_has_nothing_left_to_do(void **state)
{
    make_set(state, "set", layouts[2]);
    pace_train_config config = settings(in(state, "set"), in(state, "run"));
    char before[PACE__SHA256_HEX], after[PACE__SHA256_HEX];

    config.faults.checkpoint_every = 54;
    pace_train_result first = train(&config);

    hash_run(state, before);
    resume(&config);
    pace_train_result again = train(&config);

    assert_said("I ");
    assert_said("nothing left to do");
    hash_run(state, after);
    assert_string_equal(before, after);
    assert_string_equal(again.model_sha256, first.model_sha256);
    assert_true(again.steps == 54 && again.samples == first.samples && again.has_test);
    assert_true(again.test.logloss == first.test.logloss && again.test.n == first.test.n);
    config.length.epochs = 4; /* but it may go on for longer */
    assert_int_equal(train(&config).steps, 72);
    assert_said("resuming from");
}

/* Of the options that a run may be resumed with, those that make it another job are refused by name. */
static void a_finished_run_is_no_other_job(void **state)
{
    make_set(state, "set", layouts[2]);
    pace_train_config config = settings(in(state, "set"), in(state, "run"));
    char before[PACE__SHA256_HEX], after[PACE__SHA256_HEX];
    struct {
        pace_train_config config;
        const char *message;
    } cases[6];

    config.faults.checkpoint_seconds = 300;
    train(&config);
    hash_run(state, before);
    resume(&config);
    for (size_t i = 0; i < 6; i++)
        cases[i].config = config;
    cases[0].config.optimiser.rule = PACE_FTRL;
    cases[0].message = "--optimizer ftrl";
    cases[1].config.optimiser.l2 = 0.5;
    cases[1].message = "--l2 0.5";
    cases[2].config.seed = 99;
    cases[2].message = "--seed 99";
    cases[3].config.length.batch = 7;
    cases[3].message = "--batch 7";
    cases[4].config.optimiser.lr = 0.5;
    cases[4].message = "--lr 0.5";
    cases[5].config.optimiser.schedule = PACE_SCHEDULE_COSINE;
    cases[5].message = "--schedule cosine";
    for (size_t i = 0; i < 6; i++)
        fail_to_train(&cases[i].config, PACE_USAGE, cases[i].message);
    hash_run(state, after);
    assert_string_equal(before, after);
    assert_int_equal(unlink(in(state, "run/config.yaml")), 0); /* the summary knows it, too */
    train(&config);
    assert_said("nothing left to do");
    fail_to_train(&cases[2].config, PACE_USAGE, "seed=99 here");
    assert_int_equal(unlink(in(state, "run/model.safetensors")), 0); /* without a model nothing is done */
    train(&config);
    assert_true(pace__exists(in(state, "run/model.safetensors")));
}

/* Whatever it is called, a job is what its options come to. */
static void the_same_job_in_other_words_is_the_same(void **state)
{
    make_set(state, "set", layouts[2]);
    pace_train_config config = settings(in(state, "set"), in(state, "run"));

    config.length.batch = 600; /* selects the exact rule */
    config.force = true;
    train(&config);
    resume(&config);
    config.optimiser.exact = true;
    train(&config);
    assert_said("nothing left to do");
    config.optimiser.exact = false;
    config.length.batch = 100000; /* there are not so many rows */
    config.force = true;
    config.resume = false;
    train(&config);
    resume(&config);
    config.length.batch = 200000;
    train(&config);
    assert_said("nothing left to do");
}

/* Stands in the way of the summary, while the run is under way. */
static void plant_directory(void *user, const pace_record *record)
{
    char path[600];

    if (strcmp(record->kind, "step") != 0)
        return;
    snprintf(path, sizeof path, "%s/summary.json", (const char *)user);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/summary.json/planted", (const char *)user);
    mkdir(path, 0777);
}

static void a_failed_summary_costs_no_training(void **state)
{
    static const int local_and_not[] = {PACE_MODE_LOCAL, PACE_MODE_ALLREDUCE};

    make_set(state, "set", layouts[2]);
    for (size_t i = 0; i < 2; i++) {
        pace_train_config config = settings(in(state, "set"), in(state, "run"));
        pace_registry *registry = pace_registry_create();
        pace_sink sink = {plant_directory, (void *)(uintptr_t)in(state, "run")};
        pace_train_result result;

        config.mode = local_and_not[i];
        config.force = true;
        pace_train_result whole = train(&config);

        pace_registry_attach(registry, &sink);
        said_clear();
        assert_int_equal(pace_train(&config, &said_log, registry, &result), PACE_IO);
        pace_registry_free(registry);
        assert_said("summary.json");
        assert_said("--resume only has to finish");
        assert_int_equal(rmdir(in(state, "run/summary.json/planted")), 0);
        assert_int_equal(rmdir(in(state, "run/summary.json")), 0);
        resume(&config);
        assert_string_equal(train(&config).model_sha256, whole.model_sha256);
        assert_true(in_summary(state, "rows_computed_twice") == 0);
    }
}

/* Rates that do not depend on the end let a run become longer, with the bytes of the longer run; others do not. */
static void only_some_runs_can_become_longer(void **state)
{
    static const int schedules[] = {PACE_SCHEDULE_CONSTANT, PACE_SCHEDULE_INVSQRT, PACE_SCHEDULE_LINEAR,
                                    PACE_SCHEDULE_COSINE};

    make_set(state, "set", layouts[2]);
    for (size_t i = 0; i < 4; i++) {
        pace_train_config config = settings(in(state, "set"), in(state, "run"));

        config.optimiser.schedule = schedules[i];
        config.optimiser.warmup = 5;
        config.length.epochs = 4;
        config.force = true;
        pace_train_result whole = train(&config);

        config.length.epochs = 2;
        config.faults.checkpoint_every = 36;
        train(&config);
        config.length.epochs = 4;
        resume(&config);
        if (i < 2)
            assert_string_equal(train(&config).model_sha256, whole.model_sha256);
        else
            fail_to_train(&config, PACE_USAGE, "36 steps");
    }
}

static void another_job_cannot_resume(void **state)
{
    make_set(state, "set", layouts[2]);
    make_set(state, "other", (tiny_plan){.train = ROWS + 1, .test = 3, .ids = IDS, .parts = 1});
    pace_train_config config = settings(in(state, "set"), in(state, "run"));

    config.records.log_every = 1;
    interrupt(config, 20);
    config.force = false;
    config.resume = true;
    pace_train_config changed[8] = {config, config, config, config, config, config, config, config};

    changed[0].optimiser.lr = 0.2;
    changed[1].length.batch = 101;
    changed[2].seed = 8;
    changed[3].optimiser.rule = PACE_SGD;
    changed[4].optimiser.exact = true;
    changed[5].optimiser.l2 = 0.5;
    changed[6].optimiser.schedule = PACE_SCHEDULE_LINEAR;
    changed[7].data = in(state, "other");
    for (size_t i = 0; i < 8; i++)
        fail_to_train(&changed[i], PACE_USAGE, "step-000000000020");
    train(&config); /* itself can */
}

/* Whoever has written that: there is no number for the next start. */
static void incarnations_come_to_an_end(void **state)
{
    static const char *const numbers[] = {"\"incarnation\": 9007199254740991, \"restarts\": 0",
                                          "\"incarnation\": 1, \"restarts\": 9007199254740991"};

    make_set(state, "set", layouts[2]);
    pace_train_config config = settings(in(state, "set"), in(state, "run"));

    interrupt(config, 20);
    resume(&config);
    for (size_t i = 0; i < 2; i++) {
        char text[256];

        snprintf(text, sizeof text, "{%s, \"checkpoint\": 20, \"ending\": \"running\"}\n", numbers[i]);
        put_text(in(state, "run/state.json"), text);
        fail_to_train(&config, PACE_BAD_DATA, "state.json: its numbers are too large to count on");
    }
}

static void what_is_no_run_is_not_resumed(void **state)
{
    make_set(state, "set", layouts[2]);
    pace_train_config config = settings(in(state, "set"), in(state, "run"));

    train(&config);
    config.resume = true;
    fail_to_train(&config, PACE_USAGE, "--force");
    config.force = false;
    config.run = in(state, "none");
    fail_to_train(&config, PACE_NO_INPUT, in(state, "none"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_interrupted_run_ends_like_an_undisturbed_one),
        TEST(every_optimiser_resumes),
        TEST(a_run_may_be_interrupted_again_and_again),
        TEST(a_damaged_checkpoint_falls_back_to_the_one_before),
        TEST(without_a_whole_checkpoint_nothing_is_touched),
        TEST(a_run_without_a_checkpoint_begins_again),
        TEST(a_finished_run_has_nothing_left_to_do),
        TEST(a_finished_run_is_no_other_job),
        TEST(the_same_job_in_other_words_is_the_same),
        TEST(a_failed_summary_costs_no_training),
        TEST(only_some_runs_can_become_longer),
        TEST(another_job_cannot_resume),
        TEST(incarnations_come_to_an_end),
        TEST(what_is_no_run_is_not_resumed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
