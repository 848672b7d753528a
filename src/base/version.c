#include <paceline/version.h>

const char *pace_version(void)
{
    return PACE_VERSION;
}
