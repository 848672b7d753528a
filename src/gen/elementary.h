/*
 * elementary.h - exponential, logarithm and normal numbers from IEEE additions, multiplications and divisions
 * alone.
 *
 * The C library's versions differ in their last bits between releases and CPUs. Generated files must not, so
 * everything that decides about a row uses these. Relative error below 1e-13 (log near 1: absolute).
 * 32-bit exponents and unrolled loops let the compiler vectorise callers' loops.
 */
#ifndef GEN_ELEMENTARY_H
#define GEN_ELEMENTARY_H

#include <stdint.h>
#include <string.h>

/* For |x| < 700. */
static inline double pace__portable_exp(double x)
{
    static const double inverse[] = {1.0,         1.0,          1.0 / 2,       1.0 / 6,
                                     1.0 / 24,    1.0 / 120,    1.0 / 720,     1.0 / 5040,
                                     1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800};
    /* Shifted to be positive, so that cutting is rounding and no branch asks for the sign. */
    int32_t twos = (int32_t)(x * 1.4426950408889634 + 1024.5) - 1024;
    /* ln 2 in two parts, the first with trailing zeros: the product with `twos` is exact. */
    double rest = x - (double)twos * 0x1.62e42feep-1 - (double)twos * 0x1.a39ef35793c76p-33;
    double sum = inverse[11];
    uint64_t bits = (uint64_t)(uint32_t)(twos + 1023) << 52;
    double power;

#pragma GCC unroll 16
    for (int i = 10; i >= 0; i--)
        sum = sum * rest + inverse[i];
    memcpy(&power, &bits, sizeof power);
    return sum * power;
}

/* For normal x > 0. */
static inline double pace__portable_log(double x)
{
    uint64_t bits;
    double scaled;

    memcpy(&bits, &x, sizeof bits);
    /* x = scaled * 2^twos with `scaled` within a factor sqrt(2) of 1. */
    int32_t twos = (int32_t)((bits + 0x95f6198000000) >> 52) - 1023;

    bits -= (uint64_t)(uint32_t)twos << 52;
    memcpy(&scaled, &bits, sizeof scaled);
    double t = (scaled - 1) / (scaled + 1), square = t * t, sum = 1.0 / 15;

#pragma GCC unroll 16
    for (int i = 13; i >= 1; i -= 2)
        sum = sum * square + 1.0 / i;
    return 2 * t * sum + (double)twos * 0.69314718055994531;
}

/* Roughly normal with deviation 1: the sum of four even 16-bit numbers, centred and scaled. */
static inline double pace__rough_normal(uint64_t bits)
{
    int64_t sum = (int64_t)((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));

    return (double)(sum - 131070) * (1 / 37837.2);
}

#endif
