#include "optim/optim.h"

#include <assert.h>
#include <float.h>

double pace__optim_default_lr(int kind, bool exact)
{
    switch (kind) {
    case PACE_SGD:
        return exact ? 0.1 : 0.005;
    case PACE_MOMENTUM:
        return exact ? 0.01 : 0.0005;
    case PACE_ADAM:
        return 0.001;
    case PACE_FTRL:
        return 0.1;
    default:
        return 0.07;
    }
}

/* Weight and state, by rule. */
static const unsigned widths[] = {
    [PACE_SGD] = 1, [PACE_MOMENTUM] = 2, [PACE_ADAGRAD] = 2, [PACE_FTRL] = 3, [PACE_ADAM] = 3};

unsigned pace__optim_planes(const pace__optim *optim)
{
    return widths[optim->kind] - 1;
}

pace__optim pace__optim_make(int kind, double lr, double momentum, double l1, double l2)
{
    pace__optim optim = {.kind = kind, .momentum = (float)momentum, .l1 = (float)l1, .l2 = (float)l2};

    optim.lazy = kind != PACE_FTRL && (l1 > 0 || l2 > 0);
    optim.width = widths[kind] + optim.lazy;
    pace__optim_begin_step(&optim, lr, 0);
    return optim;
}

void pace__optim_keep_squares(pace__optim *optim, uint64_t rows)
{
    if (optim->kind != PACE_SGD)
        return;
    optim->width += optim->squares == 0;
    optim->squares = (float)rows;
}

void pace__optim_keep_velocity(pace__optim *optim)
{
    assert(!optim->lazy && !optim->velocity && optim->width < PACE__OPTIM_WIDTH_MAX);
    optim->velocity = true;
    optim->width++;
}

pace__optim pace__optim_inner(const pace__optim *optim)
{
    pace__optim inner = *optim;

    inner.width -= optim->velocity;
    inner.velocity = false;
    return inner;
}

double pace__schedule_lr(int schedule, double lr, int64_t warmup, uint64_t step, uint64_t steps)
{
    double progress = steps > 1 ? (double)step / (double)(steps - 1) : 0;
    double factor = 1;

    if (step < (uint64_t)warmup)
        return lr * (double)(step + 1) / (double)warmup;
    if (schedule == PACE_SCHEDULE_LINEAR)
        factor = 1 - progress * 0.99;
    else if (schedule == PACE_SCHEDULE_COSINE)
        factor = 0.01 + 0.99 * 0.5 * (1 + cos(M_PI * progress));
    else if (schedule == PACE_SCHEDULE_INVSQRT)
        factor = 1 / sqrt(1 + (double)(step - (uint64_t)warmup));
    return lr * factor;
}

void pace__optim_begin_step(pace__optim *optim, double lr, uint64_t updates)
{
    optim->lr = (float)lr;
    if (optim->kind == PACE_ADAM) {
        double update = (double)(optim->before + updates) + 1;

        optim->correction1 = (float)(1 / (1 - pow(optim->momentum, update)));
        optim->correction2 = (float)(1 / (1 - pow(0.999, update)));
    }
}

float pace__optim_scale(const pace__optim *optim, uint64_t rows_in_step)
{
    return optim->kind == PACE_SGD || optim->kind == PACE_MOMENTUM ? 1 / (float)rows_in_step : 1;
}

void pace__optim_init(const pace__optim *optim, float *parameter)
{
    memset(parameter, 0, optim->width * sizeof *parameter);
    if (optim->kind == PACE_ADAGRAD)
        parameter[1] = 1;
}

void pace__optim_init_row(const pace__optim *optim, unsigned dim, float *row)
{
    float parameter[PACE__OPTIM_WIDTH_MAX];

    pace__optim_init(optim, parameter);
    for (unsigned part = 0; part < optim->width; part++)
        for (unsigned i = 0; i < dim; i++)
            row[(size_t)part * dim + i] = parameter[part];
}

void pace__optim_adopt_row(const pace__optim *optim, unsigned dim, float *row)
{
    const float *n = row + (size_t)2 * dim;
    float *z = row + dim;

    for (unsigned i = 0; optim->kind == PACE_FTRL && i < dim; i++) {
        if (row[i] != 0)
            z[i] = -row[i] * ((1 + sqrtf(n[i])) / optim->lr + optim->l2) - copysignf(optim->l1, row[i]);
        else
            z[i] = fminf(fmaxf(z[i], -optim->l1), optim->l1);
    }
}

bool pace__optim_is_finite(const pace__optim *optim, unsigned dim, const float *row)
{
    size_t count = (size_t)dim * (optim->width - optim->lazy); /* behind them is a count of rows */
    bool finite = true;

    for (size_t i = 0; i < count; i++)
        finite &= fabsf(row[i]) <= FLT_MAX;
    return finite;
}

/* --- rows: the same arithmetic as pace__optim_update, one float of state after the other --- */

static void sgd_row(const pace__optim *optim, unsigned dim, float *restrict row, const float *gradients,
                    float scale)
{
    for (unsigned i = 0; i < dim; i++)
        row[i] -= optim->lr * (gradients[i] * scale);
}

static void momentum_row(const pace__optim *optim, unsigned dim, float *restrict row, const float *gradients,
                         float scale)
{
    float *restrict speed = row + dim;

    for (unsigned i = 0; i < dim; i++) {
        speed[i] = optim->momentum * speed[i] + gradients[i] * scale;
        row[i] -= optim->lr * speed[i];
    }
}

static void adagrad_row(const pace__optim *optim, unsigned dim, float *restrict row, const float *gradients,
                        float scale)
{
    float *restrict squares = row + dim;

    for (unsigned i = 0; i < dim; i++) {
        float g = gradients[i] * scale;

        squares[i] += g * g;
        row[i] -= pace__over_root(optim->lr * g, squares[i]);
    }
}

static void adam_row(const pace__optim *optim, unsigned dim, float *restrict row, const float *gradients,
                     float scale)
{
    float *restrict mean = row + dim, *restrict square = row + 2 * (size_t)dim;
    float rate = optim->lr * optim->correction1, correction = optim->correction2;

    for (unsigned i = 0; i < dim; i++) {
        float g = gradients[i] * scale;

        mean[i] += (1 - optim->momentum) * (g - mean[i]);
        square[i] += (1 - 0.999f) * (g * g - square[i]);
        row[i] -= rate * mean[i] / (sqrtf(correction * square[i]) + 1e-8f);
    }
}

static void ftrl_row(const pace__optim *optim, unsigned dim, float *restrict row, const float *gradients,
                     float scale)
{
    for (unsigned i = 0; i < dim; i++) {
        float parameter[] = {row[i], row[dim + i], row[2 * (size_t)dim + i]};

        pace__ftrl_update(optim, parameter, gradients[i] * scale);
        for (unsigned part = 0; part < 3; part++)
            row[(size_t)part * dim + i] = parameter[part];
    }
}

void pace__optim_update_row(const pace__optim *optim, unsigned dim, float *row, const float *gradients,
                            float scale)
{
    static void (*const rules[])(const pace__optim *, unsigned, float *restrict, const float *,
                                 float) = {[PACE_SGD] = sgd_row,
                                           [PACE_MOMENTUM] = momentum_row,
                                           [PACE_ADAGRAD] = adagrad_row,
                                           [PACE_FTRL] = ftrl_row,
                                           [PACE_ADAM] = adam_row};

    rules[optim->kind](optim, dim, row, gradients, scale);
}
