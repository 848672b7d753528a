#include "watch/delay.h"

#include "files/open.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* Three numbers of 20 digits. */
#define TEXT_BYTES 72

/* schedstat: nanoseconds on a processor, nanoseconds in its queue, turns. */
uint64_t pace__delay_ns(pace__delay *delay)
{
    char text[TEXT_BYTES], why[PACE__WHY_BYTES];
    uint64_t delay_ns;

    if (delay->fd < 0 && !delay->silent)
        delay->fd = pace__try_open("/proc/thread-self/schedstat", PACE__TO_READ, why);
    delay->silent = delay->fd < 0;
    ssize_t got = delay->silent ? 0 : pread(delay->fd, text, sizeof text - 1, 0);

    text[got > 0 ? got : 0] = '\0';
    return sscanf(text, "%*u %" SCNu64, &delay_ns) == 1 ? delay_ns : 0;
}

void pace__delay_close(pace__delay *delay)
{
    if (delay->fd >= 0)
        close(delay->fd);
    delay->fd = -1;
}
