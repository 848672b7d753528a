/* Records of input: TFRecords whole and damaged, the format of a file, and where a row is. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/formats/parse.h"
#include "files/crc32c.h"

#include "inputs.h"

#include <paceline/prep.h>

/* The next power of two: growth by single records would copy too much. */
static size_t room_for(size_t size)
{
    size_t room = 64;

    while (room < size)
        room *= 2;
    return room;
}

static void append_record(bytes *file, const char *data, size_t size)
{
    uint64_t length = size;
    uint32_t crc = pace__masked_crc32c(&length, sizeof length), data_crc = pace__masked_crc32c(data, size);

    if (!file->data || room_for(file->size + size + 16) > room_for(file->size)) {
        file->data = realloc(file->data, room_for(file->size + size + 16));
        assert_non_null(file->data);
    }
    memcpy(file->data + file->size, &length, 8);
    memcpy(file->data + file->size + 8, &crc, 4);
    memcpy(file->data + file->size + 12, data, size);
    memcpy(file->data + file->size + 12 + size, &data_crc, 4);
    file->size += size + 16;
}

static bytes make_records(size_t size_min, size_t record_max, uint64_t seed)
{
    pace__random random = pace__random_at(seed, 0);
    bytes file = {NULL, 0};
    char *data = calloc(record_max, 1);

    assert_non_null(data);
    while (file.size < size_min) {
        uint64_t noise = pace__random_next(&random);

        memcpy(data, &noise, record_max < 8 ? record_max : 8);
        append_record(&file, data, pace__random_below(&random, record_max));
    }
    free(data);
    return file;
}

/* Walks the chunks' records by their lengths. */
static void check_records(const char *path)
{
    pace__chunk chunk = {0};
    pace__input *input;

    assert_int_equal(pace__input_open(&path, 1, PACE__TFRECORDS, NULL, &input), PACE_OK);
    while (pace__input_next(input, &chunk) == PACE_OK && chunk.size > 0) {
        size_t at = 0;

        for (uint64_t length; at < chunk.size; at += 16 + length) {
            assert_true(chunk.size - at >= 16);
            memcpy(&length, chunk.data + at, sizeof length);
            assert_true(length <= chunk.size - at - 16);
        }
        assert_int_equal(at, chunk.size);
    }
    pace__chunk_release(&chunk);
    pace__input_close(input);
}

static void test_records(void **state)
{
    static const struct {
        size_t size, record;
    } cases[] = {{1, 1}, {2 * PACE__CHUNK_BYTES, 2000}, {3 * PACE__CHUNK_BYTES, PACE__CHUNK_BYTES * 2}};

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int kind = PLAIN; kind < KINDS; kind++) {
            bytes file = make_records(cases[i].size, cases[i].record, i);
            const char *path = write_compressed("records", kind, file);

            check_reads(path, PACE__TFRECORDS, file);
            check_records(path);
            free(file.data);
        }
    }
}

/* Its length's first bytes are those of gzip. */
static void test_record_that_looks_like_gzip(void **state)
{
    bytes file = {NULL, 0}, data = allocate(0x088b1f);

    (void)state;
    memset(data.data, 0, data.size);
    append_record(&file, data.data, data.size);
    assert_memory_equal(file.data, "\x1f\x8b\x08", 3);
    check_reads(write_file("like-gzip", file.data, file.size), PACE__TFRECORDS, file);
    free(file.data);
    free(data.data);
}

static void test_damaged_records(void **state)
{
    bytes file = {NULL, 0};

    (void)state;
    append_record(&file, "0123456789", 10);
    append_record(&file, "0123456789", 10);
    for (size_t size = 1; size < file.size; size++) {
        if (size != 26)
            check_fails(write_file("cut", file.data, size), PACE__TFRECORDS, PACE_BAD_DATA, "ends within it",
                        size < 26 ? "byte 0:" : "byte 26:");
    }
    for (size_t i = 26; i < 38; i++) {
        file.data[i] ^= 4;
        check_fails(write_file("damaged", file.data, file.size), PACE__TFRECORDS, PACE_BAD_DATA, "checksum",
                    "byte 26:");
        file.data[i] ^= 4;
    }
    uint64_t length = PACE__RECORD_BYTES_MAX - 15;
    uint32_t crc = pace__masked_crc32c(&length, sizeof length);

    memcpy(file.data + 26, &length, sizeof length);
    memcpy(file.data + 34, &crc, sizeof crc);
    check_fails(write_file("damaged", file.data, file.size), PACE__TFRECORDS, PACE_BAD_DATA,
                "record at byte 26 ", "16777216");
    free(file.data);
}

static void test_longest_record(void **state)
{
    bytes file = {NULL, 0}, data = allocate(PACE__RECORD_BYTES_MAX - 16);

    (void)state;
    memset(data.data, 1, data.size);
    append_record(&file, "x", 1);
    append_record(&file, data.data, data.size);
    append_record(&file, "x", 1);
    check_reads(write_file("longest", file.data, file.size), PACE__TFRECORDS, file);
    free(file.data);
    free(data.data);
}

static void test_line_of(void **state)
{
    unsigned lines;
    bytes text = make_lines(PACE__CHUNK_BYTES + 100, 12, true, &lines);

    (void)state;
    for (int kind = PLAIN; kind < KINDS; kind++) {
        const char *paths[] = {"-", write_compressed("lines", kind, text)};
        pace__input *input;

        assert_int_equal(pace__input_open(paths, 2, PACE__LINES, NULL, &input), PACE_OK);
        assert_int_equal(pace__input_line_of(input, 0, 1), 0);
        assert_int_equal(pace__input_line_of(input, 1, 0), 1);
        assert_int_equal(pace__input_line_of(input, 1, text.size - 1), lines);
        size_t second = (size_t)((char *)memchr(text.data, '\n', text.size) - text.data) + 1;

        assert_int_equal(pace__input_line_of(input, 1, second - 1), 1);
        assert_int_equal(pace__input_line_of(input, 1, second), 2);
        assert_int_equal(pace__input_line_of(input, 1, text.size + 1), 0);
        pace__input_close(input);
    }
    free(text.data);
}

static void check_format(const char *text, size_t size, int expected)
{
    for (int kind = PLAIN; kind < KINDS; kind++) {
        int format = -1;

        assert_int_equal(
            pace__input_detect(write_compressed("format", kind, (bytes){(char *)text, size}), &format, NULL),
            PACE_OK);
        if (format != expected)
            print_error("kind %d of: %.60s\n", kind, text);
        assert_int_equal(format, expected);
    }
}

static void test_detect(void **state)
{
    static const struct {
        const char *text;
        int format;
    } cases[] = {
        {"1 3:1 11:1 14:1\n", PACE_FORMAT_SVMLIGHT},
        {"# a comment\n\n-1\t3:.5", PACE_FORMAT_SVMLIGHT},
        {"+1 7:1e-3 # x\n", PACE_FORMAT_SVMLIGHT},
        {"1 3:x\n", PACE_FORMAT_AUTO},
        {"1 2 3\n", PACE_FORMAT_AUTO},
        {"", PACE_FORMAT_AUTO},
        {"\n\n", PACE_FORMAT_AUTO},
        {"{\"text\": \"1 3:1\"}\n", PACE_FORMAT_AUTO},
    };
    char row[64];
    bytes records = make_records(1000, 100, 1);

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        check_format(cases[i].text, strlen(cases[i].text), cases[i].format);
    check_format(records.data, records.size, PACE_FORMAT_TFRECORD);
    records.data[8] ^= 1;
    check_format(records.data, records.size, PACE_FORMAT_AUTO);
    for (unsigned tabs = 36; tabs < 42; tabs++) {
        memset(row, '\t', sizeof row);
        memcpy(row + tabs, "\n1\t2\n", 5);
        check_format(row, tabs + 5, tabs == 38 || tabs == 39 ? PACE_FORMAT_CRITEO : PACE_FORMAT_AUTO);
    }
    free(records.data);
    int format = -1;
    messages told = {0};

    assert_int_equal(pace__input_detect(path_of("missing"), &format, &(pace_log){tell, &told}),
                     PACE_NO_INPUT);
    assert_int_equal(pace__input_detect(directory, &format, &(pace_log){tell, &told}), PACE_NO_INPUT);
    assert_int_equal(told.errors, 2);
    assert_int_equal(format, -1);
}

static void test_bad_rows(void **state)
{
    const char *paths[] = {"-", write_compressed("bad.gz", GZIP, (bytes){"a\nb\nc\n", 6})};
    messages told = {0};
    pace_log log = {tell, &told};
    pace__bad_rows bad = {.max = 12, .log = &log};
    pace__input *input;
    char expected[PACE_LOG_TEXT_MAX];

    (void)state;
    assert_int_equal(pace__input_open(paths, 2, PACE__LINES, &log, &input), PACE_OK);
    bad.input = input;
    assert_int_equal(pace__bad_row(&bad, &(pace__chunk){.file = 1, .offset = 2}, 2, "reason %d", 5), PACE_OK);
    snprintf(expected, sizeof expected, "%s:3: reason 5", paths[1]);
    assert_memory_equal(told.text, expected, strlen(expected));
    assert_int_equal(pace__bad_row(&bad, &(pace__chunk){.file = 0, .offset = 70}, 7, "reason"), PACE_OK);
    assert_memory_equal(told.text, "standard input: byte 77: reason", 31);
    for (unsigned i = 2; i < bad.max; i++)
        assert_int_equal(pace__bad_row(&bad, &(pace__chunk){.file = 1}, 0, "reason"), PACE_OK);
    assert_int_equal(told.warnings, PACE__BAD_ROWS_SHOWN);
    assert_int_equal(told.errors, 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pace__bad_row(&bad, &(pace__chunk){.file = 1}, 2, "the last"), PACE_BAD_DATA);
    assert_int_equal(told.errors, 1);
    snprintf(expected, sizeof expected,
             "%s:2: the last, after %llu skipped rows: that is all --max-bad-rows allows", paths[1],
             (unsigned long long)bad.max);
    assert_string_equal(told.text, expected);
    assert_int_equal(bad.count, 15);
    pace__input_close(input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records),         cmocka_unit_test(test_record_that_looks_like_gzip),
        cmocka_unit_test(test_damaged_records), cmocka_unit_test(test_longest_record),
        cmocka_unit_test(test_line_of),         cmocka_unit_test(test_detect),
        cmocka_unit_test(test_bad_rows),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
