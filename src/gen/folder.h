/*
 * folder.h - a directory of generated files that appears whole or not at all.
 *
 * Everything is written into a hidden sibling, .NAME.partial, which is renamed to NAME at the very end. A job
 * that fails removes it; one that is killed leaves it behind under that name, and the next one removes it first.
 * While a job runs it holds a lock on it.
 */
#ifndef GEN_FOLDER_H
#define GEN_FOLDER_H

#include <paceline/log.h>
#include <stdbool.h>

typedef struct pace__folder {
    char *target;
    char *directory; /* where to write */
    int lock;
} pace__folder;

/*
 * Refuses (PACE_USAGE) a target that exists, unless it is an empty directory, or `force` is set and
 * `replaceable(target)` says that it holds nothing but what this program writes.
 */
pace_status pace__folder_open(pace__folder *folder, const char *target, bool force,
                              bool (*replaceable)(const char *target), const pace_log *log);

/* `status` is the job's: if PACE_OK the directory gets its name, else it is removed and `status` returned. */
pace_status pace__folder_close(pace__folder *folder, pace_status status, const pace_log *log);

#endif
