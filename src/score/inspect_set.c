/* What inspect says of a data set. */
#include "data/picture/class_names.h"
#include "data/store/sums.h"
#include "files/file.h"
#include "score/inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_SHOWN 10
#define COUNT_ROWS  32768 /* read at a time */

void pace__add_number(cJSON *to, const char *name, double value)
{
    cJSON_AddNumberToObject(to, name, value);
}

void pace__add_encoding(cJSON *to, const pace__encoding *encoding)
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

        pace__add_number(part, "number", i);
        pace__add_number(part, "train_rows", (double)store->parts[i].sets[PACE__TRAIN].rows);
        pace__add_number(part, "test_rows", (double)store->parts[i].sets[PACE__TEST].rows);
        if (pace__store_tells(&store->info, PACE__VALIDATION))
            pace__add_number(part, "validation_rows", (double)store->parts[i].sets[PACE__VALIDATION].rows);
    }
}

static void describe_rows(const pace__store_info *info, cJSON *to)
{
    pace__add_number(to, "parts", info->parts);
    pace__add_number(to, "features", (double)info->encoding.features);
    pace__add_number(to, "features_seen", info->ids_seen);
    for (int set = 0; set < PACE__SETS; set++) {
        if (!pace__store_tells(info, set))
            continue;
        cJSON *each = cJSON_AddObjectToObject(to, pace__set_names[set]);

        pace__add_number(each, "rows", (double)info->rows[set]);
        pace__add_number(each, "entries", (double)info->entries[set]);
    }
    if (info->columns)
        pace__add_number(to, "columns", info->columns);
    pace__add_number(to, "row_entries_max", info->row_entries_max);
    cJSON_AddBoolToObject(to, "has_values", info->has_values);
}

static void add_word(cJSON *list, pace__word word)
{
    char text[PACE__TOKEN_BYTES_MAX + 1];

    snprintf(text, sizeof text, "%.*s", (int)word.size, word.text);
    cJSON_AddItemToArray(list, cJSON_CreateString(text));
}

void pace__add_vocabulary(cJSON *to, const pace__vocabulary *vocabulary)
{
    cJSON *about = cJSON_AddObjectToObject(to, "vocabulary");
    uint32_t ids = pace__vocabulary_ids(vocabulary), stops = pace__vocabulary_stops(vocabulary);

    pace__add_number(about, "words", ids - PACE__ID_WORDS);
    cJSON *list = cJSON_AddArrayToObject(about, "first");

    for (uint32_t i = 0; i < WORDS_SHOWN && PACE__ID_WORDS + i < ids; i++)
        add_word(list, pace__vocabulary_word(vocabulary, PACE__ID_WORDS + i));
    pace__add_number(about, "stop_words", stops);
    list = cJSON_AddArrayToObject(about, "first_stop_words");
    for (uint32_t i = 0; i < WORDS_SHOWN && i < stops; i++)
        add_word(list, pace__vocabulary_stop(vocabulary, i));
}

/* Length, truncation and padding are in the encoding. */
static pace_status describe_texts(const pace__store *store, cJSON *to, const pace_log *log)
{
    pace__vocabulary *vocabulary;
    pace_status status = pace__vocabulary_read(store->path, &store->info.encoding, log, &vocabulary);

    if (status)
        return status;
    cJSON_AddStringToObject(to, "kind", "text");
    pace__add_number(to, "parts", store->info.parts);
    for (int set = 0; set < PACE__SETS; set++) {
        if (!pace__store_tells(&store->info, set))
            continue;
        cJSON *each = cJSON_AddObjectToObject(to, pace__set_names[set]);

        pace__add_number(each, "rows", (double)store->info.rows[set]);
        pace__add_number(each, "positives", (double)store->info.positives[set]);
    }
    pace__add_vocabulary(to, vocabulary);
    pace__vocabulary_free(vocabulary);
    return PACE_OK;
}

/* Adds the rows of each class in one part; labels beyond the classes count as none. */
static pace_status count_part(const pace__part *part, int set, uint32_t classes, uint64_t *counts,
                              const pace_log *log)
{
    const pace__part_set *from = &part->sets[set];
    uint16_t *label = malloc(COUNT_ROWS * sizeof *label);
    pace_status status = label ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");

    for (uint64_t row = 0; row < from->rows && !status; row += COUNT_ROWS) {
        size_t rows = from->rows - row < COUNT_ROWS ? (size_t)(from->rows - row) : COUNT_ROWS;

        status = pace__pread_all(part->fd, label, rows * sizeof *label, from->label_at + row * sizeof *label,
                                 part->path, log);
        for (size_t i = 0; i < rows && !status; i++) {
            if (label[i] < classes)
                counts[label[i]]++;
        }
    }
    free(label);
    return status;
}

/* Labels are two bytes a row: to count them costs little. */
static pace_status count_classes(const pace__store *store, uint64_t *counts, const pace_log *log)
{
    uint32_t classes = store->info.encoding.classes;
    pace_status status = PACE_OK;

    for (int set = 0; set < PACE__SETS; set++) {
        for (uint32_t part = 0; part < store->info.parts && !status; part++)
            status = count_part(&store->parts[part], set, classes, counts + (size_t)set * classes, log);
    }
    return status;
}

static void add_classes(cJSON *to, const pace__store_info *info, const pace__class_names *names,
                        const uint64_t *counts)
{
    cJSON *list = cJSON_AddArrayToObject(to, "classes");

    for (uint32_t i = 0; i < names->count; i++) {
        cJSON *each = cJSON_CreateObject();

        cJSON_AddStringToObject(each, "name", names->items[i]);
        for (int set = 0; set < PACE__SETS; set++) {
            if (pace__store_tells(info, set))
                pace__add_number(each, pace__set_names[set], (double)counts[(size_t)set * names->count + i]);
        }
        cJSON_AddItemToArray(list, each);
    }
}

/* Size, channels and fit are in the encoding, too; people look for them here. */
static pace_status describe_pictures(const pace__store *store, cJSON *to, const pace_log *log)
{
    const pace__encoding *encoding = &store->info.encoding;
    uint64_t *counts = calloc((size_t)PACE__SETS * encoding->classes, sizeof *counts);
    pace__class_names names = {0};
    pace_status status =
        counts ? count_classes(store, counts, log) : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status)
        status = pace__class_names_read(store->path, encoding, log, &names);
    if (!status) {
        cJSON_AddStringToObject(to, "kind", encoding->kind == PACE__IMAGE ? "image" : "features");
        pace__add_number(to, "parts", store->info.parts);
        pace__add_number(to, "height", encoding->height);
        pace__add_number(to, "width", encoding->width);
        pace__add_number(to, "channels", encoding->channels);
        if (encoding->kind == PACE__FEATURES)
            pace__add_number(to, "features", (double)encoding->features);
        for (int set = 0; set < PACE__SETS; set++) {
            if (pace__store_tells(&store->info, set))
                pace__add_number(cJSON_AddObjectToObject(to, pace__set_names[set]), "rows",
                                 (double)store->info.rows[set]);
        }
        add_classes(to, &store->info, &names, counts);
    }
    pace__class_names_release(&names);
    free(counts);
    return status;
}

pace_status pace__describe_set(const char *path, const char *file, cJSON *to, const pace_log *log)
{
    pace__store store;
    pace_status status = pace__store_open(path, &store, log);

    if (status)
        return status;
    pace__store_warn(&store, log);
    status = pace__sums_check_all(&store, log);
    if (status) {
        pace__store_close(&store);
        return status;
    }
    cJSON_AddStringToObject(to, "what", "data set");
    if (store.info.encoding.kind == PACE__TEXT)
        status = describe_texts(&store, to, log);
    else if (pace__has_classes(&store.info.encoding))
        status = describe_pictures(&store, to, log);
    else
        describe_rows(&store.info, to);
    pace__add_number(to, "seed", (double)store.info.seed);
    pace__add_encoding(to, &store.info.encoding);
    cJSON_AddStringToObject(to, "command", store.info.command ? store.info.command : "");
    if (file)
        add_part(to, &store, name_of(file));
    pace__store_close(&store);
    return status;
}
