/*
 * How steps are divided among the workers of a run that goes on, or repeats another.
 *
 * The record (run/shares.h) has all that was ever in use; a checkpoint has those of the steps behind it, and is enough to go on
 * where the record is gone. What the record has beyond them was in use when the run was cut off: the steps that are
 * trained again are divided as they were.
 */
#include "base/kept.h"
#include "files/file.h"
#include "job/job.h"
#include "shares/balance.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool pace__job_copy_divisions(const pace__job *job, pace__divisions *copy)
{
    const pace__divisions *all = &job->divisions;
    bool enough = true;

    *copy = (pace__divisions){0};
    for (size_t i = 0; i < all->count && enough && copy->count < PACE__DIVISIONS_SAVED; i++) {
        bool over = i + 1 < all->count && all->from[i + 1] <= job->position.step;

        if (!over)
            enough = pace__divisions_add(copy, all->from[i], all->workers, all->rows + i * all->workers);
    }
    return enough;
}

/* --- repeating another run --- */

static const char *replayed(const pace__job *job)
{
    return job->config->cluster.balance + sizeof PACE__REPLAY - 1;
}

static pace_status check_replay(const pace__job *job, const char *path, const pace__divisions *divisions)
{
    unsigned workers = (unsigned)job->plan.cluster.workers;

    if (divisions->count == 0)
        return pace_fail(job->log, PACE_NO_INPUT, "%s: there is nothing to replay: that run had even shares",
                         path);
    if (divisions->workers != workers || divisions->from[0] > 0)
        return pace_fail(job->log, PACE_USAGE,
                         "%s: divides steps from step %" PRIu64
                         " on among %u workers, and this job begins at step 0 "
                         "with %u: it cannot be replayed",
                         path, divisions->from[0], divisions->workers, workers);
    for (size_t i = 0; i < divisions->count; i++) {
        const uint32_t *rows = divisions->rows + i * workers;
        uint64_t batch = pace__division_batch(rows, workers);

        if (batch != job->plan.order.batch)
            return pace_fail(job->log, PACE_USAGE,
                             "%s: divides steps of %" PRIu64 " rows, and those of this job have %" PRIu64
                             " (--batch)",
                             path, batch, job->plan.order.batch);
        for (unsigned worker = 0; worker < workers; worker++) {
            if (rows[worker] > job->plan.rows_max)
                return pace_fail(job->log, PACE_BAD_DATA,
                                 "%s: gives %" PRIu32 " rows to a worker, the limit is %" PRIu64, path,
                                 rows[worker], job->plan.rows_max);
        }
    }
    return PACE_OK;
}

/* Of a run that has finished, all is there that its summary tells of; of another one nobody knows. */
static pace_status check_end(const pace__job *job, const char *run, const char *path,
                             const pace__shares_facts *found)
{
    pace__shares_facts told;
    pace_status status = pace__summary_shares(run, job->log, &told);

    if (status || told.lines == 0 || (told.lines == found->lines && told.sum == found->sum))
        return status;
    return pace_fail(job->log, PACE_BAD_DATA,
                     "%s: has %" PRIu64 " lines, and the run ended with %" PRIu64
                     ", by its summary.json: %s. It cannot be replayed",
                     path, found->lines, told.lines,
                     found->lines < told.lines ? "the last are missing" : "they are not the same");
}

static pace_status read_replay(pace__job *job)
{
    const char *run = replayed(job);
    char *path = pace__run_path(run, PACE__RUN_SHARES);
    pace_status status = path ? PACE_OK : pace_fail(job->log, PACE_FAILED, "out of memory");
    pace__shares_facts facts;

    if (!status && !pace__run_exists(run))
        status = pace_fail(job->log, PACE_NO_INPUT, "--balance replay:%s: there is no run", run);
    if (!status && !pace__shares_are_whole(path))
        status =
            pace_fail(job->log, PACE_BAD_DATA,
                      "%s: its last line was cut short: if that run has not finished, resume it first", path);
    if (!status)
        status = pace__shares_read(path, job->log, &job->divisions, &facts);
    if (!status)
        status = check_end(job, run, path, &facts);
    if (!status)
        status = check_replay(job, path, &job->divisions);
    free(path);
    return status;
}

/* --- a run that repeats another, resumed --- */

/* The first step that two records divide otherwise; UINT64_MAX: none. */
static uint64_t first_difference(const pace__divisions *one, const pace__divisions *other)
{
    size_t i = 0, row = one->workers * sizeof *one->rows;

    if (one->workers == other->workers) {
        while (i < one->count && i < other->count && one->from[i] == other->from[i] &&
               memcmp(one->rows + i * one->workers, other->rows + i * one->workers, row) == 0)
            i++;
    }
    uint64_t here = i < one->count ? one->from[i] : UINT64_MAX,
             there = i < other->count ? other->from[i] : UINT64_MAX;

    return here < there ? here : there;
}

/* It goes by its own record, so that it can where the other is gone. If the other is there and says something else, it is one that
 * the run does not repeat: refused, unless it is called as it was when the run began, since then it has changed in the meantime. */
static pace_status check_resumed(const pace__job *job)
{
    char *own_path = pace__run_path(job->config->run, PACE__RUN_SHARES),
         *path = pace__run_path(replayed(job), PACE__RUN_SHARES);
    pace__divisions own = {0}, other = {0};
    uint64_t step = UINT64_MAX;
    pace_status status = PACE_OK;

    if (own_path && path && !pace__shares_read(own_path, NULL, &own, NULL) &&
        !pace__shares_read(path, NULL, &other, NULL) && own.count > 0 && other.count > 0)
        step = first_difference(&own, &other);
    if (step < job->plan.steps && pace__resume_has_balance(job))
        pace_say(job->log, PACE_WARN,
                 "%s: has changed since this run began: it divides step %" PRIu64
                 " otherwise. A run that is resumed goes by its own record",
                 path, step);
    else if (step < job->plan.steps)
        status =
            pace_fail(job->log, PACE_USAGE,
                      "--balance %s: divides step %" PRIu64
                      " otherwise than %s, by which a run that is resumed goes: say --balance replay:%s, or "
                      "start over with --force",
                      job->config->cluster.balance, step, own_path, job->config->run);
    pace__divisions_release(&other);
    pace__divisions_release(&own);
    free(path);
    free(own_path);
    return status;
}

pace_status pace__job_read_replay(pace__job *job)
{
    if (job->plan.balancing != PACE__BALANCE_REPLAY)
        return PACE_OK;
    return job->config->resume ? check_resumed(job) : read_replay(job);
}

/* So that this run can be replayed, and resumed without the other. */
static pace_status keep_replay(const pace__job *job)
{
    return pace__shares_write(pace__rundir_path(job->run, PACE__RUN_SHARES), &job->divisions, job->log);
}

/* --- going on --- */

/* Those of the record that begin behind all that the checkpoint has. */
static bool add_recorded(pace__divisions *divisions, const pace__divisions *recorded)
{
    bool enough = true;
    uint64_t last = divisions->count > 0 ? divisions->from[divisions->count - 1] : 0;

    for (size_t i = 0; i < recorded->count && enough; i++) {
        if (divisions->count == 0 || (recorded->from[i] > last && recorded->workers == divisions->workers))
            enough = pace__divisions_add(divisions, recorded->from[i], recorded->workers,
                                         recorded->rows + i * recorded->workers);
    }
    return enough;
}

/* A run whose steps were divided by speed, and are not from here on, says so for whoever repeats it; where steps are not divided
 * at all, nobody can. */
static pace_status end_balancing(pace__job *job, const char *path)
{
    unsigned workers = (unsigned)job->plan.slices;

    if (job->plan.mode != PACE_MODE_ALLREDUCE && job->plan.mode != PACE_MODE_PS_SYNC) {
        pace__divisions_release(&job->divisions);
        return pace__remove_tree(path, job->log);
    }
    uint32_t *rows = malloc(workers * sizeof *rows);
    pace_status status = rows ? PACE_OK : pace_fail(job->log, PACE_FAILED, "out of memory");

    if (!status) {
        pace__share_evenly(job->plan.order.batch, workers, rows);
        status = pace__shares_append(path, job->position.step, workers, rows, 0, job->log);
    }
    free(rows);
    pace__divisions_release(&job->divisions);
    return status;
}

/* Those that this job goes by: files may hold anything. */
static pace_status check_divisions(const pace__job *job, const char *path)
{
    const pace__divisions *divisions = &job->divisions;
    unsigned workers = (unsigned)job->plan.cluster.workers;

    for (size_t i = 0; divisions->workers == workers && i < divisions->count; i++) {
        const uint32_t *rows = divisions->rows + i * workers;
        bool fits = pace__division_batch(rows, workers) == job->plan.order.batch;

        for (unsigned worker = 0; worker < workers; worker++)
            fits = fits && rows[worker] <= job->plan.rows_max;
        if (!fits)
            return pace_fail(job->log, PACE_BAD_DATA,
                             "%s, or the checkpoint: damaged: from step %" PRIu64
                             " on the workers do not share the %" PRIu64 " rows of a step",
                             path, divisions->from[i], job->plan.order.batch);
    }
    return PACE_OK;
}

/* A run that repeats another has all of its record from the first step on, or, if it was cut off before that, gets it now. */
static pace_status go_on_replaying(pace__job *job)
{
    const pace__divisions *divisions = &job->divisions;

    if (pace__divisions_at(divisions, job->position.step) &&
        divisions->workers == (unsigned)job->plan.cluster.workers) {
        pace_say(job->log, PACE_INFO, "--balance %s: a run that is resumed goes by its own record",
                 job->config->cluster.balance);
        return PACE_OK;
    }
    if (job->position.step > 0)
        return pace_fail(job->log, PACE_USAGE,
                         "--balance %s: this run has not recorded how steps from step %" PRIu64
                         " on are divided among %d workers: it can only be repeated from the beginning",
                         job->config->cluster.balance, job->position.step, job->plan.cluster.workers);
    pace__divisions_release(&job->divisions);
    pace_status status = read_replay(job);

    return status ? status : keep_replay(job);
}

/* What the checkpoint goes on with is in the record; if not, lines are missing. */
static bool has_saved(const pace__divisions *recorded, const pace__divisions *saved)
{
    for (size_t i = 0; i < saved->count; i++) {
        const uint32_t *rows = pace__divisions_at(recorded, saved->from[i]);

        if (!rows || recorded->workers != saved->workers ||
            memcmp(rows, saved->rows + i * saved->workers, saved->workers * sizeof *rows) != 0)
            return false;
    }
    return true;
}

static pace_status go_on(pace__job *job)
{
    const char *path = pace__rundir_path(job->run, PACE__RUN_SHARES);
    pace__divisions recorded = {0};
    char reason[PACE_LOG_TEXT_MAX] = "";
    pace__kept kept;

    pace__kept_init(&kept, reason, sizeof reason);
    pace_status status = pace__shares_read(path, &kept.log, &recorded, NULL);

    if (!status && !has_saved(&recorded, &job->divisions)) {
        pace__divisions_release(&recorded);
        status = pace_fail(&kept.log, PACE_BAD_DATA, "%s: lines are missing that the checkpoint goes on with",
                           path);
    }
    if (status == PACE_BAD_DATA) {
        pace_say(job->log, PACE_WARN,
                 "%s; it begins again with how the checkpoint divides steps, and what came before cannot be "
                 "replayed",
                 reason);
        status = pace__shares_write(path, &job->divisions, job->log);
    } else if (status) {
        return pace_fail(job->log, status, "%s", reason);
    }
    bool enough = add_recorded(&job->divisions, &recorded);

    pace__divisions_release(&recorded);
    if (!status && !enough)
        return pace_fail(job->log, PACE_FAILED, "out of memory");
    if (!status && job->plan.balancing == PACE__BALANCE_OFF && job->divisions.count > 0)
        return end_balancing(job, path);
    if (!status && job->plan.balancing == PACE__BALANCE_REPLAY)
        status = go_on_replaying(job);
    return status || job->plan.balancing == PACE__BALANCE_OFF ? status : check_divisions(job, path);
}

pace_status pace__job_find_divisions(pace__job *job)
{
    if (job->config->resume)
        return go_on(job);
    return job->plan.balancing == PACE__BALANCE_REPLAY ? keep_replay(job) : PACE_OK;
}
