/* workers.c - pace_plan_workers: what `train --workers auto` comes to. */
#include "base/kept.h"
#include "base/locale.h"
#include "data/store/describe.h"
#include "forecast/expect.h"
#include "job/job.h"
#include "job/recorded.h"
#include "launch/cluster.h"
#include "net/link.h"
#include "options/internal.h"
#include "plan/choose.h"
#include "plan/learn.h"
#include "plan/network.h"
#include "plan/source.h"
#include "run/rundir.h"

#include <paceline/plan.h>
#include <stdlib.h>
#include <string.h>

/* Every number of workers up to here is tried, and then every fourth or so. */
#define EACH_UP_TO  16
#define CHOICES_MAX 512
#define WORDS       192

typedef struct chooser {
    const pace_train_config *given;
    bool any_mode; /* none was asked for */
    const pace_log *log;
    char why[PACE_LOG_TEXT_MAX]; /* nothing could be learned */
    pace__learned *learned;
    int slots;
    pace__given network; /* between the hosts */
    pace_train_config configs[CHOICES_MAX];
    pace__outlook outlook[CHOICES_MAX];
    pace__choice choices[CHOICES_MAX];
    size_t count;
    bool is_doubted; /* more processes are not faster, by another forecast */
} chooser;

/* --- what may be chosen --- */

/* Nobody else is there: that is mode local, where no other was asked for. */
static bool is_alone(const pace_train_config *config)
{
    return config->cluster.workers == 1 && config->cluster.ps < 0 && !config->cluster.evaluator &&
           (config->mode == PACE_MODE_AUTO || config->mode == PACE_MODE_LOCAL);
}

/* One process has no hosts to go to, and nobody to share steps with. */
static void be_alone(pace_train_config *config)
{
    config->mode = PACE_MODE_LOCAL;
    config->cluster.hosts = NULL;
    config->cluster.balance = "off";
}

static pace_train_config config_of(const chooser *self, int mode, int workers, int ps)
{
    pace_train_config config = *self->given;

    config.mode = mode;
    config.cluster.workers = workers;
    config.cluster.ps = ps;
    if (is_alone(&config))
        be_alone(&config);
    return config;
}

/* What cannot be is none of them: it has no room on the hosts, or options that want something else. */
static void offer(chooser *self, int mode, int workers, int ps)
{
    pace_train_config config = config_of(self, mode, workers, ps);
    pace__outlook *outlook = &self->outlook[self->count];
    char why[PACE_LOG_TEXT_MAX];
    pace__kept kept;

    if (self->count == CHOICES_MAX ||
        workers + (ps > 0 ? ps : 0) + self->given->cluster.evaluator > self->slots)
        return;
    pace__kept_init(&kept, why, sizeof why);
    if (pace__learned_predict(self->learned, &config, &kept.log, outlook))
        return;
    self->configs[self->count] = config;
    self->choices[self->count++] = (pace__choice){outlook->made.rows_s, outlook->processes};
}

static void offer_servers(chooser *self, int mode, int workers)
{
    int64_t given = self->given->cluster.ps;

    if (given >= 0 || !pace__has_servers(mode)) {
        offer(self, mode, workers, (int)given);
        return;
    }
    for (int ps = 0; ps <= workers; ps = ps ? 2 * ps : 1)
        offer(self, mode, workers, ps);
}

static void offer_mode(chooser *self, int mode, int from)
{
    int most = self->slots < PACE__WORKERS_MAX ? self->slots : PACE__WORKERS_MAX;

    for (int workers = from; workers <= most;) {
        int next = workers < EACH_UP_TO ? workers + 1 : workers + workers / 4;

        offer_servers(self, mode, workers);
        workers = workers < most && next > most ? most : next;
    }
}

/* Servers that were asked for are those of ps-sync, as without auto. */
static void offer_all(chooser *self)
{
    bool open = self->any_mode && self->given->cluster.ps < 0;

    if (!open) {
        offer_mode(self, self->given->mode, 1);
        return;
    }
    bool scores = self->given->cluster.evaluator; /* it is somebody else, so the chief is not alone */

    if (!scores)
        offer(self, PACE_MODE_LOCAL, 1, -1);
    offer_mode(self, PACE_MODE_ALLREDUCE, scores ? 1 : 2);
    offer_mode(self, PACE_MODE_PS_SYNC, 2);
}

/* --- words --- */

static const char *option_words(const chooser *self, size_t place, char text[WORDS])
{
    const pace__setup *setup = &self->outlook[place].setup;
    char mode[PACE_OPTION_NAME_MAX], workers[32] = "", ps[32] = "";

    pace__choice_word(pace__mode_names, setup->mode, mode);
    if (setup->mode != PACE_MODE_LOCAL)
        snprintf(workers, sizeof workers, " --workers %d", (int)self->configs[place].cluster.workers);
    if (pace__has_servers(setup->mode))
        snprintf(ps, sizeof ps, " --ps %d", setup->ps);
    snprintf(text, WORDS, "--mode %s%s%s", mode, workers, ps);
    return text;
}

static const char *rate_words(const chooser *self, size_t place, char text[PACE__RATE_TEXT])
{
    return pace__rate_words(self->choices[place].rows_s, text);
}

static void say_more(const chooser *self, const pace__chosen *chosen)
{
    const pace__prediction *made = &self->outlook[chosen->taken].made;
    char taken[WORDS], alone[WORDS], there[PACE__RATE_TEXT], here[PACE__RATE_TEXT],
        network[PACE__NETWORK_TEXT], hosts[PACE__NETWORK_TEXT + 32] = "";

    if (self->given->cluster.hosts)
        snprintf(
            hosts, sizeof hosts, " (hosts like this one, %s)",
            pace__network_words(&pace__learned_known(self->learned)->input.machine, &self->network, network));
    pace_say(
        self->log, PACE_INFO,
        "--workers auto: %s: about %s rows/s are expected, give or take %.0f %%, bound by: %s%s; of as few "
        "processes as there may be (%s) about %s",
        option_words(self, chosen->taken, taken), rate_words(self, chosen->taken, there),
        100 * pace__learned_known(self->learned)->spread, pace__cause_name(made->cause), hosts,
        option_words(self, chosen->alone, alone), rate_words(self, chosen->alone, here));
}

/* Why no more of them. */
static void say_alone(const chooser *self, const pace__chosen *chosen)
{
    const pace__prediction *made = &self->outlook[chosen->fastest].made;
    char taken[WORDS], best[WORDS], there[PACE__RATE_TEXT], here[PACE__RATE_TEXT], more[3 * WORDS] = "";

    if (chosen->fastest != chosen->alone)
        snprintf(more, sizeof more, "; the fastest, %s, about %s (bound by: %s), is %s",
                 option_words(self, chosen->fastest, best), rate_words(self, chosen->fastest, there),
                 pace__cause_name(made->cause),
                 self->is_doubted ? "slower by a sample of rows" : "not worth it");
    else if (self->count == 1)
        snprintf(more, sizeof more, "; there is no room for more");
    else
        snprintf(more, sizeof more, "; none of the others is faster");
    pace_say(self->log, PACE_INFO, "--workers auto: %s: about %s rows/s are expected%s",
             option_words(self, chosen->taken, taken), rate_words(self, chosen->taken, here), more);
}

/* What a job would say of itself at its start, from rows that are timed one after the other (forecast/forecast.h): a second opinion. A
 * trial of some seconds knows all that a step takes, but is slow itself where others use the machine. */
static bool is_worth_it(const pace_train_config *config, const pace__machine *network, const pace_log *log)
{
    pace__job job = {.settled = *config};

    job.config = &job.settled;
    if (pace__plan_cluster(config, log, &job.plan) || pace__job_open_data(&job, log))
        return true;
    pace__dataset data = pace__store_describe(&job.store.info);
    bool worth = true;

    if (!pace__plan_make(&job.settled, &data, &(pace__planner){.computes = true}, log, &job.plan))
        worth = pace__job_is_worth_hosts(&job, config->cluster.hosts ? (int)job.plan.cluster.workers : 1,
                                         network);
    pace__plan_release(&job.plan);
    pace__store_close(&job.store);
    return worth;
}

static pace_status take_best(chooser *self, pace_train_config *config)
{
    offer_all(self);
    if (self->count == 0)
        return pace_fail(self->log, PACE_USAGE,
                         "--workers auto: no number of workers fits these options on %d slot%s: give "
                         "--workers a number, and it is said why",
                         self->slots, self->slots == 1 ? "" : "s");
    pace__chosen chosen = pace__choose_job(self->choices, self->count);
    char why[PACE_LOG_TEXT_MAX];
    pace__kept kept; /* what is wrong with it is said when it begins */

    pace__kept_init(&kept, why, sizeof why);
    self->is_doubted = chosen.taken != chosen.alone &&
                       !is_worth_it(&self->configs[chosen.taken],
                                    &pace__learned_known(self->learned)->input.machine, &kept.log);
    if (self->is_doubted)
        chosen.taken = chosen.alone;
    if (chosen.taken == chosen.alone)
        say_alone(self, &chosen);
    else
        say_more(self, &chosen);
    *config = self->configs[chosen.taken];
    return PACE_OK;
}

/* --- what has to be there --- */

/* On this machine there may be more processes than cores, if that is what is asked for; hosts have their slots. */
static pace_status check_room(chooser *self)
{
    const pace_train_cluster *cluster = &self->given->cluster;
    int64_t least = 1 + cluster->backup_workers + (cluster->ps > 0 ? cluster->ps : 0) + cluster->evaluator;

    if (least <= self->slots)
        return PACE_OK;
    if (cluster->hosts)
        return pace_fail(
            self->log, PACE_USAGE,
            "--workers auto: with as few workers as there may be these are %d processes, and %s has %d "
            "slot%s",
            (int)least, cluster->hosts, self->slots, self->slots == 1 ? "" : "s");
    self->slots = (int)least;
    return PACE_OK;
}

/* The fewest that the options ask for. */
static void take_one(pace_train_config *config)
{
    config->cluster.workers = 1 + config->cluster.backup_workers;
    if (is_alone(config))
        be_alone(config);
}

/* What is wrong with one worker is wrong with any number of them; said before seconds are spent on it. */
static pace_status check(const pace_train_config *given, const pace_log *log, bool *extracts)
{
    pace_train_config config = *given;
    pace__job_plan plan;
    pace__job job = {.config = &config};

    take_one(&config);
    config.faults.inject = NULL; /* of roles that there may be */
    pace_status status = pace__plan_cluster(&config, log, &plan);

    if (!status)
        status = pace__rundir_check(config.run, config.force ? PACE__RUN_REPLACE : PACE__RUN_NEW, log);
    if (!status)
        status = pace__job_open_data(&job, log);
    if (status)
        return status;
    pace__dataset data = pace__store_describe(&job.store.info);

    status = pace__plan_make(&config, &data, &(pace__planner){0}, log, &plan);
    *extracts = !status && plan.model.extracts;
    pace__plan_release(&plan);
    pace__store_close(&job.store);
    return status;
}

/* --- a run that goes on --- */

static pace_status keep(pace_train_config *config, const pace_log *log)
{
    pace__recorded *was = calloc(1, sizeof *was);
    pace_status status =
        was ? pace__recorded_read(config->run, was, log) : pace_fail(log, PACE_FAILED, "out of memory");
    char mode[PACE_OPTION_NAME_MAX];

    if (!status) {
        config->mode = was->config.mode;
        config->cluster.workers = was->config.cluster.workers;
        config->cluster.ps = was->config.cluster.ps;
        if (config->mode == PACE_MODE_LOCAL)
            be_alone(config);
        pace__choice_word(pace__mode_names, config->mode, mode);
        pace_say(log, PACE_INFO, "--workers auto: as %s has begun: --mode %s --workers %d", config->run, mode,
                 (int)config->cluster.workers);
    }
    if (was)
        pace__recorded_release(was);
    free(was);
    return status;
}

/* --- all of it --- */

/* Whoever cannot be asked gets no machines: the run goes on with one. */
static pace_status fall_back(pace_train_config *config, const char *why, const pace_log *log)
{
    take_one(config);
    pace_say(log, PACE_WARN, "--workers auto: as few processes as there may be, since nothing is known: %s",
             why);
    return PACE_OK;
}

/* That a run was too short to be trusted is said, whatever it is used for. */
static void hear(void *user, pace_level level, const char *text)
{
    chooser *self = user;

    if (level == PACE_ERROR && !self->why[0])
        snprintf(self->why, sizeof self->why, "%s", text);
    else if (level != PACE_ERROR)
        pace_say(self->log, level, "%s", text);
}

static pace_status ask(chooser *self, pace_train_config *config)
{
    pace_log log = {hear, self};
    bool extracts;
    pace_status status = pace__hosts_room(config->cluster.hosts, self->log, &self->slots);

    if (!status)
        status = check_room(self);
    if (!status)
        status = check(config, self->log, &extracts);
    if (status)
        return status;
    if (extracts)
        return fall_back(config, "features of pictures are computed first, and then trained on in seconds",
                         self->log);
    status = pace__network_learn(&(pace__network_plan){.hosts = config->cluster.hosts,
                                                       .launcher = config->cluster.mpirun,
                                                       .stop = config->stop},
                                 self->log, &self->network);
    if (!status) {
        pace_say(self->log, PACE_INFO, "--workers auto: training for some seconds, to learn what rows take");
        status = pace__learn(config, &self->network, PACE__LEARN_ALL, &log, &self->learned);
    }
    if (status == PACE_INTERRUPTED)
        return pace_fail(self->log, status, "interrupted before the run began");
    return status ? fall_back(config, self->why, self->log) : take_best(self, config);
}

pace_status pace_plan_workers(pace_train_config *config, bool any_mode, const pace_log *log)
{
    PACE__C_LOCALE();
    int rank, size;

    if (config->cluster.workers != PACE_WORKERS_AUTO)
        return PACE_OK;
    if (pace__launched(&rank, &size))
        return pace_fail(
            rank ? NULL : log, PACE_USAGE,
            "--workers auto: the launcher has decided how many processes there are: say how many "
            "of these %d are workers",
            size);
    if (config->resume && pace__run_exists(config->run))
        return keep(config, log);
    if (config->mode == PACE_MODE_LOCAL ||
        config->resume) { /* of nothing: that is said by who looks for it */
        take_one(config);
        return PACE_OK;
    }
    chooser *self = calloc(1, sizeof *self);

    if (!self)
        return pace_fail(log, PACE_FAILED, "out of memory");
    pace_train_config given = *config;

    self->given = &given;
    self->any_mode = any_mode;
    self->log = log;
    pace_status status = ask(self, config);

    pace__learned_free(self->learned);
    free(self);
    return status;
}
