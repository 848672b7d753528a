/* kind.h - logistic regression as a kind of model (model/model.h): its own part of a plan. */
#ifndef MODEL_LINEAR_KIND_H
#define MODEL_LINEAR_KIND_H

#include "model/linear/logreg.h"
#include "model/linear/ngrams.h"
#include "model/model.h"

typedef struct pace__logreg_own {
    unsigned ngram; /* on texts: words that a feature has at most */
} pace__logreg_own;

/* On sparse rows or texts. */
pace_status pace__logreg_model_plan(const pace__dataset *data, unsigned ngram, const pace_log *log,
                                    pace__model_plan *plan);

/* The parameters that such a plan has, with first values; to be released. */
pace_status pace__logreg_make(const pace__model_plan *plan, pace__logreg *model, const pace_log *log);

/* *rows as the model sees them: texts become rows of features, which are in `text` until the next call; others are that already. */
pace_status pace__logreg_features(const pace__model_plan *plan, const pace__rows **rows,
                                  pace__ngram_rows *text, const pace_log *log);

/* logreg_settings.c */
extern const pace_option pace__logreg_options[];
pace_status pace__logreg_check(const pace_train_config *config, const pace_log *log);
void pace__logreg_settle_options(pace_train_config *config, const pace__dataset *data);

extern const pace__kind pace__kind_logreg;

#endif
