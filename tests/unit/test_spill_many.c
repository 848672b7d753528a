/* Spills of several processes, visited together: the same order as one spill of all records. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "prep/spill.h"

#include "support.h"

#define SPILLS  3
#define RECORDS 6000
#define SEED    77

/* Records say which they are; what is behind that is filled with the same number. */
static uint64_t key_of(uint64_t record)
{
    return pace__mix64(record + SEED);
}

static size_t size_of(uint64_t record)
{
    return sizeof record + record % 90;
}

static void append(pace__spill_writer *writer, uint64_t record)
{
    void *to;

    assert_ok(pace__spill_append(writer, key_of(record), size_of(record), record, &to));
    memcpy(to, &record, sizeof record);
    memset((char *)to + sizeof record, (int)(record % 251), size_of(record) - sizeof record);
}

typedef struct walk {
    uint64_t *seen;
    size_t count;
} walk;

static pace_status take(void *arg, const void *record, size_t size)
{
    walk *self = arg;
    uint64_t number;

    memcpy(&number, record, sizeof number);
    assert_true(number < RECORDS);
    assert_int_equal(size, size_of(number));
    for (size_t i = sizeof number; i < size; i++)
        assert_int_equal(((const uint8_t *)record)[i], number % 251);
    self->seen[self->count++] = number;
    return PACE_OK;
}

static int by_key(const void *left, const void *right)
{
    uint64_t a = key_of(*(const uint64_t *)left), b = key_of(*(const uint64_t *)right);

    return a < b ? -1 : a > b;
}

typedef struct many {
    pace__spill *own[SPILLS];    /* of their writers */
    pace__spill *opened[SPILLS]; /* as another process sees them; the first is its own */
    pace__spill_index index[SPILLS];
} many;

static void write_many(void **state, many *self, size_t memory)
{
    for (int i = 0; i < SPILLS; i++) {
        pace__spill_writer *writer;
        char name[32];

        snprintf(name, sizeof name, "rows-%d", i);
        assert_ok(pace__spill_create(*state, name, memory, &said_log, &self->own[i]));
        assert_ok(pace__spill_writer_create(self->own[i], &writer));
        for (uint64_t record = 0; record < RECORDS; record++) {
            if (record * record % 7 % SPILLS == (uint64_t)i) /* squares are 0, 1, 2, 4 */
                append(writer, record);
        }
        assert_ok(pace__spill_flush(writer));
        pace__spill_writer_free(writer);
        assert_ok(pace__spill_publish(self->own[i], &self->index[i]));
        if (i > 0)
            assert_ok(pace__spill_open(*state, name, &self->index[i], memory, &said_log, &self->opened[i]));
    }
    self->opened[0] = self->own[0];
}

static void free_many(many *self)
{
    for (int i = 1; i < SPILLS; i++)
        pace__spill_free(self->opened[i]);
    for (int i = 0; i < SPILLS; i++)
        pace__spill_free(self->own[i]);
}

/* Visits all buckets, each in two ranges that meet at a third of it. */
static void assert_all_in_order(many *self, uint32_t owner)
{
    uint64_t *seen = malloc(RECORDS * sizeof *seen), *expected = malloc(RECORDS * sizeof *expected);
    pace__spill_scratch scratch = {.owner = owner};
    walk at = {seen, 0};

    assert_non_null(seen);
    assert_non_null(expected);
    for (uint64_t i = 0; i < RECORDS; i++)
        expected[i] = i;
    qsort(expected, RECORDS, sizeof *expected, by_key);
    for (uint32_t bucket = 0; bucket < PACE__SPILL_BUCKETS; bucket++) {
        uint64_t rows = 0;

        for (int i = 0; i < SPILLS; i++)
            rows += pace__spill_rows(self->opened[i], bucket);
        assert_ok(pace__spill_visit_all(self->opened, SPILLS, bucket, 0, rows / 3, &scratch, take, &at));
        assert_ok(
            pace__spill_visit_all(self->opened, SPILLS, bucket, rows / 3, UINT64_MAX, &scratch, take, &at));
        assert_ok(pace__spill_visit_all(self->opened, SPILLS, bucket, rows, rows + 1, &scratch, take, &at));
    }
    assert_int_equal(at.count, RECORDS);
    assert_memory_equal(seen, expected, RECORDS * sizeof *seen);
    pace__spill_scratch_release(&scratch);
    assert_int_equal(scratch.owner, owner);
    free(expected);
    free(seen);
}

static void several_spills_are_one(void **state)
{
    many self = {0};

    write_many(state, &self, 1 << 20);
    assert_all_in_order(&self, 0);
    free_many(&self);
    assert_int_equal(count_entries(*state), 0);
}

/* Too large for the memory: cut by further bits first, under a name of the visitor's own. */
static void large_buckets_are_split(void **state)
{
    many self = {0};

    write_many(state, &self, 3000);
    assert_all_in_order(&self, 5);
    free_many(&self);
    assert_int_equal(count_entries(*state), 0);
}

static void the_index_tells_rows_and_weights(void **state)
{
    many self = {0};
    uint64_t rows = 0, weight = 0;

    write_many(state, &self, 1 << 20);
    for (int i = 0; i < SPILLS; i++) {
        for (uint32_t bucket = 0; bucket < PACE__SPILL_BUCKETS; bucket++) {
            assert_int_equal(pace__spill_rows(self.opened[i], bucket), self.index[i].rows[bucket]);
            rows += pace__spill_rows(self.opened[i], bucket);
            weight += pace__spill_weight(self.opened[i], bucket);
        }
    }
    assert_int_equal(rows, RECORDS);
    assert_int_equal(weight, (uint64_t)RECORDS * (RECORDS - 1) / 2);
    free_many(&self);
}

/* The file of another process is gone, or shorter than it said. */
static void a_changed_file_is_an_error(void **state)
{
    many self = {0};
    pace__spill_scratch scratch = {0};
    uint64_t *seen = malloc(RECORDS * sizeof *seen);
    walk at = {seen, 0};

    write_many(state, &self, 1 << 20);
    said_clear();
    pace__spill_drop(self.opened[1], 3);
    assert_failed(pace__spill_visit_all(self.opened, SPILLS, 3, 0, UINT64_MAX, &scratch, take, &at), PACE_IO,
                  "cannot open");
    assert_int_equal(truncate(in(state, "rows-1-04"), 10), 0);
    assert_failed(pace__spill_visit_all(self.opened, SPILLS, 4, 0, UINT64_MAX, &scratch, take, &at),
                  PACE_BAD_DATA, "rows-1-04");
    pace__spill_scratch_release(&scratch);
    free(seen);
    free_many(&self);
}

/* Changes the size of the bucket's last record, by which its bytes are not used up. */
static void damage(void **state, const char *name, uint32_t size)
{
    FILE *file = fopen(in(state, name), "r+");
    long at = 0, last = 0;
    struct {
        uint64_t key;
        uint32_t size;
    } __attribute__((packed)) head;

    assert_non_null(file);
    while (fseek(file, at, SEEK_SET) == 0 && fread(&head, sizeof head, 1, file) == 1) {
        last = at;
        at += (long)(sizeof head + head.size);
    }
    assert_int_equal(fseek(file, last + 8, SEEK_SET), 0);
    assert_int_equal(fwrite(&size, sizeof size, 1, file), 1);
    assert_int_equal(fclose(file), 0);
}

/* While a bucket is split, too, no record gets lost without a word. */
static void a_changed_file_is_not_split(void **state)
{
    static const uint32_t sizes[] = {500, 0, UINT32_MAX};
    pace__spill_scratch scratch = {0};
    uint64_t *seen = malloc(RECORDS * sizeof *seen);
    many self = {0};

    write_many(state, &self, 3000);
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        walk at = {seen, 0};
        char name[32];

        snprintf(name, sizeof name, "rows-1-%02u", i);
        damage(state, name, sizes[i]);
        said_clear();
        assert_failed(pace__spill_visit_all(self.opened, SPILLS, i, 0, UINT64_MAX, &scratch, take, &at),
                      PACE_IO, "changed by someone else");
        assert_int_equal(at.count, 0);
    }
    pace__spill_scratch_release(&scratch);
    free(seen);
    free_many(&self);
    assert_int_equal(count_entries(*state), 0);
}

/* A bucket that is split by a visitor of another process is counted where it was split. */
static void split_bytes_are_counted(void **state)
{
    many self = {0};
    uint64_t before[SPILLS], after = 0;

    write_many(state, &self, 3000);
    for (int i = 0; i < SPILLS; i++)
        before[i] = pace__spill_bytes(self.opened[i]);
    assert_int_equal(before[1] + before[2], 0); /* the others' own */
    assert_all_in_order(&self, 1);
    for (int i = 0; i < SPILLS; i++)
        after += pace__spill_bytes(self.opened[i]);
    uint64_t all = 0;

    for (int i = 0; i < SPILLS; i++)
        all += pace__spill_bytes(self.own[i]) - (i == 0 ? after - before[0] : 0);
    assert_true(after - before[0] >= 2 * all); /* two visits of each, at least */
    free_many(&self);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)
    const struct CMUnitTest tests[] = {
        TEST(several_spills_are_one),           TEST(large_buckets_are_split),
        TEST(the_index_tells_rows_and_weights), TEST(a_changed_file_is_an_error),
        TEST(a_changed_file_is_not_split),      TEST(split_bytes_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
