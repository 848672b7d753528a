/* What is due behind a step, by a clock that the test moves, and what becomes of a checkpoint that is begun. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "job/boundary.h"

#include "support.h"

#define KEYS     4
#define SECOND   UINT64_C(1000000000)
#define INTERVAL 10

/* A job of one process that holds four numbers. */
typedef struct lab {
    uint64_t now_ns;
    _Atomic int stop;
    pace_train_config config;
    pace__job job;
    pace__boundary boundary;
    pace_status save_status;
    bool held_back; /* the part is not written yet */
    int saves, looks;
} lab;

static uint64_t read_clock(void *user)
{
    return *(uint64_t *)user;
}

static unsigned one_part(const pace__job *job)
{
    (void)job;
    return 1;
}

static pace_status save(pace__job *job, const char *directory)
{
    lab *all = job->own;
    static const float values[KEYS] = {1, 2, 3, 4};

    all->saves++;
    if (all->save_status)
        return all->save_status;
    return pace__part_write(directory, 0, 1, values, KEYS, 1, &job->saving.manifest.part[0], job->log);
}

static pace_status saved(pace__job *job, bool *whole)
{
    lab *all = job->own;

    all->looks++;
    *whole = !all->held_back;
    return PACE_OK;
}

static pace_status rest(pace__job *job, unsigned *turns)
{
    (void)job;
    (void)turns;
    return PACE_OK;
}

static const pace__strategy strategy = {.parts = one_part, .save = save, .saved = saved, .rest = rest};

static void open_lab(lab *all, const char *run)
{
    pace__job *job = &all->job;

    *all = (lab){.now_ns = 77 * SECOND};
    all->config = (pace_train_config){
        .run = run, .stop = &all->stop, .faults = {.checkpoint_seconds = INTERVAL, .keep = 9}};
    *job = (pace__job){.config = &all->config,
                       .log = &said_log,
                       .registry = pace_registry_create(),
                       .clock = {read_clock, &all->now_ns},
                       .strategy = &strategy,
                       .own = all,
                       .fingerprint = strdup("rows=1"),
                       .state = {.incarnation = 1},
                       .position = {.best_logloss = INFINITY, .last_epoch_loss = NAN}};
    job->plan = (pace__job_plan){.order = pace__steps_make(1000, 100), .steps = 100, .floats = 1};
    job->plan.model.shape.keys = KEYS;
    job->plan.model.check_rows = 1;
    assert_ok(pace__rundir_open(run, PACE__RUN_NEW, &said_log, &job->run));
    assert_ok(pace__make_dirs(pace__rundir_path(job->run, PACE__RUN_CHECKPOINTS), &said_log));
    assert_ok(pace__runstate_write(run, &job->state, &said_log));
    assert_ok(pace__background_create(&said_log, &job->saving.background));
    job->saving.last_ns = all->now_ns;
    pace__boundary_open(&all->boundary, job, false);
}

static void close_lab(lab *all)
{
    pace__job_close_saving(&all->job);
    pace__rundir_close(all->job.run);
    pace_registry_free(all->job.registry);
}

static size_t whole_checkpoints(const lab *all)
{
    pace__checkpoint_entry *entries;
    size_t count;

    assert_ok(pace__checkpoint_list(pace__rundir_path(all->job.run, PACE__RUN_CHECKPOINTS), &said_log,
                                    &entries, &count, NULL));
    pace__checkpoint_list_free(entries, count);
    return count;
}

/* --- */

static void a_checkpoint_is_due_when_the_clock_says(void **state)
{
    lab all;

    open_lab(&all, in(state, "run"));
    for (int round = 0; round < 3; round++) {
        uint64_t begun_ns = all.now_ns;

        assert_false(pace__boundary_wants(&all.boundary));
        all.now_ns = begun_ns + INTERVAL * SECOND - 1;
        assert_false(pace__boundary_wants(&all.boundary));
        assert_ok(pace__boundary_act(&all.boundary, 10 * (uint64_t)round + 1));
        assert_int_equal(all.saves, round);
        all.now_ns = begun_ns + INTERVAL * SECOND;
        assert_true(pace__boundary_wants(&all.boundary));
        assert_ok(pace__boundary_act(&all.boundary, 10 * (uint64_t)round + 2));
        assert_int_equal(all.saves, round + 1);
    }
    assert_ok(pace__job_save_finish(&all.job));
    assert_int_equal(whole_checkpoints(&all), 3);
    all.now_ns += 1000 * SECOND; /* the last state becomes a model */
    assert_ok(pace__boundary_act(&all.boundary, 100));
    assert_int_equal(all.saves, 3);
    close_lab(&all);
}

static void without_an_interval_time_decides_nothing(void **state)
{
    lab all;

    open_lab(&all, in(state, "run"));
    all.config.faults.checkpoint_seconds = 0;
    all.now_ns += 1000000 * SECOND;
    assert_false(pace__boundary_wants(&all.boundary));
    assert_ok(pace__boundary_act(&all.boundary, 5));
    assert_int_equal(all.saves, 0);
    close_lab(&all);
}

static void a_stop_saves_and_ends(void **state)
{
    lab all;

    open_lab(&all, in(state, "run"));
    all.stop = 1;
    assert_true(pace__boundary_wants(&all.boundary));
    assert_failed(pace__boundary_act(&all.boundary, 7), PACE_INTERRUPTED, "interrupted after step 7 of 100");
    assert_int_equal(all.saves, 1);
    assert_int_equal(whole_checkpoints(&all), 1);
    assert_ok(pace__boundary_act(&all.boundary, 100)); /* nothing is left to interrupt */
    close_lab(&all);
}

/* At most one copy of the state: the next one waits. */
static void stages_follow_each_other(void **state)
{
    lab all;

    open_lab(&all, in(state, "run"));
    all.held_back = true;
    assert_ok(pace__job_save(&all.job));
    assert_int_equal(all.job.saving.stage, PACE__SAVING_PARTS);
    for (int i = 0; i < 3; i++)
        assert_ok(pace__job_save_poll(&all.job));
    assert_int_equal(all.job.saving.stage, PACE__SAVING_PARTS);
    assert_int_equal(all.looks, 3);
    all.held_back = false;
    all.job.position.step = 9;
    assert_ok(pace__job_save(&all.job));
    assert_int_equal(all.job.saving.written, 1);
    assert_ok(pace__job_save_finish(&all.job));
    assert_int_equal(all.job.saving.stage, PACE__SAVING_NOTHING);
    assert_int_equal(all.job.saving.written_step, 9);
    assert_int_equal(whole_checkpoints(&all), 2);
    close_lab(&all);
}

/* A job that fails while copies are made has no checkpoint of that step, whoever looks after it meanwhile. */
static void a_save_that_failed_is_not_committed(void **state)
{
    lab all;

    open_lab(&all, in(state, "run"));
    all.save_status = PACE_FAILED;
    assert_int_equal(pace__job_save(&all.job), PACE_FAILED);
    assert_int_equal(all.job.saving.stage, PACE__SAVING_NOTHING);
    assert_ok(pace__job_save_poll(&all.job));
    assert_ok(pace__job_save_finish(&all.job));
    assert_int_equal(all.looks, 0);
    assert_int_equal(all.job.saving.written, 0);
    assert_int_equal(whole_checkpoints(&all), 0);
    all.save_status = PACE_OK; /* at the end, say: nothing of the other is in the way */
    all.job.position.step = 5;
    assert_ok(pace__job_save_now(&all.job));
    assert_int_equal(whole_checkpoints(&all), 1);
    close_lab(&all);
}

/* Another incarnation has taken over: this one may not commit. */
static void a_newer_incarnation_ends_it(void **state)
{
    lab all;

    open_lab(&all, in(state, "run"));
    assert_ok(pace__runstate_write(all.config.run, &(pace__runstate){.incarnation = 2}, &said_log));
    assert_ok(pace__job_save(&all.job));
    assert_failed(pace__job_save_finish(&all.job), PACE_FAILED, "the run is at incarnation 2 now");
    assert_true(all.job.saving.superseded);
    assert_int_equal(whole_checkpoints(&all), 0);
    close_lab(&all);
}

/* What was begun before there was --precision goes on, in f32. */
static void a_checkpoint_need_not_say_f32(void **state)
{
    static const char before[] = "model=rnn seed=1 batch=2", f32[] = "model=rnn seed=1 precision=f32 batch=2",
                      bf16[] = "model=rnn seed=1 precision=bf16 batch=2";
    pace__job job = {.log = &(pace_log){0}};

    (void)state;
    assert_int_equal(pace__job_check_fingerprint(&job, "x", f32, before), PACE_OK);
    assert_int_equal(pace__job_check_fingerprint(&job, "x", f32, f32), PACE_OK);
    assert_int_equal(pace__job_check_fingerprint(&job, "x", bf16, before), PACE_USAGE);
    assert_int_equal(pace__job_check_fingerprint(&job, "x", f32, bf16), PACE_USAGE);
    assert_int_equal(pace__job_check_fingerprint(&job, "x", f32, "model=rnn seed=1 batch=3"), PACE_USAGE);
    assert_int_equal(pace__job_check_fingerprint(&job, "x", f32, "model=rnn"), PACE_USAGE);
}

/* Words are told apart by name, wherever another version of the program has them. */
static void jobs_are_compared_word_by_word(void **state)
{
    static const char own[] = "model=fm seed=1 lr=0.5 steps=0",
                      more[] = "model=fm wide=2 seed=1 lr=0.5 steps=0",
                      moved[] = "model=fm lr=0.5 seed=2 steps=0";
    pace__job job = {.log = &said_log};

    (void)state;
    assert_failed(pace__job_check_fingerprint(&job, "x", own, more), PACE_USAGE,
                  "x: made by a job with other options or data: wide=2 there, nothing of it here; repeat");
    assert_failed(pace__job_check_fingerprint(&job, "x", more, own), PACE_USAGE,
                  ": nothing of it there, wide=2 here; repeat");
    assert_failed(pace__job_check_fingerprint(&job, "x", own, moved), PACE_USAGE,
                  ": seed=2 there, seed=1 here; repeat");
    assert_failed(pace__job_check_fingerprint(&job, "x", own, "model=fm seed=1 lr=0.5 steps=7"), PACE_USAGE,
                  ": steps=7 there, steps=0 here (a rate that falls");
}

int main(void)
{
#define WITH_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_checkpoint_need_not_say_f32),
        cmocka_unit_test(jobs_are_compared_word_by_word),
        WITH_DIRECTORY(a_checkpoint_is_due_when_the_clock_says),
        WITH_DIRECTORY(without_an_interval_time_decides_nothing),
        WITH_DIRECTORY(a_stop_saves_and_ends),
        WITH_DIRECTORY(stages_follow_each_other),
        WITH_DIRECTORY(a_save_that_failed_is_not_committed),
        WITH_DIRECTORY(a_newer_incarnation_ends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
