/*
 * report.h - the report that a run leaves behind: RUN/report.html, behind its summary, or when it was interrupted or has
 * failed.
 *
 * Whatever goes wrong with it has cost nothing but itself: the caller says so, and goes on.
 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include <paceline/log.h>

/* To be called by who has the run, when its state says how it ended. Replaces the one that is there. A link in its place is replaced, not followed. */
pace_status pace__report_leave(const char *run, const pace_log *log);

#endif
