#include "data/input/input.h"

#include "data/input/cutter.h"
#include "data/input/input_files.h"
#include "files/file.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Read behind a range at first, for the end of its last line. */
#define EXTENSION_BYTES ((size_t)16 << 10)

/* A file that threads read ranges of. The input and each such thread are users; the last one closes it. */
typedef struct shared_file {
    int fd;
    uint32_t index;
    unsigned users; /* under the lock */
    uint64_t size;
    uint64_t end; /* of the unit */
} shared_file;

/* Owns the lines that start in it. */
typedef struct range {
    shared_file *file;
    uint64_t begin, end;
} range;

/* What a file that can be read only once began with. Never changes once it is in the list. */
typedef struct head {
    struct head *next;
    uint32_t file;
    size_t size;
    char bytes[];
} head;

struct pace__input {
    const char *const *paths;
    size_t count;
    pace__unit *units; /* NULL: the files, whole */
    size_t unit_count;
    int boundary;
    pace__watch watch;
    const pace_log *log;
    uint64_t bytes_total;
    atomic_uint_fast64_t bytes_taken, bytes_read;
    atomic_int status; /* of the first failure */
    _Atomic(head *) heads;

    pthread_mutex_t lock; /* for all that follows */
    size_t opened;        /* units opened so far; the last of them is the current one */
    shared_file *shared;  /* the current file if it is read in ranges */
    uint64_t range_begin; /* of its next range */
    pace__cutter cutter;  /* the current file if it is read in order */
    int cutter_fd;
    uint64_t cutter_size;  /* bytes on disk when it was opened, 0 if unknown */
    uint64_t cutter_lines; /* before its next chunk, if its size is unknown */
    uint64_t cutter_raw;   /* how many of them are counted in bytes_taken */
};

/*
 * The log for a failure that several threads may meet at once: the first of them tells it, the others are
 * silent, and all later calls return its status.
 */
static const pace_log *claim_failure(pace__input *input, pace_status status)
{
    int none = PACE_OK;

    return atomic_compare_exchange_strong(&input->status, &none, (int)status) ? input->log : NULL;
}

static pace_status has_changed(const char *path, uint64_t size, bool longer, const pace_log *log)
{
    return pace_fail(
        log, PACE_BAD_DATA,
        "%s: had %llu bytes when it was opened and became %s: do not change files while they are read", path,
        (unsigned long long)size, longer ? "longer" : "shorter");
}

static pace__unit unit_at(const pace__input *input, size_t i)
{
    return input->units ? input->units[i] : (pace__unit){(uint32_t)i, 0, UINT64_MAX};
}

static pace__unit current_unit(const pace__input *input)
{
    return unit_at(input, input->opened - 1);
}

/* The units' files are there; adds up their bytes. */
static pace_status check_units(pace__input *input)
{
    bool standard_input = false, all_regular = true;
    uint64_t total = 0;

    for (size_t i = 0; i < input->unit_count; i++) {
        pace__unit unit = unit_at(input, i);
        const char *path = input->paths[unit.file];
        pace__input_facts facts;
        pace_status status = pace__input_check(path, &facts, input->log);

        if (status)
            return status;
        if (standard_input && pace__is_standard_input(path))
            return pace_fail(input->log, PACE_USAGE,
                             "\"-\" is given twice: standard input can be read only once");
        standard_input |= pace__is_standard_input(path);
        all_regular &= facts.regular;
        uint64_t last = unit.last < facts.bytes ? unit.last : facts.bytes;

        total += last > unit.first ? last - unit.first : 0;
    }
    input->bytes_total = all_regular ? total : 0;
    return PACE_OK;
}

static pace__input *create(const char *const *paths, size_t count, int boundary, const pace__unit *units,
                           size_t unit_count, const pace_log *log)
{
    pace__input *new = calloc(1, sizeof *new);
    pace__unit *copy = units ? malloc(unit_count * sizeof *units + 1) : NULL;

    if (!new || (units && !copy)) {
        free(new);
        free(copy);
        pace_fail(log, PACE_FAILED, "out of memory for input");
        return NULL;
    }
    if (units && unit_count > 0)
        memcpy(copy, units, unit_count * sizeof *units);
    new->paths = paths;
    new->count = count;
    new->units = copy;
    new->unit_count = unit_count;
    new->boundary = boundary;
    new->log = log;
    new->cutter = (pace__cutter){.boundary = boundary, .watch = &new->watch, .log = log};
    pthread_mutex_init(&new->lock, NULL);
    return new;
}

/* NULL units: the files, whole. */
static pace_status open_input(const char *const *paths, size_t count, int boundary, const pace__unit *units,
                              size_t unit_count, const pace_log *log, pace__input **input)
{
    if (count > PACE__INPUT_FILES_MAX)
        return pace_fail(log, PACE_USAGE, "%zu input files: at most %u are possible", count,
                         PACE__INPUT_FILES_MAX);
    pace__input *new = create(paths, count, boundary, units, unit_count, log);

    if (!new)
        return PACE_FAILED;
    pace_status status = check_units(new);

    if (status)
        pace__input_close(new);
    else
        *input = new;
    return status;
}

pace_status pace__input_open(const char *const *paths, size_t count, int boundary, const pace_log *log,
                             pace__input **input)
{
    return open_input(paths, count, boundary, NULL, count, log, input);
}

pace_status pace__input_open_units(const char *const *paths, size_t count, int boundary,
                                   const pace__unit *units, size_t unit_count, const pace_log *log,
                                   pace__input **input)
{
    static const pace__unit none;

    for (size_t i = 0; i < unit_count; i++) {
        assert(units[i].file < count && units[i].first < units[i].last);
        assert(boundary == PACE__LINES || (units[i].first == 0 && units[i].last == UINT64_MAX));
    }
    return open_input(paths, count, boundary, unit_count > 0 ? units : &none, unit_count, log, input);
}

void pace__input_watch(pace__input *input, pace__watch watch)
{
    input->watch = watch;
}

static void drop_user(shared_file *file)
{
    if (--file->users > 0)
        return;
    close(file->fd);
    free(file);
}

static void close_cutter(pace__input *input)
{
    if (!input->cutter.stream)
        return;
    pace__cutter_close(&input->cutter);
    if (!pace__is_standard_input(input->cutter.path))
        close(input->cutter_fd);
}

void pace__input_close(pace__input *input)
{
    if (!input)
        return;
    if (input->shared)
        drop_user(input->shared);
    close_cutter(input);
    pace__cutter_release(&input->cutter);
    for (head *at = input->heads, *next; at; at = next) {
        next = at->next;
        free(at);
    }
    free(input->units);
    pthread_mutex_destroy(&input->lock);
    free(input);
}

static pace_status start_cutter(pace__input *input, const char *path, int fd, uint64_t size)
{
    input->cutter.path = path;
    input->cutter_fd = fd;
    input->cutter_size = size;
    input->cutter_raw = input->cutter_lines = 0;
    return pace__cutter_open(&input->cutter, fd);
}

static pace_status start_ranges(pace__input *input, int fd, uint64_t size)
{
    pace__unit unit = current_unit(input);
    shared_file *shared = malloc(sizeof *shared);

    if (!shared)
        return pace_fail(input->log, PACE_FAILED, "out of memory for input");
    *shared = (shared_file){
        .fd = fd, .index = unit.file, .users = 1, .size = size, .end = unit.last < size ? unit.last : size};
    input->shared = shared;
    input->range_begin = unit.first;
    return PACE_OK;
}

/* A file that was divided into units may have become another one before its turn came. */
static pace_status start_unit(pace__input *input, const char *path, int fd, uint64_t size)
{
    pace__unit unit = current_unit(input);
    bool whole = unit.first == 0 && unit.last == UINT64_MAX;
    bool in_ranges = input->boundary == PACE__LINES && size > 0 && pace__input_is_plain(fd);

    if (!whole && (!in_ranges || size <= unit.first || (unit.last != UINT64_MAX && size < unit.last)))
        return pace_fail(input->log, PACE_BAD_DATA,
                         "%s: has changed since it was divided: do not change files while they are read",
                         path);
    return in_ranges ? start_ranges(input, fd, size) : start_cutter(input, path, fd, size);
}

static pace_status open_next_unit(pace__input *input)
{
    const char *path = input->paths[unit_at(input, input->opened++).file];
    bool standard_input = pace__is_standard_input(path);
    int fd = STDIN_FILENO;
    uint64_t size = 0;
    struct stat info;
    pace_status status = standard_input ? PACE_OK : pace__open_stream(path, &input->watch, input->log, &fd);

    if (status)
        return status;
    if (!standard_input && fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
        size = (uint64_t)info.st_size;
    status = start_unit(input, path, fd, size);
    if (status && !standard_input)
        close(fd);
    return status;
}

/* Ranges end at multiples of PACE__CHUNK_BYTES, wherever the unit begins. */
static range take_range(pace__input *input)
{
    shared_file *file = input->shared;
    uint64_t begin = input->range_begin, end = (begin / PACE__CHUNK_BYTES + 1) * PACE__CHUNK_BYTES;
    range taken = {file, begin, end < file->end ? end : file->end};

    atomic_fetch_add(&input->bytes_taken, taken.end - taken.begin);
    input->range_begin = taken.end;
    /* The reader of the last range takes over the input's use of the file. */
    if (taken.end == file->end)
        input->shared = NULL;
    else
        file->users++;
    return taken;
}

/*
 * Reads on up to byte `to`, or the file's end, in a buffer that starts at the file's byte `from` and holds
 * *size bytes.
 */
static pace_status read_on(pace__input *input, pace__chunk *chunk, const shared_file *file, uint64_t from,
                           uint64_t to, size_t *size)
{
    const char *path = input->paths[file->index];
    size_t wanted = (size_t)((to < file->size ? to : file->size) - from);
    pace_status status = pace__chunk_reserve(chunk, wanted, NULL);

    if (status)
        return pace_fail(claim_failure(input, status), status, "%s: out of memory", path);
    status = pace__pread_all(file->fd, chunk->buffer + *size, wanted - *size, from + *size, path, NULL);
    if (status == PACE_BAD_DATA)
        return has_changed(path, file->size, false, claim_failure(input, status));
    if (status)
        return pace_fail(claim_failure(input, status), status, "%s: cannot read at byte %llu: %s", path,
                         (unsigned long long)(from + *size), strerror(errno));
    *size = wanted;
    return PACE_OK;
}

static pace_status check_not_longer(pace__input *input, const shared_file *file)
{
    struct stat info;

    if (fstat(file->fd, &info) != 0 || (uint64_t)info.st_size <= file->size)
        return PACE_OK;
    return has_changed(input->paths[file->index], file->size, true, claim_failure(input, PACE_BAD_DATA));
}

/*
 * Reads on in a buffer that starts at the file's byte `from` and holds the range, until the last line that
 * starts in the range has ended. *end is where, in the buffer.
 */
static pace_status finish_last_line(pace__input *input, pace__chunk *chunk, const range *part, uint64_t from,
                                    size_t size, size_t *end)
{
    const shared_file *file = part->file;
    size_t extension = EXTENSION_BYTES, looked_at = (size_t)(part->end - from) - 1;
    const char *before = memrchr(chunk->buffer, '\n', looked_at);
    size_t line = before ? (size_t)(before - chunk->buffer) + 1 : 0;

    for (;;) {
        const char *newline = memchr(chunk->buffer + looked_at, '\n', size - looked_at);

        *end = newline ? (size_t)(newline - chunk->buffer) + 1 : size;
        if (*end - line > PACE__RECORD_BYTES_MAX)
            return pace__too_long(input->paths[file->index], PACE__LINES, from + line,
                                  claim_failure(input, PACE_BAD_DATA));
        if (newline || from + size == file->size)
            return PACE_OK;
        looked_at = size;
        extension *= 4;
        pace_status status = read_on(input, chunk, file, from, from + size + extension, &size);

        if (status)
            return status;
    }
}

/* Leaves the chunk empty if no line starts in the range. */
static pace_status read_range(pace__input *input, pace__chunk *chunk, const range *part)
{
    const shared_file *file = part->file;
    /* The byte in front tells whether a line starts at the range's first byte. */
    uint64_t from = part->begin > 0 ? part->begin - 1 : 0;
    size_t size = 0, start = 0, end;
    pace_status status = read_on(input, chunk, file, from, part->end + EXTENSION_BYTES, &size);

    if (!status && part->end == file->size)
        status = check_not_longer(input, file);
    if (status)
        return status;
    if (part->begin > 0) {
        const char *newline = memchr(chunk->buffer, '\n', (size_t)(part->end - from) - 1);

        if (!newline)
            return PACE_OK;
        start = (size_t)(newline - chunk->buffer) + 1;
    }
    status = finish_last_line(input, chunk, part, from, size, &end);
    if (status)
        return status;
    chunk->data = chunk->buffer + start;
    chunk->size = end - start;
    chunk->file = file->index;
    chunk->offset = from + start;
    chunk->line = 0;
    atomic_fetch_add(&input->bytes_read, chunk->size);
    return PACE_OK;
}

/* Keeps the beginning of a file that cannot be read again. */
static pace_status keep_head(pace__input *input, const pace__chunk *chunk)
{
    size_t size = chunk->size < PACE__HEAD_BYTES ? chunk->size : PACE__HEAD_BYTES;
    head *new = malloc(sizeof *new + size);

    if (!new)
        return pace_fail(input->log, PACE_FAILED, "out of memory for input");
    *new = (head){.next = atomic_load(&input->heads), .file = chunk->file, .size = size};
    memcpy(new->bytes, chunk->data, size);
    atomic_store(&input->heads, new);
    return PACE_OK;
}

/* Under the lock. Leaves the chunk empty if the file has ended. */
static pace_status read_cutter(pace__input *input, pace__chunk *chunk)
{
    bool ended;
    pace_status status = pace__cutter_next(&input->cutter, chunk, &ended);

    if (status)
        return status;
    uint64_t raw = pace__cutter_raw_bytes(&input->cutter);

    atomic_fetch_add(&input->bytes_taken, raw - input->cutter_raw);
    atomic_fetch_add(&input->bytes_read, chunk->size);
    input->cutter_raw = raw;
    chunk->file = current_unit(input).file;
    chunk->line = input->cutter_size == 0 ? input->cutter_lines + 1 : 0;
    if (chunk->line > 0)
        input->cutter_lines += pace__count_lines(chunk->data, chunk->size);
    if (input->cutter_size == 0 && chunk->offset == 0 && chunk->size > 0)
        status = keep_head(input, chunk);
    if (!ended || status)
        return status;
    if (input->cutter_size > 0 && raw != input->cutter_size)
        return has_changed(input->cutter.path, input->cutter_size, raw > input->cutter_size, input->log);
    close_cutter(input);
    if (input->boundary == PACE__WHOLE && chunk->size == 0) {
        chunk->buffer[0] = '\n';
        chunk->size = 1;
    }
    return PACE_OK;
}

/* Under the lock: a range to read (part->file is set), a chunk, or neither at the end of the last file. */
static pace_status take(pace__input *input, pace__chunk *chunk, range *part)
{
    pace_status status = (pace_status)atomic_load(&input->status);

    while (!status && chunk->size == 0) {
        if (input->shared) {
            *part = take_range(input);
            return PACE_OK;
        }
        if (input->cutter.stream)
            status = read_cutter(input, chunk);
        else if (input->opened < input->unit_count)
            status = open_next_unit(input);
        else
            return PACE_OK;
    }
    if (status) {
        chunk->size = 0;
        claim_failure(input, status);
    }
    return status;
}

pace_status pace__input_next(pace__input *input, pace__chunk *chunk)
{
    pace_status status;

    chunk->size = 0;
    do {
        range part = {0};

        pthread_mutex_lock(&input->lock);
        status = take(input, chunk, &part);
        pthread_mutex_unlock(&input->lock);
        if (!part.file)
            return status;
        status = read_range(input, chunk, &part);
        pthread_mutex_lock(&input->lock);
        drop_user(part.file);
        pthread_mutex_unlock(&input->lock);
    } while (!status && chunk->size == 0);
    return status;
}

void pace__chunk_release(pace__chunk *chunk)
{
    free(chunk->buffer);
    *chunk = (pace__chunk){0};
}

uint64_t pace__input_bytes_total(const pace__input *input)
{
    return input->bytes_total;
}

uint64_t pace__input_bytes_taken(const pace__input *input)
{
    return atomic_load(&input->bytes_taken);
}

uint64_t pace__input_bytes_read(const pace__input *input)
{
    return atomic_load(&input->bytes_read);
}

const char *pace__input_path(const pace__input *input, uint32_t file)
{
    assert(file < input->count);
    return input->paths[file];
}

int pace__input_boundary(const pace__input *input)
{
    return input->boundary;
}

uint64_t pace__input_line_of(const pace__input *input, uint32_t file, uint64_t offset)
{
    return pace__line_at(pace__input_path(input, file), offset);
}

pace_status pace__input_head(const pace__input *input, uint32_t file, char *bytes, size_t *size)
{
    const char *path = pace__input_path(input, file);
    const head *kept = atomic_load(&input->heads);

    while (kept && kept->file != file)
        kept = kept->next;
    if (!kept)
        return pace__input_read_head(path, bytes, PACE__HEAD_BYTES, size, input->log);
    memcpy(bytes, kept->bytes, kept->size);
    *size = kept->size;
    return PACE_OK;
}
