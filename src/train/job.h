/*
 * job.h - one training job: its plan, and where it stands. Shared by the files of this module.
 *
 * A step is `batch` rows of the sample order, the last one of an epoch shorter; none crosses epochs. Steps
 * count from the run's beginning, and "after step s" is a clean state: everything of the steps before is
 * applied, nothing of the next.
 */
#ifndef TRAIN_JOB_H
#define TRAIN_JOB_H

#include "data/store.h"
#include "model/logreg.h"
#include "model/metrics.h"
#include "train/rundir.h"

#include <paceline/train.h>

/* What a checkpoint must restore besides the parameters. */
typedef struct pace__position {
    uint64_t step;       /* steps done */
    double best_logloss; /* early stopping: the best evaluation, and how many came since; infinite at first */
    uint64_t worse;
    double epoch_loss; /* sum of progressive losses of the epoch under way, and its rows */
    uint64_t epoch_rows;
    double last_epoch_loss; /* mean of the last whole epoch; NaN before */
} pace__position;

typedef struct pace__job {
    const pace_train_config *config;
    const pace_log *log;
    pace_registry *registry;
    pace__rundir *run;
    pace__store store;
    pace__logreg model;
    pace__metrics *metrics;

    /* The plan: fixed when the job starts. */
    int threads;
    bool exact;
    double lr;
    uint64_t rows, batch, steps_per_epoch, steps;

    pace__position position;
    uint64_t first_step; /* this process began here; not 0 after a resume */
    uint64_t start_ns;
    pace_scores scores;
} pace__job;

/* Rows that steps 0 .. step - 1 hold: the place of step's first row in the endless sequence (reader.h). */
uint64_t pace__job_rows_before(const pace__job *job, uint64_t step);

/* local.c: trains from position.step to the end, an early stop, or an interruption. */
pace_status pace__train_local(pace__job *job);

/* evaluate.c: scores the model as it stands on the test rows (the first config->eval_rows of them); emits an
 * "eval" record. */
pace_status pace__job_evaluate(pace__job *job, uint64_t rows_max);

/* checkpoint.c */
pace_status pace__checkpoint_write(const pace__job *job);
/* Loads the newest checkpoint that is whole. PACE_NO_INPUT if there is none at all; one that fits another job
 * is PACE_USAGE. */
pace_status pace__checkpoint_restore(pace__job *job);

#endif
