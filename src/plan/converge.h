/*
 * converge.h - how many epochs a loss takes, as a `paceline study converge` of the job has measured it, by mode, batch and
 * workers: what a larger batch and stale gradients cost. From the table.json of its directory.
 *
 *     pace__convergence found;
 *     status = pace__convergence_read("converge", log, &found);
 *     double epochs = pace__epochs_to_loss(&found, &setup, by_columns);     // NAN: it says nothing of such a job
 *
 * 1. Synchronous steps of as many rows learn the same, whoever computes them: of these, the batch alone counts.
 * 2. In other modes workers count, too, and only runs with the same batch are looked at.
 * 3. Between what was measured, a line through logarithms; beyond it, nothing is said.
 */
#ifndef PLAN_CONVERGE_H
#define PLAN_CONVERGE_H

#include "forecast/forecast.h"

#define PACE__CONVERGENCE_POINTS 1024
#define PACE__CONVERGENCE_BYTES  ((size_t)16 << 20)

typedef struct pace__convergence_point {
    int mode;
    double workers, batch, epochs;
} pace__convergence_point;

typedef struct pace__convergence {
    double loss; /* the threshold */
    size_t count;
    pace__convergence_point points[PACE__CONVERGENCE_POINTS];
} pace__convergence;

/* PACE_NO_INPUT: it is not there. PACE_BAD_DATA: it is no table of a study of that kind, or nothing has come to its
 * threshold. */
pace_status pace__convergence_read(const char *directory, const pace_log *log, pace__convergence *made);
/* The same from the text of the table. */
pace_status pace__convergence_parse(const char *text, const char *path, const pace_log *log,
                                    pace__convergence *made);

/* `by_columns`: mode local goes row after row, unless setup->exact. */
double pace__epochs_to_loss(const pace__convergence *found, const pace__setup *setup, bool by_columns);

#endif
