/*
 * curves.h - what lies behind the scores of a set: how far probabilities can be trusted, and what a threshold costs.
 *
 *     pace__metrics_finish(metrics, &scores);
 *     pace__metrics_curves(metrics, &curves);         // of the same rows
 *     pace__curves_put(&json, &curves);               // {"bins": [[0.12, 0.11, 5000], ...], "roc": [[0, 0], ...]}
 *
 * Plain values of a fixed size: they travel from an evaluator to the chief, and stand in summary.json, as "curves".
 *
 * 1. Of a yes/no label: up to PACE__CURVE_BINS bins of about as many rows each, by probability from low to high, with the
 *    mean probability and the share of positive rows; rows with equal logits are in one bin. And points of the ROC from
 *    (0, 0) to (1, 1), at most PACE__CURVE_POINTS, of which none falls.
 * 2. Of more classes: how often each was taken for which, up to PACE__CURVE_CLASSES of them; beyond, nothing.
 * 3. What is not there has a count of 0: a set without rows, or in which one label alone occurs, has no ROC.
 */
#ifndef METRICS_CURVES_H
#define METRICS_CURVES_H

#include "base/json.h"
#include "metrics/metrics.h"

#define PACE__CURVE_BINS    15
#define PACE__CURVE_POINTS  101
#define PACE__CURVE_CLASSES 20

typedef struct pace__curve_bin {
    double predicted, actual; /* the mean probability, the share of positive rows */
    uint64_t rows;
} pace__curve_bin;

typedef struct pace__curve_point {
    double false_rate, true_rate; /* of all negative, of all positive rows: those above the threshold */
} pace__curve_point;

typedef struct pace__curves {
    uint64_t bins, points, classes;
    pace__curve_bin bin[PACE__CURVE_BINS];
    pace__curve_point point[PACE__CURVE_POINTS];
    uint64_t taken_for[PACE__CURVE_CLASSES][PACE__CURVE_CLASSES]; /* by label, then prediction */
} pace__curves;

/* To be called behind pace__metrics_finish, before rows are added. */
void pace__metrics_curves(const pace__metrics *metrics, pace__curves *curves);

/* An object; {} if there is nothing. */
void pace__curves_put(pace__json *json, const pace__curves *curves);

#endif
