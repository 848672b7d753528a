/* cpu.h - which kernels this CPU can run. */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include <stdbool.h>

/* Every instruction set that files named *_avx512.c are compiled for. */
static inline bool pace__cpu_has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
}

#endif
