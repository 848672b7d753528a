/*
 * http.h - the page's server: who is connected, and what they get. The only module that touches libmicrohttpd.
 *
 *     pace__http *http;
 *     status = pace__http_open(fd, token, &source, log, &http);      // fd listens, and is its own from now on
 *     while (...) {
 *         pace__http_turn(http, wake, milliseconds);                 // answers; returns when the time is over, or `wake` is readable
 *         pace__http_publish(http);                                  // something is new: readers of /events get it
 *     }
 *     pace__http_close(http);
 *
 * 1. All of it happens on the thread that turns: nothing is locked, and no other thread is started.
 * 2. Everything is bounded: connections, connections of one address, bytes of a request's head, memory for each; a body is
 *    refused. Whoever takes longer than PACE__HTTP_ASKING_S to ask, or PACE__HTTP_TAKING_S to take what he asked for, is cut
 *    off, and so is who does nothing for PACE__HTTP_IDLE_S in either. For a reader of /events that is true of each event.
 * 3. A connection serves one request.
 */
#ifndef SERVE_HTTP_H
#define SERVE_HTTP_H

#include "serve/request.h"
#include "serve/texts.h"

#include <paceline/log.h>
#include <stdint.h>

#define PACE__HTTP_CONNECTIONS_MAX 32
#define PACE__HTTP_PER_ADDRESS_MAX 16 /* behind an ssh tunnel, everyone has the same */
#define PACE__HTTP_REQUEST_BYTES   ((size_t)16 << 10)
#define PACE__HTTP_ASKING_S        10
#define PACE__HTTP_TAKING_S        60 /* the page, on a slow line */
#define PACE__HTTP_IDLE_S          10
#define PACE__HTTP_PULSE_S                                                                                   \
    15 /* a reader to whom nothing is new hears that the server lives; who is gone is noticed */

/* What a reader of /events has got; all zero at first. */
typedef struct pace__reader {
    uint64_t version, pulse;
    unsigned generation;
} pace__reader;

/* Who makes what is served. Called by turns alone. */
typedef struct pace__http_source {
    const pace__served_text *page;
    const char *policy; /* of the page */
    void (*metrics)(void *user, pace__served_text *text);
    /* Adds what is new to this reader; nothing if nothing is. */
    void (*events)(void *user, pace__reader *reader, pace__served_text *text);
    void *user;
} pace__http_source;

typedef struct pace__http pace__http;

/* `token` may be NULL (request.h). It and the source must outlive the server. */
pace_status pace__http_open(int fd, const char *token, const pace__http_source *source, const pace_log *log,
                            pace__http **http);
void pace__http_turn(pace__http *http, int wake_fd, int milliseconds);
void pace__http_publish(pace__http *http);
/* Readers of /events get what is new to them, and the end; false: some have not got it yet. */
bool pace__http_finish(pace__http *http);
void pace__http_close(pace__http *http); /* NULL is allowed */

#endif
