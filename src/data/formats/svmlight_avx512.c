/*
 * The fast svmlight parser: ids and values of up to 8 characters, eight pairs at a time. A longer or
 * unusual value is parsed alone by the plain parser's rule; a line that is not regular goes to the plain
 * parser as a whole.
 */
#include "data/formats/fields_avx512.h"
#include "data/formats/svmlight.h"

#include <string.h>

/* Delimiters are colons and all bytes up to ' '. */
typedef struct scanned_text {
    pace__segment segment;
    pace__marks colons, newlines;
    bool odd; /* there is another one than colons, spaces and newlines: all of it is for the plain parser */
} scanned_text;

static void scan(scanned_text *scanned, const char *text, size_t bytes)
{
    pace__segment *segment = &scanned->segment;
    uint64_t odd = 0;

    pace__segment_begin(segment, text, bytes);
    for (uint32_t at = 0; at < segment->bytes; at += PACE__BLOCK_BYTES) {
        __m512i block = _mm512_loadu_si512(text + at);
        uint64_t mask = pace__segment_mask(segment, at);
        uint64_t colons = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(':')) & mask;
        uint64_t newlines = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8('\n')) & mask;
        uint64_t gaps = _mm512_cmple_epu8_mask(block, _mm512_set1_epi8(' ')) & mask;

        odd |= gaps & ~newlines & ~_mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(' '));
        pace__marks_add(&scanned->colons, segment->count, gaps | colons, colons);
        pace__marks_add(&scanned->newlines, segment->count, gaps | colons, newlines);
        pace__segment_add(segment, at, gaps | colons);
    }
    scanned->odd = odd != 0;
}

/* The delimiter that ends the line behind delimiter `next`; 0 if it is not in the segment. */
static inline uint32_t find_newline(const scanned_text *scanned, uint32_t next)
{
    for (uint32_t from = next; from < scanned->segment.count; from += 64) {
        uint64_t newlines =
            _bzhi_u64(pace__marks_at(&scanned->newlines, from),
                      scanned->segment.count - from < 64 ? scanned->segment.count - from : 64);

        if (newlines)
            return from + 1 + (uint32_t)__builtin_ctzll(newlines);
    }
    return 0;
}

/*
 * A regular line: delimiters first, first + 2, ... are the gaps in front of its entries, those between are
 * colons.
 */
typedef struct line_shape {
    uint32_t first;
    uint32_t entries;
    uint32_t end; /* the newline */
} line_shape;

/* Looks at the line behind delimiter `next`; false if it is not regular or not complete. */
static inline bool find_entries(const scanned_text *scanned, uint32_t next, bool labelled, line_shape *line)
{
    const int32_t *position = scanned->segment.position;

    line->first = next + labelled;
    line->end = find_newline(scanned, next);
    if (line->end == 0)
        return false;
    /* Many files have a space at the end of each line. */
    bool space = line->end > line->first && position[line->end] == position[line->end - 1] + 1;
    uint32_t delimiters = line->end - space - line->first;

    line->entries = delimiters / 2;
    for (uint32_t i = 0; i < delimiters; i += 64) {
        uint64_t wrong = pace__marks_at(&scanned->colons, line->first + i) ^ 0x5555555555555555;

        if (_bzhi_u64(wrong, delimiters - i < 64 ? delimiters - i : 64))
            return false;
    }
    return delimiters % 2 == 0;
}

/* 0, 1, +1 or -1; other spellings are left to the plain parser. */
static inline bool parse_label(const char *text, int32_t size, uint8_t *label)
{
    bool sign = text[0] == '-' || text[0] == '+';
    char digit = text[sign];

    *label = digit == '1' && text[0] != '-';
    return size == 1 + sign && (digit == '1' || (digit == '0' && !sign));
}

/* Takes the point out of the digits; the divisor for what was behind it goes to *divisor. */
static inline __m512i take_points(__m512i digits, __m512d *divisor, __mmask8 *at_end)
{
    const __m512d powers = _mm512_setr_pd(1e7, 1e6, 1e5, 1e4, 1e3, 1e2, 1e1, 1e0);
    __m512i points = _mm512_movm_epi8(_mm512_cmpeq_epi8_mask(digits, _mm512_set1_epi8('.' ^ '0')));
    __mmask8 has_point = _mm512_test_epi64_mask(points, points);
    /* The lowest bit of the point's byte, as 2^(8 x place): its exponent tells the place. */
    __m512i lowest = _mm512_and_si512(points, _mm512_sub_epi64(_mm512_setzero_si512(), points));
    __m512i exponent = _mm512_srli_epi64(_mm512_castpd_si512(_mm512_cvtepu64_pd(lowest)), 52);
    __m512i place = _mm512_srli_epi64(_mm512_sub_epi64(exponent, _mm512_set1_epi64(1023)), 3);
    __m512i below = _mm512_sub_epi64(lowest, _mm512_set1_epi64(1));
    __m512i point = _mm512_sub_epi64(_mm512_slli_epi64(lowest, 8), lowest);
    __m512i moved = _mm512_or_si512(_mm512_slli_epi64(_mm512_and_si512(digits, below), 8),
                                    _mm512_andnot_si512(_mm512_or_si512(below, point), digits));

    *divisor = _mm512_mask_permutexvar_pd(_mm512_set1_pd(1), has_point, place, powers);
    *at_end = _mm512_mask_cmpeq_epi64_mask(has_point, place, _mm512_set1_epi64(7));
    return _mm512_mask_mov_epi64(digits, has_point, moved);
}

/*
 * The values, by the same arithmetic as the plain parser's; *unusual are those that it does in another way.
 */
static inline __m256 parse_values(pace__field_lanes fields, __mmask8 *unusual)
{
    __mmask8 too_long = _mm512_cmpgt_epu64_mask(fields.size, _mm512_set1_epi64(8));
    __mmask8 minus = pace__take_minus(&fields);
    __mmask8 empty = _mm512_testn_epi64_mask(fields.size, fields.size), at_end;
    __m512i first = _mm512_and_si512(fields.text, _mm512_set1_epi64(0xff));
    __mmask8 at_begin = _mm512_cmpeq_epi64_mask(first, _mm512_set1_epi64('.'));
    __m512d sign = _mm512_mask_mov_pd(_mm512_set1_pd(1), minus, _mm512_set1_pd(-1)), divisor;
    __m512i digits = take_points(pace__field_digits(fields), &divisor, &at_end);

    *unusual = too_long | empty | at_begin | at_end | pace__not_digits(digits);
    __m512d numbers = _mm512_cvtepi64_pd(pace__join_digits(digits));

    return _mm512_cvtpd_ps(_mm512_mul_pd(_mm512_div_pd(numbers, divisor), sign));
}

/* Parses again, one by one, what the vectors could not; false if one is no number that ends at its gap. */
static bool parse_unusual_values(const char *text, const int32_t *gap, unsigned lanes, float *values)
{
    for (; lanes; lanes &= lanes - 1) {
        unsigned lane = (unsigned)__builtin_ctz(lanes);
        const char *at = text + gap[2 * lane + 1] + 1;

        if (!pace__svmlight_value(&at, &values[lane]) || at != text + gap[2 * lane + 2])
            return false;
    }
    return true;
}

static inline pace__field_lanes load_fields(const char *text, __m512i before, __m512i end, __mmask8 lanes)
{
    const __m512i low = _mm512_set1_epi64(0xffffffff);
    __m512i begin = _mm512_and_si512(_mm512_add_epi64(before, _mm512_set1_epi64(1)), low);

    return (pace__field_lanes){_mm512_mask_i64gather_epi64(_mm512_setzero_si512(), lanes, begin, text, 1),
                               _mm512_sub_epi64(_mm512_and_si512(end, low), begin)};
}

/* Up to eight entries; gap[0], gap[2], ... are the gaps in front of them. Writes eight in any case. */
static inline bool add_pairs(const char *text, const int32_t *gap, unsigned count, uint64_t limit,
                             uint64_t *ids, float *values)
{
    __mmask8 lanes = (__mmask8)(count < PACE__LANES ? (1u << count) - 1 : 0xff);
    __m512i gaps = _mm512_loadu_si512(gap), colons = _mm512_srli_epi64(gaps, 32);
    pace__field_lanes id_fields = load_fields(text, gaps, colons, lanes);
    pace__field_lanes value_fields = load_fields(text, colons, _mm512_loadu_si512(gap + 2), lanes);
    __m512i digits = pace__field_digits(id_fields), numbers = pace__join_digits(digits);
    __m512i size = _mm512_sub_epi64(id_fields.size, _mm512_set1_epi64(1));
    __mmask8 wrong = _mm512_cmpgt_epu64_mask(size, _mm512_set1_epi64(7)) | pace__not_digits(digits) |
                     _mm512_cmpge_epu64_mask(numbers, _mm512_set1_epi64((int64_t)limit));
    __mmask8 unusual;

    _mm512_storeu_si512(ids, numbers);
    _mm256_storeu_ps(values, parse_values(value_fields, &unusual));
    if (_cvtmask8_u32(wrong & lanes))
        return false;
    return parse_unusual_values(text, gap, _cvtmask8_u32(unusual & lanes), values);
}

/* Appends the line; false if it is for the plain parser after all. */
static inline bool add_line(const pace__segment *segment, const line_shape *line,
                            const pace__numbering *numbering, pace__raw_rows *rows)
{
    size_t start = rows->start[rows->rows];
    uint64_t *ids = rows->ids + start;

    for (uint32_t entry = 0; entry < line->entries; entry += PACE__LANES) {
        if (!add_pairs(segment->text, &segment->position[line->first + 2 * entry], line->entries - entry,
                       numbering->limit, ids + entry, rows->values + start + entry))
            return false;
    }
    for (uint32_t entry = 0; numbering->hashed && entry < line->entries; entry++)
        ids[entry] = pace__number_hash(ids[entry], numbering->features);
    rows->start[++rows->rows] = start + line->entries;
    return true;
}

/*
 * Appends the row behind delimiter `next`; returns the delimiter at its end, 0 if it is for the plain
 * parser.
 */
static inline uint32_t add_regular_row(const pace__parser *parser, const scanned_text *scanned, uint32_t next,
                                       const pace__numbering *numbering, pace__raw_rows *rows)
{
    const int32_t *position = &scanned->segment.position[next];
    bool labelled = !(pace__marks_at(&scanned->colons, next) & 1);
    uint8_t *label = &rows->label[rows->rows];
    line_shape line;

    if (scanned->odd || !(labelled || parser->labels_optional) ||
        !find_entries(scanned, next, labelled, &line))
        return 0;
    *label = 0;
    if (labelled &&
        !parse_label(scanned->segment.text + position[0] + 1, position[1] - position[0] - 1, label))
        return 0;
    return add_line(&scanned->segment, &line, numbering, rows) ? line.end : 0;
}

/* Parses the lines of the segment, which begins at *at, up to the first one that is not complete in it. */
static pace_status parse_segment(const pace__parser *parser, const pace__chunk *chunk,
                                 const scanned_text *scanned, const pace__numbering *numbering, size_t *at,
                                 pace__raw_rows *rows)
{
    const pace__segment *segment = &scanned->segment;
    size_t base = *at, end = base + segment->bytes;
    /* Every entry has a colon and a gap; the vectors write some more behind the last one. */
    size_t room = rows->start[rows->rows] + segment->count / 2 + 1 + PACE__LANES;
    pace_status status = pace__raw_rows_reserve(rows, room, parser->bad->log);
    uint32_t next = 0;

    while (!status && rows->rows < PACE__RAW_ROWS && *at < end) {
        rows->offset[rows->rows] = chunk->offset + *at;
        uint32_t line_end = add_regular_row(parser, scanned, next, numbering, rows);

        if (line_end > 0) {
            next = line_end;
            *at = base + (size_t)(segment->position[next] + 1);
            continue;
        }
        /* An incomplete line begins the next segment, unless it fills this one. */
        if (*at > base && !memchr(chunk->data + *at, '\n', end - *at))
            break;
        status = pace__svmlight_line(parser, chunk, at, numbering, rows);
        while (*at < end && base + (size_t)(segment->position[next] + 1) != *at)
            next++;
    }
    return status;
}

pace_status pace__parse_svmlight_avx512(const pace__parser *parser, const pace__chunk *chunk, size_t *at,
                                        pace__raw_rows *rows)
{
    pace__numbering numbering = pace__svmlight_begin(parser, rows);
    pace_status status = PACE_OK;
    scanned_text scanned;

    while (!status && rows->rows < PACE__RAW_ROWS && *at < chunk->size) {
        scan(&scanned, chunk->data + *at, chunk->size - *at);
        status = parse_segment(parser, chunk, &scanned, &numbering, at, rows);
    }
    return status;
}
