#include "model/file.h"

#include "files/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

pace_status pace__model_file_open(const char *path, pace__model_file *file, const pace_log *log)
{
    struct stat info;
    bool is_run = stat(path, &info) == 0 && S_ISDIR(info.st_mode);

    *file = (pace__model_file){.path = is_run ? pace__format("%s/model.safetensors", path) : strdup(path)};
    pace_status status = file->path ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status && is_run && !pace__exists(file->path))
        status = pace_fail(
            log, PACE_NO_INPUT,
            "%s: does not exist: no run, or one that has not finished (train --resume goes on)", file->path);
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

bool pace__model_file_is(const pace__model_file *file, const char *kind)
{
    const char *found = pace__safetensors_metadata(file->tensors, "model");

    return found && strcmp(found, kind) == 0;
}

/* What is written has no escapes and no control characters; messages that quote it need not fear any. */
static bool is_plain(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f || *text == '\\')
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

pace_status pace__model_file_encoding(const pace__model_file *file, const char *kind,
                                      pace__encoding *encoding, const pace_log *log)
{
    const char *json = NULL;

    if (!pace__model_file_is(file, kind))
        return pace_fail(log, PACE_BAD_DATA, "%s: not a model that paceline trained as %s", file->path, kind);
    pace_status status = pace__model_file_json(file, "encoding", &json, log);

    return status ? status : pace__encoding_from_json(json, file->path, encoding, log);
}

/* The bytes of a tensor of text; the caller frees them. */
static pace_status read_text(const pace__model_file *file, const char *name, uint64_t bytes_max, char **text,
                             size_t *size, const pace_log *log)
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

pace_status pace__model_file_vocabulary(const pace__model_file *file, const pace__encoding *encoding,
                                        pace__vocabulary **vocabulary, const pace_log *log)
{
    pace__vocabulary *found = NULL;
    char *text = NULL;
    size_t size = 0;
    pace_status status = read_text(file, "vocabulary", PACE__VOCABULARY_BYTES_MAX, &text, &size, log);

    if (!status)
        status = pace__vocabulary_from_text(text, size, file->path, log, &found);
    free(text);
    if (!status && (pace__vocabulary_checksum(found) != encoding->vocabulary ||
                    pace__vocabulary_ids(found) != encoding->features))
        status = pace_fail(log, PACE_BAD_DATA, "%s: damaged: its vocabulary is not the one of its encoding",
                           file->path);
    if (status)
        pace__vocabulary_free(found);
    else
        *vocabulary = found;
    return status;
}

pace_status pace__model_file_class_names(const pace__model_file *file, const pace__encoding *encoding,
                                         pace__class_names *names, const pace_log *log)
{
    pace__class_names found = {0};
    char *text = NULL;
    size_t size = 0;
    pace_status status = read_text(file, "classes", PACE__CLASS_NAMES_BYTES_MAX, &text, &size, log);

    if (!status)
        status = pace__class_names_parse(text, size, file->path, log, &found);
    free(text);
    if (!status &&
        (found.count != encoding->classes || pace__class_names_checksum(&found) != encoding->class_names)) {
        status = pace_fail(log, PACE_BAD_DATA, "%s: damaged: its class names are not those of its encoding",
                           file->path);
        pace__class_names_release(&found);
    }
    if (!status)
        *names = found;
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
