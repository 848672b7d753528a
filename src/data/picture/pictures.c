#include "data/picture/pictures.h"

#include "data/picture/image_names.h"
#include "data/picture/pictures_internal.h"
#include "files/file.h"
#include "files/open.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_BYTES 4096

/* --- the list --- */

/* *bytes is NULL for an empty one. */
static pace_status map_table(const char *directory, const char *name, uint64_t bytes, const void **at,
                             const pace_log *log)
{
    char *path = pace__format("%s/%s", directory, name);
    int fd = -1;
    pace_status status =
        path ? pace__open(path, PACE__TO_READ, log, &fd) : pace_fail(log, PACE_FAILED, "out of memory");
    struct stat info;
    void *mapped = NULL;
    bool whole = fd >= 0 && fstat(fd, &info) == 0 && (uint64_t)info.st_size == bytes;

    if (whole && bytes > 0)
        mapped = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (status)
        status = PACE_IO; /* it was there */
    else if (!whole)
        status = pace_fail(log, PACE_IO, "%s: was changed by someone else", path);
    else if (mapped == MAP_FAILED)
        status = pace_fail(log, PACE_IO, "%s: cannot map: %s", path, strerror(errno));
    else
        *at = mapped;
    if (fd >= 0)
        close(fd);
    free(path);
    return status;
}

static void unmap(const void *at, uint64_t bytes)
{
    if (at && bytes > 0)
        munmap((void *)(uintptr_t)at, bytes);
}

static pace_status open_files(pace__pictures *self, const pace_log *log)
{
    for (uint64_t i = 0; i < self->facts.files && i < PACE__PICTURE_FDS_MAX; i++) {
        const char *path = self->paths + self->files[i].opened_at;

        pace_status status = pace__open(path, PACE__TO_READ, log, &self->fds[i]);

        if (status)
            return status;
    }
    return PACE_OK;
}

static pace_status read_facts(const char *directory, pace__picture_facts *facts, const pace_log *log)
{
    const void *at = NULL;
    pace_status status = map_table(directory, "pictures.facts", sizeof *facts, &at, log);

    if (status)
        return status;
    *facts = *(const pace__picture_facts *)at;
    unmap(at, sizeof *facts);
    return PACE_OK;
}

pace_status pace__pictures_open(const char *directory, const pace_log *log, pace__pictures *pictures)
{
    pace__pictures self = {0};
    const void *entries = NULL, *files = NULL, *labels = NULL, *paths = NULL;
    pace_status status = read_facts(directory, &self.facts, log);
    const pace__picture_facts *facts = &self.facts;

    if (status)
        return status;
    for (unsigned i = 0; i < PACE__PICTURE_FDS_MAX; i++)
        self.fds[i] = -1;
    status = map_table(directory, "pictures.entries", facts->count * sizeof *self.entries, &entries, log);
    if (!status)
        status = map_table(directory, "pictures.files", facts->files * sizeof *self.files, &files, log);
    if (!status)
        status = map_table(directory, "pictures.labels", facts->labels * sizeof *self.labels, &labels, log);
    if (!status)
        status = map_table(directory, "pictures.paths", facts->path_bytes, &paths, log);
    self.entries = entries;
    self.files = files;
    self.labels = labels;
    self.paths = paths;
    if (!status)
        status = open_files(&self, log);
    if (status)
        pace__pictures_close(&self);
    else
        *pictures = self;
    return status;
}

void pace__pictures_close(pace__pictures *self)
{
    const pace__picture_facts *facts = &self->facts;

    for (uint64_t i = 0; i < facts->files && i < PACE__PICTURE_FDS_MAX; i++) {
        if (self->fds[i] >= 0)
            close(self->fds[i]);
    }
    unmap(self->entries, facts->count * sizeof *self->entries);
    unmap(self->files, facts->files * sizeof *self->files);
    unmap(self->labels, facts->labels * sizeof *self->labels);
    unmap(self->paths, facts->path_bytes);
    *self = (pace__pictures){0};
}

void pace__pictures_remove(const char *directory)
{
    DIR *open = opendir(directory);

    for (struct dirent *entry; open && (entry = readdir(open));) {
        if (strncmp(entry->d_name, "pictures.", 9) == 0 || strncmp(entry->d_name, "unpacked-", 9) == 0)
            unlinkat(dirfd(open), entry->d_name, 0);
    }
    if (open)
        closedir(open);
}

static int by_label(const void *left, const void *right)
{
    const pace__picture_label *a = left, *b = right;

    return a->label < b->label ? -1 : a->label > b->label;
}

uint32_t pace__pictures_class(const pace__pictures *self, uint64_t number)
{
    pace__picture_label wanted = {.label = self->entries[number].label};
    const pace__picture_label *found =
        self->labels ? bsearch(&wanted, self->labels, self->facts.labels, sizeof wanted, by_label) : NULL;

    return found ? (uint32_t)found->class : PACE__CLASS_NONE;
}

/* --- names --- */

void pace__pictures_name(const pace__pictures *self, uint64_t number, char *name, size_t room)
{
    const pace__picture_entry *entry = &self->entries[number];

    if (entry->file == PACE__NO_CONTAINER) {
        snprintf(name, room, "%s", self->paths + entry->at);
    } else {
        const pace__picture_file *file = &self->files[entry->file];

        snprintf(name, room, "%s#%llu", self->paths + file->path_at,
                 (unsigned long long)(number - file->first));
    }
    for (; *name; name++) {
        if ((unsigned char)*name < ' ' || *name == 0x7f)
            *name = '?';
    }
}

pace_status pace__pictures_write_names(const pace__pictures *self, const char *directory, const pace_log *log)
{
    char *path = pace__format("%s/" PACE__IMAGE_NAMES_FILE, directory), name[NAME_BYTES + 32];
    FILE *out = NULL;
    pace_status status = path ? pace__open_stdio(path, PACE__TO_CREATE, log, &out)
                              : pace_fail(log, PACE_FAILED, "out of memory");
    bool ok = !status;

    for (uint64_t i = 0; ok && i < self->facts.count; i++) {
        pace__pictures_name(self, i, name, sizeof name);
        ok = fprintf(out, "%s\n", name) > 0;
    }
    ok = ok && fflush(out) == 0 && fsync(fileno(out)) == 0; /* nothing is left for fclose to do */
    if (!status && !ok)
        status = pace_fail(log, PACE_IO, "%s: cannot write: %s", path, strerror(errno));
    if (out)
        fclose(out);
    free(path);
    return status;
}

/* --- one picture --- */

void pace__picture_scratch_release(pace__picture_scratch *scratch)
{
    free(scratch->bytes);
    free(scratch->pixels);
    *scratch = (pace__picture_scratch){0};
}

__attribute__((format(printf, 2, 3))) static const char *because(pace__picture_scratch *scratch,
                                                                 const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(scratch->reason, sizeof scratch->reason, format, arguments);
    va_end(arguments);
    return scratch->reason;
}

/* NULL, or why not all of it could be read. */
static const char *read_at(int fd, uint64_t at, size_t size, pace__picture_scratch *scratch)
{
    if (!pace__picture_reserve(&scratch->bytes, &scratch->room, size))
        return because(scratch, "out of memory for its %zu bytes", size);
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(fd, scratch->bytes + done, size - done, (off_t)(at + done));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return because(scratch, "cannot read: %s", strerror(errno));
        if (got == 0)
            return because(scratch, "the file has become shorter");
        done += (size_t)got;
    }
    return NULL;
}

const char *pace__picture_file_read(const char *path, pace__picture_scratch *scratch, size_t *size)
{
    char why[PACE__WHY_BYTES] = "cannot be looked at";
    int fd = pace__try_open(path, PACE__TO_READ, why);
    const char *reason = NULL;
    struct stat info;

    if (fd < 0 || fstat(fd, &info) != 0)
        reason = because(scratch, "%s", why);
    else if (info.st_size == 0)
        reason = because(scratch, "empty");
    else if ((uint64_t)info.st_size > PACE__PICTURE_BYTES_MAX)
        reason = because(scratch, "larger than the limit of %zu bytes", PACE__PICTURE_BYTES_MAX);
    else
        reason = read_at(fd, 0, *size = (size_t)info.st_size, scratch);
    if (fd >= 0)
        close(fd);
    return reason;
}

/* (channels, pixels) to (pixels, channels) */
static const char *interleave(const pace__picture_file *file, pace__picture_scratch *scratch)
{
    size_t pixels = (size_t)file->height * file->width, channels = file->channels;

    if (!pace__picture_reserve(&scratch->pixels, &scratch->pixel_room, pixels * channels))
        return because(scratch, "out of memory");
    for (size_t i = 0; i < pixels; i++) {
        for (size_t channel = 0; channel < channels; channel++)
            scratch->pixels[i * channels + channel] = scratch->bytes[channel * pixels + i];
    }
    return NULL;
}

static const char *take_example(const pace__picture_entry *entry, pace__picture_scratch *scratch,
                                pace__picture_data *data)
{
    pace__picture_example example;
    const char *reason =
        pace__picture_record_parse((pace__span){scratch->bytes, scratch->bytes + entry->size}, &example);

    if (reason)
        return because(scratch, "%s", reason);
    *data = (pace__picture_data){example.encoded.at, pace__span_size(example.encoded),
                                 example.raw,        example.height,
                                 example.width,      example.channels};
    return NULL;
}

static const char *take_contained(const pace__pictures *self, const pace__picture_entry *entry,
                                  pace__picture_scratch *scratch, pace__picture_data *data)
{
    const pace__picture_file *file = &self->files[entry->file];
    bool kept = entry->file < PACE__PICTURE_FDS_MAX, records = file->layout == PACE__PIXELS_EXAMPLE;
    char why[PACE__WHY_BYTES];
    int fd =
        kept ? self->fds[entry->file] : pace__try_open(self->paths + file->opened_at, PACE__TO_READ, why);

    if (fd < 0)
        return because(scratch, "%s", why);
    const char *reason =
        read_at(fd, entry->at, entry->size + (records ? (size_t)PACE__RECORD_FOOTER : 0), scratch);

    if (!kept)
        close(fd);
    if (!reason && records)
        reason = take_example(entry, scratch, data);
    else if (!reason && entry->label == PACE__LABEL_NONE)
        reason = because(scratch, "its label is out of range");
    else if (!reason) {
        bool planes = file->layout == PACE__PIXELS_PLANES;

        reason = planes ? interleave(file, scratch) : NULL;
        *data = (pace__picture_data){planes ? scratch->pixels : scratch->bytes,
                                     entry->size,
                                     true,
                                     file->height,
                                     file->width,
                                     file->channels};
    }
    data->read = entry->size;
    return reason;
}

const char *pace__pictures_fetch(const pace__pictures *self, uint64_t number, pace__picture_scratch *scratch,
                                 pace__picture_data *data)
{
    const pace__picture_entry *entry = &self->entries[number];

    *data = (pace__picture_data){0};
    if (entry->file != PACE__NO_CONTAINER)
        return take_contained(self, entry, scratch, data);
    size_t size = 0;
    const char *reason = pace__picture_file_read(self->paths + entry->at, scratch, &size);

    *data = (pace__picture_data){.bytes = scratch->bytes, .size = size, .read = size};
    return reason;
}
