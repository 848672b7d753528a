/*
 * mistakes.h - the pictures of a data set that a model takes for another class: the surest of its mistakes,
 * by name, and all of them in a file. Memory does not grow with their number. Internal to score.
 *
 *     pace__mistakes mistakes;
 *     status = pace__mistakes_open(&store, &names, config, &mistakes, log);
 *     ... pace__scoring.mistake = pace__mistakes_add, .user = &mistakes ...
 *     status = pace__mistakes_close(&mistakes, status, &result);
 *
 * The file has a line for each, in the order of the rows: path, class, what it was taken for, the probability
 * of that. It appears whole or not at all.
 */
#ifndef SCORE_MISTAKES_H
#define SCORE_MISTAKES_H

#include "data/picture/class_names.h"
#include "data/store/store.h"
#include "metrics/worst.h"
#include "score/predict.h"

typedef struct pace__mistakes {
    /* private */
    const pace__store *store;
    const pace__class_names *classes;
    pace__predictions file; /* of all */
    pace__mistake *pending; /* not yet in the file; NULL: no file is wanted */
    size_t pending_count;
    pace__worst worst;
    const pace_log *log;
} pace__mistakes;

/* config->errors may be NULL. Store, names and config must outlive it. */
pace_status pace__mistakes_open(const pace__store *store, const pace__class_names *names,
                                const pace_eval_config *config, pace__mistakes *mistakes,
                                const pace_log *log);
pace__mistake_fn pace__mistakes_add;
/* Keeps the file, and sets mistakes, worst and worst_count of the result, if `status`, which is returned, is
 * PACE_OK. */
pace_status pace__mistakes_close(pace__mistakes *mistakes, pace_status status, pace_eval_result *result);

#endif
