/*
 * cli.h - what the verbs of the program share.
 *
 * main.c finds the verb, reads its options into its config struct, calls run(), ends the progress display and
 * calls print(). run() checks its words and calls one function of the library: there are no algorithms here.
 * Results go to standard output; messages and progress go to standard error (console.h, progress.h).
 */
#ifndef CLI_H
#define CLI_H

#include <paceline/log.h>
#include <paceline/options.h>
#include <paceline/registry.h>

typedef struct cli_context {
    pace_log log;
    pace_registry *registry;
    bool json;  /* --json: one object on standard output, nothing else there */
    bool quiet; /* --quiet: neither progress nor information */
} cli_context;

/* The list of a verb whose options are one table. */
#define CLI_TABLE(rows)                                                                                      \
    (const pace_option_table[])                                                                              \
    {                                                                                                        \
        {(rows), 0},                                                                                         \
        {                                                                                                    \
            0                                                                                                \
        }                                                                                                    \
    }

typedef struct cli_verb {
    const char *name;      /* "train"; "gen clicks" has a second word */
    const char *arguments; /* what follows it: "-o FILE [options]" */
    const char *summary;   /* one line */
    const char *manual;    /* a paragraph and examples */
    const pace_option_table *tables;
    /* Adds tables for other parts of its config; with NULL their names are only known. May be NULL. */
    pace_status (*add_tables)(pace_options *options, void *config);
    /* The rest of its manual, about what follows --help; NULL: which topics there are. PACE_USAGE if it has no such.
     * May be NULL. */
    const char *topic_option; /* "--model": its value is one, too */
    pace_status (*print_topic)(const char *topic, FILE *out, const pace_log *log);
    size_t config_bytes; /* size of the struct that the tables describe */
    size_t result_bytes; /* size of what run() hands to print() */
    pace_status (*run)(const cli_context *cli, void *config, const pace_texts *words, void *result);
    pace_status (*print)(const cli_context *cli, const void *config, void *result);
} cli_verb;

extern const cli_verb cli_gen_clicks;
extern const cli_verb cli_gen_reviews;
extern const cli_verb cli_gen_images;
extern const cli_verb cli_prep_clicks;
extern const cli_verb cli_prep_reviews;
extern const cli_verb cli_prep_images;
extern const cli_verb cli_merge;
extern const cli_verb cli_train;
extern const cli_verb cli_eval;
extern const cli_verb cli_predict;
extern const cli_verb cli_inspect;

/* PACE_USAGE, with a message, if there are words although the verb takes none. */
pace_status cli_refuse_words(const cli_context *cli, const pace_texts *words);

/* Is this the "-" that stands for standard output? */
bool cli_is_standard(const char *path);

/*
 * From now on SIGINT, SIGTERM and SIGUSR1 set the int that is returned, for a job that ends in an orderly
 * way; a second SIGINT ends the process at once.
 */
const _Atomic int *cli_stop_on_signals(void);

#endif
