/* Backup workers, in jobs whose ranks are threads: the model of W - K workers to the byte, whoever is slow or hangs for a
 * while, scored, saved, stopped and resumed. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "thinned.h"
#include "trials.h"

static const trial trials[] = {
    {PACE_MODEL_LOGREG, "clicks", 20, 0},
    {PACE_MODEL_LOGREG, "clicks", 7, 0.001},
    {PACE_MODEL_RNN, "texts", 12, 0}, /* whose rows are dealt out by words */
    {PACE_MODEL_CNN, "pictures", BATCH, 0},
};
#define TRIALS (sizeof trials / sizeof *trials)

/* Statistics over all workers would wait for who hangs. */
static pace_train_config job_of(void **state, const trial *what)
{
    pace_train_config config = config_of(state, what);

    config.own.cnn.bn = PACE_BN_LOCAL;
    return config;
}

static pace_train_config with_backups(pace_train_config config, int64_t workers, int64_t ps, int64_t backups)
{
    lay_out(&config, (layout){PACE_MODE_PS_SYNC, workers, ps, -1, false});
    config.cluster.backup_workers = backups;
    return config;
}

/* --- the same bytes --- */

static void backups_change_no_byte(void **state)
{
    static const struct {
        int64_t workers, ps, backups;
        const char *inject;
    } jobs[] = {
        {2, 1, 1, NULL},
        {3, 2, 1, NULL},
        {3, 2, 2, "stall:worker2=0.1@step=2,stall:chief=0.1@step=4"},
        {4, 1, 1, "stall:worker1=0.3@step=3,stall:worker3=0.2@step=9"},
        {4, 1, 2, "slow:worker1=50x@step=2..8,slow:worker2=20x"},
        {3, 1, 1, "slow:chief=30x@step=..6,stall:worker1=0.2@step=7"},
    };

    for (size_t t = 0; t < TRIALS; t++) {
        pace_train_config config = job_of(state, &trials[t]);

        for (size_t j = t % THINNED(2); j < sizeof jobs / sizeof *jobs; j += THINNED(2)) {
            pace_train_config plain = with_backups(config, jobs[j].workers - jobs[j].backups, jobs[j].ps, 0);
            pace_train_config backed = with_backups(config, jobs[j].workers, jobs[j].ps, jobs[j].backups);
            pace_train_result expected = train(&plain);

            backed.faults.inject = jobs[j].inject;
            pace_train_result result = train(&backed);

            if (strcmp(result.model_sha256, expected.model_sha256) != 0)
                fail_msg("trial %zu, job %zu: another model", t, j);
            assert_int_equal(result.samples, expected.samples);
            assert_true(fabs(result.train_loss - expected.train_loss) < 1e-9);
        }
    }
}

/* Records, scores and checkpoints come at their steps, on clean states; a stop is heard; another run goes on from there. */
static void chiefs_act_on_clean_states(void **state)
{
    for (size_t t = 0; t < TRIALS; t++) {
        pace_train_config config = with_backups(job_of(state, &trials[t]), 3, 2, 1);

        config.faults.inject = "stall:worker1=0.05@step=2,stall:chief=0.05@step=6,stall:worker2=0.1@step=9";
        ends_like_an_undisturbed_one(state, config, 5, 0);
    }
}

static void early_stops_are_the_same(void **state)
{
    pace_train_config config = job_of(state, &trials[0]);

    config.length.epochs = 40;
    config.length.early_stop = 2;
    config.records.eval_every = 5;
    config.optimiser.lr = 1;
    pace_train_config plain = with_backups(config, 2, 1, 0), backed = with_backups(config, 3, 1, 1);
    pace_train_result expected = train(&plain);

    backed.faults.inject = "slow:worker1=20x,stall:chief=0.05@step=12";
    pace_train_result result = train(&backed);

    assert_true(expected.steps < 40 * 22);
    assert_int_equal(result.steps, expected.steps);
    assert_string_equal(result.model_sha256, expected.model_sha256);
}

/* --- the records --- */

static cJSON *summary_of(void **state)
{
    char *text = get_text(in(state, "run/summary.json"));
    cJSON *summary = cJSON_Parse(text);

    free(text);
    assert_non_null(summary);
    return summary;
}

static int number_of(const cJSON *summary, const char *name)
{
    const cJSON *item = cJSON_GetObjectItem(summary, name);

    assert_true(cJSON_IsNumber(item));
    return item->valueint;
}

static void what_was_computed_twice_is_told(void **state)
{
    pace_train_config config = with_backups(job_of(state, &trials[0]), 3, 1, 1);

    config.faults.inject = "stall:worker1=1.5@step=10"; /* longer than anybody's patience */
    pace_train_result result = train(&config);
    cJSON *summary = summary_of(state);

    assert_int_equal(number_of(summary, "backup_workers"), 1);
    int twice = number_of(summary, "slices_computed_twice");

    assert_true(twice >= 1);
    assert_int_equal(number_of(summary, "samples"), (int)result.samples);
    assert_true(number_of(summary, "rows_computed_twice") >= twice);
    cJSON_Delete(summary);
}

/* --- silence --- */

/* Its slices are computed by others, so that nobody misses it; it comes back to a job that goes on, or to its end. */
static void who_is_silent_is_not_missed(void **state)
{
    pace_train_config config = job_of(state, &trials[0]);
    pace_train_config plain = with_backups(config, 2, 2, 0), backed = with_backups(config, 3, 2, 1);
    sha expected = sha_of(&plain);

    backed.cluster.deadline = 1.5;
    backed.faults.inject = "stall:worker1=5@step=10";
    assert_sha(&backed, expected);
    assert_said("worker1 (rank 1, host");
    assert_said("has given no sign of life for 1.5 s; it is not missed, since others compute its slices");
}

/* More than there are backups: steps do not go on, and the job is lost. So is a chief's, who alone can act. */
static void silence_of_more_is_a_loss(void **state)
{
    static const char *const injected[] = {"stall:worker1=3@step=4,stall:worker2=3@step=4",
                                           "stall:chief=3@step=4"};

    for (size_t i = 0; i < 2; i++) {
        pace_train_config config = with_backups(job_of(state, &trials[0]), 3, 1, 1);
        pace_train_result result;

        config.cluster.deadline = 0.5;
        config.faults.inject = injected[i];
        said_clear();
        assert_failed(train_ranks(&config, NULL, &result), PACE_LOST, "has given no sign of life for");
    }
}

/* --- who cannot --- */

static void other_jobs_are_refused(void **state)
{
    pace_train_config config = with_backups(job_of(state, &trials[0]), 3, 1, 1);
    pace__job_plan plan;

    assert_ok(pace__plan_cluster(&config, &said_log, &plan));
    assert_true(plan.slices == 2 && plan.backups == 1);
    config.cluster.ps = 0;
    assert_failed(pace__plan_cluster(&config, &said_log, &plan), PACE_USAGE,
                  "with --ps 0 a worker that hangs holds up everyone");
    config.cluster.ps = 1;
    config.cluster.backup_workers = 3;
    assert_failed(pace__plan_cluster(&config, &said_log, &plan), PACE_USAGE,
                  "--backup-workers 3 of --workers 3 leaves nobody to back up");
    config.cluster.backup_workers = 1;
    config.mode = PACE_MODE_PS_ASYNC;
    assert_failed(pace__plan_cluster(&config, &said_log, &plan), PACE_USAGE,
                  "in ps-async nobody waits for a slow worker within a step");
    config.mode = PACE_MODE_ALLREDUCE;
    config.cluster.ps = -1;
    assert_failed(pace__plan_cluster(&config, &said_log, &plan), PACE_USAGE,
                  "--backup-workers needs --mode ps-sync with servers");
}

static void pooled_statistics_are_refused(void **state)
{
    pace_train_config config = with_backups(job_of(state, &trials[3]), 3, 1, 1);
    pace_train_result result;

    config.own.cnn.bn = PACE_BN_GLOBAL;
    said_clear();
    assert_int_equal(train_ranks(&config, NULL, &result), PACE_USAGE);
    assert_said("take --bn local");
    said_clear();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_sets, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(backups_change_no_byte),      TEST(chiefs_act_on_clean_states),
        TEST(early_stops_are_the_same),    TEST(what_was_computed_twice_is_told),
        TEST(who_is_silent_is_not_missed), TEST(silence_of_more_is_a_loss),
        TEST(other_jobs_are_refused),      TEST(pooled_statistics_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
