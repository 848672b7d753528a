/*
 * thin.h - as many points of a series as a chart can show.
 *
 *     size_t kept[PACE__CHART_POINTS];
 *     size_t count = pace__thin(losses, losses_count, PACE__CHART_POINTS, kept);
 *
 * 1. What sticks out stays: of every stretch of the series, its lowest and its highest value, in their order; and the ends.
 * 2. Values that are no finite numbers are left out.
 */
#ifndef REPORT_THIN_H
#define REPORT_THIN_H

#include <stddef.h>

#define PACE__CHART_POINTS 500

/* The places of those that stay, rising; returns how many, at most `most`, which is 4 or more. */
size_t pace__thin(const double *values, size_t count, size_t most, size_t *kept);

#endif
