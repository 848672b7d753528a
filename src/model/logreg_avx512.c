/*
 * The kernels for rows of columns with all values 1, under AdaGrad: parameters are {weight, squared-gradient sum} pairs of 8 bytes.
 *
 * Lanes are columns. Ids of different columns differ, so a vector never holds the same parameter twice, and a row's update can be
 * gathered and scattered whole. Each kernel has its plain twin in logreg.c.
 */
#include "model/logreg.h"

#include <immintrin.h>

/* Rows ahead of the one being summed whose cold parameters are fetched. */
#define PREFETCH_ROWS 48

static __mmask16 mask16(uint32_t lanes)
{
    return lanes >= 16 ? 0xffff : (__mmask16)((1u << lanes) - 1);
}

static __mmask8 mask8(uint32_t lanes)
{
    return lanes >= 8 ? 0xff : (__mmask8)((1u << lanes) - 1);
}

/* One row's products, in units, spread over 16 lanes. */
static inline __m512i row_products(const float *parameters, const uint32_t *ids, uint32_t first, uint32_t last)
{
    const __m512 unit = _mm512_set1_ps(1 / PACE__DOT_UNIT);
    __m512i sum = _mm512_setzero_si512();

    for (uint32_t column = first; column < last; column += 16) {
        __mmask16 mask = mask16(last - column);
        __m512i id = _mm512_maskz_loadu_epi32(mask, ids + column);
        __m512 weight = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, id, parameters, 8);

        sum = _mm512_add_epi32(sum, _mm512_cvtps_epi32(_mm512_mul_ps(weight, unit)));
    }
    return sum;
}

/* The sums over the lanes of 16 vectors, one per lane of the result. */
static inline __m512i sum_each(__m512i v[16])
{
    for (int i = 0; i < 8; i++)
        v[i] = _mm512_add_epi32(_mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]), _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]));
    for (int i = 0; i < 4; i++)
        v[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(v[2 * i], v[2 * i + 1]), _mm512_unpackhi_epi64(v[2 * i], v[2 * i + 1]));
    for (int i = 0; i < 2; i++)
        v[i] = _mm512_add_epi32(_mm512_shuffle_i32x4(v[2 * i], v[2 * i + 1], 0x88),
                                _mm512_shuffle_i32x4(v[2 * i], v[2 * i + 1], 0xdd));
    return _mm512_add_epi32(_mm512_shuffle_i32x4(v[0], v[1], 0x88), _mm512_shuffle_i32x4(v[0], v[1], 0xdd));
}

static inline void prefetch_row(const pace__logreg *model, const pace__rows *rows, size_t row, const pace__share *share)
{
    const uint32_t *ids = rows->ids + row * model->columns;

    for (uint32_t i = 0; i < model->cold_count; i++) {
        uint32_t column = model->cold[i];

        if (column >= share->column_first && column < share->column_last)
            _mm_prefetch((const char *)(model->parameters + 2 * (size_t)ids[column]), _MM_HINT_T0);
    }
}

void pace__dots_avx512(const pace__logreg *model, const pace__rows *rows, size_t first, size_t count, const pace__share *share,
                       int64_t *dots)
{
    for (size_t start = 0; start < count; start += 16) {
        __m512i sums[16];

        for (size_t i = 0; i < 16; i++) {
            size_t row = first + start + i;

            if (row + PREFETCH_ROWS < rows->rows)
                prefetch_row(model, rows, row + PREFETCH_ROWS, share);
            sums[i] = start + i < count ? row_products(model->parameters, rows->ids + row * model->columns,
                                                       share->column_first, share->column_last)
                                        : _mm512_setzero_si512();
        }
        __m512i whole = sum_each(sums);
        size_t left = count - start;
        __mmask8 low = mask8((uint32_t)left), high = left > 8 ? mask8((uint32_t)left - 8) : 0;

        _mm512_mask_storeu_epi64(dots + start, low, _mm512_cvtepi32_epi64(_mm512_castsi512_si256(whole)));
        _mm512_mask_storeu_epi64(dots + start + 8, high, _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(whole, 1)));
    }
}

/* exp(x) for x <= 0, relative error below 2e-7. */
static inline __m512 exp_negative(__m512 x)
{
    x = _mm512_max_ps(x, _mm512_set1_ps(-87.0f));
    __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);

    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
    /* Taylor to the sixth power: |r| <= 0.35. */
    __m512 p = _mm512_set1_ps(1.0f / 720);

    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 120));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 24));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 6));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    return _mm512_scalef_ps(p, n);
}

/* log(1 + x) for 0 <= x <= 1, from log((1 + s) / (1 - s)) with s = x / (2 + x) <= 1/3: an odd series in s. */
static inline __m512 log1p_unit(__m512 x)
{
    __m512 s = _mm512_div_ps(x, _mm512_add_ps(x, _mm512_set1_ps(2.0f)));
    __m512 q = _mm512_mul_ps(s, s), p = _mm512_set1_ps(2.0f / 13);

    p = _mm512_fmadd_ps(p, q, _mm512_set1_ps(2.0f / 11));
    p = _mm512_fmadd_ps(p, q, _mm512_set1_ps(2.0f / 9));
    p = _mm512_fmadd_ps(p, q, _mm512_set1_ps(2.0f / 7));
    p = _mm512_fmadd_ps(p, q, _mm512_set1_ps(2.0f / 5));
    p = _mm512_fmadd_ps(p, q, _mm512_set1_ps(2.0f / 3));
    p = _mm512_fmadd_ps(p, q, _mm512_set1_ps(2.0f));
    return _mm512_mul_ps(p, s);
}

double pace__gradient_avx512(const pace__rows *rows, size_t first, size_t count, const int64_t *dots, float *gradient)
{
    const __m512 one = _mm512_set1_ps(1), zero = _mm512_setzero_ps();
    __m512 loss = zero;

    for (size_t start = 0; start < count; start += 16) {
        size_t left = count - start;
        __mmask16 mask = mask16((uint32_t)left);
        __m512i low = _mm512_maskz_loadu_epi64((__mmask8)mask, dots + start);
        __m512i high = _mm512_maskz_loadu_epi64((__mmask8)(mask >> 8), dots + start + 8);
        __m512 z = _mm512_mul_ps(_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtepi64_ps(low)), _mm512_cvtepi64_ps(high), 1),
                                 _mm512_set1_ps(PACE__DOT_UNIT));
        __m128i bytes = _mm_maskz_loadu_epi8(mask, rows->label + first + start);
        __m512 label = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
        __m512 small = exp_negative(_mm512_sub_ps(zero, _mm512_abs_ps(z)));
        __m512 above = _mm512_div_ps(one, _mm512_add_ps(one, small));
        __mmask16 positive = _mm512_cmp_ps_mask(z, zero, _CMP_GE_OQ);
        __m512 p = _mm512_mask_blend_ps(positive, _mm512_mul_ps(small, above), above);

        _mm512_mask_storeu_ps(gradient + start, mask, _mm512_sub_ps(p, label));
        __m512 each = _mm512_add_ps(log1p_unit(small), _mm512_sub_ps(_mm512_max_ps(z, zero), _mm512_mul_ps(label, z)));

        loss = _mm512_mask_add_ps(loss, mask, loss, each);
    }
    return (double)_mm512_reduce_add_ps(loss);
}

void pace__adagrad_avx512(pace__logreg *model, const pace__rows *rows, size_t first, size_t count, const pace__share *share,
                          const float *gradient)
{
    const __mmask16 weights = 0x5555; /* the even floats of the pairs */
    const __m512 most = _mm512_set1_ps(model->weight_max), least = _mm512_set1_ps(-model->weight_max);
    float *parameters = model->parameters;

    for (size_t i = 0; i < count; i++) {
        const uint32_t *ids = rows->ids + (first + i) * model->columns;
        __m512 square = _mm512_maskz_mov_ps((__mmask16)~weights, _mm512_set1_ps(gradient[i] * gradient[i]));
        __m512 step = _mm512_set1_ps(model->optim.lr * gradient[i]);

        for (uint32_t column = share->column_first; column < share->column_last; column += 8) {
            __mmask8 mask = mask8(share->column_last - column);
            __m256i id = _mm256_maskz_loadu_epi32(mask, ids + column);
            __m512 pair = _mm512_castsi512_ps(_mm512_mask_i32gather_epi64(_mm512_setzero_si512(), mask, id, parameters, 8));

            pair = _mm512_add_ps(pair, square);
            __m512 root = _mm512_movehdup_ps(_mm512_rsqrt14_ps(pair));

            pair = _mm512_mask3_fnmadd_ps(step, root, pair, weights);
            pair = _mm512_mask_min_ps(pair, weights, pair, most);
            pair = _mm512_mask_max_ps(pair, weights, pair, least);
            _mm512_mask_i32scatter_epi64(parameters, mask, id, _mm512_castps_si512(pair), 8);
        }
    }
}
