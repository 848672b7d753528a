#include "metrics/metrics_internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BINS       ((size_t)1 << PACE__METRICS_BIN_BITS)
#define KEYS_FIRST ((size_t)4096)
#define DIGIT_BITS 11
#define DIGITS     ((size_t)1 << DIGIT_BITS)

typedef pace__wide wide;
typedef pace__metrics_keys key_list;

enum { NEGATIVE = PACE__METRICS_NEGATIVE, POSITIVE = PACE__METRICS_POSITIVE, CLASSES = PACE__METRICS_LABELS };

pace_status pace__metrics_create(uint64_t exact_rows, const pace_log *log, pace__metrics **metrics)
{
    pace__metrics *made = calloc(1, sizeof *made);

    if (!made)
        return pace_fail(log, PACE_FAILED, "out of memory");
    made->log = log;
    made->exact_rows = exact_rows;
    *metrics = made;
    return PACE_OK;
}

void pace__metrics_free(pace__metrics *metrics)
{
    if (!metrics)
        return;
    for (int class = 0; class < CLASSES; class ++) {
        free(metrics->list[class].keys);
        free(metrics->bins[class]);
    }
    pace__class_counts_free(metrics->counts);
    free(metrics);
}

void pace__metrics_clear(pace__metrics *metrics)
{
    pace__metrics empty = {.log = metrics->log, .exact_rows = metrics->exact_rows, .counts = metrics->counts};

    if (metrics->counts)
        pace__class_counts_clear(metrics->counts);
    for (int class = 0; class < CLASSES; class ++) {
        empty.list[class] = metrics->list[class];
        empty.list[class].count = 0;
        free(metrics->bins[class]);
    }
    *metrics = empty;
}

/* Where rows are kept ------------------------------------------------------------------------------------ */

/* Unsigned integers in the order of the floats. Adding 0 makes -0 the same as 0. */
static uint32_t key_of(float score)
{
    float plain = score + 0.0f;
    uint32_t bits;

    memcpy(&bits, &plain, sizeof bits);
    return bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u);
}

static size_t bin_of(uint32_t key)
{
    return key >> (32 - PACE__METRICS_BIN_BITS);
}

static void keep(pace__metrics *metrics, int class, float logit)
{
    uint32_t key = key_of(logit);

    if (metrics->binned)
        metrics->bins[class][bin_of(key)]++;
    else
        metrics->list[class].keys[metrics->list[class].count++] = key;
}

static bool reserve(key_list *list, size_t more)
{
    size_t room = list->room ? list->room : KEYS_FIRST;

    if (list->room - list->count >= more)
        return true;
    while (room - list->count < more)
        room *= 2;
    uint32_t *keys = realloc(list->keys, room * sizeof *keys);

    if (!keys)
        return false;
    list->keys = keys;
    list->room = room;
    return true;
}

static void add_to_bins(uint64_t *bins, const key_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        bins[bin_of(list->keys[i])]++;
}

static bool switch_to_bins(pace__metrics *metrics)
{
    for (int class = 0; class < CLASSES; class ++) {
        if (!metrics->bins[class])
            metrics->bins[class] = calloc(BINS, sizeof *metrics->bins[class]);
        if (!metrics->bins[class])
            return false;
    }
    for (int class = 0; class < CLASSES; class ++) {
        add_to_bins(metrics->bins[class], &metrics->list[class]);
        free(metrics->list[class].keys);
        metrics->list[class] = (key_list){0};
    }
    metrics->binned = true;
    return true;
}

static uint64_t rows_of(const pace__metrics *metrics)
{
    if (metrics->counts)
        return metrics->counts->rows;
    return metrics->class_rows[NEGATIVE] + metrics->class_rows[POSITIVE];
}

/* Room for so many more rows of each class; afterwards nothing can fail. */
static pace_status make_room(pace__metrics *metrics, uint64_t negative, uint64_t positive)
{
    uint64_t rows = rows_of(metrics);
    bool done;

    if (negative + positive > PACE__METRICS_ROWS_MAX - rows)
        return pace_fail(metrics->log, PACE_FAILED, "more than %llu rows to score",
                         (unsigned long long)PACE__METRICS_ROWS_MAX);
    if (metrics->binned)
        return PACE_OK;
    if (rows + negative + positive > metrics->exact_rows)
        done = switch_to_bins(metrics);
    else
        done = reserve(&metrics->list[NEGATIVE], negative) && reserve(&metrics->list[POSITIVE], positive);
    return done ? PACE_OK : pace_fail(metrics->log, PACE_FAILED, "out of memory for scores of test rows");
}

/* Adding ------------------------------------------------------------------------------------------------- */

static void add_row(pace__metrics *metrics, int class, double logit, double probability, double loss)
{
    metrics->class_rows[class]++;
    metrics->predicted_rows[class] += logit > 0;
    metrics->predicted_sum += pace__metrics_fixed(probability);
    pace__metrics_add_loss(metrics, loss);
    keep(metrics, class, (float)logit);
}

static pace_status make_room_for_batch(pace__metrics *metrics, const uint8_t *labels, size_t count)
{
    uint64_t positive = 0;

    assert(!metrics->counts); /* classes have another way in */
    for (size_t i = 0; i < count; i++)
        positive += labels[i] != 0;
    return make_room(metrics, count - positive, positive);
}

static void add_logit(pace__metrics *metrics, double logit, bool positive)
{
    if (isnan(logit)) {
        metrics->not_numbers++;
        return;
    }
    /* exp never sees a positive number, so nothing overflows. */
    double odds = exp(-fabs(logit));
    double sum = 1 + odds;
    double likely = 1 / sum; /* the probability of the side that the logit is on */
    /* log1p(odds) at the price of a log: the second term gives back what rounding took from the sum. */
    double right_loss = log(sum) + (odds - (sum - 1)) * likely;
    double wrong_by = positive ? -logit : logit;

    add_row(metrics, positive, logit, logit >= 0 ? likely : odds * likely,
            (wrong_by > 0 ? wrong_by : 0) + right_loss);
}

pace_status pace__metrics_add_logits(pace__metrics *metrics, const float *logits, const uint8_t *labels,
                                     size_t count)
{
    pace_status status = make_room_for_batch(metrics, labels, count);

    for (size_t i = 0; !status && i < count; i++)
        add_logit(metrics, logits[i], labels[i] != 0);
    return status;
}

static void add_probability(pace__metrics *metrics, double probability, bool positive)
{
    if (!(probability >= 0 && probability <= 1)) {
        metrics->not_numbers++;
        return;
    }
    /* The quotient rounds monotonically, so no two rows change places; 0 and 1 become infinite logits. */
    double logit = log(probability / (1 - probability));
    double loss = positive ? -log(probability) : -log1p(-probability);

    add_row(metrics, positive, logit, probability, loss);
}

pace_status pace__metrics_add_probabilities(pace__metrics *metrics, const double *probabilities,
                                            const uint8_t *labels, size_t count)
{
    pace_status status = make_room_for_batch(metrics, labels, count);

    for (size_t i = 0; !status && i < count; i++)
        add_probability(metrics, probabilities[i], labels[i] != 0);
    return status;
}

static void merge_keys(pace__metrics *into, const pace__metrics *from, int class)
{
    const key_list *list = &from->list[class];

    if (from->binned) {
        for (size_t bin = 0; bin < BINS; bin++)
            into->bins[class][bin] += from->bins[class][bin];
    } else if (into->binned) {
        add_to_bins(into->bins[class], list);
    } else if (list->count > 0) {
        memcpy(into->list[class].keys + into->list[class].count, list->keys,
               list->count * sizeof *list->keys);
        into->list[class].count += list->count;
    }
}

pace_status pace__metrics_merge(pace__metrics *into, const pace__metrics *from)
{
    assert(into != from && into->exact_rows == from->exact_rows);
    assert(pace__metrics_classes(into) == pace__metrics_classes(from));
    pace_status status = from->counts
                             ? pace__class_counts_merge(into, from)
                             : make_room(into, from->class_rows[NEGATIVE], from->class_rows[POSITIVE]);

    if (status)
        return status;
    for (int class = 0; class < CLASSES; class ++) {
        merge_keys(into, from, class);
        into->class_rows[class] += from->class_rows[class];
        into->predicted_rows[class] += from->predicted_rows[class];
    }
    into->not_numbers += from->not_numbers;
    into->infinite_losses += from->infinite_losses;
    into->loss_sum += from->loss_sum;
    into->predicted_sum += from->predicted_sum;
    return PACE_OK;
}

/* AUC ---------------------------------------------------------------------------------------------------- */

/* One stable pass of the radix sort, by the digit at `shift`. */
static void sort_pass(const uint32_t *from, uint32_t *to, size_t count, unsigned shift)
{
    size_t place[DIGITS] = {0};
    size_t sum = 0;

    for (size_t i = 0; i < count; i++)
        place[(from[i] >> shift) & (DIGITS - 1)]++;
    for (size_t digit = 0; digit < DIGITS; digit++) {
        size_t here = place[digit];

        place[digit] = sum;
        sum += here;
    }
    for (size_t i = 0; i < count; i++)
        to[place[(from[i] >> shift) & (DIGITS - 1)]++] = from[i];
}

static pace_status sort_keys(key_list *list, const pace_log *log)
{
    uint32_t *other = malloc(list->room * sizeof *other + 1);

    if (!other)
        return pace_fail(log, PACE_FAILED, "out of memory for sorting %zu scores", list->count);
    for (unsigned shift = 0; shift < 32; shift += DIGIT_BITS) {
        uint32_t *sorted = other;

        sort_pass(list->keys, sorted, list->count, shift);
        other = list->keys;
        list->keys = sorted;
    }
    free(other);
    return PACE_OK;
}

/*
 * Twice the number of pairs in which the positive row ranks higher, ties counted half. Both lists are sorted.
 */
static wide doubled_wins(const key_list *negative, const key_list *positive)
{
    wide wins = 0;
    size_t below = 0, not_above = 0; /* negatives whose key is less / not greater than the current one */

    for (size_t i = 0; i < positive->count; i++) {
        uint32_t key = positive->keys[i];

        while (below < negative->count && negative->keys[below] < key)
            below++;
        if (not_above < below)
            not_above = below;
        while (not_above < negative->count && negative->keys[not_above] == key)
            not_above++;
        wins += below + not_above;
    }
    return wins;
}

static wide doubled_wins_of_bins(const uint64_t *negative, const uint64_t *positive)
{
    wide wins = 0;
    uint64_t below = 0;

    for (size_t bin = 0; bin < BINS; bin++) {
        wins += (wide)positive[bin] * (2 * (wide)below + negative[bin]);
        below += negative[bin];
    }
    return wins;
}

static wide pairs_of(const pace__metrics *metrics)
{
    return (wide)metrics->class_rows[NEGATIVE] * metrics->class_rows[POSITIVE];
}

static pace_status find_auc(pace__metrics *metrics, double *auc)
{
    key_list *list = metrics->list;
    wide wins;

    if (pairs_of(metrics) == 0) {
        *auc = NAN;
        return PACE_OK;
    }
    if (metrics->binned) {
        wins = doubled_wins_of_bins(metrics->bins[NEGATIVE], metrics->bins[POSITIVE]);
    } else {
        for (int class = 0; class < CLASSES; class ++) {
            pace_status status = sort_keys(&list[class], metrics->log);

            if (status)
                return status;
        }
        wins = doubled_wins(&list[NEGATIVE], &list[POSITIVE]);
    }
    *auc = (double)wins / (2 * (double)pairs_of(metrics));
    return PACE_OK;
}

double pace__metrics_auc_error_max(const pace__metrics *metrics)
{
    wide tied = 0;

    if (!metrics->binned || pairs_of(metrics) == 0)
        return 0;
    for (size_t bin = 0; bin < BINS; bin++)
        tied += (wide)metrics->bins[NEGATIVE][bin] * metrics->bins[POSITIVE][bin];
    return (double)tied / (2 * (double)pairs_of(metrics));
}

/* Finishing ---------------------------------------------------------------------------------------------- */

static double entropy(double share)
{
    return share > 0 && share < 1 ? -share * log(share) - (1 - share) * log1p(-share) : 0;
}

static void fill_counts(const pace__metrics *metrics, pace_scores *scores)
{
    uint64_t positive = metrics->class_rows[POSITIVE], negative = metrics->class_rows[NEGATIVE];
    uint64_t hits = metrics->predicted_rows[POSITIVE], false_alarms = metrics->predicted_rows[NEGATIVE];

    scores->n = positive + negative;
    scores->true_positives = hits;
    scores->false_negatives = positive - hits;
    scores->false_positives = false_alarms;
    scores->true_negatives = negative - false_alarms;
    scores->accuracy = pace__metrics_ratio(hits + negative - false_alarms, scores->n);
    scores->precision = pace__metrics_ratio(hits, hits + false_alarms);
    scores->recall = pace__metrics_ratio(hits, positive);
    scores->f1 = pace__metrics_ratio(2 * hits, positive + hits + false_alarms);
    scores->null_accuracy = pace__metrics_ratio(positive > negative ? positive : negative, scores->n);
}

static void fill_means(const pace__metrics *metrics, pace_scores *scores)
{
    double rows = (double)rows_of(metrics);

    scores->logloss = metrics->infinite_losses ? INFINITY : (double)metrics->loss_sum * 0x1p-60 / rows;
    scores->mean_predicted = (double)metrics->predicted_sum * 0x1p-60 / rows;
    scores->mean_actual = (double)metrics->class_rows[POSITIVE] / rows;
    scores->null_logloss = rows > 0 ? entropy(scores->mean_actual) : NAN;
}

pace_status pace__metrics_finish(pace__metrics *metrics, pace_scores *scores)
{
    pace_scores found = {0};

    if (metrics->not_numbers)
        return pace_fail(metrics->log, PACE_FAILED,
                         "%llu of %llu predictions are not numbers: the model has diverged; try a lower --lr",
                         (unsigned long long)metrics->not_numbers,
                         (unsigned long long)(metrics->not_numbers + rows_of(metrics)));
    if (metrics->counts) {
        pace__class_counts_finish(metrics, scores);
        return PACE_OK;
    }
    pace_status status = find_auc(metrics, &found.auc);

    if (status)
        return status;
    fill_counts(metrics, &found);
    fill_means(metrics, &found);
    found.top5 = NAN;
    *scores = found;
    return PACE_OK;
}
