/*
 * rows.h - a batch of parsed raw rows, in original ids, on their way from a parser to prep or predict.
 *
 * Reused from call to call; parsers fill it up to PACE__RAW_ROWS rows or until the chunk ends.
 */
#ifndef DATA_FORMATS_ROWS_H
#define DATA_FORMATS_ROWS_H

#include "data/formats/encoding.h"

#include <stddef.h>

#define PACE__RAW_ROWS 256
/* A row with more entries is bad data. */
#define PACE__ROW_ENTRIES_MAX (1u << 20)

typedef struct pace__raw_rows {
    size_t rows;
    size_t entries_max;                 /* room in ids and values; grown by parsers */
    uint8_t label[PACE__RAW_ROWS];      /* 0 or 1; 0 where the row has none and that is allowed */
    uint64_t offset[PACE__RAW_ROWS];    /* of the row in its uncompressed file */
    uint64_t start[PACE__RAW_ROWS + 1]; /* row i has the entries start[i] .. start[i + 1] */
    uint64_t *ids;
    float *values; /* always filled for PACE__NUMBERED and PACE_NUMERIC_VALUES; undefined for
                      PACE_NUMERIC_BINS */
} pace__raw_rows;

pace_status pace__raw_rows_init(pace__raw_rows *rows, const pace_log *log);
/* Makes room for `entries` in all; keeps what is there. */
pace_status pace__raw_rows_reserve(pace__raw_rows *rows, size_t entries, const pace_log *log);
void pace__raw_rows_release(pace__raw_rows *rows);

#endif
