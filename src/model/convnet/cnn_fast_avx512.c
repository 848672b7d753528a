/* The kernels for AVX-512. */
#include "model/convnet/cnn_fast_lanes.h"

const pace__cnn_kernels pace__cnn_avx512 = LANE_KERNELS;
