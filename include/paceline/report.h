/*
 * report.h - runs as one HTML file that can be kept, sent and opened anywhere: it loads nothing.
 *
 * A run may be finished, under way, interrupted or dead: what it has is shown, what it lacks is said. Several runs are drawn
 * over each other and compared, the options in which they differ first.
 */
#ifndef PACELINE_REPORT_H
#define PACELINE_REPORT_H

#include <paceline/log.h>
#include <paceline/options.h>

#define PACE_REPORT_RUNS_MAX 32

typedef struct pace_report_config {
    pace_texts runs;    /* the positional arguments: run directories */
    const char *output; /* "-": standard output */
    bool force;         /* replace an existing file */
} pace_report_config;

extern const pace_option pace_report_options[];

/* *bytes is the size of the file, and is set on success. What is no run is PACE_NO_INPUT. */
pace_status pace_report(const pace_report_config *config, const pace_log *log, uint64_t *bytes);

#endif
