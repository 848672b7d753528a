/*
 * scoring.h - a model's scores on the stored rows of a set: the one way, for a model in training and for a
 * saved one.
 */
#ifndef METRICS_SCORING_H
#define METRICS_SCORING_H

#include "data/store/store.h"
#include "math/batch.h"
#include "metrics/metrics.h"

#include <paceline/registry.h>

/* Rows that a network has room for when it only scores: memory for them comes besides that for training. */
#define PACE__SCORE_ROWS 64

/* The logits of all rows, (rows, outputs); `model` is whatever the caller passed along. A failure ends the
 * scoring. */
typedef pace_status pace__logits_fn(void *model, const pace__rows *rows, float *logits);

/* A row that the model takes for another class, or label. */
typedef struct pace__mistake {
    uint64_t row;    /* of the set, in stored order */
    uint32_t source; /* as in pace__rows; 0: no picture */
    uint16_t actual, predicted;
    double probability; /* of the class predicted */
} pace__mistake;

/* In the order of the rows; it is row `at` of these, which lie until the call returns. A failure ends the scoring. */
typedef pace_status pace__mistake_fn(void *user, const pace__mistake *mistake, const pace__rows *rows,
                                     size_t at);

typedef struct pace__scoring {
    const pace__store *store;
    int set;           /* PACE__TRAIN, ... */
    uint64_t rows_max; /* the first so many rows; 0: all */
    pace__logits_fn *logits;
    void *model;
    /* Of pace__scoring_metrics or its like; cleared first. The caller's, so that it is kept from one
     * evaluation to the next. */
    pace__metrics *metrics;
    /* Logits of a row. 0 or 1: that of the label being 1, or of class 1. 2: those of class 0 and class 1,
     * scored by their difference. More: one for each class, a softmax. */
    uint32_t outputs;
    /* Reads rows, which may wait for a disk, for a caller whom others wait for: ranks/aside.h. NULL: it is just done. */
    pace_status (*aside)(void *model, pace_status (*read)(void *user), void *user);
    pace__mistake_fn *mistake; /* NULL: nobody wants to know */
    void *user;
    const _Atomic int *stop; /* nonzero: PACE_INTERRUPTED; may be NULL */
} pace__scoring;

/* Those that fit so many outputs. */
pace_status pace__scoring_metrics(uint32_t outputs, const pace_log *log, pace__metrics **metrics);

/* Emits "progress" records (phase "score"); says how exact the AUC is where it is not. */
pace_status pace__score_set(const pace__scoring *scoring, const pace_log *log, pace_registry *registry,
                            pace_scores *scores);

#endif
