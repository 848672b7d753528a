/*
 * deal.h - whose rows are whose in a step, where rows are not equal work: texts, of which a worker computes as many
 * words as there are, and all wait for the one that has most of them.
 *
 * A step's rows stay in their order and are cut where the words before are nearest to a worker's part of them; so a
 * share is a stretch of the order, as if rows were counted (ps/steps.h), and depends on the rows of the step and the division among
 * workers alone. A share has at most rows_max rows: there is room for no more.
 */
#ifndef SHARES_DEAL_H
#define SHARES_DEAL_H

#include <stdint.h>

/* Rows of an even share at most: half as many again as an even one of a step of `batch` rows. */
uint64_t pace__deal_rows_max(uint64_t batch, unsigned workers);

/* What each worker is to have. */
typedef struct pace__hands {
    unsigned workers;
    const uint32_t
        *shares;       /* (workers) of a whole step, in rows as if they were equal work; NULL: even ones */
    uint64_t batch;    /* their sum */
    uint64_t rows_max; /* of a share */
} pace__hands;

/* words: (rows) of the step's rows, at most workers x rows_max. The share of worker `index` begins *begin rows behind the
 * step's first. */
void pace__deal(const uint32_t *words, uint64_t rows, const pace__hands *hands, unsigned index,
                uint64_t *begin, uint64_t *share);

#endif
