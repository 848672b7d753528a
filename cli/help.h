/*
 * help.h - texts of --help, as wide as the terminal that they go to: PACE_HELP_COLUMNS at most, and in pipes and files.
 */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdio.h>

/* Of standard output: what COLUMNS says if it is a terminal, else what the terminal does. */
int cli_help_columns(void);

/* Paragraphs, made anew where they do not fit; lines that begin with a blank stay as they are: examples, to be copied. Ends
 * with a new line. */
void cli_help_text(FILE *out, const char *text);

/* "  name   text", the text behind a name of at most `width` columns. */
void cli_help_row(FILE *out, int width, const char *name, const char *text);

#endif
