/*
 * conv_plain.h - the convolutions of conv.h in plain loops, a block of channels at a time.
 *
 * For what oneDNN has only its reference for, which is far slower (derivatives of weights: of grey pictures
 * without AVX-512, of maps of a few pixels with it, too), and which has the same bits; and for everything where
 * the thread sanitizer has to see what is computed.
 *
 * Packed weights are the weights, (out, in, kernel, kernel), and zeros up to a whole block of them. No scratch
 * is needed.
 */
#ifndef MATH_CONV_CONV_PLAIN_H
#define MATH_CONV_CONV_PLAIN_H

#include "base/cpu.h"
#include "math/conv/conv.h"

typedef struct pace__conv_plain {
    pace__conv_shape shape; /* of a run: of the slice, if there are slices */
    pace__conv_kind kind;
    pace__conv_act act;
    uint32_t channels; /* of all slices */
} pace__conv_plain;

pace__conv_plain pace__conv_plain_make(const pace__conv_shape *shape, pace__conv_kind kind,
                                       pace__conv_act act);
size_t pace__conv_plain_packed(const pace__conv_plain *self); /* floats of packed weights */
void pace__conv_plain_pack(const pace__conv_plain *self, const float *weights, float *packed);
void pace__conv_plain_unpack(const pace__conv_plain *self, const float *packed, float *weights);
void pace__conv_plain_compute(const pace__conv_plain *self, const pace__conv_run *run);

/* Derivatives of weights of pictures as they come from outside, with kernels of 3: the loops are slow for so many
 * pixels. */
typedef struct pace__conv_loops {
    void (*weights)(const pace__conv_plain *self, const pace__conv_run *run);
} pace__conv_loops;

PACE__TABLES(pace__conv_loops, pace__conv_loops)

#endif
