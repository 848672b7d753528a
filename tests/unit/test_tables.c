/* Tables with a header: what columns are taken for, how cells become ids, and what is wrong with rows. */
#include "data/formats/criteo.h"
#include "data/formats/sheet_rows.h"
#include "data/guess/guess.h"
#include "data/guess/sample.h"

#include <inttypes.h>
#include <math.h>
#include <paceline/prep.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support.h"

static pace__sheet sheet;
static pace__encoding encoding;

static pace_status guess_as(const pace__sheet_wish *wish, const char *text)
{
    said_clear();
    return pace__sheet_guess(wish, ',', "file.csv", text, strlen(text), true, &said_log, &sheet);
}

static void expect_columns(const char *text, const char *expected)
{
    assert_int_equal(guess_as(&(pace__sheet_wish){.label = NULL}, text), PACE_OK);
    if (!strstr(said, expected))
        print_error("not in: %s", said);
    assert_non_null(strstr(said, expected));
}

/* --- what columns are --- */

static void test_guessed(void **state)
{
    (void)state;
    expect_columns("label,a,b,c,d\n1,1,x,2.5,\n0,-3,y,NA,\n",
                   "I label: label (0/1); 2 numeric: a, c; 2 categories: b, d\n");
    expect_columns("a,label\n1,yes\n2,no\n", "I label: label (no/yes); 1 numeric: a\n");
    expect_columns("zip,n,label,one\n01234,0,t,5\n99999,0.5,f,5\n",
                   "I label: label (f/t); 2 numeric: n, one; 1 categories: zip\n");
    expect_columns(",label,x\n0,1,a\n1,0,b\n", "1 categories: x; 1 ignored: (without a name)\n");
    expect_columns("label,empty\n1,\n0,\n", "1 categories: empty\n");
}

/* Rows of codes: whole numbers, few, again and again. */
static void test_codes(void **state)
{
    char text[20000] = "label,hour,count,flag\n";
    size_t at = strlen(text);

    (void)state;
    for (int i = 0; i < 500; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%d,%d,%d,%d\n", i % 2, i % 24, i * 7 % 200,
                               i % 3 == 0);
    expect_columns(text, "I label: label (0/1); 2 numeric: count, flag; 1 categories: hour\n");
}

static void test_warned_of(void **state)
{
    char text[20000] = "label,id,when,price\n";
    size_t at = strlen(text);

    (void)state;
    for (int i = 0; i < 60; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%d,%d,day %d,%d.5\n", i % 2, 7 + i, i,
                               i * 37 % 61);
    expect_columns(text, "W file.csv: all values in its first 60 rows are different in id, when: ");
}

static void test_named(void **state)
{
    static const char text[] = "label,a,b,\"c,d\",e\n1,1,2,3,4\n0,2,3,4,5\n";
    const pace_texts none = {0}, ab = {(const char *[]){"a,b"}, 1}, cd = {(const char *[]){"c,d"}, 1},
                     other = {(const char *[]){"b,x"}, 1};

    (void)state;
    assert_int_equal(guess_as(&(pace__sheet_wish){NULL, &none, &ab, &cd}, text), PACE_OK);
    assert_non_null(strstr(said, "1 numeric: e; 2 categories: a, b; 1 ignored: \"c,d\"\n"));
    assert_int_equal(guess_as(&(pace__sheet_wish){"e", &none, &none, &none}, text), PACE_OK);
    assert_non_null(strstr(said, "label: e (4/5); 4 numeric: label, a, b, \"c,d\"\n"));
    assert_int_equal(guess_as(&(pace__sheet_wish){"y", &none, &none, &none}, text), PACE_USAGE);
    assert_non_null(
        strstr(said, "file.csv: no column 'y'; the header has: label, a, b, \"c,d\", e: name the label's"));
    assert_int_equal(guess_as(&(pace__sheet_wish){NULL, &other, &none, &none}, text), PACE_USAGE);
    assert_non_null(
        strstr(said, "no column 'x'; the header has: label, a, b, \"c,d\", e (--numeric-fields)"));
    assert_int_equal(guess_as(&(pace__sheet_wish){NULL, &ab, &other, &none}, text), PACE_USAGE);
    assert_non_null(strstr(said, "--category-fields: column 'b' is named as something else"));
}

static void test_no_table(void **state)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"", "it is empty"},
        {"label\n1\n", "no column besides the label"},
        {"label,a,a\n1,2,3\n", "two columns are called \"a\""},
        {"label,a\xff\n1,2\n", "names are UTF-8"},
        {"label,\"a\nb\"\n1,2\n", "without control characters"},
        {"label,\"a\n1,2\n", "the header, which names the columns, does not end"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(guess_as(&(pace__sheet_wish){.label = NULL}, cases[i].text), PACE_BAD_DATA);
        assert_non_null(strstr(said, cases[i].reason));
    }
}

static void test_certain(void **state)
{
    static const struct {
        const char *text;
        char separator;
        bool certain;
    } cases[] = {
        {"label,a\n1,2\n", ',', true},    {"label,a\n", ',', true},       {"label\ta\n1\t2\n", '\t', true},
        {"label,a\n1,2,3\n", ',', false}, {"label,1\n1,2\n", ',', false}, {"label,a,a\n1,2,3\n", ',', false},
        {"lable,a\n1,2\n", ',', false},   {"label\n1\n", ',', false},     {"", ',', false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(
            pace__sheet_is_certain(NULL, cases[i].separator, cases[i].text, strlen(cases[i].text), true),
            cases[i].certain);
}

/* --- steps --- */

static void expect_steps(const double *values, size_t count, int64_t origin, int exponent)
{
    double copy[100];

    memcpy(copy, values, count * sizeof *values);
    pace__scale steps = pace__scale_for(copy, count);

    assert_int_equal(steps.origin, origin);
    assert_int_equal(steps.exponent, exponent);
}

#define EXPECT_STEPS(origin, exponent, ...)                                                                  \
    expect_steps((double[]){__VA_ARGS__}, sizeof(double[]){__VA_ARGS__} / sizeof(double), origin, exponent)

static void test_steps(void **state)
{
    (void)state;
    EXPECT_STEPS(0, 0, 0, 1, 2, 5000);
    EXPECT_STEPS(0, 0, 7, 7, 7);
    EXPECT_STEPS(2000, 0, 1990, 1995, 2000, 2001, 2010);
    EXPECT_STEPS(0, -2, 0.1, 0.5, 0.9);
    EXPECT_STEPS(0, 1, 1.5, 120.25, 500);
    EXPECT_STEPS(4070, -2, 40.5, 40.7, 40.9, 40.1);
    EXPECT_STEPS(0, 3, 0, 5, 1234567890);
    EXPECT_STEPS(-300, 0, -310, -300, -290);
    expect_steps(NULL, 0, 0, 0);
    assert_true(pace__sheet_steps((pace__scale){4070, -2}, 40.75) == 5);
    assert_true(pace__sheet_steps((pace__scale){0, 3}, 5000) == 5);
}

/* Whole numbers from 0 on have Criteo's bins; others are mirrored behind them. */
static void test_bins(void **state)
{
    (void)state;
    for (int value = 0; value < 5000; value++) {
        assert_int_equal(pace__sheet_bin(value), pace__integer_bin(value));
        assert_true(pace__sheet_value(value) == pace__integer_value(value));
        assert_true(pace__sheet_value(-value) == -pace__integer_value(value));
        if (value > 0)
            assert_int_equal(pace__sheet_bin(-value), PACE__BINS + pace__integer_bin(value));
    }
    assert_int_equal(pace__sheet_bin(NAN), 0);
    assert_true(pace__sheet_bin(1e300) < PACE__BINS && pace__sheet_bin(-INFINITY) < PACE__SHEET_BINS);
}

static void test_cells(void **state)
{
    static const char *const ones[] = {"1", "1.0", "+1", "true", "YES", "t", "Y"},
                             *const zeros[] = {"0", "-1", "0.0", "False", "no", "f", "n"},
                             *const none[] = {"", "2", "yess", "0.5", "-", "truefalse"},
                             *const missing[] = {"", "NA", "n/a", "NaN", "null", "None", "?", "\\N"};
    uint8_t label;
    double value;

    (void)state;
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
        assert_true(pace__sheet_label_of(ones[i], strlen(ones[i]), &label) && label == 1);
        assert_true(pace__sheet_label_of(zeros[i], strlen(zeros[i]), &label) && label == 0);
    }
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(pace__sheet_label_of(none[i], strlen(none[i]), &label));
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        assert_true(pace__sheet_number(missing[i], strlen(missing[i]), &value) && isnan(value));
    assert_true(pace__sheet_number("-1.5e2", 6, &value) && value == -150);
    assert_false(pace__sheet_number("1,5", 3, &value));
    assert_false(pace__sheet_number("inf", 3, &value));
}

/* --- rows --- */

static pace__raw_rows rows;

/* Of one chunk, which is the file. */
static pace_status parse_as(const char *text, uint64_t bad_max, bool labels_optional, uint64_t *bad_count)
{
    char *copy = calloc(1, strlen(text) + PACE__CHUNK_SLACK);
    pace__bad_rows bad = {.max = bad_max, .log = &said_log};
    pace__parser parser = {.encoding = &encoding, .labels_optional = labels_optional, .bad = &bad};
    pace__chunk chunk = {.data = copy, .size = strlen(text), .line = 1};
    size_t at = 0;

    said_clear();
    strcpy(copy, text);
    assert_int_equal(pace__sheet_reader_create(&encoding, PACE_FORMAT_CSV, NULL, &said_log, &parser.sheet),
                     PACE_OK);
    if (!rows.ids)
        assert_int_equal(pace__raw_rows_init(&rows, NULL), PACE_OK);
    pace_status status = pace__parse_table(&parser, &chunk, &at, &rows);

    if (!status)
        assert_int_equal(at, chunk.size);
    *bad_count = bad.count;
    pace__sheet_reader_free(parser.sheet);
    free(copy);
    return status;
}

static void know(const char *text, int numeric)
{
    assert_int_equal(guess_as(&(pace__sheet_wish){.label = NULL}, text), PACE_OK);
    assert_int_equal(pace__encoding_sheet(0, numeric, &sheet, &encoding, &said_log), PACE_OK);
}

static uint64_t category_id(uint32_t column, const char *text)
{
    uint64_t base = encoding.column_base[column];

    return base + pace__scale_to(pace__category_hash(text, (uint32_t)strlen(text)),
                                 encoding.column_base[column + 1] - base);
}

static void test_rows(void **state)
{
    static const char text[] =
        "city,label,age\r\n\"Ulm, \"\"Mitte\"\"\",1,30\r\n\r\n a ,0,\r\n\"x\ny\",-1,-2\n";
    uint64_t bad;

    (void)state;
    know(text, PACE_NUMERIC_BINS);
    assert_int_equal(parse_as(text, 0, false, &bad), PACE_OK);
    assert_int_equal(rows.rows, 3);
    assert_int_equal(rows.label[0], 1);
    assert_int_equal(rows.label[2], 0);
    assert_int_equal(rows.ids[0], pace__integer_bin(30));
    assert_int_equal(rows.ids[2], 0);
    assert_int_equal(rows.ids[4], PACE__BINS + pace__integer_bin(2));
    assert_int_equal(rows.ids[1], category_id(1, "Ulm, \"Mitte\""));
    assert_int_equal(rows.ids[3], category_id(1, "a"));
    assert_int_equal(rows.ids[5], category_id(1, "x\ny"));
    know(text, PACE_NUMERIC_VALUES);
    assert_int_equal(parse_as(text, 0, false, &bad), PACE_OK);
    assert_true(rows.values[0] == pace__integer_value(30) && rows.values[4] == -pace__integer_value(2));
    assert_true(rows.values[2] == 1 && rows.ids[2] == rows.ids[0] + 1 && rows.values[1] == 1);
}

/* The order of columns, and what stands between them, change nothing. */
static void test_other_headers(void **state)
{
    uint64_t bad, ids[2];

    (void)state;
    know("city,label,age\nUlm,1,30\nBonn,0,5\n", PACE_NUMERIC_BINS);
    assert_int_equal(parse_as("city,label,age\nUlm,1,30\n", 0, false, &bad), PACE_OK);
    memcpy(ids, rows.ids, sizeof ids);
    assert_int_equal(parse_as("age,new,city,label\n30,?,Ulm,1\n", 0, false, &bad), PACE_OK);
    assert_memory_equal(ids, rows.ids, sizeof ids);
    assert_string_equal(said, "W -: 1 column not known, so left out: new\n");
    assert_int_equal(parse_as("city,label\nUlm,1\n", 0, false, &bad), PACE_OK);
    assert_int_equal(rows.ids[0], 0);
    assert_int_equal(rows.ids[1], ids[1]);
    assert_string_equal(said, "W -: 1 column not there, so missing in every row: age\n");
    assert_int_equal(parse_as("city,age\nUlm,30\n", 0, true, &bad), PACE_OK);
    assert_memory_equal(ids, rows.ids, sizeof ids);
    assert_int_equal(parse_as("city,age\nUlm,30\n", 0, false, &bad), PACE_USAGE);
    assert_non_null(strstr(said, "no column 'label'; the header has: city, age: name"));
    assert_int_equal(parse_as("a,label\n1,1\n", 0, false, &bad), PACE_USAGE);
    assert_non_null(strstr(said, "no column 'age'; the header has: a, label, and none of the others"));
    assert_int_equal(parse_as("age,label,age\n1,1,1\n", 0, false, &bad), PACE_BAD_DATA);
    assert_non_null(strstr(said, "two columns are called \"age\""));
}

static void test_bad_rows(void **state)
{
    static const char text[] =
        "label,age,city\n1,2,a\n1,two,b\n3,4,c\n1,2\n,2,d\n1,2,\"a\"b\n0,1,e\n1,5,\"x\n";
    static const char *const said_of[] = {
        "-:3: column \"age\": \"two\" is no number",
        "-:4: label \"3\" is none of 0, 1, -1, no, yes, false, true",
        "-:5: 2 columns, but the header has 3",
        "-:6: the label, column \"label\", is empty",
        "-:7: text follows a closing quote",
        "-:9: the quote that is opened here is not closed",
    };
    uint64_t bad;

    (void)state;
    know("label,age,city\n1,2,a\n0,3,b\n", PACE_NUMERIC_BINS);
    assert_int_equal(parse_as(text, 10, false, &bad), PACE_OK);
    assert_int_equal(bad, 6);
    assert_int_equal(rows.rows, 2);
    for (size_t i = 0; i < sizeof said_of / sizeof *said_of; i++) {
        char wanted[100];

        snprintf(wanted, sizeof wanted, "standard input%s", said_of[i] + 1);
        if (!strstr(said, wanted))
            print_error("%s not in: %s", wanted, said);
        assert_non_null(strstr(said, wanted));
    }
    assert_int_equal(parse_as(text, 0, false, &bad), PACE_BAD_DATA);
    assert_int_equal(parse_as(text, 3, false, &bad), PACE_BAD_DATA);
}

/* --- as JSON --- */

static void test_json(void **state)
{
    static pace__encoding again;
    char *json, *twice;

    (void)state;
    know("c,label,n,m,\"q\"\"\"\nx,1,0.5,1,a\ny,0,0.25,2,b\n", PACE_NUMERIC_BINS);
    json = pace__encoding_to_json(&encoding);
    assert_string_equal(
        json, "{\"kind\":\"table\",\"features\":33762578,\"numeric\":\"bins\",\"label\":\"label\","
              "\"numbers\":[[\"m\",0,0],[\"n\",0,-2]],\"categories\":[\"c\",\"q\\\"\"],\"ignored\":[],"
              "\"scheme\":1}");
    assert_int_equal(pace__encoding_from_json(json, "here", &again, NULL), PACE_OK);
    twice = pace__encoding_to_json(&again);
    assert_string_equal(twice, json);
    free(twice);
    free(json);
    assert_int_equal(pace__encoding_fits(&encoding, &again, &said_log), PACE_OK);
    again.sheet.steps[0].origin = 1;
    assert_int_equal(pace__encoding_fits(&encoding, &again, &said_log), PACE_BAD_DATA);
}

static void test_json_faults(void **state)
{
    static const struct {
        const char *json, *reason;
    } cases[] = {
        {"\"features\":100,\"numeric\":\"bins\",\"label\":\"l\",\"numbers\":[],\"categories\":[\"a\"],"
         "\"ignored\":[]",
         "scheme"},
        {"\"scheme\":1,\"features\":100,\"numeric\":\"bins\",\"numbers\":[],\"categories\":[\"a\"],"
         "\"ignored\":[]",
         "label"},
        {"\"scheme\":1,\"features\":100,\"numeric\":\"bins\",\"label\":\"l\",\"numbers\":[],\"categories\":["
         "\"a\"]",
         "lists"},
        {"\"scheme\":1,\"features\":100,\"numeric\":\"bins\",\"label\":\"l\",\"numbers\":[[\"a\",0,23]],"
         "\"categories\":[],"
         "\"ignored\":[]",
         "lists"},
        {"\"scheme\":1,\"features\":100,\"numeric\":\"bins\",\"label\":\"l\",\"numbers\":[[\"a\",0.5,0]],"
         "\"categories\":[],"
         "\"ignored\":[]",
         "lists"},
        {"\"scheme\":1,\"features\":100,\"numeric\":\"bins\",\"label\":\"l\",\"numbers\":[],\"categories\":["
         "\"l\"],"
         "\"ignored\":[]",
         "two columns"},
        {"\"scheme\":1,\"features\":3,\"numeric\":\"bins\",\"label\":\"l\",\"numbers\":[],\"categories\":["
         "\"a\"],"
         "\"ignored\":[]",
         "too few"},
        {"\"scheme\":1,\"features\":9,\"numeric\":\"bins\",\"label\":\"l\",\"numbers\":[],\"categories\":[],"
         "\"ignored\":[]",
         "no column besides"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[400];

        said_clear();
        snprintf(json, sizeof json, "{\"kind\":\"table\",%s}", cases[i].json);
        assert_int_equal(pace__encoding_from_json(json, "here", &encoding, &said_log), PACE_BAD_DATA);
        if (!strstr(said, cases[i].reason))
            print_error("%s not in: %s", cases[i].reason, said);
        assert_non_null(strstr(said, cases[i].reason));
    }
}

/* Every column has places of its own, however few there are. */
static void test_ranges(void **state)
{
    (void)state;
    know("label,a,b,c,d\n1,1,1.5,x,y\n0,2,2.5,z,w\n", PACE_NUMERIC_BINS);
    for (uint64_t features = 16; features < 5000; features += 7) {
        for (int numeric = 0; numeric < 2; numeric++) {
            assert_int_equal(pace__encoding_sheet(features, numeric, &sheet, &encoding, NULL), PACE_OK);
            for (int c = 0; c < 4; c++)
                assert_true(encoding.column_base[c] + 1 + (numeric && c < 2) <= encoding.column_base[c + 1]);
            assert_int_equal(encoding.column_base[4], features);
        }
    }
    assert_int_equal(pace__encoding_sheet(15, 0, &sheet, &encoding, NULL), PACE_USAGE);
    know("label,a\n1,1\n0,2\n", PACE_NUMERIC_BINS);
    assert_int_equal(encoding.features, PACE__SHEET_BINS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_guessed),       cmocka_unit_test(test_codes),
        cmocka_unit_test(test_warned_of),     cmocka_unit_test(test_named),
        cmocka_unit_test(test_no_table),      cmocka_unit_test(test_certain),
        cmocka_unit_test(test_steps),         cmocka_unit_test(test_bins),
        cmocka_unit_test(test_cells),         cmocka_unit_test(test_rows),
        cmocka_unit_test(test_other_headers), cmocka_unit_test(test_bad_rows),
        cmocka_unit_test(test_json),          cmocka_unit_test(test_json_faults),
        cmocka_unit_test(test_ranges),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    pace__raw_rows_release(&rows);
    return failed;
}
