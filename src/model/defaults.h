/*
 * defaults.h - rates and passes that fit a data set: functions of its size alone, so that every process of a job, and every
 * start of a run, finds the same. docs/decisions/0063 has the rows that they were chosen on.
 */
#ifndef MODEL_DEFAULTS_H
#define MODEL_DEFAULTS_H

#include "math/dataset.h"

#include <stdbool.h>

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

/* AdaGrad on the same rows by a factorization machine: pairs of entries move a prediction, too, so the rate is half as high. */
double pace__pairs_rate(const pace__dataset *data);

/*
 * Texts that are long: rows have room for more words than prep gives to short ones. What a recurrent network has read
 * at the beginning of such a text is forgotten at its end, so it does better with the mean over all words, read in both directions.
 */
bool pace__long_texts(const pace__dataset *data);

/* Passes of a recurrent network over texts; of long ones more, and of few of them, which are few steps, more still. */
int64_t pace__text_epochs(const pace__dataset *data, int64_t batch);

/* Passes over pictures, of a network that begins at random: of few, which are few steps, there are more. */
int64_t pace__picture_epochs(const pace__dataset *data, int64_t batch);

#endif
