/*
 * options.h - one table per verb, from which everything about its options follows.
 *
 * A table describes the fields of a plain configuration struct. The same rows drive the defaults, the
 * YAML file (--config), the environment (PACELINE_*), the flags, --help and the resolved config.yaml of a
 * run. Precedence: defaults < --config FILE < environment < flags.
 *
 *     typedef struct { int64_t batch; double lr; const char *run; } config;
 *     static const pace_option table[] = {
 *         {"batch", 0, PACE_OPT_INT, offsetof(config, batch), "512", "N", "rows", .min = 1, .max = 1e9},
 *         {"lr", 0, PACE_OPT_REAL, offsetof(config, lr), "0.1", "X", "learning rate", .min = 0, .max = 1e6},
 *         {"run", 0, PACE_OPT_TEXT, offsetof(config, run), NULL, "DIR", "run directory", .required = true},
 *         {0}};
 *
 * On the command line: --name VALUE, --name=VALUE, -o VALUE for a letter, --flag and --no-flag. A value that
 * looks like an option (starts with a dash and is no number) must be written with "=". An option with an implied
 * value may stand alone, at the end or before another option, and has a --no-name; in a file and in the environment
 * it also takes the words of a flag, on and off. The last one wins; a list collects all. In the environment an empty variable counts as unset and the items of a list are
 * separated by colons.
 *
 * Texts that a config points to are owned by the pace_options that parsed it and live as long as it does.
 */
#ifndef PACELINE_OPTIONS_H
#define PACELINE_OPTIONS_H

#include <paceline/log.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum pace_option_kind {
    PACE_OPT_FLAG,   /* bool: --exact; in YAML and environment true/false/on/off/yes/no/1/0 */
    PACE_OPT_INT,    /* int64_t; 1e6, 10k, 3M (decimal multipliers) are understood */
    PACE_OPT_SIZE,   /* uint64_t bytes: 512M, 1G, 1GiB (binary multipliers) */
    PACE_OPT_REAL,   /* double, finite */
    PACE_OPT_TEXT,   /* const char * */
    PACE_OPT_CHOICE, /* int: the index of the word in `choices` */
    PACE_OPT_LIST,   /* pace_texts: may be repeated on the command line; a sequence in YAML */
} pace_option_kind;

typedef struct pace_texts {
    const char **items;
    size_t count;
} pace_texts;

/* What an option of a job decides, and so what may change when the job goes on from where it stood. */
typedef enum pace_option_mark {
    PACE_MARK_NONE,     /* of a verb that is no job */
    PACE_MARK_IDENTITY, /* the bits of the result: another value is another job; equal on all ranks */
    PACE_MARK_LAYOUT,   /* who does what: may change, and that is said; equal on all ranks */
    PACE_MARK_LENGTH,   /* how far it goes: may grow where what was done stays right; equal on all ranks */
    PACE_MARK_PROCESS,  /* how a process works: may change, and may differ between ranks */
    PACE_MARK_DATA,     /* the bytes of a data set */
    PACE_MARK_SURFACE,  /* none of these: names of files, what is shown */
} pace_option_mark;

typedef struct pace_option {
    const char *name; /* "eval-every"; its variable is PACELINE_EVAL_EVERY, its YAML key eval-every */
    char letter;      /* 'o' for -o, 0 for none */
    pace_option_kind kind;
    size_t offset;        /* of the field in the config struct */
    const char *fallback; /* the default as text; NULL: none (NULL text, zero number, empty list) */
    const char *argument; /* what --help calls the value: "N", "FILE" */
    const char *help;
    const char *choices; /* PACE_OPT_CHOICE: "on|off" */
    const char *usual;   /* what --help says of the default, if its value does not speak for itself */
    const char *implied; /* the value of the bare option, which then need not have one; NULL: it must */
    double min, max;     /* inclusive, for numbers; both 0: no limits */
    bool required;
    const char
        *word; /* of a whole number: stands for -1, which is none that can be given; NULL: no such word */
    bool
        not_zero; /* of a number whose default is 0, left open: nobody can ask for 0 and get something else */
    bool
        late; /* came when data sets and checkpoints without it were there: what these keep leaves out its default */
    pace_option_mark mark;
    const char *group; /* heading in --help; NULL: same as the row before; "": no heading */
} pace_option;

/* A table and the struct that it describes. Lists of parts end with a NULL table. */
typedef struct pace_option_part {
    const pace_option *table;
    const void *config;
} pace_option_part;

/* The list of one. */
#define PACE_PARTS(table, config) ((const pace_option_part[]){{(table), (config)}, {0}})

/* A config of several structs has a table for each; `offset` is where its struct lies in the whole. A list of
 * these ends with NULL rows. */
typedef struct pace_option_table {
    const pace_option *rows;
    size_t offset;
} pace_option_table;

typedef struct pace_options pace_options;

/* --config FILE and -h, --help: understood by every pace_options, listed here for help and completion. */
extern const pace_option pace_common_options[];

#define PACE_OPTIONS_TABLES_MAX 64

/*
 * `table` ends with a row whose name is NULL; `config` is filled with the defaults. NULL when out of memory.
 * `log` must outlive the result. A table that contradicts itself (a default out of range, a name twice) is a
 * bug and aborts.
 */
pace_options *pace_options_create(const pace_option *table, void *config, const pace_log *log);
void pace_options_free(pace_options *options); /* NULL is allowed */

/*
 * One more table for the same command line, with a struct of its own: what several verbs share. With a NULL
 * config its names are only known, not accepted: the PACELINE_* variables of another verb are no reason for a
 * warning.
 */
pace_status pace_options_add(pace_options *options, const pace_option *table, void *config);

/* Where a required option is missing, `hint` may write what helps; it is put behind the message. The config holds by then
 * what was given. */
#define PACE_HINT_MAX 512
typedef void pace_hint_fn(const void *user, const char *missing, char text[PACE_HINT_MAX]);
void pace_options_hint(pace_options *options, pace_hint_fn *hint, const void *user);

/* Where there is no word besides options, `refuse` says which are expected, before any option is told that is missing. */
typedef pace_status pace_refusal_fn(const pace_log *log);
void pace_options_need_word(pace_options *options, pace_refusal_fn *refuse);

/*
 * Parses argv[0..argc) (the words behind the verb), after the --config file that they or PACELINE_CONFIG name
 * and the environment. Words that are no options are collected as positional; "--" ends the options. Unknown
 * names and keys are PACE_USAGE errors that suggest the nearest name; unknown PACELINE_* variables are
 * ignored with a warning. `--help` sets *help and stops. *positional belongs to `options`; with NULL such words are a
 * PACE_USAGE error, told before any other of what is missing. To be called once.
 */
pace_status pace_options_parse(pace_options *options, int argc, char **argv, bool *help,
                               pace_texts *positional);

/* True if the option was given by file, environment or flag rather than by default. */
bool pace_options_given(const pace_options *options, const char *name);

/* Where its value stands, for messages: "run.yaml:3: hidden", "environment variable PACELINE_HIDDEN" or "--hidden". */
#define PACE_OPTION_PLACE_MAX 512
void pace_options_place(const pace_options *options, const char *name, char text[PACE_OPTION_PLACE_MAX]);

/* Lines of --help have so many columns at most; on a narrow terminal fewer, but no fewer than options need. */
#define PACE_HELP_COLUMNS     100
#define PACE_HELP_COLUMNS_MIN 60

/* The option list of --help, with defaults, aligned (equally for every table). */
void pace_options_print_help(const pace_option *table, int columns, FILE *out);

/* The same with the values of a config in the place of the defaults. `changed`: only rows whose values are not the
 * defaults, without headings. */
void pace_options_print_values(const pace_option_part *part, bool changed, int columns, FILE *out);

/* The words of text[0..size), broken between two so that no line is longer than `columns`, but for one that is a single word; then a
 * new line. `column` is where the cursor is; all lines but the first begin at `indent`. */
void pace_print_wrapped(const char *text, size_t size, int column, int indent, int columns, FILE *out);

/*
 * Writes every option's value as YAML (keys in table order), such that --config reads the same values back.
 * `config` may be any struct that fits the table. Texts that are not UTF-8 cannot be written: PACE_USAGE.
 */
pace_status pace_options_write_yaml(const pace_option_part *parts, const char *path, const pace_log *log);
/* Whether it could: the same refusal, and nothing is written. */
pace_status pace_options_check_yaml(const pace_option_part *parts, const char *path, const pace_log *log);

/*
 * The config as words of a command line (--name=value, --flag, --no-flag), only where a value is not the
 * default, such that pace_options_parse of them gives the same config. *words ends with NULL. A text or list
 * whose default was taken away (by null in a file) has no such words: PACE_USAGE.
 */
pace_status pace_options_to_words(const pace_option_part *parts, const pace_log *log, char ***words,
                                  size_t *count);
void pace_options_free_words(char **words); /* NULL is allowed */

/* The name in `names` (NULL-terminated) closest to `word`, or NULL if none is close enough to be a typo of
 * it. */
const char *pace_nearest_name(const char *word, const char *const *names);

#endif
