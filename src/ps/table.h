/*
 * table.h - one shard's parameters: adding up gradients, updating, handing out weights. Pure computation, no
 * messages.
 *
 * Key k of the job lives on shard k mod shards, at *place* k / shards there. Keys are numbered by column and
 * frequency (data/store.h), so neighbours in heat are neighbours in number, and the remainder spreads them
 * evenly.
 *
 * A record is the parameter's floats (optim.h), and, where gradients of several workers are summed before the
 * update, the sum and the number of the round it belongs to: everything about a parameter is on one cache
 * line.
 *
 * The last key, number keys - 1, is the bias: it has no penalty. The dense part is a range of the job's dense
 * parameters, which every worker needs in every step.
 */
#ifndef PS_TABLE_H
#define PS_TABLE_H

#include "optim/optim.h"

#include <paceline/log.h>
#include <stddef.h>

typedef struct pace__table_plan {
    uint64_t keys; /* of the job; may be 0 */
    size_t dense;  /* dense parameters of the job */
    unsigned shard, shards;
    bool sums; /* gradients are added up before they are applied */
    pace__optim optim;
} pace__table_plan;

typedef struct pace__table {
    pace__table_plan plan;
    pace__optim optim;   /* with the rate of the step that is applied next */
    uint32_t places;     /* keys of this shard */
    uint32_t free_place; /* has no penalty; UINT32_MAX: on another shard */
    unsigned stride;     /* floats in a record */
    float *records;      /* (places, stride) */
    uint32_t round;      /* of sums; rises with every apply, never 0 */
    uint32_t *touched;   /* (places + 1) whose sums belong to this round */
    uint32_t touched_count;
    size_t dense_first, dense; /* the range of the job's dense parameters */
    float *dense_records;      /* (dense, optim.width) */
    float *dense_sums;         /* (dense) zero between rounds */
} pace__table;

pace_status pace__table_init(pace__table *table, const pace__table_plan *plan, const pace_log *log);
void pace__table_release(pace__table *table);
/* What init will take. */
uint64_t pace__table_bytes(const pace__table_plan *plan);

/* Places are below table->places: the caller has checked what came over the wire (places_valid). */
bool pace__table_places_valid(const pace__table *table, const uint32_t *places, size_t count);

/* Adds gradients to the sums of this round. */
void pace__table_add(pace__table *table, const uint32_t *places, const float *gradients, size_t count);
void pace__table_add_dense(pace__table *table, const float *gradients);

/* One update per parameter with a sum, by scale x sum; the next round begins. `discard`: forgets the sums
 * instead. */
void pace__table_apply(pace__table *table, float scale, bool discard);

/* Updates at once, without sums. No place occurs twice. */
void pace__table_update(pace__table *table, const uint32_t *places, const float *gradients, size_t count,
                        float scale);
void pace__table_update_dense(pace__table *table, const float *gradients, float scale);

/* The sums of this round, touched_count of them, in the order of `touched`; the round goes on. */
void pace__table_sums(const pace__table *table, float *sums);

/* weights[i] = the weight at places[i], as it is at row `now` (mod 2^32), to which it is brought up. */
void pace__table_weights(pace__table *table, const uint32_t *places, size_t count, uint32_t now,
                         float *weights);
/* Only brings them up: a replica, before an update by gradients that others have computed. */
void pace__table_catch_up(pace__table *table, const uint32_t *places, size_t count, uint32_t now);
/* The weights without changing anything. */
void pace__table_peek(const pace__table *table, const uint32_t *places, size_t count, uint32_t now,
                      float *weights);
void pace__table_dense_weights(const pace__table *table, float *weights);

/* The floats of places first .. first + count, plan.optim.width each: for checkpoints, and back. */
void pace__table_read(const pace__table *table, uint32_t first, uint32_t count, float *parameters);
void pace__table_write(pace__table *table, uint32_t first, uint32_t count, const float *parameters);

#endif
