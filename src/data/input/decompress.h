/*
 * decompress.h - a file read from its start to its end as the bytes that were put into it.
 *
 * The kind is told by the first bytes, so pipes work like files. gzip may have several members, zstd
 * several frames; their checksums are verified. Damaged, cut-short and trailing bytes are PACE_BAD_DATA.
 * For one thread at a time.
 */
#ifndef DATA_INPUT_DECOMPRESS_H
#define DATA_INPUT_DECOMPRESS_H

#include "files/open.h"

#include <paceline/log.h>
#include <stddef.h>
#include <stdint.h>

enum { PACE__PLAIN, PACE__GZIP, PACE__ZSTD };

/* As many first bytes as pace__compression_of looks at. */
#define PACE__MAGIC_BYTES 12

/*
 * The kind of a file that starts with these bytes; fewer than PACE__MAGIC_BYTES only if the file is that
 * short.
 */
int pace__compression_of(const void *first, size_t size);

typedef struct pace__stream pace__stream;

/*
 * Reads the first bytes of `fd`, which must be at its start. `fd`, `path`, `log` and `watch`, which is asked while a
 * pipe has nothing to say and may be NULL, stay the caller's and must outlive the stream.
 */
pace_status pace__stream_open(int fd, const char *path, const pace__watch *watch, const pace_log *log,
                              pace__stream **stream);
void pace__stream_close(pace__stream *stream); /* NULL is allowed */

/* Fills the buffer; *got < size only at the end of the stream. */
pace_status pace__stream_read(pace__stream *stream, void *buffer, size_t size, size_t *got);

/* Bytes read from `fd` so far. */
uint64_t pace__stream_raw_bytes(const pace__stream *stream);

#endif
