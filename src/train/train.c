#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/thread.h"
#include "data/linear_file.h"
#include "data/reader.h"
#include "train/job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Steps of more rows than this select the exact rule. */
#define BLOCK_RULE_BATCH_MAX 512

/* Checkpoint names have 12 digits. */
#define STEPS_MAX UINT64_C(999999999999)

#define FIELD(name) offsetof(pace_train_config, name)

static const char model_names[] = "logreg", mode_names[] = "local",
                  optimizer_names[] = "sgd|momentum|adagrad|ftrl|adam";

const pace_option pace_train_options[] = {
    {"data", 0, PACE_OPT_TEXT, FIELD(data), NULL, "DIR", "data set made by 'paceline prep'", .required = true,
     .group = "Job"},
    {"run", 0, PACE_OPT_TEXT, FIELD(run), NULL, "DIR", "run directory to write", .required = true},
    {"model", 0, PACE_OPT_CHOICE, FIELD(model), "logreg", "M", "what to train", model_names},
    {"mode", 0, PACE_OPT_CHOICE, FIELD(mode), "local", "M", "how the work is spread", mode_names},
    {"force", 0, PACE_OPT_FLAG, FIELD(force), "false", NULL, "replace the run that the directory holds"},
    {"resume", 0, PACE_OPT_FLAG, FIELD(resume), "false", NULL, "go on from the run's newest checkpoint"},
    {"dry-run", 0, PACE_OPT_FLAG, FIELD(dry_run), "false", NULL,
     "check everything and say what the job needs, but do not start it"},
    {"batch", 0, PACE_OPT_INT, FIELD(batch), "512", "B", "rows in a step; more than 512 selects --exact",
     .min = 1, .max = 1e9, .group = "Length"},
    {"epochs", 0, PACE_OPT_INT, FIELD(epochs), "1", "E", "passes over the training rows", .min = 1,
     .max = 1e6},
    {"steps", 0, PACE_OPT_INT, FIELD(steps), "0", "S",
     "stop after so many steps, whatever --epochs says; 0: no such limit", .min = 0, .max = 1e15},
    {"early-stop", 0, PACE_OPT_INT, FIELD(early_stop), "0", "N",
     "stop when N evaluations in a row are no better than the best; 0: never", .min = 0, .max = 1e6},
    {"optimizer", 0, PACE_OPT_CHOICE, FIELD(optimizer), "adagrad", "O", "update rule", optimizer_names,
     .group = "Optimiser"},
    {"lr", 0, PACE_OPT_REAL, FIELD(lr), "0", "X",
     "learning rate; 0: 0.07 (adagrad), 0.1 (ftrl), 0.001 (adam), 0.005 (sgd; exact rule 0.1), "
     "0.0005 (momentum; exact rule 0.01)",
     .min = 0, .max = 1e6},
    {"schedule", 0, PACE_OPT_CHOICE, FIELD(schedule), "constant", "S", "how the rate falls over the run",
     "constant|linear|cosine|invsqrt"},
    {"warmup", 0, PACE_OPT_INT, FIELD(warmup), "0", "N", "steps over which the rate rises from 0", .min = 0,
     .max = 1e12},
    {"momentum", 0, PACE_OPT_REAL, FIELD(momentum), "0.9", "X", "of momentum; first decay of adam", .min = 0,
     .max = 0.9999},
    {"l1", 0, PACE_OPT_REAL, FIELD(l1), "0", "X", "each row adds X |w| to its loss (ftrl: all rows together)",
     .min = 0, .max = 1e6},
    {"l2", 0, PACE_OPT_REAL, FIELD(l2), "0", "X",
     "each row adds X w^2 / 2 to its loss (ftrl: all rows together)", .min = 0, .max = 1e6},
    {"exact", 0, PACE_OPT_FLAG, FIELD(exact), "false", NULL,
     "one update per step from the summed gradient, instead of row after row in blocks of 64"},
    {"eval-every", 0, PACE_OPT_INT, FIELD(eval_every), "0", "N",
     "score the test rows every N steps; 0: at the end only", .min = 0, .max = 1e15,
     .group = "Evaluation and records"},
    {"eval-rows", 0, PACE_OPT_INT, FIELD(eval_rows), "0", "N",
     "score only the first N test rows on the way; 0: all", .min = 0, .max = 1e15},
    {"log-every", 0, PACE_OPT_INT, FIELD(log_every), "0", "N",
     "steps between records in metrics.jsonl; 0: about 100 records", .min = 0, .max = 1e15},
    {"checkpoint-every", 0, PACE_OPT_INT, FIELD(checkpoint_every), "0", "N",
     "write a checkpoint every N steps; 0: only when interrupted", .min = 0, .max = 1e15},
    {"keep", 0, PACE_OPT_INT, FIELD(keep), "2", "N", "checkpoints to keep", .min = 1, .max = 1000},
    {"threads", 0, PACE_OPT_INT, FIELD(threads), "0", "T",
     "0: one per core; the model is the same for any number", .min = 0, .max = PACE_THREADS_MAX,
     .group = "Resources"},
    {"seed", 0, PACE_OPT_INT, FIELD(seed), "1", "S", "of the sample order"},
    {0},
};

uint64_t pace__job_rows_before(const pace__job *job, uint64_t step)
{
    uint64_t in_epoch = step % job->steps_per_epoch * job->batch;

    return step / job->steps_per_epoch * job->rows + (in_epoch < job->rows ? in_epoch : job->rows);
}

/* --- before the start --- */

static pace_status plan(pace__job *job)
{
    const pace_train_config *config = job->config;

    job->rows = job->store.info.rows[PACE__TRAIN];
    if (job->rows == 0)
        return pace_fail(job->log, PACE_BAD_DATA, "%s: has no training rows", config->data);
    if (config->force && config->resume)
        return pace_fail(job->log, PACE_USAGE, "--force starts over and --resume goes on: choose one");
    if (config->early_stop && (!config->eval_every || job->store.info.rows[PACE__TEST] == 0))
        return pace_fail(job->log, PACE_USAGE,
                         "--early-stop needs --eval-every and a data set with test rows");
    job->batch = (uint64_t)config->batch < job->rows ? (uint64_t)config->batch : job->rows;
    job->exact = config->exact || config->batch > BLOCK_RULE_BATCH_MAX;
    job->steps_per_epoch = (job->rows + job->batch - 1) / job->batch;
    job->steps = config->steps ? (uint64_t)config->steps : (uint64_t)config->epochs * job->steps_per_epoch;
    if (job->steps > STEPS_MAX || job->steps / job->steps_per_epoch > UINT64_MAX / 4 / job->rows)
        return pace_fail(job->log, PACE_USAGE, "%" PRIu64 " steps are more than the limit of %" PRIu64,
                         job->steps, (uint64_t)STEPS_MAX);
    if (config->eval_every && job->store.info.rows[PACE__TEST] == 0)
        pace_say(job->log, PACE_WARN, "%s: has no test rows: --eval-every does nothing", config->data);
    job->lr = config->lr > 0 ? config->lr : pace__optim_default_lr(config->optimizer, job->exact);
    job->threads = config->threads ? (int)config->threads : pace__cores();
    if (job->store.info.columns && (uint32_t)job->threads > job->store.info.columns)
        job->threads = (int)job->store.info.columns;
    job->position = (pace__position){.best_logloss = INFINITY, .last_epoch_loss = NAN};
    return PACE_OK;
}

static void say_needs(const pace__job *job, const pace__optim *optim)
{
    const pace__store_info *info = &job->store.info;
    double parameters = ((double)info->ids_seen + 1) * optim->width * sizeof(float);
    double gradients = job->exact ? ((double)info->ids_seen + 1) * (sizeof(float) + 4) : 0;
    uint64_t scored =
        info->rows[PACE__TEST] < PACE__METRICS_EXACT_ROWS ? info->rows[PACE__TEST] : PACE__METRICS_EXACT_ROWS;

    pace_say(job->log, PACE_INFO,
             "%" PRIu64 " rows to train on, %" PRIu64 " to test; %u weights; %" PRIu64 " steps of %" PRIu64
             " rows (%s rule), %d thread%s",
             info->rows[PACE__TRAIN], info->rows[PACE__TEST], info->ids_seen, job->steps, job->batch,
             job->exact ? "exact" : "block", job->threads, job->threads == 1 ? "" : "s");
    pace_say(
        job->log, PACE_INFO,
        "memory: weights and optimiser state %.1f MB, gradients %.1f MB, reading %.1f MB, scoring %.1f MB",
        parameters / 1e6, gradients / 1e6, (double)pace__reader_memory(info, job->threads) / 1e6,
        (double)scored * 8 / 1e6);
}

/* --- after the end --- */

static pace_status write_model(pace__job *job, char sha256[PACE__SHA256_HEX])
{
    uint64_t *original;
    pace_status status = pace__store_read_ids(&job->store, &original, job->log);

    if (status)
        return status;
    pace__logreg_settle(&job->model, (uint32_t)pace__job_rows_before(job, job->position.step));
    status = pace__linear_write(pace__rundir_path(job->run, PACE__RUN_MODEL), &job->store.info.encoding,
                                original, job->model.parameters, job->model.optim.width, job->model.ids,
                                job->model.bias[0], sha256, job->log);
    free(original);
    return status;
}

/* The word of a choice that stands at `index` in "a|b|c". */
static void put_choice(pace__json *json, const char *choices, int index)
{
    char word[32];

    for (; index > 0; index--)
        choices = strchr(choices, '|') + 1;
    snprintf(word, sizeof word, "%.*s", (int)strcspn(choices, "|"), choices);
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

static void put_summary(pace__json *json, const pace__job *job, const pace_train_result *result,
                        const char *test)
{
    const pace_train_config *config = job->config;

    pace__json_raw(json, "{");
    put_key(json, "model");
    put_choice(json, model_names, config->model);
    put_key(json, "mode");
    put_choice(json, mode_names, config->mode);
    put_integer(json, "workers", 1);
    put_integer(json, "ps", 0);
    put_integer(json, "threads", (uint64_t)job->threads);
    put_key(json, "optimizer");
    put_choice(json, optimizer_names, config->optimizer);
    put_real(json, "lr", job->lr);
    put_key(json, "rule");
    pace__json_string(json, job->exact ? "exact" : "block");
    put_integer(json, "batch", job->batch);
    put_real(json, "epochs", result->epochs);
    put_integer(json, "steps", result->steps);
    put_integer(json, "samples", result->samples);
    put_real(json, "seconds", result->seconds);
    put_real(json, "samples_per_second", result->samples_per_second);
    put_integer(json, "restarts", 0);
    put_integer(json, "bytes_sent", 0);
    put_integer(json, "bytes_received", 0);
    put_key(json, "bottleneck");
    pace__json_raw(json, "null");
    put_real(json, "train_loss", result->train_loss);
    put_integer(json, "weights", job->model.ids);
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

/* --- the job --- */

/* The model first: a test row that cannot be read must not cost the training. Scores do not depend on it. */
static pace_status save_and_score(pace__job *job, pace_train_result *result)
{
    pace_status status = write_model(job, result->model_sha256);

    result->has_test = job->store.info.rows[PACE__TEST] > 0;
    if (!status && result->has_test)
        status = pace__job_evaluate(job, 0);
    result->test = job->scores;
    return status ? status : write_summary(job, result);
}

static pace_status finish(pace__job *job, pace_train_result *result)
{
    const pace__position *at = &job->position;
    uint64_t rows = pace__job_rows_before(job, at->step);
    pace_train_result reached = {
        .steps = at->step, .samples = rows, .epochs = (double)rows / (double)job->rows};

    reached.seconds = pace__seconds_since(job->start_ns);
    reached.samples_per_second =
        (double)(rows - pace__job_rows_before(job, job->first_step)) / reached.seconds;
    reached.train_loss = at->epoch_rows ? at->epoch_loss / (double)at->epoch_rows : at->last_epoch_loss;
    pace_status status = save_and_score(job, &reached);

    if (status) { /* the work is not lost: --resume goes straight to the end */
        if (pace__checkpoint_write(job) == PACE_OK)
            pace_say(job->log, PACE_WARN, "training is done and checkpointed: --resume only has to finish");
        return status;
    }
    *result = reached;
    return PACE_OK;
}

/* The configuration that repeats this run. How this start treats what is in its directory is not part of it.
 */
static pace_status write_config(const pace__job *job)
{
    pace_train_config kept = *job->config;

    kept.force = kept.resume = false;
    kept.lr = job->lr;
    return pace_options_write_yaml(pace_train_options, &kept, pace__rundir_path(job->run, PACE__RUN_CONFIG),
                                   job->log);
}

/* What depends on the step, as it was when the checkpoint was written. */
static void restore_rate(pace__job *job)
{
    const pace_train_config *config = job->config;
    uint64_t step = job->position.step;

    if (step > 0)
        pace__optim_begin_step(
            &job->model.optim,
            pace__schedule_lr(config->schedule, job->lr, config->warmup, step - 1, job->steps), 0);
}

static bool is_over(const pace__job *job)
{
    int64_t patience = job->config->early_stop;

    return job->position.step >= job->steps || (patience && job->position.worse >= (uint64_t)patience);
}

static pace_status run(pace__job *job, pace_train_result *result)
{
    pace_status status = job->config->resume ? pace__checkpoint_restore(job) : PACE_OK;

    if (!status)
        status = write_config(job);
    if (!status) /* a run with a summary has finished: not this one, from here on */
        status = pace__remove_tree(pace__rundir_path(job->run, PACE__RUN_SUMMARY), job->log);
    restore_rate(job);
    job->first_step = job->position.step;
    job->start_ns = pace__now_ns();
    if (!status && !is_over(job))
        status = pace__train_local(job);
    return status ? status : finish(job, result);
}

static pace_status start(pace__job *job, pace_train_result *result)
{
    const pace_train_config *config = job->config;
    pace__run_start how = config->resume  ? PACE__RUN_RESUME
                          : config->force ? PACE__RUN_REPLACE
                                          : PACE__RUN_NEW;
    const pace_log *caller_log = job->log;
    pace_status status = pace__rundir_open(config->run, how, job->log, &job->run);

    if (status)
        return status;
    job->log = pace__rundir_log(job->run);
    if (job->registry)
        pace_registry_attach(job->registry, pace__rundir_sink(job->run));
    status = pace__make_dirs(pace__rundir_path(job->run, PACE__RUN_CHECKPOINTS), job->log);
    if (!status)
        status = run(job, result);
    if (job->registry)
        pace_registry_detach(job->registry, pace__rundir_sink(job->run));
    job->log = caller_log;
    pace__rundir_close(job->run);
    return status;
}

pace_status pace_train(const pace_train_config *config, const pace_log *log, pace_registry *registry,
                       pace_train_result *result)
{
    pace_registry *own = registry ? NULL : pace_registry_create(); /* metrics.jsonl is written in any case */
    pace__job job = {.config = config, .log = log, .registry = registry ? registry : own};
    pace_status status = pace__store_open(config->data, &job.store, log);

    if (!status)
        status = plan(&job);
    pace__optim optim = pace__optim_make(config->optimizer, job.lr, config->momentum, config->l1, config->l2);

    if (!status)
        say_needs(&job, &optim);
    if (!status && !config->dry_run) {
        status = pace__metrics_create(PACE__METRICS_EXACT_ROWS, log, &job.metrics);
        if (!status)
            status = pace__logreg_init(&job.model, job.store.info.ids_seen, job.store.info.columns,
                                       job.store.info.has_values, &optim, job.store.info.like, log);
        if (!status)
            status = start(&job, result);
    }
    pace__logreg_release(&job.model);
    pace__metrics_free(job.metrics);
    pace__store_close(&job.store);
    pace_registry_free(own);
    return status;
}
