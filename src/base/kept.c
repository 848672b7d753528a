#include "base/kept.h"

#include <stdio.h>

static void keep(void *user, pace_level level, const char *text)
{
    pace__kept *kept = user;

    if (level == PACE_ERROR && !kept->text[0])
        snprintf(kept->text, kept->size, "%s", text);
}

void pace__kept_init(pace__kept *kept, char *text, size_t size)
{
    *kept = (pace__kept){{keep, kept}, text, size};
    text[0] = '\0';
}
