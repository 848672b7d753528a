#include "train/rehearse.h"

#include "data/store/store.h"
#include "launch/launch.h"
#include "train/supervise.h"

#include <stdlib.h>
#include <unistd.h>

typedef struct rehearsal {
    pace__job *job;
    pace__cluster cluster; /* of the job */
    int mode;
    pace__host here, *hosts; /* of the host file; NULL: all are on this machine */
    int *host_of;            /* by rank */
    const char **names;      /* of these hosts, by rank */
} rehearsal;

/* --- who would be where --- */

static pace_status place(rehearsal *self)
{
    const pace__job *job = self->job;
    const char *path = job->config->cluster.hosts;
    int size = pace__cluster_size(&self->cluster);
    size_t count;

    self->host_of = calloc((size_t)size, sizeof *self->host_of);
    self->names = calloc((size_t)size, sizeof *self->names);
    if (!self->host_of || !self->names)
        return pace_fail(job->log, PACE_FAILED, "out of memory");
    gethostname(self->here.name, sizeof self->here.name - 1);
    pace_status status = path ? pace__hosts_read(path, job->log, &self->hosts, &count) : PACE_OK;

    if (!status && path)
        status = pace__hosts_place(&self->cluster, self->hosts, count, self->host_of, job->log);
    for (int rank = 0; rank < size && !status; rank++)
        self->names[rank] = path ? self->hosts[self->host_of[rank]].name : self->here.name;
    return status;
}

/* --- what they would hold --- */

static pace_status describe(rehearsal *self, pace_train_result *result)
{
    self->job->planned_hosts = self->names;
    return pace__run_without_others(self->job, result);
}

/* --- could they be started? --- */

/* What can be told without them was. */
static void pass_on_trouble(void *user, pace_level level, const char *text)
{
    if (level == PACE_WARN || level == PACE_ERROR)
        pace_say(user, level, "%s", text);
}

/* One for each host, which are a job of their own: it is dry as well, and only as large. */
static pace_status call_hosts(rehearsal *self, const pace_log *log)
{
    const pace_train_config *config = self->job->given;
    pace_train_config ranks = *config;
    pace__launch_plan plan = {.cluster = pace__hosts_one_each(&self->cluster, self->host_of),
                              .placed = self->hosts,
                              .host_of = self->host_of,
                              .launcher = config->cluster.mpirun,
                              .first_contact_s = pace__first_contact_s(config),
                              .stop = config->stop};
    pace_option_part parts[3];
    char **words;

    ranks.mode = self->mode;
    ranks.cluster.workers = plan.cluster.workers;
    ranks.cluster.ps = plan.cluster.ps ? plan.cluster.ps : -1;
    ranks.cluster.evaluator = ranks.resume = false;
    ranks.cluster.backup_workers = 0; /* one of each role on a host: there may be no worker to spare */
    ranks.force = true;               /* what is in the run directory was looked at */
    ranks.cluster.hosts = ranks.cluster.mpirun = ranks.faults.inject = ranks.records.dashboard = NULL;
    pace__train_parts(&ranks, parts);
    pace_status status = pace__launch_words("train", parts, NULL, log, &words);

    if (status)
        return status;
    plan.words = words;
    status = pace__launch(&plan, log, NULL);
    pace_options_free_words(words);
    return status;
}

pace_status pace__rehearse(pace__job *job, pace_train_result *result)
{
    rehearsal self = {.job = job, .cluster = job->plan.cluster, .mode = job->plan.mode};
    pace_log trouble = {pass_on_trouble, (void *)(uintptr_t)job->log};
    bool told = !job->config->cluster.hosts || pace__is_store(job->config->data);
    pace_status status = place(&self);

    if (!status && told)
        status = describe(&self, result);
    else if (!status)
        pace_say(job->log, PACE_INFO,
                 "%s: is not on this machine: told is what one process on each host needs",
                 job->config->data);
    if (!status)
        status = call_hosts(&self, told ? &trouble : job->log);
    free(self.names);
    free(self.host_of);
    free(self.hosts);
    return status;
}
