/* The kernels for every CPU. */
#include "model/cnn_fast_kernels.h"

typedef struct v16 {
    float at[PACE__CNN_LANES];
} v16;

#define EACH_LANE for (size_t lane = 0; lane < PACE__CNN_LANES; lane++)

static inline v16 load(const float *from)
{
    v16 it;

    EACH_LANE
    it.at[lane] = from[lane];
    return it;
}

static inline void store(float *to, v16 it)
{
    EACH_LANE
    to[lane] = it.at[lane];
}

#define stream(to, it) store(to, it)

static inline v16 all(float value)
{
    v16 it;

    EACH_LANE
    it.at[lane] = value;
    return it;
}

static inline v16 plus(v16 x, v16 y)
{
    EACH_LANE
    x.at[lane] += y.at[lane];
    return x;
}

static inline v16 minus(v16 x, v16 y)
{
    EACH_LANE
    x.at[lane] -= y.at[lane];
    return x;
}

static inline v16 times(v16 x, v16 y)
{
    EACH_LANE
    x.at[lane] *= y.at[lane];
    return x;
}

static inline v16 most(v16 x, v16 y)
{
    EACH_LANE
    x.at[lane] = x.at[lane] > y.at[lane] ? x.at[lane] : y.at[lane];
    return x;
}

static inline v16 least(v16 x, v16 y)
{
    EACH_LANE
    x.at[lane] = x.at[lane] < y.at[lane] ? x.at[lane] : y.at[lane];
    return x;
}

/* x where y is between the two, else 0. */
static inline v16 where_between(v16 x, v16 y, v16 low, v16 high)
{
    EACH_LANE
    x.at[lane] = y.at[lane] > low.at[lane] && y.at[lane] < high.at[lane] ? x.at[lane] : 0;
    return x;
}

#define KERNELS pace__cnn_portable
#include "model/cnn_fast_lanes.h"
