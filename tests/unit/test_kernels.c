/* Which set of kernels is used: what a CPU can run, what was asked for, and that those who choose follow it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "math/conv/conv.h"
#include "model/convnet/cnn_fast.h"
#include "model/keys.h"
#include "model/linear/logreg.h"
#include "model/rnn/rnn_fast.h"

#include "support.h"

#define NOTHING  0u
#define SSE_ERA  (unsigned)(PACE__CPU_SSE42 | PACE__CPU_POPCNT)
#define AVX2_ERA (SSE_ERA | PACE__CPU_AVX2 | PACE__CPU_BMI | PACE__CPU_BMI2 | PACE__CPU_FMA)
#define EVERYTHING                                                                                           \
    (AVX2_ERA | PACE__CPU_AVX512F | PACE__CPU_AVX512BW | PACE__CPU_AVX512VL | PACE__CPU_AVX512DQ)

/* --- what a CPU can run --- */

static void expect_choice(int asked, unsigned abilities, int expected)
{
    int kernels = -1;

    assert_ok(pace__kernels_choose(asked, abilities, &said_log, &kernels));
    assert_int_equal(kernels, expected);
}

static void the_widest_is_taken(void **state)
{
    (void)state;
    expect_choice(PACE_KERNELS_AUTO, EVERYTHING, PACE_KERNELS_V4);
    expect_choice(PACE_KERNELS_AUTO, AVX2_ERA, PACE_KERNELS_V3);
    expect_choice(PACE_KERNELS_AUTO, SSE_ERA, PACE_KERNELS_V2);
    expect_choice(PACE_KERNELS_AUTO, NOTHING, PACE_KERNELS_PLAIN);
    expect_choice(PACE_KERNELS_AUTO, PACE__CPU_NEON, PACE_KERNELS_NEON);
    for (unsigned bit = 1; bit < EVERYTHING; bit *= 2)
        expect_choice(PACE_KERNELS_AUTO, EVERYTHING & ~bit,
                      SSE_ERA & bit    ? PACE_KERNELS_PLAIN
                      : AVX2_ERA & bit ? PACE_KERNELS_V2
                                       : PACE_KERNELS_V3);
}

static void what_is_asked_for_is_taken(void **state)
{
    (void)state;
    expect_choice(PACE_KERNELS_PLAIN, EVERYTHING, PACE_KERNELS_PLAIN);
    expect_choice(PACE_KERNELS_PLAIN, NOTHING, PACE_KERNELS_PLAIN);
    expect_choice(PACE_KERNELS_V2, EVERYTHING, PACE_KERNELS_V2);
    expect_choice(PACE_KERNELS_V3, EVERYTHING, PACE_KERNELS_V3);
    expect_choice(PACE_KERNELS_V4, EVERYTHING, PACE_KERNELS_V4);
}

static void what_cannot_run_is_refused(void **state)
{
    int kernels = -1;

    (void)state;
    said_clear();
    assert_failed(
        pace__kernels_choose(PACE_KERNELS_V4, AVX2_ERA, &said_log, &kernels), PACE_USAGE,
        "this CPU cannot run the kernels v4: they need sse4.2 popcnt avx2 bmi bmi2 fma avx512f avx512bw "
        "avx512vl avx512dq, and it has sse4.2 popcnt avx2 bmi bmi2 fma; --kernels auto");
    assert_failed(pace__kernels_choose(PACE_KERNELS_NEON, EVERYTHING, &said_log, &kernels), PACE_USAGE,
                  "they need neon, and it has none of them");
    assert_failed(pace__kernels_choose(PACE_KERNELS_V4, NOTHING, &said_log, &kernels), PACE_USAGE,
                  "it has none of them");
    assert_int_equal(kernels, -1);
}

/* An option's number of a word is that of the set. */
static void names_are_the_words_of_the_option(void **state)
{
    char words[64] = "";

    (void)state;
    for (int kernels = 0; kernels < PACE__KERNELS_END; kernels++) {
        strcat(words, kernels ? "|" : "");
        strcat(words, pace_kernels_name(kernels));
    }
    assert_string_equal(words, PACE_KERNELS_WORDS);
}

/* --- this process --- */

static bool is_wide(void)
{
    return pace_kernels_in_use() == PACE_KERNELS_V4;
}

/* The environment says which (use_kernels.c); without it, it is the best. */
static void the_process_uses_what_it_was_told(void **state)
{
    const char *told = getenv("PACELINE_KERNELS");

    (void)state;
    assert_string_equal(pace_kernels_name(pace_kernels_asked()), told ? told : "auto");
    if (told && strcmp(told, "auto") != 0)
        assert_string_equal(pace_kernels_name(pace_kernels_in_use()), told);
    else
        expect_choice(PACE_KERNELS_AUTO, pace__cpu_abilities(), pace_kernels_in_use());
}

static void a_choice_stays(void **state)
{
    int kernels = pace_kernels_in_use(), asked = pace_kernels_asked();

    (void)state;
    said_clear();
    assert_ok(pace_kernels_use(kernels, &said_log));
    char already[64];

    snprintf(already, sizeof already, "the kernels %s already", pace_kernels_name(kernels));
    for (int other = PACE_KERNELS_PLAIN; other < PACE__KERNELS_END; other++) {
        if (other != kernels && pace_kernels_run(other))
            assert_failed(pace_kernels_use(other, &said_log), PACE_USAGE, already);
    }
    assert_int_equal(pace_kernels_in_use(), kernels);
    assert_int_equal(pace_kernels_asked(), asked);
}

/* --- who chooses by it; of what shows no choice tests/cli/test_kernels.sh makes sure --- */

static void logistic_regression_follows(void **state)
{
    pace__optim optim = pace__optim_make(PACE_ADAGRAD, 0.1, 0, 0, 0);
    pace__key_finder finder;
    pace__logreg model;

    (void)state;
    assert_ok(pace__logreg_init(&model, 100, 10, false, &optim, false, &said_log));
    assert_true(model.fast && model.kernels == pace__logreg_of(pace_kernels_in_use()));
    pace__logreg_release(&model);
    assert_ok(pace__key_finder_init(&finder, 100, false, &said_log));
    assert_true(finder.kernels == pace__keys_of(pace_kernels_in_use()));
    pace__key_finder_release(&finder);
}

static void networks_follow(void **state)
{
    pace__rnn_config words = {
        .words = 9, .length = 4, .embed = 2, .hidden = 3, .layers = 1, .weight = {1, 1}};
    pace__cnn_config pictures = {.arch = PACE_ARCH_SMALL,
                                 .height = 16,
                                 .side = 16,
                                 .channels = 3,
                                 .classes = 2,
                                 .width = 0.25f,
                                 .deviation = {1, 1, 1},
                                 .weight = {1, 1}};
    pace__cnn_plan plan = {.config = &pictures, .rows_max = 2, .threads = 1, .trains = true};
    pace__rnn_fast *rnn;
    pace__cnn_fast *cnn;
    pace__cnn_net net;

    (void)state;
    assert_ok(pace__rnn_fast_create(&words, 4, 1, &said_log, &rnn));
    assert_ptr_equal(rnn->products, pace__rnn_products_of(pace_kernels_in_use()));
    pace__rnn_fast_free(rnn);
    assert_ok(pace__cnn_net_make(&pictures, &said_log, &net));
    assert_ok(pace__cnn_fast_create(&plan, &net, &said_log, &cnn));
    assert_ptr_equal(cnn->kernels, pace__cnn_of(pace_kernels_in_use()));
    for (uint32_t unit = 0; unit < net.units; unit++) {
        const char *name = pace__conv_name(cnn->part[unit].forward);

        if (!is_wide() && strstr(name, "avx512"))
            fail_msg("unit %u is convolved by %s", unit, name);
    }
    pace__cnn_fast_free(cnn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_widest_is_taken),
        cmocka_unit_test(what_is_asked_for_is_taken),
        cmocka_unit_test(what_cannot_run_is_refused),
        cmocka_unit_test(names_are_the_words_of_the_option),
        cmocka_unit_test(the_process_uses_what_it_was_told),
        cmocka_unit_test(a_choice_stays),
        cmocka_unit_test(logistic_regression_follows),
        cmocka_unit_test(networks_follow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
