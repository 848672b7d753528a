#include "data/input/header.h"

#include "data/input/input_files.h"
#include "data/input/shown.h"

#include <stdio.h>
#include <string.h>

size_t pace__blank_lines(const char *text, size_t size)
{
    size_t begin = 0;

    for (size_t at = 0; at < size; at++) {
        if (text[at] == '\n')
            begin = at + 1;
        else if (text[at] != ' ' && text[at] != '\t' && text[at] != '\r')
            return begin;
    }
    return size;
}

size_t pace__header_at(const char *text, size_t size)
{
    size_t bom = pace__bom_size(text, size);

    return bom + pace__blank_lines(text + bom, size - bom);
}

pace__csv_cell pace__csv_cell_trim(pace__csv_cell cell)
{
    for (; cell.size > 0 && *cell.text == ' '; cell.text++)
        cell.size--;
    while (cell.size > 0 && cell.text[cell.size - 1] == ' ')
        cell.size--;
    return cell;
}

bool pace__csv_cell_is(const pace__csv_cell *cell, const char *name)
{
    pace__csv_cell trimmed = pace__csv_cell_trim(*cell);

    return strlen(name) == trimmed.size && memcmp(trimmed.text, name, trimmed.size) == 0;
}

void pace__header_show(char separator, const char *text, size_t size, char shown[PACE__COLUMNS_SHOWN])
{
    size_t begin = pace__header_at(text, size), used = 0;
    pace__csv_cells cells = pace__csv_cells_of(text + begin, size - begin, separator);
    pace__csv_cell_end end;
    pace__csv_cell cell;

    shown[0] = '\0';
    do {
        end = pace__csv_cells_next(&cells, &cell);
        if (used + sizeof(pace__shown) + sizeof ", \"\", ..." > PACE__COLUMNS_SHOWN) {
            snprintf(shown + used, PACE__COLUMNS_SHOWN - used, ", ...");
            return;
        }
        used += (size_t)snprintf(shown + used, PACE__COLUMNS_SHOWN - used, "%s\"%s\"", used > 0 ? ", " : "",
                                 pace__show(cell.text, cell.size).text);
    } while (end == PACE__CSV_CELL_MORE);
}
