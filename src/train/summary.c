/* What a run leaves behind: the model, its scores, summary.json. */
#include "base/json.h"
#include "files/file.h"
#include "options/internal.h"
#include "train/job.h"
#include "train/report.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <paceline/kernels.h>
#include <stdlib.h>
#include <string.h>

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
    int64_t patience = job->config->early_stop;

    return patience && job->position.worse >= (uint64_t)patience;
}

static void put_network(pace__json *json, const pace__job *job)
{
    put_key(json, "arch");
    put_choice(json, pace__arch_names, job->config->arch);
    put_key(json, "train");
    pace__json_string(json, job->config->train);
    put_key(json, "pretrained_sha256");
    if (job->network.pretrained[0])
        pace__json_string(json, job->network.pretrained);
    else
        pace__json_raw(json, "null");
    if (pace__job_trains_top(job))
        put_real(json, "features_seconds", job->features_s);
}

static void put_summary(pace__json *json, const pace__job *job, const pace_train_result *result,
                        const char *test)
{
    const pace_train_config *config = job->config;
    uint64_t computed = pace__row_count_all(config->run);

    pace__json_raw(json, "{");
    put_key(json, "model");
    put_choice(json, pace__model_names, config->model);
    put_key(json, "mode");
    put_choice(json, pace__mode_names, job->mode);
    put_integer(json, "workers", (uint64_t)job->cluster.workers);
    put_integer(json, "ps", (uint64_t)job->cluster.ps);
    put_integer(json, "threads", (uint64_t)job->threads);
    put_key(json, "kernels");
    pace__json_string(json, pace_kernels_name(pace_kernels_in_use()));
    put_key(json, "optimizer");
    put_choice(json, pace__optimizer_names, config->optimizer);
    put_real(json, "lr", job->lr);
    if (config->model == PACE_MODEL_CNN)
        put_network(json, job);
    put_key(json, "rule");
    pace__json_string(json, job->exact ? "exact" : "block");
    put_integer(json, "batch", job->order.batch);
    put_real(json, "epochs", result->epochs);
    put_integer(json, "steps", result->steps);
    put_integer(json, "samples", result->samples);
    put_real(json, "seconds", result->seconds);
    put_real(json, "samples_per_second", result->samples_per_second);
    put_key(json, "early_stopped");
    pace__json_raw(json, has_stopped_early(job) ? "true" : "false");
    put_integer(json, "seed", (uint64_t)config->seed);
    put_integer(json, "restarts", job->state.restarts);
    put_integer(json, "workers_lost", job->reports ? pace__reports_lost(&job->cluster, job->reports) : 0);
    put_integer(json, "rows_computed", computed);
    put_integer(json, "rows_computed_twice", computed > result->samples ? computed - result->samples : 0);
    put_integer(json, "checkpoints", job->saving.written);
    put_real(json, "checkpoint_stall_s", job->saving.stalled_s);
    put_integer(json, "bytes_sent",
                job->reports ? pace__reports_bytes(&job->cluster, job->reports, true) : 0);
    put_integer(json, "bytes_received",
                job->reports ? pace__reports_bytes(&job->cluster, job->reports, false) : 0);
    put_key(json, "bottleneck");
    pace__json_raw(json, "null");
    put_real(json, "train_loss", result->train_loss);
    put_integer(json, "weights", pace__job_weights(job));
    if (job->cluster.evaluator)
        put_integer(json, "evaluations_skipped", job->evaluations_skipped);
    if (job->reports)
        pace__reports_put(json, &job->cluster, job->reports);
    put_key(json, "test");
    pace__json_raw(json, test ? test : "null");
    put_key(json, "model_sha256");
    pace__json_string(json, result->model_sha256);
    pace__json_raw(json, "\n}\n");
}

static pace_status write_summary(const pace__job *job, const pace_train_result *result)
{
    char *test = result->has_test ? pace_scores_to_json(&result->test) : NULL;
    pace__json json = {0};

    put_summary(&json, job, result, test);
    char *text = malloc(json.size + 1);
    pace_status status;

    if (!text || (result->has_test && !test)) {
        status = pace_fail(job->log, PACE_FAILED, "out of memory");
    } else {
        json = (pace__json){.text = text, .capacity = json.size};
        put_summary(&json, job, result, test);
        status = pace__write_file_atomically(pace__rundir_path(job->run, PACE__RUN_SUMMARY), text, json.size,
                                             job->log);
    }
    free(text);
    free(test);
    return status;
}

/* Whether another incarnation has taken over; that this cannot be found out is no reason to give up. */
static pace_status check_ours(pace__job *job)
{
    pace_status status = pace__runstate_check(job->config->run, job->state.incarnation, job->log);

    job->saving.superseded = status == PACE_FAILED;
    return status == PACE_FAILED ? status : PACE_OK;
}

/* The model first: a test row that cannot be read must not cost the training. Scores do not depend on it. */
static pace_status save_and_score(pace__job *job, pace_train_result *result)
{
    pace_status status = pace__job_save_finish(job);

    if (!status)
        status = check_ours(job);
    if (!status)
        status = pace__job_write_model(job, result->model_sha256);
    result->has_test = job->store.info.rows[PACE__TEST] > 0;
    if (!status && result->has_test)
        status = job->final_scores ? job->final_scores(job) : pace__job_evaluate(job, 0);
    result->test = job->scores;
    if (!status && job->end)
        status = job->end(job);
    job->others_left = !status;
    if (!status)
        status = check_ours(job);
    return status ? status : write_summary(job, result);
}

pace_status pace__job_finish(pace__job *job, pace_train_result *result)
{
    const pace__position *at = &job->position;
    uint64_t rows = pace__job_rows_before(job, at->step);
    pace_train_result reached = {
        .steps = at->step, .samples = rows, .epochs = (double)rows / (double)job->order.rows};

    pace__faults_at(&job->faults, PACE__AT_END, at->step);
    reached.seconds = at->seconds + job->trained_s;
    reached.samples_per_second = (double)rows / reached.seconds;
    reached.train_loss = at->epoch_rows ? at->epoch_loss / (double)at->epoch_rows : at->last_epoch_loss;
    pace_status status = save_and_score(job, &reached);

    if (status) { /* the work is not lost: --resume goes straight to the end */
        if (status != PACE_LOST && !job->others_left && !job->saving.superseded &&
            pace__job_save_now(job) == PACE_OK)
            pace_say(job->log, PACE_WARN, "training is done and checkpointed: --resume only has to finish");
        return status;
    }
    pace__faults_say_unfired(job->config->inject, &job->cluster, job->config->run, job->log);
    *result = reached;
    return PACE_OK;
}

/* --- what it was --- */

static double number_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
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
    const char *sha256 = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(summary, "model_sha256"));

    if (sha256) {
        *result = (pace_train_result){.steps = (uint64_t)fmax(number_of(summary, "steps"), 0),
                                      .samples = (uint64_t)fmax(number_of(summary, "samples"), 0),
                                      .epochs = number_of(summary, "epochs"),
                                      .seconds = number_of(summary, "seconds"),
                                      .samples_per_second = number_of(summary, "samples_per_second"),
                                      .train_loss = number_of(summary, "train_loss"),
                                      .has_test = cJSON_IsObject(test)};
        snprintf(result->model_sha256, sizeof result->model_sha256, "%s", sha256);
    }
    if (sha256 && result->has_test)
        pace__scores_from_json(test, &result->test);
    cJSON_Delete(summary);
    free(text);
    return sha256 ? PACE_OK : pace_fail(log, PACE_BAD_DATA, "%s: summary.json is damaged", config->run);
}

/* Would the same job end there? If not, the checkpoint says what differs. */
static bool is_same_job(const pace_train_config *config, const cJSON *summary)
{
    double lr = number_of(summary, "lr");

    return (config->batch == 0 || number_of(summary, "batch") <= (double)config->batch) &&
           number_of(summary, "seed") == (double)config->seed && (config->lr == 0 || config->lr == lr);
}

/* How many epochs the job would have; what was left open depends on its data. */
static double epochs_of(const pace_train_config *config)
{
    pace_train_config settled = *config;
    pace__store store;

    if (config->epochs == 0 && pace__store_open(config->data, &store, NULL) == PACE_OK) {
        pace__settle_settings(&settled, store.info.encoding.kind == PACE__TEXT);
        pace__store_close(&store);
    }
    return settled.epochs ? (double)settled.epochs : INFINITY;
}

static bool has_nothing_left(const pace_train_config *config, const cJSON *summary)
{
    bool early = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(summary, "early_stopped"));

    if (early && config->early_stop)
        return true;
    return config->steps ? number_of(summary, "steps") >= (double)config->steps
                         : number_of(summary, "epochs") > epochs_of(config) - 1e-9;
}

bool pace__job_is_finished(const pace_train_config *config, pace_train_result *result)
{
    pace__runstate state;
    char *text;

    if (pace__runstate_read(config->run, NULL, &state) || state.ending != PACE__RUN_DONE ||
        pace_train_summary(config->run, NULL, &text))
        return false;
    cJSON *summary = cJSON_Parse(text);
    bool finished = is_same_job(config, summary) && has_nothing_left(config, summary) &&
                    pace__job_read_result(config, NULL, result) == PACE_OK;

    cJSON_Delete(summary);
    free(text);
    return finished;
}
