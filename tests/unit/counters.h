/*
 * counters.h - counters of words with the least memory that is possible, and texts for them. Include it behind <cmocka.h>.
 */
#ifndef UNIT_COUNTERS_H
#define UNIT_COUNTERS_H

#include "prep/reviews/words.h"

#include "support.h"

static inline pace__word_counter *make_counter(void **state, const char *name)
{
    pace__word_counter_plan plan = {.directory = *state, .name = name, .memory = PACE__WORDS_MEMORY_MIN};
    pace__word_counter *counter = NULL;

    assert_ok(pace__word_counter_create(&plan, &said_log, &counter));
    return counter;
}

static inline size_t add_text(pace__word_counter *counter, const char *text, uint32_t *ids)
{
    size_t size = strlen(text);
    char *padded = calloc(size + PACE__TEXT_PADDING, 1);
    pace__tokens tokens = {0};

    assert_non_null(padded);
    memcpy(padded, text, size);
    assert_ok(pace__tokenise(&tokens, padded, size, &said_log));
    assert_ok(pace__word_counter_make_room(counter, tokens.count));
    uint32_t *local = calloc(tokens.count + 1, sizeof *local);

    assert_non_null(local);
    size_t kept = pace__word_counter_add(counter, &tokens, local);

    if (ids)
        memcpy(ids, local, kept * sizeof *ids);
    free(local);
    free(padded);
    pace__tokens_release(&tokens);
    return kept;
}

static inline char *many_words(uint32_t count, const char *prefix)
{
    char *text = malloc((size_t)count * 16), *to = text;

    assert_non_null(text);
    for (uint32_t i = 0; i < count; i++)
        to += sprintf(to, "%s%u ", prefix, i);
    return text;
}

#endif
