/*
 * sheet_rows.h - the rows of tables with a header, csv or tsv (csv.h says what that is).
 *
 * Every file has a header of its own, which says where its columns are. What a column's name does not say, an encoding
 * does: a column that it does not know is left out, one that the file does not have is missing in all of its rows;
 * whoever reads the file's first chunk warns of both. A reader knows the header of one file at a time, so that each
 * thread has its own; chunks may come in any order.
 *
 * Wrong with a row, and told as a bad row (parse.h): more or fewer cells than the header has, an open quote, text behind
 * a closing one, a number's cell that is neither a number nor missing, a label of no class.
 */
#ifndef DATA_FORMATS_SHEET_ROWS_H
#define DATA_FORMATS_SHEET_ROWS_H

#include "data/formats/parse.h"
#include "data/input/header.h"

typedef struct pace__sheet_reader pace__sheet_reader;

/* `label`: what its column is called in these files, or NULL: as in the encoding. Both must outlive the reader. */
pace_status pace__sheet_reader_create(const pace__encoding *encoding, int format, const char *label,
                                      const pace_log *log, pace__sheet_reader **reader);
void pace__sheet_reader_free(pace__sheet_reader *reader); /* NULL is allowed */

/* PACE_FORMAT_CSV or _TSV: the separator. */
static inline char pace__sheet_separator(bool tabs)
{
    return tabs ? '\t' : ',';
}

/* With parser->sheet, whose header comes from the chunk if that begins with it, else from parser->bad->input. */
pace__parse_fn pace__parse_table;

/* --- headers --- */

/* The names of a header, in their order, without blanks around them and with single quotes again where they are
 * doubled. Columns without a name have an empty one. */
typedef struct pace__sheet_names {
    uint32_t count;
    size_t size; /* of all up to the first record */
    const char *names[PACE__SHEET_COLUMNS_MAX];
    char *text; /* what they point into */
} pace__sheet_names;

/*
 * Of the first bytes of a file; `complete`: these are all. PACE_BAD_DATA if they hold no whole header, or one of too
 * many columns. Nothing but blank lines has a header of no columns.
 */
pace_status pace__sheet_names_read(char separator, const char *path, const char *bytes, size_t size,
                                   bool complete, const pace_log *log, pace__sheet_names *names);
void pace__sheet_names_release(pace__sheet_names *names); /* a zeroed one is allowed */

/* PACE_FORMAT_CSV or _TSV, by which of them the header has a feature of the sheet; else, and of what can be read only once,
 * PACE_FORMAT_AUTO. */
pace_status pace__sheet_format_of(const pace__sheet *sheet, const char *path, const pace_log *log,
                                  int *format);

/* Names for a message, with commas between, as far as there is room. Begins as {0}. */
typedef struct pace__listed {
    char text[PACE__COLUMNS_SHOWN];
    size_t used, count;
    bool cut;
} pace__listed;

void pace__list_name(pace__listed *list, const char *name);

/* PACE_USAGE: there is no such column, but those that the names say; `hint` says what to do. */
pace_status pace__sheet_no_column(const char *path, const char *column, const pace__sheet_names *names,
                                  const char *hint, const pace_log *log);

#endif
