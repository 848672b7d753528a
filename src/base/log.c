#include <ctype.h>
#include <paceline/log.h>
#include <stdarg.h>
#include <stdio.h>

/* What files, options and peers are called may hold anything: a message stays one line, and moves no cursor. */
static void make_plain(char *text)
{
    for (; *text; text++)
        *text = iscntrl((unsigned char)*text) ? '?' : *text;
}

static void say(const pace_log *log, pace_level level, const char *format, va_list arguments)
{
    char text[PACE_LOG_TEXT_MAX];

    if (!log || !log->write)
        return;
    vsnprintf(text, sizeof text, format, arguments);
    make_plain(text);
    log->write(log->user, level, text);
}

void pace_say(const pace_log *log, pace_level level, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say(log, level, format, arguments);
    va_end(arguments);
}

pace_status pace_fail(const pace_log *log, pace_status status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say(log, PACE_ERROR, format, arguments);
    va_end(arguments);
    return status;
}
