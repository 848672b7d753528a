#include "plan/trial.h"

#include "base/kept.h"
#include "files/file.h"
#include "job/job.h"
#include "options/internal.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Of clicks, whose steps are short: so many records in an epoch. */
#define RECORDS_EVERY 64
#define EPOCHS        1000

typedef struct trial {
    const _Atomic int *asked; /* to stop; NULL: nobody can */
    double begin_t;
    int steps; /* records of them */
    bool began;
    _Atomic int stop;
} trial;

static bool is_asked(const trial *self)
{
    return self->asked && *self->asked;
}

static void hear(void *user, const pace_record *record)
{
    trial *self = user;

    if (strcmp(record->kind, "start") == 0) {
        self->begin_t = record->seconds;
        self->began = true;
    }
    self->steps += strcmp(record->kind, "step") == 0;
    double seconds = self->began ? record->seconds - self->begin_t : 0;

    if ((seconds > PACE__TRIAL_S && self->steps >= PACE__TRIAL_STEPS) || seconds > PACE__TRIAL_MOST_S ||
        is_asked(self))
        atomic_store(&self->stop, 1);
}

static pace_status make_directory(const pace_log *log, char **run)
{
    const char *where = getenv("TMPDIR");
    size_t room = (where ? strlen(where) : 0) + 64;

    *run = malloc(room);
    if (!*run)
        return pace_fail(log, PACE_FAILED, "out of memory");
    snprintf(*run, room, "%s/paceline-plan.XXXXXX", where && *where ? where : "/tmp");
    if (mkdtemp(*run))
        return PACE_OK;
    pace_status status = pace_fail(log, PACE_IO, "%s: cannot make a directory for a short run", *run);

    free(*run);
    *run = NULL;
    return status;
}

/* What is about the work stays as it is: data, model, rule, batch, threads. */
static pace_train_config config_of(const pace_train_config *given, int mode, const char *run)
{
    pace_train_config config, made = *given;

    pace_train_defaults(given->model, &config);
    made.run = run;
    made.mode = mode;
    made.resume = made.dry_run = false;
    made.force = true; /* it is ours, and empty */
    made.cluster = config.cluster;
    made.cluster.threads = given->cluster.threads;
    made.cluster.ps = mode == PACE_MODE_PS_SYNC ? 0 : -1;
    made.length = (pace_train_length){.batch = given->length.batch, .epochs = EPOCHS};
    made.records = config.records;
    made.records.log_every = given->model == PACE_MODEL_LOGREG ? RECORDS_EVERY : 1;
    made.records.eval_rows = 1;
    made.records.report = PACE_REPORT_OFF;
    made.faults = config.faults;
    made.faults.checkpoint_seconds = 0;
    made.stage = config.stage;
    return made;
}

/* What it says is for those who want to train, not to plan; but for why it failed. */
static pace_status train(const pace_train_config *given, int mode, const char *run, const pace_log *log)
{
    char reason[PACE_LOG_TEXT_MAX];
    pace__kept kept;
    trial self = {.asked = given->stop};
    pace_sink sink = {hear, &self};
    pace_train_config config = config_of(given, mode, run);
    pace_train_result result;
    pace_registry *registry = pace_registry_create();

    if (!registry)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace__kept_init(&kept, reason, sizeof reason);
    pace_registry_attach(registry, &sink);
    config.stop = &self.stop;
    pace_status status = pace_train(&config, &kept.log, registry, &result);

    pace_registry_free(registry);
    if (is_asked(&self))
        return PACE_INTERRUPTED;
    if (status && status != PACE_INTERRUPTED)
        return pace_fail(log, status, "%s", reason);
    return PACE_OK;
}

pace_status pace__trial_run(const pace_train_config *config, int mode, const pace_log *log, char **run)
{
    pace_status status = make_directory(log, run);

    if (status)
        return status;
    status = train(config, mode, *run, log);
    if (status) {
        pace__trial_remove(*run);
        *run = NULL;
    }
    return status;
}

void pace__trial_remove(char *run)
{
    if (run)
        pace__remove_tree(run, NULL);
    free(run);
}
