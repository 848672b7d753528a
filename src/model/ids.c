#include "model/ids.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define INDEX_BITS 16

pace_status pace__id_index_init(pace__id_index *index, const uint64_t *ids, uint32_t count,
                                const pace_log *log)
{
    uint64_t largest = count ? ids[count - 1] : 0;
    uint32_t place = 0;

    *index = (pace__id_index){.ids = ids, .count = count};
    index->first = malloc((((size_t)1 << INDEX_BITS) + 2) * sizeof *index->first);
    if (!index->first)
        return pace_fail(log, PACE_FAILED, "out of memory");
    while (largest >> index->shift >> INDEX_BITS)
        index->shift++;
    for (uint64_t key = 0; key <= (UINT64_C(1) << INDEX_BITS) + 1; key++) {
        while (place < count && ids[place] >> index->shift < key)
            place++;
        index->first[key] = place;
    }
    return PACE_OK;
}

void pace__id_index_release(pace__id_index *index)
{
    free(index->first);
    *index = (pace__id_index){0};
}

uint32_t pace__id_place(const pace__id_index *index, uint64_t id)
{
    uint64_t key = id >> index->shift;

    if (key >> INDEX_BITS)
        return index->count;
    uint32_t low = index->first[key], high = index->first[key + 1];

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (index->ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < index->count && index->ids[low] == id ? low : index->count;
}

/* Sorts places by their original id, two bytes at a time; digits that are equal everywhere cost one pass of
 * reading. */
static uint32_t *sort_places(uint32_t *places, uint32_t *scratch, const uint64_t *original, size_t count,
                             size_t *starts)
{
    for (size_t i = 0; i < count; i++)
        places[i] = (uint32_t)i;
    for (unsigned shift = 0; shift < 64; shift += 16) {
        memset(starts, 0, 65537 * sizeof *starts);
        for (size_t i = 0; i < count; i++)
            starts[((original[i] >> shift) & 65535) + 1]++;
        if (count == 0 || starts[((original[0] >> shift) & 65535) + 1] == count)
            continue;
        for (size_t digit = 0; digit < 65536; digit++)
            starts[digit + 1] += starts[digit];
        for (size_t i = 0; i < count; i++)
            scratch[starts[(original[places[i]] >> shift) & 65535]++] = places[i];
        uint32_t *swap = places;

        places = scratch;
        scratch = swap;
    }
    return places;
}

pace_status pace__ids_order(const uint64_t *ids, uint32_t count, uint32_t **order, const pace_log *log)
{
    uint32_t *places = malloc((2 * (size_t)count + 1) * sizeof *places);
    size_t *starts = malloc(65537 * sizeof *starts);

    if (!places || !starts) {
        free(places);
        free(starts);
        return pace_fail(log, PACE_FAILED, "out of memory: a model of %u features", count);
    }
    uint32_t *sorted = sort_places(places, places + count, ids, count, starts);

    if (sorted != places) /* it is freed by its beginning */
        memcpy(places, sorted, count * sizeof *places);
    free(starts);
    *order = places;
    return PACE_OK;
}

pace_status pace__ids_order_all(const pace__origin *origin, uint32_t own, uint32_t **order,
                                const pace_log *log)
{
    size_t count = (size_t)own + origin->carried;

    if (origin->carried == 0)
        return pace__ids_order(origin->original, own, order, log);
    uint64_t *ids = malloc(count * sizeof *ids);

    assert(count < UINT32_MAX - 1);
    if (!ids)
        return pace_fail(log, PACE_FAILED, "out of memory: a model of %zu features", count);
    memcpy(ids, origin->original, own * sizeof *ids);
    memcpy(ids + own, origin->carried_ids, origin->carried * sizeof *ids);
    pace_status status = pace__ids_order(ids, (uint32_t)count, order, log);

    free(ids);
    return status;
}

pace_status pace__ids_check(const uint64_t *ids, uint32_t count, uint64_t features, const char *path,
                            const pace_log *log)
{
    for (uint32_t i = 1; i < count; i++) {
        if (ids[i] <= ids[i - 1])
            return pace_fail(log, PACE_BAD_DATA, "%s: damaged: ids do not rise at entry %u", path, i);
    }
    if (count > 0 && ids[count - 1] >= features)
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged: id %llu is beyond its %llu features", path,
                         (unsigned long long)ids[count - 1], (unsigned long long)features);
    return PACE_OK;
}
