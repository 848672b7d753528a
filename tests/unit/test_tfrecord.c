/* tf.Example rows: messages built here field by field, good ones and each way of being bad. */
#include "base/random.h"
#include "data/formats/parse.h"
#include "data/formats/varints.h"
#include "files/crc32c.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MESSAGE_MAX (6u << 20)

/* Bytes of a message, or of a file of records. */
typedef struct wire {
    size_t size;
    uint8_t *bytes;
} wire;

typedef struct messages {
    unsigned errors, warnings;
    char text[PACE_LOG_TEXT_MAX];
} messages;

static void tell(void *user, pace_level level, const char *text)
{
    messages *told = user;

    told->errors += level == PACE_ERROR;
    told->warnings += level == PACE_WARN;
    snprintf(told->text, sizeof told->text, "%s", text);
}

static wire empty(void)
{
    wire new = {0, malloc(MESSAGE_MAX)};

    assert_non_null(new.bytes);
    return new;
}

static void put(wire *to, const void *bytes, size_t size)
{
    assert_true(size <= MESSAGE_MAX - PACE__CHUNK_SLACK - to->size);
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
}

static void put_varint(wire *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        put(to, &(uint8_t){(uint8_t)(value | 0x80)}, 1);
    put(to, &(uint8_t){(uint8_t)value}, 1);
}

static void put_bytes(wire *to, unsigned field, const void *bytes, size_t size)
{
    put_varint(to, field << 3 | 2);
    put_varint(to, size);
    put(to, bytes, size);
}

/* Puts `part` as a field and frees it. */
static void put_part(wire *to, unsigned field, wire part)
{
    put_bytes(to, field, part.bytes, part.size);
    free(part.bytes);
}

/* {key, Feature{kind: list}} as an entry of Features. */
static void put_feature(wire *features, const char *key, unsigned kind, wire list)
{
    wire feature = empty(), entry = empty();

    put_part(&feature, kind, list);
    put_bytes(&entry, 1, key, strlen(key));
    put_part(&entry, 2, feature);
    put_part(features, 1, entry);
}

static wire int64_list(const int64_t *numbers, size_t count, bool packed)
{
    wire list = empty(), body = empty();

    for (size_t i = 0; i < count; i++) {
        if (!packed)
            put_varint(&list, 1 << 3 | 0);
        put_varint(packed ? &body : &list, (uint64_t)numbers[i]);
    }
    if (packed)
        put_part(&list, 1, body);
    else
        free(body.bytes);
    return list;
}

static wire float_list(const float *numbers, size_t count, bool packed)
{
    wire list = empty();

    if (packed)
        put_bytes(&list, 1, numbers, count * sizeof *numbers);
    for (size_t i = 0; !packed && i < count; i++) {
        put_varint(&list, 1 << 3 | 5);
        put(&list, numbers + i, sizeof *numbers);
    }
    return list;
}

static void put_label(wire *features, int64_t label)
{
    put_feature(features, "label", 3, int64_list(&label, 1, true));
}

static void put_ids(wire *features, const int64_t *ids, size_t count)
{
    put_feature(features, "index", 3, int64_list(ids, count, true));
}

static void put_values(wire *features, const float *values, size_t count)
{
    put_feature(features, "value", 2, float_list(values, count, true));
}

static void put_record(wire *file, const void *data, size_t size)
{
    uint64_t length = size;
    uint32_t crc = pace__masked_crc32c(&length, sizeof length), data_crc = pace__masked_crc32c(data, size);

    put(file, &length, sizeof length);
    put(file, &crc, sizeof crc);
    put(file, data, size);
    put(file, &data_crc, sizeof data_crc);
}

/* Example{features}, framed; frees `features`. */
static void put_example(wire *file, wire features)
{
    wire example = empty();

    put_part(&example, 1, features);
    put_record(file, example.bytes, example.size);
    free(example.bytes);
}

typedef struct setting {
    pace__encoding encoding;
    messages told;
    pace_log log;
    pace__bad_rows bad;
    pace__parser parser;
    pace__raw_rows rows;
    wire file;
} setting;

static int set_up(void **state)
{
    setting *fixture = calloc(1, sizeof *fixture);

    if (!fixture)
        return -1;
    fixture->encoding = (pace__encoding){.kind = PACE__NUMBERED};
    fixture->log = (pace_log){tell, &fixture->told};
    fixture->bad.log = &fixture->log;
    fixture->parser = (pace__parser){.encoding = &fixture->encoding, .bad = &fixture->bad};
    fixture->file = empty();
    *state = fixture;
    return pace__raw_rows_init(&fixture->rows, NULL);
}

static int tear_down(void **state)
{
    setting *fixture = *state;

    pace__raw_rows_release(&fixture->rows);
    free(fixture->file.bytes);
    free(fixture);
    return 0;
}

static pace_status parse(setting *fixture, size_t *at)
{
    pace__chunk chunk = {
        .data = (const char *)fixture->file.bytes, .size = fixture->file.size, .offset = 1000};

    return pace__parse_tfrecord(&fixture->parser, &chunk, at, &fixture->rows);
}

/* The only record is good. */
static void check_good(setting *fixture)
{
    size_t at = 0;
    pace_status status = parse(fixture, &at);

    if (status)
        print_error("%s\n", fixture->told.text);
    assert_int_equal(status, PACE_OK);
    assert_int_equal(at, fixture->file.size);
    assert_int_equal(fixture->rows.rows, 1);
    assert_int_equal(fixture->rows.offset[0], 1000);
    assert_int_equal(fixture->rows.start[0], 0);
    fixture->file.size = 0;
}

/* The only record is bad, for this reason, and is told of once. */
static void check_bad(setting *fixture, const char *reason)
{
    size_t at = 0;

    fixture->bad.count = 0;
    fixture->told.errors = 0;
    fixture->told.text[0] = '\0';
    pace_status status = parse(fixture, &at);

    if (status != PACE_BAD_DATA || !strstr(fixture->told.text, reason))
        print_error("status %d, \"%s\" instead of \"%s\"\n", status, fixture->told.text, reason);
    assert_int_equal(status, PACE_BAD_DATA);
    assert_int_equal(fixture->told.errors, 1);
    assert_non_null(strstr(fixture->told.text, "byte 1000"));
    assert_non_null(strstr(fixture->told.text, reason));
    fixture->file.size = 0;
}

/* A row of these parts; NULL: without. */
static void put_row(wire *file, const int64_t *label, const int64_t *ids, size_t id_count,
                    const float *values, size_t value_count)
{
    wire features = empty();

    if (label)
        put_label(&features, *label);
    if (ids)
        put_ids(&features, ids, id_count);
    if (values)
        put_values(&features, values, value_count);
    put_example(file, features);
}

static const int64_t one = 1;
static const int64_t some_ids[] = {5, 0, 33762577, 5};
static const float some_values[] = {.5f, -2, 0, 1e30f};

static void check_entries(const setting *fixture, const int64_t *ids, const float *values, size_t count)
{
    assert_int_equal(fixture->rows.start[1], count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(fixture->rows.ids[i], ids[i]);
        assert_true(fixture->rows.values[i] == (values ? values[i] : 1.0f));
    }
}

static void test_plain_row(void **state)
{
    setting *fixture = *state;

    put_row(&fixture->file, &one, some_ids, 4, some_values, 4);
    check_good(fixture);
    assert_int_equal(fixture->rows.label[0], 1);
    check_entries(fixture, some_ids, some_values, 4);
    put_row(&fixture->file, &one, some_ids, 4, NULL, 0);
    check_good(fixture);
    check_entries(fixture, some_ids, NULL, 4);
    put_row(&fixture->file, &one, some_ids, 0, NULL, 0);
    check_good(fixture);
    assert_int_equal(fixture->rows.start[1], 0);
}

static void test_unpacked_lists_and_other_features(void **state)
{
    static const int64_t label = -1;
    setting *fixture = *state;
    wire features = empty();

    put_feature(&features, "other", 1, empty());
    put_feature(&features, "value", 2, float_list(some_values, 4, false));
    put_feature(&features, "index", 3, int64_list(some_ids, 4, false));
    put_feature(&features, "a longer name", 2, float_list(some_values, 4, true));
    put_feature(&features, "label", 3, int64_list(&label, 1, false));
    put_example(&fixture->file, features);
    check_good(fixture);
    assert_int_equal(fixture->rows.label[0], 0);
    check_entries(fixture, some_ids, some_values, 4);
}

/* Unknown fields of every wire type, at every level. */
static void test_unknown_fields_are_passed_over(void **state)
{
    static const uint8_t unknown[] = {
        0x78, 0x96, 0x01,                                                       /* 15: varint */
        0x79, 1,    2,    3,    4,    5,    6,    7,    8,    0x7d, 1, 2, 3, 4, /* 64 and 32 bits */
        0x7a, 2,    0xff, 0xff, 0xfa, 0xff, 0xff, 0xff, 0x0f, 0};               /* bytes; the highest field */
    setting *fixture = *state;
    wire list = empty(), feature = empty(), entry = empty(), features = empty(), example = empty();

    put(&list, unknown, sizeof unknown);
    put_varint(&list, 1 << 3 | 0);
    put_varint(&list, 77);
    put(&list, unknown, sizeof unknown);
    put(&feature, unknown, sizeof unknown);
    put_part(&feature, 3, list);
    put(&entry, unknown, sizeof unknown);
    put_part(&entry, 2, feature); /* the value in front of its key */
    put_bytes(&entry, 1, "index", 5);
    put(&features, unknown, sizeof unknown);
    put_part(&features, 1, entry);
    put_label(&features, 1);
    put(&example, unknown, sizeof unknown);
    put_part(&example, 1, features);
    put(&example, unknown, sizeof unknown);
    put_record(&fixture->file, example.bytes, example.size);
    free(example.bytes);
    check_good(fixture);
    check_entries(fixture, (const int64_t[]){77}, NULL, 1);
}

static void test_labels(void **state)
{
    static const struct {
        double label;
        int expected; /* -1: bad */
    } cases[] = {{0, 0},   {-1, 0},   {1, 1},         {2, -1},           {-2, -1},
                 {.5, -1}, {NAN, -1}, {INFINITY, -1}, {4294967297.0, -1}};
    setting *fixture = *state;

    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int kind = 2; kind <= 3; kind++) {
            wire features = empty();
            float real = (float)cases[i].label;
            int64_t integer = isfinite(cases[i].label) ? (int64_t)cases[i].label : 7;

            if (kind == 3 && isfinite(cases[i].label) && (double)integer != cases[i].label)
                integer = 9;
            put_feature(&features, "label", (unsigned)kind,
                        kind == 2 ? float_list(&real, 1, i % 2) : int64_list(&integer, 1, i % 2));
            put_ids(&features, some_ids, 4);
            put_example(&fixture->file, features);
            if (cases[i].expected < 0) {
                check_bad(fixture, "\"label\" is ");
            } else {
                check_good(fixture);
                assert_int_equal(fixture->rows.label[0], cases[i].expected);
            }
        }
    }
}

static void test_missing_label(void **state)
{
    static const int64_t two = 2;
    setting *fixture = *state;

    put_row(&fixture->file, NULL, some_ids, 4, NULL, 0);
    check_bad(fixture, "no feature \"label\"");
    fixture->parser.labels_optional = true;
    fixture->rows.label[0] = 1;
    put_row(&fixture->file, NULL, some_ids, 4, NULL, 0);
    check_good(fixture);
    assert_int_equal(fixture->rows.label[0], 0);
    put_row(&fixture->file, &two, some_ids, 4, NULL, 0);
    check_bad(fixture, "\"label\" is 2");
}

static void test_bad_rows(void **state)
{
    static const int64_t negative[] = {3, -5}, two_labels[] = {1, 1};
    static const float not_finite[][2] = {{1, NAN}, {INFINITY, 1}, {1, -INFINITY}};
    setting *fixture = *state;
    wire features;

    put_row(&fixture->file, &one, NULL, 0, NULL, 0);
    check_bad(fixture, "no feature \"index\"");
    put_row(&fixture->file, &one, some_ids, 4, some_values, 3);
    check_bad(fixture, "\"index\" has 4 numbers, \"value\" has 3");
    put_row(&fixture->file, &one, some_ids, 0, some_values, 1);
    check_bad(fixture, "\"index\" has 0 numbers, \"value\" has 1");
    put_row(&fixture->file, &one, some_ids, 1, some_values, 0);
    check_bad(fixture, "\"index\" has 1 numbers, \"value\" has 0");
    put_row(&fixture->file, &one, negative, 2, some_values, 2);
    check_bad(fixture, "negative number -5");
    for (unsigned i = 0; i < 3; i++) {
        put_row(&fixture->file, &one, some_ids, 2, not_finite[i], 2);
        check_bad(fixture, "not finite");
    }
    features = empty();
    put_feature(&features, "label", 3, int64_list(two_labels, 2, true));
    put_ids(&features, some_ids, 1);
    put_example(&fixture->file, features);
    check_bad(fixture, "\"label\" has 2 numbers");
    features = empty();
    put_label(&features, 1);
    put_ids(&features, some_ids, 1);
    put_ids(&features, some_ids, 1);
    put_example(&fixture->file, features);
    check_bad(fixture, "\"index\" is there twice");
    features = empty();
    put_feature(&features, "index", 2, float_list(some_values, 1, true));
    put_example(&fixture->file, features);
    check_bad(fixture, "\"index\" is no list of int64");
    features = empty();
    put_feature(&features, "value", 1, empty());
    put_example(&fixture->file, features);
    check_bad(fixture, "\"value\" is no list of float");
}

static void test_id_limits(void **state)
{
    static const int64_t largest = (INT64_C(1) << 53) - 1, above = INT64_C(1) << 53, ten = 10, nine = 9;
    setting *fixture = *state;

    put_row(&fixture->file, &one, &largest, 1, NULL, 0);
    check_good(fixture);
    check_entries(fixture, &largest, NULL, 1);
    put_row(&fixture->file, &one, &above, 1, NULL, 0);
    check_bad(fixture, "9007199254740992");
    fixture->encoding.features = 10;
    put_row(&fixture->file, &one, &nine, 1, NULL, 0);
    check_good(fixture);
    put_row(&fixture->file, &one, &ten, 1, NULL, 0);
    check_bad(fixture, "\"index\" holds 10, not below the number of features of 10");
    fixture->parser.ids_unbounded = true;
    put_row(&fixture->file, &one, &ten, 1, NULL, 0);
    check_good(fixture);
    put_row(&fixture->file, &one, &above, 1, NULL, 0);
    check_bad(fixture, "9007199254740992");
    fixture->parser.ids_unbounded = false;
    fixture->encoding.hashed = true;
    put_row(&fixture->file, &one, &largest, 1, NULL, 0);
    check_good(fixture);
    assert_int_equal(fixture->rows.ids[0], pace__number_hash((uint64_t)largest, 10));
    put_row(&fixture->file, &one, &above, 1, NULL, 0);
    check_bad(fixture, "9007199254740992");
}

/* Ids of every length on the wire, each against what was put in. */
static void test_varints_of_every_length(void **state)
{
    enum { COUNT = 53 * 3 };
    setting *fixture = *state;
    int64_t ids[COUNT];

    for (unsigned i = 0; i < 53; i++) {
        ids[3 * i] = INT64_C(1) << i;
        ids[3 * i + 1] = (INT64_C(1) << i) - 1;
        ids[3 * i + 2] = (INT64_C(0x15555555555555) | INT64_C(1) << i) & ((INT64_C(2) << i) - 1);
    }
    put_row(&fixture->file, &one, ids, COUNT, NULL, 0);
    check_good(fixture);
    check_entries(fixture, ids, NULL, COUNT);
}

/* Longer than needed is allowed, up to ten bytes. */
static void test_overlong_varints(void **state)
{
    setting *fixture = *state;

    for (size_t size = 2; size <= 12; size++) {
        uint8_t varint[12];
        wire features = empty(), list = empty();

        memset(varint, 0x80, sizeof varint);
        varint[0] |= 0x2a;
        varint[size - 1] = 0;
        put_bytes(&list, 1, varint, size);
        put_label(&features, 1);
        put_feature(&features, "index", 3, list);
        put_example(&fixture->file, features);
        if (size <= 10) {
            check_good(fixture);
            check_entries(fixture, (const int64_t[]){0x2a}, NULL, 1);
        } else {
            check_bad(fixture, "malformed");
        }
    }
}

/*
 * Each prefix of a message, and each byte changed: never a crash; a prefix is never a good row with all its
 * entries.
 */
static void test_damaged_messages(void **state)
{
    setting *fixture = *state;
    wire features = empty(), example = empty();

    put_ids(&features, some_ids, 4);
    put_values(&features, some_values, 4);
    put_label(&features, 1);
    put_part(&example, 1, features);
    fixture->bad.max = 1000000;
    for (size_t size = 0; size < example.size; size++) {
        size_t at = 0;

        fixture->file.size = 0;
        put_record(&fixture->file, example.bytes, size);
        assert_int_equal(parse(fixture, &at), PACE_OK);
        assert_int_equal(fixture->rows.rows, 0);
    }
    for (size_t i = 0; i < example.size * 256; i++) {
        size_t at = 0;
        uint8_t kept = example.bytes[i / 256];

        fixture->file.size = 0;
        example.bytes[i / 256] = (uint8_t)i;
        put_record(&fixture->file, example.bytes, example.size);
        example.bytes[i / 256] = kept;
        assert_int_equal(parse(fixture, &at), PACE_OK);
        for (size_t k = 0; k < fixture->rows.rows * fixture->rows.start[1]; k++) {
            assert_true(fixture->rows.ids[k] < PACE__FEATURES_MAX);
            assert_true(isfinite(fixture->rows.values[k]));
        }
    }
    free(example.bytes);
}

static void test_data_checksum(void **state)
{
    setting *fixture = *state;

    put_row(&fixture->file, &one, some_ids, 4, NULL, 0);
    fixture->file.bytes[20] ^= 1;
    check_bad(fixture, "checksum");
    put_row(&fixture->file, &one, some_ids, 4, NULL, 0);
    fixture->file.bytes[fixture->file.size - 1] ^= 1;
    check_bad(fixture, "checksum");
}

/* Bytes of which most are within an id, and a random room for ids. */
static void test_kernels_agree_on_packed_ids(void **state)
{
    pace__random random = {7};

    (void)state;
    for (int turn = 0; turn < 3000; turn++) {
        uint8_t bytes[300 + PACE__CHUNK_SLACK];
        uint64_t ids[300], expected[300];
        size_t size = pace__random_below(&random, 301), room = pace__random_below(&random, size + 1),
               count = 0;
        uint64_t continued = pace__random_below(&random, 8);

        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)(pace__random_below(&random, 128) |
                                 (pace__random_below(&random, 8) < continued) << 7);
        room = turn % 2 ? size : room;
        pace__packed result =
            pace__varints_plain.unpack((pace__span){bytes, bytes + size}, expected, room, &count);

        for (int set = PACE_KERNELS_PLAIN; set < PACE__KERNELS_END; set++) {
            size_t other = count;

            if (!pace_kernels_run(set))
                continue;
            assert_int_equal(
                pace__varints_of(set)->unpack((pace__span){bytes, bytes + size}, ids, room, &other), result);
            if (result == PACE__PACKED_SOUND)
                assert_int_equal(other, count);
            if (result == PACE__PACKED_SOUND)
                assert_memory_equal(ids, expected, count * sizeof *ids);
        }
    }
}

static void test_longest_row(void **state)
{
    setting *fixture = *state;
    int64_t *ids = calloc(PACE__ROW_ENTRIES_MAX + 1, sizeof *ids);

    assert_non_null(ids);
    for (int packed = 0; packed < 2; packed++) {
        for (unsigned extra = 0; extra < 2; extra++) {
            wire features = empty();

            put_label(&features, 1);
            put_feature(&features, "index", 3, int64_list(ids, PACE__ROW_ENTRIES_MAX + extra, packed));
            put_example(&fixture->file, features);
            if (extra)
                check_bad(fixture, "more than 1048576 entries");
            else
                check_good(fixture);
        }
    }
    free(ids);
}

/* Many rows, some of them bad, over several calls. */
static void test_batches(void **state)
{
    enum { ROWS = 1000 };
    setting *fixture = *state;
    size_t at = 0, offsets[ROWS];
    unsigned next = 0, calls = 0;
    pace__random random = pace__random_at(1, 1);

    fixture->bad.max = ROWS;
    for (int64_t i = 0; i < ROWS; i++) {
        int64_t ids[100], label = i % 3 == 0;
        size_t count = pace__random_below(&random, 100) + 1;

        for (size_t k = 0; k < count; k++)
            ids[k] = i;
        ids[0] = i % 7 == 0 ? -1 : i;
        offsets[i] = 1000 + fixture->file.size;
        put_row(&fixture->file, &label, ids, count, NULL, 0);
    }
    while (at < fixture->file.size) {
        assert_int_equal(parse(fixture, &at), PACE_OK);
        assert_true(fixture->rows.rows == PACE__RAW_ROWS || at == fixture->file.size);
        for (size_t i = 0; i < fixture->rows.rows; i++, next++) {
            next += next % 7 == 0;
            assert_int_equal(fixture->rows.offset[i], offsets[next]);
            assert_int_equal(fixture->rows.label[i], next % 3 == 0);
            for (uint64_t k = fixture->rows.start[i]; k < fixture->rows.start[i + 1]; k++)
                assert_int_equal(fixture->rows.ids[k], next);
        }
        calls++;
    }
    assert_int_equal(next, ROWS);
    assert_int_equal(calls, 4);
    assert_int_equal(fixture->bad.count, (ROWS + 6) / 7);
    assert_int_equal(fixture->told.warnings, PACE__BAD_ROWS_SHOWN);
    assert_int_equal(fixture->told.errors, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_plain_row, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unpacked_lists_and_other_features, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unknown_fields_are_passed_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_labels, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_missing_label, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_rows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_id_limits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_varints_of_every_length, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_overlong_varints, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_damaged_messages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_data_checksum, set_up, tear_down),
        cmocka_unit_test(test_kernels_agree_on_packed_ids),
        cmocka_unit_test_setup_teardown(test_longest_row, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_batches, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
