#include "localsgd/average.h"

#include "base/clock.h"
#include "base/memory.h"
#include "launch/cluster.h"
#include "ps/wire.h"
#include "watch/spans.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Tags that this mode has no other use for; they count as training (roles/reports.c). */
#define TAG_COLLECT PACE__TAG_REDUCE
#define TAG_BACK    (PACE__TAG_REDUCE + 1)
#define WORD_BITS   64

/* A message, taken apart. */
typedef struct message {
    pace__average_head *head;
    uint64_t *bits;
    float *rows;
} message;

/* --- sizes --- */

static uint32_t places_of(uint64_t keys, unsigned workers, unsigned owner)
{
    return (uint32_t)((keys + workers - 1 - owner) / workers);
}

/* Of the first owner, who has the most. */
static uint32_t words_of(const pace__table_plan *owned)
{
    return (places_of(owned->keys, owned->shards, 0) + WORD_BITS - 1) / WORD_BITS;
}

/* Floats of a row without the velocity, which stays with its owner. */
static size_t row_floats(const pace__table_plan *owned)
{
    return (size_t)owned->dim * (owned->optim.width - 1);
}

/* Of the longest message. */
static size_t room_of(const pace__table_plan *owned)
{
    size_t places = places_of(owned->keys, owned->shards, 0);
    size_t bytes = sizeof(pace__average_head) + words_of(owned) * sizeof(uint64_t) +
                   places * (1 + row_floats(owned)) * sizeof(float);

    return (bytes + 63) / 64 * 64;
}

/* --- life --- */

static bool make_room(pace__average *average)
{
    unsigned workers = average->workers;

    average->touched = calloc(average->replica->places, sizeof *average->touched);
    average->out = pace__pages_alloc(workers * average->room);
    average->in = pace__pages_alloc(workers * average->room);
    average->changed = calloc(average->words, sizeof *average->changed);
    average->sends = calloc(workers, sizeof *average->sends);
    average->receives = calloc(workers, sizeof *average->receives);
    average->sides = calloc(workers, sizeof *average->sides);
    average->silent = calloc(workers, sizeof *average->silent);
    return average->touched && average->out && average->in && average->changed && average->sends &&
           average->receives && average->sides && average->silent;
}

pace_status pace__average_open(pace__average *average, pace__link *link, unsigned workers,
                               const pace__outer *outer, pace__table *replica, pace__table *table,
                               uint64_t place, const pace_log *log)
{
    assert(table->optim.velocity && replica->floats == row_floats(&table->plan));
    *average = (pace__average){.link = link,
                               .log = log,
                               .workers = workers,
                               .self = (unsigned)pace__link_rank(link),
                               .outer = *outer,
                               .replica = replica,
                               .table = table,
                               .place = place,
                               .room = room_of(&table->plan),
                               .words = words_of(&table->plan)};
    return make_room(average) ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory for what is merged");
}

void pace__average_close(pace__average *average)
{
    for (unsigned i = 0; average->sends && average->receives && i < average->workers; i++) {
        pace__link_settle(average->link, &average->sends[i]);
        pace__link_cancel(average->link, &average->receives[i]);
    }
    free(average->silent);
    free(average->sides);
    free(average->receives);
    free(average->sends);
    free(average->changed);
    pace__pages_free(average->in, average->workers * average->room);
    pace__pages_free(average->out, average->workers * average->room);
    free(average->touched);
    *average = (pace__average){0};
}

/* --- messages --- */

static message message_at(const pace__average *average, char *all, unsigned worker)
{
    char *at = all + worker * average->room;
    message found = {.head = (pace__average_head *)at, .bits = (uint64_t *)(at + sizeof(pace__average_head))};

    found.rows = (float *)(found.bits + average->words);
    return found;
}

/* Of a row in a message: to an owner, the number of steps goes with it. */
static size_t stride_of(const pace__average *average, int tag)
{
    return average->replica->floats + (tag == TAG_COLLECT);
}

static size_t message_bytes(const pace__average *average, int tag, uint64_t count)
{
    return sizeof(pace__average_head) + average->words * sizeof(uint64_t) +
           count * stride_of(average, tag) * sizeof(float);
}

static void send(pace__average *average, unsigned to, int tag, char *from)
{
    uint64_t count = ((const pace__average_head *)from)->count;

    pace__link_send(average->link, (int)to, tag, from, message_bytes(average, tag, count),
                    &average->sends[to]);
}

static void post(pace__average *average, int tag)
{
    for (unsigned i = 0; i < average->workers; i++) {
        if (i != average->self)
            pace__link_receive(average->link, (int)i, tag, average->in + i * average->room, average->room,
                               &average->receives[i]);
    }
}

/* Until all requests are over; the peers of those that are not are waited for. */
static pace_status wait_for(pace__average *average, pace__request *requests, const char *what)
{
    unsigned turns = 0;
    PACE__SPAN("wait for a flush");

    for (;;) {
        size_t silent = 0;
        pace_status status = PACE_OK;

        for (unsigned i = 0; i < average->workers && !status; i++) {
            bool done = !requests[i].active;

            if (silent == 0) /* the others can wait for that one, too */
                status = pace__link_done(average->link, &requests[i], &done);
            if (!done)
                average->silent[silent++] = (int)i;
        }
        if (status || silent == 0)
            return status;
        status = pace__link_turn(average->link, average->silent, silent, what, &turns);
        if (status)
            return status;
    }
}

/* What came has bits of keys that there are, and as many rows. */
static pace_status check_message(const pace__average *average, int tag, unsigned from, unsigned owner)
{
    const message it = message_at(average, average->in, from);
    uint32_t places = places_of(average->replica->places, average->workers, owner);
    size_t came = average->receives[from].bytes;
    bool whole = came >= message_bytes(average, tag, 0);
    uint64_t count = 0, beyond = 0;

    for (uint32_t word = 0; whole && word < average->words; word++) {
        uint64_t first = (uint64_t)word * WORD_BITS;

        count += (uint64_t)__builtin_popcountll(it.bits[word]);
        if (first + WORD_BITS > places)
            beyond |= first >= places ? it.bits[word] : it.bits[word] >> (places - first);
    }
    if (!whole || beyond || count != it.head->count || came != message_bytes(average, tag, count))
        return pace_fail(average->log, PACE_BUG, "%s has sent parameters that cannot be",
                         pace__link_name(average->link, (int)from));
    return PACE_OK;
}

static pace_status check_place(const pace__average *average, unsigned from, uint64_t first, uint64_t last)
{
    const pace__average_head *head = message_at(average, average->in, from).head;

    if (head->first == first && head->last == last)
        return PACE_OK;
    return pace_fail(average->log, PACE_BUG,
                     "%s has sent what it learned from rows %" PRIu64 " to %" PRIu64
                     ", but those from %" PRIu64 " to %" PRIu64 " are to be merged",
                     pace__link_name(average->link, (int)from), head->first, head->last, first, last);
}

/* --- collecting --- */

void pace__average_touch(pace__average *average, const uint32_t *keys, size_t count)
{
    for (size_t i = 0; i < count; i++)
        average->touched[keys[i]]++;
}

static float *replica_at(const pace__average *average, uint64_t key)
{
    return average->replica->records + key * average->replica->stride;
}

static float *record_at(const pace__average *average, uint32_t place)
{
    return average->table->records + (size_t)place * average->table->stride;
}

/* The rows of an owner that were updated here. With an end nothing goes with it. */
static void pack(pace__average *average, unsigned owner, uint64_t place, const pace__trained *own)
{
    message to = message_at(average, average->out, owner);
    size_t stride = stride_of(average, TAG_COLLECT), floats = average->replica->floats;
    float *next = to.rows;
    uint64_t count = 0, keys = average->replica->places;

    memset(to.bits, 0, average->words * sizeof *to.bits);
    for (uint64_t key = owner, at = 0; !own->end && key < keys; key += average->workers, at++) {
        if (average->touched[key] == 0)
            continue;
        to.bits[at / WORD_BITS] |= UINT64_C(1) << (at % WORD_BITS);
        memcpy(next, &average->touched[key], sizeof *next);
        memcpy(next + 1, replica_at(average, key), floats * sizeof *next);
        next += stride;
        count++;
    }
    *to.head = (pace__average_head){average->place, place, own->rows, own->loss, count, own->end};
    average->keys_sent += owner == average->self ? 0 : count;
}

/* Do all messages belong together? In the order of the workers, so that the sum of losses has the same bits. */
static pace_status check_all(pace__average *average, uint64_t place, pace__trained *all)
{
    pace_status status = PACE_OK;

    *all =
        (pace__trained){.end = message_at(average, average->self ? average->in : average->out, 0).head->end};
    for (unsigned i = 0; i < average->workers && !status; i++) {
        bool own = i == average->self;
        const pace__average_head *head = message_at(average, own ? average->out : average->in, i).head;

        if (!own)
            status = check_message(average, TAG_COLLECT, i, average->self);
        if (!own && !status)
            status = check_place(average, i, average->place, place);
        if (!status) {
            all->rows += head->rows;
            all->loss += head->loss;
        }
    }
    if (!status && !all->end && all->rows != place - average->place)
        status = pace_fail(average->log, PACE_BUG,
                           "workers have trained %" PRIu64 " rows between two flushes of %" PRIu64, all->rows,
                           place - average->place);
    return status;
}

/* --- merging --- */

/* Where a walk through all messages to this owner stands. */
typedef struct pass {
    const uint64_t *bits;
    const float *next;
} pass;

static void begin_pass(const pace__average *average, pass *passes)
{
    for (unsigned i = 0; i < average->workers; i++) {
        message from = message_at(average, i == average->self ? average->out : average->in, i);

        passes[i] = (pass){from.bits, from.rows};
    }
}

/* What each has made of a place. False: nobody has touched it. */
static bool find_sides(pace__average *average, pass *passes, uint32_t place)
{
    bool any = false;

    for (unsigned i = 0; i < average->workers; i++) {
        pace__outer_side *side = &average->sides[i];

        *side = (pace__outer_side){0};
        if (!(passes[i].bits[place / WORD_BITS] >> (place % WORD_BITS) & 1))
            continue;
        memcpy(&side->steps, passes[i].next, sizeof side->steps);
        side->row = passes[i].next + 1;
        passes[i].next += stride_of(average, TAG_COLLECT);
        any = true;
    }
    return any;
}

/* Steps that a row was updated in are at least one, and at most all. */
static bool sides_can_be(const pace__average *average, uint32_t steps)
{
    for (unsigned i = 0; i < average->workers; i++) {
        if (average->sides[i].steps > steps || (average->sides[i].row && average->sides[i].steps == 0))
            return false;
    }
    return true;
}

static bool is_statistic(const pace__table *table, uint32_t place)
{
    return (uint64_t)place * table->plan.shards + table->plan.shard - table->plan.stats_first <
           table->plan.stats;
}

static pace_status merge(pace__average *average, uint32_t steps)
{
    const pace__table *table = average->table;
    pass passes[PACE__WORKERS_MAX];
    PACE__SPAN("merge");

    begin_pass(average, passes);
    memset(average->changed, 0, average->words * sizeof *average->changed);
    for (uint32_t place = 0; place < table->places; place++) {
        if (!find_sides(average, passes, place))
            continue;
        if (!sides_can_be(average, steps))
            return pace_fail(average->log, PACE_BUG,
                             "a worker has updated parameters in none of %u steps, or in more", steps);
        average->changed[place / WORD_BITS] |= UINT64_C(1) << (place % WORD_BITS);
        if (is_statistic(table, place))
            pace__outer_merge_statistics(average->sides, average->workers, steps, table->plan.dim,
                                         record_at(average, place));
        else
            pace__outer_merge(&average->outer, average->sides, average->workers, steps, table->plan.dim,
                              table->optim.width - 1, record_at(average, place));
    }
    return PACE_OK;
}

pace_status pace__average_look(pace__average *average, bool *end)
{
    bool done;

    *end = false;
    if (average->self == 0)
        return PACE_OK;
    pace_status status = pace__link_done(average->link, &average->receives[0], &done);

    if (!status && done && average->receives[0].bytes >= sizeof(pace__average_head))
        *end = message_at(average, average->in, 0).head->end;
    return status;
}

static pace_status exchange(pace__average *average, uint64_t place, const pace__trained *own)
{
    pace_status status = wait_for(average, average->sends, "what it has shared to leave");
    uint64_t start_ns = pace__now_ns();

    if (status)
        return status;
    for (unsigned step = 1; step <= average->workers; step++) {
        unsigned owner = (average->self + step) % average->workers;

        pack(average, owner, place, own);
        if (owner != average->self)
            send(average, owner, TAG_COLLECT, average->out + owner * average->room);
    }
    average->busy_ns += pace__now_ns() - start_ns;
    status = wait_for(average, average->receives, "what it has trained");
    return status ? status : wait_for(average, average->sends, "what it has trained to leave");
}

pace_status pace__average_collect(pace__average *average, uint64_t place, uint32_t steps,
                                  const pace__trained *own, pace__trained *all)
{
    pace_status status = exchange(average, place, own);
    uint64_t start_ns = pace__now_ns();

    if (!status)
        status = check_all(average, place, all);
    if (status || all->end) /* invariant 2 */
        return status;
    status = merge(average, steps);
    average->place = place;
    memset(average->touched, 0, average->replica->places * sizeof *average->touched);
    average->busy_ns += pace__now_ns() - start_ns;
    return status;
}

/* --- sharing --- */

static void take_over(pace__average *average, uint64_t key, const float *row)
{
    memcpy(replica_at(average, key), row, average->replica->floats * sizeof *row);
}

/* What has changed in the table, as a message to all, and in the own replica. */
static char *pack_shared(pace__average *average, bool end)
{
    message all = message_at(average, average->out, average->self);
    size_t floats = average->replica->floats;
    uint64_t count = 0;

    memset(all.bits, 0, average->words * sizeof *all.bits);
    for (uint32_t word = 0; !end && word < average->words; word++) {
        all.bits[word] = average->changed[word];
        for (uint64_t bits = all.bits[word]; bits; bits &= bits - 1) {
            uint32_t place = word * WORD_BITS + (unsigned)__builtin_ctzll(bits);
            const float *row = record_at(average, place);

            memcpy(all.rows + count++ * floats, row, floats * sizeof *row);
            take_over(average, (uint64_t)place * average->workers + average->self, row);
        }
    }
    *all.head =
        (pace__average_head){.first = average->place, .last = average->place, .count = count, .end = end};
    return (char *)all.head;
}

static void use_shared(pace__average *average, unsigned owner)
{
    message from = message_at(average, average->in, owner);
    const float *next = from.rows;

    for (uint32_t word = 0; word < average->words; word++) {
        for (uint64_t bits = from.bits[word]; bits; bits &= bits - 1) {
            uint64_t place = (uint64_t)word * WORD_BITS + (unsigned)__builtin_ctzll(bits);

            take_over(average, place * average->workers + owner, next);
            next += average->replica->floats;
        }
    }
}

pace_status pace__average_share(pace__average *average, bool end, bool *ended)
{
    uint64_t start_ns = pace__now_ns();
    char *shared = pack_shared(average, end);
    PACE__SPAN("share");

    post(average, TAG_BACK);
    for (unsigned step = 1; step < average->workers; step++)
        send(average, (average->self + step) % average->workers, TAG_BACK, shared);
    average->busy_ns += pace__now_ns() - start_ns;
    pace_status status = wait_for(average, average->receives, "what it has merged");

    start_ns = pace__now_ns();
    *ended = end;
    for (unsigned i = 0; i < average->workers && !status; i++) {
        if (i == average->self)
            continue;
        status = check_message(average, TAG_BACK, i, i);
        if (!status)
            status = check_place(average, i, average->place, average->place);
        if (status)
            break;
        use_shared(average, i);
        *ended |= i == 0 && message_at(average, average->in, i).head->end;
    }
    if (!status && !*ended)
        post(average, TAG_COLLECT); /* invariant 4 */
    average->busy_ns += pace__now_ns() - start_ns;
    return status;
}

pace_status pace__average_begin(pace__average *average)
{
    bool ended;

    for (uint32_t place = 0; place < average->table->places; place++)
        average->changed[place / WORD_BITS] |= UINT64_C(1) << (place % WORD_BITS);
    return pace__average_share(average, false, &ended);
}
