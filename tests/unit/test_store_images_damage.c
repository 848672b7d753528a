/* Data sets of pictures and features that were damaged, or are of several: it is found. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "store_checks.h"
#include "tiny_pictures.h"

#include <paceline/prep.h>

static void labels_out_of_range_are_found(void **state)
{
    const char *path = in(state, "set/part-00001.h5");

    for (size_t p = 0; p < 2; p++) {
        tiny_pictures_write_sealed(&tiny_pictures_plans[p], in(state, "set"));
        pace__store store = open_store(in(state, "set"));

        tiny_forget_sums(&store);
        for (int which = 0; which < PACE__SETS; which++) {
            const pace__part_set *set = &store.parts[1].sets[which];
            uint64_t row = set->rows - 3;
            char message[128];

            snprintf(message, sizeof message, "row %llu has the label 4, but there are only 4 classes",
                     (unsigned long long)row);
            overwrite(path, set->label_at + row * 2, &(uint16_t){4}, 2);
            assert_int_equal(read_set(&store, which, message), PACE_BAD_DATA);
            overwrite(path, set->label_at + row * 2, &(uint16_t){65535}, 2);
            assert_int_equal(read_set(&store, which, path), PACE_BAD_DATA);
            overwrite(path, set->label_at + row * 2, &(uint16_t){3}, 2);
            assert_ok(read_set(&store, which, ""));
        }
        pace__store_close(&store);
        assert_ok(pace__remove_tree(in(state, "set"), &said_log));
    }
}

static void features_that_are_not_finite_are_found(void **state)
{
    const char *path = in(state, "set/part-00001.h5");
    const float wrong[] = {NAN, INFINITY, -INFINITY, -NAN}, right[] = {3e38f, -3e38f, 1e-42f, -0.0f};

    tiny_pictures_write_sealed(&tiny_pictures_plans[1], in(state, "set"));
    pace__store store = open_store(in(state, "set"));

    tiny_forget_sums(&store);
    for (int which = 0; which < PACE__SETS; which++) {
        const pace__part_set *set = &store.parts[1].sets[which];
        uint64_t row = set->rows - 2, at = set->features_at + (row * 33 + 32) * 4;
        char message[64];

        snprintf(message, sizeof message, "row %llu has a feature that is not finite",
                 (unsigned long long)row);
        for (size_t i = 0; i < 4; i++) {
            overwrite(path, at, &wrong[i], 4);
            assert_int_equal(read_set(&store, which, message), PACE_BAD_DATA);
            assert_int_equal(read_set(&store, which, path), PACE_BAD_DATA);
            overwrite(path, at, &right[i], 4);
            assert_ok(read_set(&store, which, ""));
        }
    }
    pace__store_close(&store);
}

/* The values of sparse sets, too. */
static void values_that_are_not_finite_are_found(void **state)
{
    tiny_set set = tiny_make((tiny_plan){.train = 100, .ids = 9, .columns = 3, .has_values = true});

    tiny_write(&set, in(state, "set"));
    pace__store store = open_store(in(state, "set"));

    tiny_forget_sums(&store);
    uint64_t at = store.parts[0].sets[PACE__TRAIN].values_at + 299 * 4;

    overwrite(store.parts[0].path, at, &(float){INFINITY}, 4);
    assert_int_equal(read_set(&store, PACE__TRAIN, "a value is not finite"), PACE_BAD_DATA);
    overwrite(store.parts[0].path, at, &(float){-1e38f}, 4);
    assert_ok(read_set(&store, PACE__TRAIN, ""));
    pace__store_close(&store);
    tiny_free(&set);
}

static void names_of_a_sealed_set_are_compared(void **state)
{
    const char *set = in(state, "set");

    tiny_pictures_write_sealed(&tiny_pictures_plans[2], set);
    every_byte_counts(set, in(state, "set/classes.txt"));
    every_byte_counts(set, in(state, "set/images.txt"));
    assert_int_equal(mkfifo(in(state, "fifo"), 0666), 0);
    assert_int_equal(rename(in(state, "fifo"), in(state, "set/images.txt")), 0);
    refuse(set, PACE_NO_INPUT, "images.txt: is a pipe, not a file");
}

/* Without checksums class names are compared with the encoding. */
static void other_class_names_are_refused(void **state)
{
    tiny_pictures set = tiny_pictures_make(tiny_pictures_plans[0]);
    const char *path = in(state, "set/classes.txt");
    pace__part part = {.fd = -1};

    tiny_pictures_write(&set, in(state, "set"));
    put_text(path, "class 0\nclass 1\nclass 2\nclass 4\n");
    refuse(in(state, "set"), PACE_BAD_DATA, path);
    put_text(path, "class 0\nclass 1\nclass 2\n");
    refuse(in(state, "set"), PACE_BAD_DATA, path);
    put_text(path, "class 0\nclass 0\n");
    refuse(in(state, "set"), PACE_BAD_DATA, path);
    assert_failed(pace__store_seal(in(state, "set"), &said_log), PACE_BAD_DATA, path);
    assert_int_equal(unlink(path), 0);
    refuse(in(state, "set"), PACE_NO_INPUT, path);
    /* Nor is a part made without them. */
    assert_failed(pace__part_create(in(state, "set"), 0, &set.info, &part, &said_log), PACE_NO_INPUT, path);
    pace__part_close(&part);
    assert_ok(pace__class_names_write(in(state, "set"), &set.names, &said_log));
    assert_int_equal(unlink(in(state, "set/images.txt")), 0);
    refuse(in(state, "set"), PACE_NO_INPUT, in(state, "set/images.txt"));
    tiny_pictures_free(&set);
}

/* Parts that differ in what pictures alone have. */
static void parts_of_another_set_are_named(void **state)
{
    tiny_pictures set = tiny_pictures_make(tiny_pictures_plans[1]);

    for (int change = 0; change < 6; change++) {
        tiny_pictures other = tiny_pictures_make(tiny_pictures_plans[1]);
        pace__encoding *encoding = &other.info.encoding;

        if (change == 0)
            encoding->fit = PACE_FIT_PAD;
        else if (change == 1)
            encoding->origin++;
        else if (change == 2)
            other.info.positives[PACE__TEST]--;
        else if (change == 3)
            encoding->class_names ^= 1;
        else if (change == 4)
            encoding->height++;
        else
            encoding->channels = 3;
        tiny_pictures_write(&set, in(state, "set"));
        tiny_pictures_write(&other, in(state, "other"));
        copy_file(in(state, "other/part-00002.h5"), in(state, "set/part-00002.h5"));
        refuse(in(state, "set"), PACE_BAD_DATA, in(state, "set/part-00002.h5"));
        tiny_pictures_free(&other);
    }
    tiny_pictures_free(&set);
}

static void contradictions_are_refused(void **state)
{
    for (int change = 0; change < 6; change++) {
        tiny_pictures set = tiny_pictures_make(tiny_pictures_plans[change == 5]);

        if (change == 0)
            set.info.ids_seen++;
        else if (change == 1)
            set.info.columns--;
        else if (change == 2)
            set.info.row_entries_max--;
        else if (change == 3)
            set.info.positives[PACE__TRAIN] = 701; /* of 700 rows */
        else if (change == 4)
            set.info.positives[PACE__TEST] = UINT64_MAX;
        else
            set.info.encoding.features++;
        tiny_pictures_write(&set, in(state, "set"));
        refuse(in(state, "set"), PACE_BAD_DATA, in(state, "set/part-00000.h5"));
        tiny_pictures_free(&set);
    }
}

/* Puts another array in the place of one. */
static void replace_array(const char *path, const char *name, hid_t type, int rank, const hsize_t *sizes)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), space = H5Screate_simple(rank, sizes, NULL);

    assert_true(file >= 0);
    assert_true(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);

    H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY);
    hid_t array = H5Dcreate2(file, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);

    assert_true(array >= 0);
    H5Dclose(array);
    H5Pclose(properties);
    H5Sclose(space);
    H5Fclose(file);
}

static void other_shapes_and_types_are_found(void **state)
{
    static const hsize_t right[] = {233, 6, 7, 3};
    const struct {
        const char *name;
        hid_t type;
        int rank;
        hsize_t sizes[4];
        bool accepted;
    } cases[] = {
        {"/train/pixels", H5T_STD_U8LE, 4, {233, 6, 7, 3}, true},
        {"/train/pixels", H5T_STD_U8LE, 4, {233, 7, 6, 3}, false},
        {"/train/pixels", H5T_STD_U8LE, 4, {233, 6, 7, 1}, false},
        {"/train/pixels", H5T_STD_U8LE, 4, {232, 6, 7, 3}, false},
        {"/train/pixels", H5T_STD_U8LE, 2, {233, 126}, false},
        {"/train/pixels", H5T_STD_I8LE, 4, {233, 6, 7, 3}, false},
        {"/train/label", H5T_STD_U8LE, 1, {233}, false},
        {"/train/label", H5T_STD_U16BE, 1, {233}, false},
        {"/train/label", H5T_STD_U16LE, 1, {232}, false},
        {"/train/source", H5T_STD_U32LE, 1, {234}, false},
        {"/train/source", H5T_STD_U64LE, 1, {233}, false},
        {"/test/source", H5T_STD_U32LE, 2, {100, 1}, false},
    };
    tiny_pictures set = tiny_pictures_make(tiny_pictures_plans[0]);
    const char *path = in(state, "set/part-00000.h5");

    assert_int_equal(tiny_pictures_first(&set, PACE__TRAIN, 1), right[0]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tiny_pictures_write(&set, in(state, "set"));
        replace_array(path, cases[i].name, cases[i].type, cases[i].rank, cases[i].sizes);
        if (!cases[i].accepted) {
            refuse(in(state, "set"), PACE_BAD_DATA, path);
            continue;
        }
        pace__store store = open_store(in(state, "set"));

        pace__store_close(&store);
    }
    tiny_pictures_free(&set);
}

static void what_is_missing_is_found(void **state)
{
    static const char *const links[2][4] = {
        {"/train/label", "/train/pixels", "/train/source", "/test/pixels"},
        {"/train/label", "/train/features", "/train/source", "/test/features"}};
    static const char *const attributes[] = {"train_positives", "test_positives", "encoding", "kind"};
    const char *path = in(state, "set/part-00000.h5");

    for (size_t p = 0; p < 2; p++) {
        tiny_pictures set = tiny_pictures_make(tiny_pictures_plans[p]);

        for (size_t i = 0; i < 4; i++) {
            tiny_pictures_write(&set, in(state, "set"));
            change_part(path, links[p][i], NULL);
            refuse(in(state, "set"), PACE_BAD_DATA, path);
            tiny_pictures_write(&set, in(state, "set"));
            change_part(path, NULL, attributes[i]);
            refuse(in(state, "set"), PACE_BAD_DATA, path);
        }
        tiny_pictures_free(&set);
    }
}

static void checksums_of_the_other_kind_are_refused(void **state)
{
    tiny_set sparse = tiny_make((tiny_plan){.train = 10, .ids = 5, .columns = 2});

    tiny_pictures_write_sealed(&tiny_pictures_plans[3], in(state, "images"));
    tiny_write(&sparse, in(state, "sparse"));
    assert_ok(pace__store_seal(in(state, "sparse"), &said_log));
    assert_int_equal(rename(in(state, "images/checksums.json"), in(state, "other")), 0);
    copy_file(in(state, "sparse/checksums.json"), in(state, "images/checksums.json"));
    refuse(in(state, "images"), PACE_BAD_DATA, in(state, "images/part-00000.h5"));
    copy_file(in(state, "other"), in(state, "sparse/checksums.json"));
    refuse(in(state, "sparse"), PACE_BAD_DATA, in(state, "sparse/part-00000.h5"));
    tiny_free(&sparse);
}

static void equal_sets_are_equal_bytes(void **state)
{
    tiny_pictures_write_sealed(&tiny_pictures_plans[0], in(state, "one"));
    tiny_pictures_write_sealed(&tiny_pictures_plans[0], in(state, "two"));
    assert_same_file(in(state, "one/part-00001.h5"), in(state, "two/part-00001.h5"));
    assert_same_file(in(state, "one/checksums.json"), in(state, "two/checksums.json"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(labels_out_of_range_are_found),
        TEST(features_that_are_not_finite_are_found),
        TEST(values_that_are_not_finite_are_found),
        TEST(names_of_a_sealed_set_are_compared),
        TEST(other_class_names_are_refused),
        TEST(parts_of_another_set_are_named),
        TEST(contradictions_are_refused),
        TEST(other_shapes_and_types_are_found),
        TEST(what_is_missing_is_found),
        TEST(checksums_of_the_other_kind_are_refused),
        TEST(equal_sets_are_equal_bytes),
    };

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
