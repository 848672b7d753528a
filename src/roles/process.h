/*
 * process.h - one process of a job of several: what it holds, and how all begin, work and end together.
 *
 *     begin    all greet the chief with their version, options and data set (greet.c). The chief compares, and sends
 *              everyone what it must know. Tables of parameters are made (tables.c), those of a resumed job dealt
 *              out; start.
 *     work     the chief leads (job/lead.c) and works (chief.c), workers work (worker.c), servers serve (server.c),
 *              the evaluator scores (evaluator.c).
 *     end      the chief writes the model, tells everyone how the job ended, collects what each has measured
 *              (reports.c), and says that all may go: until then everyone serves. It writes the summary.
 *
 * A process that fails returns its status; pace__process_run tells the chief, who says who, where, at which step
 * and why, and ends all others (ranks/rank.h).
 *
 * 1. What a process holds (shard, replica, counter) is there from open_tables to close_tables, and is served whenever
 *    it waits: pace__process_serve is the idle function of its link.
 * 2. Serving fails once: its status is kept, and whoever waits next gets it.
 * 3. Only the chief has job->run, job->registry's records and job->parameters.
 */
#ifndef ROLES_PROCESS_H
#define ROLES_PROCESS_H

#include "job/boundary.h"
#include "launch/orders.h"
#include "ps/counter.h"
#include "ranks/rank.h"
#include "roles/collect.h"
#include "roles/saving.h"

/* What the evaluator sends to the chief. */
typedef struct pace__scored {
    uint64_t step, skipped, final;
    pace_scores scores[PACE__SETS]; /* on the way of one set, at the end of all there are */
    pace__curves curves;            /* of the last scores of test rows, like the next */
    pace__worst worst;
} pace__scored;

/* How the job ended, and behind which step. */
typedef struct pace__ending {
    uint64_t status, step;
    uint64_t let_go; /* workers that nobody waits for: the chief ends whoever is left */
} pace__ending;

/* A worker that the job goes on without, as the chief tells the parameter servers. */
typedef struct pace__loss {
    uint64_t rank;
    pace__request *sends; /* (ps) */
} pace__loss;

/* Where a rank's reports come in, at the chief. */
typedef struct pace__report_box {
    pace__role_report *incoming; /* belongs to the receive */
    pace__request receive;
    bool kept; /* its sender was lost, and it may still be written to */
} pace__report_box;

struct pace__process {
    pace__job *job; /* the chief's has the run directory, the registry, and a model to put together */
    pace__rank self;
    pace__role role;

    /* What it holds; NULL: somebody else does. */
    pace__shard *shard;
    pace__table replica; /* allreduce, local-sgd by steps: the whole model on every worker */
    uint64_t replica_step;
    void *own;          /* of job->craft, while it is open */
    pace__table merged; /* local-sgd: the keys that it owns, as they are behind the last flush */
    uint64_t merged_step;
    pace__keeper *keeper;
    pace__counter *counter;
    pace__save_holder save;
    pace__save_peer *save_peers;   /* the chief: (holders) */
    pace__part_saver unseen_saver; /* the chief: parts of holders that do not see the run directory */
    bool said_unseen;

    /* Lost workers; see losses.c. */
    pace__orders orders; /* the chief's */
    uint64_t orders_ns;  /* when it looked for some */
    pace__loss *losses;
    int loss_count;
    uint64_t let_go;            /* the chief: workers that hang, or are slow, at the end */
    pace__request loss_receive; /* a ps */
    uint64_t loss_word;

    uint64_t content;         /* of its data set: pace__store_content */
    pace_status serve_status; /* what serving has failed with: it is not tried again */
    uint64_t start_word;      /* others: what the chief sends when all is in place */
    uint64_t start_ns;        /* of training; 0: it has not begun */
    uint64_t trained_ns;      /* the chief: when it was over; 0: it is not. What comes then is not its time */

    /* What it measures, and what the chief knows of all; see reports.c. */
    pace__times times;
    uint64_t rows;
    const pace__boundary *boundary;   /* the chief's, while it trains */
    pace__role_report *report;        /* the newest of its own */
    pace__request report_send;        /* others: that, to the chief */
    pace__role_report *report_before; /* the chief: the one before it */
    pace__role_report **reports;      /* the chief: the newest of everyone */
    pace__report_box *boxes;          /* the chief: (ranks) */
    uint64_t sampled_ns, looked_ns;
    bool is_ending;            /* only last reports from now on, which are waited for */
    pace__request end_receive; /* others: how the job ended */
    pace__ending ending;
    pace__request verdict_receive; /* the chief: from the evaluator */
    pace__scored verdict;          /* belongs to the receive */
    bool scored;                   /* the last verdict was taken */
    bool watches_evaluator;        /* the chief, while it trains: nobody else would miss it before the end */

    pace__profile profile; /* collect.h */
    pace__collection collection;
};

/*
 * Runs this process's part of the job, and closes the link. Only the chief has a result. After a failure the
 * other ranks are ended, and, over MPI, so is this one.
 */
pace_status pace__process_run(pace__job *job, pace__link *link, pace_train_result *result);

/* Tells the other ranks that this one has failed, once: to be called before anything that messages may still
 * use is released. Over MPI it does not return. */
void pace__process_fail(pace__process *process, pace_status status);

/* --- chief.c --- */

/* How the chief of several ranks, or of one, does it. */
extern const pace__strategy pace__rank_strategy;

/* Records of what the evaluator has sent so far; `final`: waits for the last. */
pace_status pace__chief_take_verdicts(pace__process *process, bool final);
/* While all end: the evaluator may be left with scores that nobody wants any more, and hears of the end when they have left. */
pace_status pace__chief_drop_verdicts(pace__process *process);

/* --- worker.c, server.c, evaluator.c --- */

/* Until the job's last step, or until it is ended. `boundary` is NULL but for the chief. */
pace_status pace__worker_run(pace__process *process, pace__boundary *boundary);
/* Until the chief says how the job ended: what this process holds is served. */
pace_status pace__server_run(pace__process *process);
pace_status pace__evaluator_run(pace__process *process);

/* --- greet.c --- */

/* The chief: hears everyone, compares, sends them on their way. */
pace_status pace__process_welcome(pace__process *process);
/* Everyone else: learns from the chief where the job begins, and, if it has no data set, what that is like. */
pace_status pace__process_greet(pace__process *process);
/* The same message to every other rank. */
pace_status pace__process_tell_all(pace__process *process, int tag, const void *bytes, size_t size);

/* --- tables.c --- */

pace_status pace__process_open_tables(pace__process *process);
void pace__process_close_tables(pace__process *process);
/* Moves on whatever this process serves: its shard, its parameters for others, the counter. An idle function of
 * the link. */
pace_status pace__process_serve(void *process, bool *busy);
/* The parameters that it keeps for the job; NULL: none. */
const pace__table *pace__process_table(const pace__process *process);
/* The chief: fills job->parameters from those who hold them; and gives everyone who does its part of them. */
pace_status pace__process_gather(pace__process *process);
pace_status pace__process_deal_out(pace__process *process);
/* Every row up to the last step was applied here, once. */
pace_status pace__process_check_rows(const pace__process *process, uint64_t last_step);

/* --- reports.c --- */

pace__role_report *pace__process_new_report(const pace__process *process);
/* To be called often: once a second it reports to the chief, who makes records of it. */
pace_status pace__process_sample(pace__process *process);
/* The chief: everyone hears how it ended, and sends its last report; they are process->reports. */
pace_status pace__process_end_all(pace__process *process, pace_status how);
pace_status pace__process_send_report(pace__process *process);
void pace__process_free_reports(pace__process *process);

/* --- losses.c --- */

/* Can this job go on without a worker that dies? Only if a supervisor starts it so. */
bool pace__job_outlives(const pace__job_plan *plan);
/* In a rank: and it has started this one so, with a launcher that lets the others live. */
bool pace__job_outlives_here(const pace__job_plan *plan);
void pace__process_open_losses(pace__process *process);
void pace__process_close_losses(pace__process *process);
/* The chief, with backup workers: all is computed, and that worker is not waited for. */
void pace__process_let_go(pace__process *process, int rank);
/* The chief: hears of losses and tells the servers. A ps: hears of them from the chief. */
pace_status pace__process_look_for_losses(pace__process *process, bool *busy);
/* Behind the last report. The chief: everyone may go. Others: serves what it holds until that word. A job that outlives workers
 * cannot end MPI together, since one may die at the last moment: there, it waits for a moment only. Nor can one that has let
 * workers go: the chief ends all others when it exits, and they wait for that. */
pace_status pace__process_part(pace__process *process);

/* --- features.c --- */

/* The data set of pictures becomes one of features, from the cache or computed, for a plan that says so. Others may
 * be at it, too: each does some parts. */
pace_status pace__process_use_features(pace__process *process);

#endif
