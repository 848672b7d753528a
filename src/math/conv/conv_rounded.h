/*
 * conv_rounded.h - convolutions whose operands are rounded to bf16 and whose sums are floats (bf16.h): what conv.h takes for
 * shapes that ask for it.
 *
 * FORWARD and DATA are products of matrices, (pixels, taps x in) x (taps x in, out). A row of pictures is rounded into
 * (lines, columns, channels), with zeros around it; the *patches* that some pixels see are copied from there, each into a
 * line of the first matrix, and stay in the cache. Filters of one tap need no copy. Derivatives of x with stride s are s x s
 * *passes*, each of which computes every s-th pixel of every s-th line from the taps that reach it.
 *
 * WEIGHTS are, for each tap, a product (in, pixels) x (pixels, out) over all rows of a run. x is turned round, so that the
 * pixels of a channel follow each other, with zeros around each picture; a tap is then nothing but another place to begin.
 * With stride s the pixels that a tap meets lie s apart: pictures are laid down as s x s pictures, one for each rest.
 *
 * Packed weights are bf16, of each pass (blocks, inner / 2, 16, 2); derivatives of weights are floats, (blocks, taps, in, 16).
 */
#ifndef MATH_CONV_CONV_ROUNDED_H
#define MATH_CONV_CONV_ROUNDED_H

#include "math/bf16.h"
#include "math/conv/conv.h"

#define PACE__CONV_PASSES 4

/* What is done to floats before they are multiplied: in plain C, and by AVX512_BF16. */
typedef struct pace__conv_packing {
    /* n pixels of 16 channels, to bf16 that are `stride` apart from pixel to pixel. */
    void (*round)(size_t n, const float *from, pace__bf16 *to, size_t stride);
    /* n pixels of 16 channels to pairs, (pixels / 2, 16, 2); with `lead` 1 the first one is the second of its pair, whose
     * other half stays. A second half behind the last is 0. */
    void (*pair)(size_t n, size_t lead, const float *from, pace__bf16 *to);
    /* n pixels of 16 channels, `step` pixels apart, to 16 lines of n that are `stride` apart. */
    void (*turn)(size_t n, const float *from, size_t step, pace__bf16 *to, size_t stride);
    /* `count` times `size` bf16, a multiple of 16, `from_stride` apart. */
    void (*copy)(size_t count, size_t size, const pace__bf16 *from, size_t from_stride, pace__bf16 *to,
                 size_t to_stride);
} pace__conv_packing;

typedef struct pace__conv_pass {
    size_t top, left, step; /* the first pixel of what is computed, and how far the next is */
    size_t height, width;   /* pixels */
    size_t down, across;    /* taps; none: what is computed is 0 */
    size_t from_top,
        from_left;    /* what the first tap of the first pixel sees, in the picture with its margin */
    size_t from_step; /* and how far that of the next pixel is */
    int filter_top, filter_left; /* the first tap in the filter */
    int filter_step;             /* and how far the next is */
    size_t inner;                /* taps x in */
    size_t weights_at;           /* of its packed ones */
} pace__conv_pass;

typedef struct pace__conv_rounded {
    const pace__bf16_kernels *kernels;
    const pace__conv_packing *packing;
    pace__conv_kind kind;
    size_t rows;
    size_t channels, in_channels; /* of the weights */
    size_t kernel, stride, pad_top, pad_left;
    size_t in_blocks, in_height, in_width; /* of what is read; WEIGHTS: of x */
    size_t blocks, height, width;          /* of what is computed; WEIGHTS: of y */
    /* FORWARD, DATA */
    size_t margin;         /* of a picture that is read, on each side */
    size_t lines, columns; /* with it; WEIGHTS: of one of stride x stride pictures */
    size_t depth;          /* bf16 of a pixel */
    unsigned passes;
    pace__conv_pass pass[PACE__CONV_PASSES];
    size_t widest; /* inner of all passes, padded */
    size_t chunk;  /* pixels whose patches are copied at a time */
    /* WEIGHTS */
    size_t inner;  /* pixels of all rows, with those around */
    size_t length; /* bf16 from a channel to the next */
} pace__conv_rounded;

extern const pace__conv_packing pace__conv_packing_plain, pace__conv_packing_v4;

/* Whether it is for such convolutions, and faster. */
bool pace__conv_rounded_suits(const pace__conv_shape *shape, pace__conv_kind kind);
pace__conv_rounded pace__conv_rounded_make(const pace__conv_shape *shape, pace__conv_kind kind);
size_t pace__conv_rounded_packed(const pace__conv_rounded *self);  /* floats */
size_t pace__conv_rounded_scratch(const pace__conv_rounded *self); /* bytes */
void pace__conv_rounded_pack(const pace__conv_rounded *self, const float *weights, float *packed);
void pace__conv_rounded_unpack(const pace__conv_rounded *self, const float *packed, float *weights);
void pace__conv_rounded_compute(const pace__conv_rounded *self, const pace__conv_run *run);

#endif
