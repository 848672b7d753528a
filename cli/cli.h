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
    bool takes_words;      /* besides options: inputs, a path */
    const pace_option_table *tables;
    /* Adds tables for other parts of its config; with NULL their names are only known. May be NULL. */
    pace_status (*add_tables)(pace_options *options, void *config);
    /* The rest of its manual, about what follows --help; NULL: which topics there are. PACE_USAGE if it has no such.
     * May be NULL. */
    const char *topic_option; /* "--model": its value is one, too */
    pace_status (*print_topic)(const char *topic, FILE *out, const pace_log *log);
    size_t config_bytes; /* size of the struct that the tables describe */
    size_t result_bytes; /* size of what run() hands to print() */
    /* Is what goes to standard output all that it gives, rows or a result? May be NULL: it leaves files, and what it prints
     * is about them. */
    bool (*only_prints)(const void *config);
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
extern const cli_verb cli_plan;
extern const cli_verb cli_report;
extern const cli_verb cli_top;
extern const cli_verb cli_study;
extern const cli_verb cli_tune;
extern const cli_verb cli_version;

/* Is this the "-" that stands for standard output? */
bool cli_is_standard(const char *path);

/* What a stop means to a verb. Behind `what` is said what is true of the signal: that Ctrl-C again ends at once, and what
 * is not done then (`at_once`); or the time that is left. */
typedef struct cli_stop_words {
    const char *what;    /* "stopping: a checkpoint is written" */
    const char *at_once; /* ", without one" */
} cli_stop_words;

/* Until cli_stop_on_signals, and where it is not called: on a terminal, Ctrl-C ends the process as ever, but says so on a
 * line of its own, where the progress line was. */
void cli_answer_interrupt(void);

/*
 * From now on SIGINT, SIGTERM, SIGHUP and SIGUSR1 set the int that is returned, for a job that ends in an orderly way.
 * `words` are said at once, so that whoever asked knows that it was heard. A second SIGINT ends the process at once; and
 * `seconds` after SIGTERM or SIGHUP, and two more, it ends by itself, with PACE_INTERRUPTED, whatever it is doing.
 */
const _Atomic int *cli_stop_on_signals(const cli_context *cli, const cli_stop_words *words, double seconds);

/* Of verbs whose result is all or nothing. */
extern const cli_stop_words cli_stop_nothing_kept;
#define CLI_STOP_S 10.0

/* The same for a verb that writes this, if it is a file (or will be), which must not be left half. What goes into a pipe
 * leaves nothing: there signals end the process as ever, also while nobody reads; NULL then. */
const _Atomic int *cli_stop_if_file(const cli_context *cli, const char *output);

#endif
