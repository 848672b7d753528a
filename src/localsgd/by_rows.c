/*
 * A worker walks its stretches of the rounds, with all its threads (columns/walk.h): sparse rows one after the other, by the block
 * rule; texts, as mode local trains them, by steps (the exact rule), of which it takes those of its stretch by itself. Each stretch
 * has two portions:
 *
 *     | portion 1: the lag        | portion 2          |
 *                                 ^ take what was      ^ send what was changed;
 *                            of the round before         where the round ends in a flush: take it, then merge all
 *
 * Where a portion ends the threads meet, and the lead, which has the link, does what is due. A portion may have no rows:
 * what is due at its end is done together with what is due before it.
 *
 * 1. Every thread, the reader and the lead have a place of their own in the schedule (a cursor), and all find the same.
 * 2. `clean` is where the job stands at its last flush. job->position may be ahead of it, by what was reported of the
 *    rounds since; whatever is saved is saved at `clean`.
 * 3. Everyone ends at the same place: behind the last flush, behind a flush at which the chief has decided so, or where a
 *    round is taken in which the chief has said so.
 */
#include "localsgd/localsgd.h"

#include "base/clock.h"
#include "columns/walk.h"
#include "data/store/slice.h"
#include "localsgd/flush.h"
#include "model/linear/kind.h"
#include "ranks/aside.h"
#include "watch/spans.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Between two looks at messages of a round, which cost system calls: at least, at most, and in parts of the
 * time since it was sent; and at whatever else this process serves. */
#define POLL_NS     UINT64_C(50000)
#define POLL_PART   8
#define POLL_MAX_NS UINT64_C(5000000)
#define SERVE_NS    UINT64_C(2000000)
/* Rows that are read at once to be looked at. */
#define READ_ROWS 4096

/* --- the schedule, as one walks through it --- */

typedef struct cursor {
    _Alignas(64) const pace__rounds *rounds;
    unsigned worker;
    bool over; /* behind the last round */
    pace__round round;
    uint64_t first, rows; /* the stretch */
    bool second;          /* portion */
} cursor;

static void enter(cursor *at, uint64_t place)
{
    at->second = false;
    at->over = place >= at->rounds->last;
    if (at->over)
        return;
    at->round = pace__round_at(at->rounds, place);
    pace__round_stretch(at->rounds, &at->round, at->worker, &at->first, &at->rows);
}

/* To the next portion. */
static void step_on(cursor *at)
{
    if (at->second)
        enter(at, at->round.last);
    else
        at->second = true;
}

static uint64_t portion_first(const cursor *at)
{
    return at->second ? at->first + pace__round_lag(at->rounds, at->rows) : at->first;
}

static uint64_t portion_last(const cursor *at)
{
    return at->second ? at->first + at->rows : at->first + pace__round_lag(at->rounds, at->rows);
}

/* To the portion that has rows, and ends behind `place`. */
static void find(cursor *at, uint64_t place)
{
    while (!at->over && (portion_last(at) <= place || portion_last(at) == portion_first(at)))
        step_on(at);
}

/* --- the worker --- */

typedef struct worker {
    pace__process *process;
    pace__job *job;
    pace__boundary *boundary; /* NULL: it is not the chief */
    pace__logreg model;       /* the replica */
    pace__hot hot;
    pace__flush flush;
    uint32_t *start_keys; /* (start_count) that occur in the rows of the start, rising */
    uint32_t start_count;
    cursor due;              /* the lead: the portion that is trained, or comes next */
    cursor *readers, *walks; /* (threads + 1), (threads) */
    pace__position clean;
    uint64_t interval_rows; /* of its own, since the last flush */
    double round_loss;      /* of its own, in this round */
    uint64_t round_rows, sent_ns, polled_ns, served_ns;
    uint64_t rounds, flushes;
    double loss; /* of a row, lately */
    uint64_t jumps;
    bool ended; /* before the last row */
    pace_status status, end_status;
} worker;

static uint64_t rows_before(const worker *self, uint64_t step)
{
    return pace__plan_rows_before(&self->job->plan, step);
}

/* The rule as it is for the row in front of `place`. */
static pace__optim optim_before(const worker *self, uint64_t place)
{
    const pace__job_plan *plan = &self->job->plan;
    uint64_t step = pace__steps_of(&plan->order, place - 1);
    pace__optim optim = self->model.optim;

    pace__optim_begin_step(&optim, pace__plan_rate(plan, step), place - 1);
    return optim;
}

static bool wants_to_stop(const worker *self)
{
    const pace_train_config *config = self->job->config;

    return self->boundary && config->stop && *config->stop;
}

/* --- what the chief knows of all --- */

/* Records of rounds do not wait for a flush; what is saved does (invariant 2). */
static pace_status report(worker *self, uint64_t place, bool flush)
{
    uint64_t step = pace__steps_of(&self->job->plan.order, place);

    if (!flush && (step == self->job->position.step || step % self->job->plan.order.per_epoch == 0))
        return PACE_OK;
    return pace__boundary_report(self->boundary, step);
}

/* Is the loss of a round far from what the rounds before had? */
static void watch_loss(worker *self, double loss, uint64_t rows)
{
    double mean = loss / (double)rows;

    if (self->loss > 0 && mean > 1.5 * self->loss && rows >= 1024) {
        self->jumps++;
        if (self->jumps == 1)
            pace_say(self->job->log, PACE_WARN,
                     "the loss has jumped from %.5f to %.5f within a round (%" PRIu64
                     " rows, damping %.3g): fewer workers, a smaller --lr, or mode local may be needed",
                     self->loss, mean, rows, (double)self->hot.damping);
    }
    self->loss = self->loss > 0 ? 0.5 * (self->loss + mean) : mean;
}

static pace_status note_round(worker *self, const pace__hot_word *all, uint64_t place, bool flush)
{
    if (!self->boundary || all->rows == 0)
        return PACE_OK;
    watch_loss(self, all->loss, all->rows);
    pace__boundary_add(self->boundary, all->loss, all->rows);
    return report(self, place, flush);
}

static void count(worker *self)
{
    uint64_t rows = self->process->rows;

    self->job->merging = (pace__merging){
        .rounds = self->rounds,
        .flushes = self->flushes,
        .hot = self->hot.count,
        .keys_per_row = rows ? (double)self->flush.keys_sent / (double)rows : 0,
        .damping = (double)self->hot.damping,
        .flush_damping = (double)self->flush.damping,
        .jumps = self->jumps,
    };
}

static void emit_flush(const worker *self)
{
    const pace__merging *merging = &self->job->merging;
    pace_field fields[] = {
        PACE_INT("step", self->clean.step),     PACE_INT("rounds", merging->rounds),
        PACE_INT("flushes", merging->flushes),  PACE_REAL("keys_per_row", merging->keys_per_row),
        PACE_REAL("damping", merging->damping), PACE_REAL("flush_damping", merging->flush_damping),
        PACE_INT("loss_jumps", merging->jumps)};

    pace_registry_emit(self->job->registry, "merge", fields, sizeof fields / sizeof *fields);
}

/* --- rows that everyone looks at --- */

typedef struct looking {
    const pace__job *job;
    uint64_t start, rows; /* the first ones of the order: those that all train, and all that are looked at */
    uint32_t *counts;     /* (keys) of entries */
    uint32_t *keys;       /* (key_count, room for all) met in rows of the start */
    uint32_t key_count;
    pace__ngram_rows text;
} looking;

static void count_entries(looking *at, const uint32_t *ids, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        at->counts[ids[i]]++;
}

/* The counts are those of the start alone. */
static void list_keys(looking *at, uint64_t keys)
{
    for (uint64_t key = 0; key < keys; key++) {
        at->keys[at->key_count] = (uint32_t)key;
        at->key_count += at->counts[key] > 0;
    }
}

static pace_status look_between(looking *at, pace__slice *slice, uint64_t first, uint64_t last)
{
    pace_status status = PACE_OK;

    for (; first < last && !status; first += READ_ROWS) {
        uint64_t count = last - first < READ_ROWS ? last - first : READ_ROWS;
        const pace__rows *rows = &slice->rows;

        status = pace__slice_read(slice, first, count);
        if (!status)
            status = pace__logreg_features(&at->job->plan.model, &rows, &at->text, at->job->log);
        if (!status)
            count_entries(at, rows->ids, pace__row_start(rows, count));
    }
    return status;
}

static pace_status look_at_rows(void *arg)
{
    looking *at = arg;
    const pace__job *job = at->job;
    pace__slice slice = {0};
    pace_status status =
        pace__slice_init(&slice, &job->store, PACE__TRAIN, job->config->seed, READ_ROWS, job->log);

    if (!status)
        status = look_between(at, &slice, 0, at->start);
    if (!status)
        list_keys(at, job->plan.model.shape.keys);
    if (!status)
        status = look_between(at, &slice, at->start, at->rows);
    pace__ngram_rows_release(&at->text);
    pace__slice_release(&slice);
    return status;
}

/* --- where portions end --- */

static pace_status take(worker *self, uint64_t place, bool flush)
{
    pace__hot_word all;
    uint64_t now = flush ? place : portion_last(&self->due);
    pace_status status = pace__hot_take(&self->hot, &self->model, now, &all);

    if (!status)
        status = note_round(self, &all, place, flush);
    if (!status && all.stop && !flush) {
        self->ended = true;
        if (self->boundary) { /* back to the last flush */
            self->job->position = self->clean;
            self->end_status = pace__boundary_act(self->boundary, self->clean.step);
        }
    }
    return status;
}

static pace_status send(worker *self)
{
    pace__hot_word own = {.loss = self->round_loss, .rows = self->round_rows, .stop = wants_to_stop(self)};
    pace__optim optim = optim_before(self, self->due.round.last);

    self->round_loss = self->round_rows = 0;
    self->rounds++;
    self->sent_ns = self->polled_ns = pace__now_ns();
    return pace__hot_send(&self->hot, &self->model, &optim, self->due.round.last, &own);
}

static void stand_at(worker *self, uint64_t place)
{
    self->flushes++;
    self->process->merged_step = pace__steps_of(&self->job->plan.order, place);
    self->interval_rows = 0;
}

/* Everyone has trained the same rows. */
static pace_status end_start(worker *self)
{
    pace__hot_word own = {.loss = self->round_loss, .rows = self->round_rows};
    uint64_t place = self->due.round.last;
    pace__optim optim = optim_before(self, place);

    pace__flush_put(&self->flush, self->start_keys, self->start_count);
    pace__flush_agree(&self->flush, &optim, place);
    pace__hot_begin(&self->hot, &self->model, place);
    stand_at(self, place);
    self->round_loss = self->round_rows = 0;
    pace_status status = note_round(self, &own, place, true);

    self->clean = self->job->position;
    if (!status && place == self->due.rounds->last) /* what is gathered next stands here everywhere */
        status = pace__localsgd_meet(self->process);
    return status;
}

/* The tables are a clean state: the chief does what is due, and decides whether it goes on. */
static pace_status act(worker *self, bool *end)
{
    uint64_t step = self->process->merged_step;

    if (!self->boundary)
        return PACE_OK;
    self->clean = self->job->position;
    assert(self->clean.step == step);
    count(self);
    emit_flush(self);
    pace_status status = pace__boundary_act(self->boundary, step);

    self->clean = self->job->position; /* scores may have been found */
    *end = self->boundary->ended || status == PACE_INTERRUPTED;
    self->end_status = status == PACE_INTERRUPTED ? status : PACE_OK;
    return status == PACE_INTERRUPTED ? PACE_OK : status;
}

static pace_status flush(worker *self)
{
    uint64_t place = self->due.round.last;
    pace__optim optim = optim_before(self, place);
    bool end = false, last = place == self->due.rounds->last;
    pace_status status = take(self, place, true);

    if (!status) {
        pace__flush_put(&self->flush, self->hot.keys, self->hot.count);
        status = pace__flush_collect(&self->flush, &optim, place, self->interval_rows);
    }
    if (status)
        return status;
    stand_at(self, place);
    self->model.optim = optim; /* as for a job that goes on from here */
    status = pace__localsgd_meet(self->process);
    if (!status)
        status = act(self, &end);
    self->hot.damping = 0; /* a job that goes on from here begins with nothing else */
    if (!status && !last)
        status = pace__flush_share(&self->flush, end, &self->ended);
    return status;
}

static pace_status end_portion(worker *self)
{
    if (!self->due.second)
        return take(self, self->due.round.first, false);
    if (self->due.round.same)
        return end_start(self);
    pace_status status = send(self);

    return !status && self->due.round.flush ? flush(self) : status;
}

/* All that is due up to the next portion that has rows. */
static pace_status catch_up(worker *self)
{
    pace_status status = PACE_OK;

    do {
        status = end_portion(self);
        step_on(&self->due);
    } while (!status && !self->ended && !self->due.over &&
             portion_first(&self->due) == portion_last(&self->due));
    return status;
}

/* --- the walk --- */

static uint64_t stretch(void *user, int consumer, uint64_t *place)
{
    worker *self = user;
    cursor *at = &self->readers[consumer];

    find(at, *place);
    if (at->over)
        return *place = at->rounds->last;
    if (*place < portion_first(at))
        *place = portion_first(at);
    return portion_last(at);
}

static bool meets(void *user, int thread, const pace__walked *piece)
{
    worker *self = user;
    cursor *at = &self->walks[thread];

    find(at, piece->first);
    return piece->last == portion_last(at);
}

static bool act_at_meeting(void *user, const pace__walked *piece)
{
    worker *self = user;

    if (!self->status) {
        assert(piece->last == portion_last(&self->due));
        (void)piece;
        self->status = catch_up(self);
    }
    return !self->status && !self->ended;
}

static uint64_t poll_gap(const worker *self)
{
    uint64_t gap = POLL_NS + (self->polled_ns - self->sent_ns) / POLL_PART;

    return gap < POLL_MAX_NS ? gap : POLL_MAX_NS;
}

/* In the middle of a stretch, now and then. */
static pace_status look_around(worker *self, uint64_t now_ns)
{
    bool busy = false;
    pace_status status = PACE_OK;

    if (now_ns - self->polled_ns >= poll_gap(self)) {
        self->polled_ns = now_ns;
        status = pace__hot_poll(&self->hot, &busy);
    }
    if (status || now_ns - self->served_ns < SERVE_NS) /* others wait for signs of life */
        return status;
    self->served_ns = now_ns;
    status = pace__process_serve(self->process, &busy);
    if (!status && self->boundary)
        pace__boundary_show(self->boundary);
    return status ? status : pace__link_pulse(self->process->self.link);
}

static void passed(void *user, const pace__walked *piece)
{
    worker *self = user;
    pace__process *process = self->process;
    uint64_t rows = piece->last - piece->first, now_ns = pace__now_ns();
    uint64_t dragged_ns = pace__faults_drag(&self->job->faults, piece->step, piece->work_ns);

    self->round_loss += piece->loss;
    self->round_rows += rows;
    self->interval_rows += rows;
    process->rows += rows;
    process->times.data_ns += piece->data_ns;
    process->times.compute_ns += piece->work_ns + dragged_ns;
    process->times.communicate_ns = self->hot.busy_ns + self->flush.busy_ns;
    if (self->boundary) {
        self->boundary->times.data_ns += piece->data_ns;
        self->boundary->times.compute_ns += piece->work_ns + dragged_ns;
    }
    pace__row_count_add(&self->job->rows, rows);
    if (piece->ends_step) {
        pace__rank_set_step(&process->self, piece->step + 1);
        pace__profile_at(&process->profile, piece->step + 1);
        pace__faults_at(&self->job->faults, PACE__AT_STEP, piece->step + 1);
    }
    if (!self->status)
        self->status = look_around(self, now_ns);
}

/* --- which parameters are hot --- */

/* Counts the first rows; the keys of the start stay. */
static pace_status count_rows(worker *self, uint32_t *counts)
{
    pace__job *job = self->job;
    const pace__rounds *rounds = &job->plan.rounds;
    uint64_t rows = job->plan.order.rows, keys = job->plan.model.shape.keys;
    looking first = {.job = job,
                     .start = rounds->same,
                     .rows = rows < PACE__HOT_ROWS ? rows : PACE__HOT_ROWS,
                     .counts = counts,
                     .keys = malloc((keys + 1) * sizeof *first.keys)};

    if (!first.keys)
        return pace_fail(job->log, PACE_FAILED, "out of memory");
    pace_status status = pace__rank_aside(&self->process->self, "counting parameters", look_at_rows, &first);

    self->start_keys = first.keys;
    self->start_count = first.key_count;
    return status;
}

static pace_status open_hot(worker *self)
{
    pace__job *job = self->job;
    uint64_t keys = job->plan.model.shape.keys;
    uint32_t *list = malloc(PACE__HOT_MAX * sizeof *list), count = 0;
    uint32_t *counts = calloc(keys, sizeof *counts);
    pace_status status =
        list && counts ? count_rows(self, counts) : pace_fail(job->log, PACE_FAILED, "out of memory");

    if (!status)
        count = pace__hot_choose(counts, keys, list);
    if (!status)
        status = pace__hot_open(&self->hot, self->process->self.link, (unsigned)job->plan.cluster.workers,
                                list, count, job->plan.narrow, job->log);
    free(counts);
    free(list);
    return status;
}

/* --- life --- */

static pace_status open_cursors(worker *self)
{
    const pace__job *job = self->job;
    uint64_t place = rows_before(self, job->position.step);
    int threads = job->plan.threads;
    cursor begin = {.rounds = &job->plan.rounds, .worker = (unsigned)self->process->self.number};

    enter(&begin, place);
    self->due = begin;
    self->readers = aligned_alloc(64, (size_t)(threads + 1) * sizeof *self->readers);
    self->walks = aligned_alloc(64, (size_t)threads * sizeof *self->walks);
    if (!self->readers || !self->walks)
        return pace_fail(job->log, PACE_FAILED, "out of memory");
    for (int i = 0; i <= threads; i++)
        self->readers[i] = begin;
    for (int i = 0; i < threads; i++)
        self->walks[i] = begin;
    return PACE_OK;
}

/* Room, and which parameters are hot. */
static pace_status open_worker(worker *self)
{
    pace__job *job = self->job;
    pace__process *process = self->process;
    uint64_t step = job->position.step;
    pace_status status = open_cursors(self);

    if (!status)
        status = pace__logreg_make(&job->plan.model, &self->model, job->log);
    pace__plan_stand_behind(&job->plan, &self->model.optim, step);
    if (!status)
        status = open_hot(self);
    if (!status)
        status = pace__flush_open(&self->flush, process->self.link, (unsigned)job->plan.cluster.workers,
                                  &self->model, &process->merged, rows_before(self, step), job->plan.narrow,
                                  job->log);
    return status;
}

static void close_worker(pace__process *process)
{
    worker *self = process->own;

    pace__flush_close(&self->flush);
    pace__hot_close(&self->hot);
    pace__logreg_release(&self->model);
    free(self->start_keys);
    free(self->walks);
    free(self->readers);
    free(self);
    process->own = NULL;
}

static pace_status open_process(pace__process *process)
{
    worker *self = process->own = aligned_alloc(64, sizeof *self);

    if (!self)
        return pace_fail(process->job->log, PACE_FAILED, "out of memory");
    memset(self, 0, sizeof *self);
    self->process = process;
    self->job = process->job;
    return open_worker(self);
}

/* --- all of it --- */

static pace_status walk(worker *self)
{
    pace__job *job = self->job;
    const pace__job_plan *plan = &job->plan;
    pace__column_walk all = {.plan = plan,
                             .store = &job->store,
                             .log = job->log,
                             .model = &self->model,
                             .lead = plan->threads - 1, /* the calling thread: the link is its own */
                             .before = pace__link_neighbour(self->process->self.link),
                             .user = self,
                             .passed = passed,
                             .meets = meets,
                             .act = act_at_meeting};

    all.rows = (pace__reader_plan){.set = PACE__TRAIN,
                                   .seed = job->config->seed,
                                   .batch = plan->order.batch,
                                   .first = rows_before(self, job->position.step),
                                   .last = plan->rounds.last,
                                   .consumers = plan->threads,
                                   .stretch = stretch,
                                   .user = self};
    if (portion_first(&self->due) == portion_last(&self->due))
        self->status = catch_up(self);
    if (self->status || self->ended || self->due.over)
        return self->status;
    pace_status status = pace__column_walk_run(&all);

    return status ? status : self->status;
}

static pace_status run(pace__process *process, pace__boundary *boundary)
{
    worker *self = process->own;
    pace_status status = PACE_OK;

    self->boundary = boundary;
    self->clean = self->job->position;
    self->sent_ns = self->polled_ns = pace__now_ns();
    process->merged_step = self->job->position.step;
    if (process->merged_step > 0 || self->job->is_warm) /* the tables were dealt out */
        status = pace__flush_begin(&self->flush);
    if (!status) {
        pace__hot_begin(&self->hot, &self->model, rows_before(self, process->merged_step));
        status = walk(self);
    }
    pace__profile_stop(&process->profile); /* what comes now is no training */
    process->times.communicate_ns = self->hot.busy_ns + self->flush.busy_ns;
    pace_status end_status = self->end_status;

    if (status) /* before anything is released that messages may still use */
        pace__process_fail(process, status);
    close_worker(process);
    return status ? status : end_status;
}

const pace__craft pace__localsgd_by_rows = {.open = open_process, .run = run, .close = close_worker};
