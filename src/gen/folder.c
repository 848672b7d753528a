#include "gen/folder.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool is_empty_directory(const char *path)
{
    DIR *directory = opendir(path);
    bool empty = directory != NULL;

    for (struct dirent *entry; empty && (entry = readdir(directory));)
        empty = is_dots(entry->d_name);
    if (directory)
        closedir(directory);
    return empty;
}

static pace_status check_target(const char *target, bool force, bool (*replaceable)(const char *),
                                const pace_log *log)
{
    const char *slash = strrchr(target, '/'), *name = slash ? slash + 1 : target;
    struct stat info;

    if (!*name || is_dots(name)) /* it is going to be renamed, so it must be called by its name */
        return pace_fail(log, PACE_USAGE, "\"%s\": give the new directory a name", target);
    if (lstat(target, &info) != 0 || is_empty_directory(target))
        return PACE_OK;
    if (!S_ISDIR(info.st_mode))
        return pace_fail(log, PACE_USAGE, "%s: exists and is not a directory", target);
    if (!replaceable(target))
        return pace_fail(log, PACE_USAGE,
                         "%s: exists and holds other things than generated files: choose another directory",
                         target);
    return force ? PACE_OK : pace_fail(log, PACE_USAGE, "%s: exists; use --force to replace it", target);
}

/* "a/b/" -> "a/b" */
static char *clean_path(const char *path)
{
    size_t size = strlen(path);

    while (size > 1 && path[size - 1] == '/')
        size--;
    return strndup(path, size);
}

/* A sibling of the target: "a/b" -> "a/.b.SUFFIX". */
static char *sibling(const char *target, const char *suffix)
{
    const char *slash = strrchr(target, '/');
    int front = slash ? (int)(slash - target) + 1 : 0;

    return pace__format("%.*s.%s.%s", front, target, target + front, suffix);
}

/* False if the directory was renamed or replaced since it was opened. */
static bool is_same(int fd, const char *path)
{
    struct stat opened, named;

    return fstat(fd, &opened) == 0 && stat(path, &named) == 0 && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

/* What someone left who was killed. Under the lock. */
static pace_status clear(const pace__folder *self, const pace_log *log)
{
    DIR *directory = opendir(self->directory);
    pace_status status =
        directory ? PACE_OK
                  : pace_fail(log, PACE_IO, "%s: cannot open: %s", self->directory, strerror(errno));

    for (struct dirent *entry; !status && (entry = readdir(directory));) {
        if (is_dots(entry->d_name))
            continue;
        char *path = pace__format("%s/%s", self->directory, entry->d_name);

        status = path ? pace__remove_tree(path, log) : pace_fail(log, PACE_FAILED, "out of memory");
        free(path);
    }
    if (directory)
        closedir(directory);
    return status;
}

static pace_status take_directory(pace__folder *self, const pace_log *log)
{
    if (mkdir(self->directory, 0777) != 0 && errno != EEXIST)
        return pace_fail(log, PACE_IO, "%s: cannot make the directory: %s", self->directory, strerror(errno));
    self->lock = open(self->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (self->lock < 0)
        return pace_fail(log, PACE_IO, "%s: cannot open: %s", self->directory, strerror(errno));
    if (flock(self->lock, LOCK_EX | LOCK_NB) != 0 || !is_same(self->lock, self->directory))
        return pace_fail(log, PACE_FAILED, "%s: another process is writing it right now", self->target);
    return clear(self, log);
}

static void release(pace__folder *self)
{
    if (self->lock >= 0)
        close(self->lock);
    free(self->directory);
    free(self->target);
    *self = (pace__folder){.lock = -1};
}

pace_status pace__folder_open(pace__folder *folder, const char *target, bool force,
                              bool (*replaceable)(const char *target), const pace_log *log)
{
    pace__folder self = {.target = clean_path(target), .lock = -1};
    pace_status status;

    self.directory = self.target ? sibling(self.target, "partial") : NULL;
    status = self.directory ? check_target(self.target, force, replaceable, log)
                            : pace_fail(log, PACE_FAILED, "out of memory");
    if (!status)
        status = take_directory(&self, log);
    if (status) {
        release(&self);
        return status;
    }
    *folder = self;
    return PACE_OK;
}

/* The old one goes only when the new one has its name. */
static pace_status swap_in(const pace__folder *self, const char *old, const pace_log *log)
{
    bool replaces = pace__exists(self->target);
    pace_status status = pace__remove_tree(old, log);

    if (!status && replaces && rename(self->target, old) != 0)
        status = pace_fail(log, PACE_IO, "%s: cannot move the old directory away: %s", self->target,
                           strerror(errno));
    if (!status && rename(self->directory, self->target) != 0) {
        status = pace_fail(log, PACE_IO, "%s: cannot rename to %s: %s", self->directory, self->target,
                           strerror(errno));
        if (replaces)
            rename(old, self->target);
    }
    if (!status)
        status = pace__sync_parent(self->target, log);
    return status ? status : pace__remove_tree(old, log);
}

pace_status pace__folder_close(pace__folder *folder, pace_status status, const pace_log *log)
{
    char *old = status ? NULL : sibling(folder->target, "old");

    if (!status && !old)
        status = pace_fail(log, PACE_FAILED, "out of memory");
    if (!status && fsync(folder->lock) != 0)
        status = pace_fail(log, PACE_IO, "%s: cannot sync: %s", folder->directory, strerror(errno));
    if (!status)
        status = swap_in(folder, old, log);
    if (status)
        pace__remove_tree(folder->directory, log);
    free(old);
    release(folder);
    return status;
}
