#include "model/linear/ngrams.h"

#include "base/random.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The hash of the words before, with one more. */
static uint64_t longer(uint64_t hash, uint32_t id)
{
    return pace__mix64(hash * 0x9e3779b97f4a7c15u + id + 1);
}

static uint32_t id_of(uint64_t hash, uint32_t words)
{
    return words + (uint32_t)(hash >> (64 - PACE__NGRAM_BITS));
}

uint32_t pace__ngram_id(const uint32_t *ids, unsigned count, uint32_t words)
{
    uint64_t hash = 0;

    for (unsigned i = 0; i < count; i++)
        hash = longer(hash, ids[i]);
    return id_of(hash, words);
}

/* --- room --- */

static bool reserve_rows(pace__ngram_rows *self, size_t rows)
{
    if (self->start && rows <= self->rows_max)
        return true;
    uint64_t *start = malloc((rows + 1) * sizeof *start);

    if (!start)
        return false;
    free(self->start);
    self->start = start;
    self->rows_max = rows;
    return true;
}

static bool reserve_entries(pace__ngram_rows *self, size_t entries)
{
    if (self->ids && entries <= self->entries_max)
        return true;
    size_t room = entries + entries / 4; /* grow seldom */
    uint32_t *ids = malloc((room + 1) * sizeof *ids);

    if (!ids)
        return false;
    free(self->ids);
    self->ids = ids;
    self->entries_max = room;
    return true;
}

/* At most half of the table is used. */
static size_t marks_for(size_t entries)
{
    size_t marks = 64;

    while (marks < 2 * entries)
        marks *= 2;
    return marks;
}

static bool reserve_marks(pace__ngram_rows *self, size_t row_entries)
{
    size_t marks_max = marks_for(row_entries);

    if (self->marks && marks_max <= self->marks_max)
        return true;
    pace__ngram_mark *marks = calloc(marks_max, sizeof *marks);

    if (!marks)
        return false;
    free(self->marks);
    self->marks = marks;
    self->marks_max = marks_max;
    self->row = 0;
    return true;
}

static bool reserve(pace__ngram_rows *self, const pace__rows *texts, unsigned ngram)
{
    size_t words = 0, longest = 0;

    for (size_t row = 0; row < texts->rows; row++) {
        words += texts->length[row];
        longest = texts->length[row] > longest ? texts->length[row] : longest;
    }
    return reserve_rows(self, texts->rows) && reserve_entries(self, words * ngram) &&
           reserve_marks(self, longest * ngram);
}

void pace__ngram_rows_release(pace__ngram_rows *features)
{
    free(features->marks);
    free(features->ids);
    free(features->start);
    *features = (pace__ngram_rows){0};
}

/* --- the features of a row --- */

/* A row under way: a table just large enough stays in the cache. */
typedef struct bag {
    pace__ngram_mark *marks;
    uint32_t mask, row;
    uint32_t *next; /* where the next feature goes */
} bag;

static inline void add(bag *self, uint32_t id)
{
    uint32_t at = (id * UINT32_C(0x9e3779b1)) >> 7;

    for (;; at++) {
        pace__ngram_mark *mark = &self->marks[at & self->mask];

        if (mark->row != self->row) {
            *mark = (pace__ngram_mark){id, self->row};
            *self->next++ = id;
            return;
        }
        if (mark->id == id)
            return;
    }
}

static inline bool is_word(uint32_t id)
{
    return id != PACE__ID_PAD && id != PACE__ID_EMPTY;
}

static inline __attribute__((always_inline)) void walk(const uint32_t *ids, uint32_t length, uint32_t words,
                                                       unsigned ngram, pace__ngram_fn *tell, void *user)
{
    for (uint32_t i = 0; i < length; i++) {
        uint64_t hash = longer(0, ids[i]);

        if (!is_word(ids[i]))
            continue;
        tell(user, &(pace__ngram){ids[i], ids + i, 1});
        for (uint32_t behind = i + 1; behind < length && behind < i + ngram && is_word(ids[behind]);
             behind++) {
            hash = longer(hash, ids[behind]);
            tell(user, &(pace__ngram){id_of(hash, words), ids + i, behind - i + 1});
        }
    }
}

void pace__ngrams_walk(const uint32_t *text, uint32_t length, uint32_t words, unsigned ngram,
                       pace__ngram_fn *tell, void *user)
{
    walk(text, length, words, ngram, tell, user);
}

static inline void add_found(void *user, const pace__ngram *found)
{
    add(user, found->id);
}

/* Every row has a number of its own, so that the table need not be cleared; when they run out, it is. */
static uint32_t next_row(pace__ngram_rows *self)
{
    if (self->row == UINT32_MAX) {
        memset(self->marks, 0, self->marks_max * sizeof *self->marks);
        self->row = 0;
    }
    return ++self->row;
}

pace_status pace__ngrams_expand(const pace__rows *texts, uint32_t words, unsigned ngram,
                                pace__ngram_rows *features, const pace_log *log)
{
    assert(texts->length && ngram >= 1 && ngram <= PACE__NGRAM_MAX);
    if (!reserve(features, texts, ngram))
        return pace_fail(log, PACE_FAILED, "out of memory: the n-grams of %zu texts", texts->rows);
    bag self = {.marks = features->marks, .next = features->ids};

    for (size_t row = 0; row < texts->rows; row++) {
        uint32_t length = texts->length[row];

        features->start[row] = (uint64_t)(self.next - features->ids);
        self.mask = (uint32_t)marks_for((size_t)length * ngram) - 1;
        self.row = next_row(features);
        walk(pace__row_words(texts, row), length, words, ngram, add_found, &self);
    }
    features->start[texts->rows] = (uint64_t)(self.next - features->ids);
    features->rows = (pace__rows){
        .rows = texts->rows, .start = features->start, .ids = features->ids, .label = texts->label};
    return PACE_OK;
}

uint32_t pace__ngram_ids(uint32_t words, unsigned ngram)
{
    assert(ngram >= 1 && ngram <= PACE__NGRAM_MAX);
    return words + (ngram > 1 ? UINT32_C(1) << PACE__NGRAM_BITS : 0);
}
