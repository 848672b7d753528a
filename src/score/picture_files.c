#include "score/picture_files.h"

#include "data/picture/pictures.h"
#include "data/store/store.h"
#include "files/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void pace__picture_files_release(pace__picture_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->paths[i]);
    free(files->paths);
    free(files->example);
    *files = (pace__picture_files){0};
}

/* Takes over `path`, which may be NULL when there was no memory for it. */
static pace_status add_file(pace__picture_files *files, char *path, const pace_log *log)
{
    size_t room = files->room ? 2 * files->room : 64;
    char **paths = files->count < files->room ? files->paths : realloc(files->paths, room * sizeof *paths);

    if (paths && files->count == files->room)
        files->room = room;
    if (paths)
        files->paths = paths;
    if (!path || !paths) {
        free(path);
        return pace_fail(log, PACE_FAILED, "out of memory for the names of %zu files", files->count);
    }
    files->paths[files->count++] = path;
    return PACE_OK;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Not alphasort, which goes by the locale. */
static int by_name(const struct dirent **left, const struct dirent **right)
{
    return strcmp((*left)->d_name, (*right)->d_name);
}

static pace_status add_folder(pace__picture_files *files, const char *path, int depth, const pace_log *log);

/* Takes over `path`. */
static pace_status skip(pace__picture_files *files, char *path)
{
    if (files->skipped++ == 0)
        files->example = path;
    else
        free(path);
    return PACE_OK;
}

/* Takes over `path`. Links are followed; what is neither file nor folder is left out. */
static pace_status add_entry(pace__picture_files *files, char *path, int depth, const pace_log *log)
{
    struct stat info;

    if (!path)
        return add_file(files, NULL, log);
    bool exists = stat(path, &info) == 0;

    if (!exists || S_ISREG(info.st_mode)) /* a link that leads nowhere is one that cannot be read */
        return pace__is_picture_name(path) ? add_file(files, path, log) : skip(files, path);
    pace_status status = S_ISDIR(info.st_mode) ? add_folder(files, path, depth + 1, log) : PACE_OK;

    free(path);
    return status;
}

static pace_status add_folder(pace__picture_files *files, const char *path, int depth, const pace_log *log)
{
    struct dirent **entries;
    pace_status status = PACE_OK;

    if (depth > PACE__FOLDERS_DEEP_MAX)
        return pace_fail(log, PACE_BAD_DATA, "%s: more than %d folders deep: a link that leads back?", path,
                         PACE__FOLDERS_DEEP_MAX);
    if (pace__is_store(path))
        return pace_fail(log, PACE_USAGE, "%s: a data set: paceline eval scores it; predict takes pictures",
                         path);
    int count = scandir(path, &entries, is_visible, by_name);

    if (count < 0)
        return pace_fail(log, PACE_NO_INPUT, "%s: cannot open: %s", path, strerror(errno));
    for (int i = 0; i < count; i++) {
        size_t length = strlen(path);
        const char *slash = length > 0 && path[length - 1] == '/' ? "" : "/";

        if (!status)
            status = add_entry(files, pace__format("%s%s%s", path, slash, entries[i]->d_name), depth, log);
        free(entries[i]);
    }
    free(entries);
    return status;
}

static pace_status add_word(pace__picture_files *files, const char *word, const pace_log *log)
{
    struct stat info;
    size_t before = files->count;

    if (strcmp(word, "-") == 0)
        return pace_fail(log, PACE_USAGE,
                         "the model was trained on pictures: name files or folders, not standard input");
    if (stat(word, &info) != 0)
        return pace_fail(log, PACE_NO_INPUT, "%s: %s", word, strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return add_file(files, strdup(word), log);
    pace_status status = add_folder(files, word, 1, log);

    if (!status && files->count == before)
        status = pace_fail(log, PACE_NO_INPUT,
                           "%s: no pictures in this folder: no file is called .jpg, .jpeg or .png", word);
    return status;
}

pace_status pace__picture_files_find(const pace_texts *words, const pace_log *log, pace__picture_files *files)
{
    pace__picture_files found = {0};
    pace_status status = PACE_OK;

    for (size_t i = 0; !status && i < words->count; i++)
        status = add_word(&found, words->items[i], log);
    if (!status && found.skipped > 0)
        pace_say(log, PACE_INFO,
                 "%zu files were passed over: they are not called .jpg, .jpeg or .png, as is %s",
                 found.skipped, found.example);
    if (status)
        pace__picture_files_release(&found);
    else
        *files = found;
    return status;
}
