/*
 * cost.h - what a plan takes: memory of every role, bytes of every step. The one place that knows: --dry-run, what is
 * said before a job starts, and whoever compares plans read these.
 *
 * Memory that fills as batches come is counted at its most; the program itself and MPI come on top
 * (PACE__PROGRAM_MB).
 */
#ifndef JOB_COST_H
#define JOB_COST_H

#include "data/store/store.h"
#include "job/plan.h"

/* What a process has resident before it holds anything. */
#define PACE__PROGRAM_MB 50

/* What reading takes, which only those who have the data set can tell. */
typedef struct pace__reading_cost {
    uint64_t batch_bytes;  /* of the rows of one batch of a worker */
    uint64_t pieces_bytes; /* of all that is read at a time where threads split the columns */
    uint64_t sums_bytes;   /* of rows, that are kept (data/store/sums.h) */
} pace__reading_cost;

pace__reading_cost pace__reading_cost_of(const pace__job_plan *plan, const pace__store_info *info);

/* Bytes that a rank needs at most. */
uint64_t pace__cost_memory(const pace__job_plan *plan, const pace__reading_cost *reading, int rank);

/* The same in its parts, where threads split the columns. */
typedef struct pace__columns_cost {
    uint64_t parameters; /* with optimiser state; twice while a checkpoint is written */
    uint64_t gradients, reading, scoring;
} pace__columns_cost;

pace__columns_cost pace__cost_columns(const pace__job_plan *plan, const pace__reading_cost *reading);

/* What a worker sends and gets in a step whose part needs so many keys by key. */
typedef struct pace__step_cost {
    double sent, received; /* bytes */
} pace__step_cost;

/* What workers that merge send: in the first epoch, each of them. */
typedef struct pace__merge_cost {
    uint64_t rounds, flushes;
    double round, flush; /* bytes of one; of a flush at most: where everything has changed */
} pace__merge_cost;

pace__merge_cost pace__cost_merging(const pace__job_plan *plan);

pace__step_cost pace__cost_step(const pace__job_plan *plan, uint32_t keys);

#endif
