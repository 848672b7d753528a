#include "plan/learn.h"

#include "forecast/sample.h"
#include "plan/calibrate.h"
#include "plan/trial.h"

#include <stdlib.h>

#define RUNS_MAX 2

struct pace__learned {
    pace__source *sources[RUNS_MAX];
    char *runs[RUNS_MAX];
    size_t count;
    pace__calibration known;
};

static pace_status add_run(pace__learned *self, const pace_train_config *config, int mode,
                           const pace_log *log)
{
    size_t place = self->count;
    pace_status status = pace__trial_run(config, mode, log, &self->runs[place]);

    if (!status)
        status = pace__source_open(self->runs[place], NULL, log, &self->sources[place]);
    if (!status)
        self->sources[self->count++]->name = "a short run";
    return status;
}

/* How long the options would train, and how often they save. */
static pace_status take_length(pace__learned *self, const pace_train_config *config, const pace_log *log)
{
    pace_train_config settled = *config;
    pace__job_plan plan = {0};

    settled.mode = self->sources[0]->was.config.mode;
    settled.cluster = self->sources[0]->was.config.cluster;
    settled.faults.inject = NULL; /* of roles that one process has not */
    pace_status status = pace__plan_cluster(&settled, log, &plan);

    if (!status)
        status = pace__plan_make(&settled, &self->sources[0]->data, &(pace__planner){0}, log, &plan);
    if (!status) {
        self->known.rows = (double)pace__plan_rows_before(&plan, plan.steps);
        self->known.input.work.order = plan.order;
        self->known.input.work.steps = plan.steps;
    }
    self->known.save_every_s = config->faults.checkpoint_seconds;
    self->known.save_every_steps = (double)config->faults.checkpoint_every;
    pace__plan_release(&plan);
    return status;
}

pace_status pace__learn(const pace_train_config *config, const pace__given *given, int kinds,
                        const pace_log *log, pace__learned **learned)
{
    pace__learned *self = calloc(1, sizeof *self);

    if (!self)
        return pace_fail(log, PACE_FAILED, "out of memory");
    bool has_both = pace__kind_at(config->model)->by_columns;
    int first = has_both && kinds == PACE__LEARN_STEPS ? PACE_MODE_PS_SYNC : PACE_MODE_LOCAL;
    pace_status status = add_run(self, config, first, log);

    if (!status && kinds == PACE__LEARN_ALL && self->sources[0]->job.plan.by_columns)
        status = add_run(self, config, PACE_MODE_PS_SYNC, log);
    if (!status)
        status = pace__calibrate(self->sources, self->count, given, log, &self->known);
    if (!status)
        status = take_length(self, config, log);
    if (status)
        pace__learned_free(self);
    else
        *learned = self;
    return status;
}

void pace__learned_free(pace__learned *learned)
{
    if (!learned)
        return;
    for (size_t i = 0; i < learned->count; i++)
        pace__source_close(learned->sources[i]);
    for (size_t i = 0; i < RUNS_MAX; i++)
        pace__trial_remove(learned->runs[i]);
    free(learned);
}

const pace__calibration *pace__learned_known(const pace__learned *learned)
{
    return &learned->known;
}

pace__source *pace__learned_source(const pace__learned *learned)
{
    return learned->sources[0];
}

/* --- predicting --- */

pace_status pace__learned_predict(const pace__learned *learned, const pace_train_config *config,
                                  const pace_log *log, pace__outlook *outlook)
{
    pace_train_config settled = *config;
    pace__job_plan plan = {0};
    int hosts;
    pace_status status = pace__plan_cluster(config, log, &plan);

    if (!status)
        status = pace__hosts_machines(&plan.cluster, config->cluster.hosts, log, &hosts);
    if (!status)
        status = pace__plan_make(&settled, &learned->sources[0]->data, &(pace__planner){0}, log, &plan);
    if (!status) {
        outlook->setup = pace__setup_of(&plan, hosts);
        outlook->processes = pace__cluster_size(&plan.cluster);
        outlook->made = pace__predict(&learned->known, &outlook->setup);
    }
    pace__plan_release(&plan);
    return status;
}
