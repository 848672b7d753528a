#include "data/input/cutter.h"

#include "data/input/csv.h"
#include "data/input/decompress.h"
#include "data/input/input_files.h"
#include "data/input/tfrecord.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pace_status pace__cutter_open(pace__cutter *cutter, int fd)
{
    cutter->at = 0;
    cutter->carry_size = 0;
    return pace__stream_open(fd, cutter->path, cutter->watch, cutter->log, &cutter->stream);
}

void pace__cutter_close(pace__cutter *cutter)
{
    pace__stream_close(cutter->stream);
    cutter->stream = NULL;
}

void pace__cutter_release(pace__cutter *cutter)
{
    pace__cutter_close(cutter);
    free(cutter->carry);
}

uint64_t pace__cutter_raw_bytes(const pace__cutter *cutter)
{
    return pace__stream_raw_bytes(cutter->stream);
}

pace_status pace__chunk_reserve(pace__chunk *chunk, size_t size, const pace_log *log)
{
    size_t wanted = size + PACE__CHUNK_SLACK;

    if (chunk->capacity >= wanted)
        return PACE_OK;
    char *buffer = realloc(chunk->buffer, wanted);

    if (!buffer)
        return pace_fail(log, PACE_FAILED, "out of memory for %zu bytes of input", wanted);
    chunk->buffer = buffer;
    chunk->capacity = wanted;
    return PACE_OK;
}

pace_status pace__too_long(const char *path, int boundary, uint64_t offset, const pace_log *log)
{
    if (boundary == PACE__WHOLE)
        return pace_fail(log, PACE_BAD_DATA,
                         "%s: is longer than the limit of %zu bytes for one text: is this another format?",
                         path, PACE__RECORD_BYTES_MAX);
    char place[48];
    uint64_t line = log && boundary == PACE__LINES ? pace__line_at(path, offset) : 0;

    if (line > 0)
        snprintf(place, sizeof place, "line %llu", (unsigned long long)line);
    else
        snprintf(place, sizeof place, "the %s at byte %llu", boundary == PACE__LINES ? "line" : "record",
                 (unsigned long long)offset);
    return pace_fail(log, PACE_BAD_DATA,
                     "%s: %s is longer than the limit of %zu bytes and cannot be skipped: is this another "
                     "format?",
                     path, place, PACE__RECORD_BYTES_MAX);
}

/*
 * How much of buffer[0 .. size) is whole lines; 0: none. Only PACE__RECORD_BYTES_MAX bytes are looked at,
 * so that a line which does not end within them counts as none.
 */
static size_t whole_lines(const char *buffer, size_t size)
{
    size_t limit = size < PACE__RECORD_BYTES_MAX ? size : PACE__RECORD_BYTES_MAX;
    const char *newline = memrchr(buffer, '\n', limit);

    return newline ? (size_t)(newline - buffer) + 1 : 0;
}

/*
 * How much of a buffer that is not the last is whole. Records of csv are found from the beginning, as quotes
 * have to be counted; `scan` knows how far that has come.
 */
static size_t whole_part(int boundary, pace__csv_scan *scan, const char *buffer, size_t size)
{
    if (boundary == PACE__LINES)
        return whole_lines(buffer, size);
    if (boundary == PACE__WHOLE)
        return 0;
    pace__csv_scan_on(scan, buffer, size);
    return scan->whole <= PACE__RECORD_BYTES_MAX ? scan->whole : 0;
}

/*
 * *size: of the record whose header is at `offset` of the file. A wrong length would lead anywhere, so its
 * checksum is checked.
 */
static pace_status record_size(const pace__cutter *cutter, const char *header, uint64_t offset, size_t *size)
{
    uint64_t length;

    if (!pace__record_length(header, &length))
        return pace_fail(
            cutter->log, PACE_BAD_DATA,
            "%s: record at byte %llu: the checksum of its length is wrong: the file is damaged from "
            "there on, or is no TFRecord file",
            cutter->path, (unsigned long long)offset);
    if (length > PACE__RECORD_BYTES_MAX - PACE__RECORD_OVERHEAD)
        return pace__too_long(cutter->path, cutter->boundary, offset, cutter->log);
    *size = PACE__RECORD_OVERHEAD + (size_t)length;
    return PACE_OK;
}

/*
 * How much of buffer[0 .. size) is whole records, and where the one behind them, if its header is there,
 * would end.
 */
static pace_status whole_records(const pace__cutter *cutter, const char *buffer, size_t size, size_t *whole,
                                 size_t *next_end)
{
    *whole = *next_end = 0;
    while (*next_end <= size) {
        size_t record = 0;

        *whole = *next_end;
        if (size - *whole < PACE__RECORD_HEADER)
            return PACE_OK;
        pace_status status = record_size(cutter, buffer + *whole, cutter->at + *whole, &record);

        if (status)
            return status;
        *next_end += record;
    }
    return PACE_OK;
}

/* Where the search for records begins: nothing of a buffer is known yet. */
static pace__csv_scan scan_of(const pace__cutter *cutter, const char *buffer, size_t size)
{
    size_t begin = cutter->at == 0 ? pace__bom_size(buffer, size) : 0;

    return (pace__csv_scan){.begin = begin, .at = begin};
}

/* A record of csv does not end within the limit. */
static pace_status record_without_end(const pace__cutter *cutter, const pace__csv_scan *scan)
{
    uint64_t offset = cutter->at + (scan->quoted ? scan->quote : 0);

    return pace_fail(cutter->log, PACE_BAD_DATA,
                     "%s: line %llu (byte %llu): %s within the limit of %zu bytes for a record", cutter->path,
                     (unsigned long long)pace__line_at(cutter->path, offset), (unsigned long long)offset,
                     scan->quoted ? "the quote that is opened there is not closed" : "no record ends",
                     PACE__RECORD_BYTES_MAX);
}

/*
 * How large a buffer to try after one of `wanted` bytes that no record ends in: at most one byte above the
 * limit, which tells a record that just fits at the end of the file from one that goes on.
 */
static size_t grown(size_t wanted)
{
    return 2 * wanted <= PACE__RECORD_BYTES_MAX ? 2 * wanted : PACE__RECORD_BYTES_MAX + 1;
}

/*
 * Fills the buffer until it holds a whole line or record, or the stream ends. *whole: up to where it is
 * whole.
 */
static pace_status fill(pace__cutter *cutter, pace__chunk *chunk, size_t *size, size_t *whole, bool *ended)
{
    int boundary = cutter->boundary;
    size_t wanted = *size > PACE__CHUNK_BYTES ? *size : PACE__CHUNK_BYTES, next_end = 0;
    pace__csv_scan scan = {0};

    for (;;) {
        size_t got;
        pace_status status = pace__chunk_reserve(chunk, wanted, cutter->log);

        if (!status)
            status = pace__stream_read(cutter->stream, chunk->buffer + *size, wanted - *size, &got);
        if (status)
            return status;
        if (scan.at == 0)
            scan = scan_of(cutter, chunk->buffer, *size + got);
        *size += got;
        *ended = *size < wanted;
        if (boundary == PACE__TFRECORDS)
            status = whole_records(cutter, chunk->buffer, *size, whole, &next_end);
        else
            *whole = *ended ? *size : whole_part(boundary, &scan, chunk->buffer, *size);
        if (status || *whole > 0 || *ended)
            return status;
        if (boundary != PACE__TFRECORDS && wanted > PACE__RECORD_BYTES_MAX)
            return boundary == PACE__CSV ? record_without_end(cutter, &scan)
                                         : pace__too_long(cutter->path, boundary, cutter->at, cutter->log);
        wanted = boundary == PACE__TFRECORDS ? next_end : grown(wanted);
    }
}

static pace_status save_carry(pace__cutter *cutter, const char *bytes, size_t size)
{
    if (size > cutter->carry_capacity) {
        char *carry = realloc(cutter->carry, size);

        if (!carry)
            return pace_fail(cutter->log, PACE_FAILED, "out of memory for %zu bytes of input", size);
        cutter->carry = carry;
        cutter->carry_capacity = size;
    }
    if (size > 0)
        memcpy(cutter->carry, bytes, size);
    cutter->carry_size = size;
    return PACE_OK;
}

pace_status pace__cutter_next(pace__cutter *cutter, pace__chunk *chunk, bool *ended)
{
    size_t size = cutter->carry_size, whole;
    pace_status status =
        pace__chunk_reserve(chunk, size > PACE__CHUNK_BYTES ? size : PACE__CHUNK_BYTES, cutter->log);

    if (status)
        return status;
    if (size > 0)
        memcpy(chunk->buffer, cutter->carry, size);
    status = fill(cutter, chunk, &size, &whole, ended);
    if (status)
        return status;
    if (*ended && whole < size)
        return pace_fail(cutter->log, PACE_BAD_DATA,
                         "%s: record at byte %llu: the file ends within it: copy it again", cutter->path,
                         (unsigned long long)(cutter->at + whole));
    status = save_carry(cutter, chunk->buffer + whole, size - whole);
    if (status)
        return status;
    chunk->data = chunk->buffer;
    chunk->size = whole;
    chunk->offset = cutter->at;
    cutter->at += whole;
    return PACE_OK;
}
