/*
 * common.h - what every prep does in the same way: checking its inputs, beginning its directory, dividing rows
 * among parts, running the user's command on a finished part.
 */
#ifndef PREP_COMMON_H
#define PREP_COMMON_H

#include "data/store/store.h"
#include "files/staging.h"

#include <paceline/log.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A row's identity is its file and its byte offset in it; together they fit 64 bits. */
#define PACE__OFFSET_BITS 44

/* --holdout and --test. */
#define PACE__TWO_TEST_SETS "--holdout and --test: the test set can come from one of them only"

#define PACE__PREP_INTERRUPTED "interrupted: nothing was kept; run the same command again"

/* Inputs there are, not too many, and none of them is tested on as well (PACE_USAGE). */
pace_status pace__prep_check_files(const char *const *inputs, size_t input_count, const char *const *tests,
                                   size_t test_count, const pace_log *log);

/* How many of `rows` rows --holdout sets apart: all of them is PACE_USAGE, none a warning. */
pace_status pace__prep_held_out(double holdout, uint64_t rows, const pace_log *log, uint64_t *held_out);

/* Threads, each of which needs `each` bytes: `wanted`, or `usual` if that is 0, but no more than have room. */
int pace__prep_threads(int64_t wanted, int usual, uint64_t memory, uint64_t each, const pace_log *log);

/* Where a data set is to appear. --force replaces one, unless something else is in its directory. */
pace_status pace__prep_begin(const char *output, bool force, pace__staging *staging, const pace_log *log);

/* Part p of a set of `rows` rows begins at row rows * p / parts. */
uint64_t pace__part_begin(uint64_t rows, uint32_t parts, uint32_t part);
/* The part that holds a row. */
uint32_t pace__part_of(uint64_t rows, uint32_t parts, uint64_t row);

/* Writes elements of `width` bytes to an array that begins at `at` in the part's file, from `index` on. */
pace_status pace__part_put(const pace__part *part, uint64_t at, uint64_t index, size_t width,
                           const void *from, size_t count, const pace_log *log);

/*
 * Runs the shell command with $PACELINE_PART set to the path, and waits for it. What fails is PACE_FAILED.
 * `pulse`, which may be NULL, is called a few times a second meanwhile; if it fails, the command is ended,
 * and killed if it does not end within seconds.
 */
pace_status pace__run_on_part(const char *command, const char *path, pace_status (*pulse)(void *user),
                              void *user, const pace_log *log);

/* `before` and the text, in quotes if a shell needs them: for the command that a data set was made by. */
void pace__print_word(FILE *out, const char *before, const char *text);

#endif
