#include "run/report.h"

#include "base/shares.h"

#include <stdlib.h>

uint64_t pace__reports_bytes(const pace__cluster *cluster, pace__role_report *const *reports, bool sent)
{
    uint64_t bytes = 0;

    for (int rank = 0; rank < pace__cluster_size(cluster); rank++) {
        for (uint64_t peer = 0; peer < reports[rank]->peers; peer++)
            bytes += sent ? reports[rank]->peer[peer].bytes_sent : reports[rank]->peer[peer].bytes_received;
    }
    return bytes;
}

uint64_t pace__reports_lost(const pace__cluster *cluster, pace__role_report *const *reports)
{
    uint64_t lost = 0;

    for (int rank = 0; rank < pace__cluster_size(cluster); rank++)
        lost += reports[rank]->lost;
    return lost;
}

/* The rank that this one has waited for longest since it reported `before` (NULL: since the start), or -1. */
static int waited_for(const pace__role_report *report, const pace__role_report *before)
{
    double most_s = 0;
    int longest = -1;

    for (int peer = 0; peer < (int)report->peers; peer++) {
        double wait_s = report->peer[peer].wait_s - (before ? before->peer[peer].wait_s : 0);

        if (wait_s > most_s) {
            most_s = wait_s;
            longest = peer;
        }
    }
    return longest;
}

static void name_of(const pace__cluster *cluster, int rank, char name[PACE__ROLE_TEXT])
{
    if (rank < 0)
        name[0] = '\0';
    else
        pace__role_name(cluster, rank, name);
}

/* --- records --- */

static void emit_role(const pace__cluster *cluster, const pace__role_report *report, int rank,
                      pace_registry *registry)
{
    char name[PACE__ROLE_TEXT], waits[PACE__ROLE_TEXT];

    name_of(cluster, rank, name);
    name_of(cluster, waited_for(report, NULL), waits);
    pace_field fields[] = {PACE_TEXT("role", name),
                           PACE_INT("rank", rank),
                           PACE_TEXT("host", report->host),
                           PACE_REAL("seconds", report->seconds),
                           PACE_REAL("data_s", report->data_s),
                           PACE_REAL("compute_s", report->compute_s),
                           PACE_REAL("communicate_s", report->communicate_s),
                           PACE_REAL("wait_s", report->wait_s),
                           PACE_TEXT("waits_for", waits),
                           PACE_REAL("cpu_s", report->usage.user_s + report->usage.system_s),
                           PACE_INT("rss_max_bytes", report->usage.rss_max_bytes),
                           PACE_INT("rows", report->rows)};

    pace_registry_emit(registry, "role", fields, sizeof fields / sizeof *fields);
}

static void emit_server(const pace__cluster *cluster, const pace__role_report *report, int rank,
                        pace_registry *registry)
{
    char name[PACE__ROLE_TEXT];

    pace__role_name(cluster, rank, name);
    pace_field fields[] = {PACE_TEXT("role", name),
                           PACE_INT("rank", rank),
                           PACE_INT("requests", report->requests),
                           PACE_INT("bytes_received", report->server_bytes_received),
                           PACE_INT("bytes_sent", report->server_bytes_sent),
                           PACE_INT("repeats_dropped", report->repeats_dropped),
                           PACE_INT("rows_repeated", report->rows_repeated)};

    pace_registry_emit(registry, "server", fields, sizeof fields / sizeof *fields);
}

static void emit_peers(const pace__cluster *cluster, const pace__role_report *report, int rank,
                       pace_registry *registry)
{
    char name[PACE__ROLE_TEXT], peer_name[PACE__ROLE_TEXT];

    pace__role_name(cluster, rank, name);
    for (int peer = 0; peer < (int)report->peers; peer++) {
        const pace__peer_traffic *traffic = &report->peer[peer];

        if (traffic->messages == 0)
            continue;
        pace__role_name(cluster, peer, peer_name);
        pace_field fields[] = {PACE_TEXT("role", name),
                               PACE_TEXT("peer", peer_name),
                               PACE_INT("bytes_sent", traffic->bytes_sent),
                               PACE_INT("bytes_received", traffic->bytes_received),
                               PACE_INT("messages", traffic->messages),
                               PACE_REAL("wait_s", traffic->wait_s)};

        pace_registry_emit(registry, "peer", fields, sizeof fields / sizeof *fields);
    }
}

void pace__reports_emit(const pace__cluster *cluster, pace__role_report *const *reports,
                        pace_registry *registry)
{
    for (int rank = 0; rank < pace__cluster_size(cluster); rank++) {
        emit_role(cluster, reports[rank], rank, registry);
        if (reports[rank]->holds_shard)
            emit_server(cluster, reports[rank], rank, registry);
        emit_peers(cluster, reports[rank], rank, registry);
    }
}

/* --- on the way --- */

/* Pushes that found their weights so many pushes old, all together. */
static uint64_t staleness_of(const pace__role_report *report, uint64_t *pushes)
{
    uint64_t old = 0;

    *pushes = 0;
    for (uint64_t i = 0; i < PACE__STALENESS_BINS; i++) {
        old += i * report->staleness[i];
        *pushes += report->staleness[i];
    }
    return old;
}

static void emit_sample(const pace__cluster *cluster, int rank, const pace__role_report *report,
                        const pace__role_report *before, pace_registry *registry)
{
    char name[PACE__ROLE_TEXT], waits[PACE__ROLE_TEXT], waited[PACE__ROLE_TEXT];
    const pace__usage *usage = &report->usage;
    uint64_t pushes, stale = staleness_of(report, &pushes);

    name_of(cluster, rank, name);
    name_of(cluster, waited_for(report, before), waits);
    name_of(cluster, waited_for(report, NULL), waited);
    pace_field fields[] = {PACE_TEXT("role", name),
                           PACE_REAL("seconds", report->seconds),
                           PACE_INT("rows", report->rows),
                           PACE_REAL("data_s", report->data_s),
                           PACE_REAL("compute_s", report->compute_s),
                           PACE_REAL("communicate_s", report->communicate_s),
                           PACE_REAL("still_s", report->still_s),
                           PACE_REAL("save_s", report->save_s),
                           PACE_REAL("wait_s", report->wait_s),
                           PACE_TEXT("waits_for", waits),
                           PACE_TEXT("waited_for", waited),
                           PACE_REAL("user_s", usage->user_s),
                           PACE_REAL("system_s", usage->system_s),
                           PACE_REAL("delay_s", usage->delay_s),
                           PACE_INT("rss_bytes", usage->rss_bytes),
                           PACE_INT("rss_max_bytes", usage->rss_max_bytes),
                           PACE_INT("minor_faults", usage->minor_faults),
                           PACE_INT("major_faults", usage->major_faults),
                           PACE_INT("read_bytes", usage->read_bytes),
                           PACE_INT("write_bytes", usage->write_bytes),
                           PACE_INT("net_sent_bytes", usage->net_sent_bytes),
                           PACE_INT("net_received_bytes", usage->net_received_bytes),
                           PACE_INT("requests", report->requests),
                           PACE_INT("looks", report->looks),
                           PACE_INT("pushes", pushes),
                           PACE_INT("stale_pushes", stale)};
    size_t count = sizeof fields / sizeof *fields;

    pace_registry_emit(registry, "sample", fields, report->holds_shard ? count : count - 4);
}

static void emit_flows(const pace__cluster *cluster, int rank, const pace__role_report *report,
                       const pace__role_report *before, pace_registry *registry)
{
    char name[PACE__ROLE_TEXT], peer_name[PACE__ROLE_TEXT];

    pace__role_name(cluster, rank, name);
    for (int peer = 0; peer < (int)report->peers; peer++) {
        const pace__peer_traffic *traffic = &report->peer[peer];

        if (traffic->messages == before->peer[peer].messages)
            continue;
        pace__role_name(cluster, peer, peer_name);
        pace_field fields[] = {PACE_TEXT("role", name),
                               PACE_TEXT("peer", peer_name),
                               PACE_REAL("seconds", report->seconds),
                               PACE_INT("bytes_sent", traffic->bytes_sent),
                               PACE_INT("bytes_received", traffic->bytes_received),
                               PACE_INT("messages", traffic->messages),
                               PACE_REAL("wait_s", traffic->wait_s)};

        pace_registry_emit(registry, "flow", fields, sizeof fields / sizeof *fields);
    }
}

void pace__report_emit(const pace__cluster *cluster, int rank, const pace__role_report *report,
                       const pace__role_report *before, pace_registry *registry)
{
    emit_sample(cluster, rank, report, before, registry);
    emit_flows(cluster, rank, report, before, registry);
}

/* --- the summary --- */

static void put_member(pace__json *json, const char *before, const char *key)
{
    pace__json_raw(json, before);
    pace__json_string(json, key);
    pace__json_raw(json, ": ");
}

static void put_number(pace__json *json, const char *key, double value)
{
    put_member(json, ", ", key);
    pace__json_real(json, value);
}

static void put_count(pace__json *json, const char *key, uint64_t value)
{
    put_member(json, ", ", key);
    pace__json_unsigned(json, value);
}

static void put_role(pace__json *json, const pace__cluster *cluster, const pace__role_report *report,
                     int rank)
{
    char name[PACE__ROLE_TEXT], waits[PACE__ROLE_TEXT];

    name_of(cluster, rank, name);
    name_of(cluster, waited_for(report, NULL), waits);
    put_member(json, rank ? ",\n    {" : "\n    {", "role");
    pace__json_string(json, name);
    put_member(json, ", ", "host");
    pace__json_string(json, report->host);
    if (report->lost)
        pace__json_raw(json, ", \"lost\": true");
    put_count(json, "rows", report->rows);
    put_number(json, "data_s", report->data_s);
    put_number(json, "compute_s", report->compute_s);
    put_number(json, "communicate_s", report->communicate_s);
    put_number(json, "wait_s", report->wait_s);
    put_member(json, ", ", "waits_for");
    pace__json_string(json, waits);
    put_number(json, "cpu_s", report->usage.user_s + report->usage.system_s);
    put_count(json, "rss_max_bytes", report->usage.rss_max_bytes);
    pace__json_raw(json, "}");
}

static void put_server(pace__json *json, const pace__cluster *cluster, const pace__role_report *report,
                       int rank, bool first)
{
    char name[PACE__ROLE_TEXT];

    pace__role_name(cluster, rank, name);
    put_member(json, first ? "\n    {" : ",\n    {", "role");
    pace__json_string(json, name);
    put_count(json, "requests", report->requests);
    put_count(json, "bytes_received", report->server_bytes_received);
    put_count(json, "bytes_sent", report->server_bytes_sent);
    pace__json_raw(json, "}");
}

/* Largest over mean, of bytes and of requests. */
static void put_imbalance(pace__json *json, const pace__cluster *cluster, pace__role_report *const *reports)
{
    pace__shares bytes = {0}, requests = {0};

    for (int shard = 0; shard < pace__shards(cluster); shard++) {
        const pace__role_report *report = reports[pace__shard_rank(cluster, shard)];

        pace__shares_add(&bytes, (double)(report->server_bytes_received + report->server_bytes_sent));
        pace__shares_add(&requests, (double)report->requests);
    }
    put_member(json, ",\n  ", "imbalance");
    put_member(json, "{", "bytes");
    pace__json_real(json, pace__shares_skew(&bytes));
    put_number(json, "requests", pace__shares_skew(&requests));
    pace__json_raw(json, "}");
}

/* Pushes by how many others were applied since their weights were read, on all shards together; up to the
 * largest that occurred. */
static void put_staleness(pace__json *json, const pace__cluster *cluster, pace__role_report *const *reports)
{
    uint64_t bins[PACE__STALENESS_BINS] = {0};
    size_t used = 0;

    for (int rank = 0; rank < pace__cluster_size(cluster); rank++) {
        for (size_t i = 0; i < PACE__STALENESS_BINS; i++)
            bins[i] += reports[rank]->staleness[i];
    }
    for (size_t i = 0; i < PACE__STALENESS_BINS; i++)
        used = bins[i] ? i + 1 : used;
    put_member(json, ",\n  ", "staleness");
    pace__json_raw(json, "[");
    for (size_t i = 0; i < used; i++) {
        pace__json_raw(json, i ? ", " : "");
        pace__json_unsigned(json, bins[i]);
    }
    pace__json_raw(json, "]");
}

void pace__reports_put(pace__json *json, const pace__cluster *cluster, pace__role_report *const *reports)
{
    bool first = true;

    put_member(json, ",\n  ", "roles");
    pace__json_raw(json, "[");
    for (int rank = 0; rank < pace__cluster_size(cluster); rank++)
        put_role(json, cluster, reports[rank], rank);
    pace__json_raw(json, "]");
    put_member(json, ",\n  ", "servers");
    pace__json_raw(json, "[");
    for (int rank = 0; rank < pace__cluster_size(cluster); rank++) {
        if (!reports[rank]->holds_shard)
            continue;
        put_server(json, cluster, reports[rank], rank, first);
        first = false;
    }
    pace__json_raw(json, "]");
    put_imbalance(json, cluster, reports);
    put_staleness(json, cluster, reports);
}
