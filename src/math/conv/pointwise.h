/*
 * pointwise.h - convolutions of 1 x 1, stride 1: products of matrices, (pixels, in) x (in, out), that conv.h takes
 * where oneDNN would want other blocks, with all kernels but the plain ones. They read and write ours as they lie.
 */
#ifndef MATH_CONV_POINTWISE_H
#define MATH_CONV_POINTWISE_H

#include "base/cpu.h"
#include "math/conv/conv.h"

typedef struct pace__pointwise {
    pace__conv_kind kind;
    pace__conv_act act;
    size_t rows, pixels;
    size_t channels, in_channels; /* of the weights */
    size_t blocks, in_blocks;     /* of what is computed and what is read; WEIGHTS: of y and x */
} pace__pointwise;

typedef struct pace__pointwise_kernels {
    void (*compute)(const pace__pointwise *self, const pace__conv_run *run);
} pace__pointwise_kernels;

/* The plain ones are empty: conv_plain.c is what the others are compared with. */
PACE__TABLES(pace__pointwise_kernels, pace__pointwise)

bool pace__pointwise_suits(const pace__conv_shape *shape);
pace__pointwise pace__pointwise_make(const pace__conv_shape *shape, pace__conv_kind kind, pace__conv_act act);
/* Packed weights are (blocks, in, 16). */
size_t pace__pointwise_packed(const pace__pointwise *self);
void pace__pointwise_pack(const pace__pointwise *self, const float *weights, float *packed);
void pace__pointwise_unpack(const pace__pointwise *self, const float *packed, float *weights);

#endif
