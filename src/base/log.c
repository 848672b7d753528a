#include <paceline/log.h>
#include <stdarg.h>
#include <stdio.h>

static void say(const pace_log *log, pace_level level, const char *format, va_list arguments)
{
    char text[PACE_LOG_TEXT_MAX];

    if (!log || !log->write)
        return;
    vsnprintf(text, sizeof text, format, arguments);
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
