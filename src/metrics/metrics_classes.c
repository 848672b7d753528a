/* Scores where there are more than two classes: counts by class, and the log-loss of a softmax. */
#include "metrics/metrics_internal.h"
#include "metrics/softmax.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AMONG 5 /* the likeliest so many: "top 5" */

static pace__class_counts *new_counts(uint32_t classes)
{
    pace__class_counts *counts = calloc(1, sizeof *counts);
    size_t confusion = classes <= PACE__METRICS_CONFUSION_MAX ? (size_t)classes * classes : 0;

    if (!counts)
        return NULL;
    counts->classes = classes;
    counts->counters = 3 * (size_t)classes + confusion;
    counts->actual = calloc(counts->counters, sizeof *counts->actual);
    if (!counts->actual) {
        free(counts);
        return NULL;
    }
    counts->predicted = counts->actual + classes;
    counts->correct = counts->predicted + classes;
    counts->confusion = confusion ? counts->correct + classes : NULL;
    return counts;
}

void pace__class_counts_free(pace__class_counts *counts)
{
    if (!counts)
        return;
    free(counts->actual);
    free(counts);
}

void pace__class_counts_clear(pace__class_counts *counts)
{
    counts->rows = counts->among_five = 0;
    memset(counts->actual, 0, counts->counters * sizeof *counts->actual);
}

pace_status pace__metrics_create_classes(uint32_t classes, const pace_log *log, pace__metrics **metrics)
{
    pace__metrics *made;
    pace_status status = pace__metrics_create(0, log, &made);

    assert(classes > 2);
    if (status)
        return status;
    made->counts = new_counts(classes);
    if (!made->counts) {
        pace__metrics_free(made);
        return pace_fail(log, PACE_FAILED, "out of memory for the counts of %u classes", classes);
    }
    *metrics = made;
    return PACE_OK;
}

uint32_t pace__metrics_classes(const pace__metrics *metrics)
{
    return metrics->counts ? metrics->counts->classes : PACE__METRICS_LABELS;
}

/* --- adding --- */

static pace_status check_rows(const pace__metrics *metrics, uint64_t more)
{
    if (more > PACE__METRICS_ROWS_MAX - metrics->counts->rows)
        return pace_fail(metrics->log, PACE_FAILED, "more than %llu rows to score",
                         (unsigned long long)PACE__METRICS_ROWS_MAX);
    return PACE_OK;
}

static void add_row(pace__metrics *metrics, const float *logits, uint16_t label)
{
    pace__class_counts *counts = metrics->counts;
    pace__softmax row;

    assert(label < counts->classes);
    if (!pace__softmax_of(logits, counts->classes, &row)) {
        metrics->not_numbers++;
        return;
    }
    counts->rows++;
    counts->actual[label]++;
    counts->predicted[row.best]++;
    counts->correct[label] += row.best == label;
    counts->among_five += pace__softmax_rank(logits, counts->classes, label) < AMONG;
    if (counts->confusion)
        counts->confusion[(size_t)label * counts->classes + row.best]++;
    pace__metrics_add_loss(metrics, pace__softmax_loss(&row, logits[label]));
}

pace_status pace__metrics_add_classes(pace__metrics *metrics, const float *logits, const uint16_t *labels,
                                      size_t count)
{
    assert(metrics->counts);
    pace_status status = check_rows(metrics, count);

    for (size_t i = 0; !status && i < count; i++)
        add_row(metrics, logits + i * metrics->counts->classes, labels[i]);
    return status;
}

pace_status pace__class_counts_merge(pace__metrics *into, const pace__metrics *from)
{
    pace__class_counts *to = into->counts;
    pace_status status = check_rows(into, from->counts->rows);

    if (status)
        return status;
    to->rows += from->counts->rows;
    to->among_five += from->counts->among_five;
    for (size_t i = 0; i < to->counters; i++)
        to->actual[i] += from->counts->actual[i];
    return PACE_OK;
}

/* --- finishing --- */

/* What is counted of one class. */
typedef struct tally {
    uint64_t actual, predicted, correct;
} tally;

static tally tally_of(const pace__metrics *metrics, uint32_t class)
{
    const pace__class_counts *counts = metrics->counts;

    if (counts)
        return (tally){counts->actual[class], counts->predicted[class], counts->correct[class]};
    uint64_t other = metrics->class_rows[!class], hits = metrics->predicted_rows[class];
    uint64_t false_alarms = metrics->predicted_rows[!class];

    if (class == PACE__METRICS_NEGATIVE) { /* those that are not predicted positive */
        hits = metrics->class_rows[class] - hits;
        false_alarms = other - false_alarms;
    }
    return (tally){metrics->class_rows[class], hits + false_alarms, hits};
}

static double precision_of(tally it)
{
    return pace__metrics_ratio(it.correct, it.predicted);
}

static double recall_of(tally it)
{
    return pace__metrics_ratio(it.correct, it.actual);
}

static double f1_of(tally it)
{
    return pace__metrics_ratio(2 * it.correct, it.actual + it.predicted);
}

/* Means over the classes, in their order: sums of doubles depend on it. */
static void fill_macro(const pace__metrics *metrics, pace_scores *scores)
{
    uint32_t classes = metrics->counts->classes;

    for (uint32_t class = 0; class < classes; class ++) {
        tally it = tally_of(metrics, class);

        scores->precision += precision_of(it);
        scores->recall += recall_of(it);
        scores->f1 += f1_of(it);
    }
    scores->precision /= classes;
    scores->recall /= classes;
    scores->f1 /= classes;
}

static void fill_null(const pace__metrics *metrics, pace_scores *scores)
{
    const pace__class_counts *counts = metrics->counts;
    double entropy = 0;
    uint64_t most = 0;

    for (uint32_t class = 0; class < counts->classes; class ++) {
        double share = pace__metrics_ratio(counts->actual[class], counts->rows);

        most = counts->actual[class] > most ? counts->actual[class] : most;
        entropy -= share > 0 ? share * log(share) : 0;
    }
    scores->null_accuracy = pace__metrics_ratio(most, counts->rows);
    scores->null_logloss = counts->rows ? entropy : NAN;
}

void pace__class_counts_finish(const pace__metrics *metrics, pace_scores *scores)
{
    const pace__class_counts *counts = metrics->counts;
    pace_scores found = {.n = counts->rows,
                         .auc = NAN,
                         .mean_predicted = NAN,
                         .mean_actual = NAN,
                         .classes = counts->classes,
                         .top5 = pace__metrics_ratio(counts->among_five, counts->rows)};
    uint64_t correct = 0;

    for (uint32_t class = 0; class < counts->classes; class ++)
        correct += counts->correct[class];
    found.accuracy = pace__metrics_ratio(correct, counts->rows);
    found.logloss =
        metrics->infinite_losses ? INFINITY : (double)metrics->loss_sum * 0x1p-60 / (double)counts->rows;
    fill_macro(metrics, &found);
    fill_null(metrics, &found);
    *scores = found;
}

/* --- by class --- */

static bool allocate(uint32_t classes, bool confusion, pace_class_scores *scores)
{
    *scores = (pace_class_scores){.classes = classes};
    scores->names = calloc(classes, sizeof *scores->names);
    scores->n = calloc(classes, sizeof *scores->n);
    scores->predicted = calloc(classes, sizeof *scores->predicted);
    scores->precision = calloc(classes, sizeof *scores->precision);
    scores->recall = calloc(classes, sizeof *scores->recall);
    scores->f1 = calloc(classes, sizeof *scores->f1);
    if (confusion)
        scores->confusion = calloc((size_t)classes * classes, sizeof *scores->confusion);
    return scores->names && scores->n && scores->predicted && scores->precision && scores->recall &&
           scores->f1 && (!confusion || scores->confusion);
}

static bool copy_names(const char *const *names, pace_class_scores *scores)
{
    for (uint32_t class = 0; class < scores->classes; class ++) {
        scores->names[class] = strdup(names[class]);
        if (!scores->names[class])
            return false;
    }
    return true;
}

static void fill_confusion(const pace__metrics *metrics, pace_class_scores *scores)
{
    if (metrics->counts) {
        memcpy(scores->confusion, metrics->counts->confusion,
               (size_t)scores->classes * scores->classes * sizeof *scores->confusion);
        return;
    }
    for (int label = 0; label < PACE__METRICS_LABELS; label++) {
        uint64_t positive = metrics->predicted_rows[label];

        scores->confusion[label * 2] = metrics->class_rows[label] - positive;
        scores->confusion[label * 2 + 1] = positive;
    }
}

pace_status pace__metrics_by_class(const pace__metrics *metrics, const char *const *names,
                                   pace_class_scores *scores)
{
    uint32_t classes = pace__metrics_classes(metrics);
    pace_class_scores found;

    if (!allocate(classes, classes <= PACE__METRICS_CONFUSION_MAX, &found) || !copy_names(names, &found)) {
        pace_class_scores_release(&found);
        return pace_fail(metrics->log, PACE_FAILED, "out of memory for the scores of %u classes", classes);
    }
    for (uint32_t class = 0; class < classes; class ++) {
        tally it = tally_of(metrics, class);

        found.n[class] = it.actual;
        found.predicted[class] = it.predicted;
        found.precision[class] = precision_of(it);
        found.recall[class] = recall_of(it);
        found.f1[class] = f1_of(it);
    }
    if (found.confusion)
        fill_confusion(metrics, &found);
    *scores = found;
    return PACE_OK;
}

void pace_class_scores_release(pace_class_scores *scores)
{
    for (uint32_t class = 0; scores->names && class < scores->classes; class ++)
        free(scores->names[class]);
    free(scores->names);
    free(scores->n);
    free(scores->predicted);
    free(scores->precision);
    free(scores->recall);
    free(scores->f1);
    free(scores->confusion);
    *scores = (pace_class_scores){0};
}
