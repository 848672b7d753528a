/* Checksums of rows: what was damaged is found, whoever reads it, and nothing else is. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "store_checks.h"
#include "tiny_pictures.h"
#include "tiny_texts.h"

/* Parts cut blocks; rows of equal and of different lengths, without any, with values. */
static const tiny_plan plans[] = {
    {.train = 1000, .test = 300, .ids = 200, .columns = 5, .parts = 3, .seed = 1},
    {.train = 1000, .test = 300, .ids = 200, .columns = 5, .has_values = true, .parts = 3, .seed = 2},
    {.train = 1000, .test = 70, .ids = 200, .has_values = true, .parts = 3, .seed = 3},
    {.train = 130, .ids = 200, .parts = 7, .seed = 4},
};
#define PLANS (sizeof plans / sizeof *plans)

/* All rows of a set by pieces of `batch` rows and by that many consumers. */
static pace_status read_by(const pace__store *store, int which, uint64_t batch)
{
    pace__slice slice;
    uint64_t rows = store->info.rows[which];
    pace_status status = PACE_OK;

    assert_ok(pace__slice_init(&slice, store, which, 7, batch, &said_log));
    for (uint64_t at = 0; at < rows && !status; at += batch)
        status = pace__slice_read(&slice, at, rows - at < batch ? rows - at : batch);
    pace__slice_release(&slice);
    return status;
}

static void write_any(void **state, size_t kind)
{
    assert_ok(pace__remove_tree(in(state, "set"), &said_log));
    if (kind < PLANS) {
        tiny_set set = tiny_make(plans[kind]);

        tiny_write(&set, in(state, "set"));
        tiny_free(&set);
    } else if (kind == PLANS) {
        tiny_texts set = tiny_texts_make(
            (tiny_texts_plan){.train = 500, .test = 100, .words = 40, .length = 9, .parts = 3, .seed = 5});

        tiny_texts_write(&set, in(state, "set"));
        tiny_texts_free(&set);
    } else {
        tiny_pictures set = tiny_pictures_make(tiny_pictures_plans[kind - PLANS - 1]);

        tiny_pictures_write(&set, in(state, "set"));
        tiny_pictures_free(&set);
    }
    assert_ok(pace__store_seal(in(state, "set"), &said_log));
}
#define KINDS (PLANS + 3)

static void whole_rows_are_read_in_any_pieces(void **state)
{
    static const uint64_t batches[] = {1, 7, 64, 100, 512, 2000};

    for (size_t kind = 0; kind < KINDS; kind++) {
        write_any(state, kind);
        for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
            pace__store store = open_store(in(state, "set"));

            assert_ok(read_by(&store, PACE__TRAIN, batches[i]));
            assert_ok(read_by(&store, PACE__TRAIN, batches[i])); /* all blocks were compared */
            for (int set = PACE__TRAIN + 1; set < PACE__SETS; set++)
                if (store.info.rows[set] > 0)
                    assert_ok(read_set(&store, set, ""));
            assert_ok(pace__sums_check_all(&store, &said_log));
            assert_true(pace__store_has_sums(&store));
            pace__store_close(&store);
        }
    }
    assert_int_equal(errors_said(), 0);
}

static void change(const char *path, uint64_t at)
{
    uint8_t byte;
    int fd = open(path, O_RDWR | O_CLOEXEC);

    assert_true(fd >= 0 && pread(fd, &byte, 1, (off_t)at) == 1);
    byte ^= 1;
    assert_true(pwrite(fd, &byte, 1, (off_t)at) == 1);
    close(fd);
}

/* The lowest bit of some byte in every array of a part: no value that would be out of range by itself. */
static void every_array_is_guarded(void **state)
{
    for (size_t kind = 0; kind < KINDS; kind++) {
        write_any(state, kind);
        pace__store store = open_store(in(state, "set"));
        const pace__file_sum *sum = &store.checksums.files[2];
        const char *path = in(state, "set/part-00001.h5");

        assert_true(sum->arrays >= 3);
        for (unsigned i = 0; i < sum->arrays; i++) {
            uint64_t at = sum->array[i].at + sum->array[i].bytes / 2;

            change(path, at);
            pace__store damaged = open_store(in(state, "set"));

            said_clear();
            unsigned found = 0;

            for (int set = 0; set < PACE__SETS; set++)
                found += damaged.info.rows[set] > 0 && read_by(&damaged, set, 50) == PACE_BAD_DATA;
            if (found != 1)
                fail_msg("kind %zu, array %u: found in %u sets", kind, i, found);
            assert_said(path);
            said_clear();
            assert_failed(pace__sums_check_all(&damaged, &said_log), PACE_BAD_DATA, path);
            pace__store_close(&damaged);
            change(path, at);
        }
        pace__store_close(&store);
    }
}

/* When a file was written. */
static void set_time(const char *path, struct timespec time)
{
    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){time, time}, 0), 0);
}

/* Damage to rows that nobody reads is nobody's business; a block counts as read with one of its rows. */
static void blocks_are_compared_when_they_are_read(void **state)
{
    write_any(state, 0);
    set_time(in(state, "set/part-00000.h5"),
             (struct timespec){.tv_sec = 1}); /* some kernels' times are coarse */
    pace__store store = open_store(in(state, "set"));
    const pace__part_set *set = &store.parts[0].sets[PACE__TRAIN];
    pace__fetch fetch = {.store = &store, .log = &said_log, .set = PACE__TRAIN, .sequential = true};
    uint8_t label[64];
    uint32_t ids[64 * 5];
    pace__into into = {.label = label, .ids = ids};
    pace__run run = {.part = &store.parts[0], .set = set, .row = 64, .rows = 1, .entry = 320, .entries = 5};

    change(store.parts[0].path, set->label_at + 127);
    assert_failed(pace__fetch_rows(&fetch, &run, &into), PACE_BAD_DATA, "rows 64 to 127 of /train");
    run.row = 63;
    run.entry = 315;
    assert_ok(pace__fetch_rows(&fetch, &run, &into));
    change(store.parts[0].path, set->label_at + 127);
    run.row = 65;
    run.entry = 325;
    assert_ok(pace__fetch_rows(&fetch, &run, &into));
    change(store.parts[0].path, set->label_at + 127); /* was found right; but the file was written since */
    assert_failed(pace__fetch_rows(&fetch, &run, &into), PACE_BAD_DATA, "rows 64 to 127 of /train");
    set_time(store.parts[0].path,
             store.parts[0].written); /* now nothing tells of it: it is not looked at again */
    assert_ok(pace__fetch_rows(&fetch, &run, &into));
    pace__store_close(&store);
}

static void what_is_missing_is_said(void **state)
{
    write_any(state, 0);
    pace__store store = open_store(in(state, "set"));

    said_clear();
    pace__store_warn(&store, &said_log);
    assert_string_equal(said, "");
    tiny_forget_sums(&store);
    pace__store_warn(&store, &said_log);
    assert_said("its rows have no checksums");
    pace__store_close(&store);
    assert_int_equal(unlink(in(state, "set/checksums.json")), 0);
    store = open_store(in(state, "set"));
    said_clear();
    pace__store_warn(&store, &said_log);
    assert_said("has no checksums.json");
    assert_null(strstr(said, "its rows have"));
    assert_int_equal(errors_said(), 0);
    pace__store_close(&store);
}

/* All sums, in whatever pieces rows come to be written. */
static void pieces_do_not_matter(void **state)
{
    for (size_t kind = 0; kind < PLANS; kind++) {
        tiny_set set = tiny_make(plans[kind]);
        const tiny_rows *rows = &set.rows[PACE__TRAIN];

        tiny_write(&set, in(state, "one"));
        tiny_write(&set, in(state, "two"));
        pace__store store = open_store(in(state, "two"));
        pace__part part = store.parts[1];
        uint64_t zeroes[64] = {0}, first = tiny_part_first(&set, PACE__TRAIN, 1), row = 0;
        uint64_t blocks = pace__sum_blocks(&set.info.encoding, &part.sets[PACE__TRAIN]);

        part.fd = open(part.path, O_RDWR | O_CLOEXEC);
        tiny_put(&part, part.sets[PACE__TRAIN].sums_at, zeroes, blocks * 8);
        for (uint64_t count = 1; row < part.sets[PACE__TRAIN].rows; row += count, count = count * 3 % 101) {
            uint64_t left = part.sets[PACE__TRAIN].rows - row, entry = rows->start[first + row];
            pace__into from = {.label = rows->label + first + row,
                               .ids = rows->ids + entry,
                               .values = rows->values ? rows->values + entry : NULL,
                               .start = rows->start + first + row};

            count = count < left ? count : left;
            assert_ok(pace__sums_put(&set.info, &part, PACE__TRAIN, &(pace__written){row, count, 0}, &from,
                                     &said_log));
        }
        close(part.fd);
        assert_same_file(in(state, "one/part-00001.h5"), in(state, "two/part-00001.h5"));
        pace__store_close(&store);
        tiny_free(&set);
        assert_ok(pace__remove_tree(in(state, "one"), &said_log));
        assert_ok(pace__remove_tree(in(state, "two"), &said_log));
    }
}

static void kernels_agree(void **state)
{
    char bytes[4099];

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 31 + i / 7);
    for (int set = PACE_KERNELS_PLAIN; set < PACE__KERNELS_END; set++) {
        for (size_t size = 0; pace_kernels_run(set) && size < sizeof bytes; size += 1 + size / 9)
            assert_true(pace__xxh3_plain.sum(bytes + 1, size) == pace__xxh3_of(set)->sum(bytes + 1, size));
    }
}

static uint64_t content_of(void **state, tiny_plan plan)
{
    tiny_set set = tiny_make(plan);

    assert_ok(pace__remove_tree(in(state, "set"), &said_log));
    tiny_write(&set, in(state, "set"));
    assert_ok(pace__store_seal(in(state, "set"), &said_log));
    pace__store store = open_store(in(state, "set"));
    uint64_t content = pace__store_content(&store);

    assert_true(content != 0 && content == pace__store_content(&store));
    pace__store_close(&store);
    tiny_free(&set);
    return content;
}

/* One number for a set: the same rows, the same number; others, another one. Test rows count. */
static void content_tells_sets_apart(void **state)
{
    tiny_plan plan = plans[0], other_rows = plan, fewer_tests = plan;

    other_rows.seed++;
    fewer_tests.test--;
    uint64_t content = content_of(state, plan);

    assert_true(content_of(state, plan) == content);
    assert_true(content_of(state, other_rows) != content);
    assert_true(content_of(state, fewer_tests) != content);
    for (size_t kind = 0; kind < KINDS; kind++) {
        write_any(state, kind);
        pace__store store = open_store(in(state, "set"));
        pace__part_set *rows = &store.parts[0].sets[PACE__TRAIN];
        uint64_t before = pace__store_content(&store);

        assert_true(before != 0);
        change(store.parts[0].path, rows->sums_at); /* of the rows of the first block, whatever they are */
        assert_true(pace__store_content(&store) != before);
        pace__store_close(&store);
    }
}

/* A part may be as large as a disk. */
static void whoever_compares_a_part_can_be_stopped(void **state)
{
    _Atomic int stop = 1;

    write_any(state, 0);
    pace__store store = open_store(in(state, "set"));

    said_clear();
    assert_int_equal(pace__sums_check_part(&store.info, &store.parts[0], &stop, &said_log), PACE_INTERRUPTED);
    assert_string_equal(said, "");
    stop = 0;
    assert_ok(pace__sums_check_part(&store.info, &store.parts[0], &stop, &said_log));
    pace__store_close(&store);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(whole_rows_are_read_in_any_pieces),
        TEST(every_array_is_guarded),
        TEST(blocks_are_compared_when_they_are_read),
        TEST(what_is_missing_is_said),
        TEST(pieces_do_not_matter),
        TEST(content_tells_sets_apart),
        TEST(kernels_agree),
        TEST(whoever_compares_a_part_can_be_stopped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
