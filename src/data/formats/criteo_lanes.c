/*
 * The fast Criteo parser. A segment of text is scanned once for delimiters, 64 bytes at a time, into a list of their
 * places; then each row takes 40 entries of the list and is encoded by vectors of LONGS columns, without a branch that
 * depends on its contents. What is not a regular row goes to the plain parser.
 */
#include "base/random.h"
#include "data/formats/criteo.h"
#include "data/formats/fields_lanes.h"

#include <paceline/prep.h>

#define LABELLED   (1 + PACE__CRITEO_COLUMNS)
#define UNLABELLED PACE__CRITEO_COLUMNS

/*
 * Delimiters are all bytes up to '\n' (10). Those that are no tabs, newlines or another control character, are listed in
 * `end`: a regular row is 39 tabs and then one of these, and that one is a newline.
 */
typedef struct scanned {
    const char *text;
    uint32_t bytes, ends;
    uint32_t place[SEGMENT_PLACES];
    uint32_t end[SEGMENT_BYTES + 1];
} scanned;

static void scan(scanned *self, const char *text, size_t size)
{
    uint32_t *place = self->place, ends = 0;

    self->text = text;
    self->bytes = (uint32_t)(size < SEGMENT_BYTES ? size : SEGMENT_BYTES);
    *place++ = 0;
    for (uint32_t at = 0; at < self->bytes; at += TEXT64_BYTES) {
        text64 block = text64_load(text + at);
        uint64_t bits = bits_in_segment(text64_up_to(block, '\n'), self->bytes, at);
        uint64_t others = bits & ~text64_equal(block, '\t');

        /* There is one or none, as a rule: it is written in any case, and counted if it is there. */
        do {
            uint64_t before = bits & ((others & (0 - others)) - 1);

            self->end[ends] = (uint32_t)(place - self->place) + (uint32_t)__builtin_popcountll(before);
            ends += others != 0;
            others &= others - 1;
        } while (__builtin_expect(others != 0, 0));
        place += places_add(place, at + 1, bits);
    }
    self->ends = ends;
}

/* Columns are taken LONGS at a time. Where their count is no multiple of that, the last vector begins before the one
 * before it has ended, and writes the same again. */
INLINE unsigned first_of(unsigned column, unsigned count)
{
    return column + LONGS <= count ? column : count - LONGS;
}

/* --- integers --- */

/* pace__integer_cell: the exponent of a float and the bits behind it. Numbers of 24 bits are exact in it, and larger
 * ones stay larger. */
INLINE longs integer_cells(longs numbers)
{
    const uint32_t first = (127 + PACE__INTEGER_CELL_BITS) << PACE__INTEGER_CELL_BITS;
    floats clamped = floats_max(floats_of_ints((ints)numbers), floats_all(PACE__INTEGER_MIN));

    clamped = floats_min(clamped, floats_all(PACE__INTEGER_MAX)) + PACE__INTEGER_CELL_OFFSET;
    return (longs)(((words)clamped >> (23 - PACE__INTEGER_CELL_BITS)) - first) & UINT32_MAX;
}

/*
 * LONGS columns: their numbers, 0 of empty ones, and cells, PACE__INTEGER_CELL_MISSING of empty ones. Where the highest bit of a
 * byte is set in what it returns, a field needs the plain parser: it has more than 8 bytes, is a minus alone, or
 * holds other bytes than digits.
 */
INLINE longs parse_integers(const char *text, const uint32_t *place, int64_t *number, uint64_t *cell)
{
    fields it = fields_load(text, place, place + 1);
    longs minus = fields_take_minus(&it), digits = fields_digits(it), empty = (it.size - 1) >> 63;
    longs numbers = (longs_join_digits(digits) ^ (0 - minus)) + minus;

    longs_store(number, numbers);
    longs_store(cell, integer_cells(numbers) +
                          ((0 - empty) & (PACE__INTEGER_CELL_MISSING - PACE__INTEGER_CELL_ZERO)));
    return (8 - it.size) | (it.size - 2 * minus) | not_digits(digits);
}

static void add_values(const uint64_t *base, const int64_t *number, const uint64_t *cell, uint64_t *ids,
                       float *values)
{
    for (unsigned c = 0; c < PACE__CRITEO_INTEGERS; c++) {
        bool missing = cell[c] == PACE__INTEGER_CELL_MISSING;

        ids[c] = base[c] + (missing ? PACE__PLACE_MISSING : PACE__PLACE_VALUE);
        values[c] = missing ? 1 : pace__integer_value(number[c]);
    }
    for (unsigned c = PACE__CRITEO_INTEGERS; c < PACE__CRITEO_COLUMNS; c++)
        values[c] = 1;
}

/* False: this row is for the plain parser. */
INLINE bool add_integers(const pace__encoding *encoding, const char *text, const uint32_t *place,
                         uint64_t *ids, float *values)
{
    const uint64_t *base = encoding->column_base;
    int64_t number[PACE__CRITEO_INTEGERS];
    uint64_t cell[PACE__CRITEO_INTEGERS];
    longs wrong = {0};

    UNROLL
    for (unsigned c = 0; c < PACE__CRITEO_INTEGERS; c += LONGS) {
        unsigned first = first_of(c, PACE__CRITEO_INTEGERS);

        wrong |= parse_integers(text, place + first, number + first, cell + first);
    }
    wrong &= 0x8080808080808080;
    if (longs_high(wrong | (0 - wrong)))
        return false;
    if (encoding->numeric == PACE_NUMERIC_VALUES) {
        add_values(base, number, cell, ids, values);
    } else {
        UNROLL
        for (unsigned c = 0; c < PACE__CRITEO_INTEGERS; c++)
            ids[c] = base[c] + pace__bin_place(pace__integer_bins[cell[c]], base[c + 1] - base[c]);
    }
    return true;
}

/* --- categories --- */

/* pace__short_hash */
INLINE longs short_hashes(fields it)
{
    longs text = it.text & ~longs_shift_up(longs_all(UINT64_MAX), 8 * it.size);
    longs hash = (text + longs_multiply_low(it.size, longs_all(PACE__HASH_LENGTH))) * PACE__HASH_FIRST;

    return (hash ^ hash >> 32) * PACE__HASH_SECOND;
}

/* pace__scale_to, for limits below 2^32: the high half of a 96-bit product. */
INLINE longs scale_to(longs bits, longs limit)
{
    return (longs_multiply_low(bits >> 32, limit) + (longs_multiply_low(bits, limit) >> 32)) >> 32;
}

/* LONGS columns; the highest bit of what it returns is set where one is longer than 8 bytes, and not right yet. */
INLINE longs add_short_categories(const uint64_t *column_base, const char *text, const uint32_t *place,
                                  uint64_t *ids)
{
    fields it = fields_load(text, place, place + 1);
    longs base = longs_load(column_base), size = longs_load(column_base + 1) - base;

    longs_store(ids, base + scale_to(short_hashes(it), size));
    return 8 - it.size;
}

static void add_category(const uint64_t *base, const char *text, uint32_t size, uint64_t *id)
{
    *id = base[0] + pace__scale_to(pace__category_hash(text, size), base[1] - base[0]);
}

INLINE void add_categories(const uint64_t *base, const char *text, const uint32_t *place, uint64_t *ids)
{
    const unsigned last = PACE__CRITEO_CATEGORIES - 1;
    longs too_long = {0};

    UNROLL
    for (unsigned c = 0; c < PACE__CRITEO_CATEGORIES; c += LONGS) {
        unsigned first = first_of(c, PACE__CRITEO_CATEGORIES);

        too_long |= add_short_categories(base + first, text, place + first, ids + first);
    }
    for (unsigned c = 0; __builtin_expect(longs_high(too_long) != 0, 0) && c <= last; c++)
        add_category(base + c, text + place[c], place[c + 1] - place[c] - 1, ids + c);
    /* A carriage return is not part of the last one. */
    if (text[place[last + 1] - 2] == '\r')
        add_category(base + last, text + place[last], place[last + 1] - place[last] - 2, ids + last);
}

/* --- rows --- */

/* Appends the row from delimiter `next` to the one at its `end`; false if it is for the plain parser. */
INLINE bool add_regular_row(const pace__parser *parser, const scanned *segment, uint32_t next, uint32_t end,
                            pace__raw_rows *rows)
{
    const uint32_t *place = &segment->place[next];
    const char *text = segment->text;
    const pace__encoding *encoding = parser->encoding;
    size_t row = rows->rows, entry = row * PACE__CRITEO_COLUMNS;
    bool labelled = end - next == LABELLED;
    unsigned label = labelled ? (unsigned)(unsigned char)text[place[0]] - '0' : 0;

    if (!(labelled || (parser->labels_optional && end - next == UNLABELLED)) || label > 1 ||
        (labelled && place[1] - place[0] != 2) || text[segment->place[end] - 1] != '\n')
        return false;
    place += labelled;
    if (!add_integers(encoding, text, place, rows->ids + entry, rows->values + entry))
        return false;
    add_categories(encoding->column_base + PACE__CRITEO_INTEGERS, text, place + PACE__CRITEO_INTEGERS,
                   rows->ids + entry + PACE__CRITEO_INTEGERS);
    rows->label[row] = (uint8_t)label;
    rows->start[row + 1] = entry + PACE__CRITEO_COLUMNS;
    rows->rows++;
    return true;
}

/* Parses the rows of the segment, which begins at *at, up to the first one that is not complete in it. */
static pace_status parse_segment(const pace__parser *parser, const pace__chunk *chunk, const scanned *segment,
                                 size_t *at, pace__raw_rows *rows)
{
    const uint32_t *place = segment->place, *end = segment->end, *ends = end + segment->ends;
    size_t base = *at;
    pace_status status = PACE_OK;

    for (uint32_t next = 0; !status && rows->rows < PACE__RAW_ROWS && *at < base + segment->bytes;
         next = *end++) {
        rows->offset[rows->rows] = chunk->offset + *at;
        if (end < ends && add_regular_row(parser, segment, next, *end, rows)) {
            *at = base + place[*end];
            continue;
        }
        size_t newline = pace__line_end(chunk, *at);
        bool complete = newline < base + segment->bytes;

        /* An incomplete row begins the next segment; what is longer than a segment, or the end of the file, cannot
         * wait. */
        if (!complete && next > 0)
            break;
        status = pace__criteo_row(parser, chunk, *at, newline, rows);
        *at = newline < chunk->size ? newline + 1 : newline;
        if (!complete)
            break;
        while (base + place[*end] != *at)
            end++;
    }
    return status;
}

static pace_status parse(const pace__parser *parser, const pace__chunk *chunk, size_t *at,
                         pace__raw_rows *rows)
{
    pace_status status = pace__criteo_begin(parser, rows);
    scanned segment;

    /* The vectors scale to 32 bits at most. */
    if (parser->encoding->features > UINT32_MAX)
        return pace__parse_criteo_plain(parser, chunk, at, rows);
    while (!status && rows->rows < PACE__RAW_ROWS && *at < chunk->size) {
        scan(&segment, chunk->data + *at, chunk->size - *at);
        status = parse_segment(parser, chunk, &segment, at, rows);
    }
    return status;
}

const pace__parse_kernels PACE__SET(pace__criteo) = {.parse = parse};
