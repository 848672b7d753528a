/*
 * source.h - a run that something is to be learned from: its records, its options, and its data set with the plan that
 * they made, as if it were to be trained again.
 *
 *     pace__source *source;
 *     status = pace__source_open("run1", NULL, log, &source);
 *     pace__measured was = pace__source_measure(source);
 *     pace__job_plan plan;
 *     status = pace__source_plan(source, &cell, log, &plan);          // the same job otherwise
 *     ...
 *     pace__plan_release(&plan);
 *     pace__source_close(source);
 */
#ifndef PLAN_SOURCE_H
#define PLAN_SOURCE_H

#include "forecast/sample.h"
#include "history/history.h"
#include "job/job.h"
#include "job/recorded.h"

typedef struct pace__source {
    pace__history *history;
    pace__recorded was;
    pace__job job; /* store and plan alone are open */
    pace__dataset data;
    int hosts;        /* that the run was on */
    const char *name; /* in messages */
} pace__source;

/* `data`: where the data set is now; NULL: where it was. PACE_NO_INPUT if it is not there. */
pace_status pace__source_open(const char *run, const char *data, const pace_log *log, pace__source **source);
void pace__source_close(pace__source *source); /* NULL is allowed */

/* What may be otherwise. */
typedef struct pace__cell {
    int mode, workers, ps;
    uint64_t batch; /* 0: as it was */
} pace__cell;

bool pace__has_servers(int mode);

/* The options of a run become those of the cell: what belongs to the run's own mode, and the other one would refuse, is left out,
 * and so are injected faults. */
void pace__cell_take(const pace__cell *cell, pace_train_config *config);

/* The job with these, to be released. PACE_USAGE if it cannot be. */
pace_status pace__source_plan(const pace__source *source, const pace__cell *cell, const pace_log *log,
                              pace__job_plan *plan);

/* What the records say of its speed, once it was under way. */
typedef struct pace__measured {
    double rows_s;
    double spread;   /* half of the interval of 95 %, over the mean; INFINITY: unknown */
    double straggle; /* deviation of single records, over the mean */
    double seconds;  /* that were looked at */
    size_t records;
    uint64_t from, to; /* rows of the run between which that is */
} pace__measured;

/* `whole`: from the first record to the last. That is for workers that merge, whose flushes are few: a part of a run has none, or
 * too many of them. */
pace__measured pace__measure(const pace__history *history, bool whole);

/* The same of a source, as its mode wants it. */
pace__measured pace__source_measure(const pace__source *source);

/* What it was, to be compared with what it did: the rows that were measured. */
pace__setup pace__source_setup(const pace__source *source, const pace__measured *was);

#endif
