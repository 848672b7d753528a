/* What becomes of a job that has lost a process. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "train/restart.h"

static void a_finished_job_needs_no_restart(void **state)
{
    (void)state;
    for (int stopped = 0; stopped < 2; stopped++) {
        pace__lost_job lost = {
            .finished = true, .stopped = stopped, .fruitless = 0, .max_restarts = stopped ? 0 : 3};

        assert_int_equal(pace__restart_after(&lost).kind, PACE__RESTART_NOT_NEEDED);
    }
}

static void it_is_given_up_when_nothing_helps(void **state)
{
    (void)state;
    assert_int_equal(pace__restart_after(&(pace__lost_job){.fruitless = 2, .max_restarts = 3}).kind,
                     PACE__RESTART_AGAIN);
    assert_int_equal(pace__restart_after(&(pace__lost_job){.fruitless = 3, .max_restarts = 3}).kind,
                     PACE__RESTART_NO_MORE);
    assert_int_equal(pace__restart_after(&(pace__lost_job){.fruitless = 0, .max_restarts = 0}).kind,
                     PACE__RESTART_NO_MORE);
    assert_int_equal(pace__restart_after(&(pace__lost_job){.stopped = true, .max_restarts = 3}).kind,
                     PACE__RESTART_NO_MORE);
}

static void pauses_grow(void **state)
{
    static const double wanted[] = {0, 1, 2, 4, 8, 16, 30, 30, 30};

    (void)state;
    for (int64_t fruitless = 0; fruitless < 9; fruitless++) {
        pace__restart next =
            pace__restart_after(&(pace__lost_job){.fruitless = fruitless, .max_restarts = 1000});

        assert_int_equal(next.kind, PACE__RESTART_AGAIN);
        assert_true(next.pause_s == wanted[fruitless]);
    }
    assert_true(pace__restart_after(&(pace__lost_job){.fruitless = INT64_MAX - 1, .max_restarts = INT64_MAX})
                    .pause_s == 30);
}

/* A checkpoint that was lost and is written again is no reason to go on for ever. */
static void what_was_saved_before_is_no_progress(void **state)
{
    uint64_t furthest = 0;

    (void)state;
    assert_false(pace__restart_progress(&furthest, 0, false));
    assert_true(pace__restart_progress(&furthest, 100, true));
    assert_true(pace__restart_progress(&furthest, 200, true));
    for (int i = 0; i < 3; i++) { /* that of step 200 is damaged */
        assert_false(pace__restart_progress(&furthest, 100, false));
        assert_false(pace__restart_progress(&furthest, 200, true));
    }
    assert_true(pace__restart_progress(&furthest, 201, true));
    assert_false(pace__restart_progress(&furthest, 300, false)); /* where others have brought it */
    assert_false(pace__restart_progress(&furthest, 300, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_saved_before_is_no_progress),
        cmocka_unit_test(a_finished_job_needs_no_restart),
        cmocka_unit_test(it_is_given_up_when_nothing_helps),
        cmocka_unit_test(pauses_grow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
