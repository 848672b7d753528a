#include "prep/clicks/ranks.h"

static size_t find(const pace__ranks *ranks, const uint64_t *numbers, size_t count, uint32_t *values)
{
    size_t others = 0;

    for (size_t i = 0; i < count; i++) {
        uint32_t place = pace__rank_place(ranks, numbers[i]);

        others += place == ranks->members;
        values[i] = ranks->values[place];
    }
    return others;
}

const pace__ranks_kernels pace__ranks_plain = {.find = find};
