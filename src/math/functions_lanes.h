/* functions_lanes.h - those of functions.h in lanes, operation by operation: equal bits. For *_lanes.c only. */
#ifndef MATH_FUNCTIONS_LANES_H
#define MATH_FUNCTIONS_LANES_H

#include "lanes/lanes.h"
#include "math/functions.h"

INLINE floats floats_over_root(floats x, floats n)
{
    floats y = (floats)(PACE__ROOT_GUESS - ((words)n >> 1));

    y = y * (PACE__ROOT_FIRST - n * (y * y));
    return x * y * (PACE__ROOT_SECOND - n * PACE__ROOT_FACTOR * (y * y));
}

INLINE floats floats_exp_negative(floats x)
{
    x = floats_max(x, floats_all(-87));
    floats n = floats_round(x * 1.44269504f);
    floats r = x - n * 0.693359375f + n * 2.12194440e-4f, p = floats_all(1.0f / 720);

    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1;
    p = p * r + 1;
    return p * floats_power_of_2(n);
}

INLINE floats floats_log1p_unit(floats x)
{
    floats s = x / (x + 2), q = s * s, p = floats_all(2.0f / 13);

    p = p * q + 2.0f / 11;
    p = p * q + 2.0f / 9;
    p = p * q + 2.0f / 7;
    p = p * q + 2.0f / 5;
    p = p * q + 2.0f / 3;
    p = p * q + 2;
    return p * s;
}

#endif
