/*
 * fetch.h - rows by their place in the sample order: what reader.c and slice.c share. Internal to data.
 *
 * A *run* is what can be read at once: rows of one part that follow each other in the order. Rows without
 * columns have their starts read first, which say where the entries lie.
 *
 *     pace__walk at = {.place = first};
 *     pace__run run = pace__fetch_next(&fetch, &at, count);
 *     if (!fetch.store->info.columns)
 *         status = pace__fetch_starts(&fetch, &run, 0, start);
 *     status = pace__fetch_rows(&fetch, &run, &into);
 *     at.place += run.rows;
 *
 * Everything that comes from a file is checked here. What is out of range, or not what was written (sums.h), is
 * PACE_BAD_DATA with the part's path.
 */
#ifndef DATA_STORE_FETCH_H
#define DATA_STORE_FETCH_H

#include "data/store/mapped.h"
#include "data/store/order.h"
#include "data/store/store.h"
#include "math/batch.h"

/* Rows that an epoch's order keeps together. The neighbours of a picture would be the same ones in every
 * batch of every epoch, which is bad for batch normalization; and a picture is worth a read of its own. */
static inline uint64_t pace__shuffle_block(const pace__encoding *encoding)
{
    return pace__has_classes(encoding) ? 1 : PACE__ORDER_BLOCK;
}

/* Whose rows, in which order. Never changes: threads may share it. */
typedef struct pace__fetch {
    const pace__store *store; /* must outlive it */
    const pace_log *log;
    int set;
    bool sequential; /* stored order instead of a permutation per epoch */
    int64_t seed;
    pace__mapped *mapped; /* or NULL */
} pace__fetch;

/* Where a walk through the endless sequence stands. Begins with a place and zeroes; the place may be set. */
typedef struct pace__walk {
    uint64_t place;
    uint64_t epoch; /* whose order this is */
    pace__order order;
} pace__walk;

/* Of rows without columns, the entries are known when the starts have been read. */
typedef struct pace__run {
    const pace__part *part;
    const pace__part_set *set;
    uint64_t row; /* the first one, in the part */
    size_t rows;
    uint64_t entry; /* the first one, in the part */
    uint64_t entries;
} pace__run;

/* The run from at->place on, cut to this many rows. The place stays: what was read moves it on. */
pace__run pace__fetch_next(const pace__fetch *self, pace__walk *at, uint64_t rows_max);

/* Only for rows without columns: sets start[0 .. run->rows], beginning with `base`, and the run's entries. */
pace_status pace__fetch_starts(const pace__fetch *self, pace__run *run, uint64_t base, uint64_t *start);

/* Where rows go: arrays that begin with their first row and entry. Those that the set does not have are
 * NULL. */
typedef struct pace__into {
    uint8_t *label; /* not of pictures and features */
    uint32_t *ids;
    float *values;
    uint32_t *length; /* of texts */
    uint8_t *pixels;
    float *features;
    uint16_t *classes;
    uint32_t *source;
    const uint64_t *start; /* of rows without columns, as pace__fetch_starts has set them */
} pace__into;

/* Of texts, the lengths alone, as they stand in the file: who gets the rows has them compared with their sums. */
pace_status pace__fetch_lengths(const pace__fetch *self, const pace__run *run, uint32_t *length);

pace_status pace__fetch_rows(const pace__fetch *self, const pace__run *run, const pace__into *into);

/* Reading a run took longer than this: it was not in memory. */
uint64_t pace__cold_read_ns(const pace__fetch *self, const pace__run *run);

/* Asks the disk for a run, whether its starts are known or not. Does not wait for it. */
void pace__fetch_ask(const pace__fetch *self, const pace__run *run);

/* --- room for rows --- */

/* Entries of so many rows: exact with columns, else by the average, rounded up. */
uint64_t pace__usual_entries(const pace__store_info *info, uint64_t rows);

/* Bytes of a row besides its entries and start. */
size_t pace__row_bytes(const pace__store_info *info);

/* Bytes of the arrays of so many entries, each of which begins at a cache line. */
uint64_t pace__entries_bytes(const pace__store_info *info, uint64_t entries);

/* Lets the arrays of entries point into that many bytes. */
void pace__into_entries(pace__into *into, const pace__store_info *info, void *memory, uint64_t entries);

/* The same arrays from another row and entry on. */
pace__into pace__into_at(const pace__into *into, uint64_t row, uint64_t entry);

/* What was read as a model sees it. */
pace__rows pace__into_view(const pace__into *into, const pace__store_info *info, size_t rows,
                           const uint64_t *start);

#endif
