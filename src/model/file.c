#include "model/file.h"

#include "files/file.h"
#include "files/sealed.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SUMMARY_MAX ((size_t)1 << 20)

/* --- the model of a run --- */

/* The SHA-256 that a run's summary has of its model; an empty text if there is none. */
static pace_status read_sum(const char *summary, char sha256[PACE__SHA256_HEX], const pace_log *log)
{
    char *text = NULL;
    size_t size;

    sha256[0] = '\0';
    if (!pace__exists(summary))
        return PACE_OK;
    pace_status status = pace__read_sealed(summary, SUMMARY_MAX, &text, &size, log);
    cJSON *object = status ? NULL : cJSON_Parse(text);
    const char *found = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "model_sha256"));

    if (!status && !cJSON_IsObject(object))
        status = pace_fail(log, PACE_BAD_DATA,
                           "%s: damaged: not a JSON object. train --resume writes it again from the last "
                           "checkpoint; to use the model unchecked, name its file instead of the run",
                           summary);
    if (found)
        snprintf(sha256, PACE__SHA256_HEX, "%s", found);
    cJSON_Delete(object);
    free(text);
    return status;
}

static pace_status compare_with_summary(const char *model, const char *summary, const pace_log *log)
{
    char expected[PACE__SHA256_HEX], found[PACE__SHA256_HEX];
    pace_status status = read_sum(summary, expected, log);

    if (!status && expected[0] == '\0')
        pace_say(log, PACE_WARN, "%s: cannot be compared with what was trained: %s %s", model, summary,
                 pace__exists(summary) ? "has no model_sha256" : "does not exist");
    if (status || expected[0] == '\0')
        return status;
    status = pace__sha256_file(model, found, log);
    if (!status && strcmp(found, expected) != 0)
        status = pace_fail(
            log, PACE_BAD_DATA,
            "%s: damaged, or not the model of this run: its SHA-256 is not the model_sha256 of %s. "
            "train --resume writes it again from the last checkpoint; to use it unchecked, name the file "
            "instead of the run",
            model, summary);
    return status;
}

static pace_status check_run(const char *run, const char *model, const pace_log *log)
{
    char *summary = pace__format("%s/summary.json", run);
    pace_status status;

    if (!summary)
        status = pace_fail(log, PACE_FAILED, "out of memory");
    else if (pace__exists(model))
        status = compare_with_summary(model, summary, log);
    else if (pace__exists(summary))
        status = pace_fail(log, PACE_NO_INPUT, PACE__GONE_TEXT, model);
    else
        status = pace_fail(
            log, PACE_NO_INPUT,
            "%s: does not exist: no run, or one that has not finished (train --resume goes on)", model);
    free(summary);
    return status;
}

/* --- opening --- */

pace_status pace__model_file_open(const char *path, pace__model_file *file, const pace_log *log)
{
    struct stat info;
    bool is_run = stat(path, &info) == 0 && S_ISDIR(info.st_mode);

    *file = (pace__model_file){.path = is_run ? pace__format("%s/model.safetensors", path) : strdup(path)};
    pace_status status = file->path ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status && is_run)
        status = pace__check_directory(path, log);
    if (!status && is_run)
        status = check_run(path, file->path, log);
    if (!status)
        status = pace__safetensors_open(file->path, log, &file->tensors);
    if (status)
        pace__model_file_close(file);
    return status;
}

void pace__model_file_close(pace__model_file *file)
{
    pace__safetensors_close(file->tensors);
    free(file->path);
    *file = (pace__model_file){0};
}

const char *pace__model_file_kind(const pace__model_file *file)
{
    const char *found = pace__safetensors_metadata(file->tensors, "model");

    return found ? found : "";
}

/* What is written has no control characters, and no escapes but those of the two characters that names of columns may have
 * and texts of JSON may not; messages that quote it need not fear any. */
static bool is_plain(const char *text)
{
    for (; *text; text++) {
        bool escape = *text == '\\';

        text += escape;
        if ((unsigned char)*text < 0x20 || *text == 0x7f || (escape && *text != '"' && *text != '\\'))
            return false;
    }
    return true;
}

pace_status pace__model_file_json(const pace__model_file *file, const char *key, const char **json,
                                  const pace_log *log)
{
    const char *text = pace__safetensors_metadata(file->tensors, key);

    if (!text)
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged: its metadata has no \"%s\"", file->path, key);
    if (!is_plain(text))
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged: unexpected characters in the metadata, \"%s\"",
                         file->path, key);
    *json = text;
    return PACE_OK;
}

pace_status pace__model_file_text(const pace__model_file *file, const char *name, uint64_t bytes_max,
                                  char **text, size_t *size, const pace_log *log)
{
    const pace__tensor_info *tensor = pace__safetensors_find(file->tensors, name);

    if (!tensor || tensor->dtype != PACE__U8 || tensor->rank != 1 || tensor->bytes > bytes_max)
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged: it has no %s", file->path, name);
    char *found = malloc(tensor->bytes + 1);
    pace_status status = found ? pace__safetensors_read(file->tensors, tensor, 0, found, tensor->bytes, log)
                               : pace_fail(log, PACE_FAILED, "%s: out of memory", file->path);

    if (status) {
        free(found);
    } else {
        *text = found;
        *size = (size_t)tensor->bytes;
    }
    return status;
}

/* --- weights --- */

pace_status pace__model_file_weights(const pace__model_file *file, const char *name, unsigned rank,
                                     const uint64_t *shape, float *values, const pace_log *log)
{
    const pace__tensor_info *tensor = pace__safetensors_find(file->tensors, name);

    if (!tensor || tensor->dtype != PACE__F32 || tensor->rank != rank ||
        memcmp(tensor->shape, shape, rank * sizeof *shape) != 0)
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged: tensor %s is missing, or not as its config says",
                         file->path, name);
    pace_status status = pace__safetensors_read(file->tensors, tensor, 0, values, tensor->bytes, log);

    for (uint64_t i = 0; !status && i < tensor->elements; i++) {
        if (!isfinite(values[i]))
            status = pace_fail(log, PACE_BAD_DATA, "%s: value %llu of %s is not a number", file->path,
                               (unsigned long long)i, name);
    }
    return status;
}

pace_status pace__model_file_holds(const pace__model_file *file, uint64_t weights, const pace_log *log)
{
    uint64_t held = 0;

    for (size_t i = 0; i < pace__safetensors_count(file->tensors); i++) {
        const pace__tensor_info *tensor = pace__safetensors_at(file->tensors, i);

        held += tensor->dtype == PACE__F32 ? tensor->elements : 0;
    }
    if (held != weights)
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged: it has %llu weights, and its config asks for %llu",
                         file->path, (unsigned long long)held, (unsigned long long)weights);
    return PACE_OK;
}

/* --- writing --- */

static pace__tensor text_tensor(const char *name, const char *text, size_t size)
{
    return (pace__tensor){.name = name, .dtype = PACE__U8, .rank = 1, .shape = {size}, .data = text};
}

pace_status pace__model_file_write(const char *path, const pace__model_contents *contents,
                                   const pace__origin *origin, char sha256[PACE__SHA256_HEX],
                                   const pace_log *log)
{
    pace__tensor *tensors = malloc((contents->count + 2) * sizeof *tensors);
    size_t count = contents->count;
    pace__text_pair metadata[] = {
        {"format", "paceline"}, {"model", contents->kind}, {"encoding", origin->encoding}, contents->own};

    if (!tensors)
        return pace_fail(log, PACE_FAILED, "out of memory");
    memcpy(tensors, contents->tensors, count * sizeof *tensors);
    if (origin->vocabulary)
        tensors[count++] = text_tensor("vocabulary", origin->vocabulary, origin->vocabulary_size);
    if (origin->class_names)
        tensors[count++] = text_tensor("classes", origin->class_names, origin->class_names_size);
    pace_status status =
        pace__safetensors_write(path, tensors, count, metadata, contents->own.key ? 4 : 3, sha256, log);

    free(tensors);
    return status;
}
