/*
 * svmlight.h - what the plain and the fast svmlight parser share. Internal to svmlight*.c, and for their
 * tests.
 *
 * As with Criteo rows, the plain parser defines what a line means, and the fast one hands it every line
 * that is not regular.
 */
#ifndef DATA_FORMATS_SVMLIGHT_H
#define DATA_FORMATS_SVMLIGHT_H

#include "data/formats/parse.h"

/* What an encoding asks of ids. */
typedef struct pace__numbering {
    uint64_t limit; /* ids are below it */
    uint64_t features;
    bool hashed;
} pace__numbering;

/* What both parsers do first: clears `rows`. */
pace__numbering pace__svmlight_begin(const pace__parser *parser, pace__raw_rows *rows);

/*
 * The plain parser on the line at *at: appends a row, skips a blank line or comment, or reports a bad row;
 * and moves on.
 */
pace_status pace__svmlight_line(const pace__parser *parser, const pace__chunk *chunk, size_t *at,
                                const pace__numbering *ids, pace__raw_rows *rows);

/*
 * Takes the value at *at, of a line that ends with a newline, up to a gap; false if it is no finite number.
 */
bool pace__svmlight_value(const char **at, float *value);

pace__parse_fn pace__parse_svmlight_plain;
PACE__TABLES(pace__parse_kernels, pace__svmlight)

#endif
