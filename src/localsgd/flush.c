#include "localsgd/flush.h"

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
#define TAG_PART    PACE__TAG_TICKET
#define TAG_BACK    (PACE__TAG_REDUCE + 1)
#define WORD_BITS   64

/* A message, taken apart. Of one that travels narrow, `narrow` begins where `points` do. */
typedef struct message {
    pace__flush_head *head;
    uint64_t *bits;
    pace__flow_point *points;
    pace__flow_narrow *narrow;
} message;

/* --- life --- */

static uint32_t places_of(uint64_t keys, unsigned workers, unsigned owner)
{
    return (uint32_t)((keys + workers - 1 - owner) / workers);
}

/* The longest: of the first owner. */
static uint32_t words_of(uint64_t keys, unsigned workers)
{
    return (places_of(keys, workers, 0) + WORD_BITS - 1) / WORD_BITS;
}

static uint64_t message_max(uint64_t keys, unsigned workers)
{
    uint64_t words = words_of(keys, workers);

    return sizeof(pace__flush_head) + words * (sizeof(uint64_t) + WORD_BITS * sizeof(pace__flow_point));
}

static message message_at(const pace__flush *flush, char *all, unsigned worker)
{
    char *at = all + worker * flush->room;
    message found = {.head = (pace__flush_head *)at, .bits = (uint64_t *)(at + sizeof(pace__flush_head))};

    found.points = (pace__flow_point *)(found.bits + flush->words);
    found.narrow = (pace__flow_narrow *)found.points;
    return found;
}

static uint64_t keys_of(const pace__flush *flush)
{
    return (uint64_t)flush->model->ids + 1;
}

static float *record_at(const pace__flush *flush, uint32_t place)
{
    return flush->table->records + place * flush->table->stride;
}

static bool make_room(pace__flush *flush)
{
    unsigned workers = flush->workers;

    flush->out = pace__pages_alloc(workers * flush->room);
    flush->in = pace__pages_alloc(workers * flush->room);
    flush->base = pace__pages_alloc(flush->base_bytes);
    flush->changed = calloc(flush->words, sizeof *flush->changed);
    flush->filled = calloc(workers, sizeof *flush->filled);
    flush->sends = calloc(workers, sizeof *flush->sends);
    flush->receives = calloc(workers, sizeof *flush->receives);
    flush->parts = calloc(workers, sizeof *flush->parts);
    flush->silent = calloc(workers, sizeof *flush->silent);
    flush->sides = malloc(workers * 2 * (PACE__FLOW_BLOCK + 1) * sizeof *flush->sides);
    return flush->sides && flush->out && flush->in && flush->base && flush->changed && flush->filled &&
           flush->sends && flush->receives && flush->parts && flush->silent;
}

pace_status pace__flush_open(pace__flush *flush, pace__link *link, unsigned workers, pace__logreg *model,
                             pace__table *table, uint64_t place, bool narrow, const pace_log *log)
{
    *flush = (pace__flush){.link = link,
                           .log = log,
                           .workers = workers,
                           .self = (unsigned)pace__link_rank(link),
                           .narrow = narrow,
                           .model = model,
                           .table = table,
                           .optim = model->optim,
                           .place = place};
    flush->words = words_of(keys_of(flush), workers);
    flush->room = (message_max(keys_of(flush), workers) + 63) / 64 * 64;
    flush->base_bytes = (size_t)model->ids * model->optim.width * sizeof(float) + 64;
    if (!make_room(flush))
        return pace_fail(log, PACE_FAILED, "out of memory for what is merged");
    memcpy(flush->base, model->parameters, (size_t)model->ids * model->optim.width * sizeof(float));
    memset(flush->out, 0, workers * flush->room); /* fresh pages cost time, and this is the time for it */
    for (unsigned i = 0; i < workers; i++)
        memset(flush->in + i * flush->room, 0, i == flush->self ? 0 : flush->room);
    flush->bias_n = pace__flow_pack(&model->optim, model->bias).n;
    return PACE_OK;
}

void pace__flush_close(pace__flush *flush)
{
    for (unsigned i = 0; flush->sends && i < flush->workers; i++)
        pace__link_settle(flush->link, &flush->sends[i]);
    free(flush->sides);
    free(flush->silent);
    free(flush->parts);
    free(flush->receives);
    free(flush->sends);
    free(flush->filled);
    free(flush->changed);
    pace__pages_free(flush->base, flush->base_bytes);
    pace__pages_free(flush->in, flush->workers * flush->room);
    pace__pages_free(flush->out, flush->workers * flush->room);
    *flush = (pace__flush){0};
}

/* --- without messages --- */

/* In their bits. AdaGrad has two floats. */
static bool differ(const float *a, const float *b, unsigned width)
{
    uint64_t x, y;

    if (width != 2)
        return memcmp(a, b, width * sizeof *a) != 0;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x != y;
}

/* A key's parameter is the same everywhere: it goes to where it is kept. */
static void put(pace__flush *flush, uint64_t key)
{
    unsigned width = flush->model->optim.width;
    const float *parameter = pace__replica_at(flush->model, key);

    if (key % flush->workers == flush->self)
        memcpy(record_at(flush, (uint32_t)(key / flush->workers)), parameter, width * sizeof *parameter);
    if (key < flush->model->ids)
        memcpy(flush->base + key * width, parameter, width * sizeof *parameter);
}

void pace__flush_put(pace__flush *flush, const uint32_t *keys, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        put(flush, keys[i]);
}

/*
 * FTRL's weights follow from its state and the rate: a parameter that nobody has changed for long has the weight of an
 * earlier rate; one with a lazy penalty has that of an earlier row. Behind a flush all have those of the flush, so that a
 * job that goes on from there has the same, and nobody needs to know more than the two floats that travel.
 */
static void settle(const pace__flush *flush, float *parameter)
{
    pace__flow_unpack_at(&flush->optim, pace__flow_pack_at(&flush->optim, parameter, flush->place),
                         flush->place, parameter);
}

static bool has_to_settle(const pace__flush *flush)
{
    return flush->optim.kind == PACE_FTRL || flush->optim.lazy;
}

static void settle_table(pace__flush *flush)
{
    for (uint32_t place = 0; has_to_settle(flush) && place < flush->table->places; place++) {
        if (!flush->optim.lazy || place != flush->table->free_place) /* the bias has no penalty */
            settle(flush, record_at(flush, place));
    }
}

static void settle_replica(pace__flush *flush)
{
    unsigned width = flush->optim.width;

    for (uint64_t key = 0; has_to_settle(flush) && key < flush->model->ids; key++) {
        float *parameter = pace__replica_at(flush->model, key);

        settle(flush, parameter);
        memcpy(flush->base + key * width, parameter, width * sizeof *parameter);
    }
    if (!flush->optim.lazy)
        settle(flush, flush->model->bias);
}

void pace__flush_agree(pace__flush *flush, const pace__optim *optim, uint64_t place)
{
    put(flush, flush->model->ids);
    flush->bias_n = pace__flow_pack(optim, flush->model->bias).n;
    flush->place = place;
    flush->optim = *optim;
    settle_table(flush);
    settle_replica(flush);
}

/* --- messages --- */

static size_t message_bytes(const pace__flush *flush, size_t count, bool narrow)
{
    return sizeof(pace__flush_head) + flush->words * sizeof(uint64_t) +
           count * (narrow ? sizeof(pace__flow_narrow) : sizeof(pace__flow_point));
}

static void send(pace__flush *flush, unsigned to, int tag, char *from, bool narrow)
{
    pace__link_send(flush->link, (int)to, tag, from,
                    message_bytes(flush, ((const pace__flush_head *)from)->count, narrow), &flush->sends[to]);
}

static void post(pace__flush *flush, int tag)
{
    for (unsigned i = 0; i < flush->workers; i++) {
        if (i != flush->self)
            pace__link_receive(flush->link, (int)i, tag, flush->in + i * flush->room, flush->room,
                               &flush->receives[i]);
    }
}

/* Until all requests are over; the peers of those that are not are waited for. */
static pace_status wait_for(pace__flush *flush, pace__request *requests, const char *what)
{
    unsigned turns = 0;
    PACE__SPAN("wait for a flush");

    for (;;) {
        size_t silent = 0;
        pace_status status = PACE_OK;

        for (unsigned i = 0; i < flush->workers && !status; i++) {
            bool done = !requests[i].active;

            if (silent == 0) /* the others can wait for that one, too */
                status = pace__link_done(flush->link, &requests[i], &done);
            if (!done)
                flush->silent[silent++] = (int)i;
        }
        if (status || silent == 0)
            return status;
        status = pace__link_turn(flush->link, flush->silent, silent, what, &turns);
        if (status)
            return status;
    }
}

/* What came has bits of keys that there are, and as many parameters. */
static pace_status check_message(const pace__flush *flush, unsigned from, unsigned owner, bool narrow)
{
    const message it = message_at(flush, flush->in, from);
    uint32_t places = places_of(keys_of(flush), flush->workers, owner);
    size_t came = flush->receives[from].bytes;
    uint64_t count = 0, beyond = 0;

    if (came >= message_bytes(flush, 0, narrow)) {
        for (uint32_t word = 0; word < flush->words; word++) {
            uint64_t first = (uint64_t)word * WORD_BITS;

            count += (uint64_t)__builtin_popcountll(it.bits[word]);
            if (first + WORD_BITS > places)
                beyond |= first >= places ? it.bits[word] : it.bits[word] >> (places - first);
        }
    }
    if (came < message_bytes(flush, 0, narrow) || beyond || count != it.head->count ||
        came != message_bytes(flush, count, narrow))
        return pace_fail(flush->log, PACE_BUG, "%s has sent parameters that cannot be",
                         pace__link_name(flush->link, (int)from));
    return PACE_OK;
}

static pace_status check_rows(const pace__flush *flush, unsigned from, uint64_t place)
{
    const pace__flush_head *head = message_at(flush, flush->in, from).head;

    if (head->first == flush->place && head->last == place)
        return PACE_OK;
    return pace_fail(flush->log, PACE_BUG,
                     "%s has sent what it learned from rows %" PRIu64 " to %" PRIu64
                     ", but those from %" PRIu64 " to %" PRIu64 " are to be merged",
                     pace__link_name(flush->link, (int)from), head->first, head->last, flush->place, place);
}

/* --- collecting --- */

/* 64 places of an owner, whose keys lie `workers` apart: parameters that differ from base go to it. Which do cannot be
 * foreseen, so there is no branch: the next one is written in any case. */
static void pack_word(const pace__flush *flush, const pace__optim *rule, unsigned owner, uint32_t word,
                      message *to)
{
    unsigned width = rule->width, workers = flush->workers;
    uint64_t first = (uint64_t)word * WORD_BITS * workers + owner, ids = flush->model->ids;
    uint64_t last = first + (uint64_t)WORD_BITS * workers, bits = 0, bit = 1;
    pace__flow_point *next = to->points + flush->filled[owner];

    for (uint64_t key = first; key < last && key < ids; key += workers, bit <<= 1) {
        const float *now = flush->model->parameters + key * width;
        bool other = differ(now, flush->base + key * width, width);

        *next = pace__flow_pack(rule, now);
        next += other;
        bits |= other ? bit : 0;
    }
    to->bits[word] = bits;
    flush->filled[owner] = (size_t)(next - to->points);
}

/* Lazy penalties of what goes to an owner, up to row `place`. */
static void bring_up(const pace__flush *flush, const pace__optim *rule, uint64_t place, unsigned owner,
                     message *to)
{
    pace__flow_point *next = to->points;

    for (uint32_t word = 0; word < flush->words; word++) {
        for (uint64_t bits = to->bits[word]; bits; bits &= bits - 1) {
            uint64_t at = (uint64_t)word * WORD_BITS + (unsigned)__builtin_ctzll(bits);
            uint64_t key = at * flush->workers + owner;

            *next++ = pace__flow_pack_at(rule, flush->model->parameters + key * rule->width, place);
        }
    }
}

static const float *base_at(const pace__flush *flush, uint64_t key)
{
    return flush->base + key * flush->model->optim.width;
}

/* What goes to another owner on a narrow wire: over the parameters, which are not needed any more. */
static void round_changes(const pace__flush *flush, const pace__optim *rule, uint64_t place, unsigned owner,
                          message *to)
{
    pace__flow_narrow *next = to->narrow;

    for (uint32_t word = 0; word < flush->words; word++) {
        for (uint64_t bits = to->bits[word]; bits; bits &= bits - 1) {
            uint64_t at = (uint64_t)word * WORD_BITS + (unsigned)__builtin_ctzll(bits);
            uint64_t key = at * flush->workers + owner;
            const float *now = flush->model->parameters + key * rule->width;

            *next++ =
                pace__flow_round(pace__flow_change(rule, pace__flow_pack_at(rule, now, place),
                                                   pace__flow_pack_at(rule, base_at(flush, key), place)));
        }
    }
}

static void pack(pace__flush *flush, const pace__optim *optim, uint64_t place, uint64_t rows)
{
    message to[PACE__WORKERS_MAX];
    PACE__SPAN("find changes");

    for (unsigned owner = 0; owner < flush->workers; owner++)
        to[owner] = message_at(flush, flush->out, owner);
    const pace__optim rule = *optim; /* stays in registers */

    memset(flush->filled, 0, flush->workers * sizeof *flush->filled);
    for (uint32_t word = 0; word < flush->words; word++) {
        for (unsigned owner = 0; owner < flush->workers; owner++)
            pack_word(flush, &rule, owner, word, &to[owner]);
    }
    for (unsigned owner = 0; owner < flush->workers; owner++) {
        if (flush->narrow && owner != flush->self)
            round_changes(flush, &rule, place, owner, &to[owner]);
        else if (rule.lazy)
            bring_up(flush, &rule, place, owner, &to[owner]);
        *to[owner].head = (pace__flush_head){flush->place, place, rows, flush->filled[owner], 0};
        flush->keys_sent += owner == flush->self ? 0 : flush->filled[owner];
    }
}

/* A narrow message becomes a wide one, in its place: the parameters as its sender has them, but for what was rounded. From
 * the last one on, since each needs the room of two. */
static void widen(const pace__flush *flush, const pace__optim *optim, uint64_t place, unsigned from)
{
    const pace__optim rule = *optim; /* stays in registers */
    message it = message_at(flush, flush->in, from);
    uint64_t left = it.head->count;

    for (uint32_t word = flush->words; word-- > 0;) {
        for (uint64_t bits = it.bits[word]; bits;) {
            unsigned bit = WORD_BITS - 1 - (unsigned)__builtin_clzll(bits);
            const float *record = record_at(flush, word * WORD_BITS + bit);
            pace__flow_narrow change;

            left--;
            memcpy(&change, &it.narrow[left], sizeof change);
            pace__flow_point now =
                pace__flow_moved(&rule, pace__flow_pack_at(&rule, record, place), pace__flow_widen(change));

            memcpy(&it.points[left], &now, sizeof now);
            bits ^= UINT64_C(1) << bit;
        }
    }
}

/* Where a walk through all messages to this owner stands: word by word. */
typedef struct pass {
    const uint64_t *bits[PACE__WORKERS_MAX];
    const pace__flow_point *next[PACE__WORKERS_MAX];
    uint64_t any, many; /* of this word: places that some, that several have changed */
} pass;

static void begin_pass(const pace__flush *flush, pass *at)
{
    for (unsigned i = 0; i < flush->workers; i++) {
        message from = message_at(flush, i == flush->self ? flush->out : flush->in, i);

        at->bits[i] = from.bits;
        at->next[i] = from.points;
    }
}

static void look_at_word(const pace__flush *flush, pass *at, uint32_t word)
{
    at->any = at->many = 0;
    for (unsigned i = 0; i < flush->workers; i++) {
        at->many |= at->any & at->bits[i][word];
        at->any |= at->bits[i][word];
    }
}

/* Every so many words are enough to measure by. */
#define MEASURED 4

static void measure_word(const pace__flush *flush, const pace__optim *optim, pass *at, uint32_t word,
                         pace__damping *sum)
{
    float n[WORD_BITS], squares[WORD_BITS] = {0};

    look_at_word(flush, at, word);
    for (uint64_t bits = at->any; bits; bits &= bits - 1) {
        unsigned bit = (unsigned)__builtin_ctzll(bits);

        n[bit] = pace__flow_pack(optim, record_at(flush, word * WORD_BITS + bit)).n;
    }
    for (unsigned i = 0; i < flush->workers; i++) {
        for (uint64_t bits = at->bits[i][word]; bits; bits &= bits - 1) {
            unsigned bit = (unsigned)__builtin_ctzll(bits);

            squares[bit] += at->next[i]++->n - n[bit];
        }
    }
    for (uint64_t bits = at->any; bits; bits &= bits - 1) {
        unsigned bit = (unsigned)__builtin_ctzll(bits);

        pace__damping_add(sum, optim, flush->workers, n[bit], squares[bit]);
    }
}

static pace__damping measure(const pace__flush *flush, const pace__optim *optim)
{
    pass at;
    pace__damping sum = {0};
    PACE__SPAN("measure the damping");

    begin_pass(flush, &at);
    for (uint32_t word = 0; word < flush->words; word++) {
        if (word % MEASURED == 0) {
            measure_word(flush, optim, &at, word, &sum);
            continue;
        }
        for (unsigned i = 0; i < flush->workers; i++)
            at.next[i] += __builtin_popcountll(at.bits[i][word]);
    }
    sum.a *= MEASURED;
    sum.a2 *= MEASURED;
    return sum;
}

/* The damping over all owners' keys. */
static pace_status agree_on_damping(pace__flush *flush, const pace__optim *optim)
{
    pace__damping sum = {0}, *own = &flush->parts[flush->self];
    pace_status status = PACE_OK;

    *own = measure(flush, optim);
    for (unsigned i = 0; i < flush->workers; i++) {
        if (i == flush->self)
            continue;
        pace__link_receive(flush->link, (int)i, TAG_PART, &flush->parts[i], sizeof *own, &flush->receives[i]);
        pace__link_send(flush->link, (int)i, TAG_PART, own, sizeof *own, &flush->sends[i]);
    }
    status = wait_for(flush, flush->receives, "its part of a flush");
    for (unsigned i = 0; i < flush->workers && !status; i++) {
        if (i != flush->self)
            status = pace__link_fits(flush->link, &flush->receives[i], sizeof *own, "a part of a flush");
        sum.a += flush->parts[i].a;
        sum.a2 += flush->parts[i].a2;
    }
    sum.bias_q = (double)(pace__flow_pack(optim, flush->model->bias).n - flush->bias_n) / flush->workers;
    if (!status)
        flush->damping = pace__damping_of(&sum, 0);
    return status ? status : wait_for(flush, flush->sends, "its part of a flush to leave");
}

/* Parameters that several workers have changed, until there are enough of them for the kernels. */
typedef struct batch {
    const pace__optim *optim;
    uint64_t place; /* rows that it is merged behind */
    const pace__flow_kernels *kernels;
    size_t count;
    unsigned deepest; /* most changes of one */
    float *records[PACE__FLOW_BLOCK];
    unsigned depth[PACE__FLOW_BLOCK + 1]; /* changes so far */
    pace__flow_block block;
} batch;

/*
 * Most have been changed by a few of the workers. So their changes are put one behind the other, in the order of the
 * workers: side i has the i-th of each, d and behind it q. What is in no batch goes to the last place of side 0.
 */
#define SIDE (PACE__FLOW_BLOCK + 1)

static float *side_of(const pace__flush *flush, unsigned depth)
{
    return flush->sides + (size_t)depth * 2 * SIDE;
}

static void begin_batch(const pace__flush *flush, batch *to)
{
    memset(flush->sides, 0, to->deepest * 2 * SIDE * sizeof *flush->sides);
    memset(&to->block, 0, sizeof to->block);
    memset(to->depth, 0, sizeof to->depth);
    to->count = to->deepest = 0;
}

static void end_batch(const pace__flush *flush, batch *to)
{
    pace__flow_rule rule = pace__flow_rule_of(to->optim);

    for (size_t i = 0; i < to->count; i++)
        to->deepest = to->depth[i] > to->deepest ? to->depth[i] : to->deepest;
    for (unsigned i = 0; i < to->deepest; i++)
        to->kernels->add(rule, flush->damping, side_of(flush, i), side_of(flush, i) + SIDE, &to->block);
    to->kernels->end(rule, flush->damping, &to->block);
    for (size_t i = 0; i < to->count; i++) {
        pace__flow_point merged = {to->block.w[i], to->block.n[i]};

        pace__flow_unpack_at(to->optim, pace__flow_to(to->optim, merged), to->place, to->records[i]);
    }
    begin_batch(flush, to);
}

/* Where in the batch each place of a word is that several have changed; the others are behind the end. */
static void enlist(const pace__flush *flush, uint64_t many, float *records, batch *to, uint8_t *slots)
{
    memset(slots, PACE__FLOW_BLOCK, WORD_BITS);
    for (uint64_t bits = many; bits; bits &= bits - 1) {
        unsigned bit = (unsigned)__builtin_ctzll(bits);
        float *record = records + bit * flush->table->stride;
        pace__flow_point before =
            pace__flow_from(to->optim, pace__flow_pack_at(to->optim, record, to->place));

        slots[bit] = (uint8_t)to->count;
        to->block.w[to->count] = before.w;
        to->block.n[to->count] = before.n;
        to->records[to->count++] = record;
    }
}

/* What one worker alone has changed is taken over as it is: invariant 1. Which of them that is cannot be foreseen, so
 * everything is done for all, and goes to where it is not looked at for some. */
static void merge_word(const pace__flush *flush, pass *at, uint32_t word, batch *to)
{
    float *records = record_at(flush, word * WORD_BITS), aside[PACE__OPTIM_WIDTH_MAX];
    size_t stride = flush->table->stride;
    uint8_t slots[WORD_BITS];

    look_at_word(flush, at, word);
    if (to->count + (size_t)__builtin_popcountll(at->many) > PACE__FLOW_BLOCK)
        end_batch(flush, to);
    enlist(flush, at->many, records, to, slots);
    for (unsigned i = 0; i < flush->workers; i++) {
        for (uint64_t bits = at->bits[i][word]; bits; bits &= bits - 1) {
            unsigned bit = (unsigned)__builtin_ctzll(bits), slot = slots[bit];
            unsigned before = slot % PACE__FLOW_BLOCK;
            float *d = side_of(flush, to->depth[slot]), *q = d + SIDE;
            pace__flow_point packed = *at->next[i]++, now = pace__flow_from(to->optim, packed);

            pace__flow_unpack_at(to->optim, packed, to->place,
                                 slot < PACE__FLOW_BLOCK ? aside : records + bit * stride);
            q[slot] = now.n - to->block.n[before];
            d[slot] = to->optim->lazy && q[slot] == 0 ? 0 : now.w - to->block.w[before];
            to->depth[slot] += slot < PACE__FLOW_BLOCK;
        }
    }
}

static void merge(pace__flush *flush, const pace__optim *optim, uint64_t place)
{
    const pace__optim rule = *optim; /* stays in registers */
    batch several = {.optim = &rule,
                     .place = place,
                     .kernels = pace__flow_of(pace_kernels_in_use()),
                     .deepest = flush->workers}; /* nothing is in order yet */
    pass at;
    PACE__SPAN("merge");

    begin_batch(flush, &several);
    begin_pass(flush, &at);
    for (uint32_t word = 0; word < flush->words; word++) {
        merge_word(flush, &at, word, &several);
        flush->changed[word] = at.any;
        flush->keys_merged += (uint64_t)__builtin_popcountll(at.any);
    }
    end_batch(flush, &several);
}

/* What will be shared, in the own message, which is merged by now: the changes of what is in the table, rounded; and the
 * table becomes what they say. */
static void round_table(pace__flush *flush, const pace__optim *optim, uint64_t place)
{
    const pace__optim rule = *optim; /* stays in registers */
    pace__flow_narrow *next = message_at(flush, flush->out, flush->self).narrow;
    PACE__SPAN("round");

    for (uint32_t word = 0; word < flush->words; word++) {
        for (uint64_t bits = flush->changed[word]; bits; bits &= bits - 1) {
            uint32_t at = word * WORD_BITS + (unsigned)__builtin_ctzll(bits);
            uint64_t key = (uint64_t)at * flush->workers + flush->self;
            float *record = record_at(flush, at);
            pace__flow_point before = pace__flow_pack_at(&rule, base_at(flush, key), place);
            pace__flow_narrow change =
                pace__flow_round(pace__flow_change(&rule, pace__flow_pack_at(&rule, record, place), before));

            pace__flow_unpack_at(&rule, pace__flow_moved(&rule, before, pace__flow_widen(change)), place,
                                 record);
            *next++ = change;
        }
    }
}

/* Invariant 3: together all have trained each row once. */
static pace_status check_all(const pace__flush *flush, uint64_t place, uint64_t rows)
{
    pace_status status = PACE_OK;

    for (unsigned i = 0; i < flush->workers && !status; i++) {
        if (i == flush->self)
            continue;
        status = check_message(flush, i, flush->self, flush->narrow);
        if (!status)
            status = check_rows(flush, i, place);
        rows += message_at(flush, flush->in, i).head->rows;
    }
    if (!status && rows != place - flush->place)
        status = pace_fail(flush->log, PACE_BUG,
                           "workers have trained %" PRIu64 " rows between two flushes of %" PRIu64, rows,
                           place - flush->place);
    return status;
}

pace_status pace__flush_collect(pace__flush *flush, const pace__optim *optim, uint64_t place, uint64_t rows)
{
    uint64_t start_ns = pace__now_ns(), waited_ns;
    pace_status status = wait_for(flush, flush->sends, "what it has shared to leave");

    if (status)
        return status;
    post(flush, TAG_COLLECT);
    pack(flush, optim, place, rows);
    for (unsigned step = 1; step < flush->workers; step++) {
        unsigned owner = (flush->self + step) % flush->workers;

        send(flush, owner, TAG_COLLECT, flush->out + owner * flush->room, flush->narrow);
    }
    waited_ns = pace__now_ns();
    status = wait_for(flush, flush->receives, "what it has changed");
    if (!status)
        status = check_all(flush, place, rows);
    if (!status) /* the same requests are needed again */
        status = wait_for(flush, flush->sends, "what it has changed to leave");
    waited_ns = pace__now_ns() - waited_ns;
    for (unsigned i = 0; flush->narrow && i < flush->workers && !status; i++) {
        if (i != flush->self)
            widen(flush, optim, place, i);
    }
    if (!status)
        status = agree_on_damping(flush, optim);
    if (status)
        return status;
    merge(flush, optim, place);
    if (flush->narrow)
        round_table(flush, optim, place);
    flush->bias_n = pace__flow_pack(optim, flush->model->bias).n;
    flush->place = place;
    flush->optim = *optim;
    settle_table(flush);
    flush->busy_ns += pace__now_ns() - start_ns - waited_ns;
    return PACE_OK;
}

/* --- sharing --- */

/* A merged parameter, in the replica; the bias has no base. */
static void take_over(pace__flush *flush, uint64_t key, pace__flow_point packed)
{
    if (key == flush->model->ids) {
        pace__flow_unpack(&flush->optim, packed, flush->model->bias);
        return;
    }
    pace__flow_unpack_at(&flush->optim, packed, flush->place, pace__replica_at(flush->model, key));
    pace__flow_unpack_at(&flush->optim, packed, flush->place, flush->base + key * flush->model->optim.width);
}

/* What has changed in the table, as a message to all, and in the own replica. A narrow one has its changes already. */
static char *pack_shared(pace__flush *flush, bool narrow, bool end)
{
    message all = message_at(flush, flush->out, flush->self);
    uint64_t count = 0;

    memcpy(all.bits, flush->changed, flush->words * sizeof *all.bits);
    for (uint32_t word = 0; end && word < flush->words; word++)
        all.bits[word] = 0;
    for (uint32_t word = 0; word < flush->words; word++) {
        for (uint64_t bits = all.bits[word]; bits; bits &= bits - 1) {
            uint32_t place = word * WORD_BITS + (unsigned)__builtin_ctzll(bits);
            uint64_t key = (uint64_t)place * flush->workers + flush->self;

            pace__flow_point packed = pace__flow_pack(&flush->optim, record_at(flush, place));

            if (!narrow)
                all.points[count] = packed;
            count++;
            take_over(flush, key, packed);
        }
    }
    *all.head = (pace__flush_head){flush->place, flush->place, 0, count, end};
    return (char *)all.head;
}

/* A parameter that has changed by so much from where it was, here as at its owner. */
static pace__flow_point changed_by(const pace__flush *flush, uint64_t key, pace__flow_narrow change)
{
    return pace__flow_moved(&flush->optim,
                            pace__flow_pack_at(&flush->optim, base_at(flush, key), flush->place),
                            pace__flow_widen(change));
}

static void use_shared(pace__flush *flush, bool narrow, unsigned owner)
{
    message from = message_at(flush, flush->in, owner);
    uint64_t next = 0;

    for (uint32_t word = 0; word < flush->words; word++) {
        for (uint64_t bits = from.bits[word]; bits; bits &= bits - 1) {
            uint64_t key =
                ((uint64_t)word * WORD_BITS + (unsigned)__builtin_ctzll(bits)) * flush->workers + owner;

            take_over(flush, key, narrow ? changed_by(flush, key, from.narrow[next]) : from.points[next]);
            next++;
        }
    }
}

static pace_status share(pace__flush *flush, bool narrow, bool end, bool *ended)
{
    uint64_t start_ns = pace__now_ns();
    char *shared = pack_shared(flush, narrow, end);
    PACE__SPAN("share");

    post(flush, TAG_BACK);
    for (unsigned step = 1; step < flush->workers; step++)
        send(flush, (flush->self + step) % flush->workers, TAG_BACK, shared, narrow);
    flush->busy_ns += pace__now_ns() - start_ns;
    pace_status status = wait_for(flush, flush->receives, "what it has merged");

    start_ns = pace__now_ns();
    *ended = end;
    for (unsigned i = 0; i < flush->workers && !status; i++) {
        if (i == flush->self)
            continue;
        status = check_message(flush, i, i, narrow);
        if (!status)
            status = check_rows(flush, i, flush->place);
        if (status)
            break;
        use_shared(flush, narrow, i);
        *ended |= i == 0 && message_at(flush, flush->in, i).head->end;
    }
    settle_replica(flush);
    flush->busy_ns += pace__now_ns() - start_ns;
    return status;
}

pace_status pace__flush_share(pace__flush *flush, bool end, bool *ended)
{
    return share(flush, flush->narrow, end, ended);
}

/* Tables hold what was dealt out, replicas first values: everything that is no first value is shared, as it is. */
pace_status pace__flush_begin(pace__flush *flush)
{
    unsigned width = flush->model->optim.width - flush->model->optim.lazy; /* without the stamp */
    float first[PACE__OPTIM_WIDTH_MAX];
    bool ended;

    settle_table(flush); /* another mode may have saved it */
    pace__optim_init(&flush->model->optim, first);
    for (uint32_t place = 0; place < flush->table->places; place++) {
        if (differ(record_at(flush, place), first, width))
            flush->changed[place / WORD_BITS] |= UINT64_C(1) << (place % WORD_BITS);
    }
    pace_status status = share(flush, false, false, &ended);

    flush->bias_n = pace__flow_pack(&flush->model->optim, flush->model->bias).n;
    return status;
}
