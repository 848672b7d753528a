#include "base/clock.h"
#include "files/file.h"
#include "metrics/scoring.h"
#include "threads/thread.h"
#include "train/member.h"

#include <math.h>
#include <paceline/relay.h>
#include <stdlib.h>

/* First contact may take longer than later answers. */
#define FIRST_CONTACT_FACTOR 2.0
#define FIRST_CONTACT_MIN_S  10.0

#define FIELD(name) offsetof(pace_train_config, name)

const char pace__model_names[] = "logreg|rnn|cnn",
           pace__mode_names[] = "auto|local|allreduce|ps-sync|ps-async|ps-ssp",
           pace__optimizer_names[] = "sgd|momentum|adagrad|ftrl|adam|auto",
           pace__schedule_names[] = "constant|linear|cosine|invsqrt|auto", pace__cell_names[] = "lstm|gru",
           pace__pooling_names[] = "last|mean|max|auto", pace__loss_names[] = "bce|focal|hinge",
           pace__arch_names[] = "small|resnet20|mobilenet-v1|mobilenet-v2";

const pace_option pace_train_options[] = {
    {"data", 0, PACE_OPT_TEXT, FIELD(data), NULL, "DIR", "data set made by 'paceline prep'", .required = true,
     .group = "Job"},
    {"run", 0, PACE_OPT_TEXT, FIELD(run), NULL, "DIR", "run directory to write", .required = true},
    {"model", 0, PACE_OPT_CHOICE, FIELD(model), "logreg", "M", "what to train", pace__model_names},
    {"mode", 0, PACE_OPT_CHOICE, FIELD(mode), "auto", "M",
     "how the work is spread; auto: local, or ps-sync if --ps is given, or allreduce if --workers is above 1",
     pace__mode_names},
    {"force", 0, PACE_OPT_FLAG, FIELD(force), "false", NULL, "replace the run that the directory holds"},
    {"resume", 0, PACE_OPT_FLAG, FIELD(resume), "false", NULL, "go on from the run's newest checkpoint"},
    {"dry-run", 0, PACE_OPT_FLAG, FIELD(dry_run), "false", NULL,
     "check everything and say what the job needs, but do not start it"},
    {"workers", 0, PACE_OPT_INT, FIELD(workers), "1", "W", "processes that compute; the first is the chief",
     .min = 1, .max = PACE__WORKERS_MAX, .group = "Cluster"},
    {"ps", 0, PACE_OPT_INT, FIELD(ps), "-1", "P",
     "parameter servers, processes of their own; 0: a part of the parameters on every worker; -1: not given",
     .min = -1, .max = PACE__PS_MAX},
    {"evaluator", 0, PACE_OPT_FLAG, FIELD(evaluator), "false", NULL,
     "a process of its own scores the test rows while the workers go on"},
    {"hosts", 0, PACE_OPT_TEXT, FIELD(hosts), NULL, "FILE",
     "machines to run on, one a line: NAME [slots=N] [roles=ps,worker,...]"},
    {"staleness", 0, PACE_OPT_INT, FIELD(staleness), "-1", "N",
     "ps-ssp: steps that anyone may be ahead of the slowest; -1: not given", .min = -1, .max = 1e9},
    {"reduce", 0, PACE_OPT_CHOICE, FIELD(reduce), "ordered", "R",
     "allreduce of dense gradients: summed in worker order, or by MPI", "ordered|mpi"},
    {"deadline", 0, PACE_OPT_REAL, FIELD(deadline), "60", "S",
     "seconds without a sign of life after which a process counts as lost", .min = 0.1, .max = 86400},
    {"mpirun", 0, PACE_OPT_TEXT, FIELD(mpirun), NULL, "CMD",
     "what starts the processes, if not the mpirun of this build"},
    {"batch", 0, PACE_OPT_INT, FIELD(batch), "0", "B",
     "rows in a step, of all workers together; 0: 512; 128 on texts and pictures, 32 for mobilenets; more "
     "than 512 selects --exact",
     .min = 0, .max = 1e9, .group = "Length"},
    {"epochs", 0, PACE_OPT_INT, FIELD(epochs), "0", "E",
     "passes over the training rows; 0: 1 (logreg; on texts 10), 4 (rnn), 10 (cnn; --train top 50)", .min = 0,
     .max = 1e6},
    {"steps", 0, PACE_OPT_INT, FIELD(steps), "0", "S",
     "stop after so many steps, whatever --epochs says; 0: no such limit", .min = 0, .max = 1e15},
    {"early-stop", 0, PACE_OPT_INT, FIELD(early_stop), "0", "N",
     "stop when N evaluations in a row are no better than the best; 0: never", .min = 0, .max = 1e6},
    {"optimizer", 0, PACE_OPT_CHOICE, FIELD(optimizer), "auto", "O",
     "update rule; auto: adagrad (logreg), adam (rnn, cnn)", pace__optimizer_names, .group = "Optimiser"},
    {"lr", 0, PACE_OPT_REAL, FIELD(lr), "0", "X",
     "learning rate; 0: 0.07 (adagrad), 0.1 (ftrl), 0.001 (adam; rnn 0.004; cnn 0.003, with --train top "
     "0.01), 0.005 (sgd; exact rule 0.1), "
     "0.0005 (momentum; exact rule 0.01; cnn 0.05)",
     .min = 0, .max = 1e6},
    {"schedule", 0, PACE_OPT_CHOICE, FIELD(schedule), "auto", "S",
     "how the rate falls over the run; auto: constant (logreg), linear (rnn), cosine (cnn)",
     pace__schedule_names},
    {"warmup", 0, PACE_OPT_INT, FIELD(warmup), "0", "N", "steps over which the rate rises from 0", .min = 0,
     .max = 1e12},
    {"momentum", 0, PACE_OPT_REAL, FIELD(momentum), "0.9", "X", "of momentum; first decay of adam", .min = 0,
     .max = 0.9999},
    {"l1", 0, PACE_OPT_REAL, FIELD(l1), "0", "X", "each row adds X |w| to its loss (ftrl: all rows together)",
     .min = 0, .max = 1e6},
    {"l2", 0, PACE_OPT_REAL, FIELD(l2), "0", "X",
     "each row adds X w^2 / 2 to its loss (ftrl: all rows together; cnn: over weights of convolutions and "
     "head)",
     .min = 0, .max = 1e6},
    {"clip", 0, PACE_OPT_REAL, FIELD(clip), "-1", "X",
     "rnn, cnn: scale a step's mean gradient down to this norm; 0: never; -1: 5 (rnn), 0 (cnn). Parameter "
     "servers see each worker's part clipped",
     .min = -1, .max = 1e6},
    {"exact", 0, PACE_OPT_FLAG, FIELD(exact), "false", NULL,
     "one update per step from the summed gradient, instead of row after row in blocks of 64; all modes but "
     "local do so anyway"},
    {"ngram", 0, PACE_OPT_INT, FIELD(ngram), "2", "N",
     "logreg on texts: features of up to N neighbouring words", .min = 1, .max = 5, .group = "Texts"},
    {"cell", 0, PACE_OPT_CHOICE, FIELD(cell), "lstm", "C", "rnn: kind of cells", pace__cell_names},
    {"layers", 0, PACE_OPT_INT, FIELD(layers), "0", "N", "rnn: layers of cells; 0: 1", .min = 0,
     .max = PACE__RNN_LAYERS_MAX},
    {"hidden", 0, PACE_OPT_INT, FIELD(hidden), "0", "H", "rnn: cells in a layer; 0: 64", .min = 0,
     .max = PACE__RNN_UNITS_MAX},
    {"embed", 0, PACE_OPT_INT, FIELD(embed), "0", "E", "rnn: numbers that stand for a word; 0: 64", .min = 0,
     .max = PACE__RNN_UNITS_MAX},
    {"bidirectional", 0, PACE_OPT_FLAG, FIELD(bidirectional), "false", NULL,
     "rnn: read texts in both directions"},
    {"pooling", 0, PACE_OPT_CHOICE, FIELD(pooling), "auto", "P",
     "rnn: what is made of the cells' outputs over the words: the last one, mean or maximum; auto: last",
     pace__pooling_names},
    {"dense", 0, PACE_OPT_INT, FIELD(dense), "-1", "N",
     "rnn: units of a layer between cells and output; 0: no such layer; -1: 0", .min = -1,
     .max = PACE__RNN_UNITS_MAX},
    {"dropout", 0, PACE_OPT_REAL, FIELD(dropout), "-1", "X",
     "rnn, cnn: fraction of outputs that are left out at random in training; -1: 0.5 (rnn), 0.2 "
     "(mobilenets, but not with --train top), else 0",
     .min = -1, .max = 0.99},
    {"word-dropout", 0, PACE_OPT_REAL, FIELD(word_dropout), "-1", "X",
     "rnn: fraction of words that are taken for unknown ones at random in training; -1: 0.2", .min = -1,
     .max = 0.99},
    {"loss", 0, PACE_OPT_CHOICE, FIELD(loss), "bce", "L",
     "rnn: cross-entropy, focal (hard rows count more) or hinge", pace__loss_names},
    {"focal", 0, PACE_OPT_REAL, FIELD(focal), "2", "X", "exponent of the focal loss", .min = 0, .max = 10},
    {"class-weight", 0, PACE_OPT_TEXT, FIELD(class_weight), NULL, "balanced|X",
     "rnn, cnn of two classes: how much a positive row weighs; balanced: both classes count the same"},
    {"embeddings", 0, PACE_OPT_TEXT, FIELD(embeddings), NULL, "FILE",
     "rnn: begin with word vectors of this file (text format of GloVe or fastText; .gz, .zst) of --embed "
     "numbers each"},
    {"preset", 0, PACE_OPT_CHOICE, FIELD(preset), "none", "P",
     "rnn: the settings of a published study, where options do not say otherwise. reviews-2019: 2 layers of "
     "32 "
     "LSTM cells on 100 numbers per word, dense 32, dropout 0.5, momentum at 0.1, class weight 0.2, 128 rows "
     "a worker, 10 epochs",
     "none|reviews-2019"},
    {"arch", 0, PACE_OPT_CHOICE, FIELD(arch), "small", "A", "cnn: the network", pace__arch_names,
     .group = "Pictures"},
    {"width", 0, PACE_OPT_REAL, FIELD(width), "1", "X", "cnn: factor of the number of channels", .min = 0.05,
     .max = 8},
    {"pretrained", 0, PACE_OPT_TEXT, FIELD(pretrained), NULL, "FILE",
     "cnn: begin with the weights of this safetensors file (of a run; of torchvision, timm or Keras)"},
    {"name-map", 0, PACE_OPT_TEXT, FIELD(name_map), NULL, "FILE",
     "cnn: how the tensors of --pretrained are called: lines \"OURS THEIRS\""},
    {"train", 0, PACE_OPT_TEXT, FIELD(train), "all", "all|top|from:LAYER",
     "cnn: train everything, only the head (the rest runs once per picture), or the layers from LAYER on"},
    {"feature-cache", 0, PACE_OPT_TEXT, FIELD(feature_cache), NULL, "DIR",
     "cnn --train top: where to keep what the frozen layers make of the pictures, if not in the run "
     "directory"},
    {"bn", 0, PACE_OPT_CHOICE, FIELD(bn), "global", "B",
     "cnn: batch norm over the rows of all workers of a step, or over each worker's own; asynchronous modes "
     "always do the latter",
     "global|local"},
    {"head", 0, PACE_OPT_CHOICE, FIELD(head), "auto", "H",
     "cnn: an output per class, or one logit (of two classes); auto: one logit for two classes",
     "auto|softmax|logit"},
    {"smoothing", 0, PACE_OPT_REAL, FIELD(smoothing), "0", "X",
     "cnn: label smoothing: part of the target that goes to all classes alike", .min = 0, .max = 0.9},
    {"augment", 0, PACE_OPT_TEXT, FIELD(augment), "auto", "LIST",
     "cnn: what is changed at random in training: none, or some of flip,crop,colour; auto: flip,crop, and "
     "none with --train top"},
    {"eval-every", 0, PACE_OPT_INT, FIELD(eval_every), "0", "N",
     "score the test rows every N steps; 0: at the end only", .min = 0, .max = 1e15,
     .group = "Evaluation and records"},
    {"eval-rows", 0, PACE_OPT_INT, FIELD(eval_rows), "0", "N",
     "score only the first N test rows on the way; 0: all", .min = 0, .max = 1e15},
    {"log-every", 0, PACE_OPT_INT, FIELD(log_every), "0", "N",
     "steps between records in metrics.jsonl; 0: about 100 records", .min = 0, .max = 1e15},
    {"checkpoint-every", 0, PACE_OPT_INT, FIELD(checkpoint_every), "0", "N",
     "write a checkpoint every N steps; 0: by time only", .min = 0, .max = 1e15,
     .group = "Checkpoints and faults"},
    {"checkpoint-seconds", 0, PACE_OPT_REAL, FIELD(checkpoint_seconds), "300", "S",
     "write a checkpoint when the last one is S seconds old; 0: not by time", .min = 0, .max = 1e9},
    {"keep", 0, PACE_OPT_INT, FIELD(keep), "2", "N", "checkpoints to keep", .min = 1, .max = 1000},
    {"max-restarts", 0, PACE_OPT_INT, FIELD(max_restarts), "3", "N",
     "times that a job which has lost a process is started again without a new checkpoint in between",
     .min = 0, .max = 1e6},
    {"inject", 0, PACE_OPT_TEXT, FIELD(inject), NULL, "FAULTS",
     "try what happens: kill:ROLE[@step=N|@time=S|...], stall:ROLE, slow:ROLE=3x, corrupt-checkpoint; "
     "several "
     "with commas; see docs/faults.md"},
    {"threads", 0, PACE_OPT_INT, FIELD(threads), "0", "T",
     "of each process; 0: one per core in mode local, else one; the model is the same for any number",
     .min = 0, .max = PACE_THREADS_MAX, .group = "Resources"},
    {"seed", 0, PACE_OPT_INT, FIELD(seed), "1", "S",
     "of the sample order, and of first weights, dropout and augmentation"},
    {0},
};

/* The configuration that repeats this run. How this start treats what is in its directory is not part of it.
 */
static pace_status write_config(const pace__job *job)
{
    pace_train_config kept = *job->config; /* what was left open is filled in */

    kept.force = kept.resume = false;
    kept.inject = NULL;
    kept.mode = job->mode;
    kept.lr = job->lr;
    return pace_options_write_yaml(pace_train_options, &kept, pace__rundir_path(job->run, PACE__RUN_CONFIG),
                                   job->log);
}

/* --- leading a run --- */

pace_status pace__job_open_account(pace__job *job, int rank)
{
    pace__row_count_open(&job->rows, job->config->run, rank);
    return pace__faults_open(&job->faults, job->config->inject, &job->cluster, rank, job->config->run,
                             job->log);
}

void pace__job_close_account(pace__job *job)
{
    pace__faults_close(&job->faults);
    pace__row_count_close(&job->rows);
}

void pace__job_emit_start(const pace__job *job)
{
    pace_field fields[] = {PACE_INT("step", job->position.step), PACE_INT("steps", job->steps),
                           PACE_INT("incarnation", job->state.incarnation),
                           PACE_INT("restarts", job->state.restarts)};

    pace_registry_emit(job->registry, "start", fields, sizeof fields / sizeof *fields);
}

/* Numbers of incarnations are in the names of checkpoints, too: one that was used is not used again, whatever
 * happened to state.json. */
static pace_status look_at_checkpoints(pace__job *job)
{
    pace__checkpoint_entry *entries;
    size_t count;
    pace_status status = pace__checkpoint_list(pace__rundir_path(job->run, PACE__RUN_CHECKPOINTS), job->log,
                                               &entries, &count, NULL);

    for (size_t i = 0; !status && i < count; i++) {
        if (entries[i].incarnation > job->state.incarnation)
            job->state.incarnation = entries[i].incarnation;
    }
    if (!status)
        pace__checkpoint_list_free(entries, count);
    return status;
}

/* A new incarnation: from here on older ones can commit nothing. */
static pace_status take_over(pace__job *job)
{
    pace__runstate *state = &job->state;
    pace_status status = pace__runstate_read(job->config->run, NULL, state);

    if (status == PACE_BAD_DATA)
        pace_say(job->log, PACE_WARN, "%s/state.json: damaged: written anew from what else there is",
                 job->config->run);
    if (!status || status == PACE_BAD_DATA)
        status = look_at_checkpoints(job);
    if (status)
        return status;
    state->restarts += state->incarnation > 0 && state->ending == PACE__RUN_RUNNING;
    state->restarts += (uint64_t)pace_relay_attempts();
    state->incarnation++;
    state->ending = PACE__RUN_RUNNING;
    return pace__runstate_write(job->config->run, state, job->log);
}

static pace_status restore(pace__job *job)
{
    pace_status status = pace__job_restore(job);

    if (!status) /* what was recorded of the steps that come again is told again */
        status = pace__rundir_go_back(job->run, job->position.step);
    return status;
}

/* From the run's beginning, or from a checkpoint, to the summary. */
static pace_status run(pace__job *job, pace_train_result *result)
{
    pace_status status = job->config->resume ? restore(job) : PACE_OK;

    if (!status && job->config->resume && job->position.step == 0)
        status = pace__job_read_vectors(job);
    if (!status)
        status = write_config(job);
    if (!status) /* a run with a summary has finished: not this one, from here on */
        status = pace__remove_tree(pace__rundir_path(job->run, PACE__RUN_SUMMARY), job->log);
    if (job->by_columns)
        pace__job_stand_behind(job, &job->logreg.optim, job->position.step);
    job->start_ns = pace__now_ns();
    if (!status)
        status = job->train(job);
    return status ? status : pace__job_finish(job, result);
}

void pace__job_note_ending(pace__job *job, pace_status status)
{
    pace__background_wait(job->saving.background); /* it may be writing the same file */
    job->state.ending = !status                      ? PACE__RUN_DONE
                        : status == PACE_INTERRUPTED ? PACE__RUN_INTERRUPTED
                        : status == PACE_LOST        ? PACE__RUN_RUNNING
                                                     : PACE__RUN_FAILED;
    if (pace__runstate_check(job->config->run, job->state.incarnation, NULL) == PACE_OK)
        pace__runstate_write(job->config->run, &job->state, NULL);
}

static pace_status run_recorded(pace__job *job, pace_train_result *result)
{
    pace_status status = take_over(job);

    if (!status)
        status = pace__job_open_account(job, 0);
    if (!status)
        status = pace__job_open_saving(job);
    if (!status) {
        status = run(job, result);
        pace__job_note_ending(job, status);
    }
    pace__job_close_saving(job);
    pace__part_saver_close(&job->part_saver);
    return status;
}

static pace__run_start start_of(const pace_train_config *config)
{
    return config->resume ? PACE__RUN_RESUME : config->force ? PACE__RUN_REPLACE : PACE__RUN_NEW;
}

pace_status pace__job_check_run(const pace__job *job)
{
    return pace__rundir_check(job->config->run, start_of(job->config), job->log);
}

static pace_status start(pace__job *job, pace_train_result *result)
{
    const pace_train_config *config = job->config;
    const pace_log *caller_log = job->log;
    pace_status status = pace__rundir_open(config->run, start_of(config), job->log, &job->run);

    if (status)
        return status;
    job->log = pace__rundir_log(job->run);
    pace_registry_attach(job->registry, pace__rundir_sink(job->run));
    status = pace__make_dirs(pace__rundir_path(job->run, PACE__RUN_CHECKPOINTS), job->log);
    if (!status)
        status = run_recorded(job, result);
    pace_registry_detach(job->registry, pace__rundir_sink(job->run));
    job->log = caller_log;
    pace__rundir_close(job->run);
    job->run = NULL;
    return status;
}

pace_status pace__job_lead(pace__job *job, pace_train_result *result)
{
    const pace_train_config *config = job->config;

    pace__job_say_needs(job);
    if (config->dry_run) {
        pace_status fits = pace__job_check_run(job);

        return fits || !job->member ? fits : job->train(job);
    }
    pace_status status = pace__scoring_metrics(job->shape.outputs, job->log, &job->metrics);

    if (!status)
        status = pace__job_open_parameters(job);
    if (!status)
        status = start(job, result);
    pace__job_close_parameters(job);
    pace__metrics_free(job->metrics);
    return status;
}

/* --- one process --- */

static pace_status train_local(pace__job *job)
{
    pace__job_emit_start(job);
    pace_status status = pace__job_is_over(job) ? PACE_OK : pace__train_local(job);

    job->trained_s = pace__seconds_since(job->start_ns);
    return status;
}

/* Logreg on sparse rows. */
static pace_status run_by_columns(pace__job *job, pace_train_result *result)
{
    job->train = train_local;
    job->save = pace__local_save;
    job->saved = pace__local_saved;
    job->rest = pace__local_rest;
    job->pulse = pace__local_pulse;
    pace_status status = pace__job_plan(job);

    if (!status)
        status = pace__job_lead(job, result);
    pace__job_close_account(job);
    return status;
}

/* --- many --- */

double pace__first_contact_s(const pace_train_config *config)
{
    return fmax(FIRST_CONTACT_FACTOR * config->deadline, FIRST_CONTACT_MIN_S);
}

static pace__link_options link_options(const pace__job *job)
{
    const pace_train_config *config = job->config;

    return (pace__link_options){.deadline_ns = (uint64_t)(config->deadline * 1e9),
                                .first_deadline_ns = (uint64_t)(pace__first_contact_s(config) * 1e9),
                                .outlives = pace__job_outlives_here(job),
                                .log = job->log};
}

/* As one of the ranks that a launcher has started. */
static pace_status run_as_rank(pace__job *job, pace_train_result *result)
{
    pace__link_options options = link_options(job);
    int size = pace__cluster_size(&job->cluster);
    pace__link *link;
    pace_status status = pace__link_open_mpi(job->cluster.workers, &options, &link);

    if (status)
        return status;
    result->elsewhere = pace__link_rank(link) != 0;
    if (pace__link_size(link) == size)
        return pace__member_run(job, link, result);
    /* Every rank finds this; one tells. */
    status = PACE_USAGE;
    if (!result->elsewhere)
        pace_fail(job->log, status,
                  "%d process%s started, but %d worker%s, %d ps%s are %d: start as many as there are roles%s",
                  pace__link_size(link), pace__link_size(link) == 1 ? " was" : "es were",
                  job->cluster.workers, job->cluster.workers == 1 ? "" : "s", job->cluster.ps,
                  job->cluster.evaluator ? " and an evaluator" : "", size,
                  pace__link_size(link) == 1
                      ? " (srun needs --mpi=pmix, and mpirun must be that of the same MPI)"
                      : "");
    pace__link_close(link);
    return status;
}

/* A launcher has started several processes, but the options ask for one. */
static pace_status refuse_copies(const pace__job *job, int rank, int size, pace_train_result *result)
{
    result->elsewhere = rank > 0;
    pace_say(
        rank > 0 ? NULL : job->log, PACE_ERROR,
        "%d processes were started, but --mode local is one: give --workers, --ps and --evaluator for them",
        size);
    return PACE_USAGE;
}

/* A cluster of one needs no launcher. */
static pace_status run_as_cluster_of_one(pace__job *job, pace_train_result *result)
{
    pace__link_options options = link_options(job);
    pace__link *link;
    pace_status status = pace__link_open_threads(1, 1, &options, &link);

    return status ? status : pace__member_run(job, link, result);
}

static pace_status run_alone(pace__job *job, pace_train_result *result)
{
    pace_status status = pace__store_open(job->config->data, &job->store, job->log);

    if (status)
        return status;
    bool by_columns = pace__job_goes_by_columns(job);

    if (by_columns)
        status = run_by_columns(job, result);
    pace__store_close(&job->store);
    return by_columns ? status : run_as_cluster_of_one(job, result);
}

pace_status pace_train(const pace_train_config *config, const pace_log *log, pace_registry *registry,
                       pace_train_result *result)
{
    pace_registry *own = registry ? NULL : pace_registry_create(); /* metrics.jsonl is written in any case */
    pace__job job = {.given = config, .settled = *config, .log = log, .registry = registry ? registry : own};
    int rank, size;

    job.config = &job.settled;
    pace_status status =
        job.registry ? pace__job_plan_cluster(&job) : pace_fail(log, PACE_FAILED, "out of memory");

    bool launched = pace__launched(&rank, &size);

    if (!status && config->resume && !config->dry_run && !launched && pace__job_is_finished(config, result)) {
        pace_say(log, PACE_INFO, "%s: the run has finished: there is nothing left to do", config->run);
        pace_registry_free(own);
        return PACE_OK;
    }
    if (!status && job.mode == PACE_MODE_LOCAL && launched && size > 1)
        status = refuse_copies(&job, rank, size, result);
    else if (!status && job.mode == PACE_MODE_LOCAL)
        status = run_alone(&job, result);
    else if (!status && launched)
        status = run_as_rank(&job, result);
    else if (!status && pace__cluster_size(&job.cluster) == 1 && !config->hosts)
        status = run_as_cluster_of_one(&job, result);
    else if (!status)
        status = pace__supervise(&job, result);
    pace_registry_free(own);
    return status == PACE_LOST && !pace_relay_wanted() ? PACE_FAILED : status;
}
