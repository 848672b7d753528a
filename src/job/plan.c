/* What a job is going to do, and whether it can: decided before anything starts. */
#include "job/plan.h"

#include "data/store/describe.h"
#include "files/output.h"
#include "inject/inject.h"
#include "math/bf16.h"
#include "model/settings.h"
#include "options/internal.h"
#include "ps/tickets.h"
#include "shares/balance.h"
#include "shares/deal.h"
#include "threads/thread.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Steps of more rows than this select the exact rule. */
#define BLOCK_RULE_BATCH_MAX 512
/* Checkpoint names have 12 digits. */
#define STEPS_MAX UINT64_C(999999999999)
/* Async: rows that are computed on weights which do not know each other. More cost accuracy
 * (docs/decisions/0009). */
#define ROWS_IN_FLIGHT_MAX 20000
/* Async: pushes of each worker that may come while another computes, before its own counts for less. */
#define FRESH_PUSHES 8

/* Steps between two looks of --balance auto; it acts only on what is more than noise. */
#define BALANCE_AUTO_STEPS 4
#define BALANCE_STEPS_MAX  1000000000

/* Of networks that workers average: what the mean is multiplied with. */
#define OUTER_RATE 1.0

static const pace__kind *kind_of(const pace_train_config *config)
{
    return pace__kind_at(config->model);
}

/* --- what needs no data --- */

static int resolve_mode(const pace_train_config *config)
{
    if (config->mode != PACE_MODE_AUTO)
        return config->mode;
    if (config->cluster.ps >= 0)
        return PACE_MODE_PS_SYNC;
    return config->cluster.workers > 1 || config->cluster.evaluator || config->cluster.hosts
               ? PACE_MODE_ALLREDUCE
               : PACE_MODE_LOCAL;
}

/* One worker of local-sgd has nobody to merge with: it is mode local. */
static pace__exchange exchange_of(int mode, int64_t workers)
{
    return mode == PACE_MODE_ALLREDUCE || mode == PACE_MODE_LOCAL   ? PACE__EXCHANGE_MERGE
           : mode == PACE_MODE_LOCAL_SGD && workers == 1            ? PACE__EXCHANGE_MERGE
           : mode == PACE_MODE_PS_ASYNC || mode == PACE_MODE_PS_SSP ? PACE__EXCHANGE_ASYNC
                                                                    : PACE__EXCHANGE_SYNC;
}

/* Where changes are merged by what gradients have done to each parameter. */
static pace_status check_merging_rows(const pace_train_config *config, const pace_log *log)
{
    const pace_train_optimiser *rule = &config->optimiser;

    if (config->cluster.outer_lr > 0 || config->cluster.outer_momentum >= 0)
        return pace_fail(log, PACE_USAGE,
                         "--outer-lr and --outer-momentum are for networks, whose workers average: how %s is "
                         "merged follows from what was learned",
                         kind_of(config)->info.name);
    if (rule->exact || config->length.batch > BLOCK_RULE_BATCH_MAX)
        return pace_fail(log, PACE_USAGE,
                         "--mode local-sgd trains sparse rows row after row, and texts by short steps, on "
                         "every worker by itself: there is no sum over %s to update from; allreduce and "
                         "ps-sync have one",
                         rule->exact ? "a step (--exact)" : "steps of more than 512 rows (--batch)");
    if (rule->rule == PACE_MOMENTUM || rule->rule == PACE_ADAM)
        return pace_fail(log, PACE_USAGE,
                         "--mode local-sgd merges what gradients have made of each parameter, and %s goes on "
                         "moving them by those of earlier rows: take --optimizer adagrad, ftrl or sgd, or "
                         "another mode",
                         rule->rule == PACE_ADAM ? "adam" : "momentum");
    return PACE_OK;
}

/* What workers that train by themselves cannot do. */
static pace_status check_local_sgd(const pace_train_config *config, const pace_log *log)
{
    const pace_train_cluster *cluster = &config->cluster;
    const pace__kind *kind = kind_of(config);

    if (!kind->by_columns && !kind->by_steps)
        return pace_fail(log, PACE_USAGE,
                         "--mode local-sgd trains logreg and networks: most parameters of %s are met by few "
                         "rows, and a mean of what workers make of those loses most of it; use --mode "
                         "allreduce",
                         kind->info.name);
    if (cluster->ps > 0 || cluster->evaluator)
        return pace_fail(log, PACE_USAGE,
                         "--mode local-sgd has no %s: its workers hold the parameters, and the chief scores "
                         "them where they are merged",
                         cluster->ps > 0 ? "--ps" : "--evaluator");
    if (cluster->hosts && cluster->workers == 1)
        return pace_fail(log, PACE_USAGE, "--mode local-sgd with one worker is mode local: give --workers");
    if (cluster->reduce == PACE_REDUCE_MPI || cluster->staleness >= 0)
        return pace_fail(log, PACE_USAGE, "%s",
                         cluster->staleness >= 0 ? "--staleness is for --mode ps-ssp"
                                                 : "--reduce is for --mode allreduce");
    return kind->by_steps ? PACE_OK : check_merging_rows(config, log); /* of those, the kind refuses ftrl */
}

/* Who computes what a worker is late with, and for whom that helps. */
static pace_status check_backups(const pace_train_config *config, const pace__job_plan *plan,
                                 const pace_log *log)
{
    const pace_train_cluster *cluster = &config->cluster;
    int mode = plan->mode;

    if (cluster->backup_workers == 0)
        return PACE_OK;
    if (plan->balancing != PACE__BALANCE_OFF)
        return pace_fail(log, PACE_USAGE,
                         "--balance gives slow workers less to do, --backup-workers has others do it again: "
                         "choose one");
    if (mode == PACE_MODE_PS_ASYNC || mode == PACE_MODE_PS_SSP)
        return pace_fail(
            log, PACE_USAGE,
            "--backup-workers is for --mode ps-sync: in %s nobody waits for a slow worker within a "
            "step",
            mode == PACE_MODE_PS_SSP ? "ps-ssp" : "ps-async");
    if (mode != PACE_MODE_PS_SYNC || cluster->ps <= 0)
        return pace_fail(
            log, PACE_USAGE,
            "--backup-workers needs --mode ps-sync with servers of their own (--ps 1 or more): %s",
            mode == PACE_MODE_PS_SYNC
                ? "with --ps 0 a worker that hangs holds up everyone with its part of the parameters"
                : "elsewhere workers hold parameters, or sum among themselves, and one that hangs "
                  "holds up all");
    if (cluster->backup_workers >= cluster->workers)
        return pace_fail(log, PACE_USAGE,
                         "--backup-workers %d of --workers %d leaves nobody to back up: it must be smaller",
                         (int)cluster->backup_workers, (int)cluster->workers);
    return PACE_OK;
}

/* Who stops behind the best has gone past it. */
static bool keeps_best(const pace_train_config *config)
{
    return config->length.keep_best || config->length.early_stop > 0;
}

static pace_status check_cluster(const pace_train_config *config, int mode, const pace_log *log)
{
    bool shards = mode >= PACE_MODE_PS_SYNC && mode <= PACE_MODE_PS_SSP;
    bool flows = mode == PACE_MODE_LOCAL_SGD && kind_of(config)->by_columns;

    if (mode == PACE_MODE_LOCAL && (config->cluster.workers > 1 || config->cluster.ps >= 0 ||
                                    config->cluster.evaluator || config->cluster.hosts))
        return pace_fail(
            log, PACE_USAGE,
            "--mode local is one process: --workers, --ps, --evaluator and --hosts need allreduce, ps-sync, "
            "ps-async, ps-ssp or (without --ps and --evaluator) local-sgd");
    if (!shards && !flows && config->cluster.wire != PACE_WIRE_F32)
        return pace_fail(log, PACE_USAGE,
                         "--wire is for ps-sync, ps-async and ps-ssp, and for logreg in local-sgd: nothing "
                         "else sends what may be rounded");
    if (mode == PACE_MODE_LOCAL_SGD)
        return check_local_sgd(config, log);
    if (config->cluster.exchange > 0 || config->cluster.outer_lr > 0 || config->cluster.outer_momentum >= 0)
        return pace_fail(log, PACE_USAGE, "--%s is for --mode local-sgd",
                         config->cluster.exchange > 0   ? "exchange"
                         : config->cluster.outer_lr > 0 ? "outer-lr"
                                                        : "outer-momentum");
    if (mode == PACE_MODE_ALLREDUCE && config->cluster.ps > 0)
        return pace_fail(log, PACE_USAGE,
                         "--mode allreduce has a replica on every worker and no --ps; ps-sync computes the "
                         "same with servers");
    if (config->cluster.staleness >= 0 && mode != PACE_MODE_PS_SSP)
        return pace_fail(log, PACE_USAGE, "--staleness is for --mode ps-ssp");
    if (mode == PACE_MODE_PS_SSP && config->cluster.staleness < 0)
        return pace_fail(log, PACE_USAGE,
                         "--mode ps-ssp needs --staleness N: how many steps may be ahead of the slowest");
    if (shards && config->cluster.reduce == PACE_REDUCE_MPI)
        return pace_fail(log, PACE_USAGE, "--reduce is for --mode allreduce");
    if (config->cluster.evaluator && keeps_best(config))
        return pace_fail(
            log, PACE_USAGE,
            "--%s decides at fixed steps and would have to wait for the --evaluator: leave out one",
            config->length.early_stop ? "early-stop" : "keep-best");
    if (mode != PACE_MODE_LOCAL && kind_of(config)->one_thread && config->cluster.threads > 1)
        return pace_fail(log, PACE_USAGE,
                         "a worker of %s computes on one thread: give --workers %d instead of --threads %d",
                         kind_of(config)->info.name, (int)(config->cluster.workers * config->cluster.threads),
                         (int)config->cluster.threads);
    return PACE_OK;
}

/* Who has made a config of zeros has said nothing of a rate. */
static pace_status check_stage(const pace_train_config *config, const pace_log *log)
{
    for (const pace_option *row = pace_train_options; row->name && !config->stage.directory; row++) {
        bool of_stage = strncmp(row->name, "stage-", 6) == 0,
             is_zero = row->offset == offsetof(pace_train_config, stage.rate) && config->stage.rate == 0;

        if (of_stage && !is_zero && !pace__value_is_default(row, (const char *)config + row->offset))
            return pace_fail(log, PACE_USAGE, "--%s needs --stage DIR, where the copies are", row->name);
    }
    return PACE_OK;
}

/* --balance off|epoch|N|auto|replay:RUN */
static pace_status parse_balance(const char *text, const pace_log *log, pace__job_plan *plan)
{
    static const char *const names[] = {
        [PACE__BALANCE_OFF] = "off", [PACE__BALANCE_EPOCH] = "epoch", [PACE__BALANCE_AUTO] = "auto"};
    char *end;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i] && (!text || strcmp(text, names[i]) == 0)) {
            plan->balancing = (pace__balancing)i;
            return PACE_OK;
        }
    }
    if (strncmp(text, PACE__REPLAY, sizeof PACE__REPLAY - 1) == 0 && text[sizeof PACE__REPLAY - 1]) {
        plan->balancing = PACE__BALANCE_REPLAY;
        return PACE_OK;
    }
    unsigned long long steps = strtoull(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end || steps < 1 || steps > BALANCE_STEPS_MAX)
        return pace_fail(log, PACE_USAGE,
                         "--balance %s: possible are off, auto, epoch, a number of steps from 1 to %d, and "
                         "replay:RUN",
                         text, BALANCE_STEPS_MAX);
    plan->balancing = PACE__BALANCE_STEPS;
    plan->balance_every = steps;
    return PACE_OK;
}

static pace_status check_balance(const pace_train_config *config, const pace_log *log, pace__job_plan *plan)
{
    pace_status status = parse_balance(config->cluster.balance, log, plan);

    bool shares = plan->mode == PACE_MODE_ALLREDUCE || plan->mode == PACE_MODE_PS_SYNC;

    if (shares && plan->cluster.workers == 1) /* there is nobody to share with */
        plan->balancing = PACE__BALANCE_OFF;
    if (status || shares || plan->balancing == PACE__BALANCE_OFF)
        return status;
    return pace_fail(log, PACE_USAGE,
                     "--balance is for allreduce and ps-sync, whose workers share each step: %s",
                     plan->mode == PACE_MODE_LOCAL       ? "mode local has one"
                     : plan->mode == PACE_MODE_LOCAL_SGD ? "those of local-sgd train parts of their own"
                                                         : "asynchronous ones take rows as fast as they are");
}

/* On every rank: hosts differ. */
static pace_status check_precision(const pace_train_config *config, const pace_log *log)
{
    const pace__bf16_kernels *way;

    if (config->precision == PACE_PRECISION_F32)
        return PACE_OK;
    if (!kind_of(config)->has_bf16)
        return pace_fail(log, PACE_USAGE, "--precision bf16 is for networks, not for %s",
                         kind_of(config)->info.name);
    return pace__bf16_use(log, &way);
}

pace_status pace__plan_cluster(const pace_train_config *config, const pace_log *log, pace__job_plan *plan)
{
    pace__fault faults[PACE__FAULTS_MAX];
    unsigned count;

    if (config->cluster.workers == PACE_WORKERS_AUTO)
        return pace_fail(log, PACE_USAGE, "--workers auto: how many is found before a job is planned");
    *plan = (pace__job_plan){.mode = resolve_mode(config), .staleness = PACE__STALENESS_UNBOUNDED};
    plan->exchange = exchange_of(plan->mode, config->cluster.workers);
    plan->backups = (int)config->cluster.backup_workers;
    plan->slices = (int)config->cluster.workers - plan->backups;
    plan->cluster = (pace__cluster){.workers = (int)config->cluster.workers,
                                    .ps = config->cluster.ps > 0 ? (int)config->cluster.ps : 0,
                                    .evaluator = config->cluster.evaluator};
    if (plan->mode == PACE_MODE_PS_SSP)
        plan->staleness = (uint64_t)config->cluster.staleness;
    if (config->force && config->resume)
        return pace_fail(log, PACE_USAGE, "--force starts over and --resume goes on: choose one");
    if (config->init_state && !config->init)
        return pace_fail(log, PACE_USAGE, "--init-state is for --init RUN");
    if (config->force && config->init && pace__output_apart(config->run, &config->init, 1, log))
        return PACE_USAGE; /* the run that is replaced would take its weights along */
    pace_status status = pace__check_class_weight(config->optimiser.class_weight, log);

    if (!status)
        status = kind_of(config)->check(config, log);
    if (!status)
        status = check_precision(config, log);
    if (!status)
        status = check_stage(config, log);
    if (!status)
        status = check_cluster(config, plan->mode, log);
    if (!status)
        status = check_balance(config, log, plan);
    if (!status)
        status = check_backups(config, plan, log);
    return status ? status : pace__faults_parse(config->faults.inject, &plan->cluster, log, faults, &count);
}

/* --- what depends on the data set --- */

bool pace__plan_goes_by_columns(const pace__job_plan *plan, const pace_train_config *config,
                                const pace__dataset *data)
{
    bool alone =
        plan->mode == PACE_MODE_LOCAL || (plan->mode == PACE_MODE_LOCAL_SGD && plan->cluster.workers == 1);

    return alone && kind_of(config)->by_columns && data->kind == PACE__ROWS_SPARSE;
}

/*
 * Rules that divide gradients by their size make shorter steps on a worker's part of a step, whose gradient is noise for the larger
 * part: by up to the root of the number of workers, which their mean does not make up for. A momentum does, that carries on all
 * movement by so much. (docs/decisions/0049)
 */
static pace__outer outer_of(const pace_train_config *config)
{
    const pace_train_cluster *cluster = &config->cluster;
    bool divides = config->optimiser.rule == PACE_ADAM || config->optimiser.rule == PACE_ADAGRAD;
    double momentum = divides ? 1 - 1 / sqrt((double)cluster->workers) : 0;

    return (pace__outer){(float)(cluster->outer_lr > 0 ? cluster->outer_lr : OUTER_RATE),
                         (float)(cluster->outer_momentum >= 0 ? cluster->outer_momentum : momentum)};
}

/* When workers that train by themselves merge. */
static void plan_rounds(const pace_train_config *config, const pace__dataset *data, pace__job_plan *plan)
{
    unsigned workers = (unsigned)plan->cluster.workers;
    uint64_t exchange = (uint64_t)config->cluster.exchange;

    if (plan->mode != PACE_MODE_LOCAL_SGD)
        return;
    plan->merges = workers > 1;
    plan->by_steps = plan->merges && kind_of(config)->by_steps;
    plan->outer = outer_of(config);
    plan->rounds = kind_of(config)->by_steps
                       ? pace__rounds_of_steps(&plan->order, plan->steps, workers, exchange)
                       : pace__rounds_make(&plan->order, plan->steps, data->entries, workers, exchange,
                                           data->kind == PACE__ROWS_TEXT);
}

pace_status pace__plan_decide(pace_train_config *config, const pace__dataset *data, const pace_log *log,
                              pace__job_plan *plan)
{
    if (data->rows == 0)
        return pace_fail(log, PACE_BAD_DATA, "%s: has no training rows", config->data);
    kind_of(config)->settle(config, data);
    if (keeps_best(config) &&
        (!config->records.eval_every || (data->test_rows == 0 && data->validation_rows == 0)))
        return pace_fail(log, PACE_USAGE,
                         "--%s needs --eval-every and rows to score: --validation, or a data set with "
                         "validation or test rows",
                         config->length.early_stop ? "early-stop" : "keep-best");
    plan->order = pace__steps_make(data->rows, (uint64_t)config->length.batch);
    plan->steps = config->length.steps ? (uint64_t)config->length.steps
                                       : (uint64_t)config->length.epochs * plan->order.per_epoch;
    if (plan->steps > STEPS_MAX || plan->steps / plan->order.per_epoch > UINT64_MAX / 4 / data->rows)
        return pace_fail(log, PACE_USAGE, "%" PRIu64 " steps are more than the limit of %" PRIu64,
                         plan->steps, (uint64_t)STEPS_MAX);
    plan->patience = (uint64_t)config->length.early_stop;
    plan->keeps_best = keeps_best(config);
    if (plan->balancing == PACE__BALANCE_OFF)
        plan->balance_every = 0;
    if (plan->balancing == PACE__BALANCE_EPOCH)
        plan->balance_every = plan->order.per_epoch;
    if (plan->balancing == PACE__BALANCE_AUTO)
        plan->balance_every = BALANCE_AUTO_STEPS;
    plan->by_columns = pace__plan_goes_by_columns(plan, config, data);
    plan->narrow = config->cluster.wire == PACE_WIRE_BF16;
    plan_rounds(config, data, plan);
    bool by_rows = plan->by_columns || (plan->merges && !plan->by_steps && data->kind == PACE__ROWS_SPARSE);

    plan->exact = config->optimiser.exact || config->length.batch > BLOCK_RULE_BATCH_MAX || !by_rows;
    double lr = config->optimiser.lr > 0 ? config->optimiser.lr
                                         : pace__optim_default_lr(config->optimiser.rule, plan->exact);

    plan->rate = (pace__rate){config->optimiser.schedule, lr, config->optimiser.warmup, plan->steps};
    return PACE_OK;
}

void pace__plan_options(const pace__job_plan *plan, const pace_train_config *settled,
                        pace_train_config *decided)
{
    *decided = *settled;
    decided->force = decided->resume = false;
    decided->faults.inject = NULL;
    decided->mode = plan->mode;
    decided->optimiser.lr = plan->rate.lr;
}

void pace__plan_identity(const pace__job_plan *plan, const pace_train_config *settled,
                         pace_train_config *decided)
{
    pace__plan_options(plan, settled, decided);
    decided->length.batch = (int64_t)plan->order.batch;
    decided->optimiser.exact = plan->exact;
}

bool pace__plan_has_open_end(const pace__job_plan *plan)
{
    return plan->rate.schedule == PACE_SCHEDULE_CONSTANT || plan->rate.schedule == PACE_SCHEDULE_INVSQRT;
}

static int threads_of(const pace__job_plan *plan, int64_t asked)
{
    const pace__dataset *data = &plan->model.data;
    uint32_t columns = data->kind == PACE__ROWS_SPARSE ? data->columns : 0;

    bool alone = plan->mode == PACE_MODE_LOCAL || (plan->mode == PACE_MODE_LOCAL_SGD && !plan->merges),
         split = plan->by_columns || (plan->merges && !plan->by_steps);

    if (alone && plan->model.kind->one_thread && !split)
        return 1;
    int threads = asked ? (int)asked : alone ? pace__cores() : 1;

    return split && columns && (uint32_t)threads > columns ? (int)columns : threads;
}

static pace__optim optim_of(const pace__job_plan *plan, const pace_train_optimiser *options)
{
    bool penalised = plan->model.penalised;
    pace__optim optim = pace__optim_make(options->rule, plan->rate.lr, options->momentum,
                                         penalised ? options->l1 : 0, penalised ? options->l2 : 0);

    if (plan->by_steps)
        pace__optim_keep_velocity(&optim);
    else if (plan->merges)
        pace__optim_keep_squares(&optim, plan->exact ? plan->order.batch : 1);
    return optim;
}

/* Messages have a limit: gradients and keys of a batch; merged sums, or the evaluator's weights, of a whole
 * shard. */
static pace_status check_messages(const pace__job_plan *plan, const pace_log *log)
{
    const pace__shape *shape = &plan->model.shape;
    uint64_t all = shape->keys + 1, places = all / (uint64_t)pace__shards(&plan->cluster) + 1;
    uint64_t dim = shape->dim, keys = plan->keys_max, batch = (dim + 1) * keys * sizeof(float);
    bool merge = pace__plan_has_replicas(plan);
    uint64_t merged = keys * (uint64_t)plan->cluster.workers;
    uint64_t shard = merge ? (dim + 1) * (merged < places ? merged : places) * sizeof(float) : 0;
    uint64_t list = plan->cluster.evaluator ? (merge ? all : places) * dim * sizeof(float) : 0;

    shard = list > shard ? list : shard;
    /* Two floats and a bit of each parameter; or rows with the rule's state and a count. */
    uint64_t merging = places * (plan->by_steps ? plan->floats * sizeof(float) + 9 : 9);

    if (plan->merges && merging > PACE__LINK_MESSAGE_MAX)
        return pace_fail(log, PACE_USAGE,
                         "%" PRIu64 " parameters of each worker may need a message of %" PRIu64
                         " bytes, the limit is %zu: take more --workers",
                         places * dim, merging, PACE__LINK_MESSAGE_MAX);
    if (plan->by_columns || plan->merges)
        return PACE_OK;
    if (batch + sizeof(pace__push) > PACE__LINK_MESSAGE_MAX)
        return pace_fail(log, PACE_USAGE,
                         "a worker's %" PRIu64 " rows of a step may need a message of %" PRIu64
                         " bytes, the limit is %zu: take a smaller --batch or more --workers",
                         plan->rows_max, batch, PACE__LINK_MESSAGE_MAX);
    if (shard + sizeof(pace__reply) > PACE__LINK_MESSAGE_MAX)
        return pace_fail(log, PACE_USAGE,
                         "a shard of %" PRIu64 " rows of parameters may need a message of %" PRIu64
                         " bytes, the limit is %zu: take more --ps%s",
                         places, shard, PACE__LINK_MESSAGE_MAX,
                         merge && shard == list ? " instead of allreduce, or no --evaluator"
                                                : " or --workers");
    return PACE_OK;
}

pace_status pace__plan_make(pace_train_config *config, const pace__dataset *data, const pace__planner *who,
                            const pace_log *log, pace__job_plan *plan)
{
    pace__plan_request request = {.config = config,
                                  .data = data,
                                  .describe = pace__describe_encoding,
                                  .computes = who->computes,
                                  .speaks = who->speaks,
                                  .begins = who->begins};
    uint64_t workers = (uint64_t)plan->slices;
    pace_status status = pace__plan_decide(config, data, log, plan);

    pace__model_plan_release(&plan->model);
    if (!status)
        status = pace__model_plan_make(kind_of(config), &request, log, &plan->model);
    if (status)
        return status;
    if (plan->backups && plan->model.pools)
        return pace_fail(
            log, PACE_USAGE,
            "--backup-workers: batch norm adds up statistics of all workers in the middle of a step, "
            "where each would wait for the slowest: take --bn local");
    plan->model.optim = optim_of(plan, &config->optimiser);
    plan->floats = (size_t)plan->model.shape.dim * plan->model.optim.width;
    plan->threads = threads_of(plan, config->cluster.threads);
    plan->by_words =
        data->kind == PACE__ROWS_TEXT && workers > 1 && pace__plan_is_sync(plan) && !plan->merges;
    plan->rows_max = plan->balancing != PACE__BALANCE_OFF
                         ? pace__share_max(plan->order.batch, (unsigned)workers)
                     : plan->by_words ? pace__deal_rows_max(plan->order.batch, (unsigned)workers)
                                      : (plan->order.batch + workers - 1) / workers;
    plan->keys_max = pace__model_keys_max(&plan->model, plan->rows_max);
    plan->depth = !pace__plan_is_sync(plan) && 2 * plan->order.batch <= ROWS_IN_FLIGHT_MAX ? 2 : 1;
    plan->scores_on_the_way = pace__plan_scores(plan) && !config->cluster.evaluator;
    return check_messages(plan, log);
}

void pace__plan_release(pace__job_plan *plan)
{
    pace__model_plan_release(&plan->model);
}

/* --- steps --- */

double pace__plan_rate(const pace__job_plan *plan, uint64_t step)
{
    const pace__rate *rate = &plan->rate;

    return pace__schedule_lr(rate->schedule, rate->lr, rate->warmup, step, rate->steps);
}

void pace__plan_stand_behind(const pace__job_plan *plan, pace__optim *optim, uint64_t step)
{
    if (step > 0)
        pace__optim_begin_step(optim, pace__plan_rate(plan, step - 1), step - 1);
}

/* --- who holds what --- */

unsigned pace__plan_holders(const pace__job_plan *plan)
{
    return pace__plan_has_replicas(plan) ? 1 : (unsigned)pace__shards(&plan->cluster);
}

pace__holder pace__plan_holder(const pace__job_plan *plan, unsigned index)
{
    uint64_t keys = plan->model.shape.keys;

    if (pace__plan_has_replicas(plan))
        return pace__holder_of(keys, 1, 0, (int)index);
    return pace__holder_of(keys, pace__plan_holders(plan), index, pace__shard_rank(&plan->cluster, 0));
}

int pace__plan_shard_of(const pace__job_plan *plan, int rank)
{
    int shard = rank - pace__shard_rank(&plan->cluster, 0);

    return shard >= 0 && shard < pace__shards(&plan->cluster) ? shard : -1;
}

pace__client_plan pace__plan_client(const pace__job_plan *plan)
{
    return (pace__client_plan){.shards = pace__shards(&plan->cluster),
                               .first_rank = pace__shard_rank(&plan->cluster, 0),
                               .exchange = plan->exchange,
                               .keys = plan->model.shape.keys,
                               .keys_max = plan->keys_max,
                               .dim = plan->model.shape.dim,
                               .narrow = plan->narrow};
}

pace__table_plan pace__plan_replica(const pace__job_plan *plan)
{
    const pace__shape *shape = &plan->model.shape;

    return (pace__table_plan){.keys = shape->keys,
                              .dim = shape->dim,
                              .shards = 1,
                              .optim = plan->model.optim,
                              .stats_first = pace__shape_stats_first(shape),
                              .stats = shape->stats_rows};
}

pace__table_plan pace__plan_trained(const pace__job_plan *plan)
{
    pace__table_plan made = pace__plan_replica(plan);

    made.optim = pace__optim_inner(&made.optim);
    return made;
}

pace__table_plan pace__plan_owned(const pace__job_plan *plan, unsigned worker)
{
    pace__table_plan made = pace__plan_replica(plan);

    made.shard = worker;
    made.shards = (unsigned)plan->cluster.workers;
    return made;
}

pace__shard_plan pace__plan_shard(const pace__job_plan *plan, unsigned shard, uint64_t first_step)
{
    pace__shard_plan made = {.exchange = plan->exchange,
                             .workers = plan->cluster.workers,
                             .steps = plan->order,
                             .first_step = first_step,
                             .rate = plan->rate,
                             .keys_max = plan->keys_max,
                             .narrow = plan->narrow,
                             .fresh_pushes = FRESH_PUSHES * (uint64_t)plan->cluster.workers,
                             .slices = plan->backups ? plan->slices : 0};

    made.table = pace__plan_replica(plan);
    made.table.shard = shard;
    made.table.shards = (unsigned)pace__shards(&plan->cluster);
    made.table.sums = pace__plan_is_sync(plan);
    if (pace__plan_has_replicas(plan)) /* sums only */
        made.table.optim = pace__optim_make(PACE_SGD, plan->rate.lr, 0, 0, 0);
    return made;
}
