#include "model/keys.h"

#include "base/memory.h"

#include <assert.h>
#include <string.h>

static size_t finder_bytes(const pace__key_finder *finder)
{
    return ((size_t)finder->ids + 1) * sizeof *finder->slot_of;
}

/* No id has been seen yet. */
static void start_over(pace__key_finder *finder)
{
    finder->base = 1;
    finder->slot_of[finder->ids] = PACE__UNSEEN;
}

pace_status pace__key_finder_init(pace__key_finder *finder, uint32_t ids, bool plain, const pace_log *log)
{
    *finder = (pace__key_finder){.ids = ids};
    finder->kernels = pace__keys_of(plain ? PACE_KERNELS_PLAIN : pace_kernels_in_use());
    finder->slot_of = pace__pages_alloc(finder_bytes(finder));
    if (!finder->slot_of)
        return pace_fail(log, PACE_FAILED, "out of memory: the slots of %u ids need %zu bytes", ids,
                         finder_bytes(finder));
    start_over(finder);
    return PACE_OK;
}

void pace__key_finder_release(pace__key_finder *finder)
{
    if (finder->slot_of)
        pace__pages_free(finder->slot_of, finder_bytes(finder));
    *finder = (pace__key_finder){0};
}

pace_status pace__key_batch_init(pace__key_batch *batch, uint32_t ids, size_t entries_max,
                                 const pace_log *log)
{
    size_t distinct = entries_max < ids ? entries_max : ids;

    /* The bias, and one that is written but does not count. */
    *batch = (pace__key_batch){.keys_max = distinct + 2, .entries_max = entries_max};
    batch->keys = pace__pages_alloc(batch->keys_max * sizeof *batch->keys);
    batch->slots = pace__pages_alloc(entries_max * sizeof *batch->slots);
    if (!batch->keys || !batch->slots) {
        pace__key_batch_release(batch);
        return pace_fail(log, PACE_FAILED, "out of memory for the keys of %zu entries", entries_max);
    }
    return PACE_OK;
}

pace_status pace__key_batch_grow(pace__key_batch *batch, uint32_t ids, size_t entries_max,
                                 const pace_log *log)
{
    if (batch->slots && entries_max <= batch->entries_max)
        return PACE_OK;
    pace__key_batch_release(batch);
    return pace__key_batch_init(batch, ids, entries_max, log);
}

void pace__key_batch_release(pace__key_batch *batch)
{
    if (batch->keys)
        pace__pages_free(batch->keys, batch->keys_max * sizeof *batch->keys);
    if (batch->slots)
        pace__pages_free(batch->slots, batch->entries_max * sizeof *batch->slots);
    *batch = (pace__key_batch){0};
}

/* --- finding --- */

static void find(pace__key_search *search, const uint32_t *ids, size_t entries, uint32_t *slots)
{
    pace__key_search own = *search;

    for (size_t i = 0; i < entries; i++) {
        if (i + PACE__KEYS_AHEAD < entries)
            __builtin_prefetch(own.slot_of + ids[i + PACE__KEYS_AHEAD], 1);
        slots[i] = pace__key_slot(&own, ids[i]);
        own.unseen |= slots[i] == PACE__UNSEEN - own.base;
    }
    *search = own;
}

const pace__keys_kernels pace__keys_plain = {.find = find};

/* Before a batch of at most `keys` keys: is there room for them above base? */
static void make_room(pace__key_finder *finder, size_t keys)
{
    assert(keys < PACE__UNSEEN - 1);
    if (finder->base < PACE__UNSEEN - keys)
        return;
    memset(finder->slot_of, 0, finder_bytes(finder));
    start_over(finder);
}

void pace__keys_find(pace__key_finder *finder, const pace__rows *rows, pace__key_batch *batch)
{
    size_t first = rows->rows ? (size_t)pace__row_start(rows, 0) : 0;
    size_t last = rows->rows ? (size_t)pace__row_start(rows, rows->rows) : 0;

    assert(last <= batch->entries_max);
    size_t distinct = last - first < finder->ids ? last - first : finder->ids;

    assert(distinct + 2 <= batch->keys_max);
    make_room(finder, distinct + 2);
    pace__key_search search = {
        .slot_of = finder->slot_of, .base = finder->base, .keys = batch->keys, .count = 1};
    uint32_t *slots = batch->slots;

    batch->keys[0] = finder->ids;
    finder->kernels->find(&search, rows->ids + first, last - first, slots + first);
    for (size_t i = first; search.unseen && i < last; i++)
        slots[i] = slots[i] == PACE__UNSEEN - search.base ? search.count : slots[i];
    finder->base += search.count;
    batch->count = search.count;
    batch->rows = *rows;
    batch->rows.ids = slots;
}

void pace__keys_find_words(pace__key_finder *finder, const pace__rows *rows, pace__key_batch *batch)
{
    size_t entries = rows->rows * rows->columns, distinct = entries < finder->ids ? entries : finder->ids;

    assert(entries <= batch->entries_max && distinct + 1 <= batch->keys_max);
    make_room(finder, distinct + 1);
    pace__key_search search = {.slot_of = finder->slot_of, .base = finder->base, .keys = batch->keys};

    for (size_t row = 0; row < rows->rows; row++) {
        const uint32_t *words = pace__row_words(rows, row);
        uint32_t *slots = batch->slots + (words - rows->ids);

        for (uint32_t i = 0; i < rows->length[row]; i++)
            slots[i] = pace__key_slot(&search, words[i]);
    }
    finder->base += search.count;
    batch->count = search.count;
    batch->rows = *rows;
    batch->rows.ids = batch->slots;
}

/* --- the gradients of a batch --- */

/* Four at a time, one after the other: with a turn for each entry the end of the row is a surprise. */
static inline void add_to_row(float *sums, const uint32_t *slots, size_t entries, float gradient)
{
    size_t i = 0;

    for (; i + 4 <= entries; i += 4) {
        sums[slots[i]] += gradient;
        sums[slots[i + 1]] += gradient;
        sums[slots[i + 2]] += gradient;
        sums[slots[i + 3]] += gradient;
    }
    for (; i < entries; i++)
        sums[slots[i]] += gradient;
}

static inline void add_values(float *sums, const uint32_t *slots, const float *values, size_t entries,
                              float gradient)
{
    for (size_t i = 0; i < entries; i++)
        sums[slots[i]] += gradient * values[i];
}

void pace__keys_accumulate(const pace__key_batch *batch, size_t first, size_t count, const float *gradient,
                           float *sums)
{
    const pace__rows *rows = &batch->rows;
    float bias = sums[0];

    for (size_t i = 0; i < count; i++) {
        uint64_t at = pace__row_start(rows, first + i);
        size_t entries = (size_t)(pace__row_start(rows, first + i + 1) - at);

        if (rows->values)
            add_values(sums, rows->ids + at, rows->values + at, entries, gradient[i]);
        else
            add_to_row(sums, rows->ids + at, entries, gradient[i]);
        bias += gradient[i];
    }
    sums[0] = bias;
}
