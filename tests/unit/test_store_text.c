/* Data sets of texts: what is written is read, by readers and slices, and what was damaged is found. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "threads/thread.h"

#include "store_checks.h"
#include "tiny_texts.h"

static const tiny_texts_plan plans[] = {
    {.train = 1900, .test = 700, .validation = 130, .words = 90, .length = 11, .parts = 3, .seed = 1},
    {.train = 1900,
     .test = 700,
     .validation = 130,
     .words = 90,
     .length = 11,
     .front = true,
     .parts = 3,
     .seed = 2},
    {.train = 5, .test = 2, .words = 4, .length = 1, .parts = 8, .seed = 3}, /* more parts than rows */
    {.train = 7, .words = 4, .length = 3, .seed = 4},                        /* no test rows */
};
#define PLANS (sizeof plans / sizeof *plans)

static void write_sealed(const tiny_texts_plan *plan, const char *directory)
{
    tiny_texts set = tiny_texts_make(*plan);

    tiny_texts_write(&set, directory);
    assert_ok(pace__store_seal(directory, &said_log));
    tiny_texts_free(&set);
}

/* --- reading --- */

static void assert_same_info(const pace__store_info *found, const pace__store_info *expected)
{
    assert_int_equal(found->encoding.kind, PACE__TEXT);
    assert_int_equal(found->encoding.features, expected->encoding.features);
    assert_int_equal(found->encoding.length, expected->encoding.length);
    assert_int_equal(found->encoding.truncate, expected->encoding.truncate);
    assert_int_equal(found->encoding.pad_front, expected->encoding.pad_front);
    assert_true(found->encoding.vocabulary == expected->encoding.vocabulary);
    assert_int_equal(found->columns, expected->columns);
    assert_int_equal(found->ids_seen, expected->ids_seen);
    assert_int_equal(found->row_entries_max, expected->row_entries_max);
    assert_false(found->has_values);
    for (int which = 0; which < PACE__SETS; which++) {
        assert_int_equal(found->rows[which], expected->rows[which]);
        assert_int_equal(found->entries[which], expected->entries[which]);
        assert_int_equal(found->positives[which], expected->positives[which]);
    }
}

static void assert_same_rows(const pace__rows *found, const pace__rows *all, uint64_t first)
{
    pace__rows expected = pace__rows_slice(all, first, found->rows);

    assert_int_equal(found->columns, expected.columns);
    assert_int_equal(found->front, expected.front);
    assert_null(found->values);
    assert_memory_equal(found->label, expected.label, found->rows);
    assert_memory_equal(found->length, expected.length, found->rows * 4);
    assert_memory_equal(found->ids, expected.ids, found->rows * found->columns * 4);
    assert_true(pace__rows_checksum(found) == pace__rows_checksum(&expected));
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
        assert_same_rows(&piece->rows, all, piece->first);
        rows += piece->rows.rows;
    }
    pace__reader_free(reader);
    assert_int_equal(rows, all->rows);
}

static void texts_come_back(void **state)
{
    for (size_t i = 0; i < PLANS; i++) {
        char name[16];

        snprintf(name, sizeof name, "set%zu", i);
        tiny_texts set = tiny_texts_make(plans[i]);

        tiny_texts_write(&set, in(state, name));
        for (int sealed = 0; sealed < 2; sealed++) {
            pace__store store = open_store(in(state, name));

            assert_same_info(&store.info, &set.info);
            for (int which = 0; which < PACE__SETS; which++) {
                pace__rows all = tiny_texts_view(&set, which);

                if (all.rows > 0)
                    read_in_stored_order(&store, &all, which);
            }
            pace__store_close(&store);
            assert_ok(pace__store_seal(in(state, name), &said_log));
        }
        tiny_texts_free(&set);
    }
}

/* Rows of a reader and of a slice, in the order of an epoch, are the same ones. */
static void slices_and_readers_agree(void **state)
{
    tiny_texts set = tiny_texts_make(plans[1]);
    pace__reader_plan plan = {.seed = 9, .batch = 300, .last = 2 * plans[1].train, .consumers = 1};
    const pace__piece *piece;
    pace__reader *reader;
    pace__slice slice;

    tiny_texts_write(&set, in(state, "set"));
    pace__store store = open_store(in(state, "set"));

    assert_ok(pace__reader_create(&store, &plan, &said_log, &reader));
    assert_ok(pace__slice_init(&slice, &store, PACE__TRAIN, 9, PACE__PIECE_ROWS, &said_log));
    while (!pace__reader_next(reader, 0, &piece) && piece) {
        assert_ok(pace__slice_read(&slice, piece->first, piece->rows.rows));
        assert_same_rows(&slice.rows, &piece->rows, 0);
    }
    assert_true(pace__slice_memory(&store.info, 100) >= 100 * (11 * 4 + 4 + 1));
    assert_true(pace__reader_memory(&store.info, 1) >= PACE__PIECE_ROWS * (11 * 4 + 4 + 1));
    pace__slice_release(&slice);
    pace__reader_free(reader);
    pace__store_close(&store);
    tiny_texts_free(&set);
}

/* Of any stretch, over blocks and parts, beside whatever the slice has read. */
static void lengths_are_read_alone(void **state)
{
    tiny_texts set = tiny_texts_make(plans[0]);
    uint64_t rows = plans[0].train;
    uint32_t *length = tiny_alloc(rows * sizeof *length);
    pace__slice slice;

    tiny_texts_write(&set, in(state, "set"));
    pace__store store = open_store(in(state, "set"));

    assert_ok(pace__slice_init(&slice, &store, PACE__TRAIN, 9, rows, &said_log));
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        assert_ok(pace__slice_read(&slice, epoch * rows, rows));
        for (uint64_t first = 0; first < rows; first += 111) {
            uint64_t count = rows - first < 700 ? rows - first : 700;

            assert_ok(pace__slice_lengths(&slice, epoch * rows + first, count, length));
            assert_memory_equal(length, slice.rows.length + first, count * sizeof *length);
            assert_ok(pace__slice_lengths(&slice, (1 - epoch) * rows + first, count, length));
        }
    }
    pace__slice_release(&slice);
    pace__store_close(&store);
    tiny_texts_free(&set);
    free(length);
}

/* Consumers that share the reading of lengths, too. */
typedef struct shared {
    pace__reader *reader;
    const pace__rows *all;
} shared;

static pace_status consume(void *arg, int index)
{
    const shared *self = arg;
    const pace__piece *piece;

    while (!pace__reader_next(self->reader, index, &piece) && piece) {
        pace__rows expected = pace__rows_slice(self->all, piece->first, piece->rows.rows);

        require(pace__rows_checksum(&piece->rows) == pace__rows_checksum(&expected));
    }
    return PACE_OK;
}

static void consumers_share_the_reading(void **state)
{
    tiny_texts set = tiny_texts_make(plans[1]);
    pace__rows all = tiny_texts_view(&set, PACE__TRAIN);
    pace__reader_plan plan = {.sequential = true, .batch = 100, .last = all.rows, .consumers = 3};
    shared self = {.all = &all};

    tiny_texts_write(&set, in(state, "set"));
    pace__store store = open_store(in(state, "set"));

    assert_ok(pace__reader_create(&store, &plan, &said_log, &self.reader));
    assert_ok(pace__team(3, consume, &self, &said_log));
    pace__reader_free(self.reader);
    pace__store_close(&store);
    tiny_texts_free(&set);
}

static void lengths_are_in_the_checksum_of_rows(void **state)
{
    tiny_texts set = tiny_texts_make(plans[0]);
    pace__rows rows = tiny_texts_view(&set, PACE__TRAIN);
    uint64_t before = pace__rows_checksum(&rows);

    (void)state;
    set.length[PACE__TRAIN][7] ^= 1;
    assert_true(pace__rows_checksum(&rows) != before);
    tiny_texts_free(&set);
}

static void texts_have_no_original_ids(void **state)
{
    write_sealed(&plans[3], in(state, "set"));
    has_no_original_ids(state, "set");
}

static void sparse_sets_do_not_know_their_positives(void **state)
{
    tiny_set set = tiny_make((tiny_plan){.train = 10, .ids = 5, .columns = 2});

    tiny_write(&set, in(state, "set"));
    pace__store store = open_store(in(state, "set"));

    assert_true(store.info.positives[PACE__TRAIN] == UINT64_MAX);
    pace__store_close(&store);
    tiny_free(&set);
}

/* --- damage --- */

static void rows_out_of_range_are_found(void **state)
{
    static const uint32_t wrong_lengths[] = {0, 12, UINT32_MAX, 1u << 31};
    const char *path = in(state, "set/part-00001.h5");

    write_sealed(&plans[0], in(state, "set"));
    pace__store store = open_store(in(state, "set"));

    tiny_forget_sums(&store);
    for (int which = 0; which < PACE__SETS; which++) {
        const pace__part_set *set = &store.parts[1].sets[which];
        uint64_t row = set->rows - 3, length_at = set->length_at + row * 4,
                 id_at = set->ids_at + row * 11 * 4;
        uint32_t id = 93;

        for (size_t i = 0; i < 4; i++) {
            overwrite(path, length_at, &wrong_lengths[i], 4);
            assert_int_equal(read_set(&store, which, path), PACE_BAD_DATA);
            assert_int_equal(read_set(&store, which, "length"), PACE_BAD_DATA);
        }
        overwrite(path, length_at, &(uint32_t){11}, 4);
        overwrite(path, id_at, &id, 4); /* there is no "unseen" */
        assert_int_equal(read_set(&store, which, "id 93"), PACE_BAD_DATA);
        overwrite(path, id_at, &(uint32_t){92}, 4);
        overwrite(path, set->label_at + row, &(uint8_t){2}, 1);
        assert_int_equal(read_set(&store, which, "label"), PACE_BAD_DATA);
        overwrite(path, set->label_at + row, &(uint8_t){1}, 1);
        assert_ok(read_set(&store, which, ""));
    }
    pace__store_close(&store);
}

/* `like` allows sparse sets ids that are unseen; texts it does not. */
static void like_allows_no_unseen_words(void **state)
{
    write_sealed(&plans[3], in(state, "set"));
    pace__store store = open_store(in(state, "set"));

    tiny_forget_sums(&store);
    store.info.like = true;
    overwrite(in(state, "set/part-00000.h5"), store.parts[0].sets[PACE__TRAIN].ids_at, &(uint32_t){7}, 4);
    assert_int_equal(read_set(&store, PACE__TRAIN, "id 7"), PACE_BAD_DATA);
    pace__store_close(&store);
}

static void every_byte_of_the_vocabulary_counts(void **state)
{
    write_sealed(&plans[2], in(state, "set"));
    every_byte_counts(in(state, "set"), in(state, "set/vocabulary.txt"));
}

/* Without checksums the vocabulary is compared with the encoding. */
static void another_vocabulary_is_refused(void **state)
{
    tiny_texts set = tiny_texts_make(plans[0]);
    pace__vocabulary *other = tiny_vocabulary(90, 1), *smaller = tiny_vocabulary(89, 0);

    tiny_texts_write(&set, in(state, "set"));
    assert_ok(pace__vocabulary_write(other, in(state, "set"), &said_log));
    refuse(in(state, "set"), PACE_BAD_DATA, in(state, "set/vocabulary.txt"));
    assert_ok(pace__vocabulary_write(smaller, in(state, "set"), &said_log));
    refuse(in(state, "set"), PACE_BAD_DATA, in(state, "set/vocabulary.txt"));
    put_text(in(state, "set/vocabulary.txt"), "no vocabulary");
    refuse(in(state, "set"), PACE_BAD_DATA, in(state, "set/vocabulary.txt"));
    assert_failed(pace__store_seal(in(state, "set"), &said_log), PACE_BAD_DATA, "vocabulary.txt");
    assert_int_equal(unlink(in(state, "set/vocabulary.txt")), 0);
    refuse(in(state, "set"), PACE_NO_INPUT, in(state, "set/vocabulary.txt"));
    pace__vocabulary_free(other);
    pace__vocabulary_free(smaller);
    tiny_texts_free(&set);
}

/* Parts that differ in what texts alone have. */
static void parts_of_another_set_are_named(void **state)
{
    tiny_texts set = tiny_texts_make(plans[0]);

    for (int change = 0; change < 4; change++) {
        tiny_texts other = tiny_texts_make(plans[0]);

        if (change == 0)
            other.info.encoding.truncate = 2;
        else if (change == 1)
            other.info.encoding.pad_front = true;
        else if (change == 2)
            other.info.positives[PACE__TEST]--;
        else
            other.info.encoding.vocabulary ^= 1;
        tiny_texts_write(&set, in(state, "set"));
        tiny_texts_write(&other, in(state, "other"));
        copy_file(in(state, "other/part-00002.h5"), in(state, "set/part-00002.h5"));
        refuse(in(state, "set"), PACE_BAD_DATA, in(state, "set/part-00002.h5"));
        tiny_texts_free(&other);
    }
    tiny_texts_free(&set);
}

static void contradictions_are_refused(void **state)
{
    for (int change = 0; change < 4; change++) {
        tiny_texts set = tiny_texts_make(plans[3]);

        if (change == 0)
            set.info.ids_seen++;
        else if (change == 1)
            set.info.encoding.length++;
        else if (change == 2)
            set.info.row_entries_max--;
        else
            set.info.positives[PACE__TRAIN] = 8; /* of 7 rows */
        tiny_texts_write(&set, in(state, "set"));
        refuse(in(state, "set"), PACE_BAD_DATA, in(state, "set/part-00000.h5"));
        tiny_texts_free(&set);
    }
}

static void what_is_missing_is_found(void **state)
{
    static const char *const links[] = {"/train/label", "/train/tokens", "/train/length", "/test/tokens"};
    static const char *const attributes[] = {"train_positives", "test_positives", "encoding", "kind"};
    tiny_texts set = tiny_texts_make(plans[0]);
    const char *path = in(state, "set/part-00000.h5");

    for (size_t i = 0; i < 4; i++) {
        tiny_texts_write(&set, in(state, "set"));
        change_part(path, links[i], NULL);
        refuse(in(state, "set"), PACE_BAD_DATA, path);
        tiny_texts_write(&set, in(state, "set"));
        change_part(path, NULL, attributes[i]);
        refuse(in(state, "set"), PACE_BAD_DATA, path);
    }
    tiny_texts_free(&set);
}

/* checksums.json of a sparse set beside texts, and the other way round. */
static void checksums_of_the_other_kind_are_refused(void **state)
{
    tiny_set sparse = tiny_make((tiny_plan){.train = 10, .ids = 5, .columns = 2});

    write_sealed(&plans[3], in(state, "text"));
    tiny_write(&sparse, in(state, "sparse"));
    assert_ok(pace__store_seal(in(state, "sparse"), &said_log));
    assert_int_equal(rename(in(state, "text/checksums.json"), in(state, "other")), 0);
    copy_file(in(state, "sparse/checksums.json"), in(state, "text/checksums.json"));
    refuse(in(state, "text"), PACE_BAD_DATA, in(state, "text/part-00000.h5"));
    copy_file(in(state, "other"), in(state, "sparse/checksums.json"));
    refuse(in(state, "sparse"), PACE_BAD_DATA, in(state, "sparse/part-00000.h5"));
    tiny_free(&sparse);
}

static void equal_sets_are_equal_bytes(void **state)
{
    write_sealed(&plans[1], in(state, "one"));
    write_sealed(&plans[1], in(state, "two"));
    assert_same_file(in(state, "one/part-00001.h5"), in(state, "two/part-00001.h5"));
    assert_same_file(in(state, "one/checksums.json"), in(state, "two/checksums.json"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(texts_come_back),
        TEST(slices_and_readers_agree),
        TEST(lengths_are_read_alone),
        TEST(consumers_share_the_reading),
        TEST(lengths_are_in_the_checksum_of_rows),
        TEST(texts_have_no_original_ids),
        TEST(sparse_sets_do_not_know_their_positives),
        TEST(rows_out_of_range_are_found),
        TEST(like_allows_no_unseen_words),
        TEST(every_byte_of_the_vocabulary_counts),
        TEST(another_vocabulary_is_refused),
        TEST(parts_of_another_set_are_named),
        TEST(contradictions_are_refused),
        TEST(what_is_missing_is_found),
        TEST(checksums_of_the_other_kind_are_refused),
        TEST(equal_sets_are_equal_bytes),
    };

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
