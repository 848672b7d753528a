/* The kernels for every CPU. */
#include "model/convnet/cnn_fast_lanes.h"

const pace__cnn_kernels pace__cnn_portable = LANE_KERNELS;
