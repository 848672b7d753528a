/*
 * progress.h - "progress" records (see <paceline/registry.h>) as something to look at.
 *
 * On a terminal: one live line, at most ten times a second. Elsewhere: a plain line every ten seconds. In
 * both cases a phase that took longer than two seconds leaves one line when it is complete. --quiet: nothing.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "console.h"

#include <paceline/registry.h>

/* Further phases are not shown. */
#define CLI_PHASES_MAX 16

typedef struct cli_phase {
    char name[32], unit[16], extra[128];
    double start_s, measured_s, last_s; /* first record, last change of `rate`, last record */
    double first, measured, done;       /* what was done at these times */
    double total;                       /* 0: unknown */
    double rate;                        /* smoothed, units per second */
    bool complete;
} cli_phase;

typedef struct cli_progress {
    cli_console *console;
    double shown_s; /* when something was last shown */
    cli_phase *current;
    cli_phase phases[CLI_PHASES_MAX];
    int phase_count;
} cli_progress;

void cli_progress_init(cli_progress *progress, cli_console *console);

/* The record function of a pace_sink whose user is the progress. */
void cli_progress_record(void *user, const pace_record *record);

/* The job is over: removes the live line, and sums up the last phase if it went well. */
void cli_progress_end(cli_progress *progress, bool success);

#endif
