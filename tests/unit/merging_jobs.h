/*
 * merging_jobs.h - jobs of workers that train by themselves and merge: ranks that are threads. Include it behind
 * <cmocka.h>.
 */
#ifndef UNIT_MERGING_JOBS_H
#define UNIT_MERGING_JOBS_H

#include "jobs.h"
#include "tiny_texts.h"

static inline void make_set(void **state, tiny_plan plan)
{
    tiny_set set = tiny_make(plan);

    tiny_write(&set, in(state, "set"));
    tiny_free(&set);
}

static inline void make_text_set(void **state, tiny_texts_plan plan)
{
    tiny_texts set = tiny_texts_make(plan);

    tiny_texts_write(&set, in(state, "set"));
    tiny_texts_free(&set);
}

static inline pace_train_config settings(void **state, int64_t workers)
{
    pace_train_config config = {.data = in(state, "set"),
                                .run = in(state, "run"),
                                .model = PACE_MODEL_LOGREG,
                                .cluster.exchange = 2000,
                                .cluster.threads = 1,
                                .cluster.deadline = 60,
                                .optimiser.rule = PACE_ADAGRAD,
                                .length.batch = 100,
                                .length.epochs = 2,
                                .faults.keep = 2,
                                .records.report = PACE_REPORT_OFF,
                                .seed = 4,
                                .force = true};

    lay_out(&config, (layout){PACE_MODE_LOCAL_SGD, workers, -1, -1, false});
    return config;
}

#endif
