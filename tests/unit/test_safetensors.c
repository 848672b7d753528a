/* Files written and read back; the exact bytes of one; everything that can be wrong with a header. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/tensors/safetensors.h"
#include "files/file.h"

#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char text[PACE_LOG_TEXT_MAX];

static void remember(void *user, pace_level level, const char *message)
{
    (void)user;
    (void)level;
    snprintf(text, sizeof text, "%s", message);
}

static const pace_log log_to_text = {.write = remember};

static int make_directory(void **state)
{
    char *directory = strdup("/tmp/test_safetensors.XXXXXX");

    *state = directory;
    return directory && mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    pace_status status = pace__remove_tree(*state, NULL);

    free(*state);
    return status ? -1 : 0;
}

static char *path_in(void **state, const char *name)
{
    char *path = pace__format("%s/%s", (const char *)*state, name);

    assert_non_null(path);
    return path;
}

/* Writing ------------------------------------------------------------------------------------------------ */

static void bytes_are_these(void **state)
{
    char *path = path_in(state, "small");
    const float weights[] = {1, -2};
    const uint8_t flags[] = {7};
    const pace__tensor tensors[] = {
        {.name = "w", .dtype = PACE__F32, .rank = 1, .shape = {2}, .data = weights},
        {.name = "f", .dtype = PACE__U8, .rank = 2, .shape = {1, 1}, .data = flags}};
    const pace__text_pair metadata[] = {{"b", "2"}, {"a", "\"1\""}};
    static const char expected[] =
        "\x98\0\0\0\0\0\0\0"
        "{\"__metadata__\":{\"b\":\"2\",\"a\":\"\\\"1\\\"\"},\"w\":{\"dtype\":\"F32\",\"shape\":[2],"
        "\"data_offsets\":[0,8]},\"f\":{\"dtype\":\"U8\",\"shape\":[1,1],\"data_offsets\":[8,9]}}       "
        "\0\0\x80\x3f\0\0\0\xc0\x07";
    char sha256[PACE__SHA256_HEX], of_file[PACE__SHA256_HEX], *bytes;
    size_t size;

    assert_int_equal(pace__safetensors_write(path, tensors, 2, metadata, 2, sha256, NULL), PACE_OK);
    assert_int_equal(pace__read_file(path, 1000, &bytes, &size, NULL), PACE_OK);
    assert_int_equal(size, sizeof expected - 1);
    assert_memory_equal(bytes, expected, size);
    assert_int_equal(pace__sha256_file(path, of_file, NULL), PACE_OK);
    assert_string_equal(sha256, of_file);
    free(bytes);
    free(path);
}

static void sha256_is_the_known_one(void **state)
{
    char *path = path_in(state, "abc"), hex[PACE__SHA256_HEX];

    assert_int_equal(pace__write_file_atomically(path, "abc", 3, NULL), PACE_OK);
    assert_int_equal(pace__sha256_file(path, hex, NULL), PACE_OK);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    free(path);
    path = path_in(state, "missing");
    assert_int_equal(pace__sha256_file(path, hex, NULL), PACE_NO_INPUT);
    free(path);
}

static pace_status fill_squares(void *user, uint64_t offset, void *buffer, size_t bytes)
{
    uint64_t *next = user, *values = buffer;

    assert_int_equal(offset, *next);
    assert_int_equal(bytes % sizeof *values, 0);
    assert_true(bytes <= PACE__TENSOR_PIECE_BYTES);
    for (size_t i = 0; i < bytes / sizeof *values; i++) {
        uint64_t place = offset / sizeof *values + i;

        values[i] = place * place;
    }
    *next += bytes;
    return PACE_OK;
}

static void streamed_tensors_come_back(void **state)
{
    char *path = path_in(state, "large");
    enum { COUNT = 300001 }; /* more than two pieces */
    uint64_t filled = 0, values[3];
    const double scale = 0.5;
    const pace__tensor tensors[] = {{.name = "squares",
                                     .dtype = PACE__U64,
                                     .rank = 1,
                                     .shape = {COUNT},
                                     .fill = fill_squares,
                                     .user = &filled},
                                    {.name = "none", .dtype = PACE__I64, .rank = 2, .shape = {0, 5}},
                                    {.name = "scale \xc3\xa9\"", .dtype = PACE__F64, .data = &scale}};
    pace__safetensors *file;
    double read_scale;

    assert_int_equal(pace__safetensors_write(path, tensors, 3, NULL, 0, NULL, NULL), PACE_OK);
    assert_int_equal(filled, COUNT * sizeof(uint64_t));
    assert_int_equal(pace__safetensors_open(path, &log_to_text, &file), PACE_OK);
    assert_int_equal(pace__safetensors_count(file), 3);
    const pace__tensor_info *squares = pace__safetensors_find(file, "squares");
    const pace__tensor_info *none = pace__safetensors_find(file, "none");
    const pace__tensor_info *read = pace__safetensors_find(file, "scale \xc3\xa9\"");

    assert_ptr_equal(pace__safetensors_at(file, 0), squares);
    assert_true(squares->dtype == PACE__U64 && squares->rank == 1 && squares->elements == COUNT);
    assert_true(none->dtype == PACE__I64 && none->rank == 2 && none->shape[1] == 5 && none->bytes == 0);
    assert_true(read->dtype == PACE__F64 && read->rank == 0 && read->elements == 1);
    assert_int_equal(pace__safetensors_read(file, squares, 8 * 299990, values, sizeof values, NULL), PACE_OK);
    assert_true(values[0] == UINT64_C(299990) * 299990 && values[2] == UINT64_C(299992) * 299992);
    assert_int_equal(pace__safetensors_read(file, read, 0, &read_scale, 8, NULL), PACE_OK);
    assert_true(read_scale == 0.5);
    assert_int_equal(pace__safetensors_read(file, none, 0, NULL, 0, NULL), PACE_OK);
    assert_null(pace__safetensors_find(file, "square"));
    assert_null(pace__safetensors_metadata(file, "a"));
    pace__safetensors_close(file);
    free(path);
}

static pace_status fill_and_fail(void *user, uint64_t offset, void *buffer, size_t bytes)
{
    (void)user;
    memset(buffer, 0, bytes);
    return offset ? PACE_INTERRUPTED : PACE_OK;
}

static void a_failed_write_leaves_the_old_file(void **state)
{
    char *path = path_in(state, "kept"), *bytes;
    const pace__tensor tensor = {.name = "x",
                                 .dtype = PACE__U8,
                                 .rank = 1,
                                 .shape = {2 * PACE__TENSOR_PIECE_BYTES},
                                 .fill = fill_and_fail};
    char sha256[PACE__SHA256_HEX] = "untouched";
    size_t size;

    assert_int_equal(pace__write_file_atomically(path, "old", 3, NULL), PACE_OK);
    assert_int_equal(pace__safetensors_write(path, &tensor, 1, NULL, 0, sha256, NULL), PACE_INTERRUPTED);
    assert_int_equal(pace__read_file(path, 10, &bytes, &size, NULL), PACE_OK);
    assert_string_equal(bytes, "old");
    assert_string_equal(sha256, "untouched");
    char *only = path_in(state, "kept*");
    glob_t found;

    assert_int_equal(glob(only, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    globfree(&found);
    free(only);
    free(bytes);
    free(path);
    path = path_in(state, "no/such/directory");
    assert_int_equal(pace__safetensors_write(path, NULL, 0, NULL, 0, NULL, &log_to_text), PACE_IO);
    assert_non_null(strstr(text, path));
    free(path);
}

/* Reading ------------------------------------------------------------------------------------------------ */

/* A file with that header (length by its text) and `data_bytes` zeros. */
static pace_status open_header(const char *header, size_t data_bytes, pace__safetensors **file)
{
    static char bytes[4096];
    uint64_t length = strlen(header);

    assert_true(8 + length + data_bytes <= sizeof bytes);
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, length);
    text[0] = '\0';
    return pace__safetensors_open_memory(bytes, 8 + length + data_bytes, "FILE", &log_to_text, file);
}

static void good_headers(void **state)
{
    (void)state;
    pace__safetensors *file;

    assert_int_equal(open_header("{}", 0, &file), PACE_OK);
    assert_int_equal(pace__safetensors_count(file), 0);
    assert_null(pace__safetensors_find(file, ""));
    pace__safetensors_close(file);
    /* Entries in another order than their data, white space, metadata with escapes. */
    assert_int_equal(open_header("{ \"b\":{\"data_offsets\":[2, 6],\"shape\":[1],\"dtype\":\"F32\"},\n"
                                 "\"__metadata__\":{\"k\\u00e9\":\"v\\n[1.5e3]\",\"empty\":\"\"},"
                                 "\"a\":{\"dtype\":\"U8\",\"shape\":[2,1],\"data_offsets\":[0,2]}}   ",
                                 6, &file),
                     PACE_OK);
    assert_string_equal(pace__safetensors_at(file, 0)->name, "a");
    assert_string_equal(pace__safetensors_at(file, 1)->name, "b");
    assert_string_equal(pace__safetensors_metadata(file, "k\xc3\xa9"), "v\n[1.5e3]");
    assert_string_equal(pace__safetensors_metadata(file, "empty"), "");
    assert_null(pace__safetensors_metadata(file, "K"));
    pace__safetensors_close(file);
}

#define ENTRY(name, begin, end)                                                                              \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" #end "],\"data_offsets\":[" #begin "," #end "]}"
#define ONE(dtype, shape, offsets)                                                                           \
    "{\"x\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static void bad_headers(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t data_bytes;
        const char *message; /* part of it */
    } cases[] = {
        {"", 0, "does not start with '{'"},
        {"[]", 0, "does not start with '{'"},
        {" {}", 0, "does not start with '{'"},
        {"{", 0, "not valid JSON"},
        {"{}}", 0, "closing bracket"},
        {"{}{}", 0, "byte 10: text behind"},
        {"{\"a\":}", 0, "not valid JSON"},
        {"{\"a\":1}", 0, "tensor \"a\": its entry"},
        {"{\"a\":\"\x01\"}", 0, "control character"},
        {"{\"a\\u0000b\":{}}", 0, "byte 11: NUL"},
        {"{\"\\n\":{}}", 0, "control characters or more than"},
        {"{\"\xff\":{}}", 0, "byte 10: the header is not UTF-8"},
        {"{\"a\":{\"b\":{\"c\":{}}}}", 0, "nested too deep"},
        {"{\"a\":true}", 0, "byte 13: unexpected character"},
        {ONE("\"F31\"", "[1]", "[0,4]"), 4, "tensor \"x\": its dtype is not a known one"},
        {ONE("1", "[1]", "[0,4]"), 4, "its dtype is not a known one"},
        {ONE("\"f32\"", "[1]", "[0,4]"), 4, "its dtype is not a known one"},
        {ONE("\"F32\"", "1", "[0,4]"), 4, "its shape is not a list"},
        {ONE("\"F32\"", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, "more than 8 numbers"},
        {ONE("\"F32\"", "[\"1\"]", "[0,4]"), 4, "a size in its shape"},
        {ONE("\"F32\"", "[-1]", "[0,4]"), 4, "unexpected character"},
        {ONE("\"F32\"", "[1.0]", "[0,4]"), 4, "unexpected character"},
        {ONE("\"F32\"", "[1e0]", "[0,4]"), 4, "unexpected character"},
        {ONE("\"F32\"", "[01]", "[0,4]"), 4, "leading zero"},
        {ONE("\"F32\"", "[9007199254740992]", "[0,4]"), 4, "a size in its shape"},
        {ONE("\"F32\"", "[9007199254740991]", "[0,4]"), 4, "more than 2^53 bytes"},
        {ONE("\"U8\"", "[4294967296,4294967296]", "[0,0]"), 0, "more than 2^53 bytes"},
        {ONE("\"F32\"", "[1]", "[0,4,4]"), 4, "not a list of two"},
        {ONE("\"F32\"", "[1]", "[]"), 4, "not a list of two"},
        {ONE("\"F32\"", "[1]", "{}"), 4, "not a list of two"},
        {ONE("\"F32\"", "[1]", "[0,18446744073709551616]"), 4, "one of its data_offsets"},
        {ONE("\"F32\"", "[1]", "[4,0]"), 4, "do not span"},
        {ONE("\"F32\"", "[1]", "[0,3]"), 3, "do not span"},
        {ONE("\"F32\"", "[1]", "[4,8]"), 8, "there is a gap"},
        {ONE("\"F32\"", "[1]", "[0,4]"), 3, "tensors of 4 bytes, but 3 follow the header: the file was cut"},
        {ONE("\"F32\"", "[1]", "[0,4]"), 5, "something was appended"},
        {"{}", 1, "something was appended"},
        {"{" ENTRY("a", 0, 2) "," ENTRY("b", 0, 3) "}", 3, "tensor \"b\": its data overlaps"},
        {"{" ENTRY("a", 0, 2) "," ENTRY("a", 0, 2) "}", 2, "two tensors are named \"a\""},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1],\"more\":1}}", 1, "each once"},
        {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[0]}}", 1, "each once"},
        {"{\"__metadata__\":1}", 0, "__metadata__ is not an object"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "a value of __metadata__ is not a text"},
        {"{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", 0, "two metadata entries are named \"a\""},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "two tensors are named \"__metadata__\""},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pace__safetensors *file = NULL;
        pace_status status = open_header(cases[i].header, cases[i].data_bytes, &file);

        if (status != PACE_BAD_DATA || file || strncmp(text, "FILE: ", 6) != 0 ||
            !strstr(text, cases[i].message))
            fail_msg("%s\ngives %d and \"%s\", expected \"%s\"", cases[i].header, status, text,
                     cases[i].message);
    }
}

static void bad_lengths(void **state)
{
    (void)state;
    pace__safetensors *file;

    assert_int_equal(pace__safetensors_open_memory("1234567", 7, "FILE", &log_to_text, &file), PACE_BAD_DATA);
    assert_string_equal(text, "FILE: 7 bytes: too short for a safetensors file");
    assert_int_equal(pace__safetensors_open_memory("\x03\0\0\0\0\0\0\0{}", 10, "FILE", &log_to_text, &file),
                     PACE_BAD_DATA);
    assert_string_equal(text, "FILE: header of 3 bytes, but only 2 follow: the file was cut");
    assert_int_equal(
        pace__safetensors_open_memory("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, "FILE", &log_to_text, &file),
        PACE_BAD_DATA);
    assert_non_null(strstr(text, "not a safetensors file: its first 8 bytes are no length of a header"));
}

static void every_cut_is_noticed(void **state)
{
    char *path = path_in(state, "whole"), *bytes;
    const double values[] = {1, 2, 3};
    const pace__tensor tensor = {.name = "v", .dtype = PACE__F64, .rank = 1, .shape = {3}, .data = values};
    pace__safetensors *file;
    size_t size;

    assert_int_equal(pace__safetensors_write(path, &tensor, 1, NULL, 0, NULL, NULL), PACE_OK);
    assert_int_equal(pace__read_file(path, 1000, &bytes, &size, NULL), PACE_OK);
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(pace__safetensors_open_memory(bytes, cut, "cut", NULL, &file), PACE_BAD_DATA);
    assert_int_equal(pace__safetensors_open_memory(bytes, size, "whole", NULL, &file), PACE_OK);
    double last;

    assert_int_equal(pace__safetensors_read(file, pace__safetensors_find(file, "v"), 16, &last, 8, NULL),
                     PACE_OK);
    assert_true(last == 3);
    pace__safetensors_close(file);
    free(bytes);
    free(path);
}

static void missing_files(void **state)
{
    char *path = path_in(state, "missing");
    pace__safetensors *file;

    assert_int_equal(pace__safetensors_open(path, &log_to_text, &file), PACE_NO_INPUT);
    assert_non_null(strstr(text, path));
    assert_int_equal(pace__safetensors_open(*state, &log_to_text, &file), PACE_NO_INPUT);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_these),
        cmocka_unit_test(sha256_is_the_known_one),
        cmocka_unit_test(streamed_tensors_come_back),
        cmocka_unit_test(a_failed_write_leaves_the_old_file),
        cmocka_unit_test(good_headers),
        cmocka_unit_test(bad_headers),
        cmocka_unit_test(bad_lengths),
        cmocka_unit_test(every_cut_is_noticed),
        cmocka_unit_test(missing_files),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
