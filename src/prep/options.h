/*
 * options.h - the options that all preps have in common, as tables over pace_prep_common.
 *
 * The list of a prep has four tables, whose rows --help shows in this order:
 *     pace__prep_input_options       where rows come from, and where they go
 *     its own                        its first row goes on with that group
 *     pace__prep_work_options        shuffle, parts, processes
 *     PACE__PREP_LIMITS              the same rows for all, with values that are each prep's own
 */
#ifndef PREP_OPTIONS_H
#define PREP_OPTIONS_H

#include <paceline/prep.h>

extern const pace_option pace__prep_input_options[];
extern const pace_option pace__prep_work_options[];

/* `memory_min`: in bytes; `memory_text`: the end of its help; `bad_rows`: how many are forgiven unless told
 * otherwise. */
#define PACE__PREP_LIMITS(memory_min, memory_text, bad_rows)                                                 \
    {"memory",                                                                                               \
     0,                                                                                                      \
     PACE_OPT_SIZE,                                                                                          \
     offsetof(pace_prep_common, memory),                                                                     \
     "1G",                                                                                                   \
     "BYTES",                                                                                                \
     "memory for each process" memory_text,                                                                  \
     .min = (memory_min),                                                                                    \
     .max = 1024.0 * (UINT64_C(1) << 40),                                                                    \
     .mark = PACE_MARK_PROCESS,                                                                              \
     .group = ""},                                                                                           \
        {"max-bad-rows",                                                                                     \
         0,                                                                                                  \
         PACE_OPT_INT,                                                                                       \
         offsetof(pace_prep_common, max_bad_rows),                                                           \
         bad_rows,                                                                                           \
         "N",                                                                                                \
         "skip and count up to N bad rows; with more of them, fail",                                         \
         .min = 0,                                                                                           \
         .max = 1e15,                                                                                        \
         .mark = PACE_MARK_LAYOUT},                                                                          \
    {                                                                                                        \
        0                                                                                                    \
    }

/* In both, `config` or `decided` is what the tables describe. Texts to be freed; NULL when out of memory. */

/* What ranks compare (ranks/hello.h), inputs among them: what decides the bytes, and what all must agree on. */
char *pace__prep_words(const pace_option_table *tables, const pace_prep_common *config);
/* The command that a set was made by, as far as it decides the bytes: it leaves out where the set lies and how many
 * processes and threads made it, since equal sets are equal bytes. In `decided` nothing is left open. */
char *pace__prep_command(const char *verb, const pace_option_table *tables, const pace_prep_common *decided);

#endif
