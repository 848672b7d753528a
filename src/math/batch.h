/*
 * batch.h - the rows that a model computes on: where `data` and `model` meet.
 *
 * A pace__rows is a view; it owns nothing. Ids are compact: below the set's `ids`, or equal to it for "never
 * seen in training".
 *
 * Rows of text have columns, too: a text's words in their order, and padding (id 0) up to the set's length.
 * How many of them are words is in `length`; see pace__row_words.
 *
 * Rows of pictures have `columns` bytes each, height x width x channels, and neither ids nor values; rows of
 * features (what a network's frozen layers have made of pictures) have `columns` floats. Both have a class
 * instead of a label.
 */
#ifndef MATH_BATCH_H
#define MATH_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The special ids of texts; those of words follow. */
enum { PACE__ID_PAD, PACE__ID_UNKNOWN, PACE__ID_EMPTY, PACE__ID_WORDS };

typedef struct pace__rows {
    size_t rows;
    uint32_t columns;      /* not 0: every row has that many entries; 0: row i has start[i] .. start[i + 1] */
    const uint64_t *start; /* (rows + 1), or NULL with columns */
    const uint32_t *ids;   /* (entries) */
    const float *values;   /* (entries), or NULL: all 1 */
    const uint8_t *label;  /* (rows) 0 or 1; NULL where there are classes */
    /* Text only. */
    const uint32_t *length; /* (rows) 1 .. columns; NULL: no text */
    bool front;             /* padding is in front of the words, not behind them */
    /* Pictures and features only. */
    const uint8_t *pixels;   /* (rows, columns); NULL: no pictures */
    const float *features;   /* (rows, columns); NULL: no features */
    const uint16_t *classes; /* (rows) below the number of classes */
    const uint32_t *source;  /* (rows) the line of images.txt, from 0, that names the picture */
} pace__rows;

static inline uint64_t pace__row_start(const pace__rows *rows, size_t row)
{
    return rows->columns ? (uint64_t)row * rows->columns : rows->start[row];
}

/* The words of a row of text, rows->length[row] of them. */
static inline const uint32_t *pace__row_words(const pace__rows *rows, size_t row)
{
    const uint32_t *ids = rows->ids + row * rows->columns;

    return rows->front ? ids + rows->columns - rows->length[row] : ids;
}

/* Rows first .. first + count of a view. */
static inline pace__rows pace__rows_slice(const pace__rows *rows, size_t first, size_t count)
{
    pace__rows slice = *rows;

    slice.rows = count;
    if (rows->classes) {
        slice.pixels = rows->pixels ? rows->pixels + first * rows->columns : NULL;
        slice.features = rows->features ? rows->features + first * rows->columns : NULL;
        slice.classes += first;
        slice.source += first;
        return slice;
    }
    slice.label += first;
    if (rows->length)
        slice.length += first;
    if (rows->columns) {
        slice.ids += first * rows->columns;
        if (slice.values)
            slice.values += first * rows->columns;
    } else {
        slice.start += first; /* starts stay relative to the whole view's ids */
    }
    return slice;
}

#endif
