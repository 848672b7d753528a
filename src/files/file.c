#include "files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

pace_status pace__pread_all(int fd, void *buffer, size_t bytes, uint64_t offset, const char *path,
                            const pace_log *log)
{
    size_t done = 0;

    while (done < bytes) {
        ssize_t got = pread(fd, (char *)buffer + done, bytes - done, (off_t)(offset + done));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return pace_fail(log, PACE_IO, "%s: cannot read at byte %llu: %s", path,
                             (unsigned long long)(offset + done), strerror(errno));
        if (got == 0)
            return pace_fail(log, PACE_BAD_DATA, "%s: ends at byte %llu, %zu bytes short: the file was cut",
                             path, (unsigned long long)(offset + done), bytes - done);
        done += (size_t)got;
    }
    return PACE_OK;
}

static pace_status write_failed(const char *path, const pace_log *log)
{
    return pace_fail(log, PACE_IO, "%s: cannot write: %s", path, strerror(errno));
}

pace_status pace__pwrite_all(int fd, const void *buffer, size_t bytes, uint64_t offset, const char *path,
                             const pace_log *log)
{
    size_t done = 0;

    while (done < bytes) {
        ssize_t put = pwrite(fd, (const char *)buffer + done, bytes - done, (off_t)(offset + done));

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return write_failed(path, log);
        done += (size_t)put;
    }
    return PACE_OK;
}

pace_status pace__write_all(int fd, const void *buffer, size_t bytes, const char *path, const pace_log *log)
{
    size_t done = 0;

    while (done < bytes) {
        ssize_t put = write(fd, (const char *)buffer + done, bytes - done);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return write_failed(path, log);
        done += (size_t)put;
    }
    return PACE_OK;
}

pace_status pace__make_dirs(const char *path, const pace_log *log)
{
    char *walk = strdup(path);
    pace_status status = PACE_OK;

    if (!walk)
        return pace_fail(log, PACE_FAILED, "out of memory");
    for (char *end = walk + 1; !status; end++) {
        if (*end != '/' && *end != '\0')
            continue;
        char kept = *end;

        *end = '\0';
        if (mkdir(walk, 0777) != 0) {
            int error = errno;
            struct stat info;

            if (error != EEXIST || stat(walk, &info) != 0 || !S_ISDIR(info.st_mode))
                status = pace_fail(log, PACE_IO, "%s: cannot make the directory: %s", walk,
                                   error == EEXIST ? "there is a file of that name" : strerror(error));
        }
        *end = kept;
        if (kept == '\0')
            break;
    }
    free(walk);
    return status;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

pace_status pace__remove_tree(const char *path, const pace_log *log)
{
    struct stat info;

    if (lstat(path, &info) != 0 && errno == ENOENT)
        return PACE_OK;
    if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0)
        return pace_fail(log, PACE_IO, "%s: cannot remove: %s", path, strerror(errno));
    return PACE_OK;
}

bool pace__exists(const char *path)
{
    struct stat info;

    return lstat(path, &info) == 0;
}

pace_status pace__sync_parent(const char *path, const pace_log *log)
{
    const char *slash = strrchr(path, '/');
    char *parent = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");

    if (!parent)
        return pace_fail(log, PACE_FAILED, "out of memory");
    int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    pace_status status = PACE_OK;

    if (fd < 0 || fsync(fd) != 0)
        status = pace_fail(log, PACE_IO, "%s: cannot sync the directory: %s", parent, strerror(errno));
    if (fd >= 0)
        close(fd);
    free(parent);
    return status;
}

pace_status pace__write_file_atomically(const char *path, const void *bytes, size_t size, const pace_log *log)
{
    pace_status status;
    char *temporary = pace__format("%s.tmp", path);

    if (!temporary)
        return pace_fail(log, PACE_FAILED, "out of memory");
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    if (fd < 0) {
        status = pace_fail(log, PACE_IO, "%s: cannot create: %s", temporary, strerror(errno));
        goto free_name;
    }
    status = pace__write_all(fd, bytes, size, temporary, log);
    if (!status && fsync(fd) != 0)
        status = write_failed(temporary, log);
    if (close(fd) != 0 && !status)
        status = write_failed(temporary, log);
    if (!status && rename(temporary, path) != 0)
        status = pace_fail(log, PACE_IO, "%s: cannot rename to %s: %s", temporary, path, strerror(errno));
    if (status)
        unlink(temporary);
    else
        status = pace__sync_parent(path, log);
free_name:
    free(temporary);
    return status;
}

pace_status pace__read_file(const char *path, size_t size_max, char **bytes, size_t *size,
                            const pace_log *log)
{
    struct stat info;
    pace_status status = PACE_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return pace_fail(log, PACE_NO_INPUT, "%s: cannot open: %s", path, strerror(errno));
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        status = pace_fail(log, PACE_NO_INPUT, "%s: not a file", path);
        goto close_file;
    }
    if ((uint64_t)info.st_size > size_max) {
        status = pace_fail(log, PACE_BAD_DATA, "%s: %lld bytes, more than the limit of %zu", path,
                           (long long)info.st_size, size_max);
        goto close_file;
    }
    char *buffer = malloc((size_t)info.st_size + 1);

    if (!buffer) {
        status = pace_fail(log, PACE_FAILED, "%s: out of memory", path);
        goto close_file;
    }
    status = pace__pread_all(fd, buffer, (size_t)info.st_size, 0, path, log);
    if (status) {
        free(buffer);
        goto close_file;
    }
    buffer[info.st_size] = '\0';
    *bytes = buffer;
    *size = (size_t)info.st_size;
close_file:
    close(fd);
    return status;
}

char *pace__format(const char *format, ...)
{
    char *text = NULL;
    va_list arguments;

    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    return text;
}
