/*
 * Any bytes as messages to a shard: it answers or refuses with PACE_BUG, and its answers fit what a worker
 * has room for. The first byte chooses the exchange, the update rule and the size of rows. Then come messages: a byte that
 * names the worker and may cut the message, one with the number of words behind the header, the fields of the
 * header, one byte each (from 250 on they mean very large numbers), and the words, one byte each.
 */
#include "ps/shard.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define WORKERS      2
#define KEYS         24 /* 12 on each of two shards */
#define KEYS_MAX     10
#define MESSAGE_MAX  4096
#define HEADER_BYTES 7

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct stage {
    pace__link *links[WORKERS + 1];
    pace__shard *shard;
    pace__exchange exchange;
    unsigned dim;
    unsigned char reply[WORKERS][MESSAGE_MAX];
    pace__request receive[WORKERS];
} stage;

static void ignore(void *user, pace_level level, const char *text)
{
    (void)user;
    (void)level;
    (void)text;
}

static const pace_log no_log = {.write = ignore};

/* What a client has room for: client.c. */
static size_t answer_bytes(const stage *self)
{
    size_t dim = self->dim;
    size_t floats = self->exchange == PACE__EXCHANGE_MERGE ? (dim + 1) * (KEYS / 2 + 1) : dim * KEYS_MAX;

    return sizeof(pace__reply) + floats * sizeof(float);
}

static void open_stage(stage *self, uint8_t choice)
{
    static const int kinds[] = {PACE_SGD, PACE_ADAGRAD, PACE_FTRL, PACE_ADAM};
    pace__link_options options = {60000000000u, 60000000000u, .log = &no_log};

    memset(self, 0, sizeof *self);
    self->exchange = choice % 3;
    self->dim = choice & 128 ? 3 : 1;
    double penalty = self->dim == 1 && choice & 64 ? 0.1 : 0; /* rows have none */

    pace__shard_plan plan = {.exchange = self->exchange,
                             .workers = WORKERS,
                             .steps = pace__steps_make(40, 8),
                             .rate = {.lr = 0.1, .steps = 100},
                             .keys_max = KEYS_MAX,
                             .narrow = choice & 32 && self->exchange != PACE__EXCHANGE_MERGE};

    plan.table = (pace__table_plan){KEYS,
                                    self->dim,
                                    0,
                                    2,
                                    self->exchange != PACE__EXCHANGE_ASYNC,
                                    pace__optim_make(kinds[choice / 3 % 4], 0.1, 0.9, 0, penalty)};
    assert(pace__link_open_threads(WORKERS + 1, WORKERS, &options, self->links) == PACE_OK);
    assert(pace__shard_create(self->links[WORKERS], &plan, &no_log, &self->shard) == PACE_OK);
}

static void close_stage(stage *self)
{
    pace__shard_free(self->shard);
    for (int worker = 0; worker < WORKERS; worker++)
        pace__link_cancel(self->links[worker], &self->receive[worker]);
    pace__link_fail(self->links[0], PACE_FAILED,
                    "over"); /* nobody who was refused has to tell it, and wait for an answer */
    for (int rank = 0; rank <= WORKERS; rank++)
        pace__link_close(self->links[rank]);
}

/* Takes the answers that have come, and looks whether they are whole. */
static void take_answers(stage *self, int worker)
{
    for (;;) {
        pace__request *receive = &self->receive[worker];
        pace__reply reply;
        bool done;

        if (!receive->active)
            pace__link_receive(self->links[worker], WORKERS, PACE__TAG_REPLY, self->reply[worker],
                               answer_bytes(self), receive);
        assert(pace__link_done(self->links[worker], receive, &done) == PACE_OK);
        if (!done)
            return;
        assert(receive->bytes >= sizeof reply);
        memcpy(&reply, self->reply[worker], sizeof reply);
        uint64_t words = reply.weights * (self->dim + (self->exchange == PACE__EXCHANGE_MERGE));

        assert(receive->bytes == sizeof reply + words * sizeof(float));
    }
}

static uint64_t field(uint8_t byte)
{
    return byte >= 250 ? UINT64_MAX - (255u - byte) : byte;
}

/* The message at data; returns where the next begins. */
static size_t make_message(const uint8_t *data, size_t size, unsigned char *message, size_t *bytes)
{
    size_t words = data[1], at = 2 + HEADER_BYTES;
    const uint8_t *fields = data + 2;
    pace__push push = {.flags = fields[0],
                       .first = field(fields[1]),
                       .rows = field(fields[2]),
                       .step = field(fields[3]),
                       .loss = 1,
                       .gradients = field(fields[4]),
                       .now = field(fields[5]),
                       .keys = field(fields[6])};

    memcpy(message, &push, sizeof push);
    *bytes = sizeof push + words * sizeof(uint32_t);
    if (data[0] & 128) /* cut somewhere */
        *bytes -= *bytes > (data[0] & 127u) ? data[0] & 127u : *bytes;
    for (size_t i = 0; i < words; i++, at += at < size) { /* a byte each: places, and small floats */
        uint32_t word = at < size ? data[at] : 0;

        memcpy(message + sizeof push + i * sizeof word, &word, sizeof word);
    }
    return at;
}

/* One message from a worker; false: it was refused, and the job is lost. */
static bool deliver(stage *self, int worker, const unsigned char *message, size_t bytes)
{
    pace__request send = {0};
    pace_status status = PACE_OK;
    bool left;

    pace__link_send(self->links[worker], WORKERS, PACE__TAG_PUSH, message, bytes, &send);
    for (int turn = 0; turn < 4 && !status; turn++) {
        bool busy = false;

        status = pace__shard_poll(self->shard, &busy);
        for (int i = 0; i < WORKERS; i++)
            take_answers(self, i);
    }
    assert(status == PACE_OK || status == PACE_BUG);
    assert(pace__link_done(self->links[worker], &send, &left) == PACE_OK);
    if (!left) /* the shard has no room before it has heard of the others: nothing can follow */
        pace__link_fail(self->links[0], PACE_FAILED, "given up");
    pace__link_settle(self->links[worker], &send);
    return left && !status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static stage self;
    static unsigned char message[MESSAGE_MAX];
    bool goes_on = size > 0;
    size_t at = 1;

    if (!goes_on)
        return 0;
    open_stage(&self, data[0]);
    while (goes_on && size - at >= 2 + HEADER_BYTES) {
        int worker = data[at] & 1;
        size_t bytes;

        at += make_message(data + at, size - at, message, &bytes);
        goes_on = deliver(&self, worker, message, bytes);
    }
    close_stage(&self);
    return 0;
}
