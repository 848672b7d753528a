/*
 * draws.h - what networks draw at random: first values, dropout, changes of pictures.
 *
 * Each draw is a function of the seed, of what it is for and of a place: that of a row in the order, or the
 * number of a tensor or word. Never of the batch, thread or worker. Purposes have streams of their own: who
 * draws more for one does not change another.
 *
 *     pace__random random = pace__draw(config->seed, PACE__DRAW_PICTURES, place);
 *
 * Dropout asks about many units of the same row: a key for all of them, 32 bits for each (two units from one
 * number of the key's stream), and a unit is kept if its bits are not below the limit:
 *
 *     uint64_t key = pace__drop_word_key(config->seed, place, layer, word);
 *     bool kept = pace__drop_bits(key, unit) >= pace__drop_limit(config->dropout);
 */
#ifndef MATH_DRAWS_H
#define MATH_DRAWS_H

#include "base/random.h"

/* A network that has words has no features, and no pictures. */
#define PACE__DRAW_UNITS    UINT64_C(0)                  /* dropout between layers, and of pooled vectors */
#define PACE__DRAW_WEIGHTS  UINT64_C(0x6a09e667f3bcc908) /* first values of tensors */
#define PACE__DRAW_WORDS    UINT64_C(0xbb67ae8584caa73b) /* first values of embeddings */
#define PACE__DRAW_FEATURES UINT64_C(0xbb67ae8584caa73b) /* dropout in front of a head */
#define PACE__DRAW_PICTURES UINT64_C(0x3c6ef372fe94f82b) /* augmentation */

static inline pace__random pace__draw(int64_t seed, uint64_t purpose, uint64_t place)
{
    return pace__random_at((uint64_t)seed ^ purpose, place);
}

/* Of the units of a word's output in a layer. */
static inline uint64_t pace__drop_word_key(int64_t seed, uint64_t place, uint32_t layer, uint32_t word)
{
    pace__random row = pace__draw(seed, PACE__DRAW_UNITS, place);

    return pace__random_at(row.state, (uint64_t)layer << 32 | word).state;
}

/* Of the features of a row. */
static inline uint64_t pace__drop_features_key(int64_t seed, uint64_t place)
{
    return pace__draw(seed, PACE__DRAW_FEATURES, place).state;
}

static inline uint32_t pace__drop_bits(uint64_t key, uint32_t unit)
{
    return (uint32_t)(pace__mix64(key + (unit / 2) * 0x9e3779b97f4a7c15u) >> (unit % 2 * 32));
}

static inline uint32_t pace__drop_limit(float dropout)
{
    return (uint32_t)((double)dropout * 0x1p32);
}

#endif
