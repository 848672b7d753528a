/*
 * svmlight: label id:value id:value ... # comment
 *
 * Digits are taken 8 at a time in one 64-bit word, so that their number costs no mispredicted branch. Two
 * invariants make that safe without looking at the end of the line all the time:
 * 1. A line ends with a newline, which stops every loop: an unterminated last line is parsed as a copy.
 * 2. 8 bytes can be loaded from anywhere in a line: chunks (and the copy) have slack behind them.
 */
#include "data/formats/svmlight.h"

#include "data/input/shown.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define WORD_DIGITS   8
#define ID_DIGITS_MAX (2 * WORD_DIGITS) /* 2^53 has 16 */
/* Longer values are no numbers. */
#define VALUE_CHARACTERS_MAX 63

typedef enum entry_fault { ENTRY_FINE, ENTRY_NO_PAIR, ENTRY_BAD_VALUE, ENTRY_BAD_ID } entry_fault;

static const uint64_t power_of_ten[WORD_DIGITS + 1] = {1,      10,      100,      1000,     10000,
                                                       100000, 1000000, 10000000, 100000000};

/* What may stand behind a token. */
static const bool is_gap[256] = {[' '] = true, ['\t'] = true, ['\r'] = true, ['\n'] = true, ['#'] = true};

static inline bool at_gap(const char *at)
{
    return is_gap[(unsigned char)*at];
}

/* Moves to the next token; false if the line ends or a comment begins. */
static inline bool next_token(const char **at)
{
    while (**at == ' ' || **at == '\t' || **at == '\r')
        ++*at;
    return **at != '\n' && **at != '#';
}

static const char *token_end(const char *at)
{
    while (!at_gap(at))
        at++;
    return at;
}

/* Takes up to 8 digits and returns how many there were; *number is undefined if there was none. */
static inline unsigned take_digits(const char **at, uint64_t *number)
{
    const uint64_t bytes = 0x000000ff000000ff;
    uint64_t word;

    memcpy(&word, *at, sizeof word);
    word ^= 0x3030303030303030;
    /*
     * A byte above 9 has a bit in its upper half, or gets one by adding 6. Carries reach only bytes behind
     * it.
     */
    uint64_t others = ((word + 0x0606060606060606) | word) & 0xf0f0f0f0f0f0f0f0;
    /*
     * Below the lowest of these bits all are set in `before`, also if there is none: the digits' highest
     * bits are counted.
     */
    uint64_t before = (others & (0 - others)) - 1;
    unsigned digits = (unsigned)((before >> 7 & 0x0101010101010101) * 0x0101010101010101 >> 56);

    /* The last digit goes to the highest byte; the zeros that come in below lead the number. */
    word <<= (64 - 8 * digits) & 63;
    word = word * 10 + (word >> 8);
    word = (word & bytes) * (100 + (UINT64_C(1000000) << 32)) +
           (word >> 16 & bytes) * (1 + (UINT64_C(10000) << 32));
    *number = word >> 32;
    *at += digits;
    return digits;
}

/* An id and the colon behind it. */
static inline bool take_id(const char **at, uint64_t *id)
{
    unsigned digits = take_digits(at, id);

    if (**at != ':' && digits == WORD_DIGITS) {
        uint64_t more;

        digits = take_digits(at, &more);
        *id = *id * power_of_ten[digits] + more;
    }
    return digits > 0 && *(*at)++ == ':';
}

/* Exponents, long fractions, and what is no number at all: names (inf, nan) and hexadecimal are none here. */
static bool parse_unusual_value(const char *token, size_t size, float *value)
{
    char text[VALUE_CHARACTERS_MAX + 1], *end;

    if (size == 0 || size > VALUE_CHARACTERS_MAX)
        return false;
    memcpy(text, token, size);
    text[size] = '\0';
    if (strspn(text, "0123456789+-.eE") != size)
        return false;
    *value = strtof(text, &end);
    return end == text + size && isfinite(*value);
}

/* The usual values: 1 to 8 digits, perhaps with a minus, perhaps with 1 to 8 more digits behind a point. */
static inline bool take_value(const char **at, float *value)
{
    const char *start = *at, *next = start + (*start == '-');
    double sign = *start == '-' ? -1 : 1, divisor = 1;
    uint64_t number = (unsigned)(unsigned char)*next - '0', fraction;
    unsigned digits = number <= 9, places = 1;

    /* One digit in front is the rule; guessing it lets the CPU run ahead to what follows. */
    if (next[1] == '.' || at_gap(next + 1))
        next++;
    else
        digits = take_digits(&next, &number);
    if (*next == '.') {
        next++;
        places = take_digits(&next, &fraction);
        number = number * power_of_ten[places] + fraction;
        divisor = (double)(int64_t)power_of_ten[places];
    }
    *value = (float)((double)(int64_t)number / divisor * sign);
    *at = next;
    if (digits > 0 && places > 0 && at_gap(next))
        return true;
    *at = token_end(start);
    return parse_unusual_value(start, (size_t)(*at - start), value);
}

bool pace__svmlight_value(const char **at, float *value)
{
    return take_value(at, value);
}

/* 0 or 1 with an optional sign and an optional fraction of zeros; -1 is the label 0. */
static bool take_label(const char **at, uint8_t *label)
{
    bool negative = **at == '-';

    *at += negative || **at == '+';
    if (**at != '0' && **at != '1')
        return false;
    *label = *(*at)++ == '1' && !negative;
    if (**at == '.') {
        do
            ++*at;
        while (**at == '0');
    }
    return at_gap(*at);
}

static bool starts_query(const char *at)
{
    return strncmp(at, "qid:", 4) == 0;
}

/* True at what comes behind a label. */
static bool starts_feature(const char *at)
{
    uint64_t id;

    return starts_query(at) || take_id(&at, &id);
}

static inline entry_fault take_entry(const char **at, const pace__numbering *ids, uint64_t *id, float *value)
{
    if (!take_id(at, id))
        return ENTRY_NO_PAIR;
    if (!take_value(at, value))
        return ENTRY_BAD_VALUE;
    if (*id >= ids->limit)
        return ENTRY_BAD_ID;
    if (ids->hashed)
        *id = pace__number_hash(*id, ids->features);
    return ENTRY_FINE;
}

static pace_status bad_entry(const pace__parser *parser, const pace__chunk *chunk, size_t at,
                             const char *token, entry_fault fault, uint64_t limit)
{
    pace__shown shown = pace__show(token, (size_t)(token_end(token) - token));

    if (fault == ENTRY_NO_PAIR)
        return pace__bad_row(parser->bad, chunk, at, "\"%s\" is not id:value with an id of at most %d digits",
                             shown.text, ID_DIGITS_MAX);
    if (fault == ENTRY_BAD_VALUE)
        return pace__bad_row(parser->bad, chunk, at, "\"%s\": the value is no finite number", shown.text);
    return pace__bad_row(
        parser->bad, chunk, at, "\"%s\": the id is not below %" PRIu64 ", %s", shown.text, limit,
        limit == PACE__FEATURES_MAX ? "the most that is possible" : "the number of features");
}

/* Adds the id:value from `next` to the end of the line as a row. */
static pace_status add_row(const pace__parser *parser, const pace__chunk *chunk, size_t at, const char *next,
                           const pace__numbering *ids, pace__raw_rows *rows)
{
    size_t first = rows->start[rows->rows], entry = first;

    while (next_token(&next)) {
        if (*next == 'q' && starts_query(next)) {
            next = token_end(next);
            continue;
        }
        if (entry - first == PACE__ROW_ENTRIES_MAX)
            return pace__bad_row(parser->bad, chunk, at, "more than %u features in a row",
                                 PACE__ROW_ENTRIES_MAX);
        const char *token = next;
        entry_fault fault = take_entry(&next, ids, &rows->ids[entry], &rows->values[entry]);

        if (fault)
            return bad_entry(parser, chunk, at, token, fault, ids->limit);
        entry++;
    }
    rows->offset[rows->rows] = chunk->offset + at;
    rows->start[++rows->rows] = entry;
    return PACE_OK;
}

static pace_status bad_label(const pace__parser *parser, const pace__chunk *chunk, size_t at,
                             const char *token)
{
    pace__shown shown = pace__show(token, (size_t)(token_end(token) - token));

    if (starts_feature(token))
        return pace__bad_row(parser->bad, chunk, at, "the label is missing: the row starts with \"%s\"",
                             shown.text);
    return pace__bad_row(parser->bad, chunk, at, "label \"%s\" is none of 0, 1, -1, +1", shown.text);
}

static pace_status reserve_row(const pace__parser *parser, size_t line_size, pace__raw_rows *rows)
{
    /* The shortest entry and the gap in front of it have 4 characters. */
    size_t entries = line_size / 4 + 1;

    if (entries > PACE__ROW_ENTRIES_MAX)
        entries = PACE__ROW_ENTRIES_MAX;
    return pace__raw_rows_reserve(rows, rows->start[rows->rows] + entries, parser->bad->log);
}

/* `line` ends with a newline, at line[size]; it is the text at chunk->data + at. */
static pace_status parse_line(const pace__parser *parser, const pace__chunk *chunk, size_t at,
                              const char *line, size_t size, const pace__numbering *ids, pace__raw_rows *rows)
{
    const char *nul = memchr(line, '\0', size), *next = line;
    pace_status status;

    if (nul)
        return pace__bad_row(parser->bad, chunk, at, "byte %zu of the row is NUL: is this a text file?",
                             (size_t)(nul - line) + 1);
    if (!next_token(&next))
        return PACE_OK;
    const char *first = next;

    if (!take_label(&next, &rows->label[rows->rows])) {
        if (!parser->labels_optional || !starts_feature(first))
            return bad_label(parser, chunk, at, first);
        rows->label[rows->rows] = 0;
        next = first;
    }
    status = reserve_row(parser, size, rows);
    return status ? status : add_row(parser, chunk, at, next, ids, rows);
}

/* The end of a file that does not end with a newline. */
static pace_status parse_unterminated(const pace__parser *parser, const pace__chunk *chunk, size_t at,
                                      const pace__numbering *ids, pace__raw_rows *rows)
{
    size_t size = chunk->size - at;
    char *copy = calloc(1, size + 1 + PACE__CHUNK_SLACK);

    if (!copy)
        return pace_fail(parser->bad->log, PACE_FAILED, "out of memory for a line of %zu bytes", size);
    memcpy(copy, chunk->data + at, size);
    copy[size] = '\n';
    pace_status status = parse_line(parser, chunk, at, copy, size, ids, rows);

    free(copy);
    return status;
}

pace__numbering pace__svmlight_begin(const pace__parser *parser, pace__raw_rows *rows)
{
    const pace__encoding *encoding = parser->encoding;
    bool bounded = encoding->features > 0 && !encoding->hashed && !parser->ids_unbounded;

    assert(encoding->kind == PACE__NUMBERED);
    rows->rows = 0;
    rows->start[0] = 0;
    return (pace__numbering){bounded ? encoding->features : PACE__FEATURES_MAX, encoding->features,
                             encoding->hashed};
}

pace_status pace__svmlight_line(const pace__parser *parser, const pace__chunk *chunk, size_t *at,
                                const pace__numbering *ids, pace__raw_rows *rows)
{
    size_t begin = *at, left = chunk->size - begin;
    const char *line = chunk->data + begin, *newline = memchr(line, '\n', left);

    *at += newline ? (size_t)(newline - line) + 1 : left;
    if (!newline)
        return parse_unterminated(parser, chunk, begin, ids, rows);
    return parse_line(parser, chunk, begin, line, (size_t)(newline - line), ids, rows);
}

pace_status pace__parse_svmlight_plain(const pace__parser *parser, const pace__chunk *chunk, size_t *at,
                                       pace__raw_rows *rows)
{
    pace__numbering ids = pace__svmlight_begin(parser, rows);
    pace_status status = PACE_OK;

    while (!status && rows->rows < PACE__RAW_ROWS && *at < chunk->size)
        status = pace__svmlight_line(parser, chunk, at, &ids, rows);
    return status;
}

const pace__parse_kernels pace__svmlight_plain = {.parse = pace__parse_svmlight_plain};
