#include "optim/flow.h"

#include <assert.h>

/* Of the bias: below it the rows of an exchange have told nothing. */
#define BIAS_Q_MIN 1e-3
/* Parameters at a time, so that what is added up stays near. */
#define BLOCK 64

bool pace__flow_has(const pace__optim *optim)
{
    return (optim->kind == PACE_ADAGRAD || optim->kind == PACE_FTRL) && !optim->lazy;
}

float pace__damping_of(const pace__damping *sum, float before)
{
    if (!(sum->bias_q > BIAS_Q_MIN))
        return before;
    return (float)(sqrt(sum->a * sum->a2 / sum->bias_q) / sum->bias_q);
}

/* What a worker has changed, or 0 where it has changed nothing: without a branch. */
static void add_block(const pace__optim *optim, float damping, const pace__flow_point *changes, size_t count,
                      const pace__flow_point *before, float *force, float *squares, float *change, float *who)
{
    for (size_t i = 0; i < count; i++) {
        float d = changes[i].w, q = changes[i].n;
        float u = d / pace__flow_reach(optim, damping, before[i].n, q);
        float has = d != 0 || q != 0 ? 1.0f : 0.0f;

        force[i] += u;
        squares[i] += q;
        change[i] = has > 0 ? d : change[i];
        who[i] += has;
    }
}

static void end_block(const pace__optim *optim, float damping, size_t count, const float *force,
                      const float *squares, const float *change, const float *who, pace__flow_point *points)
{
    for (size_t i = 0; i < count; i++) {
        float d = force[i] * pace__flow_reach(optim, damping, points[i].n, squares[i]);

        points[i].w += who[i] > 1 ? d : change[i];
        points[i].n += squares[i];
    }
}

void pace__flow_merge(const pace__optim *optim, float damping, const pace__flow_point *const *changes,
                      unsigned workers, pace__flow_point *points, size_t count)
{
    const pace__optim rule = *optim; /* stays in registers */

    assert(workers > 0);
    for (size_t at = 0; at < count; at += BLOCK) {
        float force[BLOCK] = {0}, squares[BLOCK] = {0}, change[BLOCK] = {0}, who[BLOCK] = {0};
        size_t size = count - at < BLOCK ? count - at : BLOCK;

        for (unsigned i = 0; i < workers; i++)
            add_block(&rule, damping, changes[i] + at, size, points + at, force, squares, change, who);
        end_block(&rule, damping, size, force, squares, change, who, points + at);
    }
}
