/*
 * cpu.h - what this CPU can do, and what follows from it for <paceline/kernels.h>.
 *
 * Whoever has kernels of several sets asks for the set in use, and not the CPU. A family of kernels is a table of
 * functions, one in plain C and one for each set (lanes/lanes.h):
 *
 *     PACE__TABLES(pace__scan_kernels, pace__scan)             // in a header; the type has its functions
 *     pace__scan_of(pace_kernels_in_use())->largest(values, count);
 *
 * A new set is a word in <paceline/kernels.h>, a row of the table in cpu.c, a name in PACE__TABLES, and in
 * CMakeLists.txt what files are compiled for, which is what the row has to name.
 */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include <paceline/kernels.h>
#include <stdbool.h>

/* Extensions of the instruction set, as bits. */
typedef enum pace__ability {
    PACE__CPU_SSE42 = 1 << 0,
    PACE__CPU_POPCNT = 1 << 1,
    PACE__CPU_AVX2 = 1 << 2,
    PACE__CPU_BMI = 1 << 3,
    PACE__CPU_BMI2 = 1 << 4,
    PACE__CPU_FMA = 1 << 5,
    PACE__CPU_AVX512F = 1 << 6,
    PACE__CPU_AVX512BW = 1 << 7,
    PACE__CPU_AVX512VL = 1 << 8,
    PACE__CPU_AVX512DQ = 1 << 9,
    PACE__CPU_NEON = 1 << 10,
    /* Beside the sets: math/bf16.h. */
    PACE__CPU_AVX512BF16 = 1 << 11,
    PACE__CPU_AMX_TILE = 1 << 12,
    PACE__CPU_AMX_BF16 = 1 << 13,
} pace__ability;

unsigned pace__cpu_abilities(void);

/* Asks the system for room for tiles, for all threads of this process; false: it has none. Again and again is fine. */
bool pace__cpu_allow_tiles(void);

/* The set for a CPU of these abilities. PACE_USAGE with a message if it cannot run what was asked for. */
pace_status pace__kernels_choose(int asked, unsigned abilities, const pace_log *log, int *kernels);

/* For loops over all sets: PACE_KERNELS_PLAIN to below this. */
#define PACE__KERNELS_END (PACE_KERNELS_NEON + 1)

/* Declares the tables of a family, and name_of(set), which picks one that this program has. */
#if defined __x86_64__
#define PACE__HAS_BF16 1 /* files named *_bf16.c and *_amx.c are part of the program */
#define PACE__TABLES(type, name)                                                                             \
    extern const type name##_plain, name##_v2, name##_v3, name##_v4;                                         \
    static inline const type *name##_of(int kernels)                                                         \
    {                                                                                                        \
        return kernels == PACE_KERNELS_V4   ? &name##_v4                                                     \
               : kernels == PACE_KERNELS_V3 ? &name##_v3                                                     \
               : kernels == PACE_KERNELS_V2 ? &name##_v2                                                     \
                                            : &name##_plain;                                                 \
    }
#elif defined __aarch64__
#define PACE__TABLES(type, name)                                                                             \
    extern const type name##_plain, name##_neon;                                                             \
    static inline const type *name##_of(int kernels)                                                         \
    {                                                                                                        \
        return kernels == PACE_KERNELS_NEON ? &name##_neon : &name##_plain;                                  \
    }
#else
#define PACE__TABLES(type, name)                                                                             \
    extern const type name##_plain;                                                                          \
    static inline const type *name##_of(int kernels)                                                         \
    {                                                                                                        \
        (void)kernels;                                                                                       \
        return &name##_plain;                                                                                \
    }
#endif

#endif
