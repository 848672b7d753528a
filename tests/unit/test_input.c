/*
 * Chunks: every byte once, in place, whole records, from plain, gzip and zstd files, by one thread and
 * several.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "threads/thread.h"

#include "inputs.h"

#include <paceline/prep.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>

static void test_every_kind_is_read_back(void **state)
{
    static const size_t sizes[] = {1, 1000, PACE__CHUNK_BYTES, 3 * PACE__CHUNK_BYTES + 12345};

    (void)state;
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int kind = PLAIN; kind < KINDS; kind++) {
            unsigned lines;
            bytes text = make_lines(sizes[i], i, kind != ZSTD, &lines);

            check_reads(write_compressed("kind", kind, text), PACE__LINES, text);
            free(text.data);
        }
    }
}

static void test_empty_files(void **state)
{
    (void)state;
    check_reads(write_file("empty", "", 0), PACE__LINES, (bytes){"", 0});
    check_reads(write_file("empty", "", 0), PACE__TFRECORDS, (bytes){"", 0});
    for (int kind = PLAIN; kind < KINDS; kind++)
        check_reads(write_compressed("empty", kind, (bytes){"", 0}), PACE__LINES, (bytes){"", 0});
    check_reads(write_file("newline", "\n", 1), PACE__LINES, (bytes){"\n", 1});
}

/* Lines that start or end just at, before and behind the end of a range, and none that starts in it. */
static void test_lines_at_range_ends(void **state)
{
    bytes text = allocate(3 * PACE__CHUNK_BYTES);

    (void)state;
    for (int shift = -2; shift <= 2; shift++) {
        memset(text.data, 'a', text.size);
        text.data[PACE__CHUNK_BYTES + (size_t)shift] = '\n';
        check_reads(write_file("ends", text.data, text.size), PACE__LINES, text);
        check_reads(write_compressed("ends.gz", GZIP, text), PACE__LINES, text);
        text.data[2 * PACE__CHUNK_BYTES + (size_t)shift] = '\n';
        check_reads(write_file("ends", text.data, text.size), PACE__LINES, text);
        text.data[text.size - 1] = '\n';
        check_reads(write_file("ends", text.data, text.size), PACE__LINES, text);
    }
    free(text.data);
}

static void test_longest_line(void **state)
{
    bytes text = allocate(PACE__RECORD_BYTES_MAX + 20);

    (void)state;
    for (int kind = PLAIN; kind < KINDS; kind++) {
        memset(text.data, 'a', text.size);
        text.data[9] = '\n';
        text.size = PACE__RECORD_BYTES_MAX + 10;
        check_reads(write_compressed("long", kind, text), PACE__LINES, text);
        text.data[text.size - 1] = '\n';
        check_reads(write_compressed("long", kind, text), PACE__LINES, text);
        text.size += 5;
        check_reads(write_compressed("long", kind, text), PACE__LINES, text);
        text.data[text.size - 6] = 'a';
        check_fails(write_compressed("long", kind, text), PACE__LINES, PACE_BAD_DATA, ": line 2 is longer",
                    "16777216");
        /* The newline itself is the byte too many. */
        text.data[text.size - 5] = '\n';
        check_fails(write_compressed("long", kind, text), PACE__LINES, PACE_BAD_DATA, ": line 2 is longer",
                    "16777216");
        text.size = PACE__RECORD_BYTES_MAX + 20;
    }
    free(text.data);
}

/* A file is one chunk, up to the limit. */
static void test_whole_files(void **state)
{
    bytes text = allocate(PACE__RECORD_BYTES_MAX + 1);
    static const size_t sizes[] = {1, 5000, PACE__CHUNK_BYTES, PACE__CHUNK_BYTES + 1, PACE__RECORD_BYTES_MAX};

    (void)state;
    memset(text.data, '\n', text.size);
    for (int kind = PLAIN; kind < KINDS; kind++) {
        for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
            check_reads(write_compressed("whole", kind, (bytes){text.data, sizes[i]}), PACE__WHOLE,
                        (bytes){text.data, sizes[i]});
        check_fails(write_compressed("whole", kind, text), PACE__WHOLE, PACE_BAD_DATA, "is longer than",
                    "16777216");
    }
    free(text.data);
}

static void test_cut_short(void **state)
{
    unsigned lines;
    bytes text = make_lines(700, 7, true, &lines);

    (void)state;
    for (int kind = GZIP; kind < KINDS; kind++) {
        bytes whole = compressed(kind, text.data, text.size);

        check_reads(write_file("whole", whole.data, whole.size), PACE__LINES, text);
        /* The first four bytes tell the kind. */
        for (size_t size = 4; size < whole.size; size++)
            check_fails(write_file("cut", whole.data, size), PACE__LINES, PACE_BAD_DATA, "cut short",
                        "byte ");
        free(whole.data);
    }
    free(text.data);
}

/* A flipped bit is found, or was one that does not matter: the text is never another one. */
static void test_damaged(void **state)
{
    unsigned lines, found = 0, all = 0;
    bytes text = make_lines(300, 8, true, &lines);

    (void)state;
    for (int kind = GZIP; kind < KINDS; kind++) {
        bytes whole = compressed(kind, text.data, text.size);

        for (size_t i = 4; i < whole.size; i++) {
            messages told = {0};
            bytes read = {NULL, 0};

            whole.data[i] ^= 1 << (i % 8);
            pace_status status = read_all(write_file("damaged", whole.data, whole.size), PACE__LINES,
                                          &(pace_log){tell, &told}, &read);
            whole.data[i] ^= 1 << (i % 8);
            all++;
            found += status == PACE_BAD_DATA;
            assert_int_equal(told.errors, status ? 1 : 0);
            if (status)
                continue;
            assert_int_equal(read.size, text.size);
            assert_memory_equal(read.data, text.data, text.size);
            free(read.data);
        }
        free(whole.data);
    }
    assert_true(found > all * 9 / 10);
    free(text.data);
}

static void test_trailing_bytes(void **state)
{
    (void)state;
    for (int kind = GZIP; kind < KINDS; kind++) {
        bytes whole = compressed(kind, "a line\n", 7);

        whole.data = realloc(whole.data, whole.size + 7);
        assert_non_null(whole.data);
        memcpy(whole.data + whole.size, "garbage", 7);
        check_fails(write_file("trailing", whole.data, whole.size + 7), PACE__LINES, PACE_BAD_DATA, "damaged",
                    "byte 7");
        memset(whole.data + whole.size, 0, 7);
        check_fails(write_file("trailing", whole.data, whole.size + 7), PACE__LINES, PACE_BAD_DATA, "damaged",
                    "byte 7");
        free(whole.data);
    }
}

static void test_paths_are_checked(void **state)
{
    const char *twice[] = {"-", "-"};
    messages told = {0};
    pace_log log = {tell, &told};
    pace__input *input;

    (void)state;
    check_fails(directory, PACE__LINES, PACE_NO_INPUT, "is a directory; give its files", "");
    check_fails(path_of("missing"), PACE__LINES, PACE_NO_INPUT, "No such file", "");
    assert_int_equal(pace__input_open(twice, 2, PACE__LINES, &log, &input), PACE_USAGE);
    assert_int_equal(told.errors, 1);
    assert_non_null(strstr(told.text, "\"-\""));
}

/* Opened before, gone or changed when its turn comes. */
static void test_files_that_change(void **state)
{
    enum { LONGER, SHORTER, GONE };
    unsigned lines;
    bytes text = make_lines(2 * PACE__CHUNK_BYTES + 1000, 9, true, &lines);

    (void)state;
    for (int kind = PLAIN; kind < KINDS; kind++) {
        for (int change = LONGER; change <= GONE; change++) {
            const char *paths[] = {write_file("first", "x\n", 2), write_compressed("changing", kind, text)};
            messages told = {0};
            pace_log log = {tell, &told};
            pace__chunk chunk = {0};
            pace__input *input;
            pace_status status;
            int fd = open(paths[1], O_WRONLY | O_APPEND);

            assert_int_equal(pace__input_open(paths, 2, PACE__LINES, &log, &input), PACE_OK);
            assert_int_equal(pace__input_next(input, &chunk), PACE_OK);
            if (change == GONE) {
                unlink(paths[1]);
            } else {
                assert_int_equal(pace__input_next(input, &chunk), PACE_OK);
                assert_int_equal(chunk.file, 1);
                if (change == LONGER)
                    assert_int_equal(write(fd, "more\n", 5), 5);
                else
                    assert_int_equal(ftruncate(fd, 30), 0);
            }
            while (!(status = pace__input_next(input, &chunk)) && chunk.size > 0)
                continue;
            /* Whole files in the decoder's buffer already are past harm. */
            if (kind == PLAIN || change != SHORTER)
                assert_int_equal(status, change == GONE ? PACE_NO_INPUT : PACE_BAD_DATA);
            if (kind == PLAIN && change != GONE)
                assert_non_null(strstr(told.text, change == LONGER ? "became longer" : "became shorter"));
            assert_int_equal(told.errors, status ? 1 : 0);
            close(fd);
            pace__chunk_release(&chunk);
            pace__input_close(input);
        }
    }
    free(text.data);
}

typedef struct pipe_writer {
    const char *path;
    bytes data;
    size_t step;
} pipe_writer;

static void *write_in_steps(void *arg)
{
    pipe_writer *writer = arg;
    int fd = open(writer->path, O_WRONLY);

    for (size_t at = 0; fd >= 0 && at < writer->data.size; at += writer->step) {
        size_t left = writer->data.size - at;

        if (write(fd, writer->data.data + at, left < writer->step ? left : writer->step) < 0)
            break;
    }
    close(fd);
    return NULL;
}

static void test_pipes(void **state)
{
    const char *path = path_of("pipe");
    unsigned lines;
    bytes text = make_lines(5000, 10, true, &lines);

    (void)state;
    assert_int_equal(mkfifo(path, 0666), 0);
    for (int kind = PLAIN; kind < KINDS; kind++) {
        pipe_writer writer = {path, compressed(kind, text.data, text.size), 3};
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, write_in_steps, &writer), 0);
        check_reads(path, PACE__LINES, text);
        pthread_join(thread, NULL);
        free(writer.data.data);
    }
    free(text.data);
}

static void test_standard_input(void **state)
{
    int kept = dup(STDIN_FILENO);
    unsigned lines;
    bytes text = make_lines(PACE__CHUNK_BYTES + 5000, 11, true, &lines);

    (void)state;
    for (int kind = PLAIN; kind < KINDS; kind++) {
        int fd = open(write_compressed("stdin", kind, text), O_RDONLY), format = -1;

        assert_int_equal(dup2(fd, STDIN_FILENO), STDIN_FILENO);
        close(fd);
        assert_int_equal(pace__input_detect("-", &format, NULL), PACE_OK);
        assert_int_equal(format, PACE_FORMAT_AUTO);
        check_reads("-", PACE__LINES, text);
        assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
    }
    dup2(kept, STDIN_FILENO);
    close(kept);
    free(text.data);
}

static void test_more_files_than_may_be_open(void **state)
{
    enum { FILES = 1000, DIFFERENT = 10 };
    const char *paths[FILES];
    struct rlimit limit, small;
    pace__chunk chunk = {0};
    pace__input *input;

    (void)state;
    for (unsigned i = 0; i < DIFFERENT; i++) {
        char name[32], text[32];

        snprintf(name, sizeof name, "many-%u", i);
        snprintf(text, sizeof text, "%u\n", i);
        paths[i] = i % 2 ? write_compressed(name, GZIP, (bytes){text, strlen(text)})
                         : write_file(name, text, strlen(text));
    }
    for (unsigned i = DIFFERENT; i < FILES; i++)
        paths[i] = paths[i % DIFFERENT];
    getrlimit(RLIMIT_NOFILE, &limit);
    small = limit;
    small.rlim_cur = 40;
    setrlimit(RLIMIT_NOFILE, &small);
    assert_int_equal(pace__input_open(paths, FILES, PACE__LINES, NULL, &input), PACE_OK);
    for (unsigned i = 0; i < FILES; i++) {
        assert_int_equal(pace__input_next(input, &chunk), PACE_OK);
        assert_int_equal(chunk.file, i);
        assert_int_equal(strtoul(chunk.data, NULL, 10), i % DIFFERENT);
    }
    assert_int_equal(pace__input_next(input, &chunk), PACE_OK);
    assert_int_equal(chunk.size, 0);
    setrlimit(RLIMIT_NOFILE, &limit);
    pace__chunk_release(&chunk);
    pace__input_close(input);
}

#define TEAM_FILES 5

typedef struct team_job {
    pace__input *input;
    atomic_uchar *seen[TEAM_FILES];
    unsigned lines[TEAM_FILES];
} team_job;

static pace_status check_lines(team_job *job, const pace__chunk *chunk)
{
    const char *end = chunk->data + chunk->size;

    for (const char *line = chunk->data; line < end;) {
        char *next;
        unsigned long number = strtoul(line, &next, 10), offset = strtoul(next, &next, 10);
        const char *newline = memchr(line, '\n', (size_t)(end - line));

        if (number >= job->lines[chunk->file] || offset != chunk->offset + (size_t)(line - chunk->data))
            return PACE_FAILED;
        atomic_fetch_add(&job->seen[chunk->file][number], 1);
        line = newline ? newline + 1 : end;
    }
    return PACE_OK;
}

static pace_status read_as_member(void *arg, int thread)
{
    team_job *job = arg;
    pace__chunk chunk = {0};
    pace_status status;

    (void)thread;
    while (!(status = pace__input_next(job->input, &chunk)) && chunk.size > 0) {
        status = check_lines(job, &chunk);
        if (status)
            break;
    }
    pace__chunk_release(&chunk);
    return status;
}

static void test_threads_see_every_line_once(void **state)
{
    static const int kinds[TEAM_FILES] = {PLAIN, GZIP, PLAIN, ZSTD, PLAIN};
    const char *paths[TEAM_FILES];
    team_job job = {0};

    (void)state;
    for (unsigned i = 0; i < TEAM_FILES; i++) {
        char name[32];
        bytes text = make_lines(i == 0 ? 100 : PACE__CHUNK_BYTES * 5 / 2, i, i % 2 == 0, &job.lines[i]);

        snprintf(name, sizeof name, "team-%u", i);
        paths[i] = write_compressed(name, kinds[i], text);
        job.seen[i] = calloc(job.lines[i], 1);
        assert_non_null(job.seen[i]);
        free(text.data);
    }
    assert_int_equal(pace__input_open(paths, TEAM_FILES, PACE__LINES, NULL, &job.input), PACE_OK);
    assert_int_equal(pace__team(4, read_as_member, &job, NULL), PACE_OK);
    assert_int_equal(pace__input_bytes_taken(job.input), pace__input_bytes_total(job.input));
    pace__input_close(job.input);
    for (unsigned i = 0; i < TEAM_FILES; i++) {
        for (unsigned line = 0; line < job.lines[i]; line++)
            assert_int_equal(job.seen[i][line], 1);
        free(job.seen[i]);
    }
}

static pace_status read_until_failure(void *arg, int thread)
{
    pace__chunk chunk = {0};
    pace_status status;

    (void)thread;
    while (!(status = pace__input_next(arg, &chunk)) && chunk.size > 0)
        continue;
    pace__chunk_release(&chunk);
    return status;
}

static void test_threads_tell_a_failure_once(void **state)
{
    bytes text = allocate(PACE__RECORD_BYTES_MAX + 2 * PACE__CHUNK_BYTES);
    messages told = {0};
    pace_log log = {tell, &told};
    pace__input *input;

    (void)state;
    memset(text.data, 'a', text.size);
    const char *path = write_file("long", text.data, text.size);
    const char *paths[] = {path, path, path, path};

    assert_int_equal(pace__input_open(paths, 4, PACE__LINES, &log, &input), PACE_OK);
    assert_int_equal(pace__team(4, read_until_failure, input, NULL), PACE_BAD_DATA);
    assert_int_equal(told.errors, 1);
    pace__input_close(input);
    free(text.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_is_read_back),
        cmocka_unit_test(test_empty_files),
        cmocka_unit_test(test_lines_at_range_ends),
        cmocka_unit_test(test_longest_line),
        cmocka_unit_test(test_whole_files),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_trailing_bytes),
        cmocka_unit_test(test_paths_are_checked),
        cmocka_unit_test(test_files_that_change),
        cmocka_unit_test(test_pipes),
        cmocka_unit_test(test_standard_input),
        cmocka_unit_test(test_more_files_than_may_be_open),
        cmocka_unit_test(test_threads_see_every_line_once),
        cmocka_unit_test(test_threads_tell_a_failure_once),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
