/* Listing containers: their heads, and, of records, every one. */
#include "data/input/decompress.h"
#include "data/input/input_files.h"
#include "data/picture/pictures_internal.h"
#include "files/file.h"
#include "files/open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES  ((size_t)1 << 20)
#define NAMES_BYTES ((size_t)1 << 20)

typedef struct container {
    const char *path; /* as the user calls it */
    char *opened;     /* the file that is read: the same, or an unpacked one */
    int fd;
    uint64_t bytes;
} container;

/* --- opening, unpacked if need be --- */

static pace_status copy_stream(pace__listing *self, pace__stream *stream, int fd, const char *path)
{
    char *buffer = malloc(COPY_BYTES);
    size_t got = COPY_BYTES;
    pace_status status =
        buffer ? PACE_OK : pace_fail(self->log, PACE_FAILED, "out of memory for %zu bytes", COPY_BYTES);

    while (!status && got == COPY_BYTES) {
        status = pace__stream_read(stream, buffer, COPY_BYTES, &got);
        if (!status)
            status = pace__write_all(fd, buffer, got, path, self->log);
        if (!status)
            status = pace__listing_pulse(self);
    }
    free(buffer);
    return status;
}

static pace_status unpack(pace__listing *self, container *made, const char *name)
{
    pace__stream *stream = NULL;
    pace_status status = pace__stream_open(made->fd, made->path, NULL, self->log, &stream);
    int fd = -1;

    free(made->opened);
    made->opened = pace__format("%s/%s", self->plan->directory, name);
    if (!status && !made->opened)
        status = pace_fail(self->log, PACE_FAILED, "out of memory");
    if (!status)
        status = pace__open(made->opened, PACE__TO_CREATE, self->log, &fd);
    if (!status)
        status = copy_stream(self, stream, fd, made->opened);
    pace__stream_close(stream);
    if (fd >= 0) {
        close(made->fd);
        made->fd = fd;
    }
    return status;
}

static void close_container(container *made)
{
    if (made->fd >= 0)
        close(made->fd);
    free(made->opened);
}

/* `name` is that of the unpacked file, if there has to be one. */
static pace_status open_container(pace__listing *self, const char *path, const char *name, container *made)
{
    struct stat info;
    *made = (container){.path = path, .opened = strdup(path), .fd = -1};
    pace_status status = made->opened ? pace__open(path, PACE__TO_READ, self->log, &made->fd)
                                      : pace_fail(self->log, PACE_FAILED, "out of memory");

    if (status)
        return status;
    if (fstat(made->fd, &info) == 0 && info.st_size == 0)
        status = pace_fail(self->log, PACE_BAD_DATA, "%s: empty", path);
    else if (!pace__input_is_plain(made->fd))
        status = unpack(self, made, name);
    if (!status && fstat(made->fd, &info) != 0)
        status = pace_fail(self->log, PACE_IO, "%s: %s", path, strerror(errno));
    if (!status)
        made->bytes = (uint64_t)info.st_size;
    return status;
}

/* The paths of a container, and itself. */
static pace_status note_container(pace__listing *self, const container *made, pace__picture_file *file)
{
    pace_status status = pace__listing_add_path(self, made->path, NULL, &file->path_at);

    if (!status)
        status = pace__listing_add_path(self, made->opened, NULL, &file->opened_at);
    self->facts.bytes += made->bytes;
    return status ? status : pace__listing_add_file(self, file);
}

/* --- IDX --- */

static pace_status read_head(pace__listing *self, const container *made, bool labels, pace__idx_head *head)
{
    uint8_t bytes[PACE__IDX_HEAD_MAX];
    size_t size = made->bytes < sizeof bytes ? (size_t)made->bytes : sizeof bytes;
    pace_status status = pace__pread_all(made->fd, bytes, size, 0, made->path, self->log);

    if (status)
        return status;
    const char *reason = pace__idx_parse(bytes, size, head);

    if (reason)
        return pace_fail(self->log, PACE_BAD_DATA, "%s: damaged: %s", made->path, reason);
    if (labels != (head->dimensions == 1))
        return pace_fail(self->log, PACE_BAD_DATA, "%s: holds no %s", made->path,
                         labels ? "labels" : "pictures");
    if (head->total != made->bytes)
        return pace_fail(self->log, PACE_BAD_DATA,
                         "%s: damaged: %u items of %llu bytes are %llu bytes with its head, but it has %llu",
                         made->path, head->size[0], (unsigned long long)head->item,
                         (unsigned long long)head->total, (unsigned long long)made->bytes);
    return PACE_OK;
}

static pace_status add_idx_pictures(pace__listing *self, const container *labels, uint32_t file,
                                    const pace__idx_head *pictures, const pace__idx_head *head)
{
    uint8_t buffer[4096];
    pace_status status = PACE_OK;
    uint32_t count = head->size[0];

    for (uint32_t first = 0; first < count && !status; first += sizeof buffer) {
        size_t part = count - first < sizeof buffer ? count - first : sizeof buffer;

        status =
            pace__pread_all(labels->fd, buffer, part, head->bytes + (uint64_t)first, labels->path, self->log);
        for (size_t i = 0; i < part && !status; i++) {
            pace__picture_entry entry = {.at = pictures->bytes + pictures->item * (first + i),
                                         .label = buffer[i],
                                         .size = (uint32_t)pictures->item,
                                         .file = file};

            status = pace__listing_note_label(self, buffer[i], (pace__span){0});
            if (!status)
                status = pace__listing_add(self, &entry);
        }
    }
    return status;
}

static pace_status list_idx(pace__listing *self, const pace__picture_source *source, const container *made,
                            const char *name)
{
    pace__idx_head head, label_head;
    container labels = {.fd = -1};
    char label_name[64];
    pace_status status = read_head(self, made, false, &head);

    if (status)
        return status;
    snprintf(label_name, sizeof label_name, "%.40s-labels", name);
    status = open_container(self, source->labels, label_name, &labels);
    if (!status)
        status = read_head(self, &labels, true, &label_head);
    if (!status && label_head.size[0] != head.size[0])
        status = pace_fail(self->log, PACE_BAD_DATA, "%s has %u pictures, but %s has %u labels", made->path,
                           head.size[0], labels.path, label_head.size[0]);
    pace__picture_file file = {.first = self->facts.count, .layout = PACE__PIXELS_PLAIN};

    if (!status) {
        file.count = head.size[0];
        file.height = head.size[1];
        file.width = head.size[2];
        file.channels = head.dimensions == 4 ? head.size[3] : 1;
        pace__listing_note_shape(self, file.height, file.width,
                                 file.channels == 1 ? PACE__COLOURS_NONE : PACE__COLOURS_SOME);
        status = note_container(self, made, &file);
    }
    if (!status)
        status = add_idx_pictures(self, &labels, (uint32_t)self->facts.files - 1, &head, &label_head);
    close_container(&labels);
    return status;
}

/* --- CIFAR --- */

/* The lines of a file beside it, if there is one. They have to be as many as there are classes. */
static pace_status read_cifar_names(pace__listing *self, const char *path, const pace__cifar_shape *shape)
{
    const char *name = shape->classes == 100 ? "fine_label_names.txt" : "batches.meta.txt";
    char *beside = pace__format("%.*s%s", (int)(pace__file_name(path) - path), path, name), *text = NULL;
    size_t size = 0, lines = 0;
    pace_status status = beside ? PACE_OK : pace_fail(self->log, PACE_FAILED, "out of memory");

    if (!status && pace__exists(beside))
        status = pace__read_file(beside, NAMES_BYTES, &text, &size, self->log);
    while (text && size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r'))
        size--; /* the original ends with an empty line */
    if (text && size > 0)
        text[size++] = '\n';
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    if (!status && text && lines != shape->classes)
        status =
            pace_fail(self->log, PACE_BAD_DATA, "%s: %zu names of %u classes", beside, lines, shape->classes);
    if (!status && text && !self->known_names) {
        self->known_names = text;
        self->known_size = size;
        text = NULL;
    } else if (!status && text && (size != self->known_size || memcmp(text, self->known_names, size) != 0)) {
        status = pace_fail(self->log, PACE_BAD_DATA, "%s: other names of classes than beside %s", beside,
                           self->plan->sources->items[0].path);
    }
    free(text);
    free(beside);
    return status;
}

static pace_status add_cifar_pictures(pace__listing *self, const container *made, uint32_t file,
                                      const pace__cifar_shape *shape)
{
    uint64_t record = PACE__CIFAR_PIXELS + shape->labels;
    pace_status status = PACE_OK;

    for (uint64_t i = 0; i < shape->count && !status; i++) {
        pace__picture_entry entry = {
            .at = i * record + shape->labels, .size = PACE__CIFAR_PIXELS, .file = file};
        uint8_t label;

        status = pace__pread_all(made->fd, &label, 1, entry.at - 1, made->path, self->log);
        entry.label = label < shape->classes ? label : PACE__LABEL_NONE;
        if (!status && entry.label != PACE__LABEL_NONE)
            status = pace__listing_note_label(self, label, (pace__span){0});
        else
            pace__listing_note_fault(self, made->path, i, "its label is out of range");
        if (!status)
            status = pace__listing_add(self, &entry);
    }
    return status;
}

static pace_status list_cifar(pace__listing *self, const container *made)
{
    pace__cifar_shape shape;
    const char *reason = pace__cifar_parse(pace__file_name(made->path), made->bytes, &shape);

    if (reason)
        return pace_fail(self->log, PACE_BAD_DATA, "%s: %s", made->path, reason);
    pace__picture_file file = {.first = self->facts.count,
                               .count = shape.count,
                               .height = PACE__CIFAR_SIDE,
                               .width = PACE__CIFAR_SIDE,
                               .channels = 3,
                               .layout = PACE__PIXELS_PLANES};
    pace_status status = read_cifar_names(self, made->path, &shape);

    pace__listing_note_shape(self, PACE__CIFAR_SIDE, PACE__CIFAR_SIDE, PACE__COLOURS_SOME);
    if (!status)
        status = note_container(self, made, &file);
    return status ? status : add_cifar_pictures(self, made, (uint32_t)self->facts.files - 1, &shape);
}

/* --- TFRecord --- */

/* A record whose data are damaged is a bad picture; a length that is damaged leads nowhere. */
static pace_status read_record(pace__listing *self, const container *made, uint64_t at, uint64_t *length)
{
    uint8_t header[PACE__RECORD_HEADER];
    unsigned long long place = at;
    pace__picture_scratch *scratch = &self->scratch;

    if (made->bytes - at < PACE__RECORD_OVERHEAD)
        return pace_fail(self->log, PACE_BAD_DATA,
                         "%s: record at byte %llu: the file ends within it: copy it again", made->path,
                         place);
    pace_status status = pace__pread_all(made->fd, header, sizeof header, at, made->path, self->log);

    if (status)
        return status;
    if (!pace__record_length(header, length))
        return pace_fail(self->log, PACE_BAD_DATA,
                         "%s: record at byte %llu: the checksum of its length is wrong: the file is damaged "
                         "from there on, or is no TFRecord file",
                         made->path, place);
    if (*length > PACE__PICTURE_BYTES_MAX)
        return pace_fail(self->log, PACE_BAD_DATA,
                         "%s: record at byte %llu: longer than the limit of %zu bytes for a picture",
                         made->path, place, PACE__PICTURE_BYTES_MAX);
    if (*length > made->bytes - at - PACE__RECORD_OVERHEAD)
        return pace_fail(self->log, PACE_BAD_DATA,
                         "%s: record at byte %llu: the file ends within it: copy it again", made->path,
                         place);
    if (!pace__picture_reserve(&scratch->bytes, &scratch->room, *length + PACE__RECORD_FOOTER))
        return pace_fail(self->log, PACE_FAILED, "out of memory for a record of %llu bytes",
                         (unsigned long long)*length);
    return pace__pread_all(made->fd, scratch->bytes, *length + PACE__RECORD_FOOTER, at + sizeof header,
                           made->path, self->log);
}

static int colours_of(const pace__picture_example *example)
{
    if (!example->raw)
        return pace__picture_colours(example->encoded.at, pace__span_size(example->encoded));
    return example->channels == 1 ? PACE__COLOURS_NONE : PACE__COLOURS_SOME;
}

/* The record that is in the scratch. */
static pace_status add_record(pace__listing *self, const container *made, const pace__picture_file *file,
                              uint64_t at, uint64_t length)
{
    pace__picture_entry entry = {
        .at = at, .label = PACE__LABEL_NONE, .size = (uint32_t)length, .file = (uint32_t)self->facts.files};
    pace__span data = {self->scratch.bytes, self->scratch.bytes + length};
    pace__picture_example example;
    const char *fault = pace__picture_record_parse(data, &example);
    pace_status status = PACE_OK;

    if (fault) {
        pace__listing_note_fault(self, made->path, self->facts.count - file->first, fault);
    } else {
        entry.label = example.label;
        status = pace__listing_note_label(self, example.label, example.text);
        pace__listing_note_shape(self, 0, 0, colours_of(&example));
    }
    return status ? status : pace__listing_add(self, &entry);
}

static pace_status list_records(pace__listing *self, const container *made)
{
    pace__picture_file file = {.first = self->facts.count, .layout = PACE__PIXELS_EXAMPLE};
    pace_status status = PACE_OK;
    uint64_t length = 0;

    for (uint64_t at = 0; at < made->bytes && !status; at += PACE__RECORD_OVERHEAD + length) {
        status = read_record(self, made, at, &length);
        if (!status)
            status = add_record(self, made, &file, at + PACE__RECORD_HEADER, length);
    }
    file.count = self->facts.count - file.first;
    return status ? status : note_container(self, made, &file);
}

/* --- all of them --- */

static pace_status list_container(pace__listing *self, size_t index)
{
    const pace__picture_source *source = &self->plan->sources->items[index];
    container made;
    char name[32];

    snprintf(name, sizeof name, "unpacked-%zu", index);
    pace_status status = open_container(self, source->path, name, &made);

    if (!status && self->facts.format == PACE_IMAGES_IDX)
        status = list_idx(self, source, &made, name);
    else if (!status && self->facts.format == PACE_IMAGES_CIFAR)
        status = list_cifar(self, &made);
    else if (!status)
        status = list_records(self, &made);
    close_container(&made);
    return status ? status : pace__listing_pulse(self);
}

pace_status pace__list_containers(pace__listing *self)
{
    const pace__picture_sources *sources = self->plan->sources;
    pace_status status = PACE_OK;

    for (size_t i = 0; i < sources->count && !status; i++) {
        status = list_container(self, i);
        if (!sources->items[i].test)
            self->facts.inputs = self->facts.count;
    }
    return status;
}
