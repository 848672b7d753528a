/* Steps and rows, against a walk over the rows one by one. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "ps/steps.h"

#define EPOCHS 3

/* Walks three epochs row by row: a step ends after `batch` rows and where the epoch does. */
static void walk(uint64_t rows, uint64_t batch)
{
    pace__steps steps = pace__steps_make(rows, batch);
    uint64_t step = 0, in_step = 0;

    assert_true(steps.batch <= steps.rows);
    for (uint64_t place = 0; place < EPOCHS * rows; place++) {
        assert_int_equal(pace__steps_of(&steps, place), step);
        if (in_step == 0)
            assert_int_equal(pace__steps_rows_before(&steps, step), place);
        in_step++;
        if (in_step == batch || (place + 1) % rows == 0) {
            assert_int_equal(pace__steps_rows_in(&steps, step), in_step);
            step++;
            in_step = 0;
        }
    }
    assert_int_equal(step, EPOCHS * steps.per_epoch);
    assert_int_equal(pace__steps_rows_before(&steps, step), EPOCHS * rows);
}

static void every_row_has_a_step(void **state)
{
    (void)state;
    for (uint64_t rows = 1; rows <= 40; rows++) {
        for (uint64_t batch = 1; batch <= 45; batch++)
            walk(rows, batch);
    }
}

/* The parts of a step lie side by side, in the order of the workers, and are equal but for one row. */
static void check_slices(const pace__steps *steps, uint64_t step, unsigned count)
{
    uint64_t at = pace__steps_rows_before(steps, step), all = pace__steps_rows_in(steps, step), first, rows;

    for (unsigned index = 0; index < count; index++) {
        pace__steps_slice(steps, step, index, count, &first, &rows);
        assert_int_equal(first, at);
        assert_true(rows == all / count || rows == (all + count - 1) / count);
        /* An empty part too has a place in its step: shards look at it. */
        assert_int_equal(pace__steps_of(steps, first), step);
        at += rows;
    }
    assert_int_equal(at, pace__steps_rows_before(steps, step + 1));
}

static void slices_tile_a_step(void **state)
{
    static const uint64_t sizes[][2] = {{1, 1}, {7, 3}, {40, 8}, {41, 8}, {1000, 64}, {5, 100}};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        pace__steps steps = pace__steps_make(sizes[i][0], sizes[i][1]);

        for (uint64_t step = 0; step < 2 * steps.per_epoch; step++) {
            for (unsigned count = 1; count <= 9; count++)
                check_slices(&steps, step, count);
        }
    }
}

/* Places beyond 32 bits. */
static void large_numbers(void **state)
{
    pace__steps steps = pace__steps_make(4000000007u, 65536);
    uint64_t epoch = 1000003, step = epoch * steps.per_epoch + 17;

    (void)state;
    assert_int_equal(steps.per_epoch, 61036);
    assert_int_equal(pace__steps_rows_before(&steps, step), epoch * 4000000007u + 17 * 65536);
    assert_int_equal(pace__steps_of(&steps, epoch * 4000000007u + 17 * 65536 + 65535), step);
    assert_int_equal(pace__steps_of(&steps, epoch * 4000000007u - 1), epoch * steps.per_epoch - 1);
    assert_int_equal(pace__steps_rows_in(&steps, epoch * steps.per_epoch - 1), 4000000007u % 65536);
    check_slices(&steps, step, 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_has_a_step),
        cmocka_unit_test(slices_tile_a_step),
        cmocka_unit_test(large_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
