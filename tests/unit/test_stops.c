/* Jobs that are stopped while somebody is behind: all end, and soon. Ranks are threads; of processes:
 * tests/attack, --only kills. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "jobs.h"

#include "base/clock.h"

/* Of a rank that is waited for in vain; and what no stop of so small a job takes, on a busy machine either. */
#define DEADLINE_S 10.0
#define SOON_S     8.0

static pace_train_config settings(void **state)
{
    tiny_set set =
        tiny_make((tiny_plan){.train = 2000, .test = 100, .ids = 200, .columns = 7, .parts = 2, .seed = 9});

    tiny_write(&set, in(state, "set"));
    tiny_free(&set);
    return (pace_train_config){.data = in(state, "set"),
                               .run = in(state, "run"),
                               .model = PACE_MODEL_LOGREG,
                               .cluster.threads = 1,
                               .cluster.deadline = DEADLINE_S,
                               .optimiser.rule = PACE_ADAGRAD,
                               .length.batch = 20,
                               .length.epochs = 20,
                               .faults.keep = 2,
                               .records.log_every = 1,
                               .records.report = PACE_REPORT_OFF,
                               .seed = 4,
                               .force = true};
}

static void stop_soon(pace_train_config config, layout as, const char *inject)
{
    uint64_t begin = pace__now_ns();

    lay_out(&config, as);
    config.faults.inject = inject;
    interrupt(config, 5);
    if (pace__seconds_since(begin) > SOON_S)
        fail_msg("mode %d, %d workers, %d ps: the stop has taken %.1f s", as.mode, (int)as.workers,
                 (int)as.ps, pace__seconds_since(begin));
}

/* The others have come far enough to stop before it has asked for its first rows. */
static void a_worker_that_begins_late_hears_of_a_stop(void **state)
{
    static const layout layouts[] = {{PACE_MODE_PS_SSP, 2, 1, 1, false},
                                     {PACE_MODE_PS_ASYNC, 2, 2, -1, false},
                                     {PACE_MODE_PS_ASYNC, 3, 0, -1, false},
                                     {PACE_MODE_PS_SSP, 3, 1, 2, true},
                                     {PACE_MODE_ALLREDUCE, 3, -1, -1, false}};
    pace_train_config config = settings(state);

    for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++)
        stop_soon(config, layouts[l], "stall:worker1=1@start");
}

/* One verdict lies where the chief has not looked for it, and the next cannot leave before it does. */
static void an_evaluator_with_scores_hears_of_a_stop(void **state)
{
    static const layout layouts[] = {{PACE_MODE_PS_ASYNC, 2, 1, -1, true}, {PACE_MODE_PS_SSP, 2, 0, 1, true}};
    pace_train_config config = settings(state);

    config.records.eval_every = 1;
    for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++)
        stop_soon(config, layouts[l], "stall:evaluator=0.3@eval,stall:chief=1.5@checkpoint");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_worker_that_begins_late_hears_of_a_stop),
        TEST(an_evaluator_with_scores_hears_of_a_stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
