/* Which sources the words of a command stand for, and what their format is. */
#include "data/input/directory.h"
#include "data/input/input_files.h"
#include "data/picture/pictures_internal.h"
#include "files/file.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define HEAD_BYTES 64

const char *pace__pictures_format_name(int format)
{
    static const char *const names[] = {"auto", "folders", "idx", "cifar", "tfrecord", "csv"};

    return names[format];
}

/* --- what goes on while words are looked at --- */

typedef struct search {
    int format;          /* becomes known on the way */
    const char *told_by; /* the word that told it; NULL: the caller */
    bool test;           /* these are --test files */
    pace__picture_sources found;
    char **labels; /* IDX files of labels */
    size_t label_count, label_room;
    const pace_log *log;
} search;

static pace_status settle(search *self, int format, const char *word)
{
    if (self->format == PACE_IMAGES_AUTO) {
        self->format = format;
        self->told_by = word;
    } else if (self->format != format) {
        return self->told_by
                   ? pace_fail(self->log, PACE_USAGE,
                               "%s is of the format %s, %s of %s: give pictures of one format", self->told_by,
                               pace__pictures_format_name(self->format), word,
                               pace__pictures_format_name(format))
                   : pace_fail(self->log, PACE_BAD_DATA, "%s: not of the format %s, as --format has it", word,
                               pace__pictures_format_name(self->format));
    }
    return PACE_OK;
}

/* Takes over `path`, which may be NULL when there was no memory for it. */
static pace_status add_source(search *self, char *path)
{
    pace__picture_sources *found = &self->found;

    if (path && found->count == PACE__PICTURE_SOURCES_MAX) {
        free(path);
        return pace_fail(self->log, PACE_USAGE, "more than %u input files", PACE__PICTURE_SOURCES_MAX);
    }
    if (path && found->count == found->room) {
        size_t room = found->room > 0 ? 2 * found->room : 16;
        pace__picture_source *items = realloc(found->items, room * sizeof *items);

        if (items) {
            found->items = items;
            found->room = room;
        }
    }
    if (!path || found->count == found->room) {
        free(path);
        return pace_fail(self->log, PACE_FAILED, "out of memory for the names of files");
    }
    found->items[found->count++] = (pace__picture_source){.path = path, .test = self->test};
    found->tests += self->test;
    return PACE_OK;
}

static pace_status add_labels(search *self, char *path)
{
    if (path && self->label_count == self->label_room) {
        size_t room = self->label_room > 0 ? 2 * self->label_room : 8;
        char **labels = realloc(self->labels, room * sizeof *labels);

        if (labels) {
            self->labels = labels;
            self->label_room = room;
        }
    }
    if (!path || self->label_count == self->label_room) {
        free(path);
        return pace_fail(self->log, PACE_FAILED, "out of memory for the names of files");
    }
    self->labels[self->label_count++] = path;
    return PACE_OK;
}

/* --- files --- */

static bool is_table_name(const char *path)
{
    const char *name = pace__file_name(path), *end = strstr(name, ".csv");

    return end && (strcmp(end, ".csv") == 0 || strcmp(end, ".csv.gz") == 0 || strcmp(end, ".csv.zst") == 0);
}

/* The format of a file; AUTO: cannot be told. `labels`: of IDX, whether it holds those. */
static pace_status look_at(const search *self, const char *path, int *format, bool *labels)
{
    char head[HEAD_BYTES];
    pace__input_facts facts;
    uint64_t length;
    size_t size;
    pace_status status = pace__is_standard_input(path)
                             ? pace_fail(self->log, PACE_USAGE,
                                         "pictures cannot be read from standard input: name files or folders")
                             : pace__input_check(path, &facts, self->log);

    if (!status && !facts.regular)
        status =
            pace_fail(self->log, PACE_USAGE,
                      "%s: can be read only once: pictures are read in another order than they come", path);
    if (!status)
        status = pace__input_read_head(path, head, sizeof head, &size, self->log);
    if (status)
        return status;
    *labels = false;
    *format = PACE_IMAGES_AUTO;
    if (pace__is_idx(head, size)) {
        *format = PACE_IMAGES_IDX;
        *labels = head[3] == 1;
    } else if (size >= PACE__RECORD_HEADER && pace__record_length(head, &length)) {
        *format = PACE_IMAGES_TFRECORD;
    } else if (pace__is_cifar_name(pace__file_name(path)) || self->format == PACE_IMAGES_CIFAR) {
        *format = PACE_IMAGES_CIFAR; /* it has no head: its name tells, or the user */
    } else if (is_table_name(path) || self->format == PACE_IMAGES_CSV) {
        *format = PACE_IMAGES_CSV; /* the same */
    }
    return PACE_OK;
}

/* Takes over `path`. */
static pace_status take_file(search *self, char *path, const char *word, int format, bool labels)
{
    pace_status status = path ? settle(self, format, word) : PACE_OK;

    if (status) {
        free(path);
        return status;
    }
    return labels ? add_labels(self, path) : add_source(self, path);
}

static pace_status add_named_file(search *self, const char *word)
{
    bool labels = false;
    int format = PACE_IMAGES_AUTO;
    pace_status status = look_at(self, word, &format, &labels);

    if (status)
        return status;
    if (format == PACE_IMAGES_AUTO && pace__is_picture_name(word))
        return pace_fail(self->log, PACE_USAGE,
                         "%s: a single picture: give the folder that holds a sub-folder for each class",
                         word);
    if (format == PACE_IMAGES_AUTO && self->format == PACE_IMAGES_AUTO)
        return pace_fail(
            self->log, PACE_USAGE,
            "%s: cannot tell its format: it begins neither as IDX nor as TFRecord: give --format", word);
    if (format == PACE_IMAGES_AUTO)
        return pace_fail(self->log, PACE_BAD_DATA, "%s: not of the format %s", word,
                         pace__pictures_format_name(self->format));
    return take_file(self, strdup(word), word, format, labels);
}

/* --- folders --- */

/* Names that containers have: of other files not even the head is read. */
static bool may_be_container(const char *name)
{
    return strstr(name, "idx") || strstr(name, "tfrecord") || pace__is_cifar_name(name);
}

/* Containers in a folder; what is of no format, or of another one, is passed over. */
static pace_status add_containers(search *self, const char *word, const pace__dir_list *list, size_t *added)
{
    bool automatic = self->format == PACE_IMAGES_AUTO || self->told_by;
    pace_status status = PACE_OK;

    for (size_t i = 0; i < list->count && !status; i++) {
        const pace__dir_entry *entry = &list->items[i];
        bool labels = false;
        int format = PACE_IMAGES_AUTO;

        if (!entry->file || (automatic && !may_be_container(entry->name)))
            continue;
        char *path = pace__format("%s/%s", word, entry->name);

        status = path ? look_at(self, path, &format, &labels) : PACE_OK;
        if (self->format == PACE_IMAGES_CIFAR && format == PACE_IMAGES_CIFAR && !strstr(entry->name, ".bin"))
            format = PACE_IMAGES_AUTO; /* the names of classes, say */
        if (!status && path && (format == PACE_IMAGES_AUTO || (!automatic && format != self->format))) {
            free(path);
            continue;
        }
        if (status) {
            free(path);
            break;
        }
        status = take_file(self, path, word, format, labels);
        *added += 1;
    }
    return status;
}

static bool is_name_of_set(const char *name)
{
    static const char *const sets[] = {"train", "training", "test", "testing", "val", "valid", "validation"};

    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        if (strcmp(name, sets[i]) == 0)
            return true;
    }
    return false;
}

static pace_status add_classes(search *self, const char *word, const pace__dir_list *list)
{
    size_t folders = 0, sets = 0;

    for (size_t i = 0; i < list->count; i++) {
        folders += list->items[i].directory;
        sets += list->items[i].directory && is_name_of_set(list->items[i].name);
    }
    if (folders == 0)
        return pace_fail(self->log, PACE_NO_INPUT,
                         "%s: has neither sub-folders, one for each class, nor files that are IDX, CIFAR or "
                         "TFRecord",
                         word);
    if (sets == folders)
        return pace_fail(self->log, PACE_USAGE,
                         "%s: its sub-folders are sets, not classes: give %s/train, say, and --test %s/test",
                         word, word, word);
    pace_status status = settle(self, PACE_IMAGES_FOLDERS, word);

    return status ? status : add_source(self, strdup(word));
}

static pace_status add_folder(search *self, const char *word)
{
    size_t added = 0;
    pace__dir_list list;
    pace_status status = pace__dir_read(word, self->log, &list);

    if (status)
        return status;
    if (self->format != PACE_IMAGES_FOLDERS || self->told_by)
        status = add_containers(self, word, &list, &added);
    if (!status && added == 0) {
        if (self->format == PACE_IMAGES_AUTO || self->format == PACE_IMAGES_FOLDERS || self->told_by)
            status = add_classes(self, word, &list);
        else
            status = pace_fail(self->log, PACE_NO_INPUT, "%s: there is no file of the format %s in it", word,
                               pace__pictures_format_name(self->format));
    }
    pace__dir_release(&list);
    return status;
}

static pace_status add_word(search *self, const char *word)
{
    struct stat info;

    if (!pace__is_standard_input(word) && stat(word, &info) != 0)
        return pace_fail(self->log, PACE_NO_INPUT, "%s: cannot open: %s", word, strerror(errno));
    if (!pace__is_standard_input(word) && S_ISDIR(info.st_mode) && self->format == PACE_IMAGES_CSV &&
        !self->told_by)
        return pace_fail(self->log, PACE_USAGE,
                         "%s: is a directory: name the csv file that lists its pictures", word);
    if (!pace__is_standard_input(word) && S_ISDIR(info.st_mode))
        return add_folder(self, word);
    if (self->format == PACE_IMAGES_FOLDERS && !self->told_by)
        return pace_fail(self->log, PACE_USAGE, "%s: is no directory, as the format folders has it", word);
    return add_named_file(self, word);
}

/* --- pairs of IDX files --- */

/* Where "images" or "labels" stands in a name; its length if it does not. */
static size_t stem_length(const char *path, const char *word)
{
    const char *name = pace__file_name(path), *found = strstr(name, word);

    return found ? (size_t)(found - path) : strlen(path);
}

/* The labels beside these pictures: the same path up to "images" and "labels". */
static char *labels_of(const search *self, const char *path)
{
    size_t stem = stem_length(path, "images");

    for (size_t i = 0; i < self->label_count; i++) {
        if (self->labels[i] && stem_length(self->labels[i], "labels") == stem &&
            memcmp(self->labels[i], path, stem) == 0)
            return self->labels[i];
    }
    return NULL;
}

static pace_status pair(search *self, size_t first)
{
    pace__picture_sources *found = &self->found;
    bool alone = found->count - first == 1 && self->label_count == 1;

    if (found->count == first && self->label_count > 0)
        return pace_fail(self->log, PACE_USAGE, "%s: labels without pictures: name the file of pictures, too",
                         self->labels[0]);
    for (size_t i = first; i < found->count; i++) {
        pace__picture_source *source = &found->items[i];
        char *labels = alone ? self->labels[0] : labels_of(self, source->path);

        if (!labels)
            return pace_fail(
                self->log, PACE_USAGE,
                "%s: its labels are missing: name its file of labels, too, with \"labels\" where "
                "this one has \"images\"",
                source->path);
        source->labels = strdup(labels);
        if (!source->labels)
            return pace_fail(self->log, PACE_FAILED, "out of memory");
    }
    return PACE_OK;
}

/* --- test files of their own --- */

/* "test" as a word of a name: "letters-test-images", but not "latest-images". */
static bool has_test(const char *name)
{
    for (const char *at = name; (at = strstr(at, "test")); at++) {
        if (at == name || !isalpha((unsigned char)at[-1]))
            return true;
    }
    return false;
}

static bool is_test_name(int format, const char *path)
{
    const char *name = pace__file_name(path);

    if (format == PACE_IMAGES_IDX)
        return strstr(name, "t10k") || has_test(name);
    return format == PACE_IMAGES_CIFAR && strncmp(name, "test", 4) == 0;
}

/* Unless there is nothing else: then they were asked for. */
static void set_apart(search *self)
{
    pace__picture_sources *found = &self->found;
    size_t tests = 0;

    for (size_t i = 0; i < found->count; i++)
        tests += is_test_name(self->format, found->items[i].path);
    for (size_t i = 0; i < found->count && tests < found->count; i++) {
        found->items[i].test = found->items[i].own_test = is_test_name(self->format, found->items[i].path);
        found->tests += found->items[i].test;
    }
}

/* Tests come last, all else stays in its order. */
static pace_status order(search *self)
{
    pace__picture_sources *found = &self->found;
    pace__picture_source *items = malloc(found->count * sizeof *items + 1);
    size_t count = 0;

    if (!items)
        return pace_fail(self->log, PACE_FAILED, "out of memory");
    for (int test = 0; test < 2; test++) {
        for (size_t i = 0; i < found->count; i++) {
            if (found->items[i].test == (test == 1))
                items[count++] = found->items[i];
        }
    }
    free(found->items);
    found->items = items;
    found->room = found->count;
    return PACE_OK;
}

/* --- all of it --- */

static void forget_labels(search *self)
{
    for (size_t i = 0; i < self->label_count; i++)
        free(self->labels[i]);
    free(self->labels);
    self->labels = NULL;
    self->label_count = self->label_room = 0;
}

static pace_status add_words(search *self, const pace_texts *words, bool test)
{
    size_t first = self->found.count;
    pace_status status = PACE_OK;

    self->test = test;
    for (size_t i = 0; i < words->count && !status; i++)
        status = add_word(self, words->items[i]);
    if (!status && self->format == PACE_IMAGES_IDX)
        status = pair(self, first);
    forget_labels(self);
    return status;
}

pace_status pace__pictures_find(const pace_texts *inputs, const pace_texts *tests, int format,
                                const pace_log *log, pace__picture_sources *sources)
{
    search self = {.format = format, .log = log};
    pace_status status = inputs->count > 0
                             ? add_words(&self, inputs, false)
                             : pace_fail(log, PACE_USAGE, "no input: name the folders or files to read");

    if (!status)
        set_apart(&self);
    if (!status && tests)
        status = add_words(&self, tests, true);
    if (!status)
        status = order(&self);
    if (status) {
        pace__picture_sources_release(&self.found);
        return status;
    }
    self.found.format = self.format;
    *sources = self.found;
    return PACE_OK;
}

void pace__picture_sources_release(pace__picture_sources *sources)
{
    for (size_t i = 0; i < sources->count; i++) {
        free(sources->items[i].path);
        free(sources->items[i].labels);
    }
    free(sources->items);
    *sources = (pace__picture_sources){0};
}
