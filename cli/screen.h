/* screen.h - a run on the terminal, drawn anew once a second until somebody has seen enough (ncurses). */
#ifndef CLI_SCREEN_H
#define CLI_SCREEN_H

#include <paceline/top.h>

/* Takes the language of the user for characters alone; numbers keep their point. Is it UTF-8? */
bool cli_screen_speaks_utf8(void);

/* Columns for what is printed once: of the terminal that standard output is, else COLUMNS, else 80. */
int cli_screen_columns(void);

/*
 * Until q is pressed. A signal ends the process as if nobody had caught it, but with the terminal as it was before.
 * False: this is no terminal that can be drawn on, and nothing was shown.
 */
bool cli_screen_show(pace_top *top);

#endif
