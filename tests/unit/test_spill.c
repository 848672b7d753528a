/* The external shuffle: everything comes out once, in key order, whatever the threads and the memory. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "prep/spill.h"
#include "threads/thread.h"

#include "support.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>

#define ROOMY ((size_t)64 << 20)

/* A record is its key, its own length, and bytes that follow from both. */
typedef struct record {
    uint64_t key;
    uint64_t size;
} record;

static uint8_t pattern(uint64_t key, size_t at)
{
    return (uint8_t)(key + at * 31 + (at >> 8));
}

static void append(pace__spill_writer *writer, uint64_t key, size_t extra)
{
    record head = {key, extra};
    void *to = NULL;

    require(pace__spill_append(writer, key, sizeof head + extra, 1 + extra, &to) == PACE_OK);
    memcpy(to, &head, sizeof head);
    for (size_t i = 0; i < extra; i++)
        ((uint8_t *)to)[sizeof head + i] = pattern(key, i);
}

/* What a walk over all buckets found. */
typedef struct walk {
    uint64_t rows, weight, last_key;
    pace_status stop_with;
    uint64_t stop_at;
    uint64_t digest; /* of the order and the bytes */
    uint64_t slack;
} walk;

static pace_status check_record(void *arg, const void *bytes, size_t size)
{
    walk *found = arg;
    record head;

    require(size >= sizeof head);
    memcpy(&head, bytes, sizeof head);
    require(size == sizeof head + head.size);
    for (size_t i = 0; i < head.size; i++)
        require(((const uint8_t *)bytes)[sizeof head + i] == pattern(head.key, i));
    for (size_t i = 0; i < PACE__SPILL_SLACK; i++)
        found->slack += ((const uint8_t *)bytes)[size + i]; /* readable, whatever it holds */
    require(found->rows == 0 || head.key >= found->last_key);
    found->last_key = head.key;
    found->rows++;
    found->weight += 1 + head.size;
    found->digest = pace__mix64(found->digest * 31 + head.key + head.size);
    return found->rows == found->stop_at ? found->stop_with : PACE_OK;
}

/* A visit with memory of its own. */
static pace_status visit(pace__spill *spill, uint32_t bucket, walk *found)
{
    pace__spill_scratch scratch = {0};
    pace_status status = pace__spill_visit(spill, bucket, &scratch, check_record, found);

    pace__spill_scratch_release(&scratch);
    return status;
}

static pace__spill *create(void **state, size_t memory)
{
    pace__spill *spill = NULL;

    assert_ok(pace__spill_create(*state, "spill", memory, &said_log, &spill));
    return spill;
}

/* Visits every bucket; each must hold the ranks, rows and weights that it announced, and no other keys. */
static walk walk_all(pace__spill *spill)
{
    pace__spill_scratch scratch = {0};
    walk found = {0};

    for (uint32_t bucket = 0; bucket < PACE__SPILL_BUCKETS; bucket++) {
        uint64_t rows = pace__spill_rows(spill, bucket), weight = pace__spill_weight(spill, bucket);
        walk before = found;

        assert_ok(pace__spill_visit(spill, bucket, &scratch, check_record, &found));
        assert_int_equal(found.rows - before.rows, rows);
        assert_int_equal(found.weight - before.weight, weight);
        if (rows)
            assert_int_equal(found.last_key >> (64 - PACE__SPILL_BITS), bucket);
    }
    pace__spill_scratch_release(&scratch);
    return found;
}

typedef struct producing {
    pace__spill *spill;
    int threads;
    uint64_t records;
    size_t extra_max;
} producing;

static uint64_t key_of(uint64_t serial)
{
    return pace__mix64(serial + 1);
}

static pace_status produce(void *arg, int thread)
{
    const producing *self = arg;
    pace__spill_writer *writer;
    pace_status status = pace__spill_writer_create(self->spill, &writer);

    if (status)
        return status;
    for (uint64_t i = (uint64_t)thread; i < self->records; i += (uint64_t)self->threads)
        append(writer, key_of(i), self->extra_max ? pace__mix64(i ^ 77) % (self->extra_max + 1) : 0);
    status = pace__spill_flush(writer);
    pace__spill_writer_free(writer);
    return status;
}

static walk shuffle(void **state, uint64_t records, size_t extra_max, int threads, size_t memory)
{
    producing self = {create(state, memory), threads, records, extra_max};

    assert_ok(pace__team(threads, produce, &self, &said_log));
    walk found = walk_all(self.spill);

    assert_int_equal(found.rows, records);
    pace__spill_free(self.spill);
    assert_int_equal(count_entries(*state), 0);
    return found;
}

static void the_order_depends_on_keys_alone(void **state)
{
    walk first = shuffle(state, 20000, 90, 1, ROOMY);
    static const int threads[] = {2, 5, 11};

    for (size_t i = 0; i < 3; i++)
        assert_true(shuffle(state, 20000, 90, threads[i], ROOMY).digest == first.digest);
}

/* Buckets of about 8 kB and less memory: they are split. */
static void little_memory_gives_the_same(void **state)
{
    walk roomy = shuffle(state, 4000, 90, 2, ROOMY);
    static const size_t memory[] = {6000, 1500};

    for (size_t i = 0; i < 2; i++) {
        walk tight = shuffle(state, 4000, 90, 2, memory[i]);

        assert_true(tight.digest == roomy.digest);
        assert_int_equal(tight.weight, roomy.weight);
    }
}

/* Keys that agree in their first 28 bits: split five times before they part. */
static void splitting_goes_as_deep_as_it_must(void **state)
{
    pace__spill *spill = create(state, 1);
    pace__spill_writer *writer;

    assert_ok(pace__spill_writer_create(spill, &writer));
    for (uint64_t i = 0; i < 50; i++)
        append(writer, UINT64_C(0x123456700000000) | key_of(i) >> 36, i);
    assert_ok(pace__spill_flush(writer));
    pace__spill_writer_free(writer);
    assert_int_equal(walk_all(spill).rows, 50);
    pace__spill_free(spill);
    assert_int_equal(count_entries(*state), 0);
}

static void splitting_is_counted(void **state)
{
    for (int tight = 0; tight < 2; tight++) {
        producing self = {create(state, tight ? 1500 : ROOMY), 1, 2000, 100};

        assert_ok(pace__team(1, produce, &self, &said_log));
        uint64_t before = pace__spill_bytes(self.spill);

        walk_all(self.spill);
        assert_int_equal(pace__spill_bytes(self.spill), tight ? 2 * before : before);
        pace__spill_free(self.spill);
    }
}

/* A second visit gives the same as the first: prep counts entries that way. */
static void buckets_can_be_visited_again(void **state)
{
    producing self = {create(state, 1500), 1, 2000, 100};

    assert_ok(pace__team(1, produce, &self, &said_log));
    walk first = walk_all(self.spill);

    assert_true(walk_all(self.spill).digest == first.digest);
    assert_int_equal(count_entries(*state), PACE__SPILL_BUCKETS);
    pace__spill_free(self.spill);
}

/* Records around and above a writer's buffer, and above the buffer that splitting reads with. */
static void large_records_pass(void **state)
{
    static const size_t extras[] = {32768 - 12 - 16, 32768 - 12 - 15, 32768, 100000, 5 << 20, 3, 0,
                                    9 << 20,         40000,           40001};
    static const size_t memory[] = {ROOMY, 50000};

    for (size_t m = 0; m < 2; m++) {
        pace__spill *spill = create(state, memory[m]);
        pace__spill_writer *writer;

        assert_ok(pace__spill_writer_create(spill, &writer));
        for (uint64_t i = 0; i < 40; i++)
            append(writer, UINT64_C(5) << 58 | key_of(i) >> 6, extras[i % 10]); /* all in bucket 5 */
        for (uint64_t i = 40; i < 60; i++)
            append(writer, key_of(i), extras[i % 10]);
        assert_ok(pace__spill_flush(writer));
        pace__spill_writer_free(writer);
        assert_int_equal(walk_all(spill).rows, 60);
        assert_true(pace__spill_rows(spill, 5) >= 40);
        pace__spill_free(spill);
    }
}

static void records_without_bytes_pass(void **state)
{
    pace__spill *spill = create(state, ROOMY);
    pace__spill_writer *writer;
    void *nothing;
    uint64_t rows = 0;

    assert_ok(pace__spill_writer_create(spill, &writer));
    for (uint64_t i = 0; i < 1000; i++)
        assert_ok(pace__spill_append(writer, key_of(i), 0, 3, &nothing));
    assert_ok(pace__spill_flush(writer));
    for (uint32_t bucket = 0; bucket < PACE__SPILL_BUCKETS; bucket++) {
        assert_int_equal(pace__spill_weight(spill, bucket), 3 * pace__spill_rows(spill, bucket));
        rows += pace__spill_rows(spill, bucket);
    }
    assert_int_equal(rows, 1000);
    pace__spill_writer_free(writer);
    pace__spill_free(spill);
}

static void empty_buckets_are_fine(void **state)
{
    pace__spill *spill = create(state, 100);
    pace__spill_writer *writer;

    assert_int_equal(walk_all(spill).rows, 0);
    assert_ok(pace__spill_writer_create(spill, &writer));
    append(writer, 0, 7);
    append(writer, UINT64_MAX, 8);
    append(writer, UINT64_MAX - 1, 9);
    assert_ok(pace__spill_flush(writer));
    assert_ok(pace__spill_flush(writer)); /* nothing is written twice */
    pace__spill_writer_free(writer);
    assert_int_equal(pace__spill_rows(spill, 0), 1);
    assert_int_equal(pace__spill_rows(spill, 1), 0);
    assert_int_equal(pace__spill_rows(spill, 63), 2);
    walk found = walk_all(spill);

    assert_int_equal(found.rows, 3);
    assert_true(found.last_key == UINT64_MAX);
    pace__spill_free(spill);
}

/* Keys should differ; if they do not, splitting must end nevertheless. */
static void equal_keys_end(void **state)
{
    pace__spill *spill = create(state, 10);
    pace__spill_writer *writer;

    assert_ok(pace__spill_writer_create(spill, &writer));
    for (int i = 0; i < 100; i++)
        append(writer, 0x123456789abcdef0u, 20);
    assert_ok(pace__spill_flush(writer));
    pace__spill_writer_free(writer);
    assert_int_equal(walk_all(spill).rows, 100);
    pace__spill_free(spill);
    assert_int_equal(count_entries(*state), 0);
}

static void a_visitor_can_stop(void **state)
{
    static const size_t memory[] = {ROOMY, 1500};

    for (size_t m = 0; m < 2; m++) {
        producing self = {create(state, memory[m]), 1, 2000, 10};
        walk found = {.stop_with = PACE_INTERRUPTED, .stop_at = 20};

        assert_ok(pace__team(1, produce, &self, &said_log));
        assert_int_equal(visit(self.spill, 9, &found), PACE_INTERRUPTED);
        assert_int_equal(found.rows, 20);
        assert_int_equal(count_entries(*state), PACE__SPILL_BUCKETS); /* what a split made is gone */
        pace__spill_free(self.spill);
    }
}

static void dropped_files_are_removed(void **state)
{
    producing self = {create(state, ROOMY), 1, 1000, 10};

    assert_ok(pace__team(1, produce, &self, &said_log));
    assert_true(pace__exists(in(state, "spill-00")) && pace__exists(in(state, "spill-63")));
    pace__spill_drop(self.spill, 63);
    pace__spill_drop(self.spill, 63);
    assert_false(pace__exists(in(state, "spill-63")));
    assert_int_equal(count_entries(*state), PACE__SPILL_BUCKETS - 1);
    pace__spill_free(self.spill);
    pace__spill_free(NULL);
    assert_int_equal(count_entries(*state), 0);
}

typedef struct visiting {
    pace__spill *spill;
    atomic_uint next;
    atomic_uint_fast64_t rows;
} visiting;

static pace_status visit_some(void *arg, int thread)
{
    visiting *self = arg;
    pace_status status = PACE_OK;

    (void)thread;
    for (uint32_t bucket; !status && (bucket = atomic_fetch_add(&self->next, 1)) < PACE__SPILL_BUCKETS;) {
        walk found = {0};

        status = visit(self->spill, bucket, &found);
        pace__spill_drop(self->spill, bucket);
        atomic_fetch_add(&self->rows, found.rows);
    }
    return status;
}

static void buckets_are_visited_by_many_threads(void **state)
{
    producing self = {create(state, 3000), 3, 4000, 50};

    assert_ok(pace__team(3, produce, &self, &said_log));
    visiting all = {.spill = self.spill};

    assert_ok(pace__team(4, visit_some, &all, &said_log));
    assert_int_equal(all.rows, 4000);
    pace__spill_free(self.spill);
    assert_int_equal(count_entries(*state), 0);
}

static void a_full_disk_is_an_io_error(void **state)
{
    producing self = {create(state, ROOMY), 1, 20000, 200};
    struct rlimit before, small;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){10000, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    pace__spill_writer *writer;
    void *to;
    pace_status status = pace__spill_writer_create(self.spill, &writer);

    for (uint64_t i = 0; i < 20000 && !status; i++)
        status = pace__spill_append(writer, key_of(i), 200, 0, &to);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_failed(status, PACE_IO, "spill-");
    pace__spill_writer_free(writer);
    pace__spill_free(self.spill);
    assert_int_equal(count_entries(*state), 0);
}

static void a_missing_directory_is_an_io_error(void **state)
{
    pace__spill *spill = NULL;

    assert_failed(pace__spill_create(in(state, "none"), "spill", ROOMY, &said_log, &spill), PACE_IO,
                  in(state, "none/spill-00"));
    assert_null(spill);
}

static void a_cut_temporary_file_is_found(void **state)
{
    producing self = {create(state, ROOMY), 1, 5000, 10};
    walk found = {0};

    assert_ok(pace__team(1, produce, &self, &said_log));
    assert_int_equal(truncate(in(state, "spill-07"), 100), 0);
    assert_true(visit(self.spill, 7, &found) != PACE_OK);
    assert_said("spill-07");
    pace__spill_free(self.spill);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_order_depends_on_keys_alone),
        TEST(little_memory_gives_the_same),
        TEST(splitting_goes_as_deep_as_it_must),
        TEST(splitting_is_counted),
        TEST(buckets_can_be_visited_again),
        TEST(large_records_pass),
        TEST(records_without_bytes_pass),
        TEST(empty_buckets_are_fine),
        TEST(equal_keys_end),
        TEST(a_visitor_can_stop),
        TEST(dropped_files_are_removed),
        TEST(buckets_are_visited_by_many_threads),
        TEST(a_full_disk_is_an_io_error),
        TEST(a_missing_directory_is_an_io_error),
        TEST(a_cut_temporary_file_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
