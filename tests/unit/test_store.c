/* Data sets on disk: what is written is read, and what was damaged is found. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "store_checks.h"

#include <inttypes.h>
#include <xxhash.h>

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

/* --- checksums --- */

/* The smallest sets that have every kind of array. */
static const tiny_plan small_plans[] = {
    {.train = 12, .test = 5, .ids = 20, .entries = 3, .has_values = true, .seed = 21},
    {.train = 12, .test = 5, .ids = 20, .columns = 3, .seed = 22},
};

static void write_sealed(const tiny_plan *plan, const char *directory)
{
    tiny_set set = tiny_make(*plan);

    tiny_write(&set, directory);
    assert_ok(pace__store_seal(directory, &said_log));
    tiny_free(&set);
}

static void assert_opens(const char *directory)
{
    pace__store store = open_store(directory);

    pace__store_close(&store);
}

static void sealed_sets_open(void **state)
{
    for (size_t i = 0; i < PLANS; i++) {
        char name[16];

        snprintf(name, sizeof name, "set%zu", i);
        write_sealed(&plans[i], in(state, name));
        assert_opens(in(state, name));
        assert_ok(pace__store_seal(in(state, name), &said_log)); /* once more changes nothing */
        assert_opens(in(state, name));
    }
    write_sealed(&plans[0], in(state, "again"));
    assert_same_file(in(state, "set0/checksums.json"), in(state, "again/checksums.json"));
}

static void sets_without_checksums_open(void **state)
{
    write_sealed(&plans[2], in(state, "set"));
    assert_int_equal(unlink(in(state, "set/checksums.json")), 0);
    assert_opens(in(state, "set"));
}

/* A file in memory, to be put back with one byte changed. */
typedef struct original {
    const char *path;
    char *bytes;
    size_t size;
} original;

static original keep(const char *path)
{
    original file = {.path = path};

    assert_ok(pace__read_file(path, 1 << 20, &file.bytes, &file.size, &said_log));
    return file;
}

static void put_bytes(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* In place: it is done thousands of times. No bits put the byte back. */
static void flip(const original *file, size_t at, unsigned bits)
{
    char byte = (char)(file->bytes[at] ^ (int)bits);
    int fd = open(file->path, O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0 && pwrite(fd, &byte, 1, (off_t)at) == 1);
    close(fd);
}

static bool in_array(const pace__file_sum *sum, uint64_t at)
{
    for (unsigned i = 0; i < sum->arrays; i++) {
        if (at >= sum->array[i].at && at - sum->array[i].at < sum->array[i].bytes)
            return true;
    }
    return false;
}

static void assert_rows_in_range(const pace__store *store, const pace__rows *rows)
{
    size_t entries = rows->columns ? rows->rows * rows->columns : rows->start[rows->rows];

    for (size_t i = 0; i < rows->rows; i++)
        assert_true(rows->label[i] <= 1 && (rows->columns || rows->start[i] <= rows->start[i + 1]));
    for (size_t i = rows->columns ? 0 : rows->start[0]; i < entries; i++)
        assert_true(rows->ids[i] <= store->info.ids_seen);
}

/* All rows of a set through a reader: fine, or one error that names the file. */
static pace_status read_rows(const pace__store *store, int set, const char *path)
{
    pace__reader_plan plan = {
        .set = set, .sequential = true, .batch = 4, .last = store->info.rows[set], .consumers = 1};
    const pace__piece *piece;
    pace__reader *reader;
    pace_status status;

    said_clear();
    assert_ok(pace__reader_create(store, &plan, &said_log, &reader));
    while (!(status = pace__reader_next(reader, 0, &piece)) && piece)
        assert_rows_in_range(store, &piece->rows);
    pace__reader_free(reader);
    if (status)
        assert_failed(status, PACE_BAD_DATA, path);
    return status;
}

/* A flip among rows that have no sums is either found when they are read, or makes other rows that are valid. */
static bool rows_survive(const char *directory, const char *path, bool forget_sums)
{
    pace__store store = open_store(directory);

    if (forget_sums)
        tiny_forget_sums(&store);
    pace_status train = read_rows(&store, PACE__TRAIN, path), test = read_rows(&store, PACE__TEST, path);

    pace__store_close(&store);
    return train == PACE_OK && test == PACE_OK;
}

static void every_flipped_byte_is_found(void **state)
{
    for (size_t p = 0; p < 2; p++) {
        const char *set = in(state, p ? "set1" : "set0");
        const char *path = in(state, p ? "set1/part-00000.h5" : "set0/part-00000.h5");
        unsigned whole = 0, refused = 0;
        pace__checksums sums;

        write_sealed(&small_plans[p], set);
        assert_ok(pace__checksums_read(set, &sums, &said_log));
        original file = keep(path);

        for (size_t at = 0; at < file.size; at++) {
            flip(&file, at, at % 3 ? 0xff : 1u << at % 8);
            if (!in_array(&sums.files[1], at))
                refuse(set, PACE_BAD_DATA, path);
            else if (rows_survive(set, path, true))
                whole++;
            else
                refused++;
            if (in_array(&sums.files[1], at))
                assert_false(rows_survive(set, path, false));
            flip(&file, at, 0);
        }
        assert_opens(set);
        assert_true(whole > 0 && refused > 0);
        free(file.bytes);
        pace__checksums_release(&sums);
    }
}

static void every_other_length_is_refused(void **state)
{
    static const char *const names[] = {"set/part-00000.h5", "set/ids.h5", "set/checksums.json"};

    write_sealed(&small_plans[0], in(state, "set"));
    for (size_t n = 0; n < 3; n++) {
        const char *set = in(state, "set"), *path = in(state, names[n]);
        original file = keep(path);

        for (size_t size = file.size; size-- > 0;) {
            assert_int_equal(truncate(path, (off_t)size), 0);
            refuse(set, PACE_BAD_DATA, path);
            if (n == 1 && size % 64 != 0) /* HDF5 opens the part each time */
                size -= size % 64;
        }
        put_bytes(path, file.bytes, file.size + 1); /* the NUL behind it */
        refuse(set, PACE_BAD_DATA, path);
        put_bytes(path, file.bytes, file.size);
        assert_opens(set);
        free(file.bytes);
    }
}

static void every_byte_of_ids_and_checksums_counts(void **state)
{
    static const char *const names[] = {"set/ids.h5", "set/checksums.json"};

    write_sealed(&small_plans[1], in(state, "set"));
    for (size_t n = 0; n < 2; n++) {
        const char *set = in(state, "set"), *path = in(state, names[n]);
        original file = keep(path);

        for (size_t at = 0; at < file.size; at++) {
            flip(&file, at, 1u << at % 8);
            refuse(set, PACE_BAD_DATA, path);
            flip(&file, at, 0);
        }
        assert_opens(set);
        free(file.bytes);
    }
}

static void files_of_another_sealed_set_are_named(void **state)
{
    const char *set = in(state, "set"), *part = in(state, "set/part-00001.h5");
    tiny_plan other_plan = plans[2];
    uint64_t ids[200] = {0};

    other_plan.seed = 99;
    write_sealed(&plans[2], set);
    write_sealed(&other_plan, in(state, "other"));
    original own = keep(part), own_ids = keep(in(state, "set/ids.h5"));

    copy_file(in(state, "other/part-00001.h5"), part);
    refuse(set, PACE_BAD_DATA, part);
    copy_file(in(state, "other/part-00001.h5"), part);
    refuse(set, PACE_BAD_DATA, "another data set");
    copy_file(in(state, "set/part-00002.h5"), part);
    refuse(set, PACE_BAD_DATA, "part-00001.h5: this is part 2 under another name");
    assert_int_equal(unlink(part), 0);
    refuse(set, PACE_NO_INPUT, part);
    assert_int_equal(mkfifo(part, 0600), 0); /* must not be waited for */
    refuse(set, PACE_NO_INPUT, "is a pipe, not a file");
    assert_int_equal(unlink(part), 0);
    put_bytes(part, own.bytes, own.size);
    assert_opens(set);
    assert_ok(pace__ids_write(set, ids, 200, &said_log)); /* as many, and all in range */
    refuse(set, PACE_BAD_DATA, in(state, "set/ids.h5"));
    put_bytes(own_ids.path, own_ids.bytes, own_ids.size);
    copy_file(in(state, "other/checksums.json"), in(state, "set/checksums.json"));
    refuse(set, PACE_BAD_DATA, in(state, "set/part-00000.h5"));
    free(own_ids.bytes);
    free(own.bytes);
}

static void ids_that_are_damaged_later_are_found(void **state)
{
    uint64_t *ids = NULL;

    write_sealed(&small_plans[0], in(state, "set"));
    pace__store store = open_store(in(state, "set"));
    original file = keep(in(state, "set/ids.h5"));

    flip(&file, file.size / 2, 1);
    assert_failed(pace__store_read_ids(&store, &ids, &said_log), PACE_BAD_DATA, file.path);
    assert_null(ids);
    free(file.bytes);
    pace__store_close(&store);
}

/* Text whose own checksum is right. */
static void put_signed(const char *path, const char *body)
{
    XXH128_hash_t hash = XXH3_128bits(body, strlen(body));
    char *text = pace__format("%s\"checksum\":\"%016" PRIx64 "%016" PRIx64 "\"}\n", body,
                              (uint64_t)hash.high64, (uint64_t)hash.low64);

    assert_non_null(text);
    put_text(path, text);
    free(text);
}

/* Sets of the version before have no sums, and are read as they are. */
static void earlier_checksums_are_read(void **state)
{
    const char *path = in(state, "set/checksums.json");

    write_sealed(&small_plans[0], in(state, "set"));
    char *text = get_text(path);
    size_t version = strcspn(text, "2"); /* the first digit */

    assert_non_null(strstr(text, "\"version\":2"));
    text[version] = '1';
    text[strlen(text) - strlen("\"checksum\":\"\"}\n") - 32] = '\0'; /* 32 digits */
    put_signed(path, text);
    assert_opens(in(state, "set"));
    free(text);
}

#define HEAD "{\"format\":\"paceline checksums\",\"version\":2,"
#define IDS  "\"files\":[{\"name\":\"ids.h5\",\"bytes\":"
#define SUM  ",\"xxh3\":\"00000000000000000000000000000000\"}],"

static void wrong_checksum_files_are_refused(void **state)
{
    static const char *const bodies[] = {
        "",
        "{",
        "[",
        "{\"format\":\"something else\",\"version\":1,\"files\":[],",
        "{\"format\":\"paceline checksums\",\"version\":0,\"files\":[],",
        "{\"format\":\"paceline checksums\",\"version\":3,\"files\":[],",
        "{\"format\":\"paceline checksums\",\"version\":\"1\",\"files\":[],",
        HEAD,
        HEAD "\"files\":[],",
        HEAD "\"files\":{},",
        HEAD "\"files\":[7],",
        HEAD IDS "100,\"arrays\":[],\"xxh3\":\"00\"}],",
        HEAD IDS "-1,\"arrays\":[]" SUM,
        HEAD IDS "0.5,\"arrays\":[]" SUM,
        HEAD IDS "1e300,\"arrays\":[]" SUM,
        HEAD IDS "100,\"arrays\":7" SUM,
        HEAD IDS "100,\"arrays\":[[1]]" SUM,
        HEAD IDS "100,\"arrays\":[[1,2,3]]" SUM,
        HEAD IDS "100,\"arrays\":[[1,0]]" SUM,
        HEAD IDS "100,\"arrays\":[[1,100]]" SUM,
        HEAD IDS "100,\"arrays\":[[101,1]]" SUM,
        HEAD IDS "100,\"arrays\":[[10,10],[19,1]]" SUM,
        HEAD IDS "100,\"arrays\":[[10,10],[1,1]]" SUM,
        HEAD IDS
        "100,\"arrays\":[[1,1],[2,1],[3,1],[4,1],[5,1],[6,1],[7,1],[8,1],[9,1],[10,1],[11,1],[12,1],[13,1],"
        "[14,1],[15,1],[16,1]]" SUM,
        HEAD "\"files\":[{\"name\":\"part-00000.h5\",\"bytes\":100,\"arrays\":[]" SUM,
    };
    const char *path = in(state, "set/checksums.json");

    write_sealed(&small_plans[0], in(state, "set"));
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        put_signed(path, bodies[i]);
        refuse(in(state, "set"), PACE_BAD_DATA, path);
    }
    put_signed(path, HEAD IDS "100,\"arrays\":[[0,1]]" SUM); /* as it should be, but without parts */
    refuse(in(state, "set"), PACE_BAD_DATA, in(state, "set/part-00000.h5"));
    assert_int_equal(unlink(path), 0);
    assert_ok(pace__make_dirs(path, &said_log));
    refuse(in(state, "set"), PACE_NO_INPUT, path);
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
        TEST(sealed_sets_open),
        TEST(sets_without_checksums_open),
        TEST(every_flipped_byte_is_found),
        TEST(every_other_length_is_refused),
        TEST(every_byte_of_ids_and_checksums_counts),
        TEST(files_of_another_sealed_set_are_named),
        TEST(ids_that_are_damaged_later_are_found),
        TEST(wrong_checksum_files_are_refused),
        TEST(earlier_checksums_are_read),
    };

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
