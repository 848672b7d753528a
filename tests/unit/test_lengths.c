/* How long texts are: every length has its bin, ends of bins are round, and a share of texts finds the length it needs. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "data/formats/encoding.h"
#include "prep/reviews/lengths.h"

static void every_length_is_in_the_bin_that_ends_behind_it(void **state)
{
    (void)state;
    for (uint64_t words = 0; words <= PACE__TEXT_LENGTH_MAX; words++) {
        unsigned bin = pace__length_bin(words);

        assert_true(bin < PACE__LENGTH_BINS - 1);
        assert_true(words <= pace__length_bin_end(bin));
        assert_true(bin == 0 || words > pace__length_bin_end(bin - 1));
    }
    assert_int_equal(pace__length_bin(PACE__TEXT_LENGTH_MAX + 1), PACE__LENGTH_BINS - 1);
    assert_int_equal(pace__length_bin(UINT64_MAX), PACE__LENGTH_BINS - 1);
}

static void ends_of_bins_are_round(void **state)
{
    (void)state;
    assert_int_equal(pace__length_bin_end(pace__length_bin(0)), 10);
    assert_int_equal(pace__length_bin_end(pace__length_bin(11)), 20);
    assert_int_equal(pace__length_bin_end(pace__length_bin(991)), 1000);
    assert_int_equal(pace__length_bin_end(pace__length_bin(1001)), 1100);
    assert_int_equal(pace__length_bin_end(pace__length_bin(10000)), 10000);
    assert_int_equal(pace__length_bin_end(pace__length_bin(10001)), 11000);
    assert_int_equal(pace__length_bin_end(pace__length_bin(PACE__TEXT_LENGTH_MAX)), PACE__TEXT_LENGTH_MAX);
}

static void a_share_of_the_texts_has_a_length(void **state)
{
    uint64_t counts[PACE__LENGTH_BINS] = {0};

    (void)state;
    assert_int_equal(pace__length_of_share(counts, 0.95), 0);
    for (uint64_t words = 1; words <= 100; words++)
        counts[pace__length_bin(words)]++;
    assert_int_equal(pace__length_texts(counts), 100);
    assert_int_equal(pace__length_of_share(counts, 0.95), 100);
    assert_int_equal(pace__length_of_share(counts, 0.9), 90);
    assert_int_equal(pace__length_of_share(counts, 0.91), 100);
    assert_int_equal(pace__length_of_share(counts, 0), 10);
}

static void no_row_has_room_for_the_longest_texts(void **state)
{
    uint64_t counts[PACE__LENGTH_BINS] = {0};

    (void)state;
    counts[pace__length_bin(UINT64_MAX)] = 6;
    counts[pace__length_bin(300)] = 94;
    assert_int_equal(pace__length_of_share(counts, 0.94), 300);
    assert_int_equal(pace__length_of_share(counts, 0.95), 0);
}

static void rows_have_room_for_most_texts(void **state)
{
    uint64_t counts[PACE__LENGTH_BINS] = {0};

    (void)state;
    assert_int_equal(pace__length_of_rows(counts), 100);
    counts[pace__length_bin(100)] = 80;
    counts[pace__length_bin(240)] = 20;
    assert_int_equal(pace__length_of_rows(counts), 100); /* a fifth is cut */
    counts[pace__length_bin(240)]++;
    assert_int_equal(pace__length_of_rows(counts), 240);
    counts[pace__length_bin(5000)] = 20;
    assert_int_equal(pace__length_of_rows(counts), 1000);
    counts[pace__length_bin(240)] = UINT64_C(4)
                                    << 20; /* times 240 words of 4 bytes, that is less than 4 GiB */
    assert_int_equal(pace__length_of_rows(counts), 240);
    counts[pace__length_bin(240)] = UINT64_C(8) << 20;
    assert_int_equal(pace__length_of_rows(counts), 120);
    counts[pace__length_bin(240)] = UINT64_C(1) << 40;
    assert_int_equal(pace__length_of_rows(counts), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_is_in_the_bin_that_ends_behind_it),
        cmocka_unit_test(ends_of_bins_are_round),
        cmocka_unit_test(a_share_of_the_texts_has_a_length),
        cmocka_unit_test(rows_have_room_for_most_texts),
        cmocka_unit_test(no_row_has_room_for_the_longest_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
