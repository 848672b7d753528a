/*
 * ranks.h - values of the members of a sparse set of numbers: a bit for each possible number, and the values of members only,
 * side by side. For every 128 possible numbers there is a cache line with their bits and the first of their values, so that
 * one miss is all that a lookup costs as a rule. Of 34 million possible ids with 2 million members that is 25 MB instead of
 * 135: fewer fresh pages, and more of it stays in the cache.
 */
#ifndef PREP_CLICKS_RANKS_H
#define PREP_CLICKS_RANKS_H

#include "base/cpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACE__RANKS_LINE 128 /* numbers of a line */
#define PACE__RANKS_NEAR 11

typedef struct pace__rank_line {
    uint64_t bits[PACE__RANKS_LINE / 64];
    uint32_t before;                 /* how many members are in the lines before */
    uint32_t near[PACE__RANKS_NEAR]; /* the values of the first members, set by pace__ranks_bring_near */
} pace__rank_line;

typedef struct pace__ranks {
    uint64_t limit;         /* numbers below it can be members */
    pace__rank_line *lines; /* (limit / PACE__RANKS_LINE + 1) */
    uint32_t *values;       /* (members) by rank */
    uint32_t members;
    uint32_t other; /* the value of all others */
} pace__ranks;

/* Copies values into the lines: before the first find, once they are final. */
void pace__ranks_bring_near(pace__ranks *ranks);

typedef struct pace__ranks_kernels {
    /* Fills the lines from the bits of all possible numbers, (limit / 64 + 1) words, and counts the members. */
    void (*index)(pace__ranks *ranks, const uint64_t *bits);
    /* The value of each of these becomes its place in the list; what is not below the limit is left out. */
    void (*number)(const pace__ranks *ranks, const uint64_t *members, uint32_t count);
    /* The values of `count` numbers; returns how many of them are no members. */
    size_t (*find)(const pace__ranks *ranks, const uint64_t *numbers, size_t count, uint32_t *values);
} pace__ranks_kernels;

PACE__TABLES(pace__ranks_kernels, pace__ranks)

/* How many members of a number's line are below it: all of the words before its own, and some of that. */
static inline uint64_t pace__rank_below(const pace__rank_line *line, uint64_t number)
{
    uint64_t mask = (UINT64_C(1) << (number % 64)) - 1, second = 0 - (number / 64 & 1);

    return (uint64_t)__builtin_popcountll(line->bits[0] & (mask | second)) +
           (uint64_t)__builtin_popcountll(line->bits[1] & mask & second);
}

/* What pace__ranks_kernels.index does. */
static inline void pace__ranks_index(pace__ranks *ranks, const uint64_t *bits)
{
    uint64_t end = ranks->limit / 64 + 1, members = 0;

    for (uint64_t word = 0; word < end; word += PACE__RANKS_LINE / 64) {
        pace__rank_line *line = &ranks->lines[word * 64 / PACE__RANKS_LINE];

        line->bits[0] = bits[word];
        line->bits[1] = word + 1 < end ? bits[word + 1] : 0;
        line->before = (uint32_t)members;
        members +=
            (uint64_t)__builtin_popcountll(line->bits[0]) + (uint64_t)__builtin_popcountll(line->bits[1]);
    }
    ranks->members = (uint32_t)members;
}

static inline uint32_t pace__rank_of(const pace__ranks *ranks, uint64_t number)
{
    const pace__rank_line *line = &ranks->lines[number / PACE__RANKS_LINE];

    return line->before + (uint32_t)pace__rank_below(line, number);
}

/* What pace__ranks_kernels.number does. */
static inline void pace__ranks_number(const pace__ranks *ranks, const uint64_t *members, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (members[i] < ranks->limit)
            ranks->values[pace__rank_of(ranks, members[i])] = i;
    }
}

/* Where the value of a number stands: &ranks->other of one that is no member. */
static inline const uint32_t *pace__rank_at(const pace__ranks *ranks, uint64_t number)
{
    const pace__rank_line *line = &ranks->lines[number < ranks->limit ? number / PACE__RANKS_LINE : 0];
    bool member = (number < ranks->limit) & (line->bits[number / 64 & 1] >> (number % 64) & 1);
    uint64_t below = pace__rank_below(line, number);
    const uint32_t *at = below < PACE__RANKS_NEAR ? line->near + below : ranks->values + line->before + below;

    return member ? at : &ranks->other;
}

#endif
