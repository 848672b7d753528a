/*
 * Most ids of a row have been met before, and for those looking is enough: a block's entries are looked up in vectors, and
 * only those that were not known when the block began go through the plain steps, in the order of the entries, because one
 * of them may be there twice. So nothing is stored for a known id, no lane depends on another, and the result is that of
 * the plain kernel.
 *
 * What else was tried: no prefetch, 1.5 times the time; prefetching a block's ids in a loop of its own, 1.2.
 */
#include "lanes/lanes.h"
#include "lanes/text.h"
#include "model/keys.h"

/* Large enough that the unforeseen end of the loop over new ids is rare; small enough that the frequent ids
 * are known from the seventh row or so on. */
#define BLOCK 256
#define GROUP 64 /* entries whose bits are one number */

/* Instrumented for the thread sanitizer by GCC 12 this kernel reads back other ids than it has stored; plain,
 * and under the other sanitizers, it does not. Nothing here is shared between threads. */
#define NOT_WATCHED __attribute__((no_sanitize("thread")))

/* Sets the slots of GROUP known ids; bits of the others. `ahead`: ids to be looked up later. */
INLINE uint64_t look_up(const pace__key_search *search, const uint32_t *ids, const uint32_t *ahead,
                        uint32_t *slots, words *largest)
{
    words base = words_all(search->base);
    uint64_t unknown = 0;

    for (size_t i = 0; i < GROUP; i += LANES) {
        UNROLL
        for (size_t k = 0; k < LANES; k++)
            __builtin_prefetch(search->slot_of + ahead[i + k]);
        words known = words_pick(search->slot_of, ids + i);

        words_store(slots + i, known - base);
        unknown |= words_below(known, base) << i;
        *largest = words_max(*largest, known);
    }
    return unknown;
}

/* The places of new ids among `entries`, a multiple of GROUP; returns how many. */
NOT_WATCHED static inline size_t look_up_block(const pace__key_search *search, const uint32_t *ids,
                                               size_t entries, size_t behind, uint32_t *slots,
                                               uint32_t *fresh, words *largest)
{
    size_t count = 0;

    for (size_t at = 0; at < entries; at += GROUP) {
        size_t ahead = behind - at >= PACE__KEYS_AHEAD + GROUP ? at + PACE__KEYS_AHEAD : at;

        count += places_add(fresh + count, (uint32_t)at,
                            look_up(search, ids + at, ids + ahead, slots + at, largest));
    }
    return count;
}

NOT_WATCHED static void find(pace__key_search *search, const uint32_t *ids, size_t entries, uint32_t *slots)
{
    pace__key_search own = *search;
    words largest = words_all(own.base);
    uint32_t fresh[BLOCK + PLACES_SLACK], lanes[LANES];
    size_t first = 0;

    for (; first + GROUP <= entries; first += BLOCK) {
        size_t whole = (entries - first < BLOCK ? entries - first : BLOCK) / GROUP * GROUP;
        size_t count =
            look_up_block(&own, ids + first, whole, entries - first, slots + first, fresh, &largest);

        for (size_t i = 0; i < count; i++)
            slots[first + fresh[i]] = pace__key_slot(&own, ids[first + fresh[i]]);
    }
    words_store(lanes, largest);
    for (size_t lane = 0; lane < LANES; lane++)
        own.unseen |= lanes[lane] == PACE__UNSEEN;
    *search = own;
    pace__keys_plain.find(search, ids + entries / GROUP * GROUP, entries % GROUP,
                          slots + entries / GROUP * GROUP);
}

const pace__keys_kernels PACE__SET(pace__keys) = {.find = find};
