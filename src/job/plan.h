/*
 * plan.h - what a job is going to do: decided before anything starts, and never changed.
 *
 * Plain values: nothing here points to a running job, a link, a file or a clock. So the same plan is made by every
 * rank (a server makes it from the description of the data set that the chief sends), described by --dry-run
 * before anything runs, and can be made for jobs that never will.
 *
 *     pace__job_plan plan;
 *     status = pace__plan_cluster(&config, log, &plan);                // roles and mode, from the options alone
 *     status = pace__plan_make(&config, &data, &who, log, &plan);      // the rest; fills in what config left open
 *     ... pace__plan_rate(&plan, step), pace__plan_slice(&plan, step, worker, &first, &rows) ...
 *     pace__plan_release(&plan);
 *
 * Steps (ps/steps.h) count from the run's beginning. What a plan costs, in bytes and memory: cost.h.
 */
#ifndef JOB_PLAN_H
#define JOB_PLAN_H

#include "launch/cluster.h"
#include "model/model.h"
#include "optim/outer.h"
#include "ps/client.h"
#include "ps/shard.h"
#include "ps/snapshot.h"
#include "ps/steps.h"
#include "shares/rounds.h"

#include <paceline/train.h>

#define PACE__REPLAY "replay:" /* of --balance: a run follows */

/* How the rows of synchronous steps are divided among the workers (balance.h). */
typedef enum pace__balancing {
    PACE__BALANCE_OFF,   /* evenly */
    PACE__BALANCE_EPOCH, /* by measured speed, decided once an epoch */
    PACE__BALANCE_STEPS, /* every so many steps */
    PACE__BALANCE_AUTO,
    PACE__BALANCE_REPLAY /* as another run has recorded it */
} pace__balancing;

typedef struct pace__job_plan {
    /* From the options alone. */
    int mode; /* never PACE_MODE_AUTO */
    pace__cluster cluster;
    pace__exchange exchange; /* how workers and shards talk; of mode local, an exchange of one */
    int backups;             /* workers beyond the slices of a step: ps/slices.h */
    int slices;              /* of a synchronous step: workers without backups */
    uint64_t staleness;      /* steps that anyone may be ahead; PACE__STALENESS_UNBOUNDED: any number */

    /* The length. */
    pace__steps order;
    uint64_t steps;
    pace__rate rate;   /* the learning rate of a step */
    uint64_t patience; /* evaluations without improvement before an early stop; 0: none */

    /* The model, and how it is trained. */
    pace__model_plan model; /* released by pace__plan_release */
    size_t floats;          /* of a key's row, with optimiser state */
    bool by_columns;        /* threads of one process split the columns of sparse rows: columns/columns.h */
    bool narrow;            /* gradients travel to servers, changes to who merges them, as bf16 */
    bool merges;            /* workers train by themselves and merge: localsgd/ */
    bool
        by_steps; /* networks, which average: each takes its part of every step; else a stretch of each round */
    pace__outer outer;   /* of these, what they do with the mean */
    pace__rounds rounds; /* when they merge */
    bool exact;          /* one update per step from the summed gradient; else row after row, in blocks */
    int threads;         /* of each process that computes */

    /* Of a worker: */
    uint64_t rows_max; /* rows in a batch at most */
    bool by_words;     /* sync, texts: rows of a step are dealt out by their words (shares/deal.h) */
    pace__balancing balancing;
    uint64_t balance_every; /* steps between two decisions; 0: none is made */
    size_t keys_max;        /* keys that they need at most */
    unsigned depth;         /* batches that are asked for ahead */

    bool scores_on_the_way; /* the chief does: there are rows for it and no evaluator */
    bool keeps_best;        /* the model is that of the best evaluation */
} pace__job_plan;

/* Who makes it. */
typedef struct pace__planner {
    bool computes; /* values of the model are needed: this is no server */
    bool speaks;   /* says what it finds: one process of a job */
    const pace__forerunner
        *begins; /* the model that it begins with; NULL: none, or it is not looked at here */
} pace__planner;

/* PACE_USAGE if options contradict each other. */
pace_status pace__plan_cluster(const pace_train_config *config, const pace_log *log, pace__job_plan *plan);

/* Do threads of one process split the columns of its rows? */
bool pace__plan_goes_by_columns(const pace__job_plan *plan, const pace_train_config *config,
                                const pace__dataset *data);

/* All but the model: the options settled by the kind, length, rate, rule. */
pace_status pace__plan_decide(pace_train_config *config, const pace__dataset *data, const pace_log *log,
                              pace__job_plan *plan);
pace_status pace__plan_make(pace_train_config *config, const pace__dataset *data, const pace__planner *who,
                            const pace_log *log, pace__job_plan *plan);
void pace__plan_release(pace__job_plan *plan); /* a zeroed one is allowed */

/* The options as they were decided, which repeat this run: what was left open is filled in. */
void pace__plan_options(const pace__job_plan *plan, const pace_train_config *settled,
                        pace_train_config *decided);

/* The same with what it comes to in the place of what was asked for: rows of a step that there are, the rule that is
 * followed. Two jobs are the same if these are. */
void pace__plan_identity(const pace__job_plan *plan, const pace_train_config *settled,
                         pace_train_config *decided);

/* What is scored on the way, stopped and chosen by: validation rows, without any the test rows. */
static inline bool pace__plan_validates(const pace__job_plan *plan)
{
    return plan->model.data.validation_rows > 0;
}

static inline bool pace__plan_scores(const pace__job_plan *plan)
{
    return plan->model.data.test_rows > 0 || plan->model.data.validation_rows > 0;
}

/* Rates that do not depend on how many steps follow: the run may become longer. */
bool pace__plan_has_open_end(const pace__job_plan *plan);

/* --- steps --- */

static inline bool pace__plan_is_sync(const pace__job_plan *plan)
{
    return plan->exchange != PACE__EXCHANGE_ASYNC;
}

/* Every worker has all parameters, and gradients are merged; else they are held by shards. */
static inline bool pace__plan_has_replicas(const pace__job_plan *plan)
{
    return plan->exchange == PACE__EXCHANGE_MERGE;
}

/* Workers own the keys that they merge for all. */
static inline bool pace__plan_merges(const pace__job_plan *plan)
{
    return plan->merges;
}

static inline uint64_t pace__plan_rows_before(const pace__job_plan *plan, uint64_t step)
{
    return pace__steps_rows_before(&plan->order, step);
}

/* The rows of a step that a worker of a synchronous mode has, in the order, if shares are even; by words, about these. With
 * backups, those of a slice, whoever has it. */
static inline void pace__plan_slice(const pace__job_plan *plan, uint64_t step, int worker, uint64_t *first,
                                    uint64_t *rows)
{
    pace__steps_slice(&plan->order, step, (unsigned)worker, (unsigned)plan->slices, first, rows);
}

double pace__plan_rate(const pace__job_plan *plan, uint64_t step);
/* Sets the rate that applies behind `step`: that of the step before; for parameters that are read, or go on from
 * there. */
void pace__plan_stand_behind(const pace__job_plan *plan, pace__optim *optim, uint64_t step);

/* --- who holds what --- */

/* How many hold parameters, for reading and writing them: shards, or the chief's replica; and which of them holds
 * what. */
unsigned pace__plan_holders(const pace__job_plan *plan);
pace__holder pace__plan_holder(const pace__job_plan *plan, unsigned index);

/* The shard that a rank holds; -1: none. */
int pace__plan_shard_of(const pace__job_plan *plan, int rank);

pace__client_plan pace__plan_client(const pace__job_plan *plan);
pace__shard_plan pace__plan_shard(const pace__job_plan *plan, unsigned shard, uint64_t first_step);
pace__table_plan pace__plan_replica(const pace__job_plan *plan);
/* Where workers merge: the replica that one trains by steps, without what only owners keep; and the keys that it owns. */
pace__table_plan pace__plan_trained(const pace__job_plan *plan);
pace__table_plan pace__plan_owned(const pace__job_plan *plan, unsigned worker);

#endif
