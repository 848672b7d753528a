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

static unsigned stride_of(const pace__table_plan *plan)
{
    return plan->optim.width + (plan->sums ? 2 : 0);
}

static size_t dense_bound(const pace__table_plan *plan, unsigned shard)
{
    return (size_t)((unsigned __int128)plan->dense * shard / plan->shards);
}

uint64_t pace__table_bytes(const pace__table_plan *plan)
{
    uint64_t places = places_of(plan),
             dense = dense_bound(plan, plan->shard + 1) - dense_bound(plan, plan->shard);

    return (places * (stride_of(plan) + (plan->sums ? 1 : 0)) + dense * (plan->optim.width + 1)) *
           sizeof(float);
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
    assert(plan->keys <= UINT32_MAX && plan->shard < plan->shards);
    *table = (pace__table){.plan = *plan, .optim = plan->optim, .places = places_of(plan), .round = 1};
    table->stride = stride_of(plan);
    table->free_place = plan->keys > 0 && (plan->keys - 1) % plan->shards == plan->shard
                            ? (uint32_t)((plan->keys - 1) / plan->shards)
                            : ABSENT;
    table->dense_first = dense_bound(plan, plan->shard);
    table->dense = dense_bound(plan, plan->shard + 1) - table->dense_first;
    table->records = pace__pages_alloc(records_bytes(table));
    table->touched = pace__pages_alloc(touched_bytes(table));
    table->dense_records = pace__pages_alloc(table->dense * plan->optim.width * sizeof(float));
    table->dense_sums = pace__pages_alloc(table->dense * sizeof(float));
    if (!table->records || !table->touched || !table->dense_records || !table->dense_sums)
        return pace_fail(log, PACE_FAILED, "out of memory: a shard of %u parameters needs %llu bytes",
                         table->places, (unsigned long long)pace__table_bytes(plan));
    for (size_t place = 0; place < table->places; place++)
        pace__optim_init(&table->optim, table->records + place * table->stride);
    for (size_t i = 0; i < table->dense; i++)
        pace__optim_init(&table->optim, table->dense_records + i * plan->optim.width);
    return PACE_OK;
}

void pace__table_release(pace__table *table)
{
    pace__pages_free(table->dense_sums, table->dense * sizeof(float));
    pace__pages_free(table->dense_records, table->dense * table->plan.optim.width * sizeof(float));
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

void pace__table_add(pace__table *table, const uint32_t *places, const float *gradients, size_t count)
{
    unsigned width = table->optim.width;
    uint32_t touched = table->touched_count, round = table->round;

    for (size_t i = 0; i < count; i++) {
        float *sum = record_at(table, places[i]) + width;
        uint32_t last;

        fetch_ahead(table, places, i, count);
        memcpy(&last, &sum[1], sizeof last);
        table->touched[touched] = places[i]; /* overwritten by the next one unless this is a new place */
        touched += last != round;
        sum[0] = last == round ? sum[0] + gradients[i] : gradients[i];
        memcpy(&sum[1], &round, sizeof round);
    }
    table->touched_count = touched;
}

void pace__table_add_dense(pace__table *table, const float *gradients)
{
    for (size_t i = 0; i < table->dense; i++)
        table->dense_sums[i] += gradients[i];
}

void pace__table_apply(pace__table *table, float scale, bool discard)
{
    unsigned width = table->optim.width;

    for (size_t i = 0; !discard && i < table->touched_count; i++) {
        float *record = record_at(table, table->touched[i]);

        fetch_ahead(table, table->touched, i, table->touched_count);
        pace__optim_update(&table->optim, record, record[width] * scale);
    }
    for (size_t i = 0; i < table->dense; i++) {
        if (!discard)
            pace__optim_update(&table->optim, table->dense_records + i * width, table->dense_sums[i] * scale);
        table->dense_sums[i] = 0;
    }
    table->touched_count = 0;
    table->round++;
    if (table->round == 0) { /* after 2^32 rounds: no record may look as if it belonged to a coming one */
        for (size_t place = 0; place < table->places; place++)
            record_at(table, (uint32_t)place)[width + 1] = 0;
        table->round = 1;
    }
}

void pace__table_update(pace__table *table, const uint32_t *places, const float *gradients, size_t count,
                        float scale)
{
    for (size_t i = 0; i < count; i++) {
        fetch_ahead(table, places, i, count);
        pace__optim_update(&table->optim, record_at(table, places[i]), gradients[i] * scale);
    }
}

void pace__table_update_dense(pace__table *table, const float *gradients, float scale)
{
    for (size_t i = 0; i < table->dense; i++)
        pace__optim_update(&table->optim, table->dense_records + i * table->optim.width,
                           gradients[i] * scale);
}

void pace__table_sums(const pace__table *table, float *sums)
{
    for (size_t i = 0; i < table->touched_count; i++) {
        fetch_ahead(table, table->touched, i, table->touched_count);
        sums[i] = record_at(table, table->touched[i])[table->optim.width];
    }
}

/* Whether penalties up to row `now` are still to be applied. Someone may ask for earlier rows after others
 * have asked for later ones: time does not go back. */
static inline bool is_behind(const pace__table *table, uint32_t place, uint32_t now)
{
    return place != table->free_place &&
           (int32_t)(now - pace__optim_last(&table->optim, record_at(table, place))) > 0;
}

void pace__table_catch_up(pace__table *table, const uint32_t *places, size_t count, uint32_t now)
{
    for (size_t i = 0; table->optim.lazy && i < count; i++) {
        fetch_ahead(table, places, i, count);
        if (is_behind(table, places[i], now))
            pace__optim_catch_up(&table->optim, record_at(table, places[i]), now);
    }
}

void pace__table_weights(pace__table *table, const uint32_t *places, size_t count, uint32_t now,
                         float *weights)
{
    for (size_t i = 0; i < count; i++) {
        fetch_ahead(table, places, i, count);
        if (table->optim.lazy && is_behind(table, places[i], now))
            pace__optim_catch_up(&table->optim, record_at(table, places[i]), now);
        weights[i] = record_at(table, places[i])[0];
    }
}

void pace__table_peek(const pace__table *table, const uint32_t *places, size_t count, uint32_t now,
                      float *weights)
{
    for (size_t i = 0; i < count; i++) {
        const float *record = record_at(table, places[i]);

        fetch_ahead(table, places, i, count);
        weights[i] = table->optim.lazy && is_behind(table, places[i], now)
                         ? pace__optim_weight(&table->optim, record, now)
                         : record[0];
    }
}

void pace__table_dense_weights(const pace__table *table, float *weights)
{
    for (size_t i = 0; i < table->dense; i++)
        weights[i] = table->dense_records[i * table->optim.width];
}

void pace__table_read(const pace__table *table, uint32_t first, uint32_t count, float *parameters)
{
    unsigned width = table->optim.width;

    for (size_t i = 0; i < count; i++)
        memcpy(parameters + i * width, record_at(table, (uint32_t)(first + i)), width * sizeof(float));
}

void pace__table_write(pace__table *table, uint32_t first, uint32_t count, const float *parameters)
{
    unsigned width = table->optim.width;

    for (size_t i = 0; i < count; i++)
        memcpy(record_at(table, (uint32_t)(first + i)), parameters + i * width, width * sizeof(float));
}
