/* plan.c - pace_plan: a matrix of jobs, what each would reach, and which to take. */
#include "base/kept.h"
#include "base/locale.h"
#include "files/file.h"
#include "forecast/sample.h"
#include "job/cost.h"
#include "net/link.h"
#include "options/internal.h"
#include "plan/calibrate.h"
#include "plan/converge.h"
#include "plan/learn.h"
#include "plan/network.h"
#include "plan/simulate.h"
#include "plan/words.h"
#include "verdict/facts.h"

#include <inttypes.h>
#include <math.h>
#include <paceline/plan.h>
#include <paceline/relay.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(name) offsetof(pace_plan_config, name)
#define HOUR_S      3600.0

const pace_option pace_plan_options[] = {
    {"run", 0, PACE_OPT_LIST, FIELD(runs), NULL, "DIR",
     "a run to learn from: what is to be trained, what its rows cost; several of the same job make it surer",
     .group = "What is known"},
    {"data", 0, PACE_OPT_TEXT, FIELD(data), NULL, "DIR", "its data set", .usual = "where it was"},
    {"model", 0, PACE_OPT_TEXT, FIELD(model), NULL, "M",
     "without --run: train this on --data for some seconds, in mode local, and learn from that"},
    {"hosts", 0, PACE_OPT_TEXT, FIELD(hosts), NULL, "FILE",
     "machines to run on, as for train: the network between them is measured, and processes have room there"},
    {"net", 0, PACE_OPT_TEXT, FIELD(net), NULL, "SPEED", "links between machines: 1gbit, 100mbit",
     .usual = "as measured with --hosts, else 1gbit"},
    {"latency", 0, PACE_OPT_TEXT, FIELD(latency), NULL, "TIME", "of a message between machines: 50us, 1ms",
     .usual = "as measured with --hosts, else 60us"},
    {"ping", 0, PACE_OPT_FLAG, FIELD(ping), "false", NULL,
     "measure the network between the machines of --hosts, and predict nothing"},
    {"mpirun", 0, PACE_OPT_TEXT, FIELD(mpirun), NULL, "CMD",
     "what starts processes there, if not the mpirun of this build"},
    {"machines", 0, PACE_OPT_INT, FIELD(machines), "0", "N",
     "without --hosts: that there are, all alike; processes share them in turn",
     .usual = "one for each process", .min = 0, .max = 100000},
    {"cores", 0, PACE_OPT_REAL, FIELD(cores), "0", "X", "of each machine", .usual = "as the run had",
     .min = 0, .max = 4096},
    {"mtbf", 0, PACE_OPT_REAL, FIELD(mtbf), "0", "HOURS",
     "from one failure of a machine to the next: what restarts cost is added", .usual = "none fails",
     .min = 0, .max = 1e9},
    {"mode", 0, PACE_OPT_TEXT, FIELD(mode), NULL, "M,...", "modes to predict", .usual = "all but ps-ssp",
     .group = "What to predict"},
    {"workers", 0, PACE_OPT_TEXT, FIELD(workers), NULL, "W,...", "numbers of workers", .usual = "1,2,4,8"},
    {"ps", 0, PACE_OPT_TEXT, FIELD(ps), NULL, "P,...", "numbers of parameter servers; 0: on the workers",
     .usual = "0,1,2"},
    {"batch", 0, PACE_OPT_TEXT, FIELD(batch), NULL, "B,...", "rows in a step", .usual = "that of the run"},
    {"price", 0, PACE_OPT_LIST, FIELD(price), NULL, "PER_HOUR",
     "of a machine: 0.35EUR; ps=0.20EUR: of those with servers"},
    {"within", 0, PACE_OPT_REAL, FIELD(within), "0", "SECONDS",
     "recommend the cheapest that ends in this time", .usual = "any", .min = 0, .max = 1e12},
    {"converge", 0, PACE_OPT_TEXT, FIELD(converge), NULL, "DIR",
     "a study converge of this job: predict the time to its loss, with the epochs that each mode, batch and "
     "number of workers took there",
     .usual = "time of the same rows"},
    {"simulate", 0, PACE_OPT_FLAG, FIELD(simulate), "false", NULL,
     "steps of several workers by events instead of formulas: queues, and with --straggle unequal steps"},
    {"straggle", 0, PACE_OPT_REAL, FIELD(straggle), "0", "X",
     "how much the steps of a worker differ: deviation over mean; for --simulate", .min = 0, .max = 2},
    {"seed", 0, PACE_OPT_INT, FIELD(seed), "1", "S", "of --simulate", .min = 0, .max = 1e18},
    {"check", 0, PACE_OPT_FLAG, FIELD(check), "false", NULL,
     "compare what is predicted of the runs that are named with what was measured"},
    {0},
};

/* --- the matrix --- */

typedef struct planner {
    const pace_plan_config *config;
    const pace_log *log;
    pace__source *sources[PACE_PLAN_RUNS_MAX];
    size_t source_count;
    pace__learned *learned; /* from runs of our own; NULL: from those that were named */
    pace__given given;
    pace__calibration known;
    pace__convergence convergence; /* with --converge */
    pace__hourly prices;
    pace__number_list modes, workers, ps, batches;
    bool modes_named;
    pace_plan_result *result;
    size_t room, left_out;
    char why_left_out[PACE_LOG_TEXT_MAX];
} planner;

/* Modes whose result is that of any other number of workers, or nearly: the others are nothing to be proposed unasked. */
static bool may_be_proposed(const planner *self, int mode)
{
    return self->modes_named || mode == PACE_MODE_LOCAL || mode == PACE_MODE_ALLREDUCE ||
           mode == PACE_MODE_PS_SYNC;
}

static pace_status hosts_for(const planner *self, const pace__cluster *cluster, const pace_log *log,
                             int *hosts)
{
    int64_t machines = self->config->machines;
    int processes = pace__cluster_size(cluster);

    *hosts = machines > 0 && machines < processes ? (int)machines : processes;
    return self->config->hosts ? pace__hosts_machines(cluster, self->config->hosts, log, hosts) : PACE_OK;
}

/* Of what is rented: machines with servers alone have a price of their own, if every process has its machine. */
static double cost_of(const planner *self, const pace__setup *setup, double seconds)
{
    int processes = setup->workers + setup->ps;
    double workers = setup->hosts < processes ? setup->hosts : setup->workers,
           servers = setup->hosts - workers;

    if (self->prices.worker < 0 || isnan(seconds))
        return -1;
    return seconds / HOUR_S * (workers * self->prices.worker + servers * self->prices.ps);
}

static void add_memory(const planner *self, const pace__job_plan *plan, pace_plan_prediction *made)
{
    pace__reading_cost reading = pace__reading_cost_of(plan, &self->sources[0]->job.store.info);
    const pace__cluster *cluster = &plan->cluster;

    made->chief_bytes = (double)pace__cost_memory(plan, &reading, 0);
    if (cluster->workers > 1)
        made->worker_bytes = (double)pace__cost_memory(plan, &reading, 1);
    if (cluster->ps > 0)
        made->server_bytes = (double)pace__cost_memory(plan, &reading, cluster->workers);
}

/* Steps of a simulation: enough for queues to fill, and for noise to be even. */
#define SIMULATED_STEPS 200

static bool has_steps(const pace__setup *setup)
{
    return setup->workers > 1 && setup->mode != PACE_MODE_LOCAL && setup->mode != PACE_MODE_LOCAL_SGD;
}

/* In the place of the formula, what events come to. */
static pace_status simulate(const planner *self, const pace__setup *setup, uint64_t staleness,
                            pace__prediction *of)
{
    pace__scene scene = pace__scene_of(&self->known, setup);
    pace__simulated made;

    scene.steps = SIMULATED_STEPS;
    scene.straggle = self->config->straggle;
    scene.seed = (uint64_t)self->config->seed;
    scene.staleness = staleness;
    pace_status status = pace__simulate(&scene, self->log, &made);

    if (!status)
        pace__prediction_at(&self->known, made.rows_s, of);
    return status;
}

/* Of all that is to be trained: the rows of the run, or as many epochs as the loss takes; NAN: nobody has measured that. */
static double seconds_of(const planner *self, const pace__setup *setup, const pace__prediction *of,
                         double *epochs)
{
    const pace__calibration *known = &self->known;
    double seconds = of->seconds;

    *epochs = NAN;
    if (self->config->converge) {
        *epochs = pace__epochs_to_loss(&self->convergence, setup, known->input.work.by_columns);
        seconds = *epochs * of->epoch_s + known->still_s;
    }
    if (isnan(seconds))
        return NAN;
    return pace__seconds_with_failures(seconds, setup->hosts, self->config->mtbf * HOUR_S,
                                       pace__save_every_s(known, of->rows_s, (double)setup->batch));
}

static pace_status prediction_of(const planner *self, const pace__job_plan *plan, pace__setup setup,
                                 pace_plan_prediction *made)
{
    pace__prediction of = pace__predict(&self->known, &setup);
    pace_status status =
        self->config->simulate && has_steps(&setup) ? simulate(self, &setup, plan->staleness, &of) : PACE_OK;
    double epochs, seconds = seconds_of(self, &setup, &of, &epochs);
    char mode[PACE_OPTION_NAME_MAX];

    *made = (pace_plan_prediction){
        .workers = setup.workers,
        .ps = setup.ps,
        .batch = setup.batch,
        .step_s = of.forecast.step_s,
        .samples_per_second = of.rows_s,
        .low = of.low,
        .high = of.high,
        .epoch_s = of.epoch_s,
        .seconds = seconds,
        .epochs = epochs,
        .efficiency = of.efficiency,
        .worker_link_bytes_s =
            fmax(of.forecast.worker_sent, of.forecast.worker_received) / of.forecast.step_s,
        .server_link_bytes_s =
            fmax(of.forecast.server_sent, of.forecast.server_received) / of.forecast.step_s,
        .bottleneck = pace__cause_name(of.cause),
        .cost = cost_of(self, &setup, seconds)};
    pace__choice_word(pace__mode_names, setup.mode, mode);
    snprintf(made->mode, sizeof made->mode, "%.15s", mode);
    add_memory(self, plan, made);
    return status;
}

/* --- which of them --- */

/* Of the block rule, and of what workers merge, steps of more rows than this are none (job/plan.c): there the largest that is. */
#define BLOCK_BATCH 512

static uint64_t batch_for(const planner *self, int mode, uint64_t batch)
{
    bool flows = self->known.input.work.flows;

    return mode == PACE_MODE_LOCAL_SGD && flows && batch > BLOCK_BATCH ? BLOCK_BATCH : batch;
}

static bool has_it_already(const planner *self, const pace__setup *setup, const char *mode)
{
    for (size_t i = 0; i < self->result->count; i++) {
        const pace_plan_prediction *of = &self->result->predictions[i];

        if (strcmp(of->mode, mode) == 0 && of->workers == setup->workers && of->ps == setup->ps &&
            of->batch == setup->batch)
            return true;
    }
    return false;
}

static pace_status make_room(planner *self)
{
    if (self->result->count < self->room)
        return PACE_OK;
    if (self->room == PACE_PLAN_CELLS_MAX)
        return pace_fail(self->log, PACE_USAGE, "more than %d predictions: shorten a list",
                         PACE_PLAN_CELLS_MAX);
    self->room = self->room ? 2 * self->room : 64;
    pace_plan_prediction *grown = realloc(self->result->predictions, self->room * sizeof *grown);

    if (!grown)
        return pace_fail(self->log, PACE_FAILED, "out of memory");
    self->result->predictions = grown;
    return PACE_OK;
}

/* Its plan, to be released, and the machines that it would be on. */
static pace_status plan_cell(const planner *self, const pace__cell *cell, const pace_log *log,
                             pace__job_plan *plan, int *hosts)
{
    pace_status status = pace__source_plan(self->sources[0], cell, log, plan);

    if (status)
        return status;
    status = hosts_for(self, &plan->cluster, log, hosts);
    if (status)
        pace__plan_release(plan);
    return status;
}

static pace_status look_at_stop(const planner *self)
{
    const _Atomic int *stop = self->config->stop;

    return stop && *stop ? pace_fail(self->log, PACE_INTERRUPTED, "interrupted") : PACE_OK;
}

static pace_status add_cell(planner *self, const pace__cell *cell)
{
    pace__job_plan plan;
    char mode[PACE_OPTION_NAME_MAX], why[PACE_LOG_TEXT_MAX];
    pace__kept kept;
    pace_status status = look_at_stop(self);
    int hosts;

    if (!status)
        status = make_room(self);
    if (status)
        return status;
    pace__kept_init(&kept, why, sizeof why);
    if (plan_cell(self, cell, &kept.log, &plan, &hosts)) {
        self->left_out++;
        memcpy(self->why_left_out, why, sizeof why);
        return PACE_OK;
    }
    pace__setup setup = pace__setup_of(&plan, hosts);

    pace__choice_word(pace__mode_names, setup.mode, mode);
    setup.steps = 0; /* the same rows as all others */
    if (!has_it_already(self, &setup, mode)) {
        status = prediction_of(self, &plan, setup, &self->result->predictions[self->result->count]);
        self->result->count += !status;
    }
    pace__plan_release(&plan);
    return status;
}

/* One worker has nobody to merge with: that is mode local. */
static bool makes_sense(int mode, uint64_t workers)
{
    return mode == PACE_MODE_LOCAL ? workers == 1 : pace__has_servers(mode) || workers > 1;
}

static pace_status add_servers(planner *self, pace__cell cell)
{
    pace_status status = PACE_OK;

    for (size_t i = 0; i < self->ps.count && !status; i++) {
        cell.ps = (int)self->ps.items[i];
        status = add_cell(self, &cell);
    }
    return status;
}

/* One machine alone by the block rule, which larger steps have not: whoever compares wants to know of it. */
static pace_status add_block_rule(planner *self, uint64_t batch)
{
    bool has_it = self->known.input.work.by_columns && batch > BLOCK_BATCH;

    return has_it ? add_cell(self, &(pace__cell){.mode = PACE_MODE_LOCAL, .workers = 1, .batch = BLOCK_BATCH})
                  : PACE_OK;
}

static pace_status add_mode(planner *self, int mode, uint64_t batch)
{
    pace_status status = mode == PACE_MODE_LOCAL ? add_block_rule(self, batch) : PACE_OK;

    for (size_t i = 0; i < self->workers.count && !status; i++) {
        pace__cell cell = {
            .mode = mode, .workers = (int)self->workers.items[i], .batch = batch_for(self, mode, batch)};

        if (makes_sense(mode, self->workers.items[i]))
            status = pace__has_servers(mode) ? add_servers(self, cell) : add_cell(self, &cell);
    }
    return status;
}

static pace_status fill_matrix(planner *self)
{
    pace_status status = PACE_OK;

    for (size_t i = 0; i < self->modes.count && !status; i++) {
        for (size_t j = 0; j < self->batches.count && !status; j++)
            status = add_mode(self, (int)self->modes.items[i], self->batches.items[j]);
    }
    if (!status && self->left_out)
        pace_say(self->log, PACE_WARN,
                 "%zu of what was asked for cannot be trained, and is left out; the last one: %s",
                 self->left_out, self->why_left_out);
    if (!status && self->result->count == 0)
        return pace_fail(
            self->log, PACE_USAGE,
            "nothing is left to predict: mode local has one worker, allreduce and local-sgd have more");
    return status;
}

/* --- which to take --- */

static bool is_faster(const pace_plan_prediction *it, const pace_plan_prediction *than)
{
    return it->seconds < than->seconds;
}

static bool is_cheaper(const pace_plan_prediction *it, const pace_plan_prediction *than)
{
    return it->cost < than->cost || (it->cost == than->cost && it->seconds < than->seconds);
}

static int mode_of(const pace_plan_prediction *of)
{
    char word[PACE_OPTION_NAME_MAX];
    int mode = 0;

    while (pace__choice_word(pace__mode_names, mode, word) && strcmp(word, of->mode) != 0)
        mode++;
    return mode;
}

/* The best of those that end, and in time. -1: there is none. */
static int best(const planner *self, double within_s,
                bool (*is_better)(const pace_plan_prediction *it, const pace_plan_prediction *than))
{
    const pace_plan_prediction *all = self->result->predictions;
    int found = -1;

    for (size_t i = 0; i < self->result->count; i++) {
        if (may_be_proposed(self, mode_of(&all[i])) && isfinite(all[i].seconds) &&
            all[i].seconds <= within_s && (found < 0 || is_better(&all[i], &all[found])))
            found = (int)i;
    }
    return found;
}

/* Steps as many as bring the same rows, where the run was told how many. */
static void take_steps(const planner *self, const pace_plan_prediction *of, pace_train_config *config)
{
    const pace_train_config *was = &self->sources[0]->was.config;

    if (was->length.steps > 0 && of->batch != (uint64_t)was->length.batch)
        config->length.steps = (int64_t)ceil(self->known.rows / (double)of->batch);
}

/* The options of the run, as the recommended job has them; of a short run of our own, what it was asked for. */
static void take_options(const planner *self, const pace_plan_prediction *of, pace_train_config *config)
{
    const pace__source *source = self->sources[0];

    if (self->learned) {
        *config = (pace_train_config){0};
        pace__options_reset(pace_train_options, config);
        config->model = source->was.config.model;
        pace__options_reset(pace__kind_at(config->model)->info.options, &config->own);
        config->length.batch = (int64_t)of->batch;
    } else {
        *config = source->was.config;
        take_steps(self, of, config);
    }
    config->data = source->job.settled.data;
    if (self->config->hosts) {
        config->cluster.hosts = self->config->hosts;
        config->cluster.mpirun = self->config->mpirun;
    }
    config->force = config->resume = config->dry_run = false;
    pace__cell_take(&(pace__cell){mode_of(of), of->workers, of->ps, of->batch}, config);
}

static pace_status put_command(const planner *self, const pace_plan_prediction *of, char **command)
{
    const pace__source *source = self->sources[0];
    pace_train_config config;
    char *run = self->learned ? strdup("planned") : pace__format("%s-planned", source->history->path),
         **words = NULL;
    pace_option_part parts[4];
    size_t count;

    take_options(self, of, &config);
    config.run = run;
    if (self->learned)
        pace__train_parts(&config, parts);
    else
        pace__record_parts(&config, &source->was.kernels, parts);
    pace_status status = run ? pace_options_to_words(parts, self->log, &words, &count)
                             : pace_fail(self->log, PACE_FAILED, "out of memory");

    if (!status) {
        *command = pace__shell_line("paceline train", words);
        pace_options_free_words(words);
        if (!*command)
            status = pace_fail(self->log, PACE_FAILED, "out of memory");
    }
    free(run);
    return status;
}

static pace_status put_commands(planner *self)
{
    pace_plan_result *result = self->result;
    const struct {
        int place;
        char **command;
    } all[] = {{result->fastest, &result->fastest_command},
               {result->cheapest, &result->cheapest_command},
               {result->recommended, &result->command}};
    pace_status status = PACE_OK;

    for (size_t i = 0; i < sizeof all / sizeof *all && !status; i++) {
        if (all[i].place >= 0)
            status = put_command(self, &result->predictions[all[i].place], all[i].command);
    }
    return status;
}

/* Why there is nothing. */
static void say_none(const planner *self)
{
    if (self->config->converge)
        pace_say(self->log, PACE_WARN,
                 "none can be recommended: %s has measured none of these that end and may be proposed",
                 self->config->converge);
    else if (self->config->mtbf > 0)
        pace_say(self->log, PACE_WARN,
                 "none can be recommended: with a failure of a machine every %g h (--mtbf) they lose more "
                 "than they train; checkpoints were %.3g s apart",
                 self->config->mtbf, self->known.save_every_s);
}

static pace_status recommend(planner *self)
{
    pace_plan_result *result = self->result;
    double within_s = self->config->within;

    result->fastest = best(self, INFINITY, is_faster);
    result->cheapest = self->prices.worker >= 0 ? best(self, INFINITY, is_cheaper) : -1;
    result->recommended = result->fastest;
    snprintf(result->why, sizeof result->why, "fastest");
    if (self->prices.worker >= 0) {
        int found = best(self, within_s > 0 ? within_s : INFINITY, is_cheaper);

        if (found >= 0) {
            result->recommended = found;
            snprintf(result->why, sizeof result->why, within_s > 0 ? "cheapest within %g s" : "cheapest",
                     within_s);
        }
    }
    if (result->recommended < 0) {
        say_none(self);
        return PACE_OK;
    }
    const pace_plan_prediction *taken = &result->predictions[result->recommended];

    if (within_s > 0 && taken->seconds > within_s)
        pace_say(self->log, PACE_WARN, "none of these ends within %g s: the fastest takes %.3g s", within_s,
                 taken->seconds);
    return put_commands(self);
}

/* --- beside what was measured --- */

/* What is compared is a run of the same job, or one like it: its own plan, on as many hosts. */
static pace_status check_run(planner *self, const char *run, pace_plan_check *check)
{
    pace__source *source;
    pace_status status = pace__source_open(run, self->config->data, self->log, &source);

    if (status)
        return status;
    pace__measured was = pace__source_measure(source);
    pace__verdict verdict;

    if (!(was.rows_s > 0))
        status = pace_fail(self->log, PACE_BAD_DATA,
                           "%s: too short to compare with: it has no two records of steps", run);
    pace__verdict_from(source->history, 0, &verdict);
    *check = (pace_plan_check){.run = run, .measured = was.rows_s};
    if (!status)
        status = prediction_of(self, &source->job.plan, pace__source_setup(source, &was), &check->predicted);
    check->error = check->predicted.samples_per_second / was.rows_s - 1;
    snprintf(check->bottleneck, sizeof check->bottleneck, "%s", pace__cause_name(verdict.cause));
    pace__source_close(source);
    return status;
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static void sum_up_checks(pace_plan_result *result)
{
    double errors[PACE_PLAN_RUNS_MAX];
    size_t count = result->check_count;

    for (size_t i = 0; i < count; i++)
        errors[i] = fabs(result->checks[i].error);
    qsort(errors, count, sizeof *errors, by_size);
    result->median_error = (errors[(count - 1) / 2] + errors[count / 2]) / 2;
    result->worst_error = errors[count - 1];
}

static pace_status check_all(planner *self)
{
    const pace_texts *runs = &self->config->words;
    pace_plan_result *result = self->result;
    pace_status status = PACE_OK;

    if (runs->count == 0 || runs->count > PACE_PLAN_RUNS_MAX)
        return pace_fail(self->log, PACE_USAGE, "--check: name the runs to compare with, 1 to %d of them",
                         PACE_PLAN_RUNS_MAX);
    result->checks = calloc(runs->count, sizeof *result->checks);
    if (!result->checks)
        return pace_fail(self->log, PACE_FAILED, "out of memory");
    for (; result->check_count < runs->count && !status; result->check_count += !status) {
        status = look_at_stop(self);
        if (!status)
            status = check_run(self, runs->items[result->check_count], &result->checks[result->check_count]);
    }
    if (!status)
        sum_up_checks(result);
    return status;
}

/* --- from words to values --- */

#define WORKERS_USUAL "1,2,4,8"
#define PS_USUAL      "0,1,2"
#define MODES_USUAL   "local,allreduce,ps-sync,ps-async,local-sgd"

static pace_status read_lists(planner *self)
{
    const pace_plan_config *config = self->config;
    pace_status status =
        pace__words_modes(config->mode ? config->mode : MODES_USUAL, self->log, &self->modes);

    self->modes_named = config->mode != NULL;
    if (!status)
        status = pace__words_numbers("workers", config->workers ? config->workers : WORKERS_USUAL, 1,
                                     PACE__WORKERS_MAX, self->log, &self->workers);
    if (!status)
        status = pace__words_numbers("ps", config->ps ? config->ps : PS_USUAL, 0, PACE__PS_MAX, self->log,
                                     &self->ps);
    if (!status && config->batch)
        status = pace__words_numbers("batch", config->batch, 1, 1e9, self->log, &self->batches);
    if (!status)
        status = pace__words_prices(&config->price, self->log, &self->prices);
    strcpy(self->result->currency, self->prices.currency);
    if (!status && config->converge) {
        status = pace__convergence_read(config->converge, self->log, &self->convergence);
        self->result->loss = self->convergence.loss;
    }
    return status;
}

static pace_status read_given(planner *self)
{
    const pace_plan_config *config = self->config;
    pace__given *given = &self->given;
    pace_status status = PACE_OK;

    if (config->hosts && config->machines)
        return pace_fail(self->log, PACE_USAGE,
                         "--hosts and --machines: both say which machines there are; give one of them");
    given->cores = config->cores;
    if (config->net) {
        status = pace__words_net(config->net, self->log, &given->link_bytes_s);
        given->link_by = PACE__GIVEN;
    }
    if (!status && config->latency) {
        status = pace__words_latency(config->latency, self->log, &given->latency_s);
        given->latency_by = PACE__GIVEN;
    }
    return status;
}

static pace__network_plan network_plan_of(const pace_plan_config *config)
{
    return (pace__network_plan){.hosts = config->hosts, .launcher = config->mpirun, .stop = config->stop};
}

static pace_status measure_network(planner *self)
{
    pace__network_plan plan = network_plan_of(self->config);
    pace_status status = pace__network_learn(&plan, self->log, &self->given);

    return status == PACE_INTERRUPTED
               ? pace_fail(self->log, status, "interrupted while the network was measured")
               : status;
}

static pace_status open_sources(planner *self)
{
    const pace_texts *runs = &self->config->runs;
    pace_status status = PACE_OK;

    if (runs->count > PACE_PLAN_RUNS_MAX)
        return pace_fail(self->log, PACE_USAGE, "%zu runs: %d are enough", runs->count, PACE_PLAN_RUNS_MAX);
    for (size_t i = 0; i < runs->count && !status; i++) {
        status = pace__source_open(runs->items[i], self->config->data, self->log, &self->sources[i]);
        self->source_count += !status;
    }
    if (!status)
        status = measure_network(self);
    return status ? status
                  : pace__calibrate(self->sources, self->source_count, &self->given, self->log, &self->known);
}

static pace_status model_of(const char *name, const pace_log *log, int *model)
{
    const pace_option *row = pace_train_options;
    char why[PACE_WHY_MAX];

    while (strcmp(row->name, "model") != 0)
        row++;
    if (!pace__value_parse(row, name, model, why))
        return pace_fail(log, PACE_USAGE, "--model %s: %s", name, why);
    return PACE_OK;
}

/* Without a run, one of some seconds, or two. */
static pace_status try_it(planner *self)
{
    const pace_plan_config *config = self->config;
    pace_train_config job;
    int model;

    if (!config->data || !config->model)
        return pace_fail(
            self->log, PACE_USAGE,
            "nothing to learn from: give --run the directory of a run of some seconds, or --data and "
            "--model, and one is made");
    pace_status status = model_of(config->model, self->log, &model);

    if (!status)
        status = measure_network(self);
    if (status)
        return status;
    pace_train_defaults(model, &job);
    job.data = config->data;
    job.run = "planned";
    job.stop = config->stop;
    pace_say(self->log, PACE_INFO, "training %s on %s for some seconds, to learn what it takes",
             config->model, config->data);
    status = pace__learn(&job, &self->given, PACE__LEARN_ALL, self->log, &self->learned);
    if (status == PACE_INTERRUPTED)
        return pace_fail(self->log, status, "interrupted: there is no plan without a run to learn from");
    if (status)
        return status;
    self->sources[0] = pace__learned_source(self->learned);
    self->known = *pace__learned_known(self->learned);
    return PACE_OK;
}

static void say_known(const planner *self)
{
    const pace__machine *machine = &self->known.input.machine;
    char network[PACE__NETWORK_TEXT];
    char learning[512] =
        "Time is predicted, not accuracy: what batch and mode do to that is left out (a study "
        "converge measures it: --converge)";

    if (self->config->converge)
        snprintf(
            learning, sizeof learning,
            "Time is that to a loss of %.5g, by epochs that %.160s has measured; what it has not is left out",
            self->convergence.loss, self->config->converge);
    pace_say(self->log, PACE_INFO, "from %s%s: %.3g cores, %s; give or take %.0f %%. %s",
             self->learned ? "a short run" : self->config->runs.items[0],
             self->source_count > 1 ? " and others" : "", machine->cores,
             pace__network_words(machine, &self->given, network), 100 * self->known.spread, learning);
}

static pace_plan_network network_of(double bytes_s, double latency_s, const pace__given *given)
{
    return (pace_plan_network){.bytes_per_second = bytes_s,
                               .latency_s = latency_s,
                               .bytes_by = pace__known_names[given->link_by],
                               .latency_by = pace__known_names[given->latency_by]};
}

static pace_status plan_all(planner *self)
{
    pace_status status = read_lists(self);

    if (!status)
        status = read_given(self);
    if (!status && self->config->runs.count == 0)
        status = try_it(self);
    else if (!status)
        status = open_sources(self);
    if (status)
        return status;
    self->result->network =
        network_of(self->known.input.machine.link_bytes_s, self->known.input.machine.latency_s, &self->given);
    if (self->batches.count == 0)
        self->batches = (pace__number_list){.items = {self->sources[0]->job.plan.order.batch}, .count = 1};
    say_known(self);
    if (self->config->check)
        return check_all(self);
    status = fill_matrix(self);
    return status ? status : recommend(self);
}

pace_status pace_plan(const pace_plan_config *config, const pace_log *log, pace_plan_result *result)
{
    PACE__C_LOCALE();
    planner *self = calloc(1, sizeof *self);

    *result = (pace_plan_result){.fastest = -1, .cheapest = -1, .recommended = -1, .loss = NAN};
    if (!self)
        return pace_fail(log, PACE_FAILED, "out of memory");
    self->config = config;
    self->log = log;
    self->result = result;
    pace_status status = plan_all(self);

    for (size_t i = 0; i < self->source_count; i++)
        pace__source_close(self->sources[i]);
    pace__learned_free(self->learned);
    free(self);
    if (status)
        pace_plan_release(result);
    return status;
}

pace_status pace_plan_ping(const pace_plan_config *config, const pace_log *log, pace_registry *registry,
                           pace_plan_result *result)
{
    PACE__C_LOCALE();
    pace__network_plan plan = network_plan_of(config);
    pace__given measured = {.link_by = PACE__MEASURED, .latency_by = PACE__MEASURED};
    pace__network network = {0};
    pace_status status;
    int rank, size;

    *result = (pace_plan_result){.fastest = -1, .cheapest = -1, .recommended = -1, .loss = NAN};
    if (config->net || config->latency)
        return pace_fail(log, PACE_USAGE, "--ping measures what --net and --latency give: leave them out");
    if (pace__launched(&rank, &size))
        status = pace__network_ping(log, registry, &result->elsewhere, &network);
    else if (!config->hosts)
        return pace_fail(log, PACE_USAGE, "--hosts is missing: between which machines?");
    else
        status = pace__network_measure(&plan, log, &network);
    if (status == PACE_INTERRUPTED)
        return pace_fail(log, status, "interrupted while the network was measured");
    result->network = network_of(network.link_bytes_s, network.latency_s, &measured);
    return status == PACE_LOST && !pace_relay_wanted() ? PACE_FAILED : status;
}

void pace_plan_release(pace_plan_result *result)
{
    PACE__C_LOCALE();
    free(result->predictions);
    free(result->checks);
    free(result->fastest_command);
    free(result->cheapest_command);
    free(result->command);
    *result = (pace_plan_result){.fastest = -1, .cheapest = -1, .recommended = -1, .loss = NAN};
}
