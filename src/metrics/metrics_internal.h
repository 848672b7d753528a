/*
 * metrics_internal.h - what metrics.c (yes/no labels) and metrics_classes.c (more classes) share.
 */
#ifndef METRICS_METRICS_INTERNAL_H
#define METRICS_METRICS_INTERNAL_H

#include "metrics/metrics.h"

#include <stdbool.h>

#define PACE__METRICS_LOSS_MAX 0x1p26

typedef unsigned __int128 pace__wide;

/* The keys of one label. Two lists instead of a label bit: a float's order needs all 32 bits. */
typedef struct pace__metrics_keys {
    uint32_t *keys;
    size_t count, room;
} pace__metrics_keys;

/* Of more than two classes. All arrays are one allocation, which begins with `actual`. */
typedef struct pace__class_counts {
    uint32_t classes;
    size_t counters; /* in all */
    uint64_t rows, among_five;
    uint64_t *actual, *predicted, *correct; /* (classes) */
    uint64_t *confusion;                    /* (classes, classes) by label, then prediction; or NULL */
} pace__class_counts;

enum { PACE__METRICS_NEGATIVE, PACE__METRICS_POSITIVE, PACE__METRICS_LABELS };

struct pace__metrics {
    const pace_log *log;
    uint64_t exact_rows;
    uint64_t class_rows[PACE__METRICS_LABELS];     /* by label */
    uint64_t predicted_rows[PACE__METRICS_LABELS]; /* by label: those predicted positive */
    uint64_t not_numbers;                          /* left out of all others */
    uint64_t infinite_losses;
    pace__wide loss_sum;      /* in 2^-60; below 2^(26 + 60 + 40) */
    pace__wide predicted_sum; /* in 2^-60 */
    bool binned;              /* which of the two below holds the rows */
    pace__metrics_keys list[PACE__METRICS_LABELS];
    uint64_t *bins[PACE__METRICS_LABELS];
    pace__class_counts *counts; /* NULL: the labels are yes and no; else these hold the rows */
};

static inline pace__wide pace__metrics_fixed(double value)
{
    /* The first way is the faster one and takes nearly all. */
    return value < 8 ? (pace__wide)(uint64_t)(value * 0x1p60) : (pace__wide)(value * 0x1p60);
}

static inline void pace__metrics_add_loss(pace__metrics *metrics, double loss)
{
    if (loss <= PACE__METRICS_LOSS_MAX)
        metrics->loss_sum += pace__metrics_fixed(loss);
    else
        metrics->infinite_losses++;
}

/* A ratio without cases is 0. */
static inline double pace__metrics_ratio(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

void pace__class_counts_free(pace__class_counts *counts); /* NULL is allowed */
void pace__class_counts_clear(pace__class_counts *counts);
pace_status pace__class_counts_merge(pace__metrics *into, const pace__metrics *from);
void pace__class_counts_finish(const pace__metrics *metrics, pace_scores *scores);

#endif
