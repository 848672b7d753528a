/* The ways of math/bf16.h that can be compared with the plain one here, tiles in C among them. */
#ifndef TESTS_UNIT_BF16_WAYS_H
#define TESTS_UNIT_BF16_WAYS_H

#include "base/cpu.h"
#include "math/bf16.h"

#define WAYS_MAX 3

#if PACE__HAS_BF16
extern const pace__bf16_kernels pace__bf16_tiles_in_c;
#endif

static inline size_t find_ways(const pace__bf16_kernels *ways[WAYS_MAX])
{
    size_t count = 0;

#if PACE__HAS_BF16
    unsigned abilities = pace__cpu_abilities(), tiles = PACE__CPU_AMX_TILE | PACE__CPU_AMX_BF16;

    if (pace_kernels_run(PACE_KERNELS_V4) && abilities & PACE__CPU_AVX512BF16) {
        ways[count++] = pace__bf16_of(PACE__BF16_PAIRS);
        ways[count++] = &pace__bf16_tiles_in_c;
        if ((abilities & tiles) == tiles && pace__cpu_allow_tiles())
            ways[count++] = pace__bf16_of(PACE__BF16_TILES);
    }
#else
    (void)ways;
#endif
    return count;
}

#endif
