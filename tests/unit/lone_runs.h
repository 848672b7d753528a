/*
 * lone_runs.h - sets for logistic regression, and runs of one process that are trained, interrupted and resumed.
 *
 *     make_set(state, "set", layouts[2]);
 *     pace_train_config config = settings(in(state, "set"), in(state, "run"));
 *     train(&config);
 *
 * Include it behind <cmocka.h>.
 */
#ifndef UNIT_LONE_RUNS_H
#define UNIT_LONE_RUNS_H

#include "interrupting.h"
#include "support.h"

#include <cjson/cJSON.h>
#include <paceline/train.h>

#define ROWS 1730 /* no multiple of a batch or a block */
#define IDS  211

/* --- sets and runs --- */

static const tiny_plan layouts[] = {
    {.train = ROWS, .test = 400, .ids = IDS, .columns = 11, .parts = 3, .seed = 1},
    {.train = ROWS, .test = 400, .ids = IDS, .columns = 11, .has_values = true, .parts = 3, .seed = 2},
    {.train = ROWS, .test = 400, .ids = IDS, .parts = 3, .seed = 3},
    {.train = ROWS, .test = 400, .ids = IDS, .has_values = true, .parts = 3, .seed = 4},
};

static inline void make_set(void **state, const char *name, tiny_plan plan)
{
    tiny_set set = tiny_make(plan);

    tiny_write(&set, in(state, name));
    tiny_free(&set);
}

static inline pace_train_config settings(const char *data, const char *run)
{
    return (pace_train_config){.data = data,
                               ONE_PROCESS,
                               .run = run,
                               .optimiser.rule = PACE_ADAGRAD,
                               .optimiser.momentum = 0.9,
                               .length.batch = 100,
                               .length.epochs = 3,
                               .faults.keep = 2,
                               .seed = 7,
                               .force = true};
}

static inline pace_train_result train(const pace_train_config *config)
{
    return train_alone(config);
}

/* --- interruption --- */

static inline void interrupt(pace_train_config config, int64_t step)
{
    interrupt_run(run_alone, config, step);
}

static inline void resume(pace_train_config *config)
{
    config->force = false;
    config->resume = true;
}

/* --- what is left behind --- */

/* A number of the run's summary. */
static inline double in_summary(void **state, const char *name)
{
    char *text;

    assert_ok(pace_train_summary(in(state, "run"), &said_log, &text));
    cJSON *summary = cJSON_Parse(text), *item = cJSON_GetObjectItem(summary, name);

    assert_true(cJSON_IsNumber(item));
    double value = item->valuedouble;

    cJSON_Delete(summary);
    free(text);
    return value;
}

/* Without in(): configurations hold paths that it has made. */
static inline bool is_there(void **state, int64_t step, unsigned incarnation)
{
    char path[512];

    snprintf(path, sizeof path, "%s/run/checkpoints/step-%012ld.%04u/manifest.json", (const char *)*state,
             step, incarnation);
    return pace__exists(path);
}

#endif
