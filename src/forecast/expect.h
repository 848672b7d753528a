/*
 * expect.h - what a job of several processes is expected to reach, beside one machine alone: said before it starts, and asked by who
 * chooses how many processes there are to be.
 */
#ifndef FORECAST_EXPECT_H
#define FORECAST_EXPECT_H

#include "forecast/forecast.h"
#include "job/job.h"

/* How fast it is expected to train on so many hosts, and one of them alone; a warning if that is faster (forecast.h).
 * Computes some rows for it. */
pace_status pace__job_say_expected(pace__job *job, int hosts);
/* The same as an answer, of a job with a plan and its data set alone: is it expected to be faster than one machine, or is nothing
 * known? `network`: its links. */
bool pace__job_is_worth_hosts(const pace__job *job, int hosts, const pace__machine *network);

#endif
