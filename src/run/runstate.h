/*
 * runstate.h - what a run remembers between its processes: RUN/state.json and RUN/rows.
 *
 * state.json   {"id": 5811284511935120, "incarnation": 3, "restarts": 2, "checkpoint": 1200, "ending": "running"}
 *     id            drawn when the run is made: another run of the same directory has another. Left out by earlier versions
 *     incarnation   a new number for every start; whoever has an older one may not commit anything any more
 *     restarts      starts after a process was lost (not those after an orderly interruption)
 *     checkpoint    step of the newest checkpoint that was ever committed; null: none
 *     ending        running, interrupted, done, failed; "running" in the file of a run that nobody runs:
 *                   it was killed
 * rows         a page for every rank, with one 8-byte count, mapped into its memory: rows whose gradients it
 *              has computed, in all incarnations. Memory that is mapped from a file survives the death of the
 *              process (not that of the host), so the sum over all ranks, less the rows of the job, is
 *              exactly what was computed twice. A page each, because hosts that share the file over a network
 *              write back whole pages, and with them what else they have seen there.
 */
#ifndef RUN_RUNSTATE_H
#define RUN_RUNSTATE_H

#include "base/json.h"

#include <paceline/log.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACE__RUN_NUMBER_MAX PACE__JSON_COUNT_MAX

typedef enum pace__run_ending {
    PACE__RUN_RUNNING,
    PACE__RUN_INTERRUPTED,
    PACE__RUN_DONE,
    PACE__RUN_FAILED
} pace__run_ending;

typedef struct pace__runstate {
    uint64_t id; /* 0: none yet */
    uint64_t incarnation, restarts;
    bool has_checkpoint;
    uint64_t checkpoint;
    pace__run_ending ending;
} pace__runstate;

/* A missing file is a run that has not begun: all zero. One whose text is not what _write writes is
 * PACE_BAD_DATA. */
pace_status pace__runstate_read(const char *run, const pace_log *log, pace__runstate *state);
/* The identity of a run that is made now. */
uint64_t pace__runstate_draw(void);
/* Numbers are below PACE__RUN_NUMBER_MAX. */
pace_status pace__runstate_write(const char *run, const pace__runstate *state, const pace_log *log);

/* Before anything is committed. PACE_FAILED with a message if another incarnation has taken over; anything else but
 * PACE_OK: it cannot be told, since the file is gone, damaged or cannot be read. */
pace_status pace__runstate_check(const char *run, uint64_t incarnation, const pace_log *log);

/* --- rows --- */

/* Not to be moved while it is open: `count` may point into it. */
#define PACE__ROWS_PAGE 4096

typedef struct pace__row_count {
    _Atomic uint64_t *count; /* this rank's: of the file, or `own` where the file cannot be mapped */
    _Atomic uint64_t own;
    char *mapped;
    size_t before; /* bytes of it in front of `count`: others', where the system's pages are larger */
    bool shared;   /* the file is what is counted in */
} pace__row_count;

/* `rank` counts in RUN/rows, which is made or made longer if need be. Where that does not work (the directory
 * is not there on this host, the disk is full, the rank is too high for a worker's) it counts for itself, and
 * `shared` is false. */
void pace__row_count_open(pace__row_count *rows, const char *run, int rank);
void pace__row_count_close(pace__row_count *rows);
/* The sum over all ranks, in all incarnations; 0 if there is no such file. */
uint64_t pace__row_count_all(const char *run);

static inline void pace__row_count_add(pace__row_count *rows, uint64_t computed)
{
    atomic_fetch_add_explicit(rows->count, computed, memory_order_relaxed);
}

#endif
