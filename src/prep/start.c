/* Several processes: started through mpirun, whose rank 0 says what came out of it. */
#include "launch/launch.h"
#include "prep/common.h"
#include "prep/job.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CONTACT_S 60.0
#define NOTHING_KEPT    "; nothing was kept"

/* --- the result, as a record --- */

void pace__result_emit(pace_registry *registry, const char *kind, const pace__result_field *fields,
                       size_t count, const void *result)
{
    pace_field values[PACE__RESULT_FIELDS_MAX];

    assert(count <= PACE__RESULT_FIELDS_MAX);
    for (size_t i = 0; i < count; i++) {
        const void *at = (const char *)result + fields[i].at;

        values[i] = fields[i].real ? PACE_REAL(fields[i].name, *(const double *)at)
                                   : PACE_INT(fields[i].name, *(const uint64_t *)at);
    }
    pace_registry_emit(registry, kind, values, count);
}

void pace__result_take(const pace_record *record, const pace__result_field *fields, size_t count,
                       void *result)
{
    for (size_t i = 0; i < count; i++) {
        const pace_field *field = pace_record_find(record, fields[i].name);
        void *at = (char *)result + fields[i].at;

        if (field && fields[i].real && field->type == PACE_FIELD_REAL)
            *(double *)at = field->value.real;
        else if (field && !fields[i].real && field->type == PACE_FIELD_INT)
            *(uint64_t *)at = (uint64_t)field->value.integer;
    }
}

/* --- all of it --- */

void pace__party_only_errors(void *user, pace_level level, const char *text)
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

/* If rank 0 has said that the set is made, the trouble came behind that. */
static void say_why(const pace__party_plan *plan, pace_status status, const char *text, const pace_log *log)
{
    bool nothing = pace__staging_sweep(plan->common->output, log) && *plan->made == 0;

    if (status == PACE_INTERRUPTED && nothing)
        pace_say(log, PACE_ERROR, PACE__PREP_INTERRUPTED);
    else
        pace_say(log, PACE_ERROR, "%s%s",
                 *text                        ? text
                 : status == PACE_INTERRUPTED ? "interrupted"
                                              : "the processes have failed without saying why",
                 nothing && !strstr(text, NOTHING_KEPT) ? NOTHING_KEPT : "");
}

pace_status pace__party_launch(const pace__party_plan *plan, const pace_log *log, pace_registry *registry)
{
    held errors = {.to = log};
    pace_log held_log = {hold_error, &errors};
    pace_registry *own = registry ? NULL : pace_registry_create(), *used = registry ? registry : own;
    char **words = NULL;
    pace_status status =
        used ? pace__launch_words(plan->verb, plan->tables, plan->config, &plan->common->inputs, log, &words)
             : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status) {
        pace__launch_plan launch = {.cluster = {.workers = (int)plan->common->processes},
                                    .words = words,
                                    .launcher = plan->common->mpirun,
                                    .first_contact_s = FIRST_CONTACT_S,
                                    .stop = plan->common->stop};

        pace_registry_attach(used, &plan->sink);
        status = pace__launch(&launch, &held_log, used);
        pace_registry_detach(used, &plan->sink);
        if (status)
            say_why(plan, status, errors.text, log);
        if (!status && *plan->made == 0)
            status = pace_fail(log, PACE_BUG, "the job is done, but has not said what came out of it");
    }
    pace_options_free_words(words);
    pace_registry_free(own);
    return status;
}
