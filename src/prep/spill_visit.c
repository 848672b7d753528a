/* Visits: buckets are loaded, ordered by key, and handed out. */
#include "base/memory.h"
#include "files/file.h"
#include "files/open.h"
#include "prep/spill_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STREAM_BYTES ((size_t)4 << 20)

/* Where a record of a bucket lies in memory. */
typedef struct place {
    uint64_t key;
    const char *at;
} place;

/* Where reading a bucket from its beginning stands. */
typedef struct bucket_reader {
    const pace__bucket *from;
    const pace__kept_block *block;
    uint64_t file_at;
} bucket_reader;

static bucket_reader read_bucket(const pace__bucket *each)
{
    return (bucket_reader){each, each->blocks, 0};
}

/* Files of other processes are open only while they are read: there may be thousands. */
static pace_status open_foreign(pace__spill *spill, pace__bucket *each)
{
    if (!spill->foreign || each->rows == 0)
        return PACE_OK;
    return pace__open(each->path, PACE__TO_CHANGE, spill->log, &each->fd);
}

static void close_foreign(const pace__spill *spill, pace__bucket *each)
{
    if (!spill->foreign || each->fd < 0)
        return;
    close(each->fd);
    each->fd = -1;
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

/* How far ahead of the record that is found memory is fetched, in bytes. */
#define FOUND_AHEAD 1024

/* Places that are found, and room for more. */
typedef struct finding {
    place *next, *end;
} finding;

/* Finds the records in a piece of a bucket; false if the bytes are not what was written. */
static bool find_places(finding *self, const char *bytes, size_t size)
{
    const char *end = bytes + size;

    while (bytes < end) {
        pace__spill_header head;

        if ((size_t)(end - bytes) < sizeof head || self->next == self->end)
            return false;
        __builtin_prefetch(bytes + FOUND_AHEAD);
        memcpy(&head, bytes, sizeof head);
        if ((size_t)(end - bytes) - sizeof head < head.size)
            return false;
        *self->next++ = (place){head.key, bytes};
        bytes += sizeof head + head.size;
    }
    return true;
}

/* One bucket of several spills, on its way to a visitor. */
typedef struct visit {
    pace__spill *const *spills;
    size_t count;
    uint32_t index;
    uint64_t first, last; /* records that are wanted */
    pace__spill_scratch *scratch;
    pace__spill_visitor *visitor;
    void *arg;
} visit;

static pace_status hand_out(const visit *self, const place *places, size_t rows)
{
    size_t last = self->last < rows ? (size_t)self->last : rows;
    pace_status status = PACE_OK;

    for (size_t i = (size_t)self->first; i < last && !status; i++) {
        pace__spill_header head;

        if (i + 8 < last) {
            const char *next = places[i + 8].at;

            __builtin_prefetch(next);
            __builtin_prefetch(next + 64);
            __builtin_prefetch(next + 128);
        }
        memcpy(&head, places[i].at, sizeof head);
        status = self->visitor(self->arg, places[i].at + sizeof head, head.size);
    }
    return status;
}

void pace__spill_scratch_release(pace__spill_scratch *scratch)
{
    pace__pages_free(scratch->memory, scratch->size);
    *scratch = (pace__spill_scratch){.owner = scratch->owner};
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

static pace_status changed(const pace__bucket *each, const pace_log *log)
{
    return pace_fail(log, PACE_IO, "%s: temporary file was changed by someone else", each->path);
}

/* A bucket's records: kept ones stay where they are, those of its file go to `bytes`. */
static pace_status find_records(pace__spill *spill, pace__bucket *each, char *bytes, finding *found)
{
    bool good = true;
    pace_status status = open_foreign(spill, each);

    if (!status && each->file_bytes > 0)
        status = pace__pread_all(each->fd, bytes, each->file_bytes, 0, each->path, spill->log);
    close_foreign(spill, each);
    if (status)
        return status;
    for (const pace__kept_block *block = each->blocks; block && good; block = block->next)
        good = find_places(found, block->bytes, block->size);
    return good && find_places(found, bytes, each->file_bytes) ? PACE_OK : changed(each, spill->log);
}

static pace_status find_all(const visit *self, char *bytes, finding *found)
{
    pace_status status = PACE_OK;

    for (size_t i = 0; i < self->count && !status; i++) {
        pace__bucket *each = &self->spills[i]->buckets[self->index];

        status = find_records(self->spills[i], each, bytes, found);
        bytes += each->file_bytes;
    }
    if (!status && found->next != found->end)
        status = changed(&self->spills[0]->buckets[self->index], self->spills[0]->log);
    return status;
}

static pace_status visit_loaded(const visit *self, size_t size, size_t rows)
{
    const pace__spill *spill = self->spills[0];
    unsigned shift = spill->shift + PACE__SPILL_BITS, bits = 1;

    while ((size_t)1 << bits < rows && bits < SORT_BITS_MAX)
        bits++;
    place *places = reserve(self->scratch, memory_of_visit(size, rows));

    if (!places)
        return pace_fail(spill->log, PACE_FAILED, "out of memory: %zu bytes for one bucket of the shuffle",
                         size);
    uint32_t *counts = (uint32_t *)(places + 2 * rows);
    finding found = {places + rows, places + 2 * rows};
    pace_status status = find_all(self, (char *)(counts + ((size_t)1 << bits)), &found);

    if (status)
        return status;
    sort_places(places, places + rows, counts, bits, rows, shift);
    return hand_out(self, places, rows);
}

/* Copies a bucket's records into a spill of its own, one level down. */
static pace_status redistribute(const pace__bucket *each, pace__spill *below)
{
    uint64_t rows = 0;
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
        while (!status && held - done >= sizeof(pace__spill_header)) {
            pace__spill_header head;
            void *record = NULL;

            memcpy(&head, buffer + done, sizeof head);
            if (head.size > PACE__SPILL_RECORD_MAX)
                status = changed(each, below->log);
            if (status || held - done < sizeof head + head.size)
                break;
            status = pace__spill_append(writer, head.key, head.size, 0, &record);
            if (!status)
                memcpy(record, buffer + done + sizeof head, head.size);
            done += sizeof head + head.size;
            rows++;
        }
        memmove(buffer, buffer + done, held - done);
        held -= done;
        if (!status && capacity - held < PACE__SPILL_BUFFER) { /* one record larger than the buffer */
            char *larger = realloc(buffer, capacity * 2);

            status = larger ? PACE_OK : pace_fail(below->log, PACE_FAILED, "out of memory");
            buffer = larger ? larger : buffer;
            capacity *= larger ? 2 : 1;
        }
    }
    if (!status && (held > 0 || rows != each->rows))
        status = changed(each, below->log);
    if (!status)
        status = pace__spill_flush(writer);
    pace__spill_writer_free(writer);
    free(buffer);
    return status;
}

/* What of the wanted records lies in the next `rows` ones, in their own numbers; they are then behind us. */
static bool take_range(visit *self, uint64_t rows, uint64_t *first, uint64_t *last)
{
    *first = self->first < rows ? self->first : rows;
    *last = self->last < rows ? self->last : rows;
    self->first -= *first;
    self->last -= self->last == UINT64_MAX ? 0 : *last;
    return *first < *last;
}

/* The bucket, cut by the next bits of its keys, in a spill of its own. */
static pace_status split(const visit *self, pace__spill **below)
{
    pace__spill *spill = self->spills[0];
    char *name = pace__format("%s-%02u-%" PRIu32, spill->name, self->index, self->scratch->owner);

    if (!name)
        return pace_fail(spill->log, PACE_FAILED, "out of memory");
    pace_status status = pace__spill_create_below(spill->directory, name, spill->memory,
                                                  spill->shift + PACE__SPILL_BITS, spill->log, below);

    free(name);
    if (status)
        return status;
    for (size_t i = 0; i < self->count && !status; i++) {
        pace__bucket *each = &self->spills[i]->buckets[self->index];

        status = open_foreign(self->spills[i], each);
        if (!status && each->rows > 0)
            status = redistribute(each, *below);
        close_foreign(self->spills[i], each);
    }
    if (status)
        pace__spill_free(*below);
    return status;
}

static pace_status visit_split(visit self)
{
    pace__spill *below;
    pace_status status = split(&self, &below);

    if (status)
        return status;
    for (uint32_t i = 0; i < PACE__SPILL_BUCKETS && !status; i++) {
        uint64_t first, last;

        if (take_range(&self, below->buckets[i].rows, &first, &last))
            status = pace__spill_visit_all(&below, 1, i, first, last, self.scratch, self.visitor, self.arg);
        pace__spill_drop(below, i);
    }
    atomic_fetch_add(&self.spills[0]->bytes, below->bytes); /* with what was split again */
    pace__spill_free(below);
    return status;
}

pace_status pace__spill_visit_all(pace__spill *const *spills, size_t count, uint32_t index, uint64_t first,
                                  uint64_t last, pace__spill_scratch *scratch, pace__spill_visitor *visitor,
                                  void *arg)
{
    visit self = {spills, count, index, first, last, scratch, visitor, arg};
    size_t bytes = 0, rows = 0;

    for (size_t i = 0; i < count; i++) {
        const pace__bucket *each = &spills[i]->buckets[index];

        assert(each->fd >= 0 || spills[i]->foreign);
        bytes += each->file_bytes;
        rows += each->rows;
    }
    if (first >= rows || first >= last)
        return PACE_OK;
    if (memory_of_visit(bytes, rows) > spills[0]->memory && rows > 1 &&
        spills[0]->shift + 2 * PACE__SPILL_BITS < 64 - SORT_BITS_MAX)
        return visit_split(self);
    return visit_loaded(&self, bytes, rows);
}

pace_status pace__spill_visit(pace__spill *spill, uint32_t index, pace__spill_scratch *scratch,
                              pace__spill_visitor *visitor, void *arg)
{
    return pace__spill_visit_all(&spill, 1, index, 0, UINT64_MAX, scratch, visitor, arg);
}
