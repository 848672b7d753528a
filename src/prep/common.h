/*
 * common.h - small things that every prep does in the same way: checking its inputs, dividing rows, counting
 * threads, writing down the command.
 */
#ifndef PREP_COMMON_H
#define PREP_COMMON_H

#include "data/store/store.h"

#include <paceline/prep.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A row's identity is its file and its byte offset in it; together they fit 64 bits. */
#define PACE__OFFSET_BITS 44

/* Inputs there are, not too many, none of them is tested on as well, and all of them can be read by so many
 * processes (PACE_USAGE). */
pace_status pace__prep_check_files(const char *const *inputs, size_t input_count, const char *const *tests,
                                   size_t test_count, int64_t processes, const pace_log *log);

/* What one process alone cannot see: too many bad rows in all (PACE_BAD_DATA). */
pace_status pace__prep_check_bad_rows(uint64_t bad, int64_t max_bad_rows, const pace_log *log);

/*
 * How the rows of the inputs, shuffled, are divided: first those that --holdout sets apart for testing, then those of
 * --validation, then all others, which are to train on. That there are none of these is PACE_USAGE, that an option
 * comes to nothing a warning.
 */
pace_status pace__prep_divide(const pace_prep_common *config, uint64_t rows, const pace_log *log,
                              uint64_t divided[PACE__SETS]);

/* How many of the inputs' rows come before those of a set. */
uint64_t pace__prep_rows_before(const uint64_t divided[PACE__SETS], int set);

/* Which set the row of the inputs at `place` belongs to. */
int pace__prep_set_of(const uint64_t divided[PACE__SETS], uint64_t place);

/* A warning if nothing can be learned from them: training rows, which are `rows` or `texts`, of one class only. */
void pace__prep_say_one_class(const char *what, uint64_t rows, uint64_t positives, const char *look_at,
                              const pace_log *log);

/* Threads, each of which needs `each` bytes: `wanted`, or `usual` if that is 0, but no more than have room. */
int pace__prep_threads(int64_t wanted, int usual, uint64_t memory, uint64_t each, const pace_log *log);

/* Processes on this machine: more than these would not even start in time (each has a tenth of a second of it to itself), and
 * would have less and less to do. */
#define PACE__PROCESSES_PER_CORE 16
int pace__prep_processes(int wanted, int cores);

#endif
