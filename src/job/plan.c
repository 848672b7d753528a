/* What a job is going to do, and whether it can: decided before anything starts. */
#include "data/store/reader.h"
#include "metrics/scoring.h"
#include "model/settings.h"
#include "options/internal.h"
#include "threads/thread.h"
#include "roles/process.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Steps of more rows than this select the exact rule. */
#define BLOCK_RULE_BATCH_MAX 512
/* What a process has resident before it holds anything. */
#define PROGRAM_MB 50
/* Checkpoint names have 12 digits. */
#define STEPS_MAX UINT64_C(999999999999)

static const pace__kind *kind_of(const pace__job *job)
{
    return pace__kind_at(job->config->model);
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

static pace_status check_cluster(const pace__job *job)
{
    const pace_train_config *config = job->config;
    bool shards = job->mode >= PACE_MODE_PS_SYNC;

    if (job->mode == PACE_MODE_LOCAL && (config->cluster.workers > 1 || config->cluster.ps >= 0 ||
                                         config->cluster.evaluator || config->cluster.hosts))
        return pace_fail(
            job->log, PACE_USAGE,
            "--mode local is one process: --workers, --ps, --evaluator and --hosts need allreduce, ps-sync, "
            "ps-async or ps-ssp");
    if (job->mode == PACE_MODE_ALLREDUCE && config->cluster.ps > 0)
        return pace_fail(job->log, PACE_USAGE,
                         "--mode allreduce has a replica on every worker and no --ps; ps-sync computes the "
                         "same with servers");
    if (config->cluster.staleness >= 0 && job->mode != PACE_MODE_PS_SSP)
        return pace_fail(job->log, PACE_USAGE, "--staleness is for --mode ps-ssp");
    if (job->mode == PACE_MODE_PS_SSP && config->cluster.staleness < 0)
        return pace_fail(job->log, PACE_USAGE,
                         "--mode ps-ssp needs --staleness N: how many steps may be ahead of the slowest");
    if (shards && config->cluster.reduce == PACE_REDUCE_MPI)
        return pace_fail(job->log, PACE_USAGE, "--reduce is for --mode allreduce");
    if (config->cluster.evaluator && config->length.early_stop)
        return pace_fail(
            job->log, PACE_USAGE,
            "--early-stop decides at fixed steps and would have to wait for the --evaluator: leave out one");
    if (job->mode != PACE_MODE_LOCAL && kind_of(job)->one_thread && config->cluster.threads > 1)
        return pace_fail(job->log, PACE_USAGE,
                         "a worker of %s computes on one thread: give --workers %d instead of --threads %d",
                         kind_of(job)->info.name, (int)(config->cluster.workers * config->cluster.threads),
                         (int)config->cluster.threads);
    return PACE_OK;
}

pace_status pace__job_plan_cluster(pace__job *job)
{
    const pace_train_config *config = job->config;

    job->mode = resolve_mode(config);
    job->cluster = (pace__cluster){.workers = (int)config->cluster.workers,
                                   .ps = config->cluster.ps > 0 ? (int)config->cluster.ps : 0,
                                   .evaluator = config->cluster.evaluator};
    if (config->force && config->resume)
        return pace_fail(job->log, PACE_USAGE, "--force starts over and --resume goes on: choose one");
    pace_status status = pace__check_class_weight(config->optimiser.class_weight, job->log);

    if (!status)
        status = kind_of(job)->check(config, job->log);
    if (!status)
        status = check_cluster(job);
    pace__fault faults[PACE__FAULTS_MAX];
    unsigned count;

    return status ? status
                  : pace__faults_parse(config->faults.inject, &job->cluster, job->log, faults, &count);
}

/* --- what depends on the data set --- */

/* Messages have a limit: gradients and keys of a batch; merged sums, or the evaluator's weights, of a whole
 * shard. */
static pace_status check_messages(const pace__job *job)
{
    uint64_t all = job->shape.keys + 1, places = all / (uint64_t)pace__shards(&job->cluster) + 1;
    uint64_t dim = job->shape.dim, keys = pace__member_keys_max(job),
             batch = (dim + 1) * keys * sizeof(float);
    bool merge = pace__exchange_of(job->mode) == PACE__EXCHANGE_MERGE;
    uint64_t merged = keys * (uint64_t)job->cluster.workers;
    uint64_t shard = merge ? (dim + 1) * (merged < places ? merged : places) * sizeof(float) : 0;
    uint64_t list = job->cluster.evaluator ? (merge ? all : places) * dim * sizeof(float) : 0;

    shard = list > shard ? list : shard;
    if (job->by_columns)
        return PACE_OK;
    if (batch + sizeof(pace__push) > PACE__LINK_MESSAGE_MAX)
        return pace_fail(job->log, PACE_USAGE,
                         "a worker's %" PRIu64 " rows of a step may need a message of %" PRIu64
                         " bytes, the limit is %zu: take a smaller --batch or more --workers",
                         pace__member_rows_max(job), batch, PACE__LINK_MESSAGE_MAX);
    if (shard + sizeof(pace__reply) > PACE__LINK_MESSAGE_MAX)
        return pace_fail(job->log, PACE_USAGE,
                         "a shard of %" PRIu64 " rows of parameters may need a message of %" PRIu64
                         " bytes, the limit is %zu: take more --ps%s",
                         places, shard, PACE__LINK_MESSAGE_MAX,
                         merge && shard == list ? " instead of allreduce, or no --evaluator"
                                                : " or --workers");
    return PACE_OK;
}

static int threads_of(const pace__job *job)
{
    int64_t asked = job->config->cluster.threads;
    uint32_t columns = job->model.data.columns;

    if (job->mode != PACE_MODE_LOCAL)
        return asked ? (int)asked : 1;
    if (job->model.kind->one_thread && !job->by_columns)
        return 1;
    int threads = asked ? (int)asked : pace__cores();

    return job->by_columns && columns && (uint32_t)threads > columns ? (int)columns : threads;
}

bool pace__job_goes_by_columns(const pace__job *job, const pace__dataset *data)
{
    return job->mode == PACE_MODE_LOCAL && kind_of(job)->by_columns && data->kind == PACE__ROWS_SPARSE;
}

static pace_status plan_model(pace__job *job, const pace__dataset *data)
{
    const pace__member *member = job->member; /* NULL: this process is alone */
    pace__plan_request request = {.config = job->config,
                                  .data = data,
                                  .describe = pace__describe_encoding,
                                  .computes = !member || member->role != PACE__PS,
                                  .speaks = !member || member->self.number == 0};

    pace__model_plan_release(&job->model);
    pace_status status = pace__model_plan_make(kind_of(job), &request, job->log, &job->model);

    if (status)
        return status;
    job->model.optim = pace__job_optim(job);
    job->shape = job->model.shape;
    job->floats = (size_t)job->shape.dim * job->model.optim.width;
    return PACE_OK;
}

pace_status pace__job_decide(pace__job *job, const pace__dataset *data)
{
    const pace_train_config *config = job->config;
    uint64_t rows = data->rows;

    if (rows == 0)
        return pace_fail(job->log, PACE_BAD_DATA, "%s: has no training rows", config->data);
    kind_of(job)->settle(&job->settled, data);
    if (config->length.early_stop && (!config->records.eval_every || data->test_rows == 0))
        return pace_fail(job->log, PACE_USAGE,
                         "--early-stop needs --eval-every and a data set with test rows");
    job->order = pace__steps_make(rows, (uint64_t)config->length.batch);
    job->steps = config->length.steps ? (uint64_t)config->length.steps
                                      : (uint64_t)config->length.epochs * job->order.per_epoch;
    if (job->steps > STEPS_MAX || job->steps / job->order.per_epoch > UINT64_MAX / 4 / rows)
        return pace_fail(job->log, PACE_USAGE, "%" PRIu64 " steps are more than the limit of %" PRIu64,
                         job->steps, (uint64_t)STEPS_MAX);
    job->by_columns = pace__job_goes_by_columns(job, data);
    job->exact = config->optimiser.exact || config->length.batch > BLOCK_RULE_BATCH_MAX || !job->by_columns;
    job->lr = config->optimiser.lr > 0 ? config->optimiser.lr
                                       : pace__optim_default_lr(config->optimiser.rule, job->exact);
    return PACE_OK;
}

void pace__job_decided(const pace__job *job, pace_train_config *decided)
{
    *decided = *job->config;
    decided->force = decided->resume = false;
    decided->faults.inject = NULL;
    decided->mode = job->mode;
    decided->optimiser.lr = job->lr;
}

pace_status pace__job_plan(pace__job *job, const pace__dataset *data)
{
    pace_status status = pace__job_decide(job, data);

    if (!status)
        status = plan_model(job, data);
    if (status)
        return status;
    job->threads = threads_of(job);
    job->scores_on_the_way = data->test_rows > 0 && !job->config->cluster.evaluator;
    job->position = (pace__position){.best_logloss = INFINITY, .last_epoch_loss = NAN};
    return check_messages(job);
}

pace__optim pace__job_optim(const pace__job *job)
{
    const pace_train_config *config = job->config;

    bool penalised = job->model.penalised;

    return pace__optim_make(config->optimiser.rule, job->lr, config->optimiser.momentum,
                            penalised ? config->optimiser.l1 : 0, penalised ? config->optimiser.l2 : 0);
}

double pace__job_rate(const pace__job *job, uint64_t step)
{
    const pace_train_config *config = job->config;

    return pace__schedule_lr(config->optimiser.schedule, job->lr, config->optimiser.warmup, step, job->steps);
}

void pace__job_stand_behind(const pace__job *job, pace__optim *optim, uint64_t step)
{
    if (step > 0)
        pace__optim_begin_step(optim, pace__job_rate(job, step - 1), step - 1);
}

bool pace__job_is_over(const pace__job *job)
{
    int64_t patience = job->config->length.early_stop;

    return job->over || job->position.step >= job->steps ||
           (patience && job->position.worse >= (uint64_t)patience);
}

/* --- telling --- */

static void say_local(const pace__job *job, const pace__optim *optim)
{
    const pace__store_info *info = &job->store.info;
    double parameters = ((double)info->ids_seen + 1) * optim->width * sizeof(float);
    double gradients = job->exact ? ((double)info->ids_seen + 1) * (sizeof(float) + 4) : 0;
    uint64_t scored =
        info->rows[PACE__TEST] < PACE__METRICS_EXACT_ROWS ? info->rows[PACE__TEST] : PACE__METRICS_EXACT_ROWS;

    pace_say(job->log, PACE_INFO,
             "memory: weights and optimiser state %.1f MB (twice while a checkpoint is written), gradients "
             "%.1f MB, "
             "reading %.1f MB, scoring %.1f MB",
             parameters / 1e6, gradients / 1e6, (double)pace__reader_memory(info, job->threads) / 1e6,
             (double)scored * 8 / 1e6);
}

/* Memory that fills as batches come is counted at its most; the program itself and MPI come on top. */
static void say_cluster(const pace__job *job)
{
    pace__shard_plan shard = pace__member_shard_plan(job, 0);
    bool merge = pace__exchange_of(job->mode) == PACE__EXCHANGE_MERGE;
    double model = (double)job->shape.keys * (double)job->floats * sizeof(float);
    double server = (double)pace__shard_memory(&shard), own = job->cluster.ps ? 0 : server;
    double worker = (double)pace__worker_memory(job) + own + (merge ? model : 0);
    double scoring = job->scores_on_the_way ? (double)pace__job_scorer_memory(job) : 0;
    char ps[64] = "";

    /* Whoever keeps parameters copies them to write a checkpoint. */
    double copy = merge ? model : model / pace__shards(&job->cluster);
    bool chief_copies = merge || !job->cluster.ps, worker_copies = chief_copies && !merge;

    if (job->cluster.ps)
        snprintf(ps, sizeof ps, ", a ps %.1f MB", (server + copy) / 1e6);
    double chief = worker + model + scoring + (chief_copies ? copy : 0);

    if (pace__cluster_size(&job->cluster) == 1)
        pace_say(job->log, PACE_INFO, "memory besides %d MB for the program, at most: %.1f MB", PROGRAM_MB,
                 chief / 1e6);
    else
        pace_say(
            job->log, PACE_INFO,
            "memory besides %d MB for the program and MPI in each process, at most: chief %.1f MB, other "
            "workers %.1f MB%s",
            PROGRAM_MB, chief / 1e6, (worker + (worker_copies ? copy : 0)) / 1e6, ps);
}

/* "ps-sync, 4 workers, 2 ps, evaluator" */
static void say_roles(const pace__job *job)
{
    char mode[PACE_OPTION_NAME_MAX];

    pace__choice_word(pace__mode_names, job->mode, mode);
    pace_say(job->log, PACE_INFO, "%s: %d worker%s, %d ps%s", mode, job->cluster.workers,
             job->cluster.workers == 1 ? "" : "s", job->cluster.ps,
             job->cluster.evaluator ? ", an evaluator" : "");
    if ((uint64_t)job->cluster.workers > job->order.batch)
        pace_say(job->log, PACE_WARN, "%d workers share steps of %" PRIu64 " rows: some have none",
                 job->cluster.workers, job->order.batch);
}

void pace__job_say_needs(const pace__job *job)
{
    const pace_train_config *config = job->config;
    const pace__store_info *info = &job->store.info;

    if (config->records.eval_every && info->rows[PACE__TEST] == 0)
        pace_say(job->log, PACE_WARN, "%s: has no test rows: --eval-every does nothing", config->data);
    if (config->cluster.reduce == PACE_REDUCE_MPI && job->shape.dense_rows == 0)
        pace_say(job->log, PACE_WARN,
                 "gradients of %s are sparse: they are merged in worker order, whatever --reduce says",
                 job->model.kind->info.name);
    pace_say(job->log, PACE_INFO,
             "%" PRIu64 " rows to train on, %" PRIu64 " to test; %" PRIu64 " weights; %" PRIu64
             " steps of %" PRIu64 " rows (%s rule), %d thread%s",
             info->rows[PACE__TRAIN], info->rows[PACE__TEST], job->model.weights, job->steps,
             job->order.batch, job->exact ? "exact" : "block", job->threads, job->threads == 1 ? "" : "s");
    if (job->by_columns) {
        say_local(job, &job->model.optim);
        return;
    }
    if (job->mode != PACE_MODE_LOCAL)
        say_roles(job);
    say_cluster(job);
}
