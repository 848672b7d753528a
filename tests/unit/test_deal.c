/* Shares of a step by words: whole, in order, even, and never more rows than there is room for. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/random.h"
#include "shares/deal.h"

#define ROWS_MAX 600

static uint64_t sum_of(const uint32_t *words, uint64_t rows)
{
    uint64_t sum = 0;

    for (uint64_t row = 0; row < rows; row++)
        sum += words[row];
    return sum;
}

/* The shares of all workers are the step's rows, one behind the other; returns the words of the largest. */
static uint64_t walk(const uint32_t *words, uint64_t rows, unsigned workers, uint64_t rows_max)
{
    uint64_t place = 0, most = 0;

    for (unsigned worker = 0; worker < workers; worker++) {
        uint64_t begin, share;

        pace__deal(words, rows, &(pace__hands){.workers = workers, .rows_max = rows_max}, worker, &begin,
                   &share);
        assert_int_equal(begin, place);
        assert_true(share <= rows_max);
        uint64_t mine = sum_of(words + begin, share);

        most = mine > most ? mine : most;
        place += share;
    }
    assert_int_equal(place, rows);
    return most;
}

static void shares_are_the_step_in_order(void **state)
{
    pace__random random = pace__random_at(1, 0);
    uint32_t words[ROWS_MAX];

    (void)state;
    for (int turn = 0; turn < 3000; turn++) {
        uint64_t batch = 1 + pace__random_below(&random, ROWS_MAX),
                 rows = 1 + pace__random_below(&random, batch);
        unsigned workers = 1 + (unsigned)pace__random_below(&random, turn % 2 ? 4 : 40);
        uint32_t longest = turn % 3 ? 100 : 1 + (uint32_t)pace__random_below(&random, UINT32_MAX - 1);

        for (uint64_t row = 0; row < rows; row++)
            words[row] = 1 + (uint32_t)pace__random_below(&random, turn % 5 || row % 9 == 0 ? longest : 1);
        walk(words, rows, workers, pace__deal_rows_max(batch, workers));
    }
}

/* Rows of one length are counted: nobody has two more than another. */
static void equal_rows_make_equal_shares(void **state)
{
    uint32_t words[ROWS_MAX];

    (void)state;
    for (size_t row = 0; row < ROWS_MAX; row++)
        words[row] = 7;
    for (unsigned workers = 1; workers < 70; workers++) {
        for (uint64_t rows = 1; rows <= 300; rows += 23) {
            uint64_t most = walk(words, rows, workers, pace__deal_rows_max(rows, workers));

            assert_true(most <= 7 * ((rows + workers - 1) / workers + (workers > 1)));
        }
    }
}

/* No share is further from an even one than the longest row. */
static void shares_are_even(void **state)
{
    pace__random random = pace__random_at(2, 0);
    uint32_t words[ROWS_MAX];

    (void)state;
    for (int turn = 0; turn < 500; turn++) {
        unsigned workers = 2 + (unsigned)pace__random_below(&random, 7);

        for (size_t row = 0; row < 256; row++)
            words[row] = 1 + (uint32_t)pace__random_below(&random, 100);
        uint64_t most = walk(words, 256, workers, 256);

        assert_true(most <= sum_of(words, 256) / workers + 100);
    }
}

/* All words at one end: the others get as many rows as they have room for. */
static void room_comes_before_evenness(void **state)
{
    uint32_t words[90];
    uint64_t begin, share;
    pace__hands hands = {.workers = 3, .rows_max = pace__deal_rows_max(90, 3)};

    (void)state;
    assert_int_equal(hands.rows_max, 45);
    for (size_t row = 0; row < 90; row++)
        words[row] = row < 6 ? 1000 : 1;
    pace__deal(words, 90, &hands, 0, &begin, &share);
    assert_true(begin == 0 && share == 2);
    pace__deal(words, 90, &hands, 1, &begin, &share);
    assert_true(begin == 2 && share == 43);
    pace__deal(words, 90, &hands, 2, &begin, &share);
    assert_true(begin == 45 && share == 45);
}

/* A worker that is to have a tenth of the work has a tenth of the words, and all shares are the step. */
static void shares_by_speed_are_of_words(void **state)
{
    pace__random random = pace__random_at(3, 0);
    uint32_t words[ROWS_MAX], shares[] = {180, 60, 360};
    pace__hands hands = {.workers = 3, .shares = shares, .batch = 600, .rows_max = 600};

    (void)state;
    for (int turn = 0; turn < 300; turn++) {
        uint64_t rows = 200 + pace__random_below(&random, 401), place = 0;

        for (uint64_t row = 0; row < rows; row++)
            words[row] = 1 + (uint32_t)pace__random_below(&random, row % 3 ? 40 : 200);
        double all = (double)sum_of(words, rows);

        for (unsigned worker = 0; worker < 3; worker++) {
            uint64_t begin, share;

            pace__deal(words, rows, &hands, worker, &begin, &share);
            assert_int_equal(begin, place);
            double part = (double)sum_of(words + begin, share) / all, wanted = shares[worker] / 600.;

            if (part < wanted - 200 / all ||
                part > wanted + 200 / all) /* a row of the longest, at the cuts */
                fail_msg("turn %d: worker %u has %g of the words, wanted are %g", turn, worker, part, wanted);
            place += share;
        }
        assert_int_equal(place, rows);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_the_step_in_order), cmocka_unit_test(equal_rows_make_equal_shares),
        cmocka_unit_test(shares_by_speed_are_of_words), cmocka_unit_test(shares_are_even),
        cmocka_unit_test(room_comes_before_evenness),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
