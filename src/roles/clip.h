/*
 * clip.h - --clip: a step's mean gradient is scaled down to a norm.
 *
 * Statistics (model/model.h) are no gradients: they are neither in the norm nor scaled.
 */
#ifndef ROLES_CLIP_H
#define ROLES_CLIP_H

#include "job/plan.h"

static inline bool pace__clips(const pace__job_plan *plan)
{
    return plan->model.clip > 0;
}

double pace__clip_squares(const float *values, size_t count);
/* What a sum over `rows` rows is multiplied with, so that the norm of its mean is at most --clip. */
float pace__clip_factor(const pace__job_plan *plan, double squares, uint64_t rows);
/* Servers see only parts of a gradient: a worker clips its own share of the step. */
void pace__clip_work(const pace__job_plan *plan, pace__work *work);

#endif
