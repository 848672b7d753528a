/*
 * lanes.h - vectors of the width of one instruction set, so that a kernel is written once and compiled for each.
 *
 * Only for files named *_lanes.c, and headers that only those include. Such a file is compiled once for every set
 * of <paceline/kernels.h> but `plain`, and ends in a table of its functions whose name ends in that of the set:
 *
 *     static double sum(const float *from, size_t count) { ... }
 *     const pace__sum_kernels PACE__SET(pace__sum) = {.sum = sum};       // pace__sum_v3, pace__sum_v4, ...
 *
 * Its header says PACE__TABLES(pace__sum_kernels, pace__sum) (base/cpu.h), where the plain versions are a table, too.
 *
 * Types are named for what is in their lanes: `floats` are LANES of them, which is 4 (v2, neon), 8 (v3) or 16 (v4);
 * `ints` and `words` (unsigned) as many, `longs` (64 bits, unsigned) and `doubles` half as many, `shorts` twice and
 * `bytes` four times as many. Arithmetic, comparisons and shifts are C's operators. A comparison gives -1 or 0 in each
 * lane, of a signed type of the same size; `?:` does not exist: floats_where takes its place. Vectors are as wide as
 * registers and never wider: of something that is always 16 floats long take an array of 16 / LANES of them.
 *
 * 1. Products and sums are fused only by floats_fma, and that only on sets that can (LANES_FUSED): kernels that do
 * without it have the same bits on every set, and can have those of plain C.
 * 2. floats_min(a, b) is a < b ? a : b and floats_max(a, b) is a > b ? a : b, also where one is no number: the second.
 * 3. floats_to_ints rounds to the nearest, ties to even; what does not fit is different on every machine: clamp first.
 * 4. Intrinsics stand in src/lanes and nowhere else (tests/lint/machine).
 */
#ifndef LANES_LANES_H
#define LANES_LANES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined __AVX512BW__
#define PACE__SET(it) it##_v4
#define LANES_FUSED   1
#elif defined __AVX2__
#define PACE__SET(it) it##_v3
#define LANES_FUSED   1
#elif defined __SSE4_2__
#define PACE__SET(it) it##_v2
#define LANES_FUSED   0
#elif defined __aarch64__
#define PACE__SET(it) it##_neon
#define LANES_FUSED   1
#else
#error "a *_lanes.c file is compiled for a set of kernels: see CMakeLists.txt"
#endif

/* A file for which the widest vectors are not the fastest says LANES_32 before it includes this. For v4 it is then compiled
 * as for v3: GCC 12 makes slower code even of the same width where it has AVX-512's instructions to choose from. */
#if defined LANES_32 && defined __AVX512BW__ && !defined __clang__
#pragma GCC target("no-avx512f")
#endif

#if defined __x86_64__
#include <immintrin.h>
#elif defined __aarch64__
#include <arm_neon.h>
#else
#error "there is no set of kernels for this machine: see base/cpu.h"
#endif

#if defined __AVX512BW__ && !defined LANES_32
#define LANES_BYTES 64
#elif defined __AVX2__
#define LANES_BYTES 32
#else
#define LANES_BYTES 16
#endif

/* Floats, ints or words in a vector. */
#define LANES (LANES_BYTES / 4)

/* Vectors that there are registers for. */
#if LANES_BYTES == 64 || defined __aarch64__
#define LANES_REGISTERS 32
#else
#define LANES_REGISTERS 16
#endif

/* GCC drops calls of functions that do nothing but prefetch, and keeps vectors in memory across others. */
#define INLINE static inline __attribute__((always_inline))
/* For loops over the vectors of a tile, whose number is a constant. */
#define UNROLL _Pragma("GCC unroll 16")

typedef float floats __attribute__((vector_size(LANES_BYTES)));
typedef double doubles __attribute__((vector_size(LANES_BYTES)));
typedef int32_t ints __attribute__((vector_size(LANES_BYTES)));
typedef uint32_t words __attribute__((vector_size(LANES_BYTES)));
typedef uint64_t longs __attribute__((vector_size(LANES_BYTES)));
typedef int16_t shorts __attribute__((vector_size(LANES_BYTES)));
typedef uint8_t bytes __attribute__((vector_size(LANES_BYTES)));

/* One instruction of the width of this set: X86(add_ps, a, b); and the type of its integers. */
#if LANES_BYTES == 64
#define X86(name, ...) _mm512_##name(__VA_ARGS__)
#define INTEGERS       __m512i
#elif LANES_BYTES == 32
#define X86(name, ...) _mm256_##name(__VA_ARGS__)
#define INTEGERS       __m256i
#elif defined __x86_64__
#define X86(name, ...) _mm_##name(__VA_ARGS__)
#define INTEGERS       __m128i
#endif

/* --- memory: any alignment --- */

#define PACE__LANES_MEMORY(type)                                                                             \
    INLINE type type##_load(const void *from)                                                                \
    {                                                                                                        \
        type it;                                                                                             \
                                                                                                             \
        memcpy(&it, from, sizeof it);                                                                        \
        return it;                                                                                           \
    }                                                                                                        \
    INLINE void type##_store(void *to, type it)                                                              \
    {                                                                                                        \
        memcpy(to, &it, sizeof it);                                                                          \
    }

PACE__LANES_MEMORY(floats)
PACE__LANES_MEMORY(doubles)
PACE__LANES_MEMORY(ints)
PACE__LANES_MEMORY(words)
PACE__LANES_MEMORY(longs)
PACE__LANES_MEMORY(shorts)
PACE__LANES_MEMORY(bytes)

/* Past the cache, to an aligned place; a locked instruction puts it in order for other threads. */
INLINE void floats_stream(float *to, floats it)
{
#if defined __x86_64__
    X86(stream_ps, to, it);
#else
    floats_store(to, it);
#endif
}

#if LANES_BYTES == 32
/* A window of 8 that begins at place 8 - count has -1 in its first `count` lanes. */
static const int32_t pace__first_lanes[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
#endif

/* The first `count` lanes, at most LANES, and 0 in the others, whose memory is not touched. */
INLINE floats floats_load_first(const float *from, size_t count)
{
#if LANES_BYTES == 64
    return (floats)_mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), from);
#elif LANES_BYTES == 32
    return (floats)_mm256_maskload_ps(from, (__m256i)ints_load(pace__first_lanes + 8 - count));
#else
    floats it = {0};

    memcpy(&it, from, count * sizeof *from);
    return it;
#endif
}

INLINE void floats_store_first(float *to, floats it, size_t count)
{
#if LANES_BYTES == 64
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << count) - 1), (__m512)it);
#elif LANES_BYTES == 32
    _mm256_maskstore_ps(to, (__m256i)ints_load(pace__first_lanes + 8 - count), (__m256)it);
#else
    memcpy(to, &it, count * sizeof *to);
#endif
}

/* LANES elements of an array, by one load each: that is not slower than a gather, and can be fed by stores that are still
 * on their way. */
INLINE words words_pick(const uint32_t *from, const uint32_t *places)
{
#if LANES == 16
    return (words){from[places[0]],  from[places[1]],  from[places[2]],  from[places[3]],
                   from[places[4]],  from[places[5]],  from[places[6]],  from[places[7]],
                   from[places[8]],  from[places[9]],  from[places[10]], from[places[11]],
                   from[places[12]], from[places[13]], from[places[14]], from[places[15]]};
#elif LANES == 8
    return (words){from[places[0]], from[places[1]], from[places[2]], from[places[3]],
                   from[places[4]], from[places[5]], from[places[6]], from[places[7]]};
#else
    return (words){from[places[0]], from[places[1]], from[places[2]], from[places[3]]};
#endif
}

/* Bit i: lane i of a is below that of b. */
INLINE uint64_t words_below(words a, words b)
{
#if LANES == 16
    return _mm512_cmplt_epu32_mask((__m512i)a, (__m512i)b);
#elif defined __x86_64__
    return (unsigned)X86(movemask_ps, (floats)(a < b));
#else
    return vaddvq_u32(vandq_u32((uint32x4_t)(a < b), (uint32x4_t){1, 2, 4, 8}));
#endif
}

/* Bit i: lane i of both is the same. */
INLINE unsigned words_equal(words a, words b)
{
#if LANES == 16
    return _mm512_cmpeq_epi32_mask((__m512i)a, (__m512i)b);
#elif defined __x86_64__
    return (unsigned)X86(movemask_ps, (floats)(a == b));
#else
    return vaddvq_u32(vandq_u32((uint32x4_t)(a == b), (uint32x4_t){1, 2, 4, 8}));
#endif
}

/* LANES / 2 of them; and stores, of the first `count`. */
INLINE doubles doubles_pick(const double *from, const uint32_t *places)
{
#if LANES == 16
    return (doubles){from[places[0]], from[places[1]], from[places[2]], from[places[3]],
                     from[places[4]], from[places[5]], from[places[6]], from[places[7]]};
#elif LANES == 8
    return (doubles){from[places[0]], from[places[1]], from[places[2]], from[places[3]]};
#else
    return (doubles){from[places[0]], from[places[1]]};
#endif
}

#if defined __x86_64__
INLINE __m128d pace__two_doubles(doubles it, int part)
{
#if LANES == 16
    __m128d two = part == 0   ? _mm512_castpd512_pd128(it)
                  : part == 1 ? _mm512_extractf64x2_pd(it, 1)
                  : part == 2 ? _mm512_extractf64x2_pd(it, 2)
                              : _mm512_extractf64x2_pd(it, 3);
#elif LANES == 8
    __m128d two = part == 0 ? _mm256_castpd256_pd128(it) : _mm256_extractf128_pd(it, 1);
#else
    __m128d two = part == 0 ? (__m128d)it : (__m128d){0};
#endif

    /* Who sees where it comes from (GCC 12) turns the whole vector for the second element. */
    __asm__("" : "+x"(two));
    return two;
}
#endif

INLINE void doubles_put(double *to, const uint32_t *places, doubles it, int count)
{
    UNROLL
    for (int i = 0; i < count; i += 2) {
#if defined __x86_64__
        __m128d two = pace__two_doubles(it, i / 2);

        _mm_storel_pd(to + places[i], two);
        if (i + 1 < count)
            _mm_storeh_pd(to + places[i + 1], two);
#else
        to[places[i]] = it[i];
        if (i + 1 < count)
            to[places[i + 1]] = it[i + 1];
#endif
    }
}

/* --- the same in all lanes --- */

INLINE floats floats_all(float value)
{
    return value - (floats){0};
}

INLINE ints ints_all(int32_t value)
{
    return value + (ints){0};
}

INLINE words words_all(uint32_t value)
{
    return value + (words){0};
}

INLINE longs longs_all(uint64_t value)
{
    return value + (longs){0};
}

INLINE bytes bytes_all(uint8_t value)
{
    return value + (bytes){0};
}

/* --- arithmetic that C has no operator for --- */

/* `mask` is the result of a comparison. */
INLINE floats floats_where(ints mask, floats yes, floats no)
{
    return (floats)((mask & (ints)yes) | (~mask & (ints)no));
}

INLINE floats floats_min(floats a, floats b)
{
#if defined __x86_64__
    return (floats)X86(min_ps, a, b);
#else
    return floats_where(a < b, a, b);
#endif
}

INLINE floats floats_max(floats a, floats b)
{
#if defined __x86_64__
    return (floats)X86(max_ps, a, b);
#else
    return floats_where(a > b, a, b);
#endif
}

INLINE words words_max(words a, words b)
{
#if defined __x86_64__
    return (words)X86(max_epu32, (INTEGERS)a, (INTEGERS)b);
#else
    return (words)vmaxq_u32((uint32x4_t)a, (uint32x4_t)b);
#endif
}

INLINE floats floats_sqrt(floats a)
{
#if defined __x86_64__
    return (floats)X86(sqrt_ps, a);
#else
    return (floats)vsqrtq_f32((float32x4_t)a);
#endif
}

/* a b + c, rounded once where the set can, else twice. */
INLINE floats floats_fma(floats a, floats b, floats c)
{
#if LANES_FUSED && defined __x86_64__
    return (floats)X86(fmadd_ps, a, b, c);
#elif LANES_FUSED
    return (floats)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}

INLINE ints floats_to_ints(floats a)
{
#if defined __x86_64__
    return (ints)X86(cvtps_epi32, a);
#else
    return (ints)vcvtnq_s32_f32((float32x4_t)a);
#endif
}

INLINE floats floats_of_ints(ints a)
{
    return __builtin_convertvector(a, floats);
}

/*
 * 1 / a, relative error below 2e-7, for a that is neither 0 nor infinite. AVX-512 has a guess of 14 bits, which one step of
 * Newton's method makes as good as a division in half its time, but for these two, of which it makes no number. What is
 * none stays so.
 */
INLINE floats floats_reciprocal(floats a)
{
#if LANES_BYTES == 64
    floats guess = (floats)_mm512_rcp14_ps((__m512)a);

    return guess * floats_fma(-a, guess, floats_all(2));
#else
    return 1 / a;
#endif
}

/* The nearest whole number, for |a| below 2^22: there 1.5 x 2^23 leaves no fraction. */
INLINE floats floats_round(floats a)
{
    return (a + 12582912.0f) - 12582912.0f;
}

/* 2^a of whole numbers from -126 to 127. */
INLINE floats floats_power_of_2(floats a)
{
    return (floats)((__builtin_convertvector(a, ints) + 127) << 23);
}

/* a 2^n of whole numbers from -126 to 127. */
INLINE floats floats_scale(floats a, floats n)
{
#if LANES_BYTES == 64
    return (floats)_mm512_scalef_ps((__m512)a, (__m512)n);
#else
    return a * floats_power_of_2(n);
#endif
}

/* Bit i: is lane i negative? Of comparisons: is it true? */
INLINE unsigned ints_to_bits(ints a)
{
#if LANES_BYTES == 64
    return _mm512_movepi32_mask((__m512i)a);
#elif LANES_BYTES == 32
    return (unsigned)_mm256_movemask_ps((__m256)a);
#elif defined __x86_64__
    return (unsigned)_mm_movemask_ps((__m128)a);
#else
    return vaddvq_u32((uint32x4_t)((words)a >> 31 << (words){0, 1, 2, 3}));
#endif
}

INLINE floats floats_abs(floats a)
{
    return (floats)((ints)a & INT32_MAX);
}

#endif
