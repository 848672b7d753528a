/*
 * staging.h - an output directory that appears whole or not at all.
 *
 *     static const pace__staging_kind kind = {"prep", "data set", check};
 *     pace__staging staging;
 *     status = pace__staging_begin(&kind, "data", force, &staging, log);
 *     ...                                                      // write files into staging.directory, and sync them
 *     status = pace__staging_commit(&staging, log);            // or pace__staging_abandon
 *
 * Everything is written into a hidden sibling, .NAME.partial, which is renamed to NAME at the very end. A
 * job that fails removes it; one that is killed leaves it behind under that name, and the next job with the
 * same target removes it first. While a job runs it holds a lock on it, so two at once into the same target
 * are told apart from one that died.
 *
 * A directory of that name that a job did not make is left as it is, and the job refuses: each has a mark in it
 * until it is finished. Neither it nor anything in it is followed if it is a link.
 */
#ifndef FILES_STAGING_H
#define FILES_STAGING_H

#include <paceline/log.h>
#include <stdbool.h>

/* What is made, and which older directories may be replaced: other people's are never removed. */
typedef struct pace__staging_kind {
    const char *job;  /* "prep": who makes it, as messages say */
    const char *what; /* "data set" */
    /* PACE_OK if `target`, a directory that is not empty, holds one and nothing else; else it says why not. */
    pace_status (*check)(const char *target, const pace_log *log);
} pace__staging_kind;

typedef struct pace__staging {
    const pace__staging_kind *kind;
    char *target;
    char *directory; /* where to write */
    int lock;
} pace__staging;

/* Missing parents of the target are made. Refuses (PACE_USAGE) a target that exists, unless it is an empty
 * directory, or `force` is set and kind->check agrees. */
pace_status pace__staging_begin(const pace__staging_kind *kind, const char *target, bool force,
                                pace__staging *staging, const pace_log *log);

/* Makes the directory visible under its name. One that it replaces is exchanged for it in one act, where the file
 * system can do that, so that there is no moment without. Releases the staging on success. Of the files in it, only
 * their names are synced here. */
pace_status pace__staging_commit(pace__staging *staging, const pace_log *log);

/* Where one process writes and another one commits: the first leaves the directory as it is, with its mark, and the
 * second takes it over, as begun. PACE_FAILED if it is gone, or has become another job's. */
void pace__staging_leave(pace__staging *staging);
pace_status pace__staging_adopt(const pace__staging_kind *kind, const char *target, bool force,
                                pace__staging *staging, const pace_log *log);

/* After processes that wrote into it have died: removes what they have left of this target, if anything, once
 * none of them holds the lock any more. False if something is there then, another job's perhaps. */
bool pace__staging_sweep(const pace__staging_kind *kind, const char *target, const pace_log *log);

/* Removes everything. A zeroed or committed staging is allowed. */
void pace__staging_abandon(pace__staging *staging, const pace_log *log);

#endif
