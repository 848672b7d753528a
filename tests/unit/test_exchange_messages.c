/* Messages made by hand between two workers and a shard, all on one thread: in any order, and wrong ones. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support.h"

#include "ps_job.h"
#include "shard_tests.h"

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
typedef struct hand_plan {
    size_t keys_max;
    double l2;
    int slices;
} hand_plan;

static hand *hand_open_with(pace__exchange exchange, unsigned dim, hand_plan with)
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
                    .l2 = with.l2,
                    .steps = 100};
    pace__shard_plan shard = job_shard_plan(&plan, 1);
    hand *self = tiny_alloc(sizeof *self);

    said_clear();
    self->dim = dim;
    shard.keys_max = with.keys_max;
    shard.slices = with.slices;
    assert_ok(pace__link_open_threads(3, 2, &options, self->links));
    pace__link_set_name(self->links[2], 0, "chief (rank 0)");
    pace__link_set_name(self->links[2], 1, "worker1 (rank 1)");
    assert_ok(pace__shard_create(self->links[2], &shard, &said_log, &self->shard));
    return self;
}

static hand *hand_open_for(pace__exchange exchange, unsigned dim, size_t keys_max)
{
    return hand_open_with(exchange, dim, (hand_plan){.keys_max = keys_max});
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

/* Each part lies in the step, and no two overlap; but one row is nobody's. */
static void a_step_is_whole(void **state)
{
    static const pace__exchange exchanges[] = {PACE__EXCHANGE_SYNC, PACE__EXCHANGE_MERGE};

    for (int i = 0; i < 2; i++) {
        bool merge = exchanges[i] == PACE__EXCHANGE_MERGE;
        hand *self = hand_open(exchanges[i], dim_of(state));
        pace__push parts[2] = {rows_push(0, 4, 0, 2, 2), rows_push(5, 3, 0, 2, 2)};

        for (int worker = 0; worker < 2; worker++) {
            if (merge)
                parts[worker].flags = PACE__PUSH_GRADIENTS;
            else
                assert_ok(hand_push(self, worker, keys_push(2)));
            assert_true(merge || hand_answered(self, worker));
        }
        assert_ok(hand_push(self, 0, parts[0]));
        assert_failed(hand_push(self, 1, parts[1]), PACE_BUG,
                      "gradients of 7 of the 8 rows up to the end of step 0");
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
    hand *self = hand_open_with(PACE__EXCHANGE_SYNC, 1, (hand_plan){HAND_MAX, 0.1, 0});
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
        assert_int_equal(pace__optim_stamp(&table->optim, table->records + place * table->stride), 0);
    hand_close(self);
}

/* --- messages that cannot be --- */

typedef struct lie {
    const char *why; /* part of the message */
    pace__push push;
    size_t bytes; /* 0: as the header says */
    bool wild;    /* the last place is out of range */
    int slices;   /* that a step has */
} lie;

/* To a shard that worker 1 has asked for 3 keys: its honest push has 3 gradients, of rows 4-8 in step 0. */
static void tell(pace__exchange exchange, unsigned dim, const lie *told)
{
    bool merge = exchange == PACE__EXCHANGE_MERGE;
    hand *self = hand_open_with(exchange, dim, (hand_plan){.keys_max = HAND_MAX, .slices = told->slices});
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
        {"than there can be", {.flags = KEYS, .keys = 3, .now = UINT64_MAX}},
        {"end", {.flags = PACE__PUSH_END}}, /* not the chief */
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

/* With slices: one of one, which is all of a step, that either worker may bring. */
static void lies_of_slices(void **state)
{
    static const lie lies[] = {
        {"no slice that there is", {GRADIENTS, 0, 8, 0, 1, .gradients = 3}, .slices = 1},
        {"no slice that there is", {GRADIENTS, 0, 8, 0, UINT64_MAX, .gradients = 3}, .slices = 1},
        {"no slice that there is", {.flags = KEYS, .slice = 1, .keys = 3}, .slices = 1},
        {"only the chief may end", {.flags = PACE__PUSH_END}, .slices = 1},
        {"another step", {GRADIENTS, 8, 8, 1, .gradients = 3}, .slices = 1},
        {"another step", {GRADIENTS, 0, 8, UINT64_MAX, .gradients = 3}, .slices = 1},
        {"rows are not rows of its step", {GRADIENTS, 0, 9, 0, .gradients = 3}, .slices = 1},
        {"gradients without keys", {GRADIENTS, 0, 8, 0, .gradients = 2}, .slices = 1},
    };

    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
        tell(PACE__EXCHANGE_SYNC, dim_of(state), &lies[i]);
}

static hand *hand_open_sliced(unsigned dim)
{
    hand *self = hand_open_with(PACE__EXCHANGE_SYNC, dim, (hand_plan){.keys_max = HAND_MAX, .slices = 1});

    for (int worker = 0; worker < 2; worker++) {
        assert_ok(hand_push(self, worker, keys_push(3)));
        assert_true(hand_answered(self, worker));
    }
    return self;
}

/* The counter ends jobs with slices; and a slice that is no whole one is found when the step is. */
static void slices_that_cannot_be(void **state)
{
    hand *self = hand_open_sliced(dim_of(state));

    assert_failed(hand_push(self, 0, (pace__push){.flags = PACE__PUSH_END}), PACE_BUG,
                  "chief (rank 0) that cannot be: it is of no slice that there is");
    hand_close(self);
    self = hand_open_sliced(dim_of(state));
    assert_failed(hand_push(self, 1, rows_push(0, 4, 0, 3, 0)), PACE_BUG,
                  "gradients of 4 of the 8 rows up to the end of step 0: they do not see the same data");
    hand_close(self);
}

/* The first result counts; who brings another is told, its keys are forgotten, and gradients of them have none any more. */
static void late_slices_are_dropped(void **state)
{
    hand *self = hand_open_sliced(dim_of(state));

    assert_ok(hand_push(self, 1, rows_push(0, 8, 0, 3, 3)));
    assert_int_equal(hand_reply(self, 1).flags, 0);
    assert_ok(hand_push(self, 0, rows_push(0, 8, 0, 3, 3)));
    pace__reply reply = hand_reply(self, 0);

    assert_true(reply.flags == PACE__REPLY_LATE && reply.weights == 0 && reply.step == 1);
    const pace__shard_stats *stats = pace__shard_stats_of(self->shard);

    assert_true(stats->repeats_dropped == 1 && stats->rows_repeated == 8 && stats->pushes == 1);
    assert_failed(hand_push(self, 0, rows_push(8, 8, 1, 3, 0)), PACE_BUG, "it has gradients without keys");
    hand_close(self);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        OF_ROWS(repeats_are_dropped),
        OF_ROWS(a_lost_worker_is_forgotten),
        OF_ROWS(rows_out_of_order),
        OF_ROWS(staleness_is_counted),
        OF_ROWS(a_step_waits_for_all),
        OF_ROWS(a_step_is_whole),
        OF_ROWS(an_end_lets_go_of_keys),
        OF_ROWS(an_end_waits_for_all),
        cmocka_unit_test(an_end_is_told_to_who_asks_behind_it),
        OF_ROWS(lies_to_all_but_merge),
        cmocka_unit_test(lies_of_lengths),
        OF_ROWS(more_keys_than_places),
        OF_ROWS(lies_of_steps),
        OF_ROWS(lies_to_merge),
        OF_ROWS(lies_of_slices),
        OF_ROWS(slices_that_cannot_be),
        OF_ROWS(late_slices_are_dropped),
        OF_ROWS(an_end_with_gradients),
        OF_ROWS(too_far_ahead),
        cmocka_unit_test(answers_are_checked),
    };

    small_pages();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
