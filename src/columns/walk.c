#include "columns/walk.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/once.h"
#include "model/linear/kind.h"
#include "threads/thread.h"
#include "watch/spans.h"

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

typedef struct team team;

typedef struct worker {
    _Alignas(128) team *team; /* workers write to theirs all the time: no cache line in common */
    int thread;
    pace__logreg view; /* the shared parameters; own optimiser settings; worker 0's bias is the model's */
    pace__stripe stripe;
    pace__gradients gradients; /* exact rule only */
    uint64_t blocks;           /* published so far */
    uint64_t rounds;           /* of meet() */
    uint64_t step;             /* whose rate it has */
    const char *shape;         /* of what it multiplies, for a profile */
    published *slots;          /* (SLOTS) */
    pace__ngram_rows text;     /* features of a piece of texts */
} worker;

struct team {
    const pace__column_walk *walk;
    const pace_log *log; /* of what every thread may meet */
    pace__reader *reader;
    worker *workers;
    float *sums;                  /* exact rule: (ids + 1) */
    atomic_uint_fast64_t arrived; /* at meet(), all rounds together */
    bool ended;                   /* decided by the lead between two meetings */
    atomic_bool failed;           /* a thread has given up: nobody waits for it */
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
    if (self->team->walk->plan->threads == 1)
        return;
    PACE__SPAN("reduce");
    for (int other = 0; other < self->team->walk->plan->threads; other++) {
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
    if (self->team->walk->plan->threads > 1)
        publish(self, dots, count);
}

/* The rate of a step is that of its updates; what it reads of the rows before it comes first (optim.h). */
static void begin_step(worker *self, uint64_t step, uint64_t rows_before)
{
    const pace__job_plan *plan = self->team->walk->plan;

    pace__optim_begin_step(&self->view.optim, pace__plan_rate(plan, step), plan->exact ? step : rows_before);
    self->step = step;
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
    bool exact = self->team->walk->plan->exact;
    uint64_t entries = entries_of(self, rows, at, count), width = self->view.optim.width;
    PACE__SPAN_OF(exact ? "X^T.error" : "X^T.error, update", self->shape, 2 * entries,
                  entries * (exact ? 12 : 4 + 8 * width));

    if (exact)
        pace__logreg_accumulate(&self->view, &self->gradients, rows, at, count, &self->stripe, errors);
    else
        pace__logreg_update(&self->view, rows, at, count, &self->stripe, errors);
}

/* The rows of a piece; returns their loss. The penalty counts from the rows before each block, the first of which has `now`
 * before it, or in the exact rule from those before the step, which is what `now` is there. */
static double run_rows(worker *self, const pace__rows *rows, uint64_t step, uint64_t now)
{
    bool exact = self->team->walk->plan->exact;
    int64_t dots[2][PACE__BLOCK_ROWS]; /* of this block and the next */
    float gradient[PACE__BLOCK_ROWS];
    size_t count = rows->rows, size = count < PACE__BLOCK_ROWS ? count : PACE__BLOCK_ROWS;
    double loss = 0;

    compute_dots(self, rows, 0, size, now, dots[0]);
    if (!exact && step != self->step) /* which may have begun before these rows */
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
    return loss;
}

/* --- the threads --- */

/* A barrier that a failed thread does not block. Waiting here is short unless the lead evaluates or writes. */
static void meet(worker *self)
{
    team *all = self->team;
    uint64_t round = ++self->rounds * (uint64_t)all->walk->plan->threads;
    unsigned turns = 0;
    PACE__SPAN("wait for threads");

    atomic_fetch_add(&all->arrived, 1);
    while (atomic_load(&all->arrived) < round && !all->failed)
        pace__back_off(&turns);
}

/* All that was trained is in the model, and what is changed there goes on. */
static bool act(team *self, const pace__walked *piece)
{
    const pace__column_walk *walk = self->walk;
    pace__logreg *view = &self->workers[0].view;

    memcpy(walk->model->bias, view->bias, sizeof view->bias);
    walk->model->optim = view->optim;
    bool go_on = walk->act(walk->user, piece);

    memcpy(view->bias, walk->model->bias, sizeof view->bias);
    for (int thread = 0; thread < walk->plan->threads; thread++)
        self->workers[thread].view.optim = walk->model->optim;
    return go_on;
}

/* What was added up in a step, or in the part of it that ends here. */
static void apply(worker *self, uint64_t step)
{
    const pace__job_plan *plan = self->team->walk->plan;

    if (!plan->exact)
        return;
    begin_step(self, step, pace__steps_rows_before(&plan->order, step));
    PACE__SPAN_OF("update", NULL, 4 * (uint64_t)self->gradients.count,
                  self->gradients.count * (8 + 8 * (uint64_t)self->view.optim.width));
    pace__logreg_apply(&self->view, &self->gradients, &self->stripe, pace__steps_rows_in(&plan->order, step));
}

/* Behind a piece; false: the walk ends here. */
static bool end_piece(worker *self, const pace__walked *piece)
{
    team *all = self->team;
    const pace__column_walk *walk = all->walk;

    if (self->thread == walk->lead)
        walk->passed(walk->user, piece);
    if (!walk->meets(walk->user, self->thread, piece))
        return !all->failed;
    if (!piece->ends_step) /* nothing is left to be applied where the lead acts */
        apply(self, piece->step);
    meet(self);
    if (self->thread == walk->lead && !all->failed)
        all->ended = !act(all, piece);
    meet(self);
    return !all->ended && !all->failed;
}

/* A piece: all of a step, or a part of it. */
static pace_status run_piece(worker *self, const pace__piece *piece, pace__walked *walked)
{
    const pace__job_plan *plan = self->team->walk->plan;
    const pace__rows *rows = &piece->rows;
    uint64_t step = pace__steps_of(&plan->order, piece->first);
    uint64_t before = pace__steps_rows_before(&plan->order, step);
    pace_status status = pace__logreg_features(&plan->model, &rows, &self->text, self->team->log);

    if (status)
        return status;
    walked->first = piece->first;
    walked->last = piece->first + rows->rows;
    walked->step = step;
    walked->ends_step = walked->last == before + pace__steps_rows_in(&plan->order, step);
    walked->loss = run_rows(self, rows, step, plan->exact ? before : piece->first);
    if (walked->ends_step)
        apply(self, step);
    return PACE_OK;
}

static pace_status next_piece(team *self, int thread, const pace__piece **piece)
{
    PACE__SPAN("read rows");
    return pace__reader_next(self->reader, thread, piece);
}

static pace_status work(void *arg, int thread)
{
    team *all = arg;
    worker *self = &all->workers[thread];
    const pace__piece *piece;
    bool go_on = true;

    pace__spread(thread, all->walk->plan->threads, all->walk->before);
    while (go_on) {
        uint64_t wait_ns = pace__now_ns(), work_ns = wait_ns;
        pace__walked walked = {0};
        pace_status status = next_piece(all, thread, &piece);

        if (!status && piece) {
            work_ns = pace__now_ns();
            status = run_piece(self, piece, &walked);
        }
        if (status)
            all->failed = true;
        if (status || !piece)
            return status;
        walked.data_ns = work_ns - wait_ns;
        walked.work_ns = pace__now_ns() - work_ns;
        go_on = end_piece(self, &walked);
    }
    return PACE_OK;
}

/* --- life --- */

static int block_rows(const pace__job_plan *plan)
{
    return plan->order.batch < PACE__BLOCK_ROWS ? (int)plan->order.batch : PACE__BLOCK_ROWS;
}

static pace_status start_worker(team *all, int thread)
{
    const pace__column_walk *walk = all->walk;
    worker *self = &all->workers[thread];

    *self = (worker){.team = all, .thread = thread, .view = *walk->model, .step = UINT64_MAX};
    self->stripe = pace__logreg_stripe(walk->model, (unsigned)thread, (unsigned)walk->plan->threads);
    self->slots = aligned_alloc(64, SLOTS * sizeof *self->slots);
    if (!self->slots)
        return pace_fail(walk->log, PACE_FAILED, "out of memory");
    if (walk->model->columns)
        self->shape = pace__span_text("%d x %u", block_rows(walk->plan),
                                      self->stripe.column_last - self->stripe.column_first);
    memset(self->slots, 0, SLOTS * sizeof *self->slots);
    if (!walk->plan->exact)
        return PACE_OK;
    return pace__gradients_init(&self->gradients, walk->model, all->sums, walk->plan->order.batch,
                                walk->plan->model.entries_max, walk->log);
}

/* Looks at the first rows, to see which columns are worth a prefetch. */
static pace_status look_ahead(const pace__column_walk *walk)
{
    pace__reader_plan plan = {
        .set = PACE__TRAIN, .sequential = true, .batch = PACE__PIECE_ROWS, .consumers = 1};
    const pace__piece *piece;
    pace__reader *reader;

    plan.last = walk->plan->order.rows < PACE__PIECE_ROWS ? walk->plan->order.rows : PACE__PIECE_ROWS;
    pace_status status = pace__reader_create(walk->store, &plan, walk->log, &reader);

    if (status)
        return status;
    status = pace__reader_next(reader, 0, &piece);
    if (!status)
        pace__logreg_look_ahead(walk->model, &piece->rows);
    pace__reader_free(reader);
    return status;
}

pace_status pace__column_walk_run(const pace__column_walk *walk)
{
    int threads = walk->plan->threads;
    pace__once once; /* a damaged row is found by every thread */
    team all = {.walk = walk, .log = &once.log};
    size_t sums_bytes = ((size_t)walk->model->ids + 1) * sizeof(float);
    pace_status status = look_ahead(walk);

    pace__once_init(&once, walk->log);
    all.workers = aligned_alloc(128, (size_t)threads * sizeof *all.workers);
    if (all.workers)
        memset(all.workers, 0, (size_t)threads * sizeof *all.workers);
    all.sums = walk->plan->exact ? pace__pages_alloc(sums_bytes) : NULL;
    if (!status && (!all.workers || (walk->plan->exact && !all.sums)))
        status = pace_fail(walk->log, PACE_FAILED, "out of memory");
    for (int i = 0; i < threads && !status; i++)
        status = start_worker(&all, i);
    if (!status)
        status = pace__reader_create(walk->store, &walk->rows, &once.log, &all.reader);
    if (!status)
        status = pace__team(threads, work, &all, walk->log);
    pace__reader_free(all.reader);
    for (int i = 0; all.workers && i < threads; i++) {
        pace__ngram_rows_release(&all.workers[i].text);
        pace__gradients_release(&all.workers[i].gradients);
        free(all.workers[i].slots);
    }
    pace__pages_free(all.sums, sums_bytes);
    free(all.workers);
    return status;
}
