/* scan.h - the largest element of an array: how ids are checked before they are used. */
#ifndef MATH_SCAN_H
#define MATH_SCAN_H

#include "base/cpu.h"

#include <stddef.h>
#include <stdint.h>

typedef struct pace__scan_kernels {
    /* 0 for an empty array. */
    uint32_t (*largest_u32)(const uint32_t *values, size_t count);
} pace__scan_kernels;

PACE__TABLES(pace__scan_kernels, pace__scan)

#endif
