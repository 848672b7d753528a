/*
 * tune.h - a search over options of train: which of them make the best model, by rows that no model has learned from.
 *
 *     config.tries = {"lr=0.01..0.3", "l2=0,1e-6,1e-5"};
 *     status = pace_tune(&config, log, registry, &result);
 *
 * The first candidate is what train does without any of the tries, so that what wins is at least as good. Candidates are trained
 * one after the other, as `paceline train`: many for a part of their length, the better ones longer, the best to the end. They
 * are compared by scores of validation rows; test rows decide nothing, and are shown for the winner alone. It leaves
 *
 *     DIR/results.jsonl   a line for every run that has ended: all that the rest is made of
 *     DIR/table.md, DIR/table.csv, DIR/table.json   candidates, the best first
 *     DIR/runs            the run directory of the winner, or of all, if they are to be kept
 *
 * A search that was interrupted goes on where it stood when it is asked for again, also with more budget or other tries. A
 * candidate whose run fails is recorded with its cause, and loses.
 */
#ifndef PACELINE_TUNE_H
#define PACELINE_TUNE_H

#include <paceline/log.h>
#include <paceline/options.h>
#include <paceline/registry.h>

enum { PACE_SEARCH_AUTO, PACE_SEARCH_RANDOM, PACE_SEARCH_GRID };
enum { PACE_METRIC_LOGLOSS, PACE_METRIC_ACCURACY, PACE_METRIC_AUC, PACE_METRIC_F1 };

typedef struct pace_tune_config {
    pace_texts words; /* options of train, for every candidate */
    const char *data;
    const char *model; /* as train knows it */
    const char *output;
    pace_texts tries; /* "lr=0.01..0.3", "cell=lstm,gru" */
    int search;       /* PACE_SEARCH_* */
    int metric;       /* PACE_METRIC_*: what is to become better */
    int64_t budget;   /* in runs of full length, at most */
    int64_t seed;     /* of the candidates */
    bool halving;     /* else all candidates have their full length */
    bool dry_run, force, keep_runs;
    const _Atomic int *stop; /* nonzero: end the run under way and return PACE_INTERRUPTED; may be NULL */
} pace_tune_config;

extern const pace_option pace_tune_options[]; /* rows for every field but words and stop */

/* All texts are for people but `json`, and to be freed by pace_tune_result_release. */
typedef struct pace_tune_result {
    char *table;
    char *best, *validation, *test; /* options; scores; `test` is NULL if there are no test rows */
    char *run;                      /* its directory; NULL: it is not there any more */
    char *command;                  /* that trains it, to be pasted into a shell */
    char *json;
    uint64_t runs, failed; /* that have ended, in this search or before */
} pace_tune_result;

void pace_tune_result_release(pace_tune_result *result); /* a zeroed one is allowed */

/* PACE_OK also if candidates have failed, unless none is left. Of a dry run, `table` and `json` are all that is there. */
pace_status pace_tune(const pace_tune_config *config, const pace_log *log, pace_registry *registry,
                      pace_tune_result *result);

#endif
