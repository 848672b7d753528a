/* Workers and shards between threads, against a plain sum; and messages made by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support.h"

#include "ps_job.h"

/* --- jobs --- */

/* Parameters of a key: almost every test is for either, and finds its own in its state. */
static const unsigned dims[] = {1, 3};

static unsigned dim_of(void **state)
{
    return *(const unsigned *)*state;
}

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

static uint64_t sum_staleness(const pace__shard_stats *stats)
{
    uint64_t sum = 0;

    for (int i = 0; i < PACE__STALENESS_BINS; i++)
        sum += stats->staleness[i];
    return sum;
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
    plan.staleness = 0;
    plan.rows = 90; /* a short step at the end of the epoch */
    everywhere(plan, run_sequence);
    plan.first_step = 4;
    everywhere(plan, run_sequence);
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

/* --- messages by hand: two workers and a shard, all on this thread --- */

#define MESSAGE_MAX 4096
#define HAND_KEYS   20 /* 10 on each of two shards */
#define HAND_MAX    8  /* keys in a message */

typedef struct hand {
    unsigned dim;
    pace__link *links[3];
    pace__shard *shard;
    unsigned char message[MESSAGE_MAX], reply[2][MESSAGE_MAX];
    pace__request receive[2];
} hand;

/* Of 20 rows in an epoch, 8 in a step; sgd. */
static hand *hand_open_with(pace__exchange exchange, unsigned dim, size_t keys_max, double l2)
{
    pace__link_options options = {60000000000u, 60000000000u, .log = &said_log};
    ps_plan plan = {.workers = 2,
                    .shards = 2,
                    .exchange = exchange,
                    .rows = 20,
                    .batch = 8,
                    .keys = HAND_KEYS,
                    .dim = dim,
                    .kind = PACE_SGD,
                    .constant = true,
                    .l2 = l2,
                    .steps = 100};
    pace__shard_plan shard = job_shard_plan(&plan, 1);
    hand *self = tiny_alloc(sizeof *self);

    said_clear();
    self->dim = dim;
    shard.keys_max = keys_max;
    assert_ok(pace__link_open_threads(3, 2, &options, self->links));
    pace__link_set_name(self->links[2], 0, "chief (rank 0)");
    pace__link_set_name(self->links[2], 1, "worker1 (rank 1)");
    assert_ok(pace__shard_create(self->links[2], &shard, &said_log, &self->shard));
    return self;
}

static hand *hand_open_for(pace__exchange exchange, unsigned dim, size_t keys_max)
{
    return hand_open_with(exchange, dim, keys_max, 0);
}

static hand *hand_open(pace__exchange exchange, unsigned dim)
{
    return hand_open_for(exchange, dim, HAND_MAX);
}

static void hand_close(hand *self)
{
    pace__shard_free(self->shard);
    for (int worker = 0; worker < 2; worker++)
        pace__link_cancel(self->links[worker], &self->receive[worker]);
    for (int rank = 0; rank < 3; rank++)
        pace__link_close(self->links[rank]);
    free(self);
}

static pace_status hand_poll(hand *self)
{
    pace_status status = PACE_OK;

    for (int i = 0; i < 4 && !status; i++) {
        bool busy = false;

        status = pace__shard_poll(self->shard, &busy);
    }
    return status;
}

/* Sends bytes as a worker, and gives the shard time to look at them. */
static pace_status hand_send(hand *self, int worker, const void *bytes, size_t size)
{
    pace__request send = {0};
    bool left;

    if (!self->receive[worker].active)
        pace__link_receive(self->links[worker], 2, PACE__TAG_REPLY, self->reply[worker], MESSAGE_MAX,
                           &self->receive[worker]);
    pace__link_send(self->links[worker], 2, PACE__TAG_PUSH, bytes, size, &send);
    pace_status status = hand_poll(self);

    assert_ok(pace__link_done(self->links[worker], &send, &left));
    assert_true(left);
    return status;
}

static size_t hand_bytes(const hand *self, const pace__push *push)
{
    return sizeof *push + (push->gradients * self->dim + push->keys) * sizeof(float);
}

/* A message as its header says: rows of gradients 1 2 3, 2 4 6, 3 6 9 ..., places 0, 1, 2 ... */
static pace_status hand_push(hand *self, int worker, pace__push push)
{
    float *floats = (float *)(self->message + sizeof push);
    uint32_t *places = (uint32_t *)(floats + push.gradients * self->dim);

    memcpy(self->message, &push, sizeof push);
    for (uint64_t i = 0; i < push.gradients * self->dim; i++)
        floats[i] = (float)((i / self->dim + 1) * (i % self->dim + 1));
    for (uint32_t i = 0; i < push.keys; i++)
        places[i] = i;
    return hand_send(self, worker, self->message, hand_bytes(self, &push));
}

/* The weights of the first places, all at once: they must be `first` x 1 2 3, `first` x 2 4 6, ... */
static void assert_places(const hand *self, uint32_t count, float first)
{
    float weights[HAND_KEYS / 2 * 3];

    pace__table_read(pace__shard_table(self->shard), 0, HAND_KEYS / 2, weights);
    for (uint32_t i = 0; i < HAND_KEYS / 2 * self->dim; i++)
        assert_true(weights[i] ==
                    (i / self->dim < count ? first * (float)((i / self->dim + 1) * (i % self->dim + 1)) : 0));
}

static bool hand_answered(hand *self, int worker)
{
    bool done;

    assert_ok(pace__link_done(self->links[worker], &self->receive[worker], &done));
    return done;
}

static pace__reply hand_reply(hand *self, int worker)
{
    pace__reply reply;

    assert_true(hand_answered(self, worker));
    memcpy(&reply, self->reply[worker], sizeof reply);
    assert_int_equal(self->receive[worker].bytes, sizeof reply + reply.weights * self->dim * sizeof(float));
    return reply;
}

static pace__push keys_push(uint64_t keys)
{
    return (pace__push){.flags = PACE__PUSH_KEYS, .keys = keys};
}

static pace__push rows_push(uint64_t first, uint64_t rows, uint64_t step, uint64_t gradients, uint64_t keys)
{
    return (pace__push){.flags = PACE__PUSH_GRADIENTS | PACE__PUSH_KEYS,
                        .first = first,
                        .rows = rows,
                        .step = step,
                        .loss = 0.5,
                        .gradients = gradients,
                        .keys = keys};
}

/* A push that came before is dropped, counted, and answered like any; one that came by half is refused. */
static void repeats_are_dropped(void **state)
{
    hand *self = hand_open(PACE__EXCHANGE_ASYNC, dim_of(state));
    const pace__shard_stats *stats = pace__shard_stats_of(self->shard);

    assert_ok(hand_push(self, 0, keys_push(4)));
    assert_int_equal(hand_reply(self, 0).weights, 4);
    assert_ok(hand_push(self, 0, rows_push(0, 4, 0, 4, 4)));
    assert_int_equal(hand_reply(self, 0).rows_done, 4);
    assert_places(self, 4, -1.0f / 8);
    for (int again = 0; again < 3; again++) {
        assert_ok(hand_push(self, 0, rows_push(again == 2 ? 1 : 0, again == 2 ? 3 : 4, 0, 4, 4)));
        pace__reply reply = hand_reply(self, 0);

        assert_int_equal(reply.rows_done, 4);
        assert_true(reply.loss == 0.5 && reply.weights == 4);
    }
    assert_places(self, 4, -1.0f / 8);
    assert_int_equal(stats->pushes, 4);
    assert_int_equal(stats->repeats_dropped, 3);
    assert_int_equal(stats->rows_repeated, 11);
    assert_int_equal(sum_staleness(stats), 1);
    assert_string_equal(said, "");
    assert_failed(hand_push(self, 0, rows_push(2, 4, 0, 4, 4)), PACE_BUG,
                  "chief (rank 0) that cannot be: some of its rows were applied before, some not");
    assert_failed(pace__shard_check(self->shard, 8), PACE_BUG, "shard 1 has applied the rows up to 4");
    hand_close(self);
}

/* What a worker pushed before it died counts, what had come and was not yet looked at does not; another
 * brings both again. */
static void a_lost_worker_is_forgotten(void **state)
{
    hand *self = hand_open(PACE__EXCHANGE_ASYNC, dim_of(state));
    const pace__shard_stats *stats = pace__shard_stats_of(self->shard);
    pace__request sends[2] = {{0}};
    int peers[2];
    bool left;

    for (int worker = 0; worker < 2; worker++) {
        assert_ok(hand_push(self, worker, keys_push(4)));
        assert_true(hand_answered(self, worker));
    }
    assert_ok(hand_push(self, 1, rows_push(4, 4, 0, 4, 4)));
    assert_int_equal(hand_reply(self, 1).rows_done, 4);
    pace__push late = rows_push(8, 4, 1, 4, 4);

    memcpy(self->message, &late, sizeof late);
    for (int i = 0; i < 2; i++) /* one is received, one waits behind it */
        pace__link_send(self->links[1], 2, PACE__TAG_PUSH, self->message, hand_bytes(self, &late), &sends[i]);
    pace__link_lose(self->links[2], 1);
    pace__shard_lose(self->shard, 1);
    assert_int_equal(pace__shard_waits_for(self->shard, peers), 1);
    assert_int_equal(peers[0], 0);
    assert_ok(hand_poll(self));
    assert_int_equal(stats->pushes, 1);
    assert_ok(hand_push(self, 0, rows_push(4, 4, 0, 4, 4)));
    pace__reply reply = hand_reply(self, 0);

    assert_int_equal(reply.rows_done, 4);
    assert_true(reply.loss == 0.5);
    assert_ok(hand_push(self, 0, rows_push(8, 4, 1, 4, 4)));
    assert_int_equal(hand_reply(self, 0).rows_done, 8);
    assert_int_equal(stats->pushes, 3);
    assert_int_equal(stats->repeats_dropped, 1);
    assert_int_equal(stats->rows_repeated, 4);
    assert_int_equal(sum_staleness(stats), 2);
    assert_string_equal(said, "");
    assert_ok(pace__link_done(self->links[1], &sends[0], &left));
    assert_true(left);
    assert_ok(pace__link_done(self->links[1], &sends[1], &left));
    assert_false(left);
    pace__link_lose(self->links[1], 2);
    pace__link_settle(self->links[1], &sends[1]);
    hand_close(self);
}

/* Rows that come out of order wait for nobody; the step counts whole ones. */
static void rows_out_of_order(void **state)
{
    hand *self = hand_open(PACE__EXCHANGE_ASYNC, dim_of(state));
    static const uint64_t order[] = {12, 4, 8, 0, 16}; /* 4 rows each; steps are 0-8, 8-16, 16-20 */
    static const uint64_t steps[] = {0, 0, 0, 2, 3};

    for (int i = 0; i < 5; i++) {
        assert_ok(hand_push(self, i % 2, keys_push(2)));
        assert_true(hand_answered(self, i % 2));
        pace__push push = rows_push(order[i], 4, order[i] / 8, 2, 0);

        push.flags = PACE__PUSH_GRADIENTS;
        assert_ok(hand_push(self, i % 2, push));
        pace__reply reply = hand_reply(self, i % 2);

        assert_int_equal(reply.rows_done, 4 * (i + 1));
        assert_int_equal(reply.weights, 0);
        assert_int_equal(pace__shard_step(self->shard), steps[i]);
    }
    assert_ok(pace__shard_check(self->shard, 20));
    hand_close(self);
}

/* Weights are as old as the pushes that were applied since they were read. */
static void staleness_is_counted(void **state)
{
    hand *self = hand_open(PACE__EXCHANGE_ASYNC, dim_of(state));
    const uint64_t *bins = pace__shard_stats_of(self->shard)->staleness;

    assert_ok(hand_push(self, 0, keys_push(1)));
    assert_true(hand_answered(self, 0));
    assert_ok(hand_push(self, 1, keys_push(1)));
    assert_true(hand_answered(self, 1));
    for (uint64_t row = 0; row < 70; row++) {
        assert_ok(hand_push(self, 1, rows_push(row, 1, row / 20 * 3 + row % 20 / 8, 1, 1)));
        assert_true(hand_answered(self, 1));
    }
    assert_int_equal(bins[0], 70);
    assert_ok(hand_push(self, 0, rows_push(70, 1, 10, 1, 1)));
    assert_true(hand_answered(self, 0));
    assert_int_equal(bins[PACE__STALENESS_BINS - 1], 1); /* 70 and more */
    assert_ok(hand_push(self, 1, rows_push(71, 1, 10, 1, 1)));
    assert_true(hand_answered(self, 1));
    assert_int_equal(bins[1], 1);
    hand_close(self);
}

/* A step is applied when the last part is in, whatever the order in which the parts come. */
static void a_step_waits_for_all(void **state)
{
    for (int late = 0; late < 2; late++) {
        hand *self = hand_open(PACE__EXCHANGE_SYNC, dim_of(state));
        int peers[2];

        for (int worker = 0; worker < 2; worker++) {
            assert_ok(hand_push(self, worker, keys_push(2)));
            assert_true(hand_answered(self, worker));
        }
        assert_int_equal(pace__shard_waits_for(self->shard, peers), 2);
        assert_ok(hand_push(self, 1 - late, rows_push(late ? 0 : 4, 4, 0, 2, 2)));
        assert_false(hand_answered(self, 1 - late));
        assert_int_equal(pace__shard_step(self->shard), 0);
        assert_int_equal(pace__shard_waits_for(self->shard, peers), 1);
        assert_int_equal(peers[0], late);
        assert_ok(hand_push(self, late, rows_push(late ? 4 : 0, 4, 0, 2, 2)));
        assert_int_equal(pace__shard_step(self->shard), 1);
        for (int worker = 0; worker < 2; worker++)
            assert_int_equal(hand_reply(self, worker).rows_done, 8);
        assert_places(self, 2, -2.0f / 8);
        hand_close(self);
    }
}

/* Two batches ahead, and then the end: the keys of gradients that are not wanted are let go too. */
static void an_end_lets_go_of_keys(void **state)
{
    hand *self = hand_open(PACE__EXCHANGE_SYNC, dim_of(state));
    pace__push end = {.flags = PACE__PUSH_END, .step = 0};

    for (int ahead = 0; ahead < PACE__DEPTH_MAX; ahead++) {
        assert_ok(hand_push(self, 1, keys_push(3)));
        assert_true(hand_answered(self, 1));
    }
    for (int again = 0; again < 4; again++) {
        assert_ok(hand_push(self, 0, end));
        assert_ok(hand_push(self, 1, rows_push(4, 4, 0, 3, 3)));
        for (int worker = 0; worker < 2; worker++) {
            pace__reply reply = hand_reply(self, worker);

            assert_int_equal(reply.flags, PACE__REPLY_END);
            assert_int_equal(reply.rows_done, 0);
            assert_true(reply.loss == 0);
        }
    }
    assert_int_equal(pace__shard_step(self->shard), 0);
    assert_ok(pace__shard_check(self->shard, 0));
    hand_close(self);
}

/* A worker that asks while the chief's end is in has not pushed its part yet, and must not be told before. */
static void an_end_waits_for_all(void **state)
{
    hand *self = hand_open(PACE__EXCHANGE_SYNC, dim_of(state));

    assert_ok(hand_push(self, 0, (pace__push){.flags = PACE__PUSH_END}));
    assert_false(hand_answered(self, 0));
    assert_ok(hand_push(self, 1, keys_push(3)));
    assert_int_equal(hand_reply(self, 1).flags, 0);
    assert_ok(hand_push(self, 1, rows_push(4, 4, 0, 3, 3)));
    for (int worker = 0; worker < 2; worker++)
        assert_int_equal(hand_reply(self, worker).flags, PACE__REPLY_END);
    hand_close(self);
}

/* A worker whose part is in may have asked for the weights of the step behind it: the job ends before both.
 * It is told so again, and no penalty is applied for rows that never come. */
static void an_end_is_told_to_who_asks_behind_it(void **state)
{
    hand *self = hand_open_with(PACE__EXCHANGE_SYNC, 1, HAND_MAX, 0.1);
    const pace__table *table = pace__shard_table(self->shard);
    pace__push part = rows_push(4, 4, 0, 3, 0), behind = keys_push(3);

    (void)state;
    part.flags = PACE__PUSH_GRADIENTS;
    behind.now = 8;
    assert_ok(hand_push(self, 1, keys_push(3)));
    assert_int_equal(hand_reply(self, 1).flags, 0);
    assert_ok(hand_push(self, 1, part));
    assert_ok(hand_push(self, 1, behind));
    assert_ok(hand_push(self, 0, (pace__push){.flags = PACE__PUSH_END}));
    for (int answer = 0; answer < 2; answer++) {
        pace__reply reply = hand_reply(self, 1);

        assert_int_equal(reply.flags, PACE__REPLY_END);
        assert_int_equal(reply.weights, 3 * answer);
        pace__link_receive(self->links[1], 2, PACE__TAG_REPLY, self->reply[1], MESSAGE_MAX,
                           &self->receive[1]);
    }
    for (uint32_t place = 0; place < 3; place++)
        assert_int_equal(pace__optim_last(&table->optim, table->records + place * table->stride), 0);
    hand_close(self);
}

/* --- messages that cannot be --- */

typedef struct lie {
    const char *why; /* part of the message */
    pace__push push;
    size_t bytes; /* 0: as the header says */
    bool wild;    /* the last place is out of range */
} lie;

/* To a shard that worker 1 has asked for 3 keys: its honest push has 3 gradients, of rows 4-8 in step 0. */
static void tell(pace__exchange exchange, unsigned dim, const lie *told)
{
    bool merge = exchange == PACE__EXCHANGE_MERGE;
    hand *self = hand_open(exchange, dim);
    pace__push push = told->push;
    size_t bytes = told->bytes ? told->bytes : hand_bytes(self, &push);
    uint32_t *places = (uint32_t *)(self->message + sizeof push);

    if (!merge) {
        assert_ok(hand_push(self, 1, keys_push(3)));
        assert_true(hand_answered(self, 1));
    }
    for (size_t i = 0; i < 64; i++)
        places[i] = 1; /* as a float, a very small one */
    if (told->wild)
        places[(bytes - sizeof push) / sizeof *places - 1] = 10;
    memcpy(self->message, &push, sizeof push);
    pace_status status = hand_send(self, 1, self->message, bytes);

    if (status == PACE_OK)
        fail_msg("exchange %d, dim %u: not noticed: %s", exchange, dim, told->why);
    assert_said("worker1 (rank 1) that cannot be: ");
    assert_failed(status, PACE_BUG, told->why);
    hand_close(self);
}

#define GRADIENTS PACE__PUSH_GRADIENTS
#define KEYS      PACE__PUSH_KEYS

static void lies_to_all_but_merge(void **state)
{
    static const lie lies[] = {
        {"not on this shard", {.flags = KEYS, .keys = 3}, .wild = true},
        {"not on this shard", {GRADIENTS | KEYS, 4, 4, 0, .gradients = 3, .keys = 2}, .wild = true},
        {"gradients without keys", {GRADIENTS, 4, 4, 0, .gradients = 2}},
        {"gradients without keys", {GRADIENTS, 4, 4, 0, .gradients = 4}},
        {"more keys than", {.flags = KEYS, .keys = 9}},
        {"without saying so", {.keys = 3}},
        {"without saying so", {.gradients = 3}},
        {"rows", {GRADIENTS, 4, 5, 0, .gradients = 3}},              /* across the step's end */
        {"rows", {GRADIENTS, 8, 4, 0, .gradients = 3}},              /* of the next step */
        {"rows", {GRADIENTS, UINT64_MAX, 5, 0, .gradients = 3}},     /* around */
        {"rows", {GRADIENTS, 4, UINT64_MAX - 3, 0, .gradients = 3}}, /* before the first */
        {"rows", {GRADIENTS, 4, UINT64_MAX - 1, 0, .gradients = 3}}, /* ends before it begins */
        {"end", {.flags = PACE__PUSH_END}},                          /* not the chief */
        {"end", {GRADIENTS | PACE__PUSH_END, 4, 4, 0, .gradients = 3}},
        {"kind", {.flags = 8}},
        {"its length", {.flags = KEYS, .keys = 3}, .bytes = sizeof(pace__push) + 8},
        {"its length", {.flags = KEYS, .keys = 3}, .bytes = sizeof(pace__push) + 16},
        {"its length", {.flags = KEYS, .keys = 3}, .bytes = sizeof(pace__push) + 13},
        {"its length", {.flags = KEYS, .keys = 0}, .bytes = sizeof(pace__push) - 1},
        {"its length", {.flags = KEYS, .keys = 0}, .bytes = 1},
        {"its length", {.flags = KEYS, .keys = UINT64_MAX / 4 + 1}, .bytes = sizeof(pace__push)},
        {"its length", {.flags = KEYS, .keys = 3, .gradients = UINT64_MAX - 2}, .bytes = sizeof(pace__push)},
    };

    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        tell(PACE__EXCHANGE_SYNC, dim_of(state), &lies[i]);
        tell(PACE__EXCHANGE_ASYNC, dim_of(state), &lies[i]);
    }
}

#define WORDS(count) (sizeof(pace__push) + (count) * sizeof(float))

/* Rows of 3 that are counted as if they were of one, or of two, or so many that their bytes go around. */
static void lies_of_lengths(void **state)
{
    static const lie lies[] = {
        {"its length", {GRADIENTS, 4, 4, 0, .gradients = 3}, .bytes = WORDS(3)},
        {"its length", {GRADIENTS, 4, 4, 0, .gradients = 3}, .bytes = WORDS(6)},
        {"its length", {GRADIENTS, 4, 4, 0, .gradients = 3}, .bytes = WORDS(8)},
        {"its length", {GRADIENTS, 4, 4, 0, .gradients = 3}, .bytes = WORDS(10)},
        {"its length", {GRADIENTS | KEYS, 4, 4, 0, .gradients = 3, .keys = 3}, .bytes = WORDS(6)},
        {"its length", {GRADIENTS | KEYS, 4, 4, 0, .gradients = 3, .keys = 3}, .bytes = WORDS(18)},
        {"its length",
         {GRADIENTS | KEYS, 4, 4, 0, .gradients = UINT64_MAX / 4 / 3, .keys = 1},
         .bytes = WORDS(0)},
        {"without keys", {GRADIENTS, 4, 4, 0, .gradients = 1}, .bytes = WORDS(3)},
    };
    static const lie merged[] = {
        {"its length", {GRADIENTS, 4, 4, 0, .gradients = 3, .keys = 3}, .bytes = WORDS(6)},
        {"its length", {GRADIENTS, 4, 4, 0, .gradients = 3, .keys = 3}, .bytes = WORDS(11)},
        {"its length", {GRADIENTS, 4, 4, 0, .gradients = 3, .keys = 3}, .bytes = WORDS(13)},
    };

    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        tell(PACE__EXCHANGE_SYNC, 3, &lies[i]);
        tell(PACE__EXCHANGE_ASYNC, 3, &lies[i]);
    }
    for (size_t i = 0; i < sizeof merged / sizeof *merged; i++)
        tell(PACE__EXCHANGE_MERGE, 3, &merged[i]);
}

/* Where a batch may have more keys than a shard has places: a message that names some of them twice. The
 * room for its answer is that of all places. */
static void more_keys_than_places(void **state)
{
    for (uint64_t keys = 12; keys <= 22; keys++) { /* they would fit into the message */
        for (int exchange = PACE__EXCHANGE_SYNC; exchange <= PACE__EXCHANGE_ASYNC; exchange++) {
            hand *self = hand_open_for((pace__exchange)exchange, dim_of(state), 1000);
            pace__push push = keys_push(keys);

            memcpy(self->message, &push, sizeof push);
            memset(self->message + sizeof push, 0, keys * sizeof(uint32_t)); /* place 0, again and again */
            assert_failed(hand_send(self, 1, self->message, hand_bytes(self, &push)), PACE_BUG,
                          "worker1 (rank 1) that cannot be: it has more keys than");
            hand_close(self);
        }
    }
}

static void lies_of_steps(void **state)
{
    static const lie lies[] = {
        {"another step", {GRADIENTS, 8, 4, 1, .gradients = 3}},
        {"another step", {GRADIENTS, 0, 4, UINT64_MAX, .gradients = 3}},
    };
    static const lie late = {"rows", {GRADIENTS, 4, 4, UINT64_MAX, .gradients = 3}};
    static const lie far = {"rows", {GRADIENTS, UINT64_MAX - 2, 4, 0, .gradients = 3}};

    tell(PACE__EXCHANGE_SYNC, dim_of(state), &lies[0]);
    tell(PACE__EXCHANGE_SYNC, dim_of(state), &lies[1]);
    tell(PACE__EXCHANGE_ASYNC, dim_of(state), &late);
    for (uint64_t step = UINT64_MAX - 100; step > 0; step++) { /* whatever step holds these rows */
        lie told = far;

        told.push.step = step;
        tell(PACE__EXCHANGE_ASYNC, dim_of(state), &told);
    }
}

static void lies_to_merge(void **state)
{
    static const lie lies[] = {
        {"not on this shard", {GRADIENTS, 4, 4, 0, .gradients = 3, .keys = 3}, .wild = true},
        {"gradients without keys", {GRADIENTS, 4, 4, 0, .gradients = 3, .keys = 2}},
        {"gradients without keys", {GRADIENTS, 4, 4, 0, .gradients = 2, .keys = 3}},
        {"more keys than", {.flags = GRADIENTS, .first = 4, .rows = 4, .gradients = 7, .keys = 9}},
        {"without saying so", {.keys = 3}},
        {"kind", {.flags = KEYS, .keys = 3}},
        {"rows", {GRADIENTS, 4, 5, 0, .gradients = 3, .keys = 3}},
        {"another step", {GRADIENTS, 8, 4, 1, .gradients = 3, .keys = 3}},
    };

    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
        tell(PACE__EXCHANGE_MERGE, dim_of(state), &lies[i]);
}

/* Who ends the job does not push a part of the step that never comes. */
static void an_end_with_gradients(void **state)
{
    hand *self = hand_open(PACE__EXCHANGE_SYNC, dim_of(state));
    pace__push both = rows_push(0, 4, 0, 3, 0);

    both.flags = GRADIENTS | PACE__PUSH_END;
    assert_ok(hand_push(self, 0, keys_push(3)));
    assert_true(hand_answered(self, 0));
    assert_failed(
        hand_push(self, 0, both), PACE_BUG,
        "chief (rank 0) that cannot be: only the chief may end the job, and then without gradients");
    hand_close(self);
}

/* Keys of a third batch, while the gradients of two have not come. */
static void too_far_ahead(void **state)
{
    for (int exchange = PACE__EXCHANGE_SYNC; exchange <= PACE__EXCHANGE_ASYNC; exchange++) {
        hand *self = hand_open((pace__exchange)exchange, dim_of(state));

        for (int ahead = 0; ahead < PACE__DEPTH_MAX; ahead++) {
            assert_ok(hand_push(self, 1, keys_push(3)));
            assert_true(hand_answered(self, 1));
        }
        assert_failed(hand_push(self, 1, keys_push(3)), PACE_BUG,
                      "worker1 (rank 1) that cannot be: it asks for too many batches ahead");
        hand_close(self);
    }
}

/* --- answers that cannot be --- */

typedef struct wrong_answer {
    unsigned dim;
    pace__reply reply;
    uint64_t words; /* behind it */
} wrong_answer;

/* To a worker that has asked for 3 keys, or (merge) sent their gradients. */
static void answer_wrongly(pace__exchange exchange, const wrong_answer *wrong)
{
    pace__link_options options = {60000000000u, 60000000000u, .log = &said_log};
    pace__client_plan plan = {
        .shards = 1, .first_rank = 1, .exchange = exchange, .keys = 10, .keys_max = 10, .dim = wrong->dim};
    ps_plan toy = {.rows = 100, .batch = 10, .keys = 3, .dim = wrong->dim};
    static toy_batch batch;
    pace__client *client;
    pace__link *links[2];
    pace__request send = {0}, receive = {0};
    unsigned char message[MESSAGE_MAX] = {0};
    bool merge = exchange == PACE__EXCHANGE_MERGE, answered, left;
    pace__answer answer;

    said_clear();
    toy_begin(&toy, &batch, 0, 20, 0, 0);
    assert_int_equal(batch.work.count, 3);
    assert_ok(pace__link_open_threads(2, 1, &options, links));
    assert_ok(pace__client_create(links[0], &plan, &said_log, &client));
    assert_ok(pace__client_send(client, merge ? &batch.work : NULL, merge ? NULL : &batch.work, false));
    pace__link_receive(links[1], 0, PACE__TAG_PUSH, message, sizeof message, &receive);
    assert_ok(pace__link_done(links[1], &receive, &left));
    assert_true(left);
    assert_int_equal(receive.bytes, sizeof(pace__push) + 3 * (merge ? wrong->dim + 1 : 1) * sizeof(float));
    memcpy(message, &wrong->reply, sizeof wrong->reply);
    pace__link_send(links[1], 0, PACE__TAG_REPLY, message, sizeof wrong->reply + wrong->words * sizeof(float),
                    &send);
    assert_failed(pace__client_poll(client, &answered, &answer), PACE_BUG,
                  "an answer from rank 1 that cannot be");
    assert_ok(pace__link_done(links[1], &send, &left));
    pace__client_free(client);
    pace__link_close(links[0]);
    pace__link_close(links[1]);
}

static void answers_are_checked(void **state)
{
    static const wrong_answer wrong[] = {
        {1, {.weights = 2}, 2},
        {1, {.weights = 4}, 4},
        {1, {.weights = 3}, 2},
        {1, {.weights = 3}, 4},
        {1, {.weights = UINT64_MAX / 4 + 4}, 3}, /* around */
        {4, {.weights = 3}, 3},                  /* as if rows were of one */
        {4, {.weights = 12}, 12},
        {4, {.weights = 2}, 8},
        {4, {.weights = 4}, 16},
        {4, {.weights = 3}, 11},
        {4, {.weights = UINT64_MAX / 16 + 4}, 12}, /* around */
    };
    static const wrong_answer merged[] = {
        {1, {.weights = 3}, 3}, /* no places */
        {1, {.weights = 3}, 7},
        {4, {.weights = 3}, 12},
        {4, {.weights = 3}, 14},
        {4, {.weights = 3}, 6},
        {4, {.weights = UINT64_MAX / 4 + 4}, 15},
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        answer_wrongly(PACE__EXCHANGE_SYNC, &wrong[i]);
        answer_wrongly(PACE__EXCHANGE_ASYNC, &wrong[i]);
    }
    for (size_t i = 0; i < sizeof merged / sizeof *merged; i++)
        answer_wrongly(PACE__EXCHANGE_MERGE, &merged[i]);
}

/* --- the counter --- */

static pace_status ask_counter(pace__ask ask, size_t bytes, int worker, bool *answered)
{
    pace__link_options options = {60000000000u, 60000000000u, .log = &said_log};
    static pace__tickets tickets;
    pace__steps steps = pace__steps_make(20, 8);
    pace__link *links[3];
    pace__counter *counter;
    pace__request send = {0}, receive = {0};
    pace__ticket ticket;
    bool busy = false, left;

    said_clear();
    assert_ok(pace__link_open_threads(3, 2, &options, links));
    pace__tickets_init(&tickets, &steps, 2, 0, 100, 0, (uint64_t[2]){0, 0});
    assert_ok(pace__counter_create(links[0], 2, &tickets, &said_log, &counter));
    pace__link_receive(links[worker], 0, PACE__TAG_TICKET, &ticket, sizeof ticket, &receive);
    pace__link_send(links[worker], 0, PACE__TAG_ASK, &ask, bytes, &send);
    pace_status status = pace__counter_poll(counter, &busy);

    assert_true(busy);
    assert_ok(pace__link_done(links[worker], &send, &left));
    assert_ok(pace__link_done(links[worker], &receive, answered));
    assert_true(!*answered || (ticket.kind == PACE__TICKET_ROWS && ticket.rows == 4));
    pace__link_cancel(links[worker], &receive);
    pace__counter_free(counter);
    for (int rank = 0; rank < 3; rank++)
        pace__link_close(links[rank]);
    return status;
}

static void asks_that_cannot_be(void **state)
{
    pace__ask good = {.flags = PACE__ASK_TICKET}, rows = {PACE__ASK_TICKET, 1, {{0, 4}}};
    pace__ask back = {PACE__ASK_TICKET, 1, {{4, 0}}}, many = {PACE__ASK_TICKET, PACE__ASK_REPORTS_MAX + 1};
    pace__ask passes = {.flags = PACE__ASK_PASS};
    bool answered;

    (void)state;
    assert_ok(ask_counter(good, sizeof good, 1, &answered));
    assert_true(answered);
    assert_failed(ask_counter(rows, sizeof rows, 1, &answered), PACE_BUG,
                  "rank 1 reports rows 0 to 4, which it does not have");
    assert_false(answered);
    assert_failed(ask_counter(back, sizeof back, 1, &answered), PACE_BUG, "rank 1 reports rows 4 to 0");
    assert_failed(ask_counter(many, sizeof many, 1, &answered), PACE_BUG, "rank 1 asks for rows in a way");
    assert_failed(ask_counter(good, sizeof good - 1, 1, &answered), PACE_BUG,
                  "rank 1 asks for rows in a way");
    assert_failed(ask_counter(good, sizeof good, 2, &answered), PACE_BUG, "rank 2 asks for rows in a way");
    assert_failed(ask_counter(passes, sizeof passes, 1, &answered), PACE_BUG,
                  "rank 1 asks for rows in a way");
    assert_ok(ask_counter(passes, sizeof passes, 0, &answered)); /* the chief may */
}

/* Asks for a ticket on behalf of a worker; true if one has come. */
static bool ask_for_rows(pace__asker *asker, pace__counter *counter, pace__ticket *ticket)
{
    bool busy = false, got;

    if (!asker->waiting)
        assert_ok(pace__asker_send(asker, PACE__ASK_TICKET));
    for (int i = 0; i < 4; i++)
        assert_ok(pace__counter_poll(counter, &busy));
    assert_ok(pace__asker_poll(asker, &got, ticket));
    return got;
}

/* Two workers in step. The second dies with the rows 4 to 8: whoever waits gets them, and its report comes
 * too late. */
static void rows_of_a_lost_worker_come_again(void **state)
{
    pace__link_options options = {60000000000u, 60000000000u, .log = &said_log};
    static pace__tickets tickets;
    pace__steps steps = pace__steps_make(20, 8);
    pace__link *links[3];
    pace__counter *counter;
    pace__asker askers[2];
    pace__ticket ticket;
    bool busy = false;

    (void)state;
    said_clear();
    assert_ok(pace__link_open_threads(3, 2, &options, links));
    pace__tickets_init(&tickets, &steps, 2, 0, 100, 0, (uint64_t[2]){0, 0});
    assert_ok(pace__counter_create(links[2], 2, &tickets, &said_log, &counter));
    for (int worker = 0; worker < 2; worker++) {
        pace__asker_init(&askers[worker], links[worker], 2);
        assert_true(ask_for_rows(&askers[worker], counter, &ticket));
        assert_true(ticket.kind == PACE__TICKET_ROWS && ticket.first == 4 * (uint64_t)worker);
    }
    pace__asker_done(&askers[0], 0, 4);
    assert_false(ask_for_rows(&askers[0], counter, &ticket)); /* the next step waits for the rows 4 to 8 */
    pace__asker_done(&askers[1], 4, 4);
    assert_ok(pace__asker_send(&askers[1], PACE__ASK_TICKET)); /* on its way when the counter hears */
    pace__link_lose(links[2], 1);
    assert_int_equal(pace__counter_lose(counter, 1), 4);
    assert_ok(pace__counter_poll(counter, &busy));
    assert_true(ask_for_rows(&askers[0], counter, &ticket));
    assert_true(ticket.kind == PACE__TICKET_ROWS && ticket.first == 4 && ticket.rows == 4 &&
                ticket.step == 0);
    pace__asker_done(&askers[0], 4, 4);
    assert_true(ask_for_rows(&askers[0], counter, &ticket));
    assert_true(ticket.kind == PACE__TICKET_ROWS && ticket.first == 8 && ticket.step == 1);
    assert_string_equal(said, "");
    pace__counter_free(counter);
    pace__link_lose(links[1], 2);
    for (int worker = 0; worker < 2; worker++)
        pace__asker_close(&askers[worker]);
    for (int rank = 0; rank < 3; rank++)
        pace__link_close(links[rank]);
}

/* A worker that takes rows and reports none: not what the counter can keep in mind, and no reason to abort. */
static void a_worker_that_reports_nothing(void **state)
{
    pace__link_options options = {60000000000u, 60000000000u, .log = &said_log};
    static pace__tickets tickets;
    pace__steps steps = pace__steps_make(20, 8);
    pace__link *links[2];
    pace__counter *counter;
    pace__asker asker;
    pace__ticket ticket;
    bool busy = false;

    (void)state;
    said_clear();
    assert_ok(pace__link_open_threads(2, 1, &options, links));
    pace__tickets_init(&tickets, &steps, 1, 0, 2 * PACE__INTERVALS_MAX, PACE__STALENESS_UNBOUNDED,
                       (uint64_t[2]){0, 0});
    assert_ok(pace__counter_create(links[1], 1, &tickets, &said_log, &counter));
    pace__asker_init(&asker, links[0], 1);
    for (int i = 0; i < PACE__INTERVALS_MAX; i++)
        assert_true(ask_for_rows(&asker, counter, &ticket) && ticket.kind == PACE__TICKET_ROWS);
    assert_ok(pace__asker_send(&asker, PACE__ASK_TICKET));
    assert_failed(pace__counter_poll(counter, &busy), PACE_BUG,
                  "rank 0 asks for rows, but 4096 ranges are not reported yet: more than workers can hold");
    pace__counter_free(counter);
    pace__asker_close(&asker);
    for (int rank = 0; rank < 2; rank++)
        pace__link_close(links[rank]);
}

/* Reports that could not be sent because the job has failed make room for others, which nobody will hear. */
static void reports_of_a_failed_job(void **state)
{
    pace__link_options options = {60000000000u, 60000000000u, .log = &said_log};
    pace__link *links[2];
    pace__asker asker;

    (void)state;
    said_clear();
    assert_ok(pace__link_open_threads(2, 1, &options, links));
    pace__asker_init(&asker, links[1], 0);
    for (uint64_t i = 0; !pace__asker_full(&asker); i++)
        pace__asker_done(&asker, 4 * i, 4);
    assert_ok(pace__asker_send(&asker, 0)); /* nobody receives it */
    for (uint64_t i = 0; !pace__asker_full(&asker); i++)
        pace__asker_done(&asker, 100 + 4 * i, 4);
    pace__link_fail(links[0], PACE_IO, "told");
    assert_int_equal(pace__asker_send(&asker, 0), PACE_IO);
    pace__asker_done(&asker, 200, 4);
    assert_int_equal(asker.sent.flags, 0); /* it is still being sent */
    assert_int_equal(asker.sent.reports, PACE__ASK_REPORTS_MAX);
    pace__asker_close(&asker);
    for (int rank = 0; rank < 2; rank++)
        pace__link_close(links[rank]);
}

/* A test for either dim. */
#define OF_ROWS(test)                                                                                        \
    {#test " (dim 1)", test, NULL, NULL, (void *)&dims[0]},                                                  \
    {                                                                                                        \
#test " (dim 3)", test, NULL, NULL, (void *)&dims[1]                                                 \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        OF_ROWS(sync_is_the_plain_sum),
        cmocka_unit_test(sync_of_long_rows),
        OF_ROWS(sync_of_nearly_nothing),
        OF_ROWS(sync_begins_in_the_middle),
        OF_ROWS(same_bits_again),
        OF_ROWS(the_chief_ends),
        OF_ROWS(merged_sums),
        OF_ROWS(async_alone_is_a_sequence),
        OF_ROWS(async_applies_every_row_once),
        cmocka_unit_test(workers_may_die),
        cmocka_unit_test(old_pushes_count_for_less),
        OF_ROWS(repeats_are_dropped),
        OF_ROWS(a_lost_worker_is_forgotten),
        OF_ROWS(rows_out_of_order),
        OF_ROWS(staleness_is_counted),
        OF_ROWS(a_step_waits_for_all),
        OF_ROWS(an_end_lets_go_of_keys),
        OF_ROWS(an_end_waits_for_all),
        cmocka_unit_test(an_end_is_told_to_who_asks_behind_it),
        OF_ROWS(lies_to_all_but_merge),
        cmocka_unit_test(lies_of_lengths),
        OF_ROWS(more_keys_than_places),
        OF_ROWS(lies_of_steps),
        OF_ROWS(lies_to_merge),
        OF_ROWS(an_end_with_gradients),
        OF_ROWS(too_far_ahead),
        cmocka_unit_test(answers_are_checked),
        cmocka_unit_test(asks_that_cannot_be),
        cmocka_unit_test(rows_of_a_lost_worker_come_again),
        cmocka_unit_test(a_worker_that_reports_nothing),
        cmocka_unit_test(reports_of_a_failed_job),
    };

    small_pages();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
