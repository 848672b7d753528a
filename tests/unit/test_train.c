/* Training from a data set to a model: the same bytes whatever the threads and the records. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/store/order.h"

#include "lone_runs.h"
#include "model_files.h"

#include <paceline/inspect.h>
#include <stdatomic.h>

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

/* --- the same bytes --- */

static void any_number_of_threads_gives_the_same_model(void **state)
{
    static const int optimizers[] = {PACE_ADAGRAD, PACE_SGD, PACE_FTRL};

    for (size_t l = 0; l < 4; l++) {
        make_set(state, "set", layouts[l]);
        for (size_t o = 0; o < 3; o++) {
            bool tried = o == 0 || o == 1 + l % 2; /* the others on every second layout */

            for (int exact = 0; exact < 2 && tried; exact++) {
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
            config.length.epochs = 2;   /* who reads rows once does not map them */
            count_allocations(&config); /* libraries allocate more the first time */
            size_t two = count_allocations(&config);

            config.length.epochs = 6;
            assert_int_equal(count_allocations(&config), two);
            assert_true(two > 0);
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
