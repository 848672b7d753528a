/*
 * directory.h - the files in RUN/events, by their names:
 *
 *     chief/events.out.tfevents.0000000001.paceline         what the first start of the run has written
 *     chief/events.out.tfevents.0000000002.paceline         and the second
 *     chief/events.out.tfevents.0000000002.paceline-end     how the run ended, until it goes on
 *     worker1/events.out.tfevents.0000000001.paceline
 *
 * TensorBoard reads the files of a directory in the order of their names, and does not come back to one. So names have
 * numbers that only grow, where other programs have the time: clocks may be put back.
 *
 * Anything else is somebody else's, and is neither counted nor touched; links are not followed.
 */
#ifndef EVENTS_DIRECTORY_H
#define EVENTS_DIRECTORY_H

#include <paceline/log.h>
#include <stdbool.h>
#include <stdint.h>

#define PACE__EVENT_NUMBER_MAX UINT64_C(9999999999) /* ten digits */
#define PACE__EVENT_NAME_MAX   64

typedef struct pace__event_files {
    uint64_t last;  /* the highest number; 0: there are none */
    uint64_t bytes; /* of all */
} pace__event_files;

/* chief, worker1, ps0, evaluator: a directory's name that is one of ours. */
bool pace__is_event_role(const char *name);

void pace__event_file_name(uint64_t number, bool end, char name[PACE__EVENT_NAME_MAX]);

/* What is there; nothing, if there is no such directory. */
pace__event_files pace__event_files_find(const char *directory);

/* The run goes on: what tells of its end is removed. */
void pace__event_files_reopen(const char *directory);

/* All files of ours, and directories of roles that are empty then. `directory` itself stays. PACE_IO if one is left. */
pace_status pace__event_files_remove(const char *directory, const pace_log *log);

#endif
