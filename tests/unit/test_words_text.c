/* Words as texts: the filters that count and sum them, lists of words and of stop words from elsewhere. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "prep/reviews/words.h"
#include "prep/reviews/words_file.h"

#include "counters.h"

/* --- filters --- */

/* pace__words_sum of a text; *out is to be freed. */
static pace_status sum(const char *text, char **out)
{
    FILE *from = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    size_t size;
    FILE *to = open_memstream(out, &size);

    assert_true(from && to);
    said_clear();
    pace_status status = pace__words_sum(from, "FILE", to, &said_log);

    fclose(from);
    fclose(to);
    return status;
}

static void expect_sum(const char *text, const char *expected)
{
    char *out;

    assert_ok(sum(text, &out));
    assert_string_equal(out, expected);
    free(out);
}

static void expect_no_sum(const char *text, const char *part)
{
    char *out;

    assert_failed(sum(text, &out), PACE_BAD_DATA, part);
    free(out);
}

static void test_sum(void **state)
{
    (void)state;
    expect_sum("a\t1\n", "a\t1\n");
    expect_sum("a\t1\na\t2\nb\t5\nc\t1\nc\t1\nc\t1", "a\t3\nb\t5\nc\t3\n");
    expect_sum("ab\t1\na\t1\n", "ab\t1\na\t1\n");
    expect_sum("a\t9223372036854775807\na\t1\n", "a\t9223372036854775808\n");
    expect_no_sum("a\t9223372036854775808\na\t1\n", "FILE: line 2: ");
    expect_no_sum("a\t9223372036854775808\na\t9223372036854775808\n", "FILE: line 2: ");
    expect_no_sum("a\t9223372036854775809\n", "FILE: line 1: ");
    expect_no_sum("a\t99999999999999999999\n", "FILE: line 1: ");
    expect_no_sum("a\t1\n\nb\t1\n", "FILE: line 2: \"\" is not a word, a tab and a count");
    expect_no_sum("a\t1\nb 1\n", "FILE: line 2: \"b 1\" is not");
    expect_no_sum("a\t1\nb\t-1\n", "FILE: line 2: ");
    expect_no_sum("a\t1\nb\t1\tx\n", "FILE: line 2: ");
    expect_no_sum("a\t1\nB\t1\n", "FILE: line 2: \"B\" is no word");
    char *out, *text = many_words(100000, "w"); /* one line */

    assert_failed(sum(text, &out), PACE_BAD_DATA, "FILE: line 1: ");
    free(out);
    free(text);
}

static int compare_lines(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* As a shell's sort would. */
static char *sort_lines(char *text)
{
    static char *line[400000];
    size_t count = 0, size = strlen(text);
    char *sorted = malloc(size + 1), *to = sorted;

    assert_non_null(sorted);
    for (char *each = strtok(text, "\n"); each; each = strtok(NULL, "\n"))
        line[count++] = each;
    qsort(line, count, sizeof *line, compare_lines);
    for (size_t i = 0; i < count; i++)
        to += sprintf(to, "%s\n", line[i]);
    *to = '\0';
    return sorted;
}

/* Map on two counters with several generations, sort, reduce: the words as `words_read` takes them. */
static void test_filters(void **state)
{
    char *maps[2] = {NULL, NULL}, *many = many_words(90000, "w"), *reduced;
    size_t size;

    for (int i = 0; i < 2; i++) {
        pace__word_counter *counter = make_counter(state, "map");
        FILE *to = open_memstream(&maps[i], &size);

        for (int turn = 0; turn < 3; turn++)
            add_text(counter, i ? "b w7 b the" : many, NULL);
        assert_ok(pace__words_print(counter, to, NULL, &said_log));
        assert_true(i || pace__word_counter_stats(counter).generations > 1);
        fclose(to);
        pace__word_counter_free(counter);
    }
    char *both = pace__format("%s%s", maps[0], maps[1]);
    char *sorted = sort_lines(both);

    assert_ok(sum(sorted, &reduced));
    assert_non_null(strstr(reduced, "\nw7\t6\n"));
    assert_non_null(strstr(reduced, "\nw77\t3\n"));
    put_text(in(state, "reduced"), reduced);
    pace__word stop = {.text = "the", .size = 3};
    pace__vocabulary *vocabulary = NULL;
    char *text;

    assert_ok(pace__words_read(in(state, "reduced"), 4, &stop, 1, &said_log, &vocabulary));
    assert_ok(pace__vocabulary_to_text(vocabulary, &said_log, &text, &size));
    assert_int_equal(size, strlen("b\t6\nw7\t6\nw0\t3\nw1\t3\n\nthe\n"));
    assert_memory_equal(text, "b\t6\nw7\t6\nw0\t3\nw1\t3\n\nthe\n", size);
    pace__vocabulary_free(vocabulary);
    free(text);
    free(reduced);
    free(sorted);
    free(both);
    free(many);
    free(maps[0]);
    free(maps[1]);
}

/* --- from elsewhere --- */

static void expect_read(void **state, const char *text, uint32_t keep, const char *expected)
{
    pace__word stop = {.text = "the", .size = 3};
    pace__vocabulary *vocabulary = NULL;
    size_t size;
    char *made;

    put_text(in(state, "FILE"), text);
    assert_ok(pace__words_read(in(state, "FILE"), keep, &stop, 1, &said_log, &vocabulary));
    assert_ok(pace__vocabulary_to_text(vocabulary, &said_log, &made, &size));
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(made, expected, size);
    pace__vocabulary_free(vocabulary);
    free(made);
}

static void expect_not_read(void **state, const char *text, uint32_t keep, const char *part)
{
    pace__vocabulary *vocabulary = NULL;

    said_clear();
    put_text(in(state, "FILE"), text);
    assert_failed(pace__words_read(in(state, "FILE"), keep, NULL, 0, &said_log, &vocabulary), PACE_BAD_DATA,
                  part);
    assert_null(vocabulary);
}

static void test_read(void **state)
{
    pace__vocabulary *vocabulary = NULL;

    expect_read(state, "a\t1\nthe\t99\nc\t5\nb\t5\n", 9, "b\t5\nc\t5\na\t1\n\nthe\n");
    expect_read(state, "a\t1\nthe\t99\nc\t5\nb\t5", 2, "b\t5\nc\t5\n\nthe\n");
    expect_read(state, "\xef\xbb\xbfz\r\nthe\r\na\r\nb", 2, "z\t2\na\t1\n\nthe\n");
    expect_read(state, "b\t5\n\na\nzz\n", 9, "b\t5\n\nthe\n"); /* a vocabulary.txt */
    put_text(in(state, "FILE"), "");
    assert_failed(
        pace__words_read(in(state, "FILE"), 9, &(pace__word){"the", 3, 0}, 1, &said_log, &vocabulary),
        PACE_BAD_DATA, "has no words");
    expect_not_read(state, "a\t1\nb\n", 9, "FILE: line 2: \"b\" is not a word, a tab and a count");
    expect_not_read(state, "a\nb\t1\n", 9, "FILE: line 2: \"b?1\" is no word");
    expect_not_read(state, "a\n\nb\n", 9, "FILE: line 2: \"\" is no word");
    expect_not_read(state, "a\t5\n\nb\t1\n", 9, "FILE: line 3: ");
    expect_not_read(state, "a\nGreat\n", 9, "FILE: line 2: \"Great\" is no word");
    expect_not_read(state, "a\t9\nb\t1\na\t7\n", 9, "FILE: line 3: \"a\" is in line 1 already");
    expect_not_read(state, "a\t1\nb\t5\nc\t6\na\t7\n", 2, "FILE: line 4: \"a\" is in line 1 already");
    expect_not_read(state, "a\nb\nc\nb\n", 2, "FILE: line 4: \"b\" is in line 2 already");
    assert_failed(pace__words_read(in(state, "none"), 9, NULL, 0, &said_log, &vocabulary), PACE_NO_INPUT,
                  "none");
    assert_int_equal(mkfifo(in(state, "pipe"), 0600), 0); /* which nobody writes to: it is not waited for */
    assert_failed(pace__words_read(in(state, "pipe"), 9, NULL, 0, &said_log, &vocabulary), PACE_NO_INPUT,
                  "pipe: is a pipe");
}

static void test_stops(void **state)
{
    pace__word *stops;
    uint32_t count;
    char joined[256] = "";

    put_text(in(state, "FILE"),
             "# words\nThe\n\nof course\r\n   \nDON\u2019T\nthe\n!!\n#x\n\u00c9t\u00e9\n<b>a</b>");
    assert_ok(pace__stops_read(in(state, "FILE"), &said_log, &stops, &count));
    for (uint32_t i = 0; i < count; i++) {
        strncat(joined, stops[i].text, stops[i].size);
        strcat(joined, "|");
    }
    assert_string_equal(joined, "a|course|don't|of|the|\u00e9t\u00e9|");
    pace__stops_free(stops, count);
    put_text(in(state, "FILE"), "");
    assert_ok(pace__stops_read(in(state, "FILE"), &said_log, &stops, &count));
    assert_int_equal(count, 0);
    pace__stops_free(stops, count);
    put_text(in(state, "FILE"), "a\nb\n\xff\n");
    assert_failed(pace__stops_read(in(state, "FILE"), &said_log, &stops, &count), PACE_BAD_DATA,
                  "FILE: line 3: no valid UTF-8");
    assert_failed(pace__stops_read(in(state, "none"), &said_log, &stops, &count), PACE_NO_INPUT, "none");
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(test_sum),
        IN_DIRECTORY(test_filters),
        IN_DIRECTORY(test_read),
        IN_DIRECTORY(test_stops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
