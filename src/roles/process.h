/*
 * member.h - one rank of a job of several processes: what it holds, and how the ranks begin and end together.
 *
 *     begin    every rank says hello to the chief: its version, options and data set. The chief compares,
 *              opens the run directory, and sends everyone what it must know (go). Shards are made; a resumed
 *              job's parameters are sent out; start.
 *     train    workers work (worker.c), parameter servers serve, the evaluator scores (evaluator.c).
 *     end      the chief writes the model, tells everyone how the job ended, collects what each has
 *              measured, writes the summary.
 *
 * A rank that fails returns its status; pace__member_run tells the chief, who says who, where, at which step
 * and why, and ends all others (link.h).
 */
#ifndef ROLES_PROCESS_H
#define ROLES_PROCESS_H

#include "launch/orders.h"
#include "net/link.h"
#include "ps/client.h"
#include "ps/counter.h"
#include "ps/shard.h"
#include "ps/snapshot.h"
#include "ranks/rank.h"
#include "job/boundary.h"
#include "run/report.h"

/* What the evaluator sends to the chief. */
typedef struct pace__verdict {
    uint64_t step, skipped, final;
    pace_scores scores;
} pace__verdict;

/* How the job ended, and behind which step. */
typedef struct pace__ending {
    uint64_t status, step;
} pace__ending;

/* A worker that the job goes on without, as the chief tells the parameter servers. */
typedef struct pace__loss {
    uint64_t rank;
    pace__request *sends; /* (ps) */
} pace__loss;

typedef struct pace__member {
    pace__job *job; /* the chief's has the run directory, the registry, and a model to put together */
    pace__rank self;
    pace__role role;
    pace__exchange exchange;

    /* What it holds; NULL: somebody else does. */
    pace__shard *shard;
    pace__table replica; /* allreduce: the whole model on every worker */
    uint64_t replica_step;
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
    pace__request loss_receive; /* a ps */
    uint64_t loss_word;

    pace_status serve_status;    /* what serving has failed with: it is not tried again */
    uint64_t start_word;         /* others: what the chief sends when all is in place */
    uint64_t start_ns;           /* of training */
    pace__role_report *report;   /* what it measures itself */
    pace__role_report **reports; /* the chief: everyone's, at the end */
    pace__request end_receive;   /* others: how the job ended */
    pace__ending ending;
    pace__request verdict_receive; /* the chief: from the evaluator */
    pace__verdict verdict;         /* belongs to the receive */
    bool scored;                   /* the last verdict was taken */
    bool watches_evaluator;        /* the chief, while it trains: nobody else would miss it before the end */
} pace__member;

/*
 * Runs this rank's part of the job, and closes the link. Only the chief has a result. After a failure the
 * other ranks are ended, and, over MPI, so is this one.
 */
pace_status pace__member_run(pace__job *job, pace__link *link, pace_train_result *result);

/* --- hello.c --- */

/* The chief: hears everyone, compares, sends them on their way. */
pace_status pace__member_gather_hellos(pace__member *member);
/* Everyone else: waits for the chief's answer, and learns from it who is where and where the job begins. */
pace_status pace__member_say_hello(pace__member *member);
/* The same message to every other rank. */
pace_status pace__member_tell_all(pace__member *member, int tag, const void *bytes, size_t size);

/* Tells the other ranks that this one has failed, once: to be called before anything that messages may still
 * use is released. Over MPI it does not return. */
void pace__member_fail(pace__member *member, pace_status status);

static inline bool pace__is_sync(const pace__member *member)
{
    return member->exchange != PACE__EXCHANGE_ASYNC;
}

/* --- holdings.c --- */

pace_status pace__member_open_holdings(pace__member *member);
void pace__member_close_holdings(pace__member *member);

/* Moves on whatever this rank serves: its shard, its parameters for others, the counter. An idle function of
 * the link. */
pace_status pace__member_serve(void *member, bool *busy);

/* Rows that a worker has in a batch at most, and keys. */
uint64_t pace__member_rows_max(const pace__job *job);
size_t pace__member_keys_max(const pace__job *job);
pace__client_plan pace__member_client_plan(const pace__job *job);
pace__shard_plan pace__member_shard_plan(const pace__job *job, unsigned shard);
/* Batches that are asked for ahead. */
unsigned pace__member_depth(const pace__job *job);
pace__exchange pace__exchange_of(int mode);

/* Who holds the parameters, for reading and writing them: shards, or the chief's replica. */
unsigned pace__member_holders(const pace__member *member);
pace__holder pace__member_holder(const pace__member *member, unsigned index);

/* The chief: fills job->parameters from the shards; and a resumed job: everyone who holds parameters gets those of
 * the checkpoint. */
pace_status pace__member_assemble(void *member);
pace_status pace__member_send_out_model(pace__member *member);

/* The chief of a dry run: who is where, holds what, sends how much, needs how much memory. */
pace_status pace__member_describe(const pace__member *member);

/* The parameters that this rank keeps for the job; NULL: none. */
const pace__table *pace__member_table(const pace__member *member);

/* --- losses.c --- */

/* Can this job go on without a worker that dies? Only if a supervisor starts it so. */
bool pace__job_outlives(const pace__job *job);
/* In a rank: and it has started this one so, with a launcher that lets the others live. */
bool pace__job_outlives_here(const pace__job *job);
void pace__member_open_losses(pace__member *member);
void pace__member_close_losses(pace__member *member);
/* The chief: hears of losses and tells the servers. A ps: hears of them from the chief. */
pace_status pace__member_look_for_losses(pace__member *member, bool *busy);
/* A job that outlives workers cannot end MPI together: one may die at the last moment. The chief: everyone
 * may go. Others: waits for that word, for a moment. */
void pace__member_part(pace__member *member);

/* --- the roles --- */

/* Until the job's last step, or until it is ended. `books` is NULL but for the chief, and is opened by the
 * caller. */
pace_status pace__worker_run(pace__member *member, pace__books *books);
uint64_t pace__worker_memory(const pace__job *job);

pace_status pace__evaluator_run(pace__member *member);

/* The chief: records of what the evaluator has sent so far; `final`: waits for the last. */
pace_status pace__member_take_verdicts(pace__member *member, bool final);

#endif
