/* Which files the words of a command stand for, and what their format is. */
#include "data/input/directory.h"
#include "data/input/input_files.h"
#include "data/text/rating.h"
#include "data/text/reviews_internal.h"
#include "files/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FOLDERS_SHOWN 300

const char *pace__review_format_name(int format)
{
    static const char *const names[] = {"auto", "jsonl", "csv", "tsv", "tab", "lines", "folder"};

    return names[format];
}

/* What goes on while words are looked at. */
typedef struct search {
    pace__review_options options; /* the format becomes known on the way */
    const char *told_by;          /* the word that told it; NULL: the caller */
    char *head;                   /* (PACE__HEAD_BYTES) */
    size_t capacity;
    pace__review_files files;
    const pace_log *log;
} search;

int pace__review_boundary(int format)
{
    if (format == PACE_REVIEWS_CSV)
        return PACE__CSV;
    return format == PACE_REVIEWS_FOLDER ? PACE__WHOLE : PACE__LINES;
}

void pace__review_files_release(pace__review_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->paths[i]);
    free(files->paths);
    free(files->rating);
    *files = (pace__review_files){0};
}

static bool grow(search *self)
{
    size_t capacity = self->capacity > 0 ? 2 * self->capacity : 16;
    char **paths = realloc(self->files.paths, capacity * sizeof *paths);

    if (!paths)
        return false;
    self->files.paths = paths;
    double *rating = realloc(self->files.rating, capacity * sizeof *rating);

    if (!rating)
        return false;
    self->files.rating = rating;
    self->capacity = capacity;
    return true;
}

/* Takes over `path`, which may be NULL when there was no memory for it. */
static pace_status add_file(search *self, char *path, double rating)
{
    pace__review_files *files = &self->files;

    if (!path || (files->count == self->capacity && !grow(self))) {
        free(path);
        return pace_fail(self->log, PACE_FAILED, "out of memory for the names of %zu files", files->count);
    }
    files->paths[files->count] = path;
    files->rating[files->count++] = rating;
    return PACE_OK;
}

static pace_status settle(search *self, int format, const char *word)
{
    int known = self->options.format;

    if (known == PACE_REVIEWS_AUTO) {
        self->options.format = format;
        self->told_by = word;
    } else if (known != format && self->told_by) {
        return pace_fail(self->log, PACE_USAGE, "%s is of the format %s, %s of %s: give files of one format",
                         self->told_by, pace__review_format_name(known), word,
                         pace__review_format_name(format));
    }
    return PACE_OK;
}

/* --- folders --- */

static bool is_text_name(const char *name)
{
    size_t size = strlen(name);

    return size > 4 && strcmp(name + size - 4, ".txt") == 0;
}

/* The texts of a directory that are all of one label. */
static pace_status add_texts(search *self, const char *path, double rating)
{
    pace__dir_list list;
    pace_status status = pace__dir_read(path, self->log, &list);

    if (status)
        return status;
    for (size_t i = 0; i < list.count && !status; i++) {
        if (list.items[i].file && is_text_name(list.items[i].name))
            status = add_file(self, pace__format("%s/%s", path, list.items[i].name), rating);
    }
    pace__dir_release(&list);
    return status;
}

/* Those that are no labels are remembered for a message. */
static pace_status add_sub_directory(search *self, const char *path, const char *name, bool *found,
                                     char others[FOLDERS_SHOWN])
{
    size_t used = strlen(others);
    double rating;

    if (!pace__rating_parse(name, strlen(name), &rating)) {
        snprintf(others + used, FOLDERS_SHOWN - used, "%s%s", used > 0 ? ", " : "", name);
        return PACE_OK;
    }
    char *inside = pace__format("%s/%s", path, name);
    pace_status status =
        inside ? add_texts(self, inside, rating) : pace_fail(self->log, PACE_FAILED, "out of memory");

    *found = true;
    free(inside);
    return status;
}

static pace_status add_sub_directories(search *self, const char *path, bool *found,
                                       char others[FOLDERS_SHOWN])
{
    pace__dir_list list;
    pace_status status = pace__dir_read(path, self->log, &list);

    if (status)
        return status;
    for (size_t i = 0; i < list.count && !status; i++) {
        if (list.items[i].directory)
            status = add_sub_directory(self, path, list.items[i].name, found, others);
    }
    pace__dir_release(&list);
    return status;
}

typedef struct named {
    char *path;
    double rating;
} named;

static int by_path(const void *left, const void *right)
{
    return strcmp(((const named *)left)->path, ((const named *)right)->path);
}

/* By path, which is another order than that of the folders and then of their files. */
static pace_status order_files(search *self, size_t first)
{
    size_t count = self->files.count - first;
    named *order = malloc(count * sizeof *order + 1);

    if (!order)
        return pace_fail(self->log, PACE_FAILED, "out of memory for the names of %zu files", count);
    for (size_t i = 0; i < count; i++)
        order[i] = (named){self->files.paths[first + i], self->files.rating[first + i]};
    qsort(order, count, sizeof *order, by_path);
    for (size_t i = 0; i < count; i++) {
        self->files.paths[first + i] = order[i].path;
        self->files.rating[first + i] = order[i].rating;
    }
    free(order);
    return PACE_OK;
}

static pace_status add_folder(search *self, const char *path)
{
    size_t first = self->files.count;
    char others[FOLDERS_SHOWN] = "";
    bool found = false;
    pace_status status = settle(self, PACE_REVIEWS_FOLDER, path);

    if (!status)
        status = add_sub_directories(self, path, &found, others);
    if (status)
        return status;
    if (!found)
        return pace_fail(self->log, PACE_NO_INPUT,
                         "%s: has no sub-directory whose name is a label (pos and neg, or numbers)%s%s", path,
                         others[0] ? ", only " : "", others);
    if (self->files.count == first)
        return pace_fail(self->log, PACE_NO_INPUT, "%s: there is no file *.txt in its sub-directories", path);
    if (others[0])
        pace_say(self->log, PACE_INFO, "%s: no labels, so not read: %s", path, others);
    return order_files(self, first);
}

/* --- files --- */

/* What the first bytes of a file say; PACE_REVIEWS_AUTO for a file without any line. */
static pace_status format_of(const search *self, const char *path, size_t size, bool complete, int *format)
{
    static const int tables[] = {PACE_REVIEWS_TSV, PACE_REVIEWS_CSV};
    const pace__review_options *options = &self->options;
    size_t begin = pace__bom_size(self->head, size);
    char columns[PACE__COLUMNS_SHOWN] = "";

    begin += pace__blank_lines(self->head + begin, size - begin);
    *format = PACE_REVIEWS_AUTO;
    if (begin == size && complete)
        return PACE_OK;
    *format = PACE_REVIEWS_JSONL;
    if (self->head[begin + strspn(self->head + begin, " \t")] == '{')
        return PACE_OK;
    for (unsigned i = 0; i < sizeof tables / sizeof *tables; i++) {
        char separator = pace__separator_of(tables[i]);
        pace__table_header header;

        *format = tables[i];
        if (!pace__table_header_find(options, separator, self->head, size, complete, &header))
            continue;
        if (pace__table_header_fits(options, &header))
            return PACE_OK;
        if (header.columns > 1 && !columns[0])
            pace__header_show(separator, self->head, size, columns);
    }
    return pace_fail(self->log, PACE_USAGE,
                     "%s: cannot tell its format: the first line is no JSON object and has no columns \"%s\" "
                     "and \"%s\"%s%s: give --format, the names with --text-field and --label-field, or "
                     "FILE=LABEL",
                     path, options->text_field, options->label_field, columns[0] ? ", only " : "", columns);
}

/* *size bytes of head, and a NUL. */
static pace_status read_head(search *self, const char *path, size_t *size)
{
    pace_status status = pace__input_read_head(path, self->head, PACE__HEAD_BYTES, size, self->log);

    if (!status)
        self->head[*size] = '\0';
    return status;
}

/* Tells the format of a file, or whether it has what its format needs. */
static pace_status look_at(search *self, const char *path)
{
    pace__input_facts facts;
    pace_status status = pace__input_check(path, &facts, self->log);
    bool automatic = self->options.format == PACE_REVIEWS_AUTO || self->told_by;
    pace__table_header header;
    size_t size;
    int format;

    if (status)
        return status;
    if (automatic && !facts.regular)
        return pace_fail(self->log, PACE_USAGE,
                         "%s: can be read only once, so its format cannot be told before: give --format",
                         path);
    if (!facts.regular || (!automatic && !pace__has_header(self->options.format)))
        return PACE_OK;
    status = read_head(self, path, &size);
    if (status)
        return status;
    if (!automatic)
        return pace__table_header_read(&self->options, path, self->head, size, size < PACE__HEAD_BYTES,
                                       self->log, &header);
    status = format_of(self, path, size, size < PACE__HEAD_BYTES, &format);
    return status || format == PACE_REVIEWS_AUTO ? status : settle(self, format, path);
}

/* FILE=LABEL, with a label that is one. */
static pace_status add_labelled(search *self, const char *word, const char *equals)
{
    pace__input_facts facts;
    double rating;

    if (!pace__rating_parse(equals + 1, strlen(equals + 1), &rating))
        return pace_fail(self->log, PACE_USAGE,
                         "%s: there is no such file, nor is \"%s\" a label (pos, neg or a number) of a file "
                         "%.*s",
                         word, equals + 1, (int)(equals - word), word);
    pace_status status = settle(self, PACE_REVIEWS_LINES, word);

    if (!status)
        status = add_file(self, pace__format("%.*s", (int)(equals - word), word), rating);
    return status ? status : pace__input_check(self->files.paths[self->files.count - 1], &facts, self->log);
}

static pace_status add_word(search *self, const char *word)
{
    const char *equals = strrchr(word, '=');
    int format = self->options.format;
    struct stat info;
    bool is_there = stat(word, &info) == 0, automatic = format == PACE_REVIEWS_AUTO || self->told_by;

    if (equals && !is_there && (automatic || format == PACE_REVIEWS_LINES))
        return add_labelled(self, word, equals);
    if (is_there && S_ISDIR(info.st_mode) && (automatic || format == PACE_REVIEWS_FOLDER))
        return add_folder(self, word);
    pace_status status = look_at(self, word);

    if (!status && format == PACE_REVIEWS_FOLDER && !automatic)
        return pace_fail(self->log, PACE_USAGE, "%s: is no directory, as the format folder has it", word);
    if (!status && format == PACE_REVIEWS_LINES && !automatic && !self->options.labels_optional)
        return pace_fail(self->log, PACE_USAGE, "%s: its label is missing: give %s=LABEL", word, word);
    return status ? status : add_file(self, pace__format("%s", word), NAN);
}

pace_status pace__review_files_find(const pace_texts *words, pace__review_options *options,
                                    const pace_log *log, pace__review_files *files)
{
    search self = {.options = *options, .head = malloc(PACE__HEAD_BYTES + 1), .log = log};
    pace_status status =
        self.head ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory for the first bytes of files");

    for (size_t i = 0; !status && i < words->count; i++)
        status = add_word(&self, words->items[i]);
    if (!status && self.options.format == PACE_REVIEWS_AUTO)
        status = words->count == 0
                     ? pace_fail(log, PACE_USAGE, "no input is given")
                     : pace_fail(log, PACE_BAD_DATA, "%s: it is empty: no texts", words->items[0]);
    free(self.head);
    if (status) {
        pace__review_files_release(&self.files);
        return status;
    }
    options->format = self.options.format;
    *files = self.files;
    return PACE_OK;
}
