/*
 * Mode local: one process, threads that split the columns.
 *
 * Every thread walks all rows, block by block. For block b it computes the dot products of its own columns,
 * publishes them, and, while the others do the same, is already at block b + 1; then it adds up everyone's
 * sums of block b, and updates its own parameters. So the dot products of a block are computed before the
 * update of the block in front of it: at most one block late, for any number of threads, one included. A step
 * ends with everything applied, and the next one starts from there.
 *
 * Threads wait for each other only after steps at which something is due: a record, an evaluation, a
 * checkpoint, a look at the stop flag.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/once.h"
#include "base/thread.h"
#include "data/reader.h"
#include "train/job.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Blocks that a thread may be ahead of the one that reads its sums; see publish(). */
#define SLOTS 4
/* A look at the stop flag and the loss at least every so many rows. */
#define CHECK_ROWS 65536
/* The run has diverged if the mean loss of so many rows (or of all) is above this: guessing costs 0.69. */
#define LOSS_MAX    8.0
#define JUDGED_ROWS 4096

/* One block's sums of one thread. */
typedef struct published {
    _Alignas(64) atomic_uint_fast64_t block; /* number + 1 of the block that the sums belong to */
    union {
        int32_t narrow[PACE__BLOCK_ROWS]; /* of the fast kernels, which need no more: half the cache lines to
                                             carry over */
        int64_t wide[PACE__BLOCK_ROWS];
    } dots;
} published;

typedef struct local local;

typedef struct worker {
    _Alignas(128) local *team; /* workers write to theirs all the time: no cache line in common */
    int thread;
    pace__logreg view; /* the shared parameters; own optimiser settings; worker 0's bias is the model's */
    pace__share share;
    pace__gradients gradients; /* exact rule only */
    uint64_t blocks;           /* published so far */
    uint64_t rounds;           /* of meet() */
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
    atomic_bool failed; /* a thread has given up: nobody waits for it */

    /* Worker 0's books. */
    double judged_loss; /* for check_loss */
    uint64_t judged_rows;
    double loss;     /* since the last check */
    uint64_t rows;   /* since the last check */
    double log_loss; /* since the last record */
    uint64_t log_rows;
    uint64_t log_ns, data_ns;
    uint64_t log_every, check_every;
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

/* Adds the other threads' sums of block `block` to dots. After a failure they are whatever they are. */
static void collect(const worker *self, uint64_t block, int64_t *dots, size_t count)
{
    for (int other = 0; other < self->team->job->threads; other++) {
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

static void compute_dots(worker *self, const pace__rows *rows, size_t first, size_t count, uint32_t now,
                         int64_t *dots)
{
    pace__logreg_dots(&self->view, rows, first, count, &self->share, now, dots);
    if (self->team->job->threads > 1)
        publish(self, dots, count);
}

/* The rows of a piece. `now` is what the penalty counts from: the rows before them, or before their step in
 * the exact rule. */
static void run_rows(worker *self, const pace__rows *rows, uint64_t now)
{
    bool exact = self->team->job->exact;
    int64_t dots[2][PACE__BLOCK_ROWS]; /* of this block and the next */
    float gradient[PACE__BLOCK_ROWS];
    size_t count = rows->rows, size = count < PACE__BLOCK_ROWS ? count : PACE__BLOCK_ROWS;
    double loss = 0;

    compute_dots(self, rows, 0, size, (uint32_t)now, dots[0]);
    for (size_t at = 0, turn = 0; at < count; turn ^= 1) {
        uint64_t block = self->blocks - 1;
        size_t next = at + size,
               next_size = count - next < PACE__BLOCK_ROWS ? count - next : PACE__BLOCK_ROWS;

        if (next_size > 0)
            compute_dots(self, rows, next, next_size, (uint32_t)(now + (exact ? 0 : next)), dots[turn ^ 1]);
        collect(self, block, dots[turn], size);
        loss += pace__logreg_gradient(&self->view, rows, at, size, dots[turn], gradient);
        if (exact)
            pace__logreg_accumulate(&self->view, &self->gradients, rows, at, size, &self->share, gradient);
        else
            pace__logreg_update(&self->view, rows, at, size, &self->share, gradient);
        at = next;
        size = next_size;
    }
    if (self->thread == 0) {
        self->team->loss += loss;
        self->team->rows += count;
    }
}

/* --- what worker 0 does at a boundary --- */

/* Without stdio, which allocates. */
static uint64_t memory_resident(void)
{
    char text[128];
    unsigned long pages = 0;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;

    if (fd >= 0)
        close(fd);
    text[size > 0 ? size : 0] = '\0';
    if (sscanf(text, "%*u %lu", &pages) != 1)
        return 0;
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void emit_resources(const pace__job *job)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    double cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
    pace_field fields[] = {PACE_INT("step", job->position.step),
                           PACE_INT("rss_bytes", memory_resident()),
                           PACE_INT("rss_max_bytes", usage.ru_maxrss * 1024),
                           PACE_REAL("cpu_s", cpu),
                           PACE_INT("read_bytes", usage.ru_inblock * 512),
                           PACE_INT("write_bytes", usage.ru_oublock * 512)};

    pace_registry_emit(job->registry, "resources", fields, sizeof fields / sizeof *fields);
}

static void emit_step(local *team)
{
    const pace__job *job = team->job;
    double seconds = pace__seconds_since(team->log_ns), data = (double)team->data_ns * 1e-9;
    pace_field fields[] = {PACE_INT("step", job->position.step),
                           PACE_REAL("epoch", (double)job->position.step / (double)job->steps_per_epoch),
                           PACE_INT("rows", pace__job_rows_before(job, job->position.step)),
                           PACE_REAL("loss", team->log_loss / (double)team->log_rows),
                           PACE_REAL("lr", team->workers[0].view.optim.lr),
                           PACE_REAL("data_s", data),
                           PACE_REAL("compute_s", seconds - data),
                           PACE_REAL("rows_per_s", (double)team->log_rows / seconds)};

    pace_registry_emit(job->registry, "step", fields, sizeof fields / sizeof *fields);
    emit_resources(job);
    team->log_loss = 0;
    team->log_rows = team->data_ns = 0;
    team->log_ns = pace__now_ns();
}

static void emit_progress(const local *team)
{
    const pace__job *job = team->job;
    pace_field fields[] = {PACE_TEXT("phase", "train"),
                           PACE_INT("done", pace__job_rows_before(job, job->position.step)),
                           PACE_INT("total", pace__job_rows_before(job, job->steps)),
                           PACE_TEXT("unit", "rows"), PACE_REAL("loss", team->loss / (double)team->rows)};

    pace_registry_emit(job->registry, "progress", fields, sizeof fields / sizeof *fields);
}

static pace_status check_loss(local *team)
{
    const pace__job *job = team->job;

    team->judged_loss += team->loss;
    team->judged_rows += team->rows;
    double mean = team->judged_loss / (double)team->judged_rows;
    bool enough = team->judged_rows >= (job->rows < JUDGED_ROWS ? job->rows : JUDGED_ROWS);

    if (enough)
        team->judged_loss = team->judged_rows = 0;
    if (isfinite(mean) && (mean <= LOSS_MAX || !enough))
        return PACE_OK;
    return pace_fail(job->log, PACE_FAILED,
                     "diverged at step %" PRIu64
                     ": the loss is %g (guessing costs 0.69). Try --lr %g (now %g)%s",
                     job->position.step, mean, job->lr / 10, job->lr,
                     job->store.info.has_values ? ", or scale the feature values to about 1 in size" : "");
}

/* Books the rows since the last check, and closes the epoch if it has ended. */
static void book_loss(local *team)
{
    pace__position *at = &team->job->position;

    team->log_loss += team->loss;
    team->log_rows += team->rows;
    at->epoch_loss += team->loss;
    at->epoch_rows += team->rows;
    team->loss = 0;
    team->rows = 0;
    if (at->step % team->job->steps_per_epoch == 0) {
        at->last_epoch_loss = at->epoch_loss / (double)at->epoch_rows;
        at->epoch_loss = 0;
        at->epoch_rows = 0;
    }
}

static pace_status evaluate(local *team)
{
    pace__job *job = team->job;
    pace__position *at = &job->position;
    pace_status status = pace__job_evaluate(job, (uint64_t)job->config->eval_rows);

    if (status)
        return status;
    pace_say(job->log, PACE_INFO, "step %" PRIu64 ": test log-loss %.5f, AUC %.5f, accuracy %.4f", at->step,
             job->scores.logloss, job->scores.auc, job->scores.accuracy);
    if (job->scores.logloss < at->best_logloss) {
        at->best_logloss = job->scores.logloss;
        at->worse = 0;
    } else {
        at->worse++;
    }
    if (job->config->early_stop && at->worse >= (uint64_t)job->config->early_stop) {
        pace_say(job->log, PACE_INFO,
                 "stopping early: the last %" PRId64 " evaluations were no better than log-loss %.5f",
                 job->config->early_stop, at->best_logloss);
        team->ended = true;
    }
    return PACE_OK;
}

static bool every(uint64_t step, int64_t interval)
{
    return interval > 0 && step % (uint64_t)interval == 0;
}

/* Between two meetings: nobody else computes. */
static pace_status at_boundary(local *team)
{
    pace__job *job = team->job;
    const pace_train_config *config = job->config;
    uint64_t step = job->position.step;
    bool last = step == job->steps;
    pace_status status = check_loss(team);

    if (status)
        return status;
    memcpy(job->model.bias, team->workers[0].view.bias, sizeof job->model.bias);
    job->model.optim = team->workers[0].view.optim;
    emit_progress(team);
    book_loss(team);
    if (last || every(step, (int64_t)team->log_every))
        emit_step(team);
    if (!last && every(step, config->eval_every) && job->store.info.rows[PACE__TEST] > 0)
        status = evaluate(team);
    bool stop = config->stop && *config->stop && !last && !team->ended;

    if (!status && (every(step, config->checkpoint_every) || stop))
        status = pace__checkpoint_write(job);
    if (!status && stop)
        status = pace_fail(job->log, PACE_INTERRUPTED,
                           "interrupted after step %" PRIu64 " of %" PRIu64
                           "; the same command with --resume (and without --force) goes on from there",
                           step, job->steps);
    return status;
}

static bool is_due(const local *team, uint64_t step)
{
    const pace_train_config *config = team->job->config;

    return step == team->job->steps || step % team->check_every == 0 ||
           every(step, (int64_t)team->log_every) || every(step, config->eval_every) ||
           every(step, config->checkpoint_every) || step % team->job->steps_per_epoch == 0;
}

/* --- the threads --- */

/* A barrier that a failed thread does not block. Waiting here is short unless worker 0 evaluates or writes.
 */
static void meet(worker *self)
{
    local *team = self->team;
    uint64_t round = ++self->rounds * (uint64_t)team->job->threads;
    unsigned turns = 0;

    atomic_fetch_add(&team->arrived, 1);
    while (atomic_load(&team->arrived) < round && !team->failed)
        pace__back_off(&turns);
}

static void begin_step(worker *self, uint64_t step, uint64_t rows_before)
{
    const pace__job *job = self->team->job;
    const pace_train_config *config = job->config;
    double lr = pace__schedule_lr(config->schedule, job->lr, config->warmup, step, job->steps);

    pace__optim_begin_step(&self->view.optim, lr, job->exact ? step : rows_before);
}

/* After a step; false: the run ends here. */
static bool end_step(worker *self, uint64_t steps_done)
{
    local *team = self->team;

    if (!is_due(team, steps_done))
        return !team->failed;
    meet(self);
    if (self->thread == 0 && !team->failed) {
        team->job->position.step = steps_done;
        team->status = at_boundary(team);
        team->ended |= team->status != PACE_OK;
    }
    meet(self);
    return !team->ended && !team->failed;
}

/* A piece: all of a step, or a part of it. False: the run ends here. */
static bool run_piece(worker *self, const pace__piece *piece)
{
    const pace__job *job = self->team->job;
    uint64_t position = piece->first % job->rows, offset = position % job->batch;
    uint64_t step = piece->first / job->rows * job->steps_per_epoch + position / job->batch;
    uint64_t step_begin = position - offset;
    uint64_t step_rows = job->rows - step_begin < job->batch ? job->rows - step_begin : job->batch;

    if (offset == 0)
        begin_step(self, step, piece->first);
    run_rows(self, &piece->rows, job->exact ? piece->first - offset : piece->first);
    if (offset + piece->rows.rows < step_rows)
        return true;
    if (job->exact)
        pace__logreg_apply(&self->view, &self->gradients, &self->share, step_rows);
    return end_step(self, step + 1);
}

static pace_status work(void *arg, int thread)
{
    local *team = arg;
    worker *self = &team->workers[thread];
    const pace__piece *piece;
    bool go_on = true;

    pace__spread(thread, team->job->threads);
    while (go_on) {
        uint64_t wait_ns = pace__now_ns();
        pace_status status = pace__reader_next(team->reader, thread, &piece);

        if (thread == 0)
            team->data_ns += pace__now_ns() - wait_ns;
        if (status)
            team->failed = true;
        if (status || !piece)
            return status;
        go_on = run_piece(self, piece);
    }
    return thread == 0 ? team->status : PACE_OK;
}

static pace_status start_worker(local *team, int thread)
{
    pace__job *job = team->job;
    worker *self = &team->workers[thread];

    *self = (worker){.team = team, .thread = thread, .view = job->model};
    self->share = pace__logreg_share(&job->model, (unsigned)thread, (unsigned)job->threads);
    self->slots = aligned_alloc(64, SLOTS * sizeof *self->slots);
    if (!self->slots)
        return pace_fail(job->log, PACE_FAILED, "out of memory");
    memset(self->slots, 0, SLOTS * sizeof *self->slots);
    if (!job->exact)
        return PACE_OK;
    return pace__gradients_init(&self->gradients, &job->model, team->sums, job->batch,
                                job->store.info.row_entries_max, job->log);
}

/* Looks at the first rows, to see which columns are worth a prefetch. */
static pace_status look_ahead(pace__job *job)
{
    pace__reader_plan plan = {
        .set = PACE__TRAIN, .sequential = true, .batch = PACE__PIECE_ROWS, .consumers = 1};
    const pace__piece *piece;
    pace__reader *reader;

    plan.last = job->rows < PACE__PIECE_ROWS ? job->rows : PACE__PIECE_ROWS;
    pace_status status = pace__reader_create(&job->store, &plan, job->log, &reader);

    if (status)
        return status;
    status = pace__reader_next(reader, 0, &piece);
    if (!status)
        pace__logreg_look_ahead(&job->model, &piece->rows);
    pace__reader_free(reader);
    return status;
}

pace_status pace__train_local(pace__job *job)
{
    local team = {.job = job, .log_ns = pace__now_ns()};
    pace__once once; /* a damaged row is found by every thread */
    size_t sums_bytes = ((size_t)job->model.ids + 1) * sizeof(float);
    pace__reader_plan plan = {
        .set = PACE__TRAIN, .seed = job->config->seed, .batch = job->batch, .consumers = job->threads};
    pace_status status = look_ahead(job);

    pace__once_init(&once, job->log);
    plan.first = pace__job_rows_before(job, job->position.step);
    plan.last = pace__job_rows_before(job, job->steps);
    team.check_every = job->batch < CHECK_ROWS ? CHECK_ROWS / job->batch : 1;
    team.log_every = job->config->log_every ? (uint64_t)job->config->log_every : (job->steps + 99) / 100;
    team.workers = aligned_alloc(128, (size_t)job->threads * sizeof *team.workers);
    if (team.workers)
        memset(team.workers, 0, (size_t)job->threads * sizeof *team.workers);
    team.sums = job->exact ? pace__pages_alloc(sums_bytes) : NULL;
    if (!status && (!team.workers || (job->exact && !team.sums)))
        status = pace_fail(job->log, PACE_FAILED, "out of memory");
    for (int i = 0; i < job->threads && !status; i++)
        status = start_worker(&team, i);
    if (!status)
        status = pace__reader_create(&job->store, &plan, &once.log, &team.reader);
    if (!status)
        status = pace__team(job->threads, work, &team, job->log);
    pace__reader_free(team.reader);
    for (int i = 0; team.workers && i < job->threads; i++) {
        pace__gradients_release(&team.workers[i].gradients);
        free(team.workers[i].slots);
    }
    pace__pages_free(team.sums, sums_bytes);
    free(team.workers);
    return status;
}
