#include "roles/clip.h"

#include <assert.h>
#include <math.h>

float pace__clip_factor(const pace__job_plan *plan, double squares, uint64_t rows)
{
    double norm = sqrt(squares) / (double)rows, most = plan->model.clip;

    return pace__clips(plan) && norm > most ? (float)(most / norm) : 1;
}

/* Several sums side by side: one addition would have to wait for the one before it. */
double pace__clip_squares(const float *values, size_t count)
{
    double sums[8] = {0}, sum = 0;
    size_t i = 0;

    for (; i + 8 <= count; i += 8)
        for (size_t lane = 0; lane < 8; lane++)
            sums[lane] += (double)values[i + lane] * values[i + lane];
    for (; i < count; i++)
        sum += (double)values[i] * values[i];
    for (size_t lane = 0; lane < 8; lane++)
        sum += sums[lane];
    return sum;
}

void pace__clip_work(const pace__job_plan *plan, pace__work *work)
{
    const pace__shape *shape = &plan->model.shape;
    size_t stats = (size_t)shape->stats_rows * shape->dim, all = (size_t)work->count * shape->dim;

    if (!pace__clips(plan) || work->rows == 0)
        return;
    assert(all >= stats);
    float *sums = work->sums + stats; /* models with statistics have nothing in front of them */
    float factor = pace__clip_factor(plan, pace__clip_squares(sums, all - stats), work->rows);

    for (size_t i = 0; factor < 1 && i < all - stats; i++)
        sums[i] *= factor;
}
