/* prep reviews between threads, its filters, and merge: every text once, as its words, and the same bytes
 * whatever the threads and the memory. Processes are in tests/cli/test_reviews.sh. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/store/reader.h"
#include "data/text/vocabulary.h"

#include "review_preps.h"

#include <hdf5.h>
#include <paceline/gen.h>

#define MEGABYTES(n)  ((uint64_t)(n) << 20)
#define SEED          20261116
#define TEXTS         1500 /* in a file */
#define LINE_MAX_TEXT 4096

static pace_prep_reviews_config settings(const char **inputs, size_t count, const char *output)
{
    pace_prep_reviews_config config = settings_of(inputs, count, output);

    config.length = 8;
    return config;
}

/* Refused or failed: with one message, no output, and nothing left beside it. */
static void fail_to_prepare(void **state, const pace_prep_reviews_config *config, pace_status expected,
                            const char *message)
{
    pace_prep_reviews_result result = {.train_rows = 77};
    size_t before = count_entries(*state);

    said_clear();
    assert_failed(pace_prep_reviews(config, &said_log, NULL, &result), expected, message);
    assert_int_equal(result.train_rows, 77);
    assert_int_equal(count_entries(*state), before);
}

static void assert_same_sets(const char *left, const char *right)
{
    DIR *directory = opendir(left);
    size_t files = 0;

    assert_non_null(directory);
    assert_int_equal(count_entries(left), count_entries(right));
    for (struct dirent *entry; (entry = readdir(directory));) {
        char a[600], b[600];

        if (entry->d_name[0] == '.')
            continue;
        snprintf(a, sizeof a, "%s/%s", left, entry->d_name);
        snprintf(b, sizeof b, "%s/%s", right, entry->d_name);
        assert_same_file(a, b);
        files++;
    }
    closedir(directory);
    assert_true(files >= 3);
}

/* --- reading a set back, as lines "label: word word" --- */

typedef struct lines {
    char **items;
    size_t count;
} lines;

static void add_line(lines *list, const char *text)
{
    list->items = realloc(list->items, (list->count + 1) * sizeof *list->items);
    assert_non_null(list->items);
    list->items[list->count++] = strdup(text);
}

static void free_lines(lines *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
}

static void add_row(lines *list, const pace__rows *rows, size_t row, const pace__vocabulary *vocabulary)
{
    const uint32_t *ids = pace__row_words(rows, row);
    char text[LINE_MAX_TEXT];
    int used = snprintf(text, sizeof text, "%u:", rows->label[row]);

    for (uint32_t i = 0; i < rows->length[row]; i++) {
        pace__word word = pace__vocabulary_word(vocabulary, ids[i]);

        used += snprintf(text + used, sizeof text - (size_t)used, " %.*s", (int)word.size, word.text);
    }
    /* All else is padding. */
    for (uint32_t i = 0; i < rows->columns - rows->length[row]; i++)
        assert_int_equal(rows->ids[row * rows->columns + (rows->front ? i : rows->length[row] + i)],
                         PACE__ID_PAD);
    add_line(list, text);
}

static lines read_set(const char *path, int set)
{
    pace__store store;
    pace__vocabulary *vocabulary;
    pace__reader *reader;
    const pace__piece *piece;
    lines list = {0};

    assert_ok(pace__store_open(path, &store, &said_log));
    assert_ok(pace__vocabulary_read(path, &store.info.encoding, &said_log, &vocabulary));
    pace__reader_plan plan = {.set = set,
                              .sequential = true,
                              .batch = PACE__PIECE_ROWS,
                              .last = store.info.rows[set],
                              .consumers = 1};

    if (plan.last > 0) {
        assert_ok(pace__reader_create(&store, &plan, &said_log, &reader));
        for (;;) {
            assert_ok(pace__reader_next(reader, 0, &piece));
            if (!piece)
                break;
            for (size_t row = 0; row < piece->rows.rows; row++)
                add_row(&list, &piece->rows, row, vocabulary);
        }
        pace__reader_free(reader);
    }
    pace__vocabulary_free(vocabulary);
    pace__store_close(&store);
    return list;
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Both in any order. */
static void assert_lines(lines found, const char *const *expected, size_t count)
{
    const char **sorted = malloc(count * sizeof *sorted);

    assert_non_null(sorted);
    memcpy(sorted, expected, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_text);
    qsort(found.items, found.count, sizeof *found.items, by_text);
    assert_int_equal(found.count, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(found.items[i], sorted[i]);
    free(sorted);
    free_lines(&found);
}

#define assert_set(path, set, ...)                                                                           \
    do {                                                                                                     \
        const char *wanted[] = {__VA_ARGS__};                                                                \
        assert_lines(read_set(path, set), wanted, sizeof wanted / sizeof *wanted);                           \
    } while (0)

/* --- texts --- */

/* Many different words, more than fit the memory of a counter; some frequent ones; some texts without any. */
static void write_corpus(const char *path, int texts, uint64_t seed)
{
    FILE *out = fopen(path, "w");
    pace__random random = {seed};

    assert_non_null(out);
    for (int i = 0; i < texts; i++) {
        uint64_t words = i % 20 == 0 ? 0 : pace__random_below(&random, 180);

        fprintf(out, "{\"overall\": %d.0, \"reviewText\": \"", (int)pace__random_below(&random, 5) + 1);
        for (uint64_t k = 0; k < words; k++) {
            uint64_t draw = pace__random_next(&random);

            fprintf(out, "w%llx ", (unsigned long long)(k % 8 == 0 ? draw % 5000 : draw));
        }
        fprintf(out, "!\"}\n");
    }
    assert_int_equal(fclose(out), 0);
}

static void bytes_do_not_depend_on_threads_or_memory(void **state)
{
    const char *inputs[5];
    char names[5][32];

    printf("seed %d\n", SEED);
    for (int i = 0; i < 5; i++) {
        snprintf(names[i], sizeof names[i], "in%d.jsonl", i);
        inputs[i] = in(state, names[i]);
        write_corpus(inputs[i], TEXTS, SEED + (uint64_t)i);
    }
    pace_prep_reviews_config config = settings(inputs, 4, in(state, "one"));

    config.common.test = (pace_texts){inputs + 4, 1};
    config.vocab = 3000;
    config.common.threads = 1;
    config.common.memory = MEGABYTES(1024);
    config.dedup = true;
    pace_prep_reviews_result one = prepare(&config);

    assert_int_equal(one.bad_rows, 0);
    assert_int_equal(one.ranks, 1);
    assert_int_equal(one.vocabulary, 3003);
    assert_int_equal(one.test_rows, TEXTS);
    assert_true(one.distinct > 300000);
    assert_true(one.duplicates > TEXTS / 10); /* of the empty texts only one is left */
    assert_int_equal(one.train_rows + one.duplicates, 4 * TEXTS);
    config.common.threads = 4;
    config.common.output = in(state, "other");
    config.common.memory = MEGABYTES(128);
    pace_prep_reviews_result other = prepare(&config);

    assert_int_equal(other.ranks, 4);
    assert_same_sets(in(state, "one"), in(state, "other"));
    assert_int_equal(other.words, one.words);
    assert_int_equal(other.distinct, one.distinct);
    assert_int_equal(other.unknown, one.unknown);
    assert_int_equal(other.train_positives, one.train_positives);
    /* The five inputs and two sets: nothing else was left. */
    assert_int_equal(count_entries(*state), 7);
}

static void rows_are_the_words_of_texts(void **state)
{
    const char *inputs[] = {in(state, "a.jsonl"), in(state, "b.jsonl")};
    pace_prep_reviews_config config = settings(inputs, 2, in(state, "set"));

    put_text(inputs[0], "{\"reviewText\": \"Good, GOOD <br/> movie&amp;that\", \"overall\": 5}\n"
                        "{\"reviewText\": \"not good\", \"overall\": 2}\n"
                        "\n"
                        "{\"reviewText\": \"!!!\", \"overall\": \"4.0\"}\n");
    put_text(inputs[1], "{\"reviewText\": \"a b c d e f g h i movie\", \"overall\": 3.99}");
    pace_prep_reviews_result result = prepare(&config);

    assert_int_equal(result.train_rows, 4);
    assert_int_equal(result.train_positives, 2);
    assert_int_equal(result.test_rows, 0);
    assert_int_equal(result.words, 16);
    assert_int_equal(result.distinct, 13);
    assert_int_equal(result.vocabulary, 16);
    assert_int_equal(result.cut, 1);
    assert_int_equal(result.empty, 1);
    assert_int_equal(result.unknown, 0);
    assert_int_equal(result.stored, 4 + 2 + 1 + 8);
    assert_set(in(state, "set"), PACE__TRAIN, "1: good good movie that", "0: not good", "1: <empty>",
               "0: a b c d e f g h");
    assert_said("I ratings of 4 and more are positive");
    char *vocabulary = get_text(in(state, "set/vocabulary.txt"));

    /* By frequency, then by spelling. */
    assert_string_equal(vocabulary,
                        "good\t3\nmovie\t2\na\t1\nb\t1\nc\t1\nd\t1\ne\t1\nf\t1\ng\t1\nh\t1\ni\t1\n"
                        "not\t1\nthat\t1\n\n");
    free(vocabulary);
}

static void texts_are_cut_and_padded_as_asked(void **state)
{
    const char *inputs[] = {in(state, "in.jsonl")};
    pace_prep_reviews_config config = settings(inputs, 1, in(state, "set"));

    put_text(inputs[0], "{\"reviewText\": \"a b c d e f\", \"overall\": 5}\n"
                        "{\"reviewText\": \"a b\", \"overall\": 1}\n");
    config.common.force = true;
    config.length = 3;
    prepare(&config);
    assert_set(in(state, "set"), PACE__TRAIN, "1: a b c", "0: a b");
    config.truncate = PACE_TRUNCATE_TAIL;
    config.pad = PACE_PAD_FRONT;
    prepare(&config);
    assert_set(in(state, "set"), PACE__TRAIN, "1: d e f", "0: a b");
    config.truncate = PACE_TRUNCATE_BOTH;
    config.length = 4;
    prepare(&config);
    assert_set(in(state, "set"), PACE__TRAIN, "1: a b e f", "0: a b");
    config.vocab = 2;
    prepare(&config);
    assert_set(in(state, "set"), PACE__TRAIN, "1: a b <unknown> <unknown>", "0: a b");
}

static void stop_words_vanish_and_negations_stay(void **state)
{
    const char *inputs[] = {in(state, "in.jsonl")};
    pace_prep_reviews_config config = settings(inputs, 1, in(state, "set"));

    put_text(inputs[0], "{\"reviewText\": \"this is not the film\", \"overall\": 5}\n");
    put_text(in(state, "stops"), "# mine\nfilm\nnot\n");
    config.common.force = true;
    config.stopwords = "english";
    pace_prep_reviews_result result = prepare(&config);

    assert_int_equal(result.stop_words, 3);
    assert_set(in(state, "set"), PACE__TRAIN, "1: not film");
    config.keep_negations = false;
    prepare(&config);
    assert_set(in(state, "set"), PACE__TRAIN, "1: film");
    config.stopwords = in(state, "stops");
    prepare(&config);
    assert_set(in(state, "set"), PACE__TRAIN, "1: this is the");
    config.keep_negations = true;
    prepare(&config);
    assert_set(in(state, "set"), PACE__TRAIN, "1: this is not the");
}

static void ratings_decide(void **state)
{
    const char *inputs[] = {in(state, "in.tsv")}, *drops[] = {"3", "2.5"};
    pace_prep_reviews_config config = settings(inputs, 1, in(state, "set"));

    put_text(inputs[0], "5\tfive\n3\tthree\n2.5\ttwo\n1\tone\n4\tfour\n");
    config.format = PACE_REVIEWS_TAB;
    config.common.force = true;
    config.drop = (pace_texts){drops, 2};
    pace_prep_reviews_result result = prepare(&config);

    assert_int_equal(result.dropped, 2);
    assert_true(result.positive == 4);
    assert_set(in(state, "set"), PACE__TRAIN, "1: five", "1: four", "0: one");
    config.drop.count = 0;
    config.positive = "2.5";
    prepare(&config);
    assert_set(in(state, "set"), PACE__TRAIN, "1: five", "1: four", "0: one", "1: three", "1: two");
    /* Labels 0 and 1. */
    config.positive = "auto";
    put_text(inputs[0], "1\tgood\n0\tbad\n");
    result = prepare(&config);
    assert_true(result.positive == 1);
    assert_int_equal(result.train_positives, 1);
    assert_set(in(state, "set"), PACE__TRAIN, "1: good", "0: bad");
    config.positive = "good";
    fail_to_prepare(state, &config, PACE_USAGE, "--positive good");
}

static void of_equal_texts_the_first_stays(void **state)
{
    const char *inputs[] = {in(state, "a"), in(state, "b")};
    pace_prep_reviews_config config = settings(inputs, 2, in(state, "set"));

    put_text(inputs[0], "5\tsame  words\n5\tother\n");
    put_text(inputs[1], "1\tSame, words!\n1\tsame words\n1\twords same\n");
    config.format = PACE_REVIEWS_TAB;
    config.dedup = config.common.force = true;
    for (config.common.threads = 1; config.common.threads <= 3; config.common.threads++) {
        pace_prep_reviews_result result = prepare(&config);

        assert_int_equal(result.duplicates, 2);
        assert_int_equal(result.train_positives, 2);
        assert_set(in(state, "set"), PACE__TRAIN, "1: same words", "1: other", "0: words same");
    }
    config.dedup = false;
    assert_int_equal(prepare(&config).train_rows, 5);
}

static void test_rows_are_held_out_or_named(void **state)
{
    const char *inputs[] = {in(state, "in.jsonl")}, *tests[] = {in(state, "test")};
    pace_gen_reviews_config gen = {.output = inputs[0], .rows = 1000, .seed = SEED, .threads = 1};
    pace_gen_reviews_result made;

    assert_ok(pace_gen_reviews(&gen, &said_log, NULL, &made));
    pace_prep_reviews_config config = settings(inputs, 1, in(state, "held"));

    config.common.holdout = 0.25;
    pace_prep_reviews_result result = prepare(&config);

    assert_int_equal(result.train_rows, 750);
    assert_int_equal(result.test_rows, 250);
    lines train = read_set(in(state, "held"), PACE__TRAIN), test = read_set(in(state, "held"), PACE__TEST);
    uint64_t positives[2] = {0};

    for (size_t i = 0; i < train.count; i++)
        positives[0] += train.items[i][0] == '1';
    for (size_t i = 0; i < test.count; i++)
        positives[1] += test.items[i][0] == '1';
    assert_int_equal(positives[0], result.train_positives);
    assert_int_equal(positives[1], result.test_positives);
    free_lines(&train);
    free_lines(&test);
    /* Words of test files are no reason to know them. */
    put_text(inputs[0], "{\"reviewText\": \"known words\", \"overall\": 5}\n");
    put_text(tests[0], "{\"reviewText\": \"known others\", \"overall\": 1}\n");
    config.common.output = in(state, "named");
    config.common.holdout = 0;
    config.common.test = (pace_texts){tests, 1};
    result = prepare(&config);
    assert_int_equal(result.distinct, 2);
    assert_int_equal(result.unknown, 1);
    assert_int_equal(result.words, 4);
    assert_set(in(state, "named"), PACE__TRAIN, "1: known words");
    assert_set(in(state, "named"), PACE__TEST, "0: known <unknown>");
    config.common.output = in(state, "none");
    config.common.holdout = 0.5;
    fail_to_prepare(state, &config, PACE_USAGE, "--holdout and --test");
    config.common.holdout = 0;
    config.common.test = (pace_texts){inputs, 1};
    fail_to_prepare(state, &config, PACE_USAGE, "must not be tested on its training rows");
    config.common.test.count = 0;
    config.common.holdout = 0.9;
    fail_to_prepare(state, &config, PACE_USAGE, "leaves none to train on");
}

static void sets_are_made_like_others(void **state)
{
    const char *inputs[] = {in(state, "in")}, *others[] = {in(state, "other")};
    pace_prep_reviews_config config = settings(inputs, 1, in(state, "set"));

    put_text(inputs[0], "5\tgood film\n1\tthe bad film\n");
    put_text(others[0], "5\tthe new film\n");
    config.format = PACE_REVIEWS_TAB;
    config.stopwords = "english";
    config.pad = PACE_PAD_FRONT;
    prepare(&config);
    config = settings(others, 1, in(state, "like"));
    config.format = PACE_REVIEWS_TAB;
    config.common.like = in(state, "set");
    config.length = 0; /* the defaults: nothing was asked for */
    config.stopwords = "english";
    pace_prep_reviews_result result = prepare(&config);

    assert_same_file(in(state, "set/vocabulary.txt"), in(state, "like/vocabulary.txt"));
    assert_set(in(state, "like"), PACE__TRAIN, "1: <unknown> film");
    assert_int_equal(result.distinct, 0);
    assert_int_equal(result.stop_words, 1);
    config.common.output = in(state, "none");
    config.length = 9;
    fail_to_prepare(state, &config, PACE_USAGE, "--length 9 contradicts --like");
    config.length = 0;
    config.vocab = 17;
    fail_to_prepare(state, &config, PACE_USAGE, "--vocab 17 contradicts --like");
    config.common.like = in(state, "nowhere");
    fail_to_prepare(state, &config, PACE_NO_INPUT, "nowhere");
}

static void bad_rows_are_counted_or_the_end(void **state)
{
    const char *inputs[] = {in(state, "a.jsonl"), in(state, "b.jsonl")};
    pace_prep_reviews_config config = settings(inputs, 2, in(state, "set"));

    put_text(inputs[0], "{\"reviewText\": \"good\", \"overall\": 5}\n{\"reviewText\": \"good\"}\n");
    put_text(inputs[1],
             "{\"reviewText\": \"good\", \"overall\": 5\n{\"reviewText\": \"bad\", \"overall\": 1}\n");
    config.common.threads = 1;
    fail_to_prepare(state, &config, PACE_BAD_DATA, "a.jsonl:2:");
    config.common.threads = 3;
    config.common.max_bad_rows = 1;
    fail_to_prepare(state, &config, PACE_BAD_DATA, ".jsonl:");
    config.common.max_bad_rows = 2;
    said_clear();
    assert_int_equal(prepare(&config).bad_rows, 2);
    assert_said("W ");
    assert_set(in(state, "set"), PACE__TRAIN, "1: good", "0: bad");
    put_text(inputs[0], "\n");
    put_text(inputs[1], "\n");
    config.common.output = in(state, "none");
    config.format = PACE_REVIEWS_JSONL;
    fail_to_prepare(state, &config, PACE_BAD_DATA, "a.jsonl and the other inputs: no rows");
}

static void a_stop_leaves_nothing(void **state)
{
    const char *inputs[] = {in(state, "in.jsonl")};
    pace_prep_reviews_config config = settings(inputs, 1, in(state, "set"));
    _Atomic int stop = 1;

    write_corpus(inputs[0], 100, SEED);
    config.common.stop = &stop;
    for (config.common.threads = 1; config.common.threads <= 3; config.common.threads++)
        fail_to_prepare(state, &config, PACE_INTERRUPTED, "nothing was kept");
}

static void a_command_sees_every_part(void **state)
{
    const char *inputs[] = {in(state, "in.jsonl")};
    pace_prep_reviews_config config = settings(inputs, 1, in(state, "set"));
    char command[700];

    write_corpus(inputs[0], 300, SEED);
    snprintf(command, sizeof command, "test -s \"$PACELINE_PART\" && basename \"$PACELINE_PART\" >> %s",
             in(state, "seen"));
    config.common.on_part = command;
    prepare(&config);
    char *seen = get_text(in(state, "seen"));

    for (int i = 0; i < 3; i++) {
        char name[32];

        snprintf(name, sizeof name, "part-%05d.h5\n", i);
        assert_non_null(strstr(seen, name));
    }
    assert_int_equal(strlen(seen), 3 * strlen("part-00000.h5\n"));
    free(seen);
    config.common.output = in(state, "none");
    config.common.on_part = "exit 3";
    fail_to_prepare(state, &config, PACE_FAILED, "ended with exit code 3");
}

static void more_parts_than_rows(void **state)
{
    const char *inputs[] = {in(state, "in")};
    pace_prep_reviews_config config = settings(inputs, 1, in(state, "set"));

    put_text(inputs[0], "5\tgood\n1\tbad\n");
    config.format = PACE_REVIEWS_TAB;
    config.common.parts = 5;
    config.common.threads = 4;
    prepare(&config);
    assert_set(in(state, "set"), PACE__TRAIN, "1: good", "0: bad");
    assert_int_equal(count_entries(in(state, "set")), 7);
}

/* --- filters --- */

static char *filtered(const pace_prep_reviews_config *config, const char *text)
{
    char *out_text = NULL;
    size_t size;
    FILE *in_file = tmpfile(), *out = open_memstream(&out_text, &size);

    assert_non_null(in_file);
    assert_non_null(out);
    fputs(text, in_file);
    rewind(in_file);
    assert_ok(pace_prep_reviews_filter(config, in_file, out, &said_log));
    fclose(in_file);
    fclose(out);
    return out_text;
}

static void filters_count_like_prep(void **state)
{
    const char *inputs[] = {in(state, "in")};
    pace_prep_reviews_config config = settings(inputs, 1, NULL);

    put_text(inputs[0], "5\tgood good film\n1\tbad film, good\n3\tmeh\n");
    config.format = PACE_REVIEWS_TAB;
    config.map = true;
    const char *drops[] = {"3"};

    config.drop = (pace_texts){drops, 1};
    char *mapped = filtered(&config, "");

    assert_int_equal(strlen(mapped), strlen("bad\t1\nfilm\t2\ngood\t3\n")); /* in any order */
    assert_non_null(strstr(mapped, "bad\t1\n"));
    assert_non_null(strstr(mapped, "film\t2\n"));
    assert_non_null(strstr(mapped, "good\t3\n"));
    free(mapped);
    config = settings(NULL, 0, NULL);
    config.reduce = true;
    char *reduced = filtered(&config, "bad\t1\nbad\t4\nfilm\t2\ngood\t3\ngood\t3\n");

    assert_string_equal(reduced, "bad\t5\nfilm\t2\ngood\t6\n");
    put_text(in(state, "counts"), reduced);
    free(reduced);
    config = settings(inputs, 1, in(state, "set"));
    config.format = PACE_REVIEWS_TAB;
    config.vocabulary = in(state, "counts");
    config.vocab = 2;
    assert_int_equal(prepare(&config).vocabulary, 5);
    assert_set(in(state, "set"), PACE__TRAIN, "1: good good <unknown>", "0: bad <unknown> good",
               "0: <unknown>");
    config.map = config.reduce = true;
    said_clear();
    assert_failed(pace_prep_reviews_filter(&config, stdin, stdout, &said_log), PACE_USAGE, "one of them");
}

/* --- merge --- */

static uint64_t read_array(hid_t file, const char *name, hid_t type, size_t width, void **values)
{
    hsize_t sizes[2] = {0, 1};
    hid_t array = H5Dopen2(file, name, H5P_DEFAULT);

    assert_true(array >= 0);
    hid_t space = H5Dget_space(array);

    H5Sget_simple_extent_dims(space, sizes, NULL);
    *values = malloc(sizes[0] * sizes[1] * width + 1);
    assert_non_null(*values);
    assert_true(H5Dread(array, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, *values) >= 0);
    H5Sclose(space);
    H5Dclose(array);
    return sizes[0];
}

/* All rows of the set are in these groups, in their order. */
static void assert_groups(hid_t file, const char *set_path, int set, const char *const *groups, size_t count)
{
    pace__store store;
    pace__reader *reader;
    const pace__piece *piece;
    size_t group = 0;
    uint64_t at = 0, rows = 0;
    void *tokens = NULL, *length = NULL, *label = NULL;
    char name[40];

    assert_ok(pace__store_open(set_path, &store, &said_log));
    pace__reader_plan plan = {
        .set = set, .sequential = true, .batch = 1, .last = store.info.rows[set], .consumers = 1};
    uint32_t columns = store.info.columns;

    assert_ok(pace__reader_create(&store, &plan, &said_log, &reader));
    for (;; at++) {
        assert_ok(pace__reader_next(reader, 0, &piece));
        while (at == rows && group < count) {
            free(tokens);
            free(length);
            free(label);
            snprintf(name, sizeof name, "%s/tokens", groups[group]);
            rows = read_array(file, name, H5T_NATIVE_UINT32, 4, &tokens);
            snprintf(name, sizeof name, "%s/length", groups[group]);
            assert_int_equal(read_array(file, name, H5T_NATIVE_UINT32, 4, &length), rows);
            snprintf(name, sizeof name, "%s/label", groups[group++]);
            assert_int_equal(read_array(file, name, H5T_NATIVE_UINT8, 1, &label), rows);
            at = 0;
        }
        if (!piece)
            break;
        assert_true(at < rows);
        assert_memory_equal(piece->rows.ids, (uint32_t *)tokens + at * columns, columns * 4);
        assert_int_equal(piece->rows.length[0], ((uint32_t *)length)[at]);
        assert_int_equal(piece->rows.label[0], ((uint8_t *)label)[at]);
    }
    assert_int_equal(at, rows);
    assert_int_equal(group, count);
    free(tokens);
    free(length);
    free(label);
    pace__reader_free(reader);
    pace__store_close(&store);
}

static void merged_sets_hold_all_rows(void **state)
{
    const char *inputs[] = {in(state, "in.jsonl")};
    static const char *const groups[] = {"set0", "set1", "set2", "set3"}, *const tests[] = {"test"};
    pace_prep_reviews_config config = settings(inputs, 1, in(state, "set"));
    pace_merge_config merge = {.data = in(state, "set"), .output = in(state, "all.h5"), .sets = 4};
    pace_merge_result result;

    write_corpus(inputs[0], 1003, SEED);
    config.common.holdout = 0.1;
    prepare(&config);
    assert_ok(pace_merge(&merge, &said_log, NULL, &result));
    assert_int_equal(result.train_rows, 903);
    assert_int_equal(result.test_rows, 100);
    hid_t file = H5Fopen(merge.output, H5F_ACC_RDONLY, H5P_DEFAULT);

    assert_true(file >= 0);
    assert_groups(file, merge.data, PACE__TRAIN, groups, 4);
    assert_groups(file, merge.data, PACE__TEST, tests, 1);
    H5Fclose(file);
    said_clear();
    assert_failed(pace_merge(&merge, &said_log, NULL, &result), PACE_USAGE, "already exists");
    _Atomic int stop = 1;

    merge.force = true;
    merge.stop = &stop;
    assert_failed(pace_merge(&merge, &said_log, NULL, &result), PACE_INTERRUPTED, "nothing was kept");
    merge.stop = NULL;
    merge.data = in(state, "nowhere");
    assert_failed(pace_merge(&merge, &said_log, NULL, &result), PACE_NO_INPUT, "no such data set");
    assert_int_equal(count_entries(*state), 3);
}

static void sparse_sets_merge_too(void **state)
{
    tiny_set set =
        tiny_make((tiny_plan){.train = 1001, .test = 7, .ids = 50, .parts = 3, .has_values = true});
    pace_merge_config merge = {.data = in(state, "set"), .output = in(state, "all.h5"), .sets = 2};
    pace_merge_result result;
    void *start, *ids, *original;

    tiny_write(&set, in(state, "set"));
    assert_ok(pace_merge(&merge, &said_log, NULL, &result));
    hid_t file = H5Fopen(merge.output, H5F_ACC_RDONLY, H5P_DEFAULT);

    assert_true(file >= 0);
    assert_int_equal(read_array(file, "set1/indptr", H5T_NATIVE_UINT64, 8, &start), 502);
    uint64_t entries = read_array(file, "set1/indices", H5T_NATIVE_UINT32, 4, &ids);
    const tiny_rows *rows = &set.rows[PACE__TRAIN];

    for (size_t i = 0; i <= 501; i++)
        assert_int_equal(((uint64_t *)start)[i], rows->start[500 + i] - rows->start[500]);
    assert_int_equal(entries, rows->start[1001] - rows->start[500]);
    assert_memory_equal(ids, rows->ids + rows->start[500], entries * 4);
    assert_int_equal(read_array(file, "original", H5T_NATIVE_UINT64, 8, &original), 50);
    assert_int_equal(((uint64_t *)original)[7], 38);
    H5Fclose(file);
    free(start);
    free(ids);
    free(original);
    tiny_free(&set);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)
    const struct CMUnitTest tests[] = {
        TEST(bytes_do_not_depend_on_threads_or_memory),
        TEST(rows_are_the_words_of_texts),
        TEST(texts_are_cut_and_padded_as_asked),
        TEST(stop_words_vanish_and_negations_stay),
        TEST(ratings_decide),
        TEST(of_equal_texts_the_first_stays),
        TEST(test_rows_are_held_out_or_named),
        TEST(sets_are_made_like_others),
        TEST(bad_rows_are_counted_or_the_end),
        TEST(a_stop_leaves_nothing),
        TEST(a_command_sees_every_part),
        TEST(more_parts_than_rows),
        TEST(filters_count_like_prep),
        TEST(merged_sets_hold_all_rows),
        TEST(sparse_sets_merge_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
