/* The leader's event files, for TensorBoard (events/events.h): what they are told at the beginning and at the end. */
#include "files/file.h"
#include "job/job.h"
#include "options/internal.h"

#include <paceline/kernels.h>
#include <stdlib.h>
#include <string.h>

#define HPARAMS_MAX      128
#define CONFIG_BYTES_MAX ((size_t)1 << 20)

/* What decides something is shown to be compared. */
static bool matters(const pace_option *row)
{
    return row->mark != PACE_MARK_SURFACE && strcmp(row->name, "dry-run") != 0 && row->kind != PACE_OPT_LIST;
}

/* False: it has no value. */
static bool take_value(const pace_option *row, const void *field, pace__hparam *hparam)
{
    *hparam = (pace__hparam){.name = row->name, .type = PACE__HPARAM_NUMBER};
    switch (row->kind) {
    case PACE_OPT_FLAG:
        hparam->type = PACE__HPARAM_FLAG;
        hparam->number = *(const bool *)field;
        return true;
    case PACE_OPT_INT:
        hparam->number = (double)*(const int64_t *)field;
        return true;
    case PACE_OPT_SIZE:
        hparam->number = (double)*(const uint64_t *)field;
        return true;
    case PACE_OPT_REAL:
        hparam->number = *(const double *)field;
        return true;
    case PACE_OPT_CHOICE:
        hparam->type = PACE__HPARAM_TEXT;
        return pace__choice_word(row->choices, *(const int *)field, hparam->text);
    case PACE_OPT_TEXT:
        hparam->type = PACE__HPARAM_TEXT;
        snprintf(hparam->text, sizeof hparam->text, "%s",
                 *(const char *const *)field ? *(const char *const *)field : "");
        return true;
    default:
        return false;
    }
}

static size_t take_options(const pace__job *job, pace__hparam hparams[HPARAMS_MAX])
{
    pace_train_config decided;
    pace_option_part parts[4];
    int kernels = pace_kernels_asked();
    size_t count = 0;

    pace__plan_options(&job->plan, job->config, &decided);
    pace__record_parts(&decided, &kernels, parts);
    for (const pace_option_part *part = parts; part->table; part++) {
        for (const pace_option *row = part->table; row->name && count < HPARAMS_MAX; row++)
            count +=
                matters(row) && take_value(row, (const char *)part->config + row->offset, &hparams[count]);
    }
    return count;
}

static void open_events(pace__job *job, pace__events_plan *plan)
{
    pace__hparam *hparams = calloc(HPARAMS_MAX, sizeof *hparams);
    char *config = NULL;
    size_t size;

    if (pace__read_file(pace__rundir_path(job->run, PACE__RUN_CONFIG), CONFIG_BYTES_MAX, &config, &size,
                        NULL))
        config = NULL;
    plan->config = config;
    plan->hparams = hparams;
    plan->hparams_count = hparams ? take_options(job, hparams) : 0;
    job->events = pace__events_open(plan, job->log);
    if (job->events)
        pace_registry_attach(job->registry, pace__events_sink(job->events));
    free(config);
    free(hparams);
}

void pace__job_open_events(pace__job *job)
{
    int size = pace__cluster_size(&job->plan.cluster);
    char(*roles)[PACE__EVENT_ROLE_TEXT] = calloc((size_t)size, sizeof *roles);
    pace__events_plan plan = {.directory = pace__rundir_path(job->run, PACE__RUN_EVENTS),
                              .roles = (size_t)size,
                              .goes_on = job->config->resume,
                              .step = job->position.step};

    static_assert(PACE__EVENT_ROLE_TEXT == PACE__ROLE_TEXT, "a role has one name");
    for (int rank = 0; roles && rank < size; rank++)
        pace__role_name(&job->plan.cluster, rank, roles[rank]);
    plan.role = (const char(*)[PACE__EVENT_ROLE_TEXT])roles;
    if (roles)
        open_events(job, &plan);
    free(roles);
}

typedef struct ending {
    pace__job *job;
    pace_status status;
} ending;

static pace_status close_events(void *user)
{
    const ending *self = user;
    pace__job *job = self->job;
    bool goes_on = self->status == PACE_INTERRUPTED || self->status == PACE_LOST;

    if (!goes_on && pace__job_check_ours(job, NULL) != PACE_OK)
        goes_on = true; /* who has the directory now will tell how it ends */
    pace__events_close(job->events, goes_on        ? PACE__EVENTS_OPEN
                                    : self->status ? PACE__EVENTS_FAILURE
                                                   : PACE__EVENTS_SUCCESS);
    return PACE_OK;
}

void pace__job_close_events(pace__job *job, pace_status status)
{
    if (!job->events)
        return;
    pace_registry_detach(job->registry, pace__events_sink(job->events));
    pace__job_aside(job, "writing event files", close_events, &(ending){job, status});
    job->events = NULL;
}
