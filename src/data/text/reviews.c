#include "data/text/reviews.h"

#include "data/input/input_files.h"
#include "data/input/shown.h"
#include "data/text/rating.h"
#include "data/text/reviews_internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A rating in JSON that is written with escapes: more is none anyway. */
#define ESCAPED_RATING_MAX 384

enum { TEXT, LABEL, FIELDS };

/* A record of a chunk: a line without its end, or a record of csv, or a whole file. */
typedef struct span {
    const char *text;
    size_t at, size;
} span;

struct pace__review_reader {
    pace__review_options options;
    const pace__review_files *files;
    pace__bad_rows *bad;
    const pace_log *log;
    pace__jsonl_fields fields;
    pace_status status; /* of the current record */
    bool header_known;
    uint32_t header_file;
    pace__table_header header;
    char *head;   /* (PACE__HEAD_BYTES) of tables */
    char *buffer; /* texts without their escapes */
    size_t capacity;
};

pace_status pace__review_reader_create(const pace__review_options *options, const pace__review_files *files,
                                       pace__bad_rows *bad, const pace_log *log, pace__review_reader **reader)
{
    const char *names[FIELDS] = {options->text_field, options->label_field};
    bool table = pace__has_header(options->format);
    pace__review_reader *new = calloc(1, sizeof *new);

    assert(options->format != PACE_REVIEWS_AUTO);
    if (new &&table)
        new->head = malloc(PACE__HEAD_BYTES);
    if (!new || (table && !new->head)) {
        pace__review_reader_free(new);
        return pace_fail(log, PACE_FAILED, "out of memory for a reader of reviews");
    }
    new->options = *options;
    new->files = files;
    new->bad = bad;
    new->log = log;
    pace_status status = options->format == PACE_REVIEWS_JSONL
                             ? pace__jsonl_fields_init(&new->fields, names, FIELDS, log)
                             : PACE_OK;

    if (status)
        pace__review_reader_free(new);
    else
        *reader = new;
    return status;
}

void pace__review_reader_free(pace__review_reader *reader)
{
    if (!reader)
        return;
    free(reader->head);
    free(reader->buffer);
    free(reader);
}

/*
 * The functions below that take a part of a record return whether it was good. If not, reader->status says
 * whether reading may go on: BAD for what is wrong with a record.
 */
#define BAD(reader, chunk, at, ...)                                                                          \
    ((reader)->status = pace__bad_row((reader)->bad, chunk, at, __VA_ARGS__), false)

/* Room in the buffer for a text. */
static bool reserve(pace__review_reader *reader, size_t size)
{
    size_t wanted = size + PACE__TEXT_PADDING;

    if (wanted <= reader->capacity)
        return true;
    char *buffer = realloc(reader->buffer, 2 * wanted);

    if (!buffer) {
        reader->status = pace_fail(reader->log, PACE_FAILED, "out of memory for a text of %zu bytes", size);
        return false;
    }
    reader->buffer = buffer;
    reader->capacity = 2 * wanted;
    return true;
}

static bool is_blank(const char *text, size_t size)
{
    size_t at = 0;

    while (at < size && (text[at] == ' ' || (text[at] >= '\t' && text[at] <= '\r')))
        at++;
    return at == size;
}

/* The byte is counted within its line, as editors do. */
static bool not_utf8(pace__review_reader *reader, const pace__chunk *chunk, size_t at)
{
    const char *newline = memrchr(chunk->data, '\n', at);
    size_t line = newline ? (size_t)(newline - chunk->data) + 1 : 0;

    return BAD(reader, chunk, at, "byte %zu is no UTF-8", at - line + 1);
}

/* A text that stands in the chunk. */
static bool take_text(pace__review_reader *reader, const pace__chunk *chunk, const span *record,
                      const char *text, size_t size, pace__review *review)
{
    size_t invalid = pace__utf8_find_invalid(text, size);

    if (invalid < size)
        return not_utf8(reader, chunk, (size_t)(text - chunk->data) + invalid);
    if (is_blank(text, size) && !reader->options.labels_optional)
        return BAD(reader, chunk, record->at, "empty text");
    review->text = text;
    review->size = size;
    return true;
}

/* A rating that is written as text. */
static bool take_rating(pace__review_reader *reader, const pace__chunk *chunk, const span *record,
                        const char *text, size_t size, double *rating)
{
    *rating = NAN;
    return pace__rating_parse(text, size, rating) || reader->options.labels_optional ||
           BAD(reader, chunk, record->at, "the label \"%s\" is no finite number, nor pos, neg, true or false",
               pace__show(text, size).text);
}

/* --- jsonl --- */

static bool take_json_text(pace__review_reader *reader, const pace__chunk *chunk, const span *record,
                           const pace__jsonl_value *value, pace__review *review)
{
    if (value->kind != PACE__JSONL_STRING)
        return BAD(reader, chunk, record->at, "the field \"%s\" is %s", reader->options.text_field,
                   value->kind == PACE__JSONL_MISSING ? "missing" : "no string");
    review->text = value->text;
    review->size = value->size;
    if (value->escaped) {
        if (!reserve(reader, value->size))
            return false;
        review->size = pace__jsonl_decode(value->text, value->size, reader->buffer);
        review->text = reader->buffer;
    }
    return reader->options.labels_optional || !is_blank(review->text, review->size) ||
           BAD(reader, chunk, record->at, "empty text");
}

static bool take_json_rating(pace__review_reader *reader, const pace__chunk *chunk, const span *record,
                             const pace__jsonl_value *value, double *rating)
{
    char decoded[ESCAPED_RATING_MAX + PACE__TEXT_PADDING];
    const char *text = value->text, *name = reader->options.label_field;
    size_t size = value->size;

    switch (value->kind) {
    case PACE__JSONL_TRUE:
    case PACE__JSONL_FALSE:
        *rating = value->kind == PACE__JSONL_TRUE;
        return true;
    case PACE__JSONL_STRING:
        if (value->escaped && size <= ESCAPED_RATING_MAX) {
            size = pace__jsonl_decode(text, size, decoded);
            text = decoded;
        }
        return take_rating(reader, chunk, record, text, size, rating);
    case PACE__JSONL_NUMBER:
        return take_rating(reader, chunk, record, text, size, rating);
    case PACE__JSONL_NULL:
    case PACE__JSONL_MISSING:
        *rating = NAN;
        return reader->options.labels_optional ||
               BAD(reader, chunk, record->at, "the field \"%s\" is %s", name, text ? "null" : "missing");
    default:
        *rating = NAN;
        return reader->options.labels_optional ||
               BAD(reader, chunk, record->at, "the field \"%s\" is no number", name);
    }
}

static bool take_json(pace__review_reader *reader, const pace__chunk *chunk, const span *line,
                      pace__review *review)
{
    pace__jsonl_value values[FIELDS];
    pace__jsonl_error error;

    if (!pace__jsonl_find(&reader->fields, line->text, line->size, values, &error))
        return BAD(reader, chunk, line->at, "byte %zu: %s", error.offset + 1, error.reason);
    return take_json_rating(reader, chunk, line, &values[LABEL], &review->rating) &&
           take_json_text(reader, chunk, line, &values[TEXT], review);
}

/* --- lines that are texts, and files that are --- */

static bool take_lone_text(pace__review_reader *reader, const pace__chunk *chunk, const span *record,
                           pace__review *review)
{
    review->rating = reader->files->rating[chunk->file];
    return take_text(reader, chunk, record, record->text, record->size, review);
}

static bool take_tab(pace__review_reader *reader, const pace__chunk *chunk, const span *line,
                     pace__review *review)
{
    const char *tab = memchr(line->text, '\t', line->size);
    size_t label = tab ? (size_t)(tab - line->text) : 0, text = tab ? label + 1 : 0;

    if (!tab && !reader->options.labels_optional)
        return BAD(reader, chunk, line->at, "there is no tab, which has to follow the label");
    return take_rating(reader, chunk, line, line->text, label, &review->rating) &&
           take_text(reader, chunk, line, line->text + text, line->size - text, review);
}

/* --- tables --- */

/* The columns of the file that the chunk is from; if that begins with the header, *at moves behind it. */
static pace_status know_header(pace__review_reader *reader, const pace__chunk *chunk, size_t *at)
{
    const char *path = reader->files->paths[chunk->file];
    bool inside = chunk->offset == 0 && *at == 0;
    pace_status status = PACE_OK;
    size_t size;

    if (!inside && reader->header_known && reader->header_file == chunk->file)
        return PACE_OK;
    if (inside) {
        status = pace__table_header_read(&reader->options, path, chunk->data, chunk->size, true, reader->log,
                                         &reader->header);
        *at = status ? 0 : reader->header.size;
    } else {
        assert(reader->bad->input);
        status = pace__input_head(reader->bad->input, chunk->file, reader->head, &size);
        if (!status)
            status = pace__table_header_read(&reader->options, path, reader->head, size,
                                             size < PACE__HEAD_BYTES, reader->log, &reader->header);
    }
    reader->header_known = !status;
    reader->header_file = chunk->file;
    return status;
}

/* What matters of a record, all of which is read whatever is wrong with it. */
typedef struct table_row {
    pace__csv_cell cells[FIELDS];
    uint32_t columns;
    bool junk, unclosed;
    size_t last; /* where the last cell begins */
} table_row;

/* Returns the size of the record, with its end. */
static size_t read_row(const pace__review_reader *reader, const span *record, table_row *row)
{
    pace__csv_cells cells =
        pace__csv_cells_of(record->text, record->size, pace__separator_of(reader->options.format));
    pace__csv_cell_end end;
    pace__csv_cell cell;

    row->columns = 0;
    do {
        row->last = cells.at;
        end = pace__csv_cells_next(&cells, &cell);
        if (row->columns == reader->header.text)
            row->cells[TEXT] = cell;
        else if (row->columns == reader->header.label)
            row->cells[LABEL] = cell;
        row->columns++;
    } while (end == PACE__CSV_CELL_MORE);
    row->junk = cells.junk;
    row->unclosed = end == PACE__CSV_CELL_UNCLOSED;
    return cells.at;
}

static bool check_row(pace__review_reader *reader, const pace__chunk *chunk, const span *record,
                      const table_row *row)
{
    size_t last = record->at + row->last;

    if (row->unclosed)
        return BAD(reader, chunk, last,
                   "the quote that is opened here is not closed: all %zu bytes up to the end are in it",
                   chunk->size - last);
    if (row->junk)
        return BAD(reader, chunk, record->at,
                   "text follows a closing quote: quotes within quotes have to be doubled");
    return row->columns == reader->header.columns ||
           BAD(reader, chunk, record->at, "%u column%s, but the header has %u", row->columns,
               row->columns == 1 ? "" : "s", reader->header.columns);
}

/* A text of csv as it was before it was quoted. */
static bool undouble(pace__review_reader *reader, const pace__csv_cell *cell, pace__review *review)
{
    if (!cell->doubled)
        return true;
    if (!reserve(reader, cell->size))
        return false;
    review->size = pace__csv_cell_decode(cell, reader->buffer);
    review->text = reader->buffer;
    return true;
}

static bool take_row(pace__review_reader *reader, const pace__chunk *chunk, const span *record,
                     const table_row *row, pace__review *review)
{
    const pace__csv_cell *text = &row->cells[TEXT], *label = &row->cells[LABEL];

    review->rating = NAN;
    return check_row(reader, chunk, record, row) &&
           (reader->header.label == PACE__NO_COLUMN ||
            take_rating(reader, chunk, record, label->text, label->size, &review->rating)) &&
           take_text(reader, chunk, record, text->text, text->size, review) && undouble(reader, text, review);
}

static bool take_tsv(pace__review_reader *reader, const pace__chunk *chunk, const span *line,
                     pace__review *review)
{
    table_row row;

    read_row(reader, line, &row);
    return take_row(reader, chunk, line, &row, review);
}

static bool take_csv(pace__review_reader *reader, const pace__chunk *chunk, size_t *at, pace__review *review)
{
    span record = {chunk->data + *at, *at, chunk->size - *at};
    table_row row;

    *at += read_row(reader, &record, &row);
    return take_row(reader, chunk, &record, &row, review);
}

/* --- records of any format --- */

/* The line at *at, which moves behind it. */
static span take_line(const pace__chunk *chunk, size_t *at)
{
    const char *text = chunk->data + *at, *newline = memchr(text, '\n', chunk->size - *at);
    size_t size = newline ? (size_t)(newline - text) : chunk->size - *at;
    span line = {text, *at, size};

    *at += size + (newline ? 1 : 0);
    if (size > 0 && text[size - 1] == '\r')
        line.size--;
    return line;
}

/* Whether the line at `at` is blank. Mostly its first character tells. */
static bool at_blank_line(const pace__chunk *chunk, size_t at)
{
    while (at < chunk->size && (chunk->data[at] == ' ' || chunk->data[at] == '\t' || chunk->data[at] == '\r'))
        at++;
    return at == chunk->size || chunk->data[at] == '\n';
}

static bool take_record(pace__review_reader *reader, const pace__chunk *chunk, size_t *at,
                        pace__review *review)
{
    if (reader->options.format == PACE_REVIEWS_CSV)
        return take_csv(reader, chunk, at, review);
    span line = take_line(chunk, at);

    switch (reader->options.format) {
    case PACE_REVIEWS_JSONL:
        return take_json(reader, chunk, &line, review);
    case PACE_REVIEWS_TSV:
        return take_tsv(reader, chunk, &line, review);
    case PACE_REVIEWS_TAB:
        return take_tab(reader, chunk, &line, review);
    default:
        return take_lone_text(reader, chunk, &line, review);
    }
}

static bool take_file(pace__review_reader *reader, const pace__chunk *chunk, size_t *at, pace__review *review)
{
    span record = {chunk->data + *at, *at, chunk->size - *at};

    *at = chunk->size;
    return take_lone_text(reader, chunk, &record, review);
}

pace_status pace__review_next(pace__review_reader *reader, const pace__chunk *chunk, size_t *at, bool *found,
                              pace__review *review)
{
    int format = reader->options.format;
    bool every_line = format == PACE_REVIEWS_LINES && reader->options.labels_optional;
    pace_status status = pace__has_header(format) ? know_header(reader, chunk, at) : PACE_OK;

    *found = false;
    if (*at == 0 && chunk->offset == 0)
        *at = pace__bom_size(chunk->data, chunk->size);
    reader->status = status;
    while (!reader->status && !*found && *at < chunk->size) {
        review->offset = chunk->offset + *at;
        if (format == PACE_REVIEWS_FOLDER)
            *found = take_file(reader, chunk, at, review);
        else if (!every_line && at_blank_line(chunk, *at))
            take_line(chunk, at);
        else
            *found = take_record(reader, chunk, at, review);
    }
    return reader->status;
}
