/*
 * columns.h - mode local of a linear model on sparse rows: one process, threads that split the columns. (Other models,
 * and texts, are a cluster of one in mode local: roles/process.h.)
 */
#ifndef COLUMNS_COLUMNS_H
#define COLUMNS_COLUMNS_H

#include "job/job.h"

/* How it is led; see walk.h for what the threads do. */
extern const pace__strategy pace__columns_strategy;

#endif
