/*
 * store_checks.h - what the tests of data sets on disk share: opening them, damaging them, and expecting that it
 * is noticed.
 *
 * Include it behind <cmocka.h>.
 */
#ifndef UNIT_STORE_CHECKS_H
#define UNIT_STORE_CHECKS_H

#include "data/store/reader.h"
#include "data/store/slice.h"
#include "support.h"

#include <hdf5.h>

static inline pace__store open_store(const char *directory)
{
    pace__store store;

    assert_ok(pace__store_open(directory, &store, &said_log));
    return store;
}

/* A sealed set whose ids are not numbered by frequency. */
static inline void has_no_original_ids(void **state, const char *name)
{
    char file[64];
    uint64_t *original = NULL;
    pace__store store = open_store(in(state, name));

    snprintf(file, sizeof file, "%.32s/ids.h5", name);
    assert_failed(pace__store_read_ids(&store, &original, &said_log), PACE_BAD_DATA, in(state, name));
    assert_null(original);
    assert_int_equal(access(in(state, file), F_OK), -1);
    pace__store_close(&store);
}

/* It cannot be opened, and one message says why. */
static inline void refuse(const char *directory, pace_status expected, const char *message)
{
    pace__store store;

    said_clear();
    assert_failed(pace__store_open(directory, &store, &said_log), expected, message);
}

static inline void overwrite(const char *path, uint64_t at, const void *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0 && pwrite(fd, bytes, size, (off_t)at) == (ssize_t)size);
    close(fd);
}

/* Reads all rows of a set, by slice and by reader: the same status, with one message. */
static inline pace_status read_set(const pace__store *store, int which, const char *message)
{
    uint64_t rows = store->info.rows[which];
    pace__reader_plan plan = {.set = which, .batch = 100, .last = rows, .consumers = 1};
    const pace__piece *piece = NULL;
    pace__reader *reader;
    pace__slice slice;

    assert_ok(pace__slice_init(&slice, store, which, 0, rows, &said_log));
    said_clear();
    pace_status status = pace__slice_read(&slice, 0, rows), same;

    if (status)
        assert_failed(status, PACE_BAD_DATA, message);
    pace__slice_release(&slice);
    assert_ok(pace__reader_create(store, &plan, &said_log, &reader));
    do
        same = pace__reader_next(reader, 0, &piece);
    while (!same && piece);
    pace__reader_free(reader);
    assert_int_equal(same, status);
    if (status)
        assert_failed(same, PACE_BAD_DATA, message);
    return status;
}

/* Of a sealed set, every byte of a file beside the parts. */
static inline void every_byte_counts(const char *set, const char *path)
{
    char *text = get_text(path);
    size_t size = strlen(text);

    for (size_t at = 0; at < size; at++) {
        overwrite(path, at, &(char){(char)(text[at] ^ 1)}, 1);
        refuse(set, PACE_BAD_DATA, path);
        overwrite(path, at, text + at, 1);
    }
    for (size_t cut = size; cut-- > 0;) {
        assert_int_equal(truncate(path, (off_t)cut), 0);
        refuse(set, PACE_BAD_DATA, path);
    }
    assert_int_equal(unlink(path), 0);
    refuse(set, PACE_NO_INPUT, path);
    put_text(path, text);
    free(text);
}

/* Deletes one or the other from the file. */
static inline void change_part(const char *path, const char *link, const char *attribute)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);

    assert_true(file >= 0);
    if (link)
        assert_true(H5Ldelete(file, link, H5P_DEFAULT) >= 0);
    if (attribute)
        assert_true(H5Adelete(file, attribute) >= 0);
    H5Fclose(file);
}

#endif
