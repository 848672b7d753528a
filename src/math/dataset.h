/*
 * dataset.h - what a model is told of a data set, and what it carries along for whoever uses it later.
 *
 * `data` and `model` meet here and in batch.h: neither includes the other. The description is plain numbers,
 * the same on every machine of a job: it travels between ranks as it is, so that a server, which has no data
 * set, plans the same model (pace__store_describe makes it; pace__describe_encoding makes it from what a model
 * file says, where there are no rows yet).
 *
 * The origin is what belongs to a model without being part of it: how raw rows become those it knows, as
 * text, and what that refers to. A model writes it to its file and never looks into it.
 */
#ifndef MATH_DATASET_H
#define MATH_DATASET_H

#include <paceline/log.h>
#include <stddef.h>
#include <stdint.h>

/* What rows are. */
enum { PACE__ROWS_SPARSE, PACE__ROWS_TEXT, PACE__ROWS_PICTURES, PACE__ROWS_FEATURES };

typedef struct pace__dataset {
    uint32_t kind; /* PACE__ROWS_* */
    uint32_t columns, row_entries_max;
    uint32_t ids;        /* of rows: 0 .. ids, and of sparse rows `ids` itself, "never seen in training" */
    uint32_t has_values; /* some value is not 1 */
    uint32_t like;       /* training rows, too, may have the id "unseen" */
    uint32_t height, width, channels, classes; /* of pictures, and of those that features were made of */
    uint64_t
        features; /* of sparse rows: original ids are below it; of texts: the ids; else floats of a row */
    uint64_t class_names;                      /* checksum */
    uint64_t rows, test_rows, validation_rows; /* 0: there are none yet */
    uint64_t entries;                          /* of all training rows */
    uint64_t positives; /* training rows with label 1, or of class 1; UINT64_MAX: unknown */
} pace__dataset;

/* Understands the text of an encoding; `where` names its file in messages. */
typedef pace_status pace__describe_fn(const char *encoding, const char *where, pace__dataset *data,
                                      const pace_log *log);

struct pace__rows;
/* Anything but PACE_OK ends the reading. */
typedef pace_status pace__take_rows_fn(void *user, const struct pace__rows *rows);

/* What there is none of is NULL. */
typedef struct pace__origin {
    char *encoding; /* how raw rows become these: one line of JSON */
    char *vocabulary;
    size_t vocabulary_size;
    char *class_names;
    size_t class_names_size;
    uint64_t *original; /* (ids) of sparse rows: their ids before they were numbered */
    /* Of sparse rows: what the model knows besides, of one that it began with; the lender's. No id is in both lists. */
    uint32_t carried;
    const uint64_t *carried_ids;  /* (carried) original ones, rising */
    const float *carried_weights; /* (carried, floats of a key) */
    /* Takes training rows, the first in stored order, up to rows_max of them. */
    pace_status (*read_rows)(const void *set, uint64_t rows_max, pace__take_rows_fn *take, void *user,
                             const pace_log *log);
    const void *set;
} pace__origin;

/* What the file of a model on sparse rows lists: the data set's ids, `own` of them, and behind these what is carried. */
static inline uint64_t pace__origin_id(const pace__origin *origin, uint32_t own, uint32_t place)
{
    return place < own ? origin->original[place] : origin->carried_ids[place - own];
}

#endif
