/*
 * shard.h - a shard at work: receives what workers push, applies it, answers with weights.
 *
 * A shard is a state machine that poll() moves on; it never waits. A parameter server does nothing but poll;
 * a worker that holds a shard polls between the pieces of its own work and whenever it waits (link's idle
 * function). The code is the same.
 *
 * How pushes become updates:
 *     sync    a step is applied when every worker has pushed its part of it: summed in the order of the
 *             workers, updated once. Then all get their answers.
 *             With slices (slices.h): when every slice has been pushed by somebody, summed in their order. Who
 *             comes too late for that is told at once, and the repeat is dropped.
 *     async   every push is applied when it comes, and answered at once; one of very old weights counts for
 *             less.
 *     merge   like sync, but the shard holds no parameters: the answer is the sums, and every worker
 *             updates its own replica.
 *
 * Every push carries its row interval; each row is applied once: repeats are dropped and counted
 * (intervals.h). A message that does not fit what was agreed (a place out of range, gradients without keys)
 * is a bug, of the program or of the network, and ends the job.
 */
#ifndef PS_SHARD_H
#define PS_SHARD_H

#include "net/link.h"
#include "ps/intervals.h"
#include "ps/slices.h"
#include "ps/steps.h"
#include "ps/table.h"
#include "ps/wire.h"

/* Batches whose keys were sent and whose gradients have not come, for each worker. */
#define PACE__DEPTH_MAX 2
/* Observed staleness: 0 .. STALENESS_BINS - 2 pushes of others, and more. */
#define PACE__STALENESS_BINS 64

typedef enum pace__exchange {
    PACE__EXCHANGE_SYNC,
    PACE__EXCHANGE_ASYNC,
    PACE__EXCHANGE_MERGE
} pace__exchange;

/* The learning rate of a step. */
typedef struct pace__rate {
    int schedule;
    double lr;
    int64_t warmup;
    uint64_t steps;
} pace__rate;

typedef struct pace__shard_plan {
    pace__table_plan table;
    pace__exchange exchange;
    int workers; /* ranks 0 .. workers - 1 of the link */
    pace__steps steps;
    uint64_t first_step;
    pace__rate rate;
    size_t keys_max; /* in a message */
    bool narrow;     /* gradients travel as bf16 */
    /* Async: a push counts in full if at most so many came since its weights were read; 0: always. */
    uint64_t fresh_pushes;
    /* Sync: parts of a step that any worker may send, the first counts (slices.h); 0: each worker has one. */
    int slices;
    uint64_t gate_every[PACE__SLICES_GATES]; /* of the first shard, then */
} pace__shard_plan;

/* How much an asynchronous push counts. One whose weights are far older than those of workers in step says
 * little about the parameters as they are now: beyond `fresh` it counts in proportion. */
static inline float pace__push_weight(uint64_t age, uint64_t fresh)
{
    return fresh > 0 && age > fresh ? (float)fresh / (float)age : 1;
}

typedef struct pace__shard_stats {
    uint64_t pushes, repeats_dropped, rows_repeated;
    uint64_t busy_ns; /* applying and answering */
    uint64_t looks;   /* at which something had come */
    uint64_t staleness
        [PACE__STALENESS_BINS]; /* pushes by how many others were applied since their weights were read */
} pace__shard_stats;

typedef struct pace__shard pace__shard;

pace_status pace__shard_create(pace__link *link, const pace__shard_plan *plan, const pace_log *log,
                               pace__shard **shard);
void pace__shard_free(pace__shard *shard); /* NULL is allowed */
uint64_t pace__shard_memory(const pace__shard_plan *plan);

/* Sets *busy if there was something to do. */
pace_status pace__shard_poll(pace__shard *shard, bool *busy);

/* Ranks that a sync shard waits for now (into peers, at most plan.workers); async: all workers that have not
 * ended. */
size_t pace__shard_waits_for(const pace__shard *shard, int *peers);

/* Async: goes on without a worker that was lost; twice is once. What it pushed is applied or not; its rows
 * tell which. */
void pace__shard_lose(pace__shard *shard, int worker);

pace__table *pace__shard_table(pace__shard *shard);
pace__slices *pace__shard_slices(pace__shard *shard);
/* Whole steps that are applied. */
uint64_t pace__shard_step(const pace__shard *shard);
/* Steps by how many rows are applied, whichever: one slow worker keeps asynchronous steps from being whole. */
uint64_t pace__shard_reached(const pace__shard *shard);
const pace__shard_stats *pace__shard_stats_of(const pace__shard *shard);

/* PACE_BUG if any row before `rows` is not applied: at the end of training. */
pace_status pace__shard_check(const pace__shard *shard, uint64_t rows);

#endif
