/* Data sets on disk: what is written is read, and what was damaged is found. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support.h"

#include <hdf5.h>

static const tiny_plan plans[] = {
    {.train = 1000, .test = 300, .ids = 200, .columns = 7, .parts = 3, .seed = 1},
    {.train = 1000, .test = 300, .ids = 200, .columns = 7, .has_values = true, .parts = 3, .seed = 2},
    {.train = 1000, .test = 300, .ids = 200, .parts = 3, .seed = 3},
    {.train = 1000, .test = 300, .ids = 200, .has_values = true, .parts = 3, .seed = 4},
    {.train = 5, .test = 2, .ids = 9, .parts = 8, .seed = 5},                   /* more parts than rows */
    {.train = 5, .ids = 9, .columns = 3, .parts = 1, .seed = 6},                /* no test rows */
    {.train = 0, .test = 4, .ids = 0, .columns = 2, .unseen = true, .seed = 7}, /* no training rows */
};
#define PLANS (sizeof plans / sizeof *plans)

static pace__store open_store(const char *directory)
{
    pace__store store;

    assert_ok(pace__store_open(directory, &store, &said_log));
    return store;
}

static void assert_bytes(const pace__part *part, uint64_t at, const void *expected, size_t bytes)
{
    void *found = tiny_alloc(bytes);

    assert_ok(pace__pread_all(part->fd, found, bytes, at, part->path, &said_log));
    assert_memory_equal(found, expected, bytes);
    free(found);
}

static void assert_same_rows(const tiny_set *set, int which, const pace__part *part, uint64_t first)
{
    const pace__part_set *found = &part->sets[which];
    const tiny_rows *rows = &set->rows[which];
    uint64_t base = rows->start[first];

    assert_int_equal(found->entries, rows->start[first + found->rows] - base);
    assert_bytes(part, found->label_at, rows->label + first, found->rows);
    assert_bytes(part, found->ids_at, rows->ids + base, found->entries * 4);
    if (set->info.has_values)
        assert_bytes(part, found->values_at, rows->values + base, found->entries * 4);
    else
        assert_int_equal(found->values_at, 0);
    for (uint64_t row = 0; !set->info.columns && row <= found->rows; row++) {
        uint64_t start = rows->start[first + row] - base;

        assert_bytes(part, found->start_at + row * 8, &start, 8);
    }
}

static void assert_same_info(const pace__store_info *found, const pace__store_info *expected)
{
    assert_int_equal(found->columns, expected->columns);
    assert_int_equal(found->has_values, expected->has_values);
    assert_int_equal(found->ids_seen, expected->ids_seen);
    assert_int_equal(found->row_entries_max, expected->row_entries_max);
    assert_int_equal(found->parts, expected->parts);
    assert_int_equal(found->seed, expected->seed);
    assert_int_equal(found->encoding.kind, expected->encoding.kind);
    assert_int_equal(found->encoding.features, expected->encoding.features);
    assert_string_equal(found->command, expected->command);
    for (int which = 0; which < PACE__SETS; which++) {
        assert_int_equal(found->rows[which], expected->rows[which]);
        assert_int_equal(found->entries[which], expected->entries[which]);
    }
}

static void sets_come_back(void **state)
{
    for (size_t i = 0; i < PLANS; i++) {
        char name[16];

        snprintf(name, sizeof name, "set%zu", i);
        tiny_set set = tiny_make(plans[i]);

        tiny_write(&set, in(state, name));
        pace__store store = open_store(in(state, name));
        uint64_t first[PACE__SETS] = {0};

        assert_same_info(&store.info, &set.info);
        for (uint32_t part = 0; part < store.info.parts; part++) {
            for (int which = 0; which < PACE__SETS; which++) {
                if (set.info.rows[which] > 0)
                    assert_same_rows(&set, which, &store.parts[part], first[which]);
                first[which] += store.parts[part].sets[which].rows;
            }
        }
        assert_int_equal(first[PACE__TRAIN], plans[i].train);
        assert_int_equal(first[PACE__TEST], plans[i].test);
        pace__store_close(&store);
        tiny_free(&set);
    }
}

static void original_ids_come_back(void **state)
{
    tiny_set set = tiny_make(plans[0]);
    uint64_t *original = NULL;

    tiny_write(&set, in(state, "set"));
    pace__store store = open_store(in(state, "set"));

    assert_ok(pace__store_read_ids(&store, &original, &said_log));
    for (uint32_t i = 0; i < 200; i++)
        assert_int_equal(original[i], 5 * i + 3);
    free(original);
    pace__store_close(&store);
    tiny_free(&set);
}

/* Equal sets are equal bytes: no time, path or place in memory gets in. */
static void bytes_depend_on_the_contents_alone(void **state)
{
    tiny_set set = tiny_make(plans[3]);

    tiny_write(&set, in(state, "one"));
    tiny_write(&set, in(state, "elsewhere/two"));
    assert_same_file(in(state, "one/part-00000.h5"), in(state, "elsewhere/two/part-00000.h5"));
    assert_same_file(in(state, "one/part-00002.h5"), in(state, "elsewhere/two/part-00002.h5"));
    assert_same_file(in(state, "one/ids.h5"), in(state, "elsewhere/two/ids.h5"));
    tiny_free(&set);
}

/* Any HDF5 program sees the arrays that the header promises. */
static void hdf5_reads_the_parts(void **state)
{
    tiny_set set =
        tiny_make((tiny_plan){.train = 100, .test = 10, .ids = 50, .columns = 4, .has_values = true});
    uint32_t ids[100][4];
    float values[10][4];

    tiny_write(&set, in(state, "set"));
    hid_t file = H5Fopen(in(state, "set/part-00000.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t array = H5Dopen2(file, "/train/ids", H5P_DEFAULT),
          other = H5Dopen2(file, "/test/values", H5P_DEFAULT);

    assert_true(H5Dread(array, H5T_NATIVE_UINT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, ids) >= 0);
    assert_true(H5Dread(other, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_memory_equal(ids, set.rows[PACE__TRAIN].ids, sizeof ids);
    assert_memory_equal(values, set.rows[PACE__TEST].values, sizeof values);
    H5Dclose(other);
    H5Dclose(array);
    H5Fclose(file);
    tiny_free(&set);
}

static void rows_are_found_in_their_part(void **state)
{
    tiny_set set = tiny_make(plans[4]);

    tiny_write(&set, in(state, "set"));
    pace__store store = open_store(in(state, "set"));

    for (uint64_t row = 0; row < 5; row++) {
        uint64_t first = 99;
        uint32_t part = pace__store_part_of(&store, PACE__TRAIN, row, &first);

        assert_true(first <= row && row < first + store.parts[part].sets[PACE__TRAIN].rows);
        assert_int_equal(first, tiny_part_first(&set, PACE__TRAIN, part));
    }
    pace__store_close(&store);
    tiny_free(&set);
}

/* --- damage --- */

static void refuse(const char *directory, pace_status expected, const char *message)
{
    pace__store store;

    said_clear();
    assert_failed(pace__store_open(directory, &store, &said_log), expected, message);
}

static void what_is_no_set_is_refused(void **state)
{
    refuse(in(state, "none"), PACE_NO_INPUT, in(state, "none"));
    assert_ok(pace__make_dirs(in(state, "empty"), &said_log));
    refuse(in(state, "empty"), PACE_NO_INPUT, in(state, "empty"));
    assert_false(pace__is_store(in(state, "empty")));
    assert_ok(pace__make_dirs(in(state, "text"), &said_log));
    put_text(in(state, "text/part-00000.h5"), "label,ids\n1,2\n");
    refuse(in(state, "text"), PACE_BAD_DATA, in(state, "text/part-00000.h5"));
    put_text(in(state, "text/part-00000.h5"), "");
    refuse(in(state, "text"), PACE_BAD_DATA, in(state, "text/part-00000.h5"));
    put_text(in(state, "file"), "");
    refuse(in(state, "file"), PACE_NO_INPUT, in(state, "file"));
}

static void missing_parts_are_named(void **state)
{
    tiny_set set = tiny_make(plans[2]);

    tiny_write(&set, in(state, "set"));
    assert_int_equal(unlink(in(state, "set/part-00002.h5")), 0);
    refuse(in(state, "set"), PACE_NO_INPUT, in(state, "set/part-00002.h5"));
    tiny_free(&set);
}

static void parts_of_another_set_are_named(void **state)
{
    tiny_plan other_plan = plans[2];

    other_plan.seed = 99;
    tiny_set set = tiny_make(plans[2]), other = tiny_make(other_plan);

    tiny_write(&set, in(state, "set"));
    tiny_write(&other, in(state, "other"));
    copy_file(in(state, "other/part-00001.h5"), in(state, "set/part-00001.h5"));
    refuse(in(state, "set"), PACE_BAD_DATA, in(state, "set/part-00001.h5"));
    copy_file(in(state, "set/part-00002.h5"),
              in(state, "set/part-00001.h5")); /* the right set, the wrong place */
    refuse(in(state, "set"), PACE_BAD_DATA, in(state, "set/part-00001.h5"));
    tiny_free(&other);
    tiny_free(&set);
}

/* Any length that is shorter is refused. */
static void cut_files_are_refused(void **state)
{
    for (size_t i = 0; i < 4; i++) {
        tiny_set set = tiny_make(plans[i]);
        struct stat info;

        tiny_write(&set, in(state, "set"));
        assert_int_equal(stat(in(state, "set/part-00001.h5"), &info), 0);
        for (off_t size = info.st_size - 1; size >= 0; size -= 1 + size / 9) {
            assert_int_equal(truncate(in(state, "set/part-00001.h5"), size), 0);
            refuse(in(state, "set"), PACE_BAD_DATA, in(state, "set/part-00001.h5"));
        }
        tiny_free(&set);
    }
}

static void set_attribute(const char *path, const char *name, int64_t value)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), attribute = H5Aopen(file, name, H5P_DEFAULT);

    assert_true(attribute >= 0 && H5Awrite(attribute, H5T_NATIVE_INT64, &value) >= 0);
    H5Aclose(attribute);
    H5Fclose(file);
}

static int64_t get_attribute(const char *path, const char *name)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), attribute = H5Aopen(file, name, H5P_DEFAULT);
    int64_t value = 0;

    assert_true(attribute >= 0 && H5Aread(attribute, H5T_NATIVE_INT64, &value) >= 0);
    H5Aclose(attribute);
    H5Fclose(file);
    return value;
}

static void try_attribute(void **state, const char *part, const char *name, int64_t wrong)
{
    const char *path = in(state, part);
    int64_t right = get_attribute(path, name);
    pace__store store;

    set_attribute(path, name, wrong);
    said_clear();
    pace_status status = pace__store_open(in(state, "set"), &store, &said_log);

    if (status != PACE_BAD_DATA && status != PACE_NO_INPUT)
        fail_msg("%s: %s is %ld instead of %ld: status %d", part, name, wrong, right, status);
    assert_int_equal(errors_said(), 1);
    assert_said(in(state, "set"));
    set_attribute(path, name, right);
}

/* Each number that later arithmetic relies on, wrong in one part of three. */
static void wrong_attributes_are_found(void **state)
{
    static const char *const names[] = {"columns",       "ids_seen",    "parts",     "part",
                                        "seed",          "train_rows",  "test_rows", "format_version",
                                        "train_entries", "test_entries"};

    for (int columns = 0; columns < 2; columns++) {
        tiny_set set = tiny_make(plans[columns ? 0 : 3]);

        tiny_write(&set, in(state, "set"));
        for (size_t n = 0; n < 10; n++) {
            bool everywhere =
                n < 8 && strcmp(names[n], "part") != 0; /* entries are taken from the first part */
            int64_t right = get_attribute(in(state, "set/part-00000.h5"), names[n]);
            int64_t wrong[] = {right - 1, right + 1, right + (INT64_C(1) << 40), INT64_MIN, INT64_MAX};

            for (size_t w = 0; w < 5; w++) {
                try_attribute(state, "set/part-00000.h5", names[n], wrong[w]);
                if (everywhere)
                    try_attribute(state, "set/part-00001.h5", names[n], wrong[w]);
            }
        }
        pace__store store = open_store(in(state, "set")); /* all are right again */

        pace__store_close(&store);
        tiny_free(&set);
    }
}

static void remove_link(const char *path, const char *name)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);

    assert_true(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
    H5Fclose(file);
}

static void missing_arrays_are_found(void **state)
{
    static const char *const names[] = {"/train/label", "/train/indptr", "/train/indices",
                                        "/test/label",  "/train",        "/test"};

    for (size_t i = 0; i < 6; i++) {
        tiny_set set = tiny_make(plans[2]);

        tiny_write(&set, in(state, "set"));
        remove_link(in(state, "set/part-00001.h5"), names[i]);
        refuse(in(state, "set"), PACE_BAD_DATA, in(state, "set/part-00001.h5"));
        tiny_free(&set);
    }
}

/* An array of the right name, but of another type or length. */
static void replace_array(const char *path, const char *name, hid_t type, hsize_t length)
{
    remove_link(path, name);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), space = H5Screate_simple(1, &length, NULL);
    hid_t array = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

    assert_true(array >= 0);
    H5Dclose(array);
    H5Sclose(space);
    H5Fclose(file);
}

static void wrong_arrays_are_found(void **state)
{
    tiny_set set = tiny_make((tiny_plan){.train = 100, .ids = 50, .parts = 1});
    const char *part = in(state, "set/part-00000.h5");

    tiny_write(&set, in(state, "set"));
    replace_array(part, "/train/label", H5T_STD_U8LE, 99);
    refuse(in(state, "set"), PACE_BAD_DATA, part);
    tiny_write(&set, in(state, "set"));
    replace_array(part, "/train/label", H5T_STD_U16LE, 100);
    refuse(in(state, "set"), PACE_BAD_DATA, part);
    tiny_write(&set, in(state, "set"));
    replace_array(part, "/train/indptr", H5T_STD_U64LE, 100);
    refuse(in(state, "set"), PACE_BAD_DATA, part);
    tiny_write(&set, in(state, "set"));
    replace_array(part, "/train/indices", H5T_STD_U32BE, set.info.entries[0]);
    refuse(in(state, "set"), PACE_BAD_DATA, part);
    tiny_free(&set);
}

static void damaged_ids_are_found(void **state)
{
    tiny_set set = tiny_make(plans[0]), smaller = tiny_make((tiny_plan){.train = 3, .ids = 199, .parts = 1});
    uint64_t *original = NULL;

    tiny_write(&smaller, in(state, "smaller"));
    tiny_write(&set, in(state, "set"));
    pace__store store = open_store(in(state, "set"));

    copy_file(in(state, "smaller/ids.h5"), in(state, "set/ids.h5"));
    assert_failed(pace__store_read_ids(&store, &original, &said_log), PACE_BAD_DATA, in(state, "set/ids.h5"));
    put_text(in(state, "set/ids.h5"), "nonsense");
    assert_failed(pace__store_read_ids(&store, &original, &said_log), PACE_BAD_DATA, in(state, "set/ids.h5"));
    assert_int_equal(unlink(in(state, "set/ids.h5")), 0);
    assert_failed(pace__store_read_ids(&store, &original, &said_log), PACE_NO_INPUT, in(state, "set/ids.h5"));
    assert_null(original);
    pace__store_close(&store);
    tiny_free(&smaller);
    tiny_free(&set);
}

static void a_part_that_cannot_be_made_is_an_io_error(void **state)
{
    tiny_set set = tiny_make(plans[0]);
    pace__part part = {.fd = -1};

    assert_failed(pace__part_create(in(state, "none"), 0, &set.info, &part, &said_log), PACE_IO,
                  in(state, "none/part-00000.h5"));
    pace__part_close(&part);
    assert_failed(pace__ids_write(in(state, "none"), NULL, 0, &said_log), PACE_IO, in(state, "none/ids.h5"));
    part = (pace__part){0};
    pace__part_close(&part); /* a zeroed one is allowed */
    tiny_free(&set);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sets_come_back),
        TEST(original_ids_come_back),
        TEST(bytes_depend_on_the_contents_alone),
        TEST(hdf5_reads_the_parts),
        TEST(rows_are_found_in_their_part),
        TEST(what_is_no_set_is_refused),
        TEST(missing_parts_are_named),
        TEST(parts_of_another_set_are_named),
        TEST(cut_files_are_refused),
        TEST(wrong_attributes_are_found),
        TEST(missing_arrays_are_found),
        TEST(wrong_arrays_are_found),
        TEST(damaged_ids_are_found),
        TEST(a_part_that_cannot_be_made_is_an_io_error),
    };

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
