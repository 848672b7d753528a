/* A log that keeps the first error. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/kept.h"

static void the_first_error_stays(void **state)
{
    char text[12] = "old";
    pace__kept kept;

    (void)state;
    pace__kept_init(&kept, text, sizeof text);
    assert_string_equal(text, "");
    pace_say(&kept.log, PACE_WARN, "a warning");
    assert_string_equal(text, "");
    assert_int_equal(pace_fail(&kept.log, PACE_IO, "disk %d is full", 7), PACE_IO);
    pace_fail(&kept.log, PACE_BUG, "another");
    assert_string_equal(text, "disk 7 is f"); /* cut to its room */
    pace__kept_init(&kept, text, sizeof text);
    pace_fail(&kept.log, PACE_BUG, "new");
    assert_string_equal(text, "new");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_error_stays)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
