/*
 * What a logit is made of: a term for each feature, its weight times its value, and one for each pair of features.
 *
 * There are many pairs, and few of them matter. The product of two vectors is at most that of their lengths: entries go by
 * falling length, and where that product is below what matters, it is for all entries behind, too.
 */
#include "model/fm/fm.h"
#include "model/fm/kind.h"

#include <math.h>
#include <stdlib.h>

/* The sum that a pair is has this much more room than the product of lengths, for rounding. */
#define MARGIN (1 + 1e-9)

typedef struct entry {
    uint64_t at;
    double length; /* of its vector times its value */
} entry;

static int by_falling_length(const void *left, const void *right)
{
    const entry *one = left, *other = right;
    int order = (one->length < other->length) - (one->length > other->length);

    return order ? order : (one->at > other->at) - (one->at < other->at);
}

static double tell_entry(const pace__rows *rows, uint64_t at, const float *weights, size_t dim,
                         pace__term_fn *tell, void *user)
{
    double amount = (double)weights[rows->ids[at] * dim] * (rows->values ? (double)rows->values[at] : 1);

    return amount != 0 ? tell(user, &(pace__term){&rows->ids[at], 1, amount}) : 0;
}

static void tell_pairs(const pace__rows *rows, const entry *entries, size_t count, double least,
                       const float *weights, unsigned factors, pace__term_fn *tell, void *user)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + 1; j < count && entries[i].length * entries[j].length * MARGIN > least; j++) {
            uint64_t first = entries[i].at < entries[j].at ? entries[i].at : entries[j].at,
                     last = entries[i].at < entries[j].at ? entries[j].at : entries[i].at;
            uint32_t ids[] = {rows->ids[first], rows->ids[last]};
            double amount = pace__fm_pair(rows, first, last, weights, factors);

            if (amount != 0)
                least = tell(user, &(pace__term){ids, 2, amount});
        }
    }
}

pace_status pace__fm_terms(pace__model *model, const pace__rows *rows, size_t row, pace__term_fn *tell,
                           void *user)
{
    size_t dim = model->plan.shape.dim, count = 0;
    uint64_t first = pace__row_start(rows, row), last = pace__row_start(rows, row + 1);
    uint32_t unseen = (uint32_t)model->plan.shape.keys - 1; /* where the bias lies */
    unsigned factors = (unsigned)dim - 1;
    entry *entries = malloc((size_t)(last - first + 1) * sizeof *entries);
    double least = 0;

    if (!entries)
        return pace_fail(model->log, PACE_FAILED, "out of memory");
    for (uint64_t at = first; at < last; at++) {
        if (rows->ids[at] == unseen)
            continue;
        double told = tell_entry(rows, at, model->weights, dim, tell, user);

        least = told > least ? told : least;
        entries[count++] = (entry){at, sqrt(pace__fm_pair(rows, at, at, model->weights, factors))};
    }
    qsort(entries, count, sizeof *entries, by_falling_length);
    tell_pairs(rows, entries, count, least, model->weights, factors, tell, user);
    free(entries);
    return PACE_OK;
}
