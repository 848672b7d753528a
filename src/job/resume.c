/*
 * Going on with a run: what it was, as its config.yaml tells, and what may be different now.
 *
 *     identity   another value is another job: refused, by name
 *     length     may grow where the steps that were done stay right: the rate does not depend on how many follow
 *     layout     may change, and that is said
 *
 * Whoever resumes from a checkpoint has its fingerprint to go by, too (checkpoints.c); a run may have none yet, or none
 * left. A finished run has nothing left to do if this job would end where it did, and its model is whole; else it goes
 * on from its last checkpoint, if only to write the model again.
 */
#include "data/store/describe.h"
#include "files/file.h"
#include "files/sealed.h"
#include "files/sha256.h"
#include "job/job.h"
#include "job/recorded.h"
#include "options/internal.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <paceline/kernels.h>
#include <stdlib.h>
#include <string.h>

/* --- what differs --- */

#define VALUE_TEXT 128 /* a longer value is cut in messages */

typedef struct difference {
    const pace_option *row; /* the first */
    size_t rows;
    char before[VALUE_TEXT], now[VALUE_TEXT];
    char *text; /* "--workers 4 (was 2), --ps 1 (was none)" of all, in so many bytes; NULL: not wanted */
    size_t room;
} difference;

static void take_difference(void *user, const pace_option *row, const char *before, const char *now)
{
    difference *self = user;

    if (!self->row) {
        snprintf(self->before, sizeof self->before, "%s", before);
        snprintf(self->now, sizeof self->now, "%s", now);
    }
    if (self->text) {
        size_t used = strlen(self->text);

        snprintf(self->text + used, self->room - used, "%s--%s %s (was %s)", used ? ", " : "", row->name, now,
                 before);
    }
    self->row = self->row ? self->row : row;
    self->rows++;
}

static void compare(const pace__recorded *before, const pace_train_config *now, unsigned marks,
                    difference *found)
{
    pace_option_part was[4], is[4];
    int kernels = pace_kernels_asked();

    pace__record_parts(&before->config, &before->kernels, was);
    pace__record_parts(now, &kernels, is);
    pace__options_compare(was, is, marks, take_difference, found);
}

void pace__resume_say_changes(const pace__job *job, const pace_train_config *now)
{
    static const unsigned marks =
        PACE_MARK_BIT(PACE_MARK_LAYOUT) | PACE_MARK_BIT(PACE_MARK_PROCESS) | PACE_MARK_BIT(PACE_MARK_LENGTH);
    pace__recorded *was = calloc(1, sizeof *was);
    char text[PACE_LOG_TEXT_MAX / 2] = "";
    difference found = {.text = text, .room = sizeof text};

    if (was && pace__recorded_read(job->config->run, was, NULL) == PACE_OK)
        compare(was, now, marks, &found);
    if (found.row)
        pace_say(job->log, PACE_INFO, "goes on with %s", text);
    if (was)
        pace__recorded_release(was);
    free(was);
}

bool pace__resume_has_balance(const pace__job *job)
{
    pace__recorded *was = calloc(1, sizeof *was);
    bool same = was && pace__recorded_read(job->config->run, was, NULL) == PACE_OK &&
                was->config.cluster.balance &&
                strcmp(was->config.cluster.balance, job->config->cluster.balance) == 0;

    if (was)
        pace__recorded_release(was);
    free(was);
    return same;
}

/* --- the same job? --- */

static pace_status refuse_identity(const pace__job *job, const difference *found)
{
    bool flag = found->row->kind == PACE_OPT_FLAG, now = flag && strcmp(found->now, "true") == 0;

    /* One may have brought the others with it; another model certainly has. */
    if (found->rows > 1 && strcmp(found->row->name, "model") != 0)
        return pace_fail(job->log, PACE_USAGE,
                         "%s: %s was made otherwise; repeat that, or start over with --force", found->text,
                         job->config->run);
    if (flag)
        return pace_fail(job->log, PACE_USAGE,
                         "--%s%s: %s was made %s that; repeat it as it was, or start over with --force",
                         now ? "" : "no-", found->row->name, job->config->run, now ? "without" : "with");
    return pace_fail(job->log, PACE_USAGE,
                     "--%s %s: %s was made with %s; repeat that, or start over with --force",
                     found->row->name, found->now, job->config->run, found->before);
}

/* The run as it was planned; its options become what they came to. */
static pace_status plan_recorded(pace__recorded *was, const pace__dataset *data, pace__job_plan *plan)
{
    pace_train_config settled = was->config;
    pace_status status = pace__plan_cluster(&settled, NULL, plan);

    if (!status)
        status = pace__plan_decide(&settled, data, NULL, plan);
    if (!status)
        pace__plan_identity(plan, &settled, &was->config);
    return status;
}

/* Of a run that says what it was; `planned` is what it came to. */
static pace_status compare_options(const pace__job *job, const pace__dataset *data, const pace_log *log,
                                   bool *known, pace__job_plan *planned)
{
    pace__recorded *was = calloc(1, sizeof *was);
    pace_train_config now;
    char text[PACE_LOG_TEXT_MAX / 2] = "";
    difference found = {.text = text, .room = sizeof text};

    if (!was)
        return pace_fail(log, PACE_FAILED, "out of memory");
    *known = pace__recorded_read(job->config->run, was, NULL) == PACE_OK &&
             plan_recorded(was, data, planned) == PACE_OK;
    if (*known) {
        pace__plan_identity(&job->plan, job->config, &now);
        compare(was, &now, PACE_MARK_BIT(PACE_MARK_IDENTITY), &found);
    }
    pace_status status = found.row ? refuse_identity(job, &found) : PACE_OK;

    pace__recorded_release(was);
    free(was);
    return status;
}

pace_status pace__resume_check_options(const pace__job *job)
{
    pace__dataset data = pace__store_describe(&job->store.info);
    pace__job_plan planned = {0};
    bool known;

    return compare_options(job, &data, job->log, &known, &planned);
}

/* --- a finished run --- */

/* Done so many steps; would this job end there, too? */
static pace_status judge_length(const pace__job *job, const pace__job_plan *was, uint64_t done, bool early,
                                bool *finished)
{
    if (!pace__plan_has_open_end(&job->plan) && job->plan.steps != was->steps)
        return pace_fail(
            job->log, PACE_USAGE,
            "%s was planned for %" PRIu64 " step%s, and here it is %" PRIu64
            ": a rate that falls over the whole run cannot be stretched (--schedule constant and "
            "invsqrt can); repeat that, or start over with --force",
            job->config->run, was->steps, was->steps == 1 ? "" : "s", job->plan.steps);
    if (job->plan.steps < done)
        return pace_fail(job->log, PACE_USAGE,
                         "%s has done %" PRIu64 " step%s, and here it is %" PRIu64
                         ": a run can become longer, not shorter; repeat that, or start over with --force",
                         job->config->run, done, done == 1 ? "" : "s", job->plan.steps);
    early = early && job->plan.patience && job->plan.patience <= was->patience;
    if (early && done < job->plan.steps)
        pace_say(job->log, PACE_INFO,
                 "%s has stopped early, after step %" PRIu64
                 ": it goes on with a larger --early-stop, or without one",
                 job->config->run, done);
    *finished = (done == job->plan.steps || early) && was->keeps_best == job->plan.keeps_best;
    return PACE_OK;
}

/* Of a word of its own, in words that have it. */
static const char *find_word(const char *words, const char *name)
{
    const char *found = strstr(words, name);

    return found ? found + strlen(name) : "";
}

/* Features are made of pictures, and only then known; but what they would be made of is known before. */
static pace_status judge_origin(const pace__job *job, const char *theirs)
{
    const char *weights = job->plan.model.begins_with ? job->plan.model.begins_with : "none";
    char own[32];
    uint64_t key;
    pace_status status = pace__job_feature_key(job, &key);

    if (status)
        return status;
    if (strncmp(find_word(theirs, " pretrained="), weights, strlen(weights)) != 0)
        return pace_fail(job->log, PACE_USAGE,
                         "--%s: %s began with a file that holds something else, by its summary.json; "
                         "repeat it with that, or "
                         "start over with --force",
                         job->config->init ? "init" : "pretrained", job->config->run);
    snprintf(own, sizeof own, "%016" PRIx64, key);
    if (strncmp(find_word(theirs, " origin="), own, strlen(own)) != 0)
        return pace_fail(
            job->log, PACE_USAGE,
            "--data %s: %s was made of other pictures, by its summary.json; repeat it with those, or "
            "start over with --force",
            job->config->data, job->config->run);
    return PACE_OK;
}

static pace_status refuse_data(const pace__job *job, const char *own, const char *theirs)
{
    char *path = pace__run_path(job->config->run, PACE__RUN_SUMMARY);
    pace_status status = path ? pace__job_check_fingerprint(job, path, own, theirs)
                              : pace_fail(job->log, PACE_FAILED, "out of memory");

    free(path);
    return status;
}

/* Is it the same data set, and the same files that the model begins with? */
static pace_status judge_data(pace__job *job, const pace__dataset *data, const cJSON *summary)
{
    const char *theirs = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(summary, "job"));
    pace_status status = pace__job_make_plan(job, data, false);

    if (!status && job->config->init)
        status = pace__warm_identify(job->config->init, job->log, job->warm.sha256);

    if (status || !theirs)
        return status;
    if (job->plan.model.extracts)
        return judge_origin(job, theirs);
    /* Its length is judged by itself. */
    char *own = pace__job_fingerprint(job);
    size_t length = own ? (size_t)(strstr(own, " steps=") - own) : 0;

    if (!own)
        return pace_fail(job->log, PACE_FAILED, "out of memory");
    if (strncmp(own, theirs, length) != 0)
        status = refuse_data(job, own, theirs);
    free(own);
    return status;
}

static pace_status judge(pace__job *job, const pace__dataset *data, const cJSON *summary, bool *finished)
{
    uint64_t done;
    bool early = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(summary, "early_stopped")), known;
    pace__job_plan planned = {0};
    pace_status status = compare_options(job, data, job->log, &known, &planned);

    if (!status && !known) { /* the words of the summary have to do */
        planned = job->plan;
        pace_say(job->log, PACE_WARN,
                 "%s/config.yaml: damaged, or changed since the run wrote it: summary.json has to do",
                 job->config->run);
    }
    if (!status)
        status = judge_data(job, data, summary);
    if (!status && pace__json_count(summary, "steps", &done))
        status = judge_length(job, &planned, done, early, finished);
    return status;
}

/* The job is planned as it would be if it began: anew, since it may be under way. */
static pace_status judge_alone(const pace__job *given, const cJSON *summary, bool *finished)
{
    pace__job job = {.given = given->given, .settled = *given->given, .log = given->log};
    bool elsewhere =
        given->config->cluster.hosts != NULL; /* this machine may not see the data: its chief will */

    job.config = &job.settled;
    pace_status status = pace__plan_cluster(&job.settled, job.log, &job.plan);

    if (status)
        return status;
    status = pace__job_open_data(&job, elsewhere ? NULL : job.log);
    if (status)
        return elsewhere ? PACE_OK : status;
    pace__dataset data = pace__store_describe(&job.store.info);

    status = pace__plan_decide(&job.settled, &data, job.log, &job.plan);
    if (!status)
        status = judge(&job, &data, summary, finished);
    pace__plan_release(&job.plan);
    pace__warm_close(&job.warm);
    pace__store_close(&job.store);
    return status;
}

/* Is the model the one that the summary speaks of? */
static bool has_model(const pace__job *job, const cJSON *summary)
{
    const char *wanted = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(summary, "model_sha256"));
    char *path = pace__run_path(job->config->run, PACE__RUN_MODEL), found[PACE__SHA256_HEX];
    bool there = path && pace__sha256_file(path, found, NULL) == PACE_OK;

    free(path);
    return there && wanted && strcmp(wanted, found) == 0;
}

pace_status pace__resume_look(const pace__job *job, pace_train_result *result, bool *finished)
{
    char *text;

    *finished = false;
    pace_status status = pace__run_check_files(job->config->run, job->log);

    if (status || pace_train_summary(job->config->run, NULL, &text))
        return status;
    cJSON *summary = cJSON_Parse(text);

    status = judge_alone(job, summary, finished);
    *finished = !status && *finished && has_model(job, summary);
    cJSON_Delete(summary);
    free(text);
    if (!status && *finished)
        status = pace__job_read_result(job->config, job->log, result);
    return status;
}
