/*
 * A turn is one send and its answers. Turns are taken one after the other, round and round:
 *
 *     free     -> pending    send: a message to every shard, a receive for every answer
 *     pending  -> answered   poll: the answers are taken in the order of the shards, then the turn is over
 *     answered -> free       at once, but for what merged() gives out
 *
 * 1. sent - finished turns are pending, the oldest of them is finished mod TURNS; there are never more than
 *    TURNS. So a turn is taken again only when all its answers are here, but its messages may still be on
 *    their way: send waits for them.
 * 2. Of the oldest turn, shards 0 .. answered - 1 have answered; of the others none is looked at.
 * 3. Of a batch, the slots by shard are made when its keys are sent, and stay until its gradients are: these
 *    come to a shard in the order in which it has seen the keys.
 */
#include "ps/client.h"

#include "base/clock.h"
#include "base/memory.h"
#include "math/bf16.h"
#include "watch/spans.h"

#include <assert.h>
#include <stdlib.h>

#define TURNS PACE__CLIENT_PENDING_MAX

/* One send and its answers. */
typedef struct exchange {
    pace__work *done, *next;
    pace__answer answer; /* what of it is known beforehand: `done` is used for something else meanwhile */
    unsigned char **messages, **answers; /* (shards) */
    pace__request *sends, *receives;     /* (shards) */
    int answered;                        /* shards that have answered; in order */
} exchange;

struct pace__client {
    pace__link *link;
    const pace_log *log;
    pace__client_plan plan;
    size_t message_bytes, answer_bytes;
    exchange turns[TURNS];
    uint32_t **places;       /* (shards) of the send under way: where each shard's go */
    size_t *sizes;           /* (shards) and how long its message is */
    uint64_t sent, finished; /* sends so far, and those answered */
    uint64_t awaited;        /* step, of a send without a batch */
    uint64_t busy_ns;
};

/* --- life --- */

static size_t places_max(const pace__client_plan *plan)
{
    uint64_t places = plan->keys / (uint64_t)plan->shards + 1;

    return plan->keys_max < places ? plan->keys_max : places;
}

static size_t message_bytes_of(const pace__client_plan *plan)
{
    return sizeof(pace__push) + (plan->dim + (size_t)1) * places_max(plan) * sizeof(float);
}

static size_t answer_bytes_of(const pace__client_plan *plan)
{
    uint64_t places = plan->keys / (uint64_t)plan->shards + 1, all = plan->keys_max * (uint64_t)plan->shards;

    if (plan->exchange == PACE__EXCHANGE_MERGE) /* a shard on every worker: it merges the keys of all */
        return sizeof(pace__reply) +
               (plan->dim + UINT64_C(1)) * (all < places ? all : places) * sizeof(float);
    return sizeof(pace__reply) + plan->dim * places_max(plan) * sizeof(float);
}

uint64_t pace__client_memory(const pace__client_plan *plan)
{
    return (uint64_t)plan->shards * TURNS * (message_bytes_of(plan) + answer_bytes_of(plan));
}

static bool open_turn(pace__client *client, exchange *turn)
{
    size_t shards = (size_t)client->plan.shards;
    bool enough = true;

    turn->messages = calloc(shards, sizeof *turn->messages);
    turn->answers = calloc(shards, sizeof *turn->answers);
    turn->sends = calloc(shards, sizeof *turn->sends);
    turn->receives = calloc(shards, sizeof *turn->receives);
    if (!turn->messages || !turn->answers || !turn->sends || !turn->receives)
        return false;
    for (size_t shard = 0; shard < shards; shard++) {
        enough = (turn->messages[shard] = pace__pages_alloc(client->message_bytes)) && enough;
        enough = (turn->answers[shard] = pace__pages_alloc(client->answer_bytes)) && enough;
    }
    return enough;
}

pace_status pace__client_create(pace__link *link, const pace__client_plan *plan, const pace_log *log,
                                pace__client **client)
{
    pace__client *created = calloc(1, sizeof *created);
    bool enough = created != NULL;

    assert(plan->shards >= 1 && plan->dim >= 1);
    if (created)
        *created = (pace__client){.link = link,
                                  .log = log,
                                  .plan = *plan,
                                  .message_bytes = message_bytes_of(plan),
                                  .answer_bytes = answer_bytes_of(plan)};
    if (created) {
        created->places = calloc((size_t)plan->shards, sizeof *created->places);
        created->sizes = calloc((size_t)plan->shards, sizeof *created->sizes);
        enough = created->places && created->sizes;
    }
    for (int turn = 0; turn < TURNS && enough; turn++)
        enough = open_turn(created, &created->turns[turn]);
    if (!enough) {
        pace__client_free(created);
        return pace_fail(log, PACE_FAILED, "out of memory for the messages to %d shards", plan->shards);
    }
    *client = created;
    return PACE_OK;
}

static void close_turn(pace__client *client, exchange *turn)
{
    for (int shard = 0; shard < client->plan.shards; shard++) {
        if (turn->receives)
            pace__link_cancel(client->link, &turn->receives[shard]);
        if (turn->sends)
            pace__link_settle(client->link, &turn->sends[shard]);
        if (turn->answers)
            pace__pages_free(turn->answers[shard], client->answer_bytes);
        if (turn->messages)
            pace__pages_free(turn->messages[shard], client->message_bytes);
    }
    free(turn->receives);
    free(turn->sends);
    free(turn->answers);
    free(turn->messages);
}

void pace__client_free(pace__client *client)
{
    for (int turn = 0; client && turn < TURNS; turn++)
        close_turn(client, &client->turns[turn]);
    if (client) {
        free(client->sizes);
        free(client->places);
    }
    free(client);
}

/* --- which slot goes where --- */

/* key / shards, without a division: exact for every key and at least two shards. */
static inline uint32_t place_of(uint32_t key, uint64_t reciprocal)
{
    return (uint32_t)((unsigned __int128)key * reciprocal >> 64);
}

static uint64_t reciprocal_of(uint32_t shards)
{
    assert(shards > 1);
    return UINT64_MAX / shards + 1;
}

/* Slots in the order of their shards, a counting sort: first, how many there are on each. */
static void count_slots(pace__work *part, uint32_t shards)
{
    uint32_t *start = part->shard_start;

    assert(part->count == 0 || part->keys);
    memset(start, 0, (shards + 1) * sizeof *start);
    start[shards] = part->count;
    if (shards == 1)
        return;
    uint64_t reciprocal = reciprocal_of(shards);

    for (uint32_t slot = 0; slot < part->count; slot++)
        start[part->keys[slot] - place_of(part->keys[slot], reciprocal) * shards]++;
    for (uint32_t shard = shards, behind = part->count; shard-- > 0;)
        behind = start[shard] = behind - start[shard];
    assert(start[0] == 0);
}

/* Then all of them, and into places[shard], which moves on, which parameter of that shard each of them is. */
static void place_slots(pace__work *part, uint32_t shards, uint32_t **places)
{
    if (shards == 1) { /* the slots as they are */
        memcpy(places[0], part->keys, part->count * sizeof *part->keys);
        return;
    }
    uint64_t reciprocal = reciprocal_of(shards);

    for (uint32_t slot = 0; slot < part->count; slot++) {
        uint32_t place = place_of(part->keys[slot], reciprocal), shard = part->keys[slot] - place * shards;

        part->order[part->shard_start[shard]++] = slot;
        *places[shard]++ = place;
    }
    memmove(part->shard_start + 1, part->shard_start,
            shards * sizeof *part->shard_start); /* every start has become the next one's */
    part->shard_start[0] = 0;
    assert(part->shard_start[shards] == part->count);
}

static uint32_t count_on(const pace__work *part, int shard)
{
    return part->shard_start[shard + 1] - part->shard_start[shard];
}

static void pack_sums(const pace__work *part, int shard, uint32_t shards, size_t dim, float *gradients)
{
    const uint32_t *order = part->order + part->shard_start[shard];

    if (shards == 1) {
        memcpy(gradients, part->sums, part->count * dim * sizeof *gradients);
        return;
    }
    for (uint32_t i = 0; dim == 1 && i < count_on(part, shard); i++)
        gradients[i] = part->sums[order[i]];
    for (uint32_t i = 0; dim > 1 && i < count_on(part, shard); i++)
        memcpy(gradients + i * dim, part->sums + order[i] * dim, dim * sizeof *gradients);
}

/* The same, rounded: whole rows, one behind the other. What is left over of a step is not kept for the next one: it would
 * be part of a clean state. */
static void pack_rounded(const pace__work *part, int shard, uint32_t shards, size_t dim,
                         pace__bf16 *gradients)
{
    const uint32_t *order = part->order + part->shard_start[shard];
    uint32_t count = count_on(part, shard);

    for (uint32_t i = 0; i < count; i++) {
        const float *sums = part->sums + (shards == 1 ? i : order[i]) * dim;

        for (size_t at = 0; at < dim; at++)
            gradients[i * dim + at] = pace__bf16_round(sums[at]);
    }
    if (count * dim % 2) /* the gap */
        gradients[count * dim] = 0;
}

static void unpack_weights(const pace__work *part, int shard, uint32_t shards, size_t dim,
                           const float *weights)
{
    const uint32_t *order = part->order + part->shard_start[shard];

    if (shards == 1) {
        memcpy(part->weights, weights, part->count * dim * sizeof *weights);
        return;
    }
    for (uint32_t i = 0; dim == 1 && i < count_on(part, shard); i++)
        part->weights[order[i]] = weights[i];
    for (uint32_t i = 0; dim > 1 && i < count_on(part, shard); i++)
        memcpy(part->weights + order[i] * dim, weights + i * dim, dim * sizeof *weights);
}

/* --- sending --- */

/* Whose keys a turn sends: NULL, none. */
static pace__work *keys_of(const pace__client *client, const exchange *turn, bool end)
{
    if (client->plan.exchange != PACE__EXCHANGE_MERGE)
        return turn->next;
    return end ? NULL : turn->done;
}

/* The header of one shard's message, and where its places go: behind the gradients. */
static uint32_t *pack_header(const pace__client *client, const exchange *turn, int shard, bool end)
{
    const pace__client_plan *plan = &client->plan;
    const pace__work *done = turn->done, *keys = keys_of(client, turn, end);
    pace__push *push = (pace__push *)turn->messages[shard];

    *push = (pace__push){.step = keys ? keys->step : client->awaited};
    if (done) {
        push->flags |= end ? PACE__PUSH_END : PACE__PUSH_GRADIENTS;
        push->first = done->first;
        push->rows = done->rows;
        push->step = done->step;
        push->slice = done->slice;
        push->loss = done->loss;
        push->gradients = end ? 0 : count_on(done, shard);
    }
    if (keys)
        push->keys = count_on(keys, shard);
    if (keys && plan->exchange != PACE__EXCHANGE_MERGE) {
        push->flags |= PACE__PUSH_KEYS;
        push->now = keys->now;
    }
    assert(push->gradients <= places_max(plan) && push->keys <= places_max(plan));
    return (uint32_t *)(push + 1) + pace__push_words(push->gradients * plan->dim, plan->narrow);
}

static void pack_gradients(const pace__client *client, const exchange *turn, int shard)
{
    const pace__client_plan *plan = &client->plan;
    void *gradients = turn->messages[shard] + sizeof(pace__push);

    if (plan->narrow)
        pack_rounded(turn->done, shard, (uint32_t)plan->shards, plan->dim, gradients);
    else
        pack_sums(turn->done, shard, (uint32_t)plan->shards, plan->dim, gradients);
}

/* The messages of all shards: what a key is of is found once, when its place is written. */
static void pack(pace__client *client, const exchange *turn, bool end)
{
    uint32_t shards = (uint32_t)client->plan.shards;
    pace__work *keys = keys_of(client, turn, end);

    if (keys)
        count_slots(keys, shards);
    for (uint32_t shard = 0; shard < shards; shard++) {
        client->places[shard] = pack_header(client, turn, (int)shard, end);
        client->sizes[shard] = (size_t)((unsigned char *)client->places[shard] - turn->messages[shard]) +
                               (keys ? count_on(keys, (int)shard) * sizeof(uint32_t) : 0);
    }
    if (keys)
        place_slots(keys, shards, client->places);
    for (uint32_t shard = 0; turn->done && !end && shard < shards; shard++)
        pack_gradients(client, turn, (int)shard);
}

pace_status pace__client_send(pace__client *client, pace__work *done, pace__work *next, bool end)
{
    exchange *turn = &client->turns[client->sent % TURNS];
    bool merge = client->plan.exchange == PACE__EXCHANGE_MERGE;
    pace_status status = PACE_OK;

    assert(pace__client_pending(client) < TURNS); /* invariant 1 */
    assert(done || !end);
    assert(merge || !done || end || done->shard_start[client->plan.shards] == done->count); /* invariant 3 */
    for (int shard = 0; shard < client->plan.shards && !status; shard++)
        status = pace__link_wait(client->link, &turn->sends[shard], "a message to leave");
    uint64_t start_ns = pace__now_ns();

    if (status)
        return status;
    PACE__SPAN_OF(done ? "pack and send gradients" : "pack and send keys", NULL, 0,
                  ((done ? (uint64_t)done->count * client->plan.dim : 0) + (next ? next->count : 0)) * 4);
    turn->done = done;
    turn->next = next;
    turn->answered = 0;
    turn->answer = (pace__answer){.next = next};
    if (done)
        turn->answer = (pace__answer){next, done->first, done->rows, done->step, .applied = !end};
    pack(client, turn, end);
    for (int shard = 0; shard < client->plan.shards; shard++) {
        int rank = client->plan.first_rank + shard;

        assert(!turn->receives[shard].active); /* invariant 1 */
        pace__link_receive(client->link, rank, PACE__TAG_REPLY, turn->answers[shard], client->answer_bytes,
                           &turn->receives[shard]);
        pace__link_send(client->link, rank, PACE__TAG_PUSH, turn->messages[shard], client->sizes[shard],
                        &turn->sends[shard]);
    }
    client->sent++;
    client->busy_ns += pace__now_ns() - start_ns;
    return PACE_OK;
}

pace_status pace__client_send_await(pace__client *client, uint64_t step)
{
    client->awaited = step;
    return pace__client_send(client, NULL, NULL, false);
}

unsigned pace__client_pending(const pace__client *client)
{
    assert(client->finished <= client->sent);
    return (unsigned)(client->sent - client->finished);
}

int pace__client_waits_for(const pace__client *client)
{
    assert(client->finished < client->sent);
    return client->plan.first_rank + client->turns[client->finished % TURNS].answered;
}

/* --- answers --- */

static pace_status take_answer(pace__client *client, const exchange *turn, int shard)
{
    const pace__reply *reply = (const pace__reply *)turn->answers[shard];
    const float *floats = (const float *)(reply + 1);
    size_t bytes = turn->receives[shard].bytes;
    bool merge = client->plan.exchange == PACE__EXCHANGE_MERGE;

    assert(shard == turn->answered); /* invariant 2 */
    uint64_t words = reply->weights * (client->plan.dim + merge);
    bool late = bytes >= sizeof *reply && (reply->flags & PACE__REPLY_LATE);

    if (bytes < sizeof *reply || reply->weights > bytes || bytes != sizeof *reply + words * sizeof(float) ||
        (!merge && reply->weights != (turn->next && !late ? count_on(turn->next, shard) : 0)))
        return pace_fail(client->log, PACE_BUG,
                         "an answer from %s that cannot be: its length is not what was asked for",
                         pace__link_name(client->link, client->plan.first_rank + shard));
    if (turn->next && !merge && !late)
        unpack_weights(turn->next, shard, (uint32_t)client->plan.shards, client->plan.dim, floats);
    return PACE_OK;
}

static bool any_late(const pace__client *client, const exchange *turn)
{
    for (int shard = 0; shard < client->plan.shards; shard++) {
        if (((const pace__reply *)turn->answers[shard])->flags & PACE__REPLY_LATE)
            return true;
    }
    return false;
}

pace_status pace__client_poll(pace__client *client, bool *answered, pace__answer *answer)
{
    exchange *turn = &client->turns[client->finished % TURNS];
    pace_status status = PACE_OK;

    *answered = false;
    while (client->finished < client->sent && turn->answered < client->plan.shards) {
        uint64_t start_ns = pace__now_ns(); /* the bytes are copied in the call that finds them complete */
        bool done;

        status = pace__link_done(client->link, &turn->receives[turn->answered], &done);
        if (status || !done)
            return status;
        status = take_answer(client, turn, turn->answered);
        pace__span_past("receive an answer", start_ns);
        client->busy_ns += pace__now_ns() - start_ns;
        if (status)
            return status;
        turn->answered++;
    }
    if (client->finished == client->sent)
        return PACE_OK;
    const pace__reply *first = (const pace__reply *)turn->answers[0];

    *answer = turn->answer;
    answer->rows_done = first->rows_done;
    answer->loss = first->loss;
    answer->end = first->flags & PACE__REPLY_END;
    answer->late = first->flags & PACE__REPLY_LATE;
    answer->incomplete = any_late(client, turn);
    answer->reached = first->step;
    answer->gate = first->gate;
    answer->applied &= !answer->end && !answer->late;
    client->finished++;
    *answered = true;
    return PACE_OK;
}

pace_status pace__client_wait(pace__client *client, pace__answer *answer)
{
    unsigned turns = 0;

    assert(pace__client_pending(client) > 0);
    for (;;) {
        bool answered;
        pace_status status = pace__client_poll(client, &answered, answer);

        if (status || answered)
            return status;
        int peer = pace__client_waits_for(client);

        status = pace__link_turn(client->link, &peer, 1, "its answer", &turns);
        if (status)
            return status;
    }
}

uint32_t pace__client_merged(const pace__client *client, int shard, const float **sums, uint32_t **places)
{
    assert(client->plan.exchange == PACE__EXCHANGE_MERGE && client->finished > 0);
    const exchange *turn = &client->turns[(client->finished - 1) % TURNS];
    pace__reply *reply = (pace__reply *)turn->answers[shard];
    float *words = (float *)(reply + 1);

    *sums = words;
    *places = (uint32_t *)(words + reply->weights * client->plan.dim);
    return (uint32_t)reply->weights;
}

uint64_t pace__client_busy_ns(const pace__client *client)
{
    return client->busy_ns;
}
