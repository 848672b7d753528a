/*
 * ranks.h - values of the members of a sparse set of numbers, side by side: a bit for each possible number, how many
 * members are below every 64 of them, and one value per member. Of 34 million possible ids with 2 million members that is
 * 16 MB instead of 135: fewer fresh pages, and most of it stays in the cache.
 */
#ifndef PREP_CLICKS_RANKS_H
#define PREP_CLICKS_RANKS_H

#include "base/cpu.h"

#include <stddef.h>
#include <stdint.h>

typedef struct pace__ranks {
    uint64_t limit; /* numbers below it can be members */
    struct pace__rank_word {
        uint64_t bits, before;
    } * words;        /* (limit / 64 + 1) */
    uint32_t *values; /* (members + 1) by rank; the last one is that of all others */
    uint32_t members;
} pace__ranks;

typedef struct pace__ranks_kernels {
    /* The values of `count` numbers; returns how many of them are no members. */
    size_t (*find)(const pace__ranks *ranks, const uint64_t *numbers, size_t count, uint32_t *values);
} pace__ranks_kernels;

PACE__TABLES(pace__ranks_kernels, pace__ranks)

static inline uint32_t pace__rank_of(const pace__ranks *ranks, uint64_t number)
{
    const struct pace__rank_word *word = &ranks->words[number / 64];
    uint64_t below = (UINT64_C(1) << (number % 64)) - 1;

    return (uint32_t)word->before + (uint32_t)__builtin_popcountll(word->bits & below);
}

/* The place of a number's value; `members` if it has none. */
static inline uint32_t pace__rank_place(const pace__ranks *ranks, uint64_t number)
{
    if (number >= ranks->limit || !(ranks->words[number / 64].bits >> (number % 64) & 1))
        return ranks->members;
    return pace__rank_of(ranks, number);
}

#endif
