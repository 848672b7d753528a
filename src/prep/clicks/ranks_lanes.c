/* With an instruction that counts bits; and of some numbers first the places, while their values are on their way. */
#include "lanes/text.h"
#include "prep/clicks/ranks.h"

#define TOGETHER 64

static size_t find(const pace__ranks *ranks, const uint64_t *numbers, size_t count, uint32_t *values)
{
    const pace__ranks own = *ranks; /* nothing that is written can change it */
    const uint32_t *from = own.values, members = own.members;
    size_t others = 0;

    for (size_t begin = 0; begin < count; begin += TOGETHER) {
        size_t end = begin + TOGETHER < count ? begin + TOGETHER : count;

        for (size_t i = begin; i < end; i++) {
            uint64_t later = numbers[i + TOGETHER < count ? i + TOGETHER : i];

            __builtin_prefetch(own.words + (later < own.limit ? later / 64 : 0));
            values[i] = pace__rank_place(&own, numbers[i]);
            __builtin_prefetch(from + values[i]);
        }
        for (size_t i = begin; i < end; i++) {
            others += values[i] == members;
            values[i] = from[values[i]];
        }
    }
    return others;
}

const pace__ranks_kernels PACE__SET(pace__ranks) = {.find = find};
