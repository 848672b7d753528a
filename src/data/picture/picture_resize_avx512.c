#include "data/picture/picture_internal.h"

#include <immintrin.h>

/*
 * 32 results at a time. Two rows are interleaved, so that one instruction multiplies both by their weights and
 * adds; packing puts the halves back into order.
 */
void pace__mix_rows_avx512(const uint8_t *rows, size_t stride, const int16_t *weights, uint32_t taps,
                           uint32_t shift, size_t count, int16_t *line)
{
    __m128i by = _mm_cvtsi32_si128((int)(shift - PACE__LINE_BITS));
    __m512i half = _mm512_set1_epi32(1 << (shift - PACE__LINE_BITS - 1));

    for (size_t done = 0; done < count; done += 32) {
        __mmask32 there = count - done >= 32 ? ~(__mmask32)0 : ((__mmask32)1 << (count - done)) - 1;
        __m512i low = half, high = half;
        const uint8_t *row = rows + done;

        for (uint32_t t = 0; t < taps; t += 2, row += 2 * stride) {
            const uint8_t *next = t + 1 < taps ? row + stride : row;
            __m512i a = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(there, row));
            __m512i b = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(there, next));
            __m512i by_both = _mm512_set1_epi32((uint16_t)weights[t] | weights[t + 1] << 16);

            low = _mm512_add_epi32(low, _mm512_madd_epi16(_mm512_unpacklo_epi16(a, b), by_both));
            high = _mm512_add_epi32(high, _mm512_madd_epi16(_mm512_unpackhi_epi16(a, b), by_both));
        }
        __m512i both = _mm512_packs_epi32(_mm512_sra_epi32(low, by), _mm512_sra_epi32(high, by));

        _mm512_mask_storeu_epi16(line + done, there, both);
    }
}

/* Sixteen results at a time: two taps of each are picked from a window of 64, and multiplied and added. */
void pace__mix_columns_avx512(const pace__resizer *self, uint32_t channels, uint8_t *to)
{
    const pace__taps *columns = &self->columns;
    uint32_t shift = columns->shift + PACE__LINE_BITS, count = columns->to * channels;
    uint32_t pairs = columns->taps / 2;
    const int16_t *packed = self->packed;
    __m512i half = _mm512_set1_epi32(1 << (shift - 1));
    __m128i by = _mm_cvtsi32_si128((int)shift);

    for (uint32_t group = 0; group < self->groups; group++, count -= 16) {
        const int16_t *line = self->line + self->base[group];
        __m512i low = _mm512_loadu_si512(line), high = _mm512_loadu_si512(line + 32), sum = half;

        for (uint32_t pair = 0; pair < pairs; pair++, packed += 64) {
            __m512i picked = _mm512_permutex2var_epi16(low, _mm512_loadu_si512(packed), high);

            sum = _mm512_add_epi32(sum, _mm512_madd_epi16(picked, _mm512_loadu_si512(packed + 32)));
        }
        __mmask16 there = count >= 16 ? 0xffff : (__mmask16)((1u << count) - 1);

        _mm512_mask_cvtepi32_storeu_epi8(to + group * 16, there, _mm512_sra_epi32(sum, by));
    }
}
