/* The largest of some numbers: by every set of kernels, wherever it is, at any alignment. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/random.h"
#include "math/scan.h"

#define NUMBERS 400
#define OFFSETS 5

static void expect_largest(const uint32_t *values, size_t count, uint32_t largest)
{
    for (int set = PACE_KERNELS_PLAIN; set < PACE__KERNELS_END; set++) {
        if (pace_kernels_run(set) && pace__scan_of(set)->largest_u32(values, count) != largest)
            fail_msg("kernels %s, %zu numbers: not %u", pace_kernels_name(set), count, largest);
    }
}

/* What is in front of the first and behind the last one is larger, and does not count. */
static void the_largest_is_found_anywhere(void **state)
{
    static const uint32_t largest[] = {1000, INT32_MAX, (uint32_t)INT32_MAX + 1, UINT32_MAX - 1};
    uint32_t values[NUMBERS];
    pace__random random = pace__random_at(5, 1);

    (void)state;
    for (size_t count = 1; count < NUMBERS - OFFSETS; count++) {
        size_t begin = count % OFFSETS, at = begin + pace__random_below(&random, count);

        for (size_t i = 0; i < NUMBERS; i++)
            values[i] =
                i >= begin && i < begin + count ? (uint32_t)pace__random_below(&random, 1000) : UINT32_MAX;
        for (size_t i = 0; i < 4; i++) {
            values[at] = largest[i];
            expect_largest(values + begin, count, largest[i]);
        }
    }
}

static void of_nothing_it_is_0(void **state)
{
    (void)state;
    expect_largest(NULL, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_is_found_anywhere),
        cmocka_unit_test(of_nothing_it_is_0),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
