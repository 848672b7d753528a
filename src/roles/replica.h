/*
 * replica.h - allreduce: the whole model on a worker, moved on by the sums of all workers, a step at a time.
 *
 * All replicas stay the same bits: everyone gets the same sums, and adds them in the same order.
 */
#ifndef ROLES_REPLICA_H
#define ROLES_REPLICA_H

#include "roles/buckets.h"
#include "roles/process.h"

/* The step's sums are merged in the client, and, as far as they are dense, under way in the buckets. */
pace_status pace__replica_update(pace__process *process, pace__client *client, pace__buckets *dense,
                                 uint64_t step);

#endif
