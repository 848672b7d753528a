#include "plan/choose.h"

#include <assert.h>
#include <stdbool.h>

static bool is_smaller(const pace__choice *it, const pace__choice *than)
{
    return it->processes < than->processes || (it->processes == than->processes && it->rows_s > than->rows_s);
}

pace__chosen pace__choose_job(const pace__choice *choices, size_t count)
{
    pace__chosen made = {0};

    assert(count > 0);
    for (size_t i = 1; i < count; i++) {
        if (choices[i].rows_s > choices[made.fastest].rows_s)
            made.fastest = i;
        if (is_smaller(&choices[i], &choices[made.alone]))
            made.alone = i;
    }
    double most = choices[made.fastest].rows_s;

    made.taken = made.alone;
    if (most < PACE__CHOICE_GAIN * choices[made.alone].rows_s)
        return made;
    made.taken = made.fastest;
    for (size_t i = 0; i < count; i++) {
        if (choices[i].rows_s >= PACE__CHOICE_NEARLY * most && is_smaller(&choices[i], &choices[made.taken]))
            made.taken = i;
    }
    return made;
}
