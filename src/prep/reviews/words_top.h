/*
 * words_top.h - the most frequent of any number of words, in memory for those alone. For words*.c, and for
 * their tests.
 *
 *     pace__words_top top = {.keep = 20000, .log = log};
 *     for each word
 *         pace__words_top_offer(&top, &word, line, NULL);
 *     pace__words_top_sort(&top);               // most frequent first, equal ones by spelling
 *     ... top.words[0 .. top.count) ...
 *     pace__words_top_release(&top);
 */
#ifndef PREP_REVIEWS_WORDS_TOP_H
#define PREP_REVIEWS_WORDS_TOP_H

#include "data/text/vocabulary.h"

typedef struct pace__top_word {
    pace__word word; /* its text is in the pool once it is sorted */
    uint64_t line;   /* the caller's */
    size_t at;       /* of its text in the pool */
} pace__top_word;

typedef struct pace__words_top {
    uint32_t keep;
    const pace_log *log;
    uint32_t count, room;
    pace__top_word *words; /* a heap until it is sorted: the first one is the next to go */
    char *pool;
    size_t used, live, pool_bytes; /* of the pool: with texts of words that are gone, and without */
} pace__words_top;

/* Is `left` more frequent, or as frequent and first by spelling? */
bool pace__words_ahead(const pace__word *left, const pace__word *right);

/* *taken (NULL is allowed): is it among the most frequent so far? */
pace_status pace__words_top_offer(pace__words_top *top, const pace__word *word, uint64_t line, bool *taken);
/* Nothing may be offered afterwards. */
void pace__words_top_sort(pace__words_top *top);
void pace__words_top_release(pace__words_top *top);

/* The vocabulary of sorted words. */
pace_status pace__words_top_vocabulary(const pace__words_top *top, const pace__word *stops,
                                       uint32_t stop_count, pace__vocabulary **vocabulary);

#endif
