#include "lanes/lanes.h"
#include "math/scan.h"

/* The hardware's own prefetch stops at the end of a page; this one does not. */
#define AHEAD_BYTES 2048
#define TURN        (4 * LANES)

static uint32_t largest_u32(const uint32_t *values, size_t count)
{
    words most[4] = {0};
    uint32_t lanes[LANES], largest = 0;
    size_t i = 0;

    for (; i + TURN <= count; i += TURN) {
        for (size_t at = 0; at < TURN * sizeof *values; at += 64)
            __builtin_prefetch((const char *)(values + i) + AHEAD_BYTES + at);
        UNROLL
        for (size_t k = 0; k < 4; k++)
            most[k] = words_max(most[k], words_load(values + i + k * LANES));
    }
    words_store(lanes, words_max(words_max(most[0], most[1]), words_max(most[2], most[3])));
    for (size_t lane = 0; lane < LANES; lane++)
        largest = lanes[lane] > largest ? lanes[lane] : largest;
    for (; i < count; i++)
        largest = values[i] > largest ? values[i] : largest;
    return largest;
}

const pace__scan_kernels PACE__SET(pace__scan) = {.largest_u32 = largest_u32};
