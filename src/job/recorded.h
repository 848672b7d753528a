/*
 * recorded.h - a run as it was: the options that its config.yaml tells, read back.
 *
 *     pace__recorded *was = calloc(1, sizeof *was);
 *     status = pace__recorded_read("run1", was, log);
 *     ... was->config ...
 *     pace__recorded_release(was);                      // after a failure, too
 */
#ifndef JOB_RECORDED_H
#define JOB_RECORDED_H

#include <paceline/train.h>

/* Its texts belong to `options`. */
typedef struct pace__recorded {
    pace_train_config config;
    pace_model_options kinds[PACE_MODELS_MAX];
    int kernels;
    pace_options *options;
} pace__recorded;

/* PACE_BAD_DATA if the file is not what the run has written. */
pace_status pace__recorded_read(const char *run, pace__recorded *was, const pace_log *log);
void pace__recorded_release(pace__recorded *was); /* a zeroed one is allowed */

#endif
