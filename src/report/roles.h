/*
 * roles.h - what samples of roles say as lines over time, and all together. Pure functions of a history.
 *
 * What was used in a second is a difference of two samples over the time between them. The first sample behind a start
 * counts from when its process began, which was before training: it has no rate.
 */
#ifndef REPORT_ROLES_H
#define REPORT_ROLES_H

#include "history/history.h"

/* Roles that have a line of their own; of more, those who took most of their processors, and a line for the mean of the
 * others. */
#define PACE__SHOWN_ROLES 8
/* Points of a line for the others, and stretches of time of which a split is told. */
#define PACE__SPLIT_POINTS 200

typedef struct pace__point {
    double x, y;
} pace__point;

typedef enum pace__measure {
    PACE__MEASURE_CPU,       /* processors */
    PACE__MEASURE_MEMORY,    /* bytes */
    PACE__MEASURE_NETWORK,   /* bytes a second, with other roles, both ways */
    PACE__MEASURE_DISK,      /* bytes a second, read and written */
    PACE__MEASURE_ROWS,      /* rows a second */
    PACE__MEASURE_ROW_WORK,  /* seconds of reading and computing for a row of its own */
    PACE__MEASURE_INTERFACE, /* bytes a second of its host, both ways */
    PACE__MEASURES
} pace__measure;

/* Shares of a stretch of time that ends at t; they add up to 1, or are all 0. */
typedef struct pace__split {
    double t, data, compute, communicate, still, wait;
} pace__split;

/* Which roles are shown: the chief first, the others in their order. Returns how many. */
size_t pace__shown_roles(const pace__history *history, size_t shown[PACE__SHOWN_ROLES]);

/* All that it did, in all starts of the run. */
pace__sample pace__role_total(const pace__seen_role *role);

/* Points of a role, at most role->count. */
size_t pace__role_line(const pace__seen_role *role, pace__measure measure, pace__point *points);

/* The mean of all roles that are not shown, at most PACE__SPLIT_POINTS. */
size_t pace__others_line(const pace__history *history, const size_t *shown, size_t shown_count,
                         pace__measure measure, pace__point *points);

/* At most PACE__SPLIT_POINTS stretches of about as many samples each. */
size_t pace__role_splits(const pace__seen_role *role, pace__split *splits);

/* The split of such an amount. */
pace__split pace__split_of(const pace__sample *amount);

#endif
