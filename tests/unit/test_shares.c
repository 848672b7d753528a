/* The largest share over the mean. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/shares.h"

static double skew_of(const double *values, size_t count)
{
    pace__shares shares = {0};

    for (size_t i = 0; i < count; i++)
        pace__shares_add(&shares, values[i]);
    return pace__shares_skew(&shares);
}

static void the_largest_over_the_mean(void **state)
{
    (void)state;
    assert_true(skew_of(NULL, 0) == 1);
    assert_true(skew_of((double[]){0, 0, 0}, 3) == 1);
    assert_true(skew_of((double[]){7}, 1) == 1);
    assert_true(skew_of((double[]){5, 5, 5, 5}, 4) == 1);
    assert_true(skew_of((double[]){8, 0, 0, 0}, 4) == 4);
    assert_true(skew_of((double[]){1, 3}, 2) == 1.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_largest_over_the_mean)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
