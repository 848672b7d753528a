/*
 * status.h - how paceline functions say what happened.
 *
 * Every function that can fail returns a pace_status. The function that finds the problem writes one message
 * through its log (pace_fail in log.h); functions that only pass the status on stay silent. Outputs are set
 * only on success.
 *
 * The values are the exit codes of the program, so that a status needs no translation on its way out; only
 * PACE_LOST, which ranks of a job tell each other, leaves it as 1.
 */
#ifndef PACELINE_STATUS_H
#define PACELINE_STATUS_H

typedef enum pace_status {
    PACE_OK = 0,
    PACE_FAILED = 1,    /* the job is lost for a reason that is none of the others: diverged, out of memory */
    PACE_USAGE = 64,    /* nothing was started: an option or argument is wrong */
    PACE_BAD_DATA = 65, /* an input's contents are not what they should be */
    PACE_NO_INPUT = 66, /* an input does not exist or cannot be opened */
    PACE_LOST = 69,     /* a process of the job, or its host, is gone: starting again may help */
    PACE_BUG = 70,      /* paceline itself is wrong */
    PACE_IO = 74,       /* reading or writing failed: disk full, read-only, device error */
    PACE_INTERRUPTED = 75, /* stopped on request; can be resumed */
} pace_status;

#endif
