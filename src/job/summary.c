/* summary.json: what a run has come to, written and read. */
#include "base/json.h"
#include "files/sealed.h"
#include "history/history.h"
#include "job/job.h"
#include "options/internal.h"
#include "run/report.h"
#include "verdict/facts.h"

#include <cjson/cJSON.h>
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

/* What the records of the run tell of its time. */
typedef struct conclusion {
    pace__history *history; /* NULL: they cannot be read, which costs no run */
    pace__verdict verdict;
} conclusion;

static conclusion conclude(const pace__job *job, pace_train_result *result)
{
    conclusion concluded = {0};

    if (pace__history_open(job->config->run, NULL, &concluded.history) != PACE_OK)
        return concluded;
    pace__verdict_from(concluded.history, 0, &concluded.verdict);
    pace__verdict_line(&concluded.verdict, result->bottleneck);
    snprintf(result->advice, sizeof result->advice, "%s", concluded.verdict.advice);
    return concluded;
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

/* All but its end, which is a checksum of it. */
static void put_summary(pace__json *json, const pace__job *job, const pace_train_result *result,
                        const conclusion *concluded, const char *test)
{
    const pace_train_config *config = job->config;
    uint64_t computed = pace__row_count_all(config->run);

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
    put_integer(json, "restarts", job->state.restarts);
    put_integer(json, "workers_lost",
                job->reports ? pace__reports_lost(&job->plan.cluster, job->reports) : 0);
    put_integer(json, "rows_computed", computed);
    put_integer(json, "rows_computed_twice", computed > result->samples ? computed - result->samples : 0);
    put_integer(json, "checkpoints", job->saving.written);
    put_real(json, "checkpoint_stall_s", job->saving.stalled_s);
    put_integer(json, "bytes_sent",
                job->reports ? pace__reports_bytes(&job->plan.cluster, job->reports, true) : 0);
    put_integer(json, "bytes_received",
                job->reports ? pace__reports_bytes(&job->plan.cluster, job->reports, false) : 0);
    if (job->plan.merges)
        put_merging(json, job, result);
    put_key(json, "bottleneck");
    if (concluded->verdict.cause == PACE__CAUSE_NONE)
        pace__json_raw(json, "null");
    else
        pace__json_string(json, result->bottleneck);
    put_real(json, "train_loss", result->train_loss);
    put_integer(json, "weights", job->plan.model.weights);
    if (job->plan.cluster.evaluator)
        put_integer(json, "evaluations_skipped", job->evaluations_skipped);
    if (job->reports)
        pace__reports_put(json, &job->plan.cluster, job->reports);
    put_key(json, "job");
    pace__json_string(json, job->fingerprint);
    put_key(json, "test");
    pace__json_raw(json, test ? test : "null");
    put_key(json, "curves"); /* not in "test": that is what eval prints, too */
    pace__curves_put(json, &job->curves);
    put_key(json, "model_sha256");
    pace__json_string(json, result->model_sha256);
}

pace_status pace__job_write_summary(const pace__job *job, pace_train_result *result)
{
    conclusion concluded = conclude(job, result);
    char *test = result->has_test ? pace_scores_to_json(&result->test) : NULL;
    pace__json json = {0};

    put_summary(&json, job, result, &concluded, test);
    char *text = malloc(json.size + 1);
    pace_status status;

    if (!text || (result->has_test && !test)) {
        status = pace_fail(job->log, PACE_FAILED, "out of memory");
    } else {
        json = (pace__json){.text = text, .capacity = json.size};
        put_summary(&json, job, result, &concluded, test);
        status =
            pace__write_sealed(pace__rundir_path(job->run, PACE__RUN_SUMMARY), text, json.size, job->log);
    }
    free(text);
    free(test);
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
    const cJSON *test = cJSON_GetObjectItemCaseSensitive(summary, "test");
    const char *sha256 = text_of(summary, "model_sha256"), *bottleneck = text_of(summary, "bottleneck"),
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
                                      .has_test = cJSON_IsObject(test)};
        snprintf(result->model_sha256, sizeof result->model_sha256, "%s", sha256);
        snprintf(result->bottleneck, sizeof result->bottleneck, "%s", bottleneck ? bottleneck : "");
        snprintf(result->advice, sizeof result->advice, "%s", advice ? advice : "");
    }
    if (whole && result->has_test)
        pace__scores_from_json(test, &result->test);
    cJSON_Delete(summary);
    free(text);
    return whole ? PACE_OK : pace_fail(log, PACE_BAD_DATA, "%s: summary.json is damaged", config->run);
}
