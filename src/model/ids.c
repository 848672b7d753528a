#include "model/ids.h"

#include <stdlib.h>

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
