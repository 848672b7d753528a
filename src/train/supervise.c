/*
 * The supervisor: starts the job's processes through mpirun, and starts them again when the job has lost one.
 *
 *     running -> ended      with any status but PACE_LOST: a restart would bring nothing else
 *     running -> lost       a process died, or was silent for too long
 *     lost    -> ended      everything was committed (done), or it is given up: restart.h decides
 *     lost    -> pausing    it is said, with the cause
 *     pausing -> running    with --resume, if there is something to resume
 *     pausing -> ended      somebody wants to stop
 *
 * It keeps nothing of the job itself. What there is to go on from lies in the run directory; the chief of the
 * next incarnation finds it there.
 *
 * 1. `restarts` counts all, `fruitless` those since a checkpoint was written behind all that any start had reached:
 *    0 <= fruitless <= restarts, and no restart makes it more than --max-restarts.
 * 2. `attempts` counts starts in a row whose chief did not come to take over the run. The next chief is told, and
 *    counts them in state.json.
 * 3. A restart resumes only what a chief of this supervisor has taken over. Before that the directory may hold
 *    another run, and --force is still to be obeyed.
 * 4. What the directory says counts only while it holds the run that the chief has spoken of: another one there is
 *    neither resumed nor taken for the outcome.
 * 5. Errors of the job are held in `cause`, and said once: as a warning if it is started again, else as an error.
 */
#include "train/supervise.h"

#include "base/clock.h"
#include "launch/launch.h"
#include "roles/process.h"
#include "train/restart.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* How long a failed job may be silent before it is killed. */
#define ENDING_MIN_S 5.0
#define ENDING_MAX_S 20.0
#define FROM_TEXT    64

/* What shows that somebody has taken over the run directory. */
typedef struct mark {
    struct timespec time; /* of state.json, which is written anew each time */
    ino_t file;           /* 0: there is none */
    bool has_log;         /* the first file of a run */
} mark;

typedef struct supervisor {
    pace__job *job;
    pace_log log; /* holds errors back: a restart makes them warnings */
    char cause[PACE_LOG_TEXT_MAX];
    pace_sink sink;
    bool started;      /* the chief has said that training began */
    uint64_t run;      /* the run's identity, by the same word; 0: not known */
    uint64_t step;     /* from which a restart would go on, as far as is known */
    uint64_t furthest; /* that any start has begun at, or saved */
    uint64_t restarts;
    int attempts;      /* since a chief last took over the run */
    int64_t fruitless; /* restarts since the last new checkpoint */
    mark before;       /* anything was started */
    bool finished;     /* the job, although it lost a process */
} supervisor;

/* --- what the job says --- */

static void hold_error(void *user, pace_level level, const char *text)
{
    supervisor *self = user;

    if (level == PACE_ERROR)
        snprintf(self->cause, sizeof self->cause, "%s", text);
    else
        pace_say(self->job->log, level, "%s", text);
}

static void watch(void *user, const pace_record *record)
{
    supervisor *self = user;
    const pace_field *step = pace_record_find(record, "step");
    bool starts = strcmp(record->kind, "start") == 0, saves = strcmp(record->kind, "checkpoint") == 0;

    if (!step || !(starts || saves))
        return;
    const pace_field *run = pace_record_find(record, "run");

    self->started |= starts;
    if (starts && run)
        self->run = (uint64_t)run->value.integer;
    if (pace__restart_progress(&self->furthest, (uint64_t)step->value.integer, saves)) /* invariant 1 */
        self->fruitless = 0;
    self->step = (uint64_t)step->value.integer;
}

/* --- starting it --- */

static mark look_at_run(const supervisor *self)
{
    const char *run = self->job->config->run;
    char *state = pace__run_path(run, PACE__RUN_STATE);
    struct stat info;
    bool found = state && stat(state, &info) == 0;
    mark seen = {.has_log = pace__run_exists(run)};

    if (found) {
        seen.time = info.st_mtim;
        seen.file = info.st_ino;
    }
    free(state);
    return seen;
}

/* Has a chief done something between the two? */
static bool differs(const mark *now, const mark *before)
{
    return (now->has_log && !before->has_log) ||
           (now->file && (now->file != before->file || now->time.tv_sec != before->time.tv_sec ||
                          now->time.tv_nsec != before->time.tv_nsec));
}

/* Has a chief of this job taken over the run directory? Then there is something to resume, and nothing to
 * replace any more. */
static bool has_taken_over(const supervisor *self)
{
    mark now = look_at_run(self);

    return self->started || differs(&now, &self->before);
}

/* Invariant 4. A state.json that is gone or damaged says nothing. */
static pace_status check_run(const supervisor *self)
{
    const char *run = self->job->config->run;
    pace__runstate state;

    if (!self->run || pace__runstate_read(run, NULL, &state) || !state.id || state.id == self->run)
        return PACE_OK;
    return pace_fail(
        &self->log, PACE_IO,
        "%s: holds another run now: the directory of this one was moved, removed or replaced while the "
        "job ran; if it was moved, --resume goes on with it there",
        run);
}

static pace_status launch_once(supervisor *self)
{
    pace__job *job = self->job;
    const pace_train_config *config = job->config;
    pace__launch_plan plan = {.cluster = job->plan.cluster,
                              .hosts = config->cluster.hosts,
                              .launcher = config->cluster.mpirun,
                              .first_contact_s = pace__first_contact_s(config),
                              .ending_s = fmin(fmax(config->cluster.deadline, ENDING_MIN_S), ENDING_MAX_S),
                              .outlives_workers = pace__job_outlives(&job->plan),
                              .attempts = self->attempts,
                              .again = self->restarts > 0,
                              .says_start = true,
                              .stop = config->stop};
    pace_train_config ranks = *config;
    pace_option_part parts[3];
    char **words;

    ranks.cluster.hosts = ranks.cluster.mpirun = NULL;
    ranks.records.dashboard = NULL;                   /* it is served here, and outlives them */
    if (self->restarts > 0 && has_taken_over(self)) { /* invariant 3 */
        ranks.resume = true;
        ranks.force = false;
    }
    pace__train_parts(&ranks, parts);
    pace_status status = pace__launch_words("train", parts, NULL, job->log, &words);

    if (status)
        return status;
    plan.words = words;
    mark before = look_at_run(self);

    status = pace__launch(&plan, &self->log, job->registry);
    pace_options_free_words(words);
    mark now = look_at_run(self);

    self->attempts = differs(&now, &before) ? 0 : self->attempts + 1; /* invariant 2 */
    assert(self->attempts >= 0 && (uint64_t)self->attempts <= self->restarts + 1);
    return status;
}

static pace_status start_once(supervisor *self)
{
    pace_status status = check_run(self), after;

    if (!status)
        status = launch_once(self);
    after = !status || status == PACE_LOST ? check_run(self) : PACE_OK;
    return after ? after : status;
}

/* --- again --- */

static bool is_stopped(const supervisor *self)
{
    const _Atomic int *stop = self->job->config->stop;

    return stop && *stop;
}

/* False: somebody wants to stop. */
static bool pause_for(const supervisor *self, double pause_s)
{
    const pace__clock *clock = &self->job->clock;
    uint64_t start_ns = pace__clock_now_ns(clock);

    while (!is_stopped(self) && pace__clock_seconds_since(clock, start_ns) < pause_s)
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    return !is_stopped(self);
}

/* A process may die when everything is committed. */
static bool has_finished(const supervisor *self, pace_train_result *result)
{
    pace__runstate state;

    return has_taken_over(self) && !pace__runstate_read(self->job->config->run, NULL, &state) &&
           state.ending == PACE__RUN_DONE && !pace__job_read_result(self->job->config, NULL, result);
}

/* "step 1200": what the run directory says, or, where that cannot be seen, the chief's last word. */
static void name_step(const supervisor *self, char text[FROM_TEXT])
{
    pace__runstate state;
    bool known = has_taken_over(self) &&
                 pace__runstate_read(self->job->config->run, NULL, &state) == PACE_OK && state.has_checkpoint;
    uint64_t step = known ? state.checkpoint : self->step;

    if (step > 0)
        snprintf(text, FROM_TEXT, "step %" PRIu64, step);
    else
        snprintf(text, FROM_TEXT, "the beginning");
}

/* The last words on a job that is not started again. */
static void give_up(const supervisor *self, const char *from)
{
    const pace_train_config *config = self->job->config;
    char restarts[96] = "";

    if (self->restarts > 0 && !is_stopped(self))
        snprintf(restarts, sizeof restarts, "; gave up after %" PRId64 " restart%s without a new checkpoint",
                 self->fruitless, self->fruitless == 1 ? "" : "s");
    pace__run_note(config->run, PACE_ERROR, self->cause);
    if (has_taken_over(self))
        pace_say(self->job->log, PACE_ERROR, "%s%s; --resume goes on from %s", self->cause, restarts, from);
    else
        pace_say(self->job->log, PACE_ERROR, "%s%s", self->cause, restarts);
}

/* Says why the job was lost, and whether it is started again. */
static bool go_on(supervisor *self, pace_train_result *result)
{
    const pace_train_config *config = self->job->config;
    pace__lost_job lost = {.finished = has_finished(self, result),
                           .stopped = is_stopped(self),
                           .fruitless = self->fruitless,
                           .max_restarts = config->faults.max_restarts};
    pace__restart next = pace__restart_after(&lost);
    char from[FROM_TEXT];

    self->finished = lost.finished;
    name_step(self, from);
    if (next.kind == PACE__RESTART_NO_MORE)
        give_up(self, from);
    if (next.kind != PACE__RESTART_AGAIN)
        return false;
    self->fruitless++;
    self->restarts++;
    assert((uint64_t)self->fruitless <= self->restarts && self->fruitless <= config->faults.max_restarts);
    pace__run_note(config->run, PACE_WARN, self->cause); /* invariant 5 */
    pace_say(self->job->log, PACE_WARN,
             "%s; starting again from %s (restart %" PRIu64 ", at most %" PRId64
             " in a row without a new checkpoint)",
             self->cause, from, self->restarts, config->faults.max_restarts);
    if (pause_for(self, next.pause_s))
        return true;
    pace_say(self->job->log, PACE_ERROR, "stopped before it was started again; --resume goes on from %s",
             from);
    return false;
}

pace_status pace__supervise(pace__job *job, pace_train_result *result)
{
    const pace_train_config *config = job->config;
    supervisor self = {.job = job};
    pace_status status;

    self.log = (pace_log){hold_error, &self};
    self.sink = (pace_sink){watch, &self};
    self.before = look_at_run(&self);
    pace_registry_attach(job->registry, &self.sink);
    do
        status = start_once(&self);
    while (status == PACE_LOST && go_on(&self, result));
    pace_registry_detach(job->registry, &self.sink);
    if (status == PACE_LOST && self.finished) {
        pace_say(job->log, PACE_WARN, "%s; but the job was done", self.cause);
        status = PACE_OK;
    }
    if (status == PACE_LOST && is_stopped(&self) && has_taken_over(&self))
        status = PACE_INTERRUPTED; /* it was lost, but it can go on, and that was to be the end of it */
    else if (status && status != PACE_LOST && self.cause[0])
        pace_say(job->log, PACE_ERROR, "%s", self.cause);
    return status ? status : pace__job_read_result(config, job->log, result);
}
