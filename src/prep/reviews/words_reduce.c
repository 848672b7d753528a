#include "files/file.h"
#include "files/open.h"
#include "prep/reviews/words.h"
#include "prep/reviews/words_file.h"
#include "prep/reviews/words_top.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * A reducer's output: a header, then the words, most frequent first, each {count, size} without gaps and its
 * spelling.
 */
#define TOP_MAGIC UINT64_C(0x31706f5473645750)
#define TOP_ENTRY 9

typedef struct top_header {
    uint64_t magic, words, bytes; /* bytes: of the whole file */
} top_header;

static pace_status cannot_write(const char *path, const pace_log *log)
{
    return pace_fail(log, PACE_IO, "%s: cannot write: %s", path, strerror(errno));
}

static pace_status write_top(const pace__words_top *top, const char *path, const pace_log *log)
{
    top_header header = {.magic = TOP_MAGIC, .words = top->count, .bytes = sizeof header};
    FILE *file;
    pace_status status = pace__open_stdio(path, PACE__TO_CREATE, log, &file);

    if (status)
        return status;
    for (uint32_t i = 0; i < top->count; i++)
        header.bytes += TOP_ENTRY + top->words[i].word.size;
    bool good = fwrite(&header, sizeof header, 1, file) == 1;

    for (uint32_t i = 0; i < top->count && good; i++) {
        const pace__word *word = &top->words[i].word;
        unsigned char size = (unsigned char)word->size;

        good = fwrite(&word->count, sizeof word->count, 1, file) == 1 && fwrite(&size, 1, 1, file) == 1 &&
               fwrite(word->text, size, 1, file) == 1;
    }
    status = good ? PACE_OK : cannot_write(path, log);

    if (fclose(file) != 0 && !status)
        status = cannot_write(path, log);
    return status;
}

pace_status pace__words_reduce(const char *const *paths, size_t count, uint32_t partition,
                               uint32_t partitions, uint32_t keep, const char *output, uint64_t *distinct,
                               const pace_log *log)
{
    pace__words_top top = {.keep = keep, .log = log};
    pace__words_merge *merge = NULL;
    pace__counted word;
    uint64_t words = 0;
    pace_status status = pace__words_merge_open(paths, count, partition, partitions, log, &merge);

    for (bool found = true; found && !status;) {
        status = pace__words_merge_next(merge, &word, &found);
        if (status || !found)
            break;
        words++;
        status = pace__words_top_offer(&top, &word.word, 0, NULL);
    }
    pace__words_merge_free(merge);
    if (!status) {
        pace__words_top_sort(&top);
        status = write_top(&top, output, log);
    }
    pace__words_top_release(&top);
    if (!status)
        *distinct = words;
    return status;
}

/* --- join --- */

static pace_status damaged(const char *path, const char *what, const pace_log *log)
{
    return pace_fail(log, PACE_BAD_DATA, "%s: damaged file of frequent words: %s", path, what);
}

static pace_status read_top_header(FILE *file, const char *path, top_header *header, const pace_log *log)
{
    if (fread(header, sizeof *header, 1, file) != 1)
        return damaged(path, "it is too short", log);
    if (header->magic != TOP_MAGIC)
        return damaged(path, "it does not begin like one", log);
    if (fseeko(file, 0, SEEK_END) != 0 || (uint64_t)ftello(file) != header->bytes ||
        fseeko(file, sizeof *header, SEEK_SET) != 0)
        return damaged(path, "its size is not what it was", log);
    return PACE_OK;
}

static bool read_top_word(FILE *file, pace__word *word, char text[PACE__TOKEN_BYTES_MAX])
{
    unsigned char size;

    if (fread(&word->count, sizeof word->count, 1, file) != 1 || fread(&size, 1, 1, file) != 1 || size < 1 ||
        size > PACE__TOKEN_BYTES_MAX || fread(text, size, 1, file) != 1)
        return false;
    word->text = text;
    word->size = size;
    return word->count > 0;
}

/* Words come most frequent first: behind one that is not taken no other will be. */
static pace_status offer_words(FILE *file, uint64_t words, const char *path, pace__words_top *top)
{
    char text[2][PACE__TOKEN_BYTES_MAX];
    pace__word word[2];
    bool taken = true;

    for (uint64_t i = 0; i < words && taken; i++) {
        if (!read_top_word(file, &word[i % 2], text[i % 2]))
            return damaged(path, "a word is cut or has no valid size or count", top->log);
        if (i > 0 && !pace__words_ahead(&word[(i + 1) % 2], &word[i % 2]))
            return damaged(path, "words are not in order", top->log);
        pace_status status = pace__words_top_offer(top, &word[i % 2], 0, &taken);

        if (status)
            return status;
    }
    return PACE_OK;
}

static pace_status offer_file(const char *path, pace__words_top *top)
{
    FILE *file;
    top_header header;
    pace_status status = pace__open_stdio(path, PACE__TO_READ, top->log, &file);

    if (status)
        return status;
    status = read_top_header(file, path, &header, top->log);

    if (!status)
        status = offer_words(file, header.words, path, top);
    fclose(file);
    return status;
}

pace_status pace__words_join(const char *const *outputs, size_t count, uint32_t keep, const pace__word *stops,
                             uint32_t stop_count, const pace_log *log, pace__vocabulary **vocabulary)
{
    pace__words_top top = {.keep = keep, .log = log};
    pace_status status = PACE_OK;

    for (size_t i = 0; i < count && !status; i++)
        status = offer_file(outputs[i], &top);
    if (!status) {
        pace__words_top_sort(&top);
        status = pace__words_top_vocabulary(&top, stops, stop_count, vocabulary);
    }
    pace__words_top_release(&top);
    return status;
}

/* --- translate --- */

/* Every local id of the file, each once: `ids` is UINT32_MAX where none was yet, which is no id of a word. */
static pace_status fill_ids(const char *path, const pace__vocabulary *vocabulary, uint64_t words,
                            const pace_log *log, uint32_t *ids)
{
    pace__words_merge *merge = NULL;
    pace__counted word;
    uint64_t read = 0;
    bool found = true;
    pace_status status = pace__words_merge_open(&path, 1, 0, 1, log, &merge);

    memset(ids, 0xff, words * sizeof *ids);
    while (!status && !(status = pace__words_merge_next(merge, &word, &found)) && found) {
        uint32_t id = pace__vocabulary_find(vocabulary, word.hash, word.word.text, word.word.size);

        if (word.local >= words || ids[word.local] != UINT32_MAX)
            status =
                pace_fail(log, PACE_BAD_DATA, "%s: damaged file of counted words: a local id is wrong", path);
        else if (id == PACE__ID_STOP)
            status = pace_fail(log, PACE_BUG, "%s: a counted word is a stop word of the vocabulary", path);
        else
            ids[word.local] = id;
        read++;
    }
    pace__words_merge_free(merge);
    if (!status && read != words)
        status = pace_fail(log, PACE_BAD_DATA,
                           "%s: damaged file of counted words: %" PRIu64 " words, not %" PRIu64, path, read,
                           words);
    return status;
}

pace_status pace__words_translate(const char *path, const pace__vocabulary *vocabulary, const pace_log *log,
                                  uint32_t **ids, uint32_t *count)
{
    pace__words_header header;
    pace_status status = pace__words_header_read(path, &header, log);

    if (status)
        return status;
    if (header.words > UINT32_MAX)
        return pace_fail(log, PACE_BAD_DATA, "%s: damaged file of counted words: too many words", path);
    uint32_t *table = malloc((header.words + 1) * sizeof *table);

    if (!table)
        return pace_fail(log, PACE_FAILED, "out of memory for the ids of %" PRIu64 " words", header.words);
    status = fill_ids(path, vocabulary, header.words, log, table);
    if (status) {
        free(table);
        return status;
    }
    *ids = table;
    *count = (uint32_t)header.words;
    return PACE_OK;
}
