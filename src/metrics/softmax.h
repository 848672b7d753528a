/*
 * softmax.h - what the logits of one row say: the likeliest class, and how likely classes are. For every
 * float: infinite logits that are equal count as equal.
 *
 *     pace__softmax row;
 *     if (pace__softmax_of(logits, classes, &row))
 *         printf("%u with %g\n", row.best, pace__softmax_probability(&row, logits[row.best]));
 */
#ifndef METRICS_SOFTMAX_H
#define METRICS_SOFTMAX_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct pace__softmax {
    uint32_t best; /* of equal ones the first */
    float most;    /* its logit */
    double others; /* the sum of exp(logit - most) over all other classes */
} pace__softmax;

/* How far below the best one; infinity - infinity would be no number. */
static inline double pace__softmax_gap(const pace__softmax *row, float logit)
{
    return logit == row->most ? 0 : (double)row->most - (double)logit;
}

/* False if a logit is no number. */
static inline bool pace__softmax_of(const float *logits, uint32_t classes, pace__softmax *row)
{
    pace__softmax found = {0, logits[0], 0};
    bool numbers = true;

    for (uint32_t i = 0; i < classes; i++) {
        numbers = numbers && !isnan(logits[i]);
        if (logits[i] > found.most)
            found = (pace__softmax){i, logits[i], 0};
    }
    for (uint32_t i = 0; numbers && i < classes; i++)
        found.others += i == found.best ? 0 : exp(-pace__softmax_gap(&found, logits[i]));
    *row = found;
    return numbers;
}

static inline double pace__softmax_probability(const pace__softmax *row, float logit)
{
    return exp(-pace__softmax_gap(row, logit)) / (1 + row->others);
}

/* -log of the probability. The others are without the 1 of the best: nothing is lost when they are tiny. */
static inline double pace__softmax_loss(const pace__softmax *row, float logit)
{
    return pace__softmax_gap(row, logit) + log1p(row->others);
}

/* How many classes are likelier; of equal ones those that come first. */
static inline uint32_t pace__softmax_rank(const float *logits, uint32_t classes, uint32_t class)
{
    uint32_t rank = 0;

    for (uint32_t i = 0; i < classes; i++)
        rank += logits[i] > logits[class] || (logits[i] == logits[class] && i < class);
    return rank;
}

#endif
