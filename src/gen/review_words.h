/*
 * review_words.h - the words of synthetic reviews.
 *
 * Cues are the English words that decide about a review's tone. The vocabulary is everything else, by
 * frequency: English function words, then pronounceable words that do not exist, and a few with letters
 * beyond ASCII. No word of the vocabulary is a cue, and none occurs twice, except that some of those beyond
 * ASCII have a second spelling with a JSON escape.
 */
#ifndef GEN_REVIEW_WORDS_H
#define GEN_REVIEW_WORDS_H

#include "gen/review_tone.h"

/* All of it is copied, which is faster than copying `length` bytes. */
typedef struct pace__word {
    char text[15]; /* as it stands in a JSON string; zeros behind it */
    uint8_t length;
} pace__word;

#define PACE__VOCABULARY 60000

/* Cues of a role follow each other, those of [role] from first[role] to first[role + 1]. */
enum {
    PACE__FIRST_PRAISE = 0,
    PACE__FIRST_BLAME = 40,
    PACE__FIRST_NEGATOR = 80,
    PACE__FIRST_INTENSIFIER = 88,
    PACE__FIRST_CONTRAST = 96,
    PACE__CUES = 100
};
extern const pace__cue pace__cues[PACE__CUES];

/* The number of the first cue with this role; for PACE__CUE_ROLES, that of all cues. */
unsigned pace__first_cue(unsigned role);

pace__word pace__word_of(const char *text);

/* Fills vocabulary[PACE__VOCABULARY] and returns how many function words it begins with. */
uint32_t pace__vocabulary_fill(pace__word *vocabulary);

#endif
