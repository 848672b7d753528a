/* The leader's copy of all parameters: first values, bare weights, the model file. */
#include "base/memory.h"
#include "data/text/embeddings.h"
#include "data/text/vocabulary.h"
#include "job/job.h"
#include "job/recorded.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* One row more than there are keys: see pace__model_use. */
static size_t parameter_bytes(const pace__job *job)
{
    return ((size_t)job->plan.model.shape.keys + 1) * job->plan.floats * sizeof(float);
}

/* --- word vectors from elsewhere --- */

typedef struct vectors {
    pace__job *job;
    pace__vocabulary *vocabulary;
    uint8_t *known; /* by id: the first one of a word counts */
    uint64_t found;
} vectors;

static pace_status take_vector(void *user, const char *word, size_t size, const float *values)
{
    vectors *self = user;
    uint32_t id =
        size <= PACE__TOKEN_BYTES_MAX
            ? pace__vocabulary_find(self->vocabulary, pace__token_hash(word, size), word, (uint32_t)size)
            : PACE__ID_UNKNOWN;

    if (id < PACE__ID_WORDS || id == PACE__ID_STOP || self->known[id])
        return PACE_OK;
    self->known[id] = 1;
    self->found++;
    memcpy(self->job->parameters + id * self->job->plan.floats, values,
           self->job->plan.model.shape.dim * sizeof *values);
    return PACE_OK;
}

pace_status pace__job_read_vectors(pace__job *job)
{
    const char *path = job->plan.model.vectors;
    uint32_t ids = job->store.info.ids_seen;

    if (!path)
        return PACE_OK;
    vectors self = {.job = job, .known = calloc(ids, 1)};
    pace_status status = self.known ? PACE_OK : pace_fail(job->log, PACE_FAILED, "out of memory");

    if (!status)
        status =
            pace__vocabulary_read(job->config->data, &job->store.info.encoding, job->log, &self.vocabulary);
    if (!status)
        status = pace__embeddings_read(path, job->plan.model.shape.dim, take_vector, &self, job->log);
    if (!status)
        pace_say(job->log, PACE_INFO, "%s: has vectors for %" PRIu64 " of %u words", path, self.found,
                 ids - PACE__ID_WORDS);
    pace__vocabulary_free(self.vocabulary);
    free(self.known);
    return status;
}

/* --- a model that it begins with --- */

pace_status pace__job_make_plan(pace__job *job, const pace__dataset *data, bool leads)
{
    const char *init = job->config->init;
    pace__planner who = {.computes = true, .speaks = leads};
    pace_status status = PACE_OK;

    if (init && !job->warm.is_open && (leads || pace__kind_at(job->config->model)->has_values))
        status = pace__warm_open(init, &job->store.info.encoding, job->log, &job->warm);
    if (job->warm.is_open)
        who.begins = &job->warm.forerunner;
    if (!status)
        status = pace__plan_make(&job->settled, data, &who, job->log, &job->plan);
    if (!leads) /* its plan has all that it needs */
        pace__warm_close(&job->warm);
    return status;
}

/* Where that run stood when its model was what it is: of the best state, rows are counted by steps. */
static void stand_where(const pace_train_result *result, pace__warm_source *source)
{
    source->steps = result->steps;
    source->samples = result->samples;
    if (result->best_step == 0 || result->best_step >= result->steps)
        return;
    source->steps = result->best_step;
    source->samples = (uint64_t)((double)result->samples * (double)result->best_step / (double)result->steps);
}

/* The data set is where that run had it. */
static pace_status read_state_of(pace__job *job, const pace__recorded *was, const pace_train_result *result)
{
    char *words = pace__job_fingerprint(job);
    pace__warm_source source = {.run = job->config->init, .data = was->config.data, .job = words};

    stand_where(result, &source);
    pace_status status = words ? pace__warm_read_state(&job->warm, &source, &job->plan.model.optim, job->log)
                               : pace_fail(job->log, PACE_FAILED, "out of memory");

    job->plan.model.optim.before = job->warm.state.updates;
    free(words);
    return status;
}

static bool is_directory(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

pace_status pace__job_read_warm_state(pace__job *job)
{
    pace_train_config of = {.run = job->config->init};
    pace_train_result result;

    if (!job->config->init_state)
        return PACE_OK;
    if (!is_directory(of.run))
        return pace_fail(
            job->log, PACE_USAGE,
            "--init-state: %s is a file: what the optimiser has kept is in the run that it is of", of.run);
    pace__recorded *was = calloc(1, sizeof *was);
    pace_status status = was ? pace__job_read_result(&of, job->log, &result)
                             : pace_fail(job->log, PACE_FAILED, "out of memory");

    if (!status)
        status = pace__recorded_read(of.run, was, job->log);
    if (!status)
        status = read_state_of(job, was, &result);
    if (was)
        pace__recorded_release(was);
    free(was);
    return status;
}

pace_status pace__job_begin_warm(pace__job *job)
{
    const pace__model_plan *model = &job->plan.model;
    pace__optim optim = model->optim;

    if (!job->config->init)
        return PACE_OK;
    pace_status status =
        pace__warm_begin(&job->warm, &job->store, model, job->plan.floats, job->parameters, job->log);

    if (status)
        return status;
    pace__optim_begin_step(&optim, pace__plan_rate(&job->plan, 0), 0);
    for (uint64_t key = 0; key < model->shape.keys; key++)
        pace__optim_adopt_row(&optim, model->shape.dim, job->parameters + key * job->plan.floats);
    if (!job->config->resume)
        pace__warm_say(&job->warm, model, job->log);
    if (job->strategy->restored)
        job->strategy->restored(job);
    job->is_warm = true;
    return PACE_OK;
}

/* --- life --- */

pace_status pace__job_open_parameters(pace__job *job)
{
    const pace__model_plan *model = &job->plan.model;

    job->parameters = pace__pages_alloc(parameter_bytes(job));
    if (!job->parameters)
        return pace_fail(job->log, PACE_FAILED, "out of memory: the parameters need %zu bytes",
                         parameter_bytes(job));
    for (uint64_t key = 0; key < model->shape.keys; key++)
        pace__optim_init_row(&model->optim, model->shape.dim, job->parameters + key * job->plan.floats);
    pace_status status = PACE_OK;

    if (pace__model_begins_random(model))
        status = pace__model_first_weights(model, job->plan.floats, job->parameters, job->log);
    if (!status && !job->config->resume) /* before anything is written: a bad file costs no run */
        status = pace__job_read_vectors(job);
    return status;
}

void pace__job_close_parameters(pace__job *job)
{
    pace__pages_free(job->parameters, parameter_bytes(job));
    pace__model_free(job->scorer);
    job->parameters = NULL;
    job->scorer = NULL;
}

/* --- are they numbers? --- */

pace_status pace__job_diverged(const pace__job *job, const char *format, ...)
{
    char found[256];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(found, sizeof found, format, arguments);
    va_end(arguments);
    return pace_fail(job->log, PACE_FAILED, "diverged at step %" PRIu64 ": %s. Try --lr %g (now %g)%s",
                     job->position.step, found, job->plan.rate.lr / 10, job->plan.rate.lr,
                     job->store.info.has_values ? ", or scale the feature values to about 1 in size" : "");
}

pace_status pace__job_check_parameters(const pace__job *job)
{
    const pace__model_plan *model = &job->plan.model;
    uint64_t bad = 0;

    for (uint64_t key = 0; key < model->shape.keys; key++)
        bad +=
            !pace__optim_is_finite(&model->optim, model->shape.dim, job->parameters + key * job->plan.floats);
    if (bad == 0)
        return PACE_OK;
    return pace__job_diverged(
        job, "of %" PRIu64 " of %" PRIu64 " rows of parameters, weights or optimiser state have overflowed",
        bad, model->shape.keys);
}

/* --- reading it --- */

/* A state that was read or gathered becomes bare weights, (keys, dim), as they are behind its step: they move to the
 * front, which is never behind where they were. */
static pace_status settle(void *user)
{
    pace__job *job = user;
    pace__optim optim = job->plan.model.optim;
    size_t dim = job->plan.model.shape.dim;
    uint64_t step = pace__job_state_step(job), now = pace__plan_rows_before(&job->plan, step);

    pace__plan_stand_behind(&job->plan, &optim, step);
    for (size_t key = 0; key < job->plan.model.shape.keys; key++) {
        float *row = job->parameters + key * job->plan.floats;

        if (optim.lazy && key + 1 < job->plan.model.shape.keys) /* the bias has no penalty */
            row[0] = pace__optim_weight(&optim, row, now);
        memmove(job->parameters + key * dim, row, dim * sizeof *row);
    }
    job->is_settled = true;
    return PACE_OK;
}

pace_status pace__job_logits(pace__job *job, const pace__rows *rows, float *logits)
{
    pace_status status = job->scorer ? PACE_OK : pace__job_create_scorer(job, &job->scorer);

    if (!status && !job->is_settled)
        status = pace__job_aside(job, "bringing parameters up to the step", settle, job);
    if (status)
        return status;
    pace__model_use(job->scorer, job->parameters);
    return pace__model_logits(job->scorer, rows, logits);
}

pace_status pace__job_write(pace__job *job, const pace__origin *origin, char sha256[PACE__SHA256_HEX])
{
    if (!job->is_settled)
        settle(job);
    return pace__model_write(&job->plan.model, job->parameters, origin,
                             pace__rundir_path(job->run, PACE__RUN_MODEL), sha256, job->log);
}
