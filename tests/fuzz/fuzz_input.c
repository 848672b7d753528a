/*
 * The bytes are a file, plain or compressed as they happen to be, read as lines, as records, and for its
 * format.
 */
#include "data/input/input.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Compressed zeros can be very long: this many chunks show enough. */
#define CHUNKS_MAX 6

static void check_chunk(const pace__chunk *chunk, int boundary, uint64_t offset)
{
    assert(chunk->file == 0 && chunk->offset == offset);
    assert(chunk->data + chunk->size + PACE__CHUNK_SLACK <= chunk->buffer + chunk->capacity);
    for (size_t at = 0; boundary == PACE__TFRECORDS && at < chunk->size;) {
        uint64_t length;

        assert(chunk->size - at >= 16);
        memcpy(&length, chunk->data + at, sizeof length);
        assert(length <= chunk->size - at - 16);
        at += 16 + length;
    }
}

static void read_chunks(const char *path, int boundary)
{
    static pace__chunk chunk; /* fresh memory for each input would take most of the time */
    pace__input *input;
    uint64_t offset = 0, lines = 0;

    assert(pace__input_open(&path, 1, boundary, NULL, &input) == PACE_OK);
    for (unsigned i = 0; i < CHUNKS_MAX; i++) {
        if (pace__input_next(input, &chunk) != PACE_OK || chunk.size == 0)
            break;
        check_chunk(&chunk, boundary, offset);
        if (boundary == PACE__LINES)
            assert(pace__input_line_of(input, 0, offset) == lines + 1);
        for (const char *at = chunk.data; (at = memchr(at, '\n', (size_t)(chunk.data + chunk.size - at)));
             at++)
            lines++;
        offset += chunk.size;
    }
    assert(pace__input_bytes_read(input) == offset);
    pace__input_close(input);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    int format, fd = memfd_create("input", MFD_CLOEXEC);

    assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    read_chunks(path, PACE__LINES);
    read_chunks(path, PACE__TFRECORDS);
    (void)pace__input_detect(path, &format, NULL);
    close(fd);
    return 0;
}
