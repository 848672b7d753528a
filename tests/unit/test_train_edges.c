/* Jobs on pictures at their edges: dry runs, many classes, rows that cannot be read, checkpoints of other
 * weights. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/store/slice.h"

#include "picture_jobs.h"

#include <fcntl.h>

static const layout layouts[] = {
    {PACE_MODE_LOCAL, 1, -1, -1, false},
    {PACE_MODE_ALLREDUCE, 2, -1, -1, false},
    {PACE_MODE_PS_SYNC, 2, 1, -1, true},
    {PACE_MODE_PS_ASYNC, 2, 1, -1, false},
};

#define LAYOUTS (sizeof layouts / sizeof *layouts)

/* A run whose model can be --pretrained. */
static void make_first(void **state)
{
    pace_train_config config = settings(state);

    config.run = in(state, "first");
    config.length.epochs = 1;
    train_alone(&config);
}

/* --- dry runs --- */

/* No features are there yet: the pictures are not taken for them. */
static void a_dry_run_of_the_top_computes_nothing(void **state)
{
    make_set(state, "set", plain_set);
    make_first(state);
    for (size_t l = 0; l < LAYOUTS; l++) {
        pace_train_config config = settings(state);

        lay_out(&config, layouts[l]);
        config.own.cnn.pretrained = in(state, "first");
        config.own.cnn.train = "top";
        config.own.cnn.feature_cache = in(state, "cache");
        config.dry_run = true;
        pace__remove_tree(in(state, "cache"), NULL);
        train(&config);
        assert_said("will be computed once");
        assert_false(pace__exists(in(state, "cache")));
        config.dry_run = false;
        train(&config);
        config.dry_run = true;
        train(&config);
        assert_said("will be taken from");
    }
}

/* --- many classes --- */

/* More outputs than the head's own kernels take: frozen layers run without any head. */
static void features_do_not_depend_on_the_classes(void **state)
{
    tiny_pictures_plan many = plain_set;

    many.classes = 20;
    make_set(state, "set", many);
    make_first(state);
    pace_train_config config = settings(state);

    config.own.cnn.pretrained = in(state, "first");
    config.own.cnn.train = "top";
    pace_train_result result = train(&config);

    assert_said("pictures through 4 layers");
    assert_int_equal(result.test.classes, 20);
    assert_true(isfinite(result.train_loss) && isfinite(result.test.logloss));
}

/* --- rows that cannot be read --- */

/* Gives a row that is not among the first a class that does not exist; returns the step that it belongs to. */
static uint64_t damage_row(const char *path, int64_t seed)
{
    uint16_t wrong = 9;
    pace__store store;
    pace__slice slice;
    uint64_t place = 0;

    assert_ok(pace__store_open(path, &store, &said_log));
    int fd = open(store.parts[1].path, O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    for (uint64_t row = 0; place / BATCH < 3; row++) { /* until one of a later step is hit */
        uint64_t at = store.parts[1].sets[PACE__TRAIN].label_at + row * sizeof wrong;
        uint16_t right;

        assert_true(row < store.parts[1].sets[PACE__TRAIN].rows);
        assert_ok(pace__pread_all(store.parts[1].fd, &right, sizeof right, at, "part", &said_log));
        assert_ok(pace__pwrite_all(fd, &wrong, sizeof wrong, at, "part", &said_log));
        assert_ok(pace__slice_init(&slice, &store, PACE__TRAIN, seed, 1, NULL));
        for (place = 0; pace__slice_read(&slice, place, 1) == PACE_OK;)
            place++;
        pace__slice_release(&slice);
        if (place / BATCH < 3)
            assert_ok(pace__pwrite_all(fd, &right, sizeof right, at, "part", &said_log));
    }
    close(fd);
    pace__store_close(&store);
    return place / BATCH;
}

/* They are read while an earlier step is computed: the message is about their own. */
static void damaged_rows_are_told_with_their_step(void **state)
{
    make_set(state, "set", plain_set);
    uint64_t step = damage_row(in(state, "set"), settings(state).seed);
    char expected[32];

    snprintf(expected, sizeof expected, "step %d: ", (int)step);
    for (size_t l = 0; l < LAYOUTS; l++) {
        pace_train_config config = settings(state);
        pace_train_result result;

        lay_out(&config, layouts[l]);
        config.length.epochs = 1; /* who does not wait for others may meet it again in the next */
        said_clear();
        assert_int_equal(train_ranks(&config, NULL, &result), PACE_BAD_DATA);
        assert_said(expected);
        assert_said("part-00001.h5");
    }
}

/* --- other weights --- */

static void a_checkpoint_belongs_to_its_name_map(void **state)
{
    make_set(state, "set", plain_set);
    make_first(state);
    pace_train_config config = settings(state);

    config.own.cnn.pretrained = in(state, "first");
    config.own.cnn.name_map = in(state, "map");
    config.own.cnn.train = "from:conv3";
    put_text(in(state, "map"), "conv1.gamma conv1.gamma\n");
    interrupt(config, 5);
    put_text(in(state, "map"), "conv1.gamma conv1.beta\n");
    config = resumed(config);
    fail_to_train(&config, PACE_USAGE, "pretrained=");
    put_text(in(state, "map"), "conv1.gamma conv1.gamma\n");
    train(&config);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_dry_run_of_the_top_computes_nothing),
        TEST(features_do_not_depend_on_the_classes),
        TEST(damaged_rows_are_told_with_their_step),
        TEST(a_checkpoint_belongs_to_its_name_map),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
