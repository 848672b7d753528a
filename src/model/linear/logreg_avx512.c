/*
 * The kernels for rows of columns with all values 1, under AdaGrad: parameters are {weight, squared-gradient
 * sum} pairs of 8 bytes; in a view, which is only read, they are the weights alone.
 *
 * Parameters are read and written one by one: gather and scatter were measured at twice the time, because a
 * gather costs more than the loads it stands for and cannot be fed by a store that is still on its way, and
 * frequent ids are updated by nearly every row. What is the same for 16 rows is done in vectors. Each kernel
 * has its plain twin in logreg.c.
 */
#include "model/linear/logreg.h"

#include <immintrin.h>

/* Rows ahead of the one being summed whose cold parameters are fetched. */
#define PREFETCH_ROWS 32
#define GROUPS_MAX    (PACE__FAST_COLUMNS_MAX / PACE__GROUP_COLUMNS)

static __mmask16 mask16(size_t lanes)
{
    return lanes >= 16 ? 0xffff : (__mmask16)((1u << lanes) - 1);
}

/* Where `width` is an argument it is a constant. Functions that do nothing but prefetch have to be inlined at
 * once: left to itself GCC finds first that they change nothing, and drops the calls. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

ALWAYS_INLINE __m128 weight_at(const float *parameters, size_t width, uint32_t id)
{
    return _mm_load_ss(parameters + width * id);
}

ALWAYS_INLINE void prefetch_row(const float *parameters, size_t width, const pace__stripe *stripe,
                                const uint32_t *ids)
{
    for (uint32_t i = 0; i < stripe->cold_count; i++)
        _mm_prefetch((const char *)(parameters + width * ids[stripe->cold[i]]), _MM_HINT_T0);
}

/* The ids that prefetch_row will read later. Another thread has put them there: they may be in its cache. */
ALWAYS_INLINE void prefetch_ids(const uint32_t *ids, const pace__stripe *stripe)
{
    for (uint32_t column = stripe->column_first; column < stripe->column_last; column += 16)
        _mm_prefetch((const char *)(ids + column), _MM_HINT_T0);
}

/* A row's sums by group, into column `row` of sums. */
ALWAYS_INLINE void sum_groups(const float *parameters, size_t width, const uint32_t *ids, const uint32_t *end,
                              float *sums)
{
    for (; ids + PACE__GROUP_COLUMNS <= end; ids += PACE__GROUP_COLUMNS, sums += PACE__BLOCK_ROWS) {
        __m128 left = _mm_add_ss(weight_at(parameters, width, ids[0]), weight_at(parameters, width, ids[1]));
        __m128 right = _mm_add_ss(weight_at(parameters, width, ids[2]), weight_at(parameters, width, ids[3]));

        _mm_store_ss(sums, _mm_add_ss(left, right));
    }
    if (ids == end)
        return;
    /* The last, short group, added up in the same order. */
    __m128 left = weight_at(parameters, width, ids[0]);

    if (end - ids > 1)
        left = _mm_add_ss(left, weight_at(parameters, width, ids[1]));
    if (end - ids > 2)
        left = _mm_add_ss(left, weight_at(parameters, width, ids[2]));
    _mm_store_ss(sums, left);
}

/* sums[group][i]: of row first + i. */
ALWAYS_INLINE void sum_rows(const pace__logreg *model, size_t width, const pace__rows *rows, size_t first,
                            size_t count, const pace__stripe *stripe, float sums[][PACE__BLOCK_ROWS])
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t *ids = rows->ids + (first + i) * model->columns;

        if (first + i + PREFETCH_ROWS < rows->rows) {
            const uint32_t *ahead = ids + (size_t)PREFETCH_ROWS * model->columns;

            prefetch_row(model->parameters, width, stripe, ahead);
            prefetch_ids(ahead + (size_t)PREFETCH_ROWS * model->columns, stripe);
        }
        sum_groups(model->parameters, width, ids + stripe->column_first, ids + stripe->column_last,
                   &sums[0][i]);
    }
}

void pace__dots_avx512(const pace__logreg *model, const pace__rows *rows, size_t first, size_t count,
                       const pace__stripe *stripe, int64_t *dots)
{
    const __m512 most = _mm512_set1_ps(PACE__GROUP_MAX), least = _mm512_set1_ps(-PACE__GROUP_MAX);
    const __m512 unit = _mm512_set1_ps(1 / PACE__DOT_UNIT);
    _Alignas(64) float sums[GROUPS_MAX][PACE__BLOCK_ROWS];
    uint32_t groups =
        (stripe->column_last - stripe->column_first + PACE__GROUP_COLUMNS - 1) / PACE__GROUP_COLUMNS;

    if (model->optim.width == 1)
        sum_rows(model, 1, rows, first, count, stripe, sums);
    else
        sum_rows(model, 2, rows, first, count, stripe, sums);
    for (size_t start = 0; start < count; start += 16) {
        __mmask16 mask = mask16(count - start);
        __m512i whole = _mm512_setzero_si512();

        for (uint32_t group = 0; group < groups; group++) {
            __m512 sum = _mm512_maskz_load_ps(mask, &sums[group][start]);

            sum = _mm512_min_ps(_mm512_max_ps(sum, least), most); /* no number: the second, as in quantise */
            whole = _mm512_add_epi32(whole, _mm512_cvtps_epi32(_mm512_mul_ps(sum, unit)));
        }
        _mm512_mask_storeu_epi64(dots + start, (__mmask8)mask,
                                 _mm512_cvtepi32_epi64(_mm512_castsi512_si256(whole)));
        _mm512_mask_storeu_epi64(dots + start + 8, (__mmask8)(mask >> 8),
                                 _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(whole, 1)));
    }
}

/* exp(x) for x <= 0, relative error below 2e-7. */
static inline __m512 exp_negative(__m512 x)
{
    x = _mm512_max_ps(x, _mm512_set1_ps(-87.0f));
    __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)),
                                    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
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

double pace__gradient_avx512(const pace__rows *rows, size_t first, size_t count, const int64_t *dots,
                             float *gradient)
{
    const __m512 one = _mm512_set1_ps(1), zero = _mm512_setzero_ps();
    __m512 loss = zero;

    for (size_t start = 0; start < count; start += 16) {
        size_t left = count - start;
        __mmask16 mask = mask16(left);
        __m512i low = _mm512_maskz_loadu_epi64((__mmask8)mask, dots + start);
        __m512i high = _mm512_maskz_loadu_epi64((__mmask8)(mask >> 8), dots + start + 8);
        __m512 z = _mm512_mul_ps(
            _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtepi64_ps(low)), _mm512_cvtepi64_ps(high), 1),
            _mm512_set1_ps(PACE__DOT_UNIT));
        __m128i bytes = _mm_maskz_loadu_epi8(mask, rows->label + first + start);
        __m512 label = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
        __m512 small = exp_negative(_mm512_sub_ps(zero, _mm512_abs_ps(z)));
        __m512 above = _mm512_div_ps(one, _mm512_add_ps(one, small));
        __mmask16 positive = _mm512_cmp_ps_mask(z, zero, _CMP_GE_OQ);
        __m512 p = _mm512_mask_blend_ps(positive, _mm512_mul_ps(small, above), above);

        _mm512_mask_storeu_ps(gradient + start, mask, _mm512_sub_ps(p, label));
        __m512 each =
            _mm512_add_ps(log1p_unit(small), _mm512_sub_ps(_mm512_max_ps(z, zero), _mm512_mul_ps(label, z)));

        loss = _mm512_mask_add_ps(loss, mask, loss, each);
    }
    return (double)_mm512_reduce_add_ps(loss);
}

static inline __m128d two_pairs(const double *pairs, const uint32_t *ids)
{
    return _mm_loadh_pd(_mm_load_sd(pairs + ids[0]), pairs + ids[1]);
}

static inline void put_two_pairs(double *pairs, const uint32_t *ids, __m128d value)
{
    _mm_storel_pd(pairs + ids[0], value);
    _mm_storeh_pd(pairs + ids[1], value);
}

static inline void update_pair(float *pair, __m128 square, __m128 step)
{
    __m128 sum = _mm_add_ss(square, _mm_load_ss(pair + 1));

    _mm_store_ss(pair + 1, sum);
    _mm_store_ss(pair, _mm_fnmadd_ss(_mm_rsqrt14_ss(sum, sum), step, _mm_load_ss(pair)));
}

void pace__adagrad_avx512(pace__logreg *model, const pace__rows *rows, size_t first, size_t count,
                          const pace__stripe *stripe, const float *gradient)
{
    double *pairs = (double *)model->parameters;
    const __mmask8 weights = 0x55;
    float lr = model->optim.lr;

    for (size_t i = 0; i < count; i++) {
        const uint32_t *row = rows->ids + (first + i) * model->columns, *end = row + stripe->column_last;
        const uint32_t *id = row + stripe->column_first;
        __m256 square = _mm256_maskz_mov_ps((__mmask8)~weights, _mm256_set1_ps(gradient[i] * gradient[i]));
        __m256 step = _mm256_set1_ps(lr * gradient[i]);

        for (; id + 4 <= end; id += 4) {
            __m256 pair = _mm256_castpd_ps(_mm256_insertf128_pd(_mm256_castpd128_pd256(two_pairs(pairs, id)),
                                                                two_pairs(pairs, id + 2), 1));

            pair = _mm256_add_ps(pair, square);
            __m256 root = _mm256_movehdup_ps(_mm256_rsqrt14_ps(pair));

            pair = _mm256_mask3_fnmadd_ps(step, root, pair, weights);
            put_two_pairs(pairs, id, _mm256_castpd256_pd128(_mm256_castps_pd(pair)));
            put_two_pairs(pairs, id + 2, _mm256_extractf128_pd(_mm256_castps_pd(pair), 1));
        }
        for (; id < end; id++)
            update_pair((float *)(pairs + *id), _mm_set_ss(gradient[i] * gradient[i]),
                        _mm256_castps256_ps128(step));
        if (stripe->index == 0)
            update_pair(model->bias, _mm_set_ss(gradient[i] * gradient[i]), _mm256_castps256_ps128(step));
    }
}
