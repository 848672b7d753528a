#include "data/slice.h"

#include "base/clock.h"
#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Asking goes on for so many reads behind a slow one: that they are fast may be because of the asking. */
#define COLD_READS 32

/* --- room --- */

/* Rounded up so that the values, which lie behind the ids, begin at a cache line. */
static uint64_t round_up(uint64_t entries)
{
    return (entries + 15) / 16 * 16;
}

static size_t entries_bytes(uint64_t entries, bool has_values)
{
    return entries * (sizeof(uint32_t) + (has_values ? sizeof(float) : 0));
}

/* Moves the entries that are there to a larger place if so many would not fit. */
static pace_status make_room(pace__slice *slice, uint64_t entries)
{
    bool has_values = slice->fetch.store->info.has_values;
    uint64_t room = slice->entries_max + slice->entries_max / 2; /* grow seldom */

    if (entries <= slice->entries_max)
        return PACE_OK;
    room = round_up(room > entries ? room : entries);
    uint32_t *ids = pace__pages_alloc(entries_bytes(room, has_values));
    float *values = ids && has_values ? (float *)(ids + room) : NULL;

    if (!ids)
        return pace_fail(slice->fetch.log, PACE_FAILED, "out of memory");
    if (slice->entries > 0)
        memcpy(ids, slice->ids, slice->entries * sizeof *ids);
    if (slice->entries > 0 && values)
        memcpy(values, slice->values, slice->entries * sizeof *values);
    pace__pages_free(slice->ids, entries_bytes(slice->entries_max, has_values));
    slice->ids = ids;
    slice->values = values;
    slice->entries_max = room;
    return PACE_OK;
}

uint64_t pace__slice_memory(const pace__store_info *info, uint64_t rows_max)
{
    return entries_bytes(round_up(pace__usual_entries(info, rows_max)), info->has_values) + rows_max +
           (info->columns ? 0 : (rows_max + 1) * sizeof(uint64_t)) +
           (info->encoding.kind == PACE__TEXT ? rows_max * sizeof(uint32_t) : 0);
}

pace_status pace__slice_init(pace__slice *slice, const pace__store *store, int set, int64_t seed,
                             uint64_t rows_max, const pace_log *log)
{
    bool has_start = store->info.columns == 0, text = store->info.encoding.kind == PACE__TEXT;

    if (rows_max > store->info.rows[set])
        rows_max = store->info.rows[set];
    *slice = (pace__slice){.fetch = {.store = store, .log = log, .set = set, .seed = seed},
                           .rows_max = rows_max,
                           .start = has_start ? malloc((rows_max + 1) * sizeof *slice->start) : NULL,
                           .label = malloc(rows_max + 1),
                           .length = text ? malloc((rows_max + 1) * sizeof *slice->length) : NULL};
    pace_status status = slice->label && (slice->start || !has_start) && (slice->length || !text)
                             ? make_room(slice, pace__usual_entries(&store->info, rows_max))
                             : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status)
        status = pace__slice_read(slice, 0, 0); /* slice->rows is valid from now on */
    else
        pace__slice_release(slice);
    return status;
}

void pace__slice_release(pace__slice *slice)
{
    pace__pages_free(slice->ids, entries_bytes(slice->entries_max, slice->values));
    free(slice->length);
    free(slice->label);
    free(slice->start);
    *slice = (pace__slice){0};
}

/* --- reading --- */

/* The next run, of at most so many rows, behind those that are there. */
static pace_status append(pace__slice *slice, uint64_t rows_max)
{
    uint64_t done = slice->at.place - slice->first, entries = slice->entries, start_ns = pace__now_ns();
    pace__run run = pace__fetch_next(&slice->fetch, &slice->at, rows_max);
    pace_status status = PACE_OK;

    if (slice->start)
        status = pace__fetch_starts(&slice->fetch, &run, entries, slice->start + done);
    if (!status)
        status = make_room(slice, entries + run.entries);
    if (!status)
        status = pace__fetch_rows(&slice->fetch, &run,
                                  &(pace__into){slice->label + done, slice->ids + entries,
                                                slice->values ? slice->values + entries : NULL,
                                                slice->length ? slice->length + done : NULL});
    if (pace__now_ns() - start_ns > PACE__COLD_READ_NS)
        slice->cold = COLD_READS;
    slice->at.place += run.rows;
    slice->entries += run.entries;
    return status;
}

pace_status pace__slice_read(pace__slice *slice, uint64_t first, uint64_t count)
{
    uint64_t set_rows = slice->fetch.store->info.rows[slice->fetch.set], end = first + count;
    pace_status status = PACE_OK;

    assert(count <= slice->rows_max);
    assert(count == 0 || first % set_rows + count <= set_rows);
    slice->first = slice->at.place = first;
    slice->entries = 0;
    slice->cold -= slice->cold > 0;
    while (slice->at.place < end && !status)
        status = append(slice, end - slice->at.place);
    if (slice->start)
        slice->start[0] = 0; /* for no rows, too */
    slice->rows = (pace__rows){.rows = status ? 0 : count,
                               .columns = slice->fetch.store->info.columns,
                               .start = slice->start,
                               .ids = slice->ids,
                               .values = slice->values,
                               .label = slice->label,
                               .length = slice->length,
                               .front = slice->fetch.store->info.encoding.pad_front};
    return status;
}

void pace__slice_ask(const pace__slice *slice, uint64_t first, uint64_t count)
{
    pace__walk at = slice->at;

    at.place = first;
    while (slice->cold && at.place < first + count) {
        pace__run run = pace__fetch_next(&slice->fetch, &at, first + count - at.place);

        pace__fetch_ask(&slice->fetch, &run);
        at.place += run.rows;
    }
}
