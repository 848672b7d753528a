/*
 * job.h - one training job: its plan, and where it stands. Shared by the files of this module.
 *
 * Steps (ps/steps.h) count from the run's beginning, and "after step s" is a clean state: everything of the
 * steps before is applied, nothing of the next.
 */
#ifndef JOB_JOB_H
#define JOB_JOB_H

#include "data/store/describe.h"
#include "launch/cluster.h"
#include "metrics/metrics.h"
#include "model/linear/logreg.h"
#include "model/model.h"
#include "ps/steps.h"
#include "run/rundir.h"
#include "run/runstate.h"
#include "job/inject.h"
#include "roles/saving.h"

#include <paceline/train.h>

typedef struct pace__job pace__job;

struct pace__job {
    const pace_train_config *given;  /* as it came */
    const pace_train_config *config; /* is `settled` */
    pace_train_config settled;       /* what was left open is filled in by pace__job_plan */
    const pace_log *log;
    pace_registry *registry;
    pace__rundir *run;
    pace__store store;
    pace__metrics *metrics;
    /* What is trained. The leader has a copy of all parameters, (keys, floats): in the block rule what is
     * trained itself, else brought up to date when it is read. */
    pace__model_plan model;
    pace__shape shape; /* the plan's */
    size_t floats;     /* of a key's row, with optimiser state */
    float *parameters;
    pace__logreg logreg; /* the block rule's, in mode local: `parameters` are its */
    pace__model *scorer; /* the others': computes scores */
    bool is_settled;     /* `parameters` have become bare weights, to be read (pace__job_settle) */

    /* The plan: fixed when the job starts. */
    int mode; /* never PACE_MODE_AUTO */
    pace__cluster cluster;
    int threads;
    bool by_columns; /* mode local of logreg on sparse rows: local.c */
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
    void (*pulse)(struct pace__job *job); /* now and then in what takes long; NULL: nobody waits */
    /* Checkpoints: how many parts there are (NULL: one); makes every holder copy its part and write it into
     * the directory, and returns when the copies are made; have all been written?; a turn of waiting. */
    unsigned (*parts)(const struct pace__job *job);
    pace_status (*save)(struct pace__job *job, const char *directory);
    pace_status (*saved)(struct pace__job *job, bool *all);
    pace_status (*rest)(struct pace__job *job, unsigned *turns);
    struct pace__member *member; /* modes of many processes */

    pace__position position;
    pace__runstate state; /* the leader's */
    pace__saving saving;
    char *fingerprint;           /* of the job, for its checkpoints */
    pace__part_saver part_saver; /* mode local */
    pace__faults faults;         /* that this process is to suffer */
    pace__row_count rows;        /* that this process has computed */
    bool over;                   /* ranks other than the chief: it has said that nothing is left to train */
    uint64_t start_ns;
    double trained_s;
    double features_s; /* --train top: until there were features, from the cache or computed */
    pace_scores scores;
    uint64_t evaluations_skipped;
    bool others_left;                   /* nobody is there any more to save anything */
    struct pace__role_report **reports; /* by rank; NULL in mode local */
};

/* In the order of the enums in <paceline/train.h>: "a|b|c". */
extern const char pace__mode_names[], pace__optimizer_names[], pace__schedule_names[];

/* options.c: the tables that describe a configuration, with that of its kind of model. */
void pace__train_parts(const pace_train_config *config, pace_option_part parts[3]);

/* features.c: the data set of pictures becomes one of features, from the cache or computed, for a plan that
 * says so. Others may be at it, too: each does some parts. */
pace_status pace__job_use_features(pace__job *job);

/* parameters.c: the leader's copy. First values, and room for them; a state that was read or put together
 * becomes bare weights, (keys, dim), as they are behind position.step; the model file. */
pace_status pace__job_open_parameters(pace__job *job);
void pace__job_close_parameters(pace__job *job);
/* Word vectors of --embeddings, if given, take the place of first values. */
pace_status pace__job_read_vectors(pace__job *job);
void pace__job_settle(pace__job *job);
pace_status pace__job_write_model(pace__job *job, char sha256[PACE__SHA256_HEX]);

/* plan.c: is it a model on sparse rows in one process, whose threads split the columns (local.c)? */
bool pace__job_goes_by_columns(const pace__job *job, const pace__dataset *data);
/* Roles and mode, from the options alone; then everything else, from what a server is told of the data
 * set, too; and what to tell the user. The plan of the model is released by pace__model_plan_release. */
pace_status pace__job_plan_cluster(pace__job *job);
pace_status pace__job_decide(pace__job *job, const pace__dataset *data); /* all but the model */
pace_status pace__job_plan(pace__job *job, const pace__dataset *data);
/* The options as they were decided, which repeat this run: what was left open is filled in. */
void pace__job_decided(const pace__job *job, pace_train_config *decided);
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
/* Can the run begin in its directory? Changes nothing. */
pace_status pace__job_check_run(const pace__job *job);
/* How it ended, for whoever looks at the run later. Another incarnation's word is left alone. */
void pace__job_note_ending(pace__job *job, pace_status status);
/* What every process of a job keeps in the run directory: the rows that it computes, and the faults that it
 * is to suffer. */
pace_status pace__job_open_account(pace__job *job, int rank);
void pace__job_close_account(pace__job *job);
/* A "start" record: training begins, or goes on, here. */
void pace__job_emit_start(const pace__job *job);
/* summary.c: after training: model, scores, summary. */
pace_status pace__job_finish(pace__job *job, pace_train_result *result);
/* What the chief has committed. */
pace_status pace__job_read_result(const pace_train_config *config, const pace_log *log,
                                  pace_train_result *result);

/* resume.c: has the run nothing left to do? Options that make it another job are PACE_USAGE. A run that has not
 * finished is not looked at. */
pace_status pace__resume_look(const pace__job *job, pace_train_result *result, bool *finished);
/* Says what is different from when the run was last begun, as far as it may be. */
void pace__resume_say_changes(const pace__job *job, const pace_train_config *now);
/* Rates that do not depend on how many steps follow: the run may become longer. */
bool pace__job_has_open_end(const pace_train_config *config);

static inline uint64_t pace__job_rows_before(const pace__job *job, uint64_t step)
{
    return pace__steps_rows_before(&job->order, step);
}

/* supervise.c: through mpirun, again and again if need be. */
pace_status pace__supervise(pace__job *job, pace_train_result *result);
/* How long the first word of a rank may take: programs are started, data sets opened, connections made. */
double pace__first_contact_s(const pace_train_config *config);

/* local.c: trains from position.step to the end, an early stop, or an interruption. */
pace_status pace__train_local(pace__job *job);
/* job->save, saved, rest and pulse in that mode. */
pace_status pace__local_save(pace__job *job, const char *directory);
pace_status pace__local_saved(pace__job *job, bool *all);
pace_status pace__local_rest(pace__job *job, unsigned *turns);
void pace__local_pulse(pace__job *job);

/* evaluate.c: scores the model as it stands on the test rows (the first config->records.eval_rows of them); emits an
 * "eval" record. */
pace_status pace__job_evaluate(pace__job *job, uint64_t rows_max);
void pace__job_emit_scores(const pace__job *job, uint64_t step);
void pace__job_say_scores(const pace__job *job, uint64_t step, const char *by);
/* The model as whoever only scores needs it, and the bytes that it takes. */
pace_status pace__job_create_scorer(const pace__job *job, pace__model **scorer);
uint64_t pace__job_scorer_memory(const pace__job *job);

/* checkpoint.c: the leader's, on a clean state. */
pace_status pace__job_open_saving(pace__job *job);
void pace__job_close_saving(pace__job *job);
/* Begins a checkpoint, and returns when all have copied their parts; first waits for the one before. That one
 * cannot be written is a warning, not a failure. */
pace_status pace__job_save(pace__job *job);
/* Moves the one under way on. To be called now and then. */
pace_status pace__job_save_poll(pace__job *job);
/* Waits until nothing is under way. */
pace_status pace__job_save_finish(pace__job *job);
/* All at once, and it has to succeed: the run ends here. */
pace_status pace__job_save_now(pace__job *job);
/* A holder could not do its part. */
void pace__job_save_failed(pace__job *job, pace_status status, const char *reason);

/* Loads the newest checkpoint that is whole; damaged ones are named and passed over. PACE_BAD_DATA if there
 * is none left; PACE_USAGE if it is of another job. A run that never had one begins at step 0. */
pace_status pace__job_restore(pace__job *job);

#endif
