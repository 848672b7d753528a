/*
 * intervals.h - which rows have been applied: a set of row intervals, kept small by a low-water mark.
 *
 * Rows are places in the endless sequence of the sample order. The set is everything below `low`, plus a
 * sorted window of disjoint, non-touching intervals above it. Workers finish out of order, but not by much,
 * so the window stays short.
 *
 *     if (pace__intervals_add(&applied, first, last) == PACE__INTERVAL_NEW)
 *         apply(push);
 *
 * A push whose rows are all in the set already is a repeat and must be dropped; one that is partly in it is a
 * bug of whoever hands out rows, and add() refuses it. So it does when the window would need more than
 * PACE__INTERVALS_MAX intervals: then someone's rows have been missing for long.
 */
#ifndef PS_INTERVALS_H
#define PS_INTERVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More than ranges can be under way: workers x PACE__RANGES_MAX, which tables.c of roles sees to. */
#define PACE__INTERVALS_MAX 8192

typedef struct pace__interval {
    uint64_t first, last; /* first .. last - 1 */
} pace__interval;

typedef struct pace__intervals {
    uint64_t low; /* all rows below are in */
    size_t count;
    pace__interval window[PACE__INTERVALS_MAX]; /* above low, rising, with gaps between */
} pace__intervals;

typedef enum pace__interval_result {
    PACE__INTERVAL_NEW,     /* none was in; now all are. An empty interval is new */
    PACE__INTERVAL_REPEAT,  /* all were in */
    PACE__INTERVAL_OVERLAP, /* some were in: nothing was changed */
    PACE__INTERVAL_FULL,    /* the window is full: nothing was changed */
} pace__interval_result;

void pace__intervals_init(pace__intervals *set, uint64_t low);
pace__interval_result pace__intervals_add(pace__intervals *set, uint64_t first, uint64_t last);
bool pace__intervals_has(const pace__intervals *set, uint64_t first, uint64_t last); /* all of them */
uint64_t pace__intervals_rows(const pace__intervals *set); /* in the set, from row 0 */

#endif
