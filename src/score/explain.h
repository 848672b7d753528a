/*
 * explain.h - why a model gives a row its logit: the features that move it most. Internal to score.
 *
 *     pace__explainer why;
 *     status = pace__explainer_init(&why, &scorer, 5, log);
 *     status = pace__explain(&why, &rows, row, logit);
 *     pace__explanation_write(&why, file);             // "\tgreat\t1.03\tnot so\t-0.82"
 *     pace__explainer_release(&why);
 *
 * What a feature is and what it adds:
 * 1. Where logits are sums of terms (pace__model_terms) those terms: of a linear model weight times value of each
 *    feature, and on texts the weight of each word and n-gram; of a factorization machine besides those the
 *    products of pairs.
 * 2. Else, on texts, the words: how much of the logit is gone when a word is left out, wherever it occurs.
 *
 * Rows are those that the scorer takes for raw ones: texts, or places of ids (scorer.h). Pictures have heat maps
 * (score/heat.h).
 */
#ifndef SCORE_EXPLAIN_H
#define SCORE_EXPLAIN_H

#include "score/scorer.h"

#include <stdio.h>

#define PACE__REASONS_MAX 1000

typedef struct pace__reason {
    double amount;
    uint64_t rank; /* of its being told: of equal amounts the first comes first */
    uint32_t ids[PACE__TERM_IDS_MAX];
    unsigned count;
} pace__reason;

typedef struct pace__explainer {
    /* private */
    pace__scorer *scorer;
    size_t max, count;
    uint64_t told;
    pace__reason *reasons; /* (max) a heap whose root is the lightest; sorted once it is written */
    pace__rows without;    /* rows that lack a word; and what it points to */
    uint32_t *ids, *length;
    uint8_t *label;
    uint32_t *words; /* of the text, each once */
    const pace_log *log;
} pace__explainer;

/* The `max` heaviest, up to PACE__REASONS_MAX. The scorer must outlive it. */
pace_status pace__explainer_init(pace__explainer *why, pace__scorer *scorer, size_t max, const pace_log *log);
void pace__explainer_release(pace__explainer *why); /* a zeroed one is allowed */

/* `logit` is the row's. */
pace_status pace__explain(pace__explainer *why, const pace__rows *rows, size_t row, double logit);
/* Name and amount of each, with tabs in front, the heaviest first. */
void pace__explanation_write(pace__explainer *why, FILE *file);

#endif
