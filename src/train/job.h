/*
 * job.h - one training job: its plan, and where it stands. Shared by the files of this module.
 *
 * Steps (ps/steps.h) count from the run's beginning, and "after step s" is a clean state: everything of the
 * steps before is applied, nothing of the next.
 */
#ifndef TRAIN_JOB_H
#define TRAIN_JOB_H

#include "data/store.h"
#include "model/logreg.h"
#include "model/metrics.h"
#include "ps/steps.h"
#include "train/cluster.h"
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

typedef struct pace__job pace__job;

struct pace__job {
    const pace_train_config *config;
    const pace_log *log;
    pace_registry *registry;
    pace__rundir *run;
    pace__store store;
    /* Mode local: what is trained. Others: the chief's copy of it, brought up to date when it is read. */
    pace__logreg model;
    pace__metrics *metrics;

    /* The plan: fixed when the job starts. */
    int mode; /* never PACE_MODE_AUTO */
    pace__cluster cluster;
    int threads;
    bool exact;
    bool scores_on_the_way; /* the leader does: there are test rows and no evaluator */
    double lr;
    pace__steps order;
    uint64_t steps;

    /* How this mode does it. */
    pace_status (*train)(
        struct pace__job *job); /* from position.step to the end, an early stop, or an interruption */
    pace_status (*final_scores)(struct pace__job *job); /* sets scores; NULL: the leader computes them */
    pace_status (*end)(struct pace__job *job);          /* before the summary is written; may be NULL */
    void (*pulse)(const struct pace__job *job); /* now and then in what takes long; NULL: nobody waits */
    struct pace__member *member;                /* modes of many processes */

    pace__position position;
    bool over;           /* ranks other than the chief: it has said that nothing is left to train */
    uint64_t first_step; /* this process began here; not 0 after a resume */
    uint64_t start_ns;
    double trained_s;
    pace_scores scores;
    uint64_t evaluations_skipped;
    struct pace__role_report **reports; /* by rank; NULL in mode local */
};

/* In the order of the enums in <paceline/train.h>: "a|b|c". */
extern const char pace__model_names[], pace__mode_names[], pace__optimizer_names[];

/* plan.c: roles and mode, from the options alone; then everything else, which takes job->store.info; and what
 * to tell the user. */
pace_status pace__job_plan_cluster(pace__job *job);
pace_status pace__job_plan(pace__job *job);
void pace__job_say_needs(const pace__job *job);
/* The update rule, with the rate that the job begins with. */
pace__optim pace__job_optim(const pace__job *job);
/* The learning rate of a step. */
double pace__job_rate(const pace__job *job, uint64_t step);
/* Sets the rate that applies behind `step`: that of the step before; for a model that is read, or goes on
 * from there. */
void pace__job_stand_behind(const pace__job *job, pace__optim *optim, uint64_t step);
/* Nothing is left to train. */
bool pace__job_is_over(const pace__job *job);

/* train.c: opens the run directory, restores, trains, finishes: the one process that leads a run. */
pace_status pace__job_lead(pace__job *job, pace_train_result *result);
/* summary.c: after training: model, scores, summary. */
pace_status pace__job_finish(pace__job *job, pace_train_result *result);

static inline uint64_t pace__job_rows_before(const pace__job *job, uint64_t step)
{
    return pace__steps_rows_before(&job->order, step);
}

/* local.c: trains from position.step to the end, an early stop, or an interruption. */
pace_status pace__train_local(pace__job *job);

/* evaluate.c: scores the model as it stands on the test rows (the first config->eval_rows of them); emits an
 * "eval" record. */
pace_status pace__job_evaluate(pace__job *job, uint64_t rows_max);
void pace__job_emit_scores(const pace__job *job, uint64_t step);

/* checkpoint.c */
pace_status pace__checkpoint_write(const pace__job *job);
/* Loads the newest checkpoint that is whole. PACE_NO_INPUT if there is none at all; one that fits another job
 * is PACE_USAGE. */
pace_status pace__checkpoint_restore(pace__job *job);

#endif
