#include "series/ledger.h"

#include "files/file.h"
#include "files/open.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK_TEXT 32 /* "paceline_study", whose value is the version of these lines */

/* Somebody else's files stay as they are. */
static pace_status check_directory(const char *directory, const char *path, const char *kind,
                                   const pace_log *log)
{
    if (pace__exists(path) || !pace__exists(directory) || pace__is_empty_at(AT_FDCWD, directory))
        return PACE_OK;
    return pace_fail(log, PACE_USAGE, "%s: is no empty directory and holds no %s; give another one",
                     directory, kind);
}

static pace_status lock(const pace__ledger *ledger, const pace_log *log)
{
    if (flock(ledger->fd, LOCK_EX | LOCK_NB) == 0)
        return PACE_OK;
    return pace_fail(log, PACE_USAGE, "%s: another %s is writing into it", ledger->path, ledger->kind);
}

/* --- its first line --- */

static const char *mark_of(const char *kind, char text[MARK_TEXT])
{
    snprintf(text, MARK_TEXT, "paceline_%s", kind);
    return text;
}

static char *header_line(const char *kind, const char *which)
{
    cJSON *object = cJSON_CreateObject();
    char mark[MARK_TEXT];

    cJSON_AddNumberToObject(object, mark_of(kind, mark), 1);
    cJSON_AddStringToObject(object, kind, which);
    char *line = cJSON_PrintUnformatted(object);

    cJSON_Delete(object);
    return line;
}

/* Which one of its kind the text begins with; NULL: it is none. To be freed. */
static char *which_of(const char *text, const char *kind)
{
    cJSON *object = cJSON_ParseWithOpts(text, NULL, false);
    char mark[MARK_TEXT];
    const char *which = cJSON_HasObjectItem(object, mark_of(kind, mark))
                            ? cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, kind))
                            : NULL;
    char *copy = which ? strdup(which) : NULL;

    cJSON_Delete(object);
    return copy;
}

static pace_status begin(pace__ledger *ledger, const char *which, const pace_log *log)
{
    char *line = header_line(ledger->kind, which);
    pace_status status =
        line ? pace__ledger_add(ledger, line, log) : pace_fail(log, PACE_FAILED, "out of memory");

    free(line);
    return status ? status : pace__sync_parent(ledger->path, log);
}

static pace_status cut(const pace__ledger *ledger, size_t size, const pace_log *log)
{
    if (ftruncate(ledger->fd, (off_t)size) == 0)
        return PACE_OK;
    return pace_fail(log, PACE_IO, "%s: cannot be cut: %s", ledger->path, strerror(errno));
}

/* Of text[0..size): the whole lines. */
static size_t whole_size(const char *text, size_t size)
{
    while (size > 0 && text[size - 1] != '\n')
        size--;
    return size;
}

static pace_status take_over(pace__ledger *ledger, const char *which, bool replace, const pace_log *log)
{
    size_t size = strlen(ledger->text), whole = whole_size(ledger->text, size);
    char *before = which_of(ledger->text, ledger->kind);
    bool same = before && strcmp(before, which) == 0;
    bool empty = whole == 0 && (!before || same); /* a first line without its end is none */
    pace_status status = PACE_OK;

    if (!before && size > 0 && whole > 0)
        status = pace_fail(log, PACE_USAGE, "%s: was not written by a %s; give another directory",
                           ledger->path, ledger->kind);
    else if (!same && !empty && !replace)
        status =
            pace_fail(log, PACE_USAGE,
                      "%s: holds another %s (%s), and this is: %s; give another directory, or --force to "
                      "replace it",
                      ledger->path, ledger->kind, before, which);
    else if (!same || empty || replace)
        status = cut(ledger, 0, log);
    else if (whole < size)
        status = cut(ledger, whole, log);
    free(before);
    if (status)
        return status;
    ledger->text[whole] = '\0';
    if (same && !empty && !replace) {
        ledger->next = strchr(ledger->text, '\n') + 1;
        return PACE_OK;
    }
    ledger->next = ledger->text;
    *ledger->next = '\0';
    return begin(ledger, which, log);
}

pace_status pace__ledger_open(const char *directory, const char *kind, const char *which, bool replace,
                              const pace_log *log, pace__ledger *ledger)
{
    size_t size;

    *ledger = PACE__NO_LEDGER;
    ledger->kind = kind;
    ledger->path = pace__format("%s/%s", directory, PACE__LEDGER_NAME);
    pace_status status = ledger->path ? check_directory(directory, ledger->path, kind, log)
                                      : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status)
        status = pace__make_dirs(directory, log);
    if (!status)
        status = pace__open(ledger->path, PACE__TO_APPEND, log, &ledger->fd);
    if (!status)
        status = lock(ledger, log);
    if (!status)
        status = pace__read_file(ledger->path, PACE__LEDGER_BYTES_MAX, &ledger->text, &size, log);
    if (!status)
        status = take_over(ledger, which, replace, log);
    if (status)
        pace__ledger_close(ledger);
    return status;
}

void pace__ledger_close(pace__ledger *ledger)
{
    if (ledger->fd >= 0)
        close(ledger->fd);
    free(ledger->path);
    free(ledger->text);
    *ledger = PACE__NO_LEDGER;
}

char *pace__ledger_next(pace__ledger *ledger)
{
    char *line = ledger->next, *end = line ? strchr(line, '\n') : NULL;

    if (!end)
        return NULL;
    *end = '\0';
    ledger->next = end + 1;
    return line;
}

pace_status pace__ledger_add(pace__ledger *ledger, const char *line, const pace_log *log)
{
    char *whole = pace__format("%s\n", line);
    pace_status status = whole ? pace__write_all(ledger->fd, whole, strlen(whole), ledger->path, log)
                               : pace_fail(log, PACE_FAILED, "out of memory");

    free(whole);
    if (!status && fsync(ledger->fd) != 0)
        status = pace_fail(log, PACE_IO, "%s: %s", ledger->path, strerror(errno));
    return status;
}
