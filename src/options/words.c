/* words.c - a config as the command line that gives it. */
#include "base/locale.h"
#include "files/file.h"
#include "options/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct word_list {
    char **words; /* NULL-terminated, from the first word on */
    size_t count, room;
    const pace_log *log;
} word_list;

/* Takes over `word`; NULL means that there was no memory for it. */
static pace_status append(word_list *list, char *word)
{
    if (word && list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 16;
        char **grown = realloc(list->words, (room + 1) * sizeof *grown);

        if (grown) {
            list->words = grown;
            list->room = room;
        }
    }
    if (!word || list->count == list->room) {
        free(word);
        return pace_fail(list->log, PACE_FAILED, "out of memory");
    }
    list->words[list->count++] = word;
    list->words[list->count] = NULL;
    return PACE_OK;
}

/* Does the list hold the items of "a:b"? NULL is the empty list. */
static bool same_texts(const pace_texts *texts, const char *fallback)
{
    size_t item = 0;

    for (const char *walk = fallback ? fallback : ""; *walk; walk += *walk == ':') {
        size_t length = strcspn(walk, ":");

        if (length > 0) {
            if (item == texts->count || strlen(texts->items[item]) != length ||
                memcmp(texts->items[item], walk, length) != 0)
                return false;
            item++;
        }
        walk += length;
    }
    return item == texts->count;
}

static bool same_text(const char *text, const char *fallback)
{
    return text && fallback ? strcmp(text, fallback) == 0 : text == fallback;
}

bool pace__value_is_default(const pace_option *row, const void *field)
{
    char why[PACE_WHY_MAX], text[PACE_VALUE_TEXT_MAX], fallback_text[PACE_VALUE_TEXT_MAX];
    union {
        bool flag;
        int64_t whole;
        uint64_t size;
        double real;
        int choice;
    } fallback;

    if (row->kind == PACE_OPT_LIST)
        return same_texts(field, row->fallback);
    if (row->kind == PACE_OPT_TEXT)
        return same_text(*(const char *const *)field, row->fallback);
    memset(&fallback, 0, sizeof fallback);
    bool valid = !row->fallback || pace__value_parse(row, row->fallback, &fallback, why);

    assert(valid && "a default must be a valid value");
    (void)valid;
    pace__value_print(row, field, text);
    pace__value_print(row, &fallback, fallback_text);
    return strcmp(text, fallback_text) == 0;
}

/* The command line can add to a list and replace a text, but not take a default away. */
static pace_status no_words(const pace_option *row, const pace_log *log)
{
    return pace_fail(log, PACE_USAGE, "no value for --%s: its default %s cannot be taken away by an option",
                     row->name, row->fallback);
}

static pace_status append_list(word_list *list, const pace_option *row, const pace_texts *texts)
{
    pace_status status = texts->count == 0 ? no_words(row, list->log) : PACE_OK;

    for (size_t i = 0; i < texts->count && !status; i++)
        status = append(list, pace__format("--%s=%s", row->name, texts->items[i]));
    return status;
}

static pace_status append_row(word_list *list, const pace_option *row, const void *field)
{
    char text[PACE_VALUE_TEXT_MAX];

    if (row->kind == PACE_OPT_FLAG)
        return append(list, pace__format("--%s%s", *(const bool *)field ? "" : "no-", row->name));
    if (row->kind == PACE_OPT_LIST)
        return append_list(list, row, field);
    if (row->kind == PACE_OPT_TEXT) {
        const char *value = *(const char *const *)field;

        return value ? append(list, pace__format("--%s=%s", row->name, value)) : no_words(row, list->log);
    }
    pace__value_print(row, field, text);
    return append(list, pace__format("--%s=%s", row->name, text));
}

/* A required option that was never given: the parser would refuse anything that is said of it. */
static bool is_absent(const pace_option *row, const void *field)
{
    return (row->kind == PACE_OPT_TEXT && !*(const char *const *)field) ||
           (row->kind == PACE_OPT_LIST && ((const pace_texts *)field)->count == 0);
}

static pace_status append_part(word_list *list, const pace_option_part *part)
{
    pace_status status = PACE_OK;

    for (const pace_option *row = part->table; row->name && !status; row++) {
        const void *field = (const char *)part->config + row->offset;
        bool same = pace__value_is_default(row, field);

        /* A required option must be said also where its value is what it would be without. */
        if (!same || (row->required && !is_absent(row, field)))
            status = append_row(list, row, field);
    }
    return status;
}

pace_status pace_options_to_words(const pace_option_part *parts, const pace_log *log, char ***words,
                                  size_t *count)
{
    PACE__C_LOCALE();
    word_list list = {.log = log};
    pace_status status = PACE_OK;

    for (; parts->table && !status; parts++)
        status = append_part(&list, parts);
    if (!status && !list.words) { /* everything is as by default */
        list.words = calloc(1, sizeof *list.words);
        status = list.words ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");
    }
    if (status) {
        pace_options_free_words(list.words);
        return status;
    }
    *words = list.words;
    *count = list.count;
    return PACE_OK;
}

void pace_options_free_words(char **words)
{
    for (char **word = words; word && *word; word++)
        free(*word);
    free(words);
}
