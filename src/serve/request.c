#include "serve/request.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

bool pace__token_draw(char token[PACE__TOKEN_TEXT])
{
    unsigned char bytes[PACE__TOKEN_DIGITS / 2];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

/* Invariant 2: every digit is looked at, whatever the others are. What is shorter is compared with what it has, and its end. */
static bool is_token(const char *given, const char *token)
{
    size_t length = given ? strlen(given) : 0;
    unsigned char differs = length != PACE__TOKEN_DIGITS;

    for (size_t i = 0; i < PACE__TOKEN_DIGITS; i++)
        differs |= (unsigned char)((i < length ? given[i] : 0) ^ token[i]);
    return differs == 0;
}

static bool has_token(const pace__request *request, const char *token)
{
    static const char scheme[] = "Bearer ";
    const char *given = request->authorization;
    bool is_bearer = given && strncasecmp(given, scheme, sizeof scheme - 1) == 0;
    /* Both are looked at in any case. */
    bool by_header = is_token(is_bearer ? given + sizeof scheme - 1 : NULL, token),
         by_query = is_token(request->token, token);

    return by_header || by_query;
}

bool pace__host_is_loopback(const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};

    for (size_t i = 0; host && i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);

        if (strncasecmp(host, names[i], length) != 0)
            continue;
        const char *rest = host + length;

        if (*rest == '\0' || (*rest == ':' && rest[1] && strspn(rest + 1, "0123456789") == strlen(rest + 1)))
            return true;
    }
    return false;
}

static bool find_wanted(const char *path, pace__wanted *wanted)
{
    static const char *const paths[] = {[PACE__WANTS_PAGE] = "/",
                                        [PACE__WANTS_EVENTS] = "/events",
                                        [PACE__WANTS_METRICS] = "/metrics",
                                        [PACE__WANTS_HEALTH] = "/healthz"};

    for (size_t i = 0; path && i < sizeof paths / sizeof *paths; i++) {
        if (strcmp(path, paths[i]) == 0) {
            *wanted = (pace__wanted)i;
            return true;
        }
    }
    return false;
}

static pace__judgement refuse(unsigned status, const char *reason)
{
    return (pace__judgement){.status = status, .reason = reason};
}

/* Who may not look is not told what there is: the path comes last. */
pace__judgement pace__request_judge(const pace__request *request, const char *token)
{
    pace__judgement judgement = {.status = 200, .reason = ""};

    if (token && !has_token(request, token))
        return refuse(403, "this address needs the token that paceline has said when it started");
    if (!token && !pace__host_is_loopback(request->host))
        return refuse(403, "the Host header does not name this machine's loopback");
    if (!request->method || (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0))
        return refuse(405, "only GET and HEAD");
    if (request->has_body)
        return refuse(413, "a request here has no body");
    if (!find_wanted(request->path, &judgement.wanted))
        return refuse(404, "there are /, /events, /metrics and /healthz");
    return judgement;
}
