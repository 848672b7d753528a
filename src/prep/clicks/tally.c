#include "prep/clicks/tally.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static size_t slots_of(const pace__tally *tally)
{
    return (size_t)1 << tally->bits;
}

bool pace__tally_init(pace__tally *tally, uint64_t limit, unsigned bits)
{
    *tally = (pace__tally){.limit = limit, .bits = bits};
    tally->slots = pace__pages_alloc_sparse(slots_of(tally) * sizeof *tally->slots);
    return tally->slots;
}

void pace__tally_release(pace__tally *tally)
{
    pace__pages_free(tally->slots, slots_of(tally) * sizeof *tally->slots);
    pace__pages_free(tally->counts, tally->limit * sizeof *tally->counts);
    *tally = (pace__tally){0};
}

/* The slot of an id, or the free one where it would be. */
static inline uint64_t *probe(const pace__tally *tally, uint64_t id)
{
    size_t mask = slots_of(tally) - 1, at = (id * 0x9e3779b97f4a7c15u) >> (64 - tally->bits);

    while (tally->slots[at] != 0 && tally->slots[at] >> 32 != id + 1)
        at = (at + 1) & mask;
    return &tally->slots[at];
}

static inline void put(pace__tally *tally, uint64_t id, uint32_t count)
{
    uint64_t *slot = probe(tally, id);

    tally->used += *slot == 0;
    *slot = (*slot ? *slot : (id + 1) << 32) + count;
}

static inline bool is_full(const pace__tally *tally)
{
    return 2 * tally->used >= slots_of(tally);
}

static void put_again(void *arg, uint64_t id, uint32_t count)
{
    put(arg, id, count);
}

static void put_in_array(void *arg, uint64_t id, uint32_t count)
{
    ((uint32_t *)arg)[id] = count;
}

/* Twice the slots, or an array, if that takes no more memory. */
static bool grow(pace__tally *tally)
{
    pace__tally larger = {.limit = tally->limit, .bits = tally->bits + 1};

    if (slots_of(&larger) * sizeof *larger.slots >= tally->limit * sizeof *larger.counts)
        larger.counts = pace__pages_alloc(tally->limit * sizeof *larger.counts);
    else
        larger.slots = pace__pages_alloc_sparse(slots_of(&larger) * sizeof *larger.slots);
    if (!larger.counts && !larger.slots)
        return false;
    if (larger.counts)
        pace__tally_visit(tally, put_in_array, larger.counts);
    else
        pace__tally_visit(tally, put_again, &larger);
    pace__tally_release(tally);
    *tally = larger;
    return true;
}

bool pace__tally_add(pace__tally *tally, uint64_t id, uint32_t count)
{
    if (!tally->counts && is_full(tally) && !grow(tally))
        return false;
    if (tally->counts)
        tally->counts[id] += count;
    else
        put(tally, id, count);
    return true;
}

void pace__tally_visit(const pace__tally *tally, pace__tally_visitor *visitor, void *arg)
{
    for (size_t i = 0; tally->slots && i < slots_of(tally); i++) {
        if (tally->slots[i])
            visitor(arg, (tally->slots[i] >> 32) - 1, (uint32_t)tally->slots[i]);
    }
    for (uint64_t id = 0; tally->counts && id < tally->limit; id++) {
        if (tally->counts[id])
            visitor(arg, id, tally->counts[id]);
    }
}
