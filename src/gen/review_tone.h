/*
 * review_tone.h - what a review says, by rules that need the order of its words.
 *
 *   1. A polar word has a value, above 0 (praise) or below (blame).
 *   2. A negator turns the next polar word around if that is among the PACE__NEGATOR_SCOPE words behind it,
 *      and takes some weight from it: "not a good one" is blame, though not as much as "bad".
 *   3. An intensifier's factor applies to the next polar word if that is among the PACE__INTENSIFIER_SCOPE
 *      words behind it.
 *   4. The next polar word behind a contrast word ("but") counts PACE__CONTRAST_WEIGHT times.
 *   5. The tone is the mean over the polar words; 0 without any.
 *   6. The log-odds of a positive review are PACE__TONE_INTERCEPT + PACE__TONE_SLOPE * tone.
 *
 * Case, punctuation and markup play no part. Words arrive one by one:
 *
 *     pace__tone tone = {0};
 *     pace__tone_cue(&tone, cue);    // "not"
 *     pace__tone_plain(&tone);       // "a"
 *     pace__tone_cue(&tone, cue);    // "good"
 *     pace__tone_log_odds(&tone) < 0
 */
#ifndef GEN_REVIEW_TONE_H
#define GEN_REVIEW_TONE_H

#include <stdbool.h>
#include <stdint.h>

#define PACE__NEGATOR_SCOPE     4
#define PACE__NEGATOR_FACTOR    (-0.75)
#define PACE__INTENSIFIER_SCOPE 2
#define PACE__CONTRAST_WEIGHT   2.5
#define PACE__TONE_SLOPE        4.0
#define PACE__TONE_INTERCEPT    0.2

typedef enum pace__cue_role {
    PACE__PRAISE,
    PACE__BLAME,
    PACE__NEGATOR,
    PACE__INTENSIFIER,
    PACE__CONTRAST,
    PACE__CUE_ROLES
} pace__cue_role;

/* A word that plays a part. `value` is that of a polar word, or an intensifier's factor. */
typedef struct pace__cue {
    const char *text;
    pace__cue_role role;
    double value;
} pace__cue;

typedef struct pace__tone {
    uint32_t words;
    uint32_t negated_until, intense_until; /* the number of the last word in scope */
    double factor;                         /* the intensifier's */
    bool contrast;                         /* waits for its polar word */
    uint32_t polar_words;
    double sum;
} pace__tone;

static inline void pace__tone_plain(pace__tone *tone)
{
    tone->words++;
}

static inline void pace__tone_cue(pace__tone *tone, const pace__cue *cue)
{
    double value = cue->value;

    tone->words++;
    switch (cue->role) {
    case PACE__NEGATOR:
        tone->negated_until = tone->words + PACE__NEGATOR_SCOPE;
        return;
    case PACE__INTENSIFIER:
        tone->intense_until = tone->words + PACE__INTENSIFIER_SCOPE;
        tone->factor = value;
        return;
    case PACE__CONTRAST:
        tone->contrast = true;
        return;
    default:
        value *= tone->words <= tone->negated_until ? PACE__NEGATOR_FACTOR : 1;
        value *= tone->words <= tone->intense_until ? tone->factor : 1;
        value *= tone->contrast ? PACE__CONTRAST_WEIGHT : 1;
        tone->negated_until = tone->intense_until = 0;
        tone->contrast = false;
        tone->polar_words++;
        tone->sum += value;
    }
}

static inline double pace__tone_log_odds(const pace__tone *tone)
{
    double mean = tone->polar_words ? tone->sum / tone->polar_words : 0;

    return PACE__TONE_INTERCEPT + PACE__TONE_SLOPE * mean;
}

#endif
