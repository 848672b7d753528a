/*
 * click_model.h - the population that synthetic click logs are drawn from.
 *
 * A row is 13 integers, 26 categories and a label. The label's log-odds are a sum over the columns: a weight
 * for each category, a smooth function of log(1 + value) for each integer (partly not monotone), and weights
 * for missing values. All of that is fixed: two files with different seeds are two samples of one population.
 * A hidden variable per row shifts the integers and steers some of the categories, so columns are correlated;
 * it has no weight of its own.
 *
 * Drawing uses no function of the C library, so rows are the same on every machine.
 */
#ifndef GEN_CLICK_MODEL_H
#define GEN_CLICK_MODEL_H

#include "base/random.h"
#include "data/formats/encoding.h"

#include <stdbool.h>

/* In place of an integer or a rank: the field is empty. */
#define PACE__MISSING_INTEGER INT32_MIN
#define PACE__MISSING_RANK    UINT32_MAX

#define PACE__CLICK_INTEGER_MAX 99999999

typedef struct pace__click_row {
    int32_t integers[PACE__CRITEO_INTEGERS];
    uint32_t ranks[PACE__CRITEO_CATEGORIES]; /* 0: the column's most frequent category */
    double logs[PACE__CRITEO_INTEGERS];      /* log(1 + integer); meaningless if missing or negative */
    bool clicked;
    double log_odds; /* of `clicked`, as planted */
    double loss;     /* -log of the probability that the planted model gives to `clicked` */
} pace__click_row;

typedef struct pace__click_model pace__click_model;

/* NULL when out of memory. Never changed after it was made: threads share it. */
pace__click_model *pace__click_model_create(void);
void pace__click_model_free(pace__click_model *model); /* NULL is allowed */

void pace__click_draw(const pace__click_model *model, pace__random *random, pace__click_row *row);

/* How many categories a column 0 .. 25 has. */
uint32_t pace__click_cardinality(unsigned column);
/* For each column, how many categories the columns in front of it have together. */
const uint32_t *pace__click_offsets(const pace__click_model *model);

#endif
