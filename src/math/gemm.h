/*
 * gemm.h - products of matrices, by oneDNN: with conv.c the one place that calls it.
 *
 *     pace__gemm_alone();                                            // each thread, before its first product
 *     pace__gemm(false, rows, 64, inner, a, inner, b, 64, true, c, 64);                  // c += a x b
 *
 * For what no kernel of our own computes: products of recurrent networks with plain kernels, and heads of many
 * classes with any. oneDNN's threads are not used: whoever calls has threads already. Equal arguments give
 * equal bits on equal CPUs, whatever other threads do.
 *
 * The thread sanitizer sees nothing of oneDNN: under it plain loops take its place, here and in conv_plain.c.
 */
#ifndef MATH_GEMM_H
#define MATH_GEMM_H

#include <stdbool.h>
#include <stddef.h>

/*
 * From now on products and convolutions that the calling thread asks for run on it alone; and with plain
 * kernels (base/cpu.h) without AVX-512. Cheap. Nothing else of oneDNN may come before it.
 */
void pace__gemm_alone(void);

/* c (m, n) = a (m, k) x b (k, n), plus c where `add`. Rows are a_stride, b_stride and c_stride floats apart.
 * `turned`: a is stored as (k, m). */
void pace__gemm(bool turned, size_t m, size_t n, size_t k, const float *a, size_t a_stride, const float *b,
                size_t b_stride, bool add, float *c, size_t c_stride);

#endif
