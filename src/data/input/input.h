/*
 * input.h - raw input files as a stream of chunks that end at record boundaries, for any number of threads.
 *
 * Files may be plain, gzip (ISA-L; concatenated members too) or zstd, told by their first bytes, not their
 * names; "-" is standard input. Plain seekable line files are cut into byte ranges that threads read
 * independently; everything else is read in order under the input's lock and parsed outside of it.
 *
 *     pace__input *input;
 *     pace__input_open(paths, count, PACE__LINES, log, &input);
 *     pace__chunk chunk = {0};
 *     while (!(status = pace__input_next(input, &chunk)) && chunk.size > 0)
 *         parse(chunk.data, chunk.size, chunk.file, chunk.offset);
 *     pace__chunk_release(&chunk);
 *     pace__input_close(input);
 *
 * Invariants:
 * 1. Every byte of every file is in exactly one chunk; a chunk's offset is its first byte's place in the
 * uncompressed file.
 * 2. PACE__LINES chunks end behind a newline or at the end of the file; PACE__TFRECORDS and PACE__CSV chunks
 * hold whole records; PACE__WHOLE chunks a whole file. An empty file has no chunk, except that PACE__WHOLE
 * gives it one of a newline, so that it is seen.
 * 3. At least PACE__CHUNK_SLACK readable bytes (of any value) follow a chunk's data, so that vector loads may
 * overrun.
 * 4. Which chunks a file (or unit) is cut into does not depend on the number of threads. With one thread they
 * come in input order.
 */
#ifndef DATA_INPUT_INPUT_H
#define DATA_INPUT_INPUT_H

#include "files/open.h"

#include <paceline/log.h>
#include <paceline/options.h>
#include <stddef.h>
#include <stdint.h>

#define PACE__CHUNK_BYTES ((size_t)4 << 20)
#define PACE__CHUNK_SLACK 128
/* What pace__input_head gives of a file. */
#define PACE__HEAD_BYTES ((size_t)64 << 10)
/* A longer line or record is bad data. */
#define PACE__RECORD_BYTES_MAX ((size_t)16 << 20)
#define PACE__INPUT_FILES_MAX  (1u << 20)

/*
 * CSV: like lines, but a newline between quotes ends nothing (csv.h). WHOLE: a chunk is a whole file, which is
 * at most PACE__RECORD_BYTES_MAX.
 */
enum { PACE__LINES, PACE__TFRECORDS, PACE__CSV, PACE__WHOLE };

typedef struct pace__input pace__input;

typedef struct pace__chunk {
    const char *data; /* in `buffer` */
    size_t size;      /* 0: the input has ended */
    uint32_t file;    /* index into the paths */
    uint64_t offset;
    uint64_t line; /* of its first byte, from 1, if the file cannot be read again to count them; else 0 */
    char *buffer;
    size_t capacity;
} pace__chunk;

/*
 * Opens nothing yet but checks that every path is there, readable and no directory (PACE_NO_INPUT, naming
 * it). `paths` and `log` stay the caller's and must outlive the input.
 */
pace_status pace__input_open(const char *const *paths, size_t count, int boundary, const pace_log *log,
                             pace__input **input);
void pace__input_close(pace__input *input);

/* Who is asked while a pipe has no writer, or nothing to say; before the first chunk is taken. */
void pace__input_watch(pace__input *input, pace__watch watch);

/*
 * A stretch of a file: what one of several processes reads of it. A line belongs to the unit in which it
 * begins. `last` of a whole file is UINT64_MAX.
 */
typedef struct pace__unit {
    uint32_t file;
    uint64_t first, last;
} pace__unit;

/*
 * The units of reader `rank` of `ranks`, in the order of the files, to be freed by the caller: every byte of
 * the files is in exactly one reader's. What cannot be cut (compressed files, csv) is one unit, and goes, the
 * largest first, to the reader who has least so far; what can only be read once (standard input, pipes) to
 * reader 0. Plain line files are cut so that all readers get equal bytes on disk with that: if there is much
 * for each, at multiples of PACE__CHUNK_BYTES, so that chunks are the same for any number of readers.
 * Depends on the files alone, so every process comes to the same result. A reader may get none.
 */
pace_status pace__units_cut(const char *const *paths, size_t count, int boundary, int rank, int ranks,
                            const pace_log *log, pace__unit **units, size_t *unit_count);

/* Reads only these, as pace__input_open reads all. The units are copied. */
pace_status pace__input_open_units(const char *const *paths, size_t count, int boundary,
                                   const pace__unit *units, size_t unit_count, const pace_log *log,
                                   pace__input **input);

/* After a failure, which is told once, every thread's next call returns the same status. */
pace_status pace__input_next(pace__input *input, pace__chunk *chunk);
void pace__chunk_release(pace__chunk *chunk);

/* Bytes on disk of all files (before decompression), 0 if unknown; and how many of them were taken so far:
 * for progress. */
uint64_t pace__input_bytes_total(const pace__input *input);
uint64_t pace__input_bytes_taken(const pace__input *input);
uint64_t pace__input_bytes_read(const pace__input *input); /* after decompression */

const char *pace__input_path(const pace__input *input, uint32_t file);
int pace__input_boundary(const pace__input *input);

/* The 1-based line that holds the byte at `offset`, by reading the file again from its start; 0 if it cannot
 * be told (standard input). */
uint64_t pace__input_line_of(const pace__input *input, uint32_t file, uint64_t offset);

/*
 * The first bytes of a file, decompressed, of which it may have been another reader who read them: *size is
 * less than PACE__HEAD_BYTES, for which there must be room, only if the file is that short. For files that
 * cannot be read twice, only when a chunk of that file was seen already.
 */
pace_status pace__input_head(const pace__input *input, uint32_t file, char *bytes, size_t *size);

/*
 * What the format of a file looks like from its first bytes (decompressed): PACE_FORMAT_CRITEO, _SVMLIGHT,
 * _TFRECORD, or PACE_FORMAT_AUTO if it is not certain. Only regular files are looked at; standard input gives
 * PACE_FORMAT_AUTO.
 */
pace_status pace__input_detect(const char *path, int *format, const pace_log *log);

#endif
