/*
 * text.h - 64 bytes of text at a time, as bits: which of them are tabs, where those are. For *_lanes.c only.
 *
 *     text64 block = text64_load(text + at);                    // 64 bytes, all of which are readable
 *     uint64_t tabs = text64_equal(block, '\t');                // bit i: byte i
 *     end += places_add(end, at, tabs);                         // appends at + i for every bit i
 */
#ifndef LANES_TEXT_H
#define LANES_TEXT_H

#include "lanes/lanes.h"

#define TEXT64_BYTES 64
#define TEXT64_PARTS (TEXT64_BYTES / LANES_BYTES)

typedef struct text64 {
    bytes part[TEXT64_PARTS];
} text64;

INLINE text64 text64_load(const char *from)
{
    text64 it;

    UNROLL
    for (int i = 0; i < TEXT64_PARTS; i++)
        it.part[i] = bytes_load(from + i * LANES_BYTES);
    return it;
}

INLINE void text64_store(char *to, text64 it)
{
    UNROLL
    for (int i = 0; i < TEXT64_PARTS; i++)
        bytes_store(to + i * LANES_BYTES, it.part[i]);
}

/* The highest bit of every byte: of what a comparison gives, or of what is not ASCII. */
INLINE uint64_t text64_high(text64 it)
{
#if LANES_BYTES == 64
    return _mm512_movepi8_mask((__m512i)it.part[0]);
#elif LANES_BYTES == 32
    return (uint32_t)_mm256_movemask_epi8((__m256i)it.part[0]) |
           (uint64_t)(uint32_t)_mm256_movemask_epi8((__m256i)it.part[1]) << 32;
#elif defined __x86_64__
    uint64_t bits = 0;

    UNROLL
    for (int i = 0; i < TEXT64_PARTS; i++)
        bits |= (uint64_t)(uint32_t)_mm_movemask_epi8((__m128i)it.part[i]) << (16 * i);
    return bits;
#else
    /* Each byte keeps the bit of its place among 8; three additions of neighbours bring 8 bytes into one. */
    const uint8x16_t place = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t kept[4];

    for (int i = 0; i < 4; i++)
        kept[i] = vandq_u8((uint8x16_t)(it.part[i] >= 128), place);
    uint8x16_t sums = vpaddq_u8(vpaddq_u8(kept[0], kept[1]), vpaddq_u8(kept[2], kept[3]));

    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)), 0);
#endif
}

/* AVX-512 compares into bits; others into bytes, whose highest bits are taken. (GCC 12 goes from bits to bytes and back
 * if it is left to find that out.) */
#if LANES_BYTES == 64
#define PACE__TEXT64_COMPARE(it, operator, name, byte)                                                       \
    return _mm512_##name##_epu8_mask((__m512i)(it).part[0], _mm512_set1_epi8((char)(byte)))
#else
#define PACE__TEXT64_COMPARE(it, operator, name, byte)                                                       \
    UNROLL                                                                                                   \
    for (int i = 0; i < TEXT64_PARTS; i++)                                                                   \
        (it).part[i] = (bytes)((it).part[i] operator bytes_all((uint8_t)(byte)));                            \
    return text64_high(it)
#endif

INLINE uint64_t text64_equal(text64 it, char byte)
{
    PACE__TEXT64_COMPARE(it, ==, cmpeq, byte);
}

/* As unsigned numbers. */
INLINE uint64_t text64_up_to(text64 it, uint8_t byte)
{
    PACE__TEXT64_COMPARE(it, <=, cmple, byte);
}

INLINE uint64_t text64_from(text64 it, uint8_t byte)
{
    PACE__TEXT64_COMPARE(it, >=, cmpge, byte);
}

/* first <= byte <= last. */
INLINE uint64_t text64_between(text64 it, uint8_t first, uint8_t last)
{
    UNROLL
    for (int i = 0; i < TEXT64_PARTS; i++)
        it.part[i] -= bytes_all(first);
    return text64_up_to(it, (uint8_t)(last - first));
}

/* --- bits --- */

/* The lowest `count` bits, at most 64. */
INLINE uint64_t bits_first(uint64_t bits, unsigned count)
{
#ifdef __BMI2__
    return _bzhi_u64(bits, count);
#else
    return count < 64 ? bits & ((UINT64_C(1) << count) - 1) : bits;
#endif
}

/* Those of `bits` that are set in `mask`, side by side from the lowest on. */
INLINE uint64_t bits_extract(uint64_t bits, uint64_t mask)
{
#ifdef __BMI2__
    return _pext_u64(bits, mask);
#else
    uint64_t extracted = 0;

    for (uint64_t to = 1; mask; mask &= mask - 1, to <<= 1)
        extracted |= bits & mask & -mask ? to : 0;
    return extracted;
#endif
}

/*
 * Appends at + i for every bit i to `places`; returns how many. Stores whole vectors: behind the last place there is
 * room for PLACES_SLACK more.
 */
#define PLACES_SLACK 16

INLINE unsigned places_add(uint32_t *places, uint32_t at, uint64_t bits)
{
    unsigned count = (unsigned)__builtin_popcountll(bits);

#if LANES_BYTES == 64
    __m512i place = _mm512_add_epi32(_mm512_set1_epi32((int)at),
                                     _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));

    UNROLL
    for (unsigned quarter = 0; quarter < 4; quarter++) {
        __mmask16 mask = (__mmask16)(bits >> (16 * quarter));

        _mm512_storeu_si512(places, _mm512_maskz_compress_epi32(mask, place));
        places += __builtin_popcount(mask);
        place = _mm512_add_epi32(place, _mm512_set1_epi32(16));
    }
#else
    /* Eight at a time, needed or not: how many there are is hard to foresee. */
    for (unsigned done = 0; done < count; done += 8) {
        UNROLL
        for (unsigned i = 0; i < 8; i++) {
            places[done + i] = at + (unsigned)__builtin_ctzll(bits | UINT64_C(1) << 63);
            bits &= bits - 1;
        }
    }
#endif
    return count;
}

#endif
