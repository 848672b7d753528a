/*
 * cnn_fast_kernels.h - the arithmetic between convolutions, once per instruction set; with equal bits.
 *
 * A *plane* is a block of 16 channels of one picture: (n, 16) floats, n pixels, aligned to 64 bytes. Values
 * by channel are 16 floats or doubles.
 */
#ifndef MODEL_CONVNET_CNN_FAST_KERNELS_H
#define MODEL_CONVNET_CNN_FAST_KERNELS_H

#include "base/cpu.h"
#include "model/convnet/cnn.h"

#define PACE__CNN_LANES 16

/* From the derivatives of a unit's y to those in front of its activation. */
typedef struct pace__cnn_mask {
    size_t n;
    pace__cnn_act act;
    const float *d_y;
    const float *more; /* to be added to d_y; NULL: nothing. May be `to` */
    const float *y, *z;
    const float *mean;       /* (16) of z */
    float *to;               /* may be d_y */
    bool streams;            /* past the cache: `to` is read again only when all else has gone through it */
    double *sums, *products; /* (16) the sum of `to`, and of `to` x (z - mean), is added */
} pace__cnn_mask;

typedef struct pace__cnn_kernels {
    /* y = act(scale z + shift [+ add]) */
    void (*apply)(pace__cnn_act act, size_t n, const float *z, const float *scale, const float *shift,
                  const float *add, float *y);
    /* Adds the sum of z - centre, and of its square; copies z. `to` may be z: no copy. */
    void (*moments)(size_t n, const float *z, const float *centre, double *sums, double *squares, float *to);
    void (*mask)(const pace__cnn_mask *it);
    /* to = p d + q z + r; may be d */
    void (*blend)(size_t n, const float *d, const float *z, const float *p, const float *q, const float *r,
                  float *to);
    void (*add)(size_t n, const float *from, float *to); /* (n) floats, any number */
    void (*mean)(size_t n, const float *y, float *means);
    /* Products of a head with few outputs, of rows of `features` floats in any place:
     * logits (rows, outputs) = x weights' + bias. */
    void (*head)(size_t rows, size_t features, size_t outputs, const float *x, const float *weights,
                 const float *bias, float *logits);
    /* Columns first .. first + count of sums (outputs, features) = d' x, d (rows, outputs). */
    void (*head_back)(size_t rows, size_t features, size_t outputs, size_t first, size_t count,
                      const float *x, const float *d, float *sums);
} pace__cnn_kernels;

PACE__TABLES(pace__cnn_kernels, pace__cnn)

#endif
