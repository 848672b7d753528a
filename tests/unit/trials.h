/*
 * trials.h - a small job of each kind of model with rows of its own, for tests of what all of them have in common.
 */
#ifndef TRIALS_H
#define TRIALS_H

#include "picture_jobs.h"

typedef struct trial {
    int model;
    const char *set;
    int64_t batch;
    double l2;
} trial;

static inline int make_sets(void **state)
{
    tiny_set clicks =
        tiny_make((tiny_plan){.train = 430, .test = 50, .ids = 40, .columns = 5, .parts = 2, .seed = 3});

    if (make_directory(state))
        return -1;
    tiny_write(&clicks, in(state, "clicks"));
    tiny_free(&clicks);
    make_texts(state, "texts");
    make_set(state, "pictures", plain_set);
    return 0;
}

static inline pace_train_config config_of(void **state, const trial *what)
{
    pace_train_config config = settings(state);

    config.data = in(state, what->set);
    config.model = what->model;
    config.length.batch = what->batch;
    config.length.epochs = 3;
    config.optimiser.l2 = what->l2;
    config.own.logreg.ngram = 1;
    if (what->model == PACE_MODEL_RNN) {
        config.own.rnn = (pace_rnn_options){
            .pooling = PACE_POOL_AUTO, .dense = -1, .word_dropout = -1, .focal = 2, .embed = 6, .hidden = 5};
    }
    return config;
}

#endif
