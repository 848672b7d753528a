#include "score/inspect.h"

#include "base/json.h"
#include "base/locale.h"
#include "checkpoint/checkpoint.h"
#include "data/store/store.h"
#include "files/file.h"
#include "files/open.h"
#include "files/sealed.h"
#include "model/model.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUMMARY_MAX ((size_t)1 << 20)
#define RUN         "run"
#define FIELD(name) offsetof(pace_inspect_config, name)

const pace_option pace_inspect_options[] = {
    {"top", 0, PACE_OPT_INT, FIELD(top), "20", "N", "how many of the heaviest features of a model to list",
     .min = 0, .max = 1e6},
    {0},
};

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool is_hdf5(const char *path)
{
    static const char magic[] = "\x89HDF\r\n\x1a\n";
    char first[sizeof magic - 1];
    int fd;

    if (pace__open(path, PACE__TO_READ, NULL, &fd) != PACE_OK)
        return false;
    bool found = read(fd, first, sizeof first) == sizeof first && memcmp(first, magic, sizeof first) == 0;

    close(fd);
    return found;
}

/* A part alone says nothing that its set does not: the set is described, and which part of it this is. */
static pace_status describe_part(const char *path, cJSON *to, const pace_log *log)
{
    size_t front = (size_t)(name_of(path) - path);
    char *directory = front ? strndup(path, front > 1 ? front - 1 : 1) : strdup(".");
    pace_status status;

    if (!directory)
        return pace_fail(log, PACE_FAILED, "out of memory");
    if (pace__is_store(directory))
        status = pace__describe_set(directory, path, to, log);
    else
        status = pace_fail(log, PACE_BAD_DATA, "%s: an HDF5 file, but not within a data set", path);
    free(directory);
    return status;
}

/* --- models --- */

/* A file of tensors; `what` is said only of one that was asked for itself. */
static pace_status describe_tensors(const char *path, const pace_inspect_config *config, bool says_what,
                                    cJSON *to, const pace_log *log)
{
    pace__model_file file;
    pace_status status = pace__model_file_open(path, &file, log);

    if (status)
        return status;
    const char *format = pace__safetensors_metadata(file.tensors, "format");
    bool is_model = pace__kind_named(pace__model_file_kind(&file)) != NULL,
         is_part = format && strcmp(format, "paceline checkpoint part") == 0;

    if (says_what)
        cJSON_AddStringToObject(to, "what", is_model ? "model" : is_part ? "checkpoint part" : "tensors");
    if (is_model || !says_what) /* what a run has must be a model, or is refused as one */
        status = pace__describe_model(&file, config, to, log);
    else
        pace__describe_tensors(&file, to);
    pace__model_file_close(&file);
    return status;
}

/* --- checkpoints --- */

/* A damaged checkpoint of a run is part of what is said of the run: it can go on from another one. */
static void write_as_warning(void *user, pace_level level, const char *text)
{
    const pace_log *log = user;

    if (log && log->write)
        log->write(log->user, level == PACE_ERROR ? PACE_WARN : level, text);
}

static bool is_whole_checkpoint(const char *directory, const pace_log *log)
{
    pace_log warnings = {write_as_warning, (void *)log};
    pace__manifest manifest;

    if (pace__manifest_read(directory, &warnings, &manifest))
        return false;
    bool whole = pace__checkpoint_load(directory, &manifest, NULL, &warnings) == PACE_OK;

    pace__manifest_release(&manifest);
    return whole;
}

static pace_status describe_checkpoint(const char *path, cJSON *to, const pace_log *log)
{
    pace__manifest manifest;
    double bytes = 0;
    pace_status status = pace__manifest_read(path, log, &manifest);

    if (status)
        return status;
    status = pace__checkpoint_load(path, &manifest, NULL, log);
    if (status) {
        pace__manifest_release(&manifest);
        return status;
    }
    cJSON_AddStringToObject(to, "what", "checkpoint");
    cJSON_AddBoolToObject(to, "whole", true);
    pace__add_number(to, "step", (double)manifest.position.step);
    pace__add_number(to, "incarnation", (double)manifest.incarnation);
    pace__add_number(to, "seconds", manifest.position.seconds);
    pace__add_number(to, "keys", (double)manifest.keys);
    pace__add_number(to, "width", manifest.width);
    for (unsigned i = 0; i < manifest.parts; i++)
        bytes += (double)manifest.part[i].bytes;
    pace__add_number(to, "bytes", bytes);
    cJSON_AddStringToObject(to, "job", manifest.job ? manifest.job : "");
    cJSON *list = cJSON_AddArrayToObject(to, "parts");

    for (unsigned i = 0; i < manifest.parts; i++) {
        cJSON *each = cJSON_CreateObject();

        cJSON_AddStringToObject(each, "name", manifest.part[i].name);
        pace__add_number(each, "bytes", (double)manifest.part[i].bytes);
        cJSON_AddItemToArray(list, each);
    }
    pace__manifest_release(&manifest);
    return PACE_OK;
}

static bool holds(const char *directory, const char *name)
{
    char *path = pace__format("%s/%s", directory, name);
    bool found = path && pace__exists(path);

    free(path);
    return found;
}

/* --- runs --- */

/* The checkpoint that a resumed run would begin with. Newer ones that are damaged are counted on the way. */
static void add_newest(cJSON *to, const pace__checkpoint_entry *entries, size_t count, const pace_log *log)
{
    size_t newest = 0;

    while (newest < count && !is_whole_checkpoint(entries[newest].path, log))
        newest++;
    if (newest > 0)
        pace__add_number(to, "damaged", (double)newest);
    if (newest == count) {
        cJSON_AddNullToObject(to, "newest");
        return;
    }
    cJSON *each = cJSON_AddObjectToObject(to, "newest");

    pace__add_number(each, "step", (double)entries[newest].step);
    pace__add_number(each, "incarnation", (double)entries[newest].incarnation);
    cJSON_AddStringToObject(each, "path", entries[newest].path);
}

static pace_status describe_checkpoints(const char *run, cJSON *to, const pace_log *log)
{
    char *root = pace__format("%s/checkpoints", run);
    pace__checkpoint_entry *entries;
    size_t count, unfinished;

    if (!root)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace_status status = pace__checkpoint_list(root, log, &entries, &count, &unfinished);

    free(root);
    if (status)
        return status;
    cJSON *checkpoints = cJSON_AddObjectToObject(to, "checkpoints");

    pace__add_number(checkpoints, "count", (double)count);
    if (unfinished > 0)
        pace__add_number(checkpoints, "unfinished", (double)unfinished);
    add_newest(checkpoints, entries, count, log);
    pace__checkpoint_list_free(entries, count);
    return PACE_OK;
}

/* A run that was killed had no time to say so; but its log is locked by nobody any more. */
static void correct_ending(const char *run, cJSON *to)
{
    const char *ending = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(to, "ending"));
    char *path = pace__format("%s/logs/paceline.log", run);
    int fd = -1;

    if (path && ending && strcmp(ending, "running") == 0)
        pace__open(path, PACE__TO_READ, NULL, &fd);

    if (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) == 0)
        cJSON_SetValuestring(cJSON_GetObjectItemCaseSensitive(to, "ending"), "killed");
    if (fd >= 0)
        close(fd);
    free(path);
}

/* What the run remembers of its processes. Whoever resumes it has to understand all of that; here, what
 * cannot be understood is left out. */
static void add_state(const char *run, cJSON *to, const pace_log *log)
{
    static const char *const names[] = {"ending", "incarnation", "restarts"};
    pace_log warnings = {write_as_warning, (void *)log};
    char *path = pace__format("%s/state.json", run), *text = NULL;
    size_t size;

    if (path && pace__exists(path) &&
        pace__read_file(path, SUMMARY_MAX, &text, &size, &warnings) == PACE_OK) {
        cJSON *state = cJSON_Parse(text);

        if (!cJSON_IsObject(state))
            pace_say(log, PACE_WARN, "%s: damaged: not a JSON object", path);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(state, names[i]);

            if (cJSON_IsString(item) || cJSON_IsNumber(item))
                cJSON_AddItemToObject(to, names[i], item);
            else
                cJSON_Delete(item);
        }
        cJSON_Delete(state);
        correct_ending(run, to);
    }
    free(text);
    free(path);
}

static pace_status add_summary(const char *path, cJSON *to, const pace_log *log)
{
    char *text = NULL;
    size_t size;
    pace_status status = pace__read_sealed(path, SUMMARY_MAX, &text, &size, log);
    cJSON *parsed = status ? NULL : cJSON_Parse(text);

    if (!status && !parsed)
        status = pace_fail(log, PACE_BAD_DATA, "%s: damaged: not JSON", path);
    if (parsed)
        cJSON_AddItemToObject(to, "summary", parsed);
    free(text);
    return status;
}

/* Whether the run has finished, which its state remembers when its summary is gone. */
static bool add_ending(const char *run, bool has_summary, cJSON *to, const pace_log *log)
{
    cJSON_AddBoolToObject(to, "finished", has_summary);
    add_state(run, to, log);
    const char *ending = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(to, "ending"));
    bool finished = has_summary || (ending && strcmp(ending, "done") == 0);

    cJSON_ReplaceItemInObjectCaseSensitive(to, "finished", cJSON_CreateBool(finished));
    return finished;
}

/* What is damaged or gone does not hide the rest: the first such thing is the error, others are warnings. Without a
 * summary to compare it with, the model is taken as it is. */
static pace_status describe_files(const char *run, const char *summary, const char *model,
                                  const pace_inspect_config *config, cJSON *to, const pace_log *log)
{
    pace_log warnings = {write_as_warning, (void *)log};
    bool has_summary = pace__exists(summary);
    pace_status first = has_summary ? add_summary(summary, to, log) : PACE_OK, next = PACE_OK;
    bool finished = add_ending(run, has_summary, to, log);

    if (finished && !has_summary)
        first = pace_fail(log, PACE_NO_INPUT, PACE__GONE_TEXT, summary);
    next = describe_checkpoints(run, to, first ? &warnings : log);
    first = first ? first : next;
    if (finished || pace__exists(model))
        next = describe_tensors(first ? model : run, config, false, to, first ? &warnings : log);
    return first ? first : next;
}

static pace_status describe_run(const char *path, const pace_inspect_config *config, cJSON *to,
                                const pace_log *log)
{
    char *summary = pace__format("%s/summary.json", path),
         *model = pace__format("%s/model.safetensors", path);

    cJSON_AddStringToObject(to, "what", RUN);
    pace_status status = summary && model ? describe_files(path, summary, model, config, to, log)
                                          : pace_fail(log, PACE_FAILED, "out of memory");

    free(model);
    free(summary);
    return status;
}

static pace_status describe_directory(const char *path, const pace_inspect_config *config, cJSON *to,
                                      const pace_log *log)
{
    pace_status status = pace__check_directory(path, log);

    if (status)
        return status;
    if (pace__was_store(path))
        return pace__describe_set(path, NULL, to, log);
    if (holds(path, "logs/paceline.log"))
        return describe_run(path, config, to, log);
    if (holds(path, PACE__MANIFEST_NAME))
        return describe_checkpoint(path, to, log);
    if (strncmp(name_of(path), "step-", 5) == 0)
        return pace_fail(log, PACE_BAD_DATA, "%s: an unfinished checkpoint: it has no " PACE__MANIFEST_NAME,
                         path);
    return pace_fail(log, PACE_BAD_DATA,
                     "%s: neither a data set (no part-00000.h5) nor a run directory (no logs/paceline.log) "
                     "nor a checkpoint "
                     "(no " PACE__MANIFEST_NAME ")",
                     path);
}

static bool is_run(const cJSON *object)
{
    const char *what = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "what"));

    return what && strcmp(what, RUN) == 0;
}

pace_status pace_inspect(const pace_inspect_config *config, const pace_log *log, char **json)
{
    PACE__C_LOCALE();
    struct stat info;
    pace_status status;

    *json = NULL;
    if (stat(config->path, &info) != 0)
        return pace_fail(log, PACE_NO_INPUT, "%s: %s", config->path, strerror(errno));
    cJSON *object = cJSON_CreateObject();

    if (!object)
        return pace_fail(log, PACE_FAILED, "out of memory");
    cJSON_AddStringToObject(object, "path", config->path);
    if (is_hdf5(config->path))
        status = describe_part(config->path, object, log);
    else if (!S_ISDIR(info.st_mode) && pace__looks_raw(config->path))
        status = pace__refuse_raw(config->path, log);
    else if (!S_ISDIR(info.st_mode))
        status = describe_tensors(config->path, config, true, object, log);
    else
        status = describe_directory(config->path, config, object, log);
    *json = !status || is_run(object) ? pace__json_valid(cJSON_Print(object)) : NULL;
    cJSON_Delete(object);
    if (!status && !*json)
        status = pace_fail(log, PACE_FAILED, "out of memory");
    return status;
}
