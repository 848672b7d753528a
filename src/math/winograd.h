/*
 * winograd.h - convolutions of 3 x 3 filters, stride 1, by Winograd's F(2 x 2, 3 x 3): 16 products for 4 outputs of a
 * channel instead of 36. The way conv.h computes them with all kernels but the plain ones, on blocks of 16 channels.
 *
 * A *patch* is 2 x 2 outputs, and the 4 x 4 inputs that they see. With the matrices A, B, G of Lavin and Gray (2015),
 *
 *     y = A' [(G w G') . (B' x B)] A     for every patch, input and output channel, summed over input channels
 *
 * where . multiplies element by element: for each of the 16 *places* in a patch that is a product of matrices, (patches,
 * in) x (in, out). Derivatives of x are the same thing with filters that are turned; those of the weights are
 * G' [(A y A') . (B' x B)] G, summed over patches. All factors are 0, 1 and 1/2, so that little is lost: errors are
 * about twice those of sums in the usual order.
 */
#ifndef MATH_WINOGRAD_H
#define MATH_WINOGRAD_H

#include "base/cpu.h"
#include "math/conv.h"

typedef struct pace__winograd {
    pace__conv_kind kind;
    pace__conv_act act;
    size_t rows;
    size_t channels, in_channels;          /* of the weights */
    size_t in_blocks, in_height, in_width; /* of what is read; DATA: of the derivatives of y */
    size_t blocks, height, width;          /* of what is computed; WEIGHTS: of the derivatives of y */
    size_t pad_top, pad_left;
    size_t down, across; /* patches of a picture */
    size_t group;        /* patches at a time */
} pace__winograd;

typedef struct pace__winograd_kernels {
    void (*pack)(const pace__winograd *self, const float *weights, float *packed);
    void (*unpack)(const pace__winograd *self, const float *packed, float *weights);
    void (*compute)(const pace__winograd *self, const pace__conv_run *run);
} pace__winograd_kernels;

/* The plain ones are empty: conv_plain.c is what the others are compared with. */
PACE__TABLES(pace__winograd_kernels, pace__winograd)

/* Whether it is for such convolutions, and faster. */
bool pace__winograd_suits(const pace__conv_shape *shape);
pace__winograd pace__winograd_make(const pace__conv_shape *shape, pace__conv_kind kind, pace__conv_act act);
size_t pace__winograd_packed(const pace__winograd *self);  /* floats */
size_t pace__winograd_scratch(const pace__winograd *self); /* bytes */

#define PACE__WINOGRAD_PLACES 16
/* Patches that are multiplied at a time; a group has a multiple of all. */
#define PACE__WINOGRAD_TURN 12

/* Floats from one place to the next: not a multiple of 4096 bytes, whose lines would drive each other out of the cache. */
static inline size_t pace__winograd_stride(const pace__winograd *self, size_t blocks)
{
    return (self->group * blocks + 1) * PACE__CONV_BLOCK;
}

#endif
