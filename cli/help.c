/* help.c - texts of --help, and how wide they may be. */
#include "help.h"

#include <paceline/options.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* 0: it does not say. */
static int terminal_columns(void)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size;

    if (columns && atoi(columns) > 0)
        return atoi(columns);
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

int cli_help_columns(void)
{
    int columns = isatty(STDOUT_FILENO) ? terminal_columns() : 0;

    if (columns <= 0 || columns > PACE_HELP_COLUMNS)
        return PACE_HELP_COLUMNS;
    return columns < PACE_HELP_COLUMNS_MIN ? PACE_HELP_COLUMNS_MIN : columns;
}

static const char *next_line(const char *text)
{
    text += strcspn(text, "\n");
    return text + (*text == '\n');
}

void cli_help_text(FILE *out, const char *text)
{
    int columns = cli_help_columns();

    if (columns == PACE_HELP_COLUMNS) {
        fprintf(out, "%s\n", text);
        return;
    }
    while (*text) {
        const char *end = next_line(text);

        if (*text == ' ' || *text == '\n') {
            fprintf(out, "%.*s\n", (int)strcspn(text, "\n"), text);
        } else {
            while (*end && *end != ' ' && *end != '\n')
                end = next_line(end);
            pace_print_wrapped(text, (size_t)(end - text), 0, 0, columns, out);
        }
        text = end;
    }
}

void cli_help_row(FILE *out, int width, const char *name, const char *text)
{
    int column = fprintf(out, "  %-*s ", width, name);

    pace_print_wrapped(text, strlen(text), column, width + 3, cli_help_columns(), out);
}
