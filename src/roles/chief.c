/*
 * The chief: leads the run (job/lead.c), and is worker 0. Here is how it does what a leader does where there are ranks,
 * or a cluster of one.
 */
#include "base/clock.h"
#include "forecast/expect.h"
#include "ranks/aside.h"
#include "roles/process.h"

#include <inttypes.h>
#include <string.h>

static pace__process *process_of(const pace__job *job)
{
    return job->own;
}

/* --- beginning --- */

static const char *host_of(const pace__process *process, int rank)
{
    const pace__job *job = process->job;

    return job->planned_hosts ? job->planned_hosts[rank] : process->self.hosts[rank];
}

static int count_hosts(const pace__process *process)
{
    int count = 0;

    for (int rank = 0; rank < pace__cluster_size(&process->job->plan.cluster); rank++) {
        int same = 0;

        while (same < rank && strcmp(host_of(process, same), host_of(process, rank)) != 0)
            same++;
        count += same == rank;
    }
    return count;
}

/* Who runs alone has nothing to be compared with. */
static pace_status say_expected(pace__process *process)
{
    if (pace__cluster_size(&process->job->plan.cluster) == 1)
        return PACE_OK;
    return pace__job_say_expected(process->job, count_hosts(process));
}

/* The run directory is open, the position known. */
static pace_status begin(pace__job *job)
{
    pace__process *process = process_of(job);
    uint64_t start = 0;

    pace__rank_set_log(&process->self, job->log); /* the run directory hears all */
    job->log = process->self.log;
    pace_status status = pace__process_welcome(process);

    if (!status && !job->config->resume) /* then it was said */
        status = say_expected(process);
    if (!status)
        status = pace__process_open_tables(process);
    bool has_values = job->position.step > 0 || job->is_warm || pace__model_begins_random(&job->plan.model);

    if (!status && has_values)
        status = pace__process_deal_out(process);
    return status ? status : pace__process_tell_all(process, PACE__TAG_GO, &start, sizeof start);
}

/* --- steps --- */

static pace_status train(pace__job *job)
{
    pace__process *process = process_of(job);
    pace__boundary boundary;
    pace_status status = PACE_OK;

    process->start_ns = pace__now_ns();
    pace__boundary_open(&boundary, job, true);
    process->boundary = &boundary;
    pace__rank_set_step(&process->self, job->position.step);
    process->watches_evaluator = job->plan.cluster.evaluator && pace__plan_scores(&job->plan);
    if (!pace__job_is_over(job))
        status = (job->craft ? job->craft->run : pace__worker_run)(process, &boundary);
    process->watches_evaluator = false;
    pace__rank_set_step(&process->self, PACE__NO_STEP);
    process->trained_ns = pace__now_ns();
    process->report->still_s = pace__boundary_still_s(&boundary);
    process->report->save_s = pace__boundary_saved_s(&boundary);
    process->boundary = NULL;
    return status ? status : pace__process_check_rows(process, job->position.step);
}

static pace_status gather(pace__job *job)
{
    pace_status status = pace__process_gather(process_of(job));

    return status ? status : pace__job_check_parameters(job);
}

/* --- the end --- */

static pace_status end(pace__job *job, pace_status how)
{
    pace__process *process = process_of(job);
    pace_status status = pace__process_end_all(process, how);

    if (status || how)
        return status;
    job->reports = process->reports;
    pace__reports_emit(&job->plan.cluster, process->reports, job->registry);
    return PACE_OK;
}

/* --- what the evaluator sends --- */

static void await_verdict(pace__process *process)
{
    pace__link_receive(process->self.link, pace__cluster_size(&process->job->plan.cluster) - 1,
                       PACE__TAG_SCORES, &process->verdict, sizeof process->verdict,
                       &process->verdict_receive);
}

static void emit_verdict(const pace__job *job, const pace__scored *verdict)
{
    static const int order[] = {PACE__VALIDATION, PACE__TEST};

    for (int i = 0; i < 2; i++) {
        if (verdict->scores[order[i]].n > 0)
            pace__job_emit_scores(job, order[i], verdict->step);
    }
}

pace_status pace__chief_take_verdicts(pace__process *process, bool final)
{
    pace__job *job = process->job;

    while (job->plan.cluster.evaluator && pace__plan_scores(&job->plan) && !process->scored) {
        const pace__scored *verdict = &process->verdict;
        bool came;

        if (!process->verdict_receive.active)
            await_verdict(process);
        pace_status status =
            final ? pace__link_wait(process->self.link, &process->verdict_receive, "the last scores")
                  : pace__link_done(process->self.link, &process->verdict_receive, &came);

        if (status || (!final && !came))
            return status;
        status = pace__link_fits(process->self.link, &process->verdict_receive, sizeof *verdict, "scores");
        if (status)
            return status;
        memcpy(job->scores, verdict->scores, sizeof job->scores);
        job->curves = verdict->curves;
        job->worst = verdict->worst;
        if (verdict->skipped > 0 && job->evaluations_skipped == 0) /* summary.json has the rest */
            pace_say(job->log, PACE_INFO,
                     "step %" PRIu64 ": the evaluator is behind, and has skipped %" PRIu64
                     " evaluations so far: --eval-every %" PRId64 " is more often than it can score",
                     verdict->step, verdict->skipped, job->config->records.eval_every);
        job->evaluations_skipped = verdict->skipped;
        process->scored = verdict->final;
        emit_verdict(job, verdict);
        if (!verdict->final)
            pace__job_say_scores(job, pace__job_judged(job), verdict->step, " (evaluator)");
    }
    return PACE_OK;
}

pace_status pace__chief_drop_verdicts(pace__process *process)
{
    bool came = true;
    pace_status status = PACE_OK;

    while (!status && came && !process->scored) {
        if (!process->verdict_receive.active)
            await_verdict(process);
        status = pace__link_done(process->self.link, &process->verdict_receive, &came);
    }
    return status;
}

static pace_status final_scores(pace__job *job)
{
    return job->plan.cluster.evaluator ? pace__chief_take_verdicts(process_of(job), true)
                                       : pace__job_evaluate_all(job);
}

/* --- checkpoints --- */

static unsigned parts(const pace__job *job)
{
    return pace__plan_holders(&job->plan);
}

/* Everyone serves meanwhile, and gives signs of life. For its own part it waits as long as its disk takes. */
static pace_status rest(pace__job *job, unsigned *turns)
{
    pace__process *process = process_of(job);
    int peer = pace__process_unsaved(process);

    return pace__link_turn(process->self.link, &peer, peer > 0, "its part of a checkpoint", turns);
}

/* What it fails with comes again in the next wait. */
static void pulse(pace__job *job)
{
    if (!pace__link_pulse(process_of(job)->self.link))
        pace__job_save_poll(job);
}

static pace_status aside(pace__job *job, bool *slow, const char *what, pace_status (*work)(void *user),
                         void *user)
{
    pace__rank *self = &process_of(job)->self;

    return slow ? pace__rank_aside_if(self, slow, what, work, user)
                : pace__rank_aside(self, what, work, user);
}

/* --- a dry run --- */

typedef struct naming {
    const pace__process *process;
    char text[PACE__LINK_NAME_MAX];
} naming;

static const char *name_of(void *user, int rank)
{
    naming *self = user;
    const pace__job *job = self->process->job;
    char role[PACE__ROLE_TEXT];

    if (!job->planned_hosts)
        return pace__link_name(self->process->self.link, rank);
    pace__role_name(&job->plan.cluster, rank, role);
    snprintf(self->text, sizeof self->text, "%s (rank %d, host %.200s)", role, rank,
             job->planned_hosts[rank]);
    return self->text;
}

/* Everyone has answered, and nothing more is wanted. */
static pace_status describe(pace__job *job)
{
    pace__process *process = process_of(job);
    naming names = {.process = process};
    pace_status status = pace__process_welcome(process);

    if (!status)
        status = pace__job_describe(job, name_of, &names);
    if (!status && job->planned_hosts) /* else this is a part of a dry run that has said it */
        status = say_expected(process);
    return status || job->planned_hosts ? status : pace__process_end_all(process, PACE_OK);
}

const pace__strategy pace__rank_strategy = {
    .open = pace__job_open_parameters,
    .close = pace__job_close_parameters,
    .begin = begin,
    .train = train,
    .gather = gather,
    .end = end,
    .logits = pace__job_logits,
    .write = pace__job_write,
    .final_scores = final_scores,
    .parts = parts,
    .save = pace__process_save,
    .saved = pace__process_saved,
    .rest = rest,
    .pulse = pulse,
    .aside = aside,
    .describe = describe,
};
