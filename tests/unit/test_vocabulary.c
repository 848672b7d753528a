/* Vocabularies: as text and back, found, encoded, refused. And the stop words. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/text/vocabulary.h"

/* Generated reviews have a type of this name for themselves. */
#define pace__word pace__generated_word
#include "gen/review_words.h"
#undef pace__word

#include "support.h"

#include <paceline/prep.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static pace__word word(const char *text, uint64_t count)
{
    return (pace__word){.text = text, .size = (uint32_t)strlen(text), .count = count};
}

static const char small_text[] = "great\t90\nbad\t7\ndon't\t7\ncaf\u00e9\t1\n\na\nthe\n";

/* What small_text says. */
static pace__vocabulary *small(void)
{
    pace__word words[] = {word("great", 90), word("bad", 7), word("don't", 7), word("caf\u00e9", 1)};
    pace__word stops[] = {word("the", 0), word("a", 0)};
    pace__vocabulary *vocabulary = NULL;

    assert_ok(pace__vocabulary_create(words, 4, stops, 2, &said_log, &vocabulary));
    return vocabulary;
}

static uint32_t find(const pace__vocabulary *vocabulary, const char *text)
{
    uint32_t size = (uint32_t)strlen(text);

    return pace__vocabulary_find(vocabulary, pace__word_hash(text, size), text, size);
}

static void assert_word(pace__word found, const char *text, uint64_t count)
{
    assert_int_equal(found.size, strlen(text));
    assert_memory_equal(found.text, text, found.size);
    assert_int_equal(found.count, count);
}

static void check_small(const pace__vocabulary *vocabulary)
{
    assert_int_equal(pace__vocabulary_ids(vocabulary), 7);
    assert_int_equal(pace__vocabulary_stops(vocabulary), 2);
    assert_word(pace__vocabulary_word(vocabulary, PACE__ID_PAD), "<pad>", 0);
    assert_word(pace__vocabulary_word(vocabulary, PACE__ID_UNKNOWN), "<unknown>", 0);
    assert_word(pace__vocabulary_word(vocabulary, PACE__ID_EMPTY), "<empty>", 0);
    assert_word(pace__vocabulary_word(vocabulary, 3), "great", 90);
    assert_word(pace__vocabulary_word(vocabulary, 6), "caf\u00e9", 1);
    assert_word(pace__vocabulary_stop(vocabulary, 0), "a", 0);
    assert_word(pace__vocabulary_stop(vocabulary, 1), "the", 0);
    assert_int_equal(find(vocabulary, "great"), 3);
    assert_int_equal(find(vocabulary, "don't"), 5);
    assert_int_equal(find(vocabulary, "caf\u00e9"), 6);
    assert_int_equal(find(vocabulary, "the"), PACE__ID_STOP);
    assert_int_equal(find(vocabulary, "grea"), PACE__ID_UNKNOWN);
    assert_int_equal(find(vocabulary, "greater"), PACE__ID_UNKNOWN);
}

static void test_text_and_back(void **state)
{
    pace__vocabulary *made = small(), *again = NULL;
    char *text;
    size_t size;

    (void)state;
    check_small(made);
    assert_ok(pace__vocabulary_to_text(made, &said_log, &text, &size));
    assert_int_equal(size, strlen(small_text));
    assert_memory_equal(text, small_text, size);
    assert_ok(pace__vocabulary_from_text(text, size, "here", &said_log, &again));
    check_small(again);
    assert_true(pace__vocabulary_checksum(made) == pace__vocabulary_checksum(again));
    free(text);
    pace__vocabulary_free(made);
    pace__vocabulary_free(again);
    pace__vocabulary_free(NULL);
}

static pace__vocabulary *from_text(const char *text)
{
    pace__vocabulary *vocabulary = NULL;

    assert_ok(pace__vocabulary_from_text(text, strlen(text), "here", &said_log, &vocabulary));
    return vocabulary;
}

static void test_checksum(void **state)
{
    static const char *const texts[] = {"a\t2\nb\t1\n\n",
                                        "a\t2\nc\t1\n\n",
                                        "a\t3\nb\t1\n\n",
                                        "b\t2\na\t1\n\n",
                                        "a\t2\n\nb\n",
                                        "\na\nb\n",
                                        "\n"};
    uint64_t sums[COUNT(texts)];

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        pace__vocabulary *vocabulary = from_text(texts[i]);

        sums[i] = pace__vocabulary_checksum(vocabulary);
        pace__vocabulary_free(vocabulary);
        for (size_t j = 0; j < i; j++)
            assert_true(sums[i] != sums[j]);
    }
}

static void expect_refused(const char *text, const char *part)
{
    pace__vocabulary *vocabulary = NULL;

    said_clear();
    assert_failed(pace__vocabulary_from_text(text, strlen(text), "FILE", &said_log, &vocabulary),
                  PACE_BAD_DATA, part);
    assert_null(vocabulary);
}

static void test_bad_texts_are_refused(void **state)
{
    char text[256];

    (void)state;
    expect_refused("", "FILE: the last line has no end");
    expect_refused("a\t1\n\nb", "FILE: the last line has no end");
    expect_refused("a\t1\nb\t1\n", "FILE: no empty line");
    expect_refused("a\t2\nb\n\n", "FILE: line 2: \"b\" is not a word, a tab and a count");
    expect_refused("a\t2\nb\t\n\n", "FILE: line 2: \"b?\" is not");
    expect_refused("a\t-2\n\n", "FILE: line 1: \"a?-2\" is not");
    expect_refused("a\t02\n\n", "FILE: line 1: \"a?02\" is not");
    expect_refused("a\t2 \n\n", "FILE: line 1: \"a?2 \" is not");
    expect_refused("a\t18446744073709551616\n\n", "FILE: line 1: ");
    expect_refused("a\t2\nb\t1\na\t1\n\n", "FILE: line 3: \"a\" is there a second time");
    expect_refused("a\t2\n\na\n", "FILE: line 3: \"a\" is there a second time");
    expect_refused("a\t2\n\nb\nb\n", "FILE: line 4: \"b\" is there a second time");
    expect_refused("\nc\nb\n", "FILE: line 3: \"b\" comes too late");
    expect_refused("\nc\n\n", "FILE: line 3: \"\" is no word");
    expect_refused("A\t2\n\n", "FILE: line 1: \"A\" is no word");
    expect_refused("\t2\n\n", "FILE: line 1: \"\" is no word");
    expect_refused("a b\t2\n\n", "FILE: line 1: \"a b\" is no word");
    expect_refused("\xff\t2\n\n", "FILE: line 1: \"?\" is no word");
    expect_refused("caf\xc3\t2\n\n", "FILE: line 1: \"caf?\" is no word");
    memset(text, 'x', 200);
    strcpy(text + 65, "\t2\n\n");
    expect_refused(text, "FILE: line 1: ");
    strcpy(text + 64, "\t2\n\n");
    pace__vocabulary_free(from_text(text));
}

static void test_create_refuses(void **state)
{
    pace__word twice[] = {word("a", 2), word("b", 1), word("a", 1)};
    pace__word wrong[] = {word("a\tb", 1)}, empty[] = {word("", 1)};
    pace__vocabulary *vocabulary = NULL;

    (void)state;
    said_clear();
    assert_failed(pace__vocabulary_create(twice, 3, NULL, 0, &said_log, &vocabulary), PACE_BAD_DATA, "\"a\"");
    assert_failed(pace__vocabulary_create(twice, 2, twice, 1, &said_log, &vocabulary), PACE_BAD_DATA,
                  "\"a\"");
    assert_failed(pace__vocabulary_create(NULL, 0, twice, 3, &said_log, &vocabulary), PACE_BAD_DATA, "\"a\"");
    assert_failed(pace__vocabulary_create(wrong, 1, NULL, 0, &said_log, &vocabulary), PACE_BAD_DATA, "a?b");
    assert_failed(pace__vocabulary_create(NULL, 0, empty, 1, &said_log, &vocabulary), PACE_BAD_DATA, "\"\"");
    assert_null(vocabulary);
}

/* Many words, sizes up to the greatest: all are found, and nothing else. */
static void test_many_words(void **state)
{
    enum { WORDS = 20000 };
    char(*texts)[PACE__TOKEN_BYTES_MAX + 1] = calloc(WORDS, sizeof *texts);
    pace__word *words = calloc(WORDS, sizeof *words);
    pace__vocabulary *vocabulary = NULL;
    char other[16];

    (void)state;
    assert_true(texts && words);
    for (uint32_t i = 0; i < WORDS; i++) {
        snprintf(texts[i], sizeof texts[i], "%u%.*s", i, (int)(i % 58),
                 "eeeetttaaoooiinnsshhrrddlucmfwypvbgkeeee"
                 "tttaaoooiinnsshhrr");
        words[i] = word(texts[i], WORDS - i);
    }
    assert_ok(
        pace__vocabulary_create(words, WORDS / 2, words + WORDS / 2, WORDS / 2, &said_log, &vocabulary));
    for (uint32_t i = 0; i < WORDS; i++) {
        assert_int_equal(find(vocabulary, texts[i]), i < WORDS / 2 ? PACE__ID_WORDS + i : PACE__ID_STOP);
        snprintf(other, sizeof other, "x%u", i);
        assert_int_equal(find(vocabulary, other), PACE__ID_UNKNOWN);
    }
    pace__vocabulary_free(vocabulary);
    free(words);
    free(texts);
}

static void test_files(void **state)
{
    pace__vocabulary *made = small(), *again = NULL;
    pace__encoding encoding = {.kind = PACE__TEXT,
                               .features = pace__vocabulary_ids(made),
                               .length = 10,
                               .vocabulary = pace__vocabulary_checksum(made)};

    assert_failed(pace__vocabulary_read(*state, &encoding, &said_log, &again), PACE_NO_INPUT,
                  "vocabulary.txt");
    assert_ok(pace__vocabulary_write(made, *state, &said_log));
    assert_ok(pace__vocabulary_read(*state, &encoding, &said_log, &again));
    check_small(again);
    pace__vocabulary_free(again);
    encoding.vocabulary ^= 1;
    assert_failed(pace__vocabulary_read(*state, &encoding, &said_log, &again), PACE_BAD_DATA,
                  "vocabulary.txt: not the vocabulary of the data");
    encoding.vocabulary ^= 1;
    encoding.features++;
    assert_failed(pace__vocabulary_read(*state, &encoding, &said_log, &again), PACE_BAD_DATA,
                  "vocabulary.txt");
    encoding.features--;
    encoding.kind = PACE__CRITEO;
    assert_failed(pace__vocabulary_read(*state, &encoding, &said_log, &again), PACE_BAD_DATA,
                  "vocabulary.txt");
    pace__vocabulary_free(made);
}

/* `expected` is ids, ended by 0. */
static void expect_ids(const pace__vocabulary *vocabulary, const char *text, int truncate, uint32_t length,
                       const uint32_t *expected)
{
    pace__encoding encoding = {.kind = PACE__TEXT, .length = length, .truncate = truncate};
    char padded[512] = {0};
    pace__tokens tokens = {0};
    uint32_t ids[64], count = 0;

    memset(ids, 0xee, sizeof ids);
    strcpy(padded, text);
    assert_ok(pace__tokenise(&tokens, padded, strlen(text), &said_log));
    while (expected[count])
        count++;
    assert_int_equal(pace__vocabulary_encode(vocabulary, &encoding, &tokens, ids), count);
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] != expected[i])
            fail_msg("\"%s\", way %d, length %u: id %u is %u, not %u", text, truncate, length, i, ids[i],
                     expected[i]);
    }
    assert_int_equal(ids[length], 0xeeeeeeee);
    pace__tokens_release(&tokens);
}

#define IDS(...) ((const uint32_t[]){__VA_ARGS__, 0})

static void test_encode(void **state)
{
    pace__vocabulary *vocabulary = from_text("b\t9\nc\t8\nd\t7\ne\t6\nf\t5\n\na\nthe\n"); /* b is 3 */

    (void)state;
    for (int way = PACE_TRUNCATE_HEAD; way <= PACE_TRUNCATE_BOTH; way++) {
        expect_ids(vocabulary, "", way, 4, IDS(PACE__ID_EMPTY));
        expect_ids(vocabulary, "...", way, 1, IDS(PACE__ID_EMPTY));
        expect_ids(vocabulary, "the a THE", way, 4, IDS(PACE__ID_EMPTY));
        expect_ids(vocabulary, "the B, a c? x", way, 4, IDS(3, 4, 1));
        expect_ids(vocabulary, "b c d e the a", way, 4, IDS(3, 4, 5, 6));
        expect_ids(vocabulary, "the b a c d the e", way, 4, IDS(3, 4, 5, 6));
    }
    expect_ids(vocabulary, "b c the d e x a f", PACE_TRUNCATE_HEAD, 4, IDS(3, 4, 5, 6));
    expect_ids(vocabulary, "b c the d e x a f", PACE_TRUNCATE_TAIL, 4, IDS(5, 6, 1, 7));
    expect_ids(vocabulary, "b c the d e x a f", PACE_TRUNCATE_BOTH, 4, IDS(3, 4, 1, 7));
    expect_ids(vocabulary, "b c the d e x a f", PACE_TRUNCATE_BOTH, 3, IDS(3, 4, 7));
    expect_ids(vocabulary, "b c the d e x a f", PACE_TRUNCATE_BOTH, 5, IDS(3, 4, 5, 1, 7));
    expect_ids(vocabulary, "b c", PACE_TRUNCATE_HEAD, 1, IDS(3));
    expect_ids(vocabulary, "b c", PACE_TRUNCATE_TAIL, 1, IDS(4));
    expect_ids(vocabulary, "b c", PACE_TRUNCATE_BOTH, 1, IDS(3));
    pace__vocabulary_free(vocabulary);
}

/* Encoding cuts as pace__truncation says, for any texts. */
static void test_encode_against_truncation(void **state)
{
    pace__vocabulary *vocabulary = from_text("b\t9\nc\t8\nd\t7\ne\t6\nf\t5\n\na\n");
    pace__random random = pace__random_at(5, 7);

    (void)state;
    for (int turn = 0; turn < 3000; turn++) {
        uint32_t words = (uint32_t)pace__random_below(&random, 20), all[20], expected[21], kept = 0, n = 0;
        uint32_t length = 1 + (uint32_t)pace__random_below(&random, 12), head, tail;
        int way = turn % 3;
        char text[64] = {0};

        for (uint32_t i = 0; i < words; i++) {
            uint32_t letter = (uint32_t)pace__random_below(&random, 6);

            text[2 * i] = (char)('a' + letter);
            text[2 * i + 1] = ' ';
            if (letter > 0)
                all[kept++] = PACE__ID_WORDS + letter - 1;
        }
        pace__truncation(way, kept, length, &head, &tail);
        assert_int_equal(head + tail, kept < length ? kept : length);
        for (uint32_t i = 0; i < head; i++)
            expected[n++] = all[i];
        for (uint32_t i = 0; i < tail; i++)
            expected[n++] = all[kept - tail + i];
        if (kept == 0)
            expected[n++] = PACE__ID_EMPTY;
        expected[n] = 0;
        expect_ids(vocabulary, text, way, length, expected);
    }
    pace__vocabulary_free(vocabulary);
}

static void test_stop_words(void **state)
{
    uint32_t all, plain;
    const pace__word *every = pace__english_stops(false, &all), *kept = pace__english_stops(true, &plain);

    (void)state;
    assert_true(plain >= 120 && plain <= 180 && all > plain + 40);
    for (uint32_t i = 0, at = 0; i < all; i++) {
        char text[64] = {0};
        pace__tokens tokens = {0};

        /* In order, and as the tokeniser makes them. */
        assert_true(i == 0 || pace__word_compare(&every[i - 1], &every[i]) < 0);
        assert_int_equal(every[i].size, strlen(every[i].text));
        strcpy(text, every[i].text);
        assert_ok(pace__tokenise(&tokens, text, every[i].size, &said_log));
        assert_int_equal(tokens.count, 1);
        assert_int_equal(pace__token_size(&tokens, 0), every[i].size);
        pace__tokens_release(&tokens);
        if (!pace__is_negation(every[i].text, every[i].size)) {
            assert_string_equal(kept[at].text, every[i].text);
            at++;
        }
        assert_true(i + 1 < all || at == plain);
    }
}

static bool is_stop(const pace__word *stops, uint32_t count, const char *text)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(stops[i].text, text) == 0)
            return true;
    }
    return false;
}

static void test_stop_words_carry_no_tone(void **state)
{
    static const char *const turning[] = {"no",     "not",     "nor",    "never",   "none",  "cannot",
                                          "can't",  "don't",   "won't",  "without", "isn't", "wasn't",
                                          "but",    "however", "very",   "too",     "only",  "hardly",
                                          "didn't", "weren't", "doesn't"};
    static const char *const plain[] = {"the", "a", "it's", "i've", "of", "and", "was", "with"};
    uint32_t all, count;
    const pace__word *every = pace__english_stops(false, &all), *stops = pace__english_stops(true, &count);

    (void)state;
    for (size_t i = 0; i < COUNT(turning); i++) {
        assert_false(is_stop(stops, count, turning[i]));
        assert_true(is_stop(every, all, turning[i]));
        assert_true(pace__is_negation(turning[i], (uint32_t)strlen(turning[i])));
    }
    for (size_t i = 0; i < COUNT(plain); i++) {
        assert_true(is_stop(stops, count, plain[i]) && is_stop(every, all, plain[i]));
        assert_false(pace__is_negation(plain[i], (uint32_t)strlen(plain[i])));
    }
    for (size_t i = 0; i < PACE__CUES; i++) {
        if (is_stop(stops, count, pace__cues[i].text))
            fail_msg("\"%s\" decides about generated reviews", pace__cues[i].text);
    }
    assert_false(pace__is_negation("no one", 6));
    assert_false(pace__is_negation("n", 1));
    assert_false(pace__is_negation("zzz", 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_and_back),
        cmocka_unit_test(test_checksum),
        cmocka_unit_test(test_bad_texts_are_refused),
        cmocka_unit_test(test_create_refuses),
        cmocka_unit_test(test_many_words),
        cmocka_unit_test_setup_teardown(test_files, make_directory, remove_directory),
        cmocka_unit_test(test_encode),
        cmocka_unit_test(test_encode_against_truncation),
        cmocka_unit_test(test_stop_words),
        cmocka_unit_test(test_stop_words_carry_no_tone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
