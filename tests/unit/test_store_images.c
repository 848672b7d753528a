/* Data sets of pictures and features: what is written is read, by readers, slices and other commands. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "threads/thread.h"

#include "store_checks.h"
#include "tiny_pictures.h"

#include <cjson/cJSON.h>
#include <paceline/inspect.h>
#include <paceline/prep.h>

/* --- reading --- */

static void assert_same_info(const pace__store_info *found, const pace__store_info *expected)
{
    char *json = pace__encoding_to_json(&found->encoding),
         *other = pace__encoding_to_json(&expected->encoding);

    assert_string_equal(json, other);
    free(json);
    free(other);
    assert_int_equal(found->columns, expected->columns);
    assert_int_equal(found->ids_seen, 0);
    assert_int_equal(found->row_entries_max, expected->row_entries_max);
    assert_false(found->has_values);
    for (int which = 0; which < PACE__SETS; which++) {
        assert_int_equal(found->rows[which], expected->rows[which]);
        assert_int_equal(found->entries[which], expected->entries[which]);
        assert_int_equal(found->positives[which], expected->positives[which]);
    }
}

/* Row `i` of a view is row `row` of another. Called from threads, too. */
static bool is_same_row(const pace__rows *found, size_t i, const pace__rows *all, uint64_t row)
{
    size_t columns = found->columns;

    return columns == all->columns && !found->label && !found->ids && !found->values && !found->start &&
           found->classes[i] == all->classes[row] && found->source[i] == all->source[row] &&
           (found->pixels != NULL) == (all->pixels != NULL) &&
           (found->features != NULL) == (all->features != NULL) &&
           (!all->pixels || memcmp(found->pixels + i * columns, all->pixels + row * columns, columns) == 0) &&
           (!all->features || memcmp(found->features + i * columns, all->features + row * columns,
                                     columns * sizeof(float)) == 0);
}

static void read_in_stored_order(const pace__store *store, const pace__rows *all, int which)
{
    pace__reader_plan plan = {
        .set = which, .sequential = true, .batch = 200, .last = all->rows, .consumers = 1};
    const pace__piece *piece;
    pace__reader *reader;
    uint64_t rows = 0;

    assert_ok(pace__reader_create(store, &plan, &said_log, &reader));
    while (!pace__reader_next(reader, 0, &piece) && piece) {
        pace__rows expected = pace__rows_slice(all, rows, piece->rows.rows);

        assert_int_equal(piece->first, rows);
        for (size_t i = 0; i < piece->rows.rows; i++)
            assert_true(is_same_row(&piece->rows, i, all, rows + i));
        assert_true(pace__rows_checksum(&piece->rows) == pace__rows_checksum(&expected));
        /* A piece is a whole step, whatever parts its rows are in. */
        assert_int_equal(piece->rows.rows, all->rows - rows < 200 ? all->rows - rows : 200);
        rows += piece->rows.rows;
    }
    pace__reader_free(reader);
    assert_int_equal(rows, all->rows);
}

static void rows_come_back(void **state)
{
    for (size_t i = 0; i < sizeof tiny_pictures_plans / sizeof *tiny_pictures_plans; i++) {
        char name[16];

        snprintf(name, sizeof name, "set%zu", i);
        tiny_pictures set = tiny_pictures_make(tiny_pictures_plans[i]);

        tiny_pictures_write(&set, in(state, name));
        for (int sealed = 0; sealed < 2; sealed++) {
            pace__store store = open_store(in(state, name));

            assert_same_info(&store.info, &set.info);
            for (int which = 0; which < PACE__SETS; which++) {
                pace__rows all = tiny_pictures_view(&set, which);

                if (all.rows > 0)
                    read_in_stored_order(&store, &all, which);
            }
            pace__store_close(&store);
            assert_ok(pace__store_seal(in(state, name), &said_log));
        }
        tiny_pictures_free(&set);
    }
}

/* Every consumer gets rows in the epoch's order of single rows. */
typedef struct shared {
    pace__reader *reader;
    const pace__rows *all;
    uint64_t seed;
    uint64_t rows[3]; /* seen by each */
} shared;

static pace_status consume(void *arg, int index)
{
    shared *self = arg;
    const pace__piece *piece;

    while (!pace__reader_next(self->reader, index, &piece) && piece) {
        pace__order order =
            pace__order_make_blocks(self->all->rows, 1, self->seed, piece->first / self->all->rows);

        for (size_t i = 0; i < piece->rows.rows; i++) {
            uint64_t run, row = pace__order_row(&order, (piece->first + i) % self->all->rows, &run);

            require(is_same_row(&piece->rows, i, self->all, row));
        }
        self->rows[index] += piece->rows.rows;
    }
    return PACE_OK;
}

static void epochs_permute_single_rows(void **state)
{
    for (size_t p = 0; p < 2; p++) {
        tiny_pictures set = tiny_pictures_make(tiny_pictures_plans[p]);
        pace__rows all = tiny_pictures_view(&set, PACE__TRAIN);
        pace__reader_plan plan = {.seed = 9, .batch = 64, .last = 3 * all.rows, .consumers = 3};
        shared self = {.all = &all, .seed = 9};

        tiny_pictures_write(&set, in(state, "set"));
        pace__store store = open_store(in(state, "set"));

        assert_ok(pace__reader_create(&store, &plan, &said_log, &self.reader));
        assert_ok(pace__team(3, consume, &self, &said_log));
        for (int i = 0; i < 3; i++)
            assert_int_equal(self.rows[i], 3 * all.rows);
        pace__reader_free(self.reader);
        pace__store_close(&store);
        tiny_pictures_free(&set);
        assert_ok(pace__remove_tree(in(state, "set"), &said_log));
    }
}

/* Rows of a reader and of a slice, in the order of an epoch, are the same ones. */
static void slices_and_readers_agree(void **state)
{
    for (size_t p = 0; p < 2; p++) {
        pace__reader_plan plan = {
            .seed = 5, .batch = 300, .last = 2 * tiny_pictures_plans[p].train, .consumers = 1};
        const pace__piece *piece;
        pace__reader *reader;
        pace__slice slice;

        tiny_pictures_write_sealed(&tiny_pictures_plans[p], in(state, "set"));
        pace__store store = open_store(in(state, "set"));

        assert_ok(pace__reader_create(&store, &plan, &said_log, &reader));
        assert_ok(pace__slice_init(&slice, &store, PACE__TRAIN, 5, 300, &said_log));
        while (!pace__reader_next(reader, 0, &piece) && piece) {
            assert_ok(pace__slice_read(&slice, piece->first, piece->rows.rows));
            for (size_t i = 0; i < piece->rows.rows; i++)
                assert_true(is_same_row(&slice.rows, i, &piece->rows, i));
            pace__slice_ask(&slice, piece->first, piece->rows.rows);
        }
        pace__slice_release(&slice);
        pace__reader_free(reader);
        pace__store_close(&store);
        assert_ok(pace__remove_tree(in(state, "set"), &said_log));
    }
}

/* Pieces of large pictures have fewer rows; memory stays bounded. */
static void large_pictures_make_small_pieces(void **state)
{
    tiny_pictures_plan large = {
        .train = 18, .side = 600, .channels = 3, .classes = 2, .parts = 2, .seed = 8}; /* 1,081,800 bytes */
    tiny_pictures set = tiny_pictures_make(large);
    pace__rows all = tiny_pictures_view(&set, PACE__TRAIN);
    pace__reader_plan plan = {.sequential = true, .batch = 512, .last = 18, .consumers = 1};
    const pace__piece *piece;
    pace__reader *reader;
    uint64_t rows = 0;

    tiny_pictures_write(&set, in(state, "set"));
    pace__store store = open_store(in(state, "set"));

    assert_int_equal(pace__piece_rows(&store.info), 15);
    assert_in_range(pace__reader_memory(&store.info, 2), 4 * 15 * UINT64_C(1081800),
                    4 * PACE__PIECE_BYTES + 100000);
    assert_in_range(pace__slice_memory(&store.info, 10), 10 * (UINT64_C(1081800) + 6), 11 * 1081800);
    assert_ok(pace__reader_create(&store, &plan, &said_log, &reader));
    while (!pace__reader_next(reader, 0, &piece) && piece) {
        assert_in_range(piece->rows.rows, 1, 15);
        for (size_t i = 0; i < piece->rows.rows; i++)
            assert_true(is_same_row(&piece->rows, i, &all, piece->first + i));
        rows += piece->rows.rows;
    }
    pace__reader_free(reader);
    assert_int_equal(rows, 18);
    store.info.columns = 4096 * 4096 * 3;
    assert_int_equal(pace__piece_rows(&store.info), 1);
    store.info.columns = 784;
    assert_int_equal(pace__piece_rows(&store.info), PACE__PIECE_ROWS);
    pace__store_close(&store);
    tiny_pictures_free(&set);
}

static void all_arrays_are_in_the_checksum_of_rows(void **state)
{
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        tiny_pictures set = tiny_pictures_make(tiny_pictures_plans[p]);
        pace__rows rows = tiny_pictures_view(&set, PACE__TRAIN);
        uint64_t before = pace__rows_checksum(&rows);

        set.classes[PACE__TRAIN][7] ^= 1;
        assert_true(pace__rows_checksum(&rows) != before);
        set.classes[PACE__TRAIN][7] ^= 1;
        set.source[PACE__TRAIN][7] ^= 1;
        assert_true(pace__rows_checksum(&rows) != before);
        set.source[PACE__TRAIN][7] ^= 1;
        if (p == 0)
            set.pixels[PACE__TRAIN][rows.rows * rows.columns - 1] ^= 1;
        else
            set.features[PACE__TRAIN][rows.rows * rows.columns - 1] += 1;
        assert_true(pace__rows_checksum(&rows) != before);
        tiny_pictures_free(&set);
    }
}

static void pictures_have_no_original_ids(void **state)
{
    tiny_pictures_write_sealed(&tiny_pictures_plans[3], in(state, "set"));
    has_no_original_ids(state, "set");
}

/* --- names of pictures --- */

static void names_are_found_by_their_lines(void **state)
{
    static const uint32_t sources[] = {999, 0, 17, 17, 998, 0};
    static const char *const expected[] = {"class 3/999.jpg", "class 0/0.jpg",   "class 1/17.jpg",
                                           "class 1/17.jpg",  "class 2/998.jpg", "class 0/0.jpg"};
    const char *set = in(state, "set"), *path = in(state, "set/images.txt");
    char *names[6] = {0};

    tiny_pictures_write_sealed(&tiny_pictures_plans[0], set);
    assert_ok(pace__image_names_read(set, sources, 6, &said_log, names));
    for (size_t i = 0; i < 6; i++)
        assert_string_equal(names[i], expected[i]);
    pace__image_names_free(names, 6);
    assert_null(names[5]);
    assert_ok(pace__image_names_read(set, sources, 0, &said_log, names));
    assert_failed(pace__image_names_read(set, (uint32_t[]){3, 1000}, 2, &said_log, names), PACE_BAD_DATA,
                  "images.txt: damaged: it has no whole line 1001");
    assert_null(names[0]);
    put_text(path, "one\ntwo"); /* cut short */
    assert_failed(pace__image_names_read(set, (uint32_t[]){1}, 1, &said_log, names), PACE_BAD_DATA, "line 2");
    assert_int_equal(unlink(path), 0);
    assert_failed(pace__image_names_read(set, sources, 1, &said_log, names), PACE_NO_INPUT, path);
}

/* Lines that are longer than what is read at a time, and than a name may be. */
static void long_names_are_whole_or_refused(void **state)
{
    const char *path = in(state, "images.txt");
    char *text = tiny_alloc(300000), *names[2];

    memset(text, 'x', 300000);
    text[200000] = '\n'; /* line 1 is too long */
    text[200000 + PACE__IMAGE_NAME_BYTES_MAX + 1] = '\n';
    text[200000 + PACE__IMAGE_NAME_BYTES_MAX + 2] = 'y';
    text[200000 + PACE__IMAGE_NAME_BYTES_MAX + 3] = '\n';
    text[200000 + PACE__IMAGE_NAME_BYTES_MAX + 4] = '\0';
    put_text(path, text);
    assert_ok(pace__image_names_read(*state, (uint32_t[]){2, 1}, 2, &said_log, names));
    assert_string_equal(names[0], "y");
    assert_int_equal(strlen(names[1]), PACE__IMAGE_NAME_BYTES_MAX);
    pace__image_names_free(names, 2);
    assert_failed(pace__image_names_read(*state, (uint32_t[]){0}, 1, &said_log, names), PACE_BAD_DATA,
                  "line 1 is longer than");
    free(text);
}

/* --- what other commands make of it --- */

/* All of an array, as `type`. */
static void *read_array(hid_t file, const char *name, hid_t type, int rank, const hsize_t *sizes)
{
    hid_t array = H5Dopen2(file, name, H5P_DEFAULT);
    hsize_t found[4] = {0};

    assert_true(array >= 0);
    hid_t space = H5Dget_space(array);

    assert_int_equal(H5Sget_simple_extent_ndims(space), rank);
    H5Sget_simple_extent_dims(space, found, NULL);
    for (int i = 0; i < rank; i++)
        assert_int_equal(found[i], sizes[i]);
    void *values = tiny_alloc((size_t)H5Sget_simple_extent_npoints(space) * H5Tget_size(type));

    assert_true(H5Dread(array, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Sclose(space);
    H5Dclose(array);
    return values;
}

static void assert_same_array(hid_t file, const char *name, hid_t type, int rank, const hsize_t *sizes,
                              const void *expected, size_t bytes)
{
    void *values = read_array(file, name, type, rank, sizes);

    assert_memory_equal(values, expected, bytes);
    free(values);
}

static void sets_are_merged(void **state)
{
    for (size_t p = 0; p < 2; p++) {
        pace_merge_config merge = {
            .data = in(state, "set"), .output = in(state, "all.h5"), .sets = 2, .force = true};
        tiny_pictures set = tiny_pictures_make(tiny_pictures_plans[p]);
        uint32_t columns = set.info.columns;
        pace_merge_result result;

        tiny_pictures_write(&set, in(state, "set"));
        assert_ok(pace__store_seal(in(state, "set"), &said_log));
        assert_ok(pace_merge(&merge, &said_log, NULL, &result));
        assert_int_equal(result.train_rows, 700);
        assert_int_equal(result.test_rows, 300);
        hid_t file = H5Fopen(in(state, "all.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);

        assert_true(file >= 0);
        assert_same_array(file, "set1/label", H5T_NATIVE_UINT16, 1, (hsize_t[]){350},
                          set.classes[PACE__TRAIN] + 350, 700);
        assert_same_array(file, "test/source", H5T_NATIVE_UINT32, 1, (hsize_t[]){300}, set.source[PACE__TEST],
                          1200);
        if (p == 0) {
            assert_same_array(file, "set1/pixels", H5T_NATIVE_UINT8, 4, (hsize_t[]){350, 6, 7, 3},
                              set.pixels[PACE__TRAIN] + 350 * columns, 350 * columns);
            assert_same_array(file, "test/pixels", H5T_NATIVE_UINT8, 4, (hsize_t[]){300, 6, 7, 3},
                              set.pixels[PACE__TEST], 300 * columns);
        } else {
            assert_same_array(file, "set1/features", H5T_NATIVE_FLOAT, 2, (hsize_t[]){350, 33},
                              set.features[PACE__TRAIN] + 350 * columns, 350 * columns * 4);
        }
        char *names = get_text(in(state, "set/images.txt"));

        assert_same_array(file, "images", H5T_NATIVE_UINT8, 1, (hsize_t[]){strlen(names)}, names,
                          strlen(names));
        free(names);
        H5Fclose(file);
        tiny_pictures_free(&set);
        assert_ok(pace__remove_tree(in(state, "set"), &said_log));
    }
}

static double number_in(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static void inspect_counts_classes(void **state)
{
    for (size_t p = 0; p < 2; p++) {
        pace_inspect_config config = {.path = in(state, "set")};
        tiny_pictures set = tiny_pictures_make(tiny_pictures_plans[p]);
        char *text;

        tiny_pictures_write(&set, in(state, "set"));
        assert_ok(pace_inspect(&config, &said_log, &text));
        cJSON *found = cJSON_Parse(text), *classes = cJSON_GetObjectItemCaseSensitive(found, "classes");

        assert_string_equal(cJSON_GetObjectItemCaseSensitive(found, "kind")->valuestring,
                            p ? "features" : "image");
        assert_true(number_in(found, "height") == 6 && number_in(found, "width") == 7);
        assert_true(number_in(found, "channels") == set.info.encoding.channels);
        assert_int_equal(cJSON_GetArraySize(classes), 4);
        double train = 0, test = 0;

        for (int i = 0; i < 4; i++) {
            const cJSON *each = cJSON_GetArrayItem(classes, i);

            assert_string_equal(cJSON_GetObjectItemCaseSensitive(each, "name")->valuestring,
                                set.names.items[i]);
            train += number_in(each, "train");
            test += number_in(each, "test");
        }
        assert_true(train == 700 && test == 300);
        assert_true(number_in(cJSON_GetArrayItem(classes, 1), "train") == set.info.positives[PACE__TRAIN]);
        cJSON_Delete(found);
        free(text);
        tiny_pictures_free(&set);
        assert_ok(pace__remove_tree(in(state, "set"), &said_log));
    }
}

/* Clicks cannot be made like pictures. */
static void other_preps_refuse_pictures(void **state)
{
    const char *inputs[] = {in(state, "raw")};
    pace_prep_clicks_config clicks = {.common.inputs = {inputs, 1},
                                      .common.output = in(state, "clicks"),
                                      .common.like = in(state, "set"),
                                      .common.threads = 1,
                                      .common.memory = 128000000,
                                      .common.parts = 1};
    pace_prep_clicks_result result;

    tiny_pictures_write_sealed(&tiny_pictures_plans[0], in(state, "set"));
    put_text(in(state, "raw"), "1 1:1\n0 2:1\n");
    assert_failed(pace_prep_clicks(&clicks, &said_log, NULL, &result), PACE_USAGE,
                  "a data set of pictures: use prep images");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rows_come_back),
        TEST(epochs_permute_single_rows),
        TEST(slices_and_readers_agree),
        TEST(large_pictures_make_small_pieces),
        TEST(all_arrays_are_in_the_checksum_of_rows),
        TEST(pictures_have_no_original_ids),
        TEST(names_are_found_by_their_lines),
        TEST(long_names_are_whole_or_refused),
        TEST(sets_are_merged),
        TEST(inspect_counts_classes),
        TEST(other_preps_refuse_pictures),
    };

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
