/* What each rank has measured, and how the chief collects it at the end. */
#include "base/clock.h"
#include "ranks/ranks.h"
#include "roles/process.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* A rank that is lost, or is lost meanwhile, needs no message. */
static pace_status send_to(pace__process *process, int rank, int tag, const void *bytes, size_t size)
{
    pace__request send = {0};

    if (pace__link_is_lost(process->self.link, rank))
        return PACE_OK;
    pace__link_send(process->self.link, rank, tag, bytes, size, &send);
    pace_status status = pace__link_wait(process->self.link, &send, "a message to leave");

    if (status != PACE_LOST || !pace__link_is_lost(process->self.link, rank))
        return status;
    pace__link_abandon(process->self.link, &send);
    return PACE_OK;
}

pace_status pace__process_tell_all(pace__process *process, int tag, const void *bytes, size_t size)
{
    pace_status status = PACE_OK;

    for (int rank = 1; rank < pace__cluster_size(&process->job->plan.cluster) && !status; rank++)
        status = send_to(process, rank, tag, bytes, size);
    return status;
}

static bool counts(int tag)
{
    return tag == PACE__TAG_PUSH || tag == PACE__TAG_REPLY || tag == PACE__TAG_ASK ||
           tag == PACE__TAG_TICKET || (tag >= PACE__TAG_REDUCE && tag != PACE__TAG_RANKS);
}

static void fill_traffic(pace__process *process, int peer)
{
    pace__role_report *report = process->report;

    for (int tag = 0; tag < PACE__LINK_TAGS_MAX; tag++) {
        pace__traffic traffic = pace__link_traffic(process->self.link, peer, tag);

        if (process->shard && tag == PACE__TAG_PUSH) {
            report->requests += traffic.messages_received;
            report->server_bytes_received += traffic.bytes_received;
        }
        if (process->shard && tag == PACE__TAG_REPLY)
            report->server_bytes_sent += traffic.bytes_sent;
        if (!counts(tag) || peer == process->self.number)
            continue;
        report->peer[peer].bytes_sent += traffic.bytes_sent;
        report->peer[peer].bytes_received += traffic.bytes_received;
        report->peer[peer].messages += traffic.messages_sent + traffic.messages_received;
    }
    report->peer[peer].wait_s = (double)pace__link_wait_ns(process->self.link, peer) * 1e-9;
}

/* Training is over for this rank. */
void pace__process_fill_report(pace__process *process)
{
    pace__role_report *report = process->report;
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    report->seconds = pace__seconds_since(process->start_ns);
    report->cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                    (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
    report->rss_max_bytes = (uint64_t)usage.ru_maxrss * 1024;
    report->process = (uint64_t)getpid();
    report->holds_shard = process->shard != NULL;
    if (process->shard) {
        const pace__shard_stats *stats = pace__shard_stats_of(process->shard);

        report->repeats_dropped = stats->repeats_dropped;
        report->rows_repeated = stats->rows_repeated;
        memcpy(report->staleness, stats->staleness, sizeof report->staleness);
        if (process->role == PACE__PS) {
            report->communicate_s = (double)stats->busy_ns * 1e-9;
            report->wait_s = report->seconds - report->communicate_s;
        }
    }
    for (int peer = 0; peer < (int)report->peers; peer++)
        fill_traffic(process, peer);
}

pace__role_report *pace__process_new_report(const pace__process *process)
{
    int size = pace__cluster_size(&process->job->plan.cluster);
    pace__role_report *report = calloc(1, pace__report_bytes(size));

    if (report) {
        report->peers = (uint64_t)size;
        snprintf(report->host, sizeof report->host, "%.*s", (int)sizeof report->host - 1, process->self.host);
    }
    return report;
}

static pace_status take_report(pace__process *process, int rank)
{
    int size = pace__cluster_size(&process->job->plan.cluster);
    pace__request receive = {0};

    process->reports[rank] = pace__process_new_report(process);
    if (!process->reports[rank])
        return pace_fail(process->self.log, PACE_FAILED, "out of memory");
    pace__link_receive(process->self.link, rank, PACE__TAG_REPORT, process->reports[rank],
                       pace__report_bytes(size), &receive);
    pace_status status = pace__link_is_lost(process->self.link, rank)
                             ? PACE_LOST
                             : pace__link_wait(process->self.link, &receive, "its report");

    if (status == PACE_LOST && pace__link_is_lost(process->self.link, rank)) {
        process->reports[rank]->lost = true;
        pace__link_abandon(process->self.link, &receive);
        return PACE_OK;
    }
    if (!status &&
        (receive.bytes != pace__report_bytes(size) || process->reports[rank]->peers != (uint64_t)size))
        status = pace_fail(process->self.log, PACE_BUG, "%s has sent a report of another size",
                           pace__link_name(process->self.link, rank));
    return status;
}

/* How the job ended, to the ranks first .. last - 1; their reports, from them. */
static pace_status end_ranks(pace__process *process, pace_status how, int first, int last)
{
    pace_status status = PACE_OK;

    process->ending = (pace__ending){(uint64_t)how, process->job->position.step};
    for (int rank = first; rank < last && !status; rank++)
        status = send_to(process, rank, PACE__TAG_END, &process->ending, sizeof process->ending);
    for (int rank = first; rank < last && !status; rank++)
        status = take_report(process, rank);
    return status;
}

/* The evaluator first: those that it asks for weights must still be there to answer. */
pace_status pace__process_end_all(pace__process *process, pace_status how)
{
    int size = pace__cluster_size(&process->job->plan.cluster),
        others = size - process->job->plan.cluster.evaluator;

    process->reports = calloc((size_t)size, sizeof *process->reports);
    if (!process->reports)
        return pace_fail(process->self.log, PACE_FAILED, "out of memory");
    process->reports[0] = process->report;
    pace_status status = end_ranks(process, how, others, size);

    if (!status)
        status = end_ranks(process, how, 1, others);
    if (!status)
        pace__process_part(process);
    return status;
}

void pace__process_free_reports(pace__process *process)
{
    int size = pace__cluster_size(&process->job->plan.cluster);

    for (int rank = 1; process->reports && rank < size; rank++) {
        if (process->reports[rank] && !process->reports[rank]->lost) /* else MPI may still write to it */
            free(process->reports[rank]);
    }
    free(process->reports);
    free(process->report);
}

pace_status pace__process_send_report(pace__process *process)
{
    pace__request send = {0};

    pace__process_fill_report(process);
    pace__link_send(process->self.link, 0, PACE__TAG_REPORT, process->report,
                    pace__report_bytes(pace__cluster_size(&process->job->plan.cluster)), &send);
    return pace__link_wait(process->self.link, &send, "its report to leave");
}
