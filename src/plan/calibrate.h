/*
 * calibrate.h - from runs to what is known of a job (predict.h): rows of its data set are sampled (forecast/sample.h), and what
 * work costs is scaled until the model of a step says of each run what its records say.
 *
 * One factor for work by columns (mode local and local-sgd of logistic regression), one for all other: what a run of one
 * kind does not tell, the other has to. Several runs of a kind are averaged.
 */
#ifndef PLAN_CALIBRATE_H
#define PLAN_CALIBRATE_H

#include "plan/predict.h"
#include "plan/source.h"

/* The first source says what is to be trained. Warns where a run was too short to be trusted. */
pace_status pace__calibrate(pace__source *const *sources, size_t count, const pace__given *given,
                            const pace_log *log, pace__calibration *known);

/* The factor by which costs of that kind have to be scaled for the model to say so many rows a second. */
double pace__factor_of(const pace__forecast_input *input, const pace__setup *setup, bool by_columns,
                       double rows_s);
void pace__costs_scale(pace__forecast_input *input, double columns, double steps);

#endif
