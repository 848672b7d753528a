/* Teams of threads. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "threads/thread.h"

#include "support.h"

#include <stdatomic.h>

typedef struct team_log {
    atomic_int calls[PACE_THREADS_MAX];
    pthread_t ran_on[PACE_THREADS_MAX];
    pace_status result[PACE_THREADS_MAX];
    pthread_barrier_t *together;
} team_log;

static pace_status note(void *arg, int thread)
{
    team_log *team = arg;

    atomic_fetch_add(&team->calls[thread], 1);
    team->ran_on[thread] = pthread_self();
    if (team->together)
        pthread_barrier_wait(team->together);
    return team->result[thread];
}

static void every_number_is_called_once(void **state)
{
    static const int counts[] = {1, 2, 3, 16, PACE_THREADS_MAX};

    (void)state;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        team_log team = {0};

        assert_ok(pace__team(counts[c], note, &team, &said_log));
        for (int i = 0; i < PACE_THREADS_MAX; i++)
            assert_int_equal(team.calls[i], i < counts[c]);
        assert_true(pthread_equal(team.ran_on[counts[c] - 1], pthread_self()));
    }
}

/* A barrier that all must reach: nobody waits for another to end. */
static void members_run_at_the_same_time(void **state)
{
    pthread_barrier_t barrier;
    team_log team = {.together = &barrier};

    (void)state;
    pthread_barrier_init(&barrier, NULL, 12);
    assert_ok(pace__team(12, note, &team, &said_log));
    for (int i = 0; i < 11; i++)
        assert_false(pthread_equal(team.ran_on[i], pthread_self()));
    pthread_barrier_destroy(&barrier);
}

static void the_lowest_failure_is_returned(void **state)
{
    team_log team = {0};

    (void)state;
    team.result[6] = PACE_BAD_DATA; /* the caller's own */
    assert_int_equal(pace__team(7, note, &team, &said_log), PACE_BAD_DATA);
    team.result[4] = PACE_IO;
    assert_int_equal(pace__team(7, note, &team, &said_log), PACE_IO);
    team.result[2] = PACE_FAILED;
    assert_int_equal(pace__team(7, note, &team, &said_log), PACE_FAILED);
    for (int i = 0; i < 7; i++)
        assert_int_equal(team.calls[i], 3); /* a failure does not keep the others from running */
}

static void impossible_numbers_are_refused(void **state)
{
    team_log team = {0};

    (void)state;
    said_clear();
    assert_failed(pace__team(0, note, &team, &said_log), PACE_USAGE, "0 threads");
    assert_failed(pace__team(-3, note, &team, &said_log), PACE_USAGE, "-3 threads");
    assert_failed(pace__team(PACE_THREADS_MAX + 1, note, &team, &said_log), PACE_USAGE, "257 threads");
    assert_int_equal(team.calls[0], 0);
}

static void there_is_at_least_one_core(void **state)
{
    (void)state;
    assert_in_range(pace__cores(), 1, PACE_THREADS_MAX);
}

/* The cores that the process may use, not those that the machine has. */
static void cores_follow_the_affinity(void **state)
{
    cpu_set_t before, one;
    int core = 0;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    while (!CPU_ISSET(core, &before))
        core++;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(pace__cores(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

static pace_status pass_on(void *arg, int thread)
{
    atomic_int *turn = arg;
    unsigned turns = 0;

    while (atomic_load(turn) != thread)
        pace__back_off(&turns);
    atomic_fetch_add(turn, 1);
    return PACE_OK;
}

/* More waiting threads than cores: each in turn gets ahead. */
static void waiting_lets_others_run(void **state)
{
    atomic_int turn = 0;

    (void)state;
    assert_ok(pace__team(40, pass_on, &turn, &said_log));
    assert_int_equal(turn, 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_is_called_once),    cmocka_unit_test(members_run_at_the_same_time),
        cmocka_unit_test(the_lowest_failure_is_returned), cmocka_unit_test(impossible_numbers_are_refused),
        cmocka_unit_test(there_is_at_least_one_core),     cmocka_unit_test(cores_follow_the_affinity),
        cmocka_unit_test(waiting_lets_others_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
