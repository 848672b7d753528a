/*
 * parts.h - the files that a prep writes: which rows are in which, how they are laid out before all ranks write
 * to them, and what is done with one that is finished.
 */
#ifndef PREP_PARTS_H
#define PREP_PARTS_H

#include "data/store/store.h"
#include "prep/job.h"

/* Part p of a set of `rows` rows begins at row rows * p / parts. */
uint64_t pace__part_begin(uint64_t rows, uint32_t parts, uint32_t part);
/* The part that holds a row. */
uint32_t pace__part_of(uint64_t rows, uint32_t parts, uint64_t row);

/* Rows and entries of each set in that part, where all rows have info->columns entries. */
void pace__part_plan(const pace__store_info *info, uint32_t index, pace__part *part);

/*
 * All ranks get all parts, to write any row at any time: rank 0 creates them, as their sets[].rows and .entries
 * say, the others open them. `parts` (info->parts) is zeroed but for these. To be closed by the caller, after a
 * failure, too.
 */
pace_status pace__parts_open(const pace__prep_job *job, pace__rank *rank, const pace__store_info *info,
                             pace__part *parts);

/* Writes elements of `width` bytes to an array that begins at `at` in the part's file, from `index` on. */
pace_status pace__part_put(const pace__part *part, uint64_t at, uint64_t index, size_t width,
                           const void *from, size_t count, const pace_log *log);

/* All rows of the part are written: syncs it, adds its size to *bytes, and runs --on-part. */
pace_status pace__part_finish(const pace__prep_job *job, pace__rank *rank, pace__part *part, uint64_t *bytes);

/*
 * Runs the shell command with $PACELINE_PART set to the path, and waits for it. What fails is PACE_FAILED.
 * `pulse`, which may be NULL, is called a few times a second meanwhile; if it fails, the command is ended,
 * and killed if it does not end within seconds.
 */
pace_status pace__run_on_part(const char *command, const char *path, pace_status (*pulse)(void *user),
                              void *user, const pace_log *log);

#endif
