/* Word vectors in text: what is found in which lines, and what is refused by line. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/input/input.h"
#include "data/text/embeddings.h"

#include "support.h"

#include <isa-l/igzip_lib.h>
#include <zstd.h>

/* What was found, a line each: "word|1|2.5". */
typedef struct notes {
    char text[4096];
    size_t used;
    uint32_t dimensions;
    unsigned stop_at, count; /* returns PACE_INTERRUPTED for the word of this number, from 1 */
} notes;

static pace_status note(void *user, const char *word, size_t size, const float *values)
{
    notes *self = user;
    char *at = self->text + self->used;
    size_t room = sizeof self->text - self->used, used = (size_t)snprintf(at, room, "%.*s", (int)size, word);

    for (uint32_t i = 0; i < self->dimensions; i++)
        used += (size_t)snprintf(at + used, room - used, "|%g", (double)values[i]);
    used += (size_t)snprintf(at + used, room - used, "\n");
    assert_true(used < room);
    self->used += used;
    return ++self->count == self->stop_at ? PACE_INTERRUPTED : PACE_OK;
}

static void expect(void **state, uint32_t dimensions, const char *text, const char *expected)
{
    notes found = {.dimensions = dimensions};

    put_text(in(state, "vectors"), text);
    assert_ok(pace__embeddings_read(in(state, "vectors"), dimensions, note, &found, &said_log));
    assert_string_equal(found.text, expected);
}

static void refuse(void **state, uint32_t dimensions, const char *text, const char *message)
{
    notes found = {.dimensions = dimensions};

    put_text(in(state, "vectors"), text);
    said_clear();
    pace_status status = pace__embeddings_read(in(state, "vectors"), dimensions, note, &found, &said_log);

    assert_said(in(state, "vectors"));
    assert_failed(status, PACE_BAD_DATA, message);
}

static void a_line_is_a_word_and_its_numbers(void **state)
{
    expect(state, 2, "the 0.5 -0.25\nof 1e-3 3\n", "the|0.5|-0.25\nof|0.001|3\n");
    expect(state, 2, "the\t0.5\t-0.25\nof 1 +2", "the|0.5|-0.25\nof|1|2\n"); /* no newline at the end */
    expect(state, 1, "the  7. \r\nof .5\r\n\n   \n", "the|7\nof|0.5\n");     /* blanks, carriage returns */
    expect(state, 2, "7 1 2\n1.5 3 4\n", "7|1|2\n1.5|3|4\n"); /* words that look like numbers */
    expect(state, 2, "Caf\xc3\xa9 1 2\nTHE 3 4\nTHE 5 6\n", "Caf\xc3\xa9|1|2\nTHE|3|4\nTHE|5|6\n");
    expect(state, 3, "<unk> 0.123456789 123456789 -1e20\n", "<unk>|0.123457|1.23457e+08|-1e+20\n");
    expect(state, 2, "a#b 1 2\n", "a#b|1|2\n");
}

/* fastText puts a blank behind the last number. */
static void a_header_is_passed_over(void **state)
{
    expect(state, 2, "2 2\nthe 0.5 1 \nof 2 3 \n", "the|0.5|1\nof|2|3\n");
    expect(state, 2, "400000\t2 \r\nthe 0.5 1\n", "the|0.5|1\n");
    refuse(state, 2, "the 5 6\n3 2\n", "line 2: 1 values");
    refuse(state, 2, "2 300\nthe 1 2\n", "line 1: vectors of 300 dimensions, where 2 are wanted");
}

static void words_may_have_blanks(void **state)
{
    expect(state, 2, ". . . 1 2\nat name@domain.com 3 4\n", ". . .|1|2\nat name@domain.com|3|4\n");
    expect(state, 2, "1 x 1 2\n", "1 x|1|2\n");
    refuse(state, 2, "a 1 1 2\n", "line 1: 3 values behind the word, where 2 are wanted");
    expect(state, 2, " 1 2\nthe 3 4\n", "the|3|4\n"); /* the empty word */
}

static void bad_lines_are_named(void **state)
{
    refuse(state, 3, "the 1 2 3\nof 1 2\n", "line 2: 2 values behind the word, where 3 are wanted");
    refuse(state, 3, "the 1 2 3\nof\n", "line 2: 0 values");
    refuse(state, 2, "the 1 2 3\n", "line 1: 3 values");
    refuse(state, 2, "the 1 2\n\nof 1 two\n", "line 3: 'two' is no finite number");
    refuse(state, 2, "the 1 2\nof nan 2\n", "line 2: 'nan' is no finite number");
    refuse(state, 2, "the 1 2\nof 1 inf\n", "line 2: 'inf'");
    refuse(state, 2, "the 1 2\nof 1e39 1\n", "line 2: '1e39'");
    refuse(state, 2, "the 1 0x1p3\n", "line 1: '0x1p3'");
    refuse(state, 2, "the 1 2#3\n", "line 1: '2#3'");
    refuse(state, 2, "the 1 2\r3\n", "line 1: '2?3'");
    refuse(state, 2, "the 1 -", "line 1: '-'");
    refuse(state, 2, "", "no word vectors");
    refuse(state, 2, "\n \n", "no word vectors");
    refuse(state, 2, "5 2\n", "no word vectors");
}

static void missing_files_are_named(void **state)
{
    notes found = {.dimensions = 2};

    said_clear();
    pace_status status = pace__embeddings_read(in(state, "none"), 2, note, &found, &said_log);

    assert_failed(status, PACE_NO_INPUT, in(state, "none"));
}

static void the_reader_of_vectors_may_stop(void **state)
{
    notes found = {.dimensions = 1, .stop_at = 2};

    put_text(in(state, "vectors"), "a 1\nb 2\nc 3\n");
    said_clear();
    assert_int_equal(pace__embeddings_read(in(state, "vectors"), 1, note, &found, &said_log),
                     PACE_INTERRUPTED);
    assert_int_equal(found.count, 2);
    assert_string_equal(said, "");
}

/* --- large and compressed files --- */

#define WORDS      60000
#define DIMENSIONS 12

/* Numbers that are exact in six digits behind the point. */
static double number_of(unsigned word, unsigned i)
{
    return (double)((int)(pace__mix64(word * 100 + i) % 2000001) - 1000000) * 1e-6;
}

static char *make_large(size_t *size)
{
    size_t room = (size_t)WORDS * (20 + DIMENSIONS * 12), used = 0;
    char *text = tiny_alloc(room);

    for (unsigned word = 0; word < WORDS; word++) {
        used += (size_t)snprintf(text + used, room - used, "w%u", word);
        for (unsigned i = 0; i < DIMENSIONS; i++)
            used += (size_t)snprintf(text + used, room - used, " %.6f", number_of(word, i));
        text[used++] = '\n';
    }
    assert_true(used > PACE__CHUNK_BYTES && used < room); /* more than one chunk */
    *size = used;
    return text;
}

static pace_status compare(void *user, const char *word, size_t size, const float *values)
{
    unsigned *count = user;
    char expected[16];

    assert_int_equal(snprintf(expected, sizeof expected, "w%u", *count), size);
    assert_memory_equal(word, expected, size);
    for (unsigned i = 0; i < DIMENSIONS; i++)
        assert_true(fabs((double)values[i] - number_of(*count, i)) <= 6.1e-8);
    ++*count;
    return PACE_OK;
}

static size_t gzip(const char *text, size_t size, char *packed, size_t room)
{
    struct isal_zstream stream;

    isal_deflate_init(&stream);
    stream.gzip_flag = IGZIP_GZIP;
    stream.end_of_stream = 1;
    stream.next_in = (uint8_t *)text;
    stream.avail_in = (uint32_t)size;
    stream.next_out = (uint8_t *)packed;
    stream.avail_out = (uint32_t)room;
    assert_int_equal(isal_deflate(&stream), COMP_OK);
    assert_int_equal(stream.avail_in, 0);
    return room - stream.avail_out;
}

static void large_and_compressed_files_are_read_in_order(void **state)
{
    size_t size, room;
    char *text = make_large(&size), *packed = tiny_alloc(room = 2 * size);

    for (int kind = 0; kind < 3; kind++) {
        size_t bytes = size;
        unsigned count = 0;

        memcpy(packed, text, size);
        if (kind == 1)
            bytes = gzip(text, size, packed, room);
        else if (kind == 2)
            bytes = ZSTD_compress(packed, room, text, size, 1);
        assert_ok(pace__write_file_atomically(in(state, "vectors"), packed, bytes, &said_log));
        assert_ok(pace__embeddings_read(in(state, "vectors"), DIMENSIONS, compare, &count, &said_log));
        assert_int_equal(count, WORDS);
    }
    free(packed);
    free(text);
}

static void lines_are_counted_across_chunks(void **state)
{
    unsigned count = 0;
    size_t size;
    char *text = make_large(&size);

    memcpy(strstr(text, "w55555 ") + 7, "x", 1);
    assert_ok(pace__write_file_atomically(in(state, "vectors"), text, size, &said_log));
    said_clear();
    pace_status status = pace__embeddings_read(in(state, "vectors"), DIMENSIONS, compare, &count, &said_log);

    assert_failed(status, PACE_BAD_DATA, "line 55556: 'x");
    assert_int_equal(count, 55555);
    free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_line_is_a_word_and_its_numbers),
        TEST(a_header_is_passed_over),
        TEST(words_may_have_blanks),
        TEST(bad_lines_are_named),
        TEST(missing_files_are_named),
        TEST(the_reader_of_vectors_may_stop),
        TEST(large_and_compressed_files_are_read_in_order),
        TEST(lines_are_counted_across_chunks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
