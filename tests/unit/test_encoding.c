#include "base/random.h"
#include "data/formats/encoding.h"

#include <math.h>
#include <paceline/prep.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct captured_log {
    int count;
    char text[PACE_LOG_TEXT_MAX];
} captured_log;

static void capture(void *user, pace_level level, const char *text)
{
    captured_log *captured = user;

    (void)level;
    captured->count++;
    snprintf(captured->text, sizeof captured->text, "%s", text);
}

static void check_ranges(uint64_t features, int numeric)
{
    pace__encoding encoding;

    assert_int_equal(pace__encoding_criteo(features, numeric, &encoding, NULL), PACE_OK);
    assert_int_equal(encoding.kind, PACE__CRITEO);
    assert_int_equal(encoding.features, features);
    assert_int_equal(encoding.column_base[0], 0);
    assert_int_equal(encoding.column_base[PACE__CRITEO_COLUMNS], features);
    for (unsigned c = 0; c < PACE__CRITEO_COLUMNS; c++)
        assert_true(encoding.column_base[c] < encoding.column_base[c + 1]);
    for (unsigned c = 0; c < PACE__CRITEO_INTEGERS; c++) {
        uint64_t size = encoding.column_base[c + 1] - encoding.column_base[c];

        assert_true(numeric == PACE_NUMERIC_VALUES ? size == 2 : size <= PACE__BINS);
        if (numeric == PACE_NUMERIC_BINS && features >= 20000)
            assert_int_equal(size, PACE__BINS);
    }
}

static void test_ranges_cover_the_space(void **state)
{
    static const uint64_t sizes[] = {
        64, 65, 100, 1000, 4096, 1000003, PACE__FEATURES_DEFAULT, UINT64_C(1) << 32, PACE__FEATURES_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_ranges(sizes[i], PACE_NUMERIC_BINS);
        check_ranges(sizes[i], PACE_NUMERIC_VALUES);
    }
}

static void test_small_columns_get_room(void **state)
{
    pace__encoding encoding;

    (void)state;
    pace__encoding_criteo(PACE__FEATURES_DEFAULT, PACE_NUMERIC_BINS, &encoding, NULL);
    const uint64_t *base = &encoding.column_base[PACE__CRITEO_INTEGERS];

    /* C1 has 1,460 categories, C9 has 3, C3 has 10,131,227. */
    assert_true(base[1] - base[0] > 40 * 1460);
    assert_true(base[9] - base[8] > 1000 * 3);
    assert_true(base[3] - base[2] > 5000000);
}

static void test_space_limits(void **state)
{
    captured_log captured = {0};
    pace_log log = {capture, &captured};
    pace__encoding encoding;

    (void)state;
    assert_int_equal(pace__encoding_criteo(63, PACE_NUMERIC_BINS, &encoding, &log), PACE_USAGE);
    assert_non_null(strstr(captured.text, "64"));
    assert_int_equal(pace__encoding_criteo(PACE__FEATURES_MAX + 1, PACE_NUMERIC_BINS, &encoding, &log),
                     PACE_USAGE);
    assert_int_equal(captured.count, 2);
}

static void test_column_names(void **state)
{
    static const struct {
        unsigned column;
        const char *name;
    } cases[] = {{0, "I1"}, {12, "I13"}, {13, "C1"}, {21, "C9"}, {38, "C26"}};
    char name[4];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pace__criteo_column_name(cases[i].column, name);
        assert_string_equal(name, cases[i].name);
    }
}

static void test_small_integers_have_their_own_bins(void **state)
{
    static const int64_t low[] = {INT64_MIN, -1000, -4, -3};

    (void)state;
    for (size_t i = 0; i < sizeof low / sizeof *low; i++)
        assert_int_equal(pace__integer_bin(low[i]), 1);
    for (int64_t v = -2; v <= 3; v++)
        assert_int_equal(pace__integer_bin(v), v + 4);
    assert_true(pace__integer_bin(INT64_MAX) < PACE__BINS);
    assert_int_equal(pace__integer_bin(INT64_MAX), pace__integer_bin(10000000));
}

/* Cells are at most 1/32 wide, so a bin lies within what the logarithm gives at both ends of that. */
static void test_bins_follow_the_squared_logarithm(void **state)
{
    uint32_t before = 0;

    (void)state;
    for (int64_t v = -10; v < 7000000; v += v < 100000 ? 1 : 97) {
        uint32_t bin = pace__integer_bin(v);

        assert_true(bin >= before && bin > 0 && bin < PACE__BINS);
        before = bin;
        if (v <= 2)
            continue;
        double upper = log((double)v), lower = v <= 60 ? upper : log((double)v * 31 / 32 - 2);

        assert_true(bin <= 6 + (uint32_t)(upper * upper));
        assert_true(bin >= 6 + (uint32_t)(lower * lower));
    }
    assert_int_equal(before, 254);
}

static void test_integer_values(void **state)
{
    (void)state;
    assert_true(pace__integer_value(INT64_MIN) == 0);
    assert_true(pace__integer_value(-1) == 0);
    assert_true(pace__integer_value(0) == 0);
    for (int64_t v = 1; v > 0 && v < INT64_MAX / 3; v = v * 3 + 1) {
        double expected = 0.25 * log1p((double)v);

        assert_true(fabs(pace__integer_value(v) - expected) < 1e-6 * expected);
    }
    assert_true(pace__integer_value(INT64_MAX) > 10);
}

static void test_hash_depends_on_every_byte(void **state)
{
    char text[20] = "68fd1e64abcdefgh";

    (void)state;
    for (uint32_t size = 1; size <= 16; size++) {
        uint64_t hash = pace__category_hash(text, size);

        assert_int_equal(hash, pace__category_hash(text, size));
        assert_true(hash != pace__category_hash(text, size - 1));
        for (uint32_t i = 0; i < size; i++) {
            text[i] ^= 1;
            assert_true(pace__category_hash(text, size) != hash);
            text[i] ^= 1;
        }
        text[size] ^= 1; /* behind the text: no difference */
        assert_int_equal(hash, pace__category_hash(text, size));
        text[size] ^= 1;
    }
}

/* The variance of the counts over `places`, in units of what independent throws would have. */
static double spread(const char *format, unsigned texts, unsigned places)
{
    unsigned *counts = calloc(places, sizeof *counts);
    double mean = (double)texts / places, sum = 0;
    char text[32];

    assert_non_null(counts);
    for (unsigned i = 0; i < texts; i++) {
        int size = snprintf(text, sizeof text, format, i);

        counts[pace__scale_to(pace__category_hash(text, (uint32_t)size), places)]++;
    }
    for (unsigned i = 0; i < places; i++)
        sum += (counts[i] - mean) * (counts[i] - mean);
    free(counts);
    return sum / (mean * places);
}

static void test_hash_spreads_evenly(void **state)
{
    static const char *const formats[] = {"%08x", "%x", "%u", "%07d1", "ab%06x", "%08x00000000", "item-%d"};

    (void)state;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        /* Regular texts may fall more evenly than by chance, but not clearly less. */
        assert_true(spread(formats[i], 200000, 1000) < 1.3);
        assert_true(spread(formats[i], 200000, 65536) < 1.05);
        assert_true(spread(formats[i], 200000, 1000003) < 1.05);
    }
}

static void test_number_hash(void **state)
{
    unsigned counts[100] = {0};

    (void)state;
    for (uint64_t id = 0; id < 100000; id++) {
        uint64_t place = pace__number_hash(id, 100);

        assert_true(place < 100);
        counts[place]++;
    }
    for (unsigned i = 0; i < 100; i++)
        assert_in_range(counts[i], 800, 1200);
}

static void check_round_trip(const pace__encoding *encoding, const char *expected)
{
    char *json = pace__encoding_to_json(encoding);
    pace__encoding read;

    assert_non_null(json);
    assert_string_equal(json, expected);
    assert_int_equal(pace__encoding_from_json(json, "here", &read, NULL), PACE_OK);
    assert_int_equal(read.kind, encoding->kind);
    assert_int_equal(read.hashed, encoding->hashed);
    assert_int_equal(read.numeric, encoding->numeric);
    assert_int_equal(read.features, encoding->features);
    assert_memory_equal(read.column_base, encoding->column_base, sizeof read.column_base);
    assert_int_equal(read.length, encoding->length);
    assert_int_equal(read.truncate, encoding->truncate);
    assert_int_equal(read.pad_front, encoding->pad_front);
    assert_true(read.vocabulary == encoding->vocabulary);
    free(json);
}

static const pace__encoding text_encoding = {.kind = PACE__TEXT,
                                             .features = 1003,
                                             .length = 200,
                                             .truncate = PACE_TRUNCATE_BOTH,
                                             .pad_front = true,
                                             .vocabulary = UINT64_C(0x00f0123456789abc)};

static const pace__encoding image_encoding = {.kind = PACE__IMAGE,
                                              .height = 160,
                                              .width = 120,
                                              .channels = 3,
                                              .fit = PACE_FIT_STRETCH,
                                              .classes = 10,
                                              .class_names = UINT64_C(0x00f0123456789abc)};

static pace__encoding features_encoding(void)
{
    pace__encoding encoding = image_encoding;

    encoding.kind = PACE__FEATURES;
    encoding.features = 1024;
    encoding.origin = UINT64_C(0x0e0e0e0e0e0e0e0e);
    return encoding;
}

static void test_json_round_trip(void **state)
{
    pace__encoding encoding;

    (void)state;
    pace__encoding_criteo(1000000, PACE_NUMERIC_BINS, &encoding, NULL);
    check_round_trip(&encoding,
                     "{\"kind\":\"criteo\",\"features\":1000000,\"numeric\":\"bins\",\"scheme\":1}");
    pace__encoding_criteo(PACE__FEATURES_MAX, PACE_NUMERIC_VALUES, &encoding, NULL);
    check_round_trip(
        &encoding, "{\"kind\":\"criteo\",\"features\":9007199254740992,\"numeric\":\"values\",\"scheme\":1}");
    encoding = (pace__encoding){.kind = PACE__NUMBERED};
    check_round_trip(&encoding, "{\"kind\":\"numbered\",\"hashed\":false,\"features\":0}");
    encoding = (pace__encoding){.kind = PACE__NUMBERED, .hashed = true, .features = 77};
    check_round_trip(&encoding, "{\"kind\":\"numbered\",\"hashed\":true,\"features\":77}");
    encoding = text_encoding;
    check_round_trip(&encoding, "{\"kind\":\"text\",\"features\":1003,\"length\":200,\"truncate\":\"both\","
                                "\"pad\":\"front\",\"vocabulary\":\"00f0123456789abc\",\"scheme\":1}");
    encoding.pad_front = false;
    encoding.truncate = PACE_TRUNCATE_TAIL;
    encoding.vocabulary = UINT64_MAX;
    encoding.length = PACE__TEXT_LENGTH_MAX;
    encoding.features = 3; /* no words at all */
    check_round_trip(&encoding, "{\"kind\":\"text\",\"features\":3,\"length\":65536,\"truncate\":\"tail\","
                                "\"pad\":\"end\",\"vocabulary\":\"ffffffffffffffff\",\"scheme\":1}");
    encoding = image_encoding;
    check_round_trip(&encoding, "{\"kind\":\"image\",\"height\":160,\"width\":120,\"channels\":3,"
                                "\"fit\":\"stretch\",\"classes\":10,\"class_names\":\"00f0123456789abc\","
                                "\"scheme\":1}");
    assert_int_equal(pace__encoding_columns(&encoding), 57600);
    encoding = features_encoding();
    check_round_trip(&encoding, "{\"kind\":\"features\",\"features\":1024,\"origin\":\"0e0e0e0e0e0e0e0e\","
                                "\"height\":160,\"width\":120,\"channels\":3,\"fit\":\"stretch\","
                                "\"classes\":10,\"class_names\":\"00f0123456789abc\",\"scheme\":1}");
    assert_int_equal(pace__encoding_columns(&encoding), 1024);
}

static void test_json_faults(void **state)
{
    static const struct {
        const char *json, *reason;
    } cases[] = {
        {"", "kind"},
        {"[]", "kind"},
        {"{\"kind\":\"criteo\"", "kind"},
        {"{\"kind\":7}", "kind"},
        {"{\"kind\":\"numbered\",\"hashed\":false,\"features\":1} x", "kind"},
        {"{\"kind\":\"images\"}", "newer paceline"},
        {"{\"kind\":\"criteo\",\"features\":1000,\"numeric\":\"bins\"}", "scheme"},
        {"{\"kind\":\"criteo\",\"features\":1000,\"numeric\":\"bins\",\"scheme\":0}", "scheme"},
        {"{\"kind\":\"criteo\",\"features\":1000,\"numeric\":\"bins\",\"scheme\":2}", "newer paceline"},
        {"{\"kind\":\"criteo\",\"features\":1000,\"numeric\":\"words\",\"scheme\":1}", "numeric"},
        {"{\"kind\":\"criteo\",\"features\":1000,\"scheme\":1}", "numeric"},
        {"{\"kind\":\"criteo\",\"features\":63,\"numeric\":\"bins\",\"scheme\":1}", "features"},
        {"{\"kind\":\"criteo\",\"features\":1e17,\"numeric\":\"bins\",\"scheme\":1}", "features"},
        {"{\"kind\":\"criteo\",\"features\":\"99\",\"numeric\":\"bins\",\"scheme\":1}", "features"},
        {"{\"kind\":\"criteo\",\"numeric\":\"bins\",\"scheme\":1}", "features"},
        {"{\"kind\":\"numbered\",\"features\":5}", "hashed"},
        {"{\"kind\":\"numbered\",\"hashed\":1,\"features\":5}", "hashed"},
        {"{\"kind\":\"numbered\",\"hashed\":true,\"features\":0}", "features"},
        {"{\"kind\":\"numbered\",\"hashed\":false,\"features\":-1}", "features"},
        {"{\"kind\":\"numbered\",\"hashed\":false,\"features\":1.5}", "features"},
        {"{\"kind\":\"numbered\",\"hashed\":false,\"features\":5,\"scheme\":9}", "newer paceline"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        captured_log captured = {0};
        pace_log log = {capture, &captured};
        pace__encoding encoding;

        memset(&encoding, 0x5a, sizeof encoding);
        pace__encoding untouched = encoding;

        assert_int_equal(pace__encoding_from_json(cases[i].json, "set/part-00000.h5", &encoding, &log),
                         PACE_BAD_DATA);
        assert_int_equal(captured.count, 1);
        assert_non_null(strstr(captured.text, "set/part-00000.h5"));
        assert_non_null(strstr(captured.text, cases[i].reason));
        assert_memory_equal(&encoding, &untouched, sizeof encoding);
    }
}

/* An encoding with one member replaced. */
static void refuse_changed(const pace__encoding *valid, const char *from, const char *to, const char *reason)
{
    char *whole = pace__encoding_to_json(valid), json[512];
    const char *at = strstr(whole, from);
    captured_log captured = {0};
    pace_log log = {capture, &captured};
    pace__encoding encoding;

    assert_non_null(at);
    snprintf(json, sizeof json, "%.*s%s%s", (int)(at - whole), whole, to, at + strlen(from));
    assert_int_equal(pace__encoding_from_json(json, "here", &encoding, &log), PACE_BAD_DATA);
    assert_int_equal(captured.count, 1);
    assert_non_null(strstr(captured.text, reason));
    free(whole);
}

static void refuse_text(const char *from, const char *to, const char *reason)
{
    refuse_changed(&text_encoding, from, to, reason);
}

static void test_image_faults(void **state)
{
    static const char *const cases[][3] = {
        {"160", "0", "height"},
        {"160", "4097", "height"},
        {"120", "0", "width"},
        {"120", "1e9", "width"},
        {"\"channels\":3", "\"channels\":2", "channels"},
        {"\"channels\":3", "\"channels\":4", "channels"},
        {"\"channels\":3", "\"channels\":0", "channels"},
        {"stretch", "shrink", "fit"},
        {"\"classes\":10", "\"classes\":1", "classes"},
        {"\"classes\":10", "\"classes\":65536", "classes"},
        {"00f0", "0f0", "class_names"},
        {"\"scheme\":1", "\"scheme\":2", "newer paceline"},
        {"\"scheme\":1", "\"other\":1", "scheme"},
    };
    pace__encoding features = features_encoding();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        refuse_changed(&image_encoding, cases[i][0], cases[i][1], cases[i][2]);
        refuse_changed(&features, cases[i][0], cases[i][1], cases[i][2]);
    }
    refuse_changed(&features, "1024", "0", "features");
    refuse_changed(&features, "1024", "1048577", "features");
    refuse_changed(&features, "0e0e", "0e0", "origin");
}

static void test_text_faults(void **state)
{
    (void)state;
    refuse_text("1003", "2", "features");
    refuse_text("1003", "16777220", "features"); /* one more than words are allowed */
    refuse_text("1003", "1e9", "features");
    refuse_text("200", "0", "length");
    refuse_text("200", "65537", "length");
    refuse_text("200", "7.5", "length");
    refuse_text("200", "\"200\"", "length");
    refuse_text("both", "all", "truncate");
    refuse_text("front", "middle", "pad");
    refuse_text("00f0", "00F0", "vocabulary");
    refuse_text("00f0", "0f0", "vocabulary");
    refuse_text("00f0", "000f0", "vocabulary");
    refuse_text("00f0", " 0f0", "vocabulary");
    refuse_text("\"scheme\":1", "\"scheme\":2", "newer paceline");
    refuse_text("\"scheme\":1", "\"other\":1", "scheme");
}

static void check_fit(const pace__encoding *model, const pace__encoding *data, const char *reason)
{
    captured_log captured = {0};
    pace_log log = {capture, &captured};

    assert_int_equal(pace__encoding_fits(model, data, &log), reason ? PACE_BAD_DATA : PACE_OK);
    assert_int_equal(captured.count, reason != NULL);
    if (reason)
        assert_non_null(strstr(captured.text, reason));
}

static void test_fits(void **state)
{
    pace__encoding bins, values, large, numbered = {.kind = PACE__NUMBERED, .features = 10};
    pace__encoding fewer = {.kind = PACE__NUMBERED, .features = 9},
                   more = {.kind = PACE__NUMBERED, .features = 11};
    pace__encoding hashed = {.kind = PACE__NUMBERED, .features = 10, .hashed = true};
    pace__encoding hashed_fewer = {.kind = PACE__NUMBERED, .features = 9, .hashed = true};

    (void)state;
    pace__encoding_criteo(1000, PACE_NUMERIC_BINS, &bins, NULL);
    pace__encoding_criteo(1000, PACE_NUMERIC_VALUES, &values, NULL);
    pace__encoding_criteo(2000, PACE_NUMERIC_BINS, &large, NULL);
    check_fit(&bins, &bins, NULL);
    check_fit(&bins, &values, "integers as bins");
    check_fit(&bins, &large, "1000 features");
    check_fit(&large, &bins, "2000 features");
    check_fit(&bins, &numbered, "Criteo columns");
    check_fit(&numbered, &numbered, NULL);
    check_fit(&numbered, &fewer, NULL);
    check_fit(&numbered, &more, "11");
    check_fit(&numbered, &hashed, "hashed");
    check_fit(&hashed, &hashed, NULL);
    check_fit(&hashed, &hashed_fewer, "9");
}

static void test_text_fits(void **state)
{
    pace__encoding numbered = {.kind = PACE__NUMBERED, .features = 1003}, other = text_encoding, criteo;

    (void)state;
    pace__encoding_criteo(1003, PACE_NUMERIC_BINS, &criteo, NULL);
    check_fit(&text_encoding, &other, NULL);
    check_fit(&text_encoding, &numbered, "trained on words of texts, the data holds numbers as they are");
    check_fit(&numbered, &text_encoding, "the data holds words of texts");
    check_fit(&text_encoding, &criteo, "the data holds Criteo columns");
    other.vocabulary++;
    check_fit(&text_encoding, &other, "the model knows another vocabulary (00f0123456789abc, of 1000 words)");
    other = text_encoding;
    other.features++;
    check_fit(&text_encoding, &other, "of 1001 words");
    other = text_encoding;
    other.length = 100;
    check_fit(&text_encoding, &other, "length 200 against 100");
    other = text_encoding;
    other.truncate = PACE_TRUNCATE_HEAD;
    check_fit(&text_encoding, &other, "keeps both, not head");
    other = text_encoding;
    other.pad_front = false;
    check_fit(&text_encoding, &other, "padding at the front, not the end");
}

static void test_image_fits(void **state)
{
    pace__encoding other = image_encoding, features = features_encoding(), newer = features;

    (void)state;
    check_fit(&image_encoding, &other, NULL);
    check_fit(&image_encoding, &text_encoding, "trained on pictures, the data holds words of texts");
    check_fit(&image_encoding, &features, "trained on pictures, the data holds features of pictures");
    check_fit(&features, &image_encoding, "the data holds pictures");
    other.height = 128;
    check_fit(&image_encoding, &other, "160 x 120 x 3 against 128 x 120 x 3");
    other = image_encoding;
    other.channels = 1;
    check_fit(&image_encoding, &other, "160 x 120 x 3 against 160 x 120 x 1");
    other = image_encoding;
    other.fit = PACE_FIT_CROP;
    check_fit(&image_encoding, &other, "--fit stretch, not crop");
    other = image_encoding;
    other.class_names++;
    check_fit(&image_encoding, &other, "the model knows other classes (10) than the data (");
    other = image_encoding;
    other.classes++;
    check_fit(&image_encoding, &other, "other classes");
    check_fit(&features, &newer, NULL);
    newer.origin++;
    check_fit(&features, &newer, "origin 0e0e0e0e0e0e0e0e");
    newer = features;
    newer.features = 1280;
    check_fit(&features, &newer, "other features (1024,");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges_cover_the_space),
        cmocka_unit_test(test_small_columns_get_room),
        cmocka_unit_test(test_space_limits),
        cmocka_unit_test(test_column_names),
        cmocka_unit_test(test_small_integers_have_their_own_bins),
        cmocka_unit_test(test_bins_follow_the_squared_logarithm),
        cmocka_unit_test(test_integer_values),
        cmocka_unit_test(test_hash_depends_on_every_byte),
        cmocka_unit_test(test_hash_spreads_evenly),
        cmocka_unit_test(test_number_hash),
        cmocka_unit_test(test_json_round_trip),
        cmocka_unit_test(test_json_faults),
        cmocka_unit_test(test_fits),
        cmocka_unit_test(test_text_faults),
        cmocka_unit_test(test_text_fits),
        cmocka_unit_test(test_image_faults),
        cmocka_unit_test(test_image_fits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
