/*
 * report.h - what a rank of a job has measured since training began. Each sends it to the chief once a second, and at
 * the end.
 *
 * All of it only grows: what happened between two reports is their difference, and one that is missing costs nothing but
 * detail.
 */
#ifndef RUN_REPORT_H
#define RUN_REPORT_H

#include "base/json.h"
#include "launch/cluster.h"
#include "net/link.h"
#include "ps/shard.h"
#include "watch/usage.h"

#include <paceline/registry.h>

/* How often. bench/samples.sh measures what that costs, beside a program that is built with another number. */
#ifndef PACE__REPORT_EVERY_NS
#define PACE__REPORT_EVERY_NS UINT64_C(1000000000)
#endif

/* Between this rank and another, in training steps. */
typedef struct pace__peer_traffic {
    uint64_t bytes_sent, bytes_received, messages;
    double wait_s; /* time spent waiting for it */
} pace__peer_traffic;

typedef struct pace__role_report {
    char host[64];
    uint64_t process;
    uint64_t is_last;
    uint64_t lost; /* it died on the way, and this is the last that is known of it */
    /* Seconds of training: reading rows; keys, gradients; packing, sending, serving a shard; standing still to score or to
     * save (the chief); waiting. */
    double seconds, data_s, compute_s, communicate_s, still_s, wait_s;
    double save_s; /* of still_s: for checkpoints */
    pace__usage usage;
    uint64_t rows;
    /* Bytes of local copies (data/stage/stage.h), all zero where there are none: of the data set; found at the start; copied;
     * read from copies, and from the data set itself. And how many copies were dropped, since they were not what they should be. */
    uint64_t staged, staged_found, staged_copied, read_near, read_source, copies_dropped;
    /* Its shard, if it has one. */
    uint64_t holds_shard, requests, server_bytes_received, server_bytes_sent;
    uint64_t looks; /* at which requests were there: requests / looks is how many, on average */
    uint64_t repeats_dropped, rows_repeated;
    uint64_t staleness[PACE__STALENESS_BINS];
    uint64_t peers;
    pace__peer_traffic peer[]; /* by rank */
} pace__role_report;

static inline size_t pace__report_bytes(int size)
{
    return sizeof(pace__role_report) + (size_t)size * sizeof(pace__peer_traffic);
}

/* Records of a report that has just come: a "sample", and a "flow" for every peer with whom something was exchanged.
 * `before` is the one before, or one with zeros. */
void pace__report_emit(const pace__cluster *cluster, int rank, const pace__role_report *report,
                       const pace__role_report *before, pace_registry *registry);

/* Records at the end: one "role" for every rank, one "peer" for every pair that exchanged something, one "server" for
 * every shard. */
void pace__reports_emit(const pace__cluster *cluster, pace__role_report *const *reports,
                        pace_registry *registry);

/* The members of the summary: ,"bytes_sent": ... with a comma in front of each. */
void pace__reports_put(pace__json *json, const pace__cluster *cluster, pace__role_report *const *reports);

/* Ranks that were lost on the way. */
uint64_t pace__reports_lost(const pace__cluster *cluster, pace__role_report *const *reports);

/* Bytes that all ranks have sent to others. */
uint64_t pace__reports_bytes(const pace__cluster *cluster, pace__role_report *const *reports, bool sent);

#endif
