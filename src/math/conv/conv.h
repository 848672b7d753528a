/*
 * conv.h - convolutions of rows of pictures, by oneDNN: with gemm.c the one place that calls it; filters of 3 x 3
 * and of 1 x 1 by kernels of our own (winograd.h, pointwise.h).
 *
 * Pictures are stored in blocks of 16 channels, (rows, blocks, height, width, 16) floats; what lies behind
 * the last channel is 0. Only pictures as they come from outside, of one or three channels, are stored
 * plainly: (rows, channels, height, width).
 *
 * Weights are (out, in, kernel, kernel), or (out, 1, kernel, kernel) if depthwise; a convolution packs them
 * into an order of its own. A pace__conv is one of four things to compute, for a fixed number of rows.
 * Several threads may run the same one at once. oneDNN's own threads are not used: whoever runs or creates one
 * has called pace__gemm_alone (gemm.h). Without AVX-512 oneDNN is fast on blocks of 8 channels: then a run
 * takes ours apart, and puts its result together again, in its scratch.
 */
#ifndef MATH_CONV_CONV_H
#define MATH_CONV_CONV_H

#include <paceline/log.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACE__CONV_BLOCK 16 /* channels */

typedef enum pace__conv_kind {
    PACE__CONV_FORWARD, /* y from x */
    PACE__CONV_FUSED,   /* y = act(conv(x) + bias) */
    PACE__CONV_DATA,    /* the derivatives of x from those of y */
    PACE__CONV_WEIGHTS, /* the derivatives of the weights from x and those of y */
} pace__conv_kind;

typedef enum pace__conv_act { PACE__CONV_LINEAR, PACE__CONV_RELU, PACE__CONV_RELU6 } pace__conv_act;

typedef struct pace__conv_shape {
    uint32_t rows;
    uint32_t in_channels, in_height, in_width;
    uint32_t channels, height, width;
    uint32_t kernel, stride;
    uint32_t pad_top, pad_left, pad_bottom, pad_right;
    bool depthwise;
    uint32_t slice; /* depthwise: blocks that a run computes, of one row; 0: all blocks of all rows */
    bool plain;     /* x is (rows, in_channels, in_height, in_width) */
    const struct pace__bf16_kernels
        *bf16; /* x, y and weights are rounded, and multiplied by these; NULL: they are not */
} pace__conv_shape;

typedef struct pace__conv_context pace__conv_context; /* what all convolutions of a team share */
typedef struct pace__conv pace__conv;

pace_status pace__conv_context_create(int threads, const pace_log *log, pace__conv_context **context);
void pace__conv_context_free(pace__conv_context *context); /* after its convolutions; NULL is allowed */

/* `act` is for PACE__CONV_FUSED. */
pace_status pace__conv_create(pace__conv_context *context, const pace__conv_shape *shape,
                              pace__conv_kind kind, pace__conv_act act, const pace_log *log,
                              pace__conv **conv);
void pace__conv_free(pace__conv *conv); /* NULL is allowed */

/* oneDNN's name of what computes it; "winograd", "pointwise", "plain": our own. */
const char *pace__conv_name(const pace__conv *conv);
size_t pace__conv_packed(const pace__conv *conv);  /* floats of packed weights */
size_t pace__conv_scratch(const pace__conv *conv); /* bytes that a run needs beside */

/* One at a time per convolution. `thread` is the caller's number. */
void pace__conv_pack(pace__conv *conv, int thread, const float *weights, float *packed);
void pace__conv_unpack(pace__conv *conv, int thread, const float *packed, float *weights);

/*
 * FORWARD, FUSED: x, weights -> y. DATA: y, weights -> x. WEIGHTS: x, y -> weights. What is computed is
 * overwritten; weights are packed ones, and their derivatives are packed in their own way.
 */
typedef struct pace__conv_run {
    float *x, *y, *weights, *bias; /* bias: (blocks x 16) of FUSED */
    uint32_t block;                /* the first one of a slice: x and y begin there, weights do not */
    void *scratch;                 /* aligned to 64 bytes */
} pace__conv_run;
void pace__conv_compute(pace__conv *conv, int thread, const pace__conv_run *run);

#endif
