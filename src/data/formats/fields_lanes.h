/*
 * fields_lanes.h - the parts that the fast parsers share: where the fields are, and what numbers they spell.
 *
 * A segment of text is scanned once, 64 bytes at a time, into lists of its delimiters' places. Rows then take their
 * fields from the lists, LONGS at a time, without a branch that depends on how long they are.
 */
#ifndef DATA_FORMATS_FIELDS_LANES_H
#define DATA_FORMATS_FIELDS_LANES_H

#include "lanes/longs.h"
#include "lanes/text.h"

#define SEGMENT_BYTES 8192

/* Room for the places behind the delimiters of a segment, from 1 on, and in front of them 0, where it begins. */
#define SEGMENT_PLACES (1 + SEGMENT_BYTES + PLACES_SLACK)

/* What is behind the chunk's end is readable but means nothing. */
INLINE uint64_t bits_in_segment(uint64_t bits, uint32_t size, uint32_t at)
{
    return bits_first(bits, size - at < TEXT64_BYTES ? size - at : TEXT64_BYTES);
}

/* LONGS fields: their first 8 bytes (with whatever follows a shorter one), and their sizes. */
typedef struct fields {
    longs text, size;
} fields;

/* They begin at `begin` and end in front of the byte before `behind`. */
INLINE fields fields_load(const char *text, const uint32_t *begin, const uint32_t *behind)
{
    return (fields){longs_pick(text, begin), longs_of_words(behind) - longs_of_words(begin) - 1};
}

/* Makes a leading zero of a leading minus, and 1 where there was one. An empty field begins with its delimiter. */
INLINE longs fields_take_minus(fields *self)
{
    longs minus = (((self->text & 0xff) ^ '-') - 1) >> 63;

    self->text ^= (0 - minus) & ('-' ^ '0');
    return minus;
}

/* The bytes of each field less '0', the last one highest, zeros below the first: what is up to 9 everywhere is a number
 * with leading zeros. Fields above 8 bytes give rubbish. */
INLINE longs fields_digits(fields self)
{
    return longs_shift_up(self.text ^ 0x3030303030303030, 64 - 8 * self.size);
}

/* The highest bits of bytes above 9, and of the one or the other behind them. */
INLINE longs not_digits(longs digits)
{
    return ((digits + 0x7676767676767676) | digits) & 0x8080808080808080;
}

#endif
