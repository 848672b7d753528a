/* Words in the table of a counter, by comparing the tags of neighbouring slots at once. Four slots are enough: with sixteen, most
 * words would be looked for in two lines of the cache. */
#define LANES_32
#include "lanes/lanes.h"
#include "prep/reviews/words_internal.h"

/* Slots in a vector: a tag, then where the record is. */
#define SLOTS (LANES / 2)
/* A bit of each tag, and of what is behind them all, for words that are not there. */
#define TAGS   (0x5555u & ((1u << LANES) - 1))
#define ABSENT (1u << LANES)

_Static_assert(SLOTS + 1 <= PACE__SLOTS_BEHIND, "slots behind the table are readable");

static void find(const pace__word_counter *self, const uint64_t *hashes, size_t count, uint32_t *found)
{
    unsigned shift = 64 - self->bits;
    const pace__slot *table = self->table;
    const char *arena = self->arena;

    for (size_t i = 0; i < count; i++) {
        const uint32_t *home = &table[hashes[i] >> shift].tag;
        unsigned fits = words_equal(words_load(home), words_all((uint32_t)hashes[i]));
        uint32_t at = home[__builtin_ctz((fits & TAGS) | ABSENT) + 1];

        found[i] = at;
        __builtin_prefetch(arena + (size_t)at * PACE__ARENA_UNIT, 1);
    }
}

const pace__words_kernels PACE__SET(pace__words) = {.find = find};
