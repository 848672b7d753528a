/* Synthetic click logs: equal bytes for any threads, valid rows in each format, a known signal. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "files/crc32c.h"
#include "gen/click_format.h"

#include "click_files.h"

#include <math.h>

#define FIELDS 40

static void test_same_bytes_for_any_threads(void **state)
{
    for (int format = PACE_GEN_CRITEO; format <= PACE_GEN_TFRECORD; format++) {
        const int64_t rows = 20001;
        pace_gen_clicks_result one, many;
        size_t size, other_size;
        char *bytes = generate(*state, format, rows, 7, 1, &size, &one);

        assert_int_equal(one.rows, rows);
        assert_int_equal(one.bytes, size);
        for (int64_t threads = 2; threads <= 5; threads += 3) {
            char *other = generate(*state, format, rows, 7, threads, &other_size, &many);

            assert_int_equal(size, other_size);
            assert_memory_equal(bytes, other, size);
            assert_true(one.best_logloss == many.best_logloss); /* to the last bit */
            assert_true(one.positive_rate == many.positive_rate);
            free(other);
        }
        free(bytes);
    }
}

static void test_fewer_rows_are_a_prefix(void **state)
{
    for (int format = PACE_GEN_CRITEO; format <= PACE_GEN_TFRECORD; format++) {
        size_t size, long_size;
        char *longer = generate(*state, format, 9000, 3, 2, &long_size, NULL);

        for (int64_t rows = 1; rows < 9000; rows = rows * 3 + 1) {
            char *bytes = generate(*state, format, rows, 3, 2, &size, NULL);

            assert_true(size < long_size);
            assert_memory_equal(bytes, longer, size);
            free(bytes);
        }
        free(longer);
    }
}

static void test_seeds_differ(void **state)
{
    size_t size, other_size;
    char *bytes = generate(*state, PACE_GEN_CRITEO, 1000, 1, 1, &size, NULL);
    char *other = generate(*state, PACE_GEN_CRITEO, 1000, 2, 1, &other_size, NULL);

    assert_true(size != other_size || memcmp(bytes, other, size) != 0);
    free(other);
    free(bytes);
}

/* Any change of these bytes is a change of every file that was ever generated: it must be meant. */
static void test_bytes_are_pinned(void **state)
{
    size_t size;
    char *bytes = generate(*state, PACE_GEN_CRITEO, 5000, 1, 1, &size, NULL);

    assert_int_equal(pace__masked_crc32c(bytes, size), 0x90633c5fu);
    free(bytes);
}

/* Cuts a line into fields in place; returns the start of the next line. */
static char *split(char *line, char *fields[FIELDS])
{
    char *end = strchr(line, '\n');

    assert_non_null(end);
    *end = '\0';
    for (int i = 0; i < FIELDS; i++) {
        fields[i] = line;
        line = strchr(line, '\t');
        assert_true((line != NULL) == (i + 1 < FIELDS));
        if (line)
            *line++ = '\0';
    }
    return end + 1;
}

static void check_integer(const char *text, int column, size_t *missing, size_t *negative)
{
    char *end, again[16];
    long value = strtol(text, &end, 10);

    if (!*text) {
        ++*missing;
        return;
    }
    assert_int_equal(*end, '\0');
    snprintf(again, sizeof again, "%ld", value);
    assert_string_equal(text, again); /* no needless zeros or signs */
    assert_in_range(value + 3, column == 1 ? 0 : 3, PACE__CLICK_INTEGER_MAX + 3);
    *negative += value < 0;
}

static void test_criteo_rows_are_valid(void **state)
{
    const size_t rows = 50000;
    pace_gen_clicks_result result;
    size_t size, positives = 0, missing[FIELDS] = {0}, negative = 0;
    char *bytes = generate(*state, PACE_GEN_CRITEO, (int64_t)rows, 11, 2, &size, &result), *next = bytes,
         *fields[FIELDS];

    for (size_t i = 0; i < rows; i++) {
        next = split(next, fields);
        assert_true(strcmp(fields[0], "0") == 0 || strcmp(fields[0], "1") == 0);
        positives += fields[0][0] == '1';
        for (int c = 0; c < PACE__CRITEO_INTEGERS; c++)
            check_integer(fields[1 + c], c, &missing[1 + c], &negative);
        for (int c = 1 + PACE__CRITEO_INTEGERS; c < FIELDS; c++) {
            size_t length = strlen(fields[c]);

            assert_true(length == 0 || length == 8);
            assert_int_equal(strspn(fields[c], "0123456789abcdef"), length);
            missing[c] += length == 0;
        }
    }
    assert_ptr_equal(next, bytes + size);
    assert_true(result.positive_rate == (double)positives / (double)rows);
    assert_in_range(size / rows, 230, 250);
    assert_in_range(negative, rows / 20, rows / 5);
    size_t gapless = 0, gappy = 0;

    for (int c = 1; c < FIELDS; c++) {
        assert_true(missing[c] < rows * 46 / 100);
        gapless += missing[c] == 0;
        gappy += missing[c] > rows * 35 / 100;
    }
    assert_true(gapless >= 10 && gappy >= 5);
    free(bytes);
}

static void test_signal_is_planted(void **state)
{
    for (int64_t seed = 1; seed <= 3; seed++) {
        pace_gen_clicks_result result;
        size_t size;

        free(generate(*state, PACE_GEN_CRITEO, 50000, seed, 2, &size, &result));
        assert_true(result.positive_rate > 0.24 && result.positive_rate < 0.27);
        assert_true(result.best_logloss > 0.46 && result.best_logloss < 0.50);
        assert_true(result.null_logloss - result.best_logloss > 0.06);
        assert_true(result.seconds > 0);
    }
}

/* The planted probabilities are probabilities: of rows with a given one, that share is positive. */
static void test_labels_follow_the_log_odds(void **state)
{
    enum { BINS = 12, ROWS = 200000 };
    double expected[BINS] = {0}, variance[BINS] = {0}, seen[BINS] = {0};
    pace__click_model *model = pace__click_model_create();
    pace__random random = pace__random_at(5, 0);

    (void)state;
    assert_non_null(model);
    for (int i = 0; i < ROWS; i++) {
        pace__click_row row;

        pace__click_draw(model, &random, &row);
        double p = 1 / (1 + exp(-row.log_odds));
        int bin = (int)fmin(fmax((row.log_odds + 4) * 2, 0), BINS - 1);

        assert_true(fabs(row.loss + log(row.clicked ? p : 1 - p)) < 1e-11);
        expected[bin] += p;
        variance[bin] += p * (1 - p);
        seen[bin] += row.clicked;
    }
    for (int i = 0; i < BINS; i++)
        assert_true(fabs(seen[i] - expected[i]) < 5 * sqrt(variance[i]) + 1);
    pace__click_model_free(model);
}

/* Files with different seeds share the population: categories have the same rates in both. */
static void test_population_has_no_seed(void **state)
{
    enum { ROWS = 100000 };
    double sum[2][4] = {{0}}, count[2][4] = {{0}};
    pace__click_model *model = pace__click_model_create();

    (void)state;
    assert_non_null(model);
    for (int seed = 0; seed < 2; seed++) {
        pace__random random = pace__random_at((uint64_t)seed + 100, 0);

        for (int i = 0; i < ROWS; i++) {
            pace__click_row row;

            pace__click_draw(model, &random, &row);
            unsigned group = row.ranks[16] < 3 ? row.ranks[16] : 3;

            sum[seed][group] += row.clicked;
            count[seed][group]++;
        }
    }
    for (int group = 0; group < 4; group++) {
        double a = sum[0][group] / count[0][group], b = sum[1][group] / count[1][group];

        assert_true(fabs(a - b) < 5 * sqrt(0.25 * (1 / count[0][group] + 1 / count[1][group])));
    }
    pace__click_model_free(model);
}

static void test_ranks_stay_below_cardinalities(void **state)
{
    enum { ROWS = 200000 };
    uint32_t largest[PACE__CRITEO_CATEGORIES] = {0}, sum = 0;
    pace__click_model *model = pace__click_model_create();
    pace__random random = pace__random_at(9, 0);

    (void)state;
    assert_non_null(model);
    for (int i = 0; i < ROWS; i++) {
        pace__click_row row;

        pace__click_draw(model, &random, &row);
        for (unsigned c = 0; c < PACE__CRITEO_CATEGORIES; c++) {
            if (row.ranks[c] != PACE__MISSING_RANK && row.ranks[c] > largest[c])
                largest[c] = row.ranks[c];
        }
    }
    for (unsigned c = 0; c < PACE__CRITEO_CATEGORIES; c++) {
        assert_int_equal(pace__click_offsets(model)[c], sum);
        assert_true(largest[c] < pace__click_cardinality(c));
        assert_true(largest[c] >= pace__click_cardinality(c) / 2); /* the far tail is reached */
        sum += pace__click_cardinality(c);
    }
    assert_int_equal(sum, 33762577);
    pace__click_model_free(model);
}

/* Two integer columns that the hidden variable pulls are correlated, one that it leaves alone is not. */
static void test_columns_are_correlated(void **state)
{
    enum { ROWS = 50000 };
    double product[2] = {0}, square[3] = {0}, mean[3] = {0};
    static const int columns[3] = {4, 6, 7}; /* I5 and I7 are pulled apart, I8 is left alone */
    pace__click_model *model = pace__click_model_create();
    pace__random random = pace__random_at(4, 0);

    (void)state;
    assert_non_null(model);
    for (int i = 0; i < ROWS; i++) {
        pace__click_row row;
        double x[3];

        pace__click_draw(model, &random, &row);
        for (int k = 0; k < 3; k++) {
            x[k] = row.logs[columns[k]];
            mean[k] += x[k] / ROWS;
            square[k] += x[k] * x[k] / ROWS;
        }
        product[0] += x[0] * x[1] / ROWS;
        product[1] += x[0] * x[2] / ROWS;
    }
    for (int k = 0; k < 3; k++)
        square[k] = sqrt(square[k] - mean[k] * mean[k]);
    assert_true((product[0] - mean[0] * mean[1]) / (square[0] * square[1]) < -0.03);
    assert_true(fabs((product[1] - mean[0] * mean[2]) / (square[0] * square[2])) < 0.025);
    pace__click_model_free(model);
}

/* One row in the numbered formats. */
typedef struct numbered_row {
    int label; /* 0 or 1 */
    unsigned count;
    uint64_t ids[FIELDS];
    float values[FIELDS];
} numbered_row;

static char *read_svmlight(char *line, numbered_row *row)
{
    char *at = line + 1;

    row->label = line[0] - '0';
    for (row->count = 0; *at == ' '; row->count++) {
        assert_true(row->count < FIELDS);
        row->ids[row->count] = strtoull(at + 1, &at, 10);
        assert_int_equal(*at, ':');
        row->values[row->count] = strtof(at + 1, &at);
    }
    assert_int_equal(*at, '\n');
    return at + 1;
}

static uint64_t read_varint(const unsigned char **at)
{
    uint64_t number = 0;

    for (unsigned shift = 0;; shift += 7) {
        number |= (uint64_t)(**at & 0x7f) << shift;
        if (!(*(*at)++ & 0x80))
            return number;
    }
}

/* Enters a field that must have that number and a length; returns its end. */
static const unsigned char *enter(const unsigned char **at, unsigned number, const unsigned char *limit)
{
    assert_int_equal(*(*at)++, number << 3 | 2);
    uint64_t size = read_varint(at);

    assert_true(size <= (size_t)(limit - *at));
    return *at + size;
}

static void read_feature(const unsigned char *at, const unsigned char *end, numbered_row *row)
{
    char name[6] = {0};
    const unsigned char *name_end = enter(&at, 1, end);

    assert_int_equal(name_end - at, 5);
    memcpy(name, at, 5);
    at = name_end;
    assert_ptr_equal(enter(&at, 2, end), end);
    assert_ptr_equal(enter(&at, strcmp(name, "value") == 0 ? 2 : 3, end), end);
    assert_ptr_equal(enter(&at, 1, end), end);
    if (strcmp(name, "label") == 0) {
        int64_t label = (int64_t)read_varint(&at);

        assert_ptr_equal(at, end);
        assert_true(label == -1 || label == 1);
        row->label = label == 1;
    } else if (strcmp(name, "index") == 0) {
        for (row->count = 0; at < end; row->count++)
            row->ids[row->count] = read_varint(&at);
    } else {
        assert_string_equal(name, "value");
        assert_true((size_t)(end - at) <= sizeof row->values);
        memcpy(row->values, at, (size_t)(end - at));
        assert_int_equal((size_t)(end - at) / sizeof(float), row->count);
    }
}

/* Checks both checksums on the way. */
static const unsigned char *read_tfrecord(const unsigned char *at, numbered_row *row)
{
    uint64_t size;
    uint32_t crc;

    memcpy(&size, at, sizeof size);
    memcpy(&crc, at + 8, sizeof crc);
    assert_int_equal(crc, pace__masked_crc32c(at, 8));
    assert_true(size < PACE__CLICK_BYTES_MAX);
    at += 12;
    const unsigned char *end = at + size;

    memcpy(&crc, end, sizeof crc);
    assert_int_equal(crc, pace__masked_crc32c(at, size));
    assert_ptr_equal(enter(&at, 1, end), end);
    for (int i = 0; i < 3; i++) {
        const unsigned char *entry_end = enter(&at, 1, end);

        read_feature(at, entry_end, row);
        at = entry_end;
    }
    assert_ptr_equal(at, end);
    return end + sizeof crc;
}

/* What the numbered formats must hold for a Criteo row; only ranks cannot be told from texts. */
static void compare_with_criteo(char *fields[FIELDS], const numbered_row *row)
{
    unsigned at = 0;
    uint64_t offset = PACE__CLICK_FIRST_CATEGORY;

    assert_int_equal(row->label, fields[0][0] - '0');
    for (unsigned c = 0; c < PACE__CRITEO_INTEGERS; c++) {
        if (!*fields[1 + c] || *fields[1 + c] == '-')
            continue;
        assert_int_equal(row->ids[at], c + 1);
        assert_true(fabs(row->values[at++] - log1p(atof(fields[1 + c]))) < 0.51e-4);
    }
    for (unsigned c = 0; c < PACE__CRITEO_CATEGORIES; c++) {
        if (*fields[1 + PACE__CRITEO_INTEGERS + c]) {
            assert_in_range(row->ids[at], offset, offset + pace__click_cardinality(c) - 1);
            assert_true(row->values[at++] == 1);
        }
        offset += pace__click_cardinality(c);
    }
    assert_int_equal(at, row->count);
}

static void test_formats_hold_the_same_rows(void **state)
{
    const int rows = 5000;
    size_t size[3];
    char *bytes[3], *fields[FIELDS];

    for (int format = 0; format < 3; format++)
        bytes[format] = generate(*state, format, rows, 21, 2, &size[format], NULL);
    char *criteo = bytes[0], *svmlight = bytes[1];
    const unsigned char *tfrecord = (const unsigned char *)bytes[2];

    for (int i = 0; i < rows; i++) {
        numbered_row text, record;

        criteo = split(criteo, fields);
        svmlight = read_svmlight(svmlight, &text);
        tfrecord = read_tfrecord(tfrecord, &record);
        compare_with_criteo(fields, &text);
        assert_int_equal(text.label, record.label);
        assert_int_equal(text.count, record.count);
        assert_memory_equal(text.ids, record.ids, text.count * sizeof *text.ids);
        assert_memory_equal(text.values, record.values, text.count * sizeof *text.values);
    }
    assert_ptr_equal(svmlight, bytes[1] + size[1]);
    assert_ptr_equal(tfrecord, (unsigned char *)bytes[2] + size[2]);
    for (int format = 0; format < 3; format++)
        free(bytes[format]);
}

typedef struct pairing {
    uint64_t id;
    char text[9];
} pairing;

static int by_id(const void *a, const void *b)
{
    uint64_t x = ((const pairing *)a)->id, y = ((const pairing *)b)->id;

    return (x > y) - (x < y);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const pairing *)a)->text, ((const pairing *)b)->text);
}

/* Equal ids (column and rank) have equal texts, different ids different texts. */
static void test_category_texts_are_one_to_one(void **state)
{
    const int rows = 5000;
    size_t size, count = 0;
    char *criteo = generate(*state, PACE_GEN_CRITEO, rows, 8, 1, &size, NULL), *line = criteo,
         *fields[FIELDS];
    char *svmlight = generate(*state, PACE_GEN_SVMLIGHT, rows, 8, 1, &size, NULL), *other = svmlight;
    pairing *pairs = calloc((size_t)rows * PACE__CRITEO_CATEGORIES, sizeof *pairs);

    assert_non_null(pairs);
    for (int i = 0; i < rows; i++) {
        numbered_row row;
        unsigned at = 0;

        line = split(line, fields);
        other = read_svmlight(other, &row);
        while (row.ids[at] < PACE__CLICK_FIRST_CATEGORY)
            at++;
        for (int c = 1 + PACE__CRITEO_INTEGERS; c < FIELDS; c++) {
            if (!*fields[c])
                continue;
            pairs[count].id = row.ids[at++];
            strcpy(pairs[count++].text, fields[c]);
        }
    }
    qsort(pairs, count, sizeof *pairs, by_id);
    for (size_t i = 1; i < count; i++)
        assert_int_equal(pairs[i - 1].id == pairs[i].id, by_text(&pairs[i - 1], &pairs[i]) == 0);
    qsort(pairs, count, sizeof *pairs, by_text);
    for (size_t i = 1; i < count; i++)
        assert_int_equal(pairs[i - 1].id == pairs[i].id, by_text(&pairs[i - 1], &pairs[i]) == 0);
    free(pairs);
    free(svmlight);
    free(criteo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_same_bytes_for_any_threads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_fewer_rows_are_a_prefix, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_seeds_differ, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bytes_are_pinned, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_criteo_rows_are_valid, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_signal_is_planted, set_up, tear_down),
        cmocka_unit_test(test_labels_follow_the_log_odds),
        cmocka_unit_test(test_population_has_no_seed),
        cmocka_unit_test(test_ranks_stay_below_cardinalities),
        cmocka_unit_test(test_columns_are_correlated),
        cmocka_unit_test_setup_teardown(test_formats_hold_the_same_rows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_category_texts_are_one_to_one, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
