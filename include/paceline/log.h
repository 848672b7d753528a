/*
 * log.h - the one way in which the library speaks.
 *
 * The library never prints. It hands each message, one line without a newline or any other control character, to
 * the callback of the pace_log that its caller passed in. The callback may be called from several threads at once.
 * A NULL log, or one without a callback, is silent. While a function of the library runs, its thread speaks the "C"
 * locale, in callbacks, too: what is read and written has a decimal point in every language.
 *
 *     pace_log log = {.write = to_stderr};
 *     if (fd < 0)
 *         return pace_fail(&log, PACE_NO_INPUT, "%s: %s", path, strerror(errno));
 */
#ifndef PACELINE_LOG_H
#define PACELINE_LOG_H

#include <paceline/status.h>

typedef enum pace_level { PACE_ERROR, PACE_WARN, PACE_INFO, PACE_DEBUG } pace_level;

typedef struct pace_log {
    void (*write)(void *user, pace_level level, const char *text);
    void *user;
} pace_log;

/* Messages longer than this are cut. */
#define PACE_LOG_TEXT_MAX 1024

void pace_say(const pace_log *log, pace_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes the message as PACE_ERROR and returns `status`: for `return pace_fail(...)`. */
pace_status pace_fail(const pace_log *log, pace_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
