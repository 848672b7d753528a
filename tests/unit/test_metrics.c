/* Scores against hand-computed cases, against a quadratic AUC, and against themselves in other batches. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/random.h"
#include "metrics/metrics.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CLOSE 1e-14

static pace__metrics *new_metrics(uint64_t exact_rows)
{
    pace__metrics *metrics;

    assert_int_equal(pace__metrics_create(exact_rows, NULL, &metrics), PACE_OK);
    return metrics;
}

static pace_scores finish(pace__metrics *metrics)
{
    pace_scores scores;

    assert_int_equal(pace__metrics_finish(metrics, &scores), PACE_OK);
    return scores;
}

static pace_scores score(const float *logits, const uint8_t *labels, size_t count)
{
    pace__metrics *metrics = new_metrics(PACE__METRICS_EXACT_ROWS);

    assert_int_equal(pace__metrics_add_logits(metrics, logits, labels, count), PACE_OK);
    pace_scores scores = finish(metrics);

    pace__metrics_free(metrics);
    return scores;
}

static void assert_close(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.17g, expected %.17g", value, expected);
}

/* Hand-computed ------------------------------------------------------------------------------------------ */

static void counts_by_hand(void **state)
{
    (void)state;
    /* tp 2, fn 1, fp 1, tn 3; a logit of 0 is not above 0.5. */
    const float logits[] = {2, 1, -1, 3, -2, -3, 0};
    const uint8_t labels[] = {1, 1, 1, 0, 0, 0, 0};
    pace_scores scores = score(logits, labels, 7);

    assert_int_equal(scores.n, 7);
    assert_int_equal(scores.true_positives, 2);
    assert_int_equal(scores.false_negatives, 1);
    assert_int_equal(scores.false_positives, 1);
    assert_int_equal(scores.true_negatives, 3);
    assert_close(scores.accuracy, 5.0 / 7, CLOSE);
    assert_close(scores.precision, 2.0 / 3, CLOSE);
    assert_close(scores.recall, 2.0 / 3, CLOSE);
    assert_close(scores.f1, 2.0 / 3, CLOSE);
    assert_close(scores.null_accuracy, 4.0 / 7, CLOSE);
    assert_close(scores.mean_actual, 3.0 / 7, CLOSE);
    assert_close(scores.null_logloss, -(3.0 / 7) * log(3.0 / 7) - (4.0 / 7) * log(4.0 / 7), CLOSE);
}

static void precision_and_recall_differ(void **state)
{
    (void)state;
    /* tp 1, fp 1, fn 2: precision 1/2, recall 1/3, F1 2/5. */
    const float logits[] = {1, 1, -1, -1, -1};
    const uint8_t labels[] = {1, 0, 1, 1, 0};
    pace_scores scores = score(logits, labels, 5);

    assert_close(scores.precision, 1.0 / 2, CLOSE);
    assert_close(scores.recall, 1.0 / 3, CLOSE);
    assert_close(scores.f1, 2.0 / 5, CLOSE);
}

static void ratios_without_cases_are_zero(void **state)
{
    (void)state;
    const float logits[] = {-1, -2};
    pace_scores scores = score(logits, (const uint8_t[]){0, 0}, 2);

    assert_true(scores.precision == 0 && scores.recall == 0 && scores.f1 == 0);
    assert_true(scores.accuracy == 1 && scores.null_accuracy == 1 && scores.null_logloss == 0);
    assert_true(isnan(scores.auc));
    scores = score(logits, (const uint8_t[]){1, 1}, 2);
    assert_true(scores.precision == 0 && scores.recall == 0 && scores.f1 == 0 && scores.accuracy == 0);
    assert_true(isnan(scores.auc));
}

static void no_rows(void **state)
{
    (void)state;
    pace_scores scores = score(NULL, NULL, 0);

    assert_int_equal(scores.n, 0);
    assert_true(scores.accuracy == 0 && isnan(scores.auc) && isnan(scores.logloss) &&
                isnan(scores.mean_actual));
}

static void auc_by_hand(void **state)
{
    (void)state;
    const float rising[] = {-3, -1, 0.5f, 7};

    assert_true(score(rising, (const uint8_t[]){0, 0, 1, 1}, 4).auc == 1);
    assert_true(score(rising, (const uint8_t[]){1, 1, 0, 0}, 4).auc == 0);
    assert_true(score(rising, (const uint8_t[]){0, 1, 0, 1}, 4).auc == 0.75);
    assert_true(score((const float[]){2, 2, 2, 2}, (const uint8_t[]){0, 1, 1, 0}, 4).auc == 0.5);
    /* 0 and -0 tie: pairs (0, -0) half, (1, -0) win. */
    assert_true(score((const float[]){-0.0f, 0.0f, 1}, (const uint8_t[]){0, 1, 1}, 3).auc == 0.75);
    /* Positives 1 2 2, negatives 1 2 0: 0.5+0+1, 1+.5+1, 1+.5+1 of 9. */
    assert_close(score((const float[]){1, 2, 2, 1, 2, 0}, (const uint8_t[]){1, 1, 1, 0, 0, 0}, 6).auc,
                 6.5 / 9, CLOSE);
    /* Infinite logits rank like any other. */
    assert_true(score((const float[]){-INFINITY, INFINITY}, (const uint8_t[]){0, 1}, 2).auc == 1);
}

static void logloss_by_hand(void **state)
{
    (void)state;
    const float logits[] = {0, 2, -2};

    assert_close(score(logits, (const uint8_t[]){1, 1, 1}, 3).logloss,
                 (log(2) + log(1 + exp(-2)) + log(1 + exp(2))) / 3, CLOSE);
    /* Far out: the loss is the logit itself, or vanishes; neither overflows. */
    assert_close(score((const float[]){1000}, (const uint8_t[]){0}, 1).logloss, 1000, 1e-9);
    assert_close(score((const float[]){1000}, (const uint8_t[]){1}, 1).logloss, 0, 0);
    assert_close(score((const float[]){30}, (const uint8_t[]){1}, 1).logloss, exp(-30), 1e-18);
    assert_true(isinf(score((const float[]){INFINITY}, (const uint8_t[]){0}, 1).logloss));
    assert_true(score((const float[]){INFINITY}, (const uint8_t[]){1}, 1).logloss == 0);
    assert_close(score((const float[]){log(3), -log(3)}, (const uint8_t[]){1, 1}, 2).mean_predicted, 0.5,
                 1e-7);
}

static void probabilities_are_scored_like_their_logits(void **state)
{
    (void)state;
    const double probabilities[] = {0.25, 0.5, 0.75, 1, 0};
    const uint8_t labels[] = {0, 1, 1, 1, 0};
    pace__metrics *metrics = new_metrics(100);

    assert_int_equal(pace__metrics_add_probabilities(metrics, probabilities, labels, 5), PACE_OK);
    pace_scores scores = finish(metrics);

    assert_int_equal(scores.true_positives, 2);
    assert_int_equal(scores.true_negatives, 2);
    assert_true(scores.auc == 1);
    assert_close(scores.logloss, -(2 * log(0.75) + log(0.5)) / 5, CLOSE);
    assert_close(scores.mean_predicted, 0.5, CLOSE);
    pace__metrics_free(metrics);
}

static void remember(void *user, pace_level level, const char *text)
{
    (void)level;
    snprintf(user, PACE_LOG_TEXT_MAX, "%s", text);
}

static void not_a_number_is_an_error(void **state)
{
    (void)state;
    char text[PACE_LOG_TEXT_MAX] = "";
    pace_log log = {remember, text};
    pace__metrics *metrics, *other;
    pace_scores scores = {.n = 77};

    assert_int_equal(pace__metrics_create(100, &log, &metrics), PACE_OK);
    assert_int_equal(pace__metrics_create(100, &log, &other), PACE_OK);
    pace__metrics_add_logits(metrics, (const float[]){1, NAN, 2}, (const uint8_t[]){1, 0, 1}, 3);
    pace__metrics_add_probabilities(metrics, (const double[]){1.5, -0.1}, (const uint8_t[]){1, 0}, 2);
    pace__metrics_merge(other, metrics);
    assert_int_equal(pace__metrics_finish(other, &scores), PACE_FAILED);
    assert_int_equal(scores.n, 77);
    assert_non_null(strstr(text, "3 of 5 predictions are not numbers"));
    pace__metrics_clear(metrics);
    assert_int_equal(pace__metrics_finish(metrics, &scores), PACE_OK);
    pace__metrics_free(metrics);
    pace__metrics_free(other);
}

/* Random ------------------------------------------------------------------------------------------------- */

typedef struct rows {
    size_t count;
    float *logits;
    uint8_t *labels;
} rows;

/* `levels` distinct logits (0: as many as floats give), related to the label. */
static rows random_rows(uint64_t seed, size_t count, unsigned levels)
{
    rows made = {count, malloc(count * sizeof(float)), malloc(count)};
    pace__random random = {seed};

    assert_true(made.logits && made.labels);
    for (size_t i = 0; i < count; i++) {
        double unit = pace__random_unit(&random);

        if (levels)
            unit = floor(unit * levels) / levels;
        made.logits[i] = (float)(10 * unit - 6);
        made.labels[i] = pace__random_unit(&random) < 1 / (1 + exp(-made.logits[i]));
    }
    return made;
}

static void free_rows(rows *data)
{
    free(data->logits);
    free(data->labels);
}

static double quadratic_auc(const rows *data)
{
    double wins = 0, pairs = 0;

    for (size_t i = 0; i < data->count; i++) {
        for (size_t j = 0; j < data->count; j++) {
            if (!data->labels[i] || data->labels[j])
                continue;
            pairs++;
            wins += (data->logits[i] > data->logits[j]) + 0.5 * (data->logits[i] == data->logits[j]);
        }
    }
    return wins / pairs;
}

static void auc_is_that_of_all_pairs(void **state)
{
    (void)state;
    uint64_t seed = (uint64_t)time(NULL);
    const unsigned levels[] = {2, 7, 100, 0};

    for (size_t i = 0; i < 4; i++) {
        rows data = random_rows(seed + i, 1500, levels[i]);
        double auc = score(data.logits, data.labels, data.count).auc, expected = quadratic_auc(&data);

        if (fabs(auc - expected) > 1e-12)
            fail_msg("seed %llu, %u levels: %.17g, expected %.17g", (unsigned long long)seed + i, levels[i],
                     auc, expected);
        free_rows(&data);
    }
}

static void logloss_is_that_of_long_double(void **state)
{
    (void)state;
    rows data = random_rows(11, 20000, 0);
    long double sum = 0, predicted = 0;

    for (size_t i = 0; i < data.count; i++) {
        long double z = data.logits[i];

        sum += log1pl(expl(data.labels[i] ? -z : z));
        predicted += 1 / (1 + expl(-z));
    }
    pace_scores scores = score(data.logits, data.labels, data.count);

    assert_close(scores.logloss, (double)(sum / data.count), 1e-15);
    assert_close(scores.mean_predicted, (double)(predicted / data.count), 1e-15);
    free_rows(&data);
}

static void add_in_pieces(pace__metrics *metrics, const rows *data, size_t start, size_t end,
                          pace__random *random)
{
    while (start < end) {
        size_t piece = 1 + pace__random_below(random, 700);

        if (piece > end - start)
            piece = end - start;
        assert_int_equal(pace__metrics_add_logits(metrics, data->logits + start, data->labels + start, piece),
                         PACE_OK);
        start += piece;
    }
}

/* All at once; in pieces; and as two accumulators of which the later rows are merged first. */
static void assert_batching_is_unseen(uint64_t seed, const rows *data, uint64_t exact_rows, bool binned)
{
    pace__metrics *whole = new_metrics(exact_rows), *pieces = new_metrics(exact_rows);
    pace__metrics *first = new_metrics(exact_rows), *second = new_metrics(exact_rows);
    pace__metrics *merged = new_metrics(exact_rows);
    pace__random random = {seed};
    size_t cut = pace__random_below(&random, data->count);

    assert_int_equal(pace__metrics_add_logits(whole, data->logits, data->labels, data->count), PACE_OK);
    add_in_pieces(pieces, data, 0, data->count, &random);
    add_in_pieces(first, data, 0, cut, &random);
    add_in_pieces(second, data, cut, data->count, &random);
    finish(first); /* sorts the keys: must not change anything */
    assert_int_equal(pace__metrics_merge(merged, second), PACE_OK);
    assert_int_equal(pace__metrics_merge(merged, first), PACE_OK);
    pace_scores expected = finish(whole), of_pieces = finish(pieces), of_merged = finish(merged);

    if (memcmp(&expected, &of_pieces, sizeof expected) != 0 ||
        memcmp(&expected, &of_merged, sizeof expected) != 0)
        fail_msg("seed %llu, cut at %zu: scores differ", (unsigned long long)seed, cut);
    assert_int_equal(pace__metrics_auc_error_max(merged) > 0, binned);
    pace__metrics_free(whole);
    pace__metrics_free(pieces);
    pace__metrics_free(first);
    pace__metrics_free(second);
    pace__metrics_free(merged);
}

static void batching_and_merging_change_no_bit(void **state)
{
    (void)state;
    uint64_t seed = (uint64_t)time(NULL);
    rows data = random_rows(seed, 20001, 0);

    assert_batching_is_unseen(seed, &data, PACE__METRICS_EXACT_ROWS, false);
    assert_batching_is_unseen(seed, &data, data.count, false);
    assert_batching_is_unseen(seed, &data, data.count - 1, true);
    assert_batching_is_unseen(seed, &data, 50, true);
    free_rows(&data);
}

static void bins_come_close_to_exact(void **state)
{
    (void)state;
    rows data = random_rows(5, 300000, 0);
    pace__metrics *binned = new_metrics(1000);
    pace_scores exact = score(data.logits, data.labels, data.count);

    assert_int_equal(pace__metrics_add_logits(binned, data.logits, data.labels, data.count), PACE_OK);
    pace_scores scores = finish(binned);
    double error_max = pace__metrics_auc_error_max(binned);

    assert_close(scores.auc, exact.auc, error_max);
    assert_close(scores.auc, exact.auc, 1e-6);
    assert_true(error_max > 0 && error_max < 1e-4);
    scores.auc = exact.auc;
    assert_memory_equal(&scores, &exact, sizeof exact);

    /* Cleared, it is exact again. */
    pace__metrics_clear(binned);
    assert_int_equal(pace__metrics_add_logits(binned, data.logits, data.labels, 900), PACE_OK);
    exact = score(data.logits, data.labels, 900);
    scores = finish(binned);
    assert_memory_equal(&scores, &exact, sizeof exact);
    pace__metrics_free(binned);
    free_rows(&data);
}

/* JSON --------------------------------------------------------------------------------------------------- */

static double number(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    if (!cJSON_IsNumber(item))
        fail_msg("%s is no number", name);
    return item->valuedouble;
}

static void json_holds_everything(void **state)
{
    (void)state;
    pace_scores scores = {.n = 9007199254740991,
                          .accuracy = 0.1,
                          .precision = 1.0 / 3,
                          .recall = 5e-324,
                          .f1 = 1,
                          .auc = 0.7999999999999999,
                          .logloss = 1.7976931348623157e308,
                          .true_positives = 1,
                          .false_positives = 2,
                          .true_negatives = 3,
                          .false_negatives = 4,
                          .mean_predicted = 0.2,
                          .mean_actual = 0.4,
                          .null_accuracy = 2.0 / 3,
                          .null_logloss = 0.6};
    char *text = pace_scores_to_json(&scores);
    cJSON *json = cJSON_Parse(text);
    const cJSON *confusion = cJSON_GetObjectItemCaseSensitive(json, "confusion");

    assert_non_null(json);
    assert_non_null(strstr(text, "\"accuracy\": 0.1,"));
    assert_true(number(json, "n") == 9007199254740991);
    assert_true(number(json, "accuracy") == scores.accuracy && number(json, "precision") == scores.precision);
    assert_true(number(json, "recall") == scores.recall && number(json, "f1") == 1);
    assert_true(number(json, "auc") == scores.auc && number(json, "logloss") == scores.logloss);
    assert_true(number(json, "mean_predicted") == 0.2 && number(json, "mean_actual") == 0.4);
    assert_true(number(json, "null_accuracy") == scores.null_accuracy && number(json, "null_logloss") == 0.6);
    assert_true(number(json, "calibration") == 0.5);
    assert_true(number(confusion, "tp") == 1 && number(confusion, "fp") == 2);
    assert_true(number(confusion, "tn") == 3 && number(confusion, "fn") == 4);
    cJSON_Delete(json);
    free(text);
}

static void json_without_values_has_nulls(void **state)
{
    (void)state;
    pace_scores scores = score((const float[]){INFINITY}, (const uint8_t[]){0}, 1);
    char *text = pace_scores_to_json(&scores);

    assert_non_null(strstr(text, "\"auc\": null"));
    assert_non_null(strstr(text, "\"logloss\": null"));
    assert_non_null(strstr(text, "\"calibration\": null"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_by_hand),
        cmocka_unit_test(precision_and_recall_differ),
        cmocka_unit_test(ratios_without_cases_are_zero),
        cmocka_unit_test(no_rows),
        cmocka_unit_test(auc_by_hand),
        cmocka_unit_test(logloss_by_hand),
        cmocka_unit_test(probabilities_are_scored_like_their_logits),
        cmocka_unit_test(not_a_number_is_an_error),
        cmocka_unit_test(auc_is_that_of_all_pairs),
        cmocka_unit_test(logloss_is_that_of_long_double),
        cmocka_unit_test(batching_and_merging_change_no_bit),
        cmocka_unit_test(bins_come_close_to_exact),
        cmocka_unit_test(json_holds_everything),
        cmocka_unit_test(json_without_values_has_nulls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
