/* What is copied to a local disk, and what makes room for it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/stage/stage_plan.h"

static void training_rows_go_first_then_the_numbering(void **state)
{
    const pace__stage_part parts[] = {
        {.bytes = 10, .rows = {50, 100}}, {.bytes = 10, .rows = {90, 100}}, {.bytes = 99, .rows = {50, 100}},
        {.bytes = 10, .rows = {0, 0}},    {.bytes = 10, .rows = {9, 10}},
    };
    uint32_t order[5];

    (void)state;
    pace__stage_order(parts, 5, order);
    assert_memory_equal(order, ((const uint32_t[]){1, 4, 0, 2, 3}), sizeof order);
}

static void room_is_the_least_of_limit_and_disk(void **state)
{
    (void)state;
    assert_int_equal(pace__stage_room(&(pace__stage_disk){.free = 500, .size = 2000}), 400);
    assert_int_equal(pace__stage_room(&(pace__stage_disk){.free = 90, .size = 2000}), 0);
    assert_int_equal(
        pace__stage_room(&(pace__stage_disk){.bytes_max = 300, .used = 100, .free = 500, .size = 2000}), 200);
    assert_int_equal(
        pace__stage_room(&(pace__stage_disk){.bytes_max = 300, .used = 301, .free = 500, .size = 2000}), 0);
    assert_int_equal(
        pace__stage_room(&(pace__stage_disk){.bytes_max = 9000, .used = 0, .free = 500, .size = 2000}), 400);
}

/* A part that is too large makes way for one that is not. */
static void what_fits_is_taken_in_order(void **state)
{
    const pace__stage_part parts[] = {{.bytes = 40}, {.bytes = 40, .there = true}, {.bytes = 70},
                                      {.bytes = 10}, {.bytes = 5, .out = true},    {.bytes = 50}};
    const uint32_t order[] = {0, 1, 2, 3, 4, 5};
    bool taken[6];
    uint32_t first;

    (void)state;
    assert_int_equal(pace__stage_choose(parts, order, 6, 100, 9, taken, &first), 100);
    assert_int_equal(first, 0);
    assert_memory_equal(taken, ((const bool[]){true, false, false, true, false, true}), sizeof taken);
    assert_int_equal(pace__stage_choose(parts, order, 6, 100, 1, taken, &first), 40);
    assert_int_equal(pace__stage_choose(parts, order, 6, 9, 9, taken, &first), 0);
    assert_int_equal(first, PACE__STAGE_NONE);
}

static void those_unused_for_longest_make_room(void **state)
{
    pace__stage_file files[] = {
        {.bytes = 10, .used_s = 30}, {.bytes = 10, .used_s = 10}, {.bytes = 10, .used_s = 20}};

    (void)state;
    assert_true(pace__stage_evict(files, 3, 5, 5));
    assert_false(files[0].leaves || files[1].leaves || files[2].leaves);
    assert_true(pace__stage_evict(files, 3, 5, 20));
    assert_true(!files[0].leaves && files[1].leaves && files[2].leaves);
    assert_true(pace__stage_evict(files, 3, 5, 35));
    assert_false(pace__stage_evict(files, 3, 5, 36)); /* nobody leaves in vain */
    assert_false(files[0].leaves || files[1].leaves || files[2].leaves);
}

static void a_rest_is_as_long_as_the_read_or_as_the_rate_wants(void **state)
{
    (void)state;
    assert_int_equal(pace__stage_rest_ns(1000000, 1000, 0), 1000);
    assert_int_equal(pace__stage_rest_ns(1000000, 100000000, 1000000), 900000000); /* a second in all */
    assert_int_equal(pace__stage_rest_ns(1000000, 700000000, 1000000), 700000000); /* the source is slow */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_rows_go_first_then_the_numbering),
        cmocka_unit_test(room_is_the_least_of_limit_and_disk),
        cmocka_unit_test(what_fits_is_taken_in_order),
        cmocka_unit_test(those_unused_for_longest_make_room),
        cmocka_unit_test(a_rest_is_as_long_as_the_read_or_as_the_rate_wants),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
