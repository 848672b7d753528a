#include "base/random.h"
#include "data/formats/svmlight.h"
#include "parsed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const pace__encoding numbered = {.kind = PACE__NUMBERED};

/* Fills *plain and returns NULL if all parsers that this CPU can run agree with it, else what differs. */
static const char *compare_parsers(parse_case test, parsed_text *plain)
{
    const char *difference = NULL;
    parsed_text other;

    test.parse = pace__parse_svmlight_plain;
    parsed_run(&test, plain);
    for (int set = PACE_KERNELS_PLAIN; set < PACE__KERNELS_END && !difference; set++) {
        if (!pace_kernels_run(set))
            continue;
        test.parse = pace__svmlight_of(set)->parse;
        parsed_run(&test, &other);
        difference = parsed_difference(plain, &other, true);
        parsed_release(&other);
    }
    return difference;
}

static parsed_text run_case(const parse_case *test)
{
    parsed_text plain;
    const char *difference = compare_parsers(*test, &plain);

    if (difference)
        fail_msg("the parsers differ in %s", difference);
    return plain;
}

static parsed_text run_text(const pace__encoding *encoding, bool labels_optional, const char *text)
{
    parse_case test = {.encoding = encoding,
                       .labels_optional = labels_optional,
                       .bad_max = 100,
                       .text = text,
                       .size = strlen(text)};
    parsed_text parsed = run_case(&test);

    assert_int_equal(parsed.status, PACE_OK);
    return parsed;
}

static void expect_bad(const pace__encoding *encoding, bool labels_optional, const char *text,
                       const char *reason)
{
    parsed_text parsed = run_text(encoding, labels_optional, text);

    assert_int_equal(parsed.rows, 0);
    assert_int_equal(parsed.bad, 1);
    if (!strstr(parsed.messages[0], reason))
        fail_msg("\"%s\" does not say \"%s\"", parsed.messages[0], reason);
    parsed_release(&parsed);
}

static void test_rows(void **state)
{
    parsed_text parsed = run_text(&numbered, false,
                                  "+1 1:0.5 7:2 123456789012:-3\n"
                                  "-1\n"
                                  "# a comment\n"
                                  "\n"
                                  "  \t \r\n"
                                  "0 qid:17 0:1\t \t3:1.25e2   # 9:9\r\n"
                                  "1 00000005:1#9:9\n"
                                  "1 4:.5 5:5. 6:+6");
    static const uint64_t ids[] = {1, 7, 123456789012, 0, 3, 5, 4, 5, 6};
    static const float values[] = {0.5f, 2, -3, 1, 125, 1, 0.5f, 5, 6};
    static const uint8_t labels[] = {1, 0, 0, 1, 1};
    static const size_t start[] = {0, 3, 3, 5, 6, 9};

    (void)state;
    assert_int_equal(parsed.bad, 0);
    assert_int_equal(parsed.rows, 5);
    assert_memory_equal(parsed.label, labels, sizeof labels);
    assert_memory_equal(parsed.start, start, sizeof start);
    assert_memory_equal(parsed.ids, ids, sizeof ids);
    assert_memory_equal(parsed.values, values, sizeof values);
    assert_int_equal(parsed.offset[1], strlen("+1 1:0.5 7:2 123456789012:-3\n"));
    parsed_release(&parsed);
}

static void test_labels(void **state)
{
    parsed_text parsed = run_text(&numbered, false, "0\n1\n-1\n+1\n0.0\n1.0\n-1.0\n+1.000\n 1");
    static const uint8_t labels[] = {0, 1, 0, 1, 0, 1, 0, 1, 1};

    (void)state;
    assert_int_equal(parsed.rows, sizeof labels);
    assert_memory_equal(parsed.label, labels, sizeof labels);
    assert_int_equal(parsed.entries, 0);
    parsed_release(&parsed);
}

static void test_labels_may_be_missing(void **state)
{
    parsed_text parsed = run_text(&numbered, true, "3:1 4:1\n1 3:1\nqid:1 5:2\n1:1\n-1\n12345678901:1");
    static const uint8_t labels[] = {0, 1, 0, 0, 0, 0};

    (void)state;
    assert_int_equal(parsed.rows, 6);
    assert_memory_equal(parsed.label, labels, sizeof labels);
    assert_int_equal(parsed.start[1], 2);
    assert_int_equal(parsed.ids[0], 3);
    assert_int_equal(parsed.ids[3], 5);
    assert_int_equal(parsed.ids[4], 1);
    parsed_release(&parsed);
    parsed = run_text(&numbered, false, "1 1:1\n2:1\n0 3:1\n4:1 5:1 6:1\n1 7:1\n");
    assert_int_equal(parsed.rows, 3);
    assert_int_equal(parsed.bad, 2);
    parsed_release(&parsed);
    expect_bad(&numbered, false, "3:1 4:1\n", "the label is missing: the row starts with \"3:1\"");
    expect_bad(&numbered, false, "qid:3 4:1\n", "the label is missing");
    expect_bad(&numbered, true, "x 4:1\n", "label \"x\"");
}

static void test_bad_rows(void **state)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"2 1:1", "label \"2\" is none of"},
        {"10", "label \"10\""},
        {"1.5", "label \"1.5\""},
        {"1e0", "label \"1e0\""},
        {"-", "label \"-\""},
        {"--1", "label \"--1\""},
        {"yes 1:1", "label \"yes\""},
        {"1 5", "\"5\" is not id:value"},
        {"1 5 :1", "\"5\" is not id:value"},
        {"1 :1", "\":1\" is not id:value"},
        {"1 a:1", "\"a:1\" is not id:value"},
        {"1 -1:1", "\"-1:1\" is not id:value"},
        {"1 1.0:1", "\"1.0:1\" is not id:value"},
        {"1 qid", "\"qid\" is not id:value"},
        {"1 1:", "\"1:\": the value is no finite number"},
        {"1 1: 2", "\"1:\": the value"},
        {"1 1:x", "\"1:x\": the value"},
        {"1 1:-", "\"1:-\": the value"},
        {"1 1:.", "\"1:.\": the value"},
        {"1 1:-.", "\"1:-.\": the value"},
        {"1 1:1:1", "\"1:1:1\": the value"},
        {"1 1:1,5", "\"1:1,5\": the value"},
        {"1 1:1e", "\"1:1e\": the value"},
        {"1 1:nan", "\"1:nan\": the value"},
        {"1 1:inf", "\"1:inf\": the value"},
        {"1 1:1e39", "\"1:1e39\": the value"},
        {"1 1:0x10", "\"1:0x10\": the value"},
        {"1 9007199254740992:1", "the id is not below 9007199254740992, the most that is possible"},
        {"1 90071992547409920:1", "not id:value with an id of at most 16 digits"},
        {"1 99999999999999999999999999999999999999999:1", "\"99999999999999999999999999999999...\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128];

        expect_bad(&numbered, false, cases[i].text, cases[i].reason);
        snprintf(text, sizeof text, "%s # comment\r\n", cases[i].text);
        expect_bad(&numbered, false, text, cases[i].reason);
    }
}

static void test_nul_bytes(void **state)
{
    static const char text[] = "1 1:1\n1 2\0:1\n1 3:1 # \0\n";
    parse_case test = {NULL, &numbered, false, false, 10, text, sizeof text - 1};
    parsed_text parsed = run_case(&test);

    (void)state;
    assert_int_equal(parsed.rows, 1);
    assert_int_equal(parsed.bad, 2);
    assert_non_null(strstr(parsed.messages[0], "byte 4 of the row is NUL"));
    parsed_release(&parsed);
}

static void test_id_limits(void **state)
{
    pace__encoding encoding = {.kind = PACE__NUMBERED, .features = 100};
    const char *text = "1 99:1 9007199254740991:1\n";
    parse_case test = {NULL, &encoding, false, true, 0, text, strlen(text)};
    parsed_text parsed = run_text(&encoding, false, "1 99:1\n");

    (void)state;
    assert_int_equal(parsed.ids[0], 99);
    parsed_release(&parsed);
    expect_bad(&encoding, false, "1 3:1 100:1\n",
               "\"100:1\": the id is not below 100, the number of features");
    parsed = run_case(&test);
    assert_int_equal(parsed.rows, 1);
    assert_int_equal(parsed.ids[1], 9007199254740991);
    parsed_release(&parsed);
    encoding.hashed = true;
    parsed = run_text(&encoding, false, text);
    assert_int_equal(parsed.ids[0], pace__number_hash(99, 100));
    assert_int_equal(parsed.ids[1], pace__number_hash(9007199254740991, 100));
    parsed_release(&parsed);
}

/* A row of that many entries, and a small one behind it. */
static void check_long_row(size_t entries, bool good)
{
    size_t size = 0;
    char *text = malloc(2 + 4 * entries + 6);

    assert_non_null(text);
    text[size++] = '1';
    for (size_t i = 0; i < entries; i++)
        size += (size_t)sprintf(text + size, " %zu:1", i % 10);
    strcpy(text + size, "\n0 5:2");
    parsed_text parsed = run_text(&numbered, false, text);

    assert_int_equal(parsed.rows, good ? 2 : 1);
    assert_int_equal(parsed.entries, good ? entries + 1 : 1);
    assert_int_equal(parsed.ids[parsed.entries - 1], 5);
    if (!good)
        assert_non_null(strstr(parsed.messages[0], "more than 1048576 features"));
    parsed_release(&parsed);
    free(text);
}

static void test_long_rows(void **state)
{
    (void)state;
    check_long_row(100000, true);
    check_long_row(PACE__ROW_ENTRIES_MAX, true);
    check_long_row(PACE__ROW_ENTRIES_MAX + 1, false);
}

static void test_batches(void **state)
{
    char text[1000 * 8];
    size_t size = 0;

    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "1 %u:1\n", i);
    parsed_text parsed = run_text(&numbered, false, text);

    assert_int_equal(parsed.rows, 1000);
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(parsed.ids[i], i);
    parsed_release(&parsed);
}

static void random_value(pace__random *random, char *text, size_t size)
{
    double magnitude = ldexp(pace__random_unit(random) - 0.5, (int)pace__random_below(random, 40) - 10);
    static const char *const formats[] = {"%.*f", "%.*g", "%.*e", "%+.*f"};

    snprintf(text, size, formats[pace__random_below(random, 4)], (int)pace__random_below(random, 12),
             magnitude);
}

/* Double rounding may differ from strtof by the last bit, no more. */
static void test_random_numbers(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        pace__random random = {seed};
        uint64_t id = pace__random_next(&random) >> (11 + pace__random_below(&random, 53));
        char text[128], value[64];

        random_value(&random, value, sizeof value);
        snprintf(text, sizeof text, "1 %llu:%s", (unsigned long long)id, value);
        parsed_text parsed = run_text(&numbered, false, text);
        float expected = strtof(value, NULL);

        if (parsed.rows != 1 || parsed.entries != 1 || parsed.ids[0] != id ||
            fabsf(parsed.values[0] - expected) > fabsf(expected) * 1.2e-7f)
            fail_msg("seed %llu: \"%s\"", (unsigned long long)seed, text);
        parsed_release(&parsed);
    }
}

/* A line as most files have them, with something odd now and then. Returns its size. */
static size_t random_line(pace__random *random, char *text, size_t room)
{
    static const char *const odd[] = {" ",  "#",   " #c", "\t",           "\r",     " qid:1",
                                      " 5", " 5:", ":",   " 123456789:1", " 7:1e5", " 1:-0"};
    static const char *const labels[] = {"0", "1", "-1", "+1", "1.0", "2", "", " 1", "-0"};
    size_t size = 0;
    uint64_t entries = pace__random_below(random, pace__random_below(random, 20) ? 50 : 2000);

    size += (size_t)snprintf(text, room, "%s",
                             labels[pace__random_below(random, pace__random_below(random, 8) ? 4 : 9)]);
    for (uint64_t i = 0; i < entries; i++) {
        char value[64] = "1";

        if (pace__random_below(random, 2))
            random_value(random, value, sizeof value);
        size += (size_t)snprintf(
            text + size, room - size, "%s%llu:%.12s", size > 0 ? " " : "",
            (unsigned long long)(pace__random_next(random) >> (38 + pace__random_below(random, 26))), value);
        if (pace__random_below(random, 1000) == 0)
            size += (size_t)snprintf(text + size, room - size, "%s", odd[pace__random_below(random, 12)]);
    }
    size += (size_t)snprintf(text + size, room - size, "%s", pace__random_below(random, 10) ? "\n" : " \n");
    return size;
}

#define RANDOM_LINES      400
#define RANDOM_LINE_BYTES (2100 * 30)

static void check_random_lines(uint64_t seed)
{
    pace__random random = {seed};
    char *text = malloc(RANDOM_LINES * RANDOM_LINE_BYTES);
    pace__encoding encoding = {.kind = PACE__NUMBERED, .hashed = pace__random_below(&random, 4) == 0};
    uint64_t lines = pace__random_below(&random, RANDOM_LINES);
    size_t size = 0;
    parsed_text parsed;

    assert_non_null(text);
    for (uint64_t i = 0; i < lines; i++)
        size += random_line(&random, text + size, RANDOM_LINE_BYTES);
    for (uint64_t i = pace__random_below(&random, 4); i > 0 && size > 0; i--)
        text[pace__random_below(&random, size)] = (char)pace__random_below(&random, 256);
    size -= pace__random_below(&random, size < 100 ? size + 1 : 100);
    encoding.features =
        pace__random_next(&random) >> (11 + pace__random_below(&random, 40)) | encoding.hashed;
    parse_case test = {.encoding = &encoding,
                       .labels_optional = pace__random_below(&random, 2),
                       .ids_unbounded = pace__random_below(&random, 2),
                       .bad_max = 100000,
                       .text = text,
                       .size = size};
    const char *difference = compare_parsers(test, &parsed);

    if (difference)
        fail_msg("seed %llu: the parsers differ in %s", (unsigned long long)seed, difference);
    parsed_release(&parsed);
    free(text);
}

static void test_fast_and_plain_agree_on_random_lines(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++)
        check_random_lines(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_labels_may_be_missing),
        cmocka_unit_test(test_bad_rows),
        cmocka_unit_test(test_nul_bytes),
        cmocka_unit_test(test_id_limits),
        cmocka_unit_test(test_long_rows),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_random_numbers),
        cmocka_unit_test(test_fast_and_plain_agree_on_random_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
