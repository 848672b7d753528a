/*
 * machine.h - what has another name on every machine, in one place. Kernels that exist several times are not
 * of this sort: cpu.h.
 */
#ifndef BASE_MACHINE_H
#define BASE_MACHINE_H

/*
 * Tells the core that this thread only waits, for tens of nanoseconds, without giving it away. On arm64 `yield`
 * does nothing on most cores; what empties the pipeline takes about as long as `pause`.
 */
static inline void pace__pause(void)
{
#if defined __x86_64__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("isb" ::: "memory");
#endif
}

#if defined __x86_64__
__attribute__((target("avx"))) static inline void pace__zero_upper_halves(void)
{
    __builtin_ia32_vzeroupper();
}
#endif

/*
 * After a library whose AVX code leaves the upper halves of registers in use: on x86-64, SSE code that follows
 * takes twice the time.
 */
static inline void pace__clear_upper_halves(void)
{
#if defined __x86_64__
    if (__builtin_cpu_supports("avx"))
        pace__zero_upper_halves();
#endif
}

#endif
