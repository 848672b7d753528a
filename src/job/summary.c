/* summary.json: what a run has come to, written and read. */
#include "base/json.h"
#include "base/kept.h"
#include "files/sealed.h"
#include "history/history.h"
#include "job/job.h"
#include "metrics/overfit.h"
#include "options/internal.h"
#include "run/report.h"
#include "verdict/facts.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <paceline/kernels.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(PACE_BOTTLENECK_MAX >= 2 * PACE__VERDICT_TEXT, "a verdict in a line");

static void put_choice(pace__json *json, const char *choices, int index)
{
    char word[PACE_OPTION_NAME_MAX];

    pace__choice_word(choices, index, word);
    pace__json_string(json, word);
}

static void put_key(pace__json *json, const char *key)
{
    pace__json_raw(json, json->size > 1 ? ",\n  " : "\n  ");
    pace__json_string(json, key);
    pace__json_raw(json, ": ");
}

static void put_integer(pace__json *json, const char *key, uint64_t value)
{
    put_key(json, key);
    pace__json_unsigned(json, value);
}

static void put_real(pace__json *json, const char *key, double value)
{
    put_key(json, key);
    pace__json_real(json, value);
}

static bool has_stopped_early(const pace__job *job)
{
    return job->plan.patience && job->position.worse >= job->plan.patience;
}

/* And, of bf16, by which instructions. */
static void put_precision(pace__json *json, const pace_train_config *config)
{
    bool narrow = config->precision == PACE_PRECISION_BF16;
    const char *way = narrow ? pace_kernels_bf16() : NULL;

    put_key(json, "precision");
    pace__json_string(json, narrow ? "bf16" : "f32");
    put_key(json, "bf16_by");
    if (way)
        pace__json_string(json, way);
    else
        pace__json_raw(json, "null");
}

/* What there is to say of this kind of model alone. */
static void put_facts(pace__json *json, const pace__job *job)
{
    const pace__kind *kind = job->plan.model.kind;
    pace__fact facts[PACE__FACTS_MAX];
    unsigned count = kind->facts ? kind->facts(&job->plan.model, job->config, facts) : 0;

    for (unsigned i = 0; i < count; i++) {
        put_key(json, facts[i].name);
        if (facts[i].value)
            pace__json_string(json, facts[i].value);
        else
            pace__json_raw(json, "null");
    }
    if (job->plan.model.extracts)
        put_real(json, "features_seconds", job->features_s);
}

/* What the records of the run tell of its time, and how that of its shares ends. */
typedef struct conclusion {
    pace__history *history; /* NULL: they cannot be read, which costs no run */
    pace__verdict verdict;
    pace__shares_facts shares;
} conclusion;

static pace__shares_facts look_at_shares(const pace__job *job)
{
    pace__divisions divisions = {0};
    pace__shares_facts facts = {0};

    pace__shares_read(pace__rundir_path(job->run, PACE__RUN_SHARES), NULL, &divisions, &facts);
    pace__divisions_release(&divisions);
    return facts;
}

static conclusion conclude(const pace__job *job, pace_train_result *result)
{
    conclusion concluded = {.shares = look_at_shares(job)};

    if (pace__history_open(job->config->run, NULL, &concluded.history) != PACE_OK)
        return concluded;
    pace__verdict_from(concluded.history, 0, &concluded.verdict);
    pace__verdict_line(&concluded.verdict, result->bottleneck);
    snprintf(result->advice, sizeof result->advice, "%s", concluded.verdict.advice);
    return concluded;
}

/* Losses of training rows are comparable where all count the same, and the loss is the log-loss. */
static void judge_fit(const pace__job *job, pace_train_result *result)
{
    const pace_scores *scores = result->has_validation ? &result->validation : &result->test;
    pace__fit fit = {.epochs = result->epochs,
                     .train = result->train_loss,
                     .rows = pace__set_names[result->has_validation ? PACE__VALIDATION : PACE__TEST],
                     .test = scores->logloss,
                     .best = job->position.best_logloss,
                     .always_mean = scores->null_logloss};
    bool scored = result->has_test || result->has_validation;

    if (scored && !job->config->optimiser.class_weight && pace_train_has_logloss(job->config))
        pace__fit_line(&fit, job->plan.model.kind->remedies, result->overfitting, sizeof result->overfitting);
}

static void put_merging(pace__json *json, const pace__job *job, const pace_train_result *result)
{
    const pace__merging *merging = &job->merging;
    uint64_t sent = job->reports ? pace__reports_bytes(&job->plan.cluster, job->reports, true) : 0;

    put_integer(json, "rounds", merging->rounds);
    put_integer(json, "flushes", merging->flushes);
    put_real(json, "keys_per_row", merging->keys_per_row);
    put_real(json, "bytes_per_row", (double)sent / (double)result->samples);
    if (job->plan.by_steps) {
        put_integer(json, "round_steps", job->plan.rounds.flush_rows / job->plan.order.batch);
        put_real(json, "outer_lr", (double)job->plan.outer.rate);
        put_real(json, "outer_momentum", (double)job->plan.outer.momentum);
        return;
    }
    put_integer(json, "hot_parameters", merging->hot);
    put_real(json, "damping", merging->damping);
    put_real(json, "flush_damping", merging->flush_damping);
    put_integer(json, "loss_jumps", merging->jumps);
}

/* Changes since the last start, and what the last step went by: rows of each worker in a whole step. */
static void put_balance(pace__json *json, const pace__job *job)
{
    const pace__divisions *divisions = &job->divisions;
    const uint32_t *rows = pace__divisions_at(divisions, job->position.step);

    put_integer(json, "share_changes", job->share_changes);
    put_key(json, "shares");
    pace__json_raw(json, "[");
    for (unsigned i = 0; rows && i < divisions->workers; i++) {
        pace__json_raw(json, i ? ", " : "");
        pace__json_unsigned(json, rows[i]);
    }
    pace__json_raw(json, "]");
}

/* By which whoever repeats the run knows that all of its record is there. */
static void put_shares(pace__json *json, const pace__shares_facts *shares)
{
    char sum[9];

    snprintf(sum, sizeof sum, "%08" PRIx32, shares->sum);
    put_integer(json, "shares_lines", shares->lines);
    put_key(json, "shares_sum");
    pace__json_string(json, sum);
}

/* As the first server saw it; of the last incarnation. */
static void put_backups(pace__json *json, const pace__job *job)
{
    int first = pace__shard_rank(&job->plan.cluster, 0);

    put_integer(json, "backup_workers", (uint64_t)job->plan.backups);
    put_integer(json, "slices_computed_twice", job->reports ? job->reports[first]->repeats_dropped : 0);
}

/* The scores of each set in words; NULL: there are none. */
typedef struct told {
    char *test, *validation;
} told;

/* The evaluation that the model is of. */
static void put_best(pace__json *json, const pace_train_result *result)
{
    put_key(json, "best");
    if (result->best_step == 0) {
        pace__json_raw(json, "null");
        return;
    }
    pace__json_raw(json, "{\"step\": ");
    pace__json_unsigned(json, result->best_step);
    pace__json_raw(json, ", \"logloss\": ");
    pace__json_real(json, result->best_logloss);
    pace__json_raw(json, "}");
}

/* The model that it began with; weights are numbers, as in "weights". */
static void put_warm(pace__json *json, const pace__job *job)
{
    const pace__warm *warm = &job->warm;

    put_key(json, "init_sha256");
    pace__json_string(json, warm->sha256);
    put_key(json, "init_state");
    pace__json_raw(json, job->config->init_state ? "true" : "false");
    put_integer(json, "init_taken", warm->overlap.taken);
    put_integer(json, "init_fresh", warm->fresh);
    put_integer(json, "init_left", warm->overlap.left);
    put_integer(json, "init_carried", warm->carried_weights_count);
}

/* What was asked for, what became of that, and how long it took. */
static void put_training(pace__json *json, const pace__job *job, const pace_train_result *result,
                         const conclusion *concluded)
{
    const pace_train_config *config = job->config;

    pace__json_raw(json, "{");
    put_key(json, "model");
    pace__json_string(json, job->plan.model.kind->info.name);
    /* In front: it has "seconds" and "steps" of its own, and who reads texts by eye or by sed takes the last that is there. */
    put_key(json, "verdict");
    pace__verdict_put(json, concluded->history, &concluded->verdict);
    put_key(json, "mode");
    put_choice(json, pace__mode_names, job->plan.mode);
    put_integer(json, "workers", (uint64_t)job->plan.cluster.workers);
    put_integer(json, "ps", (uint64_t)job->plan.cluster.ps);
    put_integer(json, "threads", (uint64_t)job->plan.threads);
    put_key(json, "kernels");
    pace__json_string(json, pace_kernels_name(pace_kernels_in_use()));
    put_precision(json, config);
    put_key(json, "optimizer");
    put_choice(json, pace__optimizer_names, config->optimiser.rule);
    put_real(json, "lr", job->plan.rate.lr);
    put_facts(json, job);
    put_key(json, "rule");
    pace__json_string(json, job->plan.exact ? "exact" : "block");
    put_integer(json, "batch", job->plan.order.batch);
    put_real(json, "epochs", result->epochs);
    put_integer(json, "steps", result->steps);
    put_integer(json, "samples", result->samples);
    put_real(json, "seconds", result->seconds);
    put_real(json, "samples_per_second", result->samples_per_second);
    put_key(json, "early_stopped");
    pace__json_raw(json, has_stopped_early(job) ? "true" : "false");
    put_key(json, "seed");
    pace__json_integer(json, config->seed);
}

/* What it took: starts, rows that were computed, shares, checkpoints, bytes. */
static void put_counts(pace__json *json, const pace__job *job, const pace_train_result *result,
                       const conclusion *concluded)
{
    uint64_t computed = pace__row_count_all(job->config->run);

    put_integer(json, "restarts", job->state.restarts);
    put_integer(json, "workers_lost",
                job->reports ? pace__reports_lost(&job->plan.cluster, job->reports) : 0);
    put_integer(json, "rows_computed", computed);
    put_integer(json, "rows_computed_twice", computed > result->samples ? computed - result->samples : 0);
    if (job->plan.backups)
        put_backups(json, job);
    if (job->plan.balancing != PACE__BALANCE_OFF)
        put_balance(json, job);
    if (concluded->shares.lines > 0)
        put_shares(json, &concluded->shares);
    put_integer(json, "checkpoints", job->saving.written);
    put_real(json, "checkpoint_stall_s", job->saving.stalled_s);
    put_integer(json, "bytes_sent",
                job->reports ? pace__reports_bytes(&job->plan.cluster, job->reports, true) : 0);
    put_integer(json, "bytes_received",
                job->reports ? pace__reports_bytes(&job->plan.cluster, job->reports, false) : 0);
    if (job->plan.merges)
        put_merging(json, job, result);
}

/* All but its end, which is a checksum of it. */
static void put_summary(pace__json *json, const pace__job *job, const pace_train_result *result,
                        const conclusion *concluded, const told *scores)
{
    put_training(json, job, result, concluded);
    put_counts(json, job, result, concluded);
    put_key(json, "bottleneck");
    if (concluded->verdict.cause == PACE__CAUSE_NONE)
        pace__json_raw(json, "null");
    else
        pace__json_string(json, result->bottleneck);
    put_real(json, "train_loss", result->train_loss);
    put_key(json, "overfitting");
    if (result->overfitting[0])
        pace__json_string(json, result->overfitting);
    else
        pace__json_raw(json, "null");
    put_integer(json, "weights", job->plan.model.weights);
    if (job->is_warm)
        put_warm(json, job);
    if (job->plan.cluster.evaluator)
        put_integer(json, "evaluations_skipped", job->evaluations_skipped);
    if (job->reports)
        pace__reports_put(json, &job->plan.cluster, job->reports);
    if (job->config->stage.directory)
        pace__job_put_stage(json, job);
    put_key(json, "job");
    pace__json_string(json, job->fingerprint);
    put_best(json, result);
    put_key(json, "validation");
    pace__json_raw(json, scores->validation ? scores->validation : "null");
    put_key(json, "test"); /* behind those: who reads by eye or by sed takes the last scores */
    pace__json_raw(json, scores->test ? scores->test : "null");
    put_key(json, "curves"); /* not in "test": that is what eval prints, too */
    pace__curves_put(json, &job->curves);
    put_key(json, "model_sha256");
    pace__json_string(json, result->model_sha256);
}

pace_status pace__job_write_summary(const pace__job *job, pace_train_result *result)
{
    conclusion concluded = conclude(job, result);
    told scores = {result->has_test ? pace_scores_to_json(&result->test) : NULL,
                   result->has_validation ? pace_scores_to_json(&result->validation) : NULL};
    pace__json json = {0};

    judge_fit(job, result);
    put_summary(&json, job, result, &concluded, &scores);
    char *text = malloc(json.size + 1);
    pace_status status;

    if (!text || (result->has_test && !scores.test) || (result->has_validation && !scores.validation)) {
        status = pace_fail(job->log, PACE_FAILED, "out of memory");
    } else {
        json = (pace__json){.text = text, .capacity = json.size};
        put_summary(&json, job, result, &concluded, &scores);
        status =
            pace__write_sealed(pace__rundir_path(job->run, PACE__RUN_SUMMARY), text, json.size, job->log);
    }
    free(text);
    free(scores.test);
    free(scores.validation);
    pace__history_close(concluded.history);
    return status;
}

pace_train_result pace__job_reached(const pace__job *job)
{
    const pace__position *at = &job->position;
    uint64_t rows = pace__plan_rows_before(&job->plan, at->step);
    double seconds = at->seconds + job->trained_s;

    return (pace_train_result){.steps = at->step,
                               .samples = rows,
                               .epochs = (double)rows / (double)job->plan.order.rows,
                               .seconds = seconds,
                               .samples_per_second = (double)rows / seconds,
                               .train_loss = at->epoch_rows ? at->epoch_loss / (double)at->epoch_rows
                                                            : at->last_epoch_loss};
}

/* --- what it was --- */

static double number_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static const char *text_of(const cJSON *object, const char *name)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

/* What the chief has committed. */
pace_status pace__job_read_result(const pace_train_config *config, const pace_log *log,
                                  pace_train_result *result)
{
    char *text;
    pace_status status = pace_train_summary(config->run, log, &text);

    if (status)
        return status;
    cJSON *summary = cJSON_Parse(text);
    const cJSON *test = cJSON_GetObjectItemCaseSensitive(summary, "test"),
                *validation = cJSON_GetObjectItemCaseSensitive(summary, "validation"),
                *best = cJSON_GetObjectItemCaseSensitive(summary, "best");
    const char *sha256 = text_of(summary, "model_sha256"), *bottleneck = text_of(summary, "bottleneck"),
               *overfitting = text_of(summary, "overfitting"),
               *advice = text_of(cJSON_GetObjectItemCaseSensitive(summary, "verdict"), "advice");

    uint64_t steps, samples;
    bool whole = sha256 && pace__json_count(summary, "steps", &steps) &&
                 pace__json_count(summary, "samples", &samples);

    if (whole) {
        *result = (pace_train_result){.steps = steps,
                                      .samples = samples,
                                      .epochs = number_of(summary, "epochs"),
                                      .seconds = number_of(summary, "seconds"),
                                      .samples_per_second = number_of(summary, "samples_per_second"),
                                      .train_loss = number_of(summary, "train_loss"),
                                      .has_test = cJSON_IsObject(test),
                                      .has_validation = cJSON_IsObject(validation)};
        snprintf(result->model_sha256, sizeof result->model_sha256, "%s", sha256);
        snprintf(result->bottleneck, sizeof result->bottleneck, "%s", bottleneck ? bottleneck : "");
        snprintf(result->advice, sizeof result->advice, "%s", advice ? advice : "");
        snprintf(result->overfitting, sizeof result->overfitting, "%s", overfitting ? overfitting : "");
    }
    if (whole && result->has_test)
        pace__scores_from_json(test, &result->test);
    if (whole && result->has_validation)
        pace__scores_from_json(validation, &result->validation);
    if (whole && pace__json_count(best, "step", &result->best_step))
        result->best_logloss = number_of(best, "logloss");
    cJSON_Delete(summary);
    free(text);
    return whole ? PACE_OK : pace_fail(log, PACE_BAD_DATA, "%s: summary.json is damaged", config->run);
}

pace_status pace__summary_shares(const char *run, const pace_log *log, pace__shares_facts *facts)
{
    char *text, reason[PACE_LOG_TEXT_MAX];
    pace__kept kept;

    *facts = (pace__shares_facts){0};
    pace__kept_init(&kept, reason, sizeof reason);
    pace_status status = pace_train_summary(run, &kept.log, &text);

    if (status == PACE_NO_INPUT)
        return PACE_OK;
    if (status)
        return pace_fail(log, status, "%s", reason);
    cJSON *summary = cJSON_Parse(text);
    const char *sum = text_of(summary, "shares_sum");

    if (sum && pace__json_count(summary, "shares_lines", &facts->lines))
        facts->sum = (uint32_t)strtoul(sum, NULL, 16);
    cJSON_Delete(summary);
    free(text);
    return PACE_OK;
}
