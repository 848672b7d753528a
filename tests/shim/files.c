/*
 * files.c - a library to preload: disks that are slow, or fail.
 *
 *     LD_PRELOAD=.../libshim_files.so SHIM_FILES='fsync:model.safetensors:3s read:part-00001:EIO' paceline train ...
 *
 * SHIM_FILES is a list of CALL:NAME:WHAT, separated by spaces. CALL is fsync (fdatasync as well), read (pread as
 * well), write (pwrite as well), rename or exchange (renameat2); NAME is a part of the file's path (rename, exchange: of
 * its new path); WHAT is a time in seconds to wait before each such call, or the error that it fails with: EIO, ENOSPC,
 * EMFILE or EINVAL. CALL@BYTES is one of reads or writes of that many bytes at least.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static int error_number(const char *word)
{
    static const struct {
        const char *word;
        int number;
    } known[] = {{"EIO", EIO}, {"ENOSPC", ENOSPC}, {"EMFILE", EMFILE}, {"EINVAL", EINVAL}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(word, known[i].word) == 0) {
            return known[i].number;
        }
    }
    fprintf(stderr, "SHIM_FILES: %s is neither a time in seconds nor an error\n", word);
    abort();
}

/* Waits as the rule says; the error to fail with, or 0. */
static int obey(const char *what)
{
    char *end;
    double seconds = strtod(what, &end);

    if (end == what || strcmp(end, "s") != 0) {
        return error_number(what);
    }
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
    return 0;
}

/* Is `verb`, CALL or CALL@BYTES, about this call? */
static int is_about(char *verb, const char *call, size_t bytes)
{
    char *least = verb;

    return strcmp(strsep(&least, "@"), call) == 0 && (least == NULL || bytes >= strtoul(least, NULL, 10));
}

/* What the rules say about this call for this path: the error to fail with, or 0. */
static int rule_of(const char *call, const char *path, size_t bytes)
{
    const char *rules = getenv("SHIM_FILES");
    char copy[1024], *rest = copy, *rule;

    if (rules == NULL || (size_t)snprintf(copy, sizeof copy, "%s", rules) >= sizeof copy) {
        return 0;
    }
    while ((rule = strsep(&rest, " ")) != NULL) {
        char *verb = strsep(&rule, ":");
        const char *name = strsep(&rule, ":");

        if (rule != NULL && strstr(path, name) != NULL && is_about(verb, call, bytes)) {
            return obey(rule);
        }
    }
    return 0;
}

static int rule_of_open(const char *call, int fd, size_t bytes)
{
    char link[64], path[PATH_MAX];

    if (getenv("SHIM_FILES") == NULL) {
        return 0;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) {
        return 0;
    }
    path[length] = '\0';
    return rule_of(call, path, bytes);
}

#define UNLESS(error)                                                                                        \
    do {                                                                                                     \
        int number = error;                                                                                  \
        if (number != 0) {                                                                                   \
            errno = number;                                                                                  \
            return -1;                                                                                       \
        }                                                                                                    \
    } while (0)

#define REAL(result, name, ...)                                                                              \
    static result (*real)(__VA_ARGS__);                                                                      \
    if (real == NULL) {                                                                                      \
        *(void **)&real = dlsym(RTLD_NEXT, name);                                                            \
    }

int fsync(int fd)
{
    REAL(int, "fsync", int)
    UNLESS(rule_of_open("fsync", fd, 0));
    return real(fd);
}

int fdatasync(int fd)
{
    REAL(int, "fdatasync", int)
    UNLESS(rule_of_open("fsync", fd, 0));
    return real(fd);
}

ssize_t read(int fd, void *bytes, size_t count)
{
    REAL(ssize_t, "read", int, void *, size_t)
    UNLESS(rule_of_open("read", fd, count));
    return real(fd, bytes, count);
}

ssize_t pread(int fd, void *bytes, size_t count, off_t at)
{
    REAL(ssize_t, "pread", int, void *, size_t, off_t)
    UNLESS(rule_of_open("read", fd, count));
    return real(fd, bytes, count, at);
}

ssize_t pread64(int fd, void *bytes, size_t count, off64_t at)
{
    REAL(ssize_t, "pread64", int, void *, size_t, off64_t)
    UNLESS(rule_of_open("read", fd, count));
    return real(fd, bytes, count, at);
}

ssize_t write(int fd, const void *bytes, size_t count)
{
    REAL(ssize_t, "write", int, const void *, size_t)
    UNLESS(rule_of_open("write", fd, count));
    return real(fd, bytes, count);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at)
{
    REAL(ssize_t, "pwrite", int, const void *, size_t, off_t)
    UNLESS(rule_of_open("write", fd, count));
    return real(fd, bytes, count, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at)
{
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t)
    UNLESS(rule_of_open("write", fd, count));
    return real(fd, bytes, count, at);
}

int renameat2(int from_parent, const char *from, int to_parent, const char *to, unsigned flags)
{
    REAL(int, "renameat2", int, const char *, int, const char *, unsigned)
    UNLESS(rule_of("exchange", to, 0));
    return real(from_parent, from, to_parent, to, flags);
}

int rename(const char *from, const char *to)
{
    REAL(int, "rename", const char *, const char *)
    UNLESS(rule_of("rename", to, 0));
    return real(from, to);
}
