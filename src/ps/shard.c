/*
 * What comes from a worker is, for the shard, a message that goes through one of two lives:
 *
 *     receiving -> arrived    it is here, and checked (look_at)
 *     arrived   -> answered   alone, at once: all of async, and in sync what has no part of a step (apply_now)
 *     arrived   -> summed     a part of the step under way, when those of the workers before it are (add_part)
 *     summed    -> answered   together, when all are: the step is applied (finish_step)
 *
 * and a sync or merge shard goes from step to step until the chief's part is an end instead of gradients:
 *
 *     collecting -> collecting   all parts are in: the step is applied, the next one begins
 *     collecting -> ending       the chief's part is an end (ends): what the others send of the step is dropped
 *     ending     -> ended        all parts are in: nothing was applied, and the step stays what it is
 *
 * 1. A worker's next message is looked at only when the last one is answered; so it has at most one that has
 *    arrived, and one on its way.
 * 2. A buffer is used by the receive under way, by what has arrived, or by keys that wait for their
 *    gradients: no more than BUFFERS altogether, and each by one of them.
 * 3. The parts of workers 0 .. summed - 1 are in the sums, and their messages are still there. Sums are added
 *    in the order of the workers, so that they do not depend on who was fast.
 * 4. An answer goes into a place whose last one has left: a message is dealt with only when there is one, and
 *    none is taken until that message is answered.
 * 5. Keys were read at a version of the parameters that is not ahead of the shard's; their gradients come in
 *    the order of the lists.
 * 6. Of a lost worker nothing is looked at any more, and nothing of it is freed that its carrier may use.
 */
#include "ps/shard.h"

#include "base/clock.h"
#include "base/memory.h"
#include "math/bf16.h"
#include "watch/spans.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

/* Messages that are kept for their keys, one that is looked at, and one that is on its way. */
#define BUFFERS (PACE__DEPTH_MAX + 2)
/* Answers on their way to one worker. */
#define ANSWERS (PACE__DEPTH_MAX + 1)

/* Keys that were sent and wait for their gradients. */
typedef struct key_list {
    int buffer; /* that holds them */
    const uint32_t *places;
    size_t count;
    uint64_t version; /* of the parameters when the weights were read */
} key_list;

/* One worker, as the shard sees it. */
typedef struct peer {
    unsigned char *buffers[BUFFERS];
    bool used[BUFFERS];
    int receiving; /* the buffer of the receive under way, or -1 */
    pace__request receive;
    int arrived; /* the buffer of a message that waits to be dealt with, or -1 */
    key_list lists[PACE__DEPTH_MAX];
    unsigned lists_count;
    unsigned char *answers[ANSWERS];
    pace__request sends[ANSWERS];
    unsigned next_answer;
    bool lost;
    bool kept; /* lost, and its buffers must stay in place: see pace__link_abandon */
} peer;

struct pace__shard {
    pace__link *link;
    const pace_log *log;
    pace__shard_plan plan;
    pace__table table;
    pace__intervals applied;
    uint64_t version; /* updates so far */
    double loss;
    pace__shard_stats stats;
    size_t message_bytes, answer_bytes;
    float *
        widened; /* (places_max, dim) gradients that came as bf16, of the message at hand; NULL: they come as floats */
    peer *peers;
    /* sync and merge: the step under way */
    uint64_t step;
    int summed; /* workers whose part is in the sums */
    bool ends;  /* the chief wants no such step */
    bool ended; /* and everyone's part of it is in */
};

/* --- life --- */

static size_t places_max(const pace__shard_plan *plan)
{
    uint64_t places = plan->table.keys / plan->table.shards + 1;

    return plan->keys_max < places ? plan->keys_max : places;
}

static size_t message_bytes_of(const pace__shard_plan *plan)
{
    return sizeof(pace__push) + (plan->table.dim + (size_t)1) * places_max(plan) * sizeof(float);
}

static size_t answer_bytes_of(const pace__shard_plan *plan)
{
    uint64_t places = plan->table.keys / plan->table.shards + 1,
             all = plan->keys_max * (uint64_t)plan->workers;

    if (plan->exchange == PACE__EXCHANGE_MERGE)
        return sizeof(pace__reply) +
               (plan->table.dim + UINT64_C(1)) * (all < places ? all : places) * sizeof(float);
    return sizeof(pace__reply) + plan->table.dim * places_max(plan) * sizeof(float);
}

static size_t widened_bytes(const pace__shard_plan *plan)
{
    return plan->narrow ? plan->table.dim * places_max(plan) * sizeof(float) : 0;
}

uint64_t pace__shard_memory(const pace__shard_plan *plan)
{
    uint64_t messages = BUFFERS * message_bytes_of(plan) + ANSWERS * answer_bytes_of(plan);

    return pace__table_bytes(&plan->table) + (uint64_t)plan->workers * messages + widened_bytes(plan);
}

/* Invariant 2. */
static bool buffers_add_up(const peer *from)
{
    unsigned used = 0, known = from->lists_count + (from->receiving >= 0) + (from->arrived >= 0);
    bool kept = from->lists_count <= PACE__DEPTH_MAX;

    for (int i = 0; i < BUFFERS; i++)
        used += from->used[i];
    for (unsigned i = 0; kept && i < from->lists_count; i++)
        kept = from->used[from->lists[i].buffer];
    return kept && used == known;
}

static void post_receive(pace__shard *shard, int worker)
{
    peer *from = &shard->peers[worker];

    assert(buffers_add_up(from));
    for (int i = 0; i < BUFFERS && from->receiving < 0; i++) {
        if (from->used[i])
            continue;
        from->used[i] = true;
        from->receiving = i;
        pace__link_receive(shard->link, worker, PACE__TAG_PUSH, from->buffers[i], shard->message_bytes,
                           &from->receive);
    }
}

static pace_status open_peer(pace__shard *shard, int worker)
{
    peer *from = &shard->peers[worker];
    bool enough = true;

    from->receiving = from->arrived = -1;
    for (int i = 0; i < BUFFERS; i++)
        enough = (from->buffers[i] = pace__pages_alloc(shard->message_bytes)) && enough;
    for (int i = 0; i < ANSWERS; i++)
        enough = (from->answers[i] = pace__pages_alloc(shard->answer_bytes)) && enough;
    if (!enough)
        return pace_fail(shard->log, PACE_FAILED, "out of memory for the messages of %d workers",
                         shard->plan.workers);
    post_receive(shard, worker);
    return PACE_OK;
}

static void begin_step(pace__shard *shard, uint64_t step)
{
    const pace__rate *rate = &shard->plan.rate;

    pace__optim_begin_step(&shard->table.optim,
                           pace__schedule_lr(rate->schedule, rate->lr, rate->warmup, step, rate->steps),
                           step);
}

static void begin_at(pace__shard *shard, uint64_t step)
{
    shard->step = step;
    pace__intervals_init(&shard->applied, pace__steps_rows_before(&shard->plan.steps, step));
    if (step > 0) /* penalties that are still to be applied count at the rate of the step before */
        begin_step(shard, step - 1);
}

pace_status pace__shard_create(pace__link *link, const pace__shard_plan *plan, const pace_log *log,
                               pace__shard **shard)
{
    pace__shard *created = calloc(1, sizeof *created);

    assert(plan->workers >= 1 && plan->table.sums == (plan->exchange != PACE__EXCHANGE_ASYNC));
    if (!created)
        return pace_fail(log, PACE_FAILED, "out of memory");
    *created = (pace__shard){.link = link, .log = log, .plan = *plan};
    created->message_bytes = message_bytes_of(plan);
    created->answer_bytes = answer_bytes_of(plan);
    created->peers = calloc((size_t)plan->workers, sizeof *created->peers);
    pace_status status = created->peers ? pace__table_init(&created->table, &plan->table, log)
                                        : pace_fail(log, PACE_FAILED, "out of memory");

    begin_at(created, plan->first_step);
    if (!status && plan->narrow && !(created->widened = pace__pages_alloc(widened_bytes(plan))))
        status = pace_fail(log, PACE_FAILED, "out of memory for the gradients of a message");
    for (int worker = 0; worker < plan->workers && !status; worker++)
        status = open_peer(created, worker);
    if (status)
        pace__shard_free(created);
    else
        *shard = created;
    return status;
}

void pace__shard_free(pace__shard *shard)
{
    if (!shard)
        return;
    for (int worker = 0; shard->peers && worker < shard->plan.workers; worker++) {
        peer *from = &shard->peers[worker];

        if (from->kept)
            continue;
        pace__link_cancel(shard->link, &from->receive);
        for (int i = 0; i < BUFFERS; i++)
            pace__pages_free(from->buffers[i], shard->message_bytes);
        for (int i = 0; i < ANSWERS; i++) {
            pace__link_settle(shard->link, &from->sends[i]);
            pace__pages_free(from->answers[i], shard->answer_bytes);
        }
    }
    free(shard->peers);
    pace__pages_free(shard->widened, widened_bytes(&shard->plan));
    pace__table_release(&shard->table);
    free(shard);
}

/* --- what a message holds --- */

typedef struct parts {
    const pace__push *push;
    const void *gradients; /* as they came: gradients_of */
    const uint32_t *places;
} parts;

static uint64_t gradient_words(const pace__shard *shard, const pace__push *push)
{
    return pace__push_words(push->gradients * shard->plan.table.dim, shard->plan.narrow);
}

static parts parts_of(const pace__shard *shard, const unsigned char *message)
{
    const pace__push *push = (const pace__push *)message;
    const float *floats = (const float *)(push + 1);

    return (parts){push, floats, (const uint32_t *)(floats + gradient_words(shard, push))};
}

/* As floats: of one message at a time. */
static const float *gradients_of(pace__shard *shard, const parts *message)
{
    const pace__bf16 *narrow = message->gradients;
    size_t count = message->push->gradients * shard->plan.table.dim;

    if (!shard->plan.narrow)
        return message->gradients;
    for (size_t i = 0; i < count; i++)
        shard->widened[i] = pace__bf16_widen(narrow[i]);
    return shard->widened;
}

static pace_status refuse(const pace__shard *shard, int worker, const char *why)
{
    return pace_fail(shard->log, PACE_BUG, "a message from %s that cannot be: %s",
                     pace__link_name(shard->link, worker), why);
}

/* What is wrong with the counts of a message, or NULL. */
static const char *fault_of_counts(const pace__shard *shard, const peer *from, const pace__push *push)
{
    bool merge = shard->plan.exchange == PACE__EXCHANGE_MERGE, pushes = push->flags & PACE__PUSH_GRADIENTS,
         asks = merge ? pushes : push->flags & PACE__PUSH_KEYS;

    if ((!pushes && push->gradients > 0) || (!asks && push->keys > 0))
        return "it has gradients or keys without saying so";
    if (push->keys > places_max(&shard->plan)) /* also if some occur twice: the answer has no more room */
        return "it has more keys than a batch can have";
    if (pushes && (merge ? push->gradients != push->keys
                         : from->lists_count == 0 || push->gradients != from->lists[0].count))
        return "it has gradients without keys";
    if (!merge && asks && from->lists_count - pushes >= PACE__DEPTH_MAX)
        return "it asks for too many batches ahead";
    return NULL;
}

/* Rows lie in their step; the sum of first and rows may be anything. A part without rows may be at the end of the step: in
 * front of the first row of the next one. */
static bool rows_fit(const pace__steps *steps, const pace__push *push)
{
    uint64_t last = push->first + push->rows,
             in = push->rows == 0 && push->first > 0 ? push->first - 1 : push->first;

    return (pace__steps_of(steps, push->first) == push->step || pace__steps_of(steps, in) == push->step) &&
           push->first <= last && last <= pace__steps_rows_before(steps, push->step + 1);
}

/* Whether a message is a worker's part of a step: an end counts as the chief's. */
static bool is_part(const pace__push *push)
{
    return push->flags & (PACE__PUSH_GRADIENTS | PACE__PUSH_END);
}

/* What is wrong with the time that a message is of, or NULL. */
static const char *fault_of_step(const pace__shard *shard, int worker, const pace__push *push)
{
    bool pushes = push->flags & PACE__PUSH_GRADIENTS, ends = push->flags & PACE__PUSH_END,
         async = shard->plan.exchange == PACE__EXCHANGE_ASYNC;

    if (ends && (worker != 0 || pushes || async))
        return "only the chief may end the job, and then without gradients";
    if (!async && is_part(push) && push->step != shard->step)
        return "it is of another step";
    if (push->now > PACE__STAMP_ROWS_MAX)
        return "it asks for weights behind more rows than there can be";
    if (pushes && !rows_fit(&shard->plan.steps, push))
        return "its rows are not rows of its step";
    return NULL;
}

static pace_status check_message(const pace__shard *shard, int worker, const unsigned char *message,
                                 size_t bytes)
{
    const pace__push *push = (const pace__push *)message;
    uint64_t kinds = shard->plan.exchange == PACE__EXCHANGE_MERGE
                         ? PACE__PUSH_GRADIENTS | PACE__PUSH_END
                         : PACE__PUSH_GRADIENTS | PACE__PUSH_KEYS | PACE__PUSH_END;

    if (bytes < sizeof *push || push->gradients > bytes || push->keys > bytes ||
        bytes != sizeof *push + (gradient_words(shard, push) + push->keys) * sizeof(float))
        return refuse(shard, worker, "its length is not what its header says");
    if (push->flags & ~kinds)
        return refuse(shard, worker, "it is of no kind that is known");
    const char *fault = fault_of_counts(shard, &shard->peers[worker], push);

    if (!fault)
        fault = fault_of_step(shard, worker, push);
    if (!fault && !pace__table_places_valid(&shard->table, parts_of(shard, message).places, push->keys))
        fault = "it asks for a parameter that is not on this shard";
    return fault ? refuse(shard, worker, fault) : PACE_OK;
}

/* --- answers --- */

static bool answer_is_free(pace__shard *shard, peer *to, pace_status *status)
{
    bool done = false;

    *status = pace__link_done(shard->link, &to->sends[to->next_answer], &done);
    return done && !*status;
}

static void send_answer(pace__shard *shard, int worker, const pace__reply *reply, size_t bytes)
{
    peer *to = &shard->peers[worker];

    assert(bytes <= shard->answer_bytes && to->arrived < 0);
    pace__link_send(shard->link, worker, PACE__TAG_REPLY, reply, bytes, &to->sends[to->next_answer]);
    to->next_answer = (to->next_answer + 1) % ANSWERS;
}

/* An end is told only to those whose part of the step is in: the others are still to send theirs. Once all
 * are in, it is told to whoever has asked for a step behind it, too. */
static pace__reply reply_header(const pace__shard *shard, bool part)
{
    return (pace__reply){.flags = shard->ended || (shard->ends && part) ? PACE__REPLY_END : 0,
                         .rows_done = pace__intervals_rows(&shard->applied),
                         .loss = shard->loss};
}

/* The rate at which penalties up to row `now` count: that of the step which has the last of these rows. A
 * synchronous shard stands there; in between pushes of any step, it is set for each answer. */
static void stand_at(pace__shard *shard, uint64_t now)
{
    if (shard->plan.exchange == PACE__EXCHANGE_ASYNC && shard->table.optim.lazy && now > 0)
        begin_step(shard, pace__steps_of(&shard->plan.steps, now - 1));
}

/* Answers the message that has arrived from the worker, with the weights of its keys, which are kept for
 * their gradients. */
static void answer_with_weights(pace__shard *shard, int worker)
{
    peer *to = &shard->peers[worker];
    int buffer = to->arrived;

    assert(buffer >= 0 && !to->sends[to->next_answer].active); /* invariant 4 */
    parts message = parts_of(shard, to->buffers[buffer]);
    pace__reply *reply = (pace__reply *)to->answers[to->next_answer];
    float *weights = (float *)(reply + 1);

    *reply = reply_header(shard, is_part(message.push));
    reply->weights = message.push->keys;
    stand_at(shard, message.push->now);
    if (reply->flags & PACE__REPLY_END) /* they must not be brought up to rows that never come */
        pace__table_peek(&shard->table, message.places, message.push->keys, message.push->now, weights);
    else
        pace__table_weights(&shard->table, message.places, message.push->keys, message.push->now, weights);
    assert(to->lists_count < PACE__DEPTH_MAX || !(message.push->flags & PACE__PUSH_KEYS));
    if (message.push->flags & PACE__PUSH_KEYS)
        to->lists[to->lists_count++] = (key_list){buffer, message.places, message.push->keys, shard->version};
    else
        to->used[buffer] = false;
    to->arrived = -1;
    send_answer(shard, worker, reply, sizeof *reply + reply->weights * shard->plan.table.dim * sizeof(float));
}

/* The same sums for everyone, out of one place, the first worker's: it is free again when all have got them, since
 * nobody's part of a later step is dealt with before (invariant 4). */
static void answer_with_sums(pace__shard *shard)
{
    pace__table *table = &shard->table;
    size_t dim = table->plan.dim,
           bytes = sizeof(pace__reply) + (dim + 1) * (size_t)table->touched_count * sizeof(float);
    pace__reply *reply = (pace__reply *)shard->peers[0].answers[shard->peers[0].next_answer];
    float *sums = (float *)(reply + 1);

    *reply = reply_header(shard, true);
    reply->weights = table->touched_count;
    pace__table_sums(table, sums);
    memcpy(sums + reply->weights * dim, table->touched, reply->weights * sizeof(uint32_t));
    for (int worker = 0; worker < shard->plan.workers; worker++) {
        peer *to = &shard->peers[worker];

        assert(to->arrived >= 0 && !to->sends[to->next_answer].active); /* invariants 3 and 4 */
        to->used[to->arrived] = false;
        to->arrived = -1;
        send_answer(shard, worker, reply, bytes);
    }
}

/* --- gradients --- */

static float scale_of(const pace__shard *shard, uint64_t step)
{
    return pace__optim_scale(&shard->table.optim, pace__steps_rows_in(&shard->plan.steps, step));
}

static key_list take_keys(peer *from)
{
    key_list list = from->lists[0];

    assert(from->lists_count > 0 && from->used[list.buffer]);
    from->lists_count--;
    memmove(&from->lists[0], &from->lists[1], from->lists_count * sizeof from->lists[0]);
    from->used[list.buffer] = false;
    return list;
}

/* Whether these rows are to be applied: not if they have been already. */
static pace_status book_rows(pace__shard *shard, int worker, const pace__push *push, bool *fresh)
{
    pace__interval_result result =
        pace__intervals_add(&shard->applied, push->first, push->first + push->rows);

    *fresh = result == PACE__INTERVAL_NEW;
    if (result == PACE__INTERVAL_REPEAT) {
        shard->stats.repeats_dropped++;
        shard->stats.rows_repeated += push->rows;
    } else if (result != PACE__INTERVAL_NEW) {
        return refuse(shard, worker,
                      result == PACE__INTERVAL_FULL ? "its rows are too far ahead"
                                                    : "some of its rows were applied before, some not");
    }
    if (*fresh)
        shard->loss += push->loss;
    shard->stats.pushes++;
    return PACE_OK;
}

static void note_staleness(pace__shard *shard, uint64_t version)
{
    assert(version <= shard->version); /* invariant 5 */
    uint64_t age = shard->version - version;

    shard->stats.staleness[age < PACE__STALENESS_BINS ? age : PACE__STALENESS_BINS - 1]++;
}

/* Async: one message, from beginning to end. */
static pace_status apply_now(pace__shard *shard, int worker)
{
    peer *from = &shard->peers[worker];
    parts message = parts_of(shard, from->buffers[from->arrived]);
    pace_status status = PACE_OK;
    PACE__SPAN_OF("serve a push", NULL, 0, message.push->gradients * shard->table.plan.dim * 4);

    if (message.push->flags & PACE__PUSH_GRADIENTS) {
        key_list keys = take_keys(from);
        bool fresh;

        status = book_rows(shard, worker, message.push, &fresh);
        if (!status && fresh) {
            float scale = scale_of(shard, message.push->step) *
                          pace__push_weight(shard->version - keys.version, shard->plan.fresh_pushes);

            begin_step(shard, message.push->step);
            note_staleness(shard, keys.version);
            pace__table_update(&shard->table, keys.places, gradients_of(shard, &message), keys.count, scale);
            shard->version++;
        }
    }
    if (!status)
        answer_with_weights(shard, worker);
    return status;
}

/* Sync and merge: one worker's part of the step goes into the sums. */
static pace_status add_part(pace__shard *shard, int worker)
{
    peer *from = &shard->peers[worker];

    assert(from->arrived >= 0 && is_part((const pace__push *)from->buffers[from->arrived]));
    parts message = parts_of(shard, from->buffers[from->arrived]);
    const pace__push *push = message.push;
    bool merge = shard->plan.exchange == PACE__EXCHANGE_MERGE, fresh;
    key_list keys = {.places = message.places, .count = push->keys};

    if (push->flags & PACE__PUSH_END) { /* from the chief, whose part is the first: there are no sums yet */
        assert(worker == 0 && shard->table.touched_count == 0);
        shard->ends = true;
        return PACE_OK;
    }
    if (!merge) /* also if nobody wants the gradients any more: others may be waiting for room */
        keys = take_keys(from);
    if (shard->ends)
        return PACE_OK;
    PACE__SPAN_OF("add a worker's part", NULL, keys.count * shard->table.plan.dim,
                  keys.count * shard->table.plan.dim * 4);
    pace_status status = book_rows(shard, worker, push, &fresh);

    if (status || !fresh)
        return status;
    pace__table_add(&shard->table, keys.places, gradients_of(shard, &message), keys.count);
    if (!merge)
        note_staleness(shard, keys.version);
    return PACE_OK;
}

/* Parts that overlap are refused one by one (book_rows); that together they are the step is known with the last. */
static pace_status check_step(const pace__shard *shard)
{
    uint64_t rows = pace__steps_rows_before(&shard->plan.steps, shard->step + 1);

    if (shard->ends || (shard->applied.low == rows && shard->applied.count == 0))
        return PACE_OK;
    return pace_fail(shard->log, PACE_BUG,
                     "the workers have sent gradients of %" PRIu64 " of the %" PRIu64
                     " rows up to the end of step %" PRIu64 ": they do not see the same data",
                     pace__intervals_rows(&shard->applied), rows, shard->step);
}

/* All parts of a step are in. */
static pace_status finish_step(pace__shard *shard)
{
    pace_status status = check_step(shard);

    if (status)
        return status;
    assert(shard->summed == shard->plan.workers && shard->plan.exchange != PACE__EXCHANGE_ASYNC);
    PACE__SPAN("apply a step, answer all");
    if (shard->plan.exchange == PACE__EXCHANGE_MERGE)
        answer_with_sums(shard);
    begin_step(shard, shard->step);
    pace__table_apply(&shard->table, scale_of(shard, shard->step),
                      shard->ends || shard->plan.exchange == PACE__EXCHANGE_MERGE);
    shard->ended = shard->ends;
    if (!shard->ends) {
        shard->step++;
        shard->version++;
    }
    shard->summed = 0;
    for (int worker = 0; worker < shard->plan.workers && shard->plan.exchange == PACE__EXCHANGE_SYNC;
         worker++)
        answer_with_weights(shard, worker);
    return PACE_OK;
}

/* --- polling --- */

/* Takes in what has come from a worker, if the message before it has been dealt with. */
static pace_status look_at(pace__shard *shard, int worker, bool *busy)
{
    peer *from = &shard->peers[worker];
    bool done = false;
    uint64_t start_ns = pace__span_now();

    if (from->arrived >= 0 || from->receiving < 0) /* invariant 1 */
        return PACE_OK;
    pace_status status = pace__link_done(shard->link, &from->receive, &done);

    if (status || !done)
        return status;
    from->arrived = from->receiving;
    from->receiving = -1;
    *busy = true;
    status = check_message(shard, worker, from->buffers[from->arrived], from->receive.bytes);
    pace__span_past("receive a push", start_ns);
    if (!status)
        post_receive(shard, worker);
    return status;
}

/* A message without a step's gradients, or one of an async worker, concerns nobody else. */
static bool stands_alone(const pace__shard *shard, const peer *from)
{
    const pace__push *push = (const pace__push *)from->buffers[from->arrived];

    return shard->plan.exchange == PACE__EXCHANGE_ASYNC || !is_part(push);
}

static pace_status deal_with(pace__shard *shard, int worker, bool *busy)
{
    peer *from = &shard->peers[worker];
    pace_status status = PACE_OK;

    if (from->arrived < 0 || !answer_is_free(shard, from, &status))
        return status;
    if (stands_alone(shard, from)) {
        *busy = true;
        return apply_now(shard, worker);
    }
    if (worker == shard->summed) { /* invariant 3 */
        *busy = true;
        shard->summed++;
        status = add_part(shard, worker);
    }
    return status;
}

pace_status pace__shard_poll(pace__shard *shard, bool *busy)
{
    pace_status status = PACE_OK;
    uint64_t start_ns = pace__now_ns();
    bool worked = false;

    for (int worker = 0; worker < shard->plan.workers && !status; worker++) {
        bool something = false;

        if (shard->peers[worker].lost)
            continue;
        status = look_at(shard, worker, &something);
        if (!status)
            status = deal_with(shard, worker, &something);
        if (!status)
            post_receive(shard, worker); /* a buffer may have become free */
        worked |= something;
    }
    if (!status && shard->summed == shard->plan.workers)
        status = finish_step(shard);
    if (worked) {
        shard->stats.busy_ns += pace__now_ns() - start_ns;
        shard->stats.looks++;
    }
    *busy |= worked;
    return status;
}

size_t pace__shard_waits_for(const pace__shard *shard, int *peers)
{
    size_t count = 0;

    for (int worker = 0; worker < shard->plan.workers; worker++) {
        if (shard->peers[worker].arrived < 0 && !shard->peers[worker].lost)
            peers[count++] = worker;
    }
    return count;
}

void pace__shard_lose(pace__shard *shard, int worker)
{
    assert(shard->plan.exchange == PACE__EXCHANGE_ASYNC && worker > 0 && worker < shard->plan.workers);
    peer *from = &shard->peers[worker];

    if (from->lost) /* what must be kept is known from the first time only: invariant 6 */
        return;
    from->lost = true;
    from->arrived = -1;
    from->lists_count = 0;
    from->kept = !pace__link_abandon(shard->link, &from->receive);
    for (int i = 0; i < ANSWERS; i++)
        from->kept |= !pace__link_abandon(shard->link, &from->sends[i]);
}

pace__table *pace__shard_table(pace__shard *shard)
{
    return &shard->table;
}

uint64_t pace__shard_step(const pace__shard *shard)
{
    if (shard->plan.exchange != PACE__EXCHANGE_ASYNC)
        return shard->step;
    return pace__steps_of(&shard->plan.steps, shard->applied.low);
}

uint64_t pace__shard_reached(const pace__shard *shard)
{
    if (shard->plan.exchange != PACE__EXCHANGE_ASYNC)
        return shard->step;
    return pace__steps_of(&shard->plan.steps, pace__intervals_rows(&shard->applied));
}

const pace__shard_stats *pace__shard_stats_of(const pace__shard *shard)
{
    return &shard->stats;
}

pace_status pace__shard_check(const pace__shard *shard, uint64_t rows)
{
    if (shard->applied.low == rows && shard->applied.count == 0)
        return PACE_OK;
    return pace_fail(shard->log, PACE_BUG,
                     "shard %u has applied the rows up to %" PRIu64
                     " and %zu stretches behind, not all %" PRIu64 " of the job, each once",
                     shard->plan.table.shard, shard->applied.low, shard->applied.count, rows);
}
