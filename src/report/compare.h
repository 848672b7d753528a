/*
 * compare.h - options of several runs beside each other, those that differ first. A pure function of histories.
 *
 * What tells only where and how a run was started is left out: its directory, --force, --resume.
 */
#ifndef REPORT_COMPARE_H
#define REPORT_COMPARE_H

#include "history/history.h"

/* Of run i, its value is pace__history_setting(runs[i], name). */
typedef struct pace__compared {
    const char *name; /* belongs to a history */
    bool differs;     /* two runs have different values, or one has none */
} pace__compared;

/* To be freed; *count is how many there are. NULL: none, or out of memory. */
pace__compared *pace__compare_settings(pace__history *const *runs, size_t run_count, size_t *count);

#endif
