/*
 * launch_internal.h - the parts behind launch.h: a child process, the launcher's words, and what can be
 * learned from the lines that it writes when something goes wrong. The last two are functions of plain
 * values.
 */
#ifndef TRAIN_LAUNCH_INTERNAL_H
#define TRAIN_LAUNCH_INTERNAL_H

#include "train/launch.h"

#include <paceline/relay.h>
#include <sys/types.h>

/* ---- the launcher as a child process: launch_child.c ---- */

typedef struct pace__child {
    pid_t pid;
    int fds[2]; /* what it writes to standard output and standard error; -1: ended */
    bool ended;
    int code; /* wait status, once ended */
} pace__child;

/* In a session of its own, without input. It gets `death_signal` when the calling thread ends. */
pace_status pace__child_start(char *const *words, char *const *environment, int death_signal,
                              const pace_log *log, pace__child *process);

/* Waits a moment for something to read, reads it, and looks whether the child has ended. */
void pace__child_serve(pace__child *process, pace_relay_reader *const readers[2]);
bool pace__child_open(const pace__child *process); /* may there be more to read? */
void pace__child_close(pace__child *process);

/* ---- its words: launch_words.c ---- */

typedef enum pace__engine { PACE__OPEN_MPI, PACE__MPICH } pace__engine;

/* By what `mpirun --version` says, else by the launcher's name. */
pace__engine pace__engine_of(const char *launcher, const char *version_text);

/*
 * The launcher's command line. `hosts` and `host_of` as from pace__hosts_place; NULL: this machine. NULL
 * when out of memory; freed by pace_options_free_words, as is the environment.
 */
char **pace__launcher_words(pace__engine engine, const char *launcher, const pace__launch_plan *plan,
                            const char *directory, const pace__host *hosts, const int *host_of);

/* `variables` (like environ) without PACELINE_*, with what the launcher and the ranks need. A user's own
 * OMPI_* stay as they are. */
char **pace__launcher_environment(char *const *variables, int ranks, int cores, bool root);

/* ---- its lines: launch_noise.c ---- */

/* What the launcher's lines tell about the end of a job. Zeroed, but for `ranks`, before the first line. */
typedef struct pace__obituary {
    int ranks;
    int signal; /* that ended a rank; 0: none is known */
    int rank;   /* which rank; meaningful if `rank_known` */
    bool rank_known;
    bool aborted;         /* a rank ended the job by MPI_Abort: it has said why */
    char no_program[512]; /* what could not be executed, or "" */
    char no_program_host[PACE__HOST_TEXT];
    char no_answer_host[PACE__HOST_TEXT]; /* that could not be reached, or "" */
    bool expects_host;                    /* the next "Local host:" line names it */
    bool expects_program;                 /* the next "Executable:" line is about such a program */
    long process;                         /* that did not end well, or 0, and how it ended, as wait() says */
    int process_code;
    bool expects_codes;                              /* the next line may go on with exit codes */
    int codes[PACE__WORKERS_MAX + PACE__PS_MAX + 1]; /* MPICH's, by rank */
    int code_count;
} pace__obituary;

void pace__obituary_line(pace__obituary *obituary, const char *line);

/* By the exit codes, may the rank be one that the signal ended? */
bool pace__obituary_fits(const pace__obituary *obituary, int rank);

#endif
