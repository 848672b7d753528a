/* The steps of a number's column, from its first values. */
#include "data/guess/sample.h"
#include "data/input/decimal.h"

#include <math.h>
#include <stdlib.h>

/* Whole numbers have steps of 1 up to here. */
#define DIGITS_MAX 7

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return a < b ? -1 : a > b;
}

static bool all_whole(const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (fabs(values[i]) > (double)PACE__SCALE_ORIGIN_MAX || (double)(int64_t)values[i] != values[i])
            return false;
    }
    return true;
}

/* Of the power of ten that is at most `size`, which is not 0. By comparison: logarithms differ between libraries. */
static int exponent_of(double size)
{
    int exponent = 0;

    while (exponent < PACE__POWER_OF_TEN_MAX && size >= pace__power_of_ten[exponent + 1])
        exponent++;
    while (exponent <= 0 && exponent > -PACE__POWER_OF_TEN_MAX && size * pace__power_of_ten[-exponent] < 1)
        exponent--;
    return exponent;
}

static int held(int exponent)
{
    return exponent < -PACE__POWER_OF_TEN_MAX ? -PACE__POWER_OF_TEN_MAX : exponent;
}

/* Nine of ten lie closer together than to 0. */
static bool lie_apart(const double *sorted, size_t count)
{
    double low = sorted[count / 20], high = sorted[count - 1 - count / 20];

    return low < high && ((low > 0 && high < 2 * low) || (high < 0 && low > 2 * high));
}

pace__scale pace__scale_for(double *values, size_t count)
{
    bool whole = all_whole(values, count);
    pace__scale steps = {0};

    if (count == 0)
        return steps;
    qsort(values, count, sizeof *values, by_size);
    bool apart = lie_apart(values, count);
    double origin = apart ? values[count / 2] : 0;
    size_t zeros = 0;

    for (size_t i = 0; i < count; i++) {
        values[i] = fabs(values[i] - origin);
        zeros += values[i] == 0;
    }
    qsort(values, count, sizeof *values, by_size);
    if (zeros == count)
        return steps;
    int largest = exponent_of(values[count - 1]), usual = exponent_of(values[zeros + (count - zeros) / 2]);

    steps.exponent = !whole ? held(usual - 1) : largest >= DIGITS_MAX ? largest - (DIGITS_MAX - 1) : 0;
    double in_steps = pace__sheet_steps(steps, origin);

    if (fabs(in_steps) <= (double)PACE__SCALE_ORIGIN_MAX)
        steps.origin = (int64_t)(in_steps < 0 ? in_steps - 0.5 : in_steps + 0.5);
    return steps;
}
