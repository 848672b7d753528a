/* The kernels for AVX-512. Products and sums are not fused: the bits are those of the portable kernels. */
#include "model/cnn_fast_kernels.h"

#include <immintrin.h>

typedef __m512 v16;

#define load(from)     _mm512_loadu_ps(from)
#define store(to, it)  _mm512_storeu_ps(to, it)
#define stream(to, it) _mm512_stream_ps(to, it)
#define all(value)     _mm512_set1_ps(value)
#define plus(x, y)     _mm512_add_ps(x, y)
#define minus(x, y)    _mm512_sub_ps(x, y)
#define times(x, y)    _mm512_mul_ps(x, y)
#define most(x, y)     _mm512_max_ps(x, y)
#define least(x, y)    _mm512_min_ps(x, y)
#define where_between(x, y, low, high)                                                                       \
    _mm512_maskz_mov_ps(                                                                                     \
        _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(y, low, _CMP_GT_OQ), y, high, _CMP_LT_OQ), x)

#define KERNELS pace__cnn_avx512
#include "model/cnn_fast_lanes.h"
