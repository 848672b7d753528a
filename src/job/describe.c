/* What the user is told of a job before it starts, and what --dry-run tells. */
#include "data/store/slice.h"
#include "job/cost.h"
#include "job/job.h"
#include "options/internal.h"
#include "watch/spans.h"

#include <inttypes.h>

/* Where workers that merge lose: rows of each; entries of a row. */
#define FEW_ROWS  50000
#define WIDE_ROWS 128

static double megabytes_of(const pace__job *job, int rank)
{
    pace__reading_cost reading = pace__reading_cost_of(&job->plan, &job->store.info);

    return (double)pace__cost_memory(&job->plan, &reading, rank) / 1e6;
}

/* --- before it starts --- */

static void say_columns(const pace__job *job)
{
    pace__reading_cost reading = pace__reading_cost_of(&job->plan, &job->store.info);
    pace__columns_cost cost = pace__cost_columns(&job->plan, &reading);

    pace_say(job->log, PACE_INFO,
             "memory: weights and optimiser state %.1f MB (twice while a checkpoint is written), gradients "
             "%.1f MB, "
             "reading %.1f MB, scoring %.1f MB",
             (double)cost.parameters / 1e6, (double)cost.gradients / 1e6, (double)cost.reading / 1e6,
             (double)cost.scoring / 1e6);
}

static void say_memory(const pace__job *job)
{
    const pace__cluster *cluster = &job->plan.cluster;
    char others[64] = "", ps[64] = "";

    if (pace__cluster_size(cluster) == 1) {
        pace_say(job->log, PACE_INFO, "memory besides %d MB for the program, at most: %.1f MB",
                 PACE__PROGRAM_MB, megabytes_of(job, 0));
        return;
    }
    if (cluster->workers > 1)
        snprintf(others, sizeof others, ", other workers %.1f MB", megabytes_of(job, 1));
    if (cluster->ps)
        snprintf(ps, sizeof ps, ", a ps %.1f MB", megabytes_of(job, cluster->workers));
    pace_say(job->log, PACE_INFO,
             "memory besides %d MB for the program and MPI in each process, at most: chief %.1f MB%s%s",
             PACE__PROGRAM_MB, megabytes_of(job, 0), others, ps);
}

/* What was measured where merging costs most; docs/decisions/0043 has the tables. */
static void say_merging(const pace__job *job)
{
    uint64_t rows = job->plan.order.rows, workers = (uint64_t)job->plan.cluster.workers;
    uint64_t entries = job->plan.model.data.entries / rows, passes = job->plan.rounds.last / rows;

    if (rows / workers < FEW_ROWS)
        pace_say(
            job->log, PACE_WARN,
            "%" PRIu64 " rows for each of %" PRIu64
            " workers: below %d merging takes longer than training. Expect a log-loss up to %s %% above that "
            "of --mode local%s, which is faster here%s",
            rows / workers, workers, FEW_ROWS, workers > 16 ? "4" : "1", passes <= 1 ? " after one pass" : "",
            job->plan.model.data.kind == PACE__ROWS_TEXT
                ? "; a few thousand texts of hundreds of words lose far more"
                : "");
    if (entries > WIDE_ROWS && job->plan.model.data.kind == PACE__ROWS_SPARSE)
        pace_say(job->log, PACE_WARN,
                 "rows of %" PRIu64
                 " entries: their parameters are learned together, and merging loses more: expect a log-loss "
                 "%s %% above that of --mode local after one pass; allreduce and ps-sync lose nothing",
                 entries, workers > 16 ? "1.6 to 4" : ".7 to 1.2");
}

/* Of networks: what a round is, and what is different from steps of all workers together. */
static void say_averaging(const pace__job *job)
{
    const pace__job_plan *plan = &job->plan;
    uint64_t steps = plan->rounds.flush_rows / plan->order.batch;

    pace_say(job->log, PACE_INFO,
             "each worker takes up to %" PRIu64 " step%s of its own, of %" PRIu64
             " rows, then all are averaged (--exchange %" PRIu64 "; outer rate %g, momentum %g)",
             steps, steps == 1 ? "" : "s", plan->rows_max, steps * plan->rows_max, (double)plan->outer.rate,
             (double)plan->outer.momentum);
    if (plan->model.pools)
        pace_say(job->log, PACE_INFO,
                 "batch norm goes by the %" PRIu64 " rows of a worker's step, whatever --bn says",
                 plan->rows_max);
    if (steps == 1)
        pace_say(job->log, PACE_WARN,
                 "workers that average behind every step send more than --mode allreduce, and gain nothing");
}

/* "ps-sync, 4 workers, 2 ps, evaluator" */
static void say_roles(const pace__job *job)
{
    char mode[PACE_OPTION_NAME_MAX], ps[32] = "";

    pace__choice_word(pace__mode_names, job->plan.mode, mode);
    if (!job->plan.merges)
        snprintf(ps, sizeof ps, ", %d ps", job->plan.cluster.ps);
    pace_say(job->log, PACE_INFO, "%s: %d worker%s%s%s", mode, job->plan.cluster.workers,
             job->plan.cluster.workers == 1 ? "" : "s", ps,
             job->plan.cluster.evaluator ? ", an evaluator" : "");
    if (job->plan.backups)
        pace_say(job->log, PACE_INFO,
                 "steps are cut as for %d worker%s; up to %d that are slow or hang hold up no step",
                 job->plan.slices, job->plan.slices == 1 ? "" : "s", job->plan.backups);
    if (job->plan.by_steps)
        say_averaging(job);
    else if (job->plan.merges)
        say_merging(job);
    if ((!job->plan.merges || job->plan.by_steps) && (uint64_t)job->plan.slices > job->plan.order.batch)
        pace_say(job->log, PACE_WARN, "%d workers share steps of %" PRIu64 " rows: some have none",
                 job->plan.slices, job->plan.order.batch);
}

/* Networks know one rule only. */
static const char *rule_words(const pace__job_plan *plan)
{
    if (!plan->model.kind->by_columns)
        return "";
    return plan->exact ? " (exact rule)" : " (block rule)";
}

/* For whoever lets a job be rehearsed, and runs it later. */
static void tell_plan(const pace__job *job)
{
    pace_field fields[] = {PACE_INT("steps", job->plan.steps),
                           PACE_INT("open_end", pace__plan_has_open_end(&job->plan)),
                           PACE_INT("validation_rows", job->plan.model.data.validation_rows)};

    pace_registry_emit(job->registry, "planned", fields, sizeof fields / sizeof *fields);
}

/* " --pooling mean": the kind's choices that were left to "auto", and what became of them. */
static void own_choices(const pace__job *job, char *text, size_t size)
{
    const pace_option *row = job->plan.model.kind->info.options;
    size_t used = 0;

    text[0] = '\0';
    for (; row->name && used < size; row++) {
        char given[PACE_OPTION_NAME_MAX], settled[PACE_OPTION_NAME_MAX];

        if (row->kind != PACE_OPT_CHOICE)
            continue;
        pace__choice_word(row->choices, *(const int *)((const char *)&job->given->own + row->offset), given);
        pace__choice_word(row->choices, *(const int *)((const char *)&job->config->own + row->offset),
                          settled);
        if (strcmp(given, "auto") == 0 && strcmp(settled, "auto") != 0)
            used += (size_t)snprintf(text + used, size - used, " --%s %s", row->name, settled);
    }
}

/* What was left open, and is decided by the data: said, since it decides what is learned. */
static void say_defaults(const pace__job *job)
{
    const pace__dataset *data = &job->plan.model.data;
    bool length = !job->given->length.epochs && !job->given->length.steps,
         rate = job->given->optimiser.lr == 0;
    char epochs[48] = "", lr[48] = "", entries[48] = "", own[128];

    own_choices(job, own, sizeof own);
    if (length)
        snprintf(epochs, sizeof epochs, " --epochs %" PRId64, job->config->length.epochs);
    if (rate)
        snprintf(lr, sizeof lr, " --lr %g", job->plan.rate.lr);
    if (data->kind == PACE__ROWS_SPARSE)
        snprintf(entries, sizeof entries, " of %.3g entries", (double)data->entries / (double)data->rows);
    if (length || rate || own[0])
        pace_say(job->log, PACE_INFO, "by default, for %" PRIu64 " rows%s:%s%s%s", data->rows, entries,
                 epochs, lr, own);
}

void pace__job_say_needs(const pace__job *job)
{
    const pace_train_config *config = job->config;
    const pace__store_info *info = &job->store.info;
    char validation[48] = "";

    if (pace__store_tells(info, PACE__VALIDATION))
        snprintf(validation, sizeof validation, "%" PRIu64 " to validate, ", info->rows[PACE__VALIDATION]);
    if (config->cluster.threads > job->plan.threads)
        pace_say(job->log, PACE_WARN, "--threads %d: there is work for %d", (int)config->cluster.threads,
                 job->plan.threads);
    if (config->records.eval_every && !pace__plan_scores(&job->plan))
        pace_say(job->log, PACE_WARN, "%s: has no test rows: --eval-every does nothing", config->data);
    if (job->plan.keeps_best && !pace__plan_validates(&job->plan))
        pace_say(
            job->log, PACE_WARN,
            "--%s goes by the test rows, so that their scores are better than those of new rows will be: "
            "--validation 0.1 sets rows apart for it",
            config->length.early_stop ? "early-stop" : "keep-best");
    if (config->cluster.reduce == PACE_REDUCE_MPI && job->plan.model.shape.dense_rows == 0)
        pace_say(job->log, PACE_WARN,
                 "gradients of %s are sparse: they are merged in worker order, whatever --reduce says",
                 job->plan.model.kind->info.name);
    pace_say(job->log, PACE_INFO,
             "%" PRIu64 " rows to train on, %s%" PRIu64 " to test; %" PRIu64 " weights; %" PRIu64
             " step%s of %" PRIu64 " rows%s, %d thread%s",
             info->rows[PACE__TRAIN], validation, info->rows[PACE__TEST], job->plan.model.weights,
             job->plan.steps, job->plan.steps == 1 ? "" : "s", job->plan.order.batch, rule_words(&job->plan),
             job->plan.threads, job->plan.threads == 1 ? "" : "s");
    say_defaults(job);
    if (!job->plan.exact && job->plan.model.optim.lazy)
        pace_say(job->log, PACE_INFO,
                 "penalties: every parameter that a row touches is brought up to date by itself: rows take "
                 "several times as long as without --l1 and --l2");
    if (config->records.profile > 0)
        pace_say(job->log, PACE_INFO,
                 "profile: spans may take up to %.0f MB in each process, twice that while they are collected",
                 (double)pace__spans_memory(job->plan.threads) / 1e6);
    if (config->dry_run)
        tell_plan(job);
    if (job->plan.by_columns) {
        say_columns(job);
        return;
    }
    if (job->plan.mode != PACE_MODE_LOCAL)
        say_roles(job);
    say_memory(job);
}

/* --- a dry run --- */

/* How many keys a worker's part of the first step has: what will travel is known only from the rows. */
static pace_status count_keys(const pace__job *job, uint32_t *keys)
{
    uint64_t first, rows, rows_max = job->plan.rows_max;
    pace__slice slice = {0};
    pace__model *model = NULL;
    pace__model_batch batch = {0};
    bool merge = job->plan.merges || pace__plan_has_replicas(&job->plan);

    if (job->plan.model.shape.keys == job->plan.model.shape.dense_rows) { /* every row needs all of them */
        *keys = merge ? 0 : job->plan.model.shape.dense_rows;
        return PACE_OK;
    }
    pace_status status =
        pace__slice_init(&slice, &job->store, PACE__TRAIN, job->config->seed, rows_max, job->log);

    /* The last worker's part is never smaller than another's. */
    pace__plan_slice(&job->plan, 0, job->plan.slices - 1, &first, &rows);
    if (!status)
        status = pace__slice_read(&slice, first, rows);
    if (!status)
        status = pace__model_create(&job->plan.model, rows_max, job->plan.threads, false, job->log, &model);
    if (!status)
        status = pace__model_find(model, &slice.rows, first, &batch);
    *keys = merge ? batch.sparse : batch.keys.count;
    pace__model_batch_release(&batch);
    pace__model_free(model);
    pace__slice_release(&slice);
    return status;
}

static void describe_rank(const pace__job *job, int rank, const char *name)
{
    const pace__shape *shape = &job->plan.model.shape;
    int shard = pace__plan_shard_of(&job->plan, rank);
    char holds[96] = "";

    if (shard >= 0) {
        unsigned shards = (unsigned)pace__shards(&job->plan.cluster);
        uint64_t places = pace__holder_of(shape->keys, shards, (unsigned)shard, 0).places;

        snprintf(holds, sizeof holds,
                 job->plan.merges                      ? ", a replica, merges %" PRIu64 " parameters"
                 : pace__plan_has_replicas(&job->plan) ? ", a replica, sums %" PRIu64 " gradients"
                                                       : ", holds %" PRIu64 " parameters",
                 places * shape->dim);
    }
    pace_say(job->log, PACE_INFO, "%s: at most %.1f MB%s", name, megabytes_of(job, rank), holds);
}

/* What a worker would send if all summed their gradients in every step instead: its keys to those who sum them, all workers'
 * sums of its share to the others. */
static double allreduce_bytes(const pace__job *job, uint32_t keys)
{
    const pace__shape *shape = &job->plan.model.shape;
    double others = (double)(job->plan.cluster.workers - 1) / job->plan.cluster.workers;
    double by_key = (1.0 + job->plan.cluster.workers) * keys * (4.0 * shape->dim + 4);
    uint64_t epoch = job->plan.order.per_epoch, steps = job->plan.steps < epoch ? job->plan.steps : epoch;

    return (double)steps * others * (2 * 4 * (double)shape->dense + by_key);
}

static void describe_averaging(const pace__job *job, const pace__merge_cost *cost, uint32_t keys)
{
    double sent = (double)cost->flushes * cost->flush;

    pace_say(
        job->log, PACE_INFO,
        "in an epoch %" PRIu64
        " flush%s; each worker sends at most %.1f MB at one, %.1f MB in an epoch; by --mode allreduce it "
        "would be up to %.1f MB",
        cost->flushes, cost->flushes == 1 ? "" : "es", cost->flush / 1e6, sent / 1e6,
        allreduce_bytes(job, keys) / 1e6);
}

static void describe_merging(const pace__job *job, uint32_t keys)
{
    pace__merge_cost cost = pace__cost_merging(&job->plan);

    if (job->plan.by_steps) {
        describe_averaging(job, &cost, keys);
        return;
    }
    pace_say(
        job->log, PACE_INFO,
        "in the first epoch, behind its start, %" PRIu64 " rounds and %" PRIu64
        " flush%s; each worker sends %.1f kB in a round, %.1f MB at a flush at most: %.1f bytes for a row "
        "of its own at most",
        cost.rounds, cost.flushes, cost.flushes == 1 ? "" : "es", cost.round / 1e3, cost.flush / 1e6,
        ((double)cost.rounds * cost.round + (double)cost.flushes * cost.flush) * job->plan.cluster.workers /
            (double)job->plan.order.rows);
}

pace_status pace__job_describe(const pace__job *job, const char *(*name)(void *user, int rank), void *user)
{
    uint32_t keys = 0;
    bool counts = !job->plan.merges || job->plan.by_steps;
    pace_status status = counts ? count_keys(job, &keys) : PACE_OK;

    if (status)
        return status;
    pace__step_cost cost = pace__cost_step(&job->plan, keys);

    for (int rank = 0; rank < pace__cluster_size(&job->plan.cluster); rank++)
        describe_rank(job, rank, name(user, rank));
    if (pace__cluster_size(&job->plan.cluster) == 1) /* there are no others */
        return PACE_OK;
    if (job->plan.merges) {
        describe_merging(job, keys);
        return PACE_OK;
    }
    bool balances = job->plan.balancing != PACE__BALANCE_OFF;

    pace_say(job->log, PACE_INFO,
             "each worker and step: %s%" PRIu64 " rows%s %" PRIu64
             " parameters by key; about %.1f kB to others and %.1f kB back",
             job->plan.by_words || balances ? "at most " : "", job->plan.rows_max,
             balances ? " (--balance); if shares are even" : ",", (uint64_t)keys * job->plan.model.shape.dim,
             cost.sent / 1e3, cost.received / 1e3);
    return PACE_OK;
}
