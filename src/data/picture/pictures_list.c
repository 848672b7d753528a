/* The list of all pictures: made by one process, in one pass over the sources. */
#include "data/input/directory.h"
#include "data/input/input_files.h"
#include "data/picture/pictures_internal.h"
#include "files/file.h"
#include "files/open.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEPTH_MAX   32  /* of sub-folders of a class */
#define PULSE_EVERY 256 /* pictures */

static const char *const table_names[] = {"pictures.facts", "pictures.entries", "pictures.files",
                                          "pictures.labels", "pictures.paths"};

enum { FACTS, ENTRIES, FILES, LABELS, PATHS, TABLES };

static pace_status no_memory(const pace__listing *self)
{
    return pace_fail(self->log, PACE_FAILED, "out of memory");
}

/* --- adding --- */

static pace_status put(pace__listing *self, FILE *file, const void *bytes, size_t size)
{
    return fwrite(bytes, 1, size, file) == size
               ? PACE_OK
               : pace_fail(self->log, PACE_IO, "%s: cannot write the list of pictures: %s",
                           self->plan->directory, strerror(errno));
}

pace_status pace__listing_pulse(pace__listing *self)
{
    return self->plan->pulse ? self->plan->pulse(self->plan->user, self->facts.count) : PACE_OK;
}

pace_status pace__listing_add_path(pace__listing *self, const char *first, const char *second, uint64_t *at)
{
    *at = self->facts.path_bytes;
    size_t size = strlen(first);
    pace_status status = put(self, self->paths, first, second ? size : size + 1);

    if (!status && second)
        status = put(self, self->paths, "/", 1);
    if (!status && second)
        status = put(self, self->paths, second, strlen(second) + 1);
    self->facts.path_bytes += size + 1 + (second ? strlen(second) + 1 : 0);
    return status;
}

pace_status pace__listing_add_file(pace__listing *self, const pace__picture_file *file)
{
    self->facts.files++;
    return put(self, self->files, file, sizeof *file);
}

pace_status pace__listing_add(pace__listing *self, const pace__picture_entry *entry)
{
    if (self->facts.count == PACE__PICTURES_MAX)
        return pace_fail(self->log, PACE_USAGE, "more than %llu pictures",
                         (unsigned long long)PACE__PICTURES_MAX);
    pace_status status = put(self, self->entries, entry, sizeof *entry);

    self->facts.count++;
    return status || self->facts.count % PULSE_EVERY != 0 ? status : pace__listing_pulse(self);
}

void pace__listing_note_shape(pace__listing *self, uint32_t height, uint32_t width, int colours)
{
    pace__picture_facts *facts = &self->facts;

    if (colours == PACE__COLOURS_UNKNOWN)
        return;
    facts->grey = (facts->grey || !self->seen_shape) && colours == PACE__COLOURS_NONE;
    if (!self->seen_shape) {
        facts->height = height;
        facts->width = width;
    } else if (height != facts->height || width != facts->width) {
        facts->height = facts->width = 0;
    }
    self->seen_shape = true;
}

/* --- labels --- */

/* The place of a label, or where it would be. */
static size_t find_label(const pace__listing *self, int64_t label)
{
    size_t low = 0, high = self->label_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (self->labels[middle].label < label)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static pace_status insert_label(pace__listing *self, size_t at, int64_t label)
{
    if (self->label_count == PACE__CLASSES_MAX)
        return pace_fail(self->log, PACE_BAD_DATA, "more than %d different labels", PACE__CLASSES_MAX);
    if (self->label_count == self->label_room) {
        size_t room = self->label_room > 0 ? 2 * self->label_room : 64;
        pace__found_label *labels = realloc(self->labels, room * sizeof *labels);

        if (!labels)
            return no_memory(self);
        self->labels = labels;
        self->label_room = room;
    }
    memmove(self->labels + at + 1, self->labels + at, (self->label_count - at) * sizeof *self->labels);
    self->labels[at] = (pace__found_label){.label = label};
    self->label_count++;
    return PACE_OK;
}

pace_status pace__listing_note_label(pace__listing *self, int64_t label, pace__span name)
{
    size_t at = find_label(self, label), size = pace__span_size(name);
    pace_status status = PACE_OK;

    if (at == self->label_count || self->labels[at].label != label)
        status = insert_label(self, at, label);
    if (status || size == 0)
        return status;
    pace__found_label *found = &self->labels[at];

    if (!found->name && !(found->name = strndup((const char *)name.at, size)))
        return no_memory(self);
    self->names_differ =
        self->names_differ || strlen(found->name) != size || memcmp(found->name, name.at, size) != 0;
    return PACE_OK;
}

void pace__listing_note_fault(pace__listing *self, const char *path, uint64_t at, const char *fault)
{
    if (self->fault)
        return;
    self->fault_path = path;
    self->fault_at = at;
    self->fault = fault;
}

/* --- folders --- */

bool pace__name_list_insert(pace__name_list *list, size_t place, const char *name)
{
    if (list->count == list->room) {
        size_t room = list->room > 0 ? 2 * list->room : 64;
        char **items = realloc(list->items, room * sizeof *items);

        if (!items)
            return false;
        list->items = items;
        list->room = room;
    }
    char *copy = strdup(name);

    if (!copy)
        return false;
    memmove(list->items + place + 1, list->items + place, (list->count - place) * sizeof *list->items);
    list->items[place] = copy;
    list->count++;
    return true;
}

void pace__name_list_release(pace__name_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (pace__name_list){0};
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* A data set that was made beside the classes is none. */
static bool is_class(const char *root, const pace__dir_entry *item)
{
    char *path = item->directory ? pace__format("%s/%s", root, item->name) : NULL;
    bool is_set = path && pace__is_store(path);

    free(path);
    return item->directory && !is_set;
}

/* The sub-folders of all sources, sorted, each once. */
static pace_status find_classes(pace__listing *self, pace__name_list *classes)
{
    const pace__picture_sources *sources = self->plan->sources;
    pace_status status = PACE_OK;
    size_t kept = 0;

    for (size_t i = 0; i < sources->count && !status; i++) {
        pace__dir_list list;

        status = pace__dir_read(sources->items[i].path, self->log, &list);
        for (size_t k = 0; !status && k < list.count; k++) {
            if (is_class(sources->items[i].path, &list.items[k]))
                status = pace__name_list_insert(classes, classes->count, list.items[k].name)
                             ? PACE_OK
                             : no_memory(self);
        }
        pace__dir_release(&list);
    }
    if (status || classes->count == 0)
        return status;
    qsort(classes->items, classes->count, sizeof *classes->items, by_text);
    for (size_t i = 1; i < classes->count; i++) {
        if (strcmp(classes->items[i], classes->items[kept]) == 0)
            free(classes->items[i]);
        else
            classes->items[++kept] = classes->items[i];
    }
    classes->count = kept + 1;
    return PACE_OK;
}

static void skip_file(pace__listing *self, const char *path, const char *name)
{
    self->facts.skipped++;
    if (!self->skipped)
        self->skipped = pace__format("%s/%s", path, name);
}

/* Nested folders belong to the class. Links to folders are not followed there: they may lead round. */
static pace_status walk(pace__listing *self, const char *path, int64_t label, unsigned depth)
{
    pace__dir_list list;
    pace_status status =
        depth > DEPTH_MAX ? pace_fail(self->log, PACE_USAGE, "%s: more than %d folders deep", path, DEPTH_MAX)
                          : pace__dir_read(path, self->log, &list);

    if (status)
        return status;
    self->facts.skipped += list.hidden;
    for (size_t i = 0; i < list.count && !status; i++) {
        const pace__dir_entry *item = &list.items[i];
        pace__picture_entry entry = {.label = label, .file = PACE__NO_CONTAINER};

        bool picture = pace__is_picture_name(item->name); /* what is no file, and called so, is a bad one */

        if (item->directory && item->link && !picture) {
            skip_file(self, path, item->name);
        } else if (item->directory && !picture) {
            char *inside = pace__format("%s/%s", path, item->name);

            status = inside ? walk(self, inside, label, depth + 1) : no_memory(self);
            free(inside);
        } else if (!picture) {
            skip_file(self, path, item->name);
        } else {
            status = pace__listing_add_path(self, path, item->name, &entry.at);
            if (!status)
                status = pace__listing_add(self, &entry);
        }
    }
    pace__dir_release(&list);
    return status;
}

static pace_status walk_source(pace__listing *self, const char *root, const pace__name_list *classes)
{
    pace__dir_list list;
    pace_status status = pace__dir_read(root, self->log, &list);

    if (status)
        return status;
    self->facts.skipped += list.hidden;
    for (size_t i = 0; i < list.count && !status; i++) {
        const char *name = list.items[i].name;

        if (!is_class(root, &list.items[i])) {
            skip_file(self, root, name);
            continue;
        }
        char **class = bsearch(&name, classes->items, classes->count, sizeof *classes->items, by_text);
        char *path = pace__format("%s/%s", root, name);

        /* A folder that has come since the classes were looked for is not ours. */
        status = !path ? no_memory(self) : class ? walk(self, path, class - classes->items, 0) : PACE_OK;
        free(path);
    }
    pace__dir_release(&list);
    return status;
}

pace_status pace__listing_keep_names(pace__listing *self, const pace__name_list *names, const char *what)
{
    FILE *out = open_memstream(&self->known_names, &self->known_size);
    pace_status status = out ? PACE_OK : no_memory(self);

    for (size_t i = 0; i < names->count && !status; i++) {
        const char *name = names->items[i], *fault = pace__class_name_fault(name, strlen(name));

        if (fault)
            status = pace_fail(self->log, PACE_BAD_DATA, "the %s \"%s\": its name %s: rename it", what, name,
                               fault);
        else
            fprintf(out, "%s\n", name);
    }
    if (out && fclose(out) != 0 && !status)
        status = no_memory(self);
    return status;
}

/* At pictures in files, until one is in colour: the first one in most sets. */
static pace_status look_for_colour(pace__listing *self)
{
    pace_status status = PACE_OK;
    char *path = NULL;
    size_t room = 0, size;

    fflush(self->paths);
    rewind(self->paths);
    for (uint64_t i = 0; i < self->facts.count && !status; i++) {
        if (getdelim(&path, &room, '\0', self->paths) < 0) {
            status = pace_fail(self->log, PACE_IO, "%s: cannot read the list of pictures: %s",
                               self->plan->directory, strerror(errno));
            break;
        }
        if (!pace__picture_file_read(path, &self->scratch, &size)) /* bad ones are told later */
            pace__listing_note_shape(self, 0, 0, pace__picture_colours(self->scratch.bytes, size));
        if (self->seen_shape && !self->facts.grey)
            break;
        if (i % PULSE_EVERY == 0)
            status = pace__listing_pulse(self);
    }
    free(path);
    fseek(self->paths, 0, SEEK_END);
    return status;
}

pace_status pace__list_folders(pace__listing *self)
{
    const pace__picture_sources *sources = self->plan->sources;
    pace__name_list classes = {0};
    pace_status status = find_classes(self, &classes);

    if (!status)
        status = pace__listing_keep_names(self, &classes, "folder");
    for (size_t i = 0; i < sources->count && !status; i++) {
        status = walk_source(self, sources->items[i].path, &classes);
        if (!sources->items[i].test)
            self->facts.inputs = self->facts.count;
    }
    pace__name_list_release(&classes);
    return status;
}

/* --- classes --- */

/* Every label that occurs has a name that a class may have, and no two the same one. */
static bool has_own_names(const pace__listing *self)
{
    size_t count = self->label_count;
    char **names = malloc(count * sizeof *names + 1);
    bool distinct = names && count > 0 && !self->names_differ;

    for (size_t i = 0; distinct && i < count; i++) {
        names[i] = self->labels[i].name;
        distinct = names[i] && !pace__class_name_fault(names[i], strlen(names[i]));
    }
    if (distinct)
        qsort(names, count, sizeof *names, by_text);
    for (size_t i = 1; distinct && i < count; i++)
        distinct = strcmp(names[i], names[i - 1]) != 0;
    free(names);
    return distinct;
}

/* One line for each class: of all that are known, or of all labels that occur. */
static pace_status make_names(pace__listing *self, char **text, size_t *size)
{
    bool named = has_own_names(self), any = false;
    FILE *out = open_memstream(text, size);

    if (!out)
        return no_memory(self);
    if (self->known_names)
        fwrite(self->known_names, 1, self->known_size, out);
    for (size_t i = 0; i < self->label_count && !self->known_names; i++) {
        any = any || self->labels[i].name;
        if (named)
            fprintf(out, "%s\n", self->labels[i].name);
        else
            fprintf(out, "%lld\n", (long long)self->labels[i].label);
    }
    if (any && !named)
        pace_say(self->log, PACE_INFO,
                 "the names of classes are not one good name for each label: the numbers are taken instead");
    return fclose(out) == 0 ? PACE_OK : no_memory(self);
}

static uint64_t class_named(const pace__class_names *names, const char *name, size_t size)
{
    for (uint32_t i = 0; i < names->count; i++) {
        if (strlen(names->items[i]) == size && memcmp(names->items[i], name, size) == 0)
            return i;
    }
    return PACE__CLASS_NONE;
}

/* Where names are known a label is a place among them; else the labels that occur have their order. */
static pace_status write_labels(pace__listing *self, FILE *out, const char *text, size_t size)
{
    const pace__class_names *only = self->plan->classes;
    pace_status status = PACE_OK;

    for (size_t i = 0; size > 0 && !status; i++) {
        const char *end = memchr(text, '\n', size);
        size_t length = end ? (size_t)(end - text) : size;
        pace__picture_label label = {self->known_names ? (int64_t)i : self->labels[i].label,
                                     only ? class_named(only, text, length) : i};

        if (label.class == PACE__CLASS_NONE)
            return pace_fail(self->log, PACE_BAD_DATA,
                             "%s: has the class \"%.*s\", which is none of those that --like has",
                             self->plan->sources->items[0].path, (int)length, text);
        status = put(self, out, &label, sizeof label);
        self->facts.labels++;
        text += length + (end != NULL);
        size -= length + (end != NULL);
    }
    return status;
}

/* A copy, so that the caller has one of its own whichever they are. */
static pace_status copy_names(pace__listing *self, const pace__class_names *from, pace__class_names *names)
{
    size_t size;
    char *text = pace__class_names_text(from, &size);
    pace_status status =
        text ? pace__class_names_parse(text, size, "--like", self->log, names) : no_memory(self);

    free(text);
    return status;
}

static pace_status settle_classes(pace__listing *self, FILE *labels, pace__class_names *names)
{
    const char *where = self->plan->sources->items[0].path;
    char *text = NULL;
    size_t size = 0;
    pace_status status = make_names(self, &text, &size);

    if (!status)
        status = write_labels(self, labels, text, size);
    if (!status && self->plan->classes)
        status = copy_names(self, self->plan->classes, names);
    else if (!status && self->facts.labels == 1)
        status = pace_fail(self->log, PACE_BAD_DATA,
                           "%s: all pictures are of one class, \"%.*s\": there is nothing to tell apart",
                           where, (int)(size - 1), text);
    else if (!status)
        status = pace__class_names_parse(text, size, where, self->log, names);
    free(text);
    return status;
}

/* --- all of it --- */

static FILE *open_table(const pace__listing *self, int table)
{
    char *path = pace__format("%s/%s", self->plan->directory, table_names[table]);
    FILE *file = NULL;

    if (path)
        pace__open_stdio(path, PACE__TO_CREATE, self->log, &file);
    else
        pace_fail(self->log, PACE_FAILED, "out of memory");
    free(path);
    return file;
}

static pace_status close_table(const pace__listing *self, FILE *file, pace_status status)
{
    if (file && fclose(file) != 0 && !status)
        return pace_fail(self->log, PACE_IO, "%s: cannot write the list of pictures: %s",
                         self->plan->directory, strerror(errno));
    return status;
}

static pace_status check_pictures(const pace__listing *self)
{
    const pace__picture_source *first = self->plan->sources->items;

    if (self->facts.skipped > 0)
        pace_say(
            self->log, PACE_INFO,
            "%llu files were passed over: they are hidden, or are not called .jpg, .jpeg or .png, or are "
            "links to folders or data sets%s%s",
            (unsigned long long)self->facts.skipped, self->skipped ? ", as is " : "",
            self->skipped ? self->skipped : "");
    if (self->facts.inputs == 0)
        return pace_fail(self->log, PACE_BAD_DATA, "%s: there are no pictures", first->path);
    if (self->plan->sources->tests > 0 && self->facts.count == self->facts.inputs)
        return pace_fail(self->log, PACE_BAD_DATA, "%s: there are no pictures",
                         first[self->plan->sources->count - 1].path);
    if (!self->known_names && self->label_count == 0)
        return pace_fail(self->log, PACE_BAD_DATA, "%s#%llu: %s; no other picture can be used either",
                         self->fault_path, (unsigned long long)self->fault_at, self->fault);
    return PACE_OK;
}

static pace_status make_list(pace__listing *self, FILE *facts, FILE *labels, pace__class_names *names)
{
    int format = self->plan->sources->format;
    pace_status status = format == PACE_IMAGES_FOLDERS ? pace__list_folders(self)
                         : format == PACE_IMAGES_CSV   ? pace__list_tables(self)
                                                       : pace__list_containers(self);
    bool in_files = format == PACE_IMAGES_FOLDERS || format == PACE_IMAGES_CSV;

    if (!status && in_files && self->plan->tell_grey)
        status = look_for_colour(self);
    if (!status)
        status = check_pictures(self);
    if (!status)
        status = settle_classes(self, labels, names);
    return status ? status : put(self, facts, &self->facts, sizeof self->facts);
}

pace_status pace__pictures_list(const pace__listing_plan *plan, const pace_log *log, pace__class_names *names)
{
    pace__listing self = {.plan = plan, .log = log, .facts.format = plan->sources->format};
    FILE *files[TABLES] = {NULL};
    pace_status status = PACE_OK;

    *names = (pace__class_names){0};
    for (int i = 0; i < TABLES && !status; i++)
        status = (files[i] = open_table(&self, i)) ? PACE_OK : PACE_IO;
    self.entries = files[ENTRIES];
    self.files = files[FILES];
    self.paths = files[PATHS];
    if (!status)
        status = make_list(&self, files[FACTS], files[LABELS], names);
    for (int i = 0; i < TABLES; i++)
        status = close_table(&self, files[i], status);
    for (size_t i = 0; i < self.label_count; i++)
        free(self.labels[i].name);
    free(self.labels);
    free(self.known_names);
    free((char *)(uintptr_t)self.skipped);
    pace__picture_scratch_release(&self.scratch);
    if (status)
        pace__class_names_release(names);
    return status;
}
