#include "model/fm/fm.h"

#include "base/random.h"

#include <assert.h>
#include <string.h>

/* Sets these draws apart from all others of the same seed. */
#define FACTORS_STREAM UINT64_C(0x666163746f7273)
/* Small enough that pairs say nothing at first, large enough that their gradients do not vanish. */
#define FIRST_SIZE 0.01

/* One entry's part of the sums over a row. Factors side by side: the compiler makes vectors of them. */
static inline void add_entry(const float *restrict factor, unsigned factors, float value,
                             float *restrict sums, float *restrict squares)
{
    for (unsigned f = 0; f < factors; f++) {
        float product = factor[f] * value;

        sums[f] += product;
        squares[f] += product * product;
    }
}

double pace__fm_logit(const pace__rows *rows, size_t row, const float *weights, unsigned factors, float *sums)
{
    size_t dim = factors + (size_t)1;
    uint64_t at = pace__row_start(rows, row), last = pace__row_start(rows, row + 1);
    float squares[PACE__FM_FACTORS_MAX];
    double linear = 0, pairs = 0;

    assert(factors <= PACE__FM_FACTORS_MAX);
    memset(sums, 0, factors * sizeof *sums);
    memset(squares, 0, factors * sizeof *squares);
    for (; at < last; at++) {
        const float *parameters = weights + rows->ids[at] * dim;
        float value = rows->values ? rows->values[at] : 1;

        linear += (double)parameters[0] * (double)value;
        add_entry(parameters + 1, factors, value, sums, squares);
    }
    for (unsigned f = 0; f < factors; f++)
        pairs += (double)sums[f] * (double)sums[f] - (double)squares[f];
    return linear + pairs / 2;
}

static inline void add_derivatives(const float *restrict factor, unsigned factors, float value,
                                   const float *restrict sums, float step, float *restrict gradient)
{
    for (unsigned f = 0; f < factors; f++)
        gradient[f] += step * (sums[f] - factor[f] * value);
}

void pace__fm_add_gradient(const pace__rows *rows, size_t row, const float *weights, unsigned factors,
                           const float *sums, float slope, float *gradients)
{
    size_t dim = factors + (size_t)1;
    uint64_t at = pace__row_start(rows, row), last = pace__row_start(rows, row + 1);

    for (; at < last; at++) {
        const float *parameters = weights + rows->ids[at] * dim;
        float *gradient = gradients + rows->ids[at] * dim;
        float value = rows->values ? rows->values[at] : 1, step = slope * value;

        gradient[0] += step;
        add_derivatives(parameters + 1, factors, value, sums, step, gradient + 1);
    }
}

double pace__fm_pair(const pace__rows *rows, uint64_t one, uint64_t other, const float *weights,
                     unsigned factors)
{
    size_t dim = factors + (size_t)1;
    const float *left = weights + rows->ids[one] * dim + 1, *right = weights + rows->ids[other] * dim + 1;
    double values = rows->values ? (double)rows->values[one] * (double)rows->values[other] : 1, sum = 0;

    for (unsigned f = 0; f < factors; f++)
        sum += (double)left[f] * (double)right[f];
    return sum * values;
}

void pace__fm_init_factors(int64_t seed, uint64_t key, unsigned factors, float *values)
{
    pace__random random = pace__random_at((uint64_t)seed ^ FACTORS_STREAM, key);

    for (unsigned f = 0; f < factors; f++)
        values[f] = (float)(FIRST_SIZE * pace__random_normal(&random));
}
