/* Which files the words of a command stand for, what their format is, and what ratings are. */
#include "data/text/rating.h"
#include "data/text/reviews.h"

#include <locale.h>
#include <paceline/prep.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support.h"

#define JSON "{\"reviewText\": \"a\", \"overall\": 1}\n"

static const pace__review_options automatic = {PACE_REVIEWS_AUTO, "reviewText", "overall", false};

static pace_status find(const char **words, size_t count, pace__review_options *options,
                        pace__review_files *files)
{
    pace_texts texts = {words, count};

    return pace__review_files_find(&texts, options, &said_log, files);
}

/* One word, of a format that has to be told. */
static void check_told(const char *word, int format)
{
    pace__review_options options = automatic;
    pace__review_files files;

    assert_ok(find(&word, 1, &options, &files));
    assert_int_equal(options.format, format);
    assert_int_equal(files.count, 1);
    assert_string_equal(files.paths[0], word);
    assert_true(isnan(files.rating[0]));
    pace__review_files_release(&files);
}

static void check_refused(pace__review_options options, const char *word, pace_status status,
                          const char *part)
{
    pace__review_files files;

    assert_failed(find(&word, 1, &options, &files), status, part);
}

static pace__review_options of(int format)
{
    pace__review_options options = automatic;

    options.format = format;
    return options;
}

static void test_formats_are_told(void **state)
{
    static const struct {
        const char *text;
        int format;
    } cases[] = {
        {JSON, PACE_REVIEWS_JSONL},
        {"\xef\xbb\xbf\r\n  {\n", PACE_REVIEWS_JSONL},
        {"overall\tid\treviewText\r\n", PACE_REVIEWS_TSV},
        {"a,\"b\nc\",\"overall\",reviewText\n", PACE_REVIEWS_CSV},
        {"\xef\xbb\xbfreviewText,overall", PACE_REVIEWS_CSV},
    };
    const char *path = in(state, "file");

    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_text(path, cases[i].text);
        check_told(path, cases[i].format);
    }
}

static void test_formats_that_cannot_be_told(void **state)
{
    const char *path = in(state, "file");

    put_text(path, "a good film, really\n");
    check_refused(automatic, path, PACE_USAGE,
                  "file: cannot tell its format: the first line is no JSON object and has no columns "
                  "\"reviewText\" and \"overall\", only \"a good film\", \" really\": give --format, ");
    put_text(path, "id\toverall\n");
    check_refused(automatic, path, PACE_USAGE, "only \"id\", \"overall\": give --format");
    put_text(path, "reviewText\n");
    check_refused(automatic, path, PACE_USAGE, "and \"overall\": give --format");
    put_text(path, "");
    check_refused(automatic, path, PACE_BAD_DATA, "file: it is empty: no texts");
    check_refused(automatic, "-", PACE_USAGE, "-: can be read only once, so its format cannot be told");
    check_refused(automatic, in(state, "missing"), PACE_NO_INPUT, "missing: cannot open");
    check_refused(of(PACE_REVIEWS_TAB), in(state, "missing"), PACE_NO_INPUT, "missing: cannot open");
    check_refused(of(PACE_REVIEWS_TAB), *state, PACE_NO_INPUT, "is a directory; give its files");
    check_refused(of(PACE_REVIEWS_FOLDER), path, PACE_USAGE, "file: is no directory");
    pace__review_options options = automatic;
    pace__review_files files;

    assert_failed(find(NULL, 0, &options, &files), PACE_USAGE, "no input is given");
}

/* Many names: only as many as fit are shown. */
static void test_many_columns(void **state)
{
    const char *path = in(state, "file");
    char header[4000];
    size_t used = 0;

    for (unsigned i = 0; i < 100; i++)
        used +=
            (size_t)snprintf(header + used, sizeof header - used, "a rather long name of a column %u,", i);
    put_text(path, header);
    check_refused(automatic, path, PACE_USAGE, ", ...: give --format");
    check_refused(of(PACE_REVIEWS_CSV), path, PACE_USAGE, ", ...: name the column of the texts");
}

static void test_formats_are_not_mixed(void **state)
{
    const char *words[] = {in(state, "a"), in(state, "empty"), in(state, "b"), in(state, "c")};
    pace__review_options options = automatic;
    pace__review_files files;

    put_text(words[0], JSON);
    put_text(words[1], "");
    put_text(words[2], JSON);
    put_text(words[3], "reviewText,overall\n");
    assert_ok(find(words, 3, &options, &files));
    assert_int_equal(options.format, PACE_REVIEWS_JSONL);
    assert_int_equal(files.count, 3);
    pace__review_files_release(&files);
    options = automatic;
    assert_failed(find(words, 4, &options, &files), PACE_USAGE, "is of the format jsonl, ");
    assert_int_equal(options.format, PACE_REVIEWS_AUTO);
    /* Given twice is read twice. */
    words[1] = words[0];
    assert_ok(find(words, 2, &options, &files));
    assert_int_equal(files.count, 2);
    assert_string_equal(files.paths[0], files.paths[1]);
    pace__review_files_release(&files);
}

static void test_files_with_labels(void **state)
{
    char first[300], second[300], third[300];
    const char *words[] = {first, second, third};
    pace__review_options options = automatic;
    pace__review_files files;

    snprintf(first, sizeof first, "%s=neg", in(state, "a"));
    snprintf(second, sizeof second, "%s=4.5", in(state, "b=c"));
    snprintf(third, sizeof third, "-=1");
    put_text(in(state, "a"), "x\n");
    put_text(in(state, "b=c"), "x\n");
    assert_ok(find(words, 3, &options, &files));
    assert_int_equal(options.format, PACE_REVIEWS_LINES);
    assert_string_equal(files.paths[0], in(state, "a"));
    assert_string_equal(files.paths[1], in(state, "b=c"));
    assert_string_equal(files.paths[2], "-");
    assert_true(files.rating[0] == 0 && files.rating[1] == 4.5 && files.rating[2] == 1);
    pace__review_files_release(&files);
    snprintf(first, sizeof first, "%s=good", in(state, "a"));
    check_refused(automatic, first, PACE_USAGE,
                  "a=good: there is no such file, nor is \"good\" a label (pos, neg or a number) of a file ");
    check_refused(of(PACE_REVIEWS_LINES), first, PACE_USAGE, "nor is \"good\" a label");
    snprintf(first, sizeof first, "%s=1", in(state, "missing"));
    check_refused(automatic, first, PACE_NO_INPUT, "missing: cannot open");
    check_refused(of(PACE_REVIEWS_LINES), in(state, "a"), PACE_USAGE, "a: its label is missing: give ");
    /* Of this name there is a file. */
    put_text(in(state, "d=1"), JSON);
    check_told(in(state, "d=1"), PACE_REVIEWS_JSONL);
    check_refused(of(PACE_REVIEWS_JSONL), first, PACE_NO_INPUT, "missing=1: cannot open");
}

static void test_texts_without_labels(void **state)
{
    pace__review_options options = of(PACE_REVIEWS_LINES);
    const char *word = in(state, "a");
    pace__review_files files;

    put_text(word, "reviewText,x\n");
    options.labels_optional = true;
    assert_ok(find(&word, 1, &options, &files));
    assert_true(isnan(files.rating[0]));
    pace__review_files_release(&files);
    options.format = PACE_REVIEWS_AUTO;
    assert_ok(find(&word, 1, &options, &files));
    assert_int_equal(options.format, PACE_REVIEWS_CSV);
    pace__review_files_release(&files);
}

static void test_folder(void **state)
{
    static const char *const texts[] = {"set/pos/b.txt", "set/neg/10.txt", "set/pos/a.txt", "set/neg/9.txt",
                                        "set/3.5/x.txt"};
    static const char *const others[] = {"set/pos/b.html", "set/pos/.c.txt", "set/unsup/a.txt", "set/pos.txt",
                                         "set/pos/deep/a.txt"};
    static const char *const found[] = {"set/3.5/x.txt", "set/neg/10.txt", "set/neg/9.txt", "set/pos/a.txt",
                                        "set/pos/b.txt"};
    static const double ratings[] = {3.5, 0, 0, 1, 1};
    const char *word = in(state, "set");
    pace__review_options options = automatic;
    pace__review_files files;

    assert_ok(pace__make_dirs(in(state, "set/other"), &said_log));
    check_refused(automatic, word, PACE_NO_INPUT,
                  "set: has no sub-directory whose name is a label (pos and neg, or numbers), only other");
    assert_ok(pace__make_dirs(in(state, "set/neg"), &said_log));
    check_refused(automatic, word, PACE_NO_INPUT, "set: there is no file *.txt in its sub-directories");
    assert_ok(pace__make_dirs(in(state, "set/pos/deep"), &said_log));
    assert_ok(pace__make_dirs(in(state, "set/3.5"), &said_log));
    assert_ok(pace__make_dirs(in(state, "set/unsup"), &said_log));
    for (unsigned i = 0; i < 5; i++) {
        put_text(in(state, texts[i]), "x");
        put_text(in(state, others[i]), "x");
    }
    assert_ok(find(&word, 1, &options, &files));
    assert_int_equal(options.format, PACE_REVIEWS_FOLDER);
    assert_int_equal(files.count, 5);
    for (unsigned i = 0; i < 5; i++) {
        assert_string_equal(files.paths[i], in(state, found[i]));
        assert_true(files.rating[i] == ratings[i]);
    }
    assert_said("set: no labels, so not read: ");
    pace__review_files_release(&files);
    check_refused(of(PACE_REVIEWS_CSV), word, PACE_NO_INPUT, "set: is a directory; give its files");
}

static void test_boundaries(void **state)
{
    (void)state;
    assert_int_equal(pace__review_boundary(PACE_REVIEWS_JSONL), PACE__LINES);
    assert_int_equal(pace__review_boundary(PACE_REVIEWS_TSV), PACE__LINES);
    assert_int_equal(pace__review_boundary(PACE_REVIEWS_CSV), PACE__CSV);
    assert_int_equal(pace__review_boundary(PACE_REVIEWS_FOLDER), PACE__WHOLE);
}

static void test_ratings(void **state)
{
    static const struct {
        const char *text;
        double rating;
    } good[] = {
        {"5", 5},
        {"5.0", 5},
        {"-1", -1},
        {"+2.50", 2.5},
        {".5", .5},
        {"4.", 4},
        {" 3\t\r", 3},
        {"1e2", 100},
        {"12.5E-1", 1.25},
        {"POS", 1},
        {"Negative", 0},
        {"true", 1},
        {"False", 0},
        {"0.1", 0.1},
        {"1e-400", 0},
        {"4.35", 4.35},
        {"0.000001", 1e-6},
        {"1e308", 1e308},
        {"123456789012345678", 123456789012345678.},
        {"-0.30000000000000004", -0.30000000000000004},
        {"17976931348623157e292", 17976931348623157e292},
    };
    static const char *const bad[] = {"",     " ",     "nan",  "inf", "-Infinity", "1e309", "0x10",
                                      "five", "1.2.3", "1e",   "e5",  "--1",       "+",     ".",
                                      "1,5",  "5/5",   "poss", "1 2", "1e+",       "1e5x",  "truee"};
    double rating = 7;

    (void)state;
    /* Whatever the locale's decimal point is, where there is such a locale. */
    setlocale(LC_ALL, "de_DE.UTF-8");
    for (unsigned i = 0; i < sizeof good / sizeof *good; i++) {
        if (!pace__rating_parse(good[i].text, strlen(good[i].text), &rating) || rating != good[i].rating)
            fail_msg("\"%s\" is %.17g", good[i].text, rating);
    }
    rating = 7;
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (pace__rating_parse(bad[i], strlen(bad[i]), &rating))
            fail_msg("\"%s\" is %.17g", bad[i], rating);
        assert_true(rating == 7);
    }
    char digits[100];

    memset(digits, '1', sizeof digits);
    assert_true(pace__rating_parse(digits, 64, &rating));
    assert_false(pace__rating_parse(digits, 65, &rating));
    setlocale(LC_ALL, "C");
}

/* Short numbers, which are parsed by hand, are what the C library makes of them. */
static void test_short_numbers(void **state)
{
    uint64_t seed = pace__mix64((uint64_t)getpid());
    pace__random random = pace__random_at(seed, 0);

    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (unsigned i = 0; i < 20000; i++) {
        char text[64];
        double rating = -1;

        snprintf(text, sizeof text, "%.*f", (int)pace__random_below(&random, 12),
                 (double)pace__random_below(&random, 1u << 20) *
                     pow(10, -(double)pace__random_below(&random, 9)));
        assert_true(pace__rating_parse(text, strlen(text), &rating));
        assert_true(rating == strtod(text, NULL));
    }
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_formats_are_told),
        TEST(test_formats_that_cannot_be_told),
        TEST(test_many_columns),
        TEST(test_formats_are_not_mixed),
        TEST(test_files_with_labels),
        TEST(test_texts_without_labels),
        TEST(test_folder),
        TEST(test_boundaries),
        TEST(test_ratings),
        TEST(test_short_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
