/* What all forms of the recurrent network share: losses, masks of dropout, tensors and their first values. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "model/rnn/rnn.h"

#include "support.h"

#include <float.h>

static void assert_near(double found, double expected, double tolerance, const char *what)
{
    if (!(fabs(found - expected) <= tolerance * (1 + fabs(expected))))
        fail_msg("%s: %.12g instead of %.12g", what, found, expected);
}

static const pace__rnn_config network = {.words = 100,
                                         .length = 4,
                                         .embed = 3,
                                         .hidden = 2,
                                         .layers = 2,
                                         .dense = 3,
                                         .both = true,
                                         .focal = 2,
                                         .weight = {1, 1},
                                         .seed = 5};

/* --- losses --- */

static double loss_of(int loss, float focal, float logit, uint8_t label, float *gradient)
{
    pace__rnn_config config = {.loss = loss, .focal = focal, .weight = {1, 1}};

    return pace__rnn_loss(&config, logit, label, gradient);
}

static void losses_are_known(void **state)
{
    (void)state;
    float gradient;

    assert_near(loss_of(PACE_LOSS_BCE, 0, 0, 1, &gradient), log(2), 1e-15, "bce");
    assert_true(gradient == -0.5f);
    assert_near(loss_of(PACE_LOSS_BCE, 0, 2, 0, &gradient), 2.1269280110429727, 1e-15, "bce");
    assert_near((double)gradient, 0.8807970779778823, 1e-7, "bce");
    assert_near(loss_of(PACE_LOSS_BCE, 0, 2, 1, &gradient), 0.12692801104297250, 1e-15, "bce");
    assert_near((double)gradient, -0.11920292202211755, 1e-7, "bce");
    assert_near(loss_of(PACE_LOSS_FOCAL, 2, 0, 1, &gradient), 0.25 * log(2), 1e-15, "focal");
    assert_near((double)gradient, -0.25 * (0.5 + log(2)), 1e-7, "focal");
    assert_near(loss_of(PACE_LOSS_FOCAL, 0, 2, 0, &gradient), 2.1269280110429727, 1e-15, "focal 0");
    assert_near((double)gradient, 0.8807970779778823, 1e-7, "focal 0");
    assert_true(loss_of(PACE_LOSS_HINGE, 0, 0.25f, 1, &gradient) == 0.75 && gradient == -1);
    assert_true(loss_of(PACE_LOSS_HINGE, 0, 0.25f, 0, &gradient) == 1.25 && gradient == 1);
    assert_true(loss_of(PACE_LOSS_HINGE, 0, 1, 1, &gradient) == 0 && gradient == 0);
    assert_true(loss_of(PACE_LOSS_HINGE, 0, -7, 0, &gradient) == 0 && gradient == 0);
}

static void weights_multiply_loss_and_gradient(void **state)
{
    (void)state;
    for (int loss = PACE_LOSS_BCE; loss <= PACE_LOSS_HINGE; loss++) {
        for (uint8_t label = 0; label < 2; label++) {
            pace__rnn_config config = {.loss = loss, .focal = 1.5f, .weight = {0.25f, 8}};
            float gradient, plain_gradient;
            double plain = loss_of(loss, 1.5f, 0.3f, label, &plain_gradient);

            assert_near(pace__rnn_loss(&config, 0.3f, label, &gradient), plain * (label ? 8 : 0.25), 1e-15,
                        "loss");
            assert_true(gradient == plain_gradient * (label ? 8 : 0.25f));
        }
    }
}

static void losses_have_the_slope_that_they_say(void **state)
{
    (void)state;
    static const double focals[] = {0, 0.5, 1, 2, 5};

    for (int loss = PACE_LOSS_BCE; loss <= PACE_LOSS_HINGE; loss++) {
        for (size_t f = 0; f < 5; f++) {
            pace__rnn_config config = {.loss = loss, .focal = (float)focals[f], .weight = {1, 1}};

            for (double logit = -20.3; logit < 20; logit += 0.37) {
                for (uint8_t label = 0; label < 2; label++) {
                    double slope, unused;

                    pace__rnn_loss_exact(&config, logit, label, &slope);
                    double above = pace__rnn_loss_exact(&config, logit + 1e-4, label, &unused);
                    double below = pace__rnn_loss_exact(&config, logit - 1e-4, label, &unused);

                    assert_near(slope, (above - below) / 2e-4, 1e-7, "slope");
                }
            }
        }
    }
}

static void no_logit_is_too_large_for_a_loss(void **state)
{
    (void)state;
    static const float logits[] = {30, 100, 700, 720, 1e4f, 1e30f, FLT_MAX};

    for (int loss = PACE_LOSS_BCE; loss <= PACE_LOSS_HINGE; loss++) {
        for (size_t i = 0; i < sizeof logits / sizeof *logits; i++) {
            for (uint8_t label = 0; label < 2; label++) {
                for (float focal = 0; focal < 9; focal += 2) {
                    float right, wrong, z = label ? logits[i] : -logits[i];
                    double of_right = loss_of(loss, focal, z, label, &right);
                    double of_wrong = loss_of(loss, focal, -z, label, &wrong);

                    assert_true(of_right >= 0 && of_right < 1e-12 && fabsf(right) < 1e-12f);
                    assert_near(of_wrong, (double)logits[i] + (loss == PACE_LOSS_HINGE), 1e-11, "wrong");
                    assert_near((double)wrong, label ? -1 : 1, 1e-11, "wrong");
                }
            }
        }
        float gradient;

        assert_true(isnan(loss_of(loss, 2, NAN, 1, &gradient)));
    }
}

/* --- dropout --- */

/* How often two of many decisions agree, and how often units are kept. */
static void masks_are_even_and_independent(void **state)
{
    (void)state;
    pace__rnn_config config = {.dropout = 0.3f, .seed = 9}, other = {.dropout = 0.3f, .seed = 10};
    unsigned kept = 0, agree[5] = {0}, count = 20000;

    for (unsigned i = 0; i < count; i++) {
        uint64_t place = i / 400;
        uint32_t layer = i / 200 % 2, word = i / 20 % 10, at = i % 20;
        bool keeps = pace__rnn_keeps(&config, place, layer, word, at);

        kept += keeps;
        agree[0] += keeps == pace__rnn_keeps(&config, place + 50, layer, word, at);
        agree[1] += keeps == pace__rnn_keeps(&config, place, layer + 2, word, at);
        agree[2] += keeps == pace__rnn_keeps(&config, place, layer, UINT32_MAX - word, at);
        agree[3] += keeps == pace__rnn_keeps(&config, place, layer, word, at + 20);
        agree[4] += keeps == pace__rnn_keeps(&other, place, layer, word, at);
    }
    assert_near(kept, 0.7 * count, 0.02, "kept");
    for (int i = 0; i < 5; i++)
        assert_near(agree[i], (0.49 + 0.09) * count, 0.03, "agree");
    config.dropout = 0;
    for (uint32_t i = 0; i < 1000; i++)
        assert_true(pace__rnn_keeps(&config, i, 0, UINT32_MAX, i));
}

/* --- parameters --- */

static void tensors_are_those_of_pytorch(void **state)
{
    (void)state;
    pace__rnn_config config = network; /* LSTM, 2 layers, both, dense 3; embed 3, hidden 2 */
    static const struct {
        const char *name;
        unsigned rank;
        uint64_t shape[2];
    } expected[] = {
        {"rnn.weight_ih_l0", 2, {8, 3}},
        {"rnn.weight_hh_l0", 2, {8, 2}},
        {"rnn.bias_ih_l0", 1, {8}},
        {"rnn.bias_hh_l0", 1, {8}},
        {"rnn.weight_ih_l0_reverse", 2, {8, 3}},
        {"rnn.weight_hh_l0_reverse", 2, {8, 2}},
        {"rnn.bias_ih_l0_reverse", 1, {8}},
        {"rnn.bias_hh_l0_reverse", 1, {8}},
        {"rnn.weight_ih_l1", 2, {8, 4}},
        {"rnn.weight_hh_l1", 2, {8, 2}},
        {"rnn.bias_ih_l1", 1, {8}},
        {"rnn.bias_hh_l1", 1, {8}},
        {"rnn.weight_ih_l1_reverse", 2, {8, 4}},
        {"rnn.weight_hh_l1_reverse", 2, {8, 2}},
        {"rnn.bias_ih_l1_reverse", 1, {8}},
        {"rnn.bias_hh_l1_reverse", 1, {8}},
        {"dense.weight", 2, {3, 4}},
        {"dense.bias", 1, {3}},
        {"out.weight", 2, {1, 3}},
        {"out.bias", 1, {1}},
    };
    pace__rnn_tensor tensors[PACE__RNN_TENSORS_MAX];
    size_t at = 0;

    assert_int_equal(pace__rnn_tensors(&config, tensors), 20);
    for (size_t i = 0; i < 20; i++) {
        assert_string_equal(tensors[i].name, expected[i].name);
        assert_int_equal(tensors[i].rank, expected[i].rank);
        assert_int_equal(tensors[i].shape[0], expected[i].shape[0]);
        assert_int_equal(tensors[i].shape[1], expected[i].shape[1]);
        assert_int_equal(tensors[i].at, at);
        at += tensors[i].size;
    }
    assert_int_equal(pace__rnn_dense(&config), at);
    config.cell = PACE_CELL_GRU;
    config.layers = 3;
    assert_int_equal(pace__rnn_tensors(&config, tensors), PACE__RNN_TENSORS_MAX);
    assert_int_equal(tensors[0].shape[0], 6);
    config.both = false;
    config.dense = 0;
    assert_int_equal(pace__rnn_tensors(&config, tensors), 14);
    assert_string_equal(tensors[12].name, "out.weight");
    assert_int_equal(tensors[12].shape[1], 2);
}

static void check_weights(const pace__rnn_tensor *tensor, const float *values, double bound)
{
    double square = 0;

    for (size_t i = 0; i < tensor->size; i++) {
        assert_true(fabsf(values[i]) <= (float)bound);
        square += (double)values[i] * (double)values[i];
    }
    assert_near(sqrt(square / (double)tensor->size), bound / sqrt(3), 0.01, tensor->name);
}

static void first_values_are_as_described(void **state)
{
    (void)state;
    pace__rnn_config config = network;

    config.embed = 20;
    config.hidden = 64;
    config.dense = 16;
    size_t count = pace__rnn_dense(&config);
    float *dense = tiny_alloc(count * sizeof *dense), *again = tiny_alloc(count * sizeof *again);
    pace__rnn_tensor tensors[PACE__RNN_TENSORS_MAX];
    unsigned tensor_count = pace__rnn_tensors(&config, tensors);

    pace__rnn_init_dense(&config, dense);
    for (unsigned t = 0; t < tensor_count - 4; t++) {
        bool forgets = strstr(tensors[t].name, "bias_ih");

        if (tensors[t].rank == 2)
            check_weights(&tensors[t], dense + tensors[t].at, 1.0 / 8);
        for (size_t i = 0; tensors[t].rank == 1 && i < tensors[t].size; i++)
            assert_true(dense[tensors[t].at + i] == (forgets && i >= 64 && i < 128 ? 1 : 0));
    }
    check_weights(&tensors[tensor_count - 4], dense + tensors[tensor_count - 4].at, 1 / sqrt(128));
    assert_true(fabsf(dense[tensors[tensor_count - 2].at]) <= 0.25f);
    assert_true(dense[count - 1] == 0 && dense[tensors[tensor_count - 3].at] == 0);
    pace__rnn_init_dense(&config, again);
    assert_memory_equal(dense, again, count * sizeof *dense);
    config.seed++;
    pace__rnn_init_dense(&config, again);
    assert_memory_not_equal(dense, again, tensors[0].size * sizeof *dense);
    free(again);
    free(dense);
}

static void first_embeddings_are_as_described(void **state)
{
    (void)state;
    enum { WORDS = 2000, EMBED = 10 };
    pace__rnn_config config = {.embed = EMBED, .seed = 3};
    float row[EMBED], again[EMBED];
    double sum = 0, square = 0, fourth = 0;

    for (uint32_t word = 1; word <= WORDS; word++) {
        pace__rnn_init_word(&config, word, row);
        for (int i = 0; i < EMBED; i++) {
            sum += (double)row[i];
            square += pow((double)row[i], 2);
            fourth += pow((double)row[i], 4);
        }
    }
    double count = (double)WORDS * EMBED;

    assert_near(sum / count, 0, 0.003, "mean");
    assert_near(sqrt(square / count), 0.1, 0.003, "deviation");
    assert_near(fourth / count / pow(square / count, 2), 2.85, 0.06, "kurtosis"); /* of a normal one 3 */
    pace__rnn_init_word(&config, WORDS, again);
    assert_memory_equal(row, again, sizeof row);
    pace__rnn_init_word(&config, 0, row);
    for (int i = 0; i < EMBED; i++)
        assert_true(row[i] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_are_even_and_independent),
        cmocka_unit_test(losses_are_known),
        cmocka_unit_test(weights_multiply_loss_and_gradient),
        cmocka_unit_test(losses_have_the_slope_that_they_say),
        cmocka_unit_test(no_logit_is_too_large_for_a_loss),
        cmocka_unit_test(tensors_are_those_of_pytorch),
        cmocka_unit_test(first_values_are_as_described),
        cmocka_unit_test(first_embeddings_are_as_described),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
