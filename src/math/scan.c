#include "math/scan.h"

static uint32_t largest_u32(const uint32_t *values, size_t count)
{
    uint32_t largest = 0;

    for (size_t i = 0; i < count; i++)
        largest = values[i] > largest ? values[i] : largest;
    return largest;
}

const pace__scan_kernels pace__scan_plain = {.largest_u32 = largest_u32};
