/*
 * top.h - a run as a screen of text: where it stands, a line per role, what holds it up.
 *
 *     pace_top *top;
 *     status = pace_top_open("run1", &log, &top);
 *     size_t count;
 *     const pace_top_line *lines = pace_top_draw(top, &(pace_top_size){.columns = 80, .utf8 = true}, &count);
 *     ... print them ...
 *     pace_top_update(top);                       // once a second, say; then draw again
 *     pace_top_close(top);
 *
 * It only reads the run directory, so it works beside a job of another user, on a run that was killed, and on one that is
 * damaged: what is missing stands below the rest. Nothing is printed here.
 */
#ifndef PACELINE_TOP_H
#define PACELINE_TOP_H

#include <paceline/log.h>
#include <paceline/options.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct pace_top_config {
    const char *run; /* the positional argument */
    bool once;
} pace_top_config;

extern const pace_option pace_top_options[];

typedef struct pace_top pace_top;

/* How a line is meant; a screen without colours may show all alike. */
typedef enum pace_top_style {
    PACE_TOP_PLAIN,
    PACE_TOP_TITLE,
    PACE_TOP_HEADING,
    PACE_TOP_FAINT,
    PACE_TOP_GOOD, /* it runs, or is done */
    PACE_TOP_BAD,  /* it does not, or something is missing */
} pace_top_style;

/* No line has more columns than were asked for, nor characters that steer a terminal. */
typedef struct pace_top_line {
    char *text;
    pace_top_style style;
} pace_top_line;

#define PACE_TOP_COLUMNS_MIN 20
#define PACE_TOP_COLUMNS_MAX 500

typedef struct pace_top_size {
    int columns; /* from PACE_TOP_COLUMNS_MIN to PACE_TOP_COLUMNS_MAX; others count as the nearest */
    int rows;    /* 0: as many as there are lines */
    int first;   /* how many roles are scrolled away at the top, if not all fit */
    bool utf8;   /* else ASCII alone */
} pace_top_size;

/* PACE_NO_INPUT, PACE_USAGE or PACE_IO with a message if there is no run to look at. `log` is not used any more later. */
pace_status pace_top_open(const char *run, const pace_log *log, pace_top **top);
void pace_top_close(pace_top *top); /* NULL is allowed */

/* Reads what has come since. */
void pace_top_update(pace_top *top);

/* The lines, which belong to `top` and live until the next call. NULL when out of memory. */
const pace_top_line *pace_top_draw(pace_top *top, const pace_top_size *size, size_t *count);
/* How many roles the last drawing has scrolled away: what was asked for, as far as there are so many. */
int pace_top_first(const pace_top *top);

/* All figures as one JSON object, to be freed; NULL when out of memory. */
char *pace_top_json(pace_top *top);

#endif
