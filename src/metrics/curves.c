#include "metrics/curves.h"

#include "metrics/metrics_internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Bits of a key that its bin leaves out. */
#define BIN_SHIFT (32 - PACE__METRICS_BIN_BITS)

/* --- rows by their logits, the highest first --- */

/* Rows whose logits are equal, or in one bin of the metrics. */
typedef struct group {
    double probability;
    uint64_t rows[PACE__METRICS_LABELS];
} group;

typedef struct walk {
    const pace__metrics *metrics;
    size_t left[PACE__METRICS_LABELS]; /* keys of the sorted lists */
    size_t bin;                        /* bins */
} walk;

static walk walk_of(const pace__metrics *metrics)
{
    return (walk){
        .metrics = metrics,
        .left = {metrics->list[PACE__METRICS_NEGATIVE].count, metrics->list[PACE__METRICS_POSITIVE].count},
        .bin = (size_t)1 << PACE__METRICS_BIN_BITS};
}

/* The float whose place among all floats that is, as metrics.c has it. */
static double probability_of(uint32_t key)
{
    uint32_t bits = key ^ (key >> 31 ? 0x80000000u : 0xffffffffu);
    float logit;

    memcpy(&logit, &bits, sizeof logit);
    return 1 / (1 + exp(-(double)logit));
}

static bool next_bin(walk *self, group *next)
{
    uint64_t *const *bins = self->metrics->bins;

    while (self->bin > 0) {
        size_t bin = --self->bin;

        if (bins[PACE__METRICS_NEGATIVE][bin] + bins[PACE__METRICS_POSITIVE][bin] == 0)
            continue;
        uint32_t middle = ((uint32_t)bin << BIN_SHIFT) + (1u << (BIN_SHIFT - 1));

        *next = (group){probability_of(middle),
                        {bins[PACE__METRICS_NEGATIVE][bin], bins[PACE__METRICS_POSITIVE][bin]}};
        return true;
    }
    return false;
}

static bool next_key(walk *self, group *next)
{
    const pace__metrics_keys *list = self->metrics->list;
    bool found = false;
    uint32_t key = 0;

    for (int label = 0; label < PACE__METRICS_LABELS; label++) {
        if (self->left[label] > 0 && (!found || list[label].keys[self->left[label] - 1] > key)) {
            key = list[label].keys[self->left[label] - 1];
            found = true;
        }
    }
    *next = (group){.probability = found ? probability_of(key) : 0};
    for (int label = 0; label < PACE__METRICS_LABELS; label++) {
        while (self->left[label] > 0 && list[label].keys[self->left[label] - 1] == key) {
            self->left[label]--;
            next->rows[label]++;
        }
    }
    return found;
}

static bool next_group(walk *self, group *next)
{
    return self->metrics->binned ? next_bin(self, next) : next_key(self, next);
}

/* --- the ROC --- */

static void add_point(pace__curves *curves, double false_rate, double true_rate)
{
    assert(curves->points < PACE__CURVE_POINTS);
    curves->point[curves->points++] = (pace__curve_point){false_rate, true_rate};
}

/* A point whenever the two rates together have gone far enough: the whole way is 2, and its ends come besides. */
static void find_points(const pace__metrics *metrics, pace__curves *curves)
{
    const double far = 2.0 / (PACE__CURVE_POINTS - 2);
    double all_false = (double)metrics->class_rows[PACE__METRICS_NEGATIVE],
           all_true = (double)metrics->class_rows[PACE__METRICS_POSITIVE], last = 0;
    uint64_t above[PACE__METRICS_LABELS] = {0};
    walk rows = walk_of(metrics);
    group next;

    if (all_false == 0 || all_true == 0)
        return;
    add_point(curves, 0, 0);
    while (next_group(&rows, &next)) {
        above[PACE__METRICS_NEGATIVE] += next.rows[PACE__METRICS_NEGATIVE];
        above[PACE__METRICS_POSITIVE] += next.rows[PACE__METRICS_POSITIVE];
        double false_rate = (double)above[PACE__METRICS_NEGATIVE] / all_false,
               true_rate = (double)above[PACE__METRICS_POSITIVE] / all_true;

        if (false_rate + true_rate >= last + far && false_rate + true_rate < 2) {
            add_point(curves, false_rate, true_rate);
            last = false_rate + true_rate;
        }
    }
    add_point(curves, 1, 1);
}

/* --- calibration --- */

typedef struct filling {
    double predicted;
    uint64_t rows, positive;
} filling;

static void close_bin(pace__curves *curves, filling *bin)
{
    assert(curves->bins < PACE__CURVE_BINS && bin->rows > 0);
    curves->bin[curves->bins++] = (pace__curve_bin){bin->predicted / (double)bin->rows,
                                                    (double)bin->positive / (double)bin->rows, bin->rows};
    *bin = (filling){0};
}

/* From high to low, then turned round. */
static void find_bins(const pace__metrics *metrics, pace__curves *curves)
{
    uint64_t all = metrics->class_rows[PACE__METRICS_NEGATIVE] + metrics->class_rows[PACE__METRICS_POSITIVE],
             enough = (all + PACE__CURVE_BINS - 1) / PACE__CURVE_BINS;
    walk rows = walk_of(metrics);
    filling bin = {0};
    group next;

    while (next_group(&rows, &next)) {
        uint64_t count = next.rows[PACE__METRICS_NEGATIVE] + next.rows[PACE__METRICS_POSITIVE];

        bin.rows += count;
        bin.positive += next.rows[PACE__METRICS_POSITIVE];
        bin.predicted += next.probability * (double)count;
        if (bin.rows >= enough)
            close_bin(curves, &bin);
    }
    if (bin.rows > 0)
        close_bin(curves, &bin);
    for (uint64_t i = 0; i < curves->bins / 2; i++) {
        pace__curve_bin low = curves->bin[i];

        curves->bin[i] = curves->bin[curves->bins - 1 - i];
        curves->bin[curves->bins - 1 - i] = low;
    }
}

/* --- classes --- */

static void copy_confusion(const pace__class_counts *counts, pace__curves *curves)
{
    if (counts->classes > PACE__CURVE_CLASSES || !counts->confusion)
        return;
    curves->classes = counts->classes;
    for (uint32_t label = 0; label < counts->classes; label++)
        memcpy(curves->taken_for[label], counts->confusion + (size_t)label * counts->classes,
               counts->classes * sizeof(uint64_t));
}

void pace__metrics_curves(const pace__metrics *metrics, pace__curves *curves)
{
    *curves = (pace__curves){0};
    if (metrics->counts) {
        copy_confusion(metrics->counts, curves);
        return;
    }
    find_points(metrics, curves);
    /* The lists are sorted by whoever needed their order: without two labels, nobody did. */
    if (metrics->binned || curves->points > 0)
        find_bins(metrics, curves);
}

/* --- as JSON --- */

static void put_list(pace__json *json, const char *name, bool first)
{
    pace__json_raw(json, first ? "\"" : ", \"");
    pace__json_raw(json, name);
    pace__json_raw(json, "\": [");
}

static void put_bins(pace__json *json, const pace__curves *curves)
{
    put_list(json, "bins", true);
    for (uint64_t i = 0; i < curves->bins; i++) {
        pace__json_raw(json, i ? ", [" : "[");
        pace__json_real(json, curves->bin[i].predicted);
        pace__json_raw(json, ", ");
        pace__json_real(json, curves->bin[i].actual);
        pace__json_raw(json, ", ");
        pace__json_unsigned(json, curves->bin[i].rows);
        pace__json_raw(json, "]");
    }
    pace__json_raw(json, "]");
}

static void put_points(pace__json *json, const pace__curves *curves)
{
    put_list(json, "roc", false);
    for (uint64_t i = 0; i < curves->points; i++) {
        pace__json_raw(json, i ? ", [" : "[");
        pace__json_real(json, curves->point[i].false_rate);
        pace__json_raw(json, ", ");
        pace__json_real(json, curves->point[i].true_rate);
        pace__json_raw(json, "]");
    }
    pace__json_raw(json, "]");
}

static void put_classes(pace__json *json, const pace__curves *curves)
{
    put_list(json, "taken_for", true);
    for (uint64_t label = 0; label < curves->classes; label++) {
        pace__json_raw(json, label ? ", [" : "[");
        for (uint64_t predicted = 0; predicted < curves->classes; predicted++) {
            pace__json_raw(json, predicted ? ", " : "");
            pace__json_unsigned(json, curves->taken_for[label][predicted]);
        }
        pace__json_raw(json, "]");
    }
    pace__json_raw(json, "]");
}

void pace__curves_put(pace__json *json, const pace__curves *curves)
{
    pace__json_raw(json, "{");
    if (curves->classes > 0)
        put_classes(json, curves);
    if (curves->points > 0) {
        put_bins(json, curves);
        put_points(json, curves);
    }
    pace__json_raw(json, "}");
}
