/* Where a prep runs; several processes are started through mpirun, whose rank 0 says what came out of it. */
#include "prep/start.h"

#include "base/clock.h"
#include "files/output.h"
#include "launch/launch.h"
#include "options/internal.h"
#include "prep/common.h"
#include "threads/thread.h"

#include <assert.h>
#include <paceline/relay.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CONTACT_S 60.0
#define NOTHING_KEPT    "; nothing was kept"

/* --- the result, as records --- */

static void emit_result(const pace__prep_kind *kind, pace_registry *registry, const char *result)
{
    pace_field values[PACE__RESULT_FIELDS_MAX];
    size_t count = 0;

    for (const pace__result_field *field = kind->fields; field->name; field++) {
        const void *at = result + field->at;

        assert(count < PACE__RESULT_FIELDS_MAX);
        values[count++] = field->real ? PACE_REAL(field->name, *(const double *)at)
                                      : PACE_INT(field->name, *(const uint64_t *)at);
    }
    pace_registry_emit(registry, "prepared", values, count);
    if (kind->emit_more)
        kind->emit_more(registry, result);
}

static void take_result(const pace__prep_kind *kind, const pace_record *record, char *result)
{
    for (const pace__result_field *field = kind->fields; field->name; field++) {
        const pace_field *found = pace_record_find(record, field->name);
        void *at = result + field->at;

        if (found && field->real && found->type == PACE_FIELD_REAL)
            *(double *)at = found->value.real;
        else if (found && !field->real && found->type == PACE_FIELD_INT)
            *(uint64_t *)at = (uint64_t)found->value.integer;
    }
}

/* --- starting processes --- */

/* What is known of a job that runs elsewhere. */
typedef struct started {
    const pace__prep_job *job;
    int processes;
    char *result;
    const uint64_t *made; /* not 0 once rank 0 has said what came out of it */
} started;

static void take_record(void *user, const pace_record *record)
{
    const started *self = user;
    const pace__prep_kind *kind = self->job->kind;

    if (strcmp(record->kind, "prepared") == 0)
        take_result(kind, record, self->result);
    else if (kind->take_more)
        kind->take_more(self->result, record);
}

/* The ranks' command: as here, but mpirun is not to be started again. */
static pace_status make_words(const pace__prep_job *job, int processes, char ***words)
{
    const pace__prep_kind *kind = job->kind;
    pace_prep_common *config = malloc(kind->config_bytes);
    pace_option_part parts[PACE_OPTIONS_TABLES_MAX];

    if (!config)
        return pace_fail(job->log, PACE_FAILED, "out of memory");
    memcpy(config, job->config, kind->config_bytes); /* all of it, what is common is its first member */
    config->mpirun = NULL;
    config->processes = processes;
    pace__options_parts(kind->tables, config, parts);
    pace_status status = pace__launch_words(kind->verb, parts, &config->inputs, job->log, words);

    free(config);
    return status;
}

static void pass_errors(void *user, pace_level level, const char *text)
{
    if (level == PACE_ERROR)
        pace_say(user, level, "%s", text);
}

/* Errors are held back: what a killed job leaves is removed before the last words. */
typedef struct held {
    const pace_log *to;
    char text[PACE_LOG_TEXT_MAX];
} held;

static void hold_error(void *user, pace_level level, const char *text)
{
    held *self = user;

    if (level == PACE_ERROR)
        snprintf(self->text, sizeof self->text, "%s", text);
    else
        pace_say(self->to, level, "%s", text);
}

static void say_why(const started *self, pace_status status, const char *text)
{
    const pace_log *log = self->job->log;
    bool nothing = pace__staging_sweep(&pace__prep_staging, self->job->config->output, log);

    if (status == PACE_INTERRUPTED && nothing)
        pace_say(log, PACE_ERROR, PACE__INTERRUPTED_TEXT);
    else
        pace_say(log, PACE_ERROR, "%s%s",
                 *text                        ? text
                 : status == PACE_INTERRUPTED ? "interrupted"
                                              : "the processes have failed without saying why",
                 nothing && status != PACE_USAGE && !strstr(text, NOTHING_KEPT) ? NOTHING_KEPT : "");
}

/* What the ranks have written gets its name from here, where it is known that all went well. */
static pace_status publish(const pace__prep_job *job)
{
    const pace_prep_common *config = job->config;
    pace__staging staging = {.lock = -1};
    pace_status status =
        pace__staging_adopt(&pace__prep_staging, config->output, config->force, &staging, job->log);

    if (!status)
        status = pace__staging_commit(&staging, job->log);
    pace__staging_abandon(&staging, NULL);
    return status;
}

static pace_status launch(const started *self, char **words, pace_registry *registry)
{
    const pace__prep_job *job = self->job;
    held errors = {.to = job->log};
    pace_log held_log = {hold_error, &errors};
    pace_sink sink = {take_record, (void *)(uintptr_t)self};
    pace__launch_plan plan = {.cluster = {.workers = self->processes},
                              .words = words,
                              .launcher = job->config->mpirun,
                              .first_contact_s = FIRST_CONTACT_S,
                              .stop = job->config->stop};

    pace_registry_attach(registry, &sink);
    pace_status status = pace__launch(&plan, &held_log, registry);

    pace_registry_detach(registry, &sink);
    if (status)
        say_why(self, status, errors.text);
    else if (*self->made == 0)
        status = pace_fail(job->log, PACE_BUG, "the job is done, but has not said what came out of it");
    return status ? status : publish(job);
}

/* How many to start. Somebody's own launcher may have more machines than this one. */
static int choose_processes(const pace__prep_job *job)
{
    int wanted = (int)job->config->processes, cores = pace__cores();
    int most = job->config->mpirun ? wanted : pace__prep_processes(wanted, cores);

    if (most < wanted)
        pace_say(job->log, PACE_WARN,
                 "--processes %d: %d are started, as many as %d core%s can start within the time for it; the "
                 "result is the same",
                 wanted, most, cores, cores == 1 ? "" : "s");
    return most;
}

/* The checks that can be made here are made here: their messages need no launcher. All else rank 0 tells. */
static pace_status start_processes(const pace__prep_job *job, char *result)
{
    started self = {.job = job, .result = result, .made = (const uint64_t *)(result + job->kind->ranks_at)};
    pace_log errors = {pass_errors, (void *)(uintptr_t)job->log};
    pace_registry *own = job->registry ? NULL : pace_registry_create();
    pace_registry *registry = job->registry ? job->registry : own;
    char **words = NULL;
    pace_status status =
        registry ? pace__prep_settle(job, &errors) : pace_fail(job->log, PACE_FAILED, "out of memory");

    if (!status) {
        self.processes = choose_processes(job);
        status = make_words(job, self.processes, &words);
    }
    if (!status)
        status = launch(&self, words, registry);
    pace_options_free_words(words);
    pace_registry_free(own);
    return status;
}

/* --- all of it --- */

static pace_status run_process(pace__prep_job *job, char *result)
{
    pace__link *link = NULL;
    pace_status status = pace__prep_open_process(job, &link);

    *(bool *)(result + job->kind->elsewhere_at) = link && pace__link_rank(link) > 0;
    if (!status)
        return job->kind->run_rank(job->prep, link, result);
    pace__link_close(link);
    return status;
}

static pace_status run_here(pace__prep_job *job, char *result)
{
    pace__link *link = NULL;
    pace_status status = pace__prep_settle(job, job->log);

    if (!status && job->kind->run_here)
        return job->kind->run_here(job->prep, result);
    if (!status)
        status = pace__prep_open_threads(job, 1, &link);
    return status ? status : job->kind->run_rank(job->prep, link, result);
}

pace_status pace__prep_run(pace__prep_job *job, void *result)
{
    const pace__prep_kind *kind = job->kind;
    uint64_t start_ns = pace__now_ns();
    char *reached = calloc(1, kind->result_bytes);
    int rank, size;
    bool launched = pace__launched(&rank, &size) && size != 1;
    pace_status status;

    if (!reached)
        return pace_fail(job->log, PACE_FAILED, "out of memory");
    if (launched)
        status = run_process(job, reached);
    else
        status = job->config->processes > 1 ? start_processes(job, reached) : run_here(job, reached);
    bool elsewhere = *(bool *)(reached + kind->elsewhere_at);

    if (!elsewhere)
        *(double *)(reached + kind->seconds_at) = pace__seconds_since(start_ns);
    if (!status && launched && !elsewhere)
        emit_result(kind, job->registry, reached);
    if (!status || elsewhere)
        memcpy(result, reached, kind->result_bytes);
    free(reached);
    return status == PACE_LOST && !pace_relay_wanted() ? PACE_FAILED : status;
}
