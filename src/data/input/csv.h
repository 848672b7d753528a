/*
 * csv.h - tables as text: where records end, and what is in their cells.
 *
 * csv: cells are divided by commas and records by newlines (\n or \r\n). A cell that begins with " is quoted:
 * it ends at the next " that is not doubled, and may hold commas and newlines. A " anywhere else in a cell is
 * a character like others: 5" screen. tsv: cells are divided by tabs, nothing is quoted.
 *
 * Two readers have to agree on where records end, whatever the bytes: the cutter, which divides a stream
 * (pace__csv_scan), and the reader of a chunk's records (pace__cells). A quoted cell with text behind its
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

typedef struct pace__cell {
    const char *text; /* without its quotes */
    size_t size;
    bool doubled; /* there are doubled quotes in it: pace__cell_decode */
} pace__cell;

typedef enum pace__cell_end {
    PACE__CELL_MORE,     /* another cell follows in the record */
    PACE__CELL_LAST,     /* the record has ended */
    PACE__CELL_UNCLOSED, /* the text has ended within quotes */
} pace__cell_end;

/* Walks over the cells of a text, from record to record. Made by pace__cells_of. */
typedef struct pace__cells {
    const char *text;
    size_t size, at;
    size_t line_end; /* of the line that `at` is in, if it is not before `at`: its newline, or the size */
    char separator;
    bool quotes;
    bool junk; /* text behind a closing quote was met; for the caller to clear */
} pace__cells;

pace__cells pace__cells_of(const char *text, size_t size, char separator);

/* The next cell; `at` moves behind what ends it. To be called while `at` < size, or after PACE__CELL_MORE. */
pace__cell_end pace__cells_next(pace__cells *cells, pace__cell *cell);

/* Writes a cell with each doubled quote as one; returns its size, at most cell->size. */
size_t pace__cell_decode(const pace__cell *cell, char *out);

#endif
