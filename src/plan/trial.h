/*
 * trial.h - a run of some seconds to learn from, where there is none: one process, in a temporary directory.
 *
 *     char *run;
 *     status = pace__trial_run(&config, PACE_MODE_LOCAL, log, &run);
 *     ... pace__source_open(run, ...) ...
 *     pace__trial_remove(run);
 */
#ifndef PLAN_TRIAL_H
#define PLAN_TRIAL_H

#include <paceline/train.h>

/* It trains for so long, and until so many steps were recorded if that does not take too long; or to the end of what there is
 * if that comes before. */
#define PACE__TRIAL_S      3.0
#define PACE__TRIAL_STEPS  8
#define PACE__TRIAL_MOST_S 15.0

/* What `config` is about, by one worker: in mode local, or by steps and keys (ps-sync). How long it trains, what it records
 * and who else there would be is left out. PACE_INTERRUPTED, without a message, if config->stop says so. */
pace_status pace__trial_run(const pace_train_config *config, int mode, const pace_log *log, char **run);
void pace__trial_remove(char *run); /* and frees the name; NULL is allowed */

#endif
