#include "score/typed.h"

#include "data/input/cutter.h"
#include "data/input/decompress.h"
#include "data/input/input_files.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES ((size_t)64 << 10)

/* One read behind what is there. */
static pace_status fill(pace__typed *self, pace__chunk *chunk)
{
    pace_status status = pace__chunk_reserve(chunk, self->filled + READ_BYTES, self->log);
    ssize_t count;

    if (!status)
        status = pace__await_bytes(self->fd, &self->watch);
    if (status)
        return status;
    do
        count = read(self->fd, chunk->buffer + self->filled, READ_BYTES);
    while (count < 0 && errno == EINTR);
    if (count < 0)
        return pace_fail(self->log, PACE_IO, "%s: cannot read: %s", self->name, strerror(errno));
    bool first = chunk->offset == 0 && self->filled == 0;

    self->filled += (size_t)count;
    self->ended = count == 0;
    if (first && pace__compression_of(chunk->buffer, self->filled) != PACE__PLAIN)
        return pace_fail(self->log, PACE_BAD_DATA,
                         "%s: is compressed: send it through zcat or zstdcat, or name the file", self->name);
    return PACE_OK;
}

/* Bytes up to the last newline; at the end, all. */
static size_t whole_lines(const pace__typed *self, const pace__chunk *chunk, size_t searched)
{
    for (size_t at = self->filled; at > searched; at--) {
        if (chunk->buffer[at - 1] == '\n')
            return at;
    }
    return self->ended ? self->filled : 0;
}

pace_status pace__typed_next(pace__typed *typed, pace__chunk *chunk)
{
    size_t searched = 0;
    pace_status status = PACE_OK;

    chunk->line =
        chunk->offset + chunk->size > 0 ? chunk->line + pace__count_lines(chunk->data, chunk->size) : 1;
    typed->filled -= chunk->size;
    if (typed->filled > 0)
        memmove(chunk->buffer, chunk->buffer + chunk->size, typed->filled);
    chunk->offset += chunk->size;
    chunk->size = 0;
    while (chunk->size == 0 && !typed->ended && !status) {
        searched = typed->filled;
        status = searched > PACE__RECORD_BYTES_MAX
                     ? pace__too_long(typed->name, PACE__LINES, chunk->offset, typed->log)
                     : fill(typed, chunk);
        if (!status)
            chunk->size = whole_lines(typed, chunk, searched);
    }
    chunk->data = chunk->buffer;
    return status;
}
