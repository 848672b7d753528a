/*
 * markup.h - text, numbers and tables as HTML, and numbers and texts as JSON within it.
 *
 *     pace__table_begin(out, "Roles", (const char *const[]){"role", ">CPU", NULL});
 *     pace__row_begin(out);
 *     pace__put_cell(out, name);
 *     pace__put_cell_amount(out, seconds, PACE__SECONDS);
 *     pace__row_end(out);
 *     pace__table_end(out);
 *
 * 1. Whatever text comes in, what goes out is valid UTF-8 and has no meaning in HTML: all texts go through here.
 * 2. In JSON there is no '<': no text can end the script element around it.
 * 3. Numbers that are none are a dash in tables and null in JSON.
 */
#ifndef REPORT_MARKUP_H
#define REPORT_MARKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* How a number is to be read. */
typedef enum pace__unit {
    PACE__COUNT,   /* 1,234,567 */
    PACE__REAL,    /* 0.49054, 5 digits */
    PACE__SECONDS, /* 0.12 s, 75 s, 2 h 05 min */
    PACE__BYTES,   /* 12.3 MB */
    PACE__RATE,    /* 12.3 MB/s */
    PACE__SHARE    /* 12.3 % of 0.123 */
} pace__unit;

#define PACE__AMOUNT_TEXT 48

/* Returns `text`. */
const char *pace__amount(double value, pace__unit unit, char text[PACE__AMOUNT_TEXT]);

void pace__text(FILE *out, const char *text);

void pace__json_text(FILE *out, const char *text);
/* As short as a chart needs it: 6 digits. */
void pace__json_number(FILE *out, double value);

/* A heading that begins with '>' stands above numbers. The table has a box of its own, which scrolls if it is wide. */
void pace__table_begin(FILE *out, const char *const *headings);
void pace__table_end(FILE *out);
void pace__row_begin(FILE *out);
void pace__row_end(FILE *out);
void pace__put_cell(FILE *out, const char *text);        /* NULL: a dash */
void pace__put_cell_number(FILE *out, const char *text); /* a text that is a number */
void pace__put_cell_amount(FILE *out, double value, pace__unit unit);

#endif
