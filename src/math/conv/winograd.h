/*
 * winograd.h - convolutions of 3 x 3 filters with fewer products, in the way of Winograd: what conv.h takes with all
 * kernels but the plain ones, on blocks of 16 channels.
 *
 * A *patch* is a square of outputs and the square of inputs that they see. In one dimension a patch of x and the filter
 * w are spread over *places*, multiplied there one by one, and gathered:
 *
 *     stride 1    x0 - x2       x1 + x2            x2 - x1            x3 - x1    y0 = m0 + m1 + m2
 *                 w0            (w0 + w1 + w2)/2   (w0 - w1 + w2)/2   w2         y1 = m1 - m2 + m3
 *
 *     stride 2    x0 - x2   x2        x4 - x2   x1   x3                          y0 = m0 + m1 + m3
 *                 w0        w0 + w2   w2        w1   w1                          y1 = m1 + m2 + m4
 *
 * and in two dimensions lines and then columns are: 16 products instead of 36 for four outputs with stride 1, 25 with
 * stride 2. Over all channels and patches each place is a product of matrices, (patches, in) x (in, out).
 *
 * Derivatives of x are a convolution with filters that are turned, with stride 2 one of a form of its own. Those of
 * weights are the whole thing turned round: x spread as before, derivatives of y spread as y is gathered, products
 * summed over patches, and gathered as weights are spread. All factors are 0, 1 and 1/2: little is lost.
 */
#ifndef MATH_CONV_WINOGRAD_H
#define MATH_CONV_WINOGRAD_H

#include "base/cpu.h"
#include "math/bf16.h"
#include "math/conv/conv.h"

typedef enum pace__winograd_form {
    PACE__WINOGRAD_ONE,  /* stride 1 */
    PACE__WINOGRAD_TWO,  /* stride 2 */
    PACE__WINOGRAD_BACK, /* derivatives of x, stride 2 */
} pace__winograd_form;

typedef struct pace__winograd_kernels pace__winograd_kernels;

typedef struct pace__winograd {
    const pace__bf16_kernels
        *rounds; /* what is spread is rounded, and multiplied by these; NULL: it is not */
    const pace__winograd_kernels *wide; /* of weights, before they are rounded */
    pace__conv_kind kind;
    pace__conv_act act;
    pace__winograd_form form;
    size_t rows;
    size_t channels, in_channels;          /* of the weights */
    size_t in_blocks, in_height, in_width; /* of what is read; DATA: of the derivatives of y */
    size_t blocks, height, width;          /* of what is computed; WEIGHTS: of the derivatives of y */
    size_t pad_top, pad_left;
    size_t down, across; /* patches of a picture */
    size_t group;        /* patches at a time */
} pace__winograd;

struct pace__winograd_kernels {
    void (*pack)(const pace__winograd *self, const float *weights, float *packed);
    void (*unpack)(const pace__winograd *self, const float *packed, float *weights);
    void (*compute)(const pace__winograd *self, const pace__conv_run *run);
};

/* The plain ones are empty: conv_plain.c is what the others are compared with. */
PACE__TABLES(pace__winograd_kernels, pace__winograd)

extern const pace__winograd_kernels pace__winograd_rounding; /* where there is PACE__HAS_BF16 */

/* Whether it is for such convolutions, and faster. */
bool pace__winograd_suits(const pace__conv_shape *shape);
pace__winograd pace__winograd_make(const pace__conv_shape *shape, pace__conv_kind kind, pace__conv_act act);
/* Makes it one of bf16, with weights by kernels of floats. */
void pace__winograd_round(pace__winograd *self, const pace__bf16_kernels *rounds,
                          const pace__winograd_kernels *wide);
size_t pace__winograd_packed(const pace__winograd *self);  /* floats */
size_t pace__winograd_scratch(const pace__winograd *self); /* bytes */

/* --- for the kernels --- */

#define PACE__WINOGRAD_TURN                                                                                  \
    12 /* a group has a multiple of so many patches: of what every set multiplies at a time */

/* In one dimension; weights have 4 places, the last one of which is for two. */
static inline size_t pace__winograd_places(pace__winograd_form form)
{
    return form == PACE__WINOGRAD_ONE ? 4 : 5;
}

/* Numbers of bf16 from one patch to the next. */
static inline size_t pace__winograd_depth(size_t blocks)
{
    return pace__bf16_padded(blocks * PACE__CONV_BLOCK);
}

/* Floats from one place to the next: no multiple of 4096 bytes, whose lines would drive each other out of the cache. */
static inline size_t pace__winograd_stride(const pace__winograd *self, size_t blocks)
{
    return (self->group * blocks + 1) * PACE__CONV_BLOCK;
}

#endif
