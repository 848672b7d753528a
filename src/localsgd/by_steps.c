/*
 * A worker trains its part of every step of a round on its replica: the rows that it would have in a synchronous mode, and an
 * update of its own from them. Behind the round all merge (average.h), which is a flush.
 *
 * 1. A step's part is a sample of it: its summed gradient, times the rows of the step over those of the part, stands for that of
 *    the step. So a rate means the same as in other modes, for rules that take means and for those that take sums.
 * 2. A model that adds up numbers over the workers of a step (batch norm's) goes by its own rows here.
 * 3. A part without rows, of the last step of an epoch, is no step of this worker.
 * 4. `clean` is where the job stands at its last flush. What is saved is that.
 * 5. Everyone ends at the same place: behind the last flush, behind a flush at which the chief has decided so, or in the middle of
 *    a round in which the chief is told to stop; then the tables are those of the flush before, and its rows are trained again.
 * 6. Rows are read ahead, also across a flush: what is read does not depend on what is learned.
 */
#include "base/clock.h"
#include "localsgd/average.h"
#include "localsgd/localsgd.h"
#include "roles/batches.h"
#include "roles/clip.h"
#include "watch/spans.h"

#include <assert.h>
#include <stdlib.h>

/* Models offer a look at the network for every few rows, which takes microseconds and gives the core away where ranks share
 * one; nobody waits for this worker in the middle of a round but for signs of life (docs/decisions/0051). */
#define LOOK_EVERY_NS UINT64_C(1000000)

typedef struct worker {
    pace__process *process;
    pace__job *job;
    pace__link *link;
    pace__boundary *boundary; /* NULL: it is not the chief */
    pace__model *model;
    pace__line line;
    pace__average average;
    pace__round round;
    uint64_t round_last; /* step behind the round */
    uint64_t next_step;  /* whose rows are taken next */
    pace__trained trained;
    pace__position clean;
    uint64_t flushes;
    uint64_t served_ns; /* in the gradient under way */
    uint64_t looked_ns; /* when it last looked up from one */
    pace__times times;  /* all of them, since the start; the boundary gets the differences */
    bool ended;         /* before the last row */
    pace_status end_status;
} worker;

/* --- life --- */

static void close_worker(pace__process *process)
{
    worker *self = process->own;

    pace__average_close(&self->average);
    pace__line_close(&self->line);
    pace__model_free(self->model);
    free(self);
    process->own = NULL;
}

static pace_status open_worker(pace__process *process)
{
    pace__job *job = process->job;
    const pace__job_plan *plan = &job->plan;
    worker *self = process->own = calloc(1, sizeof *self);

    if (!self)
        return pace_fail(job->log, PACE_FAILED, "out of memory");
    self->process = process;
    self->job = job;
    self->link = process->self.link;
    self->next_step = job->position.step;
    pace_status status =
        pace__model_create(&plan->model, plan->rows_max, plan->threads, false, job->log, &self->model);

    if (!status)
        status = pace__line_open(&self->line, process, self->model, false, &self->times);
    if (!status)
        status = pace__average_open(&self->average, self->link, (unsigned)plan->cluster.workers, &plan->outer,
                                    &process->replica, &process->merged,
                                    pace__plan_rows_before(plan, job->position.step), job->log);
    return status;
}

/* --- an own step --- */

static pace_status take_rows(worker *self)
{
    const pace__job_plan *plan = &self->job->plan;
    int number = self->process->self.number;
    uint64_t first, rows, later_first, later_rows;

    pace__plan_slice(plan, self->next_step, number, &first, &rows);
    if (rows == 0) { /* invariant 3 */
        self->next_step++;
        return PACE_OK;
    }
    pace_status status = pace__line_take(&self->line, &(pace__portion){first, rows, self->next_step++, NULL});

    if (!status && self->next_step + 1 < plan->steps) {
        pace__plan_slice(plan, self->next_step + 1, number, &later_first, &later_rows);
        pace__line_expect(&self->line, later_first, later_rows);
    }
    return status;
}

/* In the middle of a gradient, which may take longer than a deadline. */
static pace_status look_up(void *user, size_t first)
{
    worker *self = user;
    uint64_t start_ns = pace__now_ns();
    bool busy = false;

    (void)first;
    if (start_ns - self->looked_ns < LOOK_EVERY_NS)
        return PACE_OK;
    pace_status status = pace__process_serve(self->process, &busy);

    if (self->boundary)
        pace__boundary_show(self->boundary);
    if (!status)
        status = pace__link_pulse(self->link);
    self->looked_ns = pace__now_ns();
    self->served_ns += self->looked_ns - start_ns;
    return status;
}

static void update(worker *self, const pace__batch *item)
{
    const pace__job_plan *plan = &self->job->plan;
    pace__table *replica = &self->process->replica;
    const pace__work *work = &item->work;
    uint64_t step_rows = pace__steps_rows_in(&plan->order, work->step);
    size_t stats = (size_t)plan->model.shape.stats_rows * plan->model.shape.dim,
           all = (size_t)item->found.keys.count * plan->model.shape.dim;
    /* Models with statistics have nothing in front of them, which are not in the norm (roles/clip.h). */
    double squares = pace__clips(plan) ? pace__clip_squares(work->sums + stats, all - stats) : 0;
    float scale = pace__optim_scale(&replica->optim, step_rows) *
                  pace__clip_factor(plan, squares, work->rows) *
                  ((float)step_rows / (float)work->rows); /* invariant 1 */
    PACE__SPAN("apply a step");

    pace__optim_begin_step(&replica->optim, pace__plan_rate(plan, work->step), work->step);
    pace__table_update(replica, item->found.keys.keys, work->sums, item->found.keys.count, scale);
    pace__average_touch(&self->average, item->found.keys.keys, item->found.keys.count);
}

static pace_status compute(worker *self, pace__batch *item)
{
    pace__work *work = &item->work;
    uint64_t start_ns = pace__now_ns();
    pace__task task = {.batch = &item->found,
                       .place = work->first,
                       .weights = work->weights,
                       .sums = work->sums,
                       .step_rows = work->rows, /* invariant 2 */
                       .ready = look_up,
                       .user = self};

    self->served_ns = 0;
    pace__table_weights(&self->process->replica, item->found.keys.keys, item->found.keys.count, work->now,
                        work->weights);
    PACE__SPAN("gradient");
    pace_status status = pace__model_gradient(self->model, &task);

    if (!status)
        update(self, item);
    uint64_t own_ns = pace__now_ns() - start_ns - self->served_ns;

    self->times.compute_ns += own_ns + pace__faults_drag(&self->job->faults, work->step, own_ns);
    self->trained.rows += work->rows;
    self->trained.loss += task.loss;
    self->process->rows += work->rows;
    pace__row_count_add(&self->job->rows, work->rows);
    return status;
}

/* What is measured, for reports, and since it was last told for the boundary. What is not work is waiting. */
static void hand_over_times(worker *self)
{
    pace__times now = self->times, *before = &self->process->times;
    uint64_t all_ns = pace__now_ns() - self->process->start_ns;

    now.communicate_ns = self->average.busy_ns;
    uint64_t work_ns = now.data_ns + now.compute_ns + now.communicate_ns;

    now.wait_ns = all_ns > work_ns ? all_ns - work_ns : 0;
    if (self->boundary) {
        pace__times *times = &self->boundary->times;

        times->data_ns += now.data_ns - before->data_ns;
        times->compute_ns += now.compute_ns - before->compute_ns;
        times->communicate_ns += now.communicate_ns - before->communicate_ns;
        times->wait_ns += now.wait_ns > before->wait_ns ? now.wait_ns - before->wait_ns : 0;
    }
    *before = now;
}

static pace_status own_step(worker *self, pace__batch *item)
{
    uint64_t step = item->work.step;

    pace__rank_set_step(&self->process->self, step);
    pace__profile_at(&self->process->profile, step);
    pace__faults_at(&self->job->faults, PACE__AT_STEP, step);
    item->state = PACE__BATCH_READY;
    pace_status status = compute(self, item);

    pace__line_leave(&self->line);
    hand_over_times(self);
    return status ? status : look_up(self, 0);
}

/* --- a round --- */

static bool wants_to_stop(const worker *self)
{
    const pace_train_config *config = self->job->config;

    return self->boundary && config->stop && *config->stop;
}

/* Its own steps of the round are taken. */
static bool is_done(worker *self)
{
    return self->next_step >= self->round_last &&
           (self->line.held == 0 || pace__batch_at(&self->line, 0)->work.step >= self->round_last);
}

/* Rows are still being read: nobody else is to blame. */
static pace_status rest(worker *self, unsigned *turns)
{
    uint64_t start_ns = pace__now_ns();
    pace_status status = pace__link_turn(self->link, NULL, 0, "rows", turns);

    self->times.data_ns += pace__now_ns() - start_ns;
    return status;
}

/* One thing that there is to do. */
static pace_status advance(worker *self, unsigned *turns)
{
    bool busy = false;
    pace_status status = pace__line_poll(&self->line, &busy);

    if (!status && self->next_step < self->job->plan.steps && pace__line_has_room(&self->line)) {
        status = take_rows(self);
        busy = true;
    }
    if (status || is_done(self))
        return status;
    if (self->line.held > 0 && pace__batch_at(&self->line, 0)->state == PACE__BATCH_PREPARED) {
        status = own_step(self, pace__batch_at(&self->line, 0));
        busy = true;
    }
    if (busy) {
        *turns = 0;
        return status;
    }
    return rest(self, turns);
}

/* Until it is done, or is to end. */
static pace_status train_round(worker *self)
{
    const pace__job_plan *plan = &self->job->plan;
    pace_status status = PACE_OK;
    unsigned turns = 0;

    self->round = pace__round_at(&plan->rounds, pace__plan_rows_before(plan, self->process->merged_step));
    self->round_last = pace__steps_of(&plan->order, self->round.last);
    self->trained = (pace__trained){0};
    while (!status && !self->trained.end && !is_done(self)) {
        status = advance(self, &turns);
        if (!status)
            status = pace__average_look(&self->average, &self->trained.end);
        self->trained.end |= !is_done(self) && wants_to_stop(self); /* else there is a flush to stop at */
    }
    return status;
}

/* --- a flush --- */

static void count(worker *self)
{
    uint64_t rows = self->process->rows;

    self->job->merging = (pace__merging){
        .rounds = self->flushes,
        .flushes = self->flushes,
        .keys_per_row = rows ? (double)self->average.keys_sent / (double)rows : 0,
    };
}

static void emit_flush(const worker *self)
{
    const pace__merging *merging = &self->job->merging;
    pace_field fields[] = {PACE_INT("step", self->clean.step), PACE_INT("flushes", merging->flushes),
                           PACE_REAL("keys_per_row", merging->keys_per_row)};

    pace_registry_emit(self->job->registry, "merge", fields, sizeof fields / sizeof *fields);
}

/* The tables are a clean state: the chief does what is due, and decides whether it goes on. */
static pace_status act(worker *self, const pace__trained *all, bool *end)
{
    uint64_t step = self->process->merged_step;

    if (!self->boundary)
        return PACE_OK;
    pace__boundary_add(self->boundary, all->loss, all->rows);
    pace_status status = pace__boundary_report(self->boundary, step);

    if (status)
        return status;
    self->clean = self->job->position;
    count(self);
    emit_flush(self);
    status = pace__boundary_act(self->boundary, step);
    self->clean = self->job->position; /* scores may have been found */
    *end = self->boundary->ended || status == PACE_INTERRUPTED;
    self->end_status = status == PACE_INTERRUPTED ? status : PACE_OK;
    return status == PACE_INTERRUPTED ? PACE_OK : status;
}

/* Invariant 5. */
static pace_status go_back(worker *self)
{
    self->ended = true;
    if (!self->boundary)
        return PACE_OK;
    self->job->position = self->clean;
    self->end_status = pace__boundary_act(self->boundary, self->clean.step);
    return self->end_status == PACE_INTERRUPTED ? PACE_OK : self->end_status;
}

static pace_status flush(worker *self)
{
    const pace__job_plan *plan = &self->job->plan;
    uint32_t steps = (uint32_t)(self->round_last - self->process->merged_step);
    pace__trained all;
    bool end = false;
    pace_status status = pace__average_collect(&self->average, self->round.last, steps, &self->trained, &all);

    if (status || all.end)
        return status ? status : go_back(self);
    self->flushes++;
    self->process->merged_step = self->round_last;
    status = pace__localsgd_meet(self->process);
    if (!status)
        status = act(self, &all, &end);
    if (!status && self->round_last < plan->steps)
        status = pace__average_share(&self->average, end, &self->ended);
    hand_over_times(self);
    return status;
}

/* --- all of it --- */

static pace_status run(pace__process *process, pace__boundary *boundary)
{
    worker *self = process->own;

    self->boundary = boundary;
    self->clean = self->job->position;
    process->merged_step = self->job->position.step;
    pace_status status = pace__average_begin(&self->average);

    while (!status && !self->ended && process->merged_step < self->job->plan.steps) {
        status = train_round(self);
        if (!status)
            status = flush(self);
    }
    pace__profile_stop(&process->profile); /* what comes now is no training */
    hand_over_times(self);
    pace_status end_status = self->end_status;

    if (status) /* before anything is released that messages may still use */
        pace__process_fail(process, status);
    close_worker(process);
    return status ? status : end_status;
}

const pace__craft pace__localsgd_by_steps = {.open = open_worker, .run = run, .close = close_worker};
