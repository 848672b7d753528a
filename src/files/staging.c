/*
 *     none  -> begun      begin: the directory is there, empty and locked
 *     begun -> committed  commit: it has the target's name, and what had it before is gone
 *     begun -> none       abandon; or the process dies, which leaves it behind, unlocked
 *
 * 1. A staging that has begun has target, directory and lock; any other has none of them, and a lock of -1
 *    unless it is zeroed.
 * 2. The lock is on the directory itself, not on its name: who holds it owns what lies under the name only
 *    while that is the same directory (is_same). Behind the rename it is the target, and the name is free.
 * 3. There is a target at any time before and after the two renames of a commit: the old one or the new one.
 *    Killed between the two, the old one is left as .NAME.old, and the next job removes it.
 */
#include "files/staging.h"

#include "base/clock.h"
#include "files/file.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* For processes that are dying. */
#define SWEEP_S 5.0

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

static pace_status check_target(const pace__staging *self, bool force, const pace_log *log)
{
    const char *target = self->target;
    struct stat info;

    if (lstat(target, &info) != 0 || is_empty_directory(target))
        return PACE_OK;
    if (!S_ISDIR(info.st_mode))
        return pace_fail(log, PACE_USAGE, "%s: exists and is not a directory", target);
    pace_status status = self->kind->check(target, log);

    if (!status && !force)
        status = pace_fail(log, PACE_USAGE, "%s: already holds a %s (--force replaces it)", target,
                           self->kind->what);
    return status;
}

/* The directory is going to be renamed, so it must be called by its name. */
static bool has_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    return *name && !is_dots(name);
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

/* Removes what is in the directory, which stays: it is locked. */
static pace_status clear(const char *path, const pace_log *log)
{
    DIR *directory = opendir(path);
    pace_status status =
        directory ? PACE_OK : pace_fail(log, PACE_IO, "%s: cannot open: %s", path, strerror(errno));

    for (struct dirent *entry; !status && (entry = readdir(directory));) {
        if (is_dots(entry->d_name))
            continue;
        char *inside = pace__format("%s/%s", path, entry->d_name);

        status = inside ? pace__remove_tree(inside, log) : pace_fail(log, PACE_FAILED, "out of memory");
        free(inside);
    }
    if (directory)
        closedir(directory);
    return status;
}

/* Takes the lock; a directory that someone died in is emptied first. */
static pace_status take_directory(pace__staging *self, const pace_log *log)
{
    bool left_over = mkdir(self->directory, 0777) != 0;

    if (left_over && errno != EEXIST)
        return pace_fail(log, PACE_IO, "%s: cannot make the directory: %s", self->directory, strerror(errno));
    self->lock = open(self->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (self->lock < 0)
        return pace_fail(log, PACE_IO, "%s: cannot open: %s", self->directory, strerror(errno));
    if (flock(self->lock, LOCK_EX | LOCK_NB) != 0 || !is_same(self->lock, self->directory))
        return pace_fail(log, PACE_FAILED, "%s: another %s is writing this %s right now", self->target,
                         self->kind->job, self->kind->what);
    if (!left_over)
        return PACE_OK;
    pace_say(log, PACE_WARN, "%s: removing what an interrupted %s left behind", self->directory,
             self->kind->job);
    return clear(self->directory, log);
}

static void release(pace__staging *self)
{
    if (self->directory && self->lock >= 0) /* a zeroed staging holds no lock */
        close(self->lock);
    free(self->directory);
    free(self->target);
    *self = (pace__staging){.lock = -1};
}

static pace_status make_parents(const char *target, const pace_log *log)
{
    const char *slash = strrchr(target, '/');

    if (!slash || slash == target)
        return PACE_OK;
    char *parent = strndup(target, (size_t)(slash - target));
    pace_status status = parent ? pace__make_dirs(parent, log) : pace_fail(log, PACE_FAILED, "out of memory");

    free(parent);
    return status;
}

static pace_status take_target(pace__staging *self, bool force, const pace_log *log)
{
    pace_status status =
        has_name(self->target)
            ? check_target(self, force, log)
            : pace_fail(log, PACE_USAGE, "\"%s\": give the new directory a name", self->target);

    if (!status)
        status = make_parents(self->target, log);
    if (!status)
        status = take_directory(self, log);
    if (status)
        return status;
    assert(self->lock >= 0);
    status = check_target(self, force, log); /* someone may have finished it before we had the lock */
    if (status)
        pace__remove_tree(self->directory, log);
    return status;
}

pace_status pace__staging_begin(const pace__staging_kind *kind, const char *target, bool force,
                                pace__staging *staging, const pace_log *log)
{
    pace__staging self = {.kind = kind, .target = clean_path(target), .lock = -1};

    self.directory = self.target ? sibling(self.target, "partial") : NULL;
    pace_status status =
        self.directory ? take_target(&self, force, log) : pace_fail(log, PACE_FAILED, "out of memory");

    if (status)
        release(&self);
    else
        *staging = self;
    return status;
}

pace_status pace__staging_commit(pace__staging *staging, const pace_log *log)
{
    assert(staging->target && staging->directory && staging->lock >= 0); /* invariant 1 */
    char *old = sibling(staging->target, "old");
    pace_status status = old ? pace__remove_tree(old, log) : pace_fail(log, PACE_FAILED, "out of memory");
    bool replaces = pace__exists(staging->target);

    if (!status && fsync(staging->lock) != 0)
        status = pace_fail(log, PACE_IO, "%s: cannot sync: %s", staging->directory, strerror(errno));
    if (!status && replaces && rename(staging->target, old) != 0)
        status = pace_fail(log, PACE_IO, "%s: cannot move the old %s away: %s", staging->target,
                           staging->kind->what, strerror(errno));
    if (!status && rename(staging->directory, staging->target) != 0) {
        status = pace_fail(log, PACE_IO, "%s: cannot rename to %s: %s", staging->directory, staging->target,
                           strerror(errno));
        if (replaces)
            rename(old, staging->target);
    }
    if (!status)
        status = pace__sync_parent(staging->target, log);
    if (!status && replaces)
        status = pace__remove_tree(old, log);
    free(old);
    if (!status)
        release(staging);
    return status;
}

void pace__staging_abandon(pace__staging *staging, const pace_log *log)
{
    assert(!staging->directory || staging->lock >= 0);
    /* Invariant 2: behind the rename of a commit that has failed, the name may be another job's. */
    if (staging->directory && is_same(staging->lock, staging->directory))
        pace__remove_tree(staging->directory, log);
    release(staging);
}

bool pace__staging_sweep(const char *target, const pace_log *log)
{
    char *clean = clean_path(target), *directory = clean ? sibling(clean, "partial") : NULL;
    int lock = directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    uint64_t start_ns = pace__now_ns();
    bool taken = false;

    while (lock >= 0 && !(taken = flock(lock, LOCK_EX | LOCK_NB) == 0) && errno == EWOULDBLOCK &&
           pace__seconds_since(start_ns) < SWEEP_S)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    if (taken && is_same(lock, directory)) /* else it is another job's by now */
        pace__remove_tree(directory, log);
    bool nothing = directory && !pace__exists(directory);

    if (lock >= 0)
        close(lock);
    free(directory);
    free(clean);
    return nothing;
}
