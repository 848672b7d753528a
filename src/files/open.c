#include "files/open.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How long a request to stop, or a reader, may go unnoticed. */
#define LOOK_MS 50

/* O_NONBLOCK does nothing to regular files, and what is none does not make us wait. */
#define NO_WAIT (O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

static const int flags_of[PACE__OPEN_MODES] = {
    [PACE__TO_READ] = O_RDONLY | NO_WAIT,
    [PACE__TO_CHANGE] = O_RDWR | O_NOFOLLOW | NO_WAIT,
    [PACE__TO_CREATE] = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | NO_WAIT,
    [PACE__TO_APPEND] = O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | NO_WAIT,
    [PACE__TO_SHARE] = O_RDWR | O_CREAT | O_NOFOLLOW | NO_WAIT,
};

/* NULL: a regular file. */
static const char *kind_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return NULL;
    case S_IFDIR:
        return "a directory";
    case S_IFIFO:
        return "a pipe";
    case S_IFSOCK:
        return "a socket";
    case S_IFLNK:
        return "a link";
    default:
        return "a device";
    }
}

/* -1: `why` has the reason, from errno or from what is there instead of a file. */
static int refuse(const char *path, pace__open_mode mode, int error, char why[PACE__WHY_BYTES])
{
    struct stat info;
    bool found = (mode == PACE__TO_READ ? stat(path, &info) : lstat(path, &info)) == 0;
    const char *kind = found && error != EACCES ? kind_of(info.st_mode) : NULL;

    if (kind)
        snprintf(why, PACE__WHY_BYTES, "is %s, not a file", kind);
    else
        snprintf(why, PACE__WHY_BYTES, "cannot %s: %s%s", mode == PACE__TO_CREATE ? "create" : "open",
                 strerror(error), error == EMFILE ? " (raise ulimit -n)" : "");
    errno = kind ? ENOTSUP : error;
    return -1;
}

int pace__try_open(const char *path, pace__open_mode mode, char why[PACE__WHY_BYTES])
{
    struct stat info;

    if (mode == PACE__TO_CREATE)
        unlink(path);
    /* Looked at first: to open a pipe, even for a moment, lets a writer begin whom nobody will read. */
    if ((mode == PACE__TO_READ ? stat(path, &info) : lstat(path, &info)) == 0 && !S_ISREG(info.st_mode))
        return refuse(path, mode, ENOTSUP, why);
    int fd = open(path, flags_of[mode], 0666);

    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
        return fd;
    int error = errno;

    if (fd >= 0)
        close(fd);
    return refuse(path, mode, error, why);
}

static bool is_trouble(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO || error == ESTALE;
}

static pace_status fail(const char *path, pace__open_mode mode, const char *why, const pace_log *log)
{
    bool missing = mode == PACE__TO_READ && !is_trouble(errno);

    return pace_fail(log, missing ? PACE_NO_INPUT : PACE_IO, "%s: %s", path, why);
}

pace_status pace__open(const char *path, pace__open_mode mode, const pace_log *log, int *fd)
{
    char why[PACE__WHY_BYTES];
    int opened = pace__try_open(path, mode, why);

    if (opened < 0)
        return fail(path, mode, why, log);
    *fd = opened;
    return PACE_OK;
}

pace_status pace__open_stdio(const char *path, pace__open_mode mode, const pace_log *log, FILE **file)
{
    static const char *const words[] = {"r", "r+", "w+"};
    int fd = -1;

    assert(mode < sizeof words / sizeof *words);
    pace_status status = pace__open(path, mode, log, &fd);

    if (status)
        return status;
    FILE *opened = fdopen(fd, words[mode]);

    if (!opened) {
        close(fd);
        return pace_fail(log, PACE_FAILED, "%s: out of memory", path);
    }
    *file = opened;
    return PACE_OK;
}

int pace__open_directory(int parent, const char *name)
{
    return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* --- what can be read only once --- */

static pace_status look_at_stop(void *user)
{
    const _Atomic int *stop = user;

    return stop && *stop ? PACE_INTERRUPTED : PACE_OK;
}

pace__watch pace__watch_stop(const _Atomic int *stop)
{
    return (pace__watch){look_at_stop, (void *)(uintptr_t)stop};
}

pace_status pace__await_bytes(int fd, const pace__watch *watch)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    bool asks = watch && watch->look;
    pace_status status = PACE_OK;

    while (!(status = asks ? watch->look(watch->user) : PACE_OK)) {
        int ready = poll(&wait, 1, asks ? LOOK_MS : -1);

        if (ready > 0 || (ready < 0 && errno != EINTR)) /* what is wrong with it, read() will say */
            break;
    }
    return status;
}

/* Opened without waiting, a pipe that no writer has opened yet says nothing, and not that it has ended. */
static pace_status await_writer(int fd, const pace__watch *watch)
{
    pace_status status = pace__await_bytes(fd, watch);
    int flags = fcntl(fd, F_GETFL);

    fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    return status;
}

pace_status pace__open_stream(const char *path, const pace__watch *watch, const pace_log *log, int *fd)
{
    struct stat info;
    char why[PACE__WHY_BYTES];
    int opened = open(path, flags_of[PACE__TO_READ]);
    bool usable = opened >= 0 && fstat(opened, &info) == 0 && !S_ISDIR(info.st_mode);
    pace_status status = PACE_OK;

    if (!usable) {
        refuse(path, PACE__TO_READ, opened >= 0 ? EISDIR : errno, why);
        status = fail(path, PACE__TO_READ, why, log);
    } else if (!S_ISREG(info.st_mode)) {
        status = await_writer(opened, watch);
    }
    if (!status)
        *fd = opened;
    else if (opened >= 0)
        close(opened);
    return status;
}

/* O_NONBLOCK, since a pipe that nobody reads would be waited for without end; ENXIO says that of it, and of sockets. */
static int try_special(const char *path)
{
    struct stat info;
    int fd = open(path, O_WRONLY | NO_WAIT);

    if (fd < 0)
        return -1;
    int flags = fcntl(fd, F_GETFL);

    if (flags >= 0 && fstat(fd, &info) == 0 && !S_ISREG(info.st_mode) &&
        fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0)
        return fd;
    close(fd);
    errno = ENOTSUP;
    return -1;
}

pace_status pace__open_special(const char *path, const pace_log *log, int *fd)
{
    struct stat info = {0};
    uint64_t start_ns = pace__now_ns();
    bool is_pipe = stat(path, &info) == 0 && S_ISFIFO(info.st_mode);
    int opened = try_special(path);

    while (opened < 0 && errno == ENXIO && is_pipe && pace__seconds_since(start_ns) < PACE__READER_WAIT_S) {
        poll(NULL, 0, LOOK_MS);
        opened = try_special(path);
    }
    if (opened >= 0) {
        *fd = opened;
        return PACE_OK;
    }
    if (errno == ENXIO && is_pipe)
        return pace_fail(log, PACE_IO,
                         "%s: is a pipe that nobody reads: start its reader first, or name a file to write",
                         path);
    if (errno == ENXIO)
        return pace_fail(log, PACE_IO, "%s: is %s, not a file", path, kind_of(info.st_mode));
    return pace_fail(log, PACE_IO, "%s: cannot open for writing: %s", path, strerror(errno));
}
