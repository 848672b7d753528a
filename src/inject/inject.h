/*
 * inject.h - faults on request: --inject kill:ps0@step=300,slow:worker1=3x,stall:worker2@step=50
 *
 *     kill:ROLE[@MOMENT]                the process is killed (SIGKILL)
 *     stall:ROLE[=SECONDSs][@MOMENT]    it does nothing, for so long, or until it is ended
 *     slow:ROLE=FACTORx[@step=FROM..TO] all its work takes so many times as long, from step FROM until TO - 1;
 *                                       without one, from the first or to the last: @step=FROM, @step=..TO
 *     corrupt-checkpoint[@step=N]       a byte of the next whole checkpoint (of step N or later) is changed
 *
 *     ROLE      chief, worker1 ..., ps0 ..., evaluator; worker0 is the chief
 *     MOMENT    step=N (step N or later is reached; for a ps, the step being applied), time=Ss (seconds since
 *               training began in this process), start (before the first step), checkpoint (while one is
 *               written), eval (while scores are computed), end (behind the last step); without one: step=0
 *
 * The letters s and x may be left out; steps may be written 10k. Two slownesses of one rank multiply.
 *
 * Each fires once per run, restarts included: before it fires, a line is appended to RUN/faults and synced:
 *
 *     1 kill:ps0@step=300 2026-01-31T12:00:00Z
 *
 * The number counts faults of the same text: after a restart the same list fires what is left of it, and two
 * equal faults are two. Slowness is a matter of the step alone, so it is not recorded. A fault that cannot be recorded does not fire,
 * and that is said.
 */
#ifndef INJECT_INJECT_H
#define INJECT_INJECT_H

#include "base/clock.h"
#include "launch/cluster.h"

#include <paceline/log.h>
#include <stdint.h>

#define PACE__FAULTS_MAX         32
#define PACE__FAULTS_OF_ALL      (-1) /* instead of a rank */
#define PACE__FAULT_TEXT         96
#define PACE__FAULT_STEP_MAX     999999999999
#define PACE__FAULT_SECONDS_MAX  1e7
#define PACE__FAULT_SLOWNESS_MAX 1000

typedef enum pace__fault_kind {
    PACE__FAULT_KILL,
    PACE__FAULT_STALL,
    PACE__FAULT_SLOW,
    PACE__FAULT_CORRUPT
} pace__fault_kind;

typedef enum pace__moment {
    PACE__AT_STEP,
    PACE__AT_TIME,
    PACE__AT_START,
    PACE__AT_CHECKPOINT,
    PACE__AT_EVAL,
    PACE__AT_END
} pace__moment;

typedef struct pace__fault {
    pace__fault_kind kind;
    int rank; /* whose; of CORRUPT: 0, the chief */
    pace__moment moment;
    uint64_t step;
    uint64_t until;              /* SLOW: the first step that is not slow any more; UINT64_MAX: none */
    double seconds;              /* of AT_TIME */
    double amount;               /* STALL: seconds, 0 for ever; SLOW: the factor, at least 1 */
    char text[PACE__FAULT_TEXT]; /* as the user wrote it, without blanks around it */
    unsigned number;             /* among those of the same text, from 1 */
} pace__fault;

/* A factor for the work of steps from .. until - 1. */
typedef struct pace__slowness {
    double factor;
    uint64_t from, until;
} pace__slowness;

/* What one rank is to suffer. Belongs to one thread. */
typedef struct pace__faults {
    pace__fault fault[PACE__FAULTS_MAX]; /* all but the slow ones */
    unsigned count;
    uint64_t spent;    /* bits: fired, or not to be fired any more */
    char *record;      /* RUN/faults */
    pace__clock clock; /* of faults at a time */
    uint64_t start_ns; /* by that clock */
    pace__slowness slow[PACE__FAULTS_MAX];
    unsigned slow_count;
    int64_t debt_ns; /* what drag has not slept yet; negative: it slept too long */
    const pace_log *log;
} pace__faults;

/* Parses `text` (NULL or blank: no faults); errors name the part, its place and what is possible: PACE_USAGE.
 * A role that the cluster does not have is an error. `all` gets every rank's. */
pace_status pace__faults_parse(const char *text, const pace__cluster *cluster, const pace_log *log,
                               pace__fault all[PACE__FAULTS_MAX], unsigned *count);

/* This rank's faults; those that RUN/faults has already are spent. Safe to close after a failure. */
pace_status pace__faults_open(pace__faults *faults, const char *text, const pace__cluster *cluster, int rank,
                              const char *run, const pace_log *log);
void pace__faults_close(pace__faults *faults);
/* Faults of a time go by this clock instead of the real one, from now on. */
void pace__faults_go_by(pace__faults *faults, const pace__clock *clock);

/* Slowness is not recorded: it is said once, by who leads the run. */
void pace__faults_say_slow(const char *text, const pace__cluster *cluster, const pace_log *log);
/* After the run: warns of faults, of any rank, that have not fired. */
void pace__faults_say_unfired(const char *text, const pace__cluster *cluster, const char *run,
                              const pace_log *log);

/*
 * To be called at the moment: fires what is due (kill does not return; stall returns after its time). `step`
 * counts at PACE__AT_STEP only. Faults of a time are looked at in every call, and their clock begins at
 * PACE__AT_START, or with the opening. Costs a comparison if there are no faults; the clock is read only if
 * there are faults of a time.
 */
void pace__faults_at(pace__faults *faults, pace__moment moment, uint64_t step);

/* SLOW: how many times as long the work of a step takes; 1: none. */
double pace__faults_slowness(const pace__faults *faults, uint64_t step);
/* Sleeps so that work of that step that took `busy_ns` takes so many times as long. Tiny amounts add up first. Returns for
 * how long, which counts as that work. */
uint64_t pace__faults_drag(pace__faults *faults, uint64_t step, uint64_t busy_ns);

/* CORRUPT, after a checkpoint was committed: changes a byte in the middle of its largest file, if it is due.
 * At most one fault per checkpoint. */
void pace__faults_corrupt(pace__faults *faults, const char *directory, uint64_t step);

#endif
