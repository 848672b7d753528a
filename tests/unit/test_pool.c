/* Numbers that workers add up in the middle of a step: any count, the same bits for all. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "roles/pool.h"
#include "threads/thread.h"

#include "support.h"

#define WORKERS 3
#define SECOND  UINT64_C(1000000000)

static const size_t counts[] = {1, 2, 3, 64, 65, 100, 1, 8191, PACE__POOL_MAX, 7};

static float value_of(int worker, size_t round, size_t at)
{
    pace__random random = pace__random_at(1000 * round + (uint64_t)worker, at);

    return (float)ldexp(pace__random_unit(&random) - 0.5, (int)pace__random_below(&random, 30));
}

static float expected_sum(size_t round, size_t at)
{
    float sum = value_of(0, round, at);

    for (int worker = 1; worker < WORKERS; worker++)
        sum += value_of(worker, round, at);
    return sum;
}

static pace_status work(void *arg, int worker)
{
    pace__link **links = arg;
    static float all[WORKERS][PACE__POOL_MAX];
    float *values = all[worker];
    pace__pool pool = {0};

    require(pace__pool_open(&pool, WORKERS, links[worker], &said_log) == PACE_OK);
    for (size_t round = 0; round < sizeof counts / sizeof *counts; round++) {
        for (size_t i = 0; i < counts[round]; i++)
            values[i] = value_of(worker, round, i);
        require(pace__pool_sum(&pool, values, counts[round]) == PACE_OK);
        for (size_t i = 0; i < counts[round]; i++)
            require(values[i] == expected_sum(round, i));
    }
    pace__pool_close(&pool);
    return PACE_OK;
}

static void sums(void **state)
{
    pace__link_options options = {60 * SECOND, 60 * SECOND, .log = &said_log};
    pace__link *links[WORKERS];

    (void)state;
    assert_ok(pace__link_open_threads(WORKERS, WORKERS, &options, links));
    assert_ok(pace__team(WORKERS, work, links, &said_log));
    for (int i = 0; i < WORKERS; i++)
        pace__link_close(links[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
