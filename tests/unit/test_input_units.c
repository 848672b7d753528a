/* Files divided between readers: every line is in exactly one unit, and readers get equal bytes. */
#include "base/random.h"
#include "data/input/input.h"

#include <isa-l/igzip_lib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support.h"

#define FILES_MAX   6
#define READERS_MAX 7

/* Files as they are when they are read, and how often each byte of them was. */
typedef struct texts {
    const char *paths[FILES_MAX];
    char *bytes[FILES_MAX];
    unsigned char *seen[FILES_MAX];
    size_t size[FILES_MAX];
    size_t count, line_max;
} texts;

static void put_bytes(const char *path, const char *bytes, size_t size)
{
    assert_ok(pace__write_file_atomically(path, bytes, size, &said_log));
}

static void put_gzip(const char *path, const char *bytes, size_t size)
{
    struct isal_zstream stream;
    size_t room = size + size / 8 + 1000;
    char *out = tiny_alloc(room);

    isal_deflate_stateless_init(&stream);
    stream.gzip_flag = IGZIP_GZIP;
    stream.end_of_stream = 1;
    stream.next_in = (uint8_t *)bytes;
    stream.avail_in = (uint32_t)size;
    stream.next_out = (uint8_t *)out;
    stream.avail_out = (uint32_t)room;
    assert_int_equal(isal_deflate_stateless(&stream), COMP_OK);
    put_bytes(path, out, stream.total_out);
    free(out);
}

static void add_file(void **state, texts *all, size_t size, size_t line_max, bool compressed,
                     pace__random *random)
{
    char name[16], *bytes = tiny_alloc(size);
    size_t i = all->count++;

    for (size_t at = 0, left = 0; at < size; at++) {
        bytes[at] = left > 0 ? (char)('a' + pace__random_below(random, 26)) : '\n';
        left = left > 0 ? left - 1 : pace__random_below(random, line_max);
    }
    snprintf(name, sizeof name, "file-%zu", i);
    all->paths[i] = in(state, name);
    all->bytes[i] = bytes;
    all->seen[i] = tiny_alloc(size);
    all->size[i] = size;
    all->line_max = line_max > all->line_max ? line_max : all->line_max;
    if (compressed)
        put_gzip(all->paths[i], bytes, size);
    else
        put_bytes(all->paths[i], bytes, size);
}

static void free_texts(texts *all)
{
    for (size_t i = 0; i < all->count; i++) {
        free(all->bytes[i]);
        free(all->seen[i]);
    }
}

/* Reads a reader's units; returns the bytes that it got. */
static uint64_t read_units(const texts *all, int boundary, int rank, int ranks)
{
    size_t count = 0;
    pace__chunk chunk = {0};
    pace__unit *units;
    pace__input *input;
    uint64_t place = 0, bytes = 0;

    assert_ok(pace__units_cut(all->paths, all->count, boundary, rank, ranks, &said_log, &units, &count));
    assert_ok(pace__input_open_units(all->paths, all->count, boundary, units, count, &said_log, &input));
    free(units);
    for (;;) {
        assert_ok(pace__input_next(input, &chunk));
        if (chunk.size == 0)
            break;
        const char *text = all->bytes[chunk.file];
        uint64_t next = (uint64_t)chunk.file << 40 | chunk.offset;

        assert_true(next >= place);
        place = next + chunk.size;
        assert_true(chunk.offset + chunk.size <= all->size[chunk.file]);
        assert_memory_equal(chunk.data, text + chunk.offset, chunk.size);
        assert_true(chunk.offset == 0 || text[chunk.offset - 1] == '\n');
        for (size_t i = 0; i < chunk.size; i++)
            all->seen[chunk.file][chunk.offset + i]++;
        bytes += chunk.size;
    }
    assert_int_equal(pace__input_bytes_taken(input), pace__input_bytes_total(input));
    pace__chunk_release(&chunk);
    pace__input_close(input);
    return bytes;
}

/* Returns how many bytes the reader with most has more than the one with least. */
static uint64_t check_once(const texts *all, int boundary, int ranks)
{
    uint64_t least = UINT64_MAX, most = 0;

    for (size_t i = 0; i < all->count; i++)
        memset(all->seen[i], 0, all->size[i]);
    for (int rank = 0; rank < ranks; rank++) {
        uint64_t bytes = read_units(all, boundary, rank, ranks);

        least = bytes < least ? bytes : least;
        most = bytes > most ? bytes : most;
    }
    for (size_t i = 0; i < all->count; i++) {
        for (size_t at = 0; at < all->size[i]; at++)
            assert_int_equal(all->seen[i][at], 1);
    }
    return most - least;
}

static void test_every_line_once(void **state)
{
    static const size_t sizes[] = {0, 1, 2, 50, 1000, 30000};
    static const size_t lines[] = {1, 3, 40, 1000, 100000};
    uint64_t seed = pace__mix64((uint64_t)getpid());
    pace__random random = pace__random_at(seed, 0);

    print_message("seed %llu\n", (unsigned long long)seed);
    for (unsigned round = 0; round < 20; round++) {
        texts all = {0};
        unsigned files = 1 + (unsigned)pace__random_below(&random, FILES_MAX);

        for (unsigned i = 0; i < files; i++)
            add_file(state, &all, sizes[pace__random_below(&random, 6)],
                     lines[pace__random_below(&random, 5)], pace__random_below(&random, 4) == 0, &random);
        for (int ranks = 1; ranks <= READERS_MAX; ranks++)
            check_once(&all, PACE__LINES, ranks);
        free_texts(&all);
    }
}

/* More than a chunk for some, and one line that goes through a whole unit. */
static void test_large_files(void **state)
{
    pace__random random = pace__random_at(5, 0);
    texts all = {0};

    add_file(state, &all, PACE__CHUNK_BYTES + 12345, 300, false, &random);
    add_file(state, &all, PACE__CHUNK_BYTES / 2, 300, false, &random);
    memset(all.bytes[0] + 100, 'x', PACE__CHUNK_BYTES);
    put_bytes(all.paths[0], all.bytes[0], all.size[0]);
    for (int ranks = 1; ranks <= READERS_MAX; ranks += 3)
        check_once(&all, PACE__LINES, ranks);
    free_texts(&all);
}

static void test_readers_get_equal_bytes(void **state)
{
    pace__random random = pace__random_at(6, 0);
    texts all = {0};

    for (unsigned i = 0; i < 4; i++)
        add_file(state, &all, 10000 + 70000 * i, 100, false, &random);
    for (int ranks = 1; ranks <= READERS_MAX; ranks++)
        assert_true(check_once(&all, PACE__LINES, ranks) <= 2 * 100 + READERS_MAX);
    free_texts(&all);
}

/* What cannot be cut is counted: who has such a file gets less of the others. */
static void test_whole_files_count(void **state)
{
    const char *paths[] = {in(state, "plain"), in(state, "zipped"), in(state, "small")};
    char *noise = tiny_alloc(60000);
    pace__random random = pace__random_at(7, 0);
    struct stat zipped, small;
    pace__unit *units;
    size_t count;

    for (size_t i = 0; i < 60000; i++)
        noise[i] = (char)pace__random_next(&random);
    put_gzip(paths[1], noise, 20000);
    put_gzip(paths[2], noise, 3000);
    noise[0] = 'x';
    put_bytes(paths[0], noise, 60000);
    assert_int_equal(stat(paths[1], &zipped) | stat(paths[2], &small), 0);
    uint64_t each = ((uint64_t)zipped.st_size + (uint64_t)small.st_size + 60000) / 3;

    assert_ok(pace__units_cut(paths, 3, PACE__LINES, 0, 3, &said_log, &units, &count));
    assert_int_equal(count, 2);
    assert_int_equal(units[0].file, 0);
    assert_int_equal(units[0].first, 0);
    assert_in_range(units[0].last, each - (uint64_t)zipped.st_size - 1, each - (uint64_t)zipped.st_size + 3);
    assert_int_equal(units[1].file, 1);
    assert_true(units[1].first == 0 && units[1].last == UINT64_MAX);
    free(units);
    assert_ok(pace__units_cut(paths, 3, PACE__LINES, 1, 3, &said_log, &units, &count));
    assert_int_equal(count, 2);
    assert_in_range(units[0].last - units[0].first, each - (uint64_t)small.st_size - 1,
                    each - (uint64_t)small.st_size + 3);
    assert_int_equal(units[1].file, 2);
    free(units);
    assert_ok(pace__units_cut(paths, 3, PACE__LINES, 2, 3, &said_log, &units, &count));
    assert_int_equal(count, 1);
    assert_true(units[0].last == UINT64_MAX);
    free(units);
    free(noise);
}

/* As csv, or as texts, no file is cut. */
static void test_files_that_are_not_cut(void **state)
{
    pace__random random = pace__random_at(8, 0);
    texts all = {0};

    for (unsigned i = 0; i < 5; i++)
        add_file(state, &all, 1000 + 1000 * i, 20, i == 2, &random);
    for (int ranks = 1; ranks <= READERS_MAX; ranks++) {
        check_once(&all, PACE__CSV, ranks);
        check_once(&all, PACE__WHOLE, ranks);
    }
    free_texts(&all);
}

/* Sparse files: only their sizes are looked at. */
static void test_large_shares_are_whole_chunks(void **state)
{
    const char *paths[] = {in(state, "a"), in(state, "b"), in(state, "c")};
    static const uint64_t sizes[] = {UINT64_C(3) << 30, 5000000, (UINT64_C(1) << 30) + 77};

    for (unsigned i = 0; i < 3; i++) {
        put_text(paths[i], "x\n");
        assert_int_equal(truncate(paths[i], (off_t)sizes[i]), 0);
    }
    for (int ranks = 1; ranks <= READERS_MAX; ranks++) {
        uint64_t each = (sizes[0] + sizes[1] + sizes[2]) / (uint64_t)ranks, end = 0;
        uint32_t file = 0;

        for (int rank = 0; rank < ranks; rank++) {
            uint64_t bytes = 0;
            pace__unit *units;
            size_t count;

            assert_ok(pace__units_cut(paths, 3, PACE__LINES, rank, ranks, &said_log, &units, &count));
            for (size_t i = 0; i < count; i++) {
                uint64_t last = units[i].last == UINT64_MAX ? sizes[units[i].file] : units[i].last;

                if (end == sizes[file] && units[i].file == file + 1) {
                    file++;
                    end = 0;
                }
                assert_int_equal(units[i].file, file);
                assert_int_equal(units[i].first, end);
                assert_int_equal(units[i].first % PACE__CHUNK_BYTES, 0);
                assert_true(last % PACE__CHUNK_BYTES == 0 || last == sizes[file]);
                bytes += last - units[i].first;
                end = last;
            }
            assert_in_range(bytes, each - PACE__CHUNK_BYTES, each + PACE__CHUNK_BYTES);
            free(units);
        }
        assert_true(file == 2 && end == sizes[2]);
    }
}

static void test_what_is_read_once_is_for_reader_0(void **state)
{
    const char *paths[] = {in(state, "plain"), "-", in(state, "pipe")};

    put_text(paths[0], "a\nb\n");
    assert_int_equal(mkfifo(paths[2], 0600), 0);
    for (int rank = 0; rank < 3; rank++) {
        pace__unit *units;
        size_t count, whole = 0;

        assert_ok(pace__units_cut(paths, 3, PACE__LINES, rank, 3, &said_log, &units, &count));
        for (size_t i = 0; i < count; i++)
            whole += units[i].file > 0 && units[i].first == 0 && units[i].last == UINT64_MAX;
        assert_int_equal(whole, rank == 0 ? 2 : 0);
        free(units);
    }
}

static void test_failures(void **state)
{
    const char *paths[] = {in(state, "file"), in(state, "missing")};
    pace__unit *units, half = {0, 2, 4};
    pace__chunk chunk = {0};
    pace__input *input;
    size_t count;

    put_text(paths[0], "a\nb\n");
    assert_failed(pace__units_cut(paths, 2, PACE__LINES, 0, 2, &said_log, &units, &count), PACE_NO_INPUT,
                  "missing: cannot open");
    assert_ok(pace__input_open_units(paths, 2, PACE__LINES, &half, 1, &said_log, &input));
    put_text(paths[0], "a\n");
    assert_failed(pace__input_next(input, &chunk), PACE_BAD_DATA, "file: has changed since it was divided");
    pace__input_close(input);
    assert_ok(pace__input_open_units(paths, 2, PACE__LINES, NULL, 0, &said_log, &input));
    assert_ok(pace__input_next(input, &chunk));
    assert_int_equal(chunk.size, 0);
    pace__input_close(input);
    pace__chunk_release(&chunk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_line_once, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_large_files, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_readers_get_equal_bytes, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_whole_files_count, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_files_that_are_not_cut, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_large_shares_are_whole_chunks, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_what_is_read_once_is_for_reader_0, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(test_failures, make_directory, remove_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
