/*
 * job.h - a training job under way, in one of its processes: its options and plan, and where it stands.
 *
 * "After step s" is a clean state: everything of the steps before is applied, nothing of the next.
 *
 * One process *leads* a run: the chief, or the only one there is. It alone has the run directory, records, and a copy
 * of all parameters to read. What it does in which order is in lead.c, from top to bottom; what happens between two
 * steps is in boundary.h. How parameters are held, steps taken and state saved is the matter of a *strategy*: threads
 * that split the columns (columns/columns.h), or ranks (roles/process.h), which may be one.
 */
#ifndef JOB_JOB_H
#define JOB_JOB_H

#include "base/clock.h"
#include "data/stage/stage.h"
#include "data/store/store.h"
#include "events/events.h"
#include "inject/inject.h"
#include "job/plan.h"
#include "job/saving.h"
#include "metrics/curves.h"
#include "metrics/worst.h"
#include "run/report.h"
#include "run/rundir.h"
#include "run/runstate.h"
#include "run/shares.h"
#include "warm/warm.h"

typedef struct pace__job pace__job;
struct pace__process;
struct pace__boundary;

/* How a mode does it. The leader calls these, in the order of lead.c. */
typedef struct pace__strategy {
    /* Parameters: room for the leader's copy, with first values; and after a checkpoint was read into it. */
    pace_status (*open)(pace__job *job);
    void (*close)(pace__job *job);    /* after a failed open, too */
    void (*restored)(pace__job *job); /* NULL: nothing is to be done */

    /* Steps: everyone is there, and holds what it is to hold; from position.step to the end, an early stop, or an
     * interruption; job->parameters are brought to where position.step is. */
    pace_status (*begin)(pace__job *job);
    pace_status (*train)(pace__job *job);
    pace_status (*gather)(pace__job *job);
    /* Nothing is trained or scored any more: the others are told how it ended, and have told what they measured. May be NULL. */
    pace_status (*end)(pace__job *job, pace_status how);

    /* Reading: the gathered parameters as a model. */
    pace_status (*logits)(pace__job *job, const pace__rows *rows, float *logits);
    pace_status (*write)(pace__job *job, const pace__origin *origin, char sha256[PACE__SHA256_HEX]);
    /* The last scores, of every set there is, in job->scores; NULL: the leader computes them. */
    pace_status (*final_scores)(pace__job *job);

    /* Checkpoints: into how many parts; every holder copies its part and writes it into the directory, and when the
     * copies are made save returns; have all been written?; a turn of waiting. */
    unsigned (*parts)(const pace__job *job);
    pace_status (*save)(pace__job *job, const char *directory);
    pace_status (*saved)(pace__job *job, bool *all);
    pace_status (*rest)(pace__job *job, unsigned *turns);

    /* Now and then in what takes long: others are waiting. */
    void (*pulse)(pace__job *job);
    /* Does what may wait for a disk, while the others hear that this process lives (ranks/aside.h; `slow` as there, or
     * NULL: whatever it was). NULL: there are no others. */
    pace_status (*aside)(pace__job *job, bool *slow, const char *what, pace_status (*work)(void *user),
                         void *user);
    /* What a dry run says of each process. NULL: nothing. */
    pace_status (*describe)(pace__job *job);
} pace__strategy;

/* Of workers that merge (mode local-sgd): what the chief has counted since it began. */
typedef struct pace__merging {
    uint64_t rounds, flushes;
    uint64_t hot;                  /* parameters that are merged in every round */
    double keys_per_row;           /* parameters that it has sent at flushes, for a row of its own */
    double damping, flush_damping; /* of the last ones */
    uint64_t jumps;                /* rounds whose loss was far above that of those before */
} pace__merging;

/* How workers train, where that is not by steps of all of them together. */
typedef struct pace__craft {
    pace_status (*open)(struct pace__process *process); /* before the start: room, what it has to know */
    /* From position.step on; `boundary` is NULL but for the chief. Closes what was opened. */
    pace_status (*run)(struct pace__process *process, struct pace__boundary *boundary);
    void (*close)(struct pace__process *process); /* of a job that has failed, or had nothing left to do */
} pace__craft;

struct pace__job {
    const pace_train_config *given;  /* as it came */
    const pace_train_config *config; /* is `settled` */
    pace_train_config settled;       /* what was left open is filled in by the plan */
    const pace_log *log;
    pace_registry *registry;
    pace__clock clock; /* of decisions that depend on time; zeroed: the real one */
    pace__job_plan plan;
    pace__store store;
    pace__stage *stage; /* local copies of it; NULL: none */
    bool is_warm;       /* it begins with another model: the chief's word */
    pace__warm warm;    /* of the leader: that model */
    pace__position position;
    pace__faults faults;      /* that this process is to suffer */
    pace__row_count rows;     /* that this process has computed */
    bool over;                /* ranks other than the chief: it has said that nothing is left to train */
    const pace__craft *craft; /* how a worker of several ranks trains; NULL: as roles/worker.c does */

    /* The leader's. */
    const pace__strategy *strategy;
    void *own; /* the strategy's */
    pace__rundir *run;
    pace__events *events; /* NULL: there are none */
    pace__runstate state;
    bool was_done;             /* the run, and nothing of it has changed yet */
    pace__divisions divisions; /* of the steps to come, as far as they are known (--balance) */
    uint64_t share_changes;    /* since this start */
    pace__saving saving;
    char *fingerprint;   /* of the job, for its checkpoints */
    float *parameters;   /* (keys + 1, floats) */
    bool is_settled;     /* they have become bare weights, to be read (parameters.c) */
    pace__model *scorer; /* computes scores from them */
    pace__metrics *metrics;
    bool scores_slowly;             /* the disk with the rows to score, when it was last asked */
    pace_scores scores[PACE__SETS]; /* the newest of each */
    pace__curves curves;            /* of the last ones, of test rows */
    pace__worst worst;              /* the same; of texts and pictures */
    uint64_t judged_step;           /* at which it was last scored on the way; 0: not since this start */
    uint64_t kept; /* the step whose state the parameters are instead of the last; 0: they are the last */
    uint64_t best_step; /* once it has been chosen */
    double best_logloss;
    uint64_t evaluations_skipped;
    uint64_t start_ns;
    double trained_s;
    double features_s; /* until there were features, from the cache or computed */
    const char *
        *planned_hosts; /* by rank, of a dry run that nobody else takes part in; NULL: all are there */
    bool others_left;   /* nobody is there any more to save anything */
    pace__role_report **reports; /* by rank; NULL: there are no others */
    pace__merging merging;
};

/* In the order of the enums in <paceline/train.h>: "a|b|c". */
extern const char pace__mode_names[], pace__optimizer_names[], pace__schedule_names[];

/* options.c: the tables that describe a configuration, with that of its kind of model. */
void pace__train_parts(const pace_train_config *config, pace_option_part parts[3]);
/* The same with --kernels: what config.yaml holds. */
extern const pace_option pace__kernels_option[];
void pace__record_parts(const pace_train_config *config, const int *kernels, pace_option_part parts[4]);

/* Nothing is left to train. */
bool pace__job_is_over(const pace__job *job);
/* The set that is scored on the way: PACE__VALIDATION, without such rows PACE__TEST. */
static inline int pace__job_judged(const pace__job *job)
{
    return pace__plan_validates(&job->plan) ? PACE__VALIDATION : PACE__TEST;
}
/* The step behind which the parameters are as they stand. */
static inline uint64_t pace__job_state_step(const pace__job *job)
{
    return job->kept ? job->kept : job->position.step;
}
/* The leader's way to files, wherever it may take long: see pace__strategy.aside. */
pace_status pace__job_aside(pace__job *job, const char *what, pace_status (*work)(void *user), void *user);
pace_status pace__job_aside_if(pace__job *job, bool *slow, const char *what, pace_status (*work)(void *user),
                               void *user);

/* --- lead.c --- */

/* From the options and the plan to the summary: opens the run directory, restores, trains, scores, finishes. */
pace_status pace__job_lead(pace__job *job, pace_train_result *result);
/* Can the run begin in its directory? Changes nothing. */
pace_status pace__job_check_run(const pace__job *job);
/* For a leader that will not come back from pace__job_lead, because all processes end at once: how it ended, the end of the
 * event files, the report. */
void pace__job_end_here(pace__job *job, pace_status status);
/* What every process of a job keeps in the run directory: the rows that it computes, and the faults that it
 * is to suffer. */
pace_status pace__job_open_account(pace__job *job, int rank);
void pace__job_close_account(pace__job *job);

/* --- data.c --- */

/* Opens config->data, with the validation rows that --validation asks for. Nothing is open after a failure. */
pace_status pace__job_open_data(pace__job *job, const pace_log *log);
/* The same of a store that is open. */
pace_status pace__job_take_validation(pace__job *job, const pace_log *log);

/* --- best.c: the best state, for jobs that keep it --- */

/* What was just scored on the way enters the position. True: it is the best, and has to be saved. */
bool pace__job_note_score(pace__job *job);
/* The checkpoint of that step could not be written. */
void pace__job_forget_best(pace__job *job, uint64_t step);
/* Is the best of the position that the job goes on from still there? */
void pace__job_look_at_best(pace__job *job);
/* Behind the last step: saves it, scores it, and replaces it by the best if that is better. */
pace_status pace__job_take_best(pace__job *job);

/* --- mistakes.c --- */

/* Whether the worst mistakes on test rows are something to look at: texts and pictures are. */
bool pace__job_shows_mistakes(const pace__job *job);
/* mistakes.json. That it cannot be written costs a warning. */
void pace__job_write_mistakes(const pace__job *job);

/* --- events.c --- */

/* Event files hear all records from here on, where the run begins or goes on; that they cannot be written is a warning. */
void pace__job_open_events(pace__job *job);
void pace__job_close_events(pace__job *job, pace_status status); /* how the run ended */

/* --- stage.c: local copies of the data set, of every process that reads rows --- */

/* As the options ask for it; nothing that goes wrong with it is a failure. One of all processes leads, one of each host is its first. */
void pace__job_open_stage(pace__job *job, bool leads, bool is_first);
/* `status` is how the run ended. Nobody reads rows any more. */
void pace__job_close_stage(pace__job *job, pace_status status);
/* Of all processes: the member "stage" of the summary, which begins with a comma; and in words, where the run ends so, with what stays
 * behind on the leader's disk. */
void pace__job_put_stage(pace__json *json, const pace__job *job);
void pace__job_say_stage(const pace__job *job, pace_status status);

/* --- describe.c --- */

/* What the user is told before it starts. */
void pace__job_say_needs(const pace__job *job);
/* --dry-run: what each process needs, and what travels in a step. `name` tells how a rank is called. */
pace_status pace__job_describe(const pace__job *job, const char *(*name)(void *user, int rank), void *user);

/* --- parameters.c: the leader's copy --- */

/* The plan of a process that computes; of a job that begins with another model, that is opened first, by all who need it.
 * `leads`: its values are wanted, and what is found is told. */
pace_status pace__job_make_plan(pace__job *job, const pace__dataset *data, bool leads);

/* First values, and room for them. */
pace_status pace__job_open_parameters(pace__job *job);
void pace__job_close_parameters(pace__job *job);
/* What the optimiser of the run has kept that it begins with, if that is wanted: before parameters are opened. */
pace_status pace__job_read_warm_state(pace__job *job);
/* Values of the model that it begins with, if there is one, take the place of first ones. A checkpoint may take theirs. */
pace_status pace__job_begin_warm(pace__job *job);
/* Word vectors of another model, if the plan has some, take the place of first values. */
pace_status pace__job_read_vectors(pace__job *job);
/* PACE_FAILED if a float of a state that was gathered is no finite number: the run has diverged. Every strategy's gather
 * ends with it, so that no such state is scored or becomes a model. */
pace_status pace__job_check_parameters(const pace__job *job);
/* The one way to say so: PACE_FAILED, with what was found and what to try. */
pace_status pace__job_diverged(const pace__job *job, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* pace__strategy.logits and write of whoever holds rows of parameters. */
pace_status pace__job_logits(pace__job *job, const pace__rows *rows, float *logits);
pace_status pace__job_write(pace__job *job, const pace__origin *origin, char sha256[PACE__SHA256_HEX]);

/* --- evaluate.c --- */

/* Scores the model as it stands on a set (the first rows_max of its rows; 0: all); emits an "eval" record. */
pace_status pace__job_evaluate(pace__job *job, int set, uint64_t rows_max);
/* On all rows of every set that is scored. */
pace_status pace__job_evaluate_all(pace__job *job);
void pace__job_emit_scores(const pace__job *job, int set, uint64_t step);
void pace__job_say_scores(const pace__job *job, int set, uint64_t step, const char *by);
/* The model as whoever only scores needs it. */
pace_status pace__job_create_scorer(const pace__job *job, pace__model **scorer);

/* --- checkpoints.c: the leader's, on a clean state --- */

/* Everything that decides the bits of the result, in words: what was done can only be continued by a job that agrees.
 * To be freed; NULL when out of memory. */
char *pace__job_fingerprint(const pace__job *job);
/* Of a job on pictures whose frozen layers make features of them: by what those are known (feature_key.c). */
pace_status pace__job_feature_key(const pace__job *job, uint64_t *key);
/* PACE_USAGE, with the words that differ, if what is at `where` was made by another job. */
pace_status pace__job_check_fingerprint(const pace__job *job, const char *where, const char *own,
                                        const char *theirs);
/* The highest incarnation that names of checkpoints tell of, whole or not; 0: none. */
pace_status pace__job_saved_incarnation(const pace__job *job, const pace_log *log, uint64_t *incarnation);
/* Before anything is committed. With a message: PACE_FAILED if another incarnation has taken over, PACE_IO if the path
 * leads to another directory; then the job ends, and saving.superseded is set. Where state.json is gone or damaged, which
 * is no reason to end a run, names of checkpoints have to tell. */
pace_status pace__job_check_ours(pace__job *job, const pace_log *log);
pace_status pace__job_open_saving(pace__job *job);
void pace__job_close_saving(pace__job *job);
/* Begins a checkpoint, and returns when all have copied their parts; first waits for the one before. That one
 * cannot be written is a warning, not a failure. */
pace_status pace__job_save(pace__job *job);
/* Moves the one under way on. To be called now and then. */
pace_status pace__job_save_poll(pace__job *job);
/* Waits until nothing is under way. */
pace_status pace__job_save_finish(pace__job *job);
/* Begins that of the last step, unless there is one: a finished run keeps it, to be made longer or to have its model
 * written again. None is begun if none are wanted at all. */
pace_status pace__job_save_last(pace__job *job);
/* All at once, and it has to succeed: the run ends here. */
pace_status pace__job_save_now(pace__job *job);
/* The parameters become those of a checkpoint of this job, every byte of which is right; its manifest is the caller's to release
 * then. PACE_USAGE: of another job; PACE_BAD_DATA, PACE_IO: damaged, or not to be read. */
pace_status pace__job_load(pace__job *job, const char *path, pace__manifest *manifest);
/* A holder could not do its part. */
void pace__job_save_failed(pace__job *job, pace_status status, const char *reason);
/* Loads the newest checkpoint that is whole; those that are damaged or cannot be read are named and passed over.
 * PACE_BAD_DATA, or PACE_IO, if there is none left; PACE_USAGE if it is of another job. A run that never had one
 * begins at step 0, unless it has finished. */
pace_status pace__job_restore(pace__job *job);
/* Is the run in the open directory, as its newest checkpoint or its options tell, this job? PACE_USAGE: another one. */
pace_status pace__job_check_same(const pace__job *job);
/* Of a dry run: could it, and from where? */
pace_status pace__job_check_restore(pace__job *job);

/* --- divisions.c: how steps are divided among the workers --- */

/* --balance replay:RUN: what that run has recorded, before anything of this one is there, or removed. A run that is resumed has
 * recorded it already, and is refused one that divides steps otherwise. */
pace_status pace__job_read_replay(pace__job *job);
/* Those that the run goes on with, of its checkpoint, which job->divisions has, and of its record. */
pace_status pace__job_find_divisions(pace__job *job);
/* Of the steps from position.step on, for a checkpoint. False: out of memory. */
bool pace__job_copy_divisions(const pace__job *job, pace__divisions *copy);

/* --- summary.c --- */

/* What the run has come to, without model and scores. */
pace_train_result pace__job_reached(const pace__job *job);
pace_status pace__job_write_summary(const pace__job *job, pace_train_result *result);
/* What the chief has committed. */
pace_status pace__job_read_result(const pace_train_config *config, const pace_log *log,
                                  pace_train_result *result);
/* How the record of shares ended when the run finished; zeros: it has not, or had none, or was written before summaries told. */
pace_status pace__summary_shares(const char *run, const pace_log *log, pace__shares_facts *facts);

/* --- resume.c --- */

/* Has the run nothing left to do, and its model? Options that make it another job are PACE_USAGE. A run that has not
 * finished is not looked at. */
pace_status pace__resume_look(const pace__job *job, pace_train_result *result, bool *finished);
/* PACE_USAGE if the run was begun with options that make it another job, as far as it has said with which. */
pace_status pace__resume_check_options(const pace__job *job);
/* Was it last begun with the same --balance? */
bool pace__resume_has_balance(const pace__job *job);
/* Says what is different from when the run was last begun, as far as it may be. */
void pace__resume_say_changes(const pace__job *job, const pace_train_config *now);

#endif
