/* Training from a data set to a model: the same bytes whatever the threads, the records and the
 * interruptions. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/clock.h"
#include "checkpoint/checkpoint.h"
#include "data/store/order.h"
#include "run/runstate.h"

#include "interrupting.h"
#include "model_files.h"
#include "support.h"

#include <cjson/cJSON.h>
#include <paceline/inspect.h>
#include <paceline/train.h>
#include <stdatomic.h>

#define ROWS 1730 /* no multiple of a batch or a block */
#define IDS  211

/* --- counting allocations --- */

static atomic_size_t allocations;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS_ALLOCATIONS 0 /* the sanitizers have an allocator of their own */
#else
#define COUNTS_ALLOCATIONS 1

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);

void *malloc(size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_realloc(memory, size);
}
#endif

/* --- sets and runs --- */

static const tiny_plan layouts[] = {
    {.train = ROWS, .test = 400, .ids = IDS, .columns = 11, .parts = 3, .seed = 1},
    {.train = ROWS, .test = 400, .ids = IDS, .columns = 11, .has_values = true, .parts = 3, .seed = 2},
    {.train = ROWS, .test = 400, .ids = IDS, .parts = 3, .seed = 3},
    {.train = ROWS, .test = 400, .ids = IDS, .has_values = true, .parts = 3, .seed = 4},
};

static void make_set(void **state, const char *name, tiny_plan plan)
{
    tiny_set set = tiny_make(plan);

    tiny_write(&set, in(state, name));
    tiny_free(&set);
}

static pace_train_config settings(const char *data, const char *run)
{
    return (pace_train_config){.data = data,
                               .mode = PACE_MODE_LOCAL,
                               .cluster.workers = 1,
                               .cluster.ps = -1,
                               .cluster.staleness = -1,
                               .cluster.deadline = 60,
                               .run = run,
                               .optimiser.rule = PACE_ADAGRAD,
                               .optimiser.momentum = 0.9,
                               .length.batch = 100,
                               .length.epochs = 3,
                               .faults.keep = 2,
                               .cluster.threads = 1,
                               .seed = 7,
                               .force = true};
}

static pace_train_result train(const pace_train_config *config)
{
    pace_train_result result;

    said_clear();
    assert_ok(pace_train(config, &said_log, NULL, &result));
    return result;
}

static void fail_to_train(const pace_train_config *config, pace_status expected, const char *message)
{
    pace_train_result result;

    said_clear();
    assert_failed(pace_train(config, &said_log, NULL, &result), expected, message);
}

/* --- the same bytes --- */

static void any_number_of_threads_gives_the_same_model(void **state)
{
    static const int optimizers[] = {PACE_ADAGRAD, PACE_SGD, PACE_FTRL};

    for (size_t l = 0; l < 4; l++) {
        make_set(state, "set", layouts[l]);
        for (size_t o = 0; o < 3; o++) {
            for (int exact = 0; exact < 2; exact++) {
                pace_train_config config = settings(in(state, "set"), in(state, "run"));
                char first[65];

                config.optimiser.rule = optimizers[o];
                config.optimiser.exact = exact;
                for (config.cluster.threads = 1; config.cluster.threads <= 3; config.cluster.threads++) {
                    pace_train_result result = train(&config);

                    if (config.cluster.threads == 1)
                        memcpy(first, result.model_sha256, sizeof first);
                    assert_string_equal(result.model_sha256, first);
                }
            }
        }
    }
}

/* Large steps, several pieces long; and a step that is the whole set. */
static void large_batches_work_with_any_threads(void **state)
{
    static const int64_t batches[] = {512, 513, 1000, ROWS, 1000000};

    make_set(state, "set", layouts[0]);
    for (size_t b = 0; b < 5; b++) {
        pace_train_config config = settings(in(state, "set"), in(state, "run"));
        char first[65];

        config.length.batch = batches[b];
        memcpy(first, train(&config).model_sha256, sizeof first);
        config.cluster.threads = 3;
        assert_string_equal(train(&config).model_sha256, first);
    }
}

/* Watching a run does not change it. */
static void records_scores_and_checkpoints_change_nothing(void **state)
{
    for (size_t l = 0; l < 4; l++) {
        for (int penalised = 0; penalised < 2; penalised++) {
            pace_train_config config = settings(in(state, "set"), in(state, "run"));

            make_set(state, "set", layouts[l]);
            config.optimiser.l1 = penalised ? 0.0003 : 0;
            config.optimiser.l2 = penalised ? 0.001 : 0;
            config.cluster.threads = 2;
            config.records.log_every = 1000000;
            pace_train_result quiet = train(&config);

            config.records.log_every = 1;
            config.records.eval_every = 3;
            config.records.eval_rows = 50;
            config.faults.checkpoint_every = 2;
            pace_train_result busy = train(&config);

            assert_string_equal(busy.model_sha256, quiet.model_sha256);
            assert_true(busy.test.logloss == quiet.test.logloss);
            assert_true(fabs(busy.train_loss - quiet.train_loss) < 1e-9);
        }
    }
}

static void the_seed_decides_the_order(void **state)
{
    make_set(state, "set", layouts[2]);
    pace_train_config config = settings(in(state, "set"), in(state, "run"));
    pace_train_result first = train(&config), again = train(&config);

    config.seed = 8;
    assert_string_equal(first.model_sha256, again.model_sha256);
    assert_string_not_equal(train(&config).model_sha256, first.model_sha256);
}

/* --- against a naive trainer --- */

typedef struct naive {
    double weight[IDS + 1], n[IDS + 1], g[IDS + 1]; /* [IDS]: the bias */
} naive;

static double naive_logit(const naive *self, const tiny_rows *rows, uint64_t row)
{
    double z = self->weight[IDS];

    for (uint64_t at = rows->start[row]; at < rows->start[row + 1]; at++)
        z += self->weight[rows->ids[at]] * rows->values[at];
    return z;
}

/* One AdaGrad step from the summed gradient. */
static void naive_step(naive *self, const tiny_rows *rows, const pace__order *order, uint64_t first,
                       uint64_t last, double lr)
{
    uint64_t run;

    memset(self->g, 0, sizeof self->g);
    for (uint64_t position = first; position < last; position++) {
        uint64_t row = pace__order_row(order, position, &run);
        double error = 1 / (1 + exp(-naive_logit(self, rows, row))) - rows->label[row];

        for (uint64_t at = rows->start[row]; at < rows->start[row + 1]; at++)
            self->g[rows->ids[at]] += error * rows->values[at];
        self->g[IDS] += error;
    }
    for (int i = 0; i <= IDS; i++) {
        self->n[i] += self->g[i] * self->g[i];
        self->weight[i] -= lr * self->g[i] / sqrt(1 + self->n[i]);
    }
}

static void the_exact_rule_matches_a_naive_trainer(void **state)
{
    for (size_t l = 0; l < 4; l++) {
        tiny_set set = tiny_make(layouts[l]);
        pace_train_config config = settings(in(state, "set"), in(state, "run"));
        naive self = {{0}, {0}, {0}};
        linear_file model;

        tiny_write(&set, in(state, "set"));
        config.optimiser.exact = true;
        config.optimiser.lr = 0.1;
        train(&config);
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            pace__order order = pace__order_make(ROWS, 7, epoch);

            for (uint64_t at = 0; at < ROWS; at += 100)
                naive_step(&self, &set.rows[PACE__TRAIN], &order, at, at + 100 < ROWS ? at + 100 : ROWS, 0.1);
        }
        assert_ok(linear_read(in(state, "run"), &model));
        assert_int_equal(model.count, IDS);
        for (uint32_t i = 0; i < IDS; i++) {
            assert_int_equal(model.ids[i], 5 * i + 3);
            assert_true(fabs(linear_weight_at(&model, i) - self.weight[i]) < 2e-5);
        }
        assert_true(fabs(model.bias - self.weight[IDS]) < 2e-5);
        linear_release(&model);
        tiny_free(&set);
    }
}

/* Both rules find the planted signal, and agree about it. */
static void both_rules_learn(void **state)
{
    make_set(state, "set",
             (tiny_plan){.train = 20000, .test = 2000, .ids = 60, .columns = 6, .parts = 2, .seed = 5});
    pace_train_config config = settings(in(state, "set"), in(state, "run"));
    pace_train_result block = train(&config);

    config.optimiser.exact = true;
    pace_train_result exact = train(&config);

    assert_true(block.has_test && block.test.n == 2000);
    assert_true(block.test.logloss < block.test.null_logloss - 0.05);
    assert_true(fabs(block.test.logloss - exact.test.logloss) < 0.002);
    assert_true(block.test.auc > 0.7);
}

/* --- interruption --- */

static pace_status run_alone(const pace_train_config *config, pace_registry *registry,
                             pace_train_result *result)
{
    return pace_train(config, &said_log, registry, result);
}

static void interrupt(pace_train_config config, int64_t step)
{
    interrupt_run(run_alone, config, step);
}

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

static void resume(pace_train_config *config)
{
    config->force = false;
    config->resume = true;
}

/* A number of the run's summary. */
static double in_summary(void **state, const char *name)
{
    char *text;

    assert_ok(pace_train_summary(in(state, "run"), &said_log, &text));
    cJSON *summary = cJSON_Parse(text), *item = cJSON_GetObjectItem(summary, name);

    assert_true(cJSON_IsNumber(item));
    double value = item->valuedouble;

    cJSON_Delete(summary);
    free(text);
    return value;
}

/* Without in(): configurations hold paths that it has made. */
static bool is_there(void **state, int64_t step, unsigned incarnation)
{
    char path[512];

    snprintf(path, sizeof path, "%s/run/checkpoints/step-%012ld.%04u/manifest.json", (const char *)*state,
             step, incarnation);
    return pace__exists(path);
}

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
            put_text(in(state, "run/checkpoints/step-000000000012.0001/manifest.json.tmp"), "left by a kill");
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
            assert_true(is_there(state, 40, 2) && is_there(state, 45, 2) && is_there(state, 50, 2));
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
    damage_checkpoint(state, 20, 0, CUT);
    damage_checkpoint(state, 40, 1, FLIP);
    hash_run(state, before);
    resume(&config);
    config.length.epochs = 5;
    fail_to_train(&config, PACE_BAD_DATA, "none of its 2 checkpoints is usable; --force starts over");
    hash_run(state, after);
    assert_string_equal(before, after);
    assert_ok(pace__remove_tree(in(state, "run/checkpoints"), &said_log));
    hash_run(state, before);
    fail_to_train(&config, PACE_BAD_DATA,
                  "no checkpoint any more, but there was one of step 40; --force starts over");
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

static void only_so_many_checkpoints_are_kept(void **state)
{
    make_set(state, "set", layouts[2]);
    pace_train_config config = settings(in(state, "set"), in(state, "run"));

    config.faults.checkpoint_every = 4;
    config.faults.keep = 2;
    train(&config);
    assert_int_equal(count_entries(in(state, "run/checkpoints")), 2);
    assert_true(is_there(state, 48, 1) && is_there(state, 52, 1));
    assert_true(in_summary(state, "checkpoints") == 13);
}

/* --- many modes in one process --- */

static const int modes[] = {PACE_MODE_LOCAL, PACE_MODE_PS_SYNC, PACE_MODE_PS_ASYNC, PACE_MODE_ALLREDUCE};

static pace_train_config settings_of(void **state, int mode)
{
    pace_train_config config = settings(in(state, "set"), in(state, "run"));

    config.mode = mode;
    config.optimiser.exact = true;
    config.records.log_every = 1;
    return config;
}

static void checkpoints_come_by_the_clock(void **state)
{
    make_set(state, "set", layouts[2]);
    for (size_t m = 0; m < 4; m++) {
        pace_train_config config = settings_of(state, modes[m]);
        char expected[65];

        memcpy(expected, train(&config).model_sha256, sizeof expected);
        assert_int_equal(count_entries(in(state, "run/checkpoints")), 0);
        config.faults.checkpoint_seconds = 1e6;
        train(&config);
        assert_int_equal(count_entries(in(state, "run/checkpoints")), 0);
        config.faults.checkpoint_seconds = 1e-9; /* behind every step but the last */
        assert_string_equal(train(&config).model_sha256, expected);
        assert_int_equal(count_entries(in(state, "run/checkpoints")), 2);
        int saved = (int)in_summary(state, "checkpoints");

        assert_in_range(saved, modes[m] == PACE_MODE_PS_ASYNC ? 3 : 53,
                        53); /* async: when a gate is reached */
        assert_true(in_summary(state, "checkpoint_stall_s") > 0);
        assert_false(is_there(state, 54, 1));
        interrupt(config, 30);
        resume(&config);
        assert_string_equal(train(&config).model_sha256, expected);
        assert_true(in_summary(state, "rows_computed_twice") == 0);
    }
}

/* While the run goes on, someone puts a file where checkpoints go, and takes it away again. */
typedef struct vandal {
    const char *directory;
    int64_t from, until; /* checkpoint and step */
    _Atomic int stop;
    int64_t stop_at;
    bool stands;
    int saved_after;
} vandal;

static void obstruct(void *user, const pace_record *record)
{
    vandal *self = user;
    const pace_field *field = pace_record_find(record, "step");
    int64_t step = field ? field->value.integer : 0;
    bool saved = strcmp(record->kind, "checkpoint") == 0;

    if (saved && step == self->from) { /* nothing is being written now */
        require(pace__remove_tree(self->directory, NULL) == PACE_OK);
        require(pace__write_file_atomically(self->directory, "", 0, NULL) == PACE_OK);
        self->stands = true;
    }
    if (strcmp(record->kind, "step") == 0 && step == self->until) {
        require(self->stands && unlink(self->directory) == 0);
        require(pace__make_dirs(self->directory, NULL) == PACE_OK);
        self->stands = false;
    }
    self->saved_after += saved && step > self->from;
    self->stop = self->stop_at && step >= self->stop_at;
}

static pace_status train_watched(pace_train_config config, const pace_sink *sink, pace_train_result *result)
{
    pace_registry *registry = pace_registry_create();

    said_clear();
    pace_registry_attach(registry, sink);
    pace_status status = pace_train(&config, &said_log, registry, result);

    pace_registry_free(registry);
    return status;
}

static void a_checkpoint_that_fails_is_a_warning(void **state)
{
    make_set(state, "set", layouts[2]);
    for (size_t m = 0; m < 4; m++) {
        pace_train_config config = settings_of(state, modes[m]);
        vandal other = {.directory = in(state, "run/checkpoints"), .from = 10, .until = 27};
        pace_train_result result;
        char expected[65];

        memcpy(expected, train(&config).model_sha256, sizeof expected);
        config.faults.checkpoint_every = 5;
        assert_ok(train_watched(config, &(pace_sink){obstruct, &other}, &result));
        assert_string_equal(result.model_sha256, expected);
        assert_int_equal(errors_said(), 0);
        assert_said("W no checkpoint of step 15: ");
        assert_said("run/checkpoints: cannot make the directory");
        assert_said("training goes on, and the newest is that of step 10");
        assert_said("W no checkpoint of step 25: ");
        assert_null(strstr(said, "no checkpoint of step 30"));
        assert_int_equal(other.saved_after, 5); /* 30, 35, 40, 45, 50 */
        assert_true(in_summary(state, "checkpoints") == 7);
        assert_true(is_there(state, 50, 1) && is_there(state, 45, 1));
        assert_int_equal(count_entries(in(state, "run/checkpoints")), 2);
    }
}

/* It cannot be interrupted without losing something: then it says so. */
static void an_interruption_needs_its_checkpoint(void **state)
{
    make_set(state, "set", layouts[2]);
    for (size_t m = 0; m < 4; m++) {
        pace_train_config config = settings_of(state, modes[m]);
        vandal other = {.directory = in(state, "run/checkpoints"), .from = 10, .until = 1000, .stop_at = 14};
        pace_train_result result;
        pace__runstate at;

        config.faults.checkpoint_every = 5;
        config.stop = &other.stop;
        pace_status status = train_watched(config, &(pace_sink){obstruct, &other}, &result);

        assert_failed(status, PACE_IO, "could not be saved: ");
        assert_ok(pace__runstate_read(in(state, "run"), &said_log, &at));
        assert_true(at.ending == PACE__RUN_FAILED && at.has_checkpoint && at.checkpoint == 10);
        assert_false(pace__exists(in(state, "run/model.safetensors")));
    }
}

/* Another incarnation takes over when a record comes: of a checkpoint, so that none is being committed, or of
 * a step where there are none. */
typedef struct usurper {
    const char *run, *kind;
    int64_t at_step;
    bool done;
} usurper;

static void take_over(void *user, const pace_record *record)
{
    usurper *self = user;
    const pace_field *step = pace_record_find(record, "step");
    pace__runstate at;

    if (self->done || strcmp(record->kind, self->kind) != 0 || step->value.integer < self->at_step)
        return;
    require(pace__runstate_read(self->run, NULL, &at) == PACE_OK);
    require(at.incarnation == 1 && at.ending == PACE__RUN_RUNNING);
    at.incarnation++;
    require(pace__runstate_write(self->run, &at, NULL) == PACE_OK);
    self->done = true;
}

static void an_older_incarnation_commits_nothing(void **state)
{
    make_set(state, "set", layouts[2]);
    for (size_t m = 0; m < 4; m++) {
        for (int saves = 0; saves < 2; saves++) {
            pace_train_config config = settings_of(state, modes[m]);
            usurper other = {.run = config.run, .kind = saves ? "checkpoint" : "step", .at_step = 15};
            pace_train_result result;
            pace__runstate at;

            config.faults.checkpoint_every = saves ? 5 : 0;
            pace_status status = train_watched(config, &(pace_sink){take_over, &other}, &result);

            assert_failed(status, PACE_FAILED, "incarnation 2");
            assert_true(other.done);
            assert_ok(pace__runstate_read(config.run, &said_log, &at));
            assert_true(at.incarnation == 2 && at.ending == PACE__RUN_RUNNING && at.has_checkpoint == saves);
            assert_false(pace__exists(in(state, "run/model.safetensors")));
            assert_false(pace__exists(in(state, "run/summary.json")));
            for (int64_t step = 16; step <= 54; step++)
                assert_false(is_there(state, step, 1));
            assert_int_equal(count_entries(in(state, "run/checkpoints")), saves ? 2 : 0);
            assert_true(!saves || (at.checkpoint == 15 && is_there(state, 15, 1)));
        }
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

/* --- lengths and ends --- */

static void steps_and_epochs_count(void **state)
{
    make_set(state, "set", layouts[0]);
    pace_train_config config = settings(in(state, "set"), in(state, "run"));
    pace_train_result result = train(&config);

    assert_int_equal(result.steps, 54);
    assert_int_equal(result.samples, 3 * ROWS);
    assert_true(result.epochs == 3);
    config.length.steps = 7;
    result = train(&config);
    assert_int_equal(result.steps, 7);
    assert_int_equal(result.samples, 700);
    config.length.steps = 18;
    result = train(&config);
    assert_int_equal(result.samples, ROWS);
    char by_steps[65];

    memcpy(by_steps, result.model_sha256, sizeof by_steps);
    config.length.steps = 0;
    config.length.epochs = 1;
    assert_string_equal(train(&config).model_sha256, by_steps);
    config.length.steps = 40; /* beyond the epochs that are asked for */
    assert_int_equal(train(&config).steps, 40);
}

static void a_diverging_run_says_which_option(void **state)
{
    make_set(state, "set", layouts[3]);
    pace_train_config config = settings(in(state, "set"), in(state, "run"));

    config.optimiser.rule = PACE_SGD;
    config.optimiser.lr = 1e5;
    fail_to_train(&config, PACE_FAILED, "--lr");
    assert_false(pace__exists(in(state, "run/model.safetensors")));
    assert_false(pace__exists(in(state, "run/summary.json")));
}

static void a_run_that_gets_worse_stops_early(void **state)
{
    make_set(state, "set",
             (tiny_plan){.train = 300, .test = 300, .ids = 280, .entries = 10, .parts = 1, .seed = 3});
    pace_train_config config = settings(in(state, "set"), in(state, "run"));

    config.length.epochs = 400;
    config.optimiser.lr = 0.5;
    config.records.eval_every = 3;
    config.length.early_stop = 2;
    pace_train_result result = train(&config);

    assert_said("stopping early");
    assert_true(result.steps < 1200 && result.steps % 3 == 0);
    config.length.epochs = 1;
    config.length.early_stop = 1000;
    assert_int_equal(train(&config).steps, 3);
    config.records.eval_every = 0;
    fail_to_train(&config, PACE_USAGE, "--eval-every");
}

static void l1_makes_zeros(void **state)
{
    make_set(state, "set", layouts[3]);
    for (int optimizer = PACE_SGD; optimizer <= PACE_ADAM; optimizer++) {
        size_t zeros[2];

        for (int strong = 0; strong < 2; strong++) {
            pace_train_config config = settings(in(state, "set"), in(state, "run"));
            linear_file model;

            config.optimiser.rule = optimizer;
            config.optimiser.l1 = !strong ? 0 : optimizer == PACE_FTRL ? 3 : 0.02;
            train(&config);
            assert_ok(linear_read(in(state, "run"), &model));
            zeros[strong] = 0;
            for (uint32_t i = 0; i < model.count; i++)
                zeros[strong] += linear_weight_at(&model, i) == 0;
            linear_release(&model);
        }
        assert_in_range(zeros[0], 0, 10);
        assert_in_range(zeros[1], 50, IDS);
    }
}

static void l2_makes_weights_smaller(void **state)
{
    double norm[2] = {0, 0};

    make_set(state, "set", layouts[2]);
    for (int strong = 0; strong < 2; strong++) {
        pace_train_config config = settings(in(state, "set"), in(state, "run"));
        linear_file model;

        config.optimiser.l2 = strong ? 0.01 : 0;
        train(&config);
        assert_ok(linear_read(in(state, "run"), &model));
        for (uint32_t i = 0; i < model.count; i++)
            norm[strong] += linear_weight_at(&model, i) * linear_weight_at(&model, i);
        linear_release(&model);
    }
    assert_true(norm[1] < 0.5 * norm[0] && norm[1] > 0);
}

/* --- what is left behind --- */

static void the_summary_has_its_fields(void **state)
{
    static const char *const names[] = {"model",        "mode",          "workers",
                                        "ps",           "batch",         "epochs",
                                        "steps",        "samples",       "seconds",
                                        "restarts",     "bytes_sent",    "bytes_received",
                                        "bottleneck",   "test",          "samples_per_second",
                                        "model_sha256", "rows_computed", "rows_computed_twice",
                                        "workers_lost", "checkpoints",   "checkpoint_stall_s"};
    static const char *const scores[] = {"accuracy", "precision", "recall", "f1",
                                         "auc",      "logloss",   "n",      "null_accuracy"};

    for (int tested = 0; tested < 2; tested++) {
        tiny_plan plan = layouts[1];
        char *text, hash[PACE__SHA256_HEX];

        plan.test = tested ? 400 : 0;
        assert_ok(pace__remove_tree(in(state, "set"), &said_log));
        make_set(state, "set", plan);
        pace_train_config config = settings(in(state, "set"), in(state, "run"));
        pace_train_result result = train(&config);

        assert_ok(pace_train_summary(in(state, "run"), &said_log, &text));
        cJSON *summary = cJSON_Parse(text), *test = cJSON_GetObjectItem(summary, "test");

        assert_non_null(summary);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            assert_true(cJSON_HasObjectItem(summary, names[i]));
        assert_string_equal(cJSON_GetObjectItem(summary, "model")->valuestring, "logreg");
        assert_string_equal(cJSON_GetObjectItem(summary, "mode")->valuestring, "local");
        assert_true(cJSON_GetObjectItem(summary, "steps")->valuedouble == 54);
        assert_true(cJSON_GetObjectItem(summary, "rows_computed")->valuedouble == 3 * ROWS);
        assert_true(cJSON_GetObjectItem(summary, "rows_computed_twice")->valuedouble == 0);
        hash_file(in(state, "run/model.safetensors"), hash);
        assert_string_equal(cJSON_GetObjectItem(summary, "model_sha256")->valuestring, hash);
        assert_string_equal(result.model_sha256, hash);
        assert_int_equal(result.has_test, tested);
        assert_int_equal(cJSON_IsNull(test), !tested);
        for (size_t i = 0; tested && i < 8; i++)
            assert_true(cJSON_HasObjectItem(test, scores[i]));
        cJSON_Delete(summary);
        free(text);
    }
}

/* With a penalty, too: weights that no row has touched for a while are scored as they stand at the end. */
static void eval_agrees_with_the_end_of_the_run(void **state)
{
    make_set(state, "set", layouts[3]);
    for (int penalised = 0; penalised < 2; penalised++) {
        pace_train_config config = settings(in(state, "set"), in(state, "run"));

        config.optimiser.l1 = penalised ? 0.001 : 0;
        config.optimiser.l2 = penalised ? 0.01 : 0;
        pace_train_result result = train(&config);
        pace_eval_config eval = {.run = in(state, "run"), .data = in(state, "set")};
        pace_scores scores;

        assert_ok(pace_eval(&eval, &said_log, NULL, &scores));
        assert_int_equal(scores.n, result.test.n);
        assert_true(fabs(scores.logloss - result.test.logloss) < 1e-9);
        assert_true(scores.auc == result.test.auc);
        eval.set = PACE_SET_TRAIN;
        assert_ok(pace_eval(&eval, &said_log, NULL, &scores));
        assert_int_equal(scores.n, ROWS);
    }
}

static void runs_sets_and_models_can_be_inspected(void **state)
{
    static const char *const paths[] = {"set", "run", "run/model.safetensors",
                                        "run/checkpoints/step-000000000054.0001"};
    static const char *const kinds[] = {"data set", "run", "model", "checkpoint"};

    make_set(state, "set", layouts[3]);
    pace_train_config config = settings(in(state, "set"), in(state, "run"));

    config.faults.checkpoint_every = 54;
    train(&config);
    for (size_t i = 0; i < 4; i++) {
        pace_inspect_config inspect = {.path = in(state, paths[i]), .top = 5};
        char *text;

        assert_ok(pace_inspect(&inspect, &said_log, &text));
        cJSON *found = cJSON_Parse(text);

        assert_string_equal(cJSON_GetObjectItem(found, "what")->valuestring, kinds[i]);
        cJSON *heaviest = cJSON_GetObjectItem(found, "heaviest");

        assert_int_equal(cJSON_GetArraySize(heaviest), i == 1 || i == 2 ? 5 : 0);
        for (int k = 1; k < cJSON_GetArraySize(heaviest); k++)
            assert_true(
                fabs(cJSON_GetObjectItem(cJSON_GetArrayItem(heaviest, k - 1), "weight")->valuedouble) >=
                fabs(cJSON_GetObjectItem(cJSON_GetArrayItem(heaviest, k), "weight")->valuedouble));
        cJSON_Delete(found);
        free(text);
    }
}

static void a_dry_run_leaves_nothing(void **state)
{
    make_set(state, "set", layouts[0]);
    pace_train_config config = settings(in(state, "set"), in(state, "run"));

    config.dry_run = true;
    train(&config);
    assert_said("54 steps");
    assert_false(pace__exists(in(state, "run")));
}

static void a_run_is_not_overwritten(void **state)
{
    make_set(state, "set", layouts[0]);
    pace_train_config config = settings(in(state, "set"), in(state, "run"));

    train(&config);
    config.force = false;
    fail_to_train(&config, PACE_USAGE, "--force");
}

static void sets_that_cannot_be_trained_are_named(void **state)
{
    make_set(state, "empty", (tiny_plan){.test = 5, .ids = 9, .columns = 3, .unseen = true});
    pace_train_config config = settings(in(state, "empty"), in(state, "run"));

    fail_to_train(&config, PACE_BAD_DATA, in(state, "empty"));
    config.data = in(state, "none");
    fail_to_train(&config, PACE_NO_INPUT, in(state, "none"));
    assert_false(pace__exists(in(state, "run")));
}

/* Damage that only shows while rows are read ends the run with a message, with any number of threads. */
static void damaged_rows_end_the_run(void **state)
{
    for (size_t l = 0; l < 4; l++) {
        pace_train_config config = settings(in(state, "set"), in(state, "run"));
        pace__store store;
        uint32_t wrong = IDS + 1;

        make_set(state, "set", layouts[l]);
        assert_ok(pace__store_open(in(state, "set"), &store, &said_log));
        int fd = open(store.parts[1].path, O_WRONLY | O_CLOEXEC);

        assert_ok(pace__pwrite_all(fd, &wrong, 4, store.parts[1].sets[PACE__TRAIN].ids_at + 400, "part",
                                   &said_log));
        close(fd);
        pace__store_close(&store);
        for (config.cluster.threads = 1; config.cluster.threads <= 3; config.cluster.threads++) {
            pace_train_result result;

            said_clear();
            assert_int_equal(pace_train(&config, &said_log, NULL, &result), PACE_BAD_DATA);
            assert_said(in(state, "set"));
        }
    }
}

/* --- allocation --- */

static size_t count_allocations(const pace_train_config *config)
{
    size_t before = allocations;

    train(config);
    return allocations - before;
}

static void steps_allocate_nothing(void **state)
{
    if (!COUNTS_ALLOCATIONS)
        skip();
    for (size_t l = 0; l < 4; l++) {
        for (int exact = 0; exact < 2; exact++) {
            pace_train_config config = settings(in(state, "set"), in(state, "run"));

            make_set(state, "set", layouts[l]);
            config.records.log_every = 1000000;
            config.optimiser.exact = exact;
            config.cluster.threads = 2;
            config.length.epochs = 1;
            count_allocations(&config); /* libraries allocate more the first time */
            size_t one = count_allocations(&config);

            config.length.epochs = 5;
            assert_int_equal(count_allocations(&config), one);
            assert_true(one > 0);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(any_number_of_threads_gives_the_same_model),
        TEST(large_batches_work_with_any_threads),
        TEST(records_scores_and_checkpoints_change_nothing),
        TEST(the_seed_decides_the_order),
        TEST(the_exact_rule_matches_a_naive_trainer),
        TEST(both_rules_learn),
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
        TEST(only_so_many_checkpoints_are_kept),
        TEST(checkpoints_come_by_the_clock),
        TEST(a_checkpoint_that_fails_is_a_warning),
        TEST(an_interruption_needs_its_checkpoint),
        TEST(an_older_incarnation_commits_nothing),
        TEST(another_job_cannot_resume),
        TEST(incarnations_come_to_an_end),
        TEST(what_is_no_run_is_not_resumed),
        TEST(steps_and_epochs_count),
        TEST(a_diverging_run_says_which_option),
        TEST(a_run_that_gets_worse_stops_early),
        TEST(l1_makes_zeros),
        TEST(l2_makes_weights_smaller),
        TEST(the_summary_has_its_fields),
        TEST(eval_agrees_with_the_end_of_the_run),
        TEST(runs_sets_and_models_can_be_inspected),
        TEST(a_dry_run_leaves_nothing),
        TEST(a_run_is_not_overwritten),
        TEST(sets_that_cannot_be_trained_are_named),
        TEST(damaged_rows_end_the_run),
        TEST(steps_allocate_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
