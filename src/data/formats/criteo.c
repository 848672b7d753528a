#include "data/formats/criteo.h"

#include "base/random.h"
#include "data/input/shown.h"

#include <assert.h>
#include <paceline/prep.h>

#define FIELDS (1 + PACE__CRITEO_COLUMNS)

/* Field i is line[begin[i]] .. line[begin[i + 1] - 1]: the byte between two fields is a tab. */
typedef struct line_fields {
    size_t count; /* of the line, which may be more than FIELDS; only so many are kept */
    const char *line;
    size_t begin[FIELDS + 1];
} line_fields;

static void split(const char *line, size_t size, line_fields *fields)
{
    fields->count = 0;
    fields->line = line;
    for (size_t at = 0;; fields->count++) {
        const char *tab = memchr(line + at, '\t', size - at);

        if (fields->count < FIELDS) {
            fields->begin[fields->count] = at;
            fields->begin[fields->count + 1] = (tab ? (size_t)(tab - line) : size) + 1;
        }
        if (!tab)
            break;
        at = (size_t)(tab - line) + 1;
    }
    fields->count++;
}

static size_t field_size(const line_fields *fields, size_t field)
{
    return fields->begin[field + 1] - 1 - fields->begin[field];
}

/* Optional minus, digits, within int64_t. */
static bool parse_integer(const char *text, size_t size, int64_t *value)
{
    bool negative = text[0] == '-';
    uint64_t limit = (uint64_t)INT64_MAX + negative, number = 0;

    if (size == negative)
        return false;
    for (size_t i = negative; i < size; i++) {
        unsigned digit = (unsigned)(unsigned char)text[i] - '0';

        if (digit > 9 || number > (limit - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *value = (int64_t)(negative ? 0 - number : number);
    return true;
}

static void add_integer(const pace__encoding *encoding, unsigned column, bool missing, int64_t number,
                        uint64_t *id, float *value)
{
    uint64_t base = encoding->column_base[column];
    uint64_t size = encoding->column_base[column + 1] - base;

    if (encoding->numeric == PACE_NUMERIC_VALUES) {
        *id = base + (missing ? PACE__PLACE_MISSING : PACE__PLACE_VALUE);
        *value = missing ? 1 : pace__integer_value(number);
    } else {
        *id = base + pace__bin_place(missing ? 0 : pace__integer_bin(number), size);
    }
}

static pace_status bad_integer(const pace__parser *parser, const pace__chunk *chunk, size_t at,
                               unsigned column, const char *text, size_t size)
{
    char name[4];

    pace__criteo_column_name(column, name);
    return pace__bad_row(parser->bad, chunk, at, "column %s: \"%s\" is no integer of at most 64 bits", name,
                         pace__show(text, size).text);
}

/*
 * Fills the 39 entries of a row; the fields from `first` on are the columns. On a bad field, *bad_column
 * names it.
 */
static bool add_entries(const pace__encoding *encoding, const line_fields *fields, size_t first,
                        uint64_t *ids, float *values, unsigned *bad_column)
{
    for (unsigned c = 0; c < PACE__CRITEO_INTEGERS; c++) {
        size_t size = field_size(fields, first + c);
        int64_t number = 0;

        *bad_column = c;
        if (size > 0 && !parse_integer(fields->line + fields->begin[first + c], size, &number))
            return false;
        add_integer(encoding, c, size == 0, number, &ids[c], &values[c]);
    }
    for (unsigned c = PACE__CRITEO_INTEGERS; c < PACE__CRITEO_COLUMNS; c++) {
        uint64_t base = encoding->column_base[c];
        uint64_t hash = pace__category_hash(fields->line + fields->begin[first + c],
                                            (uint32_t)field_size(fields, first + c));

        ids[c] = base + pace__scale_to(hash, encoding->column_base[c + 1] - base);
        values[c] = 1;
    }
    return true;
}

/* The label's value, or -1. */
static int parse_label(const char *text, size_t size, bool optional)
{
    if (size == 0)
        return optional ? 0 : -1;
    return size == 1 && (text[0] == '0' || text[0] == '1') ? text[0] - '0' : -1;
}

static pace_status bad_label(const pace__parser *parser, const pace__chunk *chunk, size_t at,
                             const char *text, size_t size)
{
    if (size == 0)
        return pace__bad_row(parser->bad, chunk, at, "the first column, the label, is empty");
    return pace__bad_row(parser->bad, chunk, at, "label \"%s\" is neither 0 nor 1",
                         pace__show(text, size).text);
}

static pace_status add_row(const pace__parser *parser, const pace__chunk *chunk, size_t at,
                           const line_fields *fields, pace__raw_rows *rows)
{
    bool labelled = fields->count == FIELDS;
    size_t row = rows->rows, entry = row * PACE__CRITEO_COLUMNS, label_size = field_size(fields, 0);
    unsigned column;
    int label = labelled ? parse_label(fields->line, label_size, parser->labels_optional) : 0;

    if (label < 0)
        return bad_label(parser, chunk, at, fields->line, label_size);
    if (!add_entries(parser->encoding, fields, labelled, rows->ids + entry, rows->values + entry, &column))
        return bad_integer(parser, chunk, at, column, fields->line + fields->begin[labelled + column],
                           field_size(fields, labelled + column));
    rows->label[row] = (uint8_t)label;
    rows->offset[row] = chunk->offset + at;
    rows->start[row + 1] = entry + PACE__CRITEO_COLUMNS;
    rows->rows++;
    return PACE_OK;
}

pace_status pace__criteo_row(const pace__parser *parser, const pace__chunk *chunk, size_t at, size_t end,
                             pace__raw_rows *rows)
{
    const char *line = chunk->data + at;
    size_t size = end - at;
    line_fields fields;

    if (size > 0 && line[size - 1] == '\r')
        size--;
    if (size == 0)
        return PACE_OK;
    const char *nul = memchr(line, '\0', size);

    if (nul)
        return pace__bad_row(parser->bad, chunk, at, "byte %zu of the row is NUL: is this a text file?",
                             (size_t)(nul - line) + 1);
    split(line, size, &fields);
    if (fields.count != FIELDS && !(parser->labels_optional && fields.count == PACE__CRITEO_COLUMNS))
        return pace__bad_row(parser->bad, chunk, at,
                             "%zu tab-separated column%s instead of %d (label, %d integers, %d categories)",
                             fields.count, fields.count == 1 ? "" : "s", FIELDS, PACE__CRITEO_INTEGERS,
                             PACE__CRITEO_CATEGORIES);
    return add_row(parser, chunk, at, &fields, rows);
}

pace_status pace__criteo_begin(const pace__parser *parser, pace__raw_rows *rows)
{
    assert(parser->encoding->kind == PACE__CRITEO);
    rows->rows = 0;
    rows->start[0] = 0;
    return pace__raw_rows_reserve(rows, (size_t)PACE__RAW_ROWS * PACE__CRITEO_COLUMNS, parser->bad->log);
}

pace_status pace__parse_criteo_plain(const pace__parser *parser, const pace__chunk *chunk, size_t *at,
                                     pace__raw_rows *rows)
{
    pace_status status = pace__criteo_begin(parser, rows);

    while (!status && rows->rows < PACE__RAW_ROWS && *at < chunk->size) {
        size_t end = pace__line_end(chunk, *at);

        status = pace__criteo_row(parser, chunk, *at, end, rows);
        *at = end < chunk->size ? end + 1 : end;
    }
    return status;
}

const pace__parse_kernels pace__criteo_plain = {.parse = pace__parse_criteo_plain};
