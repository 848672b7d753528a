/* Penalties under a learning-rate schedule: one rule, the same bytes, in every mode that promises them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/store/order.h"
#include "optim/optim.h"

#include "interrupting.h"
#include "model_files.h"
#include "support.h"

#include <paceline/train.h>

#define ROWS           900
#define BATCH          100
#define STEPS_IN_EPOCH (ROWS / BATCH)
#define STEPS          (2 * STEPS_IN_EPOCH)
#define IDS            21 /* three in each column: all occur in every step */

static const tiny_plan plan = {.train = ROWS, .test = 100, .ids = IDS, .columns = 7, .parts = 2, .seed = 3};
static const int schedules[] = {PACE_SCHEDULE_CONSTANT, PACE_SCHEDULE_LINEAR, PACE_SCHEDULE_COSINE,
                                PACE_SCHEDULE_INVSQRT};
static const double penalties[][2] = {{1e-3, 0}, {0, 1e-2}, {5e-4, 5e-3}}; /* l1, l2 */

static void make_set(void **state)
{
    tiny_set set = tiny_make(plan);

    tiny_write(&set, in(state, "set"));
    tiny_free(&set);
}

static pace_train_config settings(void **state, int rule, int schedule, const double penalty[2])
{
    return (pace_train_config){.data = in(state, "set"),
                               .run = in(state, "run"),
                               ONE_PROCESS,
                               .length = {.batch = BATCH, .epochs = 2},
                               .optimiser = {.rule = rule,
                                             .lr = rule == PACE_SGD ? 2 : 0.2,
                                             .momentum = 0.9,
                                             .schedule = schedule,
                                             .warmup = schedule == PACE_SCHEDULE_INVSQRT ? 3 : 0,
                                             .l1 = penalty[0],
                                             .l2 = penalty[1],
                                             .exact = true},
                               .faults.keep = 2,
                               .seed = 7,
                               .force = true};
}

typedef struct sha {
    char hex[65];
} sha;

static sha sha_of(const pace_train_config *config)
{
    pace_train_result result;
    sha found;

    said_clear();
    assert_ok(pace_train(config, &said_log, NULL, &result));
    memcpy(found.hex, result.model_sha256, sizeof found.hex);
    return found;
}

static void same_in_all_modes(pace_train_config config)
{
    sha expected = sha_of(&config);

    config.cluster.threads = 3;
    assert_string_equal(sha_of(&config).hex, expected.hex);
    config.cluster.threads = 1;
    config.mode = PACE_MODE_ALLREDUCE;
    assert_string_equal(sha_of(&config).hex, expected.hex);
    config.mode = PACE_MODE_PS_SYNC;
    assert_string_equal(sha_of(&config).hex, expected.hex);
    config.mode = PACE_MODE_PS_SSP;
    config.cluster.staleness = 0;
    assert_string_equal(sha_of(&config).hex, expected.hex);
}

static void one_worker_gives_the_bits_of_local(void **state)
{
    static const int rules[] = {PACE_SGD, PACE_MOMENTUM, PACE_ADAGRAD, PACE_ADAM};

    make_set(state);
    for (int i = 0; i < 12; i++) /* every pair of schedule and penalty; rules go round */
        same_in_all_modes(settings(state, rules[(i + i / 4) % 4], schedules[i % 4], penalties[i % 3]));
}

/* Scores, records and checkpoints read what is penalised late, and a resumed run stands at the same rate. */
static void resumed_and_scored_on_the_way(void **state)
{
    make_set(state);
    for (int exact = 0; exact < 2; exact++) {
        pace_train_config config = settings(state, PACE_ADAGRAD, PACE_SCHEDULE_INVSQRT, penalties[2]);

        config.optimiser.exact = exact;
        sha expected = sha_of(&config);

        config.records.log_every = 1;
        config.records.eval_every = 3;
        config.faults.checkpoint_every = 4;
        interrupt_run(run_alone, config, 7);
        config.force = false;
        config.resume = true;
        assert_string_equal(sha_of(&config).hex, expected.hex);
    }
}

/* --- what the rule is --- */

/* A naive trainer, in double: every row is penalised at the rate of its own step. */
typedef struct naive {
    double weight[IDS + 1], sum[IDS + 1]; /* [IDS]: the bias, which has no penalty */
} naive;

static double rate_of(const pace_train_config *config, uint64_t step)
{
    return pace__schedule_lr(config->optimiser.schedule, config->optimiser.lr, config->optimiser.warmup, step,
                             STEPS);
}

static void add_row(naive *self, const tiny_rows *rows, uint64_t row)
{
    double z = self->weight[IDS];

    for (uint64_t at = rows->start[row]; at < rows->start[row + 1]; at++)
        z += self->weight[rows->ids[at]];
    double error = 1 / (1 + exp(-z)) - rows->label[row];

    for (uint64_t at = rows->start[row]; at < rows->start[row + 1]; at++)
        self->sum[rows->ids[at]] += error;
    self->sum[IDS] += error;
}

static void naive_step(naive *self, const pace_train_config *config, const tiny_rows *rows, uint64_t step)
{
    pace__order order = pace__order_make(ROWS, config->seed, step / STEPS_IN_EPOCH);
    double rate = rate_of(config, step), l2 = config->optimiser.l2;
    uint64_t first = step % STEPS_IN_EPOCH * BATCH, run;

    memset(self->sum, 0, sizeof self->sum);
    for (uint64_t at = first; at < first + BATCH; at++)
        add_row(self, rows, pace__order_row(&order, at, &run));
    for (uint32_t id = 0; id <= IDS; id++)
        self->weight[id] -= rate * self->sum[id] / BATCH;
    for (uint32_t id = 0; id < IDS; id++)
        self->weight[id] *= exp(-rate * l2 * BATCH);
}

/* Every id is in every step, so each is brought up with every step: then late is exact. */
static void rows_count_at_the_rate_of_their_step(void **state)
{
    tiny_set set = tiny_make(plan);
    const double penalty[] = {0, 1e-3};

    tiny_write(&set, in(state, "set"));
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        pace_train_config config = settings(state, PACE_SGD, schedules[i], penalty);
        naive self = {{0}, {0}};
        linear_file model;

        sha_of(&config);
        for (uint64_t step = 0; step < STEPS; step++)
            naive_step(&self, &config, &set.rows[PACE__TRAIN], step);
        assert_ok(linear_read(in(state, "run"), &model));
        for (uint32_t id = 0; id < IDS; id++)
            assert_true(fabs(linear_weight_at(&model, id) - self.weight[id]) < 2e-5);
        linear_release(&model);
    }
    tiny_free(&set);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_worker_gives_the_bits_of_local),
        TEST(rows_count_at_the_rate_of_their_step),
        TEST(resumed_and_scored_on_the_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
