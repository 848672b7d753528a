/* Numbers of click logs: draws from a Zipf law, and the functions that give equal bits everywhere. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "gen/elementary.h"
#include "gen/zipf.h"

#include <math.h>
#include <stdbool.h>

static void check_count(double seen, double probability, double draws)
{
    assert_true(fabs(seen - probability * draws) < 5 * sqrt(draws * probability * (1 - probability)));
}

/* Whether the rank is in a range's first half: there the law's slope inside of ranges shows. */
static bool in_first_half(const pace__zipf *zipf, uint32_t rank)
{
    for (uint32_t i = 0; i < zipf->cells - zipf->head; i++) {
        uint32_t from_start = rank - zipf->ranges[i].start;

        if (from_start < zipf->ranges[i].width)
            return from_start < zipf->ranges[i].width / 2;
    }
    return false;
}

static void test_zipf_ranges_are_exact(void **state)
{
    enum { COUNT = 5000, DRAWS = 2000000 };
    static pace__zipf zipf;
    double first_half = 0, tail = 0, total = 0, first_half_seen = 0, tail_seen = 0;
    pace__random random = pace__random_at(19, 0);

    (void)state;
    pace__zipf_init(&zipf, COUNT, 1.1);
    for (uint32_t rank = 0; rank < COUNT; rank++) {
        double mass = pow(rank + 1, -1.1);

        total += mass;
        tail += rank < zipf.head ? 0 : mass;
        first_half += in_first_half(&zipf, rank) ? mass : 0;
    }
    for (int i = 0; i < DRAWS; i++) {
        uint32_t rank = pace__zipf_draw(&zipf, pace__random_next(&random), &random);

        tail_seen += rank >= zipf.head;
        first_half_seen += in_first_half(&zipf, rank);
    }
    check_count(tail_seen, tail / total, DRAWS);
    check_count(first_half_seen, first_half / tail, tail_seen);
}

static void test_zipf_is_exact(void **state)
{
    enum { COUNT = 5000, DRAWS = 1000000, GROUPS = 64 };
    static pace__zipf zipf;
    double expected[GROUPS] = {0}, seen[GROUPS] = {0}, total = 0;
    pace__random random = pace__random_at(17, 0);

    (void)state;
    pace__zipf_init(&zipf, COUNT, 1.1);
    /* Groups by square root: some are in the head, most are pieces of ranges. */
    for (int rank = 0; rank < COUNT; rank++) {
        expected[(int)(sqrt(rank) * GROUPS / sqrt(COUNT))] += pow(rank + 1, -1.1);
        total += pow(rank + 1, -1.1);
    }
    for (int i = 0; i < DRAWS; i++) {
        uint32_t rank = pace__zipf_draw(&zipf, pace__random_next(&random), &random);

        assert_true(rank < COUNT);
        seen[(int)(sqrt(rank) * GROUPS / sqrt(COUNT))]++;
    }
    for (int g = 0; g < GROUPS; g++)
        check_count(seen[g], expected[g] / total, DRAWS);
}

static void test_zipf_limits(void **state)
{
    static const uint32_t counts[] = {1, 2, 3, PACE__ZIPF_HEAD, PACE__ZIPF_HEAD + 1, 10131227, UINT32_MAX};
    static pace__zipf zipf;
    pace__random random = pace__random_at(1, 1);

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        pace__zipf_init(&zipf, counts[i], 0.5);
        for (int draw = 0; draw < 10000; draw++)
            assert_true(pace__zipf_draw(&zipf, pace__random_next(&random), &random) < counts[i]);
        assert_true(pace__zipf_draw(&zipf, 0, &random) < counts[i]);
        assert_true(pace__zipf_draw(&zipf, UINT64_MAX, &random) < counts[i]);
    }
}

static void test_elementary_functions(void **state)
{
    (void)state;
    for (double x = -699; x < 699; x += 0.137)
        assert_true(fabs(pace__portable_exp(x) / exp(x) - 1) < 1e-13);
    for (double x = 1e-300; x < 1e300; x *= 1.37)
        assert_true(fabs(pace__portable_log(x) - log(x)) < 1e-13 * fmax(1, fabs(log(x))));
    assert_true(pace__portable_log(1) == 0);
    assert_true(pace__portable_exp(0) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zipf_is_exact),
        cmocka_unit_test(test_zipf_ranges_are_exact),
        cmocka_unit_test(test_zipf_limits),
        cmocka_unit_test(test_elementary_functions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
