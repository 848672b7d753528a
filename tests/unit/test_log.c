/* A message is one line, whatever the names in it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <paceline/log.h>
#include <string.h>

static void keep(void *user, pace_level level, const char *text)
{
    assert_int_equal(level, PACE_ERROR);
    strcpy(user, text);
}

static void control_characters_do_not_pass(void **state)
{
    char heard[PACE_LOG_TEXT_MAX] = "";
    pace_log log = {keep, heard};

    (void)state;
    assert_int_equal(pace_fail(&log, PACE_USAGE, "%s: no such host", "a\x1b[2J\nb\t\x7f\r\xc3\xa9"),
                     PACE_USAGE);
    assert_string_equal(heard, "a?[2J?b???\xc3\xa9: no such host");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(control_characters_do_not_pass)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
