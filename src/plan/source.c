#include "plan/source.h"

#include "data/store/describe.h"
#include "model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- opening --- */

/* Different hosts that its roles were on; 1 where nothing says so. */
static int hosts_of(const pace__history *history)
{
    int hosts = 0;

    for (size_t i = 0; i < history->role_count; i++) {
        bool met = history->roles[i].host[0] == '\0';

        for (size_t j = 0; j < i && !met; j++)
            met = strcmp(history->roles[i].host, history->roles[j].host) == 0;
        hosts += !met;
    }
    return hosts ? hosts : 1;
}

static pace_status make_plan(pace__source *self, const pace_log *log)
{
    pace__job *job = &self->job;
    pace_status status = pace__plan_cluster(job->config, log, &job->plan);

    return status ? status
                  : pace__plan_make(&job->settled, &self->data, &(pace__planner){.computes = true}, log,
                                    &job->plan);
}

static pace_status open_data(pace__source *self, const char *run, const char *data, const pace_log *log)
{
    pace__job *job = &self->job;

    if (data)
        job->settled.data = data;
    if (!pace__is_store(job->settled.data))
        return pace_fail(log, PACE_NO_INPUT,
                         "%s: the data set of %s is not there: say where it is now (--data DIR)",
                         job->settled.data ? job->settled.data : "?", run);
    pace_status status = pace__job_open_data(job, log);

    if (status)
        return status;
    self->data = pace__store_describe(&job->store.info);
    return make_plan(self, log);
}

pace_status pace__source_open(const char *run, const char *data, const pace_log *log, pace__source **source)
{
    pace__source *self = calloc(1, sizeof *self);

    if (!self)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace_status status = pace__history_open(run, log, &self->history);

    if (!status)
        status = pace__recorded_read(run, &self->was, log);
    if (!status) {
        self->hosts = hosts_of(self->history);
        self->job = (pace__job){.given = &self->was.config, .settled = self->was.config, .log = log};
        self->job.config = &self->job.settled;
        status = open_data(self, run, data, log);
    }
    if (!status)
        self->name = self->history->path;
    if (status)
        pace__source_close(self);
    else
        *source = self;
    return status;
}

void pace__source_close(pace__source *source)
{
    if (!source)
        return;
    pace__plan_release(&source->job.plan);
    pace__store_close(&source->job.store);
    pace__recorded_release(&source->was);
    pace__history_close(source->history);
    free(source);
}

/* --- the same job otherwise --- */

bool pace__has_servers(int mode)
{
    return mode == PACE_MODE_PS_SYNC || mode == PACE_MODE_PS_ASYNC || mode == PACE_MODE_PS_SSP;
}

/* What train refuses where it says nothing (job/plan.c), by mode. */
static void leave_out(int mode, pace_train_config *config)
{
    const pace__kind *kind = pace__kind_at(config->model);
    pace_train_cluster *cluster = &config->cluster;
    bool merges = mode == PACE_MODE_LOCAL_SGD, one_thread = kind->one_thread && cluster->threads > 1,
         shares = mode == PACE_MODE_ALLREDUCE || mode == PACE_MODE_PS_SYNC;

    cluster->backup_workers = 0;
    if (!shares || strncmp(cluster->balance, PACE__REPLAY, strlen(PACE__REPLAY)) == 0) /* of other workers */
        cluster->balance = "off";
    if (mode != PACE_MODE_PS_SSP)
        cluster->staleness = -1;
    if (mode != PACE_MODE_ALLREDUCE)
        cluster->reduce = PACE_REDUCE_ORDERED;
    if (!pace__has_servers(mode) && !(merges && kind->by_columns))
        cluster->wire = PACE_WIRE_F32;
    if (!merges) {
        cluster->exchange = 0;
        cluster->outer_lr = 0;
        cluster->outer_momentum = -1;
    }
    if (mode == PACE_MODE_LOCAL || merges)
        cluster->evaluator = false;
    else if (one_thread)
        cluster->threads = 0;
    if (mode == PACE_MODE_LOCAL || (merges && cluster->workers == 1))
        cluster->hosts = NULL;
}

void pace__cell_take(const pace__cell *cell, pace_train_config *config)
{
    config->mode = cell->mode;
    config->cluster.workers = cell->workers;
    config->cluster.ps = pace__has_servers(cell->mode) ? cell->ps : -1;
    if (cell->batch)
        config->length.batch = (int64_t)cell->batch;
    if (cell->mode == PACE_MODE_PS_SSP && config->cluster.staleness < 0)
        config->cluster.staleness = 1;
    config->faults.inject = NULL; /* of roles that there may not be */
    leave_out(cell->mode, config);
}

pace_status pace__source_plan(const pace__source *source, const pace__cell *cell, const pace_log *log,
                              pace__job_plan *plan)
{
    pace_train_config config = source->was.config;

    config.data = source->job.settled.data;
    pace__cell_take(cell, &config);
    *plan = (pace__job_plan){0};
    pace_status status = pace__plan_cluster(&config, log, plan);

    if (!status)
        status = pace__plan_make(&config, &source->data, &(pace__planner){0}, log, plan);
    if (status)
        pace__plan_release(plan);
    return status;
}

/* --- how fast it was --- */

/* The first part of the records is that of processes which are still being started, and of memory that is touched first. */
#define WARM 0.25
/* Records that took so many times the usual one have something else in them: scores, a checkpoint, another program. */
#define ODD 3.0

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

/* Seconds of a row, by record, from `first` on; returns how many there are. */
static size_t collect(const pace__history *history, size_t first, double *row_s, double *seconds)
{
    size_t count = 0;

    for (size_t i = first + 1; i < history->step_count; i++) {
        const pace__step_record *before = &history->step[i - 1], *at = &history->step[i];

        if (at->rows > before->rows && at->t > before->t) {
            seconds[count] = at->t - before->t;
            row_s[count++] = (at->t - before->t) / (double)(at->rows - before->rows);
        }
    }
    return count;
}

static size_t first_of(const pace__history *history, bool whole)
{
    double start_t = 0;
    size_t first = 0;

    for (size_t i = 0; i < history->mark_count; i++) {
        if (history->mark[i].kind == PACE__MARK_START)
            start_t = history->mark[i].t;
    }
    while (first < history->step_count && history->step[first].t < start_t)
        first++;
    return whole ? first : first + (size_t)(WARM * (double)(history->step_count - first));
}

/* His t for 95 %, nearly: 12.7, 4.2, 3.1, 2.7, 2.5, ... 1.96. */
static double student(double freedom)
{
    return 1.96 + 2.4 / freedom + 8.3 / (freedom * freedom * freedom);
}

static pace__measured mean_of(const double *row_s, const double *seconds, size_t count, double usual,
                              bool whole)
{
    pace__measured made = {.spread = INFINITY};
    double rows = 0, squares = 0;

    for (size_t i = 0; i < count; i++) {
        if (row_s[i] > ODD * usual && !whole)
            continue;
        made.records++;
        made.seconds += seconds[i];
        rows += seconds[i] / row_s[i];
        squares += (row_s[i] / usual) * (row_s[i] / usual);
    }
    if (made.records == 0)
        return made;
    double mean = made.seconds / rows / usual, n = (double)made.records;

    made.rows_s = rows / made.seconds;
    made.straggle = sqrt(fmax(0, squares / n - mean * mean)) / mean;
    if (made.records > 1)
        made.spread = student(n - 1) * made.straggle / sqrt(n - 1);
    return made;
}

pace__measured pace__measure(const pace__history *history, bool whole)
{
    size_t first = first_of(history, whole), room = history->step_count + 1;
    double *row_s = malloc(room * sizeof *row_s), *sorted = malloc(room * sizeof *sorted),
           *seconds = malloc(room * sizeof *seconds);
    pace__measured made = {.spread = INFINITY};

    if (row_s && sorted && seconds) {
        size_t count = collect(history, first, row_s, seconds);

        memcpy(sorted, row_s, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, by_size);
        if (count) {
            made = mean_of(row_s, seconds, count, sorted[count / 2], whole);
            made.from = history->step[first].rows;
            made.to = history->step[history->step_count - 1].rows;
        }
    }
    free(row_s);
    free(sorted);
    free(seconds);
    return made;
}

pace__measured pace__source_measure(const pace__source *source)
{
    return pace__measure(source->history, source->job.plan.merges);
}

pace__setup pace__source_setup(const pace__source *source, const pace__measured *was)
{
    pace__setup setup = pace__setup_of(&source->job.plan, source->hosts);

    setup.from = was->from;
    setup.to = was->to;
    return setup;
}
