/*
 * rundir.h - the directory that a run leaves behind: who may write into it, its records and its log.
 *
 *     pace__rundir *run;
 *     status = pace__rundir_open(config->run, PACE__RUN_NEW, log, &run);
 *     log = pace__rundir_log(run);                              // logs/paceline.log hears all from here on
 *     pace_registry_attach(registry, pace__rundir_sink(run));   // records go to metrics.jsonl
 *     ... pace__rundir_path(run, PACE__RUN_SUMMARY) ...
 *     pace_registry_detach(registry, pace__rundir_sink(run));
 *     pace__rundir_close(run);
 *
 * Invariants:
 * 1. A directory holds a run if and only if it holds logs/paceline.log: the first file that a run makes, and
 *    the last that is removed. Other tools write a config.yaml or a metrics.jsonl too, so those prove
 *    nothing.
 * 2. Files that a run does not write are never touched, in its directories neither. A directory that holds something, but no run, is
 *    refused.
 *    features/ does not count: it may be made before the run, and is known by what it holds (features.c).
 * 3. The open log is locked: a second process that wants the same directory is refused, with force too, after it has
 *    waited as long as it may: the lock of a process that was killed is there until the last of it is gone.
 *    The lock is that of a directory, whatever its name becomes. Writers go by the name, so whoever commits something
 *    asks first whether it still leads there (pace__rundir_is_there).
 * 4. metrics.jsonl is written by who has the directory, alone (records.h).
 */
#ifndef RUN_RUNDIR_H
#define RUN_RUNDIR_H

#include <paceline/log.h>
#include <paceline/registry.h>
#include <stdbool.h>
#include <stdint.h>

/* A larger summary.json is refused. */
#define PACE__SUMMARY_BYTES_MAX ((size_t)1 << 20)

/* In profile/ (job/profile.h); a larger table is refused. */
#define PACE__PROFILE_TRACE     "trace.json.gz"
#define PACE__PROFILE_OPS       "ops.json"
#define PACE__PROFILE_BYTES_MAX ((size_t)4 << 20)

/* A larger mistakes.json (job/mistakes.c) is refused. */
#define PACE__MISTAKES_BYTES_MAX ((size_t)4 << 20)

/* The feature cache, if there is no other. */
#define PACE__RUN_FEATURES "features"

typedef enum pace__run_file {
    PACE__RUN_CONFIG,  /* config.yaml */
    PACE__RUN_CLUSTER, /* cluster.json */
    PACE__RUN_METRICS, /* metrics.jsonl */
    PACE__RUN_SUMMARY, /* summary.json */
    PACE__RUN_STATE,   /* state.json, rows: runstate.h */
    PACE__RUN_ROWS,
    PACE__RUN_FAULTS, /* faults: inject/inject.h */
    PACE__RUN_SHARES, /* shares.jsonl: shares.h */
    PACE__RUN_EVENTS, /* events/: like the next two, made by those who write into it */
    PACE__RUN_CHECKPOINTS,
    PACE__RUN_PROFILE,
    PACE__RUN_MODEL,    /* model.safetensors */
    PACE__RUN_MISTAKES, /* mistakes.json */
    PACE__RUN_REPORT,   /* report.html */
    PACE__RUN_LOGS,     /* logs/; last, see invariant 1 */
    PACE__RUN_FILES
} pace__run_file;

typedef enum pace__run_start {
    PACE__RUN_NEW,     /* a missing or empty directory; one that holds a run is refused */
    PACE__RUN_REPLACE, /* like NEW, but a run that is there is removed first (--force) */
    PACE__RUN_RESUME,  /* one that holds a run; all of it is kept */
} pace__run_start;

typedef struct pace__rundir pace__rundir;

/*
 * Makes the directory if need be and opens log and records. Refusals are PACE_USAGE; nothing to resume is
 * PACE_NO_INPUT. `log` must outlive the run: it gets what goes through pace__rundir_log, and the warning if
 * records cannot be written.
 */
pace_status pace__rundir_open(const char *path, pace__run_start start, const pace_log *log,
                              pace__rundir **run);
/* The same, waiting for a directory that somebody else still has. */
typedef struct pace__run_patience {
    double seconds;
    bool (*turn)(void *user); /* now and then, while it waits; false: no longer. May be NULL */
    void *user;
} pace__run_patience;
pace_status pace__rundir_open_patiently(const char *path, pace__run_start start,
                                        const pace__run_patience *patience, const pace_log *log,
                                        pace__rundir **run);
void pace__rundir_close(pace__rundir *run); /* NULL is allowed */

/* Whether open() would succeed as far as can be seen without making or changing anything. */
pace_status pace__rundir_check(const char *path, pace__run_start start, const pace_log *log);

/* Before anything is written by its path: does that still lead to the directory that was opened? If it was moved, removed
 * or replaced, PACE_IO with a message; where that cannot be told, PACE_OK: whoever writes there will see. */
pace_status pace__rundir_is_there(const pace__rundir *run, const pace_log *log);

/* The run goes on from this step: records of later ones are removed, and the clock of those to come goes on
 * from the last that stays. */
pace_status pace__rundir_go_back(pace__rundir *run, uint64_t step);

/* Are there files where a run has files, and directories where it has directories? Links count as what they lead to.
 * Nothing is opened for that, which might wait for ever. */
pace_status pace__run_check_files(const char *run, const pace_log *log);

/* Does the directory hold a run? */
bool pace__run_exists(const char *run);

/* Has anybody got it open, as far as can be seen from here? */
bool pace__run_is_held(const char *run);

/* Do its records tell of a checkpoint? The step of the last. */
bool pace__run_last_saved(const char *run, uint64_t *step);

/* A line in the log of a run that somebody else has open, or nobody; none is made. */
void pace__run_note(const char *run, pace_level level, const char *text);

/* RUN/config.yaml and so on; the text lives as long as the run is open. */
const char *pace__rundir_path(const pace__rundir *run, pace__run_file file);

/* The same for a run that is not open: to be freed by the caller, NULL when out of memory. */
char *pace__run_path(const char *run, pace__run_file file);

/*
 * Passes messages on and writes them to logs/paceline.log, with time and level. May be used by many threads
 * at once.
 */
const pace_log *pace__rundir_log(const pace__rundir *run);

/* Records to metrics.jsonl, and how many of them could not be written. */
const pace_sink *pace__rundir_sink(const pace__rundir *run);
uint64_t pace__rundir_records_lost(const pace__rundir *run);

#endif
