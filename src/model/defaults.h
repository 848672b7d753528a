/*
 * defaults.h - rates and passes that fit a data set: functions of its size alone, so that every process of a job, and every
 * start of a run, finds the same. docs/decisions/0063 has the rows that they were chosen on.
 */
#ifndef MODEL_DEFAULTS_H
#define MODEL_DEFAULTS_H

#include "math/dataset.h"

/*
 * AdaGrad on sparse rows, row after row. A row moves all its parameters at once, so what it moves its prediction by grows with
 * the number of its entries, and the best rate falls with it. Rows with values other than 1, of which nobody knows how large they are, and
 * sets that are not there yet have the rate of 40 entries.
 */
double pace__sparse_rate(const pace__dataset *data);

/*
 * Passes over sparse rows: up to 10, half a million rows in all, where rows are short and there are ten or more of them for each
 * parameter. Long rows are learned by heart, even if parameters are few.
 */
int64_t pace__sparse_epochs(const pace__dataset *data);

#endif
