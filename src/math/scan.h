/* scan.h - the largest element of an array: how ids are checked before they are used. */
#ifndef MATH_SCAN_H
#define MATH_SCAN_H

#include <stddef.h>
#include <stdint.h>

/* 0 for an empty array. By the kernel of the set in use (base/cpu.h). */
uint32_t pace__largest_u32(const uint32_t *values, size_t count);

uint32_t pace__largest_u32_plain(const uint32_t *values, size_t count);
uint32_t pace__largest_u32_avx512(const uint32_t *values, size_t count);

#endif
