#include "math/scan.h"

#include <immintrin.h>

/* The hardware's own prefetch stops at the end of a page; this one does not. */
#define PREFETCH_BYTES 2048

uint32_t pace__largest_u32_avx512(const uint32_t *values, size_t count)
{
    __m512i first = _mm512_setzero_si512(), second = first;
    size_t i = 0;

    for (; i + 32 <= count; i += 32) {
        const char *ahead = (const char *)(values + i) + PREFETCH_BYTES;

        _mm_prefetch(ahead, _MM_HINT_T0);
        _mm_prefetch(ahead + 64, _MM_HINT_T0);
        first = _mm512_max_epu32(first, _mm512_loadu_si512(values + i));
        second = _mm512_max_epu32(second, _mm512_loadu_si512(values + i + 16));
    }
    first = _mm512_max_epu32(first, second);
    for (; i < count; i += 16) {
        __mmask16 mask = count - i >= 16 ? 0xffff : (__mmask16)((1u << (count - i)) - 1);

        first = _mm512_max_epu32(first, _mm512_maskz_loadu_epi32(mask, values + i));
    }
    return _mm512_reduce_max_epu32(first);
}
