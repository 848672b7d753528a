/* optimisers.h - every rule, without and with penalties, for tests that go through all of them. */
#ifndef UNIT_OPTIMISERS_H
#define UNIT_OPTIMISERS_H

#include "optim/optim.h"

static const struct {
    int kind;
    double lr, l1, l2;
} optimisers[] = {
    {PACE_SGD, 0.05, 0, 0},
    {PACE_MOMENTUM, 0.01, 0, 0},
    {PACE_ADAGRAD, 0.1, 0, 0},
    {PACE_FTRL, 0.1, 0.3, 0.1},
    {PACE_ADAM, 0.01, 0, 0},
    {PACE_SGD, 0.05, 0.001, 0.01},
    {PACE_MOMENTUM, 0.01, 0.001, 0.01},
    {PACE_ADAGRAD, 0.1, 0.001, 0.01},
    {PACE_ADAM, 0.01, 0, 0.01},
};
#define OPTIMISERS (sizeof optimisers / sizeof *optimisers)

static inline pace__optim optimiser(size_t which)
{
    return pace__optim_make(optimisers[which].kind, optimisers[which].lr, 0.9, optimisers[which].l1,
                            optimisers[which].l2);
}

#endif
