/* What networks draw: which bits, for ever, or resumed runs and published seeds would mean something else. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "math/draws.h"
#include "math/softplus.h"
#include "model/convnet/cnn.h"
#include "model/rnn/rnn.h"

#include <float.h>

static void masks_do_not_change(void **state)
{
    pace__rnn_config words = {.dropout = 0.3f, .seed = 9};
    pace__cnn_config pictures = {.dropout = 0.3f, .seed = 9};
    uint64_t units = 0, features = 0;

    (void)state;
    for (uint32_t i = 0; i < 64; i++) {
        units |= (uint64_t)pace__rnn_keeps(&words, 7, 1, i / 16, i % 16) << i;
        features |= (uint64_t)pace__cnn_keeps(&pictures, 7, i) << i;
    }
    assert_int_equal(units, UINT64_C(0xdd5a5dc6f37f33cf));
    assert_int_equal(features, UINT64_C(0xaf7ff56bbf136f25));
}

/* Two units share a number of the stream, and no bits. */
static void units_have_halves_of_the_stream(void **state)
{
    uint64_t key = pace__drop_features_key(3, 11);
    pace__random stream = {key - 0x9e3779b97f4a7c15u};

    (void)state;
    for (uint32_t unit = 0; unit < 20; unit += 2) {
        uint64_t number = pace__random_next(&stream);

        assert_int_equal(pace__drop_bits(key, unit), (uint32_t)number);
        assert_int_equal(pace__drop_bits(key, unit + 1), number >> 32);
    }
    assert_int_equal(pace__drop_limit(0), 0);
    assert_int_equal(pace__drop_limit(0.5f), UINT32_C(1) << 31);
}

static void purposes_have_streams_of_their_own(void **state)
{
    static const uint64_t purposes[] = {PACE__DRAW_UNITS, PACE__DRAW_WEIGHTS, PACE__DRAW_WORDS,
                                        PACE__DRAW_PICTURES};

    (void)state;
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < i; j++)
            assert_int_not_equal(pace__draw(5, purposes[i], 2).state, pace__draw(5, purposes[j], 2).state);
    }
}

static void softplus_is_safe_everywhere(void **state)
{
    (void)state;
    assert_true(pace__softplus(0) == log(2));
    assert_true(pace__softplus(-DBL_MAX) == 0);
    assert_true(pace__softplus(DBL_MAX) == DBL_MAX);
    assert_true(isnan(pace__softplus(NAN)));
    for (double x = -30; x < 30; x += 0.37)
        assert_true(fabs(pace__softplus(x) - log(1 + exp(x))) <= 1e-13 * (1 + fabs(x)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_do_not_change),
        cmocka_unit_test(units_have_halves_of_the_stream),
        cmocka_unit_test(purposes_have_streams_of_their_own),
        cmocka_unit_test(softplus_is_safe_everywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
