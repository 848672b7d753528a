/* prep clicks, from raw files to data sets: every row once, the same bytes whatever the threads and the
 * memory. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/formats/parse.h"

#include "interrupting.h"
#include "support.h"

#include <paceline/gen.h>
#include <paceline/prep.h>
#include <paceline/score.h>
#include <paceline/train.h>

#define MEGABYTES(n) ((uint64_t)(n) << 20)

static pace_prep_clicks_config settings(const char **inputs, size_t count, const char *output)
{
    return (pace_prep_clicks_config){.common.inputs = {inputs, count},
                                     .common.output = output,
                                     .common.threads = 1,
                                     .common.memory = MEGABYTES(128),
                                     .common.parts = 3,
                                     .common.seed = 1};
}

static pace_prep_clicks_result prepare(const pace_prep_clicks_config *config)
{
    pace_prep_clicks_result result = {0};

    assert_ok(pace_prep_clicks(config, &said_log, NULL, &result));
    return result;
}

/* Refused or failed: with one message, no output, and nothing left beside it. */
static void fail_to_prepare(void **state, const pace_prep_clicks_config *config, pace_status expected,
                            const char *message)
{
    pace_prep_clicks_result result = {.train_rows = 77};
    size_t before = count_entries(*state);

    said_clear();
    assert_failed(pace_prep_clicks(config, &said_log, NULL, &result), expected, message);
    assert_int_equal(result.train_rows, 77);
    assert_int_equal(count_entries(*state), before);
}

static void generate(const char *path, int format, int64_t rows, int64_t seed)
{
    pace_gen_clicks_config config = {
        .output = path, .rows = rows, .seed = seed, .format = format, .threads = 1};
    pace_gen_clicks_result result;

    assert_ok(pace_gen_clicks(&config, &said_log, NULL, &result));
}

/* Four files of 700 rows. */
static void generate_four(void **state, int format, const char **paths)
{
    for (int i = 0; i < 4; i++) {
        char name[16];

        snprintf(name, sizeof name, "raw%d", i);
        paths[i] = strdup(in(state, name));
        generate(paths[i], format, 700, 10 + i);
    }
}

static void free_four(const char **paths)
{
    for (int i = 0; i < 4; i++)
        free((char *)paths[i]);
}

/* --- rows as a sum of hashes: equal for equal multisets --- */

typedef struct digest {
    uint64_t rows, entries, sum;
} digest;

static void add_row(digest *to, uint8_t label, const uint64_t *ids, const float *values, size_t count)
{
    uint64_t row = label + 1;

    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        float value = values ? values[i] : 1;

        memcpy(&bits, &value, sizeof bits);
        row += pace__mix64(ids[i] * 0x9e3779b97f4a7c15u + bits);
    }
    to->rows++;
    to->entries += count;
    to->sum += pace__mix64(row);
}

static void *read_array(const pace__part *part, uint64_t at, size_t bytes)
{
    void *array = tiny_alloc(bytes);

    if (at)
        assert_ok(pace__pread_all(part->fd, array, bytes, at, part->path, &said_log));
    return array;
}

static void digest_part(const pace__store *store, const pace__part *part, int which, const uint64_t *original,
                        digest *to)
{
    const pace__part_set *set = &part->sets[which];
    uint32_t columns = store->info.columns;
    uint8_t *label = read_array(part, set->label_at, set->rows);
    uint64_t *start = read_array(part, set->start_at, (set->rows + 1) * 8),
             *ids = tiny_alloc(set->entries * 8);
    uint32_t *compact = read_array(part, set->ids_at, set->entries * 4);
    float *values = read_array(part, set->values_at, set->entries * 4);

    for (uint64_t i = 0; i < set->entries; i++)
        ids[i] = compact[i] < store->info.ids_seen ? original[compact[i]] : UINT64_MAX;
    for (uint64_t row = 0; row < set->rows; row++) {
        uint64_t first = columns ? row * columns : start[row],
                 last = columns ? first + columns : start[row + 1];

        assert_true(first <= last && last <= set->entries);
        add_row(to, label[row], ids + first, set->values_at ? values + first : NULL, last - first);
    }
    free(values);
    free(compact);
    free(ids);
    free(start);
    free(label);
}

static digest digest_of_set(const char *directory, int which)
{
    digest found = {0};
    uint64_t *original;
    pace__store store;

    assert_ok(pace__store_open(directory, &store, &said_log));
    assert_ok(pace__store_read_ids(&store, &original, &said_log));
    for (uint32_t i = 0; i < store.info.parts; i++)
        digest_part(&store, &store.parts[i], which, original, &found);
    free(original);
    pace__store_close(&store);
    return found;
}

/* What the parser alone says of the raw files. */
static digest digest_of_raw(const char *const *paths, size_t count, int format,
                            const pace__encoding *encoding)
{
    digest found = {0};
    pace__bad_rows bad = {.log = &said_log};
    pace__parser parser = {.encoding = encoding, .bad = &bad};
    bool has_values = encoding->kind == PACE__NUMBERED || encoding->numeric == PACE_NUMERIC_VALUES;
    pace__chunk chunk = {0};
    pace__raw_rows *rows = tiny_alloc(sizeof *rows);
    pace__input *input;

    assert_ok(pace__raw_rows_init(rows, &said_log));
    assert_ok(pace__input_open(paths, count, pace__boundary_of(format), &said_log, &input));
    bad.input = input;
    for (;;) {
        assert_ok(pace__input_next(input, &chunk));
        if (chunk.size == 0)
            break;
        for (size_t at = 0; at < chunk.size;) {
            assert_ok(pace__parser_of(format)(&parser, &chunk, &at, rows));
            for (size_t row = 0; row < rows->rows; row++)
                add_row(&found, rows->label[row], rows->ids + rows->start[row],
                        has_values ? rows->values + rows->start[row] : NULL,
                        rows->start[row + 1] - rows->start[row]);
        }
    }
    pace__chunk_release(&chunk);
    pace__input_close(input);
    pace__raw_rows_release(rows);
    free(rows);
    return found;
}

static digest digest_sum(digest a, digest b)
{
    return (digest){a.rows + b.rows, a.entries + b.entries, a.sum + b.sum};
}

static void assert_same_digest(digest found, digest expected)
{
    assert_int_equal(found.rows, expected.rows);
    assert_int_equal(found.entries, expected.entries);
    assert_true(found.sum == expected.sum);
}

static void assert_same_sets(void **state, const char *left, const char *right, int parts)
{
    char a[64], b[64];

    for (int i = 0; i < parts; i++) {
        snprintf(a, sizeof a, "%s/part-%05d.h5", left, i);
        snprintf(b, sizeof b, "%s/part-%05d.h5", right, i);
        assert_same_file(in(state, a), in(state, b));
    }
    snprintf(a, sizeof a, "%s/ids.h5", left);
    snprintf(b, sizeof b, "%s/ids.h5", right);
    assert_same_file(in(state, a), in(state, b));
    snprintf(a, sizeof a, "%s/checksums.json", left);
    snprintf(b, sizeof b, "%s/checksums.json", right);
    assert_same_file(in(state, a), in(state, b));
    assert_int_equal(count_entries(in(state, right)), parts + 2);
}

/* --- the bytes --- */

static void the_same_bytes_for_any_threads_and_memory(void **state)
{
    static const int formats[] = {PACE_GEN_CRITEO, PACE_GEN_SVMLIGHT, PACE_GEN_TFRECORD};
    static const int threads[] = {1, 2, 5, 2};
    static const uint64_t memory[] = {MEGABYTES(128), MEGABYTES(128), MEGABYTES(128), MEGABYTES(1024)};

    for (size_t f = 0; f < 3; f++) {
        const char *paths[4];

        generate_four(state, formats[f], paths);
        for (int i = 0; i < 4; i++) {
            char name[16];

            snprintf(name, sizeof name, "set%d", i);
            pace_prep_clicks_config config = settings(paths, 4, in(state, name));

            config.common.threads = threads[i];
            config.common.memory = memory[i];
            config.common.holdout = 0.25;
            config.hash = PACE_HASH_ON;
            config.features = 100000;
            pace_prep_clicks_result result = prepare(&config);

            assert_int_equal(result.train_rows, 2100);
            assert_int_equal(result.test_rows, 700);
            if (i > 0)
                assert_same_sets(state, "set0", name, 3);
        }
        for (int i = 0; i < 4; i++) {
            char name[16];

            snprintf(name, sizeof name, "set%d", i);
            assert_ok(pace__remove_tree(in(state, name), &said_log));
            assert_ok(pace__remove_tree(paths[i], &said_log));
        }
        free_four(paths);
    }
}

/* Small memory keeps large ids in a hash table, large memory in an array: their numbers must not tell. */
static void where_ids_are_kept_does_not_show(void **state)
{
    const char *path = in(state, "raw");
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    for (int row = 0; row < 2000; row++)
        fprintf(file, "%d %d:1 %d:1 %d:1\n", row % 2, 1 + row % 7, 20000000 + row % 5, 20000100 + row % 900);
    assert_int_equal(fclose(file), 0);
    for (int large = 0; large < 2; large++) {
        pace_prep_clicks_config config = settings(&path, 1, in(state, large ? "large" : "small"));

        config.format = PACE_FORMAT_SVMLIGHT;
        config.common.memory = large ? MEGABYTES(1024) : MEGABYTES(128);
        prepare(&config);
    }
    assert_same_sets(state, "small", "large", 3);
}

static void another_seed_is_another_order(void **state)
{
    const char *path = in(state, "raw");

    generate(path, PACE_GEN_CRITEO, 500, 3);
    pace_prep_clicks_config config = settings(&path, 1, in(state, "a"));
    char a[PACE__SHA256_HEX], b[PACE__SHA256_HEX];

    prepare(&config);
    config.common.output = in(state, "b");
    config.common.seed = 2;
    prepare(&config);
    hash_file(in(state, "a/part-00000.h5"), a);
    hash_file(in(state, "b/part-00000.h5"), b);
    assert_string_not_equal(a, b);
    assert_same_digest(digest_of_set(in(state, "a"), PACE__TRAIN),
                       digest_of_set(in(state, "b"), PACE__TRAIN));
}

/* --- the rows --- */

static void every_row_appears_once(void **state)
{
    static const int gens[] = {PACE_GEN_CRITEO, PACE_GEN_SVMLIGHT, PACE_GEN_TFRECORD};
    static const int formats[] = {PACE_FORMAT_CRITEO, PACE_FORMAT_SVMLIGHT, PACE_FORMAT_TFRECORD};

    for (size_t f = 0; f < 3; f++) {
        for (int numeric = PACE_NUMERIC_BINS; numeric <= (f == 0 ? PACE_NUMERIC_VALUES : PACE_NUMERIC_BINS);
             numeric++) {
            const char *paths[4];
            pace__encoding encoding = {.kind = PACE__NUMBERED, .features = PACE__FEATURES_MAX};

            generate_four(state, gens[f], paths);
            pace_prep_clicks_config config = settings(paths, 4, in(state, "set"));

            config.numeric = numeric;
            if (f == 0)
                assert_ok(pace__encoding_criteo(PACE__FEATURES_DEFAULT, numeric, &encoding, &said_log));
            prepare(&config);
            assert_same_digest(digest_of_set(in(state, "set"), PACE__TRAIN),
                               digest_of_raw(paths, 4, formats[f], &encoding));
            assert_ok(pace__remove_tree(in(state, "set"), &said_log));
            for (int i = 0; i < 4; i++)
                assert_ok(pace__remove_tree(paths[i], &said_log));
            free_four(paths);
        }
    }
}

static void the_holdout_has_its_size(void **state)
{
    static const double fractions[] = {0.1, 0.5, 0.0007, 0.333, 0.99};
    const char *path = in(state, "raw");

    generate(path, PACE_GEN_SVMLIGHT, 1000, 4);
    pace_prep_clicks_config config = settings(&path, 1, in(state, "all"));

    config.features = 40000000; /* the test rows may hold ids that training has not seen */
    prepare(&config);
    digest all = digest_of_set(in(state, "all"), PACE__TRAIN);

    for (size_t i = 0; i < 5; i++) {
        config.common.output = in(state, "set");
        config.common.holdout = fractions[i];
        config.common.force = true;
        pace_prep_clicks_result result = prepare(&config);
        uint64_t expected = (uint64_t)llround(fractions[i] * 1000);

        assert_int_equal(result.test_rows, expected);
        assert_int_equal(result.train_rows, 1000 - expected);
        digest both = digest_sum(digest_of_set(in(state, "set"), PACE__TRAIN),
                                 digest_of_set(in(state, "set"), PACE__TEST));

        assert_same_digest(both, all); /* ids are noted over all input rows, held out or not */
    }
    config.common.holdout = 0.9999;
    config.common.output = in(state, "none");
    fail_to_prepare(state, &config, PACE_USAGE, "--holdout");
}

static void test_files_become_the_test_set(void **state)
{
    const char *path = in(state, "train"), *tests[] = {in(state, "test1"), in(state, "test2")};
    pace__encoding encoding = {.kind = PACE__NUMBERED, .features = PACE__FEATURES_MAX};

    put_text(path, "1 1:1 2:1\n0 2:1 9:1\n1 1:1\n");
    put_text(tests[0], "0 1:1\n1 9:1 77:1\n");
    put_text(tests[1], "0 2:1 1:1\n");
    pace_prep_clicks_config config = settings(&path, 1, in(state, "set"));

    config.common.test = (pace_texts){tests, 2};
    pace_prep_clicks_result result = prepare(&config);

    assert_int_equal(result.train_rows, 3);
    assert_int_equal(result.test_rows, 3);
    assert_int_equal(result.features, 78); /* the largest id over train and test */
    assert_int_equal(result.features_seen, 3);
    assert_int_equal(result.unseen_entries, 1);
    assert_same_digest(digest_of_set(in(state, "set"), PACE__TRAIN),
                       digest_of_raw(&path, 1, PACE_FORMAT_SVMLIGHT, &encoding));
    config.common.holdout = 0.5;
    config.common.output = in(state, "other");
    fail_to_prepare(state, &config, PACE_USAGE, "--holdout and --test");
}

/* Ids may come in any order and more than once: in a set they rise, and their values are added up. */
static void entries_are_sorted_and_merged(void **state)
{
    const char *messy = in(state, "messy"), *clean = in(state, "clean");

    put_text(messy, "1 9:1 3:2 9:0.5 1:4\n0 7:1\n1\n0 5:0.25 5:0.25 5:0.5 4:1\n");
    put_text(clean, "1 1:4 3:2 9:1.5\n0 7:1\n1\n0 4:1 5:1\n");
    pace_prep_clicks_config config = settings(&messy, 1, in(state, "a"));

    config.common.parts = 1;
    config.format = PACE_FORMAT_SVMLIGHT;
    prepare(&config);
    config.common.inputs.items = &clean;
    config.common.output = in(state, "b");
    prepare(&config);
    digest found = digest_of_set(in(state, "a"), PACE__TRAIN);

    assert_same_digest(found, digest_of_set(in(state, "b"), PACE__TRAIN));
    assert_int_equal(found.rows, 4);
    assert_int_equal(found.entries, 6);
}

/* Values that are all 1 are not stored, and more parts than rows are fine. */
static void small_sets_work(void **state)
{
    const char *path = in(state, "raw");
    pace__store store;

    put_text(path, "1 3:1\n0\n");
    pace_prep_clicks_config config = settings(&path, 1, in(state, "set"));

    config.common.parts = 7;
    config.format = PACE_FORMAT_SVMLIGHT;
    prepare(&config);
    assert_ok(pace__store_open(in(state, "set"), &store, &said_log));
    assert_int_equal(store.info.parts, 7);
    assert_int_equal(store.info.rows[PACE__TRAIN], 2);
    assert_int_equal(store.info.row_entries_max, 1);
    assert_false(store.info.has_values);
    pace__store_close(&store);
    assert_int_equal(digest_of_set(in(state, "set"), PACE__TRAIN).entries, 1);
}

static void id_spaces_may_be_larger_than_32_bits(void **state)
{
    static const int64_t features[] = {(INT64_C(1) << 31) + 12345, (INT64_C(1) << 33) + 7, INT64_C(1) << 50};

    for (int svmlight = 0; svmlight < 2; svmlight++) {
        const char *path = in(state, svmlight ? "numbered" : "criteo");

        generate(path, svmlight ? PACE_GEN_SVMLIGHT : PACE_GEN_CRITEO, 600, 8);
        for (size_t i = 0; i < 3; i++) {
            pace__encoding encoding = {
                .kind = PACE__NUMBERED, .hashed = true, .features = (uint64_t)features[i]};
            pace_prep_clicks_config config = settings(&path, 1, in(state, "set"));

            config.features = features[i];
            config.hash = PACE_HASH_ON;
            config.common.force = true;
            config.common.threads = 2;
            pace_prep_clicks_result result = prepare(&config);

            if (!svmlight)
                assert_ok(
                    pace__encoding_criteo((uint64_t)features[i], PACE_NUMERIC_BINS, &encoding, &said_log));
            assert_int_equal(result.features, features[i]);
            assert_same_digest(
                digest_of_set(in(state, "set"), PACE__TRAIN),
                digest_of_raw(&path, 1, svmlight ? PACE_FORMAT_SVMLIGHT : PACE_FORMAT_CRITEO, &encoding));
        }
    }
}

/* Rows much longer than usual; together more than one buffer. */
static void long_rows_pass(void **state)
{
    const char *path = in(state, "raw");
    pace__encoding encoding = {.kind = PACE__NUMBERED, .features = PACE__FEATURES_MAX};
    FILE *out = fopen(path, "w");

    assert_non_null(out);
    for (int row = 0; row < 60; row++) {
        fprintf(out, "%d", row % 2);
        for (int i = 0; i < (row % 7 == 0 ? 20000 : row); i++)
            fprintf(out, " %d:%d", i * (row + 1), 1 + i % 3);
        fprintf(out, "\n");
    }
    fclose(out);
    pace_prep_clicks_config config = settings(&path, 1, in(state, "set"));

    config.common.threads = 2;
    config.format = PACE_FORMAT_SVMLIGHT;
    prepare(&config);
    assert_same_digest(digest_of_set(in(state, "set"), PACE__TRAIN),
                       digest_of_raw(&path, 1, PACE_FORMAT_SVMLIGHT, &encoding));
}

/* --- like --- */

static void train_on(const char *data, const char *run)
{
    pace_train_config config = {.data = data,
                                ONE_PROCESS,
                                .run = run,
                                .optimiser.rule = PACE_ADAGRAD,
                                .length.batch = 100,
                                .length.epochs = 2,
                                .faults.keep = 1,
                                .seed = 1};

    train_alone(&config);
}

static pace_scores score(const char *run, const char *data, int set)
{
    pace_eval_config config = {.run = run, .data = data, .set = set};
    pace_scores scores;

    assert_ok(pace_eval(&config, &said_log, NULL, &scores));
    return scores;
}

/* Rows prepared later like the set (or its model) score as if they had been prepared with it. */
static void sets_made_alike_score_alike(void **state)
{
    static const int gens[] = {PACE_GEN_CRITEO, PACE_GEN_SVMLIGHT};

    for (size_t f = 0; f < 2; f++) {
        const char *train = in(state, "train"), *later = in(state, "later");

        generate(train, gens[f], 1500, 21);
        generate(later, gens[f], 400, 22);
        pace_prep_clicks_config together = settings(&train, 1, in(state, "together")),
                                apart = settings(&later, 1, in(state, "apart"));

        together.common.test = (pace_texts){&later, 1};
        pace_prep_clicks_result with = prepare(&together);

        train_on(in(state, "together"), in(state, "run"));
        pace_scores expected = score(in(state, "run"), in(state, "together"), PACE_SET_TEST);

        for (int model = 0; model < 2; model++) {
            apart.common.like = in(state, model ? "run" : "together");
            apart.common.force = true;
            pace_prep_clicks_result alone = prepare(&apart);
            pace_scores found = score(in(state, "run"), in(state, "apart"), PACE_SET_AUTO);

            assert_int_equal(alone.train_rows, 400);
            assert_int_equal(alone.unseen_entries, with.unseen_entries);
            assert_int_equal(alone.features, with.features);
            assert_int_equal(found.n, expected.n);
            assert_true(fabs(found.logloss - expected.logloss) < 1e-9);
            assert_true(fabs(found.auc - expected.auc) < 1e-9);
            assert_true(found.true_positives == expected.true_positives &&
                        found.false_negatives == expected.false_negatives);
        }
        assert_ok(pace__remove_tree(in(state, "together"), &said_log));
        assert_ok(pace__remove_tree(in(state, "apart"), &said_log));
        assert_ok(pace__remove_tree(in(state, "run"), &said_log));
        assert_ok(pace__remove_tree(in(state, "train"), &said_log));
        assert_ok(pace__remove_tree(in(state, "later"), &said_log));
    }
}

static void like_refuses_what_does_not_fit(void **state)
{
    const char *criteo = in(state, "criteo"), *numbered = in(state, "numbered");

    generate(criteo, PACE_GEN_CRITEO, 50, 1);
    generate(numbered, PACE_GEN_SVMLIGHT, 50, 1);
    pace_prep_clicks_config config = settings(&criteo, 1, in(state, "set"));

    prepare(&config);
    config = settings(&numbered, 1, in(state, "other"));
    config.common.like = in(state, "set");
    fail_to_prepare(state, &config, PACE_USAGE, in(state, "set"));
    config = settings(&criteo, 1, in(state, "other"));
    config.common.like = in(state, "set");
    config.features = 1000000;
    fail_to_prepare(state, &config, PACE_USAGE, "--features");
    config.features = 0;
    config.common.like = in(state, "none");
    fail_to_prepare(state, &config, PACE_NO_INPUT, in(state, "none"));
}

/* --- failures --- */

static void bad_rows_are_counted(void **state)
{
    const char *path = in(state, "raw");

    put_text(path, "1 1:1\nrubbish\n0 2:1\n1 x:1\n0 3:\n1 2:1\n");
    pace_prep_clicks_config config = settings(&path, 1, in(state, "set"));

    config.format = PACE_FORMAT_SVMLIGHT;
    for (config.common.max_bad_rows = 0; config.common.max_bad_rows < 3; config.common.max_bad_rows++) {
        pace_prep_clicks_result result;

        said_clear();
        assert_int_equal(pace_prep_clicks(&config, &said_log, NULL, &result), PACE_BAD_DATA);
        assert_said(path);
        assert_int_equal(count_entries(*state), 1);
    }
    pace_prep_clicks_result result = prepare(&config);

    assert_int_equal(result.bad_rows, 3);
    assert_int_equal(result.train_rows, 3);
}

/* The limit holds for inputs and tests together. */
static void bad_rows_of_test_files_count_too(void **state)
{
    const char *path = in(state, "raw"), *test = in(state, "test");

    put_text(path, "1 1:1\nrubbish\n");
    put_text(test, "0 1:1\nrubbish\n");
    pace_prep_clicks_config config = settings(&path, 1, in(state, "set"));

    config.format = PACE_FORMAT_SVMLIGHT;
    config.common.test = (pace_texts){&test, 1};
    config.common.max_bad_rows = 1;
    pace_prep_clicks_result result;

    assert_int_equal(pace_prep_clicks(&config, &said_log, NULL, &result), PACE_BAD_DATA);
    assert_int_equal(count_entries(*state), 2);
    config.common.max_bad_rows = 2;
    assert_int_equal(prepare(&config).bad_rows, 2);
}

static void wrong_inputs_leave_nothing(void **state)
{
    const char *missing = in(state, "none"), *empty = in(state, "empty"), *good = in(state, "good");
    const char *cut[] = {good, missing};

    put_text(empty, "");
    put_text(good, "1 1:1 2:1\n");
    pace_prep_clicks_config config = settings(&missing, 1, in(state, "set"));

    config.format = PACE_FORMAT_SVMLIGHT;
    fail_to_prepare(state, &config, PACE_NO_INPUT, missing);
    config.common.inputs = (pace_texts){cut, 2};
    fail_to_prepare(state, &config, PACE_NO_INPUT, missing);
    config.common.inputs = (pace_texts){&empty, 1};
    fail_to_prepare(state, &config, PACE_BAD_DATA, empty);
    config.common.inputs = (pace_texts){NULL, 0};
    fail_to_prepare(state, &config, PACE_USAGE, "no input");
    config.common.inputs = (pace_texts){&good, 1};
    config.features = 2;
    config.hash = PACE_HASH_OFF;
    fail_to_prepare(state, &config, PACE_BAD_DATA, good); /* id 2 is beyond 2 features */
    config = settings(&good, 1, in(state, "set"));
    config.format = PACE_FORMAT_CRITEO;
    config.hash = PACE_HASH_OFF;
    fail_to_prepare(state, &config, PACE_USAGE, "--hash off");
}

static void existing_sets_are_kept_unless_forced(void **state)
{
    const char *path = in(state, "raw");

    put_text(path, "1 1:1\n0 2:1\n");
    pace_prep_clicks_config config = settings(&path, 1, in(state, "set"));

    config.format = PACE_FORMAT_SVMLIGHT;
    prepare(&config);
    digest before = digest_of_set(in(state, "set"), PACE__TRAIN);

    fail_to_prepare(state, &config, PACE_USAGE, "--force");
    put_text(path, "1 1:1\nrubbish\n");
    config.common.force = true;
    pace_prep_clicks_result result;

    assert_int_equal(pace_prep_clicks(&config, &said_log, NULL, &result), PACE_BAD_DATA);
    assert_same_digest(digest_of_set(in(state, "set"), PACE__TRAIN),
                       before); /* a failure keeps the old one */
    put_text(path, "1 1:1\n0 5:1\n1 5:1\n");
    assert_int_equal(prepare(&config).train_rows, 3);
    assert_int_equal(digest_of_set(in(state, "set"), PACE__TRAIN).rows, 3);
    assert_int_equal(count_entries(*state), 2);
    config.common.output = *state;
    fail_to_prepare(state, &config, PACE_USAGE, "holds what is read");
}

static void a_stopped_prep_leaves_nothing(void **state)
{
    const char *path = in(state, "raw");
    _Atomic int stop = 1;

    generate(path, PACE_GEN_CRITEO, 500, 3);
    pace_prep_clicks_config config = settings(&path, 1, in(state, "set"));

    config.common.stop = &stop;
    fail_to_prepare(state, &config, PACE_INTERRUPTED, "interrupted");
    stop = 0;
    assert_int_equal(prepare(&config).train_rows, 500);
}

static void stop_when_writing(void *user, const pace_record *record)
{
    const pace_field *phase = pace_record_find(record, "phase");

    if (strcmp(record->kind, "progress") == 0 && phase && strcmp(phase->value.text, "shuffle and write") == 0)
        *(_Atomic int *)user = 1;
}

static void a_prep_stopped_while_writing_leaves_nothing(void **state)
{
    const char *path = in(state, "raw");
    _Atomic int stop = 0;
    pace_sink sink = {stop_when_writing, (void *)&stop};
    pace_registry *registry = pace_registry_create();
    pace_prep_clicks_result result;

    generate(path, PACE_GEN_CRITEO, 500, 3);
    pace_prep_clicks_config config = settings(&path, 1, in(state, "set"));

    config.common.stop = &stop;
    pace_registry_attach(registry, &sink);
    assert_int_equal(pace_prep_clicks(&config, &said_log, registry, &result), PACE_INTERRUPTED);
    assert_int_equal(count_entries(*state), 1);
    pace_registry_free(registry);
}

static void each_part_is_shown_to_the_command(void **state)
{
    const char *path = in(state, "raw");
    char command[600];

    put_text(path, "1 1:1\n0 2:1\n");
    pace_prep_clicks_config config = settings(&path, 1, in(state, "set"));

    snprintf(command, sizeof command, "test -s \"$PACELINE_PART\" && basename \"$PACELINE_PART\" >> '%s'",
             in(state, "seen"));
    config.common.on_part = command;
    config.format = PACE_FORMAT_SVMLIGHT;
    prepare(&config);
    char *seen = get_text(in(state, "seen"));

    assert_string_equal(seen, "part-00000.h5\npart-00001.h5\npart-00002.h5\n");
    free(seen);
}

static void a_failing_command_leaves_nothing(void **state)
{
    const char *path = in(state, "raw");

    put_text(path, "1 1:1\n0 2:1\n");
    pace_prep_clicks_config config = settings(&path, 1, in(state, "set"));

    config.format = PACE_FORMAT_SVMLIGHT;
    config.common.on_part = "case $PACELINE_PART in *1.h5) exit 3;; esac";
    fail_to_prepare(state, &config, PACE_FAILED, "part-00001.h5");
    config.common.on_part = "kill -9 $$";
    fail_to_prepare(state, &config, PACE_FAILED, "signal 9");
}

/* What the result says is so. */
static void results_are_true(void **state)
{
    const char *path = in(state, "raw");
    struct stat info;

    put_text(path, "1 1:1\n0 2:1 4:1\n0 1:1\n1 9:1\n");
    pace_prep_clicks_config config = settings(&path, 1, in(state, "set"));

    config.format = PACE_FORMAT_SVMLIGHT;
    config.common.parts = 1;
    pace_prep_clicks_result result = prepare(&config);

    assert_int_equal(stat(in(state, "set/part-00000.h5"), &info), 0);
    assert_int_equal(result.bytes_written, info.st_size);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(result.bytes_read, info.st_size);
    assert_int_equal(result.train_rows, 4);
    assert_int_equal(result.test_rows, 0);
    assert_int_equal(result.features, 10);
    assert_int_equal(result.features_seen, 4);
    assert_true(result.positive_rate == 0.5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_same_bytes_for_any_threads_and_memory),
        TEST(where_ids_are_kept_does_not_show),
        TEST(another_seed_is_another_order),
        TEST(every_row_appears_once),
        TEST(the_holdout_has_its_size),
        TEST(test_files_become_the_test_set),
        TEST(entries_are_sorted_and_merged),
        TEST(small_sets_work),
        TEST(id_spaces_may_be_larger_than_32_bits),
        TEST(long_rows_pass),
        TEST(sets_made_alike_score_alike),
        TEST(like_refuses_what_does_not_fit),
        TEST(bad_rows_are_counted),
        TEST(bad_rows_of_test_files_count_too),
        TEST(wrong_inputs_leave_nothing),
        TEST(existing_sets_are_kept_unless_forced),
        TEST(a_stopped_prep_leaves_nothing),
        TEST(a_prep_stopped_while_writing_leaves_nothing),
        TEST(each_part_is_shown_to_the_command),
        TEST(a_failing_command_leaves_nothing),
        TEST(results_are_true),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
