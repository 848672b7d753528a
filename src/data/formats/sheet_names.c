/* The header of a table, as names. */
#include "data/formats/sheet_rows.h"
#include "data/input/input_files.h"
#include "data/input/shown.h"

#include <paceline/prep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pace_status too_many(const char *path, const pace_log *log)
{
    return pace_fail(log, PACE_BAD_DATA,
                     "%s: its header has more than %d columns: that is all a table may have", path,
                     PACE__SHEET_COLUMNS_MAX);
}

/* The cell as a text of its own at `to`; returns where the next one goes. */
static char *add_name(pace__sheet_names *names, const pace__csv_cell *cell, char *to)
{
    pace__csv_cell trimmed = pace__csv_cell_trim(*cell);
    size_t size = trimmed.size;

    if (cell->doubled)
        size = pace__csv_cell_decode(&trimmed, to);
    else
        memcpy(to, trimmed.text, size);
    to[size] = '\0';
    names->names[names->count++] = to;
    return to + size + 1;
}

/* `cells` are at the header. *end: how that ends. */
static pace_status take_names(pace__csv_cells *cells, const char *path, pace__sheet_names *names,
                              pace__csv_cell_end *end, const pace_log *log)
{
    char *to = names->text;
    pace__csv_cell cell;

    do {
        *end = pace__csv_cells_next(cells, &cell);
        if (names->count == PACE__SHEET_COLUMNS_MAX)
            return too_many(path, log);
        if (memchr(cell.text, '\0', cell.size))
            return pace_fail(log, PACE_BAD_DATA, "%s: there is a NUL in its header: is this a text file?",
                             path);
        to = add_name(names, &cell, to);
    } while (*end == PACE__CSV_CELL_MORE);
    return PACE_OK;
}

pace_status pace__sheet_names_read(char separator, const char *path, const char *bytes, size_t size,
                                   bool complete, const pace_log *log, pace__sheet_names *names)
{
    size_t begin = pace__header_at(bytes, size);
    pace__sheet_names found = {.size = size};
    pace__csv_cell_end end = PACE__CSV_CELL_LAST;

    *names = found;
    if (begin == size && complete)
        return PACE_OK;
    pace__csv_cells cells = pace__csv_cells_of(bytes + begin, size - begin, separator);

    /* A name takes its bytes and a separator or end, which has room for the NUL. */
    found.text = malloc(size - begin + 1);
    pace_status status = found.text ? take_names(&cells, path, &found, &end, log)
                                    : pace_fail(log, PACE_FAILED, "out of memory for a header");

    found.size = begin + cells.at;
    if (!status && (begin == size || end == PACE__CSV_CELL_UNCLOSED ||
                    (cells.at == cells.size && bytes[size - 1] != '\n' && !complete)))
        status = pace_fail(log, PACE_BAD_DATA,
                           "%s: the header, which names the columns, does not end%s: is this another format?",
                           path, complete ? "" : " within the first bytes");
    if (status)
        free(found.text);
    else
        *names = found;
    return status;
}

void pace__sheet_names_release(pace__sheet_names *names)
{
    free(names->text);
    *names = (pace__sheet_names){0};
}

void pace__list_name(pace__listed *list, const char *name)
{
    size_t room = sizeof list->text - list->used;
    bool fits = room > sizeof(pace__shown) + sizeof ", \"\", ...";
    const char *between = list->count > 0 ? ", " : "", *quote = fits && strchr(name, ',') ? "\"" : "";

    if (!list->cut)
        list->used += (size_t)snprintf(list->text + list->used, room, "%s%s%s%s", between, quote,
                                       fits ? pace__show(name, strlen(name)).text : "...", quote);
    list->cut |= !fits;
    list->count++;
}

pace_status pace__sheet_no_column(const char *path, const char *column, const pace__sheet_names *names,
                                  const char *hint, const pace_log *log)
{
    pace__listed listed = {.count = 0};

    for (uint32_t i = 0; i < names->count; i++)
        pace__list_name(&listed, names->names[i]);
    return pace_fail(log, PACE_USAGE, "%s: no column '%s'; the header has: %s%s", path,
                     pace__show(column, strlen(column)).text, listed.text, hint);
}

static bool has_feature(const pace__sheet *sheet, char separator, const char *bytes, size_t size)
{
    pace__sheet_names names;
    bool found = false;

    if (pace__sheet_names_read(separator, "", bytes, size, size < PACE__HEAD_BYTES, NULL, &names))
        return false;
    for (uint32_t i = 0; i < names.count; i++)
        found |= pace__sheet_find(sheet, names.names[i]) < sheet->columns;
    pace__sheet_names_release(&names);
    return found;
}

pace_status pace__sheet_format_of(const pace__sheet *sheet, const char *path, const pace_log *log,
                                  int *format)
{
    pace__input_facts facts = {0};
    size_t size = 0;
    char *head = malloc(PACE__HEAD_BYTES);
    pace_status status =
        head ? pace__input_check(path, &facts, log) : pace_fail(log, PACE_FAILED, "out of memory");

    *format = PACE_FORMAT_AUTO;
    if (!status && facts.regular)
        status = pace__input_read_head(path, head, PACE__HEAD_BYTES, &size, log);
    if (!status && facts.regular && has_feature(sheet, '\t', head, size))
        *format = PACE_FORMAT_TSV;
    else if (!status && facts.regular && has_feature(sheet, ',', head, size))
        *format = PACE_FORMAT_CSV;
    free(head);
    return status;
}
