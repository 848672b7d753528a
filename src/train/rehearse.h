/*
 * rehearse.h - the dry run of a job of several processes.
 *
 * What a job of a thousand processes needs follows from its plan: one process tells it, this one. Whether they can be
 * started is a matter of machines: one rank on each of them is enough to see that the launcher comes through to it, that
 * it has the same program, and, where there would be a worker, that it sees the same data set.
 */
#ifndef TRAIN_REHEARSE_H
#define TRAIN_REHEARSE_H

#include "job/job.h"

/* Says what each process of the job would hold, and starts one for each host. The plan of the cluster is made. A data set
 * that only the hosts have is described by the first of them, for as many processes as there are hosts. */
pace_status pace__rehearse(pace__job *job, pace_train_result *result);

#endif
