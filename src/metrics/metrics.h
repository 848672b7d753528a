/*
 * metrics.h - how good predictions are, of a yes/no label (counts, log-loss, AUC) or of one of several
 * classes (counts by class, log-loss of a softmax, top 5).
 *
 * Rows are added in batches of any size, on any number of accumulators, which are then merged:
 *
 *     pace__metrics *metrics;
 *     pace__metrics_create(PACE__METRICS_EXACT_ROWS, log, &metrics);
 *     pace__metrics_add_logits(metrics, logits, labels, count);     // again and again
 *     status = pace__metrics_finish(metrics, &scores);              // any time; adding may go on afterwards
 *     pace__metrics_free(metrics);
 *
 * Invariants:
 * 1. The scores are a function of the set of rows alone: the same bits for every order, batching and merging.
 *    Log-loss and predicted probabilities are summed as integers in units of 2^-60, which is associative; the
 *    rest is counts.
 * 2. A row is predicted positive if its probability is above 0.5 (its logit above 0).
 * 3. AUC ranks by the logit as a float; -0 and 0 are equal; ties count half. Up to `exact_rows` rows it is
 *    exact. Beyond, rows are counted in bins by the upper PACE__METRICS_BIN_BITS bits of the float (sign,
 *    exponent, 13 bits of fraction: logits in a bin differ by less than 1/8192 of their size), and pairs
 *    within a bin count half. The error is at most half the share of positive-negative pairs that fall into
 *    one bin: pace__metrics_auc_error_max gives it.
 * 4. Memory: 4 bytes a row while exact (64 MiB at PACE__METRICS_EXACT_ROWS, as much again while finishing),
 *    64 MiB beyond (only bins that occur are touched), whatever the number of rows.
 *
 * With classes (more than two) rows are added as a logit for each class and a label, the class's number:
 * 5. The class predicted is that with the largest logit; of equal ones the first. A label is among the top 5
 *    if fewer than 5 classes come before it: those with a larger logit, and those with an equal one and a
 *    lower number.
 * 6. Memory is 8 bytes for each pair of classes up to PACE__METRICS_CONFUSION_MAX classes; beyond, there is
 *    no confusion matrix, only counts by class.
 *
 * A loss above 2^26 (or of an infinite logit on the wrong side) makes the log-loss infinite. Scores that are
 * no number, and probabilities outside 0..1, are left out and counted; finish then fails.
 */
#ifndef METRICS_METRICS_H
#define METRICS_METRICS_H

#include <paceline/score.h>
#include <stddef.h>
#include <stdint.h>

#define PACE__METRICS_EXACT_ROWS (UINT64_C(1) << 24)
#define PACE__METRICS_ROWS_MAX   (UINT64_C(1) << 40)
#define PACE__METRICS_BIN_BITS   22

#define PACE__METRICS_CONFUSION_MAX 1000

typedef struct pace__metrics pace__metrics;

/* The log is kept for messages of the other functions. */
pace_status pace__metrics_create(uint64_t exact_rows, const pace_log *log, pace__metrics **metrics);
/* The same for more than two classes. */
pace_status pace__metrics_create_classes(uint32_t classes, const pace_log *log, pace__metrics **metrics);
void pace__metrics_free(pace__metrics *metrics); /* NULL is allowed */

/* Back to no rows. The memory of exact keys is kept for the next evaluation. */
void pace__metrics_clear(pace__metrics *metrics);

/*
 * A label other than 0 is positive. Fails when out of memory or beyond PACE__METRICS_ROWS_MAX; the batch is
 * then not added.
 */
pace_status pace__metrics_add_logits(pace__metrics *metrics, const float *logits, const uint8_t *labels,
                                     size_t count);
pace_status pace__metrics_add_probabilities(pace__metrics *metrics, const double *probabilities,
                                            const uint8_t *labels, size_t count);

/* Logits are (count, classes), labels below `classes`. A row in which one is no number is left out and
 * counted. */
pace_status pace__metrics_add_classes(pace__metrics *metrics, const float *logits, const uint16_t *labels,
                                      size_t count);

/* 2 for a yes/no label. */
uint32_t pace__metrics_classes(const pace__metrics *metrics);

/* Adds the rows of `from`, which stays as it is. Both must have been created with the same `exact_rows`, or
 * number of classes. */
pace_status pace__metrics_merge(pace__metrics *into, const pace__metrics *from);

/*
 * PACE_FAILED if any score was no number: the model has diverged. Without rows the counts are 0 and the
 * means, log-losses and AUC are NaN.
 */
pace_status pace__metrics_finish(pace__metrics *metrics, pace_scores *scores);

/* What finish says of all, by class; of a yes/no label, too: no is class 0. Names, one for each class, are
 * copied. To be released by the caller. */
pace_status pace__metrics_by_class(const pace__metrics *metrics, const char *const *names,
                                   pace_class_scores *scores);

/* 0 while the AUC is exact or undefined. */
double pace__metrics_auc_error_max(const pace__metrics *metrics);

/* What pace_scores_to_json has written, read back; what is missing or null is NaN or 0. */
struct cJSON;
void pace__scores_from_json(const struct cJSON *object, pace_scores *scores);

#endif
