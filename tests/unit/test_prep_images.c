#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/picture/class_names.h"
#include "made_pictures.h"

#include <paceline/prep.h>

#define SIDE    10
#define COLUMNS (SIDE * SIDE)

/* Options with their defaults, and two threads. */
static pace_prep_images_config config_of(const char **inputs, size_t count, const char *output)
{
    pace_prep_images_config config;
    const pace_option_table *table = pace_prep_images_tables;
    pace_options *options = pace_options_create(table->rows, &config, NULL);

    assert_non_null(options);
    while ((++table)->rows)
        assert_ok(pace_options_add(options, table->rows, (char *)&config + table->offset));
    pace_options_free(options);
    config.common.inputs = (pace_texts){inputs, count};
    config.common.output = output;
    config.common.threads = 2;
    config.common.stop = NULL;
    config.common.parts = 3;
    return config;
}

static void put_pair(void **state, const char *stem, uint64_t first, uint32_t count, uint32_t classes)
{
    char name[256];
    bytes_made made = made_idx(first, count, SIDE, 1);

    snprintf(name, sizeof name, "mnist/%s-images-idx3-ubyte", stem);
    put_bytes(in(state, name), &made);
    made = made_idx_labels(count, classes);
    snprintf(name, sizeof name, "mnist/%s-labels-idx1-ubyte", stem);
    put_bytes(in(state, name), &made);
}

/* A path that stays; in() has only a few. */
static const char *kept(void **state, const char *name)
{
    static char paths[16][512];
    static unsigned turn;

    return strcpy(paths[turn++ % 16], in(state, name));
}

/* 200 pictures of 4 classes. */
static const char *make_mnist(void **state)
{
    mkdir(in(state, "mnist"), 0777);
    put_pair(state, "train", 0, 200, 4);
    return kept(state, "mnist");
}

static void assert_same_set(void **state, const char *left, const char *right)
{
    size_t files = count_entries(in(state, left));
    static const char *const names[] = {"part-00000.h5", "part-00001.h5", "part-00002.h5",
                                        "classes.txt",   "images.txt",    "checksums.json"};

    assert_int_equal(files, sizeof names / sizeof *names);
    assert_int_equal(count_entries(in(state, right)), files);
    for (size_t i = 0; i < files; i++) {
        char a[64], b[64];

        snprintf(a, sizeof a, "%s/%s", left, names[i]);
        snprintf(b, sizeof b, "%s/%s", right, names[i]);
        assert_same_file(in(state, a), in(state, b));
    }
}

/* Every row of a set: what its source says it is. Marks the sources. */
static uint64_t check_set(const pace__store *store, int set, uint8_t *seen)
{
    uint32_t columns = store->info.columns;
    uint8_t *pixels = tiny_alloc(columns);
    uint64_t rows = 0, positives = 0;

    for (uint32_t i = 0; i < store->info.parts; i++) {
        const pace__part *part = &store->parts[i];
        const pace__part_set *at = &part->sets[set];

        for (uint64_t row = 0; row < at->rows; row++, rows++) {
            uint16_t label;
            uint32_t source;

            assert_int_equal(pread(part->fd, &label, 2, (off_t)(at->label_at + 2 * row)), 2);
            assert_int_equal(pread(part->fd, &source, 4, (off_t)(at->source_at + 4 * row)), 4);
            assert_int_equal(pread(part->fd, pixels, columns, (off_t)(at->pixels_at + columns * row)),
                             columns);
            assert_int_equal(seen[source], 0);
            seen[source] = 1;
            positives += label == 1;
            assert_int_equal(label, source % 4);
            for (uint32_t k = 0; k < columns; k++)
                assert_int_equal(pixels[k], made_pixel(source, k / SIDE, k % SIDE, 0));
        }
    }
    assert_int_equal(rows, store->info.rows[set]);
    assert_int_equal(positives, store->info.positives[set]);
    free(pixels);
    return rows;
}

static void rows_are_the_pictures_shuffled(void **state)
{
    const char *input = make_mnist(state);
    pace_prep_images_config config = config_of(&input, 1, kept(state, "set"));
    pace_prep_images_result result;
    uint8_t seen[200] = {0};
    pace__store store;
    uint32_t sources[200];
    int rising = 0;

    config.common.holdout = 0.25;
    assert_ok(pace_prep_images(&config, &said_log, NULL, &result));
    assert_true(result.train_rows == 150 && result.test_rows == 50 && result.bad_rows == 0);
    assert_true(result.classes == 4 && result.height == SIDE && result.width == SIDE && result.channels == 1);
    assert_true(result.ranks == 2 && result.processes == 1);
    assert_ok(pace__store_open(in(state, "set"), &store, &said_log));
    assert_int_equal(check_set(&store, PACE__TRAIN, seen), 150);
    assert_int_equal(check_set(&store, PACE__TEST, seen), 50);
    for (int i = 0; i < 200; i++)
        assert_int_equal(seen[i], 1);
    const pace__part *part = &store.parts[0];

    assert_int_equal(pread(part->fd, sources, 4 * part->sets[0].rows, (off_t)part->sets[0].source_at) > 0, 1);
    for (uint64_t i = 1; i < part->sets[0].rows; i++)
        rising += sources[i] > sources[i - 1];
    assert_true(rising > 10 && rising < 40); /* of 49: neither sorted nor turned round */
    pace__store_close(&store);
}

static void threads_do_not_matter(void **state)
{
    const char *input = make_mnist(state);
    pace_prep_images_config config = config_of(&input, 1, kept(state, "one"));
    pace_prep_images_result result;

    config.common.holdout = 0.1;
    config.common.threads = 1;
    assert_ok(pace_prep_images(&config, &said_log, NULL, &result));
    config.common.threads = 5;
    config.common.output = kept(state, "five");
    assert_ok(pace_prep_images(&config, &said_log, NULL, &result));
    assert_same_set(state, "one", "five");
    config.common.seed = 2;
    config.common.output = kept(state, "other");
    assert_ok(pace_prep_images(&config, &said_log, NULL, &result));
    char a[PACE__SHA256_HEX], b[PACE__SHA256_HEX];

    hash_file(in(state, "one/part-00001.h5"), a);
    hash_file(in(state, "other/part-00001.h5"), b);
    assert_string_not_equal(a, b);
}

/* --- holes --- */

/* 60 files, of which every one in `bad` is none. */
static const char *make_folders(void **state, const int *bad, size_t bad_count)
{
    static const char *const classes[] = {"a", "b", "c", "d"};
    char name[64];

    mkdir(in(state, "files"), 0777);
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "files/%s", classes[i]);
        mkdir(in(state, name), 0777);
    }
    for (int i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "files/%s/%02d.png", classes[i % 4], i);
        put_png(in(state, name), (uint64_t)i, SIDE, 1);
        for (size_t k = 0; k < bad_count; k++) {
            if (bad[k] == i)
                put_text(in(state, name), i % 2 ? "no picture" : "\x89PNG\r\n\x1a\n");
        }
    }
    return kept(state, "files");
}

/* The number in a file's name, by the line of images.txt. */
static int number_of(const char *names, uint32_t line)
{
    for (; line > 0; line--)
        names = strchr(names, '\n') + 1;
    return atoi(strstr(names, ".png") - 2);
}

static void check_files(void **state, const char *set, const int *bad, size_t bad_count)
{
    pace__store store;
    char name[64];
    uint8_t seen[60] = {0}, pixels[COLUMNS];

    snprintf(name, sizeof name, "%s/images.txt", set);
    char *names = get_text(in(state, name));

    assert_ok(pace__store_open(in(state, set), &store, &said_log));
    for (uint32_t i = 0; i < store.info.parts; i++) {
        for (int which = 0; which < PACE__SETS; which++) {
            const pace__part *part = &store.parts[i];
            const pace__part_set *at = &part->sets[which];

            for (uint64_t row = 0; row < at->rows; row++) {
                uint16_t label;
                uint32_t source;

                assert_int_equal(pread(part->fd, &label, 2, (off_t)(at->label_at + 2 * row)), 2);
                assert_int_equal(pread(part->fd, &source, 4, (off_t)(at->source_at + 4 * row)), 4);
                assert_int_equal(pread(part->fd, pixels, COLUMNS, (off_t)(at->pixels_at + COLUMNS * row)),
                                 COLUMNS);
                int number = number_of(names, source);

                assert_int_equal(seen[number]++, 0);
                assert_int_equal(label, number % 4);
                for (uint32_t k = 0; k < COLUMNS; k++)
                    assert_int_equal(pixels[k], made_pixel((uint64_t)number, k / SIDE, k % SIDE, 0));
            }
        }
    }
    for (size_t k = 0; k < bad_count; k++)
        assert_int_equal(seen[bad[k]]++, 0);
    for (int i = 0; i < 60; i++)
        assert_int_equal(seen[i], 1);
    pace__store_close(&store);
    free(names);
}

static void bad_pictures_leave_no_trace(void **state)
{
    static const int bad[] = {0, 7, 8, 33, 59};
    const char *input = make_folders(state, bad, 5);
    pace_prep_images_config config = config_of(&input, 1, kept(state, "one"));
    pace_prep_images_result result;

    config.size = SIDE;
    config.common.holdout = 0.2;
    config.common.threads = 1;
    assert_ok(pace_prep_images(&config, &said_log, NULL, &result));
    assert_int_equal(result.bad_rows, 5);
    assert_int_equal(result.train_rows + result.test_rows, 55);
    assert_int_equal(result.channels, 1);
    assert_said("files/a/00.png: ");
    assert_said("files/b/33.png: it is neither JPEG nor PNG");
    check_files(state, "one", bad, 5);
    config.common.threads = 4;
    config.common.output = kept(state, "four");
    assert_ok(pace_prep_images(&config, &said_log, NULL, &result));
    assert_same_set(state, "one", "four");
    said_clear();

    config.common.output = kept(state, "none");
    config.common.max_bad_rows = 4;
    assert_failed(pace_prep_images(&config, &said_log, NULL, &result), PACE_BAD_DATA,
                  "more than 4 pictures are bad");
    config.common.max_bad_rows = 0;
    assert_failed(pace_prep_images(&config, &said_log, NULL, &result), PACE_BAD_DATA, "--max-bad-rows N");
    assert_false(pace__exists(in(state, "none")) || pace__exists(in(state, ".none.partial")));
}

/* One hole moves nothing in other parts but their heads: they are what they would be if made so at once. */
static void parts_without_holes_are_as_if_made_anew(void **state)
{
    static const int bad[] = {21};
    const char *input = make_folders(state, bad, 1);
    pace_prep_images_config config = config_of(&input, 1, kept(state, "set"));
    pace_prep_images_result result;
    pace__store store;

    config.size = SIDE;
    config.common.parts = 20;
    assert_ok(pace_prep_images(&config, &said_log, NULL, &result));
    assert_true(result.train_rows == 59 && result.test_rows == 0);
    check_files(state, "set", bad, 1);
    assert_ok(pace__store_open(in(state, "set"), &store, &said_log));
    int short_parts = 0;

    for (uint32_t i = 0; i < 20; i++)
        short_parts += store.parts[i].sets[PACE__TRAIN].rows == 2;
    assert_int_equal(short_parts, 1);
    pace__store_close(&store);
}

static void nothing_left_is_bad_data(void **state)
{
    const char *input = make_folders(state, NULL, 0);
    pace_prep_images_config config = config_of(&input, 1, kept(state, "set"));
    pace_prep_images_result result;

    for (int i = 0; i < 60; i++) {
        char name[64];

        snprintf(name, sizeof name, "files/%c/%02d.png", 'a' + i % 4, i);
        put_text(in(state, name), "x");
    }
    assert_failed(pace_prep_images(&config, &said_log, NULL, &result), PACE_BAD_DATA,
                  "no picture to train on could be read");
    assert_false(pace__exists(in(state, "set")));
}

/* --- test sets --- */

static void test_files_of_their_own(void **state)
{
    const char *input = make_mnist(state);
    pace_prep_images_config config = config_of(&input, 1, kept(state, "set"));
    pace_prep_images_result result;
    uint8_t seen[212] = {0};
    pace__store store;

    put_pair(state, "t10k", 200, 12, 4);
    assert_ok(pace_prep_images(&config, &said_log, NULL, &result));
    assert_true(result.train_rows == 200 && result.test_rows == 12);
    assert_said("t10k-images-idx3-ubyte: its pictures become the test set");
    assert_ok(pace__store_open(in(state, "set"), &store, &said_log));
    check_set(&store, PACE__TEST, seen);
    for (int i = 0; i < 212; i++)
        assert_int_equal(seen[i], i >= 200);
    pace__store_close(&store);
    said_clear();
    config.common.holdout = 0.1;
    config.common.force = true;
    assert_failed(pace_prep_images(&config, &said_log, NULL, &result), PACE_USAGE, "is a test set already");
    config.common.holdout = 0;
    config.common.test = config.common.inputs;
    assert_failed(pace_prep_images(&config, &said_log, NULL, &result), PACE_USAGE, "is a test set already");

    /* By themselves they are pictures as any others: of a model that is to be scored. */
    const char *files[] = {kept(state, "mnist/t10k-images-idx3-ubyte"),
                           kept(state, "mnist/t10k-labels-idx1-ubyte")};

    config = config_of(files, 2, kept(state, "tests"));
    config.common.like = kept(state, "set");
    assert_ok(pace_prep_images(&config, &said_log, NULL, &result));
    assert_true(result.train_rows == 12 && result.test_rows == 0);
}

static void test_folders(void **state)
{
    const char *input = make_folders(state, NULL, 0), *test = kept(state, "tests");
    pace_prep_images_config config = config_of(&input, 1, kept(state, "set"));
    pace_prep_images_result result;

    mkdir(test, 0777);
    mkdir(in(state, "tests/b"), 0777);
    put_png(in(state, "tests/b/1.png"), 99, SIDE, 1);
    config.common.test = (pace_texts){&test, 1};
    assert_ok(pace_prep_images(&config, &said_log, NULL, &result));
    assert_true(result.train_rows == 60 && result.test_rows == 1 && result.height == 160);
    config.common.force = true;
    config.common.holdout = 0.5;
    said_clear();
    assert_failed(pace_prep_images(&config, &said_log, NULL, &result), PACE_USAGE, "--holdout and --test");
    config.common.holdout = 0;
    test = kept(state, "files/b");
    assert_failed(pace_prep_images(&config, &said_log, NULL, &result), PACE_NO_INPUT, "neither sub-folders");
    test = kept(state, "files/");
    assert_failed(pace_prep_images(&config, &said_log, NULL, &result), PACE_USAGE,
                  "both an input and --test");
}

/* The group /test goes with the last of its pictures, from parts without a hole, too. */
static void a_test_set_may_vanish(void **state)
{
    const char *input = make_folders(state, NULL, 0), *test = kept(state, "tests");
    pace_prep_images_config config = config_of(&input, 1, kept(state, "set"));
    pace_prep_images_result result;

    mkdir(test, 0777);
    mkdir(in(state, "tests/b"), 0777);
    put_text(in(state, "tests/b/1.png"), "no picture");
    config.common.test = (pace_texts){&test, 1};
    config.size = SIDE;
    assert_ok(pace_prep_images(&config, &said_log, NULL, &result));
    assert_true(result.train_rows == 60 && result.test_rows == 0 && result.bad_rows == 1);
    check_files(state, "set", NULL, 0);
}

/* Once as itself, once by another name, once inside of another: pictures that count twice are told. */
static void inputs_that_overlap_are_told(void **state)
{
    const char *input = make_folders(state, NULL, 0);
    const char *both[] = {input, kept(state, "link")}, *test = kept(state, "link/a");
    pace_prep_images_config config = config_of(both, 2, kept(state, "set"));
    pace_prep_images_result result;

    assert_int_equal(symlink("files", in(state, "link")), 0);
    config.size = SIDE;
    assert_ok(pace_prep_images(&config, &said_log, NULL, &result));
    assert_int_equal(result.train_rows, 120);
    assert_said("its pictures count twice");
    said_clear();
    mkdir(in(state, "files-2"), 0777); /* sorts between a folder and what is in it, if a slash is a byte */
    mkdir(in(state, "files-2/a"), 0777);
    mkdir(in(state, "files/a/deep"), 0777);
    both[1] = kept(state, "files-2");
    config.common.test = (pace_texts){&test, 1};
    config.common.output = kept(state, "other");
    assert_failed(pace_prep_images(&config, &said_log, NULL, &result), PACE_USAGE,
                  "link/a: both an input and --test");
}

/* --- like another set --- */

static void like_another_set(void **state)
{
    const char *input = make_folders(state, NULL, 0);
    pace_prep_images_config config = config_of(&input, 1, kept(state, "set"));
    pace_prep_images_result result;

    config.size = 24;
    config.fit = PACE_FIT_PAD;
    config.channels = PACE_CHANNELS_RGB;
    assert_ok(pace_prep_images(&config, &said_log, NULL, &result));
    mkdir(in(state, "new"), 0777);
    mkdir(in(state, "new/c"), 0777);
    put_png(in(state, "new/c/1.png"), 5, 40, 3);
    input = kept(state, "new");
    config = config_of(&input, 1, kept(state, "later"));
    config.common.like = kept(state, "set");
    assert_ok(pace_prep_images(&config, &said_log, NULL, &result));
    assert_true(result.classes == 4 && result.height == 24 && result.channels == 3);
    pace__store one, two;

    assert_ok(pace__store_open(in(state, "set"), &one, &said_log));
    assert_ok(pace__store_open(in(state, "later"), &two, &said_log));
    assert_ok(pace__encoding_fits(&one.info.encoding, &two.info.encoding, &said_log));
    assert_same_file(in(state, "set/classes.txt"), in(state, "later/classes.txt"));
    pace__store_close(&one);
    pace__store_close(&two);
    said_clear();
    config.common.force = true;
    config.size = 32;
    assert_failed(pace_prep_images(&config, &said_log, NULL, &result), PACE_USAGE, "--size 32 contradicts");
    config.size = 24;
    config.fit = PACE_FIT_STRETCH;
    assert_failed(pace_prep_images(&config, &said_log, NULL, &result), PACE_USAGE,
                  "--fit stretch contradicts");
    config.fit = PACE_FIT_CROP;
    config.channels = PACE_CHANNELS_GREY;
    assert_failed(pace_prep_images(&config, &said_log, NULL, &result), PACE_USAGE, "--channels grey");
    config.channels = PACE_CHANNELS_AUTO;
    mkdir(in(state, "new/zebra"), 0777);
    assert_failed(pace_prep_images(&config, &said_log, NULL, &result), PACE_BAD_DATA, "the class \"zebra\"");
}

static void options_that_cannot_be(void **state)
{
    const char *input = make_mnist(state);
    pace_prep_images_config config = config_of(&input, 1, NULL);
    pace_prep_images_result result;

    assert_failed(pace_prep_images(&config, &said_log, NULL, &result), PACE_USAGE, "--output is missing");
    config.common.output = kept(state, "set");
    config.size = 7;
    assert_failed(pace_prep_images(&config, &said_log, NULL, &result), PACE_USAGE, "--size 7");
    config.size = 0;
    config.common.like = *state;
    assert_int_not_equal(pace_prep_images(&config, NULL, NULL, &result), PACE_OK);
    config.common.like = NULL;
    config.common.inputs.count = 0;
    assert_failed(pace_prep_images(&config, &said_log, NULL, &result), PACE_USAGE, "no input");
    assert_false(pace__exists(in(state, "set")) || pace__exists(in(state, ".set.partial")));
}

/* --- ending early --- */

static void commands_run_on_parts(void **state)
{
    static const int bad[] = {4};
    const char *input = make_folders(state, bad, 1);
    pace_prep_images_config config = config_of(&input, 1, kept(state, "set"));
    pace_prep_images_result result;
    char command[600];

    snprintf(command, sizeof command, "basename $PACELINE_PART >>%s", in(state, "seen"));
    config.common.on_part = command;
    assert_ok(pace_prep_images(&config, &said_log, NULL, &result));
    char *seen = get_text(in(state, "seen"));

    assert_string_equal(seen, "part-00000.h5\npart-00001.h5\npart-00002.h5\n");
    free(seen);
    said_clear();
    config.common.on_part = "exit 3";
    config.common.output = kept(state, "none");
    assert_failed(pace_prep_images(&config, &said_log, NULL, &result), PACE_FAILED, "exit code 3");
    assert_false(pace__exists(in(state, "none")) || pace__exists(in(state, ".none.partial")));
}

static void a_stopped_prep_leaves_nothing(void **state)
{
    const char *input = make_mnist(state);
    pace_prep_images_config config = config_of(&input, 1, kept(state, "set"));
    pace_prep_images_result result;
    _Atomic int stop = 1;

    config.common.stop = &stop;
    assert_failed(pace_prep_images(&config, &said_log, NULL, &result), PACE_INTERRUPTED, "interrupted");
    assert_false(pace__exists(in(state, "set")) || pace__exists(in(state, ".set.partial")));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)
    const struct CMUnitTest tests[] = {
        TEST(rows_are_the_pictures_shuffled),
        TEST(threads_do_not_matter),
        TEST(bad_pictures_leave_no_trace),
        TEST(parts_without_holes_are_as_if_made_anew),
        TEST(nothing_left_is_bad_data),
        TEST(test_files_of_their_own),
        TEST(test_folders),
        TEST(a_test_set_may_vanish),
        TEST(inputs_that_overlap_are_told),
        TEST(like_another_set),
        TEST(options_that_cannot_be),
        TEST(commands_run_on_parts),
        TEST(a_stopped_prep_leaves_nothing),
    };

    return cmocka_run_group_tests_name("prep_images", tests, NULL, NULL);
}
