/* The kernels of flow.h in lanes, operation by operation as in flow.c. */
#include "optim/flow.h"

#include "math/functions_lanes.h"

INLINE floats step_by(pace__flow_rule rule, floats n, floats q)
{
    return 2 * rule.lr / (2 * rule.beta + rule.root * (floats_sqrt(n + q) + floats_sqrt(n)));
}

INLINE floats reach_by(floats s, float damping, floats q)
{
    floats x = q * (damping + s);
    floats small = 1 - x * (0.5f - x * (1.0f / 6)), large = (1 - floats_exp_negative(-x)) / x;

    return s * floats_where(x < 0.02f, small, large);
}

static void add(pace__flow_rule rule, float damping, const float *d, const float *q, pace__flow_block *to)
{
    for (size_t i = 0; i < PACE__FLOW_BLOCK; i += LANES) {
        floats by = floats_load(d + i), squares = floats_load(q + i), n = floats_load(to->n + i);
        ints has = (by != 0) | (squares != 0);
        floats force = by / reach_by(step_by(rule, n, squares), damping, squares);

        floats_store(to->force + i, floats_load(to->force + i) + force);
        floats_store(to->squares + i, floats_load(to->squares + i) + squares);
        floats_store(to->change + i, floats_where(has, by, floats_load(to->change + i)));
        floats_store(to->workers + i,
                     floats_load(to->workers + i) + floats_where(has, floats_all(1), floats_all(0)));
    }
}

static void end(pace__flow_rule rule, float damping, pace__flow_block *to)
{
    for (size_t i = 0; i < PACE__FLOW_BLOCK; i += LANES) {
        floats squares = floats_load(to->squares + i), n = floats_load(to->n + i);
        floats d = floats_load(to->force + i) * reach_by(step_by(rule, n, squares), damping, squares);
        ints many = floats_load(to->workers + i) > 1;

        floats_store(to->w + i, floats_load(to->w + i) + floats_where(many, d, floats_load(to->change + i)));
        floats_store(to->n + i, n + squares);
    }
}

const pace__flow_kernels PACE__SET(pace__flow) = {.add = add, .end = end};
