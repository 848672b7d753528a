#include "files/file.h"
#include "prep/reviews/words.h"

#include <stdlib.h>
#include <string.h>

/* Words of a file: the array, and behind it the room for their texts. */
typedef struct stop_list {
    pace__word *words;
    uint32_t count;
    char *text; /* where the next one goes */
} stop_list;

static size_t line_of(const char *text, size_t at)
{
    size_t line = 1;

    for (size_t i = 0; i < at; i++)
        line += text[i] == '\n';
    return line;
}

static void take_words(stop_list *list, const pace__tokens *tokens)
{
    for (size_t i = 0; i < tokens->count; i++) {
        uint32_t size = pace__token_size(tokens, i);

        memcpy(list->text, tokens->text + tokens->span[i].begin, size);
        list->words[list->count++] = (pace__word){.text = list->text, .size = size};
        list->text += size;
    }
}

static pace_status take_lines(stop_list *list, const char *text, size_t size, const pace_log *log)
{
    pace__tokens tokens = {0};
    pace_status status = PACE_OK;

    for (size_t at = 0; at < size && !status;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t line = end ? (size_t)(end - text) - at : size - at;

        if (text[at] != '#')
            status = pace__tokenise(&tokens, text + at, line, log);
        if (!status && text[at] != '#')
            take_words(list, &tokens);
        at += line + 1;
    }
    pace__tokens_release(&tokens);
    return status;
}

static int compare(const void *left, const void *right)
{
    return pace__word_compare(left, right);
}

static void sort_and_unite(stop_list *list)
{
    uint32_t kept = 0;

    qsort(list->words, list->count, sizeof *list->words, compare);
    for (uint32_t i = 0; i < list->count; i++) {
        if (kept == 0 || pace__word_compare(&list->words[kept - 1], &list->words[i]) != 0)
            list->words[kept++] = list->words[i];
    }
    list->count = kept;
}

static pace_status make_list(const char *text, size_t size, const char *path, const pace_log *log,
                             stop_list *list)
{
    size_t invalid = pace__utf8_find_invalid(text, size);
    /* A word and what separates it have two bytes; lower case may take half as much again. */
    size_t most = size / 2 + 1, bytes = size + size / 2 + 1;

    if (invalid < size)
        return pace_fail(log, PACE_BAD_DATA, "%s: line %zu: no valid UTF-8", path, line_of(text, invalid));
    list->words = malloc(most * sizeof *list->words + bytes);
    if (!list->words)
        return pace_fail(log, PACE_FAILED, "%s: out of memory", path);
    list->text = (char *)(list->words + most);
    pace_status status = take_lines(list, text, size, log);

    if (status)
        free(list->words);
    else
        sort_and_unite(list);
    return status;
}

pace_status pace__stops_read(const char *path, const pace_log *log, pace__word **stops, uint32_t *count)
{
    char *text, *padded;
    size_t size;
    pace_status status = pace__read_file(path, PACE__STOPS_BYTES_MAX, &text, &size, log);

    if (status)
        return status;
    stop_list list = {.count = 0};

    padded = realloc(text, size + PACE__TEXT_PADDING);
    if (padded) {
        memset(padded + size, 0, PACE__TEXT_PADDING);
        text = padded;
        status = make_list(text, size, path, log, &list);
    } else {
        status = pace_fail(log, PACE_FAILED, "%s: out of memory", path);
    }
    free(text);
    if (status)
        return status;
    *stops = list.words;
    *count = list.count;
    return PACE_OK;
}

void pace__stops_free(pace__word *stops, uint32_t count)
{
    (void)count;
    free(stops);
}
