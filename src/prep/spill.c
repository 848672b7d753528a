#include "prep/spill_internal.h"

#include "base/memory.h"
#include "files/file.h"
#include "files/open.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_STRIDE (PACE__SPILL_BUFFER + PACE__SPILL_SLACK)

/* Where a writer's next record of a bucket goes: to a block that will be kept, or to a buffer that will be written. */
typedef struct target {
    pace__kept_block *block; /* NULL: the buffer */
    char *begin;             /* NULL: nowhere yet */
    size_t used;
    uint64_t rows, weight;
} target;

struct pace__spill_writer {
    pace__spill *spill;
    target targets[PACE__SPILL_BUCKETS];
    char *large; /* a record that is larger than a buffer, on its way out */
    size_t large_size;
    uint32_t large_bucket;
    char *buffers;
};

static uint32_t bucket_of(const pace__spill *spill, uint64_t key)
{
    return (uint32_t)((key << spill->shift) >> (64 - PACE__SPILL_BITS));
}

/* A spill without files: only their paths. */
static pace_status make_spill(const char *directory, const char *name, size_t memory, unsigned shift,
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
    bool complete = self->directory && self->name;

    for (uint32_t i = 0; i < PACE__SPILL_BUCKETS; i++) {
        self->buckets[i].fd = -1;
        self->buckets[i].path = pace__format("%s/%s-%02u", directory, name, i);
        complete = complete && self->buckets[i].path;
    }
    if (!complete) {
        pace__spill_free(self);
        return pace_fail(log, PACE_FAILED, "out of memory");
    }
    *spill = self;
    return PACE_OK;
}

pace_status pace__spill_create_below(const char *directory, const char *name, size_t memory, unsigned shift,
                                     const pace_log *log, pace__spill **spill)
{
    pace__spill *self;
    pace_status status = make_spill(directory, name, memory, shift, log, &self);

    if (status)
        return status;
    for (uint32_t i = 0; i < PACE__SPILL_BUCKETS && !status; i++) {
        pace__bucket *each = &self->buckets[i];

        status = pace__open(each->path, PACE__TO_CREATE, log, &each->fd);
    }
    if (status) {
        pace__spill_free(self);
        return status;
    }
    *spill = self;
    return PACE_OK;
}

pace_status pace__spill_create(const char *directory, const char *name, size_t memory, const pace_log *log,
                               pace__spill **spill)
{
    return pace__spill_create_below(directory, name, memory, 0, log, spill);
}

void pace__spill_drop(pace__spill *spill, uint32_t index)
{
    pace__bucket *each = &spill->buckets[index];

    if (each->fd < 0 && !spill->foreign)
        return;
    if (each->fd >= 0)
        close(each->fd);
    unlink(each->path);
    each->fd = -1;
}

void pace__spill_free(pace__spill *spill)
{
    if (!spill)
        return;
    for (uint32_t i = 0; i < PACE__SPILL_BUCKETS; i++) {
        if (!spill->foreign)
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
        self->buffers = malloc(PACE__SPILL_BUCKETS * BUFFER_STRIDE);
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

/* Closing is what makes a file whole for other hosts on shared file systems. */
pace_status pace__spill_publish(pace__spill *spill, pace__spill_index *index)
{
    assert(!spill->blocks);
    for (uint32_t i = 0; i < PACE__SPILL_BUCKETS; i++) {
        pace__bucket *each = &spill->buckets[i];

        index->rows[i] = each->rows;
        index->weight[i] = each->weight;
        index->bytes[i] = each->file_bytes;
        int failed = close(each->fd);

        each->fd = -1;
        if (failed)
            return pace_fail(spill->log, PACE_IO, "%s: cannot close: %s", each->path, strerror(errno));
        pace_status status = pace__open(each->path, PACE__TO_CHANGE, spill->log, &each->fd);

        if (status)
            return status;
    }
    return PACE_OK;
}

pace_status pace__spill_open(const char *directory, const char *name, const pace__spill_index *index,
                             size_t memory, const pace_log *log, pace__spill **spill)
{
    pace_status status = make_spill(directory, name, memory, 0, log, spill);

    if (status)
        return status;
    (*spill)->foreign = true;
    for (uint32_t i = 0; i < PACE__SPILL_BUCKETS; i++) {
        (*spill)->buckets[i].rows = index->rows[i];
        (*spill)->buckets[i].weight = index->weight[i];
        (*spill)->buckets[i].file_bytes = index->bytes[i];
    }
    return PACE_OK;
}

/* A block that nobody has taken yet, or NULL. */
static pace__kept_block *take_block(pace__spill *spill)
{
    if (atomic_load(&spill->blocks_used) >= spill->blocks_max)
        return NULL;
    size_t index = atomic_fetch_add(&spill->blocks_used, 1);

    return index < spill->blocks_max ? &spill->blocks[index] : NULL;
}

static void keep_block(pace__bucket *each, pace__kept_block *block, size_t size)
{
    block->size = size;
    block->next = atomic_load(&each->blocks);
    while (!atomic_compare_exchange_weak(&each->blocks, &block->next, block))
        ;
}

static pace_status write_out(pace__spill *spill, pace__bucket *each, const void *bytes, size_t size)
{
    atomic_fetch_add(&spill->bytes, size);
    return pace__pwrite_all(each->fd, bytes, size, atomic_fetch_add(&each->file_bytes, size), each->path,
                            spill->log);
}

/* What is in the target becomes part of the bucket; the target is nowhere then. */
static pace_status flush_bucket(pace__spill_writer *writer, uint32_t index)
{
    pace__bucket *each = &writer->spill->buckets[index];
    target from = writer->targets[index];

    writer->targets[index] = (target){0};
    atomic_fetch_add(&each->rows, from.rows);
    atomic_fetch_add(&each->weight, from.weight);
    if (from.block)
        keep_block(each, from.block, from.used);
    else if (from.used > 0)
        return write_out(writer->spill, each, from.begin, from.used);
    return PACE_OK;
}

static pace_status renew_target(pace__spill_writer *writer, uint32_t index)
{
    pace_status status = flush_bucket(writer, index);
    target *to = &writer->targets[index];

    to->block = take_block(writer->spill);
    to->begin = to->block ? to->block->bytes : writer->buffers + index * BUFFER_STRIDE;
    return status;
}

static pace_status flush_large(pace__spill_writer *writer)
{
    pace_status status = PACE_OK;

    if (writer->large)
        status = write_out(writer->spill, &writer->spill->buckets[writer->large_bucket], writer->large,
                           writer->large_size);
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

static pace_status append_large(pace__spill_writer *writer, uint32_t index, pace__spill_header head,
                                void **record)
{
    pace_status status = flush_large(writer);

    if (status)
        return status;
    writer->large_bucket = index;
    writer->large_size = sizeof head + head.size;
    writer->large = malloc(writer->large_size + PACE__SPILL_SLACK);
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
    pace__spill_header head = {key, (uint32_t)size};
    size_t whole = sizeof head + size;
    target *to = &writer->targets[index];

    if (!to->begin || (to->used + whole > PACE__SPILL_BUFFER && whole <= PACE__SPILL_BUFFER)) {
        pace_status status = renew_target(writer, index);

        if (status)
            return status;
    }
    to->rows++;
    to->weight += weight;
    if (whole > PACE__SPILL_BUFFER)
        return append_large(writer, index, head, record);
    char *at = to->begin + to->used;

    memcpy(at, &head, sizeof head);
    to->used += whole;
    *record = at + sizeof head;
    /* Until the bucket's next record, which is often as large, there is time to fetch its place. */
    __builtin_prefetch(at + whole + whole / 2, 1);
    __builtin_prefetch(at + 2 * whole, 1);
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
