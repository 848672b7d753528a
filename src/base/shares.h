/*
 * shares.h - how evenly something is shared out: the largest share over the mean of all.
 *
 *     pace__shares rows = {0};
 *
 *     for (int i = 0; i < ranks; i++)
 *         pace__shares_add(&rows, counts[i].rows);
 *     skew = pace__shares_skew(&rows);              // 1: all have the same; 4 of 4: one has it all
 */
#ifndef BASE_SHARES_H
#define BASE_SHARES_H

#include <stddef.h>

typedef struct pace__shares {
    size_t count;
    double sum, largest;
} pace__shares;

static inline void pace__shares_add(pace__shares *shares, double share)
{
    shares->count++;
    shares->sum += share;
    shares->largest = share > shares->largest ? share : shares->largest;
}

/* 1 if there is nothing to share. */
static inline double pace__shares_skew(const pace__shares *shares)
{
    return shares->sum > 0 ? shares->largest * (double)shares->count / shares->sum : 1;
}

#endif
