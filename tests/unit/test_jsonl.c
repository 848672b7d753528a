/* Fields of a line of JSON: what is valid, what is found, and the fast walker against the plain one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"
#include "data/text/jsonl_internal.h"

#include "padded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"reviewText", "overall", "a", "b\u00e9", "k\"x"};

#define FIELDS (sizeof names / sizeof *names)
enum { REVIEW, OVERALL, A, B, K };

static pace__jsonl_fields fields(void)
{
    pace__jsonl_fields made;

    assert_int_equal(pace__jsonl_fields_init(&made, names, FIELDS, NULL), PACE_OK);
    return made;
}

/* Nothing is readable behind the padding, and the padding goes on as the line might. */
static char *padded(const char *text, size_t size)
{
    static const char *const rests[] = {"\"}", "}", "1", "x\"", "]}", "\\", "\",\"a\":1}"};
    static unsigned turn;
    char *copy = padded_with(text, size, rests[turn++ % (sizeof rests / sizeof *rests)]);

    /* Also a string that ends with the last byte that is readable. */
    if (turn % 3 == 0) {
        memset(copy + size, 'x', PACE__TEXT_PADDING);
        copy[size + PACE__TEXT_PADDING - 1] = '"';
    }
    return copy;
}

static const char *compare_decoded(const pace__jsonl_value *value, int set)
{
    size_t room = value->size + PACE__TEXT_PADDING;
    char *plain = malloc(room), *fast = malloc(room);
    const char *found = NULL;

    assert_non_null(plain);
    assert_non_null(fast);
    size_t size = pace__jsonl_plain.decode(value->text, value->size, plain);

    if (size > value->size || pace__utf8_find_invalid(plain, size) < size)
        found = "what is decoded is too long or no UTF-8";
    if (!value->escaped && (size != value->size || memcmp(plain, value->text, size) != 0))
        found = "the mark of escapes";
    if (pace__jsonl_of(set)->decode(value->text, value->size, fast) != size || memcmp(plain, fast, size) != 0)
        found = "what is decoded";
    free(plain);
    free(fast);
    return found;
}

static const char *compare_values(const pace__jsonl_value *plain, const pace__jsonl_value *fast, int set)
{
    for (size_t i = 0; i < FIELDS; i++) {
        const pace__jsonl_value *p = &plain[i], *f = &fast[i];

        if (p->kind != f->kind || p->text != f->text || p->size != f->size || p->escaped != f->escaped)
            return "a value";
        if (p->kind == PACE__JSONL_STRING && compare_decoded(p, set))
            return compare_decoded(p, set);
    }
    return NULL;
}

/* A fast walker leaves an object without members to the plain one. */
static bool is_left_over(const char *line, size_t size)
{
    size_t at = pace__jsonl_skip_blanks(line, size, 0);

    return pace__jsonl_skip_blanks(line, size, at + 1) < size &&
           line[pace__jsonl_skip_blanks(line, size, at + 1)] == '}';
}

/* What the walkers disagree about, or NULL. *valid says whether the line is. */
static const char *compare(const char *line, size_t size, bool *valid)
{
    pace__jsonl_fields wanted = fields();
    pace__jsonl_value plain[FIELDS], fast[FIELDS];
    pace__jsonl_error error = {0};
    char *copy = padded(line, size);
    const char *found = NULL;

    *valid = pace__jsonl_plain.find(&wanted, copy, size, plain);
    for (int set = PACE_KERNELS_PLAIN; set < PACE__KERNELS_END && !found; set++) {
        if (!pace_kernels_run(set))
            continue;
        if (pace__jsonl_of(set)->find(&wanted, copy, size, fast) != *valid)
            found = is_left_over(copy, size) ? NULL : "whether it is valid";
        else if (*valid)
            found = compare_values(plain, fast, set);
    }
    if (!found && pace__jsonl_find(&wanted, copy, size, fast, &error) != *valid)
        found = "whether it is valid at all";
    else if (!*valid && error.offset > size)
        found = "the error";
    free(copy);
    return found;
}

/* Finds the fields, by all walkers, with blanks in front that move the line across the blocks. */
static void expect_valid(const char *line)
{
    char shifted[1024];
    bool valid;

    for (size_t shift = 0; shift < 66; shift++) {
        size_t size = (size_t)snprintf(shifted, sizeof shifted, "%*s%s", (int)shift, "", line);
        const char *found = compare(shifted, size, &valid);

        if (found || !valid)
            fail_msg("%s at byte %zu: %s", line, shift, found ? found : "is not valid");
    }
}

static void expect_bytes_invalid(const char *line, size_t size, size_t offset, const char *reason)
{
    char shifted[1024];
    pace__jsonl_fields wanted = fields();

    for (size_t shift = 0; shift < 66; shift++) {
        pace__jsonl_value values[FIELDS] = {{.size = 77}};
        pace__jsonl_error error;
        bool valid;

        memset(shifted, ' ', shift);
        memcpy(shifted + shift, line, size);
        const char *found = compare(shifted, shift + size, &valid);
        char *copy = padded(shifted, shift + size);

        if (found || valid)
            fail_msg("%s at byte %zu: %s", line, shift, found ? found : "is valid");
        assert_false(pace__jsonl_find(&wanted, copy, shift + size, values, &error));
        if (error.offset != shift + offset || !strstr(error.reason, reason))
            fail_msg("%s at byte %zu: byte %zu: %s; not byte %zu: %s", line, shift, error.offset,
                     error.reason, shift + offset, reason);
        assert_int_equal(values[0].size, 77);
        free(copy);
    }
}

static void expect_invalid(const char *line, size_t offset, const char *reason)
{
    expect_bytes_invalid(line, strlen(line), offset, reason);
}

static void expect_found(const char *line, unsigned field, pace__jsonl_kind kind, const char *text)
{
    pace__jsonl_fields wanted = fields();
    pace__jsonl_value values[FIELDS];
    pace__jsonl_error error;
    char *copy = padded(line, strlen(line)), decoded[512];

    expect_valid(line);
    assert_true(pace__jsonl_find(&wanted, copy, strlen(line), values, &error));
    pace__jsonl_value value = values[field];

    assert_int_equal(value.kind, kind);
    if (text) {
        if (value.escaped) {
            value.size = pace__jsonl_decode(value.text, value.size, decoded);
            value.text = decoded;
        }
        assert_int_equal(value.size, strlen(text));
        assert_memory_equal(value.text, text, value.size);
    }
    free(copy);
}

static void test_values(void **state)
{
    (void)state;
    expect_found("{\"reviewText\": \"So good.\", \"overall\": 5.0}", REVIEW, PACE__JSONL_STRING, "So good.");
    expect_found("{\"reviewText\": \"So good.\", \"overall\": 5.0}", OVERALL, PACE__JSONL_NUMBER, "5.0");
    expect_found("{\"reviewText\":\"\",\"overall\":-1e+5}", REVIEW, PACE__JSONL_STRING, "");
    expect_found("{\"reviewText\":\"\",\"overall\":-1e+5}", OVERALL, PACE__JSONL_NUMBER, "-1e+5");
    expect_found("{\"x\":1}", A, PACE__JSONL_MISSING, NULL);
    expect_found("{}", A, PACE__JSONL_MISSING, NULL);
    expect_found(" { } ", A, PACE__JSONL_MISSING, NULL);
    expect_found("{\"a\":null}", A, PACE__JSONL_NULL, "null");
    expect_found("{\"a\":true}", A, PACE__JSONL_TRUE, "true");
    expect_found("{ \"a\" : false }", A, PACE__JSONL_FALSE, "false");
    expect_found("{\"a\":[1, {\"a\": 2}] ,\"c\":3}", A, PACE__JSONL_ARRAY, "[1, {\"a\": 2}]");
    expect_found("{\"c\":{\"a\":1},\"a\":{\"b\" : [ ] }}", A, PACE__JSONL_OBJECT, "{\"b\" : [ ] }");
    expect_found("{\"c\":{\"a\":1}}", A, PACE__JSONL_MISSING, NULL);
    expect_found("\t{\r\n\"a\"\t:\n0\r,\t\"c\"  :  [\n]\r}\r\n", A, PACE__JSONL_NUMBER, "0");
}

static void test_names(void **state)
{
    (void)state;
    expect_found("{\"aa\":1,\"A\":2,\"\":3,\"reviewTexts\":4,\"reviewTex\":5}", A, PACE__JSONL_MISSING, NULL);
    expect_found("{\"reviewTexts\":4,\"reviewTex\":5,\"reviewTexT\":6}", REVIEW, PACE__JSONL_MISSING, NULL);
    expect_found("{\"b\u00e9\":1}", B, PACE__JSONL_NUMBER, "1");
    /* Written in another way. */
    expect_found("{\"b\\u00E9\":1}", B, PACE__JSONL_NUMBER, "1");
    expect_found("{\"k\\\"x\":1}", K, PACE__JSONL_NUMBER, "1");
    expect_found("{\"\\u0072\\u0065\\u0076\\u0069\\u0065\\u0077\\u0054\\u0065\\u0078\\u0074\":1}", REVIEW,
                 PACE__JSONL_NUMBER, "1");
    expect_found("{\"a\\u0000\":1}", A, PACE__JSONL_MISSING, NULL);
    /* The last one counts. */
    expect_found("{\"a\":1,\"a\":\"two\",\"\\u0061\":3}", A, PACE__JSONL_NUMBER, "3");
    expect_found("{\"a\":\"x\\n\",\"a\":\"y\"}", A, PACE__JSONL_STRING, "y");
}

static void test_strings(void **state)
{
    (void)state;
    expect_found("{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}", A, PACE__JSONL_STRING, "\"\\/\b\f\n\r\t");
    expect_found("{\"a\":\"\\u0041\\u00e9\\u20AC\\uD83D\\uDE00!\"}", A, PACE__JSONL_STRING,
                 "A\u00e9\u20ac\U0001f600!");
    expect_found("{\"a\":\"\\\\u0041\\\\\"}", A, PACE__JSONL_STRING, "\\u0041\\");
    expect_found("{\"a\":\"\x7f\xc2\x80\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff\"}", A,
                 PACE__JSONL_STRING, "\x7f\xc2\x80\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff");
    expect_found("{\"a\":\"{[:,]}\"}", A, PACE__JSONL_STRING, "{[:,]}");
    expect_found("{\"a\":\"\\uD7FF\\uE000\\uffff\\uDBFF\\uDFFF\"}", A, PACE__JSONL_STRING,
                 "\ud7ff\ue000\uffff\U0010ffff");
}

static void test_numbers(void **state)
{
    static const char *const good[] = {"0",    "-0",  "10",     "0.0",   "-12.50", "1e5",
                                       "1E-5", "0e0", "1.5e+9", "1e999", "0.000",  "12345678901234567890123",
                                       "9"};
    static const struct {
        const char *text;
        size_t offset;
        const char *reason;
    } bad[] = {
        {"-", 1, "digit"},     {"-x", 1, "digit"},    {"01", 1, "comma"},   {"-01", 2, "comma"},
        {"00", 1, "comma"},    {"1.", 2, "digit"},    {"1.e5", 2, "digit"}, {".5", 0, "value"},
        {"+1", 0, "value"},    {"1e", 2, "digit"},    {"1e+", 3, "digit"},  {"1E-x", 3, "digit"},
        {"1.5.5", 3, "comma"}, {"1e5.5", 3, "comma"}, {"0x10", 1, "comma"}, {"NaN", 0, "value"},
        {"Inf", 0, "value"},   {"--1", 1, "digit"},   {"1_0", 1, "comma"},  {"- 1", 1, "digit"},
    };
    char line[128];

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(line, sizeof line, "{\"a\":%s}", good[i]);
        expect_found(line, A, PACE__JSONL_NUMBER, good[i]);
        snprintf(line, sizeof line, "{\"c\":[%s , %s] }", good[i], good[i]);
        expect_valid(line);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(line, sizeof line, "{\"a\":%s}", bad[i].text);
        expect_invalid(line, 5 + bad[i].offset, bad[i].reason);
        snprintf(line, sizeof line, "{\"a\":[%s]}", bad[i].text);
        expect_invalid(line, 6 + bad[i].offset, bad[i].reason);
    }
}

static void test_bad_structure(void **state)
{
    (void)state;
    expect_invalid("", 0, "an object");
    expect_invalid("  ", 2, "an object");
    expect_invalid("[]", 0, "an object");
    expect_invalid("\"a\"", 0, "an object");
    expect_invalid("}", 0, "an object");
    expect_invalid("\"a\":1}", 0, "an object");
    expect_invalid("\xef\xbb\xbf{}", 0, "an object");
    expect_invalid("{", 1, "a name");
    expect_invalid("{,}", 1, "a name");
    expect_invalid("{a:1}", 1, "a name");
    expect_invalid("{'a':1}", 1, "a name");
    expect_invalid("{1:1}", 1, "a name");
    expect_invalid("{\"a\"}", 4, "a colon");
    expect_invalid("{\"a\" 1}", 5, "a colon");
    expect_invalid("{\"a\":}", 5, "a value");
    expect_invalid("{\"a\": ", 6, "a value");
    expect_invalid("{\"a\"::1}", 5, "a value");
    expect_invalid("{\"a\":1", 6, "a comma or }");
    expect_invalid("{\"a\":1]", 6, "a comma or }");
    expect_invalid("{\"a\":1 \"b\":2}", 7, "a comma or }");
    expect_invalid("{\"a\":1,}", 7, "a name");
    expect_invalid("{\"a\":1,,\"b\":2}", 7, "a name");
    expect_invalid("{\"a\":1,", 7, "a name");
    expect_invalid("{\"a\":1}}", 7, "follows");
    expect_invalid("{\"a\":1} x", 8, "follows");
    expect_invalid("{\"a\":1},", 7, "follows");
    expect_invalid("{}{}", 2, "follows");
    expect_invalid("{\"a\":[1,]}", 8, "a value");
    expect_invalid("{\"a\":[,1]}", 6, "a value");
    expect_invalid("{\"a\":[1}}", 7, "a comma or ]");
    expect_invalid("{\"a\":[1 2]}", 8, "a comma or ]");
    expect_invalid("{\"a\":[", 6, "a value");
    expect_invalid("{\"a\":{\"b\":1,}}", 12, "a name");
    expect_invalid("{\"a\":{\"b\"]}", 9, "a colon");
    expect_invalid("{\"a\":{]}", 6, "a name");
    expect_invalid("{\"a\":nul}", 5, "a value");
    expect_invalid("{\"a\":nulL}", 5, "a value");
    expect_invalid("{\"a\":True}", 5, "a value");
    expect_invalid("{\"a\":truefalse}", 9, "a comma");
    expect_invalid("{\"a\":tru", 5, "a value");
    expect_invalid("{\"a\":/*c*/1}", 5, "a value");
    expect_invalid("{\"a\":\f1}", 5, "a value");
    expect_invalid("{\"a\"\v:1}", 4, "a colon");
    expect_invalid("{\"a\":1\u00a0}", 6, "a comma");
    expect_bytes_invalid("{\"a\":1}\0", 8, 7, "follows");
    expect_bytes_invalid("{\0\"a\":1}", 9, 1, "a name");
}

static void test_bad_strings(void **state)
{
    (void)state;
    expect_invalid("{\"a", 3, "ends in a string");
    expect_invalid("{\"a\":\"", 6, "ends in a string");
    expect_invalid("{\"a\":\"xyz", 9, "ends in a string");
    expect_invalid("{\"a\":\"xyz\\\"}", 12, "ends in a string");
    expect_invalid("{\"a\":\"\\", 6, "escape");
    expect_invalid("{\"a\":\"x\\x\"}", 7, "escape");
    expect_invalid("{\"a\":\"\\'\"}", 6, "escape");
    expect_invalid("{\"a\":\"\\U0041\"}", 6, "escape");
    expect_invalid("{\"a\":\"\\u004\"}", 6, "escape");
    expect_invalid("{\"a\":\"\\u004G\"}", 6, "escape");
    expect_invalid("{\"a\":\"\\u00", 6, "escape");
    expect_invalid("{\"a\":\"\\uD83D\"}", 6, "escape");
    expect_invalid("{\"a\":\"\\uD83Dx\\uDE00\"}", 6, "escape");
    expect_invalid("{\"a\":\"\\uD83D\\uD83D\"}", 6, "escape");
    expect_invalid("{\"a\":\"\\uDE00\\uD83D\"}", 6, "escape");
    expect_invalid("{\"a\":\"\\uD83D\\n\"}", 6, "escape");
    expect_invalid("{\"\\q\":1}", 2, "escape");
    expect_invalid("{\"a\":\"tab\there\"}", 9, "control");
    expect_invalid("{\"a\":\"\x1f\"}", 6, "control");
    expect_invalid("{\"a\n\":1}", 3, "control");
    expect_bytes_invalid("{\"a\":\"\0\"}", 9, 6, "control");
    expect_invalid("{\"a\":\"\xff\"}", 6, "UTF-8");
    expect_invalid("{\"a\":\"\x80\"}", 6, "UTF-8");
    expect_invalid("{\"a\":\"x\xc3\"}", 7, "UTF-8");
    expect_invalid("{\"a\":\"\xc3", 6, "UTF-8");
    expect_invalid("{\"a\":\"\xe2\x82\\n\"}", 6, "UTF-8");
    expect_invalid("{\"a\":\"\xc0\x80\"}", 6, "UTF-8");
    expect_invalid("{\"a\":\"\xed\xa0\x80\"}", 6, "UTF-8");
    expect_invalid("{\"a\":\"\xf4\x90\x80\x80\"}", 6, "UTF-8");
    expect_invalid("{\"a\":[\"\xc3\x28\"]}", 7, "UTF-8");
    expect_invalid("{\"\xc3\":1}", 2, "UTF-8");
}

static void expect_depth(unsigned depth, bool object)
{
    char line[1024] = "", *at = line;

    for (unsigned i = 0; i < depth; i++)
        at += sprintf(at, object || i == 0 ? "{\"a\":" : "[");
    at += sprintf(at, "1");
    for (unsigned i = depth; i-- > 0;)
        at += sprintf(at, object || i == 0 ? "}" : "]");
    if (depth <= PACE__JSONL_DEPTH_MAX)
        expect_valid(line);
    else
        expect_invalid(line, 5 + (PACE__JSONL_DEPTH_MAX - 1) * (object ? 5 : 1), "more than 64");
}

/* Depth is how many are open at a time, not how many there are. */
static void expect_siblings(const char *one)
{
    char line[1024] = "{\"a\":[", *at = line + strlen(line);

    for (unsigned i = 0; i < 2 * PACE__JSONL_DEPTH_MAX; i++)
        at += sprintf(at, "%s%s", i > 0 ? "," : "", one);
    strcpy(at, "]}");
    expect_valid(line);
}

static void test_depth(void **state)
{
    (void)state;
    expect_siblings("[]");
    expect_siblings("{}");
    expect_siblings("[1]");
    for (unsigned depth = 60; depth < 70; depth++) {
        expect_depth(depth, false);
        expect_depth(depth, true);
    }
}

/* Something odd at every place of strings of all lengths around those of blocks. */
static void test_odd_bytes_at_every_place(void **state)
{
    static const char *const odd[] = {"\\n",        "\\\\", "\\u00e9", "\\uD83D\\uDE00", "\u00e9", "\u20ac",
                                      "\U0001f600", "\x01", "\xff",    "\xe2\x82",       "\\x",    "\\uD83D"};
    char line[512];

    (void)state;
    for (size_t kind = 0; kind < sizeof odd / sizeof *odd; kind++) {
        for (size_t length = 0; length < 140; length += 1 + length / 70) {
            for (size_t place = 0; place <= length; place++) {
                bool valid;
                int size = snprintf(
                    line, sizeof line, "{\"a\": \"%.*s%s%.*s\", \"b\": 1}", (int)place,
                    "................................................................................."
                    "................................................................................",
                    odd[kind], (int)(length - place),
                    ",,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,"
                    ",,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,");
                const char *found = compare(line, (size_t)size, &valid);

                if (found || valid != (kind < 7))
                    fail_msg("\"%s\" at byte %zu of %zu: %s", odd[kind], place, length,
                             found ? found : "validity");
                /* Every beginning of a line is not valid. */
                if (length < 40 && place == length) {
                    for (size_t cut = 0; cut < (size_t)size; cut++) {
                        found = compare(line, cut, &valid);
                        if (found || valid)
                            fail_msg("\"%s\": the first %zu bytes: %s", line, cut, found ? found : "valid");
                    }
                }
            }
        }
    }
}

static void test_bad_field_names(void **state)
{
    static const char *const twice[] = {"a", "b", "a"}, *const empty[] = {""}, *const invalid[] = {"\xff"};
    static const char *const nine[] = {"1", "2", "3", "4", "5", "6", "7", "8", "9"};
    char longest[PACE__JSONL_NAME_MAX + 2] = "";
    const char *const one[] = {longest};
    pace__jsonl_fields made = {.count = 77};

    (void)state;
    assert_int_equal(pace__jsonl_fields_init(&made, twice, 3, NULL), PACE_USAGE);
    assert_int_equal(pace__jsonl_fields_init(&made, empty, 1, NULL), PACE_USAGE);
    assert_int_equal(pace__jsonl_fields_init(&made, invalid, 1, NULL), PACE_USAGE);
    assert_int_equal(pace__jsonl_fields_init(&made, nine, 9, NULL), PACE_USAGE);
    assert_int_equal(pace__jsonl_fields_init(&made, nine, 0, NULL), PACE_USAGE);
    memset(longest, 'n', PACE__JSONL_NAME_MAX + 1);
    assert_int_equal(pace__jsonl_fields_init(&made, one, 1, NULL), PACE_USAGE);
    assert_int_equal(made.count, 77);
    longest[PACE__JSONL_NAME_MAX] = '\0';
    assert_int_equal(pace__jsonl_fields_init(&made, one, 1, NULL), PACE_OK);
    assert_int_equal(pace__jsonl_fields_init(&made, nine, 8, NULL), PACE_OK);

    char line[512] = "{\"";

    for (int i = 0; i < PACE__JSONL_NAME_MAX; i++)
        strcat(line, i % 2 ? "n" : "\\u006e");
    strcat(line, "\":1}");
    pace__jsonl_value value;
    pace__jsonl_error error;

    assert_int_equal(pace__jsonl_fields_init(&made, one, 1, NULL), PACE_OK);
    assert_true(pace__jsonl_find(&made, line, strlen(line), &value, &error));
    assert_int_equal(value.kind, PACE__JSONL_NUMBER);
}

/* Random lines, most of them valid, some with a byte changed. */

typedef struct line_writer {
    char text[8192];
    size_t size;
    pace__random random;
} line_writer;

static uint64_t below(line_writer *line, uint64_t limit)
{
    return pace__random_below(&line->random, limit);
}

static void put(line_writer *line, const char *text)
{
    memcpy(line->text + line->size, text, strlen(text));
    line->size += strlen(text);
}

static void put_blanks(line_writer *line)
{
    static const char *const blanks[] = {"", "", "", " ", " ", "  ", "\t", "\r\n "};

    put(line, blanks[below(line, 8)]);
}

static void put_string(line_writer *line)
{
    static const char *const pieces[] = {
        "a",      "the ",       "reviewText",     "\\n", "\\\"", "\\\\", "\\u00e9", "\u00e9",
        "\u2019", "\U0001f600", "\\ud83d\\ude00", "{",   "]",    ","};
    uint64_t count = below(line, 8) ? below(line, 10) : below(line, 40);

    put(line, "\"");
    for (; count > 0; count--)
        put(line, pieces[below(line, 3) ? below(line, 3) : below(line, 14)]);
    put(line, "\"");
}

static void put_name(line_writer *line)
{
    static const char *const known[] = {"\"a\"", "\"reviewText\"", "\"overall\"", "\"b\u00e9\"",
                                        "\"\\u0061\""};

    if (below(line, 2))
        put_string(line);
    else
        put(line, known[below(line, 5)]);
    put_blanks(line);
    put(line, ":");
    put_blanks(line);
}

static void put_value(line_writer *line, unsigned depth);

static void put_elements(line_writer *line, unsigned depth, bool object)
{
    put(line, object ? "{" : "[");
    put_blanks(line);
    for (uint64_t i = below(line, depth > 1 ? 3 : 8); i > 0; i--) {
        if (object)
            put_name(line);
        put_value(line, depth);
        put_blanks(line);
        put(line, i > 1 ? "," : "");
        put_blanks(line);
    }
    put(line, object ? "}" : "]");
}

static void put_value(line_writer *line, unsigned depth)
{
    static const char *const simple[] = {"null", "true", "false", "0", "-1.5e3", "5.0", "1252800000", "123"};
    uint64_t kind = below(line, 8);

    if (kind < 3)
        put_string(line);
    else if (kind < 7 || depth > 3)
        put(line, simple[below(line, 8)]);
    else
        put_elements(line, depth + 1, below(line, 2));
}

static void test_fast_and_plain_agree_on_random_lines(void **state)
{
    static line_writer line;
    unsigned count = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 60000; seed++) {
        bool valid, damaged = seed % 4 == 0;

        line.random = (pace__random){seed};
        line.size = 0;
        put_blanks(&line);
        put_elements(&line, 1, true);
        put_blanks(&line);
        for (uint64_t i = damaged ? 1 + below(&line, 3) : 0; i > 0; i--)
            line.text[below(&line, line.size)] =
                (char)(below(&line, 2) ? "\"\\{}[],: 1e.-+\x01\xc3"[below(&line, 16)]
                                       : (int)below(&line, 256));
        const char *found = compare(line.text, line.size, &valid);

        if (found || (!damaged && !valid))
            fail_msg("seed %llu: %s", (unsigned long long)seed, found ? found : "is not valid");
        count += valid;
    }
    /* Of the damaged ones most are found out. */
    assert_in_range(count, 45000, 55000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),          cmocka_unit_test(test_names),
        cmocka_unit_test(test_strings),         cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_bad_structure),   cmocka_unit_test(test_bad_strings),
        cmocka_unit_test(test_depth),           cmocka_unit_test(test_odd_bytes_at_every_place),
        cmocka_unit_test(test_bad_field_names), cmocka_unit_test(test_fast_and_plain_agree_on_random_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
