#include "score/inspect.h"
#include "checkpoint/checkpoint.h"
#include "data/store/store.h"
#include "files/file.h"
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
    FILE *file = fopen(path, "rb");
    bool found = file && fread(first, sizeof first, 1, file) == 1 && memcmp(first, magic, sizeof first) == 0;

    if (file)
        fclose(file);
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

/* Damage that is found is part of the description, not an error of inspect. */
static void write_as_warning(void *user, pace_level level, const char *text)
{
    const pace_log *log = user;

    if (log && log->write)
        log->write(log->user, level == PACE_ERROR ? PACE_WARN : level, text);
}

static bool is_whole(const char *directory, const pace__manifest *manifest, const pace_log *log)
{
    pace_log warnings = {write_as_warning, (void *)log};

    return pace__checkpoint_load(directory, manifest, NULL, &warnings) == PACE_OK;
}

static bool is_whole_checkpoint(const char *directory, const pace_log *log)
{
    pace_log warnings = {write_as_warning, (void *)log};
    pace__manifest manifest;

    if (pace__manifest_read(directory, &warnings, &manifest))
        return false;
    bool whole = is_whole(directory, &manifest, log);

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
    cJSON_AddStringToObject(to, "what", "checkpoint");
    cJSON_AddBoolToObject(to, "whole", is_whole(path, &manifest, log));
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
    int fd = path && ending && strcmp(ending, "running") == 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;

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

static pace_status describe_run(const char *path, const pace_inspect_config *config, cJSON *to,
                                const pace_log *log)
{
    char *summary = pace__format("%s/summary.json", path),
         *model = pace__format("%s/model.safetensors", path);
    char *text = NULL;
    size_t size;
    pace_status status = summary && model ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");

    cJSON_AddStringToObject(to, "what", "run");
    if (!status && pace__exists(summary)) {
        status = pace__read_file(summary, SUMMARY_MAX, &text, &size, log);
        cJSON *parsed = status ? NULL : cJSON_Parse(text);

        if (!status && !parsed)
            status = pace_fail(log, PACE_BAD_DATA, "%s: damaged: not JSON", summary);
        if (parsed)
            cJSON_AddItemToObject(to, "summary", parsed);
    }
    cJSON_AddBoolToObject(to, "finished", text != NULL);
    add_state(path, to, log);
    if (!status)
        status = describe_checkpoints(path, to, log);
    if (!status && pace__exists(model))
        status = describe_tensors(model, config, false, to, log);
    free(text);
    free(model);
    free(summary);
    return status;
}

static pace_status describe_directory(const char *path, const pace_inspect_config *config, cJSON *to,
                                      const pace_log *log)
{
    if (pace__is_store(path))
        return pace__describe_set(path, NULL, to, log);
    if (holds(path, "logs/paceline.log"))
        return describe_run(path, config, to, log);
    if (holds(path, PACE__MANIFEST_NAME))
        return describe_checkpoint(path, to, log);
    if (strncmp(name_of(path), "step-", 5) == 0)
        return pace_fail(log, PACE_BAD_DATA, "%s: an unfinished checkpoint: it has no " PACE__MANIFEST_NAME,
                         path);
    return pace_fail(log, PACE_BAD_DATA, "%s: neither a data set nor a run directory nor a checkpoint", path);
}

pace_status pace_inspect(const pace_inspect_config *config, const pace_log *log, char **json)
{
    struct stat info;
    pace_status status;

    if (stat(config->path, &info) != 0)
        return pace_fail(log, PACE_NO_INPUT, "%s: %s", config->path, strerror(errno));
    cJSON *object = cJSON_CreateObject();

    if (!object)
        return pace_fail(log, PACE_FAILED, "out of memory");
    cJSON_AddStringToObject(object, "path", config->path);
    if (is_hdf5(config->path))
        status = describe_part(config->path, object, log);
    else if (!S_ISDIR(info.st_mode))
        status = describe_tensors(config->path, config, true, object, log);
    else
        status = describe_directory(config->path, config, object, log);
    char *text = status ? NULL : cJSON_Print(object);

    cJSON_Delete(object);
    if (!status && !text)
        status = pace_fail(log, PACE_FAILED, "out of memory");
    if (!status)
        *json = text;
    return status;
}
