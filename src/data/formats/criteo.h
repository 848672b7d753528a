/*
 * criteo.h - what the plain and the fast Criteo parsers share. Internal to encoding.c and criteo*.c, and for
 * their tests.
 *
 * The plain parser defines what a row means. The fast one takes only rows without surprises (at most 8
 * bytes in an integer, no control characters, ...) and hands every other row, alone, to pace__criteo_row,
 * so that both give the same rows, the same bad rows and the same messages on any bytes. The vector code
 * repeats three small rules, which are stated here once as scalar code: the short hash, an integer's cell,
 * a bin's place.
 */
#ifndef DATA_FORMATS_CRITEO_H
#define DATA_FORMATS_CRITEO_H

#include "data/formats/parse.h"

#include <string.h>

#define PACE__SHORT_TEXT  8
#define PACE__HASH_LENGTH 0x9e3779b1u
#define PACE__HASH_FIRST  0xd6e8feb86659fd93u
#define PACE__HASH_SECOND 0xa0761d6478bd642fu

/*
 * `text` holds a field of at most 8 bytes, its first byte lowest, zeros behind its last. A multiplication
 * carries bits up only; the shift between the two brings the high ones down, so that every bit of the text
 * reaches the high bits of the hash, which pace__scale_to uses.
 */
static inline uint64_t pace__short_hash(uint64_t text, uint32_t size)
{
    uint64_t hash = (text + (uint64_t)size * PACE__HASH_LENGTH) * PACE__HASH_FIRST;

    hash ^= hash >> 32;
    return hash * PACE__HASH_SECOND;
}

/*
 * Integers are cut into cells as a floating-point number with 6 bits behind its leading one would cut them:
 * -3 (and below) to 60 have cells of their own, then the width doubles with each octave. A table maps cells
 * to bins. So bins are exact integer arithmetic, the same on any machine, where floor(log(v)^2) depends on
 * rounding.
 */
#define PACE__INTEGER_CELL_BITS   6
#define PACE__INTEGER_CELL_OFFSET 67 /* moves the smallest integer to 64, the first number that long */
#define PACE__INTEGER_MIN         (-3)
#define PACE__INTEGER_MAX         ((1 << 24) - 1 - PACE__INTEGER_CELL_OFFSET)
#define PACE__INTEGER_CELLS       1152
#define PACE__INTEGER_CELL_ZERO   (-PACE__INTEGER_MIN)
/* Of no integer, in the fast parsers: its bin is 0. */
#define PACE__INTEGER_CELL_MISSING PACE__INTEGER_CELLS

extern const uint8_t pace__integer_bins[PACE__INTEGER_CELLS + 1];

static inline uint32_t pace__integer_cell(int64_t value)
{
    int64_t clamped = value < PACE__INTEGER_MIN ? PACE__INTEGER_MIN : value;

    clamped = clamped > PACE__INTEGER_MAX ? PACE__INTEGER_MAX : clamped;
    uint32_t number = (uint32_t)(clamped + PACE__INTEGER_CELL_OFFSET);
    uint32_t shift = 31 - (uint32_t)__builtin_clz(number) - PACE__INTEGER_CELL_BITS;

    return (shift << PACE__INTEGER_CELL_BITS) + (number >> shift) - (1 << PACE__INTEGER_CELL_BITS);
}

/* A column with fewer places than bins merges neighbouring bins. */
static inline uint64_t pace__bin_place(uint32_t bin, uint64_t column_size)
{
    return bin * column_size / PACE__BINS;
}

/* Scaled values: the places of an integer column's two weights. */
enum { PACE__PLACE_VALUE, PACE__PLACE_MISSING };

/* The newline that ends the line at `at`, or the end of the chunk. */
static inline size_t pace__line_end(const pace__chunk *chunk, size_t at)
{
    const char *newline = memchr(chunk->data + at, '\n', chunk->size - at);

    return newline ? (size_t)(newline - chunk->data) : chunk->size;
}

/* What both parsers do first: clears `rows` and makes room for a batch. */
pace_status pace__criteo_begin(const pace__parser *parser, pace__raw_rows *rows);

/*
 * The plain parser on one line, from `at` to its end: appends a row, skips a blank line or reports a bad
 * one.
 */
pace_status pace__criteo_row(const pace__parser *parser, const pace__chunk *chunk, size_t at, size_t end,
                             pace__raw_rows *rows);

pace__parse_fn pace__parse_criteo_plain;
PACE__TABLES(pace__parse_kernels, pace__criteo)

#endif
