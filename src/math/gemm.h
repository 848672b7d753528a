/*
 * gemm.h - products of matrices, by oneDNN: the one place that calls it.
 *
 * For CPUs for which there is no kernel of our own. Its threads are not used: whoever calls has threads
 * already, and each of them calls pace__gemm_alone once before.
 */
#ifndef MATH_GEMM_H
#define MATH_GEMM_H

#include <stdbool.h>
#include <stddef.h>

/* From now on products that the calling thread asks for run on it alone. */
void pace__gemm_alone(void);

/* c (m, n) = a (m, k) x b (k, n), plus c where `add`. Rows are a_stride, b_stride and c_stride floats apart.
 * `turned`: a is stored as (k, m). */
void pace__gemm(bool turned, size_t m, size_t n, size_t k, const float *a, size_t a_stride, const float *b,
                size_t b_stride, bool add, float *c, size_t c_stride);

#endif
