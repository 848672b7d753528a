/* interrupting.h - runs that end well, with an error, or because they are stopped when they have come to a step. */
#ifndef UNIT_INTERRUPTING_H
#define UNIT_INTERRUPTING_H

#include "support.h"

#include <paceline/train.h>

/* Of a pace_train_config of one process with one thread: what stands for "not given" is not zero. */
#define ONE_PROCESS                                                                                          \
    .mode = PACE_MODE_LOCAL, .cluster.workers = 1, .cluster.ps = -1, .cluster.staleness = -1,                \
    .cluster.outer_momentum = -1, .cluster.deadline = 60, .cluster.threads = 1

/* In this process alone, through the door. */
static inline pace_train_result train_alone(const pace_train_config *config)
{
    pace_train_result result;

    said_clear();
    assert_ok(pace_train(config, &said_log, NULL, &result));
    return result;
}

static inline void fail_to_train(const pace_train_config *config, pace_status expected, const char *message)
{
    pace_train_result result;

    said_clear();
    assert_failed(pace_train(config, &said_log, NULL, &result), expected, message);
}

typedef struct interrupter {
    _Atomic int stop;
    int64_t at_step;
} interrupter;

static inline void stop_at_step(void *user, const pace_record *record)
{
    interrupter *self = user;
    const pace_field *step = pace_record_find(record, "step");

    if (strcmp(record->kind, "step") == 0 && step && step->value.integer >= self->at_step)
        self->stop = 1;
}

typedef pace_status run_fn(const pace_train_config *config, pace_registry *registry,
                           pace_train_result *result);

/* For interrupt_run: in this process. */
static inline pace_status run_alone(const pace_train_config *config, pace_registry *registry,
                                    pace_train_result *result)
{
    return pace_train(config, &said_log, registry, result);
}

/* Trains until the given step is reported, then raises the stop flag. */
static inline void interrupt_run(run_fn *run, pace_train_config config, int64_t step)
{
    interrupter self = {0, step};
    pace_sink sink = {stop_at_step, &self};
    pace_registry *registry = pace_registry_create();
    pace_train_result result;

    config.stop = &self.stop;
    said_clear();
    pace_registry_attach(registry, &sink);
    assert_failed(run(&config, registry, &result), PACE_INTERRUPTED, "--resume");
    pace_registry_free(registry);
}

#endif
