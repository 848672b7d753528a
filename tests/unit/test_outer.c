/* Rows that several workers have trained by steps of their own, merged. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/random.h"
#include "optim/outer.h"

#include <math.h>
#include <string.h>

#define DIM   70 /* more than is merged at a time */
#define SIDES 4

static const pace__outer plain = {1, 0};

static double gain(uint32_t a, uint32_t b, uint32_t c, uint32_t steps)
{
    pace__outer_side sides[] = {{NULL, a}, {NULL, b}, {NULL, c}};

    return pace__outer_gain(sides, 3, steps);
}

static void assert_near(double found, double expected)
{
    if (!(fabs(found - expected) < 1e-5))
        fail_msg("%.9g, not %.9g", found, expected);
}

/* From a mean, of what all have met in every step, to a sum, of what each has met at its own time. */
static void gains(void **state)
{
    (void)state;
    assert_true(gain(0, 0, 0, 9) == 0);
    assert_true(gain(1, 0, 0, 9) == 1 && gain(0, 0, 5, 9) == 1 && gain(0, 9, 0, 9) == 1);
    assert_near(gain(9, 9, 9, 9), 1.0 / 3);
    assert_near(gain(9, 9, 0, 9), 1.0 / 2);
    assert_near(gain(9, 8, 9, 9), 9.0 / 26);
    assert_near(gain(1, 1, 0, 1000), 1999.0 / 2000);
    assert_near(gain(1, 1, 1, 1), 1.0 / 3);
    for (uint32_t a = 1; a <= 20; a++)
        for (uint32_t b = 1; b <= 20; b++)
            assert_true(gain(a, b, 0, 20) >= 0.5 - 1e-12 && gain(a, b, 0, 20) < 1);
}

typedef struct rows {
    float before[3 * DIM], sides[SIDES][2 * DIM];
} rows;

static rows make(uint64_t seed)
{
    pace__random random = pace__random_at(seed, 1);
    rows made;

    for (size_t i = 0; i < 3 * DIM; i++)
        made.before[i] = (float)pace__random_unit(&random) - 0.5f;
    for (size_t side = 0; side < SIDES; side++)
        for (size_t i = 0; i < 2 * DIM; i++)
            made.sides[side][i] = (float)pace__random_unit(&random);
    return made;
}

/* Against a plain computation in double precision. */
static void merged_rows(void **state)
{
    static const uint32_t steps[][SIDES] = {{8, 8, 8, 8}, {0, 3, 0, 0}, {1, 0, 2, 8}, {8, 8, 7, 8}};
    pace__outer outer = {0.7f, 0.6f};

    (void)state;
    for (size_t s = 0; s < 4; s++) {
        rows made = make(s);
        float row[3 * DIM];
        pace__outer_side sides[SIDES];
        double all = 0;

        for (size_t i = 0; i < SIDES; i++) {
            sides[i] = (pace__outer_side){steps[s][i] ? made.sides[i] : NULL, steps[s][i]};
            all += steps[s][i];
        }
        memcpy(row, made.before, sizeof row);
        pace__outer_merge(&outer, sides, SIDES, 8, DIM, 2, row);
        double by = pace__outer_gain(sides, SIDES, 8);

        for (size_t i = 0; i < DIM; i++) {
            double change = 0, state_mean = 0;

            for (size_t side = 0; side < SIDES; side++) {
                change += steps[s][side] ? by * ((double)made.sides[side][i] - made.before[i]) : 0;
                state_mean += steps[s][side] * made.sides[side][DIM + i] / all;
            }
            double velocity = 0.6 * made.before[2 * DIM + i] + change;

            assert_near(row[2 * DIM + i], velocity);
            assert_near(row[i], made.before[i] + 0.7 * (change + 0.6 * velocity));
            assert_near(row[DIM + i], state_mean);
        }
    }
}

/* Whoever was alone gets its state back, to the bit; and statistics have no momentum. */
static void one_side_alone(void **state)
{
    rows made = make(9);
    pace__outer_side sides[2] = {{0}, {made.sides[0], 5}};
    float row[3 * DIM];

    (void)state;
    memcpy(row, made.before, sizeof row);
    pace__outer_merge(&plain, sides, 2, 8, DIM, 2, row);
    assert_memory_equal(row + DIM, made.sides[0] + DIM, DIM * sizeof *row);
    for (size_t i = 0; i < DIM; i++)
        assert_near(row[i], made.sides[0][i]);
    memcpy(row, made.before, sizeof row);
    pace__outer_merge_statistics(sides, 2, 8, DIM, row);
    for (size_t i = 0; i < DIM; i++)
        assert_near(row[i], made.sides[0][i]);
    assert_memory_equal(row + DIM, made.before + DIM, 2 * DIM * sizeof *row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gains),
        cmocka_unit_test(merged_rows),
        cmocka_unit_test(one_side_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
