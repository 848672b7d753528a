/*
 * The directories of checkpoints: made, completed, listed, removed.
 *
 *     none       -> begun      begin: an empty directory
 *     begun      -> begun      holders write their parts
 *     begun      -> complete   commit: all parts are there, and then the manifest
 *     complete   -> begun      removal, or begin for the same step again: the manifest goes first
 *     begun      -> none       discard, prune: the parts, then the directory
 *
 * 1. A directory with a manifest is complete: every part that the manifest names is there and does not change.
 *    So the manifest comes last, when the parts and the directory itself are on disk, and goes first, which is
 *    on disk, too, before the first part goes. Wherever the machine stops, what has a manifest is whole.
 * 2. Names are spelled in one way: what was found is called by the same name again, and a step and an
 *    incarnation have one directory.
 * 3. Lists are newest first, by step and then by incarnation.
 * 4. Pruning spares the one just written, whatever `keep` says, and the best of each that stays; it never
 *    touches what somebody else may be writing: later incarnations, and later steps of this one.
 * 5. Only files that a checkpoint can have are removed; with anything else in it, a directory stays.
 */
#include "checkpoint/internal.h"
#include "files/file.h"
#include "files/new_file.h"
#include "files/open.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_FORMAT  "step-%012" PRIu64 ".%04" PRIu64
#define OWN_NAME_MAX 80 /* with "/manifest.json" */

/* --- names --- */

/* True for names that NAME_FORMAT can have made, and no others. */
static bool parse_name(const char *name, uint64_t *step, uint64_t *incarnation)
{
    char again[OWN_NAME_MAX];

    if (sscanf(name, "step-%12" SCNu64 ".%16" SCNu64, step, incarnation) != 2)
        return false;
    snprintf(again, sizeof again, NAME_FORMAT, *step, *incarnation);
    return strcmp(name, again) == 0;
}

static bool is_part_name(const char *name)
{
    char again[PACE__PART_NAME_MAX];
    unsigned part, parts;

    if (sscanf(name, "part-%5u-of-%5u.", &part, &parts) != 2 || part >= parts ||
        parts > PACE__CHECKPOINT_PARTS_MAX)
        return false;
    pace__part_name(part, parts, again);
    return strcmp(name, again) == 0;
}

/* A file of a checkpoint, or what it is called before it is whole. */
static bool is_own_file(const char *name)
{
    char stem[OWN_NAME_MAX];
    size_t length = strlen(name);

    pace__is_temporary_name(name, &length);
    if (length >= sizeof stem)
        return false;
    memcpy(stem, name, length);
    stem[length] = '\0';
    return strcmp(stem, PACE__MANIFEST_NAME) == 0 || is_part_name(stem);
}

/* --- removing --- */

/* Takes over `fd`, an open directory. */
static void remove_files(int fd)
{
    DIR *listing = fdopendir(fd);

    if (!listing) {
        close(fd);
        return;
    }
    bool had_manifest = unlinkat(fd, PACE__MANIFEST_NAME, 0) == 0;
    bool has_none = had_manifest || errno == ENOENT;

    if (had_manifest) /* invariant 1 */
        fsync(fd);
    for (struct dirent *entry; has_none && (entry = readdir(listing));) {
        if (is_own_file(entry->d_name))
            unlinkat(fd, entry->d_name, 0);
    }
    closedir(listing);
}

/* Below the directory `parent` (AT_FDCWD for any path). Something that is not ours in it makes it stay. */
static void remove_directory(int parent, const char *name)
{
    int fd = pace__open_directory(parent, name);

    if (fd < 0)
        return;
    remove_files(fd);
    unlinkat(parent, name, AT_REMOVEDIR);
}

void pace__checkpoint_discard(const char *directory)
{
    remove_directory(AT_FDCWD, directory);
}

/* --- writing --- */

/* One that stayed would vouch for parts that are about to be replaced. */
static pace_status check_no_manifest(const char *directory, const pace_log *log)
{
    char *path = pace__format("%s/" PACE__MANIFEST_NAME, directory);
    pace_status status = PACE_OK;

    if (!path)
        status = pace_fail(log, PACE_FAILED, "out of memory");
    else if (pace__exists(path))
        status = pace_fail(log, PACE_IO, "%s: cannot be removed", path);
    free(path);
    return status;
}

pace_status pace__checkpoint_begin(const char *root, uint64_t step, uint64_t incarnation, const pace_log *log,
                                   char **path)
{
    assert(step <= PACE__CHECKPOINT_STEP_MAX && incarnation <= PACE__MANIFEST_INTEGER_MAX);
    char *directory = pace__format("%s/" NAME_FORMAT, root, step, incarnation);
    pace_status status = PACE_OK;

    if (!directory)
        return pace_fail(log, PACE_FAILED, "out of memory");
    remove_directory(AT_FDCWD, directory);
    status = pace__make_own_dir(directory, log);
    if (!status)
        status = check_no_manifest(directory, log);
    if (status)
        free(directory);
    else
        *path = directory;
    return status;
}

static pace_status check_parts(const char *directory, const pace__manifest *manifest, const pace_log *log)
{
    for (unsigned part = 0; part < manifest->parts; part++) {
        const pace__part_record *record = &manifest->part[part];
        char *path = pace__format("%s/%s", directory, record->name);
        struct stat info;
        pace_status status = PACE_OK;

        if (!path)
            status = pace_fail(log, PACE_FAILED, "out of memory");
        else if (stat(path, &info) != 0)
            status = pace_fail(log, PACE_IO,
                               "%s: was written, but cannot be found: %s; do all hosts see"
                               " the same directory?",
                               path, strerror(errno));
        else if ((uint64_t)info.st_size != record->bytes)
            status = pace_fail(log, PACE_IO, "%s: has %lld bytes, but %" PRIu64 " were written", path,
                               (long long)info.st_size, record->bytes);
        free(path);
        if (status)
            return status;
    }
    return PACE_OK;
}

/* That there is such a directory, and one for all of them. */
static pace_status sync_names(const char *directory, const pace_log *log)
{
    char *root = strdup(directory), *slash = root ? strrchr(root, '/') : NULL;
    pace_status status = pace__sync_parent(directory, log);

    if (slash && slash > root) {
        *slash = '\0';
        if (!status)
            status = pace__sync_parent(root, log);
    }
    free(root);
    return status;
}

pace_status pace__checkpoint_commit(const char *directory, const pace__manifest *manifest,
                                    const pace_log *log)
{
    assert(manifest->parts > 0 && manifest->part);
    pace_status status = check_parts(directory, manifest, log);
    size_t size = 0;

    if (!status) /* the directory itself; its beginning had no time for that */
        status = sync_names(directory, log);
    if (status)
        return status;
    char *path = pace__format("%s/" PACE__MANIFEST_NAME, directory);
    char *text = pace__manifest_text(manifest, &size);

    status = path && text ? pace__write_file_atomically(path, text, size, log)
                          : pace_fail(log, PACE_FAILED, "out of memory");
    if (status && path)
        unlink(path); /* it may be there already when the directory cannot be synced */
    free(text);
    free(path);
    return status;
}

/* --- listing --- */

typedef struct found {
    uint64_t step, incarnation;
    bool complete; /* it has a manifest */
} found;

typedef struct finds {
    found *item;
    size_t count, room;
} finds;

static bool add(finds *all, found one)
{
    if (all->count == all->room) {
        size_t room = all->room ? 2 * all->room : 16;
        found *grown = realloc(all->item, room * sizeof *grown);

        if (!grown)
            return false;
        all->item = grown;
        all->room = room;
    }
    all->item[all->count++] = one;
    return true;
}

/* Only a manifest that is certainly not there makes it incomplete: any other trouble is for who reads it. */
static bool has_manifest(int root, const found *one)
{
    char path[OWN_NAME_MAX];
    struct stat info;

    int length =
        snprintf(path, sizeof path, NAME_FORMAT "/" PACE__MANIFEST_NAME, one->step, one->incarnation);

    assert(length > 0 && (size_t)length < sizeof path);
    return fstatat(root, path, &info, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

static bool is_directory(int root, const char *name)
{
    struct stat info;

    return fstatat(root, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode);
}

static int newest_first(const void *left, const void *right)
{
    const found *a = left, *b = right;

    if (a->step != b->step)
        return a->step < b->step ? 1 : -1;
    return (a->incarnation < b->incarnation) - (a->incarnation > b->incarnation);
}

/* 0, or an error number. */
static int find_all(DIR *listing, finds *all)
{
    for (;;) {
        found one;

        errno = 0;
        struct dirent *entry = readdir(listing);

        if (!entry)
            break;
        if (!parse_name(entry->d_name, &one.step, &one.incarnation) ||
            !is_directory(dirfd(listing), entry->d_name))
            continue;
        one.complete = has_manifest(dirfd(listing), &one);
        if (!add(all, one))
            return ENOMEM;
    }
    int error = errno;

    if (!error && all->count > 0)
        qsort(all->item, all->count, sizeof *all->item, newest_first);
    return error;
}

/* Newest first, with the unfinished ones; all->item is to be freed. */
static pace_status find(const char *root, const pace_log *log, finds *all)
{
    DIR *listing = opendir(root);

    *all = (finds){0};
    if (!listing && errno == ENOENT)
        return PACE_OK;
    int error = listing ? find_all(listing, all) : errno;

    if (listing)
        closedir(listing);
    if (!error)
        return PACE_OK;
    free(all->item);
    *all = (finds){0};
    return pace_fail(log, error == ENOMEM ? PACE_FAILED : PACE_IO, "%s: cannot list the directory: %s", root,
                     strerror(error));
}

void pace__checkpoint_list_free(pace__checkpoint_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(entries[i].path);
    free(entries);
}

/* The complete ones; false when out of memory. */
static bool make_entries(const char *root, const finds *all, pace__checkpoint_entry *list, size_t *complete)
{
    for (size_t i = 0; i < all->count; i++) {
        const found *each = &all->item[i];
        pace__checkpoint_entry *entry = &list[*complete];

        if (!each->complete)
            continue;
        *entry =
            (pace__checkpoint_entry){each->step, each->incarnation,
                                     pace__format("%s/" NAME_FORMAT, root, each->step, each->incarnation)};
        if (!entry->path)
            return false;
        ++*complete;
    }
    return true;
}

pace_status pace__checkpoint_list(const char *root, const pace_log *log, pace__checkpoint_entry **entries,
                                  size_t *count, size_t *unfinished)
{
    finds all;
    pace_status status = find(root, log, &all);
    size_t complete = 0;

    if (status)
        return status;
    pace__checkpoint_entry *list = calloc(all.count + 1, sizeof *list);

    if (!list || !make_entries(root, &all, list, &complete)) {
        pace__checkpoint_list_free(list, complete);
        free(all.item);
        return pace_fail(log, PACE_FAILED, "out of memory");
    }
    *entries = list;
    *count = complete;
    if (unfinished)
        *unfinished = all.count - complete;
    free(all.item);
    return PACE_OK;
}

pace_status pace__checkpoint_names(const char *root, const pace_log *log, uint64_t *step,
                                   uint64_t *incarnation, size_t *count)
{
    finds all;
    pace_status status = find(root, log, &all);

    *step = *incarnation = *count = 0;
    if (status)
        return status;
    for (size_t i = 0; i < all.count; i++) {
        if (all.item[i].incarnation > *incarnation)
            *incarnation = all.item[i].incarnation;
    }
    *step = all.count > 0 ? all.item[0].step : 0; /* invariant 3 */
    *count = all.count;
    free(all.item);
    return PACE_OK;
}

pace_status pace__checkpoint_remove_all(const char *root, const pace_log *log)
{
    int fd = pace__open_directory(AT_FDCWD, root);
    finds all = {0};
    pace_status status = fd < 0 ? pace_fail(log, PACE_IO, "%s: cannot open: %s", root, strerror(errno))
                                : find(root, log, &all);

    for (size_t i = 0; i < all.count && !status; i++) {
        char name[OWN_NAME_MAX];

        snprintf(name, sizeof name, NAME_FORMAT, all.item[i].step, all.item[i].incarnation);
        remove_directory(fd, name);
        if (has_manifest(fd, &all.item[i]))
            status = pace_fail(log, PACE_IO, "%s/%s: cannot be removed", root, name);
    }
    free(all.item);
    if (fd >= 0)
        close(fd);
    return status;
}

/* --- pruning --- */

/* Which of all, newest first, go when (step, incarnation) was written. */
static void choose(const finds *all, unsigned keep, uint64_t step, uint64_t incarnation, bool *goes)
{
    uint64_t last_step = UINT64_MAX;
    unsigned kept = 0;

    for (size_t i = 0; i < all->count; i++) {
        const found *each = &all->item[i];

        assert(i == 0 || newest_first(each - 1, each) <= 0); /* invariant 3 */
        goes[i] = false;
        if (each->incarnation > incarnation || (each->incarnation == incarnation && each->step > step))
            continue; /* somebody else's now, or under way */
        goes[i] = true;
        if (each->step > step || !each->complete || each->step == last_step)
            continue;
        last_step = each->step;
        bool current = each->step == step && each->incarnation == incarnation;

        goes[i] = kept >= keep && !current; /* invariant 4 */
        kept++;
    }
}

/* The step that a checkpoint names as its best; 0: none, or it cannot be read, which is told when it is needed. */
static uint64_t best_of(const char *root, const found *each)
{
    char *path = pace__format("%s/" NAME_FORMAT, root, each->step, each->incarnation);
    pace__manifest manifest = {0};
    bool read = path && pace__manifest_read(path, NULL, &manifest) == PACE_OK;
    uint64_t best = read ? manifest.position.best_step : 0;

    if (read)
        pace__manifest_release(&manifest);
    free(path);
    return best;
}

/* The newest one of that step, if it is whole. */
static void spare(const finds *all, uint64_t step, bool *goes)
{
    for (size_t i = 0; i < all->count; i++) {
        if (all->item[i].step == step && all->item[i].complete) {
            goes[i] = false;
            return;
        }
    }
}

/* Those that go are few, and none where runs keep no best: then no manifest is read. */
static void spare_best(const char *root, const finds *all, bool *goes)
{
    bool *stays = calloc(all->count + 1, sizeof *stays), any = false;

    for (size_t i = 0; i < all->count; i++) {
        any |= goes[i] && all->item[i].complete;
        if (stays)
            stays[i] = !goes[i] && all->item[i].complete;
    }
    for (size_t i = 0; i < all->count && any; i++) {
        uint64_t best = !stays || stays[i] ? best_of(root, &all->item[i]) : 0;

        if (best > 0)
            spare(all, best, goes);
    }
    free(stays);
}

void pace__checkpoint_prune(const char *root, unsigned keep, uint64_t step, uint64_t incarnation)
{
    int fd = pace__open_directory(AT_FDCWD, root);
    finds all = {0};
    bool *goes = NULL;

    if (fd < 0 || find(root, NULL, &all) != PACE_OK)
        goto done;
    goes = calloc(all.count + 1, sizeof *goes);
    if (!goes)
        goto done;
    choose(&all, keep, step, incarnation, goes);
    spare_best(root, &all, goes);
    for (size_t i = 0; i < all.count; i++) {
        char name[OWN_NAME_MAX];

        snprintf(name, sizeof name, NAME_FORMAT, all.item[i].step, all.item[i].incarnation);
        if (goes[i])
            remove_directory(fd, name);
    }
done:
    free(goes);
    free(all.item);
    if (fd >= 0)
        close(fd);
}
