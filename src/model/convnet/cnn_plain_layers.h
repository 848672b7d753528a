/*
 * cnn_plain_layers.h - what a unit of cnn_plain.c is made of, in plain loops. Arrays are (rows, channels,
 * height, width) of doubles. The backward ones add to what they are given.
 */
#ifndef MODEL_CONVNET_CNN_PLAIN_LAYERS_H
#define MODEL_CONVNET_CNN_PLAIN_LAYERS_H

#include "model/convnet/cnn.h"

/* z of a unit from its input. */
void pace__cnn_plain_conv(const pace__cnn_unit *unit, size_t rows, const double *x, const float *weight,
                          double *z);
/* The way back: d_weight from x and d_z, d_x (or NULL) from weight and d_z. */
void pace__cnn_plain_conv_back(const pace__cnn_unit *unit, size_t rows, const double *x, const float *weight,
                               const double *d_z, double *d_weight, double *d_x);

/* Per channel: the sum of z - offset, or of its square. */
void pace__cnn_plain_sums(const pace__cnn_unit *unit, size_t rows, const double *z, const double *offset,
                          bool squared, double *sums);

/* z becomes (z - mean) / sqrt(variance + epsilon), in place; `scale` the factor, per channel. */
void pace__cnn_plain_normalise(const pace__cnn_unit *unit, size_t rows, const double *mean,
                               const double *scale, double *z);

/* y = act(gamma x_hat + beta [+ added]). */
void pace__cnn_plain_act(const pace__cnn_unit *unit, size_t rows, const double *x_hat, const float *gamma,
                         const float *beta, const double *added, double *y);
/* d_y becomes the derivative of what is inside act, in place. */
void pace__cnn_plain_act_back(const pace__cnn_unit *unit, size_t rows, const double *y, double *d_y);

/* Per channel: d_beta, the sum of d, and d_gamma, of d x_hat. */
void pace__cnn_plain_norm_sums(const pace__cnn_unit *unit, size_t rows, const double *x_hat, const double *d,
                               double *d_gamma, double *d_beta);
/* d_z of a batch of `count` values per channel whose sums over all workers are d_gamma and d_beta. */
void pace__cnn_plain_norm_back(const pace__cnn_unit *unit, size_t rows, const double *x_hat, const double *d,
                               const float *gamma, const double *scale, const double *d_gamma,
                               const double *d_beta, double count, double *d_z);

#endif
