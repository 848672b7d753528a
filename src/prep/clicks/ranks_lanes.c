/* With an instruction that counts bits; lines, and values that do not stand in them, are on their way when their turn comes. */
#include "lanes/lanes.h"
#include "prep/clicks/ranks.h"

#define AHEAD      48
#define VALUES_OFF 16

static size_t find(const pace__ranks *ranks, const uint64_t *numbers, size_t count, uint32_t *values)
{
    const pace__ranks own = *ranks; /* which nothing that is written can change */
    const uint32_t *at[VALUES_OFF];
    size_t others = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t later = numbers[i + AHEAD < count ? i + AHEAD : i];

        __builtin_prefetch(own.lines + (later < own.limit ? later / PACE__RANKS_LINE : 0));
        if (i >= VALUES_OFF)
            values[i - VALUES_OFF] = *at[i % VALUES_OFF];
        at[i % VALUES_OFF] = pace__rank_at(&own, numbers[i]);
        others += at[i % VALUES_OFF] == &own.other;
        __builtin_prefetch(at[i % VALUES_OFF]);
    }
    for (size_t i = count < VALUES_OFF ? 0 : count - VALUES_OFF; i < count; i++)
        values[i] = *at[i % VALUES_OFF];
    return others;
}

const pace__ranks_kernels PACE__SET(pace__ranks) = {
    .index = pace__ranks_index, .number = pace__ranks_number, .find = find};
