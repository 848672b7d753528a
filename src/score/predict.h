/*
 * predict.h - what the kinds of predict share: where the predictions go. Internal to score.
 */
#ifndef SCORE_PREDICT_H
#define SCORE_PREDICT_H

#include "data/formats/parse.h"
#include "files/output.h"
#include "score/explain.h"
#include "score/scorer.h"

#include <paceline/score.h>
#include <stdio.h>

/* Where the text of a review is, unless another field is named. */
#define PACE__TEXT_FIELD "reviewText"

/* A file, which appears whole or not at all, or something else, which is written as it is (files/output.h). */
typedef struct pace__predictions {
    FILE *file;
    pace__output output;
    uint64_t count;
    const pace_log *log;
} pace__predictions;

/* `output`: NULL or "-" is standard output. A file that is there is replaced with `force`, but none of the inputs. */
pace_status pace__predictions_open(const char *output, bool force, const pace_texts *inputs,
                                   const pace_log *log, pace__predictions *to);
/* A line with the probability, and with what was explained, if there is anything (NULL). What goes wrong, flush tells. */
void pace__predictions_put(pace__predictions *to, double logit, pace__explainer *why);
pace_status pace__predictions_flush(pace__predictions *to);
/* Keeps the file if `status`, which is returned, is PACE_OK. */
pace_status pace__predictions_close(pace__predictions *to, pace_status status);

/* A record of progress; not beside lines that go to standard output, which show how far it is. `unit`: "pictures". */
void pace__predictions_show(const pace__predictions *to, uint64_t done, uint64_t total, const char *unit,
                            pace_registry *registry);

/* Says that rows are missing, if any are. */
void pace__predictions_warn(const pace__bad_rows *bad);

/* *rows is set on success. */
pace_status pace__predict_rows(pace__scorer *scorer, const pace_predict_config *config, const pace_log *log,
                               pace_registry *registry, uint64_t *rows);
pace_status pace__predict_texts(pace__scorer *scorer, const pace_predict_config *config, const pace_log *log,
                                pace_registry *registry, uint64_t *rows);
pace_status pace__predict_images(pace__scorer *scorer, const pace_predict_config *config, const pace_log *log,
                                 pace_registry *registry, uint64_t *rows);

#endif
