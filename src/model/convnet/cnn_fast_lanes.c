#include "lanes/lanes.h"
#include "model/convnet/cnn_fast_kernels.h"

#define WIDTH PACE__CNN_LANES
#define EACH  for (size_t part = 0; part < WIDTH / LANES; part++)

/* 16 channels of a pixel. */
typedef struct block {
    floats at[WIDTH / LANES];
} block;

INLINE block load(const float *from)
{
    block it;

    UNROLL
    EACH it.at[part] = floats_load(from + part * LANES);
    return it;
}

INLINE void store(float *to, block it)
{
    UNROLL
    EACH floats_store(to + part * LANES, it.at[part]);
}

/* Past the cache; the locked instruction at the end of a task puts it in order for other threads. */
INLINE void stream(float *to, block it)
{
    UNROLL
    EACH floats_stream(to + part * LANES, it.at[part]);
}

INLINE block all(float value)
{
    block it;

    UNROLL
    EACH it.at[part] = floats_all(value);
    return it;
}

#define OPERATION(name, expression)                                                                          \
    INLINE block name(block a, block b)                                                                      \
    {                                                                                                        \
        UNROLL                                                                                               \
        EACH                                                                                                 \
        {                                                                                                    \
            floats x = a.at[part], y = b.at[part];                                                           \
                                                                                                             \
            a.at[part] = expression;                                                                         \
        }                                                                                                    \
        return a;                                                                                            \
    }

OPERATION(plus, x + y)
OPERATION(minus, x - y)
OPERATION(times, (x) * (y))
OPERATION(most, floats_max(x, y))
OPERATION(least, floats_min(x, y))

/* x where y is between the two, else 0. */
INLINE block where_between(block x, block y, float low, float high)
{
    UNROLL
    EACH x.at[part] = floats_where((y.at[part] > low) & (y.at[part] < high), x.at[part], floats_all(0));
    return x;
}

INLINE block activate(pace__cnn_act act, block x)
{
    /* What is no number stays so: of two, these give the second if one is none. */
    if (act != PACE__ACT_NONE)
        x = most(all(0), x);
    return act == PACE__ACT_RELU6 ? least(all(6), x) : x;
}

INLINE void apply_as(pace__cnn_act act, bool adds, size_t n, const float *z, const float *scale,
                     const float *shift, const float *add, float *y)
{
    block a = load(scale), b = load(shift);

    for (size_t i = 0; i < n * WIDTH; i += WIDTH) {
        block x = plus(times(load(z + i), a), b);

        store(y + i, activate(act, adds ? plus(x, load(add + i)) : x));
    }
}

INLINE void apply_act(pace__cnn_act act, size_t n, const float *z, const float *scale, const float *shift,
                      const float *add, float *y)
{
    if (add)
        apply_as(act, true, n, z, scale, shift, add, y);
    else
        apply_as(act, false, n, z, scale, shift, add, y);
}

static void apply(pace__cnn_act act, size_t n, const float *z, const float *scale, const float *shift,
                  const float *add, float *y)
{
    if (act == PACE__ACT_NONE)
        apply_act(PACE__ACT_NONE, n, z, scale, shift, add, y);
    else if (act == PACE__ACT_RELU)
        apply_act(PACE__ACT_RELU, n, z, scale, shift, add, y);
    else
        apply_act(PACE__ACT_RELU6, n, z, scale, shift, add, y);
}

/* Sums of pixels: those of even and of odd number apart, so that an addition need not wait for the one before. */
typedef struct sums {
    block one[2], other[2];
} sums;

INLINE sums nothing(void)
{
    return (sums){{all(0), all(0)}, {all(0), all(0)}};
}

INLINE void add_block(double *to, block values)
{
    float one_by_one[WIDTH];

    store(one_by_one, values);
    for (size_t lane = 0; lane < WIDTH; lane++)
        to[lane] += (double)one_by_one[lane];
}

INLINE void add_sums(const sums *from, double *one, double *other)
{
    add_block(one, plus(from->one[0], from->one[1]));
    add_block(other, plus(from->other[0], from->other[1]));
}

INLINE void moments_of(bool copies, const float *z, block middle, float *to, sums *into, int side)
{
    block value = load(z), x = minus(value, middle);

    if (copies)
        stream(to, value);
    into->one[side] = plus(into->one[side], x);
    into->other[side] = plus(into->other[side], times(x, x));
}

INLINE void moments_as(bool copies, size_t n, const float *z, const float *centre, double *all_sums,
                       double *squares, float *to)
{
    block middle = load(centre);
    sums into = nothing();
    size_t i = 0;

    for (; i + 2 <= n; i += 2) {
        moments_of(copies, z + i * WIDTH, middle, to + i * WIDTH, &into, 0);
        moments_of(copies, z + (i + 1) * WIDTH, middle, to + (i + 1) * WIDTH, &into, 1);
    }
    if (i < n)
        moments_of(copies, z + i * WIDTH, middle, to + i * WIDTH, &into, 0);
    add_sums(&into, all_sums, squares);
}

static void moments(size_t n, const float *z, const float *centre, double *all_sums, double *squares,
                    float *to)
{
    if (to == z)
        moments_as(false, n, z, centre, all_sums, squares, to);
    else
        moments_as(true, n, z, centre, all_sums, squares, to);
}

INLINE void mask_of(pace__cnn_act act, bool more, bool streams, const pace__cnn_mask *it, size_t i,
                    block mean, sums *into, int side)
{
    block d = load(it->d_y + i * WIDTH);

    if (more)
        d = plus(d, load(it->more + i * WIDTH));
    if (act != PACE__ACT_NONE)
        d = where_between(d, load(it->y + i * WIDTH), 0, act == PACE__ACT_RELU ? __builtin_inff() : 6);
    if (streams)
        stream(it->to + i * WIDTH, d);
    else
        store(it->to + i * WIDTH, d);
    into->one[side] = plus(into->one[side], d);
    into->other[side] = plus(into->other[side], times(d, minus(load(it->z + i * WIDTH), mean)));
}

INLINE void mask_as(pace__cnn_act act, bool more, bool streams, const pace__cnn_mask *it)
{
    block mean = load(it->mean);
    sums into = nothing();
    size_t i = 0;

    for (; i + 2 <= it->n; i += 2) {
        mask_of(act, more, streams, it, i, mean, &into, 0);
        mask_of(act, more, streams, it, i + 1, mean, &into, 1);
    }
    if (i < it->n)
        mask_of(act, more, streams, it, i, mean, &into, 0);
    add_sums(&into, it->sums, it->products);
}

INLINE void mask_act(pace__cnn_act act, const pace__cnn_mask *it)
{
    if (it->more)
        mask_as(act, true, false, it);
    else if (it->streams)
        mask_as(act, false, true, it);
    else
        mask_as(act, false, false, it);
}

static void mask(const pace__cnn_mask *it)
{
    if (it->act == PACE__ACT_NONE)
        mask_act(PACE__ACT_NONE, it);
    else if (it->act == PACE__ACT_RELU)
        mask_act(PACE__ACT_RELU, it);
    else
        mask_act(PACE__ACT_RELU6, it);
}

static void blend(size_t n, const float *d, const float *z, const float *p, const float *q, const float *r,
                  float *to)
{
    block of_d = load(p), of_z = load(q), rest = load(r);

    for (size_t i = 0; i < n * WIDTH; i += WIDTH)
        store(to + i, plus(plus(times(load(d + i), of_d), times(load(z + i), of_z)), rest));
}

static void add(size_t n, const float *from, float *to)
{
    size_t i = 0;

    for (; i + WIDTH <= n; i += WIDTH)
        store(to + i, plus(load(to + i), load(from + i)));
    for (; i < n; i++)
        to[i] += from[i];
}

static void mean(size_t n, const float *y, float *means)
{
    block sum[2] = {all(0), all(0)};
    size_t i = 0;

    for (; i + 2 <= n; i += 2) {
        sum[0] = plus(sum[0], load(y + i * WIDTH));
        sum[1] = plus(sum[1], load(y + (i + 1) * WIDTH));
    }
    if (i < n)
        sum[0] = plus(sum[0], load(y + i * WIDTH));
    store(means, times(plus(sum[0], sum[1]), all(1 / (float)n)));
}

INLINE float total(block values)
{
    float one_by_one[WIDTH];

    store(one_by_one, values);
    for (size_t width = WIDTH / 2; width > 0; width /= 2) {
        for (size_t lane = 0; lane < width; lane++)
            one_by_one[lane] += one_by_one[lane + width];
    }
    return one_by_one[0];
}

static float dot(size_t n, const float *x, const float *y)
{
    block sum[2] = {all(0), all(0)};
    size_t i = 0;
    float rest = 0;

    for (; i + 2 * WIDTH <= n; i += 2 * WIDTH) {
        sum[0] = plus(sum[0], times(load(x + i), load(y + i)));
        sum[1] = plus(sum[1], times(load(x + i + WIDTH), load(y + i + WIDTH)));
    }
    for (; i + WIDTH <= n; i += WIDTH)
        sum[0] = plus(sum[0], times(load(x + i), load(y + i)));
    for (; i < n; i++)
        rest += x[i] * y[i];
    return total(plus(sum[0], sum[1])) + rest;
}

static void head(size_t rows, size_t features, size_t outputs, const float *x, const float *weights,
                 const float *bias, float *logits)
{
    for (size_t row = 0; row < rows; row++) {
        for (size_t output = 0; output < outputs; output++)
            logits[row * outputs + output] =
                bias[output] + dot(features, x + row * features, weights + output * features);
    }
}

/* A strip of 32 columns of the sums stays in registers. */
static void head_strip(size_t rows, size_t features, size_t outputs, const float *x, const float *d,
                       float *to)
{
    block sum[2] = {all(0), all(0)};

    for (size_t row = 0; row < rows; row++) {
        block factor = all(d[row * outputs]);

        sum[0] = plus(sum[0], times(factor, load(x + row * features)));
        sum[1] = plus(sum[1], times(factor, load(x + row * features + WIDTH)));
    }
    store(to, sum[0]);
    store(to + WIDTH, sum[1]);
}

static void head_back(size_t rows, size_t features, size_t outputs, size_t first, size_t count,
                      const float *x, const float *d, float *into)
{
    for (size_t output = 0; output < outputs; output++) {
        float *to = into + output * features;
        size_t i = first, last = first + count;

        for (; i + 2 * WIDTH <= last; i += 2 * WIDTH)
            head_strip(rows, features, outputs, x + i, d + output, to + i);
        for (; i < last; i++) {
            float sum = 0;

            for (size_t row = 0; row < rows; row++)
                sum += d[row * outputs + output] * x[row * features + i];
            to[i] = sum;
        }
    }
}

const pace__cnn_kernels PACE__SET(pace__cnn) = {apply, moments, mask, blend, add, mean, head, head_back};
