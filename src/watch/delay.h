/*
 * delay.h - how long a thread was ready to run while no processor was free for it, as the kernel counts it: on cores that
 * are shared, or where a group of processes has used up what it may (watch/quota.h).
 *
 *     pace__delay delay = {.fd = -1};
 *     uint64_t before_ns = pace__delay_ns(&delay);      // a microsecond; the first opens it, for the thread that calls
 *
 * Counts only grow. Where the kernel does not tell, it is 0.
 */
#ifndef WATCH_DELAY_H
#define WATCH_DELAY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct pace__delay {
    int fd;      /* -1: not opened yet */
    bool silent; /* the kernel does not tell */
} pace__delay;

uint64_t pace__delay_ns(pace__delay *delay);
void pace__delay_close(pace__delay *delay);

#endif
