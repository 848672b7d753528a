/*
 * header.h - the first line of a table, which names its columns: where it is, and what it says.
 *
 * A header is the first line that is not blank, behind a byte order mark. It is cut as records are (csv.h), so
 * that a quoted name may hold anything.
 */
#ifndef DATA_INPUT_HEADER_H
#define DATA_INPUT_HEADER_H

#include "data/input/csv.h"

#include <stdint.h>

#define PACE__NO_COLUMN UINT32_MAX

/* Bytes of the blank lines that a text begins with. */
size_t pace__blank_lines(const char *text, size_t size);

/* Where the header begins; `size` if there is none. */
size_t pace__header_at(const char *text, size_t size);

/* The cell without the blanks around its text. */
pace__csv_cell pace__csv_cell_trim(pace__csv_cell cell);
/* Whether that is this name. */
bool pace__csv_cell_is(const pace__csv_cell *cell, const char *name);

/* The names of the columns, as far as there is room, in quotes. */
#define PACE__COLUMNS_SHOWN 400
void pace__header_show(char separator, const char *text, size_t size, char shown[PACE__COLUMNS_SHOWN]);

#endif
