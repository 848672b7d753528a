/* The test vectors of docs/hashing.md, through the parsers: what other programs rely on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/formats/criteo.h"

#include "parsed.h"
#include "support.h"

#include <inttypes.h>
#include <paceline/prep.h>

#define TEXT_MAX 1000

/* A Criteo row whose only field is that of the column. */
static size_t make_row(unsigned column, const char *text, char *row)
{
    size_t size = 0;

    row[size++] = '0';
    for (unsigned c = 0; c < PACE__CRITEO_COLUMNS; c++) {
        row[size++] = '\t';
        if (c == column) {
            memcpy(row + size, text, strlen(text));
            size += strlen(text);
        }
    }
    row[size++] = '\n';
    return size;
}

static unsigned column_named(const char *name)
{
    char each[4];

    for (unsigned c = 0; c < PACE__CRITEO_COLUMNS; c++) {
        pace__criteo_column_name(c, each);
        if (strcmp(each, name) == 0)
            return c;
    }
    fail_msg("no column %s", name);
    return 0;
}

static void assert_field(const pace__encoding *encoding, pace__parse_fn *parse, const char *column,
                         const char *text, uint64_t id, float value)
{
    char row[TEXT_MAX + PACE__CRITEO_COLUMNS + 4], name[PACE__FEATURE_NAME_BYTES],
        wanted[PACE__FEATURE_NAME_BYTES];
    unsigned at = column_named(column);
    size_t size = make_row(at, text, row);
    parsed_text parsed;

    parsed_run(&(parse_case){.parse = parse, .encoding = encoding, .text = row, .size = size}, &parsed);
    assert_int_equal(parsed.rows, 1);
    if (parsed.ids[at] != id)
        fail_msg("%s \"%s\" is %" PRIu64 ", not %" PRIu64, column, text, parsed.ids[at], id);
    if (encoding->numeric == PACE_NUMERIC_VALUES)
        assert_float_equal(parsed.values[at], value, 1e-6 * (double)value);
    pace__feature_name(encoding, id, name);
    snprintf(wanted, sizeof wanted, "%s+%" PRIu64, column, id - encoding->column_base[at]);
    assert_string_equal(name, wanted);
    parsed_release(&parsed);
}

/* "33762578 bins C1 "68fd1e64" 8103234 1" */
static void check_field(const char *line)
{
    const char *open = strchr(line, '"'), *close = strrchr(line, '"');
    char numeric[8], column[4], text[TEXT_MAX] = "";
    uint64_t features, id;
    float value;
    pace__encoding encoding;

    assert_true(open && close > open && close - open <= TEXT_MAX);
    memcpy(text, open + 1, (size_t)(close - open) - 1);
    assert_int_equal(sscanf(line, "%" SCNu64 " %7s %3s", &features, numeric, column), 3);
    assert_int_equal(sscanf(close + 1, "%" SCNu64 " %f", &id, &value), 2);
    int kind = strcmp(numeric, "values") == 0 ? PACE_NUMERIC_VALUES : PACE_NUMERIC_BINS;

    assert_ok(pace__encoding_criteo(features, kind, &encoding, &said_log));
    assert_field(&encoding, pace__criteo_plain.parse, column, text, id, value);
    assert_field(&encoding, pace__parser_of(PACE_FORMAT_CRITEO), column, text, id, value);
}

/* "1000 12345 133" */
static void check_number(const char *line)
{
    uint64_t features, number, id;
    char row[64];
    parsed_text parsed;

    assert_int_equal(sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64, &features, &number, &id), 3);
    pace__encoding encoding = {.kind = PACE__NUMBERED, .hashed = true, .features = features};

    snprintf(row, sizeof row, "1 %" PRIu64 ":0.5\n", number);
    parsed_run(&(parse_case){.parse = pace__parser_of(PACE_FORMAT_SVMLIGHT),
                             .encoding = &encoding,
                             .text = row,
                             .size = strlen(row)},
               &parsed);
    assert_int_equal(parsed.rows, 1);
    assert_int_equal(parsed.ids[0], id);
    assert_float_equal(parsed.values[0], 0.5, 0);
    assert_int_equal(pace__number_hash(number, features), id); /* as TFRecord's */
    parsed_release(&parsed);
}

/* The lines of the block that begins so. */
static unsigned check_block(const char *begin, void (*check)(const char *line))
{
    char *document, *rest;
    unsigned count = 0;
    size_t size;

    assert_ok(pace__read_file(HASHING_DOCUMENT, 1 << 20, &document, &size, &said_log));
    char *block = strstr(document, begin), *end = block ? strstr(block + 4, "```") : NULL;

    assert_non_null(end);
    *end = '\0';
    strtok_r(block, "\n", &rest);
    for (char *line; (line = strtok_r(NULL, "\n", &rest)); count++)
        check(line);
    free(document);
    return count;
}

static void fields_of_criteo(void **state)
{
    (void)state;
    assert_true(check_block("```criteo\n", check_field) >= 60);
}

static void numbered_ids(void **state)
{
    (void)state;
    assert_true(check_block("```numbered\n", check_number) >= 30);
}

static void names_of_features(void **state)
{
    pace__encoding criteo, numbered = {.kind = PACE__NUMBERED, .features = 100};
    char name[PACE__FEATURE_NAME_BYTES];

    (void)state;
    assert_ok(pace__encoding_criteo(PACE__FEATURES_MAX, PACE_NUMERIC_BINS, &criteo, &said_log));
    pace__feature_name(&criteo, 0, name);
    assert_string_equal(name, "I1+0");
    pace__feature_name(&criteo, criteo.column_base[14] - 1, name);
    assert_int_equal(strncmp(name, "C1+", 3), 0);
    pace__feature_name(&criteo, criteo.column_base[14], name);
    assert_string_equal(name, "C2+0");
    pace__unseen_name(&criteo, 38, name);
    assert_string_equal(name, "C26+?");
    pace__feature_name(&numbered, 99, name);
    assert_string_equal(name, "99");
    pace__unseen_name(&numbered, 5, name);
    assert_string_equal(name, "?");
}

/* Of columns of tables, whose names may be longer than there is room for: no character of them is cut in two. */
static void names_of_columns(void **state)
{
    static pace__encoding encoding;
    static pace__sheet sheet;
    char name[PACE__FEATURE_NAME_BYTES], longest[400];

    (void)state;
    for (size_t front = 0; front < 3; front++) {
        size_t size = front;

        memset(longest, 'x', sizeof longest);
        for (; size + 4 < sizeof longest; size += 3)
            memcpy(longest + size, "\xe2\x82\xac", 3);
        longest[size] = '\0';
        pace__sheet_column columns[] = {{"home town", PACE__COLUMN_CATEGORY},
                                        {longest, PACE__COLUMN_CATEGORY},
                                        {"sold", PACE__COLUMN_LABEL}};

        assert_ok(pace__sheet_make(columns, 3, "table", &sheet, &said_log));
        assert_ok(pace__encoding_sheet(1000, PACE_NUMERIC_BINS, &sheet, &encoding, &said_log));
        for (unsigned c = 0; c < 2; c++) {
            bool is_long = pace__sheet_name(&sheet, c)[0] != 'h';

            pace__feature_name(&encoding, encoding.column_base[c] + 7, name);
            if (!is_long)
                assert_string_equal(name, "home town+7");
            size = strlen(name);
            assert_true(!is_long || (size > 90 && memcmp(name, longest, size - 2) == 0));
            assert_string_equal(name + size - 2, "+7");
            assert_true(!is_long || (size - 2 - front) % 3 == 0);
            pace__unseen_name(&encoding, c, name);
            assert_string_equal(name + size - 2, "+?");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_of_criteo),
        cmocka_unit_test(numbered_ids),
        cmocka_unit_test(names_of_features),
        cmocka_unit_test(names_of_columns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
