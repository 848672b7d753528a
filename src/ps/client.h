/*
 * client.h - a worker's side of the exchange with the shards.
 *
 * The worker hands over a batch whose gradients are complete and one whose weights it wants next; one message
 * goes to every shard. When all shards have answered, the weights are there, and the gradients are applied
 * everywhere (confirmed).
 *
 *     pace__client_send(client, done, next);          // either may be NULL
 *     ...
 *     status = pace__client_poll(client, &answered);  // true once per send, in order
 *
 * Messages may overlap: up to PACE__CLIENT_PENDING_MAX sends may be unanswered.
 */
#ifndef PS_CLIENT_H
#define PS_CLIENT_H

#include "net/link.h"
#include "ps/shard.h"

#define PACE__CLIENT_PENDING_MAX (PACE__DEPTH_MAX + 1)
/* Async: ranges that a worker has, as the counter sees it. When it asks for one, it has reported all that was
 * answered, PENDING_MAX pushes wait for answers, and its line has room for one behind DEPTH_MAX batches. */
#define PACE__RANGES_MAX (PACE__CLIENT_PENDING_MAX + PACE__DEPTH_MAX + 1)

/* What the exchange needs of a batch. By slot: keys, weights, sums; see model/keys.h. */
typedef struct pace__work {
    uint64_t first, rows, step; /* of the sample order */
    uint64_t slice;             /* of the step */
    uint64_t now;               /* penalties are applied up to this row before the weights are read */
    double loss;                /* sum over the rows, once computed */
    uint32_t count;             /* keys */
    const uint32_t *keys;
    float *weights; /* (count, dim) set when answered */
    float *sums;    /* (count, dim) of gradients */
    /* Made by send: the slots by shard, shard_start[s] .. shard_start[s + 1] of `order`. */
    uint32_t *order;       /* (keys_max) */
    uint32_t *shard_start; /* (shards + 1) */
} pace__work;

typedef struct pace__client_plan {
    int shards, first_rank; /* shard s is on rank first_rank + s */
    pace__exchange exchange;
    uint64_t keys;   /* of the job */
    size_t keys_max; /* in a batch */
    unsigned dim;    /* parameters of a key */
    bool narrow;     /* gradients travel as bf16 */
} pace__client_plan;

typedef struct pace__client pace__client;

pace_status pace__client_create(pace__link *link, const pace__client_plan *plan, const pace_log *log,
                                pace__client **client);
void pace__client_free(pace__client *client); /* NULL is allowed */
uint64_t pace__client_memory(const pace__client_plan *plan);

/*
 * Sends; waits only if the send before last has not even left. `end`: instead of gradients, that the job ends
 * before step `done->step` (sync; the chief alone). With PACE__EXCHANGE_MERGE `next` is not sent: there is
 * nothing to ask for.
 */
pace_status pace__client_send(pace__client *client, pace__work *done, pace__work *next, bool end);

/* With slices: is answered when all shards have reached that step. */
pace_status pace__client_send_await(pace__client *client, uint64_t step);

/* Sends not yet answered, and, if there are any, the rank whose answer the oldest of them lacks. */
unsigned pace__client_pending(const pace__client *client);
int pace__client_waits_for(const pace__client *client);

typedef struct pace__answer {
    pace__work *next;           /* as it was sent: its weights are there */
    uint64_t first, rows, step; /* of the batch that was done, and is now applied; rows may be 0 */
    bool applied;               /* there was one */
    bool end;                   /* the job ends before that step */
    uint64_t rows_done;         /* by all workers, as the first shard knows, and their loss */
    double loss;
    /* With slices (slices.h): the first shard has taken another result of that slice instead, or `next` is of a step that
     * is over; weights of `next` are missing, of any shard; where the first shard stands, and the chief's next gate. */
    bool late, incomplete;
    uint64_t reached, gate;
} pace__answer;

/* Sets *answered if the oldest send has been answered by all shards. With EXCHANGE_MERGE merged() has the
 * sums now. */
pace_status pace__client_poll(pace__client *client, bool *answered, pace__answer *answer);

/* Waits for poll to succeed: something must be pending. */
pace_status pace__client_wait(pace__client *client, pace__answer *answer);

/* EXCHANGE_MERGE: what a shard has answered last: sums, and their places on it, not yet checked. The caller's
 * until the next send. */
uint32_t pace__client_merged(const pace__client *client, int shard, const float **sums, uint32_t **places);

/* Nanoseconds spent packing, sending and unpacking. */
uint64_t pace__client_busy_ns(const pace__client *client);

#endif
