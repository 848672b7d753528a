/*
 * progress.h - "progress" records (see <paceline/registry.h>) as something to look at.
 *
 * On a terminal: one live line, at most ten times a second, of as much as fits. Elsewhere: a plain line once a phase has
 * lasted for a second, and then every ten. In both cases a phase that took longer than two seconds leaves one line when
 * it is complete. --quiet: nothing.
 *
 * The rate, and with it the time that is left, is that of the time in which the phase moved, of this start: scores and
 * checkpoints that it stood still for (still_s) do not count, nor does what an earlier start has done. The very
 * first rows, which wait for cold files and for peers, count only until there are others; of a young phase it is the mean
 * of all these, later rather that of the last seconds.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "console.h"

#include <paceline/registry.h>

/* Further phases are not shown. */
#define CLI_PHASES_MAX 16

typedef struct cli_phase {
    char name[32], unit[16], extra[128];
    double start_s, measured_s, last_s; /* first record, last measurement, last record */
    double still_s;                     /* that it had stood still for at measured_s */
    double first, measured, done;       /* what was done at these times */
    double total;                       /* 0: unknown */
    double before;                      /* of `done`, by an earlier start */
    double rate, rate_s; /* units per second; of how much time, where what is past counts less */
    uint64_t measurements;
    bool complete, shown;
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

/* Its line on a terminal of so many columns: what does not fit is left out, not cut. */
void cli_progress_line(const cli_phase *phase, int columns, char line[CLI_LINE_MAX]);

/* What a phase that is complete leaves: "train  2,000 of 3,000 rows in 9.71 s, 206 rows/s  loss 0.45", where "of" is
 * for what an earlier start had begun. */
void cli_progress_sum(const cli_phase *phase, char line[CLI_LINE_MAX]);

/* The job is over: removes the live line, and sums up the last phase if it went well. */
void cli_progress_end(cli_progress *progress, bool success);

#endif
