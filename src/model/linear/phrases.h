/*
 * phrases.h - which words the heaviest n-grams of a linear model are: their ids are hashes, which do not tell.
 *
 * They are looked up in the training rows once the model is trained. Of n-grams that share an id the one that most
 * of its occurrences are is kept: a vote of two (Boyer and Moore) finds it, if it is more than half of them, with
 * one candidate for each id, so that memory depends on neither rows nor n-grams.
 *
 *     pace__phrases phrases;
 *     status = pace__phrases_find(weight, words, ngram, &origin, log, &phrases);
 *     const uint32_t *found = pace__phrase_of(&phrases, words, id, &count);     // NULL: nobody knows
 *     pace__phrases_release(&phrases);
 */
#ifndef MODEL_LINEAR_PHRASES_H
#define MODEL_LINEAR_PHRASES_H

#include "math/dataset.h"

#include <stdbool.h>

/* The heaviest n-grams that are kept, and the training rows in which they are looked for. */
#define PACE__PHRASES_MAX      65536
#define PACE__PHRASES_ROWS_MAX (UINT64_C(1) << 20)

typedef struct pace__phrases {
    unsigned ngram; /* 2 or more */
    uint32_t count;
    uint32_t *words; /* (count, ngram) by rising id of the n-gram; PACE__ID_PAD behind shorter ones */
} pace__phrases;

/* Of the weights of all pace__ngram_ids. The origin can read rows. */
pace_status pace__phrases_find(const float *weight, uint32_t words, unsigned ngram,
                               const pace__origin *origin, const pace_log *log, pace__phrases *phrases);
void pace__phrases_release(pace__phrases *phrases); /* a zeroed one is allowed */

/* Are they what pace__phrases_find might have found? For those of a file. */
bool pace__phrases_check(const pace__phrases *phrases, uint32_t words);

/* The words of an n-gram, *count of them. */
const uint32_t *pace__phrase_of(const pace__phrases *phrases, uint32_t words, uint64_t id, unsigned *count);

#endif
