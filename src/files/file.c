#include "files/file.h"

#include "files/new_file.h"
#include "files/open.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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

pace_status pace__check_way(const char *path, const pace_log *log)
{
    pace_status status = PACE_OK;

    for (const char *up = strstr(path, "/.."); up && !status; up = strstr(up + 1, "/..")) {
        if (up == path || (up[3] != '/' && up[3] != '\0'))
            continue;
        char *before = strndup(path, (size_t)(up - path));
        struct stat info;

        if (!before)
            status = pace_fail(log, PACE_FAILED, "out of memory");
        else if (stat(before, &info) != 0 && errno == ENOENT)
            status = pace_fail(log, PACE_IO,
                               "%s: %s does not exist, and \"..\" leads out of it: give a path without it",
                               path, before);
        free(before);
    }
    return status;
}

/* How often a directory is made again that others take away meanwhile. */
#define TAKEN_AWAY_MAX 1000

static pace_status make_dir(const char *path, const pace_log *log)
{
    for (int turn = 0; mkdir(path, 0777) != 0; turn++) {
        int error = errno;
        struct stat info;
        bool there = error == EEXIST && stat(path, &info) == 0;

        if (there && S_ISDIR(info.st_mode))
            break;
        if (there || error != EEXIST || errno != ENOENT || turn == TAKEN_AWAY_MAX)
            return pace_fail(log, PACE_IO, "%s: cannot make the directory: %s", path,
                             error == EEXIST ? "there is a file of that name" : strerror(error));
    }
    return PACE_OK;
}

pace_status pace__make_dirs(const char *path, const pace_log *log)
{
    pace_status status = pace__check_way(path, log);

    if (status)
        return status;
    char *walk = strdup(path);

    if (!walk)
        return pace_fail(log, PACE_FAILED, "out of memory");
    for (char *end = walk + 1; !status; end++) {
        if (*end != '/' && *end != '\0')
            continue;
        char kept = *end;

        *end = '\0';
        status = make_dir(walk, log);
        *end = kept;
        if (kept == '\0')
            break;
    }
    free(walk);
    return status;
}

pace_status pace__make_own_dir(const char *path, const pace_log *log)
{
    pace_status status;
    int fd, turn = 0;

    do {
        status = pace__make_dirs(path, log);
        fd = status ? -1 : pace__open_directory(AT_FDCWD, path);
    } while (!status && fd < 0 && errno == ENOENT && turn++ < TAKEN_AWAY_MAX);
    if (fd >= 0)
        close(fd);
    else if (!status && (errno == ENOTDIR || errno == ELOOP))
        status = pace_fail(log, PACE_IO,
                           "%s: is a link: paceline writes into no other place than this: remove it", path);
    else if (!status)
        status = pace_fail(log, PACE_IO, "%s: cannot open: %s", path, strerror(errno));
    return status;
}

bool pace__is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

bool pace__is_empty_at(int parent, const char *name)
{
    int fd = pace__open_directory(parent, name);
    DIR *listing = fd >= 0 ? fdopendir(fd) : NULL;
    bool empty = listing != NULL;

    for (const struct dirent *entry; empty && (entry = readdir(listing));)
        empty = pace__is_dots(entry->d_name);
    if (listing)
        closedir(listing);
    else if (fd >= 0)
        close(fd);
    return empty;
}

/* Of a directory by its descriptor, which is taken over: the names in it are not followed anywhere. False: errno. */
static bool remove_entries(int fd, const char *but)
{
    DIR *listing = fdopendir(fd);
    bool done = listing != NULL;

    if (!listing)
        close(fd);
    for (struct dirent *entry; done && (entry = readdir(listing));) {
        if (!pace__is_dots(entry->d_name) && (!but || strcmp(entry->d_name, but) != 0))
            done = pace__remove_at(fd, entry->d_name);
    }
    int error = errno;

    if (listing)
        closedir(listing);
    errno = error;
    return done;
}

bool pace__remove_at(int parent, const char *name)
{
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return true;
    if (errno != EISDIR && errno != EPERM)
        return false;
    int fd = pace__open_directory(parent, name);

    return fd >= 0 && remove_entries(fd, NULL) && unlinkat(parent, name, AT_REMOVEDIR) == 0;
}

bool pace__clear_directory(int fd, const char *but)
{
    int own = pace__open_directory(fd, ".");

    return own >= 0 && remove_entries(own, but);
}

pace_status pace__remove_tree(const char *path, const pace_log *log)
{
    if (!pace__remove_at(AT_FDCWD, path))
        return pace_fail(log, PACE_IO, "%s: cannot remove: %s", path, strerror(errno));
    return PACE_OK;
}

bool pace__exists(const char *path)
{
    struct stat info;

    return lstat(path, &info) == 0;
}

pace_status pace__check_directory(const char *path, const pace_log *log)
{
    struct stat info;
    bool there = stat(path, &info) == 0;

    if (there && (!S_ISDIR(info.st_mode) || faccessat(AT_FDCWD, path, R_OK | X_OK, AT_EACCESS) == 0))
        return PACE_OK;
    return pace_fail(log, PACE_NO_INPUT, "%s: cannot open: %s", path, strerror(errno));
}

pace_status pace__sync_parent(const char *path, const pace_log *log)
{
    const char *slash = strrchr(path, '/');
    char *parent = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");

    if (!parent)
        return pace_fail(log, PACE_FAILED, "out of memory");
    DIR *directory = opendir(parent);
    pace_status status = PACE_OK;

    if (!directory || fsync(dirfd(directory)) != 0)
        status = pace_fail(log, PACE_IO, "%s: cannot sync the directory: %s", parent, strerror(errno));
    if (directory)
        closedir(directory);
    free(parent);
    return status;
}

pace_status pace__write_file_atomically(const char *path, const void *bytes, size_t size, const pace_log *log)
{
    pace__new_file file;
    pace_status status = pace__new_file_begin(path, log, &file);

    return status ? status : pace__new_file_end(&file, pace__write_all(file.fd, bytes, size, path, log));
}

pace_status pace__read_file(const char *path, size_t size_max, char **bytes, size_t *size,
                            const pace_log *log)
{
    struct stat info = {0};
    char *buffer = NULL;
    int fd;
    pace_status status = pace__open(path, PACE__TO_READ, log, &fd);

    if (status)
        return status;
    if (fstat(fd, &info) != 0)
        status = pace_fail(log, PACE_IO, "%s: cannot read: %s", path, strerror(errno));
    else if ((uint64_t)info.st_size > size_max)
        status = pace_fail(log, PACE_BAD_DATA, "%s: %lld bytes, more than the limit of %zu", path,
                           (long long)info.st_size, size_max);
    else if (!(buffer = malloc((size_t)info.st_size + 1)))
        status = pace_fail(log, PACE_FAILED, "%s: out of memory", path);
    else
        status = pace__pread_all(fd, buffer, (size_t)info.st_size, 0, path, log);
    close(fd);
    if (status) {
        free(buffer);
        return status;
    }
    buffer[info.st_size] = '\0';
    *bytes = buffer;
    *size = (size_t)info.st_size;
    return PACE_OK;
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
