/* With an instruction that counts bits; and lines are on their way when their turn comes. */
#include "lanes/lanes.h"
#include "prep/clicks/ranks.h"

#define AHEAD 48

static size_t find(const pace__ranks *ranks, const uint64_t *numbers, size_t count, uint32_t *values)
{
    const pace__ranks own = *ranks; /* which nothing that is written can change */
    size_t others = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t later = numbers[i + AHEAD < count ? i + AHEAD : i];

        __builtin_prefetch(own.lines + (later < own.limit ? later / PACE__RANKS_LINE : 0));
        values[i] = pace__rank_value(&own, numbers[i], &others);
    }
    return others;
}

const pace__ranks_kernels PACE__SET(pace__ranks) = {.find = find};
