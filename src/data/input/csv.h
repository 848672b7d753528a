/*
 * csv.h - tables as text: where records end, and what is in their cells.
 *
 * csv: cells are divided by commas and records by newlines (\n or \r\n). A cell that begins with " is quoted:
 * it ends at the next " that is not doubled, and may hold commas and newlines. A " anywhere else in a cell is
 * a character like others: 5" screen. tsv: cells are divided by tabs, nothing is quoted.
 *
 * Two readers have to agree on where records end, whatever the bytes: the cutter, which divides a stream
 * (pace__csv_scan), and the reader of a chunk's records (pace__csv_cells). A quoted cell with text behind its
 * closing quote is a fault; both go on as if that text were unquoted.
 */
#ifndef DATA_INPUT_CSV_H
#define DATA_INPUT_CSV_H

#include <stdbool.h>
#include <stddef.h>

/* Begins as {0} or, where the first record begins later, with `at` and `begin` there. */
typedef struct pace__csv_scan {
    size_t begin;
    size_t at;    /* what is before it was looked at */
    size_t whole; /* up to here there are whole records */
    size_t quote; /* where the cell began, while quoted */
    bool quoted;
} pace__csv_scan;

/* Looks at text[scan->at .. size), which goes on what was given before. */
void pace__csv_scan_on(pace__csv_scan *scan, const char *text, size_t size);

typedef struct pace__csv_cell {
    const char *text; /* without its quotes */
    size_t size;
    bool doubled; /* there are doubled quotes in it: pace__csv_cell_decode */
} pace__csv_cell;

typedef enum pace__csv_cell_end {
    PACE__CSV_CELL_MORE,     /* another cell follows in the record */
    PACE__CSV_CELL_LAST,     /* the record has ended */
    PACE__CSV_CELL_UNCLOSED, /* the text has ended within quotes */
} pace__csv_cell_end;

/* Walks over the cells of a text, from record to record. Made by pace__csv_cells_of. */
typedef struct pace__csv_cells {
    const char *text;
    size_t size, at;
    size_t line_end; /* of the line that `at` is in, if it is not before `at`: its newline, or the size */
    char separator;
    bool quotes;
    bool junk; /* text behind a closing quote was met; for the caller to clear */
} pace__csv_cells;

pace__csv_cells pace__csv_cells_of(const char *text, size_t size, char separator);

/* The next cell; `at` moves behind what ends it. To be called while `at` < size, or after PACE__CSV_CELL_MORE. */
pace__csv_cell_end pace__csv_cells_next(pace__csv_cells *cells, pace__csv_cell *cell);

/* Writes a cell with each doubled quote as one; returns its size, at most cell->size. */
size_t pace__csv_cell_decode(const pace__csv_cell *cell, char *out);

#endif
