/*
 * line.h - one line of a screen, built from left to right, and cut where the screen ends.
 *
 *     pace__line line = {.columns_max = 80, .is_utf8 = true};
 *     pace__line_put(&line, "loss ");
 *     pace__line_pad(&line, 20);                   // blanks, up to column 20
 *     puts(line.text);
 *
 * 1. The text is plain: nothing in it can steer a terminal, wherever it came from. Without is_utf8 it is ASCII.
 * 2. It never has more than columns_max columns (at most PACE__LINE_COLUMNS_MAX), and ends with a NUL.
 */
#ifndef TOP_LINE_H
#define TOP_LINE_H

#include <stdbool.h>
#include <stddef.h>

#define PACE__LINE_COLUMNS_MAX 500
#define PACE__LINE_BYTES       (4 * PACE__LINE_COLUMNS_MAX + 1)

typedef struct pace__line {
    char text[PACE__LINE_BYTES];
    size_t bytes;
    int columns, columns_max;
    bool is_utf8;
} pace__line;

/* What does not fit is left out. */
void pace__line_put(pace__line *line, const char *text);
void pace__line_format(pace__line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Blanks up to that column. */
void pace__line_pad(pace__line *line, int column);
/* In `width` columns, to the left or to the right; what is longer is cut at its end. */
void pace__line_cell(pace__line *line, const char *text, int width, bool to_the_right);

/* The columns that a text takes. */
int pace__text_columns(const char *text, bool is_utf8);

/* How many bytes of `text` go on a line of so many columns: up to a blank, if there is one; at least a character. */
size_t pace__text_wrap(const char *text, int columns, bool is_utf8);

/* --- amounts, in at most 7 columns --- */

#define PACE__AMOUNT_TEXT 32
const char *pace__text_count(double count, char text[PACE__AMOUNT_TEXT]);   /* 1.07M; - if it is not known */
const char *pace__text_bytes(double bytes, char text[PACE__AMOUNT_TEXT]);   /* 12.3MiB */
const char *pace__text_percent(double share, char text[PACE__AMOUNT_TEXT]); /* 71% */
const char *pace__text_seconds(double seconds, char text[PACE__AMOUNT_TEXT]); /* 12 s, 3:05 min, 1:02:03 h */
const char *pace__text_whole(double count, char text[PACE__AMOUNT_TEXT]);     /* 1,234,567: more columns */

#endif
