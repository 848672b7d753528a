#include "base/once.h"

static void write_once(void *user, pace_level level, const char *text)
{
    pace__once *once = user;

    if (level != PACE_ERROR || !atomic_exchange(&once->told, true))
        pace_say(once->to, level, "%s", text);
}

void pace__once_init(pace__once *once, const pace_log *to)
{
    once->log = (pace_log){write_once, once};
    once->to = to;
    once->told = false;
}
