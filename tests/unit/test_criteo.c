#include "base/random.h"
#include "data/formats/criteo.h"
#include "parsed.h"

#include <paceline/prep.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define INTEGERS "\t1\t\t-2\t3\t40\t500\t6000\t70000\t800000\t9000000\t\t0\t12"
#define CATEGORIES                                                                                           \
    "\ta\tbb\tccc\tdddd\teeeee\tffffff\t7777777\t68fd1e64\t\tj\tk\tl\tm\tn\to\tp\tq\tr\ts\tt\tu\tv\tw\tx\ty" \
    "\tz"
#define GOOD_ROW "1" INTEGERS CATEGORIES

static pace__encoding encoding_of(int numeric)
{
    pace__encoding encoding;

    assert_int_equal(pace__encoding_criteo(PACE__FEATURES_DEFAULT, numeric, &encoding, NULL), PACE_OK);
    return encoding;
}

/* Fills *plain and returns NULL if all parsers that this CPU can run agree with it, else what differs. */
static const char *compare_parsers(const pace__encoding *encoding, bool labels_optional, const char *text,
                                   size_t size, parsed_text *plain)
{
    parse_case test = {pace__parse_criteo_plain, encoding, labels_optional, false, 1000000, text, size};
    const char *difference = NULL;
    parsed_text other;

    parsed_run(&test, plain);
    for (int set = PACE_KERNELS_PLAIN; set < PACE__KERNELS_END && !difference; set++) {
        if (!pace_kernels_run(set))
            continue;
        test.parse = pace__criteo_of(set)->parse;
        parsed_run(&test, &other);
        difference = parsed_difference(plain, &other, encoding->numeric == PACE_NUMERIC_VALUES);
        parsed_release(&other);
    }
    return difference;
}

static parsed_text run_text(const pace__encoding *encoding, bool labels_optional, const char *text,
                            size_t size)
{
    parsed_text plain;
    const char *difference = compare_parsers(encoding, labels_optional, text, size, &plain);

    if (difference)
        fail_msg("the parsers differ in %s", difference);
    return plain;
}

static void expect_good(const char *text, size_t rows, bool labels_optional)
{
    pace__encoding encoding = encoding_of(PACE_NUMERIC_BINS);
    parsed_text parsed = run_text(&encoding, labels_optional, text, strlen(text));

    assert_int_equal(parsed.status, PACE_OK);
    assert_int_equal(parsed.bad, 0);
    assert_int_equal(parsed.rows, rows);
    assert_int_equal(parsed.entries, rows * PACE__CRITEO_COLUMNS);
    parsed_release(&parsed);
}

static void expect_bad(const char *text, size_t size, bool labels_optional, const char *reason)
{
    pace__encoding encoding = encoding_of(PACE_NUMERIC_BINS);
    parsed_text parsed = run_text(&encoding, labels_optional, text, size);

    assert_int_equal(parsed.status, PACE_OK);
    assert_int_equal(parsed.rows, 0);
    assert_int_equal(parsed.bad, 1);
    if (!strstr(parsed.messages[0], reason))
        fail_msg("\"%s\" does not say \"%s\"", parsed.messages[0], reason);
    parsed_release(&parsed);
}

static uint64_t category_id(const pace__encoding *encoding, unsigned column, const char *text)
{
    uint64_t base = encoding->column_base[column];

    return base + pace__scale_to(pace__category_hash(text, (uint32_t)strlen(text)),
                                 encoding->column_base[column + 1] - base);
}

static void test_bins(void **state)
{
    static const int64_t numbers[PACE__CRITEO_INTEGERS] = {1,     0,      -2,      3, 40, 500, 6000,
                                                           70000, 800000, 9000000, 0, 0,  12};
    pace__encoding encoding = encoding_of(PACE_NUMERIC_BINS);
    parsed_text parsed = run_text(&encoding, false, GOOD_ROW "\n", strlen(GOOD_ROW "\n"));

    (void)state;
    assert_int_equal(parsed.rows, 1);
    assert_int_equal(parsed.label[0], 1);
    assert_int_equal(parsed.offset[0], 0);
    assert_int_equal(parsed.start[1], PACE__CRITEO_COLUMNS);
    for (unsigned c = 0; c < PACE__CRITEO_INTEGERS; c++) {
        bool missing = c == 1 || c == 10;

        assert_int_equal(parsed.ids[c], c * PACE__BINS + (missing ? 0 : pace__integer_bin(numbers[c])));
    }
    assert_int_equal(parsed.ids[13], category_id(&encoding, 13, "a"));
    assert_int_equal(parsed.ids[19], category_id(&encoding, 19, "7777777"));
    assert_int_equal(parsed.ids[20], category_id(&encoding, 20, "68fd1e64"));
    assert_int_equal(parsed.ids[21], category_id(&encoding, 21, ""));
    assert_int_equal(parsed.ids[38], category_id(&encoding, 38, "z"));
    parsed_release(&parsed);
}

static void test_values(void **state)
{
    pace__encoding encoding = encoding_of(PACE_NUMERIC_VALUES);
    parsed_text parsed = run_text(&encoding, false, GOOD_ROW "\n", strlen(GOOD_ROW "\n"));

    (void)state;
    assert_int_equal(parsed.rows, 1);
    assert_int_equal(parsed.ids[0], 0);
    assert_true(parsed.values[0] == pace__integer_value(1));
    assert_int_equal(parsed.ids[1], 3); /* I2 is missing: the second of its two weights */
    assert_true(parsed.values[1] == 1);
    assert_int_equal(parsed.ids[2], 4);
    assert_true(parsed.values[2] == 0); /* -2 */
    assert_true(parsed.values[12] == pace__integer_value(12));
    for (unsigned c = PACE__CRITEO_INTEGERS; c < PACE__CRITEO_COLUMNS; c++)
        assert_true(parsed.values[c] == 1);
    parsed_release(&parsed);
}

static void test_line_ends(void **state)
{
    (void)state;
    expect_good(GOOD_ROW, 1, false);
    expect_good(GOOD_ROW "\r\n" GOOD_ROW "\r", 2, false);
    expect_good("\n\n" GOOD_ROW "\n\r\n\n" GOOD_ROW "\n\n", 2, false);
    expect_good("\n", 0, false);
    expect_good("1\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\n", 1,
                false);
}

static void test_carriage_return_is_not_part_of_the_last_column(void **state)
{
    pace__encoding encoding = encoding_of(PACE_NUMERIC_BINS);
    parsed_text parsed =
        run_text(&encoding, false, GOOD_ROW "\r\n" GOOD_ROW "\n", strlen(GOOD_ROW "\r\n" GOOD_ROW "\n"));

    (void)state;
    assert_int_equal(parsed.rows, 2);
    assert_memory_equal(parsed.ids, parsed.ids + PACE__CRITEO_COLUMNS,
                        PACE__CRITEO_COLUMNS * sizeof *parsed.ids);
    parsed_release(&parsed);
}

static void test_labels_may_be_missing(void **state)
{
    const char *unlabelled = &(INTEGERS CATEGORIES)[1];
    char text[3 * sizeof GOOD_ROW];

    (void)state;
    snprintf(text, sizeof text, "%s\n%s\n%s", unlabelled, GOOD_ROW, unlabelled);
    expect_good(text, 3, true);
    expect_good(INTEGERS CATEGORIES "\n", 1, true);
    expect_bad(unlabelled, strlen(unlabelled), false, "39 tab-separated columns instead of 40");
    expect_bad(INTEGERS CATEGORIES, strlen(INTEGERS CATEGORIES), false, "label, is empty");
}

static void test_odd_but_good_fields(void **state)
{
    (void)state;
    /*
     * Long and short categories, control characters, other bytes than ASCII; leading zeros; the limits of
     * int64_t.
     */
    expect_good("0" INTEGERS "\ta category of many bytes\t\x01\t\xff\xfe\t \t\v" INTEGERS
                "\t-\t+\t\r\t.\t:\t#\t,\t;\n",
                1, false);
    expect_good("0\t9223372036854775807\t-9223372036854775808\t000000000000000000000000000001\t-0\t00"
                "\t12345678\t-1234567\t-12345678\t123456789\t\t\t\t" CATEGORIES "\n",
                1, false);
}

static void test_bad_rows(void **state)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"2" INTEGERS CATEGORIES, "label \"2\" is neither 0 nor 1"},
        {"-1" INTEGERS CATEGORIES, "label \"-1\""},
        {"01" INTEGERS CATEGORIES, "label \"01\""},
        {" 1" INTEGERS CATEGORIES, "label \" 1\""},
        {INTEGERS CATEGORIES, "label, is empty"},
        {"1", "1 tab-separated column instead of 40"},
        {"1" INTEGERS, "14 tab-separated columns"},
        {GOOD_ROW "\t", "41 tab-separated columns"},
        {GOOD_ROW GOOD_ROW, "79 tab-separated columns"},
        {"1\tx\t\t\t\t\t\t\t\t\t\t\t\t" CATEGORIES, "column I1: \"x\" is no integer"},
        {"1\t\t\t\t\t\t\t\t\t\t\t\t\t-" CATEGORIES, "column I13: \"-\""},
        {"1\t\t1.5\t\t\t\t\t\t\t\t\t\t\t" CATEGORIES, "column I2: \"1.5\""},
        {"1\t\t\t+1\t\t\t\t\t\t\t\t\t\t" CATEGORIES, "column I3: \"+1\""},
        {"1\t\t\t\t 1\t\t\t\t\t\t\t\t\t" CATEGORIES, "column I4: \" 1\""},
        {"1\t\t\t\t\t--1\t\t\t\t\t\t\t\t" CATEGORIES, "column I5: \"--1\""},
        {"1\t\t\t\t\t\t9223372036854775808\t\t\t\t\t\t\t" CATEGORIES, "column I6: \"9223372036854775808\""},
        {"1\t\t\t\t\t\t\t-9223372036854775809\t\t\t\t\t\t" CATEGORIES, "column I7"},
        {"1\t\t\t\t\t\t\t\t1\r\t\t\t\t\t" CATEGORIES, "column I8: \"1?\""},
        {"1\t\t\t\t\t\t\t\t\tthis text is far too long to be shown in full\t\t\t\t" CATEGORIES,
         "column I9: \"this text is far too long to be ...\""},
        {"1\t\t\t\t\t\t\t\t\t\t12345678901234567890123456789012345678901\t\t\t" CATEGORIES,
         "column I10: \"123456"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];

        snprintf(text, sizeof text, "%s\n", cases[i].text);
        expect_bad(text, strlen(text), false, cases[i].reason);
        expect_bad(text, strlen(text) - 1, false, cases[i].reason);
    }
}

static void test_nul_bytes(void **state)
{
    char text[] = GOOD_ROW "\n";

    (void)state;
    for (size_t i = 0; i < sizeof GOOD_ROW - 1; i++) {
        char reason[64], byte = text[i];

        text[i] = '\0';
        snprintf(reason, sizeof reason, "byte %zu of the row is NUL", i + 1);
        expect_bad(text, sizeof text - 1, false, reason);
        expect_bad(text, sizeof text - 1, true, reason);
        text[i] = byte;
    }
}

static void test_too_many_bad_rows_end_the_job(void **state)
{
    static const char text[] = "x\n" GOOD_ROW "\ny\nz\n" GOOD_ROW "\n";
    pace__encoding encoding = encoding_of(PACE_NUMERIC_BINS);
    parse_case test = {
        pace__parser_of(PACE_FORMAT_CRITEO), &encoding, false, false, 3, text, sizeof text - 1};
    parsed_text parsed;

    (void)state;
    parsed_run(&test, &parsed);
    assert_int_equal(parsed.status, PACE_OK);
    assert_int_equal(parsed.rows, 2);
    assert_int_equal(parsed.offset[0], 2);
    assert_int_equal(parsed.bad, 3);
    parsed_release(&parsed);
    test.bad_max = 2;
    parsed_run(&test, &parsed);
    assert_int_equal(parsed.status, PACE_BAD_DATA);
    parsed_release(&parsed);
}

/* Random rows. */

typedef struct text_buffer {
    char *bytes;
    size_t size, room;
} text_buffer;

static void append(text_buffer *buffer, const char *bytes, size_t size)
{
    assert_true(buffer->size + size <= buffer->room);
    memcpy(buffer->bytes + buffer->size, bytes, size);
    buffer->size += size;
}

static void append_random_field(text_buffer *buffer, pace__random *random, bool integer)
{
    static const char *const odd[] = {
        "-", "--5", "1x", "99999999999999999999", "longer than eight", "\x80\xff", "-12345678", "\r"};
    char text[32];
    uint64_t kind = pace__random_below(random, 400);
    uint64_t digits = pace__random_next(random) >> pace__random_below(random, 64);

    if (kind < 80)
        return;
    if (kind == 399)
        snprintf(text, sizeof text, "%s", odd[pace__random_below(random, 8)]);
    else if (integer)
        snprintf(text, sizeof text, "%s%llu", kind < 120 ? "-" : "", (unsigned long long)digits % 100000000);
    else
        snprintf(text, sizeof text, "%0*x", (int)(kind < 150 ? kind % 9 : 8), (unsigned)digits);
    append(buffer, text, strlen(text));
}

static void append_random_row(text_buffer *buffer, pace__random *random)
{
    unsigned columns = PACE__CRITEO_COLUMNS;
    uint64_t kind = pace__random_below(random, 100);
    bool labelled = kind >= 10;

    if (kind == 11)
        columns += (unsigned)pace__random_below(random, 3) - 1;
    if (labelled)
        append(buffer, kind == 12 ? "2" : kind % 2 ? "1" : "0", 1);
    for (unsigned c = 0; c < columns; c++) {
        if (c > 0 || labelled)
            append(buffer, "\t", 1);
        append_random_field(buffer, random, c < PACE__CRITEO_INTEGERS);
    }
    append(buffer, "\r\n", kind == 13 ? 2 : 0);
    append(buffer, "\n\n", kind == 14 ? 2 : kind == 13 ? 0 : 1);
}

static void check_random_text(uint64_t seed)
{
    pace__random random = {seed};
    size_t rows = pace__random_below(&random, 700);
    text_buffer buffer = {malloc(rows * 2000 + 1), 0, rows * 2000};
    pace__encoding encoding;

    assert_non_null(buffer.bytes);
    for (size_t i = 0; i < rows; i++)
        append_random_row(&buffer, &random);
    /* Some rubbish in it, and a random end. */
    for (uint64_t i = pace__random_below(&random, 4); i > 0 && buffer.size > 0; i--)
        buffer.bytes[pace__random_below(&random, buffer.size)] = (char)pace__random_below(&random, 256);
    buffer.size -= pace__random_below(&random, buffer.size < 300 ? buffer.size + 1 : 300);
    uint64_t features = 64 + (pace__random_next(&random) >> (11 + pace__random_below(&random, 46)));

    pace__encoding_criteo(features, (int)pace__random_below(&random, 2), &encoding, NULL);
    parsed_text parsed;
    const char *difference =
        compare_parsers(&encoding, pace__random_below(&random, 2), buffer.bytes, buffer.size, &parsed);

    if (difference)
        fail_msg("seed %llu: the parsers differ in %s", (unsigned long long)seed, difference);

    for (size_t i = 0; i < parsed.entries; i++) {
        unsigned column = i % PACE__CRITEO_COLUMNS;

        if (parsed.ids[i] < encoding.column_base[column] || parsed.ids[i] >= encoding.column_base[column + 1])
            fail_msg("seed %llu: an id is not in its column's range", (unsigned long long)seed);
    }
    parsed_release(&parsed);
    free(buffer.bytes);
}

static void test_fast_and_plain_agree_on_random_rows(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 150; seed++)
        check_random_text(seed);
}

static void test_many_rows(void **state)
{
    pace__encoding encoding = encoding_of(PACE_NUMERIC_BINS);
    char text[700 * sizeof GOOD_ROW + 1];
    size_t size = 0;

    (void)state;
    for (int i = 0; i < 700; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%s\n", GOOD_ROW);
    parsed_text parsed = run_text(&encoding, false, text, size);

    assert_int_equal(parsed.rows, 700);
    for (size_t i = 0; i < 700; i++)
        assert_int_equal(parsed.offset[i], i * sizeof GOOD_ROW);
    parsed_release(&parsed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bins),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_line_ends),
        cmocka_unit_test(test_carriage_return_is_not_part_of_the_last_column),
        cmocka_unit_test(test_labels_may_be_missing),
        cmocka_unit_test(test_odd_but_good_fields),
        cmocka_unit_test(test_bad_rows),
        cmocka_unit_test(test_nul_bytes),
        cmocka_unit_test(test_too_many_bad_rows_end_the_job),
        cmocka_unit_test(test_fast_and_plain_agree_on_random_rows),
        cmocka_unit_test(test_many_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
