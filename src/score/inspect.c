#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "data/linear_file.h"
#include "data/safetensors.h"
#include "data/store.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <paceline/inspect.h>
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

static void add_number(cJSON *to, const char *name, double value)
{
    cJSON_AddNumberToObject(to, name, value);
}

static void add_encoding(cJSON *to, const pace__encoding *encoding)
{
    char *json = pace__encoding_to_json(encoding);
    cJSON *parsed = json ? cJSON_Parse(json) : NULL;

    if (parsed)
        cJSON_AddItemToObject(to, "encoding", parsed);
    free(json);
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void add_part(cJSON *to, const pace__store *store, const char *name)
{
    for (uint32_t i = 0; i < store->info.parts; i++) {
        if (strcmp(name_of(store->parts[i].path), name) != 0)
            continue;
        cJSON *part = cJSON_AddObjectToObject(to, "part");

        add_number(part, "number", i);
        add_number(part, "train_rows", (double)store->parts[i].sets[PACE__TRAIN].rows);
        add_number(part, "test_rows", (double)store->parts[i].sets[PACE__TEST].rows);
    }
}

/* `file`: the one of the set's files that was asked for, or NULL. */
static pace_status describe_store(const char *path, const char *file, cJSON *to, const pace_log *log)
{
    static const char *const sets[] = {"train", "test"};
    pace__store store;
    pace_status status = pace__store_open(path, &store, log);

    if (status)
        return status;
    cJSON_AddStringToObject(to, "what", "data set");
    add_number(to, "parts", store.info.parts);
    add_number(to, "features", (double)store.info.encoding.features);
    add_number(to, "features_seen", store.info.ids_seen);
    for (int set = 0; set < PACE__SETS; set++) {
        cJSON *each = cJSON_AddObjectToObject(to, sets[set]);

        add_number(each, "rows", (double)store.info.rows[set]);
        add_number(each, "entries", (double)store.info.entries[set]);
    }
    if (store.info.columns)
        add_number(to, "columns", store.info.columns);
    add_number(to, "row_entries_max", store.info.row_entries_max);
    cJSON_AddBoolToObject(to, "has_values", store.info.has_values);
    add_number(to, "seed", (double)store.info.seed);
    add_encoding(to, &store.info.encoding);
    cJSON_AddStringToObject(to, "command", store.info.command ? store.info.command : "");
    if (file)
        add_part(to, &store, name_of(file));
    pace__store_close(&store);
    return PACE_OK;
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
        status = describe_store(directory, path, to, log);
    else
        status = pace_fail(log, PACE_BAD_DATA, "%s: an HDF5 file, but not within a data set", path);
    free(directory);
    return status;
}

/* --- models --- */

/* "C14 + 1234" for Criteo's columns, else the id alone. */
static void name_feature(const pace__encoding *encoding, uint64_t id, char *name, size_t size)
{
    unsigned column = 0;
    char label[4];

    if (encoding->kind != PACE__CRITEO) {
        snprintf(name, size, "%" PRIu64, id);
        return;
    }
    while (column + 1 < PACE__CRITEO_COLUMNS && encoding->column_base[column + 1] <= id)
        column++;
    pace__criteo_column_name(column, label);
    snprintf(name, size, "%s+%" PRIu64, label, id - encoding->column_base[column]);
}

/* Keeps the `top` heaviest places in a heap whose root is the lightest of them. */
static void sift_down(const pace__linear *model, uint32_t *heap, size_t count, size_t at)
{
    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= count)
            return;
        if (child + 1 < count && fabsf(model->weight[heap[child + 1]]) < fabsf(model->weight[heap[child]]))
            child++;
        if (fabsf(model->weight[heap[at]]) <= fabsf(model->weight[heap[child]]))
            return;
        uint32_t swap = heap[at];

        heap[at] = heap[child];
        heap[child] = swap;
        at = child;
    }
}

static void add_heaviest(const pace__linear *model, size_t top, cJSON *to)
{
    size_t count = top < model->count ? top : model->count;
    uint32_t *heap = malloc((count + 1) * sizeof *heap);
    cJSON *list = cJSON_AddArrayToObject(to, "heaviest");

    for (uint32_t i = 0; heap && i < count; i++)
        heap[i] = i;
    for (size_t at = count; heap && at-- > 0;)
        sift_down(model, heap, count, at);
    for (uint32_t i = (uint32_t)count; heap && count > 0 && i < model->count; i++) {
        if (fabsf(model->weight[i]) <= fabsf(model->weight[heap[0]]))
            continue;
        heap[0] = i;
        sift_down(model, heap, count, 0);
    }
    for (size_t left = count; heap && left > 0;
         left--) { /* the root is the lightest: fill the list from its end */
        cJSON *each = cJSON_CreateObject();
        char name[48];

        name_feature(&model->encoding, model->ids[heap[0]], name, sizeof name);
        cJSON_AddStringToObject(each, "feature", name);
        add_number(each, "id", (double)model->ids[heap[0]]);
        add_number(each, "weight", model->weight[heap[0]]);
        cJSON_InsertItemInArray(list, 0, each);
        heap[0] = heap[left - 1];
        sift_down(model, heap, left - 1, 0);
    }
    free(heap);
}

static pace_status describe_model(const char *path, const pace_inspect_config *config, cJSON *to,
                                  const pace_log *log)
{
    pace__linear model;
    uint32_t zeros = 0;
    double squares = 0;
    pace_status status = pace__linear_read(path, &model, log);

    if (status)
        return status;
    for (uint32_t i = 0; i < model.count; i++) {
        zeros += model.weight[i] == 0;
        squares += (double)model.weight[i] * model.weight[i];
    }
    cJSON_AddStringToObject(to, "model", "logreg");
    add_number(to, "features", (double)model.encoding.features);
    add_number(to, "weights", model.count);
    add_number(to, "weights_zero", zeros);
    add_number(to, "norm", sqrt(squares));
    add_number(to, "bias", model.bias);
    add_encoding(to, &model.encoding);
    add_heaviest(&model, (size_t)config->top, to);
    pace__linear_release(&model);
    return PACE_OK;
}

/* Any other safetensors file: a part of a checkpoint, someone else's weights. */
static pace_status describe_tensors(const char *path, cJSON *to, const pace_log *log)
{
    pace__safetensors *file;
    pace_status status = pace__safetensors_open(path, log, &file);

    if (status)
        return status;
    const char *format = pace__safetensors_metadata(file, "format"),
               *job = pace__safetensors_metadata(file, "job");
    cJSON *list = cJSON_AddArrayToObject(to, "tensors");

    if (format)
        cJSON_AddStringToObject(to, "format", format);
    if (job)
        cJSON_AddStringToObject(to, "job", job);
    for (size_t i = 0; i < pace__safetensors_count(file); i++) {
        const pace__tensor_info *tensor = pace__safetensors_at(file, i);
        cJSON *each = cJSON_CreateObject(), *shape = cJSON_AddArrayToObject(each, "shape");

        cJSON_AddItemToArray(list, each);
        cJSON_AddStringToObject(each, "name", tensor->name);
        cJSON_AddStringToObject(each, "type", pace__dtype_name(tensor->dtype));
        for (unsigned d = 0; d < tensor->rank; d++)
            cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)tensor->shape[d]));
    }
    pace__safetensors_close(file);
    return PACE_OK;
}

static pace_status describe_file(const char *path, const pace_inspect_config *config, cJSON *to,
                                 const pace_log *log)
{
    pace__safetensors *file;
    pace_status status = pace__safetensors_open(path, log, &file);

    if (status)
        return status;
    const char *kind = pace__safetensors_metadata(file, "model"),
               *format = pace__safetensors_metadata(file, "format");
    bool is_model = kind && strcmp(kind, "logreg") == 0;
    bool is_part = format && strcmp(format, "paceline checkpoint part") == 0;

    cJSON_AddStringToObject(to, "what", is_model ? "model" : is_part ? "checkpoint part" : "tensors");
    pace__safetensors_close(file);
    return is_model ? describe_model(path, config, to, log) : describe_tensors(path, to, log);
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
    add_number(to, "step", (double)manifest.position.step);
    add_number(to, "incarnation", (double)manifest.incarnation);
    add_number(to, "seconds", manifest.position.seconds);
    add_number(to, "keys", (double)manifest.keys);
    add_number(to, "width", manifest.width);
    for (unsigned i = 0; i < manifest.parts; i++)
        bytes += (double)manifest.part[i].bytes;
    add_number(to, "bytes", bytes);
    cJSON_AddStringToObject(to, "job", manifest.job ? manifest.job : "");
    cJSON *list = cJSON_AddArrayToObject(to, "parts");

    for (unsigned i = 0; i < manifest.parts; i++) {
        cJSON *each = cJSON_CreateObject();

        cJSON_AddStringToObject(each, "name", manifest.part[i].name);
        add_number(each, "bytes", (double)manifest.part[i].bytes);
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
        add_number(to, "damaged", (double)newest);
    if (newest == count) {
        cJSON_AddNullToObject(to, "newest");
        return;
    }
    cJSON *each = cJSON_AddObjectToObject(to, "newest");

    add_number(each, "step", (double)entries[newest].step);
    add_number(each, "incarnation", (double)entries[newest].incarnation);
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

    add_number(checkpoints, "count", (double)count);
    if (unfinished > 0)
        add_number(checkpoints, "unfinished", (double)unfinished);
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
        status = describe_model(model, config, to, log);
    free(text);
    free(model);
    free(summary);
    return status;
}

static pace_status describe_directory(const char *path, const pace_inspect_config *config, cJSON *to,
                                      const pace_log *log)
{
    if (pace__is_store(path))
        return describe_store(path, NULL, to, log);
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
        status = describe_file(config->path, config, object, log);
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
