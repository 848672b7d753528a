/*
 * pixels.h - weighted sums of pixels, in integers. For *_lanes.c only.
 *
 * Rows: 2 * LANES neighbouring bytes of two rows, each row by its weight, are added to sums in an order of their own:
 *
 *     row_sums sums = {{half, half}};
 *     row_sums_add(&sums, row, next, weights);                  // sums += row weights[0] + next weights[1]
 *     shorts_store(line, row_sums_shifted(sums, shift));        // in the order of the bytes
 *
 * Columns: a pixel of three colours has 16 bytes of a vector, four ints; the last one means nothing. COLOURS pixels are
 * in two vectors, by turns. Weights are two for each pixel, four times:
 *
 *     ints even = half, odd = half;
 *     even += colours_of(line, places, weights);                    // line[places[i]..] weights[8 i], i 0, 2
 *     odd += colours_of(line, places + 1, weights + 2 * LANES);     // i 1, 3
 *     colours_store(to, even, odd, shift);                          // 3 COLOURS bytes, and two more that mean nothing
 */
#ifndef LANES_PIXELS_H
#define LANES_PIXELS_H

#include "lanes/lanes.h"

typedef struct row_sums {
    ints part[2];
} row_sums;

/* Two weights in each lane. */
INLINE ints weights_all(const int16_t *weights)
{
    int32_t both;

    memcpy(&both, weights, sizeof both);
    return ints_all(both);
}

#if defined __x86_64__
INLINE INTEGERS bytes_widened(const uint8_t *from)
{
#if LANES_BYTES == 64
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)from));
#elif LANES_BYTES == 32
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)from));
#else
    return _mm_cvtepu8_epi16(_mm_loadl_epi64((const void *)from));
#endif
}
#endif

/* x86 multiplies and adds neighbours, so two rows are interleaved. */
INLINE void row_sums_add(row_sums *sums, const uint8_t *row, const uint8_t *next, const int16_t *weights)
{
#if defined __x86_64__
    INTEGERS a = bytes_widened(row), b = bytes_widened(next), by = (INTEGERS)weights_all(weights);

    sums->part[0] += (ints)X86(madd_epi16, X86(unpacklo_epi16, a, b), by);
    sums->part[1] += (ints)X86(madd_epi16, X86(unpackhi_epi16, a, b), by);
#else
    int16x8_t a = vreinterpretq_s16_u16(vmovl_u8(vld1_u8(row)));
    int16x8_t b = vreinterpretq_s16_u16(vmovl_u8(vld1_u8(next)));
    int32x4_t low = vmlal_n_s16((int32x4_t)sums->part[0], vget_low_s16(a), weights[0]);
    int32x4_t high = vmlal_n_s16((int32x4_t)sums->part[1], vget_high_s16(a), weights[0]);

    sums->part[0] = (ints)vmlal_n_s16(low, vget_low_s16(b), weights[1]);
    sums->part[1] = (ints)vmlal_n_s16(high, vget_high_s16(b), weights[1]);
#endif
}

/* What fits 16 bits. */
INLINE shorts row_sums_shifted(row_sums sums, int shift)
{
    ints low = sums.part[0] >> shift, high = sums.part[1] >> shift;

#if defined __x86_64__
    return (shorts)X86(packs_epi32, (INTEGERS)low, (INTEGERS)high);
#else
    return (shorts)vcombine_s16(vqmovn_s32((int32x4_t)low), vqmovn_s32((int32x4_t)high));
#endif
}

/*
 * LANES_PICK: a set can pick 2 * LANES of 4 * LANES shorts by one instruction, so that no lane is left empty: on Zen 4
 * columns take half the time of those by pixels.
 */
#if LANES_BYTES == 64
#define LANES_PICK 1

INLINE shorts shorts_pick(shorts low, shorts high, shorts places)
{
    return (shorts)_mm512_permutex2var_epi16((__m512i)low, (__m512i)places, (__m512i)high);
}

/* Products, of which neighbours are added. */
INLINE ints shorts_dot_pairs(shorts a, shorts b)
{
    return (ints)_mm512_madd_epi16((__m512i)a, (__m512i)b);
}

/* The first `count` lanes, at most LANES, as bytes. */
INLINE void ints_store_bytes_first(uint8_t *to, ints it, size_t count)
{
    _mm512_mask_cvtepi32_storeu_epi8(to, (__mmask16)((1u << count) - 1), (__m512i)it);
}

#else
#define LANES_PICK 0
#define COLOURS    (LANES / 2)

/* The first three shorts at each place by its first weight, and the next three by its second one. */
INLINE ints colours_of(const int16_t *line, const uint32_t *places, const int16_t *weights)
{
#if defined __x86_64__
    const __m128i neighbours = _mm_setr_epi8(0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11, -1, -1, -1, -1);
    INTEGERS by = (INTEGERS)shorts_load(weights);

#if LANES_BYTES == 32
    __m256i both = _mm256_loadu2_m128i((const void *)(line + places[2]), (const void *)(line + places[0]));

    return (ints)_mm256_madd_epi16(_mm256_shuffle_epi8(both, _mm256_broadcastsi128_si256(neighbours)), by);
#else
    __m128i both = _mm_loadu_si128((const void *)(line + places[0]));

    return (ints)_mm_madd_epi16(_mm_shuffle_epi8(both, neighbours), by);
#endif
#else
    int32x4_t first = vmull_n_s16(vld1_s16(line + places[0]), weights[0]);

    return (ints)vmlal_n_s16(first, vld1_s16(line + places[0] + 3), weights[1]);
#endif
}

/* Of sums from 0 to below 256 << shift. */
INLINE void colours_store(uint8_t *to, ints even, ints odd, int shift)
{
    even >>= shift;
    odd >>= shift;
#if defined __x86_64__
    INTEGERS narrow = X86(packs_epi32, (INTEGERS)even, (INTEGERS)odd);
    INTEGERS packed = X86(packus_epi16, narrow, narrow);
    const __m128i dense = _mm_setr_epi8(0, 1, 2, 4, 5, 6, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);

#if LANES_BYTES == 32
    packed = _mm256_shuffle_epi8(packed, _mm256_broadcastsi128_si256(dense));
    _mm_storel_epi64((void *)to, _mm256_castsi256_si128(packed));
    _mm_storel_epi64((void *)(to + 6), _mm256_extracti128_si256(packed, 1));
#else
    _mm_storel_epi64((void *)to, _mm_shuffle_epi8(packed, dense));
#endif
#else
    const uint8x8_t dense = {0, 1, 2, 4, 5, 6, 255, 255};
    uint16x8_t narrow = vcombine_u16(vmovn_u32((uint32x4_t)even), vmovn_u32((uint32x4_t)odd));

    vst1_u8(to, vtbl1_u8(vmovn_u16(narrow), dense));
#endif
}
#endif

#endif
