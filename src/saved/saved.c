#include "saved/saved.h"

#include <stdio.h>
#include <stdlib.h>

/* --- the origin --- */

pace_status pace__saved_encoding(const pace__model_file *file, pace__encoding *encoding, const pace_log *log)
{
    const char *json = NULL;
    pace_status status = pace__model_file_json(file, "encoding", &json, log);

    return status ? status : pace__encoding_from_json(json, file->path, encoding, log);
}

pace_status pace__saved_vocabulary(const pace__model_file *file, const pace__encoding *encoding,
                                   pace__vocabulary **vocabulary, const pace_log *log)
{
    pace__vocabulary *found = NULL;
    char *text = NULL;
    size_t size = 0;
    pace_status status =
        pace__model_file_text(file, "vocabulary", PACE__VOCABULARY_BYTES_MAX, &text, &size, log);

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

pace_status pace__saved_class_names(const pace__model_file *file, const pace__encoding *encoding,
                                    pace__class_names *names, const pace_log *log)
{
    pace__class_names found = {0};
    char *text = NULL;
    size_t size = 0;
    pace_status status =
        pace__model_file_text(file, "classes", PACE__CLASS_NAMES_BYTES_MAX, &text, &size, log);

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

/* --- the whole --- */

pace_status pace__saved_read(const pace__model_file *file, const pace_log *log, pace__saved *saved)
{
    *saved = (pace__saved){0};
    if (!pace__kind_named(pace__model_file_kind(file)))
        return pace_fail(log, PACE_BAD_DATA, "%s: not a model that paceline trained", file->path);
    pace_status status = pace__saved_encoding(file, &saved->encoding, log);

    if (!status) {
        pace__dataset data = pace__encoding_describe(&saved->encoding);

        status = pace__model_read(file, &data, log, &saved->model);
    }
    if (!status && saved->encoding.kind == PACE__TEXT)
        status = pace__saved_vocabulary(file, &saved->encoding, &saved->vocabulary, log);
    if (!status && pace__has_classes(&saved->encoding))
        status = pace__saved_class_names(file, &saved->encoding, &saved->names, log);
    if (status)
        pace__saved_close(saved);
    return status;
}

pace_status pace__saved_open(const char *path, const pace_log *log, pace__saved *saved)
{
    pace__model_file file;
    pace_status status = pace__model_file_open(path, &file, log);

    *saved = (pace__saved){0};
    if (!status)
        status = pace__saved_read(&file, log, saved);
    pace__model_file_close(&file);
    return status;
}

void pace__saved_close(pace__saved *saved)
{
    pace__loaded_release(&saved->model);
    pace__vocabulary_free(saved->vocabulary);
    pace__class_names_release(&saved->names);
    *saved = (pace__saved){0};
}

void pace__saved_phrase(const pace__saved *saved, const uint32_t *words, unsigned count, char *text,
                        size_t size)
{
    text[0] = '\0';
    for (size_t i = 0, used = 0; i < count && used < size; i++) {
        pace__word word = pace__vocabulary_word(saved->vocabulary, words[i]);

        used +=
            (size_t)snprintf(text + used, size - used, "%s%.*s", i > 0 ? " " : "", (int)word.size, word.text);
    }
}
