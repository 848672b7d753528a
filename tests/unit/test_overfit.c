/* Who has learned rows by heart, and who has not; and what is said. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "metrics/overfit.h"

#include <math.h>
#include <string.h>

static pace__fit fit_of(double epochs, double train, double test, double best)
{
    return (pace__fit){.epochs = epochs,
                       .train = train,
                       .rows = "validation",
                       .test = test,
                       .best = best,
                       .always_mean = 0.69};
}

static void assert_over(pace__fit fit, bool over)
{
    char text[320];

    if (pace__fit_is_over(&fit) != over)
        fail_msg("%g epochs, %g, %g, %g: %s", fit.epochs, fit.train, fit.test, fit.best,
                 over ? "is not" : "is");
    pace__fit_line(&fit, "more of this", text, sizeof text);
    assert_int_equal(text[0] != '\0', over);
}

static void rows_known_by_heart_are_told(void **state)
{
    (void)state;
    assert_over(fit_of(10, 0.05, 0.9, INFINITY), true);
    assert_over(fit_of(10, 0.05, 0.65, 0.48), true);
}

static void a_gap_alone_is_no_sign(void **state)
{
    (void)state;
    assert_over(fit_of(10, 0.2, 0.45, INFINITY), false); /* test rows are still told well */
    assert_over(fit_of(10, 0.2, 0.45, 0.449), false);    /* and have never been told better */
    assert_over(fit_of(10, 0.6, 0.68, 0.6), false);      /* training rows cost as much */
    assert_over(fit_of(1, 0.05, 0.9, INFINITY), false);  /* each row was new when it was learned from */
}

static void nothing_is_claimed_of_what_is_not_known(void **state)
{
    pace__fit fit = fit_of(10, 0.05, 0.9, INFINITY);

    (void)state;
    assert_over(fit_of(10, NAN, 0.9, INFINITY), false);
    assert_over(fit_of(10, 0.05, NAN, 0.4), false);
    fit.always_mean = 0; /* one label alone */
    assert_over(fit, false);
    fit.always_mean = NAN;
    assert_over(fit, false);
}

static void the_line_says_what_to_try(void **state)
{
    pace__fit fit = fit_of(9, 0.05, 0.9, INFINITY);
    char text[320];

    (void)state;
    pace__fit_line(&fit, "more of this", text, sizeof text);
    assert_non_null(strstr(text, "0.05"));
    assert_non_null(strstr(text, "validation rows 0.9"));
    assert_non_null(strstr(text, "--epochs 4, more of this"));
    assert_non_null(strstr(text, "--eval-every"));
    fit.best = 0.4;
    pace__fit_line(&fit, "more of this", text, sizeof text);
    assert_non_null(strstr(text, "0.4"));
    assert_null(strstr(text, "--eval-every"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_known_by_heart_are_told),
        cmocka_unit_test(a_gap_alone_is_no_sign),
        cmocka_unit_test(nothing_is_claimed_of_what_is_not_known),
        cmocka_unit_test(the_line_says_what_to_try),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
