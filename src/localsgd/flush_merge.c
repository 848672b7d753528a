/* Walks through what all workers have sent to this owner, 64 keys at a time. */
#include "localsgd/flush_merge.h"

#include "launch/cluster.h"
#include "watch/spans.h"

#include <string.h>

#define WORD_BITS PACE__WORD_BITS

/* Where a walk through all messages to this owner stands: word by word. */
typedef struct pass {
    const uint64_t *bits[PACE__WORKERS_MAX];
    const pace__flow_point *next[PACE__WORKERS_MAX];
    uint64_t any, many; /* of this word: places that some, that several have changed */
} pass;

static void begin_pass(const pace__flush *flush, pass *at)
{
    for (unsigned i = 0; i < flush->mail.workers; i++) {
        pace__mail_message from = pace__mail_of(&flush->mail, i);

        at->bits[i] = from.bits;
        at->next[i] = from.rest;
    }
}

static void look_at_word(const pace__flush *flush, pass *at, uint32_t word)
{
    at->any = at->many = 0;
    for (unsigned i = 0; i < flush->mail.workers; i++) {
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

        n[bit] = pace__flow_pack(optim, pace__flush_record(flush, word * WORD_BITS + bit)).n;
    }
    for (unsigned i = 0; i < flush->mail.workers; i++) {
        for (uint64_t bits = at->bits[i][word]; bits; bits &= bits - 1) {
            unsigned bit = (unsigned)__builtin_ctzll(bits);

            squares[bit] += at->next[i]++->n - n[bit];
        }
    }
    for (uint64_t bits = at->any; bits; bits &= bits - 1) {
        unsigned bit = (unsigned)__builtin_ctzll(bits);

        pace__damping_add(sum, optim, flush->mail.workers, n[bit], squares[bit]);
    }
}

pace__damping pace__flush_measure(const pace__flush *flush, const pace__optim *optim)
{
    pass at;
    pace__damping sum = {0};
    PACE__SPAN("measure the damping");

    begin_pass(flush, &at);
    for (uint32_t word = 0; word < flush->mail.words; word++) {
        if (word % MEASURED == 0) {
            measure_word(flush, optim, &at, word, &sum);
            continue;
        }
        for (unsigned i = 0; i < flush->mail.workers; i++)
            at.next[i] += __builtin_popcountll(at.bits[i][word]);
    }
    sum.a *= MEASURED;
    sum.a2 *= MEASURED;
    return sum;
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
    float *records = pace__flush_record(flush, word * WORD_BITS), aside[PACE__OPTIM_WIDTH_MAX];
    size_t stride = flush->table->stride;
    uint8_t slots[WORD_BITS];

    look_at_word(flush, at, word);
    if (to->count + (size_t)__builtin_popcountll(at->many) > PACE__FLOW_BLOCK)
        end_batch(flush, to);
    enlist(flush, at->many, records, to, slots);
    for (unsigned i = 0; i < flush->mail.workers; i++) {
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

void pace__flush_merge(pace__flush *flush, const pace__optim *optim, uint64_t place)
{
    const pace__optim rule = *optim; /* stays in registers */
    batch several = {.optim = &rule,
                     .place = place,
                     .kernels = pace__flow_of(pace_kernels_in_use()),
                     .deepest = flush->mail.workers}; /* nothing is in order yet */
    pass at;
    PACE__SPAN("merge");

    begin_batch(flush, &several);
    begin_pass(flush, &at);
    for (uint32_t word = 0; word < flush->mail.words; word++) {
        merge_word(flush, &at, word, &several);
        flush->changed[word] = at.any;
        flush->keys_merged += (uint64_t)__builtin_popcountll(at.any);
    }
    end_batch(flush, &several);
}
