/*
 * snapshot.h - parameters read and written from outside the exchange: for checkpoints, scores, the model at
 * the end.
 *
 * A keeper serves one table to whoever asks: its state in stretches of places, and *lists*: a rank names once
 * the places that it is interested in (those of the test rows), and then asks for their weights as they are
 * after a certain step. The answer is one consistent copy, made when that step is reached, between two
 * updates. Nobody waits for the one who asked.
 *
 *     pace__keeper_poll                      the side that keeps, with its shard
 *     pace__fetch_state, pace__store_state   the chief's, on a state that does not change meanwhile
 *     pace__fetch_list_init, _ask, _poll     the evaluator's
 */
#ifndef PS_SNAPSHOT_H
#define PS_SNAPSHOT_H

#include "net/link.h"
#include "ps/steps.h"
#include "ps/table.h"

/* Floats or places in one message; a row of more floats goes alone. */
#define PACE__FETCH_CHUNK ((size_t)1 << 20)

/* --- keeping --- */

typedef struct pace__keeper_plan {
    pace__table *table;
    pace__steps steps;
    bool exact_steps;                   /* sync: a list is that of exactly the step asked for, or not given */
    uint64_t (*step)(const void *user); /* whole steps applied */
    const void *user;
} pace__keeper_plan;

typedef struct pace__keeper pace__keeper;

pace_status pace__keeper_create(pace__link *link, const pace__keeper_plan *plan, const pace_log *log,
                                pace__keeper **keeper);
void pace__keeper_free(pace__keeper *keeper); /* NULL is allowed */
pace_status pace__keeper_poll(pace__keeper *keeper, bool *busy);

/* --- the state of a shard, in stretches of rows (table.h), `floats` each --- */

typedef struct pace__holder {
    int rank;
    unsigned shard, shards; /* key = place x shards + shard */
    uint32_t places;
} pace__holder;

/* What lies where: shards of the job's keys on ranks first_rank ... */
pace__holder pace__holder_of(uint64_t keys, unsigned shards, unsigned shard, int first_rank);

/* parameters[key] for all keys of the holder. */
pace_status pace__fetch_state(pace__link *link, const pace__holder *holder, size_t floats, float *parameters,
                              const pace_log *log);
pace_status pace__store_state(pace__link *link, const pace__holder *holder, size_t floats,
                              const float *parameters, const pace_log *log);

/* --- lists: one rank's --- */

/* A list on one holder. Owned by the caller; it must not move while an ask is under way. */
typedef struct pace__fetch_list {
    pace__holder holder;
    uint32_t count;
    unsigned dim;         /* weights of a key */
    uint64_t step;        /* of the answer; if it was passed, where the holder stands */
    bool passed;          /* the step asked for lies behind: there are no weights */
    const float *weights; /* (count, dim) of the last answer */
    void *answer;
    size_t answer_bytes;
    uint64_t ask[4]; /* what was sent */
    pace__request send, receive;
} pace__fetch_list;

/* Tells the holder which places the list has: once per list, and one list per keeper. */
pace_status pace__fetch_list_init(pace__fetch_list *list, pace__link *link, const pace__holder *holder,
                                  const uint32_t *places, uint32_t count, unsigned dim, const pace_log *log);
void pace__fetch_list_release(pace__fetch_list *list, pace__link *link); /* a zeroed one is allowed */
/* Asks for the weights after `step`. The ask before must have been answered. */
pace_status pace__fetch_list_ask(pace__fetch_list *list, pace__link *link, uint64_t step);
/* Will not wait for that step: an ask under way is answered soon, with the weights or as passed. */
pace_status pace__fetch_list_stop(pace__fetch_list *list, pace__link *link);
/* Sets *answered if the ask under way, of which there must be one, has been answered. */
pace_status pace__fetch_list_poll(pace__fetch_list *list, pace__link *link, bool *answered,
                                  const pace_log *log);

#endif
