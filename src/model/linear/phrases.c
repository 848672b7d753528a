#include "model/linear/phrases.h"

#include "model/ids.h"
#include "model/linear/ngrams.h"

#include <stdlib.h>
#include <string.h>

/* --- which --- */

#define BINS 32768

/* The sizes of floats are ordered as these bits of theirs are; 0: it is no weight. */
static uint32_t size_bits(float weight)
{
    uint32_t bits;

    memcpy(&bits, &weight, sizeof bits);
    return bits & 0x7fffffff;
}

static unsigned bin_of(float weight)
{
    return size_bits(weight) >> 16;
}

/* The bin that not all may be taken of; those above it hold *above together. */
static unsigned last_bin(const float *weight, uint32_t first, uint32_t ids, uint32_t *above)
{
    uint32_t counts[BINS] = {0};
    unsigned bin = BINS - 1;

    for (uint32_t id = first; id < ids; id++)
        counts[bin_of(weight[id])] += size_bits(weight[id]) > 0;
    for (*above = 0; bin > 0 && *above + counts[bin] <= PACE__PHRASES_MAX; bin--)
        *above += counts[bin];
    return bin;
}

/* The ids of the heaviest n-grams, rising; of that last bin the first. */
static uint32_t choose(const float *weight, uint32_t first, uint32_t ids, uint64_t *chosen)
{
    uint32_t above, count = 0;
    unsigned last = last_bin(weight, first, ids, &above);
    uint32_t rest = PACE__PHRASES_MAX - above;

    for (uint32_t id = first; id < ids; id++) {
        unsigned bin = bin_of(weight[id]);

        if (size_bits(weight[id]) == 0 || bin < last || (bin == last && rest == 0))
            continue;
        rest -= bin == last;
        chosen[count++] = id;
    }
    return count;
}

/* --- what they are --- */

typedef struct search {
    uint32_t first, words; /* ids of n-grams begin there */
    unsigned ngram;
    uint64_t *chosen, *marks; /* the ids; a bit for each that there may be */
    pace__id_index index;
    uint32_t *candidates, *votes; /* (chosen, ngram), (chosen) */
} search;

static bool is_marked(const search *self, uint32_t id)
{
    uint32_t at = id - self->first;

    return self->marks[at / 64] >> (at % 64) & 1;
}

static void vote(void *user, const pace__ngram *found)
{
    search *self = user;

    if (found->count < 2 || !is_marked(self, found->id))
        return;
    uint32_t place = pace__id_place(&self->index, found->id);
    uint32_t *candidate = self->candidates + (size_t)place * self->ngram;
    bool shorter = found->count < self->ngram && candidate[found->count] != PACE__ID_PAD;

    if (self->votes[place] == 0) {
        memset(candidate, 0, self->ngram * sizeof *candidate); /* PACE__ID_PAD */
        memcpy(candidate, found->words, found->count * sizeof *candidate);
        self->votes[place] = 1;
    } else if (!shorter && memcmp(candidate, found->words, found->count * sizeof *candidate) == 0) {
        self->votes[place] += self->votes[place] < UINT32_MAX;
    } else {
        self->votes[place]--;
    }
}

static pace_status vote_rows(void *user, const pace__rows *rows)
{
    search *self = user;

    for (size_t row = 0; row < rows->rows; row++)
        pace__ngrams_walk(pace__row_words(rows, row), rows->length[row], self->words, self->ngram, vote,
                          self);
    return PACE_OK;
}

/* Those of which rows have told the words. */
static uint32_t pack(search *self, uint32_t chosen)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < chosen; i++) {
        const uint32_t *from = self->candidates + (size_t)i * self->ngram;

        if (from[0] == PACE__ID_PAD)
            continue;
        memmove(self->candidates + (size_t)count * self->ngram, from, self->ngram * sizeof *from);
        count++;
    }
    return count;
}

static pace_status allocate(search *self, const pace_log *log)
{
    self->chosen = malloc(PACE__PHRASES_MAX * sizeof *self->chosen);
    self->marks = calloc((1u << PACE__NGRAM_BITS) / 64, sizeof *self->marks);
    self->votes = calloc(PACE__PHRASES_MAX, sizeof *self->votes);
    self->candidates = calloc((size_t)PACE__PHRASES_MAX * self->ngram, sizeof *self->candidates);
    return self->chosen && self->marks && self->votes && self->candidates
               ? PACE_OK
               : pace_fail(log, PACE_FAILED, "out of memory for the words of n-grams");
}

pace_status pace__phrases_find(const float *weight, uint32_t words, unsigned ngram,
                               const pace__origin *origin, const pace_log *log, pace__phrases *phrases)
{
    search self = {.first = words, .words = words, .ngram = ngram};
    uint32_t chosen = 0;
    pace_status status = allocate(&self, log);

    if (!status) {
        chosen = choose(weight, words, pace__ngram_ids(words, ngram), self.chosen);
        for (uint32_t i = 0; i < chosen; i++)
            self.marks[(self.chosen[i] - words) / 64] |= UINT64_C(1) << ((self.chosen[i] - words) % 64);
        status = pace__id_index_init(&self.index, self.chosen, chosen, log);
    }
    if (!status)
        status = origin->read_rows(origin->set, PACE__PHRASES_ROWS_MAX, vote_rows, &self, log);
    if (!status) {
        *phrases = (pace__phrases){ngram, pack(&self, chosen), self.candidates};
        self.candidates = NULL;
    }
    pace__id_index_release(&self.index);
    free(self.candidates);
    free(self.votes);
    free(self.marks);
    free(self.chosen);
    return status;
}

void pace__phrases_release(pace__phrases *phrases)
{
    free(phrases->words);
    *phrases = (pace__phrases){0};
}

/* --- whose words --- */

static unsigned length_of(const uint32_t *words, unsigned ngram)
{
    unsigned count = 0;

    while (count < ngram && words[count] != PACE__ID_PAD)
        count++;
    return count;
}

static bool is_phrase(const uint32_t *ids, unsigned ngram, uint32_t words)
{
    unsigned count = length_of(ids, ngram);

    for (unsigned i = 0; i < ngram; i++) {
        if (i < count ? ids[i] >= words || ids[i] == PACE__ID_EMPTY : ids[i] != PACE__ID_PAD)
            return false;
    }
    return count >= 2;
}

bool pace__phrases_check(const pace__phrases *phrases, uint32_t words)
{
    uint32_t last = 0;

    for (uint32_t i = 0; i < phrases->count; i++) {
        const uint32_t *ids = phrases->words + (size_t)i * phrases->ngram;

        if (!is_phrase(ids, phrases->ngram, words))
            return false;
        uint32_t id = pace__ngram_id(ids, length_of(ids, phrases->ngram), words);

        if (i > 0 && id <= last)
            return false;
        last = id;
    }
    return true;
}

const uint32_t *pace__phrase_of(const pace__phrases *phrases, uint32_t words, uint64_t id, unsigned *count)
{
    uint32_t first = 0, last = phrases->count;

    while (first < last) {
        uint32_t middle = first + (last - first) / 2;
        const uint32_t *ids = phrases->words + (size_t)middle * phrases->ngram;
        unsigned length = length_of(ids, phrases->ngram);
        uint32_t found = pace__ngram_id(ids, length, words);

        if (found == id) {
            *count = length;
            return ids;
        }
        if (found < id)
            first = middle + 1;
        else
            last = middle;
    }
    return NULL;
}
