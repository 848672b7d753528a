#include "data/formats/rows.h"

#include <assert.h>
#include <stdlib.h>

/* Enough for a full batch of Criteo rows. */
#define ENTRIES_FIRST ((size_t)PACE__RAW_ROWS * PACE__CRITEO_COLUMNS)
/* A full batch of the longest rows that are allowed. */
#define ENTRIES_LIMIT ((size_t)PACE__RAW_ROWS * PACE__ROW_ENTRIES_MAX)

pace_status pace__raw_rows_init(pace__raw_rows *rows, const pace_log *log)
{
    rows->rows = 0;
    rows->entries_max = 0;
    rows->start[0] = 0;
    rows->ids = NULL;
    rows->values = NULL;
    pace_status status = pace__raw_rows_reserve(rows, ENTRIES_FIRST, log);

    if (status)
        pace__raw_rows_release(rows);
    return status;
}

static pace_status out_of_memory(size_t entries, const pace_log *log)
{
    return pace_fail(log, PACE_FAILED, "out of memory for a batch of %zu parsed entries", entries);
}

pace_status pace__raw_rows_reserve(pace__raw_rows *rows, size_t entries, const pace_log *log)
{
    assert(entries <= ENTRIES_LIMIT);
    if (entries <= rows->entries_max)
        return PACE_OK;
    /* Doubling keeps the cost of many small steps linear. */
    size_t room = entries > 2 * rows->entries_max ? entries : 2 * rows->entries_max;
    uint64_t *ids = realloc(rows->ids, room * sizeof *ids);

    if (!ids)
        return out_of_memory(room, log);
    rows->ids = ids;
    float *values = realloc(rows->values, room * sizeof *values);

    if (!values)
        return out_of_memory(room, log);
    rows->values = values;
    rows->entries_max = room;
    return PACE_OK;
}

void pace__raw_rows_release(pace__raw_rows *rows)
{
    free(rows->ids);
    free(rows->values);
    rows->ids = NULL;
    rows->values = NULL;
    rows->rows = 0;
    rows->entries_max = 0;
}
