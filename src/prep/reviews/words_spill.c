#include "prep/reviews/words_file.h"
#include "prep/reviews/words_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* How many slots ahead of a walk over the table records are fetched. */
#define AHEAD 16

/*
 * The table is nearly in the order of hashes: slots are chosen by the top bits. A run of slots without a free
 * one holds all words that belong there, in no order, so runs are sorted one by one.
 */
typedef struct run {
    pace__counted *words;
    size_t count, room;
} run;

static int compare_counted(const void *left, const void *right)
{
    const pace__counted *a = left, *b = right;

    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return pace__word_compare(&a->word, &b->word);
}

static pace_status run_push(run *to, const pace__counted *word, const pace_log *log)
{
    if (to->count == to->room) {
        size_t room = to->room ? 2 * to->room : 64;
        pace__counted *larger = realloc(to->words, room * sizeof *larger);

        if (!larger)
            return pace_fail(log, PACE_FAILED, "out of memory");
        to->words = larger;
        to->room = room;
    }
    to->words[to->count++] = *word;
    return PACE_OK;
}

/* The word of a slot, unless it is free or a stop word's. */
static pace_status run_take(run *to, const pace__word_counter *self, size_t slot_index)
{
    const pace__record *each = pace__record_at(self, self->table[slot_index].at);

    if (self->table[slot_index].at == 0 || (each->id & PACE__RECORD_STOP))
        return PACE_OK;
    uint32_t size = (uint32_t)strlen(each->text);
    pace__counted word = {.word = {.text = each->text, .size = size, .count = each->count},
                          .hash = pace__token_hash(each->text, size),
                          .local = each->id};

    assert(each->count > 0);
    return run_push(to, &word, self->log);
}

static pace_status run_write(run *from, pace__words_writer *writer)
{
    pace_status status = PACE_OK;

    if (from->count > 1)
        qsort(from->words, from->count, sizeof *from->words, compare_counted);
    for (size_t i = 0; i < from->count && !status; i++)
        status = pace__words_writer_put(writer, &from->words[i]);
    from->count = 0;
    return status;
}

/*
 * The run at the first slots may have begun at the last ones. Since half of the slots are free, what belongs
 * to the end has the top bit in its hash, and what belongs here has not.
 */
static pace_status write_words(const pace__word_counter *self, pace__words_writer *writer, run *words,
                               run *wrapped)
{
    size_t slots = (size_t)1 << self->bits, first = 0;
    pace_status status = PACE_OK;

    for (; self->table[first].at && !status; first++) {
        const pace__record *each = pace__record_at(self, self->table[first].at);
        uint64_t hash = pace__token_hash(each->text, strlen(each->text));

        status = run_take(hash >> 63 ? wrapped : words, self, first);
    }
    for (size_t i = first; i < slots && !status; i++) {
        __builtin_prefetch(pace__record_at(self, self->table[(i + AHEAD) & (slots - 1)].at));
        status = self->table[i].at ? run_take(words, self, i) : run_write(words, writer);
    }
    for (size_t i = 0; i < wrapped->count && !status; i++)
        status = run_push(words, &wrapped->words[i], self->log);
    return status ? status : run_write(words, writer);
}

pace_status pace__words_spill(pace__word_counter *counter)
{
    char *path = pace__words_path(counter->directory, counter->name, counter->stats.generations);
    run words = {0}, wrapped = {0};
    pace__words_writer writer;
    uint64_t bytes;

    if (!path)
        return pace_fail(counter->log, PACE_FAILED, "out of memory");
    pace_status status = pace__words_writer_open(&writer, path, counter->log);

    if (!status) {
        counter->stats.generations++; /* there is a file to be removed */
        status = write_words(counter, &writer, &words, &wrapped);
        status = pace__words_writer_close(&writer, status, &bytes);
    }
    if (!status) {
        counter->stats.bytes += bytes;
        counter->stats.distinct += counter->distinct;
    }
    free(words.words);
    free(wrapped.words);
    free(path);
    return status;
}
