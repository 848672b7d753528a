#include "math/scan.h"

#include "base/cpu.h"

uint32_t pace__largest_u32_plain(const uint32_t *values, size_t count)
{
    uint32_t largest = 0;

    for (size_t i = 0; i < count; i++)
        largest = values[i] > largest ? values[i] : largest;
    return largest;
}

uint32_t pace__largest_u32(const uint32_t *values, size_t count)
{
    return pace_kernels_in_use() == PACE_KERNELS_V4 ? pace__largest_u32_avx512(values, count)
                                                    : pace__largest_u32_plain(values, count);
}
