/*
 * sample.h - what the rows of a data set take, found out by taking some: keys of 1, 4, 16, ... rows of the order, and the
 * CPU time of a gradient on one thread. The rest of a workload (forecast.h) is known from the plan.
 *
 *     pace__workload work = pace__workload_of(job);
 *     if (pace__sample_rows(job, network_rows, &work)) ... pace__forecast_of ...
 *
 * What fails here fails in silence, since a forecast is nothing that a job ends for: who trains meets what is damaged by
 * itself, and says where.
 */
#ifndef FORECAST_SAMPLE_H
#define FORECAST_SAMPLE_H

#include "forecast/forecast.h"
#include "job/job.h"

/* Of networks: a text takes a thousand times as long as a line of clicks. */
#define PACE__SAMPLE_NETWORK_ROWS 32

/* All that the plan of an open job tells. */
pace__workload pace__workload_of(const pace__job *job);

/* A plan as a setup, on so many hosts. */
pace__setup pace__setup_of(const pace__job_plan *plan, int hosts);

/* What units of work cost with the kernels that this process computes with. */
pace__unit_costs pace__job_costs(const pace__job *job);

/* Adds the curve of keys and row_ns, from up to so many rows of a network (of others, as many as are worth it). False: they
 * could not be read in time. */
bool pace__sample_rows(const pace__job *job, uint64_t network_rows, pace__workload *work);

#endif
