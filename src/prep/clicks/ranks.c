#include "prep/clicks/ranks.h"

#include <string.h>

void pace__ranks_bring_near(pace__ranks *ranks)
{
    for (uint64_t i = 0; i <= ranks->limit / PACE__RANKS_LINE; i++) {
        pace__rank_line *line = &ranks->lines[i];
        uint32_t left = ranks->members - line->before;

        memcpy(line->near, ranks->values + line->before,
               (left < PACE__RANKS_NEAR ? left : PACE__RANKS_NEAR) * sizeof *line->near);
    }
}

static size_t find(const pace__ranks *ranks, const uint64_t *numbers, size_t count, uint32_t *values)
{
    size_t others = 0;

    for (size_t i = 0; i < count; i++) {
        const uint32_t *at = pace__rank_at(ranks, numbers[i]);

        others += at == &ranks->other;
        values[i] = *at;
    }
    return others;
}

const pace__ranks_kernels pace__ranks_plain = {
    .index = pace__ranks_index, .number = pace__ranks_number, .find = find};
