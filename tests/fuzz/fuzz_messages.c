/*
 * Any bytes as messages of other ranks: each is answered or refused with PACE_BUG (a first message: PACE_USAGE), and
 * answers fit what asks. The first byte says who gets them: the counter that hands out rows, the keeper of a table,
 * the evaluator that waits for weights, the chief that fetches a state, rank 0 that everyone greets, or another rank that
 * rank 0 answers. Then come messages: a byte with the sender's rank, two with the size, the bytes.
 */
#include "ps/counter.h"
#include "ps/snapshot.h"
#include "ps/wire.h"
#include "ranks/hello.h"
#include "ranks/ranks.h"

#include "fuzzing.h"

#include <inttypes.h>

#define WORKERS     2
#define HOLDER      WORKERS /* the rank that the counter and the keeper are on */
#define RANKS       (WORKERS + 1)
#define KEYS        24
#define MESSAGE_MAX 1024 /* of an input */
#define ANSWER_MAX  4096

enum { TO_COUNTER, TO_KEEPER, TO_EVALUATOR, TO_CHIEF, TO_FIRST, TO_OTHER, KINDS };

typedef struct stage {
    pace__link *links[RANKS];
    pace_log log;
    int errors;
    uint64_t step; /* of the keeper */
    unsigned char answer[WORKERS][ANSWER_MAX];
    pace__request receive[WORKERS];
    unsigned char absorbed_bytes[RANKS][2][ANSWER_MAX]; /* what is not looked at */
    pace__request absorbed[RANKS][2];
} stage;

static void open_stage(stage *self)
{
    pace__link_options options = {60000000000u, 60000000000u, .log = &self->log};

    memset(self, 0, sizeof *self);
    self->log = (pace_log){check_message, &self->errors};
    assert(pace__link_open_threads(RANKS, WORKERS, &options, self->links) == PACE_OK);
}

static void close_stage(stage *self)
{
    for (int worker = 0; worker < WORKERS; worker++)
        pace__link_cancel(self->links[worker], &self->receive[worker]);
    for (int rank = 0; rank < RANKS; rank++) {
        for (int i = 0; i < 2; i++)
            pace__link_cancel(self->links[rank], &self->absorbed[rank][i]);
        pace__link_set_log(self->links[rank], &self->log);
    }
    pace__link_fail(self->links[0], PACE_FAILED,
                    "over"); /* nobody who was refused has to tell it, and wait for an answer */
    for (int rank = 0; rank < RANKS; rank++)
        pace__link_close(self->links[rank]);
}

/* The rank will take so many messages of that one, and do nothing. */
static void absorb(stage *self, int rank, int peer, int tag, int count)
{
    for (int i = 0; i < count; i++)
        pace__link_receive(self->links[rank], peer, tag, self->absorbed_bytes[rank][i], ANSWER_MAX,
                           &self->absorbed[rank][i]);
}

/* The next message of the input; false: there is none. */
static bool next(const uint8_t **data, size_t *size, int *from, uint8_t message[MESSAGE_MAX], size_t *bytes)
{
    uint8_t head[3];

    if (*size < sizeof head)
        return false;
    take(data, size, head, sizeof head);
    *from = head[0] % WORKERS;
    *bytes = (head[1] | (size_t)head[2] << 8) % (MESSAGE_MAX + 1);
    *bytes = *bytes < *size ? *bytes : *size;
    take(data, size, message, *bytes);
    return true;
}

/* --- those who answer whoever asks --- */

typedef pace_status poll_fn(void *who, bool *busy);
typedef void check_fn(stage *self, int worker, size_t bytes);

static void take_answers(stage *self, int worker, int tag, check_fn *check)
{
    for (;;) {
        pace__request *receive = &self->receive[worker];
        bool done;

        if (!receive->active)
            pace__link_receive(self->links[worker], HOLDER, tag, self->answer[worker], ANSWER_MAX, receive);
        assert(pace__link_done(self->links[worker], receive, &done) == PACE_OK);
        if (!done)
            return;
        check(self, worker, receive->bytes);
    }
}

/* All messages, one after the other, until one is refused or not taken. */
static void deliver(stage *self, const uint8_t *data, size_t size, int tag, int answer_tag, poll_fn *poll,
                    void *who, check_fn *check)
{
    uint8_t message[MESSAGE_MAX];
    size_t bytes;
    int from;
    pace_status status = PACE_OK;

    while (!status && next(&data, &size, &from, message, &bytes)) {
        pace__request send = {0};
        bool left;

        pace__link_send(self->links[from], HOLDER, tag, message, bytes, &send);
        for (int turn = 0; turn < 4 && !status; turn++) {
            bool busy = false;

            status = poll(who, &busy);
            for (int worker = 0; worker < WORKERS; worker++)
                take_answers(self, worker, answer_tag, check);
        }
        assert(status == PACE_OK || status == PACE_BUG);
        assert(self->errors == (status != PACE_OK));
        self->step++;
        pace_status sent = pace__link_done(self->links[from], &send, &left);

        if (sent || !left)
            pace__link_fail(self->links[0], PACE_FAILED, "given up");
        pace__link_settle(self->links[from], &send);
        if (sent || !left)
            return;
    }
}

static void check_ticket(stage *self, int worker, size_t bytes)
{
    pace__ticket ticket;
    pace__steps steps = pace__steps_make(40, 8);

    assert(bytes == sizeof ticket);
    memcpy(&ticket, self->answer[worker], sizeof ticket);
    assert(ticket.kind == PACE__TICKET_GATE ? worker == 0 : pace__ticket_fits(&ticket, &steps, 10, 4));
}

static pace_status poll_counter(void *who, bool *busy)
{
    return pace__counter_poll(who, busy);
}

static void to_counter(stage *self, const uint8_t *data, size_t size)
{
    pace__tickets tickets;
    pace__counter *counter;
    pace__steps steps = pace__steps_make(40, 8);

    pace__tickets_init(&tickets, &steps, WORKERS, 0, 10, 2, (uint64_t[2]){3, 0});
    assert(pace__counter_create(self->links[HOLDER], WORKERS, &tickets, &self->log, &counter) == PACE_OK);
    deliver(self, data, size, PACE__TAG_ASK, PACE__TAG_TICKET, poll_counter, counter, check_ticket);
    pace__counter_free(counter);
}

static uint64_t step_of(const void *user)
{
    return ((const stage *)user)->step;
}

static void check_fetched(stage *self, int worker, size_t bytes)
{
    uint64_t head[3];

    assert(bytes >= sizeof head);
    memcpy(head, self->answer[worker], sizeof head);
    assert(bytes == sizeof head + head[2] * sizeof(float));
}

static pace_status poll_keeper(void *who, bool *busy)
{
    return pace__keeper_poll(who, busy);
}

static void to_keeper(stage *self, const uint8_t *data, size_t size)
{
    pace__table table;
    pace__table_plan rows = {KEYS, 2, 0, 1, true, pace__optim_make(PACE_ADAGRAD, 0.1, 0.9, 0, 0)};
    pace__keeper_plan plan = {.table = &table,
                              .steps = pace__steps_make(40, 8),
                              .exact_steps = true,
                              .step = step_of,
                              .user = self};
    pace__keeper *keeper;

    assert(pace__table_init(&table, &rows, &self->log) == PACE_OK);
    assert(pace__keeper_create(self->links[HOLDER], &plan, &self->log, &keeper) == PACE_OK);
    deliver(self, data, size, PACE__TAG_FETCH, PACE__TAG_FETCHED, poll_keeper, keeper, check_fetched);
    pace__keeper_free(keeper);
    pace__table_release(&table);
}

/* --- those who wait for an answer: it is there before they ask --- */

typedef struct sent {
    pace__request request;
    uint8_t message[MESSAGE_MAX];
} sent;

/* Sends all messages of the input, from one rank to another. */
static int send_all(stage *self, int from, int to, int tag, const uint8_t *data, size_t size, sent *messages,
                    int max)
{
    int count = 0, ignored;
    size_t bytes;

    while (count < max && next(&data, &size, &ignored, messages[count].message, &bytes)) {
        messages[count].request = (pace__request){0};
        pace__link_send(self->links[from], to, tag, messages[count].message, bytes, &messages[count].request);
        count++;
    }
    return count;
}

static void give_up(stage *self, int from, sent *messages, int count)
{
    pace__link_fail(self->links[0], PACE_FAILED, "given up");
    for (int i = 0; i < count; i++)
        pace__link_settle(self->links[from], &messages[i].request);
}

static void to_evaluator(stage *self, const uint8_t *data, size_t size)
{
    static const uint32_t places[] = {1, 5, 7};
    pace__holder holder = {HOLDER, 0, 1, KEYS};
    sent messages[2];
    pace__fetch_list list;
    int count = send_all(self, HOLDER, 0, PACE__TAG_FETCHED, data, size, messages, 2);
    pace_status status = PACE_OK;
    bool answered = false;

    if (count == 2) {
        absorb(self, HOLDER, 0, PACE__TAG_FETCH, 2);
        status = pace__fetch_list_init(&list, self->links[0], &holder, places, 3, 2, &self->log);
        if (!status)
            status = pace__fetch_list_ask(&list, self->links[0], 3);
        if (!status)
            status = pace__fetch_list_poll(&list, self->links[0], &answered, &self->log);
        assert(status == PACE_OK || status == PACE_BUG);
        for (int i = 0; i < 6 && !status && !list.passed; i++)
            self->step += list.weights[i] > 0;
    }
    give_up(self, HOLDER, messages, count);
    if (count == 2)
        pace__fetch_list_release(&list, self->links[0]);
}

static void to_chief(stage *self, const uint8_t *data, size_t size)
{
    float parameters[KEYS * 2] = {0};
    pace__holder holder = {HOLDER, 0, 1, KEYS};
    sent messages[1];
    int count = send_all(self, HOLDER, 0, PACE__TAG_FETCHED, data, size, messages, 1);

    if (count == 1) {
        absorb(self, HOLDER, 0, PACE__TAG_FETCH, 1);
        pace_status status = pace__fetch_state(self->links[0], &holder, 2, parameters, &self->log);

        assert(status == PACE_OK || status == PACE_BUG);
    }
    give_up(self, HOLDER, messages, count);
}

/* The words of ranks 1 and 2 for rank 0, and its answer to them. */
static void to_first(stage *self, const uint8_t *data, size_t size)
{
    sent messages[4];
    pace__rank rank;
    pace__cluster cluster = {RANKS, 0, false};
    int count = send_all(self, 1, 0, PACE__TAG_RANKS, data, size, messages, 2);

    if (count == 2) {
        memcpy(messages + 2, messages, 2 * sizeof *messages); /* rank 2 says the same */
        for (int i = 2; i < 4; i++) {
            size_t bytes = messages[i].request.bytes;

            messages[i].request = (pace__request){0};
            pace__link_send(self->links[2], 0, PACE__TAG_RANKS, messages[i].message, bytes,
                            &messages[i].request);
        }
        for (int i = 1; i < RANKS; i++)
            absorb(self, i, 0, PACE__TAG_RANKS, 1);
        pace__rank_open(&rank, self->links[0], &cluster, true, &self->log);
        pace_status status = pace__rank_greet(&rank, "mode=local seed=1", "data set");

        assert(status == PACE_OK || status == PACE_BUG || status == PACE_USAGE);
        assert(self->errors == (status != PACE_OK));
    }
    give_up(self, 1, messages, count);
    for (int i = 2; i < 4 && count == 2; i++)
        pace__link_settle(self->links[2], &messages[i].request);
    if (count == 2)
        free(rank.hosts);
}

/* What rank 0 says to rank 1 when all have greeted. */
static void to_other(stage *self, const uint8_t *data, size_t size)
{
    sent messages[1];
    pace__rank rank;
    pace__cluster cluster = {RANKS, 0, false};
    int count = send_all(self, 0, 1, PACE__TAG_RANKS, data, size, messages, 1);

    if (count == 1) {
        absorb(self, 0, 1, PACE__TAG_RANKS, 2);
        pace__rank_open(&rank, self->links[1], &cluster, true, &self->log);
        pace_status status = pace__rank_greet(&rank, "mode=local seed=1", "data set");

        assert(status == PACE_OK || status == PACE_BUG);
        assert(self->errors == (status != PACE_OK));
    }
    give_up(self, 0, messages, count);
    if (count == 1)
        free(rank.hosts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const kinds[KINDS])(stage *, const uint8_t *, size_t) = {
        [TO_COUNTER] = to_counter, [TO_KEEPER] = to_keeper, [TO_EVALUATOR] = to_evaluator,
        [TO_CHIEF] = to_chief,     [TO_FIRST] = to_first,   [TO_OTHER] = to_other};
    static stage self;
    uint8_t choice;

    take(&data, &size, &choice, sizeof choice);
    open_stage(&self);
    kinds[choice % KINDS](&self, data, size);
    close_stage(&self);
    return 0;
}
