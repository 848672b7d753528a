#include "data/stage/stage_files.h"

#include "files/file.h"
#include "files/new_file.h"
#include "files/open.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define PREFIX "part-"
#define SUFFIX ".h5"
#define DIGITS 32
#define NAME   (sizeof PREFIX - 1 + DIGITS + sizeof SUFFIX - 1)
#define LOCK   "lock"

char *pace__stage_directory(const char *parent)
{
    return pace__format("%s/paceline-stage-%lu", parent, (unsigned long)geteuid());
}

char *pace__stage_copy_path(const char *directory, const char *name)
{
    return pace__format("%s/" PREFIX "%s" SUFFIX, directory, name);
}

/* Invariant 3, of the first `size` bytes of a name. */
static bool is_copy_name(const char *name, size_t size)
{
    return size == NAME && memcmp(name, PREFIX, strlen(PREFIX)) == 0 &&
           strspn(name + strlen(PREFIX), "0123456789abcdef") == DIGITS &&
           memcmp(name + NAME - strlen(SUFFIX), SUFFIX, strlen(SUFFIX)) == 0;
}

/* DIR is not made: where a disk is not mounted, its copies would fill another one. */
pace_status pace__stage_make(const char *parent, const char *directory, bool dry, const pace_log *log)
{
    struct stat info;

    if (stat(parent, &info) != 0 || !S_ISDIR(info.st_mode))
        return pace_fail(log, PACE_IO, "%s: no such directory", parent);
    if (!dry && mkdir(directory, 0700) != 0 && errno != EEXIST)
        return pace_fail(log, PACE_IO, "%s: cannot make the directory: %s", directory, strerror(errno));
    bool there = lstat(directory, &info) == 0;

    if (there ? !S_ISDIR(info.st_mode) || info.st_uid != geteuid() : !dry)
        return pace_fail(log, PACE_IO, "%s: is a link, a file or another user's", directory);
    const char *place = there ? directory : parent;

    if (access(place, R_OK | W_OK | X_OK) != 0)
        return pace_fail(log, PACE_IO, "%s: cannot write: %s", place, strerror(errno));
    return PACE_OK;
}

/* A file that lost its name meanwhile is no lock: whoever comes next makes another one. */
static bool has_name(int fd)
{
    struct stat info;

    return fstat(fd, &info) == 0 && info.st_nlink > 0;
}

pace_status pace__stage_lock(const char *directory, const pace_log *log, int *fd)
{
    char *path = pace__format("%s/" LOCK, directory);
    pace_status status = path ? PACE_OK : pace_fail(log, PACE_IO, "out of memory");
    int opened = -1;

    if (!status)
        status = pace__open(path, PACE__TO_SHARE, log, &opened);
    if (status && path &&
        access(directory, F_OK) != 0) { /* somebody has just cleaned up: the next look makes it again */
        *fd = -1;
        free(path);
        return PACE_OK;
    }
    bool locked = !status && flock(opened, LOCK_EX | LOCK_NB) == 0;

    if (!status && !locked && errno != EWOULDBLOCK)
        status = pace_fail(log, PACE_IO, "%s: cannot be locked: %s", path, strerror(errno));
    if (opened >= 0 && !(locked && has_name(opened))) {
        close(opened);
        opened = -1;
    }
    *fd = opened;
    free(path);
    return status;
}

/* --- copies --- */

static bool is_copy(const struct stat *info, uint64_t bytes)
{
    return S_ISREG(info->st_mode) && info->st_uid == geteuid() && (uint64_t)info->st_size == bytes;
}

bool pace__stage_has_copy(const char *path, uint64_t bytes)
{
    struct stat info;

    return lstat(path, &info) == 0 && is_copy(&info, bytes);
}

/* The time of its last use is for who has to make room. That of its last change stays: readers go by it. */
static void note_use(int fd)
{
    futimens(fd, (struct timespec[2]){{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}});
}

int pace__stage_open_copy(const char *path, uint64_t bytes)
{
    char why[PACE__WHY_BYTES];
    int fd = pace__stage_has_copy(path, bytes) ? pace__try_open(path, PACE__TO_READ, why) : -1;

    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_SH | LOCK_NB) != 0 || !has_name(fd)) {
        close(fd);
        return -1;
    }
    note_use(fd);
    return fd;
}

static bool is_same(const char *path, int fd)
{
    struct stat named, open;

    return lstat(path, &named) == 0 && fstat(fd, &open) == 0 && S_ISREG(named.st_mode) &&
           named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

/* It is not opened for writing: that would take their lease from those who have mapped it (mapped.h). */
bool pace__stage_remove(const char *path)
{
    char why[PACE__WHY_BYTES];
    int fd = pace__try_open(path, PACE__TO_READ, why);
    bool removed = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && is_same(path, fd) && unlink(path) == 0;

    if (fd >= 0)
        close(fd);
    return removed;
}

bool pace__stage_remove_damaged(const char *path, int fd)
{
    return is_same(path, fd) && unlink(path) == 0;
}

void pace__stage_remove_directory(const char *directory)
{
    char *path = pace__format("%s/" LOCK, directory);
    pace__stage_list list;
    int lock = -1;

    if (path)
        pace__stage_lock(directory, NULL, &lock);
    if (lock >= 0 && pace__stage_scan(directory, true, &list)) {
        if (list.count == 0 && list.bytes == 0 && unlink(path) == 0)
            rmdir(directory);
        pace__stage_list_release(&list);
    }
    if (lock >= 0)
        close(lock);
    free(path);
}

/* --- all of them --- */

void pace__stage_list_release(pace__stage_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        free(list->paths[i]);
    free(list->paths);
    free(list->files);
    *list = (pace__stage_list){0};
}

static bool add_file(pace__stage_list *list, char *path, const struct stat *info)
{
    size_t room = list->count + 1;
    pace__stage_file *files = realloc(list->files, room * sizeof *files);

    list->files = files ? files : list->files;
    char **paths = files ? realloc(list->paths, room * sizeof *paths) : NULL;

    list->paths = paths ? paths : list->paths;
    if (!paths)
        return false;
    files[list->count] =
        (pace__stage_file){.bytes = (uint64_t)info->st_size, .used_s = (int64_t)info->st_atim.tv_sec};
    paths[list->count++] = path;
    return true;
}

/* One entry of the directory. False: out of memory. */
static bool look_at(const char *directory, const char *name, bool sweep, pace__stage_list *list)
{
    size_t stem = strlen(name);
    bool temporary = pace__is_temporary_name(name, &stem);
    struct stat info;

    if (!is_copy_name(name, stem))
        return true;
    char *path = pace__format("%s/%s", directory, name),
         *whole = path ? strndup(path, strlen(directory) + 1 + stem) : NULL;
    bool ok = whole != NULL;

    if (ok && temporary && sweep)
        pace__new_file_sweep(whole);
    bool there = ok && lstat(path, &info) == 0 && S_ISREG(info.st_mode);

    list->bytes += there ? (uint64_t)info.st_size : 0;
    if (there && !temporary && (ok = add_file(list, path, &info)))
        path = NULL; /* the list has it */
    free(whole);
    free(path);
    return ok;
}

bool pace__stage_scan(const char *directory, bool sweep, pace__stage_list *list)
{
    DIR *listing = opendir(directory);
    bool ok = true;

    *list = (pace__stage_list){0};
    for (struct dirent *entry; listing && ok && (entry = readdir(listing));)
        ok = look_at(directory, entry->d_name, sweep, list);
    if (listing)
        closedir(listing);
    if (!ok)
        pace__stage_list_release(list);
    return ok;
}

uint64_t pace__stage_list_bytes(const pace__stage_list *list)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < list->count; i++)
        bytes += list->files[i].bytes;
    return bytes;
}

/* --- room --- */

static int by_path(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

void pace__stage_sort(char **paths, uint32_t count)
{
    qsort(paths, count, sizeof *paths, by_path);
}

static void forget_own(const pace__stage_place *place, pace__stage_list *list)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < list->count; i++) {
        if (bsearch(&list->paths[i], place->own, place->own_count, sizeof *place->own, by_path)) {
            free(list->paths[i]);
            continue;
        }
        list->paths[kept] = list->paths[i];
        list->files[kept++] = list->files[i];
    }
    list->count = kept;
}

bool pace__stage_look(const pace__stage_place *place, bool sweep, uint64_t *room, pace__stage_list *others)
{
    struct statvfs disk;

    if (statvfs(pace__exists(place->directory) ? place->directory : place->parent, &disk) != 0 ||
        !pace__stage_scan(place->directory, sweep, others))
        return false;
    *room = pace__stage_room(&(pace__stage_disk){.bytes_max = place->bytes_max,
                                                 .used = others->bytes,
                                                 .free = (uint64_t)disk.f_bavail * disk.f_frsize,
                                                 .size = (uint64_t)disk.f_blocks * disk.f_frsize});
    forget_own(place, others);
    return true;
}

void pace__stage_make_room(pace__stage_list *others, uint64_t room, uint64_t bytes)
{
    if (!pace__stage_evict(others->files, others->count, room, bytes))
        return;
    for (uint32_t i = 0; i < others->count; i++) {
        if (others->files[i].leaves)
            pace__stage_remove(others->paths[i]);
    }
}
