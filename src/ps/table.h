/*
 * table.h - one shard's parameters: adding up gradients, updating, handing out weights. Pure computation, no
 * messages.
 *
 * Key k of the job lives on shard k mod shards, at *place* k / shards there. Keys are numbered by column and
 * frequency (data/store/store.h), so neighbours in heat are neighbours in number, and the remainder spreads them
 * evenly; so are big dense tensors, whose floats are cut into rows with a key each (model/model.h).
 *
 * A key has a row of `dim` parameters (optim.h). Its record is the row's floats, and, where gradients of
 * several workers are summed before the update, the sums and the number of the round they belong to:
 * everything about a key is in one place.
 *
 * With rows of one, the last key, number keys - 1, is the bias: it has no penalty. Of longer rows some may be
 * *statistics* (model/model.h): what comes for them is subtracted as it is, whatever the rule.
 */
#ifndef PS_TABLE_H
#define PS_TABLE_H

#include "optim/optim.h"

#include <paceline/log.h>
#include <stddef.h>

typedef struct pace__table_plan {
    uint64_t keys; /* of the job */
    unsigned dim;  /* parameters of a key */
    unsigned shard, shards;
    bool sums; /* gradients are added up before they are applied */
    pace__optim optim;
    uint64_t stats_first, stats; /* keys of statistics: the first one, and how many */
} pace__table_plan;

typedef struct pace__table {
    pace__table_plan plan;
    pace__optim optim;   /* with the rate of the step that is applied next */
    uint32_t places;     /* keys of this shard */
    uint32_t free_place; /* has no penalty; UINT32_MAX: on another shard */
    size_t floats;       /* of a row: dim x optim.width */
    size_t stride;       /* of a record */
    float *records;      /* (places, stride) */
    uint32_t round;      /* of sums; rises with every apply, never 0 */
    uint32_t *touched;   /* (places + 1) whose sums belong to this round */
    uint32_t touched_count;
} pace__table;

pace_status pace__table_init(pace__table *table, const pace__table_plan *plan, const pace_log *log);
void pace__table_release(pace__table *table);
/* What init will take. */
uint64_t pace__table_bytes(const pace__table_plan *plan);

/* Places are below table->places: the caller has checked what came over the wire (places_valid). */
bool pace__table_places_valid(const pace__table *table, const uint32_t *places, size_t count);

/* Gradients, sums and weights are rows of `dim`. */

/* Adds gradients to the sums of this round. */
void pace__table_add(pace__table *table, const uint32_t *places, const float *gradients, size_t count);

/* One update per row with a sum, by scale x sum; the next round begins. `discard`: forgets the sums
 * instead. */
void pace__table_apply(pace__table *table, float scale, bool discard);

/* Updates at once, without sums. No place occurs twice. */
void pace__table_update(pace__table *table, const uint32_t *places, const float *gradients, size_t count,
                        float scale);

/* The sums of this round, touched_count of them, in the order of `touched`; the round goes on. */
void pace__table_sums(const pace__table *table, float *sums);

/* weights[i] = the weight at places[i], as it is at row `now`, to which it is brought up. */
void pace__table_weights(pace__table *table, const uint32_t *places, size_t count, uint64_t now,
                         float *weights);
/* Only brings them up: a replica, before an update by gradients that others have computed. */
void pace__table_catch_up(pace__table *table, const uint32_t *places, size_t count, uint64_t now);
/* The weights without changing anything. */
void pace__table_peek(const pace__table *table, const uint32_t *places, size_t count, uint64_t now,
                      float *weights);

/* The rows of places first .. first + count, `floats` each: for checkpoints, and back. */
void pace__table_read(const pace__table *table, uint32_t first, uint32_t count, float *parameters);
void pace__table_write(pace__table *table, uint32_t first, uint32_t count, const float *parameters);

#endif
