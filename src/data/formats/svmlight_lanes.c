/*
 * The fast svmlight parser: ids and values of up to 8 characters, LONGS pairs at a time. A longer or unusual value is
 * parsed alone by the plain parser's rule; a line that is not regular goes to the plain parser as a whole.
 */
#include "data/formats/fields_lanes.h"
#include "data/formats/svmlight.h"

/*
 * Delimiters are colons, and gaps: all bytes up to ' '. In a regular line they take turns. Where they do not, a field
 * ends before it begins, and its size is far above 8: no list says which delimiter comes first.
 */
typedef struct scanned {
    const char *text;
    uint32_t bytes, lines, colons;
    bool odd; /* there is another gap than spaces and newlines: all of it is for the plain parser */
    uint32_t gap[SEGMENT_PLACES], colon[SEGMENT_PLACES];
    /* Of line i: which gap is its newline, and the colon that comes behind it. */
    struct line_end {
        uint32_t gap, colon;
    } end[SEGMENT_BYTES + 1];
} scanned;

/* Vectors read behind the last place of a list. */
static void pad(uint32_t *places, uint32_t end)
{
    for (unsigned i = 0; i < LONGS; i++)
        places[i] = end;
}

static void scan(scanned *self, const char *text, size_t size)
{
    uint32_t *gap = self->gap, *colon = self->colon, lines = 0;
    uint64_t odd = 0;

    self->text = text;
    self->bytes = (uint32_t)(size < SEGMENT_BYTES ? size : SEGMENT_BYTES);
    *gap++ = *colon++ = 0;
    for (uint32_t at = 0; at < self->bytes; at += TEXT64_BYTES) {
        text64 block = text64_load(text + at);
        uint64_t gaps = bits_in_segment(text64_up_to(block, ' '), self->bytes, at);
        uint64_t colons = bits_in_segment(text64_equal(block, ':'), self->bytes, at);
        uint64_t newlines = gaps & text64_equal(block, '\n');

        odd |= gaps & ~newlines & ~text64_equal(block, ' ');
        /* There is one or none, as a rule: it is written in any case, and counted if it is there. */
        do {
            uint64_t before = (newlines & (0 - newlines)) - 1;

            self->end[lines].gap =
                (uint32_t)(gap - self->gap) + (uint32_t)__builtin_popcountll(gaps & before);
            self->end[lines].colon =
                (uint32_t)(colon - self->colon) + (uint32_t)__builtin_popcountll(colons & before);
            lines += newlines != 0;
            newlines &= newlines - 1;
        } while (__builtin_expect(newlines != 0, 0));
        gap += places_add(gap, at + 1, gaps);
        colon += places_add(colon, at + 1, colons);
    }
    self->odd = odd != 0;
    self->lines = lines;
    self->colons = (uint32_t)(colon - self->colon);
    pad(gap, self->bytes);
    pad(colon, self->bytes);
}

/* Its entries are between gap[0], colon[0], gap[1], colon[1], ... */
typedef struct line_shape {
    const uint32_t *gap, *colon;
    uint32_t entries;
} line_shape;

/* 0, 1, +1 or -1; other spellings are left to the plain parser. */
INLINE bool parse_label(const char *text, uint32_t size, uint8_t *label)
{
    bool sign = text[0] == '-' || text[0] == '+';
    char digit = text[sign];

    *label = digit == '1' && text[0] != '-';
    return size == 1u + sign && (digit == '1' || (digit == '0' && !sign));
}

/* --- entries --- */

/*
 * Takes the point out of the digits. Its place is 0 to 7, and 8 if there is none: as many bytes are below it. A second
 * one stays.
 */
INLINE longs take_points(longs digits, longs *place)
{
    longs other = digits ^ (0x0101010101010101 * ('.' ^ '0'));
    /* The lowest bit of the lowest byte that is 0. */
    longs zeros = ((other - 0x0101010101010101) & ~other & 0x8080808080808080) >> 7;
    longs lowest = zeros & (0 - zeros), below = lowest - 1;

    *place = longs_sum_bytes(below & 0x0101010101010101);
    longs moved = digits & below & (0 - ((*place - 8) >> 63));

    return (digits & ~((lowest << 8) - lowest)) + (moved << 8) - moved;
}

/* The values, by the same arithmetic as the plain parser's; the highest bit of *unusual is set where it has another. */
INLINE half_floats parse_values(fields it, longs *unusual)
{
    /* No point, at place 8, is like one at place 0, which is unusual. */
    static const double divisors[8] = {1, 1e6, 1e5, 1e4, 1e3, 1e2, 1e1, 1};
    longs minus = fields_take_minus(&it), place;
    longs digits = take_points(fields_digits(it), &place), wrong = not_digits(digits);
    doubles numbers = doubles_of_longs(longs_join_digits(digits)) / doubles_of_8(divisors, place);

    /* Too long; empty, or the point is the first or the last character; no digits. */
    *unusual = (8 - it.size) | (place + it.size - minus - 9) | ((place ^ 7) - 1) | wrong | (0 - wrong);
    return __builtin_convertvector((doubles)((longs)numbers ^ minus << 63), half_floats);
}

/* Parses again, one by one, what the vectors could not; false if one is no number that ends at its gap. */
static bool parse_unusual_values(const char *text, const uint32_t *gap, const uint32_t *colon, unsigned lanes,
                                 float *values)
{
    for (; lanes; lanes &= lanes - 1) {
        unsigned lane = (unsigned)__builtin_ctz(lanes);
        const char *at = text + colon[lane];

        if (colon[lane] > gap[lane + 1] || !pace__svmlight_value(&at, &values[lane]) ||
            at != text + gap[lane + 1] - 1)
            return false;
    }
    return true;
}

/* Up to LONGS entries. Writes so many in any case. */
INLINE bool add_pairs(const char *text, const uint32_t *gap, const uint32_t *colon, uint32_t count,
                      uint64_t limit, uint64_t *ids, float *values)
{
    unsigned lanes = count < LONGS ? (1u << count) - 1 : (1u << LONGS) - 1;
    fields id = fields_load(text, gap, colon);
    longs digits = fields_digits(id), numbers = longs_join_digits(digits), wrong = not_digits(digits),
          unusual;
    half_floats parsed = parse_values(fields_load(text, colon, gap + 1), &unusual);

    wrong |= (0 - wrong) | (8 - id.size) | (id.size - 1) | (limit - 1 - numbers);
    longs_store(ids, numbers);
    memcpy(values, &parsed, sizeof parsed);
    if (longs_high(wrong) & lanes)
        return false;
    return parse_unusual_values(text, gap, colon, longs_high(unusual) & lanes, values);
}

/* --- lines --- */

/* Appends the line; false if it is for the plain parser after all. */
INLINE bool add_entries(const char *text, const line_shape *line, const pace__numbering *numbering,
                        pace__raw_rows *rows)
{
    size_t start = rows->start[rows->rows];
    uint64_t *ids = rows->ids + start;

    for (uint32_t entry = 0; entry < line->entries; entry += LONGS) {
        if (!add_pairs(text, line->gap + entry, line->colon + entry, line->entries - entry, numbering->limit,
                       ids + entry, rows->values + start + entry))
            return false;
    }
    for (uint32_t entry = 0; numbering->hashed && entry < line->entries; entry++)
        ids[entry] = pace__number_hash(ids[entry], numbering->features);
    rows->start[++rows->rows] = start + line->entries;
    return true;
}

/* Appends the line between the two; false if it is for the plain parser. */
INLINE bool add_regular_line(const pace__parser *parser, const scanned *segment, struct line_end from,
                             struct line_end to, const pace__numbering *numbering, pace__raw_rows *rows)
{
    const uint32_t *gap = segment->gap + from.gap, *colon = segment->colon + from.colon;
    uint32_t gaps = to.gap - from.gap, entries = to.colon - from.colon;
    bool labelled = entries == 0 || colon[0] > gap[1];
    uint8_t *label = &rows->label[rows->rows];
    /* Many files have a space at the end of each line. */
    bool space = gaps > 1 && gap[gaps] == gap[gaps - 1] + 1;

    if (segment->odd || !(labelled || parser->labels_optional) || gaps != entries + labelled + space)
        return false;
    *label = 0;
    if (labelled && !parse_label(segment->text + gap[0], gap[1] - gap[0] - 1, label))
        return false;
    return add_entries(segment->text, &(line_shape){gap + labelled, colon, entries}, numbering, rows);
}

/* Parses the lines of the segment, which begins at *at, up to the first one that is not complete in it. */
static pace_status parse_segment(const pace__parser *parser, const pace__chunk *chunk, const scanned *segment,
                                 const pace__numbering *numbering, size_t *at, pace__raw_rows *rows)
{
    size_t base = *at;
    /* Every entry has a colon; the vectors write some more behind the last one. */
    size_t room = rows->start[rows->rows] + segment->colons + LONGS;
    pace_status status = pace__raw_rows_reserve(rows, room, parser->bad->log);

    struct line_end before = {0, 1};

    for (uint32_t line = 0; !status && rows->rows < PACE__RAW_ROWS && *at < base + segment->bytes; line++) {
        bool complete = line < segment->lines;

        rows->offset[rows->rows] = chunk->offset + *at;
        if (complete && add_regular_line(parser, segment, before, segment->end[line], numbering, rows))
            *at = base + segment->gap[segment->end[line].gap];
        /* An incomplete line begins the next segment, unless it fills this one. */
        else if (complete || line == 0)
            status = pace__svmlight_line(parser, chunk, at, numbering, rows);
        else
            break;
        before = segment->end[line];
    }
    return status;
}

static pace_status parse(const pace__parser *parser, const pace__chunk *chunk, size_t *at,
                         pace__raw_rows *rows)
{
    pace__numbering numbering = pace__svmlight_begin(parser, rows);
    pace_status status = PACE_OK;
    scanned segment;

    while (!status && rows->rows < PACE__RAW_ROWS && *at < chunk->size) {
        scan(&segment, chunk->data + *at, chunk->size - *at);
        status = parse_segment(parser, chunk, &segment, &numbering, at, rows);
    }
    return status;
}

const pace__parse_kernels PACE__SET(pace__svmlight) = {.parse = parse};
