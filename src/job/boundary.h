/*
 * boundary.h - what the one who leads a run does after steps: records, scores, checkpoints, the decision to end.
 *
 * The leader is thread 0 where threads split the columns, and the chief everywhere else. It adds up losses and times as they
 * come, and after steps at which something is due it reports, and acts on a clean state (everything before
 * the step applied, nothing behind it).
 *
 *     pace__boundary_add(&boundary, loss, rows);
 *     if (pace__boundary_due(&boundary, step) || pace__boundary_wants(&boundary)) {
 *         status = pace__boundary_report(&boundary, step);             // records, progress, has it diverged?
 *         if (!status)
 *             status = pace__boundary_act(&boundary, step);            // scores, checkpoint; boundary.ended
 *     }
 */
#ifndef JOB_BOUNDARY_H
#define JOB_BOUNDARY_H

#include "job/job.h"

/* Where the leader's time went since the last record, in nanoseconds. */
typedef struct pace__times {
    uint64_t data_ns, compute_ns, communicate_ns, wait_ns;
} pace__times;

typedef struct pace__boundary {
    pace__job *job;
    bool distributed; /* times are told apart further */
    bool ended;       /* decided by act */
    pace__times times;

    /* private */
    uint64_t log_every, check_every;
    double loss, log_loss, judged_loss; /* since the last report, record, judgement */
    uint64_t rows, log_rows, judged_rows;
    uint64_t log_ns, shown_ns;
    uint64_t before;  /* rows that an earlier start has done */
    uint64_t acted;   /* the step behind which it last did, or began */
    uint64_t logged;  /* and of the last record */
    double still_s;   /* spent on acting, while no steps were taken */
    double saved_s;   /* of that, on checkpoints */
    uint64_t acts_ns; /* since when it acts; 0: it does not */
} pace__boundary;

void pace__boundary_open(pace__boundary *boundary, pace__job *job, bool distributed);
void pace__boundary_add(pace__boundary *boundary, double loss, uint64_t rows);
/* Progress, if none was shown for half a second: to be called now and then where steps may be slow. */
void pace__boundary_show(pace__boundary *boundary);
/* Seconds in which it has scored and saved so far, while no steps were taken. */
double pace__boundary_still_s(const pace__boundary *boundary);
/* Of those, the ones of checkpoints that were begun and have set off. */
double pace__boundary_saved_s(const pace__boundary *boundary);
bool pace__boundary_due(const pace__boundary *boundary, uint64_t step);
/* Is a clean state wanted soon, whatever the step: to stop, or for a checkpoint whose time has come? */
bool pace__boundary_wants(const pace__boundary *boundary);

/* PACE_FAILED if training has diverged. */
pace_status pace__boundary_report(pace__boundary *boundary, uint64_t step);
/* PACE_INTERRUPTED if the caller's stop flag is up; a checkpoint has been written then. */
pace_status pace__boundary_act(pace__boundary *boundary, uint64_t step);

#endif
