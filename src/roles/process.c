#include "roles/process.h"

#include "base/clock.h"
#include "data/store/describe.h"
#include "data/store/sums.h"
#include "ranks/aside.h"

#include <stdlib.h>
#include <string.h>

/* --- everyone but the chief --- */

static pace_status await_start(pace__process *process)
{
    pace__request receive = {0};

    pace__link_receive(process->self.link, 0, PACE__TAG_GO, &process->start_word, sizeof process->start_word,
                       &receive);
    pace_status status = pace__link_wait(process->self.link, &receive, "the start");

    return status ? status
                  : pace__link_fits(process->self.link, &receive, sizeof process->start_word, "the start");
}

static pace_status work(pace__process *process)
{
    pace__job *job = process->job;

    if (process->role == PACE__WORKER && !pace__job_is_over(job))
        return (job->craft ? job->craft->run : pace__worker_run)(process, NULL);
    return process->role == PACE__EVALUATOR ? pace__evaluator_run(process) : PACE_OK;
}

static pace_status open_account(void *user)
{
    const pace__process *process = user;

    return pace__job_open_account(process->job, process->self.number);
}

/* Of those of its host that read rows. */
static bool is_first_on_host(const pace__process *process)
{
    for (int rank = 0; rank < process->self.number; rank++) {
        if (pace__role_of(&process->job->plan.cluster, rank) != PACE__PS &&
            strcmp(process->self.hosts[rank], process->self.host) == 0)
            return false;
    }
    return true;
}

static pace_status open_stage(void *user)
{
    const pace__process *process = user;

    pace__job_open_stage(process->job, false, is_first_on_host(process));
    return PACE_OK;
}

/* From the first word to the last. */
static pace_status follow(pace__process *process)
{
    pace__job *job = process->job;
    bool dry = job->config->dry_run;
    pace_status status = pace__process_greet(process);

    if (status)
        return status;
    pace__link_receive(process->self.link, 0, PACE__TAG_END, &process->ending, sizeof process->ending,
                       &process->end_receive);
    if (!dry)
        status = pace__rank_aside(&process->self, "opening its account in the run", open_account, process);
    if (!status && !dry && process->role != PACE__PS)
        status =
            pace__rank_aside(&process->self, "looking for local copies of the data", open_stage, process);
    if (!status && !dry)
        status = pace__process_open_tables(process);
    if (!status && !dry)
        status = await_start(process);
    if (!status && !dry)
        pace__faults_at(&job->faults, PACE__AT_START, job->position.step);
    process->start_ns = pace__now_ns();
    if (!status && !dry)
        status = work(process);
    if (!status)
        status = pace__server_run(process);
    if (!status)
        status =
            pace__link_fits(process->self.link, &process->end_receive, sizeof process->ending, "the end");
    if (!status && process->ending.status == PACE_OK && process->ending.step == job->plan.steps)
        pace__faults_at(&job->faults, PACE__AT_END, process->ending.step);
    if (!status)
        status = pace__process_check_rows(process, process->ending.step);
    if (!status)
        status = pace__process_send_report(process);
    if (!status)
        status = pace__process_part(process);
    return status ? status : (pace_status)process->ending.status;
}

/* --- the whole of it --- */

static void open_process(pace__process *process, pace__job *job, pace__link *link)
{
    *process = (pace__process){.job = job};
    pace__rank_open(&process->self, link, &job->plan.cluster, false, job->log);
    process->self.warns = true;
    process->role = pace__role_of(&job->plan.cluster, process->self.number);
    /* The chief says what comes before the run directory as it is. */
    job->log = process->self.number > 0 ? process->self.log : &process->self.caller_log;
    job->own = process;
    job->strategy = &pace__rank_strategy;
}

/* From the data set here. A server makes its plan when it has heard what the data set is like. */
static pace_status make_plan(void *user)
{
    pace__process *process = user;
    pace__job *job = process->job;
    pace__dataset data = pace__store_describe(&job->store.info);

    process->content = pace__store_content(&job->store);
    return pace__job_make_plan(job, &data, process->self.number == 0);
}

static pace_status open_data(void *user)
{
    pace__process *process = user;
    pace__job *job = process->job;
    bool chief = process->self.number == 0;
    pace_status status = chief && !job->config->dry_run ? pace__job_check_run(job) : PACE_OK;

    if (!status && process->role != PACE__PS)
        status = pace__job_open_data(job, job->log);
    if (!status && chief)
        pace__store_warn(&job->store, job->log);
    return status || process->role == PACE__PS ? status : make_plan(process);
}

static pace_status plan_features(void *user)
{
    pace__process *process = user;
    pace_status status = pace__job_take_validation(process->job, process->job->log);

    return status ? status : make_plan(process);
}

/* Features are made of all training rows, whatever is taken of them. */
static pace_status use_features(pace__process *process)
{
    pace_status status = pace__store_carve(&process->job->store, 0, process->job->log);

    if (!status)
        status = pace__process_use_features(process);
    return status ? status
                  : pace__rank_aside(&process->self, "reading what the model begins with", plan_features,
                                     process);
}

/* A run that is done is not made another one. */
static pace_status look_at_run(void *user)
{
    const pace__process *process = user;
    bool finished;

    return pace__resume_look(process->job, &(pace_train_result){0}, &finished);
}

static pace_status run(pace__process *process, pace_train_result *result)
{
    pace__job *job = process->job;
    bool chief = process->self.number == 0;

    process->report = pace__process_new_report(process);
    if (!process->report)
        return pace_fail(process->self.log, PACE_FAILED, "out of memory");
    pace_status status = pace__rank_aside(&process->self, "opening the data set", open_data, process);

    if (!status && job->plan.model.extracts)
        status = use_features(process);
    if (!status && chief && job->config->resume)
        status = pace__rank_aside(&process->self, "looking at the run", look_at_run, process);
    if (status)
        return status;
    return chief ? pace__job_lead(job, result) : follow(process);
}

void pace__process_fail(pace__process *process, pace_status status)
{
    if (!process->self.failed && process->self.number == 0 && process->job->run)
        pace__job_end_here(process->job, status);
    pace__rank_fail(&process->self, status);
}

pace_status pace__process_run(pace__job *job, pace__link *link, pace_train_result *result)
{
    const pace_log *caller_log = job->log;
    pace__process process;

    open_process(&process, job, link);
    pace_status status = run(&process, result);
    bool failed = status != PACE_OK && status != PACE_INTERRUPTED;

    pace__rank_set_log(&process.self, NULL); /* the run directory is closed */
    if (failed) /* others may be waiting: they are ended, and with them whatever they were sending here */
        pace__process_fail(&process, status);
    pace__link_cancel(link, &process.verdict_receive);
    pace__link_cancel(link, &process.end_receive);
    pace__process_close_profile(&process);
    pace__process_close_tables(&process);
    pace__job_close_account(job);
    pace__process_free_reports(&process);
    pace__plan_release(&job->plan);
    pace__warm_close(&job->warm);
    pace__job_close_stage(job, status);
    pace__store_close(&job->store);
    pace__rank_close(&process.self);
    pace__profile_close(&process.profile); /* its threads have ended */
    job->log = caller_log;
    return status;
}
