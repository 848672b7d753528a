/*
 * console.h - standard error, shared by messages and one line that is updated in place.
 *
 * Messages come from any thread. Each is written whole, above the live line, which is drawn again below it.
 */
#ifndef CLI_CONSOLE_H
#define CLI_CONSOLE_H

#include <paceline/log.h>
#include <pthread.h>
#include <stdbool.h>

#define CLI_LINE_MAX 512

typedef struct cli_console {
    pthread_mutex_t lock;
    bool terminal; /* standard error is one on which a line can be updated */
    bool quiet;    /* warnings and errors only */
    char live[CLI_LINE_MAX];
} cli_console;

void cli_console_init(cli_console *console);

/* The write function of a pace_log whose user is the console. */
void cli_console_log(void *user, pace_level level, const char *text);

/* A line that stays. */
void cli_console_line(cli_console *console, const char *text);

/* Replaces the live line; "" removes it. Only on a terminal. */
void cli_console_live(cli_console *console, const char *text);

/* Columns of the terminal. */
int cli_console_width(void);

#endif
