/* Mode local of a linear model: the leader of threads that walk all rows together (walk.h). What is due is done where
 * they meet, behind steps. */
#include "columns/columns.h"

#include "base/clock.h"
#include "base/kept.h"
#include "base/memory.h"
#include "columns/walk.h"
#include "job/boundary.h"
#include "job/profile.h"
#include "model/linear/kind.h"
#include "model/linear/linear_file.h"
#include "run/report.h"
#include "threads/thread.h"
#include "watch/spans.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* What the strategy has beside the job. */
typedef struct state {
    pace__logreg logreg; /* job->parameters are its */
    pace__part_saver saver;
    pace__profile profile;
    pace__profile_book book; /* once it is written */
} state;

static state *state_of(const pace__job *job)
{
    return job->own;
}

/* The walk, as its lead sees it: thread 0. */
typedef struct local {
    pace__job *job;
    pace_status status;
    atomic_uint_fast64_t meet_at; /* a step behind which nothing is due, but the lead wants to act */
    pace__boundary boundary;
    uint64_t start_ns, sampled_ns, data_ns, rows;
    pace__role_report *reports[2]; /* the last one, and the one before */
} local;

/* --- where the threads meet --- */

/* Once, when it is over. */
static void write_profile(pace__job *job)
{
    state *own = state_of(job);

    if (own->profile.spans && !own->book.job)
        pace__profile_write_own(&own->profile, &own->book, job);
}

/* Nobody else computes. */
static pace_status at_boundary(local *team, uint64_t step)
{
    pace__job *job = team->job;
    pace_status status = pace__boundary_report(&team->boundary, step);

    if (state_of(job)->profile.over)
        write_profile(job);
    return status ? status : pace__boundary_act(&team->boundary, step);
}

/*
 * Do all meet behind this step? The lead may want to act soon: then they do behind the next one. Nobody can have passed
 * that, and everybody hears of it in time: who ends a step has the lead's sums of it, which were published later.
 */
static bool meets(void *user, int thread, const pace__walked *piece)
{
    local *team = user;
    uint64_t steps_done = piece->step + 1;

    if (!piece->ends_step)
        return false;
    if (pace__boundary_due(&team->boundary, steps_done) || atomic_load(&team->meet_at) == steps_done)
        return true;
    if (thread == 0 && (team->status || pace__boundary_wants(&team->boundary)))
        atomic_store(&team->meet_at, steps_done + 1);
    return false;
}

static bool act(void *user, const pace__walked *piece)
{
    local *team = user;

    if (!team->status)
        team->status = at_boundary(team, piece->step + 1);
    return !team->boundary.ended && !team->status;
}

/* What all threads have done, as worker 0 sees it: what is not waiting for rows is computing. Once a second, and `at_end`. */
static void sample(local *team, bool at_end)
{
    pace__job *job = team->job;
    pace__role_report *report = team->reports[0];
    uint64_t now_ns = pace__now_ns();

    if (!report || !team->reports[1] || (!at_end && now_ns - team->sampled_ns < PACE__REPORT_EVERY_NS))
        return;
    team->sampled_ns = now_ns;
    *team->reports[1] = *report; /* without peers */
    report->rows = team->rows;
    report->seconds = (double)(now_ns - team->start_ns) * 1e-9;
    report->data_s = (double)team->data_ns * 1e-9;
    report->still_s = pace__boundary_still_s(&team->boundary);
    report->save_s = pace__boundary_saved_s(&team->boundary);
    report->compute_s = fmax(report->compute_s, report->seconds - report->data_s - report->still_s);
    pace__usage_read(&report->usage);
    pace__report_emit(&job->plan.cluster, 0, report, team->reports[1], job->registry);
}

static void passed(void *user, const pace__walked *piece)
{
    local *team = user;
    pace__job *job = team->job;
    uint64_t rows = piece->last - piece->first;

    pace__boundary_add(&team->boundary, piece->loss, rows);
    team->boundary.times.data_ns += piece->data_ns;
    team->data_ns += piece->data_ns;
    team->rows += rows;
    pace__row_count_add(&job->rows, rows);
    pace__faults_drag(&job->faults, piece->step, piece->work_ns);
    if (piece->ends_step) {
        pace__faults_at(&job->faults, PACE__AT_STEP, piece->step + 1);
        pace__profile_at(&state_of(job)->profile, piece->step + 1);
        if (!team->status) /* what fails ends the run where all meet: the others may wait for a share of rows */
            team->status = pace__job_save_poll(job);
    }
    sample(team, false);
}

/* --- checkpoints: one part, which is the whole --- */

static unsigned parts(const pace__job *job)
{
    (void)job;
    return 1;
}

static pace_status save(pace__job *job, const char *directory)
{
    const pace__logreg *model = &state_of(job)->logreg;
    pace__part_saver *saver = &state_of(job)->saver;
    pace__kept kept;

    pace__kept_init(&kept, job->saving.reason, sizeof job->saving.reason);
    pace_status status = pace__part_saver_begin(saver, directory, 0, 1, (uint64_t)model->ids + 1,
                                                model->optim.width, &kept.log);

    job->saving.status = status;
    if (status)
        return PACE_OK;
    PACE__SPAN_OF("copy for a checkpoint", NULL, 0, 2 * pace__logreg_bytes(model));
    memcpy(saver->copy, model->parameters, pace__logreg_bytes(model));
    pace__logreg_put_bias(model, saver->copy);
    pace__part_saver_write(saver);
    return PACE_OK;
}

static pace_status saved(pace__job *job, bool *all)
{
    pace__part_saver *saver = &state_of(job)->saver;

    *all = pace__part_saver_done(saver) || job->saving.status;
    if (*all && saver->status)
        pace__job_save_failed(job, saver->status, saver->reason);
    else if (*all && !job->saving.status)
        job->saving.manifest.part[0] = saver->record;
    return PACE_OK;
}

static void pulse(pace__job *job)
{
    pace__job_save_poll(job);
}

static pace_status rest(pace__job *job, unsigned *turns)
{
    (void)job;
    pace__back_off(turns);
    return PACE_OK;
}

/* --- parameters --- */

static pace_status open_state(pace__job *job)
{
    state *own = job->own = calloc(1, sizeof *own);

    assert(job->plan.model.shape.dim == 1);

    if (!own)
        return pace_fail(job->log, PACE_FAILED, "out of memory");
    pace_status status = pace__logreg_make(&job->plan.model, &own->logreg, job->log);

    job->parameters = own->logreg.parameters;
    return status;
}

/* Behind all else that computes, since it takes a moment, and before the verdict. */
static pace_status end(pace__job *job, pace_status how)
{
    state *own = state_of(job);
    uint64_t start_ns = pace__now_ns();

    (void)how;
    write_profile(job);
    if (own->book.job) {
        pace__profile_book_peak(&own->book);
        pace__profile_book_note(&own->book, pace__seconds_since(start_ns));
    }
    return PACE_OK;
}

static void close_state(pace__job *job)
{
    state *own = state_of(job);

    if (!own)
        return;
    write_profile(job); /* of a run that has failed */
    pace__profile_book_close(&own->book);
    pace__part_saver_close(&own->saver);
    pace__profile_close(&own->profile); /* its threads have ended */
    pace__logreg_release(&own->logreg);
    free(own);
    job->own = NULL;
    job->parameters = NULL;
}

static void restored(pace__job *job)
{
    pace__logreg *model = &state_of(job)->logreg;

    pace__logreg_take_bias(model);
    pace__plan_stand_behind(&job->plan, &model->optim, pace__job_state_step(job));
}

static uint64_t rows_so_far(const pace__job *job)
{
    return pace__plan_rows_before(&job->plan, pace__job_state_step(job));
}

static pace_status logits(pace__job *job, const pace__rows *rows, float *found)
{
    pace__logreg_logits(&state_of(job)->logreg, rows_so_far(job), rows, found);
    return PACE_OK;
}

/* The parameters stay what they are, so that training can go on from them: the weights are read from among them, or
 * written aside if there are penalties that are still to be applied. */
static pace_status write_model(pace__job *job, const pace__origin *origin, char sha256[PACE__SHA256_HEX])
{
    const pace__logreg *model = &state_of(job)->logreg;
    size_t bytes = (size_t)model->ids * sizeof(float);
    float *aside = model->optim.lazy ? pace__pages_alloc(bytes) : NULL;

    if (model->optim.lazy && !aside)
        return pace_fail(job->log, PACE_FAILED, "out of memory: the weights need %zu bytes", bytes);
    if (aside)
        pace__logreg_weights(model, rows_so_far(job), aside);
    pace_status status = pace__linear_write(pace__rundir_path(job->run, PACE__RUN_MODEL), origin,
                                            aside ? aside : model->parameters, aside ? 1 : model->optim.width,
                                            model->ids, model->bias[0], sha256, job->log);

    pace__pages_free(aside, bytes);
    return status;
}

/* What is trained is what is read. */
static pace_status gather(pace__job *job)
{
    pace__logreg *model = &state_of(job)->logreg;

    pace__logreg_put_bias(model, model->parameters);
    pace_status status = pace__job_check_parameters(job);

    pace__logreg_take_bias(model);
    return status;
}

static pace_status begin(pace__job *job)
{
    (void)job;
    return PACE_OK;
}

/* --- all of it --- */

static pace_status train(pace__job *job)
{
    local team = {.job = job, .start_ns = pace__now_ns()};
    pace__column_walk walk = {.plan = &job->plan,
                              .store = &job->store,
                              .log = job->log,
                              .model = &state_of(job)->logreg,
                              .user = &team,
                              .passed = passed,
                              .meets = meets,
                              .act = act};

    if (pace__job_is_over(job))
        return PACE_OK;
    walk.rows = (pace__reader_plan){.set = PACE__TRAIN,
                                    .seed = job->config->seed,
                                    .batch = job->plan.order.batch,
                                    .first = pace__steps_rows_before(&job->plan.order, job->position.step),
                                    .last = pace__steps_rows_before(&job->plan.order, job->plan.steps),
                                    .consumers = job->plan.threads};
    pace__profile_open(&state_of(job)->profile, job, job->plan.threads);
    pace__profile_at(&state_of(job)->profile, job->position.step);
    pace__boundary_open(&team.boundary, job, false);
    for (int i = 0; i < 2; i++)
        team.reports[i] = calloc(1, pace__report_bytes(0)); /* without them it is not sampled */
    pace_status status = pace__column_walk_run(&walk);

    sample(&team, true);
    for (int i = 0; i < 2; i++)
        free(team.reports[i]);
    pace__profile_stop(&state_of(job)->profile);
    return status ? status : team.status;
}

const pace__strategy pace__columns_strategy = {
    .open = open_state,
    .close = close_state,
    .restored = restored,
    .begin = begin,
    .train = train,
    .gather = gather,
    .end = end,
    .logits = logits,
    .write = write_model,
    .parts = parts,
    .save = save,
    .saved = saved,
    .rest = rest,
    .pulse = pulse,
};
