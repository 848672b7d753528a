/* Whole reads and writes, trees, and files that appear complete or not at all. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>

static int open_for(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0666);

    assert_true(fd >= 0);
    return fd;
}

static void what_is_written_is_read(void **state)
{
    const char *path = in(state, "f");
    int fd = open_for(path, O_RDWR | O_CREAT);
    char back[9];

    assert_ok(pace__write_all(fd, "0123456789", 10, path, &said_log));
    assert_ok(pace__pwrite_all(fd, "AB", 2, 3, path, &said_log));
    assert_ok(pace__pread_all(fd, back, 9, 1, path, &said_log));
    assert_memory_equal(back, "12AB56789", 9);
    assert_ok(pace__pread_all(fd, back, 0, 10, path, &said_log));
    close(fd);
}

/* Offsets beyond 4 GiB, in a file that is mostly a hole. */
static void offsets_are_64_bits(void **state)
{
    const char *path = in(state, "f");
    const uint64_t far = (UINT64_C(5) << 30) + 7;
    int fd = open_for(path, O_RDWR | O_CREAT);
    char back[4];

    assert_ok(pace__pwrite_all(fd, "far", 4, far, path, &said_log));
    assert_ok(pace__pread_all(fd, back, 4, far, path, &said_log));
    assert_string_equal(back, "far");
    close(fd);
}

static void a_short_file_is_bad_data(void **state)
{
    const char *path = in(state, "short");
    char back[8];

    put_text(path, "12345");
    int fd = open_for(path, O_RDONLY);

    assert_int_equal(pace__pread_all(fd, back, 8, 2, path, &said_log), PACE_BAD_DATA);
    assert_said(path);
    assert_said("byte 5");
    assert_said("5 bytes short");
    close(fd);
}

static void failing_calls_name_the_file(void **state)
{
    const char *path = in(state, "f");
    char byte = 0;

    put_text(path, "1");
    int fd = open_for(path, O_RDONLY);

    assert_failed(pace__write_all(fd, "1", 1, path, &said_log), PACE_IO, path);
    assert_failed(pace__pwrite_all(fd, "1", 1, 0, path, &said_log), PACE_IO, path);
    close(fd);
    fd = open_for(path, O_WRONLY);
    assert_failed(pace__pread_all(fd, &byte, 1, 0, path, &said_log), PACE_IO, path);
    close(fd);
}

static void directories_are_made_with_their_parents(void **state)
{
    assert_ok(pace__make_dirs(in(state, "a/b/c"), &said_log));
    assert_ok(pace__make_dirs(in(state, "a/b/c"), &said_log));
    assert_ok(pace__make_dirs(in(state, "a/b/d/"), &said_log));
    assert_ok(pace__make_dirs(in(state, "a//e"), &said_log));
    assert_true(pace__exists(in(state, "a/b/c")) && pace__exists(in(state, "a/b/d")) &&
                pace__exists(in(state, "a/e")));
    assert_int_equal(count_entries(in(state, "a")), 2);
}

/* What is made first would change where the rest leads. */
typedef struct interfering {
    const char *path;
    _Atomic bool stop;
} interfering;

static void *take_away(void *user)
{
    interfering *self = user;

    while (!atomic_load(&self->stop))
        rmdir(self->path);
    return NULL;
}

/* As when another process has just given it its name: it is made again. */
static void a_directory_that_is_taken_away_is_made_again(void **state)
{
    interfering other = {.path = in(state, "d")};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, take_away, &other), 0);
    pace_status status = PACE_OK;

    for (int i = 0; i < 5000 && !status; i++)
        status = pace__make_own_dir(other.path, &said_log);
    atomic_store(&other.stop, true);
    pthread_join(thread, NULL);
    assert_ok(status);
}

static void no_way_leads_out_of_what_is_missing(void **state)
{
    assert_ok(pace__make_dirs(in(state, "there"), &said_log));
    assert_failed(pace__make_dirs(in(state, "not/../there"), &said_log), PACE_IO, "not does not exist");
    assert_failed(pace__make_dirs(in(state, "there/../not/.."), &said_log), PACE_IO, "not does not exist");
    assert_int_equal(count_entries(*state), 1);
    assert_ok(pace__make_dirs(in(state, "there/../..dots/...."), &said_log));
    assert_true(pace__exists(in(state, "..dots/....")));
    assert_ok(pace__make_dirs(in(state, "..dots/..../../.."), &said_log));
}

static void a_file_in_the_way_is_an_error(void **state)
{
    put_text(in(state, "file"), "");
    assert_failed(pace__make_dirs(in(state, "file"), &said_log), PACE_IO, in(state, "file"));
    assert_failed(pace__make_dirs(in(state, "file/below"), &said_log), PACE_IO, in(state, "file"));
}

static void trees_are_removed(void **state)
{
    assert_ok(pace__make_dirs(in(state, "tree/a/b"), &said_log));
    put_text(in(state, "tree/a/b/f"), "x");
    put_text(in(state, "tree/.hidden"), "x");
    put_text(in(state, "kept"), "x");
    assert_int_equal(symlink(in(state, "kept"), in(state, "tree/link")), 0);
    assert_int_equal(symlink(*state, in(state, "tree/a/up")), 0);
    assert_ok(pace__remove_tree(in(state, "tree"), &said_log));
    assert_false(pace__exists(in(state, "tree")));
    assert_true(pace__exists(in(state, "kept"))); /* links are removed, not followed */
    assert_ok(pace__remove_tree(in(state, "tree"), &said_log));
    assert_ok(pace__remove_tree(in(state, "kept"), &said_log));
    assert_int_equal(count_entries(*state), 0);
}

static void a_dangling_link_exists(void **state)
{
    assert_int_equal(symlink("nowhere", in(state, "link")), 0);
    assert_true(pace__exists(in(state, "link")));
    assert_false(pace__exists(in(state, "nowhere")));
}

static void atomic_writes_replace(void **state)
{
    const char *path = in(state, "f");

    assert_ok(pace__write_file_atomically(path, "old text", 8, &said_log));
    assert_ok(pace__write_file_atomically(path, "new", 3, &said_log));
    char *text = get_text(path);

    assert_string_equal(text, "new");
    assert_int_equal(count_entries(*state), 1);
    free(text);
    assert_ok(pace__write_file_atomically(path, "", 0, &said_log));
    text = get_text(path);
    assert_string_equal(text, "");
    free(text);
}

static void atomic_writes_fail_without_a_trace(void **state)
{
    assert_failed(pace__write_file_atomically(in(state, "none/f"), "x", 1, &said_log), PACE_IO,
                  in(state, "none/f"));
    assert_ok(pace__make_dirs(in(state, "directory"), &said_log));
    put_text(in(state, "directory/inside"), "x");
    assert_failed(pace__write_file_atomically(in(state, "directory"), "x", 1, &said_log), PACE_IO,
                  in(state, "directory"));
    assert_int_equal(count_entries(*state), 1);
}

/* A disk that fills up half-way, as the size limit of a process plays it. */
static void a_full_disk_keeps_the_old_file(void **state)
{
    const char *path = in(state, "f");
    struct rlimit before, small = {100, 100};
    char bytes[400] = {0};

    put_text(path, "precious");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    small.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    pace_status status = pace__write_file_atomically(path, bytes, sizeof bytes, &said_log);

    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_failed(status, PACE_IO, path);
    char *text = get_text(path);

    assert_string_equal(text, "precious");
    assert_int_equal(count_entries(*state), 1);
    free(text);
}

static void files_are_read_whole(void **state)
{
    const char *path = in(state, "f");
    char *bytes = NULL;
    size_t size = 0;

    assert_ok(pace__write_file_atomically(path, "a\0b", 3, &said_log));
    assert_ok(pace__read_file(path, 3, &bytes, &size, &said_log));
    assert_int_equal(size, 3);
    assert_memory_equal(bytes, "a\0b\0", 4); /* and a NUL behind */
    free(bytes);
}

static void unreadable_files_are_named(void **state)
{
    const char *path = in(state, "f");
    char *bytes = NULL;
    size_t size = 99;

    put_text(path, "1234");
    assert_failed(pace__read_file(path, 3, &bytes, &size, &said_log), PACE_BAD_DATA, "limit of 3");
    assert_failed(pace__read_file(in(state, "none"), 3, &bytes, &size, &said_log), PACE_NO_INPUT,
                  in(state, "none"));
    assert_failed(pace__read_file(*state, 3, &bytes, &size, &said_log), PACE_NO_INPUT, *state);
    assert_null(bytes);
    assert_int_equal(size, 99);
}

static void parents_are_synced(void **state)
{
    char here[512];

    assert_ok(pace__sync_parent(in(state, "anything"), &said_log));
    assert_ok(pace__sync_parent("/anything", &said_log));
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(*state), 0);
    assert_ok(pace__sync_parent("anything", &said_log));
    assert_int_equal(chdir(here), 0);
    assert_failed(pace__sync_parent(in(state, "none/f"), &said_log), PACE_IO, in(state, "none"));
}

static void texts_are_formatted(void **state)
{
    char *text = pace__format("%s-%05d", "part", 42);

    (void)state;
    assert_string_equal(text, "part-00042");
    free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read),
        TEST(offsets_are_64_bits),
        TEST(a_short_file_is_bad_data),
        TEST(failing_calls_name_the_file),
        TEST(directories_are_made_with_their_parents),
        TEST(a_directory_that_is_taken_away_is_made_again),
        TEST(no_way_leads_out_of_what_is_missing),
        TEST(a_file_in_the_way_is_an_error),
        TEST(trees_are_removed),
        TEST(a_dangling_link_exists),
        TEST(atomic_writes_replace),
        TEST(atomic_writes_fail_without_a_trace),
        TEST(a_full_disk_keeps_the_old_file),
        TEST(files_are_read_whole),
        TEST(unreadable_files_are_named),
        TEST(parents_are_synced),
        cmocka_unit_test(texts_are_formatted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
