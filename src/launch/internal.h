/*
 * internal.h - the parts behind launch.h: the launcher's words, and what can be learned from the lines that it writes when
 * something goes wrong. Both are functions of plain values. Its process: child.h.
 */
#ifndef LAUNCH_INTERNAL_H
#define LAUNCH_INTERNAL_H

#include "launch/child.h"
#include "launch/launch.h"

#include <paceline/relay.h>

/* ---- its words: words.c ---- */

typedef enum pace__engine { PACE__OPEN_MPI, PACE__MPICH } pace__engine;

/* By what `mpirun --version` says, else by the launcher's name. */
pace__engine pace__engine_of(const char *launcher, const char *version_text);

/*
 * The launcher's command line. `hosts` and `host_of` as from pace__hosts_place; NULL: this machine. NULL
 * when out of memory; freed by pace_options_free_words, as is the environment.
 */
char **pace__launcher_words(pace__engine engine, const char *launcher, const pace__launch_plan *plan,
                            const char *directory, const pace__host *hosts, const int *host_of);

/* `variables` (like environ) without PACELINE_*, with what the launcher and the ranks need. `here`: all ranks are on
 * this machine. A user's own OMPI_* stay as they are. */
char **pace__launcher_environment(char *const *variables, int attempts, int ranks, int cores, bool here,
                                  bool root);

/* How many open files it takes to start so many ranks on this machine. With fewer, launchers wait for ever. */
uint64_t pace__launcher_files(int ranks_here);

/* Open MPI's launcher makes files of this size before it starts anything. Where it may not, it waits for ever. */
#define PACE__OPEN_MPI_FILE_SIZE ((uint64_t)4 << 20)

/* ---- its lines: noise.c ---- */

#define PACE__LAUNCHED_MAX (PACE__WORKERS_MAX + PACE__PS_MAX + 1)

/* What the launcher's lines tell about the end of a job. Zeroed, but for `ranks`, before the first line. */
typedef struct pace__obituary {
    int ranks;  /* at most PACE__LAUNCHED_MAX */
    int signal; /* that ended a rank; 0: none is known */
    int rank;   /* which rank; meaningful if `rank_known` */
    bool rank_known;
    bool aborted;         /* a rank ended the job by MPI_Abort: it has said why */
    int abort_code;       /* with that status, where the launcher tells it */
    char no_program[512]; /* what could not be executed, or "" */
    char no_program_host[PACE__HOST_TEXT];
    char no_answer_host[PACE__HOST_TEXT]; /* that could not be reached, or "" */
    char no_answer_why[PACE__HOST_TEXT];  /* as ssh says it, or "" */
    bool expects_host;                    /* the next "Local host:" line names it */
    bool expects_program;                 /* the next "Executable:" line is about such a program */
    long process;                         /* that did not end well, or 0, and how it ended, as wait() says */
    int process_code;
    bool expects_codes;            /* the next line may go on with exit codes */
    int codes[PACE__LAUNCHED_MAX]; /* MPICH's, by rank */
    int code_count;
} pace__obituary;

void pace__obituary_line(pace__obituary *obituary, const char *line);
/* Has the launcher said that a rank has ended the job? */
bool pace__obituary_tells(const pace__obituary *obituary);

/*
 * A line of the state machine of Open MPI's launcher and its daemons, which speaks when it is asked to. With
 * --enable-recovery it is all that tells how a rank ended.
 */
typedef enum pace__event_kind {
    PACE__EVENT_NONE,       /* it says nothing that matters here */
    PACE__EVENT_RUNNING,    /* a rank has been started */
    PACE__EVENT_KILLED,     /* a rank was ended by a signal */
    PACE__EVENT_LEFT,       /* a rank ended without MPI_Finalize: by _exit(), for one */
    PACE__EVENT_ABORTED,    /* a rank called MPI_Abort */
    PACE__EVENT_NO_PROGRAM, /* a rank could not be executed */
    PACE__EVENT_ENDING,     /* the launcher ends the ranks itself */
    PACE__EVENT_NO_DAEMON,  /* the launcher cannot reach a daemon any more */
} pace__event_kind;

typedef struct pace__event {
    pace__event_kind kind;
    int number;  /* the rank; of NO_DAEMON: the daemon */
    int speaker; /* the daemon that says so: one on each host; 0 is the launcher */
} pace__event;

/* False: the line is somebody else's. True: it is no noise, whatever the kind. */
bool pace__event_line(const char *line, pace__event *event);

/* By the exit codes, may the rank be one that the signal ended? */
bool pace__obituary_fits(const pace__obituary *obituary, int rank);

/* ---- a job under way: launch.c ---- */

#define PACE__NOISE_LINES 50
#define PACE__NOISE_TEXT  256
#define PACE__ERRORS_MAX  32
#define PACE__LIST_TEXT   700
#define PACE__WHO_TEXT    (PACE__ROLE_TEXT + PACE__HOST_TEXT + 32)

#define PACE__NO_PROGRAM_TEXT "host %s cannot run %s: the program must have this path on every host"

typedef struct pace__rank_state {
    bool hello, left; /* said hello; said its exit status */
    bool complained;  /* said an error */
    int status;
    long process;
    char host[PACE__HOST_TEXT];
    /* Where the launcher tells how ranks end: */
    int daemon;           /* that has started it; 0: the launcher, or not known */
    pace__event_kind end; /* NONE: it has not ended; NO_DAEMON: its host is lost */
    uint64_t end_ns;      /* when we heard of it */
    bool judged;          /* all that was to be done about it is done */
    bool gone, told;      /* the job goes on without it; the chief has been told */
} pace__rank_state;

typedef struct pace__held_error {
    int rank;
    char text[PACE_LOG_TEXT_MAX];
} pace__held_error;

typedef struct pace__launch_job {
    const pace__launch_plan *plan;
    const pace_log *log;
    pace_registry *registry;
    int size;
    pace__rank_state *ranks;
    int hellos;
    char own_host[PACE__HOST_TEXT];
    char mpi_job[80]; /* Open MPI's number of the job, or "" */
    pace__held_error errors[PACE__ERRORS_MAX];
    int error_count;
    char noise[PACE__NOISE_LINES][PACE__NOISE_TEXT]; /* a ring */
    size_t noise_count;
    pace__obituary obituary;
    pace__child launcher;
    uint64_t start_ns;
    uint64_t failed_ns; /* when a rank spoke last, since one has said that something is wrong */
    uint64_t done_ns;   /* when the chief has said that it is done */
    uint64_t told_ns;   /* when the launcher has said that a rank has ended the job */
    bool stop_passed_on;
    /* A job that outlives workers. Times are 0 until then. */
    bool outlives, started;  /* it does; the chief's record "start" has come (of any job) */
    uint64_t ends_itself_ns; /* since when the launcher is ending the ranks */
    uint64_t gave_up_ns;     /* when the chief has left with a failure */
    uint64_t broken_ns;      /* when any rank was known to have ended with one, or not to start */
    uint64_t all_ended_ns;   /* when all ranks were known to have ended */
    int kills;               /* signals sent to end it: SIGTERM, then SIGKILL */
    uint64_t kill_ns;
    pace_status verdict; /* why we ended it ourselves, and the message */
    char verdict_text[PACE_LOG_TEXT_MAX];
} pace__launch_job;

/* Invariant 9 of launch.h: there is nothing yet that a restart could go on with. */
static inline bool pace__never_began(const pace__launch_job *job)
{
    return job->plan->says_start && !job->started && !job->plan->again;
}

/* Ends it, because of this: the first reason stays. */
void pace__end_job(pace__launch_job *job, pace_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void pace__kill_job(pace__launch_job *job);

/* ---- ranks that die: deaths.c ---- */

/* What mpirun's state machine has said. */
void pace__take_event(pace__launch_job *job, const pace__event *event);
void pace__look_whether_all_ended(pace__launch_job *job);
/* Decides which deaths the job survives; `over`: nothing more will be heard. */
void pace__look_at_deaths(pace__launch_job *job, bool over);

/* ---- how it ended: ended.c ---- */

/* "worker1 (rank 1, host b)" */
const char *pace__who(const pace__launch_job *job, int rank, char text[PACE__WHO_TEXT]);
/* "worker1 on b, ps0 on c and 3 more": the ranks that have not said hello. */
const char *pace__missing_ranks(const pace__launch_job *job, char text[PACE__LIST_TEXT]);
/* When everything has been heard: the job's status, and its last words. */
pace_status pace__conclude(pace__launch_job *job);

#endif
