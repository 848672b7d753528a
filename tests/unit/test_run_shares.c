/* RUN/shares.jsonl: what was recorded is read back, what was cut short was not in use, and damage is found. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "files/crc32c.h"
#include "files/file.h"
#include "run/shares.h"

#include "support.h"

#include <errno.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

static void divisions_are_a_list(void **state)
{
    pace__divisions list = {0};

    (void)state;
    assert_null(pace__divisions_at(&list, 5));
    assert_true(pace__divisions_add(&list, 0, 2, (uint32_t[]){5, 5}));
    assert_true(pace__divisions_add(&list, 10, 2, (uint32_t[]){6, 4}));
    assert_true(pace__divisions_add(&list, 20, 2, (uint32_t[]){7, 3}));
    assert_int_equal(pace__divisions_at(&list, 9)[0], 5);
    assert_int_equal(pace__divisions_at(&list, 10)[0], 6);
    assert_int_equal(pace__divisions_at(&list, 1000)[0], 7);
    assert_true(pace__divisions_add(&list, 10, 2, (uint32_t[]){8, 2})); /* in the place of two */
    assert_int_equal(list.count, 2);
    assert_int_equal(pace__divisions_at(&list, 25)[0], 8);
    pace__divisions_forget(&list, 9);
    assert_int_equal(list.count, 2);
    pace__divisions_forget(&list, 10);
    assert_int_equal(list.count, 1);
    assert_null(pace__divisions_at(&list, 9));
    assert_true(pace__divisions_add(&list, 30, 3, (uint32_t[]){3, 3, 4})); /* of other workers */
    assert_int_equal(list.count, 1);
    assert_int_equal(list.workers, 3);
    for (uint64_t from = 31; from < 100; from++)
        assert_true(pace__divisions_add(&list, from, 3, (uint32_t[]){(uint32_t)from, 1, 2}));
    assert_int_equal(pace__divisions_at(&list, 64)[0], 64);
    pace__divisions_release(&list);
}

/* What a run asks for in each step that repeats a long record: none of it goes through all of the list. (In time that the process
 * has computed: 200,000 lines took half a minute that way.) */
static void a_long_list_costs_no_more_than_its_length(void **state)
{
    enum { LONG = 200000 };
    pace__divisions list = {0};
    clock_t start = clock();

    (void)state;
    for (uint32_t i = 0; i < LONG; i++)
        assert_true(pace__divisions_add(&list, i, 2, (uint32_t[]){i, 1}));
    for (uint32_t i = 0; i < LONG; i++) {
        assert_int_equal(pace__divisions_at(&list, i)[0], i);
        const uint64_t *before = list.from;

        pace__divisions_forget(&list, i);
        assert_ptr_equal(list.from, before + (i > 0)); /* nothing was moved */
        assert_int_equal(list.count, LONG - i);
    }
    for (uint32_t i = LONG; i < 3 * LONG; i++) { /* as a chief does that decides, and forgets */
        assert_true(pace__divisions_add(&list, i, 2, (uint32_t[]){i, 1}));
        pace__divisions_forget(&list, i - 3);
        assert_int_equal(pace__divisions_at(&list, i - 1)[0], i - 1);
    }
    assert_int_equal(list.count, 4);
    assert_true(list.room <= 2 * LONG); /* what is forgotten makes room */
    assert_true((clock() - start) / CLOCKS_PER_SEC < 10);
    pace__divisions_release(&list);
}

static void append_three(const char *path)
{
    assert_ok(pace__shares_append(path, 0, 2, (uint32_t[]){32, 32}, 0, &said_log));
    assert_ok(pace__shares_append(path, 10, 2, (uint32_t[]){51, 13}, 0.59375, &said_log));
    assert_ok(pace__shares_append(path, 44, 2, (uint32_t[]){48, 16}, 0.05, &said_log));
}

static void what_is_recorded_is_read(void **state)
{
    const char *path = in(state, "shares.jsonl");
    pace__divisions found = {0};
    pace__shares_facts facts = {.lines = 1};

    assert_ok(pace__shares_read(path, &said_log, &found, &facts));
    assert_true(found.count == 0 && facts.lines == 0 && facts.sum == 0);
    append_three(path);
    assert_ok(pace__shares_read(path, &said_log, &found, &facts));
    assert_int_equal(found.count, 3);
    assert_int_equal(facts.lines, 3);
    assert_int_equal(facts.gain_from, 10);
    assert_true(facts.gain > 0.59 && facts.gain < 0.6);
    assert_int_equal(pace__divisions_at(&found, 43)[1], 13);
    assert_int_equal(pace__divisions_at(&found, 44)[1], 16);
    assert_ok(pace__shares_write(in(state, "again"), &found, &said_log));
    pace__divisions_release(&found);
    assert_ok(pace__shares_read(in(state, "again"), &said_log, &found, NULL));
    assert_int_equal(found.count, 3);
    pace__divisions_release(&found);
}

/* At whichever byte: the lines before count, and the next one follows them. */
static void a_line_that_was_cut_short_was_not_in_use(void **state)
{
    const char *path = in(state, "shares.jsonl");
    pace__divisions found = {0};
    char *text;
    size_t size;

    append_three(path);
    assert_ok(pace__read_file(path, 1 << 20, &text, &size, &said_log));
    size_t lines = (size_t)(strrchr(text, '"') - text), last = lines;

    while (text[last - 1] != '\n')
        last--;
    for (size_t cut = last; cut < size; cut += 7) {
        assert_ok(pace__write_file_atomically(path, text, cut, &said_log));
        assert_ok(pace__shares_read(path, &said_log, &found, NULL));
        assert_int_equal(found.count, 2);
        pace__divisions_release(&found);
        assert_ok(pace__shares_append(path, 60, 2, (uint32_t[]){1, 63}, 0, &said_log));
        assert_ok(pace__shares_read(path, &said_log, &found, NULL));
        assert_int_equal(found.count, 3);
        assert_int_equal(pace__divisions_at(&found, 60)[1], 63);
        pace__divisions_release(&found);
    }
    free(text);
}

static void damage_is_found(void **state)
{
    const char *path = in(state, "shares.jsonl");
    pace__divisions found = {0};
    char *text;
    size_t size;

    append_three(path);
    assert_ok(pace__read_file(path, 1 << 20, &text, &size, &said_log));
    for (size_t at = 0; at + 1 < size; at++) { /* but for the last end of line: then that line is cut short */
        text[at] ^= 1;
        assert_ok(pace__write_file_atomically(path, text, size, &said_log));
        pace_status status = pace__shares_read(path, &said_log, &found, NULL);

        text[at] ^= 1;
        if (status != PACE_BAD_DATA)
            fail_msg("byte %zu is another one, and nobody has seen it", at);
        assert_int_equal(found.count, 0);
    }
    free(text);
}

/* With a sum that is right: it may come from anybody. */
static void what_is_no_text_is_refused(void **state)
{
    static const char line[] = "{\"from\": 0, \"rows\": [1, 2]}\0 and so on";
    char text[128];
    size_t size = sizeof line - 1;
    uint32_t sums[] = {0, pace__masked_crc32c(line, size)};
    pace__divisions found = {0};

    (void)state;
    memcpy(text, line, size);
    size += (size_t)snprintf(text + size, sizeof text - size, ", \"sum\": \"%08x\"}\n",
                             pace__masked_crc32c(sums, sizeof sums));
    assert_int_equal(pace__shares_parse(text, size, "it", &said_log, &found, NULL), PACE_BAD_DATA);
    assert_int_equal(found.count, 0);
}

static bool disk_fails;

/* In the place of the system's, for this program. */
int fsync(int fd)
{
    errno = EIO;
    return disk_fails ? -1 : fdatasync(fd);
}

/* Nobody has heard of it, and a run that goes on must not go by it. */
static void a_line_that_cannot_be_written_is_not_there(void **state)
{
    const char *path = in(state, "shares.jsonl");
    pace__divisions found = {0};

    append_three(path);
    disk_fails = true;
    assert_int_equal(pace__shares_append(path, 60, 2, (uint32_t[]){1, 63}, 0, &said_log), PACE_IO);
    disk_fails = false;
    assert_ok(pace__shares_read(path, &said_log, &found, NULL));
    assert_int_equal(found.count, 3);
    pace__divisions_release(&found);
    assert_ok(pace__shares_append(path, 70, 2, (uint32_t[]){2, 62}, 0, &said_log));
    assert_ok(pace__shares_read(path, &said_log, &found, NULL));
    assert_int_equal(pace__divisions_at(&found, 65)[1], 16);
    pace__divisions_release(&found);
}

/* What can be read is the most that is written; a hole in a file stands for what nobody wants to write here. */
static void a_full_record_does_not_grow(void **state)
{
    const char *path = in(state, "shares.jsonl");
    const off_t nearly = (off_t)PACE__SHARES_BYTES_MAX - 20;
    struct stat info;

    append_three(path);
    assert_int_equal(truncate(path, nearly - 1), 0);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

    assert_int_equal(write(fd, "\n", 1), 1);
    close(fd);
    assert_failed(pace__shares_append(path, 60, 2, (uint32_t[]){1, 63}, 0, &said_log), PACE_IO,
                  "has 256 MiB of divisions");
    assert_int_equal(stat(path, &info), 0);
    assert_true(info.st_size == nearly);
}

#define with_directory(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(divisions_are_a_list),
        cmocka_unit_test(a_long_list_costs_no_more_than_its_length),
        with_directory(what_is_recorded_is_read),
        with_directory(a_line_that_was_cut_short_was_not_in_use),
        with_directory(damage_is_found),
        cmocka_unit_test(what_is_no_text_is_refused),
        with_directory(a_line_that_cannot_be_written_is_not_there),
        with_directory(a_full_record_does_not_grow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
