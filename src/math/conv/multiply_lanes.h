/*
 * multiply_lanes.h - the products of matrices that convolutions of our own are made of, on blocks of 16 channels. For
 * *_lanes.c only.
 */
#ifndef MATH_CONV_MULTIPLY_LANES_H
#define MATH_CONV_MULTIPLY_LANES_H

#include "lanes/lanes.h"
#include "math/conv/conv.h"

#include <stdbool.h>

#define BLOCK PACE__CONV_BLOCK
#define PARTS (BLOCK / LANES) /* vectors of a block */

/* Sums that registers hold: PATCHES x 16 of outputs, FILTERS x 16 of derivatives of weights. */
#if LANES == 16
#define PATCHES 12
#define FILTERS 16
#elif LANES == 8
#define PATCHES 6
#define FILTERS 4
#elif LANES_REGISTERS == 32
#define PATCHES 4
#define FILTERS 4
#else
#define PATCHES 2
#define FILTERS 2
#endif

/* to (rows, 16) = the sum over `turns` x `steps` of a (rows) times b (16), or is added to. All but turns is constant. */
typedef struct walk {
    size_t row; /* floats from an element of a to the next */
    size_t steps;
    size_t a_step, a_turn, b_step, b_turn;
} walk;

INLINE void multiply(size_t rows, walk by, size_t turns, const float *a, const float *b, bool adds, float *to)
{
    floats sum[BLOCK][PARTS];

    UNROLL
    for (size_t i = 0; i < rows * PARTS; i++)
        sum[i / PARTS][i % PARTS] = adds ? floats_load(to + i * LANES) : floats_all(0);
    for (size_t turn = 0; turn < turns; turn++, a += by.a_turn, b += by.b_turn) {
        for (size_t step = 0; step < by.steps; step++) {
            floats y[PARTS];

            UNROLL
            for (size_t part = 0; part < PARTS; part++)
                y[part] = floats_load(b + step * by.b_step + part * LANES);
            UNROLL
            for (size_t i = 0; i < rows; i++) {
                floats x = floats_all(a[step * by.a_step + i * by.row]);

                UNROLL
                for (size_t part = 0; part < PARTS; part++)
                    sum[i][part] = floats_fma(x, y[part], sum[i][part]);
            }
        }
    }
    UNROLL
    for (size_t i = 0; i < rows * PARTS; i++)
        floats_store(to + i * LANES, sum[i / PARTS][i % PARTS]);
}

INLINE floats activate(pace__conv_act act, floats x)
{
    /* What is no number stays so. */
    if (act != PACE__CONV_LINEAR)
        x = floats_max(floats_all(0), x);
    return act == PACE__CONV_RELU6 ? floats_min(floats_all(6), x) : x;
}

#endif
