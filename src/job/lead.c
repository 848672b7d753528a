/*
 * Leading a run, from its directory to its summary: what the chief does, or the only process there is.
 *
 *     open the directory -> take it over -> restore -> begin -> train -> gather -> the best -> model -> scores -> end -> summary
 *     -> report
 *
 * 1. Nothing of the run is written before the options, the data set and first values have been found good. (Features
 *    are made before: a data set of their own. Vectors of a run that is resumed at step 0 are read behind it.)
 * 2. From take_over on, an older incarnation of the run commits nothing; every commit of this one asks whether there is
 *    a newer, and whether the directory still has its name.
 * 3. The summary comes last: a run with a summary has finished. (The report tells of it, and decides nothing.)
 * 4. Whatever fails behind the last step costs no training: the state is saved, and --resume goes straight to the end.
 */
#include "base/clock.h"
#include "base/kept.h"
#include "data/store/describe.h"
#include "files/file.h"
#include "files/output.h"
#include "job/job.h"
#include "metrics/scoring.h"
#include "report/report.h"
#include "threads/thread.h"
#include "watch/quota.h"

#include <assert.h>
#include <math.h>
#include <paceline/kernels.h>
#include <paceline/relay.h>
#include <stdlib.h>

/* For the last of a run that was killed to go, before another start of it is refused; a restart waits longer. */
#define LOCK_WAIT_S 10.0

bool pace__job_is_over(const pace__job *job)
{
    uint64_t patience = job->plan.patience;

    return job->over || job->position.step >= job->plan.steps ||
           (patience && job->position.worse >= patience);
}

pace_status pace__job_aside(pace__job *job, const char *what, pace_status (*work)(void *user), void *user)
{
    return pace__job_aside_if(job, NULL, what, work, user);
}

pace_status pace__job_aside_if(pace__job *job, bool *slow, const char *what, pace_status (*work)(void *user),
                               void *user)
{
    return job->strategy->aside ? job->strategy->aside(job, slow, what, work, user) : work(user);
}

/* --- what every process keeps --- */

pace_status pace__job_open_account(pace__job *job, int rank)
{
    pace__row_count_open(&job->rows, job->config->run, rank);
    pace_status status = pace__faults_open(&job->faults, job->config->faults.inject, &job->plan.cluster, rank,
                                           job->config->run, job->log);

    pace__faults_go_by(&job->faults, &job->clock);
    return status;
}

void pace__job_close_account(pace__job *job)
{
    pace__faults_close(&job->faults);
    pace__row_count_close(&job->rows);
}

/* --- taking over the directory --- */

/* Numbers of incarnations are in the names of checkpoints, too: one that was used is not used again, whatever
 * happened to state.json. */
static pace_status look_at_checkpoints(pace__job *job)
{
    uint64_t saved;
    pace_status status = pace__job_saved_incarnation(job, job->log, &saved);

    if (!status && saved > job->state.incarnation)
        job->state.incarnation = saved;
    return status;
}

/* state.json is gone, or damaged. Directories of checkpoints, whole or not, and records tell whether the run had saved
 * something: then it does not begin anew by itself. */
static pace_status recover_state(pace__job *job)
{
    pace__runstate *state = &job->state;
    char *root = pace__run_path(job->config->run, PACE__RUN_CHECKPOINTS);
    uint64_t step, incarnation;
    size_t count;
    pace_status status = root ? pace__checkpoint_names(root, job->log, &step, &incarnation, &count)
                              : pace_fail(job->log, PACE_FAILED, "out of memory");

    *state = (pace__runstate){0};
    if (!status)
        state->has_checkpoint = count > 0 || pace__run_last_saved(job->config->run, &step);
    if (state->has_checkpoint)
        state->checkpoint = step;
    free(root);
    return status;
}

/* How the run stands. Invariant 3: with a summary it has finished, whatever has become of state.json. */
static pace_status look_at_state(pace__job *job)
{
    char *summary = pace__run_path(job->config->run, PACE__RUN_SUMMARY);
    char reason[PACE_LOG_TEXT_MAX] = "";
    pace__kept kept;

    if (!summary)
        return pace_fail(job->log, PACE_FAILED, "out of memory");
    pace__kept_init(&kept, reason, sizeof reason);
    pace_status status = pace__runstate_read(job->config->run, &kept.log, &job->state);

    job->was_done = pace__exists(summary) || (!status && job->state.ending == PACE__RUN_DONE);
    free(summary);
    if (status == PACE_BAD_DATA)
        pace_say(job->log, PACE_WARN, "%s/state.json: damaged: written anew from what else there is",
                 job->config->run);
    if (status && status != PACE_BAD_DATA)
        return pace_fail(job->log, status, "%s", reason);
    return job->config->resume && (status || job->state.incarnation == 0) ? recover_state(job) : PACE_OK;
}

/* A new incarnation: from here on older ones can commit nothing. */
static pace_status take_over(pace__job *job)
{
    pace__runstate *state = &job->state;
    pace_status status = look_at_state(job);

    if (!status)
        status = look_at_checkpoints(job);
    if (status)
        return status;
    uint64_t restarts = state->restarts + (uint64_t)pace_relay_attempts() +
                        (state->incarnation > 0 && state->ending == PACE__RUN_RUNNING);

    if (restarts >= PACE__RUN_NUMBER_MAX || state->incarnation + 1 >= PACE__RUN_NUMBER_MAX)
        return pace_fail(job->log, PACE_BAD_DATA,
                         "%s/state.json: its numbers are too large to count on, or those in the names of "
                         "checkpoints are: --force starts over",
                         job->config->run);
    if (!state->id)
        state->id = pace__runstate_draw();
    state->restarts = restarts;
    state->incarnation++;
    state->ending = PACE__RUN_RUNNING;
    return pace__runstate_write(job->config->run, state, job->log);
}

typedef struct ending {
    pace__job *job;
    pace_status status;
} ending;

static pace_status write_ending(void *user)
{
    const ending *self = user;
    pace__job *job = self->job;

    pace__background_wait(job->saving.background); /* it may be writing the same file */
    job->state.ending = !self->status || job->was_done     ? PACE__RUN_DONE
                        : self->status == PACE_INTERRUPTED ? PACE__RUN_INTERRUPTED
                        : self->status == PACE_LOST        ? PACE__RUN_RUNNING
                                                           : PACE__RUN_FAILED;
    if (pace__job_check_ours(job, NULL) == PACE_OK)
        pace__runstate_write(job->config->run, &job->state, NULL);
    return PACE_OK;
}

/* How it ended, for whoever looks at the run later. Another incarnation's word is left alone. */
static void note_ending(pace__job *job, pace_status status)
{
    pace__job_aside(job, "writing state.json", write_ending, &(ending){job, status});
}

static pace__run_start start_of(const pace_train_config *config)
{
    return config->resume ? PACE__RUN_RESUME : config->force ? PACE__RUN_REPLACE : PACE__RUN_NEW;
}

pace_status pace__job_check_run(const pace__job *job)
{
    pace_status status = pace__output_outside(job->config->run, &job->config->data, 1, job->log);

    return status ? status : pace__rundir_check(job->config->run, start_of(job->config), job->log);
}

static bool wait_on(void *user)
{
    const pace__job *job = user;

    return !(job->config->stop && *job->config->stop);
}

/* The configuration that repeats this run. How this start treats what is in its directory is not part of it. */
typedef struct recorded {
    pace_train_config decided;
    pace_option_part parts[4];
    int kernels;
} recorded;

static void record_config(const pace__job *job, recorded *to)
{
    to->kernels = pace_kernels_asked();
    pace__plan_options(&job->plan, job->config, &to->decided);
    pace__record_parts(&to->decided, &to->kernels, to->parts);
}

static pace_status check_config(const pace__job *job)
{
    recorded config;

    record_config(job, &config);
    return pace_options_check_yaml(config.parts, job->config->run, job->log);
}

/* Whoever was killed a moment ago may have it still. */
static pace_status open_run(pace__job *job)
{
    double deadline_s = job->config->cluster.deadline;
    bool restart = job->config->resume && pace_relay_wanted();
    pace__run_patience patience = {restart ? deadline_s : fmin(deadline_s, LOCK_WAIT_S), wait_on, job};
    pace_status status = pace__output_outside(job->config->run, &job->config->data, 1, job->log);

    if (!status) /* before anything is removed */
        status = check_config(job);
    if (!status)
        status = pace__rundir_open_patiently(job->config->run, start_of(job->config), &patience, job->log,
                                             &job->run);
    if (status)
        return status;
    job->log = pace__rundir_log(job->run);
    pace_registry_attach(job->registry, pace__rundir_sink(job->run));
    return pace__make_own_dir(pace__rundir_path(job->run, PACE__RUN_CHECKPOINTS), job->log);
}

static void close_run(pace__job *job, const pace_log *caller_log)
{
    job->log = caller_log;
    if (!job->run)
        return;
    pace_registry_detach(job->registry, pace__rundir_sink(job->run));
    pace__rundir_close(job->run);
    job->run = NULL;
}

/* --- where it begins --- */

static pace_status write_config(const pace__job *job)
{
    recorded config;

    record_config(job, &config);
    if (job->config->resume)
        pace__resume_say_changes(job, &config.decided);
    return pace_options_write_yaml(config.parts, pace__rundir_path(job->run, PACE__RUN_CONFIG), job->log);
}

/* At a checkpoint, or at the beginning; what was recorded of the steps that come again is told again. */
static pace_status stand_at_start(void *user)
{
    pace__job *job = user;
    bool resume = job->config->resume;
    pace_status status = resume ? pace__job_restore(job) : PACE_OK;

    if (!status) /* what is there to go on from may have taken long to read */
        status = pace__job_check_ours(job, job->log);
    if (!status && job->was_done && pace__job_is_over(job))
        pace_say(
            job->log, PACE_WARN,
            "%s: the run has finished, but not all of it is there as it is wanted: model and summary are "
            "written again",
            job->config->run);
    if (!status && resume)
        status = pace__rundir_go_back(job->run, job->position.step);
    if (!status && resume && job->position.step == 0)
        status = pace__job_read_vectors(job);
    if (!status)
        status = pace__job_find_divisions(job);
    if (!status)
        status = write_config(job);
    if (!status) /* a run with a summary has finished: not this one, from here on */
        status = pace__remove_tree(pace__rundir_path(job->run, PACE__RUN_SUMMARY), job->log);
    if (!status) /* these tell of that summary */
        status = pace__remove_tree(pace__rundir_path(job->run, PACE__RUN_REPORT), job->log);
    if (!status)
        status = pace__remove_tree(pace__rundir_path(job->run, PACE__RUN_MISTAKES), job->log);
    job->was_done &= status != PACE_OK;
    if (!status)
        pace__job_open_events(job);
    return status;
}

/* --- steps --- */

/* An "init" record: what it began with. */
static void emit_warm(const pace__job *job)
{
    const pace__warm *warm = &job->warm;
    pace_field fields[] = {PACE_TEXT("sha256", warm->sha256), PACE_INT("taken", warm->overlap.taken),
                           PACE_INT("fresh", warm->fresh), PACE_INT("left", warm->overlap.left),
                           PACE_INT("carried", warm->carried_weights_count)};

    pace_registry_emit(job->registry, "init", fields, sizeof fields / sizeof *fields);
}

/* A "start" record: training begins, or goes on, here. */
static void emit_start(const pace__job *job)
{
    pace__quota quota = pace__quota_here();
    pace_field fields[] = {PACE_INT("step", job->position.step),
                           PACE_INT("steps", job->plan.steps),
                           PACE_INT("threads", job->plan.threads),
                           PACE_REAL("cores", fmin(pace__cores(), quota.cores)),
                           PACE_REAL("pause_s", pace__quota_pause_s(&quota)),
                           PACE_INT("run", job->state.id),
                           PACE_INT("incarnation", job->state.incarnation),
                           PACE_INT("restarts", job->state.restarts),
                           PACE_TEXT("kernels", pace_kernels_name(pace_kernels_in_use()))};

    pace_registry_emit(job->registry, "start", fields, sizeof fields / sizeof *fields);
}

static pace_status train(pace__job *job)
{
    pace_status status = job->strategy->begin(job);

    if (status)
        return status;
    if (job->is_warm && job->position.step == 0)
        emit_warm(job);
    emit_start(job);
    pace__faults_say_slow(job->config->faults.inject, &job->plan.cluster, job->log);
    pace__faults_at(&job->faults, PACE__AT_START, job->position.step);
    job->start_ns = pace__now_ns();
    status = job->strategy->train(job);
    job->trained_s = pace__seconds_since(job->start_ns);
    if (!status)
        status = job->strategy->gather(job);
    if (status == PACE_INTERRUPTED && job->strategy->end) { /* a clean end, for everyone */
        pace_status ended = job->strategy->end(job, PACE_INTERRUPTED);

        status = ended ? ended : status;
    }
    return status;
}

/* --- what it leaves behind --- */

/* What is written of a job that is over. */
typedef struct outcome {
    pace__job *job;
    pace_train_result *result;
} outcome;

static pace_status write_model(void *user)
{
    const outcome *self = user;
    pace__job *job = self->job;
    pace__origin origin;
    pace_status status = pace__job_check_ours(job, job->log); /* invariant 2 */

    if (status)
        return status;
    status = pace__origin_read(&job->store, job->log, &origin);
    if (!status)
        status = pace__warm_carry(&job->warm, &origin, job->log);
    if (!status)
        status = job->strategy->write(job, &origin, self->result->model_sha256);
    pace__origin_release(&origin);
    return status;
}

/* Ours once more: scoring may have taken long. */
static pace_status write_summary(void *user)
{
    const outcome *self = user;
    pace_status status = pace__job_check_ours(self->job, self->job->log);

    if (!status) /* the summary says that all is there */
        pace__job_write_mistakes(self->job);
    return status ? status : pace__job_write_summary(self->job, self->result);
}

static void take_scores(const pace__job *job, pace_train_result *result)
{
    result->has_test = job->plan.model.data.test_rows > 0;
    result->has_validation = job->plan.model.data.validation_rows > 0;
    result->test = job->scores[PACE__TEST];
    result->validation = job->scores[PACE__VALIDATION];
    result->best_step = job->best_step;
    result->best_logloss = job->best_logloss;
}

/* The model first: neither a disk that has no room for both, nor a test row that cannot be read may cost it. The last
 * checkpoint is written while the rows are scored. */
static pace_status commit(pace__job *job, pace_train_result *result)
{
    const pace__strategy *strategy = job->strategy;
    outcome written = {job, result};
    pace_status status = pace__job_save_finish(job);

    assert(status || job->saving.stage == PACE__SAVING_NOTHING);
    if (!status && job->plan.keeps_best) /* which may be on disk only: the last is saved first */
        status = pace__job_take_best(job);
    if (!status) /* what that has begun: model and checkpoint look at the same state of the run */
        status = pace__job_save_finish(job);
    if (!status)
        status = pace__job_aside(job, "writing model.safetensors", write_model, &written);
    if (!status && !job->kept)
        status = pace__job_save_last(job);
    if (!status && pace__plan_scores(&job->plan))
        status = strategy->final_scores ? strategy->final_scores(job) : pace__job_evaluate_all(job);
    take_scores(job, result);
    if (!status) /* by those who leave now */
        status = pace__job_save_finish(job);
    if (!status && strategy->end)
        status = strategy->end(job, PACE_OK);
    job->others_left = !status && pace__cluster_size(&job->plan.cluster) > 1;
    return status ? status : pace__job_aside(job, "writing summary.json", write_summary, &written);
}

static void note_in_log(void *user, pace_level level, const char *text)
{
    const pace__job *job = user;

    pace__run_note(job->config->run, level, text);
}

/* Invariant 4. Of a disk that has failed already nothing more is said, but in the log. */
static void save_the_rest(pace__job *job, pace_status failure)
{
    const pace_log *log = job->log, notes = {note_in_log, job};

    job->log = failure == PACE_IO ? &notes : log;
    pace_status status = pace__job_save_now(job);

    job->log = log;
    if (!status)
        pace_say(log, PACE_WARN, "training is done and checkpointed: --resume only has to finish");
}

static pace_status finish(pace__job *job, pace_train_result *result)
{
    pace_train_result reached = pace__job_reached(job);

    assert(pace__job_is_over(job) && !job->others_left);
    pace__faults_at(&job->faults, PACE__AT_END, job->position.step);
    pace_status status = commit(job, &reached);

    if (status) {
        if (status != PACE_LOST && !job->others_left && !job->saving.superseded && !job->kept)
            save_the_rest(job, status);
        return status;
    }
    pace__faults_say_unfired(job->config->faults.inject, &job->plan.cluster, job->config->run, job->log);
    *result = reached;
    return PACE_OK;
}

/* --- all of it --- */

/* Last of all, since it tells of summary and state. That it cannot be written costs no run. */
static void write_report(pace__job *job)
{
    char reason[PACE_LOG_TEXT_MAX];
    pace__kept kept;

    pace__kept_init(&kept, reason, sizeof reason);
    pace_status status = pace__job_check_ours(job, &kept.log);

    if (!status)
        status = pace__report_leave(job->config->run, &kept.log);
    if (status)
        pace_say(job->log, PACE_WARN, "no report was written: %s", reason);
}

/* However it has ended, but for a loss: then it goes on. */
static void leave_report(pace__job *job, pace_status status)
{
    if (status != PACE_LOST && job->config->records.report == PACE_REPORT_ON && !job->saving.superseded)
        write_report(job);
}

static pace_status leave_report_aside(void *user)
{
    const ending *self = user;

    leave_report(self->job, self->status);
    return PACE_OK;
}

void pace__job_end_here(pace__job *job, pace_status status)
{
    note_ending(job, status);
    pace__job_close_events(job, status);
    pace__job_aside(job, "writing the report", leave_report_aside, &(ending){job, status});
}

static pace_status describe(pace__job *job)
{
    pace_status status = pace__job_check_run(job);

    if (!status)
        status = pace__job_read_replay(job);
    pace__divisions_release(&job->divisions);
    if (!status && job->config->resume)
        look_at_state(job);
    if (!status && job->config->resume)
        status = pace__job_check_restore(job);
    if (!status)
        pace__job_open_stage(job, true, true);
    return status || !job->strategy->describe ? status : job->strategy->describe(job);
}

/* First values, then the directory: invariant 1. */
static pace_status open_all(void *user)
{
    pace__job *job = user;
    pace_status status = pace__job_read_warm_state(job);

    if (!status)
        status = job->strategy->open(job);
    if (!status)
        status = pace__job_begin_warm(job);
    if (!status)
        status = pace__job_read_replay(job);
    if (!status)
        status = open_run(job);
    if (!status && job->config->resume) /* what is refused leaves the run as it was */
        status = pace__job_check_same(job);
    if (!status)
        status = take_over(job);
    if (!status)
        status = pace__job_open_account(job, 0);
    if (!status)
        pace__job_open_stage(job, true, true);
    return status ? status : pace__job_open_saving(job);
}

pace_status pace__job_lead(pace__job *job, pace_train_result *result)
{
    const pace_log *caller_log = job->log;

    job->position = (pace__position){.best_logloss = INFINITY, .last_epoch_loss = NAN};
    pace__job_say_needs(job);
    if (job->config->dry_run)
        return describe(job);
    pace_status status = pace__scoring_metrics(job->plan.model.shape.outputs, job->log, &job->metrics);
    bool begun = false;

    if (!status)
        status = pace__job_aside(job, "opening the run", open_all, job);
    if (!status) {
        status = pace__job_aside(job, "reading what there is to go on from", stand_at_start, job);
        begun = !status; /* what was refused leaves the run as it was */
        if (!status)
            status = train(job);
        if (!status)
            status = finish(job, result);
        pace__job_say_stage(job, status);
        note_ending(job, status);
        pace__job_close_events(job, status);
    }
    pace__job_close_saving(job);
    pace__divisions_release(&job->divisions);
    job->strategy->close(job); /* waits for parts that are being written; behind it nobody waits for us */
    pace__job_close_stage(job, status);
    if (begun)
        leave_report(job, status);
    close_run(job, caller_log);
    pace__metrics_free(job->metrics);
    return status;
}
