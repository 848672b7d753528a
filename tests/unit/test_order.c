/* The sample order: every row once, in runs, the same for ever. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/random.h"
#include "data/store/order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK PACE__ORDER_BLOCK

static const uint64_t sizes[] = {1,    2,    63,   255,  256,  257,   511,   512,   513,
                                 1000, 1023, 1024, 1025, 4096, 10007, 20480, 65537, 100000};

static void assert_every_row_once(const pace__order *order, uint64_t rows, uint64_t seed, uint64_t epoch)
{
    uint8_t *seen = calloc(rows, 1);
    uint64_t run, found = 0;

    assert_non_null(seen);
    for (uint64_t at = 0; at < rows; at += run) {
        uint64_t row = pace__order_row(order, at, &run);

        if (run < 1 || row >= rows || run > rows - row || run > rows - at)
            fail_msg("rows %lu seed %lu epoch %lu: position %lu gives row %lu and a run of %lu", rows, seed,
                     epoch, at, row, run);
        for (uint64_t i = 0; i < run; i++, found++) {
            if (seen[row + i]++)
                fail_msg("rows %lu seed %lu epoch %lu: row %lu comes twice", rows, seed, epoch, row + i);
        }
    }
    assert_int_equal(found, rows);
    free(seen);
}

static void every_row_comes_once(void **state)
{
    static const uint64_t seeds[] = {0, 1, 2, 12345, UINT64_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t s = 0; s < sizeof seeds / sizeof *seeds; s++) {
            for (uint64_t epoch = 0; epoch < 4; epoch++) {
                pace__order order = pace__order_make(sizes[i], seeds[s], epoch);

                assert_every_row_once(&order, sizes[i], seeds[s], epoch);
            }
        }
    }
}

static void no_rows_are_an_order_too(void **state)
{
    (void)state;
    assert_int_equal(pace__order_make(0, 1, 0).blocks, 0);
    assert_int_equal(pace__order_sequential(0).blocks, 0);
}

/* Any position may be asked for alone, and its run tells what the next ones hold. */
static void runs_are_consecutive(void **state)
{
    pace__order order = pace__order_make(10007, 9, 3);

    (void)state;
    for (uint64_t at = 0; at < 10007; at++) {
        uint64_t run, next_run, row = pace__order_row(&order, at, &run);

        assert_in_range(run, 1, BLOCK);
        if (run > 1) {
            assert_int_equal(pace__order_row(&order, at + 1, &next_run), row + 1);
            assert_int_equal(next_run, run - 1);
        } else {
            assert_true((row + 1) % BLOCK == 0 || row + 1 == 10007);
        }
    }
}

/* Whole blocks move, so a run that begins at a block holds all of it. */
static void blocks_stay_whole(void **state)
{
    pace__order order = pace__order_make(10007, 9, 4);
    uint64_t run;

    (void)state;
    for (uint64_t at = 0; at < 10007; at += run) {
        uint64_t row = pace__order_row(&order, at, &run);

        assert_int_equal(row % BLOCK, 0);
        assert_int_equal(run, row + BLOCK > 10007 ? 10007 - row : BLOCK);
    }
}

/* Positions whose row is the same in both orders. */
static uint64_t count_equal(const pace__order *a, const pace__order *b)
{
    uint64_t equal = 0, run;

    for (uint64_t at = 0; at < a->rows; at++)
        equal += pace__order_row(a, at, &run) == pace__order_row(b, at, &run);
    return equal;
}

static void equal_arguments_give_equal_orders(void **state)
{
    (void)state;
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        pace__order a = pace__order_make(10007, 42, epoch), b = pace__order_make(10007, 42, epoch);

        assert_int_equal(count_equal(&a, &b), 10007);
    }
}

/* Of 40 blocks about one stays in place by chance. */
static void epochs_and_seeds_differ(void **state)
{
    pace__order first = pace__order_make(40 * BLOCK, 42, 0);

    (void)state;
    for (uint64_t i = 1; i < 20; i++) {
        pace__order epoch = pace__order_make(40 * BLOCK, 42, i),
                    seed = pace__order_make(40 * BLOCK, 42 + i, 0);

        assert_in_range(count_equal(&first, &epoch), 0, 6 * BLOCK);
        assert_in_range(count_equal(&first, &seed), 0, 6 * BLOCK);
    }
}

/* The rows behind the last whole block end every epoch. */
static void rows_left_over_come_last(void **state)
{
    enum { ROWS = 8 * BLOCK + 5 };

    (void)state;
    for (uint64_t epoch = 0; epoch < 30; epoch++) {
        pace__order order = pace__order_make(ROWS, 7, epoch);
        uint64_t run;

        assert_every_row_once(&order, ROWS, 7, epoch);
        assert_int_equal(pace__order_row(&order, 8 * BLOCK, &run), 8 * BLOCK);
        assert_int_equal(run, 5);
    }
}

/* A rough look: where each block goes, and which block follows it. */
static void the_permutation_looks_uniform(void **state)
{
    enum { BLOCKS = 24, EPOCHS = 4800 };
    static unsigned place[BLOCKS][BLOCKS], follower[BLOCKS][BLOCKS];
    const double expected = (double)EPOCHS / BLOCKS,
                 expected_pairs = (double)EPOCHS * (BLOCKS - 1) / (BLOCKS * (BLOCKS - 1));

    (void)state;
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        pace__order order = pace__order_make(BLOCKS * BLOCK, 5, epoch);
        uint64_t run, before = BLOCKS;

        for (uint64_t i = 0; i < BLOCKS; i++) {
            uint64_t block = pace__order_row(&order, i * BLOCK, &run) / BLOCK;

            place[block][i]++;
            if (before < BLOCKS)
                follower[before][block]++;
            before = block;
        }
    }
    for (int block = 0; block < BLOCKS; block++) {
        double square = 0, pairs = 0;

        for (int i = 0; i < BLOCKS; i++) {
            square += (place[block][i] - expected) * (place[block][i] - expected) / expected;
            if (i != block)
                pairs += (follower[block][i] - expected_pairs) * (follower[block][i] - expected_pairs) /
                         expected_pairs;
        }
        /* 23 and 22 degrees of freedom: above 60 once in 30,000 tries. */
        if (square > 60 || pairs > 60)
            fail_msg("block %d: chi-square of places %g, of followers %g", block, square, pairs);
    }
}

/* A set that fills many disks: positions far apart still map to different rows within range. */
static void large_sets_work(void **state)
{
    const uint64_t rows = (UINT64_C(1) << 40) + 12345;
    pace__order order = pace__order_make(rows, 3, 1);
    pace__random random = pace__random_at(1, 2);
    uint64_t run, before = UINT64_MAX;

    (void)state;
    for (int i = 0; i < 10000; i++) {
        uint64_t at = pace__random_below(&random, rows), row = pace__order_row(&order, at, &run);

        assert_true(row < rows && run >= 1 && run <= BLOCK);
        assert_true(row != before);
        before = row;
    }
}

static void sequential_is_the_stored_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        pace__order order = pace__order_sequential(sizes[i]);
        uint64_t run;

        assert_every_row_once(&order, sizes[i], 0, 0);
        for (uint64_t at = 0; at < sizes[i]; at++)
            assert_int_equal(pace__order_row(&order, at, &run), at);
    }
}

/* Blocks of one row: no two rows stay neighbours, none is left over, and all are as good as whole blocks. */
static void single_rows_are_permuted(void **state)
{
    uint64_t run, neighbours = 0, moved = 0;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            pace__order order = pace__order_make_blocks(sizes[i], 1, 7, epoch);

            assert_every_row_once(&order, sizes[i], 7, epoch);
        }
    }
    pace__order order = pace__order_make_blocks(10007, 1, 9, 3);

    for (uint64_t at = 0, last = UINT64_MAX - 1; at < 10007; at++) {
        uint64_t row = pace__order_row(&order, at, &run);

        assert_int_equal(run, 1);
        neighbours += row == last + 1;
        moved += row != at;
        last = row;
    }
    assert_in_range(neighbours, 0, 12); /* 1 by chance */
    assert_in_range(moved, 9990, 10007);
}

/* Blocks of another size are the same permutation of more or fewer blocks. */
static void block_sizes_share_the_permutation(void **state)
{
    pace__order large = pace__order_make(40 * BLOCK, 3, 5), single = pace__order_make_blocks(40, 1, 3, 5);
    uint64_t run;

    (void)state;
    for (uint64_t at = 0; at < 40; at++)
        assert_int_equal(pace__order_row(&large, at * BLOCK, &run),
                         pace__order_row(&single, at, &run) * BLOCK);
}

/* The order of one case, for ever: another one would make runs of different versions differ silently. */
static void the_order_is_pinned(void **state)
{
    static const uint64_t blocks[2][13] = {{6, 3, 4, 10, 2, 1, 5, 8, 7, 11, 0, 9, 12},
                                           {9, 2, 1, 10, 0, 3, 4, 11, 6, 7, 8, 5, 12}};

    (void)state;
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        pace__order order = pace__order_make(12 * BLOCK + 100, 1, epoch);
        uint64_t at = 0, run;

        for (size_t i = 0; i < 13; i++, at += run)
            assert_int_equal(pace__order_row(&order, at, &run), blocks[epoch][i] * BLOCK);
    }
    assert_int_equal(BLOCK, 512);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_comes_once),
        cmocka_unit_test(no_rows_are_an_order_too),
        cmocka_unit_test(runs_are_consecutive),
        cmocka_unit_test(blocks_stay_whole),
        cmocka_unit_test(equal_arguments_give_equal_orders),
        cmocka_unit_test(epochs_and_seeds_differ),
        cmocka_unit_test(rows_left_over_come_last),
        cmocka_unit_test(the_permutation_looks_uniform),
        cmocka_unit_test(large_sets_work),
        cmocka_unit_test(sequential_is_the_stored_order),
        cmocka_unit_test(single_rows_are_permuted),
        cmocka_unit_test(block_sizes_share_the_permutation),
        cmocka_unit_test(the_order_is_pinned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
