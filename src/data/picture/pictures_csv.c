/* Pictures that a table lists: a csv file with a header, a path and a class in each row. */
#include "data/formats/sheet_rows.h"
#include "data/input/input_files.h"
#include "data/picture/pictures_internal.h"

#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 4096

/* One table while it is read. */
typedef struct reading {
    pace__listing *listing;
    const char *path; /* of the table */
    char *folder;     /* that its paths start from; NULL: the current one */
    uint32_t columns, path_column, class_column;
    pace__name_list *classes; /* sorted */
    bool adding;              /* the classes are known, and pictures are added; else classes are gathered */
    char picture[PATH_BYTES], class[PACE__CLASS_NAME_BYTES_MAX + 1];
} reading;

static pace_status no_memory(const pace__listing *listing)
{
    return pace_fail(listing->log, PACE_FAILED, "out of memory");
}

/* --- classes --- */

/* The place of a name, or where it would be. */
static size_t place_of(const pace__name_list *set, const char *name)
{
    size_t low = 0, high = set->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(set->items[middle], name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static pace_status gather(const pace__listing *listing, pace__name_list *set, const char *name)
{
    size_t at = place_of(set, name);

    if (at < set->count && strcmp(set->items[at], name) == 0)
        return PACE_OK;
    if (set->count == PACE__CLASSES_MAX)
        return pace_fail(listing->log, PACE_BAD_DATA, "more than %d different classes", PACE__CLASSES_MAX);
    return pace__name_list_insert(set, at, name) ? PACE_OK : no_memory(listing);
}

/* --- rows --- */

/* What is wrong with the row at that byte. */
static pace_status bad_row(const reading *self, uint64_t offset, const char *what, const char *fault)
{
    return pace_fail(self->listing->log, PACE_BAD_DATA, "%s:%llu: %s %s", self->path,
                     (unsigned long long)pace__line_at(self->path, offset), what, fault);
}

/* The cell as a text; false if it is longer than the room, or has a NUL in it. */
static bool take_text(const pace__csv_cell *cell, char *text, size_t room)
{
    pace__csv_cell trimmed = pace__csv_cell_trim(*cell);
    size_t size = trimmed.size;

    if (size >= room || memchr(trimmed.text, '\0', size))
        return false;
    if (trimmed.doubled)
        size = pace__csv_cell_decode(&trimmed, text);
    else
        memcpy(text, trimmed.text, size);
    text[size] = '\0';
    return true;
}

/* NULL, or what is wrong with the row. */
static const char *take_row(reading *self, pace__csv_cells *cells)
{
    const char *fault = NULL;
    uint32_t count = 0;
    pace__csv_cell_end end;
    pace__csv_cell cell;

    cells->junk = false;
    do {
        end = pace__csv_cells_next(cells, &cell);
        if (count == self->path_column && (!take_text(&cell, self->picture, PATH_BYTES) || !*self->picture))
            fault = "has an empty path, or one that is too long";
        if (count == self->class_column && !take_text(&cell, self->class, sizeof self->class))
            fault = "has a class whose name is too long";
        count++;
    } while (end == PACE__CSV_CELL_MORE);
    if (end == PACE__CSV_CELL_UNCLOSED)
        return "has a quote that is not closed";
    if (cells->junk)
        return "has text behind a closing quote: quotes within quotes have to be doubled";
    return count != self->columns ? "has another number of columns than the header" : fault;
}

static pace_status add_picture(reading *self)
{
    pace__picture_entry entry = {.label = (int64_t)place_of(self->classes, self->class),
                                 .file = PACE__NO_CONTAINER};
    bool alone = *self->picture == '/' || !self->folder;
    pace_status status = pace__listing_add_path(self->listing, alone ? self->picture : self->folder,
                                                alone ? NULL : self->picture, &entry.at);

    return status ? status : pace__listing_add(self->listing, &entry);
}

static pace_status take_rows(reading *self, const pace__chunk *chunk, size_t begin)
{
    pace__csv_cells cells = pace__csv_cells_of(chunk->data + begin, chunk->size - begin, ',');
    pace_status status = PACE_OK;

    while (!status && cells.at < cells.size) {
        size_t at = cells.at, blank = pace__blank_lines(cells.text + at, cells.size - at);

        if (blank > 0) {
            cells.at += blank;
            continue;
        }
        const char *fault = take_row(self, &cells), *what = fault ? "the row" : "the class";

        if (!fault && !self->adding)
            fault = pace__class_name_fault(self->class, strlen(self->class));
        status = fault          ? bad_row(self, chunk->offset + begin + at, what, fault)
                 : self->adding ? add_picture(self)
                                : gather(self->listing, self->classes, self->class);
    }
    return status;
}

/* --- tables --- */

static pace_status find_columns(reading *self, const pace__chunk *chunk, size_t *begin)
{
    const pace__listing_plan *plan = self->listing->plan;
    const char *path = plan->path_field ? plan->path_field : PACE__PATH_FIELD,
               *class = plan->label_field ? plan->label_field : PACE__CLASS_FIELD;
    const pace_log *log = self->listing->log;
    pace__sheet_names names;
    pace_status status = pace__sheet_names_read(',', self->path, chunk->data, chunk->size, true, log, &names);

    if (status)
        return status;
    self->columns = names.count;
    self->path_column = self->class_column = PACE__SHEET_NONE;
    for (uint32_t i = names.count; i-- > 0;) {
        self->path_column = strcmp(names.names[i], path) == 0 ? i : self->path_column;
        self->class_column = strcmp(names.names[i], class) == 0 ? i : self->class_column;
    }
    if (self->path_column == PACE__SHEET_NONE)
        status = pace__sheet_no_column(self->path, path, &names, ": name that of the paths with --path-field",
                                       log);
    else if (self->class_column == PACE__SHEET_NONE)
        status = pace__sheet_no_column(self->path, class, &names,
                                       ": name that of the classes with --label-field", log);
    *begin = names.size;
    pace__sheet_names_release(&names);
    return status;
}

static pace_status read_chunks(reading *self, pace__input *input)
{
    pace__chunk chunk = {0};
    pace_status status;

    while (!(status = pace__input_next(input, &chunk)) && chunk.size > 0) {
        size_t begin = 0;

        if (chunk.offset == 0)
            status = find_columns(self, &chunk, &begin);
        if (!status)
            status = take_rows(self, &chunk, begin);
        if (!status)
            status = pace__listing_pulse(self->listing);
        if (status)
            break;
    }
    pace__chunk_release(&chunk);
    return status;
}

static pace_status read_table(pace__listing *listing, const char *path, pace__name_list *classes, bool adding)
{
    const char *slash = strrchr(path, '/');
    reading *self = calloc(1, sizeof *self);
    pace__input *input;

    if (!self)
        return no_memory(listing);
    *self = (reading){.listing = listing, .path = path, .classes = classes, .adding = adding};
    if (slash)
        self->folder = strndup(path, (size_t)(slash - path));
    pace_status status = slash && !self->folder ? no_memory(listing)
                                                : pace__input_open(&path, 1, PACE__CSV, listing->log, &input);

    if (!status) {
        status = read_chunks(self, input);
        pace__input_close(input);
    }
    free(self->folder);
    free(self);
    return status;
}

pace_status pace__list_tables(pace__listing *self)
{
    const pace__picture_sources *sources = self->plan->sources;
    pace__name_list classes = {0};
    pace_status status = PACE_OK;

    for (size_t i = 0; i < sources->count && !status; i++)
        status = read_table(self, sources->items[i].path, &classes, false);
    if (!status)
        status = pace__listing_keep_names(self, &classes, "class");
    for (size_t i = 0; i < sources->count && !status; i++) {
        status = read_table(self, sources->items[i].path, &classes, true);
        if (!sources->items[i].test)
            self->facts.inputs = self->facts.count;
    }
    pace__name_list_release(&classes);
    return status;
}
