/* The options of train, by what they are about; those of one kind of model alone have tables of their own. */
#include "options/internal.h"
#include "threads/thread.h"
#include "train/job.h"

#include <string.h>

#define FIELD(name) offsetof(pace_train_config, name)

const char pace__model_names[] = "logreg|rnn|cnn",
           pace__mode_names[] = "auto|local|allreduce|ps-sync|ps-async|ps-ssp",
           pace__optimizer_names[] = "sgd|momentum|adagrad|ftrl|adam|auto",
           pace__schedule_names[] = "constant|linear|cosine|invsqrt|auto", pace__cell_names[] = "lstm|gru",
           pace__pooling_names[] = "last|mean|max|auto", pace__loss_names[] = "bce|focal|hinge",
           pace__arch_names[] = "small|resnet20|mobilenet-v1|mobilenet-v2";

const pace_option pace_train_options[] = {
    {"data", 0, PACE_OPT_TEXT, FIELD(data), NULL, "DIR", "data set made by 'paceline prep'", .required = true,
     .mark = PACE_MARK_SURFACE, .group = "Job"},
    {"run", 0, PACE_OPT_TEXT, FIELD(run), NULL, "DIR", "run directory to write", .required = true,
     .mark = PACE_MARK_SURFACE},
    {"model", 0, PACE_OPT_CHOICE, FIELD(model), "logreg", "M", "what to train", pace__model_names,
     .mark = PACE_MARK_IDENTITY},
    {"mode", 0, PACE_OPT_CHOICE, FIELD(mode), "auto", "M",
     "how the work is spread; auto: local, or ps-sync if --ps is given, or allreduce if --workers is above 1",
     pace__mode_names, .mark = PACE_MARK_LAYOUT},
    {"seed", 0, PACE_OPT_INT, FIELD(seed), "1", "S",
     "of the sample order, and of first weights, dropout and augmentation", .mark = PACE_MARK_IDENTITY},
    {"force", 0, PACE_OPT_FLAG, FIELD(force), "false", NULL, "replace the run that the directory holds",
     .mark = PACE_MARK_SURFACE},
    {"resume", 0, PACE_OPT_FLAG, FIELD(resume), "false", NULL, "go on from the run's newest checkpoint",
     .mark = PACE_MARK_SURFACE},
    {"dry-run", 0, PACE_OPT_FLAG, FIELD(dry_run), "false", NULL,
     "check everything and say what the job needs, but do not start it", .mark = PACE_MARK_LAYOUT},
    {"workers", 0, PACE_OPT_INT, FIELD(cluster.workers), "1", "W",
     "processes that compute; the first is the chief", .min = 1, .max = PACE__WORKERS_MAX,
     .mark = PACE_MARK_LAYOUT, .group = "Cluster"},
    {"ps", 0, PACE_OPT_INT, FIELD(cluster.ps), "-1", "P",
     "parameter servers, processes of their own; 0: a part of the parameters on every worker", .min = -1,
     .max = PACE__PS_MAX, .usual = "none", .mark = PACE_MARK_LAYOUT},
    {"evaluator", 0, PACE_OPT_FLAG, FIELD(cluster.evaluator), "false", NULL,
     "a process of its own scores the test rows while the workers go on", .mark = PACE_MARK_LAYOUT},
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
    {"deadline", 0, PACE_OPT_REAL, FIELD(cluster.deadline), "60", "S",
     "seconds without a sign of life after which a process counts as lost", .min = 0.1, .max = 86400,
     .mark = PACE_MARK_SURFACE},
    {"mpirun", 0, PACE_OPT_TEXT, FIELD(cluster.mpirun), NULL, "CMD",
     "what starts the processes, if not the mpirun of this build", .mark = PACE_MARK_SURFACE},
    {"batch", 0, PACE_OPT_INT, FIELD(length.batch), "0", "B",
     "rows in a step, of all workers together; more than 512 selects --exact", .min = 0, .max = 1e9,
     .usual = "by model", .mark = PACE_MARK_IDENTITY, .group = "Length"},
    {"epochs", 0, PACE_OPT_INT, FIELD(length.epochs), "0", "E", "passes over the training rows", .min = 0,
     .max = 1e6, .usual = "by model", .mark = PACE_MARK_LENGTH},
    {"steps", 0, PACE_OPT_INT, FIELD(length.steps), "0", "S",
     "stop after so many steps, whatever --epochs says", .min = 0, .max = 1e15, .usual = "no such limit",
     .mark = PACE_MARK_LENGTH},
    {"early-stop", 0, PACE_OPT_INT, FIELD(length.early_stop), "0", "N",
     "stop when N evaluations in a row are no better than the best", .min = 0, .max = 1e6, .usual = "never",
     .mark = PACE_MARK_LAYOUT},
    {"optimizer", 0, PACE_OPT_CHOICE, FIELD(optimiser.rule), "auto", "O", "update rule",
     pace__optimizer_names, .usual = "by model", .mark = PACE_MARK_IDENTITY, .group = "Optimiser"},
    {"lr", 0, PACE_OPT_REAL, FIELD(optimiser.lr), "0", "X",
     "learning rate; where a model has none of its own 0.07 (adagrad), 0.1 (ftrl), 0.001 (adam), 0.005 (sgd; "
     "exact rule 0.1), 0.0005 (momentum; exact rule 0.01)",
     .min = 0, .max = 1e6, .usual = "by model and rule", .mark = PACE_MARK_IDENTITY},
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
     "local do so anyway",
     .mark = PACE_MARK_IDENTITY},
    {"eval-every", 0, PACE_OPT_INT, FIELD(records.eval_every), "0", "N", "score the test rows every N steps",
     .min = 0, .max = 1e15, .usual = "at the end only", .mark = PACE_MARK_LAYOUT,
     .group = "Evaluation and records"},
    {"eval-rows", 0, PACE_OPT_INT, FIELD(records.eval_rows), "0", "N",
     "score only the first N test rows on the way", .min = 0, .max = 1e15, .usual = "all",
     .mark = PACE_MARK_LAYOUT},
    {"log-every", 0, PACE_OPT_INT, FIELD(records.log_every), "0", "N",
     "steps between records in metrics.jsonl", .min = 0, .max = 1e15, .usual = "about 100 records",
     .mark = PACE_MARK_SURFACE},
    {"checkpoint-every", 0, PACE_OPT_INT, FIELD(faults.checkpoint_every), "0", "N",
     "write a checkpoint every N steps", .min = 0, .max = 1e15, .usual = "by time only",
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
     "try what happens: kill:ROLE[@step=N|@time=S|...], stall:ROLE, slow:ROLE=3x, corrupt-checkpoint; "
     "several "
     "with commas; see docs/faults.md",
     .mark = PACE_MARK_SURFACE},
    {0},
};

#undef FIELD

#define FIELD(name) offsetof(pace_logreg_options, name)

static const pace_option logreg_options[] = {
    {"ngram", 0, PACE_OPT_INT, FIELD(ngram), "2", "N", "on texts: features of up to N neighbouring words",
     .min = 1, .max = 5, .mark = PACE_MARK_IDENTITY, .group = "Logistic regression"},
    {0},
};

#undef FIELD

#define FIELD(name) offsetof(pace_rnn_options, name)

static const pace_option rnn_options[] = {
    {"preset", 0, PACE_OPT_CHOICE, FIELD(preset), "none", "P",
     "the settings of a published study, where options do not say otherwise. reviews-2019: 2 layers of "
     "32 "
     "LSTM cells on 100 numbers per word, dense 32, dropout 0.5, momentum at 0.1, class weight 0.2, 128 rows "
     "a worker, 10 epochs",
     "none|reviews-2019", .mark = PACE_MARK_IDENTITY, .group = "Recurrent networks"},
    {"cell", 0, PACE_OPT_CHOICE, FIELD(cell), "lstm", "C", "kind of cells", pace__cell_names,
     .mark = PACE_MARK_IDENTITY},
    {"layers", 0, PACE_OPT_INT, FIELD(layers), "0", "N", "layers of cells", .min = 0,
     .max = PACE__RNN_LAYERS_MAX, .mark = PACE_MARK_IDENTITY},
    {"hidden", 0, PACE_OPT_INT, FIELD(hidden), "0", "H", "cells in a layer", .min = 0,
     .max = PACE__RNN_UNITS_MAX, .mark = PACE_MARK_IDENTITY},
    {"embed", 0, PACE_OPT_INT, FIELD(embed), "0", "E", "numbers that stand for a word", .min = 0,
     .max = PACE__RNN_UNITS_MAX, .mark = PACE_MARK_IDENTITY},
    {"bidirectional", 0, PACE_OPT_FLAG, FIELD(bidirectional), "false", NULL, "read texts in both directions",
     .mark = PACE_MARK_IDENTITY},
    {"pooling", 0, PACE_OPT_CHOICE, FIELD(pooling), "auto", "P",
     "what is made of the cells' outputs over the words: the last one, mean or maximum", pace__pooling_names,
     .mark = PACE_MARK_IDENTITY},
    {"dense", 0, PACE_OPT_INT, FIELD(dense), "-1", "N",
     "units of a layer between cells and output; 0: no such layer", .min = -1, .max = PACE__RNN_UNITS_MAX,
     .mark = PACE_MARK_IDENTITY},
    {"word-dropout", 0, PACE_OPT_REAL, FIELD(word_dropout), "-1", "X",
     "fraction of words that are taken for unknown ones at random in training", .min = -1, .max = 0.99,
     .mark = PACE_MARK_IDENTITY},
    {"loss", 0, PACE_OPT_CHOICE, FIELD(loss), "bce", "L",
     "cross-entropy, focal (hard rows count more) or hinge", pace__loss_names, .mark = PACE_MARK_IDENTITY},
    {"focal", 0, PACE_OPT_REAL, FIELD(focal), "2", "X", "exponent of the focal loss", .min = 0, .max = 10,
     .mark = PACE_MARK_IDENTITY},
    {"embeddings", 0, PACE_OPT_TEXT, FIELD(embeddings), NULL, "FILE",
     "begin with word vectors of this file (text format of GloVe or fastText; .gz, .zst) of --embed numbers "
     "each",
     .mark = PACE_MARK_SURFACE},
    {0},
};

#undef FIELD

#define FIELD(name) offsetof(pace_cnn_options, name)

static const pace_option cnn_options[] = {
    {"arch", 0, PACE_OPT_CHOICE, FIELD(arch), "small", "A", "the network", pace__arch_names,
     .mark = PACE_MARK_IDENTITY, .group = "Convolutional networks"},
    {"width", 0, PACE_OPT_REAL, FIELD(width), "1", "X", "factor of the number of channels", .min = 0.05,
     .max = 8, .mark = PACE_MARK_IDENTITY},
    {"pretrained", 0, PACE_OPT_TEXT, FIELD(pretrained), NULL, "FILE",
     "begin with the weights of this safetensors file (of a run; of torchvision, timm or Keras)",
     .mark = PACE_MARK_SURFACE},
    {"name-map", 0, PACE_OPT_TEXT, FIELD(name_map), NULL, "FILE",
     "how the tensors of --pretrained are called: lines \"OURS THEIRS\"", .mark = PACE_MARK_SURFACE},
    {"train", 0, PACE_OPT_TEXT, FIELD(train), "all", "all|top|from:LAYER",
     "train everything, only the head (the rest runs once per picture), or the layers from LAYER on",
     .mark = PACE_MARK_IDENTITY},
    {"feature-cache", 0, PACE_OPT_TEXT, FIELD(feature_cache), NULL, "DIR",
     "--train top: where to keep what the frozen layers make of the pictures, if not in the run directory",
     .mark = PACE_MARK_SURFACE},
    {"bn", 0, PACE_OPT_CHOICE, FIELD(bn), "global", "B",
     "batch norm over the rows of all workers of a step, or over each worker's own; asynchronous modes "
     "always do the latter",
     "global|local", .mark = PACE_MARK_IDENTITY},
    {"head", 0, PACE_OPT_CHOICE, FIELD(head), "auto", "H",
     "an output per class, or one logit (of two classes); auto: one logit for two classes",
     "auto|softmax|logit", .mark = PACE_MARK_IDENTITY},
    {"smoothing", 0, PACE_OPT_REAL, FIELD(smoothing), "0", "X",
     "label smoothing: part of the target that goes to all classes alike", .min = 0, .max = 0.9,
     .mark = PACE_MARK_IDENTITY},
    {"augment", 0, PACE_OPT_TEXT, FIELD(augment), "auto", "LIST",
     "what is changed at random in training: none, or some of flip,crop,colour; none with --train top",
     .mark = PACE_MARK_IDENTITY},
    {0},
};

#undef FIELD

static const pace_model_info kinds[] = {
    [PACE_MODEL_LOGREG] = {"logreg", "logistic regression, on clicks or texts",
                           "On texts: 128 rows in a step, 10 epochs.", logreg_options},
    [PACE_MODEL_RNN] = {"rnn", "a recurrent network over the words of texts", NULL, rnn_options},
    [PACE_MODEL_CNN] =
        {"cnn", "a convolutional network on pictures",
         "Mobilenets: 32 rows in a step, dropout 0.2. With --train top: 50 epochs at 0.01 (adam), no "
         "dropout. Momentum: 0.05.",
         cnn_options},
};

#define KINDS (sizeof kinds / sizeof *kinds)

const pace_model_info *pace_model_at(int model)
{
    return model >= 0 && (size_t)model < KINDS ? &kinds[model] : NULL;
}

void pace_train_defaults(int model, pace_train_config *config)
{
    *config = (pace_train_config){.model = model};
    pace__options_reset(pace_train_options, config);
    pace__options_reset(kinds[model].options, &config->own);
    config->model = model;
    pace__settle_settings(config, false);
    if (config->optimiser.lr == 0)
        config->optimiser.lr = pace__optim_default_lr(config->optimiser.rule, config->optimiser.exact);
}

/* --- command lines --- */

pace_status pace_train_add_kinds(pace_options *options, pace_model_options of[PACE_MODELS_MAX])
{
    pace_status status = PACE_OK;

    for (size_t i = 0; i < KINDS && !status; i++)
        status = pace_options_add(options, kinds[i].options, of ? &of[i] : NULL);
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
                                 const pace_log *log)
{
    for (size_t i = 0; i < KINDS; i++) {
        const pace_option *row = (int)i == config->model ? NULL : find_given(&kinds[i], &of[i]);

        if (row)
            return pace_fail(log, PACE_USAGE, "--%s is for --model %s, not for %s", row->name, kinds[i].name,
                             kinds[config->model].name);
    }
    config->own = of[config->model];
    return PACE_OK;
}

void pace__train_parts(const pace_train_config *config, pace_option_part parts[3])
{
    parts[0] = (pace_option_part){pace_train_options, config};
    parts[1] = (pace_option_part){kinds[config->model].options, &config->own};
    parts[2] = (pace_option_part){0};
}
