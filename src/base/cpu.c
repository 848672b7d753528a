#include "base/cpu.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#if defined __x86_64__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#define V2 (PACE__CPU_SSE42 | PACE__CPU_POPCNT)
#define V3 (V2 | PACE__CPU_AVX2 | PACE__CPU_BMI | PACE__CPU_BMI2 | PACE__CPU_FMA)
#define V4 (V3 | PACE__CPU_AVX512F | PACE__CPU_AVX512BW | PACE__CPU_AVX512VL | PACE__CPU_AVX512DQ)

static const struct {
    const char *name;
    unsigned needs;
} sets[PACE__KERNELS_END] = {
    [PACE_KERNELS_AUTO] = {"auto", 0}, [PACE_KERNELS_PLAIN] = {"plain", 0},
    [PACE_KERNELS_V2] = {"v2", V2},    [PACE_KERNELS_V3] = {"v3", V3},
    [PACE_KERNELS_V4] = {"v4", V4},    [PACE_KERNELS_NEON] = {"neon", PACE__CPU_NEON},
};

/* In the order of their bits. */
static const char *const ability_names[] = {"sse4.2", "popcnt",      "avx2",     "bmi",      "bmi2",
                                            "fma",    "avx512f",     "avx512bw", "avx512vl", "avx512dq",
                                            "neon",   "avx512_bf16", "amx_tile", "amx_bf16"};

#define ABILITIES (sizeof ability_names / sizeof *ability_names)

typedef struct choice {
    uint8_t asked, in_use; /* in_use PACE_KERNELS_AUTO: nothing is settled yet */
} choice;

/* The one thing here that is not constant: written once, by whoever comes first. */
static _Atomic choice chosen;

/* --- what is possible --- */

#if defined __x86_64__
/* Whether the system keeps the state of tiles, which are 17 and 18 of XCR0. */
static bool keeps_tiles(void)
{
    unsigned a, b, c, d, low, high;

    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return false;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low >> 17 & 3) == 3;
}

#endif

/* What GCC 12 has no names for. Asking is slow: a virtual machine leaves its guest for it. */
static unsigned bf16_abilities(void)
{
#if defined __x86_64__
    unsigned a, b, c, d, found = 0;

    if (__get_cpuid_count(7, 1, &a, &b, &c, &d) && a >> 5 & 1 && __builtin_cpu_supports("avx512f"))
        found |= PACE__CPU_AVX512BF16;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && keeps_tiles())
        found |= (d >> 24 & 1 ? PACE__CPU_AMX_TILE : 0u) | (d >> 22 & 1 ? PACE__CPU_AMX_BF16 : 0u);
    return found;
#else
    return 0;
#endif
}

bool pace__cpu_allow_tiles(void)
{
#if defined __x86_64__
    enum { request_permission = 0x1023, tile_data = 18 };

    return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
    return false;
#endif
}

/* What sets of kernels need; known since the program was loaded. */
static unsigned set_abilities(void)
{
#if defined __x86_64__
    return (__builtin_cpu_supports("sse4.2") ? PACE__CPU_SSE42 : 0u) |
           (__builtin_cpu_supports("popcnt") ? PACE__CPU_POPCNT : 0u) |
           (__builtin_cpu_supports("avx2") ? PACE__CPU_AVX2 : 0u) |
           (__builtin_cpu_supports("bmi") ? PACE__CPU_BMI : 0u) |
           (__builtin_cpu_supports("bmi2") ? PACE__CPU_BMI2 : 0u) |
           (__builtin_cpu_supports("fma") ? PACE__CPU_FMA : 0u) |
           (__builtin_cpu_supports("avx512f") ? PACE__CPU_AVX512F : 0u) |
           (__builtin_cpu_supports("avx512bw") ? PACE__CPU_AVX512BW : 0u) |
           (__builtin_cpu_supports("avx512vl") ? PACE__CPU_AVX512VL : 0u) |
           (__builtin_cpu_supports("avx512dq") ? PACE__CPU_AVX512DQ : 0u);
#elif defined __aarch64__
    return PACE__CPU_NEON; /* part of the architecture */
#else
    return 0;
#endif
}

unsigned pace__cpu_abilities(void)
{
    return set_abilities() | bf16_abilities();
}

static bool suffice(unsigned abilities, int kernels)
{
    return (sets[kernels].needs & ~abilities) == 0;
}

bool pace_kernels_run(int kernels)
{
    return suffice(set_abilities(), kernels);
}

/* "avx2 bmi2 fma" */
static void list_abilities(unsigned abilities, char *text, size_t size)
{
    size_t used = 0;

    snprintf(text, size, "none of them");
    for (size_t i = 0; i < ABILITIES; i++) {
        if (abilities >> i & 1)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " " : "", ability_names[i]);
    }
}

static pace_status refuse(int asked, unsigned abilities, const pace_log *log)
{
    unsigned needs = sets[asked].needs;
    char needed[160], has[160];

    list_abilities(needs, needed, sizeof needed);
    list_abilities(needs & abilities, has, sizeof has);
    return pace_fail(log, PACE_USAGE,
                     "this CPU cannot run the kernels %s: they need %s, and it has %s; --kernels auto takes "
                     "the best that it can run",
                     sets[asked].name, needed, has);
}

pace_status pace__kernels_choose(int asked, unsigned abilities, const pace_log *log, int *kernels)
{
    int best = PACE__KERNELS_END - 1;

    assert(asked >= 0 && asked < PACE__KERNELS_END);
    if (!suffice(abilities, asked))
        return refuse(asked, abilities, log);
    while (!suffice(abilities, best))
        best--;
    *kernels = asked == PACE_KERNELS_AUTO ? best : asked;
    return PACE_OK;
}

/* --- what was chosen --- */

pace_status pace_kernels_use(int kernels, const pace_log *log)
{
    int set = PACE_KERNELS_PLAIN;
    pace_status status = pace__kernels_choose(kernels, pace__cpu_abilities(), log, &set);

    if (status)
        return status;
    choice before = {0}, wanted = {.asked = (uint8_t)kernels, .in_use = (uint8_t)set};

    if (!atomic_compare_exchange_strong(&chosen, &before, wanted) && before.in_use != set)
        return pace_fail(log, PACE_USAGE,
                         "this process computes with the kernels %s already: %s must be asked for before "
                         "anything else",
                         sets[before.in_use].name, sets[kernels].name);
    return PACE_OK;
}

int pace_kernels_in_use(void)
{
    choice now = atomic_load_explicit(&chosen, memory_order_relaxed);

    if (now.in_use == PACE_KERNELS_AUTO) {
        pace_kernels_use(PACE_KERNELS_AUTO, NULL); /* or someone else was first: good, too */
        now = atomic_load(&chosen);
    }
    return now.in_use;
}

int pace_kernels_asked(void)
{
    choice now = atomic_load(&chosen);

    return now.asked;
}

const char *pace_kernels_name(int kernels)
{
    assert(kernels >= 0 && kernels < PACE__KERNELS_END);
    return sets[kernels].name;
}
