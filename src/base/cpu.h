/*
 * cpu.h - what this CPU can do, and what follows from it for <paceline/kernels.h>.
 *
 * Whoever has kernels of several sets asks for the set in use, and not the CPU:
 *
 *     return pace_kernels_in_use() == PACE_KERNELS_V4 ? pace__largest_u32_avx512(values, count)
 *                                                     : pace__largest_u32_plain(values, count);
 *
 * A new set is a word in <paceline/kernels.h>, a row of the table in cpu.c and, in CMakeLists.txt, what its
 * files are compiled for, which is what the row has to name. A place that has no kernel of a set takes that
 * of a narrower one.
 */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include <paceline/kernels.h>
#include <stdbool.h>

/* Extensions of the instruction set, as bits. */
typedef enum pace__ability {
    PACE__CPU_AVX2 = 1 << 0,
    PACE__CPU_BMI2 = 1 << 1,
    PACE__CPU_FMA = 1 << 2,
    PACE__CPU_AVX512F = 1 << 3,
    PACE__CPU_AVX512BW = 1 << 4,
    PACE__CPU_AVX512VL = 1 << 5,
    PACE__CPU_AVX512DQ = 1 << 6,
} pace__ability;

unsigned pace__cpu_abilities(void);

/* The set for a CPU of these abilities. PACE_USAGE with a message if it cannot run what was asked for. */
pace_status pace__kernels_choose(int asked, unsigned abilities, const pace_log *log, int *kernels);

/* Whether this CPU can run them, in use or not: for tests that compare kernels. */
bool pace__cpu_runs(int kernels);

#endif
