#include "data/store/slice.h"

#include "base/clock.h"
#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Asking goes on for so many reads behind a slow one: that they are fast may be because of the asking. */
#define COLD_READS 32

/* --- room --- */

/* Moves the entries that are there to a larger place if so many would not fit. */
static pace_status make_room(pace__slice *slice, uint64_t entries)
{
    const pace__store_info *info = &slice->fetch.store->info;
    uint64_t room = slice->entries_max + slice->entries_max / 2; /* grow seldom */
    pace__into into = slice->into;

    if (entries <= slice->entries_max)
        return PACE_OK;
    room = room > entries ? room : entries;
    void *memory = pace__pages_alloc(pace__entries_bytes(info, room));

    if (!memory)
        return pace_fail(slice->fetch.log, PACE_FAILED, "out of memory");
    pace__into_entries(&into, info, memory, room);
    if (slice->entries > 0) /* rows without columns: only they grow */
        memcpy(into.ids, slice->into.ids, slice->entries * sizeof *into.ids);
    if (slice->entries > 0 && into.values)
        memcpy(into.values, slice->into.values, slice->entries * sizeof *into.values);
    pace__pages_free(slice->memory, pace__entries_bytes(info, slice->entries_max));
    slice->memory = memory;
    slice->into = into;
    slice->entries_max = room;
    return PACE_OK;
}

uint64_t pace__slice_memory(const pace__store_info *info, uint64_t rows_max)
{
    return pace__entries_bytes(info, pace__usual_entries(info, rows_max)) + rows_max * pace__row_bytes(info) +
           (info->columns ? 0 : (rows_max + 1) * sizeof(uint64_t));
}

/* The arrays that have an element for each row. */
static bool make_rows(pace__slice *slice, const pace__store_info *info)
{
    size_t count = slice->rows_max + 1;
    pace__into *into = &slice->into;
    bool classes = pace__has_classes(&info->encoding), text = info->encoding.kind == PACE__TEXT, ok = true;

    if (classes) {
        into->classes = malloc(count * sizeof *into->classes);
        into->source = malloc(count * sizeof *into->source);
        ok = into->classes && into->source;
    } else {
        into->label = malloc(count);
        ok = into->label != NULL;
    }
    if (text)
        ok = (into->length = malloc(count * sizeof *into->length)) != NULL && ok;
    if (!info->columns)
        ok = (slice->start = malloc(count * sizeof *slice->start)) != NULL && ok;
    return ok;
}

pace_status pace__slice_init(pace__slice *slice, const pace__store *store, int set, int64_t seed,
                             uint64_t rows_max, const pace_log *log)
{
    if (rows_max > store->info.rows[set])
        rows_max = store->info.rows[set];
    *slice =
        (pace__slice){.fetch = {.store = store, .log = log, .set = set, .seed = seed}, .rows_max = rows_max};
    pace_status status = make_rows(slice, &store->info)
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
    if (slice->memory)
        pace__pages_free(slice->memory, pace__entries_bytes(&slice->fetch.store->info, slice->entries_max));
    free(slice->into.source);
    free(slice->into.classes);
    free(slice->into.length);
    free(slice->into.label);
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
    if (!status) {
        pace__into into = pace__into_at(&slice->into, done, entries);

        into.start = slice->start ? slice->start + done : NULL;

        status = pace__fetch_rows(&slice->fetch, &run, &into);
    }
    if (pace__now_ns() - start_ns > pace__cold_read_ns(&slice->fetch, &run))
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
    slice->rows =
        pace__into_view(&slice->into, &slice->fetch.store->info, status ? 0 : (size_t)count, slice->start);
    return status;
}

pace_status pace__slice_lengths(const pace__slice *slice, uint64_t first, uint64_t count, uint32_t *length)
{
    pace__walk at = slice->at;
    pace_status status = PACE_OK;

    at.place = first;
    while (at.place < first + count && !status) {
        pace__run run = pace__fetch_next(&slice->fetch, &at, first + count - at.place);

        status = pace__fetch_lengths(&slice->fetch, &run, length + (at.place - first));
        at.place += run.rows;
    }
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
