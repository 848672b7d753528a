/*
 * scalars.h - what event files show of records: named numbers. Pure functions.
 *
 *     step     train/loss, train/lr, train/rows_per_s, train/epoch
 *     eval     SET/NAME for every score: test/logloss, test/accuracy, test/auc, ...
 *     sample   throughput/rows_per_s
 *              time/data, compute, communicate, still, wait           shares of the time since the sample before
 *              system/cpu                                             processors in use
 *              system/cpu_delay                                       threads that were ready, and had none
 *              system/memory_bytes, major_faults_per_s
 *              system/net_sent_bytes_per_s, net_received_bytes_per_s, disk_read_bytes_per_s, disk_write_bytes_per_s
 *              server/requests_per_s, queue (requests that wait), staleness (pushes, on average)
 *
 * A loss that is no number is shown as such; anything else that is none is left out: there is no AUC of three classes.
 */
#ifndef EVENTS_SCALARS_H
#define EVENTS_SCALARS_H

#include <paceline/registry.h>
#include <stdbool.h>

#define PACE__SCALARS_MAX    24
#define PACE__SCALAR_TAG_MAX 48

typedef struct pace__scalar {
    char tag[PACE__SCALAR_TAG_MAX];
    double value;
} pace__scalar;

typedef struct pace__scalars {
    size_t count;
    pace__scalar item[PACE__SCALARS_MAX];
} pace__scalars;

/* Of a "step" or an "eval". */
void pace__scalars_of_step(const pace_record *record, pace__scalars *scalars);
void pace__scalars_of_eval(const pace_record *record, pace__scalars *scalars);

/* --- samples: counts that only grow --- */

typedef enum pace__count {
    PACE__SECONDS,
    PACE__ROWS,
    PACE__DATA_S,
    PACE__COMPUTE_S,
    PACE__COMMUNICATE_S,
    PACE__STILL_S,
    PACE__WAIT_S,
    PACE__USER_S,
    PACE__SYSTEM_S,
    PACE__DELAY_S,
    PACE__RSS_BYTES,
    PACE__MAJOR_FAULTS,
    PACE__READ_BYTES,
    PACE__WRITE_BYTES,
    PACE__NET_SENT_BYTES,
    PACE__NET_RECEIVED_BYTES,
    PACE__REQUESTS,
    PACE__LOOKS,
    PACE__PUSHES,
    PACE__STALE_PUSHES,
    PACE__COUNTS
} pace__count;

typedef struct pace__counts {
    double of[PACE__COUNTS];
} pace__counts;

pace__counts pace__counts_read(const pace_record *record);

/* What happened between two samples of a rank. `before` NULL: since training began, as far as counts begin there; those of
 * the kernel do not. */
void pace__scalars_of_sample(const pace__counts *before, const pace__counts *now, pace__scalars *scalars);

#endif
