/* Synthetic reviews: equal bytes for any threads, valid rows, a known signal that needs word order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/random.h"
#include "files/crc32c.h"
#include "gen/review_words.h"
#include "support.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <paceline/gen.h>

#define FILE_BYTES_MAX ((size_t)1 << 28)

/* ---- making and reading files ---- */

static pace_status run(const char *path, int64_t rows, int64_t seed, int64_t threads, bool force,
                       pace_gen_reviews_result *result)
{
    pace_gen_reviews_config config = {
        .output = path, .rows = rows, .seed = seed, .threads = threads, .force = force};

    return pace_gen_reviews(&config, &said_log, NULL, result);
}

/* Generates and reads back; the caller frees the bytes. */
static char *generate(void **state, int64_t rows, int64_t seed, int64_t threads, size_t *size,
                      pace_gen_reviews_result *result)
{
    const char *path = in(state, "reviews.jsonl");
    char *bytes;

    assert_ok(run(path, rows, seed, threads, true, result));
    assert_ok(pace__read_file(path, FILE_BYTES_MAX, &bytes, size, &said_log));
    assert_int_equal(result->rows, rows);
    assert_int_equal(result->bytes, *size);
    return bytes;
}

/* ---- reading reviews as a model would ---- */

/* The next word in lower case: its hash, or 0 at the end. Markup and entities are no words. */
static uint64_t next_word(const char **text)
{
    const char *at = *text;
    uint64_t hash = 0;

    for (; *at; at++) {
        unsigned char c = (unsigned char)*at;
        bool letter = (c >= 0x80 && c < 0xf0) || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                      (c >= 'A' && c <= 'Z');

        if (letter || (c == '\'' && hash))
            hash = pace__mix64(hash + (c >= 'A' && c <= 'Z' ? c + 32u : c));
        else if (hash)
            break;
        else if (c == '<')
            at = strchr(at, '>');
        else if (c == '&')
            at = strchr(at, ';');
        else if (c >= 0xf0) /* four bytes: no letter, but a face */
            at += 3;
        assert_non_null(at);
    }
    *text = at;
    return hash;
}

static uint64_t hash_of(const char *word)
{
    return next_word(&word);
}

/* Cues by the hash of their text. */
static const pace__cue *find_cue(uint64_t hash)
{
    static struct {
        uint64_t hash;
        const pace__cue *cue;
    } table[1024];

    if (!table[0].hash) { /* the first call */
        for (size_t i = 0; i < 1024; i++)
            table[i].hash = 1;
        for (size_t i = 0; i < PACE__CUES; i++) {
            uint64_t key = hash_of(pace__cues[i].text), place = key % 1024;

            while (table[place].cue)
                place = (place + 1) % 1024;
            table[place].hash = key;
            table[place].cue = &pace__cues[i];
        }
    }
    for (uint64_t place = hash % 1024; table[place].cue; place = (place + 1) % 1024) {
        if (table[place].hash == hash)
            return table[place].cue;
    }
    return NULL;
}

static void hear(pace__tone *tone, uint64_t word)
{
    const pace__cue *cue = find_cue(word);

    if (cue)
        pace__tone_cue(tone, cue);
    else
        pace__tone_plain(tone);
}

/* The tone of at most so many words. */
static pace__tone tone_of(const char *text, uint32_t words_max)
{
    pace__tone tone = {0};
    uint64_t word;

    while (tone.words < words_max && (word = next_word(&text)))
        hear(&tone, word);
    return tone;
}

typedef struct corpus {
    size_t rows;
    cJSON **reviews;
    pace_gen_reviews_result result;
} corpus;

static corpus read_corpus(void **state, size_t rows, int64_t seed)
{
    corpus all = {.rows = rows, .reviews = calloc(rows, sizeof *all.reviews)};
    size_t size;
    char *bytes = generate(state, (int64_t)rows, seed, 2, &size, &all.result);
    const char *at = bytes;

    assert_non_null(all.reviews);
    for (size_t i = 0; i < rows; i++) {
        const char *end = strchr(at, '\n');

        assert_non_null(end);
        all.reviews[i] = cJSON_ParseWithLength(at, (size_t)(end - at));
        assert_non_null(all.reviews[i]);
        at = end + 1;
    }
    assert_ptr_equal(at, bytes + size);
    free(bytes);
    return all;
}

static void free_corpus(corpus *all)
{
    for (size_t i = 0; i < all->rows; i++)
        cJSON_Delete(all->reviews[i]);
    free(all->reviews);
}

static const char *text_field(const cJSON *review, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(review, name));

    assert_non_null(text);
    return text;
}

static double number_field(const cJSON *review, const char *name)
{
    const cJSON *number = cJSON_GetObjectItemCaseSensitive(review, name);

    assert_true(cJSON_IsNumber(number));
    return number->valuedouble;
}

static bool is_positive(const cJSON *review)
{
    return number_field(review, "overall") >= 4;
}

/* ---- the file ---- */

static void test_same_bytes_for_any_threads(void **state)
{
    const int64_t rows = 5001;
    pace_gen_reviews_result one, many;
    size_t size, other_size;
    char *bytes = generate(state, rows, 7, 1, &size, &one);

    for (int64_t threads = 2; threads <= 5; threads += 3) {
        char *other = generate(state, rows, 7, threads, &other_size, &many);

        assert_int_equal(size, other_size);
        assert_memory_equal(bytes, other, size);
        assert_true(one.best_accuracy == many.best_accuracy); /* to the last bit */
        assert_true(one.best_logloss == many.best_logloss);
        assert_true(one.positive_rate == many.positive_rate);
        free(other);
    }
    free(bytes);
}

static void test_fewer_rows_are_a_prefix(void **state)
{
    pace_gen_reviews_result result;
    size_t size, long_size;
    char *longer = generate(state, 1500, 3, 2, &long_size, &result);

    for (int64_t rows = 1; rows < 1500; rows = rows * 3 + 1) {
        char *bytes = generate(state, rows, 3, 2, &size, &result);

        assert_true(size < long_size);
        assert_memory_equal(bytes, longer, size);
        free(bytes);
    }
    free(longer);
}

static void test_seeds_differ(void **state)
{
    pace_gen_reviews_result result;
    size_t size, other_size;
    char *bytes = generate(state, 1000, 1, 1, &size, &result);
    char *other = generate(state, 1000, 2, 1, &other_size, &result);

    assert_true(size != other_size || memcmp(bytes, other, size) != 0);
    free(other);
    free(bytes);
}

/* Any change of these bytes is a change of every file that was ever generated: it must be meant. */
static void test_bytes_are_pinned(void **state)
{
    pace_gen_reviews_result result;
    size_t size;
    char *bytes = generate(state, 5000, 1, 1, &size, &result);

    assert_int_equal(pace__masked_crc32c(bytes, size), 0x2437de4bu);
    free(bytes);
}

static void assert_utf8(const char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        unsigned length = pace__utf8_length(text + at, size - at);

        assert_in_range(length, 1, 4);
        at += length;
    }
}

static void assert_code(const char *text, char first, size_t length)
{
    assert_int_equal(strlen(text), length);
    assert_int_equal(text[0], first);
    assert_int_equal(strspn(text, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"), length);
}

static void check_review(const cJSON *review)
{
    double stars = number_field(review, "overall"), time = number_field(review, "unixReviewTime");
    const cJSON *helpful = cJSON_GetObjectItemCaseSensitive(review, "helpful");
    const char *text = text_field(review, "reviewText"), *title = text_field(review, "summary");

    assert_code(text_field(review, "reviewerID"), 'A', 14);
    assert_code(text_field(review, "asin"), 'B', 10);
    assert_true(stars >= 1 && stars <= 5 && stars == floor(stars));
    assert_true(time >= 832550400 && time <= 1406073600 && fmod(time, 86400) == 0);
    assert_int_equal(cJSON_GetArraySize(helpful), 2);
    assert_true(cJSON_GetArrayItem(helpful, 0)->valueint <= cJSON_GetArrayItem(helpful, 1)->valueint);
    assert_utf8(text, strlen(text)); /* the escapes, too */
    assert_utf8(title, strlen(title));
    assert_in_range(tone_of(text, UINT32_MAX).words, 2, 2000);
    assert_true(tone_of(text, UINT32_MAX).polar_words > 0);
    assert_in_range(tone_of(title, UINT32_MAX).words, 1, 5);
    assert_int_equal(tone_of(title, UINT32_MAX).polar_words, 0); /* it gives nothing away */
}

static void test_rows_are_valid(void **state)
{
    corpus all = read_corpus(state, 20000, 11);
    char *bytes = get_text(in(state, "reviews.jsonl"));

    assert_utf8(bytes, strlen(bytes));
    for (size_t i = 0; i < all.rows; i++)
        check_review(all.reviews[i]);
    free(bytes);
    free_corpus(&all);
}

/* Everything that a parser has to know occurs, as bytes of the file. */
static void test_rows_are_varied(void **state)
{
    static const char *const parts[] = {
        "\\\"",
        "\\n\\n",
        "&quot;",
        "&amp;",
        "&#34;",
        "<br />",
        "<b>",
        "caf\\u00e9",
        "café",
        "naïve",
        "東京",
        "\\ud83d\\ude00",
        "\xf0\x9f\x98\x80",
        "isn't",
        "! ",
        "? ",
        "... ",
        "\"overall\": 3.0",
    };
    pace_gen_reviews_result result;
    size_t size;
    char *bytes = generate(state, 20000, 12, 2, &size, &result);

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!strstr(bytes, parts[i]))
            fail_msg("nowhere: %s", parts[i]);
    }
    free(bytes);
}

static int compare_lengths(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

    return (a > b) - (a < b);
}

static void test_lengths_and_stars(void **state)
{
    enum { ROWS = 40000 };
    static uint32_t lengths[ROWS];
    size_t stars[6] = {0};
    corpus all = read_corpus(state, ROWS, 13);

    for (size_t i = 0; i < ROWS; i++) {
        lengths[i] = tone_of(text_field(all.reviews[i], "reviewText"), UINT32_MAX).words;
        stars[(int)number_field(all.reviews[i], "overall")]++;
    }
    qsort(lengths, ROWS, sizeof *lengths, compare_lengths);
    assert_in_range(lengths[0], 2, 4);
    assert_in_range(lengths[ROWS / 10], 12, 20);
    assert_in_range(lengths[ROWS / 2], 46, 54);
    assert_in_range(lengths[ROWS * 9 / 10], 130, 180);
    assert_in_range(lengths[ROWS * 99 / 100], 400, 600);
    assert_in_range(lengths[ROWS - 1], 1500, 2000);
    assert_in_range(stars[4] + stars[5], ROWS * 77 / 100, ROWS * 79 / 100);
    assert_in_range(stars[3], ROWS * 3 / 100, ROWS * 6 / 100);
    assert_true(stars[5] > stars[4] && stars[1] > stars[2] && stars[2] > 0);
    assert_true(all.result.positive_rate == (double)(stars[4] + stars[5]) / ROWS);
    assert_true(all.result.null_accuracy == all.result.positive_rate);
    free_corpus(&all);
}

/* ---- words ---- */

static int compare_words(const void *left, const void *right)
{
    return memcmp(left, right, sizeof(pace__word));
}

static void test_vocabulary_is_distinct(void **state)
{
    pace__word *words = malloc((PACE__VOCABULARY + PACE__CUES) * sizeof *words);
    uint32_t function_words = pace__vocabulary_fill(words);

    (void)state;
    assert_in_range(function_words, 100, 200);
    for (size_t i = 0; i < PACE__VOCABULARY; i++)
        assert_int_equal(strnlen(words[i].text, sizeof words->text), words[i].length);
    for (size_t i = 0; i < PACE__CUES; i++)
        words[PACE__VOCABULARY + i] = pace__word_of(pace__cues[i].text);
    qsort(words, PACE__VOCABULARY + PACE__CUES, sizeof *words, compare_words);
    for (size_t i = 1; i < PACE__VOCABULARY + PACE__CUES; i++)
        assert_memory_not_equal(&words[i - 1], &words[i], sizeof *words);
    free(words);
}

/* From one rank to one ten times as far the frequency falls to a tenth, roughly; there are many words. */
static void test_frequencies_follow_zipf(void **state)
{
    enum { SLOTS = 1 << 18 };
    uint32_t *counts = calloc(SLOTS, sizeof *counts);
    size_t total = 0, distinct = 0;
    corpus all = read_corpus(state, 40000, 14);

    assert_non_null(counts);
    for (size_t i = 0; i < all.rows; i++) {
        const char *text = text_field(all.reviews[i], "reviewText");

        for (uint64_t word; (word = next_word(&text)); total++)
            distinct += counts[word % SLOTS]++ == 0;
    }
    qsort(counts, SLOTS, sizeof *counts, compare_lengths);
    assert_true(distinct > 40000);
    assert_true(counts[SLOTS - 1] > total * 4 / 100 && counts[SLOTS - 1] < total * 8 / 100); /* "the" */
    for (size_t rank = 10; rank <= 1000; rank *= 10) {
        double fall = (double)counts[SLOTS - rank] / counts[SLOTS - 10 * rank];

        assert_true(fall > 4 && fall < 25);
    }
    free(counts);
    free_corpus(&all);
}

/* ---- the signal ---- */

static double log_odds_of(const char *text)
{
    pace__tone tone = tone_of(text, UINT32_MAX);

    return (pace__tone_log_odds(&tone) - PACE__TONE_INTERCEPT) / PACE__TONE_SLOPE;
}

static void assert_tone(const char *text, double expected)
{
    double found = log_odds_of(text);

    if (fabs(found - expected) > 1e-12)
        fail_msg("\"%s\" has the tone %g, not %g", text, found, expected);
}

static void test_tone_needs_order(void **state)
{
    (void)state;
    assert_tone("Nothing to say", 0);
    assert_tone("It is good", 1.0);
    assert_tone("It is bad", -1.0);
    assert_tone("It is not good", -0.75);
    assert_tone("It was never the tavik good", -0.75);
    assert_tone("It isn't what my brelon good", -0.75);   /* the fourth word */
    assert_tone("It isn't what my own brelon good", 1.0); /* the fifth */
    assert_tone("Good, not", 1.0);
    assert_tone("Not good, good", (-0.75 + 1) / 2); /* only the next one */
    assert_tone("Very good, good", (1.5 + 1) / 2);
    assert_tone("Very good", 1.5);
    assert_tone("Very tavik good", 1.5);
    assert_tone("Very tavik brelon good", 1.0);
    assert_tone("Not very good", -0.75 * 1.5);
    assert_tone("GOOD tavik, but it was bad", (1 - 2.5) / 2);
    assert_tone("Bad, but good. Good", (-1 + 2.5 + 1) / 3);
    assert_tone("It was barely <br />&quot;bad&quot;", -0.3);
}

static bool guesses(double log_odds, const cJSON *review)
{
    return (log_odds > 0) == is_positive(review);
}

/*
 * Who reads only the text, by the rules, is right as often as was promised, and does not need more than the
 * first hundred words.
 */
static void test_best_accuracy_is_in_the_text(void **state)
{
    enum { ROWS = 60000 };
    size_t right = 0, right_early = 0;
    double expected = 0, loss = 0;
    corpus all = read_corpus(state, ROWS, 21);

    for (size_t i = 0; i < ROWS; i++) {
        const char *text = text_field(all.reviews[i], "reviewText");
        pace__tone whole = tone_of(text, UINT32_MAX), early = tone_of(text, 100);
        double log_odds = pace__tone_log_odds(&whole);

        right += guesses(log_odds, all.reviews[i]);
        right_early += guesses(pace__tone_log_odds(&early), all.reviews[i]);
        expected += 1 / (1 + exp(-fabs(log_odds)));
        loss += log1p(exp(is_positive(all.reviews[i]) ? -log_odds : log_odds));
    }
    print_message("best accuracy %.5f, by the rules %.5f, in the first 100 words %.5f\n",
                  all.result.best_accuracy, (double)right / ROWS, (double)right_early / ROWS);
    assert_true(fabs(all.result.best_accuracy - expected / ROWS) < 1e-9);
    assert_true(fabs(all.result.best_logloss - loss / ROWS) < 1e-9);
    assert_true(fabs(all.result.best_accuracy - (double)right / ROWS) < 0.002);
    assert_true((double)right_early / ROWS > all.result.best_accuracy - 0.01);
    assert_true(all.result.best_accuracy > 0.92 && all.result.best_accuracy < 0.95);
    free_corpus(&all);
}

/* How many polar words mean what they say, and how many the opposite. */
static void test_polar_words_are_turned_around(void **state)
{
    size_t count = 0, turned = 0;
    corpus all = read_corpus(state, 20000, 22);

    for (size_t i = 0; i < all.rows; i++) {
        const char *text = text_field(all.reviews[i], "reviewText");
        pace__tone tone = {0};

        for (uint64_t word; (word = next_word(&text));) {
            double before = tone.sum;

            hear(&tone, word);
            if (tone.sum != before)
                turned += (tone.sum > before) != (find_cue(word)->value > 0);
        }
        count += tone.polar_words;
    }
    print_message("%zu polar words, %zu turned around\n", count, turned);
    assert_true(turned * 100 > count * 30);
    assert_true(turned * 100 < count * 60);
    free_corpus(&all);
}

/* ---- linear models ---- */

/* What a linear model sees of a review. */
typedef enum view {
    WORDS,         /* counts of words */
    PAIRS,         /* of words and of pairs of neighbours */
    UNDERSTANDING, /* of what the polar words amount to by the rules: to see that the learner can learn */
} view;

#define FEATURES     (1u << 19)
#define FEATURES_MAX 4096 /* of a review */

static size_t look(const char *text, view what, uint32_t features[FEATURES_MAX])
{
    pace__tone tone = {0};
    uint64_t before = 0;
    size_t count = 0;

    for (uint64_t word; (word = next_word(&text)); before = word) {
        double sum = tone.sum;

        hear(&tone, word);
        if (what != UNDERSTANDING)
            features[count++] = word % FEATURES;
        if (what == PAIRS)
            features[count++] = pace__mix64(before + 3 * word) % FEATURES;
        if (what == UNDERSTANDING && tone.sum != sum)
            features[count++] = (uint32_t)(lround((tone.sum - sum) * 1000) + 100000);
    }
    return count;
}

typedef struct linear {
    float weights[FEATURES], squares[FEATURES];
    double intercept;
} linear;

static double predict(const linear *model, const uint32_t *features, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += model->weights[features[i]];
    return model->intercept + sum / sqrt((double)count);
}

/* One step of logistic regression by AdaGrad. */
static void learn(linear *model, const uint32_t *features, size_t count, bool positive)
{
    double error = 1 / (1 + exp(-predict(model, features, count))) - positive;
    double gradient = error / sqrt((double)count);

    model->intercept -= 0.01 * error;
    for (size_t i = 0; i < count; i++) {
        model->squares[features[i]] += (float)(gradient * gradient);
        model->weights[features[i]] -= (float)(0.2 * gradient / sqrt(model->squares[features[i]] + 1e-3));
    }
}

/* The accuracy on the last quarter of a model that has learned from the rest. */
static double train_and_test(const corpus *all, view what)
{
    static uint32_t features[FEATURES_MAX];
    linear *model = calloc(1, sizeof *model);
    size_t train = all->rows * 3 / 4, right = 0;

    assert_non_null(model);
    for (size_t i = 0; i < 2 * train; i++) {
        const cJSON *review = all->reviews[i % train];

        learn(model, features, look(text_field(review, "reviewText"), what, features), is_positive(review));
    }
    for (size_t i = train; i < all->rows; i++) {
        size_t count = look(text_field(all->reviews[i], "reviewText"), what, features);

        right += guesses(predict(model, features, count), all->reviews[i]);
    }
    free(model);
    return (double)right / (double)(all->rows - train);
}

static void test_counting_words_is_not_enough(void **state)
{
    corpus all = read_corpus(state, 60000, 31);
    double best = all.result.best_accuracy, null = all.result.null_accuracy;
    double words = train_and_test(&all, WORDS), pairs = train_and_test(&all, PAIRS);
    double understanding = train_and_test(&all, UNDERSTANDING);

    print_message("always the majority %.4f, words %.4f, pairs %.4f, understanding %.4f, best %.4f\n", null,
                  words, pairs, understanding, best);
    assert_true(words < best - 0.06);
    assert_true(pairs < best - 0.03);
    assert_true(words > null + 0.01);
    assert_true(pairs > words);
    assert_true(understanding > best - 0.02);
    free_corpus(&all);
}

/* ---- bad input ---- */

static void test_bad_targets(void **state)
{
    pace_gen_reviews_result result;
    const char *path = in(state, "kept");

    put_text(path, "mine");
    assert_failed(run(path, 10, 1, 1, false, &result), PACE_USAGE, "exists; use --force");
    char *kept = get_text(path);

    assert_string_equal(kept, "mine");
    free(kept);
    assert_failed(run(*state, 10, 1, 1, true, &result), PACE_USAGE, "is a directory");
    assert_failed(run(in(state, "absent/reviews"), 10, 1, 1, true, &result), PACE_IO, "absent/reviews");
    assert_failed(run(NULL, 10, 1, 1, false, &result), PACE_USAGE, "no output");
    assert_failed(run("/dev/null", 0, 1, 1, false, &result), PACE_USAGE, "0 rows");
    assert_failed(run("/dev/null", 10, 1, -1, false, &result), PACE_USAGE, "-1 threads");
    assert_failed(run("/dev/full", 10000, 1, 2, false, &result), PACE_IO, "/dev/full");
    assert_ok(run("/dev/null", 10, 1, 1, false, &result));
    assert_int_equal(count_entries(*state), 1); /* no temporary is left */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_same_bytes_for_any_threads, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_fewer_rows_are_a_prefix, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_seeds_differ, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_bytes_are_pinned, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_rows_are_valid, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_rows_are_varied, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_lengths_and_stars, make_directory, remove_directory),
        cmocka_unit_test(test_vocabulary_is_distinct),
        cmocka_unit_test_setup_teardown(test_frequencies_follow_zipf, make_directory, remove_directory),
        cmocka_unit_test(test_tone_needs_order),
        cmocka_unit_test_setup_teardown(test_best_accuracy_is_in_the_text, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_polar_words_are_turned_around, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_counting_words_is_not_enough, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_bad_targets, make_directory, remove_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
