/*
 * spills.h - the spills of all processes of a job as one order of rows.
 *
 * Every process has a spill of its own (spill.h). Of a process alone, rows stay in memory as far as they fit; of
 * several, they go to files in the job's directory, for the others to read. When all have written theirs they
 * share them, and from then on every process sees the rows of all, bucket by bucket.
 *
 *     status = pace__spills_create(&rows, job, rank, "rows", memory, keep);
 *     ...                                                    // writers on rows.own, flushed
 *     status = pace__spills_share(&rows, job, rank);
 *     for (uint32_t bucket = 0; bucket < PACE__SPILL_BUCKETS; bucket++)
 *         status = pace__spill_visit_all(rows.all, rows.count, bucket, 0, UINT64_MAX, &scratch, visitor, arg);
 *
 * All functions are for the first rank of each process. Zeroed: nothing is there, and there are no rows.
 */
#ifndef PREP_SPILLS_H
#define PREP_SPILLS_H

#include "prep/job.h"
#include "prep/spill.h"

/* Two streams of rows: those of the inputs, and those of --test files. */
enum { PACE__INPUTS, PACE__TESTS, PACE__STREAMS };

typedef struct pace__spills {
    pace__spill *own, **all; /* (count) in the order of the ranks; own is among them */
    size_t count, memory;
    char name[32];
} pace__spills;

/* `memory` bounds what one visit loads; `keep` what a process alone keeps in memory besides. */
pace_status pace__spills_create(pace__spills *spills, const pace__prep_job *job, const pace__rank *rank,
                                const char *name, size_t memory, size_t keep);
/* When this process has written all; the others' are opened when they have, too. */
pace_status pace__spills_share(pace__spills *spills, const pace__prep_job *job, const pace__rank *rank);
/* Removes this process's files. */
void pace__spills_close(pace__spills *spills);

/* Rows of one bucket, of all processes, and the sum of their weights. */
uint64_t pace__spills_rows(const pace__spills *spills, uint32_t bucket);
uint64_t pace__spills_weight(const pace__spills *spills, uint32_t bucket);

/* What this process has written to files; buckets that it has split are counted again. */
uint64_t pace__spills_bytes(const pace__spills *spills);

/* Nobody wants the bucket any more. */
void pace__spills_drop(const pace__spills *spills, uint32_t bucket);

#endif
