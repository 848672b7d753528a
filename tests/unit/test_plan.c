/* Plans of jobs that never run: from options and the description of a data set, without files and processes. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "job/cost.h"
#include "metrics/scoring.h"

#include "support.h"

/* Bytes on the wire, by hand: what a change of ps/wire.h has to agree with. */
#define PUSH_BYTES  72
#define REPLY_BYTES 48

enum { LOGREG, LOGREG_TEXT, RNN, CNN, FM, CASES };

static const char *const kinds[CASES] = {"logreg", "logreg", "rnn", "cnn", "fm"};
static const int modes[] = {PACE_MODE_LOCAL, PACE_MODE_ALLREDUCE, PACE_MODE_PS_SYNC, PACE_MODE_PS_ASYNC,
                            PACE_MODE_PS_SSP};
#define MODES (sizeof modes / sizeof *modes)

static pace__dataset data_of(int which)
{
    pace__dataset data = {.kind = PACE__ROWS_SPARSE,
                          .columns = 5,
                          .row_entries_max = 5,
                          .ids = 1000,
                          .features = 5000,
                          .rows = 1003,
                          .test_rows = 50,
                          .positives = 400};

    if (which == LOGREG_TEXT || which == RNN) {
        data.kind = PACE__ROWS_TEXT;
        data.columns = data.row_entries_max = 20;
        data.features = data.ids = 300;
    } else if (which == CNN) {
        data.kind = PACE__ROWS_PICTURES;
        data.columns = data.row_entries_max = 32 * 32 * 3;
        data.ids = 0;
        data.height = data.width = 32;
        data.channels = 3;
        data.classes = 4;
        data.features = 32 * 32 * 3;
        data.positives = UINT64_MAX;
    }
    return data;
}

static pace_train_config config_of(int which, int mode)
{
    pace_train_config config;
    int model = 0;

    while (strcmp(pace__kind_at(model)->info.name, kinds[which]) != 0)
        model++;
    pace_train_defaults(model, &config);
    config.data = "a test";
    config.mode = mode;
    config.length.batch = 100;
    config.length.epochs = 2;
    if (mode != PACE_MODE_LOCAL)
        config.cluster.workers = 3;
    if (mode >= PACE_MODE_PS_SYNC)
        config.cluster.ps = 2;
    if (mode == PACE_MODE_PS_SSP)
        config.cluster.staleness = 4;
    return config;
}

static pace_status try_plan(pace_train_config *config, const pace__dataset *data, pace__job_plan *plan)
{
    pace_status status = pace__plan_cluster(config, &said_log, plan);

    return status ? status : pace__plan_make(config, data, &(pace__planner){0}, &said_log, plan);
}

static pace__job_plan plan_of(pace_train_config config, const pace__dataset *data)
{
    pace__job_plan plan;

    said_clear();
    assert_ok(try_plan(&config, data, &plan));
    return plan;
}

static pace__job_plan usual(int which, int mode)
{
    pace__dataset data = data_of(which);

    return plan_of(config_of(which, mode), &data);
}

/* --- who does what --- */

static void every_mode_of_every_kind(void **state)
{
    (void)state;
    for (int which = 0; which < CASES; which++) {
        for (size_t i = 0; i < MODES; i++) {
            int mode = modes[i];
            bool local = mode == PACE_MODE_LOCAL, async = mode >= PACE_MODE_PS_ASYNC;
            pace__job_plan plan = usual(which, mode);

            assert_int_equal(plan.mode, mode);
            assert_int_equal(plan.cluster.workers, local ? 1 : 3);
            assert_int_equal(plan.cluster.ps, mode >= PACE_MODE_PS_SYNC ? 2 : 0);
            assert_int_equal(plan.exchange, async                       ? PACE__EXCHANGE_ASYNC
                                            : mode == PACE_MODE_PS_SYNC ? PACE__EXCHANGE_SYNC
                                                                        : PACE__EXCHANGE_MERGE);
            assert_int_equal(plan.depth, async ? 2 : 1);
            assert_int_equal(plan.rows_max, local ? 100 : plan.by_words ? 51 : 34);
            assert_int_equal(plan.order.per_epoch, 11);
            assert_int_equal(plan.steps, 22);
            assert_true(plan.staleness == (mode == PACE_MODE_PS_SSP ? 4 : UINT64_MAX));
            assert_int_equal(plan.by_columns, which == LOGREG && local);
            assert_true(plan.scores_on_the_way && plan.floats >= plan.model.shape.dim);
            assert_true(plan.keys_max >= 1 && plan.keys_max <= plan.model.shape.keys);
            assert_true(plan.model.shape.keys > 0 && plan.threads >= 1);
            pace__plan_release(&plan);
        }
    }
}

static void many_rows_in_flight_are_not_asked_ahead(void **state)
{
    pace__dataset data = data_of(LOGREG);
    pace_train_config config = config_of(LOGREG, PACE_MODE_PS_ASYNC);

    (void)state;
    data.rows = 100000;
    for (int64_t more = 0; more < 2; more++) {
        config.length.batch = 10000 + more;
        pace__job_plan plan = plan_of(config, &data);

        assert_int_equal(plan.depth, more ? 1 : 2);
        pace__plan_release(&plan);
    }
}

static void a_mode_follows_from_the_cluster(void **state)
{
    static const struct {
        int64_t workers, ps;
        bool evaluator;
        int mode;
    } cases[] = {{1, -1, false, PACE_MODE_LOCAL},
                 {2, -1, false, PACE_MODE_ALLREDUCE},
                 {1, -1, true, PACE_MODE_ALLREDUCE},
                 {1, 0, false, PACE_MODE_PS_SYNC},
                 {2, 3, false, PACE_MODE_PS_SYNC}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pace_train_config config = config_of(LOGREG, PACE_MODE_AUTO);
        pace__dataset data = data_of(LOGREG);

        config.cluster.workers = cases[i].workers;
        config.cluster.ps = cases[i].ps;
        config.cluster.evaluator = cases[i].evaluator;
        pace__job_plan plan = plan_of(config, &data);

        assert_int_equal(plan.mode, cases[i].mode);
        assert_int_equal(plan.scores_on_the_way, !cases[i].evaluator);
        pace__plan_release(&plan);
    }
}

/* --- steps --- */

static void slices_are_the_step_in_order(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 130; workers = workers * 3 + 1) { /* also more than a step has rows */
        pace__dataset data = data_of(LOGREG);
        pace_train_config config = config_of(LOGREG, PACE_MODE_PS_SYNC);

        config.cluster.workers = workers;
        pace__job_plan plan = plan_of(config, &data);
        uint64_t place = 0;

        for (uint64_t step = 0; step < plan.steps; step++) {
            assert_true(place == pace__plan_rows_before(&plan, step));
            for (int worker = 0; worker < workers; worker++) {
                uint64_t first, rows;

                pace__plan_slice(&plan, step, worker, &first, &rows);
                assert_true(first == place && rows <= plan.rows_max);
                place += rows;
            }
        }
        assert_true(place == 2 * data.rows);
        pace__plan_release(&plan);
    }
}

/* Texts are dealt out by words, where all wait for all; there is room for longer shares. */
static void texts_are_dealt_out_by_words(void **state)
{
    (void)state;
    for (int which = 0; which < CASES; which++) {
        for (size_t i = 0; i < MODES; i++) {
            bool text = which == LOGREG_TEXT || which == RNN;
            bool sync = modes[i] == PACE_MODE_ALLREDUCE || modes[i] == PACE_MODE_PS_SYNC;
            pace__job_plan plan = usual(which, modes[i]);

            assert_int_equal(plan.by_words, text && sync);
            pace__plan_release(&plan);
        }
    }
}

static void rates_follow_the_schedule(void **state)
{
    pace__dataset data = data_of(LOGREG);
    pace_train_config config = config_of(LOGREG, PACE_MODE_PS_SYNC);

    (void)state;
    config.optimiser.lr = 0.5;
    config.optimiser.warmup = 10;
    config.optimiser.schedule = PACE_SCHEDULE_CONSTANT;
    pace__job_plan plan = plan_of(config, &data);

    assert_true(plan.rate.lr == 0.5 && plan.rate.steps == 22);
    for (uint64_t step = 1; step < 22; step++)
        assert_true(step < 10 ? pace__plan_rate(&plan, step) > pace__plan_rate(&plan, step - 1)
                              : pace__plan_rate(&plan, step) == 0.5);
    assert_true(pace__plan_has_open_end(&plan));
    pace__plan_release(&plan);
    config.optimiser.schedule = PACE_SCHEDULE_LINEAR;
    config.optimiser.warmup = 0;
    plan = plan_of(config, &data);
    for (uint64_t step = 1; step < 22; step++)
        assert_true(pace__plan_rate(&plan, step) < pace__plan_rate(&plan, step - 1));
    assert_false(pace__plan_has_open_end(&plan));
    pace__plan_release(&plan);
    config.optimiser.lr = 0;
    plan = plan_of(config, &data);
    assert_true(plan.rate.lr == pace__optim_default_lr(config.optimiser.rule, true));
    pace__plan_release(&plan);
}

/* --- who holds what --- */

static void check_holders(const pace__job_plan *plan)
{
    uint64_t keys = plan->model.shape.keys, places = 0;
    uint8_t *held = tiny_alloc(keys);

    for (unsigned i = 0; i < pace__plan_holders(plan); i++) {
        pace__holder holder = pace__plan_holder(plan, i);

        assert_true(pace__role_of(&plan->cluster, holder.rank) ==
                    (plan->cluster.ps ? PACE__PS : PACE__WORKER));
        if (pace__plan_has_replicas(plan))
            assert_int_equal(holder.rank, 0);
        else
            assert_int_equal(pace__plan_shard_of(plan, holder.rank), i);
        for (uint64_t place = 0; place < holder.places; place++)
            held[place * holder.shards + holder.shard]++;
        places += holder.places;
    }
    assert_true(places == keys);
    for (uint64_t key = 0; key < keys; key++)
        assert_int_equal(held[key], 1);
    free(held);
}

static void each_key_has_one_holder(void **state)
{
    (void)state;
    for (int which = 0; which < CASES; which++) {
        for (size_t i = 1; i < MODES; i++) {
            for (int64_t ps = 0; ps <= 5; ps += modes[i] == PACE_MODE_ALLREDUCE ? 9 : 1) {
                pace__dataset data = data_of(which);
                pace_train_config config = config_of(which, modes[i]);

                config.cluster.ps = modes[i] == PACE_MODE_ALLREDUCE ? -1 : ps;
                pace__job_plan plan = plan_of(config, &data);

                check_holders(&plan);
                pace__plan_release(&plan);
            }
        }
    }
}

static void shards_agree_with_their_clients(void **state)
{
    (void)state;
    for (size_t i = 1; i < MODES; i++) {
        pace__job_plan plan = usual(FM, modes[i]);
        pace__client_plan client = pace__plan_client(&plan);
        int shards = 0;

        for (int rank = 0; rank < pace__cluster_size(&plan.cluster); rank++) {
            int shard = pace__plan_shard_of(&plan, rank);

            if (shard < 0)
                continue;
            pace__shard_plan made = pace__plan_shard(&plan, (unsigned)shard, 7);

            assert_int_equal(rank, client.first_rank + shard);
            assert_true(made.exchange == client.exchange && made.keys_max == client.keys_max);
            assert_true(made.table.keys == client.keys && made.table.dim == client.dim);
            assert_true(made.table.shards == (unsigned)client.shards && made.first_step == 7);
            assert_true(made.table.sums == pace__plan_is_sync(&plan));
            shards++;
        }
        assert_int_equal(shards, client.shards);
        pace__plan_release(&plan);
    }
}

/* --- refusals --- */

static void messages_have_a_limit(void **state)
{
    pace__dataset data = data_of(LOGREG);
    pace_train_config config = config_of(LOGREG, PACE_MODE_PS_SYNC);
    pace__job_plan plan;

    (void)state;
    data.ids = 300000000;
    data.rows = 100000000;
    config.length.batch = 90000000;
    assert_failed(try_plan(&config, &data, &plan), PACE_USAGE, "take a smaller --batch or more --workers");
    pace__plan_release(&plan);
    config = config_of(LOGREG, PACE_MODE_ALLREDUCE);
    config.cluster.evaluator = true;
    assert_failed(try_plan(&config, &data, &plan), PACE_USAGE, "instead of allreduce, or no --evaluator");
    pace__plan_release(&plan);
    config.cluster.evaluator = false;
    plan = plan_of(config, &data);
    pace__plan_release(&plan);
    config = config_of(LOGREG, PACE_MODE_LOCAL); /* no messages there */
    config.length.batch = 90000000;
    plan = plan_of(config, &data);
    assert_true(plan.by_columns);
    pace__plan_release(&plan);
}

static void what_makes_no_job_is_refused(void **state)
{
    pace__dataset data = data_of(LOGREG);
    pace_train_config config = config_of(LOGREG, PACE_MODE_LOCAL);
    pace__job_plan plan;

    (void)state;
    data.rows = 0;
    assert_failed(try_plan(&config, &data, &plan), PACE_BAD_DATA, "has no training rows");
    data = data_of(LOGREG);
    config.length.early_stop = 2;
    assert_failed(try_plan(&config, &data, &plan), PACE_USAGE, "--early-stop needs --eval-every");
    config = config_of(LOGREG, PACE_MODE_LOCAL);
    config.length.steps = INT64_C(1000000000000);
    assert_failed(try_plan(&config, &data, &plan), PACE_USAGE, "more than the limit");
    data = data_of(RNN);
    config = config_of(FM, PACE_MODE_ALLREDUCE);
    assert_failed(try_plan(&config, &data, &plan), PACE_USAGE, "has no rows of features");
    pace__plan_release(&plan);
}

/* --- what it costs --- */

static uint64_t memory_of(const pace__job_plan *plan, int rank)
{
    return pace__cost_memory(plan, &(pace__reading_cost){.batch_bytes = 1000, .pieces_bytes = 5000}, rank);
}

static void a_step_has_its_bytes(void **state)
{
    pace__job_plan plan = usual(LOGREG, PACE_MODE_PS_SYNC); /* two servers */
    pace__step_cost cost = pace__cost_step(&plan, 10);

    (void)state;
    assert_true(sizeof(pace__push) == PUSH_BYTES && sizeof(pace__reply) == REPLY_BYTES);
    assert_true(cost.sent == 2 * PUSH_BYTES + 10 * (4 + 4)); /* a gradient and a key each */
    assert_true(cost.received == 2 * REPLY_BYTES + 10 * 4);
    pace__plan_release(&plan);
    plan = usual(LOGREG, PACE_MODE_ALLREDUCE); /* a shard of sums on each of three workers */
    cost = pace__cost_step(&plan, 10);
    assert_true(cost.sent == 3 * PUSH_BYTES + 10 * (4 + 4));
    assert_true(cost.received == 3 * REPLY_BYTES + 3 * 10 * (4 + 4));
    pace__plan_release(&plan);
    plan = usual(RNN, PACE_MODE_ALLREDUCE);
    cost = pace__cost_step(&plan, 0);
    assert_true(plan.model.shape.dense > 0);
    assert_true(cost.sent == 3 * PUSH_BYTES + 8 * (double)plan.model.shape.dense);
    assert_true(cost.received == 3 * REPLY_BYTES + 8 * (double)plan.model.shape.dense);
    pace__plan_release(&plan);
}

static void the_chief_needs_what_a_worker_does_and_more(void **state)
{
    (void)state;
    for (int which = 0; which < CASES; which++) {
        for (size_t i = 1; i < MODES; i++) {
            pace__job_plan plan = usual(which, modes[i]);
            uint64_t model = plan.model.shape.keys * plan.floats * 4, chief = memory_of(&plan, 0),
                     worker = memory_of(&plan, 1);
            uint64_t more = model * (pace__plan_has_replicas(&plan) ? 2 : 1) +
                            pace__model_memory(&plan.model, PACE__SCORE_ROWS, plan.threads, true);

            assert_true(worker > 0 && chief >= worker);
            if (plan.cluster.ps > 0) /* else its shard may be larger by a key */
                assert_true(chief - worker == more);
            if (pace__plan_has_replicas(&plan))
                assert_true(worker > model);
            pace__plan_release(&plan);
        }
    }
}

static void columns_are_the_sum_of_their_parts(void **state)
{
    pace__reading_cost reading = {.batch_bytes = 1000, .pieces_bytes = 5000};
    pace__dataset data = data_of(LOGREG);
    pace_train_config config = config_of(LOGREG, PACE_MODE_LOCAL);

    (void)state;
    config.optimiser.exact = true;
    pace__job_plan plan = plan_of(config, &data);
    pace__columns_cost cost = pace__cost_columns(&plan, &reading);

    assert_true(cost.parameters == 1001 * plan.model.optim.width * 4 && cost.gradients == UINT64_C(1001) * 8);
    assert_true(cost.reading == 5000 && cost.scoring == UINT64_C(50) * 8);
    assert_true(pace__cost_memory(&plan, &reading, 0) ==
                2 * cost.parameters + cost.gradients + cost.reading + cost.scoring);
    pace__plan_release(&plan);
    config.optimiser.exact = false;
    plan = plan_of(config, &data);
    assert_true(!plan.exact && pace__cost_columns(&plan, &reading).gradients == 0);
    pace__plan_release(&plan);
}

static void memory_grows_with_the_batch(void **state)
{
    (void)state;
    for (int which = 0; which < CASES; which++) {
        for (size_t i = 1; i < MODES; i++) {
            uint64_t before = 0;

            for (int64_t batch = 3; batch <= 768; batch *= 4) {
                pace__dataset data = data_of(which);
                pace_train_config config = config_of(which, modes[i]);

                config.length.batch = batch;
                pace__job_plan plan = plan_of(config, &data);

                assert_true(memory_of(&plan, 1) >= before);
                before = memory_of(&plan, 1);
                pace__plan_release(&plan);
            }
        }
    }
}

static void more_servers_need_less_each(void **state)
{
    uint64_t before = UINT64_MAX;

    (void)state;
    for (int64_t ps = 1; ps <= 8; ps *= 2) {
        pace__dataset data = data_of(FM);
        pace_train_config config = config_of(FM, PACE_MODE_PS_SYNC);

        config.cluster.ps = ps;
        config.cluster.evaluator = true;
        pace__job_plan plan = plan_of(config, &data);
        uint64_t server = memory_of(&plan, 3);

        assert_int_equal(pace__role_of(&plan.cluster, 3), PACE__PS);
        assert_true(server < before);
        for (int rank = 3; rank < 3 + ps; rank++)
            assert_true(memory_of(&plan, rank) <= server); /* the first has the odd key */
        assert_true(memory_of(&plan, 3 + (int)ps) > plan.model.shape.keys * plan.model.shape.dim * 4);
        before = server;
        pace__plan_release(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mode_of_every_kind),
        cmocka_unit_test(many_rows_in_flight_are_not_asked_ahead),
        cmocka_unit_test(a_mode_follows_from_the_cluster),
        cmocka_unit_test(slices_are_the_step_in_order),
        cmocka_unit_test(texts_are_dealt_out_by_words),
        cmocka_unit_test(rates_follow_the_schedule),
        cmocka_unit_test(each_key_has_one_holder),
        cmocka_unit_test(shards_agree_with_their_clients),
        cmocka_unit_test(messages_have_a_limit),
        cmocka_unit_test(what_makes_no_job_is_refused),
        cmocka_unit_test(a_step_has_its_bytes),
        cmocka_unit_test(the_chief_needs_what_a_worker_does_and_more),
        cmocka_unit_test(columns_are_the_sum_of_their_parts),
        cmocka_unit_test(memory_grows_with_the_batch),
        cmocka_unit_test(more_servers_need_less_each),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
