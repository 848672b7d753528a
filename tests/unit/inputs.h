/*
 * inputs.h - files for the tests of input, plain and compressed, that are written, read whole and compared. Include it
 * behind <cmocka.h>, and let make_directory and remove_directory be the fixtures of the group.
 *
 *     const char *path = write_compressed("name", GZIP, text);
 *     check_reads(path, PACE__LINES, text);
 */
#ifndef UNIT_INPUTS_H
#define UNIT_INPUTS_H

#include "base/random.h"
#include "data/input/input.h"
#include "files/file.h"

#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

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

static inline void tell(void *user, pace_level level, const char *text)
{
    messages *told = user;

    told->errors += level == PACE_ERROR;
    told->warnings += level == PACE_WARN;
    snprintf(told->text, sizeof told->text, "%s", text);
}

static inline int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) ? 0 : -1;
}

static inline int remove_directory(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PATHS_MAX; i++)
        free(paths_made[i]);
    pace__chunk_release(&reused);
    return pace__remove_tree(directory, NULL);
}

static inline const char *path_of(const char *name)
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

static inline bytes allocate(size_t size)
{
    bytes new = {malloc(size + 1), size};

    assert_non_null(new.data);
    return new;
}

static inline bytes gzip(const char *data, size_t size)
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

static inline bytes zstd(const char *data, size_t size)
{
    bytes out = allocate(ZSTD_compressBound(size));
    ZSTD_CCtx *context = ZSTD_createCCtx();

    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    out.size = ZSTD_compress2(context, out.data, out.size, data, size);
    assert_false(ZSTD_isError(out.size));
    ZSTD_freeCCtx(context);
    return out;
}

static inline bytes compressed(int kind, const char *data, size_t size)
{
    if (kind == GZIP)
        return gzip(data, size);
    if (kind == ZSTD)
        return zstd(data, size);
    bytes copy = allocate(size);

    memcpy(copy.data, data, size);
    return copy;
}

static inline const char *write_file(const char *name, const char *data, size_t size)
{
    const char *path = path_of(name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

    assert_true(fd >= 0);
    assert_int_equal(pace__write_all(fd, data, size, path, NULL), PACE_OK);
    close(fd);
    return path;
}

/* In two members or frames, as `cat a.gz b.gz` makes them. */
static inline const char *write_compressed(const char *name, int kind, bytes text)
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
static inline pace_status read_all(const char *path, int boundary, const pace_log *log, bytes *all)
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

static inline void check_reads(const char *path, int boundary, bytes expected)
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
static inline void check_fails(const char *path, int boundary, pace_status expected, const char *word,
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
static inline bytes make_lines(size_t size_min, uint64_t seed, bool final_newline, unsigned *lines)
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

#endif
