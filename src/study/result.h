/*
 * result.h - what came of one cell: figures under names, how it ended, and a curve; as a line of results.jsonl.
 *
 *     {"section":"modes","cell":"mode=ps-sync ...","repeat":1,"settings":{...},"status":0,
 *      "values":{"seconds":1.5,...},"bottleneck":"network","curve":{"of":"test","t":[...],"epoch":[...],"loss":[...]}}
 *
 * A cell that has failed has its exit code as status, and as "error" the last thing that it said.
 */
#ifndef STUDY_RESULT_H
#define STUDY_RESULT_H

#include "study/matrix.h"

#include <stdio.h>

struct cJSON;

typedef enum pace__metric {
    PACE__M_SECONDS, /* of training, or of prep: what a table calls time */
    PACE__M_WALL,    /* from the start of the process to its end */
    PACE__M_ROWS_S,
    PACE__M_ROWS,
    PACE__M_STEPS,
    PACE__M_EPOCHS,
    PACE__M_BATCH,
    PACE__M_ACCURACY, /* of test rows */
    PACE__M_AUC,
    PACE__M_LOGLOSS,
    PACE__M_F1,
    PACE__M_TRAIN_LOSS,
    PACE__M_CPU_S,  /* of all processes */
    PACE__M_MEMORY, /* the largest of each process, all together */
    PACE__M_SENT,   /* in training steps, by all ranks */
    PACE__M_RECEIVED,
    PACE__M_DISK_READ,
    PACE__M_DISK_WRITTEN,
    PACE__M_IMBALANCE, /* of bytes between servers: the largest over the mean */
    PACE__M_RESTARTS,
    PACE__M_INPUT_BYTES,     /* prep */
    PACE__M_EXPECTED_ROWS_S, /* said beforehand, by whoever can */
    PACE__METRICS
} pace__metric;

extern const char *const pace__metric_names[PACE__METRICS]; /* in "values" */

#define PACE__CURVE_MAX      200
#define PACE__RESULT_TEXT    512
#define PACE__BOTTLENECK_MAX 24

typedef struct pace__curve {
    size_t count;
    bool of_test; /* log-loss of what is scored on the way, test or validation rows; else the training loss */
    double t[PACE__CURVE_MAX], epoch[PACE__CURVE_MAX], loss[PACE__CURVE_MAX];
} pace__curve;

typedef struct pace__result {
    size_t section, cell; /* which of the study's */
    int repeat;           /* from 1 */
    int status;           /* 0: it went well */
    char error[PACE__RESULT_TEXT];
    char bottleneck[PACE__BOTTLENECK_MAX]; /* "network"; "": not known */
    double value[PACE__METRICS];           /* NAN: not there */
    pace__curve curve;
} pace__result;

void pace__result_clear(pace__result *result);

/* Of a line: who it belongs to is asked by names. NULL when out of memory; to be freed with cJSON_Delete. */
struct cJSON *pace__result_to_json(const pace__result *result, const char *section,
                                   const pace__cell_of *cell);
/* Takes all but section and cell; what is missing or odd is NAN, "" or nothing. */
void pace__result_from_json(const struct cJSON *line, pace__result *result);

/* What a run directory tells, finished or not; what a prep printed with --json. */
pace_status pace__measure_run(const char *run, const pace_log *log, pace__result *result);
pace_status pace__measure_prep(const char *json, const pace_log *log, pace__result *result);

#endif
