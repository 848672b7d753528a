#include "prep/reviews/words_top.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 1024
#define POOL_FIRST ((size_t)64 << 10)

bool pace__words_ahead(const pace__word *left, const pace__word *right)
{
    if (left->count != right->count)
        return left->count > right->count;
    return pace__word_compare(left, right) < 0;
}

/* The text of a word in the heap. */
static pace__word word_of(const pace__words_top *self, const pace__top_word *each)
{
    return (pace__word){.text = self->pool + each->at, .size = each->word.size, .count = each->word.count};
}

static bool ahead(const pace__words_top *self, uint32_t left, uint32_t right)
{
    pace__word a = word_of(self, &self->words[left]), b = word_of(self, &self->words[right]);

    return pace__words_ahead(&a, &b);
}

static void swap(pace__words_top *self, uint32_t left, uint32_t right)
{
    pace__top_word kept = self->words[left];

    self->words[left] = self->words[right];
    self->words[right] = kept;
}

/* Of words[0 .. count), the one that comes last is the first. */
static void sift_down(pace__words_top *self, uint32_t at, uint32_t count)
{
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        child += child + 1 < count && ahead(self, child, child + 1);
        if (!ahead(self, at, child))
            return;
        swap(self, at, child);
    }
}

static void sift_up(pace__words_top *self, uint32_t at)
{
    for (; at > 0 && ahead(self, (at - 1) / 2, at); at = (at - 1) / 2)
        swap(self, at, (at - 1) / 2);
}

/* Another pool without the texts of words that are gone, at most half full. */
static bool renew_pool(pace__words_top *self, size_t size)
{
    size_t bytes = 2 * (self->live + size) < POOL_FIRST ? POOL_FIRST : 2 * (self->live + size);
    char *pool = malloc(bytes);
    size_t used = 0;

    if (!pool)
        return false;
    for (uint32_t i = 0; i < self->count; i++) {
        memcpy(pool + used, self->pool + self->words[i].at, self->words[i].word.size);
        self->words[i].at = used;
        used += self->words[i].word.size;
    }
    free(self->pool);
    self->pool = pool;
    self->pool_bytes = bytes;
    self->used = used;
    return true;
}

static bool make_room(pace__words_top *self)
{
    uint32_t room = self->room ? 2 * self->room : ROOM_FIRST;
    pace__top_word *larger;

    if (self->count < self->room)
        return true;
    room = room < self->keep ? room : self->keep;
    larger = realloc(self->words, room * sizeof *larger);
    if (!larger)
        return false;
    self->words = larger;
    self->room = room;
    return true;
}

static bool put_text(pace__words_top *self, const pace__word *word, size_t *at)
{
    if (self->pool_bytes - self->used < word->size && !renew_pool(self, word->size))
        return false;
    *at = self->used;
    memcpy(self->pool + *at, word->text, word->size);
    self->used += word->size;
    self->live += word->size;
    return true;
}

static bool push(pace__words_top *self, const pace__word *word, uint64_t line)
{
    pace__top_word added = {.word = *word, .line = line};

    if (!make_room(self) || !put_text(self, word, &added.at))
        return false;
    self->words[self->count++] = added;
    sift_up(self, self->count - 1);
    return true;
}

/* Instead of the one that comes last. */
static bool replace_last(pace__words_top *self, const pace__word *word, uint64_t line)
{
    pace__top_word added = {.word = *word, .line = line};

    self->live -= self->words[0].word.size;
    self->words[0].word.size = 0; /* its text need not be kept */
    if (!put_text(self, word, &added.at))
        return false;
    self->words[0] = added;
    sift_down(self, 0, self->count);
    return true;
}

pace_status pace__words_top_offer(pace__words_top *top, const pace__word *word, uint64_t line, bool *taken)
{
    bool full = top->count == top->keep, better = !full, done = true;

    if (full && top->keep > 0) {
        pace__word last = word_of(top, &top->words[0]);

        better = pace__words_ahead(word, &last);
    }
    if (better)
        done = full ? replace_last(top, word, line) : push(top, word, line);
    if (taken)
        *taken = better;
    return done ? PACE_OK
                : pace_fail(top->log, PACE_FAILED, "out of memory for the %u most frequent words", top->keep);
}

void pace__words_top_sort(pace__words_top *top)
{
    for (uint32_t left = top->count; left > 1; left--) {
        swap(top, 0, left - 1);
        sift_down(top, 0, left - 1);
    }
    for (uint32_t i = 0; i < top->count; i++)
        top->words[i].word.text = top->pool + top->words[i].at;
}

void pace__words_top_release(pace__words_top *top)
{
    free(top->words);
    free(top->pool);
    *top = (pace__words_top){0};
}

pace_status pace__words_top_vocabulary(const pace__words_top *top, const pace__word *stops,
                                       uint32_t stop_count, pace__vocabulary **vocabulary)
{
    pace__word *words = malloc((top->count + 1) * sizeof *words);

    if (!words)
        return pace_fail(top->log, PACE_FAILED, "out of memory for %u words", top->count);
    for (uint32_t i = 0; i < top->count; i++)
        words[i] = top->words[i].word;
    pace_status status = pace__vocabulary_create(words, top->count, stops, stop_count, top->log, vocabulary);

    free(words);
    return status;
}
