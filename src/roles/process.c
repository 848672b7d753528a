#include "roles/process.h"

#include "base/clock.h"
#include "ranks/ranks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* A rank that is lost, or is lost meanwhile, needs no message. */
static pace_status send_to(pace__member *member, int rank, int tag, const void *bytes, size_t size)
{
    pace__request send = {0};

    if (pace__link_is_lost(member->self.link, rank))
        return PACE_OK;
    pace__link_send(member->self.link, rank, tag, bytes, size, &send);
    pace_status status = pace__link_wait(member->self.link, &send, "a message to leave");

    if (status != PACE_LOST || !pace__link_is_lost(member->self.link, rank))
        return status;
    pace__link_abandon(member->self.link, &send);
    return PACE_OK;
}

pace_status pace__member_tell_all(pace__member *member, int tag, const void *bytes, size_t size)
{
    pace_status status = PACE_OK;

    for (int rank = 1; rank < pace__cluster_size(&member->job->cluster) && !status; rank++)
        status = send_to(member, rank, tag, bytes, size);
    return status;
}

/* --- reports --- */

static bool counts(int tag)
{
    return tag == PACE__TAG_PUSH || tag == PACE__TAG_REPLY || tag == PACE__TAG_ASK ||
           tag == PACE__TAG_TICKET || (tag >= PACE__TAG_REDUCE && tag != PACE__TAG_RANKS);
}

static void fill_traffic(pace__member *member, int peer)
{
    pace__role_report *report = member->report;

    for (int tag = 0; tag < PACE__LINK_TAGS_MAX; tag++) {
        pace__traffic traffic = pace__link_traffic(member->self.link, peer, tag);

        if (member->shard && tag == PACE__TAG_PUSH) {
            report->requests += traffic.messages_received;
            report->server_bytes_received += traffic.bytes_received;
        }
        if (member->shard && tag == PACE__TAG_REPLY)
            report->server_bytes_sent += traffic.bytes_sent;
        if (!counts(tag) || peer == member->self.number)
            continue;
        report->peer[peer].bytes_sent += traffic.bytes_sent;
        report->peer[peer].bytes_received += traffic.bytes_received;
        report->peer[peer].messages += traffic.messages_sent + traffic.messages_received;
    }
    report->peer[peer].wait_s = (double)pace__link_wait_ns(member->self.link, peer) * 1e-9;
}

/* Training is over for this rank. */
static void fill_report(pace__member *member)
{
    pace__role_report *report = member->report;
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    report->seconds = pace__seconds_since(member->start_ns);
    report->cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                    (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
    report->rss_max_bytes = (uint64_t)usage.ru_maxrss * 1024;
    report->process = (uint64_t)getpid();
    report->holds_shard = member->shard != NULL;
    if (member->shard) {
        const pace__shard_stats *stats = pace__shard_stats_of(member->shard);

        report->repeats_dropped = stats->repeats_dropped;
        report->rows_repeated = stats->rows_repeated;
        memcpy(report->staleness, stats->staleness, sizeof report->staleness);
        if (member->role == PACE__PS) {
            report->communicate_s = (double)stats->busy_ns * 1e-9;
            report->wait_s = report->seconds - report->communicate_s;
        }
    }
    for (int peer = 0; peer < (int)report->peers; peer++)
        fill_traffic(member, peer);
}

static pace__role_report *new_report(const pace__member *member)
{
    int size = pace__cluster_size(&member->job->cluster);
    pace__role_report *report = calloc(1, pace__report_bytes(size));

    if (report) {
        report->peers = (uint64_t)size;
        snprintf(report->host, sizeof report->host, "%.*s", (int)sizeof report->host - 1, member->self.host);
    }
    return report;
}

/* The chief: how the job ended, to all; everyone's report, from all. */
static pace_status take_report(pace__member *member, int rank)
{
    int size = pace__cluster_size(&member->job->cluster);
    pace__request receive = {0};

    member->reports[rank] = new_report(member);
    if (!member->reports[rank])
        return pace_fail(member->self.log, PACE_FAILED, "out of memory");
    pace__link_receive(member->self.link, rank, PACE__TAG_REPORT, member->reports[rank],
                       pace__report_bytes(size), &receive);
    pace_status status = pace__link_is_lost(member->self.link, rank)
                             ? PACE_LOST
                             : pace__link_wait(member->self.link, &receive, "its report");

    if (status == PACE_LOST && pace__link_is_lost(member->self.link, rank)) {
        member->reports[rank]->lost = true;
        pace__link_abandon(member->self.link, &receive);
        return PACE_OK;
    }
    if (!status &&
        (receive.bytes != pace__report_bytes(size) || member->reports[rank]->peers != (uint64_t)size))
        status = pace_fail(member->self.log, PACE_BUG, "%s has sent a report of another size",
                           pace__link_name(member->self.link, rank));
    return status;
}

/* How the job ended, to the ranks first .. last - 1; their reports, from them. */
static pace_status end_ranks(pace__member *member, pace_status how, int first, int last)
{
    pace_status status = PACE_OK;

    member->ending = (pace__ending){(uint64_t)how, member->job->position.step};
    for (int rank = first; rank < last && !status; rank++)
        status = send_to(member, rank, PACE__TAG_END, &member->ending, sizeof member->ending);
    for (int rank = first; rank < last && !status; rank++)
        status = take_report(member, rank);
    return status;
}

/* The chief. The evaluator first: those that it asks for weights must still be there to answer. */
static pace_status end_all(pace__member *member, pace_status how)
{
    int size = pace__cluster_size(&member->job->cluster), others = size - member->job->cluster.evaluator;

    member->reports = calloc((size_t)size, sizeof *member->reports);
    if (!member->reports)
        return pace_fail(member->self.log, PACE_FAILED, "out of memory");
    member->reports[0] = member->report;
    pace_status status = end_ranks(member, how, others, size);

    if (!status)
        status = end_ranks(member, how, 1, others);
    if (!status)
        pace__member_part(member);
    return status;
}

static void free_reports(pace__member *member)
{
    int size = pace__cluster_size(&member->job->cluster);

    for (int rank = 1; member->reports && rank < size; rank++) {
        if (member->reports[rank] && !member->reports[rank]->lost) /* else MPI may still write to it */
            free(member->reports[rank]);
    }
    free(member->reports);
    free(member->report);
}

/* Waits for the end, serving meanwhile. */
static pace_status await_end(pace__member *member)
{
    unsigned turns = 0;
    int *peers = calloc((size_t)member->job->cluster.workers, sizeof *peers);
    pace_status status = peers ? PACE_OK : pace_fail(member->self.log, PACE_FAILED, "out of memory");

    while (!status) {
        bool ended;

        status = pace__link_done(member->self.link, &member->end_receive, &ended);
        if (status || ended)
            break;
        if (member->shard)
            pace__rank_set_step(&member->self, pace__shard_step(member->shard));
        size_t count =
            member->role == PACE__PS && member->shard ? pace__shard_waits_for(member->shard, peers) : 1;

        status = pace__link_turn(member->self.link, peers, count,
                                 member->role == PACE__PS ? "its gradients" : "the end", &turns);
    }
    free(peers);
    return status;
}

/* Every row up to the last step was applied here, once. */
static pace_status check_rows(const pace__member *member, uint64_t last_step)
{
    return member->shard ? pace__shard_check(member->shard, pace__job_rows_before(member->job, last_step))
                         : PACE_OK;
}

/* --- the chief --- */

/* Everyone has answered, and nothing more is wanted. */
static pace_status end_dry_run(pace__member *member)
{
    pace_status status = pace__member_describe(member);

    return status ? status : end_all(member, PACE_OK);
}

/* job->train of the chief. The run directory is open, the position known. */
static pace_status lead(pace__job *job)
{
    pace__member *member = job->member;
    pace__books books;
    uint64_t start = 0;
    bool over = pace__job_is_over(job);

    pace__rank_set_log(&member->self, job->log); /* the run directory hears all */
    job->log = member->self.log;
    pace_status status = pace__member_gather_hellos(member);

    if (job->config->dry_run)
        return status ? status : end_dry_run(member);
    if (!status)
        status = pace__member_open_holdings(member);
    if (!status && (job->position.step > 0 || pace__model_begins_random(&job->model)))
        status = pace__member_send_out_model(member);
    if (!status)
        status = pace__member_tell_all(member, PACE__TAG_GO, &start, sizeof start);
    if (!status)
        pace__job_emit_start(job);
    if (!status)
        pace__faults_at(&job->faults, PACE__AT_START, job->position.step);
    member->start_ns = job->start_ns = pace__now_ns();
    pace__books_open(&books, job);
    books.assemble = pace__member_assemble;
    books.user = member;
    books.distributed = true;
    pace__rank_set_step(&member->self, job->position.step);
    member->watches_evaluator = job->cluster.evaluator && job->store.info.rows[PACE__TEST] > 0;
    if (!status && !over)
        status = pace__worker_run(member, &books);
    member->watches_evaluator = false;
    pace__rank_set_step(&member->self, PACE__NO_STEP);
    fill_report(member);
    job->trained_s = pace__seconds_since(job->start_ns);
    if (!status)
        status = pace__member_assemble(member);
    if (!status)
        status = check_rows(member, job->position.step);
    if (status == PACE_INTERRUPTED) { /* a clean end, for everyone */
        pace_status ended = end_all(member, PACE_INTERRUPTED);

        status = ended ? ended : status;
    }
    return status;
}

/* job->final_scores of a chief with an evaluator. */
static pace_status await_scores(pace__job *job)
{
    return pace__member_take_verdicts(job->member, true);
}

/* job->end of the chief: the model is written. */
static pace_status end_job(pace__job *job)
{
    pace__member *member = job->member;
    pace_status status = end_all(member, PACE_OK);

    if (status)
        return status;
    job->reports = member->reports;
    pace__reports_emit(&job->cluster, member->reports, job->registry);
    return PACE_OK;
}

/* --- what the evaluator sends --- */

static void await_verdict(pace__member *member)
{
    pace__link_receive(member->self.link, pace__cluster_size(&member->job->cluster) - 1, PACE__TAG_SCORES,
                       &member->verdict, sizeof member->verdict, &member->verdict_receive);
}

pace_status pace__member_take_verdicts(pace__member *member, bool final)
{
    pace__job *job = member->job;

    while (job->cluster.evaluator && job->store.info.rows[PACE__TEST] > 0 && !member->scored) {
        const pace__verdict *verdict = &member->verdict;
        bool came;

        if (!member->verdict_receive.active)
            await_verdict(member);
        pace_status status =
            final ? pace__link_wait(member->self.link, &member->verdict_receive, "the last scores")
                  : pace__link_done(member->self.link, &member->verdict_receive, &came);

        if (status || (!final && !came))
            return status;
        job->scores = verdict->scores;
        job->evaluations_skipped = verdict->skipped;
        member->scored = verdict->final;
        pace__job_emit_scores(job, verdict->step);
        if (!verdict->final)
            pace__job_say_scores(job, verdict->step, " (evaluator)");
    }
    return PACE_OK;
}

/* --- everyone else --- */

static pace_status await_start(pace__member *member)
{
    pace__request receive = {0};

    pace__link_receive(member->self.link, 0, PACE__TAG_GO, &member->start_word, sizeof member->start_word,
                       &receive);
    return pace__link_wait(member->self.link, &receive, "the start");
}

static pace_status follow(pace__member *member)
{
    pace__job *job = member->job;
    pace__request send = {0};
    pace_status status = pace__member_say_hello(member);

    if (status)
        return status;
    pace__link_receive(member->self.link, 0, PACE__TAG_END, &member->ending, sizeof member->ending,
                       &member->end_receive);
    if (!status && job->config->dry_run)
        goto end;
    if (!status)
        status = pace__job_open_account(job, member->self.number);
    if (!status)
        status = pace__member_open_holdings(member);
    if (!status)
        status = await_start(member);
    if (!status)
        pace__faults_at(&job->faults, PACE__AT_START, job->position.step);
    member->start_ns = pace__now_ns();
    if (!status && member->role == PACE__WORKER && !pace__job_is_over(job))
        status = pace__worker_run(member, NULL);
    if (!status && member->role == PACE__EVALUATOR)
        status = pace__evaluator_run(member);
end:
    if (!status)
        status = await_end(member);
    if (!status && member->ending.status == PACE_OK && member->ending.step == job->steps)
        pace__faults_at(&job->faults, PACE__AT_END, member->ending.step);
    if (!status)
        status = check_rows(member, member->ending.step);
    if (status)
        return status;
    fill_report(member);
    pace__link_send(member->self.link, 0, PACE__TAG_REPORT, member->report,
                    pace__report_bytes(pace__cluster_size(&job->cluster)), &send);
    status = pace__link_wait(member->self.link, &send, "its report to leave");
    if (!status)
        pace__member_part(member);
    return status ? status : (pace_status)member->ending.status;
}

/* --- the whole of it --- */

/* What it fails with comes again in the next wait. */
static void pulse(pace__job *job)
{
    if (!pace__link_pulse(job->member->self.link))
        pace__job_save_poll(job);
}

static unsigned holders_of(const pace__job *job)
{
    return pace__member_holders(job->member);
}

/* Everyone serves meanwhile, and gives signs of life. */
static pace_status rest(pace__job *job, unsigned *turns)
{
    pace__member *member = job->member;
    int peer = pace__member_unsaved(member);

    return pace__link_turn(member->self.link, &peer, peer >= 0, "its part of a checkpoint", turns);
}

static void open_member(pace__member *member, pace__job *job, pace__link *link)
{
    *member = (pace__member){.job = job, .exchange = pace__exchange_of(job->mode)};
    pace__rank_open(&member->self, link, &job->cluster, false, job->log);
    member->self.warns = true;
    member->role = pace__role_of(&job->cluster, member->self.number);
    if (member->self.number > 0) /* the chief says what comes before the run directory as it is */
        job->log = member->self.log;
    job->member = member;
    job->train = lead;
    job->end = end_job;
    job->pulse = pulse;
    job->parts = holders_of;
    job->save = pace__member_save;
    job->saved = pace__member_saved;
    job->rest = rest;
    job->final_scores = job->cluster.evaluator ? await_scores : NULL;
    member->report = new_report(member);
}

static pace_status plan_on_store(pace__job *job)
{
    pace__dataset data = pace__store_describe(&job->store.info);

    return pace__job_plan(job, &data);
}

static pace_status run_member(pace__member *member, pace_train_result *result)
{
    pace__job *job = member->job;
    pace_status status = member->report ? PACE_OK : pace_fail(member->self.log, PACE_FAILED, "out of memory");

    if (!status && member->self.number == 0 && !job->config->dry_run)
        status = pace__job_check_run(job);
    if (!status && member->role != PACE__PS)
        status = pace__store_open(job->config->data, &job->store, member->self.log);
    if (!status && member->role != PACE__PS)
        status = plan_on_store(job);
    if (!status && job->model.extracts)
        status = pace__job_use_features(job);
    if (!status && job->model.extracts)
        status = plan_on_store(job);
    if (!status)
        status = member->self.number == 0 ? pace__job_lead(job, result) : follow(member);
    return status;
}

void pace__member_fail(pace__member *member, pace_status status)
{
    if (!member->self.failed && member->self.number == 0 && member->job->run)
        pace__job_note_ending(member->job, status);
    pace__rank_fail(&member->self, status);
}

pace_status pace__member_run(pace__job *job, pace__link *link, pace_train_result *result)
{
    const pace_log *caller_log = job->log;
    pace__member member;

    open_member(&member, job, link);
    pace_status status = run_member(&member, result);
    bool failed = status != PACE_OK && status != PACE_INTERRUPTED;

    job->log = caller_log;
    pace__rank_set_log(&member.self, caller_log); /* the run directory is closed */
    if (failed) /* others may be waiting: they are ended, and with them whatever they were sending here */
        pace__member_fail(&member, status);
    pace__link_cancel(link, &member.verdict_receive);
    pace__link_cancel(link, &member.end_receive);
    pace__member_close_holdings(&member);
    pace__job_close_account(job);
    free_reports(&member);
    pace__model_plan_release(&job->model);
    pace__store_close(&job->store);
    pace__rank_close(&member.self);
    return status;
}
