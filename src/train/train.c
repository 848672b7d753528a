/* train.c - pace_train: who this process is among those of the job. */
#include "base/locale.h"
#include "train/rehearse.h"
#include "train/supervise.h"

#include "columns/columns.h"
#include "data/store/describe.h"
#include "localsgd/localsgd.h"
#include "roles/process.h"
#include "serve/serve.h"

#include <math.h>
#include <paceline/relay.h>

/* First contact may take longer than later answers. */
#define FIRST_CONTACT_FACTOR 2.0
#define FIRST_CONTACT_MIN_S  10.0

/* --- one process --- */

/* Without ranks; one worker of local-sgd has nobody to merge with. */
static bool is_alone(const pace__job *job)
{
    return job->plan.mode == PACE_MODE_LOCAL ||
           (job->plan.mode == PACE_MODE_LOCAL_SGD && job->plan.cluster.workers == 1);
}

/* Threads that split the columns. */
static pace_status run_by_columns(pace__job *job, const pace__dataset *data, pace_train_result *result)
{
    job->strategy = &pace__columns_strategy;
    pace_status status = pace__job_make_plan(job, data, true);

    if (!status)
        status = pace__job_lead(job, result);
    pace__job_close_account(job);
    pace__plan_release(&job->plan);
    pace__warm_close(&job->warm);
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
                                .outlives = pace__job_outlives_here(&job->plan),
                                .log = job->log};
}

/* As one of the ranks that a launcher has started. */
static pace_status run_as_rank(pace__job *job, pace_train_result *result)
{
    pace__link_options options = link_options(job);
    int size = pace__cluster_size(&job->plan.cluster);
    pace__link *link;
    pace_status status = pace__link_open_mpi(job->plan.cluster.workers, &options, &link);

    if (status)
        return status;
    result->elsewhere = pace__link_rank(link) != 0;
    if (job->plan.mode == PACE_MODE_LOCAL_SGD)
        job->craft = &pace__localsgd;
    if (pace__link_size(link) == size)
        return pace__process_run(job, link, result);
    /* Every rank finds this; one tells. */
    status = PACE_USAGE;
    if (!result->elsewhere)
        pace_fail(job->log, status,
                  "%d process%s started, but %d worker%s, %d ps%s are %d: start as many as there are roles%s",
                  pace__link_size(link), pace__link_size(link) == 1 ? " was" : "es were",
                  job->plan.cluster.workers, job->plan.cluster.workers == 1 ? "" : "s", job->plan.cluster.ps,
                  job->plan.cluster.evaluator ? " and an evaluator" : "", size,
                  pace__link_size(link) == 1
                      ? " (srun needs --mpi=pmix, and mpirun must be that of the same MPI)"
                      : "");
    pace__link_fail(link, status,
                    "a rank was started for another number of roles"); /* the others may be content */
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
pace_status pace__run_without_others(pace__job *job, pace_train_result *result)
{
    pace__link_options options = link_options(job);
    pace__link *link;
    pace_status status = pace__link_open_threads(1, 1, &options, &link);

    return status ? status : pace__process_run(job, link, result);
}

static pace_status run_alone(pace__job *job, pace_train_result *result)
{
    pace_status status = pace__job_open_data(job, job->log);

    if (status)
        return status;
    pace__dataset data = pace__store_describe(&job->store.info);
    bool by_columns = pace__plan_goes_by_columns(&job->plan, job->config, &data);

    if (by_columns) { /* else whoever opens it again says so */
        pace__store_warn(&job->store, job->log);
        status = run_by_columns(job, &data, result);
    }
    pace__store_close(&job->store);
    return by_columns ? status : pace__run_without_others(job, result);
}

/* The page is served by one process: the one that was started, or, of those that a launcher has started, the first. Its
 * log is that of the caller, which no run directory hears: the address may hold a token. */
static pace_status serve_page(const pace_train_config *config, int rank, const pace_log *log,
                              pace__serve **serve)
{
    if (!config->records.dashboard || config->dry_run || rank > 0)
        return PACE_OK;
    return pace__serve_start(&(pace__serve_plan){.run = config->run, .address = config->records.dashboard},
                             log, serve);
}

static pace_status run_in_place(pace__job *job, bool launched, pace_train_result *result)
{
    if (is_alone(job))
        return run_alone(job, result);
    if (launched)
        return run_as_rank(job, result);
    if (pace__cluster_size(&job->plan.cluster) == 1 && !job->config->cluster.hosts)
        return pace__run_without_others(job, result);
    return job->config->dry_run ? pace__rehearse(job, result) : pace__supervise(job, result);
}

pace_status pace_train(const pace_train_config *config, const pace_log *log, pace_registry *registry,
                       pace_train_result *result)
{
    PACE__C_LOCALE();
    pace_registry *own = registry ? NULL : pace_registry_create(); /* metrics.jsonl is written in any case */
    pace__job job = {.given = config, .settled = *config, .log = log, .registry = registry ? registry : own};
    pace__serve *serve = NULL;
    int rank, size;

    job.config = &job.settled;
    pace_status status = job.registry ? pace__plan_cluster(config, log, &job.plan)
                                      : pace_fail(log, PACE_FAILED, "out of memory");

    bool launched = pace__launched(&rank, &size), finished = false;

    if (!status && config->resume && !launched)
        status = pace__resume_look(&job, result, &finished);
    if (finished)
        pace_say(log, PACE_INFO, "%s: the run has finished: there is nothing left to do%s", config->run,
                 config->records.profile ? ", and nothing to profile: a run of its own has a profile" : "");
    if (status || finished) {
        pace_registry_free(own);
        return status;
    }
    if (is_alone(&job) && launched && size > 1)
        status = refuse_copies(&job, rank, size, result);
    else
        status = serve_page(config, launched ? rank : 0, log, &serve);
    if (!status)
        status = run_in_place(&job, launched, result);
    pace__serve_stop(serve);
    pace_registry_free(own);
    return status == PACE_LOST && !pace_relay_wanted() ? PACE_FAILED : status;
}
