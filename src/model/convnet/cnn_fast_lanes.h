/*
 * cnn_fast_lanes.h - the kernels of cnn_fast_kernels.h in terms of vectors of 16 floats, for the instruction
 * set that the file which includes this is compiled for.
 *
 * Products and sums are not fused, and so the bits are the same for all.
 */
#ifndef MODEL_CONVNET_CNN_FAST_LANES_H
#define MODEL_CONVNET_CNN_FAST_LANES_H

#include "model/convnet/cnn_fast_kernels.h"

#define LANES PACE__CNN_LANES

#ifdef __AVX512F__

#include <immintrin.h>

typedef __m512 v16;

#define load(from)    _mm512_loadu_ps(from)
#define store(to, it) _mm512_storeu_ps(to, it)
/* Past the cache; the locked instruction at the end of a task puts it in order for other threads. */
/* Past the cache; the locked instruction at the end of a task puts it in order for other threads. */
#define stream(to, it) _mm512_stream_ps(to, it)
#define all(value)     _mm512_set1_ps(value)
#define plus(x, y)     _mm512_add_ps(x, y)
#define minus(x, y)    _mm512_sub_ps(x, y)
#define times(x, y)    _mm512_mul_ps(x, y)
#define most(x, y)     _mm512_max_ps(x, y)
#define least(x, y)    _mm512_min_ps(x, y)
#define where_between(x, y, low, high)                                                                       \
    _mm512_maskz_mov_ps(                                                                                     \
        _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(y, low, _CMP_GT_OQ), y, high, _CMP_LT_OQ), x)

#else

typedef struct v16 {
    float at[PACE__CNN_LANES];
} v16;

#define EACH_LANE for (size_t lane = 0; lane < PACE__CNN_LANES; lane++)

static inline v16 load(const float *from)
{
    v16 it;

    EACH_LANE
    it.at[lane] = from[lane];
    return it;
}

static inline void store(float *to, v16 it)
{
    EACH_LANE
    to[lane] = it.at[lane];
}

#define stream(to, it) store(to, it)

static inline v16 all(float value)
{
    v16 it;

    EACH_LANE
    it.at[lane] = value;
    return it;
}

static inline v16 plus(v16 x, v16 y)
{
    EACH_LANE
    x.at[lane] += y.at[lane];
    return x;
}

static inline v16 minus(v16 x, v16 y)
{
    EACH_LANE
    x.at[lane] -= y.at[lane];
    return x;
}

static inline v16 times(v16 x, v16 y)
{
    EACH_LANE
    x.at[lane] *= y.at[lane];
    return x;
}

static inline v16 most(v16 x, v16 y)
{
    EACH_LANE
    x.at[lane] = x.at[lane] > y.at[lane] ? x.at[lane] : y.at[lane];
    return x;
}

static inline v16 least(v16 x, v16 y)
{
    EACH_LANE
    x.at[lane] = x.at[lane] < y.at[lane] ? x.at[lane] : y.at[lane];
    return x;
}

/* x where y is between the two, else 0. */
static inline v16 where_between(v16 x, v16 y, v16 low, v16 high)
{
    EACH_LANE
    x.at[lane] = y.at[lane] > low.at[lane] && y.at[lane] < high.at[lane] ? x.at[lane] : 0;
    return x;
}

#endif

static inline v16 activate(pace__cnn_act act, v16 x)
{
    /* What is no number stays so: of two, these give the second if one is none. */
    if (act != PACE__ACT_NONE)
        x = most(all(0), x);
    return act == PACE__ACT_RELU6 ? least(all(6), x) : x;
}

static inline __attribute__((always_inline)) void apply_as(pace__cnn_act act, size_t n, const float *z,
                                                           const float *scale, const float *shift,
                                                           const float *add, float *y)
{
    v16 a = load(scale), b = load(shift);

    if (add) {
        for (size_t i = 0; i < n * LANES; i += LANES)
            store(y + i, activate(act, plus(plus(times(load(z + i), a), b), load(add + i))));
    } else {
        for (size_t i = 0; i < n * LANES; i += LANES)
            store(y + i, activate(act, plus(times(load(z + i), a), b)));
    }
}

static inline void apply(pace__cnn_act act, size_t n, const float *z, const float *scale, const float *shift,
                         const float *add, float *y)
{
    if (act == PACE__ACT_NONE)
        apply_as(PACE__ACT_NONE, n, z, scale, shift, add, y);
    else if (act == PACE__ACT_RELU)
        apply_as(PACE__ACT_RELU, n, z, scale, shift, add, y);
    else
        apply_as(PACE__ACT_RELU6, n, z, scale, shift, add, y);
}

static inline void add_to(double *sums, v16 values)
{
    float floats[LANES];

    store(floats, values);
    for (size_t lane = 0; lane < LANES; lane++)
        sums[lane] += (double)floats[lane];
}

static inline __attribute__((always_inline)) void moments_as(bool copies, size_t n, const float *z,
                                                             const float *centre, double *sums,
                                                             double *squares, float *to)
{
    v16 middle = load(centre), sum[4] = {all(0), all(0), all(0), all(0)};
    v16 square[4] = {all(0), all(0), all(0), all(0)};
    size_t i = 0;

    for (; i + 4 <= n; i += 4) {
        for (size_t k = 0; k < 4; k++) {
            v16 value = load(z + (i + k) * LANES), x = minus(value, middle);

            if (copies)
                stream(to + (i + k) * LANES, value);
            sum[k] = plus(sum[k], x);
            square[k] = plus(square[k], times(x, x));
        }
    }
    for (; i < n; i++) {
        v16 value = load(z + i * LANES), x = minus(value, middle);

        if (copies)
            stream(to + i * LANES, value);
        sum[0] = plus(sum[0], x);
        square[0] = plus(square[0], times(x, x));
    }
    add_to(sums, plus(plus(sum[0], sum[1]), plus(sum[2], sum[3])));
    add_to(squares, plus(plus(square[0], square[1]), plus(square[2], square[3])));
}

static inline void moments(size_t n, const float *z, const float *centre, double *sums, double *squares,
                           float *to)
{
    if (to == z)
        moments_as(false, n, z, centre, sums, squares, to);
    else
        moments_as(true, n, z, centre, sums, squares, to);
}

static inline __attribute__((always_inline)) void mask_as(pace__cnn_act act, bool more, bool streams,
                                                          const pace__cnn_mask *it)
{
    v16 mean = load(it->mean), sum[2] = {all(0), all(0)}, product[2] = {all(0), all(0)};

    for (size_t i = 0; i < it->n; i++) {
        v16 d = load(it->d_y + i * LANES);

        if (more)
            d = plus(d, load(it->more + i * LANES));
        if (act == PACE__ACT_RELU)
            d = where_between(d, load(it->y + i * LANES), all(0), all(__builtin_inff()));
        else if (act == PACE__ACT_RELU6)
            d = where_between(d, load(it->y + i * LANES), all(0), all(6));
        if (streams)
            stream(it->to + i * LANES, d);
        else
            store(it->to + i * LANES, d);
        sum[i % 2] = plus(sum[i % 2], d);
        product[i % 2] = plus(product[i % 2], times(d, minus(load(it->z + i * LANES), mean)));
    }
    add_to(it->sums, plus(sum[0], sum[1]));
    add_to(it->products, plus(product[0], product[1]));
}

static inline __attribute__((always_inline)) void mask_act(pace__cnn_act act, const pace__cnn_mask *it)
{
    if (it->more)
        mask_as(act, true, false, it);
    else if (it->streams)
        mask_as(act, false, true, it);
    else
        mask_as(act, false, false, it);
}

static inline void mask(const pace__cnn_mask *it)
{
    if (it->act == PACE__ACT_NONE)
        mask_act(PACE__ACT_NONE, it);
    else if (it->act == PACE__ACT_RELU)
        mask_act(PACE__ACT_RELU, it);
    else
        mask_act(PACE__ACT_RELU6, it);
}

static inline void blend(size_t n, const float *d, const float *z, const float *p, const float *q,
                         const float *r, float *to)
{
    v16 of_d = load(p), of_z = load(q), rest = load(r);

    for (size_t i = 0; i < n * LANES; i += LANES)
        store(to + i, plus(plus(times(load(d + i), of_d), times(load(z + i), of_z)), rest));
}

static inline void add(size_t n, const float *from, float *to)
{
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        store(to + i, plus(load(to + i), load(from + i)));
    for (; i < n; i++)
        to[i] += from[i];
}

static inline void mean(size_t n, const float *y, float *means)
{
    v16 sum[2] = {all(0), all(0)};

    for (size_t i = 0; i < n; i++)
        sum[i % 2] = plus(sum[i % 2], load(y + i * LANES));
    store(means, times(plus(sum[0], sum[1]), all(1 / (float)n)));
}

static inline float total(v16 values)
{
    float floats[LANES];

    store(floats, values);
    for (size_t width = LANES / 2; width > 0; width /= 2) {
        for (size_t lane = 0; lane < width; lane++)
            floats[lane] += floats[lane + width];
    }
    return floats[0];
}

static inline float dot(size_t n, const float *x, const float *y)
{
    v16 sum[4] = {all(0), all(0), all(0), all(0)};
    size_t i = 0;
    float rest = 0;

    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        for (size_t k = 0; k < 4; k++)
            sum[k] = plus(sum[k], times(load(x + i + k * LANES), load(y + i + k * LANES)));
    }
    for (; i + LANES <= n; i += LANES)
        sum[0] = plus(sum[0], times(load(x + i), load(y + i)));
    for (; i < n; i++)
        rest += x[i] * y[i];
    return total(plus(plus(sum[0], sum[1]), plus(sum[2], sum[3]))) + rest;
}

static inline void head(size_t rows, size_t features, size_t outputs, const float *x, const float *weights,
                        const float *bias, float *logits)
{
    for (size_t row = 0; row < rows; row++) {
        for (size_t output = 0; output < outputs; output++)
            logits[row * outputs + output] =
                bias[output] + dot(features, x + row * features, weights + output * features);
    }
}

/* A strip of 64 columns of the sums stays in registers. */
static inline void head_strip(size_t rows, size_t features, size_t outputs, const float *x, const float *d,
                              float *sums)
{
    v16 sum[4] = {all(0), all(0), all(0), all(0)};

    for (size_t row = 0; row < rows; row++) {
        v16 factor = all(d[row * outputs]);

        for (size_t k = 0; k < 4; k++)
            sum[k] = plus(sum[k], times(factor, load(x + row * features + k * LANES)));
    }
    for (size_t k = 0; k < 4; k++)
        store(sums + k * LANES, sum[k]);
}

static inline void head_back(size_t rows, size_t features, size_t outputs, size_t first, size_t count,
                             const float *x, const float *d, float *sums)
{
    for (size_t output = 0; output < outputs; output++) {
        float *to = sums + output * features;
        size_t i = first, last = first + count;

        for (; i + 4 * LANES <= last; i += 4 * LANES)
            head_strip(rows, features, outputs, x + i, d + output, to + i);
        for (; i < last; i++) {
            float sum = 0;

            for (size_t row = 0; row < rows; row++)
                sum += d[row * outputs + output] * x[row * features + i];
            to[i] = sum;
        }
    }
}

#define LANE_KERNELS                                                                                         \
    {                                                                                                        \
        apply, moments, mask, blend, add, mean, head, head_back                                              \
    }

#endif
