/*
 * wrong_rows.h - the rows of texts or clicks that a model gets wrong, for people to read. Internal to score.
 *
 *     pace__wrong_rows wrong;
 *     status = pace__wrong_rows_open(&store, &scorer, PACE__TEST, config, PACE__WRONG_BYTES_MAX, &wrong, log);
 *     ... pace__scoring.mistake = pace__wrong_rows_add, .user = &wrong ...
 *     status = pace__wrong_rows_close(&wrong, status);
 *
 * The file has a line for each, the surest mistake first, of equal ones the first row: the part's file and the row in
 * its set, from 0; the label; the probability of label 1; and the row itself, words or features with blanks between.
 * It appears whole or not at all.
 *
 * Lines are kept until all rows are scored, the surest, as many as bytes_max hold: memory does not grow with the
 * data set. That there were more is said.
 */
#ifndef SCORE_WRONG_ROWS_H
#define SCORE_WRONG_ROWS_H

#include "metrics/scoring.h"
#include "score/predict.h"

#define PACE__WRONG_BYTES_MAX ((size_t)256 << 20)

typedef struct pace__wrong_row {
    double probability; /* of the label that it was taken for */
    uint64_t row;
    char *line;
    size_t size;
} pace__wrong_row;

typedef struct pace__wrong_rows {
    /* private */
    const pace__store *store;
    const pace__scorer *scorer;
    int set;
    uint64_t *original; /* of clicks: the ids that rows stand for */
    pace__predictions file;
    pace__wrong_row *rows; /* a heap whose root is the least sure */
    size_t count, room, bytes, bytes_max;
    uint64_t dropped;
    pace__wrong_row surest_dropped; /* nothing less sure is kept any more */
    const pace_log *log;
} pace__wrong_rows;

/* config->errors is a file; `set` is the store's that is scored. Store, scorer and config must outlive it. */
pace_status pace__wrong_rows_open(const pace__store *store, const pace__scorer *scorer, int set,
                                  const pace_eval_config *config, size_t bytes_max, pace__wrong_rows *wrong,
                                  const pace_log *log);
pace__mistake_fn pace__wrong_rows_add;
/* Keeps the file if `status`, which is returned, is PACE_OK. */
pace_status pace__wrong_rows_close(pace__wrong_rows *wrong, pace_status status);

#endif
