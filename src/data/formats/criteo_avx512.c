/*
 * The fast Criteo parser. A segment of text is scanned once for delimiters, 64 bytes at a time, into a list
 * of their positions; then each row takes 40 entries of the list and is encoded by vectors of 8 columns,
 * without a branch that depends on its contents. What is not a regular row goes to the plain parser.
 */
#include "base/random.h"
#include "data/formats/criteo.h"
#include "data/formats/fields_avx512.h"

#include <paceline/prep.h>

#define LABELLED   (1 + PACE__CRITEO_COLUMNS)
#define UNLABELLED PACE__CRITEO_COLUMNS

/*
 * Delimiters are all bytes up to '\n' (10), marked in `others` if they are no tab: a newline, NUL or
 * another control character. A regular row is 39 without a mark and one with it, and that one is a newline.
 */
static void scan(pace__segment *segment, pace__marks *others, const char *text, size_t bytes)
{
    pace__segment_begin(segment, text, bytes);
    for (uint32_t at = 0; at < segment->bytes; at += PACE__BLOCK_BYTES) {
        __m512i block = _mm512_loadu_si512(text + at);
        uint64_t delimiters =
            _mm512_cmple_epu8_mask(block, _mm512_set1_epi8('\n')) & pace__segment_mask(segment, at);

        pace__marks_add(others, segment->count, delimiters,
                        delimiters & ~_mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8('\t')));
        pace__segment_add(segment, at, delimiters);
    }
}

/* `before` are the delimiters in front of the fields; each field ends at the next one. */
static inline pace__field_lanes load_fields(const char *text, const int32_t *before)
{
    __m256i begin = _mm256_add_epi32(_mm256_loadu_si256((const void *)before), _mm256_set1_epi32(1));
    __m256i end = _mm256_loadu_si256((const void *)(before + 1));

    return (pace__field_lanes){_mm512_i32gather_epi64(begin, text, 1),
                               _mm512_cvtepu32_epi64(_mm256_sub_epi32(end, begin))};
}

/* The columns' first ids and numbers of places. */
static inline __m512i load_base(const uint64_t *column_base, __m512i *size)
{
    __m512i base = _mm512_loadu_si512(column_base);

    *size = _mm512_sub_epi64(_mm512_loadu_si512(column_base + 1), base);
    return base;
}

/*
 * The numbers that the fields spell; 0 for empty ones. *regular is cleared if a field needs the plain
 * parser.
 */
static inline __m512i parse_integers(pace__field_lanes fields, bool *regular)
{
    __mmask8 too_long = _mm512_cmpgt_epu64_mask(fields.size, _mm512_set1_epi64(8));
    __mmask8 minus = pace__take_minus(&fields);
    __mmask8 only_minus = _mm512_mask_testn_epi64_mask(minus, fields.size, fields.size);
    __m512i digits = pace__field_digits(fields);

    *regular = (too_long | only_minus | pace__not_digits(digits)) == 0;
    digits = pace__join_digits(digits);
    return _mm512_mask_sub_epi64(digits, minus, _mm512_setzero_si512(), digits);
}

/* pace__integer_bin: a double's exponent and the bits behind it are the cell. */
static inline __m512i integer_bins(__m512i numbers)
{
    const int first_exponent = (1023 + PACE__CELL_BITS) << PACE__CELL_BITS;

    numbers = _mm512_max_epi64(numbers, _mm512_set1_epi64(PACE__INTEGER_MIN));
    numbers = _mm512_min_epi64(numbers, _mm512_set1_epi64(PACE__INTEGER_MAX));
    numbers = _mm512_add_epi64(numbers, _mm512_set1_epi64(PACE__CELL_OFFSET));
    __m512i bits = _mm512_castpd_si512(_mm512_cvtepi64_pd(numbers));
    __m512i cells =
        _mm512_sub_epi64(_mm512_srli_epi64(bits, 52 - PACE__CELL_BITS), _mm512_set1_epi64(first_exponent));
    __m512i bins = _mm512_cvtepu32_epi64(_mm512_i64gather_epi32(cells, pace__integer_bins, 1));

    return _mm512_and_si512(bins, _mm512_set1_epi64(0xff));
}

static inline void store_values(__m512i numbers, unsigned filled, float *values)
{
    int64_t number[PACE__LANES];

    _mm512_storeu_si512(number, numbers);
    for (unsigned lane = 0; lane < PACE__LANES; lane++)
        values[lane] = filled >> lane & 1 ? pace__integer_value(number[lane]) : 1;
}

/* Eight integer columns. False: this row is for the plain parser. */
static inline bool add_integers(int numeric, const uint64_t *column_base, const char *text,
                                const int32_t *before, uint64_t *ids, float *values)
{
    pace__field_lanes fields = load_fields(text, before);
    __mmask8 filled = _mm512_test_epi64_mask(fields.size, fields.size);
    bool regular;
    __m512i numbers = parse_integers(fields, &regular);
    __m512i size, places, base = load_base(column_base, &size);

    if (numeric == PACE_NUMERIC_VALUES) {
        places = _mm512_mask_set1_epi64(_mm512_set1_epi64(PACE__PLACE_MISSING), filled, PACE__PLACE_VALUE);
        store_values(numbers, _cvtmask8_u32(filled), values);
    } else {
        places = _mm512_mul_epu32(_mm512_maskz_mov_epi64(filled, integer_bins(numbers)), size);
        places = _mm512_srli_epi64(places, 8);
    }
    _mm512_storeu_si512(ids, _mm512_add_epi64(base, places));
    return regular;
}

/* pace__short_hash */
static inline __m512i short_hashes(pace__field_lanes fields)
{
    const __m512i ones = _mm512_set1_epi64(1);
    __m512i mask = _mm512_sub_epi64(_mm512_sllv_epi64(ones, _mm512_slli_epi64(fields.size, 3)), ones);
    __m512i hash = _mm512_and_si512(fields.text, mask);

    hash = _mm512_add_epi64(hash, _mm512_mul_epu32(fields.size, _mm512_set1_epi64(PACE__HASH_LENGTH)));
    hash = _mm512_mullo_epi64(hash, _mm512_set1_epi64((int64_t)PACE__HASH_FIRST));
    hash = _mm512_xor_si512(hash, _mm512_srli_epi64(hash, 32));
    return _mm512_mullo_epi64(hash, _mm512_set1_epi64((int64_t)PACE__HASH_SECOND));
}

/* pace__scale_to, for limits below 2^32: the high half of a 96-bit product. */
static inline __m512i scale_to(__m512i bits, __m512i limit)
{
    __m512i high = _mm512_mul_epu32(_mm512_srli_epi64(bits, 32), limit);
    __m512i low = _mm512_srli_epi64(_mm512_mul_epu32(bits, limit), 32);

    return _mm512_srli_epi64(_mm512_add_epi64(high, low), 32);
}

static void add_long_categories(unsigned lanes, __m512i sizes, const uint64_t *column_base, const char *text,
                                const int32_t *before, uint64_t *ids)
{
    uint64_t size[PACE__LANES];

    _mm512_storeu_si512(size, sizes);
    for (unsigned lane = 0; lane < PACE__LANES; lane++) {
        uint64_t base = column_base[lane];

        if (lanes >> lane & 1)
            ids[lane] =
                base + pace__scale_to(pace__category_hash(text + before[lane] + 1, (uint32_t)size[lane]),
                                      column_base[lane + 1] - base);
    }
}

/*
 * Eight category columns. `carriage` is 1 if the last of them ends with a carriage return that is not part
 * of it.
 */
static inline void add_categories(const uint64_t *column_base, const char *text, const int32_t *before,
                                  int carriage, uint64_t *ids)
{
    pace__field_lanes fields = load_fields(text, before);

    fields.size = _mm512_sub_epi64(fields.size, _mm512_maskz_set1_epi64(1 << (PACE__LANES - 1), carriage));
    __mmask8 too_long = _mm512_cmpgt_epu64_mask(fields.size, _mm512_set1_epi64(PACE__SHORT_TEXT));
    __m512i size, base = load_base(column_base, &size);

    _mm512_storeu_si512(ids, _mm512_add_epi64(base, scale_to(short_hashes(fields), size)));
    if (__builtin_expect(too_long != 0, 0))
        add_long_categories(_cvtmask8_u32(too_long), fields.size, column_base, text, before, ids);
}

/* 13 and 26 are no multiples of 8: the last vectors overlap the ones before and write the same ids again. */
static inline bool add_columns(const pace__encoding *encoding, const char *text, const int32_t *before,
                               uint64_t *ids, float *values)
{
    const uint64_t *base = encoding->column_base;
    int carriage = text[before[PACE__CRITEO_COLUMNS] - 1] == '\r';
    bool regular = add_integers(encoding->numeric, base, text, before, ids, values);

    regular &= add_integers(encoding->numeric, base + 5, text, before + 5, ids + 5, values + 5);
    add_categories(base + 13, text, before + 13, 0, ids + 13);
    add_categories(base + 21, text, before + 21, 0, ids + 21);
    add_categories(base + 29, text, before + 29, 0, ids + 29);
    add_categories(base + 31, text, before + 31, carriage, ids + 31);
    for (unsigned c = PACE__CRITEO_INTEGERS;
         encoding->numeric == PACE_NUMERIC_VALUES && c < PACE__CRITEO_COLUMNS; c++)
        values[c] = 1;
    return regular;
}

/* True if the next `fields` delimiters from index `next` on are those of one line with so many fields. */
static inline bool is_line(const pace__segment *segment, const pace__marks *others, uint32_t next,
                           uint32_t fields)
{
    if (segment->count - next < fields)
        return false;
    return _bzhi_u64(pace__marks_at(others, next), fields) == UINT64_C(1) << (fields - 1) &&
           segment->text[segment->position[next + fields]] == '\n';
}

/*
 * Appends the row behind delimiter `next` and returns how many fields it has; 0 if it is for the plain
 * parser.
 */
static inline uint32_t add_regular_row(const pace__parser *parser, const pace__segment *segment,
                                       const pace__marks *others, uint32_t next, pace__raw_rows *rows)
{
    const int32_t *position = &segment->position[next];
    const char *text = segment->text;
    uint32_t fields =
        parser->labels_optional && is_line(segment, others, next, UNLABELLED) ? UNLABELLED : LABELLED;
    size_t row = rows->rows, entry = row * PACE__CRITEO_COLUMNS;
    unsigned label = 0;

    if (fields == LABELLED) {
        label = (unsigned)(unsigned char)text[position[0] + 1] - '0';
        if (!is_line(segment, others, next, LABELLED) || position[1] - position[0] != 2 || label > 1)
            return 0;
        position++;
    }
    if (!add_columns(parser->encoding, text, position, rows->ids + entry, rows->values + entry))
        return 0;
    rows->label[row] = (uint8_t)label;
    rows->start[row + 1] = entry + PACE__CRITEO_COLUMNS;
    rows->rows++;
    return fields;
}

/* Parses the rows of the segment, which begins at *at, up to the first one that is not complete in it. */
static pace_status parse_segment(const pace__parser *parser, const pace__chunk *chunk,
                                 const pace__segment *segment, const pace__marks *others, size_t *at,
                                 pace__raw_rows *rows)
{
    size_t base = *at;
    pace_status status = PACE_OK;
    uint32_t next = 0;

    while (!status && rows->rows < PACE__RAW_ROWS && *at < base + segment->bytes) {
        rows->offset[rows->rows] = chunk->offset + *at;
        uint32_t fields = add_regular_row(parser, segment, others, next, rows);

        if (fields > 0) {
            next += fields;
            *at = base + (size_t)(segment->position[next] + 1);
            continue;
        }
        size_t end = pace__line_end(chunk, *at);
        bool complete = end < base + segment->bytes;

        /*
         * An incomplete row begins the next segment; what is longer than a segment, or the end of the file,
         * cannot wait.
         */
        if (!complete && next > 0)
            break;
        status = pace__criteo_row(parser, chunk, *at, end, rows);
        *at = end < chunk->size ? end + 1 : end;
        while (complete && base + (size_t)(segment->position[next] + 1) != *at)
            next++;
    }
    return status;
}

pace_status pace__parse_criteo_avx512(const pace__parser *parser, const pace__chunk *chunk, size_t *at,
                                      pace__raw_rows *rows)
{
    pace_status status = pace__criteo_begin(parser, rows);
    pace__segment segment;
    pace__marks others;

    /* The vectors scale to 32 bits at most. */
    if (parser->encoding->features > UINT32_MAX)
        return pace__parse_criteo_plain(parser, chunk, at, rows);
    while (!status && rows->rows < PACE__RAW_ROWS && *at < chunk->size) {
        scan(&segment, &others, chunk->data + *at, chunk->size - *at);
        status = parse_segment(parser, chunk, &segment, &others, at, rows);
    }
    return status;
}
