/*
 * The best state of a run that keeps it: that of the evaluation with the lowest log-loss.
 *
 *     evaluated, better   position.best_step is its step, and a checkpoint of it is begun           note
 *     not written         as if it had not been evaluated: the best is looked for from there on     forget
 *     gone on from        it is still there, or the same                                            restored
 *     the end             the last state is one more to choose from; the best takes its place       take
 *
 * 1. position.best_step is 0, or the step of a checkpoint that was begun: what saves later waits for it, so that whatever
 *    names it comes behind it. Pruning spares it (checkpoint/checkpoint.h).
 * 2. What is chosen at the end does not change the position: a run that becomes longer goes on from its last state, and
 *    knows of the best what it would know if it had been so long from the beginning.
 * 3. Once the best has taken its place nothing is saved any more: job->kept says whose state the parameters are.
 */
#include "base/kept.h"
#include "job/job.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

bool pace__job_note_score(pace__job *job)
{
    pace__position *at = &job->position;
    double logloss = job->scores[pace__job_judged(job)].logloss;

    job->judged_step = at->step;
    if (!(logloss < at->best_logloss)) {
        at->worse++;
        return false;
    }
    at->best_logloss = logloss;
    at->worse = 0;
    at->best_step = job->plan.keeps_best ? at->step : 0;
    return job->plan.keeps_best;
}

static void forget(pace__position *at)
{
    at->best_step = 0;
    at->best_logloss = INFINITY;
}

void pace__job_forget_best(pace__job *job, uint64_t step)
{
    if (job->position.best_step != step || step == 0)
        return;
    forget(&job->position);
    pace_say(job->log, PACE_WARN,
             "the state of step %" PRIu64
             " was the best so far: without its checkpoint the best is looked for among those that follow",
             step);
}

/* --- going on --- */

/* The checkpoints of a step, the newest first, until one of them is good. */
typedef pace_status look_fn(pace__job *job, const char *path);

static pace_status look_at_step(pace__job *job, uint64_t step, look_fn *look)
{
    const char *directory = pace__rundir_path(job->run, PACE__RUN_CHECKPOINTS);
    pace__checkpoint_entry *entries;
    size_t count;
    pace_status status = pace__checkpoint_list(directory, job->log, &entries, &count, NULL);
    bool found = false;

    if (status)
        return status;
    for (size_t i = 0; i < count && !(found && status == PACE_OK); i++) {
        if (entries[i].step != step)
            continue;
        found = true;
        status = look(job, entries[i].path);
    }
    pace__checkpoint_list_free(entries, count);
    return found ? status
                 : pace_fail(job->log, PACE_BAD_DATA, "%s: the checkpoint of step %" PRIu64 " is gone",
                             directory, step);
}

static pace_status is_readable(pace__job *job, const char *path)
{
    pace__manifest manifest;
    pace_status status = pace__manifest_read(path, job->log, &manifest);

    if (!status)
        pace__manifest_release(&manifest);
    return status;
}

/* At the best; what is wrong with it, if something is, becomes part of another message. */
static pace_status look_quietly(pace__job *job, look_fn *look, char reason[PACE_LOG_TEXT_MAX])
{
    const pace_log *log = job->log;
    pace__kept kept;

    pace__kept_init(&kept, reason, PACE_LOG_TEXT_MAX);
    job->log = &kept.log;
    pace_status status = look_at_step(job, job->position.best_step, look);

    job->log = log;
    return status;
}

void pace__job_look_at_best(pace__job *job)
{
    pace__position *at = &job->position;
    char reason[PACE_LOG_TEXT_MAX];

    if (!job->plan.keeps_best) { /* whoever keeps it again begins anew */
        at->best_step = 0;
        return;
    }
    if (at->best_step == 0 && isinf(at->best_logloss))
        return;
    if (at->best_step > 0 && look_quietly(job, is_readable, reason) == PACE_OK)
        return;
    if (at->best_step > 0)
        pace_say(job->log, PACE_WARN,
                 "%s: it was the best state so far, which is looked for among those that follow", reason);
    else
        pace_say(job->log, PACE_INFO,
                 "the best state so far was not kept: it is looked for among those that follow");
    forget(at);
    at->worse = 0;
}

/* --- the end --- */

static pace_status load_best(pace__job *job, const char *path)
{
    pace__manifest manifest;
    pace_status status = pace__job_load(job, path, &manifest);

    if (!status)
        pace__manifest_release(&manifest);
    return status;
}

static pace_status read_best(void *user)
{
    pace__job *job = user;
    char reason[PACE_LOG_TEXT_MAX];

    job->kept = job->position.best_step; /* whatever comes of it: the last state is not there any more */
    pace_status status = look_quietly(job, load_best, reason);

    if (status)
        return pace_fail(
            job->log, status,
            "%s; it is the best state: --resume --no-keep-best --early-stop 0 makes the model of "
            "the last",
            reason);
    job->is_settled = false;
    if (job->strategy->restored)
        job->strategy->restored(job);
    return PACE_OK;
}

/* The last state, scored as those on the way. */
static pace_status judge_last(pace__job *job, double *logloss)
{
    int set = pace__job_judged(job);
    pace_status status = PACE_OK;

    if (job->judged_step != job->position.step)
        status = pace__job_evaluate(job, set, (uint64_t)job->config->records.eval_rows);
    *logloss = job->scores[set].logloss;
    if (!status && !isfinite(*logloss))
        status = pace__job_diverged(job, "the log-loss of the %s rows is %g", pace__set_names[set], *logloss);
    return status;
}

pace_status pace__job_take_best(pace__job *job)
{
    const pace__position *at = &job->position;
    double last = at->best_logloss;
    pace_status status = pace__job_save_last(job); /* a copy, before the best takes its place */

    if (!status && at->best_step != at->step)
        status = judge_last(job, &last);
    if (status)
        return status;
    bool is_last = at->best_step == 0 || at->best_step == at->step || last < at->best_logloss;

    job->best_step = is_last ? at->step : at->best_step;
    job->best_logloss = is_last ? last : at->best_logloss;
    if (is_last)
        return PACE_OK;
    pace_say(job->log, PACE_INFO,
             "the model is that of step %" PRIu64 ", with %s log-loss %.5f; the last, of step %" PRIu64
             ", has %.5f",
             at->best_step, pace__set_names[pace__job_judged(job)], at->best_logloss, at->step, last);
    return pace__job_aside(job, "reading the best state", read_best, job);
}
