#include "files/new_file.h"

#include "base/clock.h"
#include "base/random.h"
#include "files/file.h"
#include "files/open.h"

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIDDLE   ".tmp-"
#define DIGITS   16
#define TRIES    8
#define TAIL_MAX (sizeof MIDDLE + DIGITS)

uint64_t pace__draw_number(void)
{
    uint64_t number;

    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
        number = pace__mix64(pace__now_ns() ^ (uint64_t)getpid() << 40);
    return number;
}

/* Invariant 2. False if somebody who swept before the lock was there has taken it for a leftover. */
static bool take_lock(int fd)
{
    struct stat info;

    flock(fd, LOCK_EX | LOCK_NB);
    return fstat(fd, &info) == 0 && info.st_nlink > 0;
}

pace_status pace__new_file_begin(const char *path, const pace_log *log, pace__new_file *file)
{
    pace__new_file self = {.path = path, .fd = -1, .log = log};
    pace_status status = PACE_OK;

    for (int i = 0; i < TRIES && self.fd < 0 && !status; i++) {
        char why[PACE__WHY_BYTES];

        free(self.temporary);
        self.temporary = pace__format("%s" MIDDLE "%016llx", path, (unsigned long long)pace__draw_number());
        if (!self.temporary)
            return pace_fail(log, PACE_FAILED, "%s: out of memory", path);
        self.fd = pace__try_open(self.temporary, PACE__TO_CREATE, why);
        if (self.fd < 0)
            status = pace_fail(log, PACE_IO, "%s: %s", path, why);
        else if (!take_lock(self.fd)) {
            close(self.fd);
            self.fd = -1;
        }
    }
    if (!status && self.fd < 0)
        status = pace_fail(log, PACE_IO, "%s: cannot create: somebody removes what is written", path);
    if (status)
        free(self.temporary);
    else
        *file = self;
    return status;
}

/* The lock is held until it has its name. */
pace_status pace__new_file_end(pace__new_file *file, pace_status status)
{
    if (!status && fsync(file->fd) != 0)
        status = pace_fail(file->log, PACE_IO, "%s: cannot write: %s", file->path, strerror(errno));
    if (!status && rename(file->temporary, file->path) != 0)
        status = pace_fail(file->log, PACE_IO, "%s: cannot rename to %s: %s", file->temporary, file->path,
                           strerror(errno));
    if (status)
        unlink(file->temporary);
    close(file->fd);
    free(file->temporary);
    return status ? status : pace__sync_parent(file->path, file->log);
}

void pace__new_file_unlock(const pace__new_file *file)
{
    flock(file->fd, LOCK_UN);
}

void pace__new_file_lock(const pace__new_file *file)
{
    flock(file->fd, LOCK_EX | LOCK_NB);
}

bool pace__is_temporary_name(const char *name, size_t *stem)
{
    size_t size = strlen(name), tail = strlen(MIDDLE) + DIGITS;

    if (size <= tail || memcmp(name + size - tail, MIDDLE, strlen(MIDDLE)) != 0 ||
        strspn(name + size - DIGITS, "0123456789abcdef") != DIGITS)
        return false;
    *stem = size - tail;
    return true;
}

static void remove_if_left(const char *directory, const char *name)
{
    char why[PACE__WHY_BYTES], *path = pace__format("%s/%s", directory, name);
    int fd = path ? pace__try_open(path, PACE__TO_CHANGE, why) : -1;

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlink(path);
    if (fd >= 0)
        close(fd);
    free(path);
}

void pace__new_file_sweep(const char *path)
{
    const char *slash = strrchr(path, '/'), *own = slash ? slash + 1 : path;
    char *parent = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    DIR *listing = parent ? opendir(parent) : NULL;
    size_t stem;

    for (struct dirent *entry; listing && (entry = readdir(listing));) {
        if (pace__is_temporary_name(entry->d_name, &stem) && stem == strlen(own) &&
            memcmp(entry->d_name, own, stem) == 0)
            remove_if_left(parent, entry->d_name);
    }
    if (listing)
        closedir(listing);
    free(parent);
}
