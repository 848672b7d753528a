/*
 *     none  -> begun      begin: the directory is there, marked and locked
 *     begun -> committed  commit: it has the target's name, and what had it before is gone
 *     begun -> none       abandon; or the process dies or leaves it, which leaves it behind, unlocked
 *     left  -> begun      adopt: by the process that is to commit it
 *
 * 1. A staging that has begun has target, directory and lock; any other has none of them, and a lock of -1
 *    unless it is zeroed.
 * 2. The lock is on the directory itself, not on its name: who holds it owns what lies under the name only
 *    while that is the same directory (is_same). Behind the rename it is the target, and the name is free.
 * 3. There is a target at any time before and after a commit that replaces one: the two directories exchange
 *    their names in one act. Then the old one is removed under the name of the new one, locked and marked.
 *    Where the file system cannot exchange, the old one is called .NAME.old for a moment; who is killed in that
 *    moment has it back when the next job begins.
 * 4. What is removed is ours: empty (who made it had no time to mark it), marked, or what kind->check takes for a
 *    finished one (whose mark went before its rename, or which is the old one). Links are not followed, and what
 *    is not ours is left and named.
 */
#include "files/staging.h"

#include "base/clock.h"
#include "files/file.h"
#include "files/open.h"

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
#define SWEEP_S       5.0
#define DISCARD_TURNS 100
/* In the directory, as long as it is not finished. */
#define MARK_NAME ".paceline"
#define MARK_TEXT "paceline writes into this directory, and removes all of it if it is interrupted.\n"

static pace_status check_target(const pace__staging *self, bool force, const pace_log *log)
{
    const char *target = self->target;
    struct stat info;

    if (lstat(target, &info) != 0 || pace__is_empty_at(AT_FDCWD, target))
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

    return *name && !pace__is_dots(name);
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

    return fstat(fd, &opened) == 0 && lstat(path, &named) == 0 && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

/* --- what is ours --- */

static pace_status put_mark(int directory, const char *path, const pace_log *log)
{
    char *mark = pace__format("%s/" MARK_NAME, path);
    int fd = -1;
    pace_status status = mark ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status && faccessat(directory, MARK_NAME, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
        status = pace__open(mark, PACE__TO_CREATE, log, &fd);
    if (fd >= 0) {
        status = pace__write_all(fd, MARK_TEXT, strlen(MARK_TEXT), mark, log);
        close(fd);
    }
    free(mark);
    return status;
}

/* Invariant 4. `directory` lies under `path`. */
static bool is_ours(const pace__staging_kind *kind, int directory, const char *path)
{
    struct stat mark;

    return (fstatat(directory, MARK_NAME, &mark, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(mark.st_mode)) ||
           pace__is_empty_at(directory, ".") || kind->check(path, NULL) == PACE_OK;
}

static pace_status refuse_foreign(const char *path, const char *what, const pace_log *log)
{
    return pace_fail(
        log, PACE_USAGE,
        "%s: is in the way: paceline needs this name, but %s: move it away, or choose another output", path,
        what);
}

/* All of it, its name last. It is locked; the mark stays until nothing else does, so that the rest is known for ours.
 * Another rank of the same job, which has not heard of its end, may still make a file: then once more. */
static pace_status discard(int directory, const char *path, const pace_log *log)
{
    pace_status status;
    bool again, removed;
    int turns = 0;

    do {
        status = put_mark(directory, path, log);
        removed = !status && pace__clear_directory(directory, MARK_NAME) &&
                  unlinkat(directory, MARK_NAME, 0) == 0 && rmdir(path) == 0;
        again = !status && !removed && (errno == ENOTEMPTY || errno == EEXIST) && ++turns < DISCARD_TURNS;
    } while (again);
    if (status || removed)
        return status;
    status = pace_fail(log, PACE_IO, "%s: cannot remove: %s", path, strerror(errno));
    put_mark(directory, path, NULL);
    return status;
}

/* A directory that someone died in. */
static pace_status clear_left_over(const pace__staging *self, const pace_log *log)
{
    if (!is_ours(self->kind, self->lock, self->directory))
        return refuse_foreign(self->directory, "what is in it was not written by paceline", log);
    pace_say(log, PACE_WARN, "%s: removing what an interrupted %s left behind", self->directory,
             self->kind->job);
    pace_status status = put_mark(self->lock, self->directory, log);

    if (!status && !pace__clear_directory(self->lock, MARK_NAME))
        status = pace_fail(log, PACE_IO, "%s: cannot clear: %s", self->directory, strerror(errno));
    return status;
}

/* Takes the lock; a directory that someone died in is emptied first. */
static pace_status take_directory(pace__staging *self, const pace_log *log)
{
    bool left_over = mkdir(self->directory, 0777) != 0;

    if (left_over && errno != EEXIST)
        return pace_fail(log, PACE_IO, "%s: cannot make the directory: %s", self->directory, strerror(errno));
    self->lock = pace__open_directory(AT_FDCWD, self->directory);
    if (self->lock < 0 && (errno == ENOTDIR || errno == ELOOP))
        return refuse_foreign(self->directory, "it is no directory of its own", log);
    if (self->lock < 0)
        return pace_fail(log, PACE_IO, "%s: cannot open: %s", self->directory, strerror(errno));
    if (flock(self->lock, LOCK_EX | LOCK_NB) != 0 || !is_same(self->lock, self->directory))
        return pace_fail(log, PACE_FAILED, "%s: another %s is writing this %s right now", self->target,
                         self->kind->job, self->kind->what);
    return left_over ? clear_left_over(self, log) : put_mark(self->lock, self->directory, log);
}

/* Invariant 3: killed in the moment without a target; or behind it, when the old one had no use any more. */
static pace_status settle_old(const pace__staging *self, const pace_log *log)
{
    char *old = sibling(self->target, "old");
    pace_status status = old ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");
    bool left = !status && pace__exists(old) && self->kind->check(old, NULL) == PACE_OK;

    if (left && self->kind->check(self->target, NULL) == PACE_OK &&
        !pace__is_empty_at(AT_FDCWD, self->target)) {
        status = pace__remove_tree(old, log);
    } else if (left && (rmdir(self->target) == 0 || errno == ENOENT)) {
        pace_say(log, PACE_WARN, "%s: an interrupted %s had moved it away; it is back", self->target,
                 self->kind->job);
        if (rename(old, self->target) != 0)
            status =
                pace_fail(log, PACE_IO, "%s: cannot rename to %s: %s", old, self->target, strerror(errno));
    }
    free(old);
    return status;
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
    status = settle_old(self, log);
    if (!status)
        status = check_target(self, force, log); /* someone may have finished it before we had the lock */
    if (status)
        discard(self->lock, self->directory, log);
    return status;
}

static pace_status take_left(pace__staging *self, bool force, const pace_log *log)
{
    self->lock = pace__open_directory(AT_FDCWD, self->directory);
    if (self->lock < 0 || flock(self->lock, LOCK_EX | LOCK_NB) != 0 ||
        !is_same(self->lock, self->directory) || !is_ours(self->kind, self->lock, self->directory))
        return pace_fail(log, PACE_FAILED,
                         "%s: what was written for the %s is gone, or another %s has taken it",
                         self->directory, self->kind->what, self->kind->job);
    return check_target(self, force, log);
}

void pace__staging_leave(pace__staging *staging)
{
    assert(staging->directory && staging->lock >= 0);
    release(staging);
}

pace_status pace__staging_adopt(const pace__staging_kind *kind, const char *target, bool force,
                                pace__staging *staging, const pace_log *log)
{
    pace__staging self = {.kind = kind, .target = clean_path(target), .lock = -1};

    self.directory = self.target ? sibling(self.target, "partial") : NULL;
    pace_status status =
        self.directory ? take_left(&self, force, log) : pace_fail(log, PACE_FAILED, "out of memory");

    if (status)
        release(&self);
    else
        *staging = self;
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

/* --- commit --- */

/* For file systems that cannot exchange two names. */
static pace_status exchange_in_steps(const pace__staging *self, const pace_log *log)
{
    char *old = sibling(self->target, "old");
    pace_status status = old ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status && rename(self->target, old) != 0)
        status = pace_fail(log, PACE_IO, "%s: cannot move the old %s away: %s", self->target,
                           self->kind->what, strerror(errno));
    else if (!status && (rename(self->directory, self->target) != 0 || rename(old, self->directory) != 0)) {
        status = pace_fail(log, PACE_IO, "%s: cannot rename to %s: %s", self->directory, self->target,
                           strerror(errno));
        rename(old, self->target); /* unless that is the new one by now */
    }
    free(old);
    return status;
}

static pace_status exchange(const pace__staging *self, const pace_log *log)
{
    if (renameat2(AT_FDCWD, self->directory, AT_FDCWD, self->target, RENAME_EXCHANGE) == 0)
        return PACE_OK;
    if (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP)
        return exchange_in_steps(self, log);
    return pace_fail(log, PACE_IO, "%s: cannot replace the old %s: %s", self->target, self->kind->what,
                     strerror(errno));
}

/* The old one is locked before it gets the name that other jobs look for. */
static pace_status replace(const pace__staging *self, const pace_log *log)
{
    int old = pace__open_directory(AT_FDCWD, self->target);
    pace_status status = old >= 0 && flock(old, LOCK_EX | LOCK_NB) == 0
                             ? PACE_OK
                             : pace_fail(log, PACE_IO, "%s: cannot lock the old %s: %s", self->target,
                                         self->kind->what, strerror(errno));

    if (!status)
        status = exchange(self, log);
    if (!status)
        status = pace__sync_parent(self->target, log);
    if (!status)
        status = discard(old, self->directory, log);
    if (old >= 0)
        close(old);
    return status;
}

static pace_status publish(const pace__staging *self, const pace_log *log)
{
    if (pace__exists(self->target))
        return replace(self, log);
    if (rename(self->directory, self->target) != 0)
        return pace_fail(log, PACE_IO, "%s: cannot rename to %s: %s", self->directory, self->target,
                         strerror(errno));
    return pace__sync_parent(self->target, log);
}

pace_status pace__staging_commit(pace__staging *staging, const pace_log *log)
{
    assert(staging->target && staging->directory && staging->lock >= 0); /* invariant 1 */
    pace_status status = PACE_OK;

    unlinkat(staging->lock, MARK_NAME, 0); /* a finished one is known without */
    if (fsync(staging->lock) != 0)
        status = pace_fail(log, PACE_IO, "%s: cannot sync: %s", staging->directory, strerror(errno));
    if (!status)
        status = publish(staging, log);
    if (!status)
        release(staging);
    return status;
}

void pace__staging_abandon(pace__staging *staging, const pace_log *log)
{
    assert(!staging->directory || staging->lock >= 0);
    /* Invariant 2: behind the rename of a commit that has failed, the name may be another job's. */
    if (staging->directory && is_same(staging->lock, staging->directory))
        discard(staging->lock, staging->directory, log);
    release(staging);
}

bool pace__staging_sweep(const pace__staging_kind *kind, const char *target, const pace_log *log)
{
    char *clean = clean_path(target), *directory = clean ? sibling(clean, "partial") : NULL;
    int lock = directory ? pace__open_directory(AT_FDCWD, directory) : -1;
    uint64_t start_ns = pace__now_ns();
    bool taken = false;

    while (lock >= 0 && !(taken = flock(lock, LOCK_EX | LOCK_NB) == 0) && errno == EWOULDBLOCK &&
           pace__seconds_since(start_ns) < SWEEP_S)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    if (taken && is_same(lock, directory) &&
        is_ours(kind, lock, directory)) /* else it is another job's by now */
        discard(lock, directory, log);
    bool nothing = directory && !pace__exists(directory);

    if (lock >= 0)
        close(lock);
    free(directory);
    free(clean);
    return nothing;
}
