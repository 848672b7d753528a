/*
 * review_text.h - the text of a synthetic review, and its tone.
 *
 * A review has a hidden mood. Its sentences praise or blame, mostly as the mood is, or tell something that
 * does not matter. What a sentence means is said plainly, or by negating the opposite, or behind a "but" that
 * takes back what stands in front of it; which of these is drawn without regard to the meaning. So a polar
 * word alone says little: review_tone.h has the rules. The tone is what the rules find in the text, not what
 * the mood was: nothing but the text is needed to compute it. Negators and intensifiers also stand where they
 * change nothing.
 *
 * Drawing uses no function of the C library, so texts are the same on every machine.
 */
#ifndef GEN_REVIEW_TEXT_H
#define GEN_REVIEW_TEXT_H

#include "base/random.h"
#include "gen/review_tone.h"

#define PACE__REVIEW_WORDS_MIN 2
#define PACE__REVIEW_WORDS_MAX 2000

/* No text and no title is longer: a word has 15 bytes, at most 13 around it, and its share of an ending. */
#define PACE__REVIEW_TEXT_MAX  (PACE__REVIEW_WORDS_MAX * 32)
#define PACE__REVIEW_TITLE_MAX 256

typedef struct pace__review_language pace__review_language;

/* NULL when out of memory. Never changed after it was made: threads share it. */
pace__review_language *pace__review_language_create(void);
void pace__review_language_free(pace__review_language *language); /* NULL is allowed */

/* Writes what stands between the quotes of a JSON string, returns the byte behind it, may touch 16 more. */
char *pace__review_text(const pace__review_language *language, pace__random *random, char *at,
                        pace__tone *tone);

/* The same for a title, which has no tone. */
char *pace__review_title(const pace__review_language *language, pace__random *random, char *at);

#endif
