/*
 * scoring.h - a model's scores on the stored rows of a set: the one way, for a model in training and for a
 * saved one.
 */
#ifndef MODEL_SCORING_H
#define MODEL_SCORING_H

#include "data/store.h"
#include "math/batch.h"
#include "model/metrics.h"

#include <paceline/registry.h>

/* Rows that a network has room for when it only scores: memory for them comes besides that for training. */
#define PACE__SCORE_ROWS 64

/* The logits of all rows; `model` is whatever the caller passed along. A failure ends the scoring. */
typedef pace_status pace__logits_fn(void *model, const pace__rows *rows, float *logits);

typedef struct pace__scoring {
    const pace__store *store;
    int set;           /* PACE__TRAIN or PACE__TEST */
    uint64_t rows_max; /* the first so many rows; 0: all */
    pace__logits_fn *logits;
    void *model;
    pace__metrics
        *metrics; /* cleared first; the caller's, so that it is kept from one evaluation to the next */
} pace__scoring;

/* Emits "progress" records (phase "score"); says how exact the AUC is where it is not. */
pace_status pace__score_set(const pace__scoring *scoring, const pace_log *log, pace_registry *registry,
                            pace_scores *scores);

#endif
