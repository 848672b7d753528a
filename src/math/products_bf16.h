/* products_bf16.h - what the ways of math/bf16.h that CPUs have share: packing by the conversions of AVX512_BF16. */
#ifndef MATH_PRODUCTS_BF16_H
#define MATH_PRODUCTS_BF16_H

#include "math/bf16.h"

/* See pace__bf16_kernels. */
void pace__bf16_narrow_v4(const float *from, size_t from_stride, size_t rows, size_t count, pace__bf16 *to,
                          size_t to_stride);
void pace__bf16_pair_v4(const pace__bf16 *from, size_t stride, size_t inner, size_t columns,
                        pace__bf16 *panels);

void pace__bf16_sum_rows_v4(const pace__bf16 *from, size_t stride, const uint32_t *list, size_t listed,
                            float *sum, size_t count);

extern const pace__bf16_kernels pace__bf16_pairs_v4, pace__bf16_tiles_v4;

#endif
