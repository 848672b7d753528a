#include "data/input/input_files.h"

#include "data/input/decompress.h"
#include "files/file.h"
#include "files/open.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECOUNT_BYTES ((size_t)64 << 10)

bool pace__is_standard_input(const char *path)
{
    return strcmp(path, "-") == 0;
}

pace_status pace__input_check(const char *path, pace__input_facts *facts, const pace_log *log)
{
    struct stat info;

    *facts = (pace__input_facts){0};
    if (pace__is_standard_input(path))
        return PACE_OK;
    if (stat(path, &info) != 0)
        return pace_fail(log, PACE_NO_INPUT, "%s: cannot open: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return pace_fail(log, PACE_NO_INPUT, "%s: is a directory; give its files", path);
    if (access(path, R_OK) != 0)
        return pace_fail(log, PACE_NO_INPUT, "%s: cannot read: %s", path, strerror(errno));
    facts->regular = S_ISREG(info.st_mode);
    facts->bytes = facts->regular ? (uint64_t)info.st_size : 0;
    return PACE_OK;
}

bool pace__input_is_plain(int fd)
{
    char first[PACE__MAGIC_BYTES];
    ssize_t got = pread(fd, first, sizeof first, 0);

    return got > 0 && pace__compression_of(first, (size_t)got) == PACE__PLAIN;
}

pace_status pace__input_read_head(const char *path, char *bytes, size_t room, size_t *size,
                                  const pace_log *log)
{
    pace__stream *stream;
    int fd;
    pace_status status = pace__open(path, PACE__TO_READ, log, &fd);

    if (status)
        return status;
    status = pace__stream_open(fd, path, NULL, log, &stream);

    if (!status) {
        status = pace__stream_read(stream, bytes, room, size);
        pace__stream_close(stream);
    }
    close(fd);
    return status;
}

/* Newlines in the stream's first `bytes` bytes; false if it is shorter or cannot be read. */
static bool count_newlines(pace__stream *stream, uint64_t bytes, uint64_t *newlines)
{
    char buffer[RECOUNT_BYTES];
    size_t got;

    *newlines = 0;
    for (; bytes > 0; bytes -= got) {
        size_t wanted = bytes < sizeof buffer ? (size_t)bytes : sizeof buffer;

        if (pace__stream_read(stream, buffer, wanted, &got) != PACE_OK || got < wanted)
            return false;
        for (size_t i = 0; i < got; i++)
            *newlines += buffer[i] == '\n';
    }
    return true;
}

uint64_t pace__line_at(const char *path, uint64_t offset)
{
    uint64_t newlines, line = 0;
    pace__stream *stream;
    int fd;

    if (pace__is_standard_input(path) || pace__open(path, PACE__TO_READ, NULL, &fd) != PACE_OK)
        return 0;
    if (pace__stream_open(fd, path, NULL, NULL, &stream) == PACE_OK) {
        if (count_newlines(stream, offset, &newlines))
            line = newlines + 1;
        pace__stream_close(stream);
    }
    close(fd);
    return line;
}

bool pace__is_store(const char *directory)
{
    char *path = pace__format("%s/" PACE__PART_NAME, directory, 0u);
    bool found = path && pace__exists(path);

    free(path);
    return found;
}

bool pace__was_store(const char *directory)
{
    char *path = pace__format("%s/checksums.json", directory);
    bool found = path && pace__exists(path);

    free(path);
    return found || pace__is_store(directory);
}
