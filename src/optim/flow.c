#include "optim/flow.h"

#include <assert.h>

/* Of the bias: below it the rows of an exchange have told nothing. */
#define BIAS_Q_MIN 1e-3
#define BLOCK      PACE__FLOW_BLOCK

bool pace__flow_has(const pace__optim *optim)
{
    return optim->kind == PACE_ADAGRAD || optim->kind == PACE_FTRL ||
           (optim->kind == PACE_SGD && optim->squares > 0);
}

float pace__damping_of(const pace__damping *sum, float before)
{
    if (!(sum->bias_q > BIAS_Q_MIN))
        return before;
    return (float)(sqrt(sum->a * sum->a2 / sum->bias_q) / sum->bias_q);
}

static void add(pace__flow_rule rule, float damping, const float *d, const float *q, pace__flow_block *to)
{
    for (size_t i = 0; i < PACE__FLOW_BLOCK; i++) {
        float s = pace__flow_step_by(rule, to->n[i], q[i]);
        bool has = d[i] != 0 || q[i] != 0;

        to->force[i] += d[i] / pace__flow_reach_by(s, damping, q[i]);
        to->squares[i] += q[i];
        to->change[i] = has ? d[i] : to->change[i];
        to->workers[i] += has ? 1.0f : 0.0f;
    }
}

static void end(pace__flow_rule rule, float damping, pace__flow_block *to)
{
    for (size_t i = 0; i < PACE__FLOW_BLOCK; i++) {
        float s = pace__flow_step_by(rule, to->n[i], to->squares[i]);
        float d = to->force[i] * pace__flow_reach_by(s, damping, to->squares[i]);

        to->w[i] += to->workers[i] > 1 ? d : to->change[i];
        to->n[i] += to->squares[i];
    }
}

const pace__flow_kernels pace__flow_plain = {.add = add, .end = end};

/* Those of a block, side by side; behind the last there are zeros, which stay what they are. */
static void take_apart(const pace__flow_point *points, size_t count, float *restrict w, float *restrict n)
{
    memset(w, 0, BLOCK * sizeof *w);
    memset(n, 0, BLOCK * sizeof *n);
    for (size_t i = 0; i < count; i++) {
        w[i] = points[i].w;
        n[i] = points[i].n;
    }
}

void pace__flow_merge(const pace__optim *optim, float damping, const pace__flow_point *const *changes,
                      unsigned workers, pace__flow_point *points, size_t count)
{
    const pace__flow_kernels *kernels = pace__flow_of(pace_kernels_in_use());
    pace__flow_rule rule = pace__flow_rule_of(optim);

    assert(workers > 0 && pace__flow_has(optim));
    for (size_t at = 0; at < count; at += BLOCK) {
        size_t size = count - at < BLOCK ? count - at : BLOCK;
        float d[BLOCK], q[BLOCK];
        pace__flow_block block = {{0}};

        take_apart(points + at, size, block.w, block.n);
        for (unsigned i = 0; i < workers; i++) {
            take_apart(changes[i] + at, size, d, q);
            kernels->add(rule, damping, d, q, &block);
        }
        kernels->end(rule, damping, &block);
        for (size_t i = 0; i < size; i++)
            points[at + i] = (pace__flow_point){block.w[i], block.n[i]};
    }
}
