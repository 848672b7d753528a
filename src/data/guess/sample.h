/*
 * sample.h - the first rows of a table, cell by cell, and what they say. Internal to this room, and for its tests.
 */
#ifndef DATA_GUESS_SAMPLE_H
#define DATA_GUESS_SAMPLE_H

#include "data/formats/sheet_rows.h"

/* Rows that are looked at, at most. */
#define PACE__SHEET_SAMPLE_ROWS_MAX 10000

typedef struct pace__sheet_cell {
    double number;    /* NAN: none, or missing */
    const char *text; /* in the bytes that the sample was taken of, without blanks around it */
    size_t size;
} pace__sheet_cell;

typedef struct pace__sheet_sample {
    uint32_t columns;
    size_t rows;
    pace__sheet_cell *cells; /* (rows, columns) */
    bool *text;              /* (columns): some cell is neither a number nor missing */
} pace__sheet_sample;

/* Of the whole, good rows of bytes[0 .. size), which go on behind the header. */
pace_status pace__sheet_sample_take(uint32_t columns, char separator, const char *bytes, size_t size,
                                    bool complete, const pace_log *log, pace__sheet_sample *sample);
void pace__sheet_sample_release(pace__sheet_sample *sample); /* a zeroed one is allowed */

/* What a column's first cells, as far as they are not missing, have in common. */
typedef struct pace__sheet_facts {
    size_t values, different;
    bool numbers; /* all are, and there is one */
    bool whole;
    bool rising; /* each number is above the one before */
} pace__sheet_facts;

/* `scratch` has room for a number and a print for each row. */
pace__sheet_facts pace__sheet_facts_of(const pace__sheet_sample *sample, uint32_t column, uint64_t *scratch);

/* Changes the values, which are finite. */
pace__scale pace__scale_for(double *values, size_t count);

#endif
