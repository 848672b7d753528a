/* The set of applied rows, against a plain bitmap. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/random.h"
#include "ps/intervals.h"

#include <string.h>

#define ROWS 400

/* The window rises above low, with gaps. */
static void check_window(const pace__intervals *set)
{
    uint64_t end = set->low;

    assert_true(set->count <= PACE__INTERVALS_MAX);
    for (size_t i = 0; i < set->count; i++) {
        assert_true(set->window[i].first > end);
        assert_true(set->window[i].last > set->window[i].first);
        end = set->window[i].last;
    }
}

static bool same(const pace__intervals *a, const pace__intervals *b)
{
    return a->low == b->low && a->count == b->count &&
           memcmp(a->window, b->window, a->count * sizeof *a->window) == 0;
}

/* --- against a bitmap --- */

static uint64_t count_in(const bool *in, uint64_t first, uint64_t last)
{
    uint64_t count = 0;

    for (uint64_t row = first; row < last; row++)
        count += in[row];
    return count;
}

static void add_and_compare(pace__intervals *set, bool *in, uint64_t first, uint64_t last)
{
    uint64_t there = count_in(in, first, last);
    pace__interval_result expected = there == 0              ? PACE__INTERVAL_NEW
                                     : there == last - first ? PACE__INTERVAL_REPEAT
                                                             : PACE__INTERVAL_OVERLAP;
    static pace__intervals before; /* too large for the stack of a test */

    before = *set;
    assert_int_equal(pace__intervals_add(set, first, last), expected);
    if (expected == PACE__INTERVAL_NEW)
        memset(in + first, true, last - first);
    else
        assert_true(same(set, &before));
    check_window(set);
    assert_int_equal(pace__intervals_rows(set), count_in(in, 0, ROWS));
}

static uint64_t seed;

static int print_seed(void **state)
{
    (void)state;
    print_message("last seed: %llu\n", (unsigned long long)seed);
    return 0;
}

static void random_intervals(void)
{
    pace__random random = pace__random_at(seed, 0);
    uint64_t low = seed % 2 ? 0 : pace__random_below(&random, ROWS / 4);
    uint64_t longest = 1 + pace__random_below(&random, 20);
    static pace__intervals set;
    bool in[ROWS] = {false};

    memset(in, true, low);
    pace__intervals_init(&set, low);
    for (int i = 0; i < 400; i++) {
        uint64_t first = pace__random_below(&random, ROWS), length = pace__random_below(&random, longest + 1);

        add_and_compare(&set, in, first, first + length < ROWS ? first + length : ROWS);
        first = pace__random_below(&random, ROWS);
        uint64_t last = first + pace__random_below(&random, ROWS - first + 1);

        if (i % 2 && last - first > 8)
            last = first + 8;
        assert_true(pace__intervals_has(&set, first, last) == (count_in(in, first, last) == last - first));
    }
    for (uint64_t row = 0; row < ROWS; row++) /* fill the gaps: all of it is below low again */
        add_and_compare(&set, in, row, row + 1);
    assert_int_equal(set.low, ROWS);
    assert_int_equal(set.count, 0);
}

static void it_is_what_a_bitmap_says(void **state)
{
    (void)state;
    for (seed = 0; seed < 300; seed++)
        random_intervals();
}

/* Steps that are divided among workers which finish in any order, each a little ahead of the last. */
static void all_rows_of_many_workers_end_below_low(void **state)
{
    static pace__intervals set;
    enum { AHEAD = 64, SHARE = 37, SHARES = 5000 };
    pace__random random = pace__random_at(7, 0);
    uint64_t waiting[AHEAD], next = 0;
    size_t most = 0;

    (void)state;
    pace__intervals_init(&set, 0);
    for (; next < AHEAD; next++)
        waiting[next] = next;
    for (size_t left = AHEAD; left > 0;) {
        size_t one = pace__random_below(&random, left);
        uint64_t first = waiting[one] * SHARE;

        assert_int_equal(pace__intervals_add(&set, first, first + SHARE), PACE__INTERVAL_NEW);
        assert_int_equal(pace__intervals_add(&set, first, first + SHARE), PACE__INTERVAL_REPEAT);
        check_window(&set);
        most = set.count > most ? set.count : most;
        waiting[one] = next < SHARES ? next++ : waiting[--left];
    }
    assert_true(most > 1);
    assert_int_equal(set.low, (uint64_t)SHARES * SHARE);
    assert_int_equal(set.count, 0);
}

/* --- by hand --- */

static void touching_intervals_become_one(void **state)
{
    static pace__intervals set;

    (void)state;
    pace__intervals_init(&set, 10);
    assert_int_equal(pace__intervals_add(&set, 20, 30), PACE__INTERVAL_NEW);
    assert_int_equal(pace__intervals_add(&set, 40, 50), PACE__INTERVAL_NEW);
    assert_int_equal(set.count, 2);
    assert_int_equal(pace__intervals_add(&set, 30, 35), PACE__INTERVAL_NEW); /* grows upwards */
    assert_int_equal(pace__intervals_add(&set, 38, 40), PACE__INTERVAL_NEW); /* and downwards */
    assert_int_equal(set.count, 2);
    assert_int_equal(pace__intervals_add(&set, 35, 38), PACE__INTERVAL_NEW); /* joins them */
    assert_int_equal(set.count, 1);
    assert_int_equal(set.window[0].first, 20);
    assert_int_equal(set.window[0].last, 50);
    assert_int_equal(pace__intervals_rows(&set), 40);
    assert_int_equal(pace__intervals_add(&set, 10, 15), PACE__INTERVAL_NEW); /* low rises */
    assert_int_equal(set.low, 15);
    assert_int_equal(pace__intervals_add(&set, 15, 20), PACE__INTERVAL_NEW); /* and takes the window in */
    assert_int_equal(set.low, 50);
    assert_int_equal(set.count, 0);
}

static void repeats_and_overlaps_change_nothing(void **state)
{
    static const uint64_t repeats[][2] = {{0, 1}, {0, 10}, {9, 10}, {20, 30}, {20, 21}, {29, 30}, {43, 47}};
    static const uint64_t overlaps[][2] = {{0, 11},  {9, 20},  {9, 25},  {15, 21}, {15, 35}, {29, 31},
                                           {25, 45}, {20, 50}, {49, 60}, {0, 100}, {10, 100}};
    static pace__intervals set, before;

    (void)state;
    pace__intervals_init(&set, 10);
    assert_int_equal(pace__intervals_add(&set, 20, 30), PACE__INTERVAL_NEW);
    assert_int_equal(pace__intervals_add(&set, 40, 50), PACE__INTERVAL_NEW);
    before = set;
    for (size_t i = 0; i < sizeof repeats / sizeof *repeats; i++) {
        assert_true(pace__intervals_has(&set, repeats[i][0], repeats[i][1]));
        assert_int_equal(pace__intervals_add(&set, repeats[i][0], repeats[i][1]), PACE__INTERVAL_REPEAT);
    }
    for (size_t i = 0; i < sizeof overlaps / sizeof *overlaps; i++) {
        assert_false(pace__intervals_has(&set, overlaps[i][0], overlaps[i][1]));
        assert_int_equal(pace__intervals_add(&set, overlaps[i][0], overlaps[i][1]), PACE__INTERVAL_OVERLAP);
    }
    assert_true(same(&set, &before));
}

static void no_rows_are_new_everywhere(void **state)
{
    static pace__intervals set;

    (void)state;
    pace__intervals_init(&set, 0);
    assert_int_equal(pace__intervals_rows(&set), 0);
    for (uint64_t row = 0; row < 4; row++)
        assert_int_equal(pace__intervals_add(&set, row, row), PACE__INTERVAL_NEW);
    assert_int_equal(pace__intervals_add(&set, 2, 3), PACE__INTERVAL_NEW);
    for (uint64_t row = 0; row < 5; row++) {
        assert_int_equal(pace__intervals_add(&set, row, row), PACE__INTERVAL_NEW);
        assert_true(pace__intervals_has(&set, row, row));
    }
    assert_int_equal(set.count, 1);
    assert_int_equal(pace__intervals_rows(&set), 1);
}

static void a_full_window_refuses_only_what_needs_a_place(void **state)
{
    static pace__intervals set, before;
    uint64_t end = 3 * PACE__INTERVALS_MAX;

    (void)state;
    pace__intervals_init(&set, 0);
    for (uint64_t i = PACE__INTERVALS_MAX; i > 0; i--) /* 1, 4, 7 ... */
        assert_int_equal(pace__intervals_add(&set, 3 * i - 2, 3 * i - 1), PACE__INTERVAL_NEW);
    check_window(&set);
    assert_int_equal(set.count, PACE__INTERVALS_MAX);
    before = set;
    assert_int_equal(pace__intervals_add(&set, end, end + 5), PACE__INTERVAL_FULL);
    assert_int_equal(pace__intervals_add(&set, 4, 5), PACE__INTERVAL_REPEAT);
    assert_int_equal(pace__intervals_add(&set, 4, 6), PACE__INTERVAL_OVERLAP);
    assert_int_equal(pace__intervals_add(&set, 9, 9), PACE__INTERVAL_NEW);
    assert_true(same(&set, &before));

    assert_int_equal(pace__intervals_add(&set, end - 1, end), PACE__INTERVAL_NEW); /* the last one grows */
    assert_int_equal(set.count, PACE__INTERVALS_MAX);
    assert_int_equal(pace__intervals_add(&set, 2, 4), PACE__INTERVAL_NEW); /* two become one */
    assert_int_equal(set.count, PACE__INTERVALS_MAX - 1);
    assert_int_equal(pace__intervals_add(&set, end + 1, end + 5), PACE__INTERVAL_NEW); /* now there is room */
    assert_int_equal(pace__intervals_add(&set, end + 9, end + 10), PACE__INTERVAL_FULL);
    assert_int_equal(pace__intervals_add(&set, 0, 1), PACE__INTERVAL_NEW); /* low takes the first one in */
    assert_int_equal(set.low, 5);
    assert_int_equal(set.count, PACE__INTERVALS_MAX - 1);
    check_window(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(it_is_what_a_bitmap_says, print_seed),
        cmocka_unit_test(all_rows_of_many_workers_end_below_low),
        cmocka_unit_test(touching_intervals_become_one),
        cmocka_unit_test(repeats_and_overlaps_change_nothing),
        cmocka_unit_test(no_rows_are_new_everywhere),
        cmocka_unit_test(a_full_window_refuses_only_what_needs_a_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
