/*
 * pairs.h - pairs of bf16 (math/bf16.h) in the lanes of `words`, by the instructions of AVX512_BF16. For files named
 * *_bf16.c and *_amx.c only, which are compiled for them on top of v4.
 */
#ifndef LANES_PAIRS_H
#define LANES_PAIRS_H

#include "lanes/lanes.h"

/* sum + the two products of each lane */
INLINE floats pairs_dot(floats sum, words a, words b)
{
    return (floats)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
}

/* The same pair in all lanes. */
INLINE words pairs_all(const uint16_t *pair)
{
    uint32_t both;

    memcpy(&both, pair, sizeof both);
    return words_all(both);
}

INLINE __mmask16 pace__first(size_t count)
{
    return (__mmask16)(count < 16 ? (1u << count) - 1 : 0xffff);
}

/* 16 numbers as floats. */
INLINE floats halves_load(const uint16_t *from)
{
    return (floats)((words)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)from)) << 16);
}

/* 16 numbers of 16 bits, of which the first `count` are there; the others are 0. */
INLINE words halves_load_first(const uint16_t *from, size_t count)
{
    return (words)_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(pace__first(count), from));
}

/* 16 pairs of numbers of a row and the next one, of which the first `count` are there. Rows from `rows` on are 0. */
INLINE words pairs_of_rows(const uint16_t *from, size_t stride, size_t row, size_t rows, size_t count)
{
    words none = {0};
    words first = row < rows ? halves_load_first(from + row * stride, count) : none;
    words second = row + 1 < rows ? halves_load_first(from + (row + 1) * stride, count) : none;

    return first | second << 16;
}

INLINE void words_store_halves(void *low, void *high, words it)
{
    _mm256_storeu_si256(low, _mm512_castsi512_si256((__m512i)it));
    _mm256_storeu_si256(high, _mm512_extracti64x4_epi64((__m512i)it, 1));
}

/* 16 floats, rounded. */
INLINE void halves_store(uint16_t *to, floats from)
{
    _mm256_storeu_si256((void *)to, (__m256i)_mm512_cvtneps_pbh((__m512)from));
}

/* Rows become columns: of 16 x 16. */
INLINE void words_turn(words rows[16])
{
    __m512i a[16], b[16];

    UNROLL
    for (int i = 0; i < 16; i += 2) {
        a[i] = _mm512_unpacklo_epi32((__m512i)rows[i], (__m512i)rows[i + 1]);
        a[i + 1] = _mm512_unpackhi_epi32((__m512i)rows[i], (__m512i)rows[i + 1]);
    }
    UNROLL
    for (int i = 0; i < 16; i += 4) {
        b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
        b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
        b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
        b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
    }
    /* b[4 q + c] has in its quarter k column 4 k + c of rows 4 q to 4 q + 3. */
    UNROLL
    for (int c = 0; c < 4; c++) {
        __m512i low = _mm512_shuffle_i32x4(b[c], b[4 + c], 0x88),
                high = _mm512_shuffle_i32x4(b[c], b[4 + c], 0xdd);
        __m512i low2 = _mm512_shuffle_i32x4(b[8 + c], b[12 + c], 0x88),
                high2 = _mm512_shuffle_i32x4(b[8 + c], b[12 + c], 0xdd);

        rows[c] = (words)_mm512_shuffle_i32x4(low, low2, 0x88);
        rows[8 + c] = (words)_mm512_shuffle_i32x4(low, low2, 0xdd);
        rows[4 + c] = (words)_mm512_shuffle_i32x4(high, high2, 0x88);
        rows[12 + c] = (words)_mm512_shuffle_i32x4(high, high2, 0xdd);
    }
}

/* Two vectors of floats, rounded: pairs of one's numbers with the other's. */
INLINE words pairs_of_floats(floats first, floats second)
{
    static const uint16_t places[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};

    return (words)_mm512_permutexvar_epi16(_mm512_loadu_si512(places),
                                           (__m512i)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first));
}

/* The first `count` of 32 numbers of 16 bits. */
INLINE void halves_store_first(uint16_t *to, words from, size_t count)
{
    _mm512_mask_storeu_epi16(to, count < 32 ? (1u << count) - 1 : UINT32_MAX, (__m512i)from);
}

#endif
