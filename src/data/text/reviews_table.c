/* Headers of tables. */
#include "data/text/reviews_internal.h"

bool pace__table_header_find(const pace__review_options *options, char separator, const char *text,
                             size_t size, bool complete, pace__table_header *header)
{
    size_t begin = pace__header_at(text, size);
    pace__csv_cells cells = pace__csv_cells_of(text + begin, size - begin, separator);
    pace__table_header found = {.text = PACE__NO_COLUMN, .label = PACE__NO_COLUMN};
    pace__csv_cell_end end;
    pace__csv_cell cell;

    if (begin == size)
        return false;
    do {
        end = pace__csv_cells_next(&cells, &cell);
        if (found.text == PACE__NO_COLUMN && pace__csv_cell_is(&cell, options->text_field))
            found.text = found.columns;
        else if (found.label == PACE__NO_COLUMN && pace__csv_cell_is(&cell, options->label_field))
            found.label = found.columns;
        found.columns++;
    } while (end == PACE__CSV_CELL_MORE);
    if (end == PACE__CSV_CELL_UNCLOSED || (cells.at == cells.size && text[size - 1] != '\n' && !complete))
        return false;
    found.size = begin + cells.at;
    *header = found;
    return true;
}

static pace_status column_missing(const pace__review_options *options, const char *path, const char *text,
                                  size_t size, bool text_missing, const pace_log *log)
{
    char shown[PACE__COLUMNS_SHOWN];

    pace__header_show(pace__separator_of(options->format), text, size, shown);
    return pace_fail(log, PACE_USAGE,
                     "%s: there is no column \"%s\", only %s: name the column of the %s with %s", path,
                     text_missing ? options->text_field : options->label_field, shown,
                     text_missing ? "texts" : "labels", text_missing ? "--text-field" : "--label-field");
}

pace_status pace__table_header_read(const pace__review_options *options, const char *path, const char *text,
                                    size_t size, bool complete, const pace_log *log,
                                    pace__table_header *header)
{
    pace__table_header found = {.size = size};

    if (complete && pace__header_at(text, size) == size) {
        *header = found;
        return PACE_OK;
    }
    if (!pace__table_header_find(options, pace__separator_of(options->format), text, size, complete, &found))
        return pace_fail(log, PACE_BAD_DATA,
                         "%s: the header, which names the columns, does not end%s: is this another format?",
                         path, complete ? "" : " within 64 KiB");
    if (!pace__table_header_fits(options, &found))
        return column_missing(options, path, text, size, found.text == PACE__NO_COLUMN, log);
    *header = found;
    return PACE_OK;
}
