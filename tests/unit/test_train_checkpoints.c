/* Checkpoints of a run, in every mode: when they come, which are kept, and what happens when one fails. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "run/runstate.h"

#include "lone_runs.h"

static void only_so_many_checkpoints_are_kept(void **state)
{
    make_set(state, "set", layouts[2]);
    pace_train_config config = settings(in(state, "set"), in(state, "run"));

    config.faults.checkpoint_every = 4;
    config.faults.keep = 2;
    train(&config);
    assert_int_equal(count_entries(in(state, "run/checkpoints")), 2);
    assert_true(is_there(state, 52, 1) && is_there(state, 54, 1));
    assert_true(in_summary(state, "checkpoints") == 14);
}

/* --- many modes in one process --- */

static const int modes[] = {PACE_MODE_LOCAL, PACE_MODE_PS_SYNC, PACE_MODE_PS_ASYNC, PACE_MODE_ALLREDUCE};

static pace_train_config settings_of(void **state, int mode)
{
    pace_train_config config = settings(in(state, "set"), in(state, "run"));

    config.mode = mode;
    config.optimiser.exact = true;
    config.records.log_every = 1;
    return config;
}

static void checkpoints_come_by_the_clock(void **state)
{
    make_set(state, "set", layouts[2]);
    for (size_t m = 0; m < 4; m++) {
        pace_train_config config = settings_of(state, modes[m]);
        char expected[65];

        memcpy(expected, train(&config).model_sha256, sizeof expected);
        assert_int_equal(count_entries(in(state, "run/checkpoints")), 0);
        config.faults.checkpoint_seconds = 1e6; /* only the last */
        assert_string_equal(train(&config).model_sha256, expected);
        assert_int_equal(count_entries(in(state, "run/checkpoints")), 1);
        assert_true(is_there(state, 54, 1));
        config.faults.checkpoint_seconds = 1e-9; /* behind every step */
        assert_string_equal(train(&config).model_sha256, expected);
        assert_int_equal(count_entries(in(state, "run/checkpoints")), 2);
        int saved = (int)in_summary(state, "checkpoints");

        assert_in_range(saved, modes[m] == PACE_MODE_PS_ASYNC ? 4 : 54,
                        54); /* async: when a gate is reached */
        assert_true(in_summary(state, "checkpoint_stall_s") > 0);
        assert_true(is_there(state, 54, 1));
        interrupt(config, 30);
        resume(&config);
        assert_string_equal(train(&config).model_sha256, expected);
        assert_true(in_summary(state, "rows_computed_twice") == 0);
    }
}

/* While the run goes on, someone puts a file where checkpoints go, and takes it away again. */
typedef struct vandal {
    const char *directory;
    int64_t from, until; /* checkpoint and step */
    _Atomic int stop;
    int64_t stop_at;
    bool stands;
    int saved_after;
} vandal;

static void obstruct(void *user, const pace_record *record)
{
    vandal *self = user;
    const pace_field *field = pace_record_find(record, "step");
    int64_t step = field ? field->value.integer : 0;
    bool saved = strcmp(record->kind, "checkpoint") == 0;

    if (saved && step == self->from) { /* nothing is being written now */
        require(pace__remove_tree(self->directory, NULL) == PACE_OK);
        require(pace__write_file_atomically(self->directory, "", 0, NULL) == PACE_OK);
        self->stands = true;
    }
    if (strcmp(record->kind, "step") == 0 && step == self->until) {
        require(self->stands && unlink(self->directory) == 0);
        require(pace__make_dirs(self->directory, NULL) == PACE_OK);
        self->stands = false;
    }
    self->saved_after += saved && step > self->from;
    self->stop = self->stop_at && step >= self->stop_at;
}

static pace_status train_watched(pace_train_config config, const pace_sink *sink, pace_train_result *result)
{
    pace_registry *registry = pace_registry_create();

    said_clear();
    pace_registry_attach(registry, sink);
    pace_status status = pace_train(&config, &said_log, registry, result);

    pace_registry_free(registry);
    return status;
}

static void a_checkpoint_that_fails_is_a_warning(void **state)
{
    make_set(state, "set", layouts[2]);
    for (size_t m = 0; m < 4; m++) {
        pace_train_config config = settings_of(state, modes[m]);
        vandal other = {.directory = in(state, "run/checkpoints"), .from = 10, .until = 27};
        pace_train_result result;
        char expected[65];

        memcpy(expected, train(&config).model_sha256, sizeof expected);
        config.faults.checkpoint_every = 5;
        assert_ok(train_watched(config, &(pace_sink){obstruct, &other}, &result));
        assert_string_equal(result.model_sha256, expected);
        assert_int_equal(errors_said(), 0);
        assert_said("W no checkpoint of step 15: ");
        assert_said("run/checkpoints: cannot make the directory");
        assert_said("training goes on, and the newest is that of step 10");
        assert_said("W no checkpoint of step 25: ");
        assert_null(strstr(said, "no checkpoint of step 30"));
        assert_int_equal(other.saved_after, 6); /* 30, 35, 40, 45, 50, and the last */
        assert_true(in_summary(state, "checkpoints") == 8);
        assert_true(is_there(state, 54, 1) && is_there(state, 50, 1));
        assert_int_equal(count_entries(in(state, "run/checkpoints")), 2);
    }
}

/* It cannot be interrupted without losing something: then it says so. */
static void an_interruption_needs_its_checkpoint(void **state)
{
    make_set(state, "set", layouts[2]);
    for (size_t m = 0; m < 4; m++) {
        pace_train_config config = settings_of(state, modes[m]);
        vandal other = {.directory = in(state, "run/checkpoints"), .from = 10, .until = 1000, .stop_at = 14};
        pace_train_result result;
        pace__runstate at;

        config.faults.checkpoint_every = 5;
        config.stop = &other.stop;
        pace_status status = train_watched(config, &(pace_sink){obstruct, &other}, &result);

        assert_failed(status, PACE_IO, "could not be saved: ");
        assert_ok(pace__runstate_read(in(state, "run"), &said_log, &at));
        assert_true(at.ending == PACE__RUN_FAILED && at.has_checkpoint && at.checkpoint == 10);
        assert_false(pace__exists(in(state, "run/model.safetensors")));
    }
}

/* Another incarnation takes over when a record comes: of a checkpoint, so that none is being committed, or of
 * a step where there are none. */
typedef struct usurper {
    const char *run, *kind;
    int64_t at_step;
    bool done;
} usurper;

static void take_over(void *user, const pace_record *record)
{
    usurper *self = user;
    const pace_field *step = pace_record_find(record, "step");
    pace__runstate at;

    if (self->done || strcmp(record->kind, self->kind) != 0 || step->value.integer < self->at_step)
        return;
    require(pace__runstate_read(self->run, NULL, &at) == PACE_OK);
    require(at.incarnation == 1 && at.ending == PACE__RUN_RUNNING);
    at.incarnation++;
    require(pace__runstate_write(self->run, &at, NULL) == PACE_OK);
    self->done = true;
}

static void an_older_incarnation_commits_nothing(void **state)
{
    make_set(state, "set", layouts[2]);
    for (size_t m = 0; m < 4; m++) {
        for (int saves = 0; saves < 2; saves++) {
            pace_train_config config = settings_of(state, modes[m]);
            usurper other = {.run = config.run, .kind = saves ? "checkpoint" : "step", .at_step = 15};
            pace_train_result result;
            pace__runstate at;

            config.faults.checkpoint_every = saves ? 5 : 0;
            pace_status status = train_watched(config, &(pace_sink){take_over, &other}, &result);

            assert_failed(status, PACE_FAILED, "incarnation 2");
            assert_true(other.done);
            assert_ok(pace__runstate_read(config.run, &said_log, &at));
            assert_true(at.incarnation == 2 && at.ending == PACE__RUN_RUNNING && at.has_checkpoint == saves);
            assert_false(pace__exists(in(state, "run/model.safetensors")));
            assert_false(pace__exists(in(state, "run/summary.json")));
            for (int64_t step = 16; step <= 54; step++)
                assert_false(is_there(state, step, 1));
            assert_int_equal(count_entries(in(state, "run/checkpoints")), saves ? 2 : 0);
            assert_true(!saves || (at.checkpoint == 15 && is_there(state, 15, 1)));
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_so_many_checkpoints_are_kept),    TEST(checkpoints_come_by_the_clock),
        TEST(a_checkpoint_that_fails_is_a_warning), TEST(an_interruption_needs_its_checkpoint),
        TEST(an_older_incarnation_commits_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
