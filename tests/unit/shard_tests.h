/*
 * shard_tests.h - tests of shards for rows of either length, and what they say of a shard's counts. Include it behind
 * <cmocka.h>.
 *
 *     static void my_test(void **state)
 *     {
 *         unsigned dim = dim_of(state);
 *         ...
 *     }
 *     OF_ROWS(my_test)
 */
#ifndef UNIT_SHARD_TESTS_H
#define UNIT_SHARD_TESTS_H

#include "ps/shard.h"

/* Parameters of a key: almost every test is for either, and finds its own in its state. */
static const unsigned dims[] = {1, 3};

static inline unsigned dim_of(void **state)
{
    return *(const unsigned *)*state;
}

/* A test for either dim. */
#define OF_ROWS(test)                                                                                        \
    {#test " (dim 1)", test, NULL, NULL, (void *)&dims[0]},                                                  \
    {                                                                                                        \
#test " (dim 3)", test, NULL, NULL, (void *)&dims[1]                                                 \
    }

static inline uint64_t sum_staleness(const pace__shard_stats *stats)
{
    uint64_t sum = 0;

    for (int i = 0; i < PACE__STALENESS_BINS; i++)
        sum += stats->staleness[i];
    return sum;
}

#endif
