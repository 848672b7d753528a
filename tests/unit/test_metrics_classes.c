/* Scores of several classes against sums in plain doubles, and against themselves in other batches. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/random.h"
#include "metrics/metrics.h"
#include "metrics/softmax.h"

#include "support.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#define CLOSE 1e-12

static void assert_close(double value, double expected)
{
    if (!(fabs(value - expected) <= CLOSE))
        fail_msg("%.17g, expected %.17g", value, expected);
}

static pace__metrics *new_metrics(uint32_t classes)
{
    pace__metrics *metrics;

    assert_ok(pace__metrics_create_classes(classes, &said_log, &metrics));
    return metrics;
}

static pace_scores finish(pace__metrics *metrics)
{
    pace_scores scores;

    assert_ok(pace__metrics_finish(metrics, &scores));
    return scores;
}

/* --- by hand --- */

static void counts_by_hand(void **state)
{
    /* 3 classes; the rows are taken for 0, 1, 1 and 2. */
    static const float logits[] = {2, 0, 1, /**/ 0, 3, 1, /**/ -1, 2, 0, /**/ 0, 1, 2};
    static const uint16_t labels[] = {0, 0, 1, 2};
    static const char *const names[] = {"ant", "bee", "cat"};
    pace__metrics *metrics = new_metrics(3);
    pace_class_scores by_class;

    (void)state;
    assert_ok(pace__metrics_add_classes(metrics, logits, labels, 4));
    pace_scores scores = finish(metrics);

    assert_int_equal(scores.n, 4);
    assert_int_equal(scores.classes, 3);
    assert_close(scores.accuracy, 0.75);
    assert_close(scores.top5, 1);
    assert_close(scores.precision, (1 + 0.5 + 1) / 3);
    assert_close(scores.recall, (0.5 + 1 + 1) / 3);
    assert_close(scores.f1, (2 / 3.0 + 2 / 3.0 + 1) / 3);
    assert_close(scores.null_accuracy, 0.5);
    assert_close(scores.null_logloss, 0.5 * log(2) + 2 * 0.25 * log(4));
    assert_true(isnan(scores.auc) && isnan(scores.mean_predicted));
    assert_ok(pace__metrics_by_class(metrics, names, &by_class));
    assert_string_equal(by_class.names[2], "cat");
    assert_int_equal(by_class.n[0], 2);
    assert_int_equal(by_class.predicted[1], 2);
    assert_close(by_class.precision[1], 0.5);
    assert_close(by_class.recall[0], 0.5);
    assert_memory_equal(by_class.confusion, ((const uint64_t[]){1, 1, 0, 0, 1, 0, 0, 0, 1}), 9 * 8);
    pace_class_scores_release(&by_class);
    pace_class_scores_release(&by_class);
    pace__metrics_free(metrics);
}

/* Of equal logits the first class is predicted, and comes first among the top 5. */
static void ties_go_to_the_first(void **state)
{
    float logits[7] = {0};

    (void)state;
    for (uint16_t label = 0; label < 7; label++) {
        pace__metrics *metrics = new_metrics(7);

        assert_ok(pace__metrics_add_classes(metrics, logits, &label, 1));
        pace_scores scores = finish(metrics);

        assert_true(scores.accuracy == (label == 0));
        assert_true(scores.top5 == (label < 5));
        assert_close(scores.logloss, log(7));
        pace__metrics_free(metrics);
    }
}

static void losses_beyond_the_range_of_exp(void **state)
{
    static const struct {
        float logits[3];
        uint16_t label;
        double loss;
    } cases[] = {
        {{1000, 0, 0}, 0, 0},
        {{1000, 0, 0}, 1, 1000},
        {{-1000, -1001, -3000}, 0, 0.31326168751822286},
        {{40, 0, -INFINITY}, 0, 4.248354255291589e-18},
        {{INFINITY, 0, 0}, 0, 0},
        {{INFINITY, INFINITY, 0}, 0, 0.6931471805599453},
        {{INFINITY, 0, 0}, 1, INFINITY},
        {{1, -INFINITY, 0}, 1, INFINITY},
        {{-INFINITY, -INFINITY, -INFINITY}, 2, 1.0986122886681098},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pace__metrics *metrics = new_metrics(3);

        assert_ok(pace__metrics_add_classes(metrics, cases[i].logits, &cases[i].label, 1));
        double loss = finish(metrics).logloss;

        if (isinf(cases[i].loss) ? loss != cases[i].loss
                                 : !(fabs(loss - cases[i].loss) <= 1e-15 * cases[i].loss + 0x1p-60))
            fail_msg("case %zu: %.17g, expected %.17g", i, loss, cases[i].loss);
        pace__metrics_free(metrics);
    }
}

static void what_is_no_number_is_refused(void **state)
{
    static const float logits[] = {1, 2, 3, /**/ 1, NAN, 2, /**/ NAN, 0, 0};
    static const uint16_t labels[] = {0, 1, 2};
    pace__metrics *metrics = new_metrics(3), *other = new_metrics(3);
    pace_scores scores = {.n = 77};

    (void)state;
    said_clear();
    assert_ok(pace__metrics_add_classes(metrics, logits, labels, 3));
    assert_ok(pace__metrics_merge(other, metrics));
    assert_failed(pace__metrics_finish(other, &scores), PACE_FAILED, "2 of 3 predictions are not numbers");
    assert_int_equal(scores.n, 77);
    pace__metrics_clear(metrics);
    scores = finish(metrics);
    assert_int_equal(scores.n, 0);
    assert_true(isnan(scores.logloss) && isnan(scores.null_logloss) && scores.accuracy == 0);
    pace__metrics_free(metrics);
    pace__metrics_free(other);
}

/* --- against plain sums --- */

typedef struct sample {
    uint32_t classes;
    size_t rows;
    float *logits;
    uint16_t *labels;
} sample;

/* Few different logits, so that there are ties; the last class never occurs. */
static sample make_sample(uint32_t classes, size_t rows, uint64_t seed)
{
    pace__random random = pace__random_at(seed, 3);
    sample made = {classes, rows, tiny_alloc(rows * classes * sizeof(float)), tiny_alloc(rows * 2)};

    for (size_t i = 0; i < rows; i++) {
        made.labels[i] = (uint16_t)pace__random_below(&random, classes - 1);
        for (uint32_t c = 0; c < classes; c++)
            made.logits[i * classes + c] = (float)pace__random_below(&random, 64) * 0.25f - 8;
        made.logits[i * classes + made.labels[i]] += 3;
    }
    return made;
}

static void free_sample(sample *made)
{
    free(made->logits);
    free(made->labels);
}

typedef struct naive {
    double accuracy, top5, logloss, precision, recall, f1;
    uint64_t *confusion;
} naive;

/* Where a class stands: sorted by falling logit, then by number. */
static uint32_t place_of(const float *logits, uint32_t classes, uint32_t class)
{
    uint32_t place = 0;

    for (uint32_t c = 0; c < classes; c++) {
        if (c != class && (logits[c] > logits[class] || (logits[c] == logits[class] && c < class)))
            place++;
    }
    return place;
}

static naive compute(const sample *made)
{
    uint32_t classes = made->classes;
    naive found = {.confusion = tiny_alloc((size_t)classes * classes * 8)};

    for (size_t i = 0; i < made->rows; i++) {
        const float *logits = made->logits + i * classes;
        uint32_t best = 0;
        double sum = 0;

        for (uint32_t c = 0; c < classes; c++) {
            sum += exp((double)logits[c]);
            best = place_of(logits, classes, c) == 0 ? c : best;
        }
        found.logloss -= log(exp((double)logits[made->labels[i]]) / sum) / (double)made->rows;
        found.accuracy += (double)(best == made->labels[i]) / (double)made->rows;
        found.top5 += (double)(place_of(logits, classes, made->labels[i]) < 5) / (double)made->rows;
        found.confusion[made->labels[i] * classes + best]++;
    }
    for (uint32_t c = 0; c < classes; c++) {
        double hits = (double)found.confusion[c * classes + c], actual = 0, predicted = 0;

        for (uint32_t o = 0; o < classes; o++) {
            actual += (double)found.confusion[c * classes + o];
            predicted += (double)found.confusion[o * classes + c];
        }
        double precision = predicted > 0 ? hits / predicted : 0, recall = actual > 0 ? hits / actual : 0;

        found.precision += precision / classes;
        found.recall += recall / classes;
        found.f1 += precision + recall > 0 ? 2 * precision * recall / (precision + recall) / classes : 0;
    }
    return found;
}

static void as_plain_sums(void **state)
{
    (void)state;
    for (uint32_t classes = 3; classes < 40; classes += 9) {
        sample made = make_sample(classes, 700, classes);
        pace__metrics *metrics = new_metrics(classes);
        naive expected = compute(&made);
        const char **names = tiny_alloc(classes * sizeof *names);
        pace_class_scores by_class;

        for (uint32_t c = 0; c < classes; c++)
            names[c] = "class";
        assert_ok(pace__metrics_add_classes(metrics, made.logits, made.labels, made.rows));
        pace_scores scores = finish(metrics);

        assert_close(scores.accuracy, expected.accuracy);
        assert_close(scores.top5, expected.top5);
        assert_close(scores.logloss, expected.logloss);
        assert_close(scores.precision, expected.precision);
        assert_close(scores.recall, expected.recall);
        assert_close(scores.f1, expected.f1);
        assert_ok(pace__metrics_by_class(metrics, names, &by_class));
        assert_memory_equal(by_class.confusion, expected.confusion, (size_t)classes * classes * 8);
        pace_class_scores_release(&by_class);
        pace__metrics_free(metrics);
        free(names);
        free(expected.confusion);
        free_sample(&made);
    }
}

/* --- order --- */

/* Every row into one of three accumulators, last rows first, in batches of one; then merged. */
static pace_scores score_apart(const sample *made)
{
    pace__metrics *parts[3];

    for (int i = 0; i < 3; i++)
        parts[i] = new_metrics(made->classes);
    for (size_t i = made->rows; i-- > 0;)
        assert_ok(pace__metrics_add_classes(parts[i * i % 3], made->logits + i * made->classes,
                                            made->labels + i, 1));
    assert_ok(pace__metrics_merge(parts[1], parts[2]));
    assert_ok(pace__metrics_merge(parts[1], parts[0]));
    pace_scores scores = finish(parts[1]);

    for (int i = 0; i < 3; i++)
        pace__metrics_free(parts[i]);
    return scores;
}

static void same_bits_in_every_order(void **state)
{
    sample made = make_sample(11, 3000, 5);
    pace__metrics *metrics = new_metrics(11);

    (void)state;
    assert_ok(pace__metrics_add_classes(metrics, made.logits, made.labels, made.rows));
    pace_scores together = finish(metrics), apart = score_apart(&made);

    assert_memory_equal(&together, &apart, sizeof together);
    pace__metrics_free(metrics);
    free_sample(&made);
}

/* Too many for a matrix: the counts by class are there all the same. */
static void many_classes(void **state)
{
    sample made = make_sample(1500, 300, 6);
    pace__metrics *metrics = new_metrics(1500);
    const char **names = tiny_alloc(1500 * sizeof *names);
    pace_class_scores by_class;
    uint64_t rows = 0, predicted = 0;

    (void)state;
    for (int c = 0; c < 1500; c++)
        names[c] = "one";
    assert_ok(pace__metrics_add_classes(metrics, made.logits, made.labels, made.rows));
    assert_ok(pace__metrics_by_class(metrics, names, &by_class));
    assert_null(by_class.confusion);
    for (int c = 0; c < 1500; c++) {
        rows += by_class.n[c];
        predicted += by_class.predicted[c];
    }
    assert_int_equal(rows, 300);
    assert_int_equal(predicted, 300);
    pace_class_scores_release(&by_class);
    pace__metrics_free(metrics);
    free(names);
    free_sample(&made);
}

/* Yes and no by class: the matrix has what the scores count. */
static void two_classes(void **state)
{
    static const float logits[] = {1, -1, 2, 0, 3, -2};
    static const uint8_t labels[] = {1, 1, 0, 0, 1, 0};
    static const char *const names[] = {"no", "yes"};
    pace__metrics *metrics;
    pace_class_scores by_class;

    (void)state;
    assert_ok(pace__metrics_create(100, &said_log, &metrics));
    assert_int_equal(pace__metrics_classes(metrics), 2);
    assert_ok(pace__metrics_add_logits(metrics, logits, labels, 6));
    assert_ok(pace__metrics_by_class(metrics, names, &by_class));
    pace_scores scores = finish(metrics);

    assert_memory_equal(by_class.confusion, ((const uint64_t[]){2, 1, 1, 2}), 4 * 8);
    assert_true(by_class.precision[1] == scores.precision && by_class.recall[1] == scores.recall);
    assert_true(by_class.f1[1] == scores.f1 && isnan(scores.top5));
    assert_int_equal(by_class.n[0], 3);
    assert_close(by_class.recall[0], 2 / 3.0);
    assert_close(by_class.precision[0], 2 / 3.0);
    pace_class_scores_release(&by_class);
    pace__metrics_free(metrics);
}

static void json_and_back(void **state)
{
    sample made = make_sample(8, 100, 9);
    pace__metrics *metrics = new_metrics(8);
    pace_scores back;

    (void)state;
    assert_ok(pace__metrics_add_classes(metrics, made.logits, made.labels, made.rows));
    pace_scores scores = finish(metrics);
    char *text = pace_scores_to_json(&scores);
    cJSON *object = cJSON_Parse(text);

    assert_non_null(object);
    assert_true(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(object, "auc")));
    assert_null(cJSON_GetObjectItemCaseSensitive(object, "confusion"));
    assert_true(cJSON_GetObjectItemCaseSensitive(object, "top5_accuracy")->valuedouble == scores.top5);
    pace__scores_from_json(object, &back);
    assert_true(back.n == scores.n && back.classes == 8 && back.top5 == scores.top5);
    assert_true(back.accuracy == scores.accuracy && back.f1 == scores.f1 && back.logloss == scores.logloss);
    assert_true(isnan(back.auc) && isnan(back.mean_predicted) && back.true_positives == 0);
    cJSON_Delete(object);
    free(text);
    pace__metrics_free(metrics);
    free_sample(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_by_hand),
        cmocka_unit_test(ties_go_to_the_first),
        cmocka_unit_test(losses_beyond_the_range_of_exp),
        cmocka_unit_test(what_is_no_number_is_refused),
        cmocka_unit_test(as_plain_sums),
        cmocka_unit_test(same_bits_in_every_order),
        cmocka_unit_test(many_classes),
        cmocka_unit_test(two_classes),
        cmocka_unit_test(json_and_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
