/*
 * localsgd.h - mode local-sgd: each worker trains rows of its own on a replica of its own, and all merge what they have
 * learned (shares/rounds.h says when).
 *
 *     logistic regression   on sparse rows by the block rule, on texts by the exact rule (by_rows.c); hot.h and flush.h merge
 *     networks              by steps of its own (by_steps.c); average.h merges
 *
 * Everything else is as in the other modes of several processes (roles/process.h): who greets whom, who writes which part
 * of a checkpoint, how it ends. Clean states are flushes. Between them a job that is to stop goes back to the last one:
 * the owners still have it, and the rows behind it are trained again.
 */
#ifndef LOCALSGD_LOCALSGD_H
#define LOCALSGD_LOCALSGD_H

#include "roles/process.h"

/* A worker's part: in the place of roles/worker.c. */
extern const pace__craft pace__localsgd;

/* The chief goes on when all workers have come here. Before it saves or scores tables, which are asked for from those who hold
 * them: one that still waits for others in a flush would give what it had before. */
pace_status pace__localsgd_meet(pace__process *process);

/* Which it is, by the plan: */
extern const pace__craft pace__localsgd_by_rows, pace__localsgd_by_steps;

#endif
