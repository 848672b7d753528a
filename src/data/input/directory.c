#include "data/input/directory.h"

#include "files/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int by_name(const void *left, const void *right)
{
    return strcmp(((const pace__dir_entry *)left)->name, ((const pace__dir_entry *)right)->name);
}

void pace__dir_release(pace__dir_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].name);
    free(list->items);
    *list = (pace__dir_list){0};
}

/* Some file systems do not tell what an entry is. */
static pace__dir_entry look_up(DIR *directory, const struct dirent *entry)
{
    pace__dir_entry found = {.file = entry->d_type == DT_REG,
                             .directory = entry->d_type == DT_DIR,
                             .link = entry->d_type == DT_LNK};
    struct stat info;

    if (entry->d_type == DT_UNKNOWN)
        found.link = fstatat(dirfd(directory), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                     S_ISLNK(info.st_mode);
    if ((entry->d_type == DT_UNKNOWN || found.link) &&
        fstatat(dirfd(directory), entry->d_name, &info, 0) == 0) {
        found.file = S_ISREG(info.st_mode);
        found.directory = S_ISDIR(info.st_mode);
    }
    return found;
}

/* False when out of memory. */
static bool add_entry(pace__dir_list *list, size_t *room, DIR *directory, const struct dirent *entry)
{
    pace__dir_entry found = look_up(directory, entry);

    if (list->count == *room) {
        size_t wanted = *room > 0 ? 2 * *room : 64;
        pace__dir_entry *items = realloc(list->items, wanted * sizeof *items);

        if (!items)
            return false;
        list->items = items;
        *room = wanted;
    }
    found.name = strdup(entry->d_name);
    if (found.name)
        list->items[list->count++] = found;
    return found.name != NULL;
}

pace_status pace__dir_read(const char *path, const pace_log *log, pace__dir_list *list)
{
    DIR *directory = opendir(path);
    pace_status status = PACE_OK;
    size_t room = 0;

    *list = (pace__dir_list){0};
    if (!directory)
        return pace_fail(log, PACE_NO_INPUT, "%s: cannot open: %s", path, strerror(errno));
    errno = 0;
    for (struct dirent *entry; !status && (entry = readdir(directory)); errno = 0) {
        if (pace__is_dots(entry->d_name))
            continue;
        if (entry->d_name[0] == '.')
            list->hidden++;
        else if (!add_entry(list, &room, directory, entry))
            status = pace_fail(log, PACE_FAILED, "out of memory for the names in %s", path);
    }
    if (!status && errno)
        status = pace_fail(log, PACE_IO, "%s: cannot read: %s", path, strerror(errno));
    closedir(directory);
    if (status)
        pace__dir_release(list);
    else if (list->count > 0)
        qsort(list->items, list->count, sizeof *list->items, by_name);
    return status;
}
