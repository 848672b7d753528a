#include "train/restart.h"

#include <assert.h>
#include <math.h>

#define PAUSE_MAX_S   30.0
#define DOUBLINGS_MAX 10 /* which are more than PAUSE_MAX_S */

/* Before the restart that is the `fruitless`th in a row. The first may be bad luck; whatever loses a process again and
 * again needs time to go away. */
static double pause_before(int64_t fruitless)
{
    int64_t doublings = fruitless - 2 < DOUBLINGS_MAX ? fruitless - 2 : DOUBLINGS_MAX;

    return fruitless > 1 ? fmin(ldexp(1, (int)doublings), PAUSE_MAX_S) : 0;
}

bool pace__restart_progress(uint64_t *furthest, uint64_t step, bool saved)
{
    bool further = step > *furthest;

    if (further)
        *furthest = step;
    return further && saved;
}

pace__restart pace__restart_after(const pace__lost_job *lost)
{
    assert(lost->fruitless >= 0);
    if (lost->finished)
        return (pace__restart){PACE__RESTART_NOT_NEEDED, 0};
    if (lost->stopped || lost->fruitless >= lost->max_restarts)
        return (pace__restart){PACE__RESTART_NO_MORE, 0};
    return (pace__restart){PACE__RESTART_AGAIN, pause_before(lost->fruitless + 1)};
}
