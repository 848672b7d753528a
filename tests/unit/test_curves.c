/* What lies behind scores: calibration and ROC by hand, in bins, of one label; and who was taken for whom. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/random.h"
#include "metrics/curves.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MANY 5000

static pace__curves curves_of(uint64_t exact_rows, const float *logits, const uint8_t *labels, size_t count)
{
    pace__metrics *metrics;
    pace_scores scores;
    pace__curves curves;

    assert_int_equal(pace__metrics_create(exact_rows, NULL, &metrics), PACE_OK);
    assert_int_equal(pace__metrics_add_logits(metrics, logits, labels, count), PACE_OK);
    assert_int_equal(pace__metrics_finish(metrics, &scores), PACE_OK);
    pace__metrics_curves(metrics, &curves);
    pace__metrics_free(metrics);
    return curves;
}

static void assert_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.9g, expected %.9g", value, expected);
}

static void roc_by_hand(void **state)
{
    (void)state;
    const float logits[] = {2, 1, 1, -1};
    const uint8_t labels[] = {1, 1, 0, 0};
    pace__curves curves = curves_of(100, logits, labels, 4);
    const double expected[][2] = {{0, 0}, {0, 0.5}, {0.5, 1}, {1, 1}};

    assert_int_equal(curves.points, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_near(curves.point[i].false_rate, expected[i][0], 1e-12);
        assert_near(curves.point[i].true_rate, expected[i][1], 1e-12);
    }
    assert_int_equal(curves.bins, 3); /* equal logits share one */
    assert_near(curves.bin[1].predicted, 1 / (1 + exp(-1)), 1e-9);
    assert_near(curves.bin[1].actual, 0.5, 1e-12);
    assert_int_equal(curves.bin[1].rows, 2);
    assert_near(curves.bin[0].actual, 0, 0);
    assert_near(curves.bin[2].actual, 1, 0);
}

/* Labels drawn with the probability that is predicted: bins are on the diagonal. */
static void draw(float *logits, uint8_t *labels)
{
    pace__random random = pace__random_at(7, 0);

    for (size_t i = 0; i < MANY; i++) {
        logits[i] = (float)(4 * pace__random_unit(&random) - 3);
        labels[i] = pace__random_unit(&random) < 1 / (1 + exp(-(double)logits[i]));
    }
}

/* By trapezoids. */
static double area_under(const pace__curves *curves)
{
    double area = 0;

    for (uint64_t i = 1; i < curves->points; i++)
        area += (curves->point[i].false_rate - curves->point[i - 1].false_rate) *
                (curves->point[i].true_rate + curves->point[i - 1].true_rate) / 2;
    return area;
}

static void many_rows_fit_the_scores(void **state)
{
    (void)state;
    static float logits[MANY];
    static uint8_t labels[MANY];

    draw(logits, labels);
    for (int binned = 0; binned < 2; binned++) {
        pace__metrics *metrics;
        pace_scores scores;
        pace__curves curves = curves_of(binned ? 10 : MANY, logits, labels, MANY);
        uint64_t rows = 0;
        double predicted = 0;

        assert_int_equal(pace__metrics_create(MANY, NULL, &metrics), PACE_OK);
        assert_int_equal(pace__metrics_add_logits(metrics, logits, labels, MANY), PACE_OK);
        assert_int_equal(pace__metrics_finish(metrics, &scores), PACE_OK);
        assert_true(curves.points > 50 && curves.points <= PACE__CURVE_POINTS);
        assert_near(area_under(&curves), scores.auc, 2e-3);
        assert_true(curves.bins > 10 && curves.bins <= PACE__CURVE_BINS);
        for (uint64_t i = 0; i < curves.bins; i++) {
            rows += curves.bin[i].rows;
            predicted += curves.bin[i].predicted * (double)curves.bin[i].rows;
            assert_near(curves.bin[i].actual, curves.bin[i].predicted, 0.1);
            assert_true(i == 0 || curves.bin[i].predicted > curves.bin[i - 1].predicted);
        }
        assert_int_equal(rows, MANY);
        assert_near(predicted / MANY, scores.mean_predicted, 1e-4);
        pace__metrics_free(metrics);
    }
}

static void nothing_of_one_label_or_no_rows(void **state)
{
    (void)state;
    const float logits[] = {3, 1, 2};
    const uint8_t labels[] = {1, 1, 1};
    pace__curves curves = curves_of(100, logits, labels, 3);

    assert_int_equal(curves.points, 0);
    assert_int_equal(curves.bins, 0);
    curves = curves_of(100, logits, labels, 0);
    assert_int_equal(curves.points, 0);
    assert_int_equal(curves.bins, 0);
}

static void who_was_taken_for_whom(void **state)
{
    (void)state;
    const float logits[] = {1, 0, 0, 0, 1, 0, 0, 1, 0};
    const uint16_t labels[] = {0, 1, 2};
    pace__metrics *metrics;
    pace__curves curves;

    assert_int_equal(pace__metrics_create_classes(3, NULL, &metrics), PACE_OK);
    assert_int_equal(pace__metrics_add_classes(metrics, logits, labels, 3), PACE_OK);
    pace__metrics_curves(metrics, &curves);
    assert_int_equal(curves.classes, 3);
    assert_int_equal(curves.taken_for[0][0], 1);
    assert_int_equal(curves.taken_for[1][1], 1);
    assert_int_equal(curves.taken_for[2][1], 1);
    assert_int_equal(curves.taken_for[2][2], 0);
    pace__metrics_free(metrics);
    assert_int_equal(pace__metrics_create_classes(PACE__CURVE_CLASSES + 1, NULL, &metrics), PACE_OK);
    pace__metrics_curves(metrics, &curves);
    assert_int_equal(curves.classes, 0);
    pace__metrics_free(metrics);
}

static void json_can_be_read(void **state)
{
    (void)state;
    static float logits[MANY];
    static uint8_t labels[MANY];
    static char text[20000];
    pace__json json = {.text = text, .capacity = sizeof text - 1};

    draw(logits, labels);
    pace__curves curves = curves_of(MANY, logits, labels, MANY);

    pace__curves_put(&json, &curves);
    assert_true(json.size < sizeof text);
    cJSON *read = cJSON_Parse(text);

    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(read, "bins")), curves.bins);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(read, "roc")), curves.points);
    cJSON_Delete(read);
    json = (pace__json){.text = text, .capacity = sizeof text - 1};
    pace__curves_put(&json, &(pace__curves){0});
    assert_int_equal(json.size, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roc_by_hand),
        cmocka_unit_test(many_rows_fit_the_scores),
        cmocka_unit_test(nothing_of_one_label_or_no_rows),
        cmocka_unit_test(who_was_taken_for_whom),
        cmocka_unit_test(json_can_be_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
