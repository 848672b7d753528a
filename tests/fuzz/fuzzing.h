/*
 * fuzzing.h - what fuzz targets share: a log that looks at messages, an input that is used up, files without a
 * name on disk, and a directory for those that need one.
 */
#ifndef FUZZ_FUZZING_H
#define FUZZ_FUZZING_H

#include "files/file.h"

#include <assert.h>
#include <paceline/log.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A log's write function, whose user counts errors. With PACE_FUZZ_ALOUD in the environment it says them, too. */
static inline void check_message(void *user, pace_level level, const char *text)
{
    if (getenv("PACE_FUZZ_ALOUD"))
        fprintf(stderr, "%d %s\n", (int)level, text);
    *(int *)user += level == PACE_ERROR;
    for (; *text; text++)
        assert((unsigned char)*text >= 0x20); /* a message is one line */
}

/* Takes `bytes` from the input; zeros when it has ended. */
static inline void take(const uint8_t **data, size_t *size, void *into, size_t bytes)
{
    size_t taken = bytes < *size ? bytes : *size;

    memset(into, 0, bytes);
    if (taken > 0)
        memcpy(into, *data, taken);
    *data += taken;
    *size -= taken;
}

typedef struct unnamed {
    int fd;
    char path[32];
} unnamed;

static inline unnamed unnamed_make(const void *bytes, size_t size)
{
    unnamed file = {.fd = memfd_create("input", MFD_CLOEXEC)};

    assert(file.fd >= 0 && write(file.fd, bytes, size) == (ssize_t)size);
    snprintf(file.path, sizeof file.path, "/proc/self/fd/%d", file.fd);
    return file;
}

static char scratch_path[64];

static inline void scratch_remove(void)
{
    pace__remove_tree(scratch_path, NULL);
}

/* A directory, made once and removed at the end, in memory where that is possible. */
static inline const char *scratch(void)
{
    if (!*scratch_path) {
        snprintf(scratch_path, sizeof scratch_path, "%s/paceline-fuzz.XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        assert(mkdtemp(scratch_path));
        atexit(scratch_remove);
    }
    return scratch_path;
}

static inline void put_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");

    assert(file && fwrite(bytes, 1, size, file) == size);
    assert(fclose(file) == 0);
}

#endif
