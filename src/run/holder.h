/*
 * holder.h - who has a run directory: RUN/logs/holder, which the process that has locked it writes and, in the end,
 * removes. So a file that is there when the lock is free was left by a process that was killed.
 *
 *     {"process": 4711, "host": "node1", "job": 598343681, "ranks": 3, "session": "/tmp/ompi.node1.0/pid.4700"}
 *
 * The last three are what Open MPI may have left with it (launch/leftovers.h). The file is a courtesy: what cannot be
 * written or read is done without.
 */
#ifndef RUN_HOLDER_H
#define RUN_HOLDER_H

#include "launch/leftovers.h"

typedef struct pace__holder {
    long process; /* 0: unknown */
    pace__leftovers leftovers;
} pace__holder;

/* This process. */
void pace__holder_write(const char *path);
/* All zero if there is none. */
pace__holder pace__holder_read(const char *path);

/* "process 4711 on node1", or "another process". */
#define PACE__HOLDER_TEXT (PACE__HOST_TEXT + 64)
const char *pace__holder_name(const pace__holder *holder, char text[PACE__HOLDER_TEXT]);

#endif
