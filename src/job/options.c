/* The options of train, by what they are about; those of one kind of model alone have tables of their own. */
#include "base/locale.h"
#include "job/job.h"
#include "options/internal.h"
#include "threads/thread.h"

#include <paceline/kernels.h>
#include <string.h>

#define FIELD(name) offsetof(pace_train_config, name)

const char pace__mode_names[] = "auto|local|allreduce|ps-sync|ps-async|ps-ssp|local-sgd",
           pace__optimizer_names[] = "sgd|momentum|adagrad|ftrl|adam|auto",
           pace__schedule_names[] = "constant|linear|cosine|invsqrt|auto";

const pace_option pace_train_options[] = {
    {"data", 0, PACE_OPT_TEXT, FIELD(data), NULL, "DIR", "data set made by 'paceline prep'", .required = true,
     .mark = PACE_MARK_SURFACE, .group = "Job"},
    {"run", 0, PACE_OPT_TEXT, FIELD(run), NULL, "DIR", "run directory to write", .required = true,
     .mark = PACE_MARK_SURFACE},
    {"model", 0, PACE_OPT_CHOICE, FIELD(model), "logreg", "M", "what to train", pace__kind_names + 1,
     .mark = PACE_MARK_IDENTITY},
    {"mode", 0, PACE_OPT_CHOICE, FIELD(mode), "auto", "M",
     "how the work is spread; auto: local, or ps-sync if --ps is given, or allreduce if --workers is above 1",
     pace__mode_names, .mark = PACE_MARK_LAYOUT},
    {"validation", 0, PACE_OPT_REAL, FIELD(validation), "0", "FRACTION",
     "do not train on this fraction of the training rows, the last ones as they are stored, but stop and "
     "choose "
     "by them; not for a data set that was prepared with validation rows of its own",
     .min = 0, .max = 0.999999, .usual = "0: those of the data set, if it has some", .late = true,
     .mark = PACE_MARK_IDENTITY},
    {"seed", 0, PACE_OPT_INT, FIELD(seed), "1", "S",
     "of the sample order, and of first weights, dropout and augmentation", .mark = PACE_MARK_IDENTITY},
    {"precision", 0, PACE_OPT_CHOICE, FIELD(precision), "f32", "P",
     "networks: bf16 rounds what is multiplied in training to 8 binary digits, which is faster, and needs a "
     "CPU with "
     "AVX512_BF16 or AMX; sums, weights and all scores stay f32",
     "f32|bf16", .mark = PACE_MARK_IDENTITY},
    {"init", 0, PACE_OPT_TEXT, FIELD(init), NULL, "RUN|FILE",
     "begin with the weights of this model of the same kind, by feature, word or class, and go on from them: "
     "what is new begins fresh, features that are not in the data stay in the model",
     .mark = PACE_MARK_SURFACE},
    {"init-state", 0, PACE_OPT_FLAG, FIELD(init_state), "false", NULL,
     "with what the optimiser of the --init run has kept of each weight, too: from its checkpoint of that "
     "model, for "
     "which, of clicks, its data set has to be there still",
     .mark = PACE_MARK_SURFACE},
    {"force", 0, PACE_OPT_FLAG, FIELD(force), "false", NULL, "replace the run that the directory holds",
     .mark = PACE_MARK_SURFACE},
    {"resume", 0, PACE_OPT_FLAG, FIELD(resume), "false", NULL,
     "go on from the run's newest checkpoint; the run's options have to be repeated (--config "
     "RUN/config.yaml "
     "has them)",
     .mark = PACE_MARK_SURFACE},
    {"dry-run", 0, PACE_OPT_FLAG, FIELD(dry_run), "false", NULL,
     "check everything and say what the job needs, but do not start it", .mark = PACE_MARK_LAYOUT},
    {"workers", 0, PACE_OPT_INT, FIELD(cluster.workers), "1", "W",
     "processes that compute; the first is the chief. auto: as many as are expected to be worth it, with as "
     "many servers, found by a run of some seconds; no mode is chosen but local, allreduce and ps-sync, "
     "and none if --mode is given",
     .word = "auto", .min = 1, .max = PACE__WORKERS_MAX, .mark = PACE_MARK_LAYOUT, .group = "Cluster"},
    {"ps", 0, PACE_OPT_INT, FIELD(cluster.ps), "-1", "P",
     "parameter servers, processes of their own; 0: a part of the parameters on every worker", .min = -1,
     .max = PACE__PS_MAX, .usual = "none", .mark = PACE_MARK_LAYOUT},
    {"backup-workers", 0, PACE_OPT_INT, FIELD(cluster.backup_workers), "0", "K",
     "ps-sync with servers: steps are cut for W - K workers; whoever is free computes what is late", .min = 0,
     .max = PACE__WORKERS_MAX - 1, .mark = PACE_MARK_LAYOUT},
    {"evaluator", 0, PACE_OPT_FLAG, FIELD(cluster.evaluator), "false", NULL,
     "a process of its own scores the rows while the workers go on", .mark = PACE_MARK_LAYOUT},
    {"hosts", 0, PACE_OPT_TEXT, FIELD(cluster.hosts), NULL, "FILE",
     "machines to run on, one a line: NAME [slots=N] [roles=ps,worker,...]", .mark = PACE_MARK_SURFACE},
    {"threads", 0, PACE_OPT_INT, FIELD(cluster.threads), "0", "T",
     "of each process; the model is the same for any number", .min = 0, .max = PACE_THREADS_MAX,
     .usual = "one per core in mode local, else one", .mark = PACE_MARK_PROCESS},
    {"staleness", 0, PACE_OPT_INT, FIELD(cluster.staleness), "-1", "N",
     "ps-ssp: steps that anyone may be ahead of the slowest", .min = -1, .max = 1e9,
     .usual = "none: ps-ssp asks for it", .mark = PACE_MARK_LAYOUT},
    {"reduce", 0, PACE_OPT_CHOICE, FIELD(cluster.reduce), "ordered", "R",
     "allreduce of dense gradients: summed in worker order, or by MPI", "ordered|mpi",
     .mark = PACE_MARK_LAYOUT},
    {"wire", 0, PACE_OPT_CHOICE, FIELD(cluster.wire), "f32", "W",
     "ps modes, local-sgd: what gradients, or changes, are sent as; bf16 is half as long, and keeps 8 binary "
     "digits",
     "f32|bf16", .mark = PACE_MARK_LAYOUT},
    {"exchange", 0, PACE_OPT_INT, FIELD(cluster.exchange), "0", "ROWS",
     "local-sgd: rows after which everything is merged (a flush), which can be saved and scored; ends of "
     "epochs always are. Logreg: rows of all workers together. Networks: rows of each worker, in whole "
     "steps, "
     "at most",
     .min = 0, .max = 1e15, .usual = "0: 8 million of each worker; of networks, 32 steps",
     .mark = PACE_MARK_LAYOUT},
    {"outer-lr", 0, PACE_OPT_REAL, FIELD(cluster.outer_lr), "0", "X",
     "local-sgd, networks: what the mean of the workers' changes is multiplied with at a flush", .min = 0,
     .max = 10, .usual = "0: 1", .mark = PACE_MARK_LAYOUT},
    {"outer-momentum", 0, PACE_OPT_REAL, FIELD(cluster.outer_momentum), "-1", "X",
     "local-sgd, networks: how much of earlier flushes' changes is added to those of this one (Nesterov's)",
     .min = -1, .max = 0.99, .usual = "1 - 1 / sqrt(W) of adam and adagrad, else 0",
     .mark = PACE_MARK_LAYOUT},
    {"balance", 0, PACE_OPT_TEXT, FIELD(cluster.balance), "off", "B",
     "allreduce, ps-sync: shares of a step by how fast each worker is: off (all equal), auto (looked at "
     "every 4 steps, changed if that is worth it), epoch or N (decided once an epoch, every N steps), "
     "replay:RUN (as that run has recorded them)",
     .mark = PACE_MARK_LAYOUT},
    {"deadline", 0, PACE_OPT_REAL, FIELD(cluster.deadline), "60", "S",
     "seconds without a sign of life after which a process counts as lost", .min = 0.1, .max = 86400,
     .mark = PACE_MARK_SURFACE},
    {"mpirun", 0, PACE_OPT_TEXT, FIELD(cluster.mpirun), NULL, "CMD",
     "what starts the processes, if not the mpirun of this build", .mark = PACE_MARK_SURFACE},
    {"batch", 0, PACE_OPT_INT, FIELD(length.batch), "0", "B",
     "rows in a step, of all workers together; more than 512 selects --exact", .min = 0, .max = 1e9,
     .usual = "by model", .not_zero = true, .mark = PACE_MARK_IDENTITY, .group = "Length"},
    {"epochs", 0, PACE_OPT_INT, FIELD(length.epochs), "0", "E", "passes over the training rows", .min = 0,
     .max = 1e6, .usual = "by model", .not_zero = true, .mark = PACE_MARK_LENGTH},
    {"steps", 0, PACE_OPT_INT, FIELD(length.steps), "0", "S",
     "stop after so many steps, whatever --epochs says", .min = 0, .max = 1e15, .usual = "0: no such limit",
     .mark = PACE_MARK_LENGTH},
    {"early-stop", 0, PACE_OPT_INT, FIELD(length.early_stop), "0", "N",
     "stop when N evaluations in a row are no better than the best; the model is that of the best, as with "
     "--keep-best",
     .min = 0, .max = 1e6, .usual = "0: never", .mark = PACE_MARK_LAYOUT},
    {"keep-best", 0, PACE_OPT_FLAG, FIELD(length.keep_best), "false", NULL,
     "the model, and its scores, are those of the evaluation (--eval-every) with the lowest log-loss on the "
     "validation rows; each better one is kept as a checkpoint besides the --keep newest",
     .mark = PACE_MARK_LAYOUT},
    {"optimizer", 0, PACE_OPT_CHOICE, FIELD(optimiser.rule), "auto", "O", "update rule",
     pace__optimizer_names, .usual = "by model", .mark = PACE_MARK_IDENTITY, .group = "Optimiser"},
    {"lr", 0, PACE_OPT_REAL, FIELD(optimiser.lr), "0", "X",
     "learning rate; where a model has none of its own 0.07 (adagrad), 0.1 (ftrl), 0.001 (adam), 0.005 (sgd; "
     "exact rule 0.1), 0.0005 (momentum; exact rule 0.01)",
     .min = 0, .max = 1e6, .usual = "by model and rule", .not_zero = true, .mark = PACE_MARK_IDENTITY},
    {"schedule", 0, PACE_OPT_CHOICE, FIELD(optimiser.schedule), "auto", "S",
     "how the rate falls over the run", pace__schedule_names, .usual = "by model",
     .mark = PACE_MARK_IDENTITY},
    {"warmup", 0, PACE_OPT_INT, FIELD(optimiser.warmup), "0", "N", "steps over which the rate rises from 0",
     .min = 0, .max = 1e12, .mark = PACE_MARK_IDENTITY},
    {"momentum", 0, PACE_OPT_REAL, FIELD(optimiser.momentum), "0.9", "X", "of momentum; first decay of adam",
     .min = 0, .max = 0.9999, .mark = PACE_MARK_IDENTITY},
    {"l1", 0, PACE_OPT_REAL, FIELD(optimiser.l1), "0", "X",
     "each row adds X |w| to its loss (ftrl: all rows together)", .min = 0, .max = 1e6,
     .mark = PACE_MARK_IDENTITY},
    {"l2", 0, PACE_OPT_REAL, FIELD(optimiser.l2), "0", "X",
     "each row adds X w^2 / 2 to its loss (ftrl: all rows together; cnn: over weights of convolutions and "
     "head)",
     .min = 0, .max = 1e6, .mark = PACE_MARK_IDENTITY},
    {"clip", 0, PACE_OPT_REAL, FIELD(optimiser.clip), "-1", "X",
     "networks: scale a step's mean gradient down to this norm; 0: never. Parameter servers see each "
     "worker's part clipped",
     .min = -1, .max = 1e6, .usual = "by model", .mark = PACE_MARK_IDENTITY},
    {"dropout", 0, PACE_OPT_REAL, FIELD(optimiser.dropout), "-1", "X",
     "networks: fraction of outputs that are left out at random in training", .min = -1, .max = 0.99,
     .usual = "by model", .mark = PACE_MARK_IDENTITY},
    {"class-weight", 0, PACE_OPT_TEXT, FIELD(optimiser.class_weight), NULL, "balanced|X",
     "networks with a yes or no: how much a positive row weighs; balanced: both classes count the same",
     .mark = PACE_MARK_IDENTITY},
    {"exact", 0, PACE_OPT_FLAG, FIELD(optimiser.exact), "false", NULL,
     "one update per step from the summed gradient, instead of row after row in blocks of 64; all modes but "
     "local and local-sgd do so anyway, and on texts these, too",
     .mark = PACE_MARK_IDENTITY},
    {"eval-every", 0, PACE_OPT_INT, FIELD(records.eval_every), "0", "N",
     "score the validation rows, without any the test rows, every N steps", .min = 0, .max = 1e15,
     .usual = "0: at the end only", .mark = PACE_MARK_LAYOUT, .group = "Evaluation and records"},
    {"eval-rows", 0, PACE_OPT_INT, FIELD(records.eval_rows), "0", "N",
     "score only the first N of them on the way", .min = 0, .max = 1e15, .usual = "0: all",
     .mark = PACE_MARK_LAYOUT},
    {"log-every", 0, PACE_OPT_INT, FIELD(records.log_every), "0", "N",
     "steps between records in metrics.jsonl", .min = 0, .max = 1e15, .usual = "0: about 100 records",
     .mark = PACE_MARK_SURFACE},
    {"profile", 0, PACE_OPT_INT, FIELD(records.profile), "0", "STEPS",
     "record what every thread of every process does in so many steps, 100 if no number is given: a table at "
     "the end, "
     "and a trace in RUN/profile",
     .min = 0, .max = 1e9, .usual = "0: no profile", .implied = "100", .mark = PACE_MARK_LAYOUT},
    {"report", 0, PACE_OPT_CHOICE, FIELD(records.report), "on", "on|off",
     "write report.html into the run directory at the end; see paceline report", "on|off",
     .mark = PACE_MARK_SURFACE},
    {"dashboard", 0, PACE_OPT_TEXT, FIELD(records.dashboard), NULL, "ADDR:PORT",
     "show the run on a page while it goes on; without a value on 127.0.0.1, port 8640 or another that is "
     "free. Any address but "
     "those of loopback asks for the token that is said at the start",
     .implied = "auto", .mark = PACE_MARK_SURFACE},
    {"checkpoint-every", 0, PACE_OPT_INT, FIELD(faults.checkpoint_every), "0", "N",
     "write a checkpoint every N steps", .min = 0, .max = 1e15, .usual = "0: by time only",
     .mark = PACE_MARK_LAYOUT, .group = "Checkpoints and faults"},
    {"checkpoint-seconds", 0, PACE_OPT_REAL, FIELD(faults.checkpoint_seconds), "300", "S",
     "write a checkpoint when the last one is S seconds old; 0: not by time", .min = 0, .max = 1e9,
     .mark = PACE_MARK_SURFACE},
    {"keep", 0, PACE_OPT_INT, FIELD(faults.keep), "2", "N", "checkpoints to keep", .min = 1, .max = 1000,
     .mark = PACE_MARK_SURFACE},
    {"max-restarts", 0, PACE_OPT_INT, FIELD(faults.max_restarts), "3", "N",
     "times that a job which has lost a process is started again without a new checkpoint in between",
     .min = 0, .max = 1e6, .mark = PACE_MARK_SURFACE},
    {"inject", 0, PACE_OPT_TEXT, FIELD(faults.inject), NULL, "FAULTS",
     "try what happens: kill:ROLE[@step=N|@time=S|...], stall:ROLE, slow:ROLE=3x[@step=FROM..TO], "
     "corrupt-checkpoint; several with commas; see docs/faults.md",
     .mark = PACE_MARK_SURFACE},
    {"stage", 0, PACE_OPT_TEXT, FIELD(stage.directory), NULL, "DIR",
     "copy the data set to this directory of each host (it has to be there: a local disk) while training "
     "goes "
     "on, and read from there what is there; copies of an earlier run are used again",
     .mark = PACE_MARK_SURFACE, .group = "Local copies of the data"},
    {"stage-bytes", 0, PACE_OPT_SIZE, FIELD(stage.bytes), "0", "BYTES", "of all copies in DIR, at most",
     .min = 0, .max = 1e18, .usual = "0: all but a twentieth of the disk", .mark = PACE_MARK_SURFACE},
    {"stage-rate", 0, PACE_OPT_SIZE, FIELD(stage.rate), "128M", "BYTES",
     "a second that a host copies, at most; 0: no limit but that it rests as long as it reads", .min = 0,
     .max = 1e12, .mark = PACE_MARK_SURFACE},
    {"stage-clean", 0, PACE_OPT_FLAG, FIELD(stage.clean), "false", NULL,
     "remove the copies when the run has ended well and no other job uses them", .mark = PACE_MARK_SURFACE},
    {0},
};

#undef FIELD

void pace_train_defaults(int model, pace_train_config *config)
{
    PACE__C_LOCALE();
    const pace__kind *kind = pace__kind_at(model);

    *config = (pace_train_config){.model = model};
    pace__options_reset(pace_train_options, config);
    pace__options_reset(kind->info.options, &config->own);
    config->model = model;
    kind->settle(config, &(pace__dataset){0});
    if (config->optimiser.lr == 0)
        config->optimiser.lr = pace__optim_default_lr(config->optimiser.rule, config->optimiser.exact);
}

bool pace_train_has_logloss(const pace_train_config *config)
{
    const pace__kind *kind = pace__kind_at(config->model);

    return !kind->has_logloss || kind->has_logloss(config);
}

/* --- command lines --- */

pace_status pace_train_add_kinds(pace_options *options, pace_model_options of[PACE_MODELS_MAX])
{
    PACE__C_LOCALE();
    pace_status status = PACE_OK;

    for (int i = 0; pace_model_at(i) && !status; i++)
        status = pace_options_add(options, pace_model_at(i)->options, of ? &of[i] : NULL);
    return status;
}

/* The first option of another kind that has a value of its own. */
static const pace_option *find_given(const pace_model_info *kind, const pace_model_options *own)
{
    for (const pace_option *row = kind->options; row->name; row++) {
        if (!pace__value_is_default(row, (const char *)own + row->offset))
            return row;
    }
    return NULL;
}

pace_status pace_train_take_kind(pace_train_config *config, const pace_model_options of[PACE_MODELS_MAX],
                                 const pace_options *options, const pace_log *log)
{
    PACE__C_LOCALE();
    char place[PACE_OPTION_PLACE_MAX];

    for (int i = 0; pace_model_at(i); i++) {
        const pace_model_info *other = pace_model_at(i);
        const pace_option *row = i == config->model ? NULL : find_given(other, &of[i]);

        if (!row)
            continue;
        pace_options_place(options, row->name, place);
        return pace_fail(log, PACE_USAGE, "%s is for --model %s, not for %s", place, other->name,
                         pace_model_at(config->model)->name);
    }
    config->own = of[config->model];
    return PACE_OK;
}

void pace__train_parts(const pace_train_config *config, pace_option_part parts[3])
{
    parts[0] = (pace_option_part){pace_train_options, config};
    parts[1] = (pace_option_part){pace_model_at(config->model)->options, &config->own};
    parts[2] = (pace_option_part){0};
}

/* It belongs to the process, and so to no config; but a run is repeated with it. */
const pace_option pace__kernels_option[] = {
    {"kernels", 0, PACE_OPT_CHOICE, 0, "auto", .choices = PACE_KERNELS_WORDS, .mark = PACE_MARK_PROCESS},
    {0}};

void pace__record_parts(const pace_train_config *config, const int *kernels, pace_option_part parts[4])
{
    pace__train_parts(config, parts);
    parts[2] = (pace_option_part){pace__kernels_option, kernels};
    parts[3] = (pace_option_part){0};
}
