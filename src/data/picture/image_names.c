#include "data/picture/image_names.h"

#include "files/file.h"
#include "files/open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES ((size_t)1 << 16)

/* Which line is wanted, and by whom. */
typedef struct wanted {
    uint32_t line;
    size_t index;
} wanted;

/* One pass over the file. */
typedef struct scan {
    const char *path;
    const pace_log *log;
    int fd;
    wanted *wanted; /* (count) by line */
    size_t count, done;
    uint64_t line;                         /* the one that is being read */
    char name[PACE__IMAGE_NAME_BYTES_MAX]; /* what was read of it so far */
    size_t size;
    char **names;
} scan;

static int by_line(const void *left, const void *right)
{
    const wanted *a = left, *b = right;

    return (a->line > b->line) - (a->line < b->line);
}

static bool is_wanted(const scan *self)
{
    return self->done < self->count && self->wanted[self->done].line == self->line;
}

/* A stretch of the line at hand. */
static pace_status add(scan *self, const char *from, size_t bytes)
{
    if (!is_wanted(self))
        return PACE_OK;
    if (bytes > sizeof self->name - self->size)
        return pace_fail(self->log, PACE_BAD_DATA, "%s: damaged: line %llu is longer than %d bytes",
                         self->path, (unsigned long long)self->line + 1, PACE__IMAGE_NAME_BYTES_MAX);
    memcpy(self->name + self->size, from, bytes);
    self->size += bytes;
    return PACE_OK;
}

/* Hands the line that has ended to all who want it. */
static pace_status end_line(scan *self)
{
    for (; is_wanted(self); self->done++) {
        char *copy = strndup(self->name, self->size);

        if (!copy)
            return pace_fail(self->log, PACE_FAILED, "out of memory");
        self->names[self->wanted[self->done].index] = copy;
    }
    self->size = 0;
    self->line++;
    return PACE_OK;
}

static pace_status take(scan *self, const char *from, size_t bytes)
{
    pace_status status = PACE_OK;

    while (bytes > 0 && self->done < self->count && !status) {
        const char *newline = memchr(from, '\n', bytes);
        size_t here = newline ? (size_t)(newline - from) : bytes;

        status = add(self, from, here);
        if (!status && newline)
            status = end_line(self);
        here += newline != NULL;
        from += here;
        bytes -= here;
    }
    return status;
}

static pace_status read_lines(scan *self, char *buffer)
{
    pace_status status = PACE_OK;
    ssize_t bytes;

    while (!status && self->done < self->count) {
        bytes = read(self->fd, buffer, BUFFER_BYTES);
        if (bytes < 0 && errno == EINTR)
            continue;
        if (bytes < 0)
            return pace_fail(self->log, PACE_IO, "%s: cannot read: %s", self->path, strerror(errno));
        if (bytes == 0)
            return pace_fail(self->log, PACE_BAD_DATA, "%s: damaged: it has no whole line %llu", self->path,
                             (unsigned long long)self->wanted[self->done].line + 1);
        status = take(self, buffer, (size_t)bytes);
    }
    return status;
}

static pace_status read_file(scan *self)
{
    char *buffer = malloc(BUFFER_BYTES);

    self->fd = -1;
    pace_status status = buffer ? pace__open(self->path, PACE__TO_READ, self->log, &self->fd)
                                : pace_fail(self->log, PACE_FAILED, "out of memory");

    if (!status)
        status = read_lines(self, buffer);
    if (self->fd >= 0)
        close(self->fd);
    free(buffer);
    return status;
}

pace_status pace__image_names_read(const char *directory, const uint32_t *sources, size_t count,
                                   const pace_log *log, char **names)
{
    char *path = pace__format("%s/" PACE__IMAGE_NAMES_FILE, directory);
    scan *self = calloc(1, sizeof *self);
    wanted *list = calloc(count + 1, sizeof *list);
    char **found = calloc(count + 1, sizeof *found);
    pace_status status = PACE_OK;

    if (path && self && list && found) {
        for (size_t i = 0; i < count; i++)
            list[i] = (wanted){sources[i], i};
        qsort(list, count, sizeof *list, by_line);
        self->path = path;
        self->log = log;
        self->wanted = list;
        self->count = count;
        self->names = found;
        status = read_file(self);
    } else {
        status = pace_fail(log, PACE_FAILED, "out of memory");
    }
    if (status && found)
        pace__image_names_free(found, count);
    if (!status && count > 0)
        memcpy(names, found, count * sizeof *found);
    free(found);
    free(list);
    free(self);
    free(path);
    return status;
}

void pace__image_names_free(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(names[i]);
        names[i] = NULL;
    }
}
