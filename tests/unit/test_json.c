/* JSON text: escapes, numbers that read back, and buffers that are too small. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/json.h"

#include <cjson/cJSON.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void assert_json_string(const char *text, const char *expected)
{
    char buffer[64];
    pace__json json = {.text = buffer, .capacity = sizeof buffer}, measured = {0};

    pace__json_string(&json, text);
    pace__json_string(&measured, text);
    assert_int_equal(json.size, strlen(expected));
    assert_int_equal(measured.size, json.size);
    assert_memory_equal(buffer, expected, json.size);
}

static void strings_are_escaped(void **state)
{
    (void)state;
    assert_json_string("plain", "\"plain\"");
    assert_json_string("a\"b\\c\n\t\x01", "\"a\\\"b\\\\c\\n\\t\\u0001\"");
    assert_json_string("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
    /* A stray byte, an overlong slash, a surrogate, a cut character. */
    assert_json_string("\xff", "\"\\ufffd\"");
    assert_json_string("\xc0\xaf", "\"\\ufffd\\ufffd\"");
    assert_json_string("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"");
    assert_json_string("\xe2\x82", "\"\\ufffd\\ufffd\"");
}

static void assert_real(double value, const char *expected)
{
    char buffer[64];
    pace__json json = {.text = buffer, .capacity = sizeof buffer};

    pace__json_real(&json, value);
    buffer[json.size] = '\0';
    assert_string_equal(buffer, expected);
    if (isfinite(value))
        assert_true(strtod(buffer, NULL) == value);
}

static void numbers_read_back(void **state)
{
    (void)state;
    char buffer[64];
    pace__json json = {.text = buffer, .capacity = sizeof buffer};

    assert_real(0.1, "0.1");
    assert_real(1.0 / 3, "0.3333333333333333");
    assert_real(0.1 + 0.2, "0.30000000000000004");
    assert_real(DBL_MAX, "1.7976931348623157e+308");
    assert_real(-5e-324, "-4.94065645841247e-324");
    assert_real(NAN, "null");
    assert_real(-INFINITY, "null");
    pace__json_integer(&json, INT64_MIN);
    pace__json_raw(&json, " ");
    pace__json_unsigned(&json, UINT64_MAX);
    buffer[json.size] = '\0';
    assert_string_equal(buffer, "-9223372036854775808 18446744073709551615");
}

static void a_small_buffer_is_not_overrun(void **state)
{
    (void)state;
    char buffer[4] = "????";
    pace__json json = {.text = buffer, .capacity = 3};

    pace__json_raw(&json, "ab");
    pace__json_integer(&json, 12345);
    pace__json_raw(&json, "c");
    assert_int_equal(json.size, 8);
    assert_memory_equal(buffer, "ab1?", 4);
}

static bool count_in(const char *text, uint64_t *value)
{
    cJSON *object = cJSON_Parse(text);
    bool is_count = pace__json_count(object, "n", value);

    cJSON_Delete(object);
    return is_count;
}

static void counts_are_whole_and_exact(void **state)
{
    static const char *const wrong[] = {"{\"n\":-1}",
                                        "{\"n\":1.5}",
                                        "{\"n\":9007199254740992}",
                                        "{\"n\":1e300}",
                                        "{\"n\":\"1\"}",
                                        "{\"m\":1}",
                                        "[]",
                                        "no JSON"};
    uint64_t value = 7;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(count_in(wrong[i], &value));
    assert_int_equal(value, 7);
    assert_true(count_in("{\"n\":0}", &value));
    assert_int_equal(value, 0);
    assert_true(count_in("{\"n\":9007199254740991}", &value));
    assert_int_equal(value, 9007199254740991);
}

static void texts_of_cjson_become_valid(void **state)
{
    static const struct {
        const char *text, *valid;
    } cases[] = {{"", ""},
                 {"{\"a\": \"\xc3\xa9\"}", "{\"a\": \"\xc3\xa9\"}"},
                 {"\xff", "\xef\xbf\xbd"},
                 {"a\xc3", "a\xef\xbf\xbd"},
                 {"\xff\xfe"
                  "b",
                  "\xef\xbf\xbd\xef\xbf\xbd"
                  "b"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *valid = pace__json_valid(strdup(cases[i].text));

        assert_string_equal(valid, cases[i].valid);
        free(valid);
    }
    assert_null(pace__json_valid(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_cjson_become_valid), cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(numbers_read_back),           cmocka_unit_test(a_small_buffer_is_not_overrun),
        cmocka_unit_test(counts_are_whole_and_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
