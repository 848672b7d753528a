/*
 * request.h - may this request be answered, and with what? A pure function of what a client has sent: nothing of it can be
 * trusted, and all that is decided about it is decided here.
 *
 * 1. On a loopback address no token is asked for, but the Host header must name this machine's loopback: a page from
 *    elsewhere whose name was made to lead here (DNS rebinding) has another.
 * 2. On any other address every request needs the token, as ?token= or as "Authorization: Bearer ...", and is told nothing
 *    without it. Tokens are compared in a time that does not depend on where they differ.
 * 3. Only GET and HEAD, without a body, of four paths.
 */
#ifndef SERVE_REQUEST_H
#define SERVE_REQUEST_H

#include <stdbool.h>

#define PACE__TOKEN_DIGITS 32
#define PACE__TOKEN_TEXT   (PACE__TOKEN_DIGITS + 1)

typedef enum pace__wanted {
    PACE__WANTS_PAGE,
    PACE__WANTS_EVENTS,
    PACE__WANTS_METRICS,
    PACE__WANTS_HEALTH
} pace__wanted;

/* What a client has sent; NULL: it has not. */
typedef struct pace__request {
    const char *method, *path, *host, *authorization, *token;
    bool has_body;
} pace__request;

typedef struct pace__judgement {
    unsigned status; /* of HTTP: 200, or why not */
    pace__wanted wanted;
    const char *reason; /* a sentence for who is refused */
} pace__judgement;

/* `token`: NULL if none is asked for, because the address is loopback. */
pace__judgement pace__request_judge(const pace__request *request, const char *token);

/* 32 hexadecimal digits of the kernel's randomness; false: there is none. */
bool pace__token_draw(char token[PACE__TOKEN_TEXT]);

/* Is it a name of this machine's loopback, with or without a port: "localhost:8640", "127.0.0.1", "[::1]:9000"? */
bool pace__host_is_loopback(const char *host);

#endif
