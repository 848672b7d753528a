/* Epochs to a loss, as a study of convergence has measured them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "plan/converge.h"

#include <math.h>
#include <paceline/train.h>
#include <string.h>

#define ROW(mode, workers, batch, epochs)                                                                    \
    "{\"mode\":\"" mode "\",\"workers\":" #workers ",\"batch\":" #batch                                      \
    ",\"epochs_to_threshold\":{\"median\":" #epochs ",\"low\":1,\"high\":9}}"

static const char table[] =
    "{\"study\":\"converge\",\"sections\":["
    "{\"section\":\"other\",\"kind\":\"scaling\",\"rows\":[]},"
    "{\"section\":\"converge\",\"kind\":\"converge\",\"threshold\":0.46,\"rows\":[" ROW(
        "allreduce", 1, 100,
        2) "," ROW("allreduce", 4, 100,
                   4) "," ROW("ps-sync", 2, 10000,
                              12) "," ROW("ps-async", 4, 100,
                                          6) "," ROW("local", 1, 512,
                                                     1.5) ","
                                                          "{\"mode\":\"ps-async\",\"workers\":8,\"batch\":"
                                                          "100,\"epochs_to_threshold\":null}]}]}";

static double epochs(const pace__convergence *found, int mode, int workers, uint64_t batch)
{
    pace__setup setup = {.mode = mode, .workers = workers, .batch = batch};

    return pace__epochs_to_loss(found, &setup, true);
}

static void is_near(double value, double wanted)
{
    if (!(fabs(value - wanted) < 1e-6 * wanted))
        fail_msg("%g instead of %g", value, wanted);
}

static pace__convergence found;

static void synchronous_steps_go_by_their_rows(void **state)
{
    (void)state;
    assert_int_equal(pace__convergence_parse(table, "t", NULL, &found), PACE_OK);
    is_near(found.loss, 0.46);
    assert_int_equal(found.count, 5);                        /* without the one that never came there */
    is_near(epochs(&found, PACE_MODE_ALLREDUCE, 7, 100), 3); /* the mean of both */
    is_near(epochs(&found, PACE_MODE_PS_SYNC, 2, 10000), 12);
    is_near(epochs(&found, PACE_MODE_PS_SYNC, 2, 1000), 6); /* halfway in logarithms */
    assert_true(isnan(epochs(&found, PACE_MODE_PS_SYNC, 2, 20000)));
    assert_true(isnan(epochs(&found, PACE_MODE_ALLREDUCE, 2, 50)));
}

static void elsewhere_workers_count(void **state)
{
    (void)state;
    assert_int_equal(pace__convergence_parse(table, "t", NULL, &found), PACE_OK);
    is_near(epochs(&found, PACE_MODE_PS_ASYNC, 4, 100), 6);
    is_near(epochs(&found, PACE_MODE_PS_ASYNC, 1, 100),
            3); /* one worker waits for nobody: that is synchronous */
    is_near(epochs(&found, PACE_MODE_PS_ASYNC, 2, 100), 2 * sqrt(3));
    assert_true(isnan(epochs(&found, PACE_MODE_PS_ASYNC, 8, 100)));
    assert_true(isnan(epochs(&found, PACE_MODE_PS_ASYNC, 4, 1000)));
    assert_true(isnan(epochs(&found, PACE_MODE_LOCAL_SGD, 4, 100)));
    is_near(epochs(&found, PACE_MODE_LOCAL, 1, 512), 1.5);
    assert_true(isnan(epochs(&found, PACE_MODE_LOCAL, 1, 100))); /* row after row is another rule */
}

static void what_is_no_such_table_is_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "[1]",
        "{\"sections\":[{\"kind\":\"scaling\",\"rows\":[]}]}",
        "{\"sections\":[{\"kind\":\"converge\",\"threshold\":1,\"rows\":[]}]}",
        "{\"sections\":[{\"kind\":\"converge\",\"rows\":[" ROW("local", 1, 512, 2) "]}]}",
        "{\"sections\":[{\"kind\":\"converge\",\"threshold\":1,\"rows\":[" ROW("fast", 1, 512, 2) "]}]}"};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(pace__convergence_parse(wrong[i], "t", NULL, &found), PACE_BAD_DATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synchronous_steps_go_by_their_rows),
        cmocka_unit_test(elsewhere_workers_count),
        cmocka_unit_test(what_is_no_such_table_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
