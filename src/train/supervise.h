/*
 * supervise.h - a job of several processes, started through mpirun, and again when it has lost one.
 */
#ifndef TRAIN_SUPERVISE_H
#define TRAIN_SUPERVISE_H

#include "job/job.h"

/* Through mpirun, again and again if need be. The plan of the cluster is made. */
pace_status pace__supervise(pace__job *job, pace_train_result *result);
/* train.c: as rank 0, in this process. Whoever else the plan has must not be needed. */
pace_status pace__run_without_others(pace__job *job, pace_train_result *result);
/* How long the first word of a rank may take: programs are started, data sets opened, connections made. */
double pace__first_contact_s(const pace_train_config *config);

#endif
