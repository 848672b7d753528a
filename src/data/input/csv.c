#include "data/input/csv.h"

#include <string.h>

/* Looks for where a quoted cell opens; newlines up to there end records. */
static void scan_plain(pace__csv_scan *scan, const char *text, size_t size)
{
    const char *from = text + scan->at, *quote = memchr(from, '"', size - scan->at);
    size_t end = quote ? (size_t)(quote - text) : size;
    const char *newline = memrchr(from, '\n', end - scan->at);

    if (newline)
        scan->whole = (size_t)(newline - text) + 1;
    scan->at = end;
    if (!quote)
        return;
    scan->at++;
    scan->quoted = end == scan->begin || quote[-1] == ',' || quote[-1] == '\n';
    scan->quote = end;
}

/* Looks for the closing quote; false if more bytes are needed to tell. */
static bool scan_quoted(pace__csv_scan *scan, const char *text, size_t size)
{
    const char *quote = memchr(text + scan->at, '"', size - scan->at);

    scan->at = quote ? (size_t)(quote - text) : size;
    if (size - scan->at < 2)
        return false;
    scan->quoted = quote[1] == '"';
    scan->at += scan->quoted ? 2 : 1;
    return true;
}

void pace__csv_scan_on(pace__csv_scan *scan, const char *text, size_t size)
{
    while (scan->at < size) {
        if (!scan->quoted)
            scan_plain(scan, text, size);
        else if (!scan_quoted(scan, text, size))
            return;
    }
}

pace__csv_cells pace__csv_cells_of(const char *text, size_t size, char separator)
{
    const char *newline = memchr(text, '\n', size);

    return (pace__csv_cells){.text = text,
                             .size = size,
                             .line_end = newline ? (size_t)(newline - text) : size,
                             .separator = separator,
                             .quotes = separator == ','};
}

/* Up to the separator or the end of the line. */
static pace__csv_cell_end take_plain(pace__csv_cells *cells, pace__csv_cell *cell)
{
    const char *from = cells->text + cells->at;

    if (cells->line_end < cells->at) {
        const char *newline = memchr(from, '\n', cells->size - cells->at);

        cells->line_end = newline ? (size_t)(newline - cells->text) : cells->size;
    }
    const char *separator = memchr(from, cells->separator, cells->line_end - cells->at);
    size_t end = separator ? (size_t)(separator - cells->text) : cells->line_end;

    *cell = (pace__csv_cell){.text = from, .size = end - cells->at};
    if (!separator && cell->size > 0 && from[cell->size - 1] == '\r')
        cell->size--;
    cells->at = end < cells->size ? end + 1 : end;
    return separator ? PACE__CSV_CELL_MORE : PACE__CSV_CELL_LAST;
}

/* Behind a closing quote. */
static pace__csv_cell_end finish_quoted(pace__csv_cells *cells)
{
    pace__csv_cell rest;
    pace__csv_cell_end end = take_plain(cells, &rest);

    cells->junk |= rest.size > 0;
    return end;
}

pace__csv_cell_end pace__csv_cells_next(pace__csv_cells *cells, pace__csv_cell *cell)
{
    const char *begin = cells->text + cells->at + 1, *end = cells->text + cells->size, *from = begin;
    bool doubled = false;

    if (!cells->quotes || cells->at == cells->size || begin[-1] != '"')
        return take_plain(cells, cell);
    for (;;) {
        const char *quote = memchr(from, '"', (size_t)(end - from));

        *cell = (pace__csv_cell){begin, (size_t)((quote ? quote : end) - begin), doubled};
        if (!quote) {
            cells->at = cells->size;
            return PACE__CSV_CELL_UNCLOSED;
        }
        from = quote + 1;
        if (from == end || *from != '"')
            break;
        from++;
        doubled = true;
    }
    cells->at = (size_t)(from - cells->text);
    return finish_quoted(cells);
}

size_t pace__csv_cell_decode(const pace__csv_cell *cell, char *out)
{
    const char *from = cell->text, *end = from + cell->size;
    char *to = out;

    while (from < end) {
        const char *quote = memchr(from, '"', (size_t)(end - from));
        size_t size = (size_t)((quote ? quote + 1 : end) - from);

        memcpy(to, from, size);
        to += size;
        from += size + (quote ? 1 : 0);
    }
    return (size_t)(to - out);
}
