/*
 * learn.h - what is known of a job that has not run: from a run of some seconds on this machine, or two (trial.h), which are
 * gone when it is done. Machines of the job are taken to be like this one.
 *
 *     pace__learned *learned;
 *     status = pace__learn(&config, &given, PACE__LEARN_ALL, log, &learned);
 *     config.cluster.workers = 8;
 *     status = pace__learned_predict(learned, &config, log, &made);        // made.rows_s, made.cause
 *     pace__learned_free(learned);
 */
#ifndef PLAN_LEARN_H
#define PLAN_LEARN_H

#include "plan/predict.h"

/* Work that is to be predicted. Models whose rows are walked by columns in mode local, and in local-sgd, are learned by that, or
 * by steps of one worker with its keys, or by both; of all others one run tells everything. */
enum { PACE__LEARN_COLUMNS, PACE__LEARN_STEPS, PACE__LEARN_ALL };

typedef struct pace__learned pace__learned;

/* Fails as training with one worker would. PACE_INTERRUPTED, without a message, if config->stop says so. */
pace_status pace__learn(const pace_train_config *config, const pace__given *given, int kinds,
                        const pace_log *log, pace__learned **learned);
void pace__learned_free(pace__learned *learned); /* NULL is allowed */

/* Live as long as it does. `rows` are those that the config would train. */
const pace__calibration *pace__learned_known(const pace__learned *learned);
struct pace__source *pace__learned_source(const pace__learned *learned);

typedef struct pace__outlook {
    pace__setup setup;
    int processes;
    pace__prediction made;
} pace__outlook;

/* The job with these options, on the machines of its --hosts or on this one. PACE_USAGE: it cannot be, or has no room. */
pace_status pace__learned_predict(const pace__learned *learned, const pace_train_config *config,
                                  const pace_log *log, pace__outlook *outlook);

#endif
