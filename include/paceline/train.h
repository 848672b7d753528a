/*
 * train.h - training.
 *
 * pace_train reads a data set made by prep, trains a model, scores it on the test rows, and leaves a run
 * directory: config.yaml, cluster.json, metrics.jsonl, summary.json, state.json, logs/, checkpoints/,
 * model.safetensors.
 *
 * In mode local all of that happens in this process. In the others a job is several processes: if this one
 * was started by mpirun or srun it takes its place among them by its rank; if not, it starts them itself
 * through mpirun, as this program with the verb "train", and supervises them: a job that has lost a process
 * is started again from its newest checkpoint. Over MPI a failed rank does not return: it ends the process,
 * and those of all other ranks.
 */
#ifndef PACELINE_TRAIN_H
#define PACELINE_TRAIN_H

#include <paceline/log.h>
#include <paceline/options.h>
#include <paceline/registry.h>
#include <paceline/score.h>

enum { PACE_MODEL_LOGREG, PACE_MODEL_RNN, PACE_MODEL_CNN };
enum { PACE_ARCH_SMALL, PACE_ARCH_RESNET20, PACE_ARCH_MOBILENET_V1, PACE_ARCH_MOBILENET_V2 };
enum { PACE_HEAD_AUTO, PACE_HEAD_SOFTMAX, PACE_HEAD_LOGIT };
enum { PACE_BN_GLOBAL, PACE_BN_LOCAL };
enum { PACE_CELL_LSTM, PACE_CELL_GRU };
enum { PACE_POOL_LAST, PACE_POOL_MEAN, PACE_POOL_MAX, PACE_POOL_AUTO };
enum { PACE_LOSS_BCE, PACE_LOSS_FOCAL, PACE_LOSS_HINGE };
enum { PACE_PRESET_NONE, PACE_PRESET_REVIEWS_2019 };
enum {
    PACE_MODE_AUTO,
    PACE_MODE_LOCAL,
    PACE_MODE_ALLREDUCE,
    PACE_MODE_PS_SYNC,
    PACE_MODE_PS_ASYNC,
    PACE_MODE_PS_SSP
};
enum { PACE_REDUCE_ORDERED, PACE_REDUCE_MPI };
enum { PACE_SGD, PACE_MOMENTUM, PACE_ADAGRAD, PACE_FTRL, PACE_ADAM, PACE_OPTIMIZER_AUTO };
enum {
    PACE_SCHEDULE_CONSTANT,
    PACE_SCHEDULE_LINEAR,
    PACE_SCHEDULE_COSINE,
    PACE_SCHEDULE_INVSQRT,
    PACE_SCHEDULE_AUTO
};

typedef struct pace_train_config {
    const char *data, *run;
    int model;          /* PACE_MODEL_* */
    int mode;           /* PACE_MODE_* */
    int64_t workers;    /* processes that compute */
    int64_t ps;         /* parameter servers; 0: a shard on every worker; -1: not given */
    bool evaluator;     /* a process of its own scores */
    const char *hosts;  /* host file; NULL: this machine */
    int64_t staleness;  /* of ps-ssp; -1: not given */
    int reduce;         /* PACE_REDUCE_* */
    double deadline;    /* seconds without a sign of life */
    const char *mpirun; /* NULL: the one of this build */
    int optimizer;      /* PACE_SGD ...; auto: the model's default */
    double lr;          /* 0: the optimiser's default */
    int schedule;       /* PACE_SCHEDULE_* */
    int64_t warmup;     /* steps of linear warm-up */
    double momentum;    /* momentum, and Adam's first decay */
    double l1, l2;
    double clip;               /* of the mean gradient's norm; 0: none; -1: the model's default */
    int64_t batch;             /* rows in a step; 0: the model's default */
    int64_t epochs;            /* passes over the training rows; 0: the model's default */
    int64_t steps;             /* if not 0, overrides epochs */
    int64_t eval_every;        /* steps; 0: only at the end */
    int64_t eval_rows;         /* 0: all test rows */
    int64_t early_stop;        /* evaluations without improvement before stopping; 0: never */
    int64_t log_every;         /* steps between "step" records; 0: about 100 per run */
    int64_t checkpoint_every;  /* steps; 0: none */
    double checkpoint_seconds; /* besides, after so many seconds; 0: none but on interruption */
    int64_t keep;              /* checkpoints kept */
    int64_t max_restarts;      /* of a job that has lost a process, in a row without a new checkpoint */
    const char *inject;        /* faults on request; NULL: none */
    int64_t threads;           /* of each worker; 0: one per core in mode local, else one */
    int64_t seed;
    bool exact; /* one update per step from the summed gradient (DESIGN: the exact rule) */
    bool resume;
    bool dry_run;
    bool force;
    int64_t ngram;             /* logreg on texts: words that a feature has at most */
    int preset;                /* PACE_PRESET_* */
    int cell;                  /* PACE_CELL_* */
    int pooling;               /* PACE_POOL_* */
    int loss;                  /* PACE_LOSS_* */
    int64_t layers, hidden;    /* of an rnn; 0: the default */
    int64_t embed;             /* numbers per word; 0: the default */
    int64_t dense;             /* units of the layer behind the cells; 0: none; -1: the default */
    bool bidirectional;        /* reads texts in both directions */
    double dropout;            /* -1: the default */
    double word_dropout;       /* -1: the default */
    double focal;              /* exponent of the focal loss */
    const char *class_weight;  /* "balanced" or the weight of positive rows; NULL: 1 */
    const char *embeddings;    /* file of word vectors to begin with; NULL: random ones */
    int arch;                  /* PACE_ARCH_* of a cnn */
    double width;              /* factor of its channels */
    const char *pretrained;    /* file of weights to begin with; NULL: random ones */
    const char *name_map;      /* file that says how its tensors are called; NULL: found by looking */
    const char *train;         /* "all", "top" or "from:LAYER" */
    const char *feature_cache; /* directory for what frozen layers make of pictures; NULL: in the run's */
    int bn;                  /* PACE_BN_*: whose rows batch norm's statistics are of, in synchronous modes */
    int head;                /* PACE_HEAD_*; auto: one logit for two classes */
    double smoothing;        /* of labels */
    const char *augment;     /* "auto", "none", or some of "flip,crop,colour" */
    const _Atomic int *stop; /* nonzero: write a checkpoint and return PACE_INTERRUPTED; may be NULL */
} pace_train_config;

/* Rows for every field but `stop`. */
extern const pace_option pace_train_options[];

typedef struct pace_train_result {
    uint64_t steps, samples;
    double epochs;
    double seconds, samples_per_second;
    double train_loss; /* progressive loss of the last epoch: log-loss, or what an rnn was told to minimise */
    bool has_test;
    pace_scores test;
    char model_sha256[65];
    bool elsewhere; /* this process was a rank other than the chief: nothing of the above is set */
} pace_train_result;

pace_status pace_train(const pace_train_config *config, const pace_log *log, pace_registry *registry,
                       pace_train_result *result);

/* summary.json of the run as text, to be freed by the caller. */
pace_status pace_train_summary(const char *run, const pace_log *log, char **json);

#endif
