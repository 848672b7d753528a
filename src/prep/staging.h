/*
 * staging.h - an output directory that appears whole or not at all.
 *
 * Everything is written into a hidden sibling, .NAME.partial, which is renamed to NAME at the very end. A
 * prep that fails removes it; one that is killed leaves it behind under that name, and the next prep with the
 * same target removes it first. While a prep runs it holds a lock on it, so two at once into the same target
 * are told apart from one that died.
 */
#ifndef PREP_STAGING_H
#define PREP_STAGING_H

#include <paceline/log.h>
#include <stdbool.h>

typedef struct pace__staging {
    char *target;
    char *directory; /* where to write */
    int lock;
} pace__staging;

/*
 * Refuses (PACE_USAGE) a target that exists, unless it is an empty directory, or `force` is set and
 * `replaceable(target)` says that it is what this program writes: other people's directories are never
 * removed.
 */
pace_status pace__staging_begin(const char *target, bool force, bool (*replaceable)(const char *),
                                pace__staging *staging, const pace_log *log);

/* Makes the directory visible under its name, replacing the old one. Releases the staging on success. */
pace_status pace__staging_commit(pace__staging *staging, const pace_log *log);

/* After processes that wrote into it have died: removes what they have left of this target, if anything, once
 * none of them holds the lock any more. False if something is there then, another prep's perhaps. */
bool pace__staging_sweep(const char *target, const pace_log *log);

/* Removes everything. A zeroed or committed staging is allowed. */
void pace__staging_abandon(pace__staging *staging, const pace_log *log);

#endif
