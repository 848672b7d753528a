/* What inspect says of a data set. */
#include "data/store.h"
#include "score/inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_SHOWN 10

static const char *const set_names[PACE__SETS] = {"train", "test"};

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
    }
}

static void describe_rows(const pace__store_info *info, cJSON *to)
{
    pace__add_number(to, "parts", info->parts);
    pace__add_number(to, "features", (double)info->encoding.features);
    pace__add_number(to, "features_seen", info->ids_seen);
    for (int set = 0; set < PACE__SETS; set++) {
        cJSON *each = cJSON_AddObjectToObject(to, set_names[set]);

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
        cJSON *each = cJSON_AddObjectToObject(to, set_names[set]);

        pace__add_number(each, "rows", (double)store->info.rows[set]);
        pace__add_number(each, "positives", (double)store->info.positives[set]);
    }
    pace__add_vocabulary(to, vocabulary);
    pace__vocabulary_free(vocabulary);
    return PACE_OK;
}

pace_status pace__describe_set(const char *path, const char *file, cJSON *to, const pace_log *log)
{
    pace__store store;
    pace_status status = pace__store_open(path, &store, log);

    if (status)
        return status;
    cJSON_AddStringToObject(to, "what", "data set");
    if (store.info.encoding.kind == PACE__TEXT)
        status = describe_texts(&store, to, log);
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
