#include "console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ERASE_LINE "\r\033[K"

void cli_console_init(cli_console *console)
{
    const char *type = getenv("TERM");

    memset(console, 0, sizeof *console);
    pthread_mutex_init(&console->lock, NULL);
    console->terminal = isatty(STDERR_FILENO) && type && *type && strcmp(type, "dumb") != 0;
}

int cli_console_width(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 80;
    return size.ws_col;
}

/* File names and values in messages must not be able to steer the terminal. */
static void replace_controls(char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
    }
}

/* One write for the whole: other programs may share the terminal. */
static void write_line(cli_console *console, const char *prefix, const char *text)
{
    char line[PACE_LOG_TEXT_MAX + 64], all[sizeof line + CLI_LINE_MAX + 2 * sizeof ERASE_LINE];

    snprintf(line, sizeof line, "%s%s", prefix, text);
    replace_controls(line);
    pthread_mutex_lock(&console->lock);
    int length =
        snprintf(all, sizeof all, "%s%s\n%s", console->live[0] ? ERASE_LINE : "", line, console->live);

    fwrite(all, 1, (size_t)length, stderr);
    pthread_mutex_unlock(&console->lock);
}

void cli_console_log(void *user, pace_level level, const char *text)
{
    cli_console *console = user;

    if (level == PACE_ERROR)
        write_line(console, "paceline: error: ", text);
    else if (level == PACE_WARN)
        write_line(console, "paceline: warning: ", text);
    else if (level == PACE_INFO && !console->quiet)
        write_line(console, "", text);
}

void cli_console_line(cli_console *console, const char *text)
{
    write_line(console, "", text);
}

void cli_console_live(cli_console *console, const char *text)
{
    char all[CLI_LINE_MAX + 2 * sizeof ERASE_LINE];

    if (!console->terminal)
        return;
    pthread_mutex_lock(&console->lock);
    if (text[0] || console->live[0]) {
        snprintf(console->live, sizeof console->live, "%s", text);
        replace_controls(console->live);
        int length = snprintf(all, sizeof all, ERASE_LINE "%s", console->live);

        fwrite(all, 1, (size_t)length, stderr);
    }
    pthread_mutex_unlock(&console->lock);
}
