/*
 * candidates.h - settings to be compared: a value, or none, for each of what is tried. Functions of the tries and a seed; nothing
 * here looks at a file or starts anything.
 *
 *     pace__candidate_sample(&tries, seed, place, &candidate);      // at random: a function of seed and place alone
 *     pace__candidate_on_grid(&tries, place, &candidate);           // place < pace__grid_size(&tries)
 *     pace__candidate_words(&tries, &candidate, text);              // "lr=0.0473 l2=0": what it is known by
 *
 * Values are texts, as a command line has them, with three digits where they come from a range: a rate of 0.04728617 is no
 * better than 0.0473, and nobody can remember it.
 */
#ifndef TUNE_CANDIDATES_H
#define TUNE_CANDIDATES_H

#include "tune/tries.h"

#define PACE__RANGE_POINTS   5 /* of a range on a grid, both ends among them */
#define PACE__NUMBER_TEXT    32
#define PACE__CANDIDATE_TEXT 640

/* By try. */
typedef struct pace__candidate {
    bool is_default;                     /* nothing is changed, and nothing of the rest is there */
    const char *listed[PACE__TRIES_MAX]; /* a value of a list; NULL: it is the number */
    char numbers[PACE__TRIES_MAX][PACE__NUMBER_TEXT]; /* of a range */
} pace__candidate;

/* Not of defaults. */
const char *pace__candidate_value(const pace__candidate *candidate, size_t try);

/* Points of all tries, multiplied; UINT64_MAX: that many or more. */
uint64_t pace__grid_size(const pace__tries *tries);
/* How many differ at all; UINT64_MAX: more than can be counted. */
uint64_t pace__combinations(const pace__tries *tries);

void pace__candidate_sample(const pace__tries *tries, uint64_t seed, uint64_t place,
                            pace__candidate *candidate);
/* The last try runs fastest. */
void pace__candidate_on_grid(const pace__tries *tries, uint64_t place, pace__candidate *candidate);

/* Of defaults: "defaults". What does not fit is cut. Returns text. */
const char *pace__candidate_words(const pace__tries *tries, const pace__candidate *candidate,
                                  char text[PACE__CANDIDATE_TEXT]);

/* Puts its values into a config, which may point to the tries' texts afterwards. */
void pace__candidate_apply(const pace__tries *tries, const pace__candidate *candidate,
                           pace_train_config *config);

/* Would the config be what it is? */
bool pace__candidate_changes(const pace__tries *tries, const pace__candidate *candidate,
                             const pace_train_config *base);

#endif
