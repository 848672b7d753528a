/* Functions of floats beside those of the library: how far they are off. That all kernels have their bits is for the tests of those. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "math/functions.h"

#include <float.h>
#include <math.h>

static float float_of(uint32_t bits)
{
    float it;

    memcpy(&it, &bits, sizeof it);
    return it;
}

static void expect_near(double found, double expected, double relative, double of)
{
    if (!(fabs(found - expected) <= relative * fabs(expected)))
        fail_msg("of %.9g: %.9g instead of %.9g", of, found, expected);
}

static void roots_are_right_to_6_digits(void **state)
{
    (void)state;
    for (uint32_t bits = 0x0d800000 /* 2^-100 */; bits < 0x7f800000; bits += 9973)
        expect_near(pace__over_root(1, float_of(bits)), 1 / sqrt((double)float_of(bits)), 6e-7,
                    float_of(bits));
    expect_near(pace__over_root(-0.07f, FLT_MAX), -0.07f / sqrt(FLT_MAX), 7e-7, FLT_MAX);
    assert_true(pace__over_root(0, 1) == 0);
    assert_false(isfinite(pace__over_root(1, INFINITY)));
    assert_true(isnan(pace__over_root(1, NAN)));
}

static void powers_are_right_to_6_digits(void **state)
{
    (void)state;
    for (float x = 0; x > -87; x -= 0.00137f)
        expect_near(pace__exp_negative(x), exp(x), 3e-7, x);
    assert_true(pace__exp_negative(0) == 1);
    assert_true(pace__exp_negative(-1e30f) == pace__exp_negative(-87) && pace__exp_negative(-87) > 0);
    assert_true(pace__exp_negative(-INFINITY) == pace__exp_negative(-87));
    assert_true(pace__exp_negative(NAN) == pace__exp_negative(-87));
}

static void logarithms_are_right_to_6_digits(void **state)
{
    (void)state;
    for (float x = 0; x <= 1; x += 0.0000137f)
        expect_near(pace__log1p_unit(x), log1p(x), 4e-7, x);
    assert_true(pace__log1p_unit(0) == 0);
    expect_near(pace__log1p_unit(1e-30f), 1e-30f, 4e-7, 1e-30f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roots_are_right_to_6_digits),
        cmocka_unit_test(powers_are_right_to_6_digits),
        cmocka_unit_test(logarithms_are_right_to_6_digits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
