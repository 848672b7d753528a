/*
 * Slots of 16 entries at a time. Most ids of a row have been met before, and for those looking is enough: a
 * block's entries are looked up in vectors, and only those that were not known when the block began go
 * through the plain steps, in the order of the entries, because one of them may be there twice. So nothing is
 * stored for a known id, no lane depends on another, and the result is that of the plain kernel.
 *
 * What else was tried: no prefetch, 1.5 times the time; prefetching a block's ids in a loop of its own, 1.2.
 */
#include "model/keys.h"

#include <immintrin.h>

/* Large enough that the unforeseen end of the loop over new ids is rare; small enough that the frequent ids
 * are known from the seventh row or so on. */
#define BLOCK 256

/* Instrumented for the thread sanitizer by GCC 12 this kernel reads back other ids than it has stored; plain,
 * and under the other sanitizers, it does not. Nothing here is shared between threads. */
#define NOT_WATCHED __attribute__((no_sanitize("thread")))

/* Entries of a block whose ids were not known. Vectors are stored whole, so there is room behind the last. */
typedef struct fresh {
    uint32_t ids[BLOCK + 16], at[BLOCK + 16];
} fresh;

/* Always: GCC drops calls of a function that does nothing but prefetch, unless it is inlined at once. */
static inline __attribute__((always_inline)) void prefetch_slots(const uint32_t *slot_of, const uint32_t *ids)
{
    for (int i = 0; i < 16; i++)
        _mm_prefetch((const char *)(slot_of + ids[i]), _MM_HINT_T0);
}

/* Sets the slots of known ids at first .. end of all `entries`, and finds the others: returns how many. */
NOT_WATCHED static inline size_t look_up(const pace__key_search *search, const uint32_t *ids, size_t first,
                                         size_t end, size_t entries, uint32_t *slots, fresh *found,
                                         __m512i *largest)
{
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i base = _mm512_set1_epi32((int)search->base);
    size_t count = 0;

    for (size_t at = first; at < end; at += 16) {
        if (at + PACE__KEYS_AHEAD + 16 <= entries)
            prefetch_slots(search->slot_of, ids + at + PACE__KEYS_AHEAD);
        __mmask16 mask = end - at >= 16 ? 0xffff : (__mmask16)((1u << (end - at)) - 1);
        __m512i id = _mm512_maskz_loadu_epi32(mask, ids + at);
        __m512i known = _mm512_mask_i32gather_epi32(base, mask, id, search->slot_of, 4);
        __m512i place = _mm512_add_epi32(lanes, _mm512_set1_epi32((int)at));
        __mmask16 is_new = _mm512_cmplt_epu32_mask(known, base);

        _mm512_mask_storeu_epi32(slots + at, mask, _mm512_sub_epi32(known, base));
        _mm512_storeu_si512(found->ids + count, _mm512_maskz_compress_epi32(is_new, id));
        _mm512_storeu_si512(found->at + count, _mm512_maskz_compress_epi32(is_new, place));
        count += (unsigned)__builtin_popcount(is_new);
        *largest = _mm512_max_epu32(*largest, known);
    }
    return count;
}

NOT_WATCHED void pace__key_slots_avx512(pace__key_search *search, const uint32_t *ids, size_t entries,
                                        uint32_t *slots)
{
    pace__key_search own = *search;
    __m512i largest = _mm512_set1_epi32((int)own.base);
    fresh found;

    for (size_t first = 0; first < entries; first += BLOCK) {
        size_t end = entries - first < BLOCK ? entries : first + BLOCK;
        size_t count = look_up(&own, ids, first, end, entries, slots, &found, &largest);

        for (size_t i = 0; i < count; i++)
            slots[found.at[i]] = pace__key_slot(&own, found.ids[i]);
    }
    own.unseen = _mm512_cmpeq_epi32_mask(largest, _mm512_set1_epi32((int)PACE__UNSEEN)) != 0;
    *search = own;
}
