/*
 * A keeper has one request in hand at a time, and one list:
 *
 *     none   -> told      LIST_ADD, as often as it takes
 *     told   -> wanted    LIST_GET: someone waits for its weights after a step
 *     wanted -> kept      they were sent, or word that the step has passed or is not waited for (LIST_STOP)
 *     kept   -> wanted    LIST_GET
 *
 * 1. The next request is received only when the one in hand is answered, or needs no answer: so `request` does
 *    not change while it is looked at, and `answer` not while it is sent.
 * 2. Places are added only before the list was first wanted, so that its answer never moves under a message.
 * 3. There is somebody who waits (wanted_by >= 0) exactly while the list is wanted. A word not to wait that
 *    comes when the list was sent already means nothing: the next LIST_GET forgets it.
 * 4. The weights of a list are read between two updates, by peeking: keeping changes no parameter.
 */
#include "ps/snapshot.h"

#include "base/memory.h"
#include "ps/wire.h"

#include <assert.h>
#include <stdlib.h>

enum { FETCH_STATE, STORE_STATE, LIST_ADD, LIST_GET, LIST_STOP };

/* A request, followed by what is to be stored or added. */
typedef struct fetch {
    uint64_t kind;
    uint64_t step;         /* LIST_GET */
    uint64_t first, count; /* places; of LIST_ADD, count only */
} fetch;

typedef struct fetched {
    uint64_t step, passed, words;
} fetched;

struct pace__keeper {
    pace__link *link;
    const pace_log *log;
    pace__keeper_plan plan;
    size_t floats;   /* of a row */
    size_t rows_max; /* in a message */
    unsigned char *request, *answer;
    size_t request_bytes, answer_bytes;
    pace__request receive, send;
    bool has_request; /* in `request`, not yet answered */
    /* The list. */
    uint32_t *places;
    size_t count, room;
    bool whole; /* it was asked for: no places are added any more */
    uint64_t wanted_step;
    int wanted_by; /* a rank that waits for wanted_step, or -1 */
    bool stopped;  /* it will not wait any longer */
    unsigned char *list_answer;
    pace__request list_send;
};

/* --- keeping --- */

/* Rows of so many floats in one message. */
static size_t chunk_rows(size_t floats)
{
    return PACE__FETCH_CHUNK / floats > 0 ? PACE__FETCH_CHUNK / floats : 1;
}

static void post_receive(pace__keeper *keeper)
{
    pace__link_receive(keeper->link, PACE__LINK_ANY, PACE__TAG_FETCH, keeper->request, keeper->request_bytes,
                       &keeper->receive);
}

pace_status pace__keeper_create(pace__link *link, const pace__keeper_plan *plan, const pace_log *log,
                                pace__keeper **keeper)
{
    pace__keeper *created = calloc(1, sizeof *created);

    if (!created)
        return pace_fail(log, PACE_FAILED, "out of memory");
    *created = (pace__keeper){.link = link,
                              .log = log,
                              .plan = *plan,
                              .floats = plan->table->floats,
                              .rows_max = chunk_rows(plan->table->floats),
                              .wanted_by = -1};
    size_t most = created->rows_max * created->floats; /* the places of a list need no more */

    most = most > PACE__FETCH_CHUNK ? most : PACE__FETCH_CHUNK;
    created->request_bytes = sizeof(fetch) + most * sizeof(float);
    created->answer_bytes = sizeof(fetched) + most * sizeof(float);
    created->request = pace__pages_alloc(created->request_bytes);
    created->answer = pace__pages_alloc(created->answer_bytes);
    if (!created->request || !created->answer) {
        pace__keeper_free(created);
        return pace_fail(log, PACE_FAILED, "out of memory");
    }
    post_receive(created);
    *keeper = created;
    return PACE_OK;
}

void pace__keeper_free(pace__keeper *keeper)
{
    if (!keeper)
        return;
    pace__link_cancel(keeper->link, &keeper->receive);
    pace__link_settle(keeper->link, &keeper->send);
    pace__link_settle(keeper->link, &keeper->list_send);
    pace__pages_free(keeper->answer, keeper->answer_bytes);
    pace__pages_free(keeper->request, keeper->request_bytes);
    free(keeper->places);
    free(keeper->list_answer);
    free(keeper);
}

static pace_status refuse(const pace__keeper *keeper, int peer)
{
    return pace_fail(keeper->log, PACE_BUG, "%s asks for parameters in a way that cannot be",
                     pace__link_name(keeper->link, peer));
}

/* Adds places to the list. */
static pace_status add_places(pace__keeper *keeper, const uint32_t *places, size_t count)
{
    assert(!keeper->whole && !keeper->list_send.active);                /* invariant 2 */
    if (!keeper->list_answer || keeper->count + count > keeper->room) { /* an empty list is one, too */
        size_t room = 2 * (keeper->count + count) + 1;
        uint32_t *grown = realloc(keeper->places, room * sizeof *grown);
        size_t bytes = sizeof(fetched) + room * keeper->plan.table->plan.dim * sizeof(float);
        unsigned char *answer = realloc(keeper->list_answer, bytes);

        keeper->places = grown ? grown : keeper->places;
        keeper->list_answer = answer ? answer : keeper->list_answer;
        if (!grown || !answer)
            return pace_fail(keeper->log, PACE_FAILED, "out of memory for a list of %zu parameters", room);
        keeper->room = room;
    }
    memcpy(keeper->places + keeper->count, places, count * sizeof *places);
    keeper->count += count;
    return PACE_OK;
}

static bool fits(const pace__keeper *keeper, const fetch *ask, size_t bytes)
{
    uint32_t places = keeper->plan.table->places;
    size_t payload = bytes - sizeof *ask;
    bool in_range =
        ask->count <= keeper->rows_max && ask->first <= places && ask->count <= places - ask->first;

    switch (ask->kind) {
    case FETCH_STATE:
        return in_range && payload == 0;
    case STORE_STATE:
        return in_range && payload == ask->count * keeper->floats * sizeof(float);
    case LIST_ADD:
        return !keeper->whole && ask->count <= PACE__FETCH_CHUNK &&
               payload == ask->count * sizeof(uint32_t) &&
               pace__table_places_valid(keeper->plan.table, (const uint32_t *)(ask + 1), ask->count);
    case LIST_GET:
        return payload == 0 && keeper->list_answer != NULL && keeper->wanted_by < 0;
    case LIST_STOP: /* the answer may have been on its way already */
        return payload == 0 && keeper->list_answer != NULL;
    default:
        return false;
    }
}

/* Everything that is not about waiting for a list is answered at once. */
static pace_status answer(pace__keeper *keeper)
{
    const fetch *ask = (const fetch *)keeper->request;
    fetched *reply = (fetched *)keeper->answer;
    pace_status status = PACE_OK;

    assert(keeper->has_request && !keeper->send.active); /* invariant 1 */
    *reply = (fetched){.step = keeper->plan.step(keeper->plan.user)};
    if (ask->kind == FETCH_STATE) {
        pace__table_read(keeper->plan.table, (uint32_t)ask->first, (uint32_t)ask->count,
                         (float *)(reply + 1));
        reply->words = ask->count * keeper->floats;
    } else if (ask->kind == STORE_STATE) {
        pace__table_write(keeper->plan.table, (uint32_t)ask->first, (uint32_t)ask->count,
                          (const float *)(ask + 1));
    } else {
        status = add_places(keeper, (const uint32_t *)(ask + 1), ask->count);
    }
    if (!status)
        pace__link_send(keeper->link, keeper->receive.peer, PACE__TAG_FETCHED, reply,
                        sizeof *reply + reply->words * sizeof(float), &keeper->send);
    return status;
}

static pace_status take_request(pace__keeper *keeper, bool *busy)
{
    pace_status status = PACE_OK;
    bool free_to_send = false;

    if (!keeper->has_request) {
        status = pace__link_done(keeper->link, &keeper->receive, &keeper->has_request);
        if (status || !keeper->has_request)
            return status;
    }
    const fetch *ask = (const fetch *)keeper->request;
    size_t bytes = keeper->receive.bytes;

    status = pace__link_done(keeper->link, &keeper->send, &free_to_send);
    if (status || !free_to_send)
        return status;
    *busy = true;
    if (bytes < sizeof *ask || !fits(keeper, ask, bytes))
        return refuse(keeper, keeper->receive.peer);
    if (ask->kind == LIST_GET) {
        assert(keeper->wanted_by < 0); /* invariant 3 */
        keeper->wanted_by = keeper->receive.peer;
        keeper->wanted_step = ask->step;
        keeper->whole = true;
        keeper->stopped = false;
    } else if (ask->kind == LIST_STOP) {
        keeper->stopped = true;
    } else {
        status = answer(keeper);
    }
    keeper->has_request = false;
    if (!status)
        post_receive(keeper);
    return status;
}

/* The list's weights, if the step that is waited for has come. */
static pace_status give_list(pace__keeper *keeper, bool *busy)
{
    uint64_t step = keeper->plan.step(keeper->plan.user);
    bool free_to_send = false;

    if (keeper->wanted_by < 0 || (step < keeper->wanted_step && !keeper->stopped))
        return PACE_OK;
    pace_status status = pace__link_done(keeper->link, &keeper->list_send, &free_to_send);

    if (status || !free_to_send)
        return status;
    fetched *reply = (fetched *)keeper->list_answer;

    assert(reply && keeper->whole);
    bool passed = keeper->stopped || (keeper->plan.exact_steps && step > keeper->wanted_step);

    *reply = (fetched){.step = step, .passed = passed};
    reply->words = reply->passed ? 0 : keeper->count * keeper->plan.table->plan.dim;
    if (!passed) /* invariant 4 */
        pace__table_peek(keeper->plan.table, keeper->places, keeper->count,
                         pace__steps_rows_before(&keeper->plan.steps, step), (float *)(reply + 1));
    pace__link_send(keeper->link, keeper->wanted_by, PACE__TAG_FETCHED, reply,
                    sizeof *reply + reply->words * sizeof(float), &keeper->list_send);
    keeper->wanted_by = -1;
    *busy = true;
    return PACE_OK;
}

pace_status pace__keeper_poll(pace__keeper *keeper, bool *busy)
{
    pace_status status = take_request(keeper, busy);

    return status ? status : give_list(keeper, busy);
}

/* --- asking --- */

pace__holder pace__holder_of(uint64_t keys, unsigned shards, unsigned shard, int first_rank)
{
    assert(shard < shards);
    return (pace__holder){first_rank + (int)shard, shard, shards,
                          (uint32_t)((keys + shards - 1 - shard) / shards)};
}

/* One question and its answer. */
static pace_status ask_and_wait(pace__link *link, int rank, const void *ask, size_t ask_bytes, void *reply,
                                size_t reply_bytes, size_t *got)
{
    pace__request send = {0}, receive = {0};

    pace__link_receive(link, rank, PACE__TAG_FETCHED, reply, reply_bytes, &receive);
    pace__link_send(link, rank, PACE__TAG_FETCH, ask, ask_bytes, &send);
    pace_status status = pace__link_wait(link, &send, "a message to leave");

    if (!status)
        status = pace__link_wait(link, &receive, "its parameters");
    if (status) { /* the buffers are about to go */
        pace__link_cancel(link, &receive);
        pace__link_settle(link, &send);
    }
    *got = receive.bytes;
    return status;
}

/* Copies between a holder's stretch of places and parameters by key. */
static void scatter(const pace__holder *holder, uint32_t first, size_t count, size_t floats,
                    const float *stretch, float *parameters)
{
    for (size_t i = 0; i < count; i++) {
        size_t key = ((size_t)first + i) * holder->shards + holder->shard;

        memcpy(parameters + key * floats, stretch + i * floats, floats * sizeof(float));
    }
}

static void collect(const pace__holder *holder, uint32_t first, size_t count, size_t floats,
                    const float *parameters, float *stretch)
{
    for (size_t i = 0; i < count; i++) {
        size_t key = ((size_t)first + i) * holder->shards + holder->shard;

        memcpy(stretch + i * floats, parameters + key * floats, floats * sizeof(float));
    }
}

/* All stretches of a holder, one after the other; `store` is NULL for reading. */
static pace_status move_state(pace__link *link, const pace__holder *holder, size_t floats, float *fetch_into,
                              const float *store, const pace_log *log)
{
    size_t most = chunk_rows(floats), room = sizeof(fetch) + most * floats * sizeof(float), got;
    unsigned char *ask = pace__pages_alloc(room), *reply = pace__pages_alloc(room);
    pace_status status = ask && reply ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");

    for (uint32_t first = 0; first < holder->places && !status;) {
        size_t count = holder->places - first < most ? holder->places - first : most;
        size_t bytes = count * floats * sizeof(float);

        *(fetch *)ask = (fetch){store ? STORE_STATE : FETCH_STATE, 0, first, count};
        if (store)
            collect(holder, first, count, floats, store, (float *)((fetch *)ask + 1));
        status =
            ask_and_wait(link, holder->rank, ask, sizeof(fetch) + (store ? bytes : 0), reply, room, &got);
        if (!status && got != sizeof(fetched) + (store ? 0 : bytes))
            status = pace_fail(log, PACE_BUG, "%s gave %zu bytes of parameters instead of %zu",
                               pace__link_name(link, holder->rank), got, bytes);
        if (!status && !store)
            scatter(holder, first, count, floats, (float *)((fetched *)reply + 1), fetch_into);
        first += (uint32_t)count;
    }
    pace__pages_free(reply, room);
    pace__pages_free(ask, room);
    return status;
}

pace_status pace__fetch_state(pace__link *link, const pace__holder *holder, size_t floats, float *parameters,
                              const pace_log *log)
{
    return move_state(link, holder, floats, parameters, NULL, log);
}

pace_status pace__store_state(pace__link *link, const pace__holder *holder, size_t floats,
                              const float *parameters, const pace_log *log)
{
    return move_state(link, holder, floats, NULL, parameters, log);
}

/* --- lists --- */

pace_status pace__fetch_list_init(pace__fetch_list *list, pace__link *link, const pace__holder *holder,
                                  const uint32_t *places, uint32_t count, unsigned dim, const pace_log *log)
{
    size_t room = sizeof(fetch) + PACE__FETCH_CHUNK * sizeof(uint32_t), got;
    unsigned char *ask = pace__pages_alloc(room);

    *list = (pace__fetch_list){.holder = *holder, .count = count, .dim = dim};
    list->answer_bytes = sizeof(fetched) + (size_t)count * dim * sizeof(float);
    list->answer = pace__pages_alloc(list->answer_bytes);
    pace_status status = ask && list->answer ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");
    uint32_t first = 0;

    do { /* once at least: the holder must know that there is a list */
        size_t part = count - first < PACE__FETCH_CHUNK ? count - first : PACE__FETCH_CHUNK;
        fetched reply;

        if (status)
            break;
        *(fetch *)ask = (fetch){LIST_ADD, 0, 0, part};
        memcpy((fetch *)ask + 1, places + first, part * sizeof *places);
        status = ask_and_wait(link, holder->rank, ask, sizeof(fetch) + part * sizeof *places, &reply,
                              sizeof reply, &got);
        if (!status && got != sizeof reply)
            status = pace_fail(log, PACE_BUG, "%s has answered a list with %zu bytes instead of %zu",
                               pace__link_name(link, holder->rank), got, sizeof reply);
        first += (uint32_t)part;
    } while (first < count);
    pace__pages_free(ask, room);
    return status;
}

void pace__fetch_list_release(pace__fetch_list *list, pace__link *link)
{
    pace__link_cancel(link, &list->receive);
    pace__link_settle(link, &list->send);
    pace__pages_free(list->answer, list->answer_bytes);
    *list = (pace__fetch_list){0};
}

pace_status pace__fetch_list_ask(pace__fetch_list *list, pace__link *link, uint64_t step)
{
    pace_status status = pace__link_wait(link, &list->send, "a message to leave");

    if (status)
        return status;
    assert(!list->receive.active); /* the ask before was answered */
    fetch ask = {LIST_GET, step, 0, 0};

    _Static_assert(sizeof ask == sizeof list->ask, "the request is kept in the list while it is sent");
    memcpy(list->ask, &ask, sizeof ask);
    pace__link_receive(link, list->holder.rank, PACE__TAG_FETCHED, list->answer, list->answer_bytes,
                       &list->receive);
    pace__link_send(link, list->holder.rank, PACE__TAG_FETCH, list->ask, sizeof list->ask, &list->send);
    return PACE_OK;
}

pace_status pace__fetch_list_stop(pace__fetch_list *list, pace__link *link)
{
    fetch ask = {LIST_STOP, 0, 0, 0};
    pace_status status =
        list->receive.active ? pace__link_wait(link, &list->send, "a message to leave") : PACE_OK;

    if (status || !list->receive.active)
        return status;
    memcpy(list->ask, &ask, sizeof ask);
    pace__link_send(link, list->holder.rank, PACE__TAG_FETCH, list->ask, sizeof list->ask, &list->send);
    return PACE_OK;
}

pace_status pace__fetch_list_poll(pace__fetch_list *list, pace__link *link, bool *answered,
                                  const pace_log *log)
{
    const fetched *reply = list->answer;

    assert(list->receive.active); /* there is an ask to be answered */
    pace_status status = pace__link_done(link, &list->receive, answered);

    if (status || !*answered)
        return status;
    if (list->receive.bytes !=
        sizeof *reply + (reply->passed ? 0 : (size_t)list->count * list->dim) * sizeof(float))
        return pace_fail(log, PACE_BUG, "%s gave another number of weights than was asked for",
                         pace__link_name(link, list->holder.rank));
    list->step = reply->step;
    list->passed = reply->passed;
    list->weights = (const float *)(reply + 1);
    return PACE_OK;
}
