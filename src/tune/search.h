/*
 * search.h - a search under way: candidates, and what has come of each.
 *
 * The room decides who is to be trained for how long (tries.h, candidates.h, halving.h: functions of plain values), starts runs
 * as other processes (series/child.h), looks at what they leave (outcome.h), and keeps that in DIR/results.jsonl, which is all
 * that the table (told.h) is made of. What was decided is never written down: it follows from the results, so that a search which
 * goes on decides as if it had not been interrupted.
 */
#ifndef TUNE_SEARCH_H
#define TUNE_SEARCH_H

#include "series/ledger.h"
#include "tune/halving.h"
#include "tune/outcome.h"

#include <paceline/tune.h>

#define PACE__SET_APART 0.1

typedef struct pace__entry {
    pace__candidate candidate;
    char words[PACE__CANDIDATE_TEXT];        /* what it is known by */
    int64_t steps;                           /* of a run of full length */
    bool open_end;                           /* a run may become longer */
    pace__outcome outcomes[PACE__RUNGS_MAX]; /* by rung */
} pace__entry;

/* A candidate that train would not take. */
typedef struct pace__refused {
    char words[PACE__CANDIDATE_TEXT], error[PACE__OUTCOME_TEXT];
    bool recorded;
} pace__refused;

typedef struct pace__search {
    const pace_tune_config *config;
    pace__score score;
    pace_train_config base; /* the defaults; texts belong to `options` */
    pace_options *options;
    bool
        set_apart; /* the data set has no validation rows: each run takes PACE__SET_APART of the training rows */
    char *features; /* where runs keep what frozen layers make of pictures */
    pace__tries tries;
    pace__rungs rungs;
    bool on_grid;
    pace__entry *entries; /* the defaults first */
    size_t count;
    pace__refused *refused;
    size_t refused_count;
    pace__ledger ledger;
    size_t alive
        [PACE__CANDIDATES_MAX]; /* who is in the last rung that was begun: the best of the one before first */
    size_t alive_count;
    int winner; /* an entry; -1: none yet */
} pace__search;

/* The options of all runs, and what is tried. */
pace_status pace__search_read(pace__search *search, const pace_log *log);
/* Its candidates: those that train would take, and those that it would not. Nothing is started. */
pace_status pace__search_gather(pace__search *search, const pace_log *log);
/* What is in DIR already. */
pace_status pace__search_open(pace__search *search, const pace_log *log);
void pace__search_release(pace__search *search);

/* As train is told of it: for 1/part of its length. */
pace_train_config pace__search_config(const pace__search *search, const pace__entry *entry, unsigned part,
                                      const char *run);
/* DIR/runs/..., to be freed; NULL when out of memory. */
char *pace__search_run_path(const pace__search *search, const pace__entry *entry);

/* one.c: one run, and what came of it: PACE_OK also if it has failed. */
pace_status pace__search_run_one(const pace__search *search, const pace__entry *entry, unsigned part,
                                 const pace_log *log, pace__outcome *outcome);

/* climb.c: all runs that are missing, rung by rung; the winner. */
pace_status pace__search_climb(pace__search *search, const pace_log *log, pace_registry *registry);

/* The losses of the entries that are alive, in their order, behind a rung. */
void pace__search_losses(const pace__search *search, size_t rung, double loss[PACE__CANDIDATES_MAX]);

#endif
