#include "data/formats/sheet_rows.h"

#include "base/random.h"
#include "data/formats/criteo.h"
#include "data/input/shown.h"

#include <assert.h>
#include <math.h>
#include <paceline/prep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a column of a file that is not taken. */
#define LEFT_OUT PACE__SHEET_NONE

struct pace__sheet_reader {
    const pace__encoding *encoding;
    const char *label;
    char separator;
    const pace_log *log;
    bool known; /* the header of this file: */
    uint32_t file;
    uint32_t columns;                     /* of the file */
    uint32_t is[PACE__SHEET_COLUMNS_MAX]; /* which of the encoding's each of them is */
    bool labelled;
    bool absent[PACE__SHEET_COLUMNS_MAX]; /* features that the file does not have */
    pace__csv_cell cells[PACE__SHEET_COLUMNS_MAX];
    char *head;   /* (PACE__HEAD_BYTES) */
    char *buffer; /* a cell with single quotes */
    size_t capacity;
};

pace_status pace__sheet_reader_create(const pace__encoding *encoding, int format, const char *label,
                                      const pace_log *log, pace__sheet_reader **reader)
{
    pace__sheet_reader *new = calloc(1, sizeof *new);
    const pace__sheet *sheet = &encoding->sheet;

    assert(encoding->kind == PACE__SHEET);
    if (new)
        new->head = malloc(PACE__HEAD_BYTES);
    if (!new || !new->head) {
        pace__sheet_reader_free(new);
        return pace_fail(log, PACE_FAILED, "out of memory for a reader of tables");
    }
    new->encoding = encoding;
    new->label = label ? label : pace__sheet_name(sheet, pace__sheet_label(sheet));
    new->separator = pace__sheet_separator(format == PACE_FORMAT_TSV);
    new->log = log;
    *reader = new;
    return PACE_OK;
}

void pace__sheet_reader_free(pace__sheet_reader *reader)
{
    if (!reader)
        return;
    free(reader->head);
    free(reader->buffer);
    free(reader);
}

/* --- headers --- */

static void warn_of(const pace__sheet_reader *reader, const char *path, const pace__listed *names,
                    const char *what)
{
    if (names->count > 0)
        pace_say(reader->log, PACE_WARN, "%s: %zu column%s %s: %s", path, names->count,
                 names->count == 1 ? "" : "s", what, names->text);
}

/* What each column of the file is. *taken: features among them. */
static void place_columns(pace__sheet_reader *reader, const pace__sheet_names *names, pace__listed *new,
                          uint32_t *taken)
{
    const pace__sheet *sheet = &reader->encoding->sheet;

    memset(reader->absent, true, sizeof reader->absent);
    reader->columns = names->count;
    reader->labelled = false;
    *taken = 0;
    for (uint32_t i = 0; i < names->count; i++) {
        const char *name = names->names[i];
        bool label = strcmp(name, reader->label) == 0;
        uint32_t is = label ? pace__sheet_label(sheet) : pace__sheet_find(sheet, name);

        reader->labelled |= label;
        reader->is[i] = label || is < sheet->columns ? is : LEFT_OUT;
        if (is < sheet->columns)
            reader->absent[is] = false;
        *taken += is < sheet->columns;
        if (is == PACE__SHEET_NONE && *name)
            pace__list_name(new, name);
    }
}

static pace_status check_twice(const pace__sheet_reader *reader, const char *path,
                               const pace__sheet_names *names)
{
    bool seen[PACE__SHEET_COLUMNS_MAX] = {false};

    for (uint32_t i = 0; i < names->count; i++) {
        if (reader->is[i] == LEFT_OUT)
            continue;
        if (seen[reader->is[i]])
            return pace_fail(reader->log, PACE_BAD_DATA, "%s: two columns are called \"%s\"", path,
                             pace__show(names->names[i], strlen(names->names[i])).text);
        seen[reader->is[i]] = true;
    }
    return PACE_OK;
}

static void warn_of_differences(const pace__sheet_reader *reader, const char *path, const pace__listed *new)
{
    const pace__sheet *sheet = &reader->encoding->sheet;
    pace__listed absent = {.count = 0};

    for (uint32_t i = 0; i < sheet->columns; i++) {
        if (reader->absent[i])
            pace__list_name(&absent, pace__sheet_name(sheet, i));
    }
    warn_of(reader, path, &absent, "not there, so missing in every row");
    warn_of(reader, path, new, "not known, so left out");
}

static pace_status settle_header(pace__sheet_reader *reader, const char *path, const pace__sheet_names *names,
                                 bool label_needed, bool first)
{
    pace__listed new = {.count = 0};
    uint32_t taken;

    place_columns(reader, names, &new, &taken);
    pace_status status = check_twice(reader, path, names);

    if (status || names->count == 0)
        return status;
    if (label_needed && !reader->labelled)
        return pace__sheet_no_column(path, reader->label, names, ": name the label's with --label-field",
                                     reader->log);
    if (taken == 0)
        return pace__sheet_no_column(path, pace__sheet_name(&reader->encoding->sheet, 0), names,
                                     ", and none of the others that are known", reader->log);
    if (first)
        warn_of_differences(reader, path, &new);
    return PACE_OK;
}

/* The columns of the chunk's file; if the chunk begins with the header, *at moves behind it. */
static pace_status know_header(const pace__parser *parser, const pace__chunk *chunk, size_t *at)
{
    pace__sheet_reader *reader = parser->sheet;
    const pace__input *input = parser->bad->input;
    const char *path = input ? pace__input_path(input, chunk->file) : "-", *bytes = chunk->data;
    bool first = chunk->offset == 0 && *at == 0;
    pace__sheet_names names;
    size_t size = chunk->size;
    pace_status status = PACE_OK;

    if (!first && reader->known && reader->file == chunk->file)
        return PACE_OK;
    if (!first) {
        assert(input);
        bytes = reader->head;
        status = pace__input_head(input, chunk->file, reader->head, &size);
    }
    if (!status)
        status = pace__sheet_names_read(reader->separator, path, bytes, size,
                                        first || size < PACE__HEAD_BYTES, reader->log, &names);
    if (status)
        return status;
    status = settle_header(reader, path, &names, !parser->labels_optional, first);
    if (!status && first)
        *at = names.size;
    reader->known = !status;
    reader->file = chunk->file;
    pace__sheet_names_release(&names);
    return status;
}

/* --- rows --- */

/* What is true of all cells of a row. */
typedef struct row_shape {
    size_t at, last; /* where the row, and its last cell, begin */
    uint32_t columns;
    bool unclosed, junk;
} row_shape;

/* Takes all cells of a row, whatever is wrong with it. */
static row_shape take_cells(pace__sheet_reader *reader, pace__csv_cells *cells, size_t base)
{
    row_shape row = {.at = base + cells->at};
    pace__csv_cell_end end;
    pace__csv_cell cell;

    cells->junk = false;
    do {
        row.last = base + cells->at;
        end = pace__csv_cells_next(cells, &cell);
        if (row.columns < reader->columns)
            reader->cells[row.columns] = cell;
        row.columns++;
    } while (end == PACE__CSV_CELL_MORE);
    row.unclosed = end == PACE__CSV_CELL_UNCLOSED;
    row.junk = cells->junk;
    return row;
}

/* The cell's text, without blanks around it, and with quotes as they were. */
static pace_status text_of(pace__sheet_reader *reader, const pace__csv_cell *cell, pace__csv_cell *text)
{
    *text = pace__csv_cell_trim(*cell);
    if (!text->doubled)
        return PACE_OK;
    if (text->size > reader->capacity) {
        char *buffer = realloc(reader->buffer, 2 * text->size);

        if (!buffer)
            return pace_fail(reader->log, PACE_FAILED, "out of memory for a cell of %zu bytes", text->size);
        reader->buffer = buffer;
        reader->capacity = 2 * text->size;
    }
    text->size = pace__csv_cell_decode(text, reader->buffer);
    text->text = reader->buffer;
    return PACE_OK;
}

static void put_number(const pace__encoding *encoding, uint32_t column, double number, uint64_t *id,
                       float *value)
{
    uint64_t base = encoding->column_base[column], size = encoding->column_base[column + 1] - base;
    double steps = pace__sheet_steps(encoding->sheet.steps[column], number);

    if (encoding->numeric == PACE_NUMERIC_VALUES) {
        *id = base + (isnan(steps) ? PACE__PLACE_MISSING : PACE__PLACE_VALUE);
        *value = isnan(steps) ? 1 : pace__sheet_value(steps);
    } else {
        *id = base + pace__sheet_bin(steps) * size / PACE__SHEET_BINS;
        *value = 1;
    }
}

static void put_category(const pace__encoding *encoding, uint32_t column, const char *text, size_t size,
                         uint64_t *id, float *value)
{
    uint64_t base = encoding->column_base[column];

    *id = base +
          pace__scale_to(pace__category_hash(text, (uint32_t)size), encoding->column_base[column + 1] - base);
    *value = 1;
}

static void put_missing(const pace__encoding *encoding, uint32_t column, uint64_t *id, float *value)
{
    if (column < encoding->sheet.numbers)
        put_number(encoding, column, NAN, id, value);
    else
        put_category(encoding, column, "", 0, id, value);
}

/* The functions below return whether the row is good. If not, *status says whether reading may go on. */
#define BAD(...) (*status = pace__bad_row(parser->bad, chunk, __VA_ARGS__), false)

static bool check_row(const pace__parser *parser, const pace__chunk *chunk, const row_shape *row,
                      pace_status *status)
{
    const pace__sheet_reader *reader = parser->sheet;

    if (row->unclosed)
        return BAD(row->last,
                   "the quote that is opened here is not closed: all %zu bytes up to the end are in it",
                   chunk->size - row->last);
    if (row->junk)
        return BAD(row->at, "text follows a closing quote: quotes within quotes have to be doubled");
    return row->columns == reader->columns || BAD(row->at, "%u column%s, but the header has %u", row->columns,
                                                  row->columns == 1 ? "" : "s", reader->columns);
}

static bool take_label(const pace__parser *parser, const pace__chunk *chunk, const row_shape *row,
                       const pace__csv_cell *cell, uint8_t *label, pace_status *status)
{
    pace__csv_cell text = pace__csv_cell_trim(*cell);

    if (parser->labels_optional || pace__sheet_label_of(text.text, text.size, label))
        return true;
    if (text.size == 0)
        return BAD(row->at, "the label, column \"%s\", is empty",
                   pace__show(parser->sheet->label, strlen(parser->sheet->label)).text);
    return BAD(
        row->at,
        "label \"%s\" is none of 0, 1, -1, no, yes, false, true: there are two classes; --label-field names "
        "another column",
        pace__show(text.text, text.size).text);
}

static bool bad_number(const pace__parser *parser, const pace__chunk *chunk, const row_shape *row,
                       uint32_t column, const pace__csv_cell *text, pace_status *status)
{
    const char *name = pace__sheet_name(&parser->encoding->sheet, column);

    return BAD(
        row->at,
        "column \"%s\": \"%s\" is no number, and not missing; --category-fields takes texts as they are",
        pace__show(name, strlen(name)).text, pace__show(text->text, text->size).text);
}

static bool take_feature(const pace__parser *parser, const pace__chunk *chunk, const row_shape *row,
                         uint32_t column, const pace__csv_cell *cell, uint64_t *id, float *value,
                         pace_status *status)
{
    const pace__encoding *encoding = parser->encoding;
    pace__csv_cell text;
    double number;

    *status = text_of(parser->sheet, cell, &text);
    if (*status)
        return false;
    if (column >= encoding->sheet.numbers)
        put_category(encoding, column, text.text, text.size, id, value);
    else if (!pace__sheet_number(text.text, text.size, &number))
        return bad_number(parser, chunk, row, column, &text, status);
    else
        put_number(encoding, column, number, id, value);
    return true;
}

/* Appends the row, if it is a good one. */
static bool add_row(const pace__parser *parser, const pace__chunk *chunk, const row_shape *row,
                    pace__raw_rows *rows, pace_status *status)
{
    const pace__sheet_reader *reader = parser->sheet;
    uint32_t features = parser->encoding->sheet.columns;
    uint64_t *ids = rows->ids + rows->start[rows->rows];
    float *values = rows->values + rows->start[rows->rows];
    uint8_t label = 0;

    if (!check_row(parser, chunk, row, status))
        return false;
    for (uint32_t i = 0; i < features; i++) {
        if (reader->absent[i])
            put_missing(parser->encoding, i, &ids[i], &values[i]);
    }
    for (uint32_t i = 0; i < reader->columns; i++) {
        uint32_t is = reader->is[i];
        bool good = is == LEFT_OUT ||
                    (is < features ? take_feature(parser, chunk, row, is, &reader->cells[i], &ids[is],
                                                  &values[is], status)
                                   : take_label(parser, chunk, row, &reader->cells[i], &label, status));

        if (!good)
            return false;
    }
    rows->label[rows->rows] = label;
    rows->offset[rows->rows] = chunk->offset + row->at;
    rows->start[rows->rows + 1] = rows->start[rows->rows] + features;
    rows->rows++;
    return true;
}

/* Moves behind blank lines. In a table of tabs, these may be cells. */
static void skip_blank_lines(pace__csv_cells *cells)
{
    for (size_t at = cells->at; at < cells->size; at++) {
        if (cells->text[at] == '\n')
            cells->at = at + 1;
        else if (cells->text[at] != ' ' && cells->text[at] != '\r')
            return;
    }
    cells->at = cells->size;
}

pace_status pace__parse_table(const pace__parser *parser, const pace__chunk *chunk, size_t *at,
                              pace__raw_rows *rows)
{
    rows->rows = 0;
    rows->start[0] = 0;
    pace_status status = know_header(parser, chunk, at);

    if (!status)
        status = pace__raw_rows_reserve(rows, (size_t)PACE__RAW_ROWS * parser->encoding->sheet.columns,
                                        parser->bad->log);
    if (status)
        return status;
    size_t base = *at;
    pace__csv_cells cells =
        pace__csv_cells_of(chunk->data + base, chunk->size - base, parser->sheet->separator);

    for (skip_blank_lines(&cells); !status && rows->rows < PACE__RAW_ROWS && cells.at < cells.size;
         skip_blank_lines(&cells)) {
        row_shape row = take_cells(parser->sheet, &cells, base);

        add_row(parser, chunk, &row, rows, &status);
    }
    *at = base + cells.at;
    return status;
}
