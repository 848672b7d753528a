/*
 * fm.h - a factorization machine: a linear model that also knows what two features mean together.
 *
 *     logit = w_0 + sum_i w_i x_i + sum_{i<j} <v_i, v_j> x_i x_j
 *
 * Each feature has a weight and a vector of `factors` numbers. The products of all pairs cost no more than the
 * sums over the entries (Rendle 2010), factor by factor:
 *
 *     sum_{i<j} <v_i, v_j> x_i x_j = 1/2 sum_f [ (sum_i v_if x_i)^2 - sum_i v_if^2 x_i^2 ]
 *
 * Parameters of a feature are one row: its weight, then its factors. Rows of data say by `ids` which rows of
 * parameters they mean: slots of a batch, or ids. A row of zeros, like that of "unseen", adds nothing.
 *
 *     float sums[PACE__FM_FACTORS_MAX];
 *     double logit = bias + pace__fm_logit(&rows, row, weights, factors, sums);
 *     pace__fm_add_gradient(&rows, row, weights, factors, sums, slope, gradients);
 */
#ifndef MODEL_FM_FM_H
#define MODEL_FM_FM_H

#include "math/batch.h"

#define PACE__FM_FACTORS_MAX 128

/* Without the bias. Sets sums[f] to the sum of v_if x_i, which the gradient takes. */
double pace__fm_logit(const pace__rows *rows, size_t row, const float *weights, unsigned factors,
                      float *sums);

/* Adds slope x the derivative of the logit by each parameter of the row's features. */
void pace__fm_add_gradient(const pace__rows *rows, size_t row, const float *weights, unsigned factors,
                           const float *sums, float slope, float *gradients);

/* What two entries of rows add together. */
double pace__fm_pair(const pace__rows *rows, uint64_t one, uint64_t other, const float *weights,
                     unsigned factors);

/* The factors of a key at the beginning: small, and a function of (seed, key) alone. */
void pace__fm_init_factors(int64_t seed, uint64_t key, unsigned factors, float *values);

#endif
