/*
 * longs.h - what lanes of 64 bits can do besides C's operators: a lane holds a number, or the up to 8 bytes of a short
 * text, its first byte lowest. For *_lanes.c only.
 *
 * Decisions are arithmetic: GCC 12 makes a detour of comparisons at AVX-512, and the highest bit of `a - b` says as well
 * that a is below b, if both are small.
 */
#ifndef LANES_LONGS_H
#define LANES_LONGS_H

#include "lanes/lanes.h"

/* Longs or doubles in a vector. */
#define LONGS (LANES / 2)

typedef uint32_t half_words __attribute__((vector_size(LANES_BYTES / 2)));
typedef float half_floats __attribute__((vector_size(LANES_BYTES / 2)));

INLINE longs longs_of_words(const uint32_t *from)
{
    half_words it;

    memcpy(&it, from, sizeof it);
    return __builtin_convertvector(it, longs);
}

INLINE uint64_t pace__long_at(const char *from)
{
    uint64_t it;

    memcpy(&it, from, sizeof it);
    return it;
}

/* The 8 bytes at each of LONGS places. By one load each: see doubles_pick. */
INLINE longs longs_pick(const char *from, const uint32_t *places)
{
#define AT(i) pace__long_at(from + places[i])
#if LONGS == 8
    return (longs){AT(0), AT(1), AT(2), AT(3), AT(4), AT(5), AT(6), AT(7)};
#elif LONGS == 4
    return (longs){AT(0), AT(1), AT(2), AT(3)};
#else
    return (longs){AT(0), AT(1)};
#endif
#undef AT
}

/* 0 if `by` is 64 or more; what is above 127 gives rubbish. */
INLINE longs longs_shift_up(longs a, longs by)
{
#if LANES_BYTES > 16
    return (longs)X86(sllv_epi64, (INTEGERS)a, (INTEGERS)by);
#elif defined __x86_64__
    return (longs)_mm_blend_epi16(_mm_sll_epi64((__m128i)a, (__m128i)by),
                                  _mm_sll_epi64((__m128i)a, _mm_unpackhi_epi64((__m128i)by, (__m128i)by)),
                                  0xf0);
#else
    return (longs)vshlq_u64((uint64x2_t)a, (int64x2_t)by);
#endif
}

/* Of the low 32 bits of each lane. */
INLINE longs longs_multiply_low(longs a, longs b)
{
#if defined __x86_64__
    return (longs)X86(mul_epu32, (INTEGERS)a, (INTEGERS)b);
#else
    return (longs)vmull_u32(vmovn_u64((uint64x2_t)a), vmovn_u64((uint64x2_t)b));
#endif
}

/* The highest bit of every lane. */
INLINE unsigned longs_high(longs a)
{
#if LANES_BYTES == 64
    return _mm512_movepi64_mask((__m512i)a);
#elif defined __x86_64__
    return (unsigned)X86(movemask_pd, (doubles)a);
#else
    return (unsigned)(a[0] >> 63 | a[1] >> 63 << 1);
#endif
}

/* The sum of the 8 bytes of every lane. */
INLINE longs longs_sum_bytes(longs a)
{
#if defined __x86_64__
    return (longs)X86(sad_epu8, (INTEGERS)a, (INTEGERS)(longs){0});
#else
    return (longs)vpaddlq_u32(vpaddlq_u16(vpaddlq_u8((uint8x16_t)a)));
#endif
}

/* The number of 8 digits, each a byte from 0 to 9, the first one lowest. Neighbours are joined to 4 numbers below 100,
 * then to 2 below 10,000, then to one. */
INLINE longs longs_join_digits(longs digits)
{
#if defined __x86_64__
    digits = (longs)X86(maddubs_epi16, (INTEGERS)digits, X86(set1_epi16, 1 << 8 | 10));
    digits = (longs)X86(madd_epi16, (INTEGERS)digits, X86(set1_epi32, 1 << 16 | 100));
#else
    digits = (digits & 0x00ff00ff00ff00ff) * 10 + (digits >> 8 & 0x00ff00ff00ff00ff);
    digits = (digits & 0x0000ffff0000ffff) * 100 + (digits >> 16 & 0x0000ffff0000ffff);
#endif
    return longs_multiply_low(digits, longs_all(10000)) + (digits >> 32);
}

/* Of numbers below 2^52: they become the last bits of 2^52 and more. */
INLINE doubles doubles_of_longs(longs a)
{
    return (doubles)(a | 0x4330000000000000) - 0x1p52;
}

/* table[place % 8] of each lane. */
INLINE doubles doubles_of_8(const double *table, longs place)
{
#if LONGS == 8
    return (doubles)_mm512_permutexvar_pd((__m512i)place, _mm512_loadu_pd(table));
#elif LONGS == 4
    place &= 7;
    return (doubles){table[place[0]], table[place[1]], table[place[2]], table[place[3]]};
#else
    place &= 7;
    return (doubles){table[place[0]], table[place[1]]};
#endif
}

#endif
