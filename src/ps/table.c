/*
 * A record is its row, and in a table with sums, behind it, the sums and the round that they belong to.
 *
 * 1. `touched` names each place whose sums are of this round, once, in the order in which they came; what
 *    stands in the sums of other places is of a round before, and means nothing.
 * 2. The round is never 0, which is what new records have, and no record has a round to come.
 * 3. With a lazy penalty, a row says up to which row of the order it was applied (a stamp, optim.h). That never
 *    goes back: someone may ask for the weights of earlier rows after others have asked for later ones, and
 *    gets them as they are.
 */
#include "ps/table.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>

/* Records ahead of the one at hand that are fetched: they are all over memory. */
#define AHEAD  32
#define ABSENT UINT32_MAX

static uint32_t places_of(const pace__table_plan *plan)
{
    return (uint32_t)((plan->keys + plan->shards - 1 - plan->shard) / plan->shards);
}

static size_t stride_of(const pace__table_plan *plan)
{
    return (size_t)plan->dim * plan->optim.width + (plan->sums ? (size_t)plan->dim + 1 : 0);
}

uint64_t pace__table_bytes(const pace__table_plan *plan)
{
    return places_of(plan) * (stride_of(plan) + (plan->sums ? 1 : 0)) * sizeof(float);
}

static size_t records_bytes(const pace__table *table)
{
    return (size_t)table->places * table->stride * sizeof(float);
}

static size_t touched_bytes(const pace__table *table)
{
    return table->plan.sums ? ((size_t)table->places + 1) * sizeof *table->touched : 0;
}

pace_status pace__table_init(pace__table *table, const pace__table_plan *plan, const pace_log *log)
{
    assert(plan->keys <= UINT32_MAX && plan->shard < plan->shards && plan->dim > 0);
    assert(plan->dim == 1 || !plan->optim.lazy);
    assert(plan->stats <= plan->keys && plan->stats_first <= plan->keys - plan->stats);
    *table = (pace__table){.plan = *plan, .optim = plan->optim, .places = places_of(plan), .round = 1};
    table->floats = (size_t)plan->dim * plan->optim.width;
    table->stride = stride_of(plan);
    table->free_place = plan->keys > 0 && (plan->keys - 1) % plan->shards == plan->shard
                            ? (uint32_t)((plan->keys - 1) / plan->shards)
                            : ABSENT;
    table->records = pace__pages_alloc(records_bytes(table));
    table->touched = pace__pages_alloc(touched_bytes(table));
    if (!table->records || !table->touched)
        return pace_fail(log, PACE_FAILED, "out of memory: a shard of %u keys needs %llu bytes",
                         table->places, (unsigned long long)pace__table_bytes(plan));
    for (size_t place = 0; place < table->places; place++)
        pace__optim_init_row(&table->optim, plan->dim, table->records + place * table->stride);
    return PACE_OK;
}

void pace__table_release(pace__table *table)
{
    pace__pages_free(table->touched, touched_bytes(table));
    pace__pages_free(table->records, records_bytes(table));
    *table = (pace__table){0};
}

bool pace__table_places_valid(const pace__table *table, const uint32_t *places, size_t count)
{
    uint32_t largest = 0;

    for (size_t i = 0; i < count; i++)
        largest = places[i] > largest ? places[i] : largest;
    return count == 0 || largest < table->places;
}

static inline float *record_at(const pace__table *table, uint32_t place)
{
    return table->records + (size_t)place * table->stride;
}

/* always_inline: GCC 12 takes a function that does nothing but prefetch for one that does nothing. */
__attribute__((always_inline)) static inline void fetch_ahead(const pace__table *table,
                                                              const uint32_t *places, size_t i, size_t count)
{
    if (i + AHEAD < count)
        __builtin_prefetch(record_at(table, places[i + AHEAD]), 1);
}

/* The sums of a record, and behind them the round that they belong to. */
static inline float *sums_at(const pace__table *table, uint32_t place)
{
    return record_at(table, place) + table->floats;
}

/* Which of a batch's places are new to the round cannot be foretold: nothing branches on it here. */
static uint32_t add_ones(pace__table *table, const uint32_t *places, const float *gradients, size_t count)
{
    uint32_t touched = table->touched_count, round = table->round;

    for (size_t i = 0; i < count; i++) {
        float *sums = sums_at(table, places[i]), sum = sums[0] + gradients[i];
        uint32_t last, bits[2];

        fetch_ahead(table, places, i, count);
        memcpy(&last, &sums[1], sizeof last);
        memcpy(&bits[0], &gradients[i], sizeof bits[0]);
        memcpy(&bits[1], &sum, sizeof bits[1]);
        uint32_t known = -(uint32_t)(last == round),
                 record[2] = {(bits[0] & ~known) | (bits[1] & known), round};

        table->touched[touched] = places[i]; /* overwritten by the next one unless this is a new place */
        touched += 1 + known;
        memcpy(sums, record, sizeof record);
    }
    return touched;
}

static uint32_t add_rows(pace__table *table, const uint32_t *places, const float *gradients, size_t count)
{
    size_t dim = table->plan.dim;
    uint32_t touched = table->touched_count, round = table->round;

    for (size_t i = 0; i < count; i++) {
        float *sums = sums_at(table, places[i]);
        uint32_t last;

        fetch_ahead(table, places, i, count);
        memcpy(&last, &sums[dim], sizeof last);
        table->touched[touched] = places[i];
        touched += last != round;
        if (last != round)
            memcpy(sums, gradients + i * dim, dim * sizeof *sums);
        for (size_t at = 0; last == round && at < dim; at++)
            sums[at] += gradients[i * dim + at];
        memcpy(&sums[dim], &round, sizeof round);
    }
    return touched;
}

void pace__table_add(pace__table *table, const uint32_t *places, const float *gradients, size_t count)
{
    assert(table->plan.sums && table->round != 0);
    uint32_t touched = table->plan.dim == 1 ? add_ones(table, places, gradients, count)
                                            : add_rows(table, places, gradients, count);

    assert(touched <= table->places); /* invariant 1 */
    table->touched_count = touched;
}

static bool is_statistic(const pace__table *table, uint32_t place)
{
    const pace__table_plan *plan = &table->plan;

    return (uint64_t)place * plan->shards + plan->shard - plan->stats_first < plan->stats;
}

static void subtract(float *from, const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        from[i] -= values[i];
}

/* A loop of its own for rows of one: nothing is called for them. */
static inline void update(const pace__table *table, uint32_t place, const float *gradients, float scale)
{
    float *record = record_at(table, place);

    if (table->plan.dim == 1)
        pace__optim_update(&table->optim, record, gradients[0] * scale);
    else if (is_statistic(table, place))
        subtract(record, gradients, table->plan.dim);
    else
        pace__optim_update_row(&table->optim, table->plan.dim, record, gradients, scale);
}

void pace__table_apply(pace__table *table, float scale, bool discard)
{
    assert(table->plan.sums);
    for (size_t i = 0; !discard && i < table->touched_count; i++) {
        uint32_t place = table->touched[i];

        fetch_ahead(table, table->touched, i, table->touched_count);
        update(table, place, sums_at(table, place), scale);
    }
    table->touched_count = 0;
    table->round++;
    if (table->round == 0) { /* after 2^32 rounds: invariant 2 */
        for (size_t place = 0; place < table->places; place++)
            sums_at(table, (uint32_t)place)[table->plan.dim] = 0;
        table->round = 1;
    }
}

void pace__table_update(pace__table *table, const uint32_t *places, const float *gradients, size_t count,
                        float scale)
{
    for (size_t i = 0; i < count; i++) {
        fetch_ahead(table, places, i, count);
        update(table, places[i], gradients + i * table->plan.dim, scale);
    }
}

void pace__table_sums(const pace__table *table, float *sums)
{
    size_t dim = table->plan.dim;

    assert(table->plan.sums);
    for (size_t i = 0; i < table->touched_count; i++) {
        fetch_ahead(table, table->touched, i, table->touched_count);
        memcpy(sums + i * dim, sums_at(table, table->touched[i]), dim * sizeof *sums);
    }
}

static inline bool is_penalised(const pace__table *table, uint32_t place)
{
    return table->optim.lazy && place != table->free_place;
}

void pace__table_catch_up(pace__table *table, const uint32_t *places, size_t count, uint64_t now)
{
    for (size_t i = 0; table->optim.lazy && i < count; i++) {
        fetch_ahead(table, places, i, count);
        if (is_penalised(table, places[i]))
            pace__optim_catch_up(&table->optim, record_at(table, places[i]), now);
    }
}

/* Rows have no penalty: they are as they are. */
static void copy_rows(const pace__table *table, const uint32_t *places, size_t count, float *weights)
{
    size_t dim = table->plan.dim;

    for (size_t i = 0; i < count; i++) {
        fetch_ahead(table, places, i, count);
        memcpy(weights + i * dim, record_at(table, places[i]), dim * sizeof *weights);
    }
}

void pace__table_weights(pace__table *table, const uint32_t *places, size_t count, uint64_t now,
                         float *weights)
{
    if (table->plan.dim > 1) {
        copy_rows(table, places, count, weights);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        fetch_ahead(table, places, i, count);
        if (is_penalised(table, places[i]))
            pace__optim_catch_up(&table->optim, record_at(table, places[i]), now);
        weights[i] = record_at(table, places[i])[0];
    }
}

void pace__table_peek(const pace__table *table, const uint32_t *places, size_t count, uint64_t now,
                      float *weights)
{
    if (table->plan.dim > 1) {
        copy_rows(table, places, count, weights);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const float *record = record_at(table, places[i]);

        fetch_ahead(table, places, i, count);
        weights[i] =
            is_penalised(table, places[i]) ? pace__optim_weight(&table->optim, record, now) : record[0];
    }
}

void pace__table_read(const pace__table *table, uint32_t first, uint32_t count, float *parameters)
{
    assert(first <= table->places && count <= table->places - first);
    for (size_t i = 0; i < count; i++)
        memcpy(parameters + i * table->floats, record_at(table, (uint32_t)(first + i)),
               table->floats * sizeof(float));
}

void pace__table_write(pace__table *table, uint32_t first, uint32_t count, const float *parameters)
{
    assert(first <= table->places && count <= table->places - first);
    for (size_t i = 0; i < count; i++)
        memcpy(record_at(table, (uint32_t)(first + i)), parameters + i * table->floats,
               table->floats * sizeof(float));
}
