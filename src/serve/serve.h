/*
 * serve.h - a run as a page in a browser, while it goes on, and as figures for Prometheus.
 *
 *     pace__serve *serve;
 *     status = pace__serve_start(&(pace__serve_plan){.run = "run1", .address = "auto"}, log, &serve);
 *     ... the run ...
 *     pace__serve_stop(serve);
 *
 *     /          the page, with all that it needs
 *     /events    server-sent events: the course so far, then once a second what is new
 *     /metrics   Prometheus's text format
 *     /healthz   ok
 *
 * 1. One thread of low priority does it all. It shares nothing with the run but its directory, which it only reads; whatever
 *    happens to it, the run goes on. It takes no signals.
 * 2. That it listens is certain when _start returns; if it cannot, nothing has begun. The address is said once, with the
 *    token if there is one (request.h), through the log that is given, which must not be that of the run directory: a token
 *    is in no file.
 * 3. _stop lets readers have the end, for half a second at most, and waits no longer than two for a thread that hangs.
 */
#ifndef SERVE_SERVE_H
#define SERVE_SERVE_H

#include <paceline/log.h>

typedef struct pace__serve_plan {
    const char *run;     /* it need not be there yet */
    const char *address; /* address.h */
} pace__serve_plan;

typedef struct pace__serve pace__serve;

/* PACE_USAGE: that is no address. PACE_IO: it cannot be listened on. */
pace_status pace__serve_start(const pace__serve_plan *plan, const pace_log *log, pace__serve **serve);
void pace__serve_stop(pace__serve *serve); /* NULL is allowed */

#endif
