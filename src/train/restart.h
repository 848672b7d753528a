/*
 * restart.h - what becomes of a job that has lost a process: decided from plain values, apart from the supervisor who
 * acts on it.
 *
 *     pace__restart next = pace__restart_after(&(pace__lost_job){...});
 *
 *     finished                            -> NOT_NEEDED   everything was committed when the process died
 *     stopped, or as many fruitless
 *     restarts as there may be            -> NO_MORE
 *     else                                -> AGAIN, after a pause: none before the first fruitless restart, then
 *                                            1, 2, 4 ... seconds, at most 30
 */
#ifndef TRAIN_RESTART_H
#define TRAIN_RESTART_H

#include <stdbool.h>
#include <stdint.h>

typedef struct pace__lost_job {
    bool finished;                   /* the run has its summary */
    bool stopped;                    /* somebody wants it to end */
    int64_t fruitless, max_restarts; /* restarts since the last new checkpoint, and how many there may be */
} pace__lost_job;

typedef enum pace__restart_kind {
    PACE__RESTART_NOT_NEEDED,
    PACE__RESTART_NO_MORE,
    PACE__RESTART_AGAIN
} pace__restart_kind;

typedef struct pace__restart {
    pace__restart_kind kind;
    double pause_s; /* of AGAIN */
} pace__restart;

pace__restart pace__restart_after(const pace__lost_job *lost);

/* The job has begun at `step`, or saved it; *furthest is where all its starts together have come to, 0 at first. Whether
 * that is progress, which makes restarts worth their while: a checkpoint that was damaged and is written again is
 * none. */
bool pace__restart_progress(uint64_t *furthest, uint64_t step, bool saved);

#endif
