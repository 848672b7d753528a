/*
 * Every thread walks all rows, block by block. For block b it computes the dot products of its own columns,
 * publishes them, and, while the others do the same, is already at block b + 1; then it adds up everyone's
 * sums of block b, and updates its own parameters. So the dot products of a block are computed before the
 * update of the block in front of it: at most one block late, for any number of threads, one included. A step
 * ends with everything applied, and the next one starts from there.
 *
 * Threads wait for each other only after steps at which something is due: a record, an evaluation, a
 * checkpoint, the end that somebody wants.
 */
#include "columns/columns.h"

#include "base/clock.h"
#include "base/kept.h"
#include "base/memory.h"
#include "base/once.h"
#include "data/store/reader.h"
#include "job/boundary.h"
#include "job/profile.h"
#include "model/linear/linear_file.h"
#include "model/linear/logreg.h"
#include "run/report.h"
#include "threads/thread.h"
#include "watch/spans.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Blocks that a thread may be ahead of the one that reads its sums; see publish(). */
#define SLOTS 4

/* One block's sums of one thread. */
typedef struct published {
    _Alignas(64) atomic_uint_fast64_t block; /* number + 1 of the block that the sums belong to */
    union {
        int32_t narrow[PACE__BLOCK_ROWS]; /* of the fast kernels, which need no more: half the cache lines to
                                             carry over */
        int64_t wide[PACE__BLOCK_ROWS];
    } dots;
} published;

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

typedef struct local local;

typedef struct worker {
    _Alignas(128) local *team; /* workers write to theirs all the time: no cache line in common */
    int thread;
    pace__logreg view; /* the shared parameters; own optimiser settings; worker 0's bias is the model's */
    pace__stripe stripe;
    pace__gradients gradients; /* exact rule only */
    uint64_t blocks;           /* published so far */
    uint64_t rounds;           /* of meet() */
    const char *shape;         /* of what it multiplies, for a profile */
    published *slots;          /* (SLOTS) */
} worker;

struct local {
    pace__job *job;
    pace__reader *reader;
    worker *workers;
    float *sums;                  /* exact rule: (ids + 1) */
    atomic_uint_fast64_t arrived; /* at meet(), all rounds together */
    bool ended;                   /* decided by worker 0 between two meetings */
    pace_status status;
    atomic_bool failed;           /* a thread has given up: nobody waits for it */
    atomic_uint_fast64_t meet_at; /* a step behind which nothing is due, but worker 0 wants to act */

    /* Worker 0's. */
    pace__boundary boundary;
    uint64_t start_ns, sampled_ns, data_ns, rows;
    pace__role_report *reports[2]; /* the last one, and the one before */
};

/* --- one block after the other --- */

/*
 * A slot is free again when every other thread has read it. They have: a thread publishes block b + 2 only
 * after it has everyone's sums of block b, and those were published after their owners had used block b - 2.
 */
static void publish(worker *self, const int64_t *dots, size_t count)
{
    published *slot = &self->slots[self->blocks % SLOTS];

    for (size_t i = 0; i < count; i++) {
        if (self->view.fast)
            slot->dots.narrow[i] = (int32_t)dots[i];
        else
            slot->dots.wide[i] = dots[i];
    }
    atomic_store_explicit(&slot->block, ++self->blocks, memory_order_release);
}

/* Entries of its stripe in so many rows; of rows without columns, about. */
static uint64_t entries_of(const worker *self, const pace__rows *rows, size_t first, size_t count)
{
    if (rows->columns)
        return count * (uint64_t)(self->stripe.column_last - self->stripe.column_first);
    return (pace__row_start(rows, first + count) - pace__row_start(rows, first)) / self->stripe.count;
}

/* Adds the other threads' sums of block `block` to dots. After a failure they are whatever they are. */
static void collect(const worker *self, uint64_t block, int64_t *dots, size_t count)
{
    if (self->team->job->plan.threads == 1)
        return;
    PACE__SPAN("reduce");
    for (int other = 0; other < self->team->job->plan.threads; other++) {
        const published *slot = &self->team->workers[other].slots[block % SLOTS];
        unsigned turns = 0;

        if (other == self->thread)
            continue;
        while (atomic_load_explicit(&slot->block, memory_order_acquire) != block + 1 && !self->team->failed)
            pace__back_off(&turns);
        for (size_t i = 0; i < count; i++)
            dots[i] += self->view.fast ? slot->dots.narrow[i] : slot->dots.wide[i];
    }
}

static void compute_dots(worker *self, const pace__rows *rows, size_t first, size_t count, uint64_t now,
                         int64_t *dots)
{
    PACE__SPAN_OF("X.W", self->shape, 2 * entries_of(self, rows, first, count),
                  8 * entries_of(self, rows, first, count));
    pace__logreg_dots(&self->view, rows, first, count, &self->stripe, now, dots);
    if (self->team->job->plan.threads > 1)
        publish(self, dots, count);
}

/* The rate of a step is that of its updates; what it reads of the rows before it comes first (optim.h). */
static void begin_step(worker *self, uint64_t step, uint64_t rows_before)
{
    const pace__job *job = self->team->job;

    pace__optim_begin_step(&self->view.optim, pace__plan_rate(&job->plan, step),
                           job->plan.exact ? step : rows_before);
}

static double find_errors(const worker *self, const pace__rows *rows, size_t at, size_t count,
                          const int64_t *dots, float *errors)
{
    PACE__SPAN("error");
    return pace__logreg_gradient(&self->view, rows, at, count, dots, errors);
}

/* Row after row, or added up for the end of the step. */
static void use_errors(worker *self, const pace__rows *rows, size_t at, size_t count, const float *errors)
{
    bool exact = self->team->job->plan.exact;
    uint64_t entries = entries_of(self, rows, at, count), width = self->view.optim.width;
    PACE__SPAN_OF(exact ? "X^T.error" : "X^T.error, update", self->shape, 2 * entries,
                  entries * (exact ? 12 : 4 + 8 * width));

    if (exact)
        pace__logreg_accumulate(&self->view, &self->gradients, rows, at, count, &self->stripe, errors);
    else
        pace__logreg_update(&self->view, rows, at, count, &self->stripe, errors);
}

/* The rows of a piece, of which `offset` are before it in the step. The penalty counts from the rows before
 * each block, or in the exact rule from those before the step. */
static void run_rows(worker *self, const pace__piece *piece, uint64_t step, uint64_t offset)
{
    const pace__rows *rows = &piece->rows;
    bool exact = self->team->job->plan.exact;
    uint64_t now = exact ? piece->first - offset : piece->first;
    int64_t dots[2][PACE__BLOCK_ROWS]; /* of this block and the next */
    float gradient[PACE__BLOCK_ROWS];
    size_t count = rows->rows, size = count < PACE__BLOCK_ROWS ? count : PACE__BLOCK_ROWS;
    double loss = 0;

    compute_dots(self, rows, 0, size, now, dots[0]);
    if (!exact && offset == 0)
        begin_step(self, step, now);
    for (size_t at = 0, turn = 0; at < count; turn ^= 1) {
        uint64_t block = self->blocks - 1;
        size_t next = at + size,
               next_size = count - next < PACE__BLOCK_ROWS ? count - next : PACE__BLOCK_ROWS;

        if (next_size > 0)
            compute_dots(self, rows, next, next_size, now + (exact ? 0 : next), dots[turn ^ 1]);
        collect(self, block, dots[turn], size);
        loss += find_errors(self, rows, at, size, dots[turn], gradient);
        use_errors(self, rows, at, size, gradient);
        at = next;
        size = next_size;
    }
    if (self->thread == 0)
        pace__boundary_add(&self->team->boundary, loss, count);
}

/* --- the threads --- */

/* A barrier that a failed thread does not block. Waiting here is short unless worker 0 evaluates or writes.
 */
static void meet(worker *self)
{
    local *team = self->team;
    uint64_t round = ++self->rounds * (uint64_t)team->job->plan.threads;
    unsigned turns = 0;
    PACE__SPAN("wait for threads");

    atomic_fetch_add(&team->arrived, 1);
    while (atomic_load(&team->arrived) < round && !team->failed)
        pace__back_off(&turns);
}

/* Once, when it is over. */
static void write_profile(pace__job *job)
{
    state *own = state_of(job);

    if (own->profile.spans && !own->book.job)
        pace__profile_write_own(&own->profile, &own->book, job);
}

/* Between two meetings: nobody else computes. */
static pace_status at_boundary(local *team, uint64_t step)
{
    pace__job *job = team->job;

    memcpy(state_of(job)->logreg.bias, team->workers[0].view.bias, sizeof state_of(job)->logreg.bias);
    state_of(job)->logreg.optim = team->workers[0].view.optim;
    pace_status status = pace__boundary_report(&team->boundary, step);

    if (state_of(job)->profile.over)
        write_profile(job);
    return status ? status : pace__boundary_act(&team->boundary, step);
}

/*
 * Do all meet behind this step? Worker 0 may want to act soon: then they do behind the next one. Nobody can have passed
 * that, and everybody hears of it in time: who ends a step has worker 0's sums of it, which were published later.
 */
static bool do_meet(const worker *self, uint64_t steps_done)
{
    local *team = self->team;

    if (pace__boundary_due(&team->boundary, steps_done) || atomic_load(&team->meet_at) == steps_done)
        return true;
    if (self->thread == 0 && (team->status || pace__boundary_wants(&team->boundary)))
        atomic_store(&team->meet_at, steps_done + 1);
    return false;
}

/* After a step; false: the run ends here. */
static bool end_step(worker *self, uint64_t steps_done)
{
    local *team = self->team;

    if (self->thread == 0) {
        pace__faults_at(&team->job->faults, PACE__AT_STEP, steps_done);
        pace__profile_at(&state_of(team->job)->profile, steps_done);
        if (!team->status) /* what fails ends the run where all meet: the others may wait for a share of rows */
            team->status = pace__job_save_poll(team->job);
    }
    if (!do_meet(self, steps_done))
        return !team->failed;
    meet(self);
    if (self->thread == 0 && !team->failed) {
        if (!team->status)
            team->status = at_boundary(team, steps_done);
        team->ended = team->boundary.ended || team->status != PACE_OK;
    }
    meet(self);
    return !team->ended && !team->failed;
}

/* A piece: all of a step, or a part of it. False: the run ends here. */
static bool run_piece(worker *self, const pace__piece *piece)
{
    const pace__job *job = self->team->job;
    uint64_t step = pace__steps_of(&job->plan.order, piece->first);
    uint64_t offset = piece->first - pace__steps_rows_before(&job->plan.order, step);
    uint64_t step_rows = pace__steps_rows_in(&job->plan.order, step);

    run_rows(self, piece, step, offset);
    if (self->thread == 0)
        pace__row_count_add(&self->team->job->rows, piece->rows.rows);
    if (offset + piece->rows.rows < step_rows)
        return true;
    if (job->plan.exact) {
        begin_step(self, step, piece->first - offset);
        PACE__SPAN_OF("update", NULL, 4 * (uint64_t)self->gradients.count,
                      self->gradients.count * (8 + 8 * (uint64_t)self->view.optim.width));
        pace__logreg_apply(&self->view, &self->gradients, &self->stripe, step_rows);
    }
    return end_step(self, step + 1);
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

static pace_status next_piece(local *team, int thread, const pace__piece **piece)
{
    PACE__SPAN("read rows");
    return pace__reader_next(team->reader, thread, piece);
}

static pace_status work(void *arg, int thread)
{
    local *team = arg;
    worker *self = &team->workers[thread];
    const pace__piece *piece;
    bool go_on = true;

    pace__spread(thread, team->job->plan.threads);
    while (go_on) {
        uint64_t wait_ns = pace__now_ns();
        pace_status status = next_piece(team, thread, &piece);

        if (thread == 0) {
            uint64_t waited_ns = pace__now_ns() - wait_ns;

            team->boundary.times.data_ns += waited_ns;
            team->data_ns += waited_ns;
        }
        if (status)
            team->failed = true;
        if (status || !piece)
            return status;
        uint64_t work_ns = pace__now_ns(), rows = piece->rows.rows;

        go_on = run_piece(self, piece);
        if (thread == 0) {
            team->rows += rows;
            pace__faults_drag(&team->job->faults, pace__now_ns() - work_ns);
            sample(team, false);
        }
    }
    return thread == 0 ? team->status : PACE_OK;
}

static int block_rows(const pace__job *job)
{
    return job->plan.order.batch < PACE__BLOCK_ROWS ? (int)job->plan.order.batch : PACE__BLOCK_ROWS;
}

static pace_status start_worker(local *team, int thread)
{
    pace__job *job = team->job;
    worker *self = &team->workers[thread];

    *self = (worker){.team = team, .thread = thread, .view = state_of(job)->logreg};
    self->stripe = pace__logreg_stripe(&state_of(job)->logreg, (unsigned)thread, (unsigned)job->plan.threads);
    self->slots = aligned_alloc(64, SLOTS * sizeof *self->slots);
    if (!self->slots)
        return pace_fail(job->log, PACE_FAILED, "out of memory");
    if (state_of(job)->logreg.columns)
        self->shape =
            pace__span_text("%d x %u", block_rows(job), self->stripe.column_last - self->stripe.column_first);
    memset(self->slots, 0, SLOTS * sizeof *self->slots);
    if (!job->plan.exact)
        return PACE_OK;
    return pace__gradients_init(&self->gradients, &state_of(job)->logreg, team->sums, job->plan.order.batch,
                                job->store.info.row_entries_max, job->log);
}

/* Looks at the first rows, to see which columns are worth a prefetch. */
static pace_status look_ahead(pace__job *job)
{
    pace__reader_plan plan = {
        .set = PACE__TRAIN, .sequential = true, .batch = PACE__PIECE_ROWS, .consumers = 1};
    const pace__piece *piece;
    pace__reader *reader;

    plan.last = job->plan.order.rows < PACE__PIECE_ROWS ? job->plan.order.rows : PACE__PIECE_ROWS;
    pace_status status = pace__reader_create(&job->store, &plan, job->log, &reader);

    if (status)
        return status;
    status = pace__reader_next(reader, 0, &piece);
    if (!status)
        pace__logreg_look_ahead(&state_of(job)->logreg, &piece->rows);
    pace__reader_free(reader);
    return status;
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
    const pace__dataset *data = &job->plan.model.data;
    state *own = job->own = calloc(1, sizeof *own);

    assert(job->plan.model.shape.dim == 1 && job->plan.model.shape.keys == (uint64_t)data->ids + 1);

    if (!own)
        return pace_fail(job->log, PACE_FAILED, "out of memory");
    pace_status status = pace__logreg_init(&own->logreg, data->ids, data->columns, data->has_values,
                                           &job->plan.model.optim, data->like, job->log);

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
    pace__plan_stand_behind(&job->plan, &model->optim, job->position.step);
}

static uint64_t rows_so_far(const pace__job *job)
{
    return pace__plan_rows_before(&job->plan, job->position.step);
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
    pace__once once; /* a damaged row is found by every thread */
    size_t sums_bytes = ((size_t)state_of(job)->logreg.ids + 1) * sizeof(float);
    pace__reader_plan plan = {.set = PACE__TRAIN,
                              .seed = job->config->seed,
                              .batch = job->plan.order.batch,
                              .consumers = job->plan.threads};

    if (pace__job_is_over(job))
        return PACE_OK;
    pace_status status = look_ahead(job);

    pace__once_init(&once, job->log);
    pace__profile_open(&state_of(job)->profile, job, job->plan.threads);
    pace__profile_at(&state_of(job)->profile, job->position.step);
    plan.first = pace__steps_rows_before(&job->plan.order, job->position.step);
    plan.last = pace__steps_rows_before(&job->plan.order, job->plan.steps);
    pace__boundary_open(&team.boundary, job, false);
    team.workers = aligned_alloc(128, (size_t)job->plan.threads * sizeof *team.workers);
    if (team.workers)
        memset(team.workers, 0, (size_t)job->plan.threads * sizeof *team.workers);
    for (int i = 0; i < 2; i++)
        team.reports[i] = calloc(1, pace__report_bytes(0)); /* without them it is not sampled */
    team.sums = job->plan.exact ? pace__pages_alloc(sums_bytes) : NULL;
    if (!status && (!team.workers || (job->plan.exact && !team.sums)))
        status = pace_fail(job->log, PACE_FAILED, "out of memory");
    for (int i = 0; i < job->plan.threads && !status; i++)
        status = start_worker(&team, i);
    if (!status)
        status = pace__reader_create(&job->store, &plan, &once.log, &team.reader);
    if (!status)
        status = pace__team(job->plan.threads, work, &team, job->log);
    sample(&team, true);
    pace__reader_free(team.reader);
    for (int i = 0; team.workers && i < job->plan.threads; i++) {
        pace__gradients_release(&team.workers[i].gradients);
        free(team.workers[i].slots);
    }
    for (int i = 0; i < 2; i++)
        free(team.reports[i]);
    pace__pages_free(team.sums, sums_bytes);
    free(team.workers);
    pace__profile_stop(&state_of(job)->profile);
    return status;
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
