#include "tune/halving.h"

#include <assert.h>
#include <math.h>

/* --- how many, for how long --- */

/* Behind the first rung, the defaults and one more at least. */
static pace__rungs rungs_of(size_t count, size_t candidates)
{
    pace__rungs rungs = {.count = count};
    unsigned part = 1;

    for (size_t i = count; i-- > 0; part *= PACE__RUNG_FACTOR)
        rungs.part[i] = part;
    for (size_t i = 0; i < count; i++) {
        rungs.candidates[i] = candidates;
        candidates = candidates / PACE__RUNG_FACTOR > 2 ? candidates / PACE__RUNG_FACTOR : 2;
    }
    return rungs;
}

double pace__rungs_cost(const pace__rungs *rungs)
{
    double cost = 0;

    for (size_t i = 0; i < rungs->count; i++)
        cost += (double)rungs->candidates[i] / rungs->part[i];
    return cost;
}

/* The most candidates that so many rungs have room for. */
static pace__rungs widest(size_t count, int64_t budget, size_t most)
{
    pace__rungs rungs = rungs_of(1, 1);

    for (size_t candidates = 2; candidates <= most; candidates++) {
        pace__rungs wider = rungs_of(count, candidates);

        if (pace__rungs_cost(&wider) > (double)budget + 1e-9)
            break;
        rungs = wider;
    }
    return rungs;
}

pace__rungs pace__rungs_make(int64_t budget, uint64_t available, int64_t steps, bool halving)
{
    size_t most = available < PACE__CANDIDATES_MAX ? (size_t)available : PACE__CANDIDATES_MAX;
    pace__rungs best = widest(1, budget, most);

    assert(budget >= 1 && available >= 1);
    for (size_t count = 2; halving && count <= PACE__RUNGS_MAX; count++) {
        pace__rungs wider = widest(count, budget, most);

        if (pace__rung_steps(steps, wider.part[0]) >= PACE__RUNG_STEPS_MIN &&
            wider.candidates[0] > best.candidates[0])
            best = wider;
    }
    return best;
}

int64_t pace__rung_steps(int64_t steps, unsigned part)
{
    return steps / part > 1 ? steps / part : 1;
}

/* --- who goes on --- */

/* Is it better than what stands there? */
static bool goes_before(const double *loss, size_t place, size_t other)
{
    return loss[place] < loss[other] || (loss[place] == loss[other] && place < other);
}

size_t pace__rungs_best(const double *loss, size_t count, size_t keep, size_t *chosen)
{
    size_t kept = 0;

    for (size_t place = 0; place < count; place++) {
        size_t at = kept;

        while (at > 0 && !isnan(loss[place]) && goes_before(loss, place, chosen[at - 1]))
            at--;
        if (isnan(loss[place]) || at == keep)
            continue;
        kept += kept < keep;
        for (size_t i = kept - 1; i > at; i--)
            chosen[i] = chosen[i - 1];
        chosen[at] = place;
    }
    return kept;
}

size_t pace__rungs_promoted(const double *loss, size_t count, size_t keep, size_t *chosen)
{
    size_t kept = pace__rungs_best(loss, count, keep, chosen);

    for (size_t i = 0; i < kept; i++) {
        if (chosen[i] == 0)
            return kept;
    }
    if (kept > 0 && !isnan(loss[0])) /* invariant 2 */
        chosen[kept - 1] = 0;
    return kept;
}
