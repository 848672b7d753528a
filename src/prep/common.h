/*
 * common.h - small things that every prep does in the same way: checking its inputs, counting hold-out rows and
 * threads, writing down the command.
 */
#ifndef PREP_COMMON_H
#define PREP_COMMON_H

#include <paceline/prep.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A row's identity is its file and its byte offset in it; together they fit 64 bits. */
#define PACE__OFFSET_BITS 44

#define PACE__PREP_INTERRUPTED "interrupted: nothing was kept; run the same command again"

/* Inputs there are, not too many, none of them is tested on as well, and all of them can be read by so many
 * processes (PACE_USAGE). */
pace_status pace__prep_check_files(const char *const *inputs, size_t input_count, const char *const *tests,
                                   size_t test_count, int64_t processes, const pace_log *log);

/* What one process alone cannot see: too many bad rows in all (PACE_BAD_DATA). */
pace_status pace__prep_check_bad_rows(uint64_t bad, int64_t max_bad_rows, const pace_log *log);

/* How many of `rows` rows --holdout sets apart: all of them is PACE_USAGE, none a warning. */
pace_status pace__prep_held_out(double holdout, uint64_t rows, const pace_log *log, uint64_t *held_out);

/* Threads, each of which needs `each` bytes: `wanted`, or `usual` if that is 0, but no more than have room. */
int pace__prep_threads(int64_t wanted, int usual, uint64_t memory, uint64_t each, const pace_log *log);

/*
 * The command that a set was made by, as far as it decides the bytes: it leaves out where the set lies and how
 * many processes and threads made it, since equal sets are equal bytes. `begin` writes the verb and the inputs,
 * `rows` what is tested on, `end` what decides the order.
 */
typedef struct pace__command {
    FILE *out; /* NULL: out of memory */
    char *text;
    size_t size;
} pace__command;

bool pace__command_begin(pace__command *command, const char *verb, const pace_prep_common *config);
void pace__command_rows(const pace__command *command, const pace_prep_common *config);
/* The text, to be freed by the caller; NULL when out of memory. */
char *pace__command_end(pace__command *command, const pace_prep_common *config);

/* `before` and the text, in quotes if a shell needs them. */
void pace__print_word(FILE *out, const char *before, const char *text);

#endif
