/*
 * history.h - what a run directory tells, for those who only look: reports, screens, pages, the verdict.
 *
 *     pace__history *history;
 *     status = pace__history_open("run1", log, &history);       // all that is there by now
 *     ... history->roles[0].samples[i].rows ...
 *     pace__history_update(history);                            // and what has come since
 *     pace__history_close(history);
 *
 * It reads files alone, writes none, and holds no lock for longer than a look: it works beside a job of another user, on
 * a run that was killed, and on one whose files are half there.
 *
 * 1. Only what is no run at all fails to open. Everything else that is missing, damaged or of a newer version is named in
 *    `lacks`, and the rest is there.
 * 2. Records are in the order of their time, which never falls: `t` counts seconds of training, restarts included, the time
 *    between processes left out. A line that cannot be read is passed over, and counted.
 * 3. What samples count begins anew with every start of the run. pace__sample_since takes that into account: differences
 *    never fall below zero.
 * 4. An update that finds the records cut or replaced (the run went back to a checkpoint, or began anew) reads all again,
 *    and `generation` rises: whatever was taken from the arrays before is void.
 * 5. However odd the file, arrays are bounded: PACE__HISTORY_RECORDS_MAX records, PACE__HISTORY_ROLES_MAX roles. Beyond,
 *    every second record of steps and samples goes, as often as need be, and `lacks` says so.
 */
#ifndef HISTORY_HISTORY_H
#define HISTORY_HISTORY_H

#include "launch/cluster.h"
#include "run/runstate.h"

#include <paceline/log.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACE__HISTORY_ROLES_MAX   (PACE__WORKERS_MAX + PACE__PS_MAX + 1)
#define PACE__HISTORY_RECORDS_MAX ((size_t)1 << 20)
#define PACE__HISTORY_LACKS_MAX   8

struct cJSON;

/* A record of kind "step". Numbers that it does not have are NAN. */
typedef struct pace__step_record {
    double t, epoch, loss, lr, rows_per_s;
    double data_s, compute_s, communicate_s, wait_s; /* of the chief, since the record before */
    uint64_t step, rows;
} pace__step_record;

/* A record of kind "eval": what was scored on the way, and at the end. */
typedef struct pace__eval_record {
    double t, epoch, logloss, auc, accuracy, f1;
    uint64_t step, rows;
} pace__eval_record;

#define PACE__KERNELS_TEXT 16

/* Something that belongs on a time axis: a start (the first, or another), a checkpoint, a loss of detail. */
typedef enum pace__mark_kind { PACE__MARK_START, PACE__MARK_CHECKPOINT, PACE__MARK_THINNED } pace__mark_kind;
typedef struct pace__mark {
    pace__mark_kind kind;
    double t;
    uint64_t step;
    double
        amount; /* START: incarnation; CHECKPOINT: seconds that training stood still; THINNED: seconds between samples */
    double bytes;                     /* CHECKPOINT */
    char kernels[PACE__KERNELS_TEXT]; /* START: what the chief computed with; "": not known */
} pace__mark;

/* What a role has measured since its process began to train (run/report.h). */
typedef struct pace__sample {
    double t, seconds;
    double data_s, compute_s, communicate_s, still_s, save_s, wait_s;
    double user_s, system_s, delay_s;
    double rows, rss_bytes, rss_max_bytes, minor_faults, major_faults, read_bytes, write_bytes;
    double net_sent_bytes, net_received_bytes;    /* of its host's interfaces */
    double own_sent_bytes, own_received_bytes;    /* with other ranks, in training steps */
    double requests, looks, pushes, stale_pushes; /* of a shard */
    int waits_for,
        waited_for; /* a role, whom it waited for longest: since the sample before; all in all. -1: nobody */
    unsigned start; /* which start of the run it belongs to, from 0 */
} pace__sample;

/* With another role, since its process began to train. */
typedef struct pace__dealings {
    int peer; /* a role */
    double sent_bytes, received_bytes, messages, wait_s;
} pace__dealings;

typedef struct pace__seen_role {
    char name[PACE__ROLE_TEXT];
    char host[PACE__HOST_TEXT];
    pace__sample *samples;
    size_t count, capacity;
    pace__dealings *dealings; /* of its last sample */
    size_t dealings_count, dealings_capacity;
} pace__seen_role;

/* How much of workers' arithmetic is bound by memory, at which rate, and what one core can read; 0 without a profile. */
typedef struct pace__profiled {
    double share, gbytes_s, peak_gbytes_s;
    double seconds; /* that it took to make the profile, behind the last step */
} pace__profiled;

typedef struct pace__setting {
    char *name, *value; /* as in config.yaml */
} pace__setting;

/* How the run stands. */
typedef enum pace__standing {
    PACE__STANDS_UNKNOWN,
    PACE__STANDS_RUNNING, /* somebody has it */
    PACE__STANDS_KILLED,  /* nobody has it, and it has not ended */
    PACE__STANDS_INTERRUPTED,
    PACE__STANDS_FAILED,
    PACE__STANDS_DONE
} pace__standing;

typedef struct pace__history {
    char *path;
    pace__standing standing;
    pace__runstate state;
    const struct cJSON *summary; /* NULL: there is none, or it is damaged */
    pace__setting *settings;     /* config.yaml, in its order */
    size_t setting_count;
    uint64_t steps;         /* that it is to have, by its last start; 0: unknown */
    uint64_t threads;       /* of each worker, by the same; 0: unknown */
    double cores, pause_s;  /* of the chief's host, by the same (watch/quota.h); 0: unknown */
    pace__profiled profile; /* of the last start */
    pace__step_record *step;
    size_t step_count;
    pace__eval_record *eval; /* of the rows that are scored on the way */
    size_t eval_count;
    bool of_validation;       /* those are validation rows; else test rows */
    pace__eval_record tested; /* then, what the test rows came to at the end */
    bool has_tested;
    pace__mark *mark;
    size_t mark_count;
    pace__seen_role
        *roles; /* chief first, the others as they were met, or by rank if cluster.json is there */
    size_t role_count;
    unsigned starts;     /* of the run, seen in the records */
    double last_t;       /* of the last record; 0: none */
    uint64_t unreadable; /* lines */
    unsigned generation;
    char *lacks[PACE__HISTORY_LACKS_MAX]; /* sentences without a full stop; the rest NULL */
    struct pace__history_own *own;
} pace__history;

/* PACE_NO_INPUT, PACE_USAGE or PACE_IO with a message if there is no run to look at. */
pace_status pace__history_open(const char *run, const pace_log *log, pace__history **history);
/* Reads what has come since; true: something has. */
bool pace__history_update(pace__history *history);
void pace__history_close(pace__history *history); /* NULL is allowed */

/* Which rows `eval` is of. */
static inline const char *pace__history_scored(const pace__history *history)
{
    return history->of_validation ? "validation" : "test";
}

/* The value of an option in config.yaml; NULL: not there. */
const char *pace__history_setting(const pace__history *history, const char *name);

/* A number, a text, a member of the summary ("test.auc" goes into objects); NAN, NULL if it is not there. */
double pace__history_number(const pace__history *history, const char *path);
const char *pace__history_text(const pace__history *history, const char *path);

/* The role of that name; -1: none. */
int pace__history_role(const pace__history *history, const char *name);

/* What happened from one sample of a role to a later one: their difference; across a start of the run, or with NULL, all
 * of the later one, but for its host's interfaces. Amounts that are no counts (rss_bytes, t, waits_for, waited_for) are the later
 * one's. */
pace__sample pace__sample_since(const pace__sample *later, const pace__sample *earlier);

/* "running", "killed", ... */
const char *pace__standing_name(pace__standing standing);

#endif
