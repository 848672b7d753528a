/*
 * Chunks: every byte once, in place, whole records, from plain, gzip and zstd files, by one thread and
 * several.
 */
#include "base/random.h"
#include "data/formats/parse.h"
#include "data/input/input.h"
#include "files/crc32c.h"
#include "files/file.h"
#include "threads/thread.h"

#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <paceline/prep.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { PLAIN, GZIP, ZSTD, KINDS };

typedef struct bytes {
    char *data;
    size_t size;
} bytes;

/* What was told last, and how often. */
typedef struct messages {
    unsigned errors, warnings;
    char text[PACE_LOG_TEXT_MAX];
} messages;

#define PATHS_MAX 64

static char directory[] = "/tmp/test_input.XXXXXX";
/* Every name that was used, until the end. */
static char *paths_made[PATHS_MAX];
/* One buffer for most tests: old bytes in it must not show. */
static pace__chunk reused;

static void tell(void *user, pace_level level, const char *text)
{
    messages *told = user;

    told->errors += level == PACE_ERROR;
    told->warnings += level == PACE_WARN;
    snprintf(told->text, sizeof told->text, "%s", text);
}

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PATHS_MAX; i++)
        free(paths_made[i]);
    pace__chunk_release(&reused);
    return pace__remove_tree(directory, NULL);
}

static const char *path_of(const char *name)
{
    unsigned i = 0;

    while (i < PATHS_MAX && paths_made[i] && strcmp(paths_made[i] + strlen(directory) + 1, name) != 0)
        i++;
    assert_true(i < PATHS_MAX);
    if (!paths_made[i])
        paths_made[i] = pace__format("%s/%s", directory, name);
    assert_non_null(paths_made[i]);
    return paths_made[i];
}

static bytes allocate(size_t size)
{
    bytes new = {malloc(size + 1), size};

    assert_non_null(new.data);
    return new;
}

static bytes gzip(const char *data, size_t size)
{
    struct isal_zstream stream;
    bytes out = allocate(size + size / 8 + 1000);

    isal_deflate_stateless_init(&stream);
    stream.gzip_flag = IGZIP_GZIP;
    stream.end_of_stream = 1;
    stream.next_in = (uint8_t *)data;
    stream.avail_in = (uint32_t)size;
    stream.next_out = (uint8_t *)out.data;
    stream.avail_out = (uint32_t)out.size;
    assert_int_equal(isal_deflate_stateless(&stream), COMP_OK);
    out.size = stream.total_out;
    return out;
}

static bytes zstd(const char *data, size_t size)
{
    bytes out = allocate(ZSTD_compressBound(size));
    ZSTD_CCtx *context = ZSTD_createCCtx();

    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    out.size = ZSTD_compress2(context, out.data, out.size, data, size);
    assert_false(ZSTD_isError(out.size));
    ZSTD_freeCCtx(context);
    return out;
}

static bytes compressed(int kind, const char *data, size_t size)
{
    if (kind == GZIP)
        return gzip(data, size);
    if (kind == ZSTD)
        return zstd(data, size);
    bytes copy = allocate(size);

    memcpy(copy.data, data, size);
    return copy;
}

static const char *write_file(const char *name, const char *data, size_t size)
{
    const char *path = path_of(name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

    assert_true(fd >= 0);
    assert_int_equal(pace__write_all(fd, data, size, path, NULL), PACE_OK);
    close(fd);
    return path;
}

/* In two members or frames, as `cat a.gz b.gz` makes them. */
static const char *write_compressed(const char *name, int kind, bytes text)
{
    size_t half = text.size / 2;
    bytes first = compressed(kind, text.data, half);
    bytes second = compressed(kind, text.data + half, text.size - half);
    bytes both = allocate(first.size + second.size);

    memcpy(both.data, first.data, first.size);
    memcpy(both.data + first.size, second.data, second.size);
    const char *path = write_file(name, both.data, both.size);

    free(first.data);
    free(second.data);
    free(both.data);
    return path;
}

/*
 * Reads all of an input by one thread and gives the bytes of file 0; checks that chunks are contiguous and
 * cut behind newlines.
 */
static pace_status read_all(const char *path, int boundary, const pace_log *log, bytes *all)
{
    pace__input *input;
    pace__chunk chunk = reused;
    bytes out = {NULL, 0};
    pace_status status = pace__input_open(&path, 1, boundary, log, &input);

    if (status)
        return status;
    char last = '\n';

    while (!(status = pace__input_next(input, &chunk)) && chunk.size > 0) {
        assert_int_equal(chunk.file, 0);
        assert_int_equal(chunk.offset, out.size);
        assert_true(chunk.data >= chunk.buffer);
        assert_true(chunk.data + chunk.size + PACE__CHUNK_SLACK <= chunk.buffer + chunk.capacity);
        if (boundary == PACE__LINES)
            assert_int_equal(last, '\n');
        if (boundary == PACE__WHOLE)
            assert_int_equal(out.size, 0);
        out.data = realloc(out.data, out.size + chunk.size);
        assert_non_null(out.data);
        memcpy(out.data + out.size, chunk.data, chunk.size);
        out.size += chunk.size;
        last = out.data[out.size - 1];
    }
    assert_int_equal(chunk.size, 0);
    /* It stays as it is. */
    assert_int_equal(pace__input_next(input, &chunk), status);
    assert_int_equal(chunk.size, 0);
    if (!status)
        assert_int_equal(pace__input_bytes_read(input), out.size);
    if (!status && pace__input_bytes_total(input) > 0)
        assert_int_equal(pace__input_bytes_taken(input), pace__input_bytes_total(input));
    reused = chunk;
    pace__input_close(input);
    if (all && !status)
        *all = out;
    else
        free(out.data);
    return status;
}

static void check_reads(const char *path, int boundary, bytes expected)
{
    messages told = {0};
    bytes all = {NULL, 0};
    pace_status status = read_all(path, boundary, &(pace_log){tell, &told}, &all);

    if (status)
        print_error("%s\n", told.text);
    assert_int_equal(status, PACE_OK);
    assert_int_equal(all.size, expected.size);
    if (expected.size > 0)
        assert_memory_equal(all.data, expected.data, expected.size);
    free(all.data);
}

/* The message is one, and has all the words. */
static void check_fails(const char *path, int boundary, pace_status expected, const char *word,
                        const char *other)
{
    messages told = {0};
    pace_status status = read_all(path, boundary, &(pace_log){tell, &told}, NULL);

    if (status != expected || !strstr(told.text, word) || !strstr(told.text, other))
        print_error("status %d, message: %s\n", status, told.text);
    assert_int_equal(status, expected);
    assert_int_equal(told.errors, 1);
    assert_non_null(strstr(told.text, path));
    assert_non_null(strstr(told.text, word));
    assert_non_null(strstr(told.text, other));
}

/* Lines "NUMBER OFFSET xxx" of random length, so that each says where it must be. */
static bytes make_lines(size_t size_min, uint64_t seed, bool final_newline, unsigned *lines)
{
    pace__random random = pace__random_at(seed, 0);
    bytes text = allocate(size_min + 200000);
    size_t at = 0;

    for (*lines = 0; at < size_min; ++*lines) {
        /* Now and then one that is longer than what is read ahead of a range's end. */
        size_t filler = pace__random_below(&random, pace__random_below(&random, 500) == 0 ? 100000 : 300);

        at += (size_t)sprintf(text.data + at, "%u %zu ", *lines, at);
        memset(text.data + at, 'x', filler);
        at += filler;
        text.data[at++] = '\n';
    }
    text.size = final_newline ? at : at - 1;
    return text;
}

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

/* The next power of two: growth by single records would copy too much. */
static size_t room_for(size_t size)
{
    size_t room = 64;

    while (room < size)
        room *= 2;
    return room;
}

static void append_record(bytes *file, const char *data, size_t size)
{
    uint64_t length = size;
    uint32_t crc = pace__masked_crc32c(&length, sizeof length), data_crc = pace__masked_crc32c(data, size);

    if (!file->data || room_for(file->size + size + 16) > room_for(file->size)) {
        file->data = realloc(file->data, room_for(file->size + size + 16));
        assert_non_null(file->data);
    }
    memcpy(file->data + file->size, &length, 8);
    memcpy(file->data + file->size + 8, &crc, 4);
    memcpy(file->data + file->size + 12, data, size);
    memcpy(file->data + file->size + 12 + size, &data_crc, 4);
    file->size += size + 16;
}

static bytes make_records(size_t size_min, size_t record_max, uint64_t seed)
{
    pace__random random = pace__random_at(seed, 0);
    bytes file = {NULL, 0};
    char *data = calloc(record_max, 1);

    assert_non_null(data);
    while (file.size < size_min) {
        uint64_t noise = pace__random_next(&random);

        memcpy(data, &noise, record_max < 8 ? record_max : 8);
        append_record(&file, data, pace__random_below(&random, record_max));
    }
    free(data);
    return file;
}

/* Walks the chunks' records by their lengths. */
static void check_records(const char *path)
{
    pace__chunk chunk = {0};
    pace__input *input;

    assert_int_equal(pace__input_open(&path, 1, PACE__TFRECORDS, NULL, &input), PACE_OK);
    while (pace__input_next(input, &chunk) == PACE_OK && chunk.size > 0) {
        size_t at = 0;

        for (uint64_t length; at < chunk.size; at += 16 + length) {
            assert_true(chunk.size - at >= 16);
            memcpy(&length, chunk.data + at, sizeof length);
            assert_true(length <= chunk.size - at - 16);
        }
        assert_int_equal(at, chunk.size);
    }
    pace__chunk_release(&chunk);
    pace__input_close(input);
}

static void test_records(void **state)
{
    static const struct {
        size_t size, record;
    } cases[] = {{1, 1}, {2 * PACE__CHUNK_BYTES, 2000}, {3 * PACE__CHUNK_BYTES, PACE__CHUNK_BYTES * 2}};

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int kind = PLAIN; kind < KINDS; kind++) {
            bytes file = make_records(cases[i].size, cases[i].record, i);
            const char *path = write_compressed("records", kind, file);

            check_reads(path, PACE__TFRECORDS, file);
            check_records(path);
            free(file.data);
        }
    }
}

/* Its length's first bytes are those of gzip. */
static void test_record_that_looks_like_gzip(void **state)
{
    bytes file = {NULL, 0}, data = allocate(0x088b1f);

    (void)state;
    memset(data.data, 0, data.size);
    append_record(&file, data.data, data.size);
    assert_memory_equal(file.data, "\x1f\x8b\x08", 3);
    check_reads(write_file("like-gzip", file.data, file.size), PACE__TFRECORDS, file);
    free(file.data);
    free(data.data);
}

static void test_damaged_records(void **state)
{
    bytes file = {NULL, 0};

    (void)state;
    append_record(&file, "0123456789", 10);
    append_record(&file, "0123456789", 10);
    for (size_t size = 1; size < file.size; size++) {
        if (size != 26)
            check_fails(write_file("cut", file.data, size), PACE__TFRECORDS, PACE_BAD_DATA, "ends within it",
                        size < 26 ? "byte 0:" : "byte 26:");
    }
    for (size_t i = 26; i < 38; i++) {
        file.data[i] ^= 4;
        check_fails(write_file("damaged", file.data, file.size), PACE__TFRECORDS, PACE_BAD_DATA, "checksum",
                    "byte 26:");
        file.data[i] ^= 4;
    }
    uint64_t length = PACE__RECORD_BYTES_MAX - 15;
    uint32_t crc = pace__masked_crc32c(&length, sizeof length);

    memcpy(file.data + 26, &length, sizeof length);
    memcpy(file.data + 34, &crc, sizeof crc);
    check_fails(write_file("damaged", file.data, file.size), PACE__TFRECORDS, PACE_BAD_DATA,
                "record at byte 26 ", "16777216");
    free(file.data);
}

static void test_longest_record(void **state)
{
    bytes file = {NULL, 0}, data = allocate(PACE__RECORD_BYTES_MAX - 16);

    (void)state;
    memset(data.data, 1, data.size);
    append_record(&file, "x", 1);
    append_record(&file, data.data, data.size);
    append_record(&file, "x", 1);
    check_reads(write_file("longest", file.data, file.size), PACE__TFRECORDS, file);
    free(file.data);
    free(data.data);
}

static void test_line_of(void **state)
{
    unsigned lines;
    bytes text = make_lines(PACE__CHUNK_BYTES + 100, 12, true, &lines);

    (void)state;
    for (int kind = PLAIN; kind < KINDS; kind++) {
        const char *paths[] = {"-", write_compressed("lines", kind, text)};
        pace__input *input;

        assert_int_equal(pace__input_open(paths, 2, PACE__LINES, NULL, &input), PACE_OK);
        assert_int_equal(pace__input_line_of(input, 0, 1), 0);
        assert_int_equal(pace__input_line_of(input, 1, 0), 1);
        assert_int_equal(pace__input_line_of(input, 1, text.size - 1), lines);
        size_t second = (size_t)((char *)memchr(text.data, '\n', text.size) - text.data) + 1;

        assert_int_equal(pace__input_line_of(input, 1, second - 1), 1);
        assert_int_equal(pace__input_line_of(input, 1, second), 2);
        assert_int_equal(pace__input_line_of(input, 1, text.size + 1), 0);
        pace__input_close(input);
    }
    free(text.data);
}

static void check_format(const char *text, size_t size, int expected)
{
    for (int kind = PLAIN; kind < KINDS; kind++) {
        int format = -1;

        assert_int_equal(
            pace__input_detect(write_compressed("format", kind, (bytes){(char *)text, size}), &format, NULL),
            PACE_OK);
        if (format != expected)
            print_error("kind %d of: %.60s\n", kind, text);
        assert_int_equal(format, expected);
    }
}

static void test_detect(void **state)
{
    static const struct {
        const char *text;
        int format;
    } cases[] = {
        {"1 3:1 11:1 14:1\n", PACE_FORMAT_SVMLIGHT},
        {"# a comment\n\n-1\t3:.5", PACE_FORMAT_SVMLIGHT},
        {"+1 7:1e-3 # x\n", PACE_FORMAT_SVMLIGHT},
        {"1 3:x\n", PACE_FORMAT_AUTO},
        {"1 2 3\n", PACE_FORMAT_AUTO},
        {"", PACE_FORMAT_AUTO},
        {"\n\n", PACE_FORMAT_AUTO},
        {"{\"text\": \"1 3:1\"}\n", PACE_FORMAT_AUTO},
    };
    char row[64];
    bytes records = make_records(1000, 100, 1);

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        check_format(cases[i].text, strlen(cases[i].text), cases[i].format);
    check_format(records.data, records.size, PACE_FORMAT_TFRECORD);
    records.data[8] ^= 1;
    check_format(records.data, records.size, PACE_FORMAT_AUTO);
    for (unsigned tabs = 36; tabs < 42; tabs++) {
        memset(row, '\t', sizeof row);
        memcpy(row + tabs, "\n1\t2\n", 5);
        check_format(row, tabs + 5, tabs == 38 || tabs == 39 ? PACE_FORMAT_CRITEO : PACE_FORMAT_AUTO);
    }
    free(records.data);
    int format = -1;
    messages told = {0};

    assert_int_equal(pace__input_detect(path_of("missing"), &format, &(pace_log){tell, &told}),
                     PACE_NO_INPUT);
    assert_int_equal(pace__input_detect(directory, &format, &(pace_log){tell, &told}), PACE_NO_INPUT);
    assert_int_equal(told.errors, 2);
    assert_int_equal(format, -1);
}

static void test_bad_rows(void **state)
{
    const char *paths[] = {"-", write_compressed("bad.gz", GZIP, (bytes){"a\nb\nc\n", 6})};
    messages told = {0};
    pace_log log = {tell, &told};
    pace__bad_rows bad = {.max = 12, .log = &log};
    pace__input *input;
    char expected[PACE_LOG_TEXT_MAX];

    (void)state;
    assert_int_equal(pace__input_open(paths, 2, PACE__LINES, &log, &input), PACE_OK);
    bad.input = input;
    assert_int_equal(pace__bad_row(&bad, &(pace__chunk){.file = 1, .offset = 2}, 2, "reason %d", 5), PACE_OK);
    snprintf(expected, sizeof expected, "%s:3: reason 5", paths[1]);
    assert_memory_equal(told.text, expected, strlen(expected));
    assert_int_equal(pace__bad_row(&bad, &(pace__chunk){.file = 0, .offset = 70}, 7, "reason"), PACE_OK);
    assert_memory_equal(told.text, "-: byte 77: reason", 18);
    for (unsigned i = 2; i < bad.max; i++)
        assert_int_equal(pace__bad_row(&bad, &(pace__chunk){.file = 1}, 0, "reason"), PACE_OK);
    assert_int_equal(told.warnings, PACE__BAD_ROWS_SHOWN);
    assert_int_equal(told.errors, 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pace__bad_row(&bad, &(pace__chunk){.file = 1}, 2, "the last"), PACE_BAD_DATA);
    assert_int_equal(told.errors, 1);
    snprintf(expected, sizeof expected,
             "%s:2: the last, after %llu skipped rows: that is all --max-bad-rows allows", paths[1],
             (unsigned long long)bad.max);
    assert_string_equal(told.text, expected);
    assert_int_equal(bad.count, 15);
    pace__input_close(input);
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
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_record_that_looks_like_gzip),
        cmocka_unit_test(test_damaged_records),
        cmocka_unit_test(test_longest_record),
        cmocka_unit_test(test_line_of),
        cmocka_unit_test(test_detect),
        cmocka_unit_test(test_bad_rows),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
