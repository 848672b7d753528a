/*
 * What each rank has measured, and how it reaches the chief: once a second, and at the end.
 *
 *     others   fill -> send to the chief, unless the report before has not left yet: then a second later
 *     chief    fill, and take what has come -> records (run/report.h)
 *
 * 1. A report that is on its way is not touched. Nobody waits for one but at the end, for the last; from then on
 *    nothing is sampled, since that happens in waits.
 * 2. The chief has one receive from each rank under way, from the start to that rank's last report, or its loss.
 * 3. reports[rank] is the newest of each, of zeros at first. Of a rank that was lost it stays.
 */
#include "base/clock.h"
#include "ranks/ranks.h"
#include "roles/process.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How often the chief looks for reports of others. */
#define LOOK_NS UINT64_C(100000000)

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

/* --- what was measured --- */

static void fill_traffic(pace__process *process, int peer)
{
    pace__role_report *report = process->report;
    pace__peer_traffic *with = &report->peer[peer];

    *with = (pace__peer_traffic){.wait_s = (double)pace__link_wait_ns(process->self.link, peer) * 1e-9};
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
        with->bytes_sent += traffic.bytes_sent;
        with->bytes_received += traffic.bytes_received;
        with->messages += traffic.messages_sent + traffic.messages_received;
    }
}

static void fill_shard(pace__process *process)
{
    const pace__shard_stats *stats = pace__shard_stats_of(process->shard);
    pace__role_report *report = process->report;

    report->holds_shard = true;
    report->looks = stats->looks;
    report->repeats_dropped = stats->repeats_dropped;
    report->rows_repeated = stats->rows_repeated;
    memcpy(report->staleness, stats->staleness, sizeof report->staleness);
    if (process->role == PACE__PS)
        report->communicate_s = (double)(stats->busy_ns + process->times.communicate_ns) * 1e-9;
}

/* What is nothing else is waiting. It never falls, though clocks are read one after the other. */
static void fill_times(pace__process *process)
{
    pace__role_report *report = process->report;

    uint64_t end_ns = process->trained_ns ? process->trained_ns : pace__now_ns();

    report->seconds = (double)(end_ns - process->start_ns) * 1e-9;
    report->data_s = (double)process->times.data_ns * 1e-9;
    report->compute_s = (double)process->times.compute_ns * 1e-9;
    report->communicate_s = (double)process->times.communicate_ns * 1e-9;
    if (process->boundary) {
        report->still_s = pace__boundary_still_s(process->boundary);
        report->save_s = pace__boundary_saved_s(process->boundary);
    }
    report->rows = process->rows;
}

static void fill_stage(pace__process *process)
{
    pace__stage_figures figures = pace__stage_figures_of(process->job->stage);

    process->report->staged = figures.wanted;
    process->report->staged_found = figures.found;
    process->report->staged_copied = figures.copied;
    process->report->read_near = figures.read_near;
    process->report->read_source = figures.read_source;
    process->report->copies_dropped = figures.dropped;
}

static void fill(pace__process *process)
{
    pace__role_report *report = process->report;

    assert(!process->report_send.active); /* invariant 1 */
    report->process = (uint64_t)getpid();
    report->requests = report->server_bytes_received = report->server_bytes_sent = 0;
    fill_times(process);
    if (process->shard)
        fill_shard(process);
    double wait_s =
        report->seconds - report->data_s - report->compute_s - report->communicate_s - report->still_s;

    report->wait_s = wait_s > report->wait_s ? wait_s : report->wait_s;
    pace__usage_read(&report->usage);
    fill_stage(process);
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

/* --- others, to the chief --- */

static void send_report(pace__process *process)
{
    pace__link_send(process->self.link, 0, PACE__TAG_REPORT, process->report,
                    pace__report_bytes(pace__cluster_size(&process->job->plan.cluster)),
                    &process->report_send);
}

static pace_status report_to_chief(pace__process *process)
{
    bool left = true;
    pace_status status = process->report_send.active
                             ? pace__link_done(process->self.link, &process->report_send, &left)
                             : PACE_OK;

    if (status || !left)
        return status;
    fill(process);
    send_report(process);
    return PACE_OK;
}

pace_status pace__process_send_report(pace__process *process)
{
    process->is_ending = true;
    pace_status status =
        process->report_send.active
            ? pace__link_wait(process->self.link, &process->report_send, "its report to leave")
            : PACE_OK;

    if (status)
        return status;
    fill(process);
    process->report->is_last = true;
    send_report(process);
    return pace__link_wait(process->self.link, &process->report_send, "its report to leave");
}

/* --- the chief, from others --- */

static pace_status open_box(pace__process *process, int rank)
{
    pace__report_box *box = &process->boxes[rank];

    if (!box->incoming) {
        box->incoming = pace__process_new_report(process);
        process->reports[rank] = pace__process_new_report(process);
    }
    if (!box->incoming || !process->reports[rank])
        return pace_fail(process->self.log, PACE_FAILED, "out of memory");
    pace__link_receive(process->self.link, rank, PACE__TAG_REPORT, box->incoming,
                       pace__report_bytes(pace__link_size(process->self.link)), &box->receive);
    return PACE_OK;
}

static pace_status open_boxes(pace__process *process)
{
    int size = pace__cluster_size(&process->job->plan.cluster);
    pace_status status = PACE_OK;

    process->boxes = calloc((size_t)size, sizeof *process->boxes);
    process->reports = calloc((size_t)size, sizeof *process->reports);
    process->report_before = pace__process_new_report(process);
    if (!process->boxes || !process->reports || !process->report_before)
        return pace_fail(process->self.log, PACE_FAILED, "out of memory");
    process->reports[0] = process->report;
    for (int rank = 1; rank < size && !status; rank++)
        status = open_box(process, rank);
    return status;
}

/* It has come whole, or its sender was lost. */
static pace_status take(pace__process *process, int rank)
{
    pace__report_box *box = &process->boxes[rank];
    pace__role_report *known = process->reports[rank], *came = box->incoming;
    size_t bytes = pace__report_bytes(pace__link_size(process->self.link));

    if (box->receive.bytes != bytes || came->peers != known->peers)
        return pace_fail(process->self.log, PACE_BUG, "%s has sent a report of another size",
                         pace__link_name(process->self.link, rank));
    came->host[sizeof came->host - 1] = '\0';
    pace__report_emit(&process->job->plan.cluster, rank, came, known, process->job->registry);
    process->reports[rank] = came;
    box->incoming = known;
    return came->is_last ? PACE_OK : open_box(process, rank);
}

static void give_up(pace__process *process, int rank)
{
    process->reports[rank]->lost = true;
    process->boxes[rank].kept = !pace__link_abandon(process->self.link, &process->boxes[rank].receive);
}

static pace_status look(pace__process *process, int rank)
{
    pace__report_box *box = &process->boxes[rank];
    bool came = false;

    if (!box->receive.active)
        return PACE_OK;
    if (pace__link_is_lost(process->self.link, rank)) {
        give_up(process, rank);
        return PACE_OK;
    }
    pace_status status = pace__link_done(process->self.link, &box->receive, &came);

    return status || !came ? status : take(process, rank);
}

static pace_status look_at_all(pace__process *process)
{
    pace_status status = PACE_OK;

    for (int rank = 1; rank < pace__link_size(process->self.link) && !status; rank++)
        status = look(process, rank);
    return status;
}

static void report_here(pace__process *process)
{
    memcpy(process->report_before, process->report, pace__report_bytes(pace__link_size(process->self.link)));
    fill(process);
    pace__report_emit(&process->job->plan.cluster, 0, process->report, process->report_before,
                      process->job->registry);
}

/* --- both --- */

pace_status pace__process_sample(pace__process *process)
{
    uint64_t now_ns = pace__now_ns();
    bool chief = process->self.number == 0;
    pace_status status = PACE_OK;

    if (process->start_ns == 0 || process->is_ending || now_ns - process->looked_ns < LOOK_NS)
        return PACE_OK;
    process->looked_ns = now_ns;
    if (chief && !process->boxes)
        status = open_boxes(process);
    if (!status && chief)
        status = look_at_all(process);
    if (status || now_ns - process->sampled_ns < PACE__REPORT_EVERY_NS)
        return status;
    process->sampled_ns = now_ns;
    if (!chief)
        return report_to_chief(process);
    report_here(process);
    return PACE_OK;
}

/* --- the end --- */

/* Whatever came before it is passed over. */
static pace_status await_last(pace__process *process, int rank)
{
    pace__report_box *box = &process->boxes[rank];
    pace_status status = PACE_OK;

    while (!status && box->receive.active) {
        status = pace__link_is_lost(process->self.link, rank)
                     ? PACE_LOST
                     : pace__link_wait(process->self.link, &box->receive, "its report");
        if (status == PACE_LOST && pace__link_is_lost(process->self.link, rank)) {
            give_up(process, rank);
            return PACE_OK;
        }
        if (!status)
            status = take(process, rank);
    }
    return status;
}

/* How the job ended, to the ranks first .. last - 1; their reports, from them. */
static pace_status end_ranks(pace__process *process, pace_status how, int first, int last)
{
    pace_status status = PACE_OK;

    process->ending = (pace__ending){(uint64_t)how, process->job->position.step, process->let_go};
    for (int rank = first; rank < last && !status; rank++)
        status = send_to(process, rank, PACE__TAG_END, &process->ending, sizeof process->ending);
    for (int rank = first; rank < last && !status; rank++)
        status = await_last(process, rank);
    return status;
}

/* First those who ask, then those who answer: the evaluator wants weights, and a worker that is behind, or has only begun, rows;
 * it hears of the end from the server that has none for it. */
pace_status pace__process_end_all(pace__process *process, pace_status how)
{
    const pace__cluster *cluster = &process->job->plan.cluster;
    int size = pace__cluster_size(cluster), others = size - cluster->evaluator;

    process->is_ending = true;
    pace_status status = process->boxes ? PACE_OK : open_boxes(process);

    if (!status) /* those that are asked for spans must still be there to answer, too */
        status = pace__process_finish_profile(process);
    if (!status && process->start_ns != 0)
        report_here(process);
    if (!status)
        status = end_ranks(process, how, others, size);
    if (!status)
        status = end_ranks(process, how, 1, cluster->workers);
    if (!status)
        status = end_ranks(process, how, cluster->workers, others);
    return status ? status : pace__process_part(process);
}

void pace__process_free_reports(pace__process *process)
{
    int size = pace__cluster_size(&process->job->plan.cluster);

    for (int rank = 1; rank < size; rank++) {
        if (process->boxes && !process->boxes[rank].kept) /* else MPI may still write to it */
            free(process->boxes[rank].incoming);
        if (process->reports)
            free(process->reports[rank]);
    }
    free(process->boxes);
    free(process->reports);
    free(process->report_before);
    free(process->report);
}
