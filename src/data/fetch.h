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
 *     status = pace__fetch_rows(&fetch, &run, &(pace__into){label, ids, values, length});
 *     at.place += run.rows;
 *
 * Everything that comes from a file is checked here. What is out of range is PACE_BAD_DATA with the part's
 * path.
 */
#ifndef DATA_FETCH_H
#define DATA_FETCH_H

#include "data/order.h"
#include "data/store.h"

/* Reading a run, which is at most PACE__ORDER_BLOCK rows, took longer than this: it was not in memory. */
#define PACE__COLD_READ_NS 100000

/* Whose rows, in which order. Never changes: threads may share it. */
typedef struct pace__fetch {
    const pace__store *store; /* must outlive it */
    const pace_log *log;
    int set;
    bool sequential; /* stored order instead of a permutation per epoch */
    int64_t seed;
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

/* Where rows go: arrays that begin with their first row and entry. */
typedef struct pace__into {
    uint8_t *label;
    uint32_t *ids;
    float *values;    /* not used if the set has none */
    uint32_t *length; /* only of texts */
} pace__into;

pace_status pace__fetch_rows(const pace__fetch *self, const pace__run *run, const pace__into *into);

/* Asks the disk for a run, whether its starts are known or not. Does not wait for it. */
void pace__fetch_ask(const pace__fetch *self, const pace__run *run);

/* Entries of so many rows: exact with columns, else by the average, rounded up. */
uint64_t pace__usual_entries(const pace__store_info *info, uint64_t rows);

#endif
