/* kind.h - the recurrent network as a kind of model (model/model.h): its own part of a plan. */
#ifndef MODEL_RNN_KIND_H
#define MODEL_RNN_KIND_H

#include "model/model.h"
#include "model/rnn/rnn.h"

typedef struct pace__rnn_own {
    pace__rnn_config config;
    double word_dropout; /* fraction of words that are taken for unknown ones, in training */
} pace__rnn_own;

/* On texts; words and length of the config are those of `data`. */
pace_status pace__rnn_model_plan(const pace__dataset *data, const pace__rnn_config *config,
                                 double word_dropout, const pace_log *log, pace__model_plan *plan);

/* rnn_settings.c */
extern const pace_option pace__rnn_options[];
pace_status pace__rnn_check(const pace_train_config *config, const pace_log *log);
void pace__rnn_settle(pace_train_config *config, const pace__dataset *data);
bool pace__rnn_has_logloss(const pace_train_config *config);

extern const pace__kind pace__kind_rnn;

#endif
