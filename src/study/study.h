/*
 * study.h - a study under way: sections, each a matrix of jobs that answer one question, and what has come of them.
 *
 * What a user calls a study of a kind is one section; a preset has several. The room starts jobs as other processes (child.h),
 * looks at what they leave (result.h), and keeps that in DIR/results.jsonl (ledger.h), which is all that tables (figures.h,
 * table.h) and the report (page.h) are made of.
 */
#ifndef STUDY_STUDY_H
#define STUDY_STUDY_H

#include "series/ledger.h"
#include "study/prices.h"
#include "study/result.h"

#include <paceline/study.h>
#include <paceline/train.h>

#define PACE__SECTIONS_MAX 16
#define PACE__REPEAT_MAX   100

/* A figure that others have published: of every cell that has the mode, workers and batch (0: any). */
typedef struct pace__published {
    int mode;
    int64_t workers, batch;
    pace__metric metric;
    double value;
} pace__published;

/* What the planner says of a cell before it runs. */
typedef struct pace__foretold {
    bool asked;
    double rows_s; /* NAN: nothing */
    char bottleneck[PACE__BOTTLENECK_MAX];
} pace__foretold;

typedef struct pace__section {
    const char *name;  /* in results.jsonl */
    const char *title; /* of its table */
    const char *about; /* a sentence or two below it; NULL: none */
    pace__study_kind kind;
    const char *prep;       /* of prep: "prep clicks" */
    const char *data;       /* the data set; of prep its input */
    pace_texts words;       /* of prep: options */
    pace_train_config base; /* of all others, for every cell; texts belong to `options` */
    pace_options *options;
    pace__cell_of *cells;
    size_t count;
    double *expected_rows_s; /* of every cell, or NAN */
    int slots; /* processes that there is room for: of the hosts, or the cores of this machine */
    pace__foretold *foretold; /* of every cell */
    double foretold_spread;   /* half of the interval of 95 % of what was learned from, over its mean */
    double threshold;         /* of converge; 0: what all reach */
    const pace__published *published;
    size_t published_count;
} pace__section;

typedef struct pace__study {
    const char *name; /* a kind, or a preset */
    const char *directory;
    pace__section sections[PACE__SECTIONS_MAX];
    size_t section_count;
    int repeat;
    int preset;   /* -1: none */
    char **owned; /* texts that sections point to */
    size_t owned_count;
    pace__prices prices;
    pace__ledger ledger;
    pace__result *results; /* the last of each cell and repetition */
    size_t result_count, result_capacity;
} pace__study;

/* Of section and cell the repetition; NULL: not there yet. */
pace__result *pace__study_find(const pace__study *study, size_t section, size_t cell, int repeat);
/* In the place of an earlier one, or behind all. */
pace_status pace__study_put(pace__study *study, const pace__result *result, const pace_log *log);

/* cells.c: cells are checked by what train says to them, nothing is started. With a message that begins with the cell. `stop` as in
 * <paceline/train.h>; may be NULL. */
pace_status pace__section_check(pace__study *study, size_t section, const _Atomic int *stop,
                                const pace_log *log);
/* What train is told of a cell. */
pace_train_config pace__cell_config(const pace__section *section, const pace__cell_of *cell, const char *run);
/* Runs one, and says what came of it: PACE_OK also if the cell has failed. */
pace_status pace__cell_run(const pace__study *study, size_t section, size_t cell, int repeat, bool keep,
                           const _Atomic int *stop, const pace_log *log, pace__result *result);

/* foretell.c: what the planner says of its cells, unless it was asked before; a line of the ledger. PACE_OK also if nothing can be
 * said, which is a warning. And such a line, read back: false: it is another. */
pace_status pace__section_foretell(pace__study *study, size_t section, const _Atomic int *stop,
                                   const pace_log *log);
bool pace__foretold_from_json(pace__study *study, const struct cJSON *line);

/* sections.c: what a kind asks with these options, as one section; what a preset does. */
pace_status pace__study_of_kind(pace__study *study, const pace_study_config *config, pace__study_kind kind,
                                const pace_log *log);
pace_status pace__study_of_preset(pace__study *study, const pace_study_config *config, int preset,
                                  const pace_log *log);
void pace__study_release(pace__study *study);

/* run.c: all cells that are missing, repetition by repetition. */
pace_status pace__study_run(pace__study *study, const pace_study_config *config, const pace_log *log,
                            pace_registry *registry);
/* Seconds that the missing ones are going to take, by those that have ended; NAN: none has. */
double pace__study_left_s(const pace__study *study);

/* DIR/name, to be freed; NULL when out of memory. */
char *pace__study_path(const pace__study *study, const char *name);

#endif
