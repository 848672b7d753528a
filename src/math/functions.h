/*
 * functions.h - functions of floats with the same bits on every machine: no library and no instruction that estimates has
 * a say in them, only additions, products and divisions, which IEEE 754 defines. functions_lanes.h has the same operations
 * in the same order.
 */
#ifndef MATH_FUNCTIONS_H
#define MATH_FUNCTIONS_H

#include <stdint.h>
#include <string.h>

/*
 * x / sqrt(n), relative error below 6e-7, for n from 2^-100 on; of infinite n no number. A guess by the exponent, and two
 * steps of Newton's method whose constants were chosen so that the errors above and below are equal: 6.5e-4 behind the first.
 */
#define PACE__ROOT_GUESS  UINT32_C(0x5f202c3d)
#define PACE__ROOT_FIRST  2.3935569f
#define PACE__ROOT_SECOND 1.05307632f
#define PACE__ROOT_FACTOR 0.173011706f

static inline float pace__over_root(float x, float n)
{
    uint32_t bits;
    float y;

    memcpy(&bits, &n, sizeof bits);
    bits = PACE__ROOT_GUESS - (bits >> 1);
    memcpy(&y, &bits, sizeof y);
    y = y * (PACE__ROOT_FIRST - n * (y * y));
    return x * y * (PACE__ROOT_SECOND - n * PACE__ROOT_FACTOR * (y * y));
}

/* exp(x) for x <= 0, relative error below 3e-7; of what is below -87, exp(-87). No number becomes exp(-87). */
static inline float pace__exp_negative(float x)
{
    x = x > -87.0f ? x : -87.0f;
    float n = x * 1.44269504f + 12582912.0f - 12582912.0f; /* to the nearest whole number */
    float r = x - n * 0.693359375f + n * 2.12194440e-4f, p = 1.0f / 720;
    uint32_t bits = (uint32_t)((int32_t)n + 127) << 23;
    float scale;

    memcpy(&scale, &bits, sizeof scale);
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1;
    p = p * r + 1;
    return p * scale;
}

/* log(1 + x) for 0 <= x <= 1, from log((1 + s) / (1 - s)) with s = x / (2 + x) <= 1/3: an odd series in s. */
static inline float pace__log1p_unit(float x)
{
    float s = x / (x + 2), q = s * s, p = 2.0f / 13;

    p = p * q + 2.0f / 11;
    p = p * q + 2.0f / 9;
    p = p * q + 2.0f / 7;
    p = p * q + 2.0f / 5;
    p = p * q + 2.0f / 3;
    p = p * q + 2;
    return p * s;
}

#endif
