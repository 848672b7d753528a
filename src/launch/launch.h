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
 * 5. A job that ends because a process or a host was lost returns PACE_LOST; the message names role, rank,
 *    host and, where the launcher tells it, the signal. So does one whose launcher ends and nobody says why.
 *    Others return what their first cause is.
 * 6. `outlives_workers` (Open MPI only; elsewhere it is ignored): mpirun is started so that it lets the
 *    others live when a rank dies. Once the chief's record "start" has come, the death of a worker other than
 *    the chief is said as a warning and told to the chief (orders.h), and the job goes on. Any other death
 *    ends it within two seconds, with PACE_LOST. Deaths are noticed by the launcher's daemons, who wait for
 *    their children: mpirun says so when its state machine is asked to speak (state_base_verbose). A host
 *    that is cut off is noticed after 25 s. A rank that says an error, or leaves with one, is no death: it
 *    ends the job. Such a mpirun may not notice that all ranks have left; then it is ended.
 * 7. Ranks do not outlive mpirun, however it ends.
 * 8. A launcher that has said how a rank died has a few seconds to end: Open MPI's may wait for ever for one
 *    that was killed while MPI began.
 * 9. A job that has never begun (`says_start`, not `again`) and that nobody has killed is not lost: what MPI
 *    refuses now it will refuse again, and its words are shown.
 */
#ifndef LAUNCH_LAUNCH_H
#define LAUNCH_LAUNCH_H

#include "launch/cluster.h"

#include <paceline/options.h>
#include <paceline/registry.h>

typedef struct pace__launch_plan {
    pace__cluster cluster;
    const char *hosts; /* host file; NULL: all ranks on this machine, unless they are placed */
    const pace__host
        *placed; /* rank i goes to placed[host_of[i]], whatever a host file says; NULL: nobody knows yet */
    const int *host_of;
    char *const *words;     /* the ranks' command, ending with NULL: see pace__launch_words */
    const char *launcher;   /* NULL: the mpirun that paceline was built with */
    double first_contact_s; /* within which every rank must have said hello */
    double ending_s;        /* how long a job may be silent once a rank has failed; 0: 5 s */
    bool outlives_workers;  /* see 6 */
    int attempts;           /* earlier ones of this start, which came to nothing: ranks can know */
    bool again;             /* the launcher has started ranks of this job before */
    bool says_start; /* its chief has a record "start" for us when MPI has begun, and all is prepared */
    const _Atomic int *stop; /* 1: pass SIGUSR1 on, once; 2: kill; 3: kill, it is late. May be NULL */
} pace__launch_plan;

/*
 * Runs the job in the current directory until all of it has ended. Returns PACE_OK if the chief said so,
 * else the status of the first cause. PACELINE_* variables are not passed on: the words say everything.
 */
pace_status pace__launch(const pace__launch_plan *plan, const pace_log *log, pace_registry *registry);

/* This program's own path, the one or two words of `verb`, the config as options, the kernels that were asked for, if
 * any were, and, unless `arguments` is NULL, "--" and these. To be freed by pace_options_free_words. */
pace_status pace__launch_words(const char *verb, const pace_option_part *parts, const pace_texts *arguments,
                               const pace_log *log, char ***words);

#endif
