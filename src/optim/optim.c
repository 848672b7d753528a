#include "optim/optim.h"

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

pace__optim pace__optim_make(int kind, double lr, double momentum, double l1, double l2)
{
    static const unsigned widths[] = {
        [PACE_SGD] = 1, [PACE_MOMENTUM] = 2, [PACE_ADAGRAD] = 2, [PACE_FTRL] = 3, [PACE_ADAM] = 3};
    pace__optim optim = {.kind = kind, .momentum = (float)momentum, .l1 = (float)l1, .l2 = (float)l2};

    optim.lazy = kind != PACE_FTRL && (l1 > 0 || l2 > 0);
    optim.width = widths[kind] + optim.lazy;
    pace__optim_begin_step(&optim, lr, 0);
    return optim;
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
        optim->correction1 = (float)(1 / (1 - pow(optim->momentum, (double)updates + 1)));
        optim->correction2 = (float)(1 / (1 - pow(0.999, (double)updates + 1)));
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
