/*
 * ngrams.h - texts as bags of words and n-grams: what a linear model makes of a row of text.
 *
 * A row's features are its words, and the runs of 2 .. ngram neighbouring words in it, each once, however
 * often it occurs: for opinions it says more that a word is there than how often. Ids are:
 *
 *     0 .. words                     a word, by its id in the vocabulary; PACE__ID_UNKNOWN is one, too
 *     words .. words + 2^22          longer n-grams: words + the upper PACE__NGRAM_BITS of a hash of their
 *                                    words' ids. Those that collide share a weight.
 *
 * Padding and PACE__ID_EMPTY are no words: they are in no feature. The ids are written to model files: the
 * hash never changes.
 *
 *     pace__ngram_rows features = {0};
 *     status = pace__ngrams_expand(&rows, words, 2, &features, log);  // features.rows, until the next call
 *     pace__ngram_rows_release(&features);
 */
#ifndef MODEL_LINEAR_NGRAMS_H
#define MODEL_LINEAR_NGRAMS_H

#include "math/batch.h"

#include <paceline/log.h>

#define PACE__NGRAM_BITS 22
#define PACE__NGRAM_MAX  8

/* A feature of the row at hand, or of an earlier one. */
typedef struct pace__ngram_mark {
    uint32_t id, row;
} pace__ngram_mark;

/* Begins as {0}; used again for other rows, it allocates only for more features than ever before. */
typedef struct pace__ngram_rows {
    pace__rows rows; /* without columns and values; the labels are those of the texts */
    /* private */
    uint64_t *start;
    uint32_t *ids;
    size_t rows_max, entries_max;
    pace__ngram_mark *marks; /* (marks_max, a power of 2) hash table of a row's features */
    size_t marks_max;
    uint32_t row; /* number of the last row; marks of all others count as free */
} pace__ngram_rows;

/* The features of each row, in the order in which they occur; `words` is the number of ids of the vocabulary,
 * the features' ids are below pace__ngram_ids. Fails only when out of memory. */
pace_status pace__ngrams_expand(const pace__rows *texts, uint32_t words, unsigned ngram,
                                pace__ngram_rows *features, const pace_log *log);
void pace__ngram_rows_release(pace__ngram_rows *features);

/* An occurrence of a feature: `count` neighbouring words of a text. */
typedef struct pace__ngram {
    uint32_t id;
    const uint32_t *words;
    unsigned count;
} pace__ngram;
typedef void pace__ngram_fn(void *user, const pace__ngram *found);

/* All occurrences in a text (pace__row_words), in the order in which pace__ngrams_expand takes the first of each. */
void pace__ngrams_walk(const uint32_t *text, uint32_t length, uint32_t words, unsigned ngram,
                       pace__ngram_fn *tell, void *user);

/* How many ids there are: the vocabulary's, `words` of them, and, with n-grams (ngram is 2 .. PACE__NGRAM_MAX,
 * else 1), hashes of PACE__NGRAM_BITS behind them. */
uint32_t pace__ngram_ids(uint32_t words, unsigned ngram);

/* The id of a longer n-gram; count is 2 or more. */
uint32_t pace__ngram_id(const uint32_t *ids, unsigned count, uint32_t words);

#endif
