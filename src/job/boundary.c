/*
 * What a row's loss goes through, behind a step at which something is due:
 *
 *     added (loss, rows)  -> booked in the epoch                                              add
 *                         -> and in the record under way, and what is judged                  report
 *     the record under way -> emitted, with where the time went                               report, every log_every
 *     judged               -> nothing, when it was enough to judge by                         report
 *
 * 1. position.step never falls, and report comes before act: what act saves knows all that was booked.
 * 2. Each row is booked once, in the epoch that is closed next, one after the other: when reports come, and be it because
 *    somebody wants to stop, does not change a sum.
 * 3. What act does leaves the state as it is. So scores and checkpoints never change a result.
 * 4. `ended` is never taken back. A job that has ended early is not interrupted.
 */
#include "job/boundary.h"

#include "base/clock.h"
#include "files/open.h"
#include "watch/spans.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* The run has diverged if the mean loss of so many rows (or of all, or of the last ones) is above this, and above twice
 * what guessing costs. */
#define LOSS_MAX    8.0
#define JUDGED_ROWS 4096
/* How long whoever watches may see nothing move. */
#define SHOW_EVERY_NS UINT64_C(500000000)

/* --- what is shown --- */

/* `done` rows; their loss is known if some came since the last report. */
static void emit_progress(pace__boundary *boundary, uint64_t done)
{
    const pace__job *job = boundary->job;
    pace_field fields[] = {PACE_TEXT("phase", "train"),
                           PACE_INT("done", done),
                           PACE_INT("total", pace__steps_rows_before(&job->plan.order, job->plan.steps)),
                           PACE_TEXT("unit", "rows"),
                           PACE_INT("before", boundary->before),
                           PACE_REAL("still_s", boundary->still_s),
                           PACE_REAL("loss", boundary->loss / (double)boundary->rows)};
    size_t count = sizeof fields / sizeof *fields;

    pace_registry_emit(job->registry, "progress", fields, boundary->rows > 0 ? count : count - 1);
    boundary->shown_ns = pace__now_ns();
}

void pace__boundary_show(pace__boundary *boundary)
{
    const pace__job *job = boundary->job;

    if (pace__now_ns() - boundary->shown_ns >= SHOW_EVERY_NS)
        emit_progress(boundary,
                      pace__steps_rows_before(&job->plan.order, job->position.step) + boundary->rows);
}

double pace__boundary_still_s(const pace__boundary *boundary)
{
    return boundary->still_s + (boundary->acts_ns ? pace__seconds_since(boundary->acts_ns) : 0);
}

double pace__boundary_saved_s(const pace__boundary *boundary)
{
    return boundary->saved_s;
}

/* --- life, and what is due --- */

void pace__boundary_open(pace__boundary *boundary, pace__job *job, bool distributed)
{
    const pace_train_config *config = job->config;

    *boundary = (pace__boundary){.job = job, .distributed = distributed, .log_ns = pace__now_ns()};
    uint64_t rows = job->plan.model.check_rows;

    assert(job->plan.order.batch > 0 && job->plan.order.per_epoch > 0);
    boundary->check_every = job->plan.order.batch < rows ? rows / job->plan.order.batch : 1;
    boundary->log_every =
        config->records.log_every ? (uint64_t)config->records.log_every : (job->plan.steps + 99) / 100;
    boundary->before = pace__steps_rows_before(&job->plan.order, job->position.step);
    boundary->acted = boundary->logged = job->position.step;
    if (!pace__job_is_over(job))
        emit_progress(boundary, boundary->before);
}

void pace__boundary_add(pace__boundary *boundary, double loss, uint64_t rows)
{
    pace__position *at = &boundary->job->position;

    boundary->loss += loss;
    boundary->rows += rows;
    at->epoch_loss += loss; /* invariant 2 */
    at->epoch_rows += rows;
    pace__boundary_show(boundary);
}

static bool every(uint64_t step, int64_t interval)
{
    return interval > 0 && step % (uint64_t)interval == 0;
}

/* Since the step `before`. Steps at which something can be done may lie further apart than what is due: then it is done at
 * the first one behind. */
static bool has_come(uint64_t before, uint64_t step, int64_t interval)
{
    return interval > 0 && step / (uint64_t)interval > before / (uint64_t)interval;
}

static bool time_has_come(const pace__job *job)
{
    double interval_s = job->config->faults.checkpoint_seconds;

    return interval_s > 0 && pace__clock_seconds_since(&job->clock, job->saving.last_ns) >= interval_s;
}

bool pace__boundary_wants(const pace__boundary *boundary)
{
    const pace_train_config *config = boundary->job->config;

    return (config->stop && *config->stop) || time_has_come(boundary->job);
}

bool pace__boundary_due(const pace__boundary *boundary, uint64_t step)
{
    const pace_train_config *config = boundary->job->config;

    return step == boundary->job->plan.steps || step % boundary->check_every == 0 ||
           every(step, (int64_t)boundary->log_every) || step % boundary->job->plan.order.per_epoch == 0 ||
           every(step, boundary->job->plan.scores_on_the_way ? config->records.eval_every : 0) ||
           every(step, config->faults.checkpoint_every);
}

/* --- records --- */

/* Without stdio, which allocates. */
static uint64_t memory_resident(void)
{
    char text[128];
    unsigned long pages = 0;
    char why[PACE__WHY_BYTES];
    int fd = pace__try_open("/proc/self/statm", PACE__TO_READ, why);
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
    uint64_t resident = memory_resident(),
             most = (uint64_t)usage.ru_maxrss * 1024; /* the kernel's two counts differ a little */
    double cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
    pace_field fields[] = {PACE_INT("step", job->position.step),
                           PACE_INT("rss_bytes", resident),
                           PACE_INT("rss_max_bytes", resident > most ? resident : most),
                           PACE_REAL("cpu_s", cpu),
                           PACE_INT("read_bytes", usage.ru_inblock * 512),
                           PACE_INT("write_bytes", usage.ru_oublock * 512)};

    pace_registry_emit(job->registry, "resources", fields, sizeof fields / sizeof *fields);
}

static void emit_step(pace__boundary *boundary)
{
    const pace__job *job = boundary->job;
    uint64_t step = job->position.step;
    double seconds = pace__seconds_since(boundary->log_ns), data = (double)boundary->times.data_ns * 1e-9;
    double compute = boundary->distributed ? (double)boundary->times.compute_ns * 1e-9 : seconds - data;
    pace_field fields[] = {PACE_INT("step", step),
                           PACE_REAL("epoch", (double)step / (double)job->plan.order.per_epoch),
                           PACE_INT("rows", pace__steps_rows_before(&job->plan.order, step)),
                           PACE_REAL("loss", boundary->log_loss / (double)boundary->log_rows),
                           PACE_REAL("lr", pace__plan_rate(&job->plan, step ? step - 1 : 0)),
                           PACE_REAL("data_s", data),
                           PACE_REAL("compute_s", compute),
                           PACE_REAL("rows_per_s", (double)boundary->log_rows / seconds),
                           PACE_REAL("communicate_s", (double)boundary->times.communicate_ns * 1e-9),
                           PACE_REAL("wait_s", (double)boundary->times.wait_ns * 1e-9)};
    size_t count = sizeof fields / sizeof *fields;

    pace_registry_emit(job->registry, "step", fields, boundary->distributed ? count : count - 2);
    emit_resources(job);
    boundary->log_loss = 0;
    boundary->log_rows = 0;
    boundary->times = (pace__times){0};
    boundary->log_ns = pace__now_ns();
    boundary->logged = step;
}

static double loss_max(const pace__job *job)
{
    return fmax(LOSS_MAX, 2 * job->plan.model.guess) * job->plan.model.row_weight;
}

static pace_status check_loss(pace__boundary *boundary)
{
    const pace__job *job = boundary->job;

    boundary->judged_loss += boundary->loss;
    boundary->judged_rows += boundary->rows;
    double mean = boundary->judged_loss / (double)boundary->judged_rows;
    bool enough =
        job->position.step == job->plan.steps ||
        boundary->judged_rows >= (job->plan.order.rows < JUDGED_ROWS ? job->plan.order.rows : JUDGED_ROWS);

    if (enough)
        boundary->judged_loss = boundary->judged_rows = 0;
    if (isfinite(mean) && (mean <= loss_max(job) || !enough))
        return PACE_OK;
    return pace__job_diverged(job, "the loss is %g (guessing costs %.2g)", mean, job->plan.model.guess);
}

/* The rows since the last report go into the record, and the epoch is closed if it has ended. */
static void book_loss(pace__boundary *boundary)
{
    pace__position *at = &boundary->job->position;

    assert(boundary->rows > 0); /* an epoch without rows has no mean */
    boundary->log_loss += boundary->loss;
    boundary->log_rows += boundary->rows;
    boundary->loss = 0;
    boundary->rows = 0;
    if (at->step % boundary->job->plan.order.per_epoch == 0) {
        at->last_epoch_loss = at->epoch_loss / (double)at->epoch_rows;
        at->epoch_loss = 0;
        at->epoch_rows = 0;
    }
}

pace_status pace__boundary_report(pace__boundary *boundary, uint64_t step)
{
    assert(step >= boundary->job->position.step); /* invariant 1 */
    PACE__SPAN("records");
    boundary->job->position.step = step;
    pace_status status = pace__job_save_poll(boundary->job);

    if (!status && boundary->rows > 0) /* else nothing came since the last report */
        status = check_loss(boundary);
    if (status)
        return status;
    if (boundary->rows > 0) {
        emit_progress(boundary, pace__steps_rows_before(&boundary->job->plan.order, step));
        book_loss(boundary);
    }
    if (boundary->log_rows > 0 &&
        (step == boundary->job->plan.steps || has_come(boundary->logged, step, (int64_t)boundary->log_every)))
        emit_step(boundary);
    return PACE_OK;
}

/* --- acting --- */

/* `best`: this state is to be kept. */
static pace_status evaluate(pace__boundary *boundary, bool *best)
{
    pace__job *job = boundary->job;
    pace__position *at = &job->position;
    int set = pace__job_judged(job);
    pace_status status = pace__job_evaluate(job, set, (uint64_t)job->config->records.eval_rows);
    double logloss = job->scores[set].logloss;

    if (!status && !isfinite(logloss))
        status = pace__job_diverged(job, "the log-loss of the %s rows is %g", pace__set_names[set], logloss);
    if (status)
        return status;
    pace__job_say_scores(job, set, at->step, "");
    *best = pace__job_note_score(job);
    if (job->config->length.early_stop && at->worse >= (uint64_t)job->config->length.early_stop) {
        pace_say(job->log, PACE_INFO,
                 "stopping early: the last %" PRId64 " evaluations were no better than log-loss %.5f",
                 job->config->length.early_stop, at->best_logloss);
        boundary->ended = true;
    }
    return PACE_OK;
}

static pace_status act(pace__boundary *boundary, uint64_t step)
{
    pace__job *job = boundary->job;
    const pace_train_config *config = job->config;
    bool last = step == job->plan.steps, stop = config->stop && *config->stop && !last;
    /* Behind the last step all rows are scored anyway; but a run that is to stop early may become longer, and then has
     * to know what it would know if it had gone on. */
    bool scores = (!last || job->plan.keeps_best) && job->plan.scores_on_the_way &&
                  has_come(boundary->acted, step, config->records.eval_every);
    bool saves = has_come(boundary->acted, step, config->faults.checkpoint_every) ||
                 (!last && time_has_come(job)),
         best = false;
    pace_status status = PACE_OK;

    assert(step >= job->position.step && step <= job->plan.steps);
    job->position.step = step;
    boundary->acted = step;
    if (scores)
        status = job->strategy->gather(job);
    if (!status && scores)
        status = evaluate(boundary, &best);
    stop = stop && !boundary->ended; /* invariant 4 */
    if (!status && (stop || saves || best)) {
        uint64_t start_ns = pace__now_ns();

        status = stop ? pace__job_save_now(job) : pace__job_save(job);
        boundary->saved_s += pace__seconds_since(start_ns);
    }
    if (!status && stop)
        status = pace_fail(job->log, PACE_INTERRUPTED,
                           "interrupted after step %" PRIu64 " of %" PRIu64
                           "; the same command with --resume (and without --force) goes on from there",
                           step, job->plan.steps);
    return status;
}

pace_status pace__boundary_act(pace__boundary *boundary, uint64_t step)
{
    boundary->acts_ns = pace__now_ns();
    pace_status status = act(boundary, step);

    boundary->still_s = pace__boundary_still_s(boundary);
    boundary->acts_ns = 0;
    return status;
}
