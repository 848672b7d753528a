/*
 * settings.h - what the options of several kinds have in common: checks, defaults, --class-weight.
 *
 * A kind refuses what does not go together (check), and then fills in what was left open (settle), which it
 * recognises by a value that nobody gives: 0, -1 or "auto".
 */
#ifndef MODEL_SETTINGS_H
#define MODEL_SETTINGS_H

#include "model/model.h"

/* PACE_USAGE for what linear models have not: --dropout, --class-weight, --clip. `own` is the kind's name. */
pace_status pace__refuse_network_options(const pace_train_config *config, const char *own,
                                         const pace_log *log);

/* And what it leaves of them, which decides nothing, becomes one value. */
void pace__settle_linear(pace_train_config *config);

/* What models have in common that begin at random and have one update per step; `own` as in "an rnn". */
pace_status pace__check_network(const pace_train_config *config, const char *own, const pace_log *log);

/* The field becomes `value` if it is `open`. */
void pace__choose_integer(int64_t *field, int64_t open, int64_t value);
void pace__choose_real(double *field, double open, double value);
void pace__choose(int *field, int open, int value);

/* Of the model that one begins with: PACE_USAGE if it was trained with another value of an option that decides sizes. */
pace_status pace__same_size(const pace__plan_request *request, const char *option, int64_t here,
                            int64_t there, const pace_log *log);
/* The same of options that are words. */
pace_status pace__same_word(const pace__plan_request *request, const char *option, const char *here,
                            const char *there, const pace_log *log);

/* PACE_USAGE if the text is neither NULL, nor "balanced", nor a weight above 0. */
pace_status pace__check_class_weight(const char *text, const pace_log *log);

/* Weights of a row by its label: "balanced" gives both classes the same sum, and rows 1 on average. */
pace_status pace__class_weights(const pace__plan_request *request, float weight[2], const pace_log *log);

/* The most that a row counts by them. */
double pace__row_weight_max(const float weight[2]);

#endif
