/*
 * Leading a run, from its directory to its summary: what the chief does, or the only process there is.
 *
 *     open the directory -> take it over -> restore -> begin -> train -> gather -> model -> scores -> end -> summary
 *
 * 1. Nothing of the run is written before the options, the data set and first values have been found good. (Features
 *    are made before: a data set of their own. Vectors of a run that is resumed at step 0 are read behind it.)
 * 2. From take_over on, an older incarnation of the run commits nothing; every commit of this one asks whether there is
 *    a newer.
 * 3. The summary comes last: a run with a summary has finished.
 * 4. Whatever fails behind the last step costs no training: the state is saved, and --resume goes straight to the end.
 */
#include "base/clock.h"
#include "data/store/describe.h"
#include "files/file.h"
#include "job/job.h"
#include "metrics/scoring.h"

#include <assert.h>
#include <math.h>
#include <paceline/kernels.h>
#include <paceline/relay.h>

bool pace__job_is_over(const pace__job *job)
{
    uint64_t patience = job->plan.patience;

    return job->over || job->position.step >= job->plan.steps ||
           (patience && job->position.worse >= patience);
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
    pace__checkpoint_entry *entries;
    size_t count;
    pace_status status = pace__checkpoint_list(pace__rundir_path(job->run, PACE__RUN_CHECKPOINTS), job->log,
                                               &entries, &count, NULL);

    for (size_t i = 0; !status && i < count; i++) {
        if (entries[i].incarnation > job->state.incarnation)
            job->state.incarnation = entries[i].incarnation;
    }
    if (!status)
        pace__checkpoint_list_free(entries, count);
    return status;
}

/* A new incarnation: from here on older ones can commit nothing. */
static pace_status take_over(pace__job *job)
{
    pace__runstate *state = &job->state;
    pace_status status = pace__runstate_read(job->config->run, NULL, state);

    if (status == PACE_BAD_DATA)
        pace_say(job->log, PACE_WARN, "%s/state.json: damaged: written anew from what else there is",
                 job->config->run);
    if (!status || status == PACE_BAD_DATA)
        status = look_at_checkpoints(job);
    if (status)
        return status;
    job->was_done = state->ending == PACE__RUN_DONE && state->incarnation > 0;
    uint64_t restarts = state->restarts + (uint64_t)pace_relay_attempts() +
                        (state->incarnation > 0 && state->ending == PACE__RUN_RUNNING);

    if (restarts >= PACE__RUN_NUMBER_MAX || state->incarnation + 1 >= PACE__RUN_NUMBER_MAX)
        return pace_fail(job->log, PACE_BAD_DATA,
                         "%s/state.json: its numbers are too large to count on, or those in the names of "
                         "checkpoints are: --force starts over",
                         job->config->run);
    state->restarts = restarts;
    state->incarnation++;
    state->ending = PACE__RUN_RUNNING;
    return pace__runstate_write(job->config->run, state, job->log);
}

void pace__job_note_ending(pace__job *job, pace_status status)
{
    pace__background_wait(job->saving.background); /* it may be writing the same file */
    job->state.ending = !status                      ? PACE__RUN_DONE
                        : status == PACE_INTERRUPTED ? PACE__RUN_INTERRUPTED
                        : status == PACE_LOST        ? PACE__RUN_RUNNING
                                                     : PACE__RUN_FAILED;
    if (pace__runstate_check(job->config->run, job->state.incarnation, NULL) == PACE_OK)
        pace__runstate_write(job->config->run, &job->state, NULL);
}

static pace__run_start start_of(const pace_train_config *config)
{
    return config->resume ? PACE__RUN_RESUME : config->force ? PACE__RUN_REPLACE : PACE__RUN_NEW;
}

pace_status pace__job_check_run(const pace__job *job)
{
    return pace__rundir_check(job->config->run, start_of(job->config), job->log);
}

static pace_status open_run(pace__job *job)
{
    pace_status status = pace__rundir_open(job->config->run, start_of(job->config), job->log, &job->run);

    if (status)
        return status;
    job->log = pace__rundir_log(job->run);
    pace_registry_attach(job->registry, pace__rundir_sink(job->run));
    return pace__make_dirs(pace__rundir_path(job->run, PACE__RUN_CHECKPOINTS), job->log);
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

/* The configuration that repeats this run. How this start treats what is in its directory is not part of it. */
static pace_status write_config(const pace__job *job)
{
    pace_train_config decided;
    pace_option_part parts[4];
    int kernels = pace_kernels_asked();

    pace__plan_options(&job->plan, job->config, &decided);
    if (job->config->resume)
        pace__resume_say_changes(job, &decided);
    pace__record_parts(&decided, &kernels, parts);
    return pace_options_write_yaml(parts, pace__rundir_path(job->run, PACE__RUN_CONFIG), job->log);
}

/* At a checkpoint, or at the beginning; what was recorded of the steps that come again is told again. */
static pace_status stand_at_start(pace__job *job)
{
    bool resume = job->config->resume;
    pace_status status = resume ? pace__job_restore(job) : PACE_OK;

    if (!status && resume)
        status = pace__rundir_go_back(job->run, job->position.step);
    if (!status && resume && job->position.step == 0)
        status = pace__job_read_vectors(job);
    if (!status)
        status = write_config(job);
    if (!status) /* a run with a summary has finished: not this one, from here on */
        status = pace__remove_tree(pace__rundir_path(job->run, PACE__RUN_SUMMARY), job->log);
    return status;
}

/* --- steps --- */

/* A "start" record: training begins, or goes on, here. */
static void emit_start(const pace__job *job)
{
    pace_field fields[] = {PACE_INT("step", job->position.step), PACE_INT("steps", job->plan.steps),
                           PACE_INT("incarnation", job->state.incarnation),
                           PACE_INT("restarts", job->state.restarts)};

    pace_registry_emit(job->registry, "start", fields, sizeof fields / sizeof *fields);
}

static pace_status train(pace__job *job)
{
    pace_status status = job->strategy->begin(job);

    if (status)
        return status;
    emit_start(job);
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

/* Whether another incarnation has taken over; that this cannot be found out is no reason to give up. */
static pace_status check_ours(pace__job *job)
{
    pace_status status = pace__runstate_check(job->config->run, job->state.incarnation, job->log);

    job->saving.superseded = status == PACE_FAILED;
    return status == PACE_FAILED ? status : PACE_OK;
}

static pace_status write_model(pace__job *job, char sha256[PACE__SHA256_HEX])
{
    pace__origin origin;
    pace_status status = pace__origin_read(&job->store, job->log, &origin);

    if (!status)
        status = job->strategy->write(job, &origin, sha256);
    pace__origin_release(&origin);
    return status;
}

/* The model first: a test row that cannot be read must not cost the training. Scores do not depend on it. */
static pace_status commit(pace__job *job, pace_train_result *result)
{
    const pace__strategy *strategy = job->strategy;
    pace_status status = pace__job_save_finish(job);

    assert(status || job->saving.stage == PACE__SAVING_NOTHING);
    if (!status) /* invariant 2 */
        status = check_ours(job);
    if (!status)
        status = write_model(job, result->model_sha256);
    result->has_test = job->plan.model.data.test_rows > 0;
    if (!status && result->has_test)
        status = strategy->final_scores ? strategy->final_scores(job) : pace__job_evaluate(job, 0);
    result->test = job->scores;
    if (!status && strategy->end)
        status = strategy->end(job, PACE_OK);
    job->others_left = !status && pace__cluster_size(&job->plan.cluster) > 1;
    if (!status) /* once more: scoring may have taken long */
        status = check_ours(job);
    return status ? status : pace__job_write_summary(job, result);
}

static pace_status finish(pace__job *job, pace_train_result *result)
{
    pace_train_result reached = pace__job_reached(job);

    assert(pace__job_is_over(job) && !job->others_left);
    pace__faults_at(&job->faults, PACE__AT_END, job->position.step);
    pace_status status = commit(job, &reached);

    if (status) { /* invariant 4 */
        if (status != PACE_LOST && !job->others_left && !job->saving.superseded &&
            pace__job_save_now(job) == PACE_OK)
            pace_say(job->log, PACE_WARN, "training is done and checkpointed: --resume only has to finish");
        return status;
    }
    pace__faults_say_unfired(job->config->faults.inject, &job->plan.cluster, job->config->run, job->log);
    *result = reached;
    return PACE_OK;
}

/* --- all of it --- */

static pace_status describe(pace__job *job)
{
    pace_status status = pace__job_check_run(job);

    if (!status && job->config->resume)
        status = pace__job_check_restore(job);
    return status || !job->strategy->describe ? status : job->strategy->describe(job);
}

pace_status pace__job_lead(pace__job *job, pace_train_result *result)
{
    const pace_log *caller_log = job->log;

    job->position = (pace__position){.best_logloss = INFINITY, .last_epoch_loss = NAN};
    pace__job_say_needs(job);
    if (job->config->dry_run)
        return describe(job);
    pace_status status = pace__scoring_metrics(job->plan.model.shape.outputs, job->log, &job->metrics);

    if (!status)
        status = job->strategy->open(job);
    if (!status)
        status = open_run(job);
    if (!status)
        status = take_over(job);
    if (!status)
        status = pace__job_open_account(job, 0);
    if (!status)
        status = pace__job_open_saving(job);
    if (!status) {
        status = stand_at_start(job);
        if (!status)
            status = train(job);
        if (!status)
            status = finish(job, result);
        pace__job_note_ending(job, status);
    }
    pace__job_close_saving(job);
    job->strategy->close(job); /* waits for parts that are being written */
    close_run(job, caller_log);
    pace__metrics_free(job->metrics);
    return status;
}
