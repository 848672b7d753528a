/* Parts that are mapped as long as nobody wants to write to them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/store/mapped.h"
#include "data/store/reader.h"
#include "files/file.h"

#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static const tiny_plan layout = {.train = 9001, .ids = 300, .columns = 5, .parts = 2, .seed = 1};

/* Skips the test where files have no leases. The second part is an old one: times of files are coarse in some kernels. */
static pace__store write_store(void **state)
{
    static const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    tiny_set set = tiny_make(layout);
    pace__store store;

    tiny_write(&set, in(state, "set"));
    tiny_free(&set);
    assert_int_equal(utimensat(AT_FDCWD, in(state, "set/part-00001.h5"), long_ago, 0), 0);
    assert_ok(pace__store_open(in(state, "set"), &store, &said_log));
    if (fcntl(store.parts[0].fd, F_SETLEASE, F_RDLCK) != 0) {
        pace__store_close(&store);
        skip();
    }
    fcntl(store.parts[0].fd, F_SETLEASE, F_UNLCK);
    return store;
}

static int open_to_write(const pace__part *part, int flags)
{
    return open(part->path, O_WRONLY | O_CLOEXEC | flags);
}

static bool copies(pace__mapped *mapped, const pace__part *part)
{
    const pace__part_set *set = &part->sets[PACE__TRAIN];
    uint32_t found[700], expected[700];

    if (!pace__mapped_copy(mapped, part, found, sizeof found, set->ids_at + 52))
        return false;
    assert_ok(pace__pread_all(part->fd, expected, sizeof expected, set->ids_at + 52, part->path, &said_log));
    assert_memory_equal(found, expected, sizeof found);
    return true;
}

static void bytes_are_those_of_the_file(void **state)
{
    pace__store store = write_store(state);
    pace__mapped *mapped = pace__mapped_open(&store);
    off_t size = lseek(store.parts[1].fd, 0, SEEK_END);
    char byte[2];

    assert_true(copies(mapped, &store.parts[0]));
    assert_true(copies(mapped, &store.parts[1]));
    assert_true(pace__mapped_copy(mapped, &store.parts[1], byte, 1, (uint64_t)size - 1));
    assert_false(pace__mapped_copy(mapped, &store.parts[1], byte, 2, (uint64_t)size - 1));
    assert_false(pace__mapped_copy(mapped, &store.parts[1], byte, 1, UINT64_MAX));
    assert_false(pace__mapped_copy(NULL, &store.parts[1], byte, 1, 0));
    pace__mapped_close(mapped);
    pace__store_close(&store);
}

/* Whether a look finds it or the next copy. No signal comes of it: that of a lease would end this process. */
static void writers_wait_until_it_is_let_go(void **state)
{
    for (int by_copy = 0; by_copy < 2; by_copy++) {
        pace__store store = write_store(state);
        pace__mapped *mapped = pace__mapped_open(&store);

        assert_int_equal(open_to_write(&store.parts[0], O_NONBLOCK), -1);
        assert_int_equal(errno, EWOULDBLOCK);
        if (by_copy)
            assert_false(copies(mapped, &store.parts[0]));
        else
            pace__mapped_look(mapped);
        int fd = open_to_write(&store.parts[0], O_NONBLOCK);

        assert_true(fd >= 0);
        assert_true(pace__mapped_lost(mapped, &store.parts[0]));
        assert_false(copies(mapped, &store.parts[0]));
        assert_false(pace__mapped_lost(mapped, &store.parts[1]));
        assert_true(copies(mapped, &store.parts[1]));
        close(fd);
        pace__mapped_close(mapped);
        fd = open_to_write(&store.parts[1], O_NONBLOCK); /* nothing is held any more */
        assert_true(fd >= 0);
        close(fd);
        pace__store_close(&store);
    }
}

static void what_is_open_for_writing_is_read(void **state)
{
    pace__store store = write_store(state);
    int fd = open_to_write(&store.parts[0], 0);
    pace__mapped *mapped = pace__mapped_open(&store);

    assert_true(fd >= 0);
    assert_false(copies(mapped, &store.parts[0]));
    assert_true(copies(mapped, &store.parts[1]));
    pace__mapped_look(mapped);
    assert_false(pace__mapped_lost(mapped, &store.parts[0]));
    assert_false(pace__mapped_holds(mapped, &store.parts[0]));
    assert_true(pace__mapped_holds(mapped, &store.parts[1]));
    pace__mapped_close(mapped);
    close(fd);
    pace__store_close(&store);
}

/* Reads all rows twice, then lets `change` happen to a part, and reads on: what comes is an error that names the part. One
 * that somebody else has open to write to (`shared`) is not mapped. */
static void assert_change_is_found(void **state, bool shared,
                                   void (*change)(int fd, const pace__part_set *set))
{
    pace__store store = write_store(state);
    int other = shared ? open_to_write(&store.parts[1], 0) : -1;
    pace__reader_plan plan = {.seed = 1, .batch = 512, .last = UINT64_C(9001) * 20, .consumers = 1};
    const pace__piece *piece;
    pace__reader *reader;
    pace_status status = PACE_OK;

    assert_ok(pace__reader_create(&store, &plan, &said_log, &reader));
    do
        assert_ok(pace__reader_next(reader, 0, &piece));
    while (piece->first < 2 * 9001);
    int fd = open_to_write(&store.parts[1], 0); /* waits for the reader's own thread */

    assert_true(fd >= 0);
    assert_true(!shared || other >= 0);
    change(fd, &store.parts[1].sets[PACE__TRAIN]);
    close(fd);
    if (shared)
        close(other);
    said_clear();
    while (!status && piece)
        status = pace__reader_next(reader, 0, &piece);
    assert_int_equal(status != PACE_OK, true);
    assert_said(store.parts[1].path);
    pace__reader_free(reader);
    pace__store_close(&store);
}

/* Another id, as good as any, in a row whose sum was compared long ago. */
static void change_id(int fd, const pace__part_set *set)
{
    const uint32_t id = 299;

    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(pwrite(fd, &id, sizeof id, (off_t)(set->ids_at + (1000 + i) * sizeof id)),
                         sizeof id);
}

static void cut_rows(int fd, const pace__part_set *set)
{
    assert_int_equal(ftruncate(fd, (off_t)(set->ids_at + set->entries * 2)), 0);
}

static void changed_rows_are_found(void **state)
{
    assert_change_is_found(state, false, change_id);
    assert_change_is_found(state, true, change_id);
}

static void cut_files_are_found(void **state)
{
    assert_change_is_found(state, false, cut_rows);
    assert_change_is_found(state, true, cut_rows);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bytes_are_those_of_the_file),
        TEST(writers_wait_until_it_is_let_go),
        TEST(what_is_open_for_writing_is_read),
        TEST(changed_rows_are_found),
        TEST(cut_files_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
