#include "prep/spill.h"

#include "base/file.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Per writer and bucket: all of a writer's buffers stay in the level 2 cache. */
#define BUFFER_BYTES ((size_t)32 << 10)
#define STREAM_BYTES ((size_t)4 << 20)

typedef struct header {
    uint64_t key;
    uint32_t size;
} __attribute__((packed)) header;

/* A written-out buffer that stays in memory. */
typedef struct kept_block {
    struct kept_block *next;
    size_t size;
    char bytes[BUFFER_BYTES];
} kept_block;

/* A bucket's bytes are those of its kept blocks, newest first, and then those of its file. */
typedef struct bucket {
    char *path;
    int fd; /* -1: dropped or not opened */
    kept_block *_Atomic blocks;
    atomic_uint_fast64_t kept_bytes, file_bytes, rows, weight;
} bucket;

struct pace__spill {
    const pace_log *log;
    char *directory, *name;
    size_t memory;
    unsigned shift; /* how many top bits of the key are already used up */
    atomic_uint_fast64_t bytes;
    kept_block *blocks; /* (blocks_max) */
    size_t blocks_max;
    atomic_size_t blocks_used;
    bucket buckets[PACE__SPILL_BUCKETS];
};

struct pace__spill_writer {
    pace__spill *spill;
    size_t used[PACE__SPILL_BUCKETS];
    uint64_t rows[PACE__SPILL_BUCKETS], weight[PACE__SPILL_BUCKETS];
    char *large; /* a record that is larger than a buffer, on its way out */
    size_t large_size;
    uint32_t large_bucket;
    char *buffers;
};

/* The place of a record in a loaded bucket. */
typedef struct place {
    uint64_t key;
    uint64_t at;
} place;

static uint32_t bucket_of(const pace__spill *spill, uint64_t key)
{
    return (uint32_t)((key << spill->shift) >> (64 - PACE__SPILL_BITS));
}

static pace_status create_below(const char *directory, const char *name, size_t memory, unsigned shift,
                                const pace_log *log, pace__spill **spill)
{
    pace__spill *self = calloc(1, sizeof *self);

    if (!self)
        return pace_fail(log, PACE_FAILED, "out of memory");
    self->log = log;
    self->directory = strdup(directory);
    self->name = strdup(name);
    self->memory = memory;
    self->shift = shift;
    if (!self->directory || !self->name) {
        pace__spill_free(self);
        return pace_fail(log, PACE_FAILED, "out of memory");
    }
    for (uint32_t i = 0; i < PACE__SPILL_BUCKETS; i++)
        self->buckets[i].fd = -1;
    for (uint32_t i = 0; i < PACE__SPILL_BUCKETS; i++) {
        bucket *each = &self->buckets[i];

        each->path = pace__format("%s/%s-%02u", directory, name, i);
        if (!each->path)
            errno = ENOMEM;
        each->fd = each->path ? open(each->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
        if (each->fd < 0) {
            pace_status status =
                pace_fail(log, PACE_IO, "%s/%s-%02u: cannot create: %s", directory, name, i, strerror(errno));

            pace__spill_free(self);
            return status;
        }
    }
    *spill = self;
    return PACE_OK;
}

pace_status pace__spill_create(const char *directory, const char *name, size_t memory, const pace_log *log,
                               pace__spill **spill)
{
    return create_below(directory, name, memory, 0, log, spill);
}

void pace__spill_drop(pace__spill *spill, uint32_t index)
{
    bucket *each = &spill->buckets[index];

    if (each->fd < 0)
        return;
    close(each->fd);
    unlink(each->path);
    each->fd = -1;
}

void pace__spill_free(pace__spill *spill)
{
    if (!spill)
        return;
    for (uint32_t i = 0; i < PACE__SPILL_BUCKETS; i++) {
        pace__spill_drop(spill, i);
        free(spill->buckets[i].path);
    }
    pace__pages_free(spill->blocks, spill->blocks_max * sizeof *spill->blocks);
    free(spill->directory);
    free(spill->name);
    free(spill);
}

pace_status pace__spill_writer_create(pace__spill *spill, pace__spill_writer **writer)
{
    pace__spill_writer *self = calloc(1, sizeof *self);

    if (self)
        self->buffers = malloc(PACE__SPILL_BUCKETS * BUFFER_BYTES);
    if (!self || !self->buffers) {
        free(self);
        return pace_fail(spill->log, PACE_FAILED, "out of memory");
    }
    self->spill = spill;
    *writer = self;
    return PACE_OK;
}

void pace__spill_writer_free(pace__spill_writer *writer)
{
    if (!writer)
        return;
    free(writer->large);
    free(writer->buffers);
    free(writer);
}

pace_status pace__spill_keep(pace__spill *spill, size_t bytes)
{
    assert(!spill->blocks && spill->bytes == 0);
    spill->blocks_max = bytes / sizeof *spill->blocks;
    spill->blocks = pace__pages_alloc(spill->blocks_max * sizeof *spill->blocks);
    if (!spill->blocks)
        return pace_fail(spill->log, PACE_FAILED, "out of memory: %zu bytes for the shuffle", bytes);
    return PACE_OK;
}

/* Keeps the bytes in memory if there is room. */
static bool keep(pace__spill *spill, bucket *each, const void *bytes, size_t size)
{
    if (size > BUFFER_BYTES || atomic_load(&spill->blocks_used) >= spill->blocks_max)
        return false;
    size_t index = atomic_fetch_add(&spill->blocks_used, 1);

    if (index >= spill->blocks_max)
        return false;
    kept_block *block = &spill->blocks[index];

    memcpy(block->bytes, bytes, size);
    block->size = size;
    block->next = atomic_load(&each->blocks);
    while (!atomic_compare_exchange_weak(&each->blocks, &block->next, block))
        ;
    atomic_fetch_add(&each->kept_bytes, size);
    return true;
}

static pace_status write_out(pace__spill_writer *writer, uint32_t index, const void *bytes, size_t size)
{
    pace__spill *spill = writer->spill;
    bucket *each = &spill->buckets[index];

    atomic_fetch_add(&each->rows, writer->rows[index]);
    atomic_fetch_add(&each->weight, writer->weight[index]);
    writer->rows[index] = writer->weight[index] = 0;
    if (keep(spill, each, bytes, size))
        return PACE_OK;
    atomic_fetch_add(&spill->bytes, size);
    return pace__pwrite_all(each->fd, bytes, size, atomic_fetch_add(&each->file_bytes, size), each->path,
                            spill->log);
}

static uint64_t bucket_bytes(const bucket *each)
{
    return each->kept_bytes + each->file_bytes;
}

/* Where reading a bucket from its beginning stands. */
typedef struct bucket_reader {
    const bucket *from;
    const kept_block *block;
    uint64_t file_at;
} bucket_reader;

static bucket_reader read_bucket(const bucket *each)
{
    return (bucket_reader){each, each->blocks, 0};
}

/* Up to `room` bytes, at least one kept block (room must hold it); 0 at the end. Records may go on in the
 * next call's. */
static pace_status read_some(bucket_reader *self, char *to, size_t room, size_t *got, const pace_log *log)
{
    *got = 0;
    for (; self->block && self->block->size <= room - *got; self->block = self->block->next) {
        memcpy(to + *got, self->block->bytes, self->block->size);
        *got += self->block->size;
    }
    if (self->block)
        return PACE_OK;
    uint64_t left = self->from->file_bytes - self->file_at;
    size_t size = left < room - *got ? (size_t)left : room - *got;
    pace_status status =
        pace__pread_all(self->from->fd, to + *got, size, self->file_at, self->from->path, log);

    self->file_at += size;
    *got += size;
    return status;
}

static pace_status flush_bucket(pace__spill_writer *writer, uint32_t index)
{
    size_t size = writer->used[index];

    writer->used[index] = 0;
    return size ? write_out(writer, index, writer->buffers + index * BUFFER_BYTES, size) : PACE_OK;
}

static pace_status flush_large(pace__spill_writer *writer)
{
    pace_status status = PACE_OK;

    if (writer->large)
        status = write_out(writer, writer->large_bucket, writer->large, writer->large_size);
    free(writer->large);
    writer->large = NULL;
    return status;
}

pace_status pace__spill_flush(pace__spill_writer *writer)
{
    pace_status status = flush_large(writer);

    for (uint32_t i = 0; i < PACE__SPILL_BUCKETS && !status; i++)
        status = flush_bucket(writer, i);
    return status;
}

static pace_status append_large(pace__spill_writer *writer, uint32_t index, header head, void **record)
{
    pace_status status = flush_large(writer);

    if (status)
        return status;
    writer->large_bucket = index;
    writer->large_size = sizeof head + head.size;
    writer->large = malloc(writer->large_size);
    if (!writer->large)
        return pace_fail(writer->spill->log, PACE_FAILED, "out of memory for a row of %u bytes", head.size);
    memcpy(writer->large, &head, sizeof head);
    *record = writer->large + sizeof head;
    return PACE_OK;
}

pace_status pace__spill_append(pace__spill_writer *writer, uint64_t key, size_t size, uint64_t weight,
                               void **record)
{
    assert(size <= PACE__SPILL_RECORD_MAX);
    uint32_t index = bucket_of(writer->spill, key);
    header head = {key, (uint32_t)size};
    size_t whole = sizeof head + size;

    if (writer->used[index] + whole > BUFFER_BYTES) {
        pace_status status = flush_bucket(writer, index);

        if (status)
            return status;
    }
    writer->rows[index]++;
    writer->weight[index] += weight;
    if (whole > BUFFER_BYTES)
        return append_large(writer, index, head, record);
    char *at = writer->buffers + index * BUFFER_BYTES + writer->used[index];

    memcpy(at, &head, sizeof head);
    writer->used[index] += whole;
    *record = at + sizeof head;
    return PACE_OK;
}

uint64_t pace__spill_rows(const pace__spill *spill, uint32_t index)
{
    return spill->buckets[index].rows;
}

uint64_t pace__spill_weight(const pace__spill *spill, uint32_t index)
{
    return spill->buckets[index].weight;
}

uint64_t pace__spill_bytes(const pace__spill *spill)
{
    return spill->bytes;
}

/*
 * Orders places by key. Keys below the used-up bits are uniform, so one counting pass by as many bits as
 * there are places leaves next to nothing for the insertion sort.
 */
static void sort_places(place *places, place *scratch, uint32_t *counts, unsigned bits, size_t rows,
                        unsigned shift)
{
    memset(counts, 0, ((size_t)1 << bits) * sizeof *counts);
    for (size_t i = 0; i < rows; i++)
        counts[(scratch[i].key << shift) >> (64 - bits)]++;
    uint32_t sum = 0;

    for (size_t i = 0; i < (size_t)1 << bits; i++) {
        uint32_t count = counts[i];

        counts[i] = sum;
        sum += count;
    }
    for (size_t i = 0; i < rows; i++)
        places[counts[(scratch[i].key << shift) >> (64 - bits)]++] = scratch[i];
    for (size_t i = 1; i < rows; i++) {
        place moved = places[i];
        size_t to = i;

        for (; to > 0 && places[to - 1].key > moved.key; to--)
            places[to] = places[to - 1];
        places[to] = moved;
    }
}

/* Places twice, counts, and the records with their slack. */
static size_t memory_of_visit(size_t size, size_t rows)
{
    return size + PACE__SPILL_SLACK + rows * 2 * (sizeof(place) + sizeof(uint32_t)) + 64;
}

/* Finds the records in a loaded bucket; false if the bytes are not what was written. */
static bool find_places(const char *bytes, size_t size, place *places, size_t rows)
{
    size_t at = 0;

    for (size_t i = 0; i < rows; i++) {
        header head;

        if (size - at < sizeof head)
            return false;
        memcpy(&head, bytes + at, sizeof head);
        if (size - at - sizeof head < head.size)
            return false;
        places[i] = (place){head.key, at};
        at += sizeof head + head.size;
    }
    return at == size;
}

static pace_status hand_out(const char *bytes, const place *places, size_t rows, pace__spill_visitor *visitor,
                            void *arg)
{
    pace_status status = PACE_OK;

    for (size_t i = 0; i < rows && !status; i++) {
        header head;

        if (i + 8 < rows) {
            const char *next = bytes + places[i + 8].at;

            __builtin_prefetch(next);
            __builtin_prefetch(next + 64);
            __builtin_prefetch(next + 128);
        }
        memcpy(&head, bytes + places[i].at, sizeof head);
        status = visitor(arg, bytes + places[i].at + sizeof head, head.size);
    }
    return status;
}

void pace__spill_scratch_release(pace__spill_scratch *scratch)
{
    pace__pages_free(scratch->memory, scratch->size);
    *scratch = (pace__spill_scratch){0};
}

static void *reserve(pace__spill_scratch *scratch, size_t size)
{
    if (size > scratch->size) {
        pace__spill_scratch_release(scratch);
        size += size / 8; /* buckets are of nearly equal size */
        scratch->memory = pace__pages_alloc(size);
        scratch->size = scratch->memory ? size : 0;
    }
    return scratch->memory;
}

/* The most bits of a key that one counting pass sorts by. */
#define SORT_BITS_MAX 20

static pace_status visit_loaded(pace__spill *spill, bucket *each, pace__spill_scratch *scratch,
                                pace__spill_visitor *visitor, void *arg)
{
    size_t size = bucket_bytes(each), rows = each->rows, got;
    unsigned shift = spill->shift + PACE__SPILL_BITS, bits = 1;

    while ((size_t)1 << bits < rows && bits < SORT_BITS_MAX)
        bits++;
    place *places = reserve(scratch, memory_of_visit(size, rows));

    if (!places)
        return pace_fail(spill->log, PACE_FAILED, "out of memory: %zu bytes for one bucket of the shuffle",
                         size);
    uint32_t *counts = (uint32_t *)(places + 2 * rows);
    char *bytes = (char *)(counts + ((size_t)1 << bits));
    bucket_reader reader = read_bucket(each);
    pace_status status = read_some(&reader, bytes, size, &got, spill->log);

    if (status)
        return status;
    if (!find_places(bytes, size, places + rows, rows))
        return pace_fail(spill->log, PACE_IO, "%s: temporary file was changed by someone else", each->path);
    sort_places(places, places + rows, counts, bits, rows, shift);
    return hand_out(bytes, places, rows, visitor, arg);
}

/* Copies a bucket's records into a spill of its own, one level down. */
static pace_status redistribute(const bucket *each, pace__spill *below)
{
    size_t capacity = STREAM_BYTES, held = 0, got = 1;
    bucket_reader reader = read_bucket(each);
    pace__spill_writer *writer = NULL;
    char *buffer = malloc(capacity);
    pace_status status = buffer ? pace__spill_writer_create(below, &writer)
                                : pace_fail(below->log, PACE_FAILED, "out of memory");

    while (!status && got > 0) {
        size_t done = 0;

        status = read_some(&reader, buffer + held, capacity - held, &got, below->log);
        held += got;
        while (!status && held - done >= sizeof(header)) {
            header head;
            void *record = NULL;

            memcpy(&head, buffer + done, sizeof head);
            if (held - done < sizeof head + head.size)
                break;
            status = pace__spill_append(writer, head.key, head.size, 0, &record);
            if (!status)
                memcpy(record, buffer + done + sizeof head, head.size);
            done += sizeof head + head.size;
        }
        memmove(buffer, buffer + done, held - done);
        held -= done;
        if (!status && capacity - held < BUFFER_BYTES) { /* one record larger than the buffer */
            char *larger = realloc(buffer, capacity * 2);

            status = larger ? PACE_OK : pace_fail(below->log, PACE_FAILED, "out of memory");
            buffer = larger ? larger : buffer;
            capacity *= larger ? 2 : 1;
        }
    }
    if (!status)
        status = pace__spill_flush(writer);
    pace__spill_writer_free(writer);
    free(buffer);
    return status;
}

static pace_status visit_split(pace__spill *spill, uint32_t index, pace__spill_scratch *scratch,
                               pace__spill_visitor *visitor, void *arg)
{
    pace__spill *below;
    char *name = pace__format("%s-%02u", spill->name, index);

    if (!name)
        return pace_fail(spill->log, PACE_FAILED, "out of memory");
    pace_status status = create_below(spill->directory, name, spill->memory, spill->shift + PACE__SPILL_BITS,
                                      spill->log, &below);

    free(name);
    if (status)
        return status;
    status = redistribute(&spill->buckets[index], below);
    atomic_fetch_add(&spill->bytes, below->bytes);
    for (uint32_t i = 0; i < PACE__SPILL_BUCKETS && !status; i++) {
        status = pace__spill_visit(below, i, scratch, visitor, arg);
        pace__spill_drop(below, i);
    }
    pace__spill_free(below);
    return status;
}

pace_status pace__spill_visit(pace__spill *spill, uint32_t index, pace__spill_scratch *scratch,
                              pace__spill_visitor *visitor, void *arg)
{
    bucket *each = &spill->buckets[index];

    assert(each->fd >= 0);
    if (each->rows == 0)
        return PACE_OK;
    if (memory_of_visit(bucket_bytes(each), each->rows) > spill->memory && each->rows > 1 &&
        spill->shift + 2 * PACE__SPILL_BITS < 64 - SORT_BITS_MAX)
        return visit_split(spill, index, scratch, visitor, arg);
    return visit_loaded(spill, each, scratch, visitor, arg);
}
