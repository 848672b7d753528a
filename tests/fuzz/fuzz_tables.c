/*
 * Tables with a header, from the guess of what their columns are to rows. The first byte of an input chooses the format,
 * how numbers are taken, and whether labels are wanted; the rest is the file. What is guessed comes back from its JSON;
 * every entry of a row lies in the range of its column; rows do not depend on where chunks end.
 */
#include "../unit/parsed.h"
#include "data/formats/sheet_rows.h"
#include "data/guess/guess.h"

#include <math.h>
#include <paceline/prep.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_json(const pace__encoding *encoding)
{
    static pace__encoding again;
    char *json = pace__encoding_to_json(encoding);

    assert(json && strlen(json) < 60000);
    assert(pace__encoding_from_json(json, "here", &again, NULL) == PACE_OK);
    assert(pace__encoding_fits(encoding, &again, NULL) == PACE_OK);
    assert(memcmp(again.column_base, encoding->column_base, sizeof again.column_base) == 0);
    assert(pace__sheet_label(&again.sheet) == pace__sheet_label(&encoding->sheet));
    free(json);
}

static void check_rows(const pace__encoding *encoding, const pace__raw_rows *rows)
{
    uint32_t columns = encoding->sheet.columns;

    assert(rows->start[rows->rows] == rows->rows * columns);
    for (size_t i = 0; i < rows->start[rows->rows]; i++) {
        assert(rows->ids[i] >= encoding->column_base[i % columns] &&
               rows->ids[i] < encoding->column_base[i % columns + 1]);
        assert(isfinite(rows->values[i]));
    }
}

static void parse(const pace__encoding *encoding, int format, bool labels_optional, const char *text,
                  size_t size)
{
    static pace__raw_rows rows;
    char *copy = malloc(size + PACE__CHUNK_SLACK);
    pace__bad_rows bad = {.max = 1000000};
    pace__parser parser = {.encoding = encoding, .labels_optional = labels_optional, .bad = &bad};
    pace__chunk chunk = {.data = copy, .size = size, .line = 1};

    assert(copy && pace__sheet_reader_create(encoding, format, NULL, NULL, &parser.sheet) == PACE_OK);
    memcpy(copy, text, size);
    if (!rows.ids)
        assert(pace__raw_rows_init(&rows, NULL) == PACE_OK);
    for (size_t at = 0, before = 0; at < size; before = at) {
        if (pace__parse_table(&parser, &chunk, &at, &rows))
            break;
        assert(at > before && at <= size);
        check_rows(encoding, &rows);
    }
    pace__sheet_reader_free(parser.sheet);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static pace__encoding encoding;
    static pace__sheet sheet;
    pace__sheet_wish wish = {.label = NULL};

    if (size == 0)
        return 0;
    const char *text = (const char *)data + 1;
    int format = data[0] & 1 ? PACE_FORMAT_TSV : PACE_FORMAT_CSV;
    char separator = pace__sheet_separator(format == PACE_FORMAT_TSV);
    bool complete = !(data[0] & 8);

    size--;
    (void)pace__sheet_is_certain(NULL, separator, text, size, complete);
    if (pace__sheet_guess(&wish, separator, "here", text, size, complete, NULL, &sheet))
        return 0;
    if (pace__encoding_sheet(data[0] & 16 ? 4 * sheet.columns : 0,
                             data[0] & 2 ? PACE_NUMERIC_VALUES : PACE_NUMERIC_BINS, &sheet, &encoding, NULL))
        return 0;
    check_json(&encoding);
    parse(&encoding, format, data[0] & 4, text, size);
    return 0;
}
