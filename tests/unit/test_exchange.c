/* Workers and shards between threads, against a plain sum. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support.h"

#include "ps_job.h"
#include "shard_tests.h"

/* --- jobs --- */

/* Where the shards may be: on ranks of their own, or on the first workers. */
static bool fits(const ps_plan *plan)
{
    return !plan->on_workers || plan->shards <= plan->workers;
}

/* Calls run for 1 to 4 workers, 1 to 3 shards, in both places; rules and seeds go round. */
static void everywhere(ps_plan plan, void (*run)(const ps_plan *plan))
{
    static const int kinds[] = {PACE_SGD, PACE_ADAGRAD, PACE_MOMENTUM, PACE_FTRL, PACE_ADAM};
    static const int schedules[] = {PACE_SCHEDULE_CONSTANT, PACE_SCHEDULE_LINEAR};
    bool one_kind = plan.constant;
    unsigned turn = 0;

    for (plan.workers = 1; plan.workers <= JOB_WORKERS; plan.workers++) {
        for (plan.shards = 1; plan.shards <= 3; plan.shards++) {
            for (int place = 0; place < 2; place++, turn++) {
                plan.on_workers = place;
                plan.seed = 1000 + turn;
                if (!one_kind) {
                    plan.kind = kinds[turn % 5];
                    plan.schedule = schedules[turn / 2 % 2];
                    bool penalty = plan.dim == 1 || plan.kind == PACE_FTRL;

                    plan.l1 = penalty && turn % 3 == 1 ? 0.001 : 0;
                    plan.l2 = penalty && turn % 4 >= 2 ? 0.01 : 0;
                }
                if (fits(&plan))
                    run(&plan);
            }
        }
    }
}

static pace__shard *shard_of(const ps_job *job, int shard)
{
    return job->ranks[job->first_shard + shard].shard;
}

/* Every row was applied once on each shard, and the counts say so. */
static void check_books(const ps_job *job, uint64_t last_step)
{
    uint64_t rows = pace__steps_rows_before(&job->steps, last_step), pushed = 0;

    for (int worker = 0; worker < job->plan.workers; worker++)
        pushed += job->ranks[worker].pushed;
    for (int shard = 0; shard < job->plan.shards; shard++) {
        const pace__shard_stats *stats = pace__shard_stats_of(shard_of(job, shard));

        assert_ok(pace__shard_check(shard_of(job, shard), rows));
        assert_int_equal(pace__shard_step(shard_of(job, shard)), last_step);
        assert_int_equal(stats->repeats_dropped, 0);
        assert_int_equal(stats->rows_repeated, 0);
        if (job->plan.exchange == PACE__EXCHANGE_MERGE)
            continue;
        assert_int_equal(sum_staleness(stats), stats->pushes);
        if (!job->plan.end_before)
            assert_int_equal(stats->pushes, pushed);
    }
}

/* --- sync --- */

static void run_sync(const ps_plan *plan)
{
    static reference expected;
    ps_job *job = job_open(*plan);
    uint64_t last = plan->end_before ? plan->end_before : plan->steps;

    job_run(job);
    reference_init(&expected, plan);
    for (uint64_t step = plan->first_step; step < last; step++)
        reference_step(&expected, step);
    if (plan->end_before)
        reference_read_step(&expected, last);
    job_compare(job, &expected);
    check_books(job, last);
    for (int shard = 0; shard < plan->shards; shard++)
        assert_int_equal(pace__shard_stats_of(shard_of(job, shard))->staleness[0],
                         pace__shard_stats_of(shard_of(job, shard))->pushes);
    for (int worker = 0; worker < plan->workers; worker++) {
        const pace__answer *answer = &job->ranks[worker].last;

        assert_int_equal(answer->end, plan->end_before != 0);
        assert_int_equal(answer->applied, !answer->end);
        assert_int_equal(answer->rows_done, pace__steps_rows_before(&job->steps, last));
        assert_true(answer->loss ==
                    (double)(answer->rows_done - pace__steps_rows_before(&job->steps, plan->first_step)));
    }
    job_close(job);
}

static const ps_plan sync_plan = {
    .rows = 100, .batch = 24, .steps = 11, .keys = 120, .depth = 1, .staleness = 0};

/* The reference does not know how many shards there are: the bits do not depend on it. */
static void sync_is_the_plain_sum(void **state)
{
    ps_plan plan = sync_plan;

    plan.dim = dim_of(state);
    everywhere(plan, run_sync);
}

/* Few keys with long rows, which nearly every batch has: as tensors are that everyone needs. */
static void sync_of_long_rows(void **state)
{
    static const unsigned lengths[] = {16, 333};
    ps_plan plan = sync_plan;

    (void)state;
    plan.keys = 3;
    plan.steps = 5;
    for (int i = 0; i < 2; i++) {
        plan.dim = lengths[i];
        everywhere(plan, run_sync);
    }
}

/* Steps of fewer rows than workers: some have nothing to push, and say so. Keys enough for one shard only. */
static void sync_of_nearly_nothing(void **state)
{
    ps_plan plan = sync_plan;

    plan.dim = dim_of(state);
    plan.rows = 5;
    plan.batch = 2;
    plan.keys = 2;
    everywhere(plan, run_sync);
}

/* --wire bf16: each worker's sums are rounded, and added up as floats. Rows of an odd length have a gap behind them. */
static void sync_of_rounded_gradients(void **state)
{
    ps_plan plan = sync_plan;

    plan.dim = dim_of(state);
    plan.narrow = true;
    everywhere(plan, run_sync);
    plan.keys = 3;
    plan.dim = 33;
    everywhere(plan, run_sync);
}

static void sync_begins_in_the_middle(void **state)
{
    ps_plan plan = sync_plan;

    plan.dim = dim_of(state);
    plan.first_step = 6;
    everywhere(plan, run_sync);
}

static void same_bits_again(void **state)
{
    ps_plan plan = sync_plan;

    plan.dim = dim_of(state);
    plan.workers = 3;
    plan.shards = 2;
    plan.kind = PACE_ADAGRAD;
    plan.steps = 30;
    plan.seed = 4;
    for (int i = 0; i < 5; i++)
        run_sync(&plan);
}

/* The chief ends the job before step 6: nothing of that step is applied anywhere, and all hear of it. */
static void the_chief_ends(void **state)
{
    ps_plan plan = sync_plan;

    plan.dim = dim_of(state);
    plan.end_before = 6;
    everywhere(plan, run_sync);
}

/* --- merge --- */

static void run_merge(const ps_plan *plan)
{
    static reference expected;
    uint64_t last = plan->end_before ? plan->end_before : plan->steps;
    ps_job *job = job_open(*plan);

    reference_init(&expected, plan);
    for (uint64_t step = plan->first_step; step < last; step++)
        reference_step(&expected, step);
    reference_catch_up(&expected, last);
    job->read_arg = &expected; /* workers compare their replicas with it */
    job_run(job);
    check_books(job, last);
    job_close(job);
}

static void merged_sums(void **state)
{
    ps_plan plan = sync_plan;

    plan.dim = dim_of(state);
    plan.exchange = PACE__EXCHANGE_MERGE;
    everywhere(plan, run_merge);
    plan.first_step = 2;
    plan.end_before = 6;
    everywhere(plan, run_merge);
}

/* --- async --- */

static const ps_plan async_plan = {.exchange = PACE__EXCHANGE_ASYNC,
                                   .rows = 96,
                                   .batch = 32,
                                   .steps = 15,
                                   .keys = 120,
                                   .staleness = PACE__STALENESS_UNBOUNDED,
                                   .depth = 1};

/* One worker in step: what it gets are the weights after its own last push. */
static void run_sequence(const ps_plan *plan)
{
    static reference expected;

    if (plan->workers > 1)
        return;
    ps_job *job = job_open(*plan);

    job_run(job);
    reference_init(&expected, plan);
    for (uint64_t step = plan->first_step; step < plan->steps; step++) {
        uint64_t first = pace__steps_rows_before(&expected.steps, step);

        reference_add(&expected, first, pace__steps_rows_in(&expected.steps, step), step, first);
        reference_apply(&expected, step);
    }
    job_compare(job, &expected);
    check_books(job, plan->steps);
    assert_int_equal(job->ranks[0].pushed, plan->steps - plan->first_step);
    job_close(job);
}

static void async_alone_is_a_sequence(void **state)
{
    ps_plan plan = async_plan;

    plan.dim = dim_of(state);
    plan.narrow = true;
    everywhere(plan, run_sequence);
    plan.narrow = false;
    plan.staleness = 0;
    plan.rows = 90; /* a short step at the end of the epoch */
    everywhere(plan, run_sequence);
    plan.first_step = 4;
    everywhere(plan, run_sequence);
}

/* --- far rows --- */

/* Jobs whose keys are first seen behind 2^31 rows, or that pass a border on the way. */
static void far_from_the_first_row(void **state)
{
    static const uint64_t rows[] = {UINT64_C(1) << 31, UINT64_C(1) << 32, UINT64_C(1) << 33,
                                    UINT64_C(1) << 40};
    ps_plan sync = sync_plan, async = async_plan;

    sync.dim = async.dim = dim_of(state);
    async.staleness = 0;
    for (unsigned i = 0; i < 4; i++) {
        sync.first_step = rows[i] / sync.rows * 5 - 2; /* 5 steps to an epoch of 100 rows */
        sync.steps = sync.first_step + 7;
        sync.exchange = i % 2 ? PACE__EXCHANGE_MERGE : PACE__EXCHANGE_SYNC;
        everywhere(sync, i % 2 ? run_merge : run_sync);
        async.first_step = rows[i] / async.rows * 3 - 2;
        async.steps = async.first_step + 7;
        everywhere(async, run_sequence);
    }
}

/* Constant gradients, and sums that are exact in any order: each row counts once, whoever pushed it when. */
static void compare_async(const ps_job *job)
{
    static reference expected;
    const ps_plan *plan = &job->plan;
    uint64_t gates = 0;

    reference_init(&expected, plan);
    for (uint64_t step = plan->first_step; step < plan->steps; step++) {
        uint64_t first = pace__steps_rows_before(&expected.steps, step);

        reference_add(&expected, first, pace__steps_rows_in(&expected.steps, step), step, first);
        reference_apply(&expected, step);
        gates += plan->gate_every && step > plan->first_step && step % plan->gate_every == 0;
    }
    job_compare(job, &expected);
    assert_int_equal(job->ranks[0].gates, gates);
}

static void run_async(const ps_plan *plan)
{
    ps_job *job = job_open(*plan);

    job_run(job);
    compare_async(job);
    check_books(job, plan->steps);
    job_close(job);
}

static void async_applies_every_row_once(void **state)
{
    static const uint64_t bounds[] = {PACE__STALENESS_UNBOUNDED, 0, 2};
    ps_plan plan = async_plan;

    plan.dim = dim_of(state);
    plan.constant = true;
    plan.kind = PACE_SGD;
    for (unsigned i = 0; i < 3; i++) {
        plan.staleness = bounds[i];
        plan.gate_every = i == 0 ? 0 : 4;
        plan.first_step = i == 2 ? 5 : 0;
        for (plan.depth = 1; plan.depth <= JOB_DEPTH; plan.depth++) {
            if (plan.dim > 1 && plan.depth != 1 + i % JOB_DEPTH)
                continue; /* one depth for every bound is enough */
            everywhere(plan, run_async);
        }
    }
}

/* --- async, and workers die --- */

static ps_plan plan_losses(uint64_t seed, unsigned dim, bool patient)
{
    static const uint64_t bounds[] = {PACE__STALENESS_UNBOUNDED, 0, 2};
    pace__random random = pace__random_at(seed, 1);
    ps_plan plan = async_plan;

    plan.constant = true;
    plan.kind = PACE_SGD;
    plan.dim = dim;
    plan.seed = seed;
    plan.patient = patient;
    plan.workers = 2 + (int)pace__random_below(&random, JOB_WORKERS - 1);
    plan.shards = 1 + (int)pace__random_below(&random, JOB_SHARDS);
    plan.staleness = bounds[pace__random_below(&random, 3)];
    plan.gate_every = pace__random_below(&random, 2) ? 4 : 0;
    plan.depth = 1 + (unsigned)pace__random_below(&random, JOB_DEPTH);
    for (int worker = 1; worker < plan.workers; worker++) {
        bool dies = worker == 1 || pace__random_below(&random, 2);

        plan.deaths[worker] = (ps_death){
            .moment =
                dies ? DIES_NEVER + 1 + (ps_moment)pace__random_below(&random, DIES_MOMENTS - 1) : DIES_NEVER,
            .pushes = pace__random_below(&random, 8),
            .cut = 1 + (unsigned)pace__random_below(&random, (1u << plan.shards) - 1)};
    }
    return plan;
}

/* Rows that were pushed to a shard by anyone, and how often. */
static uint64_t rows_sent_to(const ps_job *job, int shard, uint64_t *pushes)
{
    uint64_t rows = 0;

    *pushes = 0;
    for (int worker = 0; worker < job->plan.workers; worker++) {
        const ps_rank *from = &job->ranks[worker];
        bool cut = from->dead && job->plan.deaths[worker].moment == DIES_IN_PUSH &&
                   job->plan.deaths[worker].cut >> shard & 1;

        rows += from->pushed_rows;
        *pushes += from->pushed;
        if (cut) { /* its last one */
            rows -= from->cut_rows;
            *pushes -= 1;
        }
    }
    return rows;
}

/* Every row was applied once on each shard; what came again was dropped, and counted. */
static void check_losses(const ps_job *job)
{
    uint64_t rows = pace__steps_rows_before(&job->steps, job->plan.steps);

    for (int shard = 0; shard < job->plan.shards; shard++) {
        const pace__shard_stats *stats = pace__shard_stats_of(shard_of(job, shard));
        uint64_t pushes, sent = rows_sent_to(job, shard, &pushes);

        assert_ok(pace__shard_check(shard_of(job, shard), rows));
        assert_int_equal(sum_staleness(stats), stats->pushes - stats->repeats_dropped);
        assert_true(stats->pushes <= pushes && stats->rows_repeated <= sent - rows);
        if (!job->plan.patient) /* else it has dealt with all of them */
            continue;
        assert_int_equal(stats->pushes, pushes);
        assert_int_equal(stats->rows_repeated, sent - rows);
    }
}

typedef struct loss_tally {
    unsigned deaths[DIES_MOMENTS];
    unsigned repeats, uneven; /* jobs with repeats, and with other ones on other shards */
    uint64_t again_rows;
} loss_tally;

static void run_losses(uint64_t seed, bool patient, loss_tally *tally)
{
    ps_plan plan = plan_losses(seed, dims[seed % 2], patient);
    ps_job *job;

    print_message("seed %llu: %d workers, %d shards, dim %u; worker 1 dies at moment %d of push %llu\n",
                  (unsigned long long)seed, plan.workers, plan.shards, plan.dim, plan.deaths[1].moment,
                  (unsigned long long)plan.deaths[1].pushes);
    job = job_open(plan);
    job_run(job);
    compare_async(job);
    check_losses(job);
    for (int worker = 0; worker < plan.workers; worker++)
        tally->deaths[plan.deaths[worker].moment] += job->ranks[worker].dead;
    uint64_t first = pace__shard_stats_of(shard_of(job, 0))->rows_repeated,
             last = pace__shard_stats_of(shard_of(job, plan.shards - 1))->rows_repeated;

    tally->repeats += first > 0;
    tally->uneven += first != last;
    tally->again_rows += job->ranks[job->first_shard].again_rows;
    job_close(job);
}

/* Whenever a worker stops, and whenever which shard hears of it: the others finish its work. */
static void workers_may_die(void **state)
{
    (void)state;
    for (int patient = 0; patient < 2; patient++) {
        loss_tally tally = {{0}};

        for (uint64_t seed = 1; seed <= 100; seed++)
            run_losses(seed, patient, &tally);
        for (int moment = DIES_NEVER + 1; moment < DIES_MOMENTS; moment++)
            assert_in_range(tally.deaths[moment], 10, 1000); /* it did happen */
        assert_true(tally.again_rows > 0);
        if (patient) {
            assert_in_range(tally.repeats, 10, 100);
            assert_in_range(tally.uneven, 5, 100);
        }
    }
}

static void old_pushes_count_for_less(void **state)
{
    (void)state;
    assert_true(pace__push_weight(1000, 0) == 1); /* no limit */
    assert_true(pace__push_weight(0, 16) == 1);
    assert_true(pace__push_weight(16, 16) == 1);
    assert_true(pace__push_weight(17, 16) < 1);
    assert_true(pace__push_weight(64, 16) == 0.25f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OF_ROWS(sync_is_the_plain_sum),
        cmocka_unit_test(sync_of_long_rows),
        OF_ROWS(sync_of_nearly_nothing),
        OF_ROWS(sync_of_rounded_gradients),
        OF_ROWS(sync_begins_in_the_middle),
        OF_ROWS(same_bits_again),
        OF_ROWS(the_chief_ends),
        OF_ROWS(merged_sums),
        OF_ROWS(async_alone_is_a_sequence),
        OF_ROWS(far_from_the_first_row),
        OF_ROWS(async_applies_every_row_once),
        cmocka_unit_test(workers_may_die),
        cmocka_unit_test(old_pushes_count_for_less),
    };

    small_pages();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
