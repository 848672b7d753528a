/*
 * Any bytes as vocabulary.txt: refused with one message of one line, or a vocabulary in which every word is
 * found under its id, and whose text is the same bytes again.
 */
#include "data/text/vocabulary.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_message(void *user, pace_level level, const char *text)
{
    *(int *)user += level == PACE_ERROR;
    for (; *text; text++)
        assert((unsigned char)*text >= 0x20);
}

static uint32_t find(const pace__vocabulary *vocabulary, pace__word word)
{
    assert(pace__is_word(word.text, word.size));
    return pace__vocabulary_find(vocabulary, pace__word_hash(word.text, word.size), word.text, word.size);
}

static void check(const pace__vocabulary *vocabulary, const uint8_t *data, size_t size)
{
    char *text;
    size_t text_size;

    for (uint32_t id = PACE__ID_WORDS; id < pace__vocabulary_ids(vocabulary); id++)
        assert(find(vocabulary, pace__vocabulary_word(vocabulary, id)) == id);
    for (uint32_t i = 0; i < pace__vocabulary_stops(vocabulary); i++)
        assert(find(vocabulary, pace__vocabulary_stop(vocabulary, i)) == PACE__ID_STOP);
    assert(pace__vocabulary_to_text(vocabulary, NULL, &text, &text_size) == PACE_OK);
    assert(text_size == size && memcmp(text, data, size) == 0);
    assert(pace__vocabulary_checksum(vocabulary) == XXH3_64bits(data, size));
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int errors = 0;
    pace_log log = {.write = check_message, .user = &errors};
    pace__vocabulary *vocabulary = NULL;
    pace_status status = pace__vocabulary_from_text((const char *)data, size, "FILE", &log, &vocabulary);

    assert(status == PACE_OK ? errors == 0 : status == PACE_BAD_DATA && errors == 1 && !vocabulary);
    if (vocabulary)
        check(vocabulary, data, size);
    pace__vocabulary_free(vocabulary);
    return 0;
}
