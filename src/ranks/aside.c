#include "ranks/aside.h"

#include "base/clock.h"
#include "watch/spans.h"

#include <assert.h>

#define TURN_NS 10000000u
#define SLOW_NS 10000000u

typedef struct errand {
    pace__aside_fn *work;
    void *user;
    pace_status status;
} errand;

static void perform(void *arg)
{
    errand *self = arg;

    self->status = self->work(self->user);
}

/* The work cannot be called off: the process ends with it, or, between threads, waits for it. */
static pace_status despair(pace__rank *self, const char *what)
{
    pace_status status =
        pace_fail(self->log, PACE_IO, "%s has not ended within %.0f s: its disk hangs, or is far too slow",
                  what, self->aside_max_s);

    pace__rank_fail(self, status);
    pace__background_wait(self->background);
    return status;
}

pace_status pace__rank_aside(pace__rank *self, const char *what, pace__aside_fn *work, void *user)
{
    errand given = {work, user, PACE_OK};
    double deadline_s = (double)pace__link_deadline_ns(self->link) * 1e-9;
    uint64_t start_ns = pace__now_ns();
    bool said = false;

    if (pace__link_size(self->link) > 1 && !self->background)
        pace__background_create(NULL, &self->background); /* without one it is done here, in silence */
    if (!self->background)
        return work(user);
    PACE__SPAN_OF(what, "on another thread", 0, 0);
    assert(pace__background_idle(self->background)); /* invariant 3 */
    pace__background_start(self->background, perform, &given);
    while (!pace__background_wait_for(self->background, TURN_NS)) {
        double seconds = pace__seconds_since(start_ns);

        pace__link_pulse(self->link);
        if (!said && seconds > deadline_s) {
            said = true;
            pace_say(self->log, PACE_WARN, "%s has taken %.3g s so far; the others wait", what, seconds);
        }
        if (seconds > self->aside_max_s)
            return despair(self, what);
    }
    return given.status;
}

pace_status pace__rank_aside_if(pace__rank *self, bool *slow, const char *what, pace__aside_fn *work,
                                void *user)
{
    uint64_t start_ns = pace__now_ns();
    pace_status status = *slow ? pace__rank_aside(self, what, work, user) : work(user);

    *slow = pace__now_ns() - start_ns > SLOW_NS;
    return status;
}
