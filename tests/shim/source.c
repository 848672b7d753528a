/*
 * source.c - a library to preload: a directory that is read over one slow link, which all processes share.
 *
 *     LD_PRELOAD=.../libshim_source.so SHIM_SOURCE=/far/data SHIM_SOURCE_RATE=25e6 SHIM_SOURCE_CLOCK=/far/clock \
 *         paceline train --data /far/data ...
 *
 * Reads of files below SHIM_SOURCE together get SHIM_SOURCE_RATE bytes a second, whoever reads: the file SHIM_SOURCE_CLOCK,
 * which all map, holds the time until which the link is taken. A read takes it piece by piece, so that a long one does not
 * keep out a short one. Nothing is remembered: what is read again travels again, as if the data were much larger than
 * memory, and asking ahead (posix_fadvise) gets nothing. The files are said to be on NFS, so they are not mapped.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define PIECE     65536
#define NFS_MAGIC 0x6969

static _Atomic uint64_t *taken_until; /* ns; NULL: there is no such link here */
static const char *source;
static double rate;

__attribute__((constructor)) static void open_clock(void)
{
    const char *path = getenv("SHIM_SOURCE_CLOCK"), *words = getenv("SHIM_SOURCE_RATE");
    int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;

    source = getenv("SHIM_SOURCE");
    rate = words ? strtod(words, NULL) : 0;
    if (fd < 0 || !source || !(rate > 0) || ftruncate(fd, sizeof *taken_until) != 0)
        return;
    void *memory = mmap(NULL, sizeof *taken_until, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    taken_until = memory == MAP_FAILED ? NULL : memory;
    close(fd);
}

static int is_far(int fd)
{
    char link[64], path[PATH_MAX];
    size_t size = source ? strlen(source) : 0;

    if (!taken_until)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);

    return length > (ssize_t)size && memcmp(path, source, size) == 0 && path[size] == '/';
}

static void travel(size_t bytes)
{
    struct timespec now;
    uint64_t before = atomic_load(taken_until), now_ns, until;

    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
        now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
        until = (before > now_ns ? before : now_ns) + (uint64_t)((double)bytes * 1e9 / rate);
    } while (!atomic_compare_exchange_weak(taken_until, &before, until));
    struct timespec at = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {
    }
}

static void travel_if_far(int fd, ssize_t bytes)
{
    if (bytes <= 0 || !is_far(fd))
        return;
    for (; bytes > 0; bytes -= PIECE)
        travel(bytes < PIECE ? (size_t)bytes : PIECE);
}

#define REAL(result, name, ...)                                                                              \
    static result (*real)(__VA_ARGS__);                                                                      \
    if (real == NULL)                                                                                        \
        *(void **)&real = dlsym(RTLD_NEXT, name);

ssize_t read(int fd, void *bytes, size_t count)
{
    REAL(ssize_t, "read", int, void *, size_t)
    ssize_t done = real(fd, bytes, count);

    travel_if_far(fd, done);
    return done;
}

ssize_t pread(int fd, void *bytes, size_t count, off_t at)
{
    REAL(ssize_t, "pread", int, void *, size_t, off_t)
    ssize_t done = real(fd, bytes, count, at);

    travel_if_far(fd, done);
    return done;
}

ssize_t pread64(int fd, void *bytes, size_t count, off64_t at)
{
    REAL(ssize_t, "pread64", int, void *, size_t, off64_t)
    ssize_t done = real(fd, bytes, count, at);

    travel_if_far(fd, done);
    return done;
}

int fstatfs(int fd, struct statfs *status)
{
    REAL(int, "fstatfs", int, struct statfs *)
    int result = real(fd, status);

    if (result == 0 && is_far(fd))
        status->f_type = NFS_MAGIC;
    return result;
}
