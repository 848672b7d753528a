/*
 * outcome.h - what came of one run of a candidate: how it ended and what it scored, as a line of results.jsonl.
 *
 *     {"candidate":"lr=0.05 l2=0","part":9,"steps":195,"status":0,"seconds":0.8,"went_on":false,
 *      "settings":{"lr":"0.05","l2":"0"},"validation":{"n":1000,"logloss":0.49,...},"test":{...}}
 *
 * A run that has failed has its exit code as status, and as "error" the last thing that it said. Scores of the test rows are
 * kept for the one that wins, and nobody else looks at them.
 */
#ifndef TUNE_OUTCOME_H
#define TUNE_OUTCOME_H

#include "tune/candidates.h"

struct cJSON;

/* What is held against each other. All but the log-loss are the better the higher they are. */
typedef enum pace__score {
    PACE__SCORE_LOGLOSS,
    PACE__SCORE_ACCURACY,
    PACE__SCORE_AUC,
    PACE__SCORE_F1,
    PACE__SCORES
} pace__score;

extern const char *const pace__score_names[PACE__SCORES];  /* in files */
extern const char *const pace__score_titles[PACE__SCORES]; /* for people */

typedef struct pace__scored {
    double n; /* rows; 0: there are no scores */
    double value[PACE__SCORES];
} pace__scored;

#define PACE__OUTCOME_TEXT 512
#define PACE__SETTING_TEXT 64

typedef struct pace__outcome {
    bool there; /* else nothing of the rest */
    unsigned part;
    int status; /* 0: it went well */
    bool went_on;
    int64_t steps;
    double seconds; /* of this process, from its start to its end */
    char error[PACE__OUTCOME_TEXT];
    char settings[PACE__TRIES_MAX][PACE__SETTING_TEXT]; /* what each tried option came to; "": not known */
    pace__scored validation, test;
} pace__outcome;

/* Lower is better; NAN: it has failed, or has no such score. */
double pace__outcome_loss(const pace__outcome *outcome, pace__score score);

/* Will another try end otherwise? Not if it was refused, has found bad data, or has diverged. */
bool pace__outcome_is_final(const pace__outcome *outcome);

/* NULL when out of memory; to be freed with cJSON_Delete. */
struct cJSON *pace__outcome_to_json(const pace__outcome *outcome, const pace__tries *tries,
                                    const char *candidate);
/* What is missing or odd is nothing. False: it is no outcome. */
bool pace__outcome_from_json(const struct cJSON *line, const pace__tries *tries, pace__outcome *outcome);

struct cJSON *pace__scored_to_json(const pace__scored *scored);

/* What the run directory of a run that has ended well tells. */
pace_status pace__outcome_measure(const char *run, const pace__tries *tries, const pace_log *log,
                                  pace__outcome *outcome);

#endif
