/*
 * cutter.h - one stream cut into chunks of whole lines or records, or into one chunk, in order. For one thread
 * at a time; input.h has the rest.
 */
#ifndef DATA_INPUT_CUTTER_H
#define DATA_INPUT_CUTTER_H

#include "data/input/input.h"

#include <stdbool.h>

/* Zeroed (with path, boundary and log) before use; may then be opened again and again. */
typedef struct pace__cutter {
    const char *path;
    int boundary;
    const pace__watch *watch;
    const pace_log *log;
    struct pace__stream *stream; /* NULL: not open */
    uint64_t at;                 /* of the next chunk in the uncompressed file */
    char *carry;                 /* read already, but behind the last chunk's end */
    size_t carry_size, carry_capacity;
} pace__cutter;

/* `fd` stays the caller's and must outlive the stream. */
pace_status pace__cutter_open(pace__cutter *cutter, int fd);
void pace__cutter_close(pace__cutter *cutter);   /* the stream; buffers stay for the next one */
void pace__cutter_release(pace__cutter *cutter); /* all of it */

/* Sets all of the chunk but `file`. *ended: this is the last one, perhaps an empty one. */
pace_status pace__cutter_next(pace__cutter *cutter, pace__chunk *chunk, bool *ended);

/* Bytes of the file taken so far, before decompression. */
uint64_t pace__cutter_raw_bytes(const pace__cutter *cutter);

/* Room in a chunk for `size` bytes and the slack; keeps what is there. */
pace_status pace__chunk_reserve(pace__chunk *chunk, size_t size, const pace_log *log);

/* Tells that a line or record is above PACE__RECORD_BYTES_MAX. */
pace_status pace__too_long(const char *path, int boundary, uint64_t offset, const pace_log *log);

#endif
