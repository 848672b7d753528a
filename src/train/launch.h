/*
 * launch.h - a job's processes, started by mpirun and supervised until they have ended.
 *
 *     paceline train --workers 2 --ps 1          this process
 *       mpirun ... paceline train ...            its child, in a session of its own
 *         chief, worker1, ps0                    ranks, which speak to us by <paceline/relay.h>
 *
 * 1. Ctrl-C reaches only this process, and mpirun is ended by the kernel if this process dies, however it
 *    dies.
 * 2. Messages of ranks become messages of this process, the chief's records its records. Errors are held
 *    back until the job is over: if it failed, the last thing that is said is the first cause, once.
 * 3. Success is the chief's word, not the launcher's exit code.
 * 4. What mpirun and libraries write is shown only if nobody else says why the job failed.
 */
#ifndef TRAIN_LAUNCH_H
#define TRAIN_LAUNCH_H

#include "train/cluster.h"

#include <paceline/options.h>
#include <paceline/registry.h>

typedef struct pace__launch_plan {
    pace__cluster cluster;
    const char *hosts;       /* host file; NULL: all ranks on this machine */
    char *const *words;      /* the ranks' command, ending with NULL: see pace__launch_command */
    const char *launcher;    /* NULL: the mpirun that paceline was built with */
    double first_contact_s;  /* within which every rank must have said hello */
    double ending_s;         /* how long a job may be silent once a rank has failed; 0: 5 s */
    const _Atomic int *stop; /* 1: pass SIGUSR1 on, once; 2: kill. May be NULL */
} pace__launch_plan;

/*
 * Runs the job in the current directory until all of it has ended. Returns PACE_OK if the chief said so,
 * else the status of the first cause. PACELINE_* variables are not passed on: the words say everything.
 */
pace_status pace__launch(const pace__launch_plan *plan, const pace_log *log, pace_registry *registry);

/* This program's own path, `verb`, and the config as options. To be freed by pace_options_free_words. */
pace_status pace__launch_command(const char *verb, const pace_option *table, const void *config,
                                 const pace_log *log, char ***words);

#endif
