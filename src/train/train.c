#include "base/clock.h"
#include "files/file.h"
#include "metrics/scoring.h"
#include "threads/thread.h"
#include "roles/process.h"

#include <math.h>
#include <paceline/relay.h>
#include <stdlib.h>

/* First contact may take longer than later answers. */
#define FIRST_CONTACT_FACTOR 2.0
#define FIRST_CONTACT_MIN_S  10.0

static pace_status write_config(const pace__job *job)
{
    pace_train_config kept;
    pace_option_part parts[3];

    pace__job_decided(job, &kept);
    if (job->config->resume)
        pace__resume_say_changes(job, &kept);
    pace__train_parts(&kept, parts);
    return pace_options_write_yaml(parts, pace__rundir_path(job->run, PACE__RUN_CONFIG), job->log);
}

/* --- leading a run --- */

pace_status pace__job_open_account(pace__job *job, int rank)
{
    pace__row_count_open(&job->rows, job->config->run, rank);
    return pace__faults_open(&job->faults, job->config->faults.inject, &job->cluster, rank, job->config->run,
                             job->log);
}

void pace__job_close_account(pace__job *job)
{
    pace__faults_close(&job->faults);
    pace__row_count_close(&job->rows);
}

void pace__job_emit_start(const pace__job *job)
{
    pace_field fields[] = {PACE_INT("step", job->position.step), PACE_INT("steps", job->steps),
                           PACE_INT("incarnation", job->state.incarnation),
                           PACE_INT("restarts", job->state.restarts)};

    pace_registry_emit(job->registry, "start", fields, sizeof fields / sizeof *fields);
}

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
    state->restarts += state->incarnation > 0 && state->ending == PACE__RUN_RUNNING;
    state->restarts += (uint64_t)pace_relay_attempts();
    state->incarnation++;
    state->ending = PACE__RUN_RUNNING;
    return pace__runstate_write(job->config->run, state, job->log);
}

static pace_status restore(pace__job *job)
{
    pace_status status = pace__job_restore(job);

    if (!status) /* what was recorded of the steps that come again is told again */
        status = pace__rundir_go_back(job->run, job->position.step);
    return status;
}

/* From the run's beginning, or from a checkpoint, to the summary. */
static pace_status run(pace__job *job, pace_train_result *result)
{
    pace_status status = job->config->resume ? restore(job) : PACE_OK;

    if (!status && job->config->resume && job->position.step == 0)
        status = pace__job_read_vectors(job);
    if (!status)
        status = write_config(job);
    if (!status) /* a run with a summary has finished: not this one, from here on */
        status = pace__remove_tree(pace__rundir_path(job->run, PACE__RUN_SUMMARY), job->log);
    if (job->by_columns)
        pace__job_stand_behind(job, &job->logreg.optim, job->position.step);
    job->start_ns = pace__now_ns();
    if (!status)
        status = job->train(job);
    return status ? status : pace__job_finish(job, result);
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

static pace_status run_recorded(pace__job *job, pace_train_result *result)
{
    pace_status status = take_over(job);

    if (!status)
        status = pace__job_open_account(job, 0);
    if (!status)
        status = pace__job_open_saving(job);
    if (!status) {
        status = run(job, result);
        pace__job_note_ending(job, status);
    }
    pace__job_close_saving(job);
    pace__part_saver_close(&job->part_saver);
    return status;
}

static pace__run_start start_of(const pace_train_config *config)
{
    return config->resume ? PACE__RUN_RESUME : config->force ? PACE__RUN_REPLACE : PACE__RUN_NEW;
}

pace_status pace__job_check_run(const pace__job *job)
{
    return pace__rundir_check(job->config->run, start_of(job->config), job->log);
}

static pace_status start(pace__job *job, pace_train_result *result)
{
    const pace_train_config *config = job->config;
    const pace_log *caller_log = job->log;
    pace_status status = pace__rundir_open(config->run, start_of(config), job->log, &job->run);

    if (status)
        return status;
    job->log = pace__rundir_log(job->run);
    pace_registry_attach(job->registry, pace__rundir_sink(job->run));
    status = pace__make_dirs(pace__rundir_path(job->run, PACE__RUN_CHECKPOINTS), job->log);
    if (!status)
        status = run_recorded(job, result);
    pace_registry_detach(job->registry, pace__rundir_sink(job->run));
    job->log = caller_log;
    pace__rundir_close(job->run);
    job->run = NULL;
    return status;
}

pace_status pace__job_lead(pace__job *job, pace_train_result *result)
{
    const pace_train_config *config = job->config;

    pace__job_say_needs(job);
    if (config->dry_run) {
        pace_status fits = pace__job_check_run(job);

        return fits || !job->member ? fits : job->train(job);
    }
    pace_status status = pace__scoring_metrics(job->shape.outputs, job->log, &job->metrics);

    if (!status)
        status = pace__job_open_parameters(job);
    if (!status)
        status = start(job, result);
    pace__job_close_parameters(job);
    pace__metrics_free(job->metrics);
    return status;
}

/* --- one process --- */

static pace_status train_local(pace__job *job)
{
    pace__job_emit_start(job);
    pace_status status = pace__job_is_over(job) ? PACE_OK : pace__train_local(job);

    job->trained_s = pace__seconds_since(job->start_ns);
    return status;
}

/* Logreg on sparse rows. */
static pace_status run_by_columns(pace__job *job, pace_train_result *result)
{
    job->train = train_local;
    job->save = pace__local_save;
    job->saved = pace__local_saved;
    job->rest = pace__local_rest;
    job->pulse = pace__local_pulse;
    pace__dataset data = pace__store_describe(&job->store.info);
    pace_status status = pace__job_plan(job, &data);

    if (!status)
        status = pace__job_lead(job, result);
    pace__job_close_account(job);
    pace__model_plan_release(&job->model);
    return status;
}

/* --- many --- */

double pace__first_contact_s(const pace_train_config *config)
{
    return fmax(FIRST_CONTACT_FACTOR * config->cluster.deadline, FIRST_CONTACT_MIN_S);
}

static pace__link_options link_options(const pace__job *job)
{
    const pace_train_config *config = job->config;

    return (pace__link_options){.deadline_ns = (uint64_t)(config->cluster.deadline * 1e9),
                                .first_deadline_ns = (uint64_t)(pace__first_contact_s(config) * 1e9),
                                .outlives = pace__job_outlives_here(job),
                                .log = job->log};
}

/* As one of the ranks that a launcher has started. */
static pace_status run_as_rank(pace__job *job, pace_train_result *result)
{
    pace__link_options options = link_options(job);
    int size = pace__cluster_size(&job->cluster);
    pace__link *link;
    pace_status status = pace__link_open_mpi(job->cluster.workers, &options, &link);

    if (status)
        return status;
    result->elsewhere = pace__link_rank(link) != 0;
    if (pace__link_size(link) == size)
        return pace__member_run(job, link, result);
    /* Every rank finds this; one tells. */
    status = PACE_USAGE;
    if (!result->elsewhere)
        pace_fail(job->log, status,
                  "%d process%s started, but %d worker%s, %d ps%s are %d: start as many as there are roles%s",
                  pace__link_size(link), pace__link_size(link) == 1 ? " was" : "es were",
                  job->cluster.workers, job->cluster.workers == 1 ? "" : "s", job->cluster.ps,
                  job->cluster.evaluator ? " and an evaluator" : "", size,
                  pace__link_size(link) == 1
                      ? " (srun needs --mpi=pmix, and mpirun must be that of the same MPI)"
                      : "");
    pace__link_close(link);
    return status;
}

/* A launcher has started several processes, but the options ask for one. */
static pace_status refuse_copies(const pace__job *job, int rank, int size, pace_train_result *result)
{
    result->elsewhere = rank > 0;
    pace_say(
        rank > 0 ? NULL : job->log, PACE_ERROR,
        "%d processes were started, but --mode local is one: give --workers, --ps and --evaluator for them",
        size);
    return PACE_USAGE;
}

/* A cluster of one needs no launcher. */
static pace_status run_as_cluster_of_one(pace__job *job, pace_train_result *result)
{
    pace__link_options options = link_options(job);
    pace__link *link;
    pace_status status = pace__link_open_threads(1, 1, &options, &link);

    return status ? status : pace__member_run(job, link, result);
}

static pace_status run_alone(pace__job *job, pace_train_result *result)
{
    pace_status status = pace__store_open(job->config->data, &job->store, job->log);

    if (status)
        return status;
    pace__dataset data = pace__store_describe(&job->store.info);
    bool by_columns = pace__job_goes_by_columns(job, &data);

    if (by_columns)
        status = run_by_columns(job, result);
    pace__store_close(&job->store);
    return by_columns ? status : run_as_cluster_of_one(job, result);
}

pace_status pace_train(const pace_train_config *config, const pace_log *log, pace_registry *registry,
                       pace_train_result *result)
{
    pace_registry *own = registry ? NULL : pace_registry_create(); /* metrics.jsonl is written in any case */
    pace__job job = {.given = config, .settled = *config, .log = log, .registry = registry ? registry : own};
    int rank, size;

    job.config = &job.settled;
    pace_status status =
        job.registry ? pace__job_plan_cluster(&job) : pace_fail(log, PACE_FAILED, "out of memory");

    bool launched = pace__launched(&rank, &size), finished = false;

    if (!status && config->resume && !config->dry_run && !launched)
        status = pace__resume_look(&job, result, &finished);
    if (finished)
        pace_say(log, PACE_INFO, "%s: the run has finished: there is nothing left to do", config->run);
    if (status || finished) {
        pace_registry_free(own);
        return status;
    }
    if (!status && job.mode == PACE_MODE_LOCAL && launched && size > 1)
        status = refuse_copies(&job, rank, size, result);
    else if (!status && job.mode == PACE_MODE_LOCAL)
        status = run_alone(&job, result);
    else if (!status && launched)
        status = run_as_rank(&job, result);
    else if (!status && pace__cluster_size(&job.cluster) == 1 && !config->cluster.hosts)
        status = run_as_cluster_of_one(&job, result);
    else if (!status)
        status = pace__supervise(&job, result);
    pace_registry_free(own);
    return status == PACE_LOST && !pace_relay_wanted() ? PACE_FAILED : status;
}
