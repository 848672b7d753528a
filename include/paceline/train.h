/*
 * train.h - training.
 *
 * pace_train reads a data set made by prep, trains a model, scores it on the test rows, and leaves a run
 * directory: config.yaml, metrics.jsonl, events/, summary.json, state.json, rows, logs/, checkpoints/, model.safetensors,
 * report.html (report.h), of texts and pictures mistakes.json; where ranks work, and be it one, also cluster.json; if asked for one, a profile:
 * profile/trace.json.gz, profile/ops.json.
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
#include <paceline/models.h>
#include <paceline/options.h>
#include <paceline/registry.h>
#include <paceline/score.h>

enum {
    PACE_MODE_AUTO,
    PACE_MODE_LOCAL,
    PACE_MODE_ALLREDUCE,
    PACE_MODE_PS_SYNC,
    PACE_MODE_PS_ASYNC,
    PACE_MODE_PS_SSP,
    PACE_MODE_LOCAL_SGD
};
enum { PACE_PRECISION_F32, PACE_PRECISION_BF16 };
enum { PACE_REDUCE_ORDERED, PACE_REDUCE_MPI };
enum { PACE_WIRE_F32, PACE_WIRE_BF16 };
enum { PACE_REPORT_ON, PACE_REPORT_OFF };
enum { PACE_SGD, PACE_MOMENTUM, PACE_ADAGRAD, PACE_FTRL, PACE_ADAM, PACE_OPTIMIZER_AUTO };
enum {
    PACE_SCHEDULE_CONSTANT,
    PACE_SCHEDULE_LINEAR,
    PACE_SCHEDULE_COSINE,
    PACE_SCHEDULE_INVSQRT,
    PACE_SCHEDULE_AUTO
};

/* As many workers as are worth it. What it comes to has to be found before pace_train is called: pace_plan_workers
 * (plan.h). */
#define PACE_WORKERS_AUTO (-1)

/* Which processes there are, and how they work together. */
typedef struct pace_train_cluster {
    int64_t workers;        /* processes that compute; or PACE_WORKERS_AUTO */
    int64_t ps;             /* parameter servers; 0: a shard on every worker; -1: not given */
    int64_t backup_workers; /* of ps-sync: beyond those that a step is cut for; they compute what is late */
    bool evaluator;         /* a process of its own scores */
    const char *hosts;      /* host file; NULL: this machine */
    int64_t threads;        /* of each worker; 0: one per core in mode local, else one */
    int64_t staleness;      /* of ps-ssp; -1: not given */
    int reduce;             /* PACE_REDUCE_* */
    int wire;               /* PACE_WIRE_*: what gradients, in local-sgd changes, travel as */
    int64_t
        exchange; /* local-sgd: rows between two flushes, of all workers, of networks of each; 0: as it thinks best */
    double outer_lr; /* local-sgd, networks: of what all have learned, in a flush; 0: as it thinks best */
    double outer_momentum; /* and from flush to flush; below 0: as it thinks best */
    const char *balance;   /* shares of a step: "off", "epoch", "auto", a number of steps, "replay:RUN" */
    double deadline;       /* seconds without a sign of life */
    const char *mpirun;    /* NULL: the one of this build */
} pace_train_cluster;

/* How far it goes. */
typedef struct pace_train_length {
    int64_t batch;      /* rows in a step; 0: the model's default */
    int64_t epochs;     /* passes over the training rows; 0: the model's default */
    int64_t steps;      /* if not 0, overrides epochs */
    int64_t early_stop; /* evaluations without improvement before stopping, with the best state; 0: never */
    bool keep_best;     /* the model is that of the best evaluation, not of the last step */
} pace_train_length;

/* What becomes of a gradient, and what keeps a model from learning rows by heart. */
typedef struct pace_train_optimiser {
    int rule;        /* PACE_SGD ...; auto: the model's default */
    double lr;       /* 0: the rule's default */
    int schedule;    /* PACE_SCHEDULE_* */
    int64_t warmup;  /* steps of linear warm-up */
    double momentum; /* momentum, and Adam's first decay */
    double l1, l2;
    double clip;              /* of the mean gradient's norm; 0: none; -1: the model's default */
    double dropout;           /* -1: the model's default */
    const char *class_weight; /* "balanced" or the weight of positive rows; NULL: 1 */
    bool exact;               /* one update per step from the summed gradient, instead of row after row */
} pace_train_optimiser;

/* What is told on the way. */
typedef struct pace_train_records {
    int64_t eval_every; /* steps; 0: only at the end */
    int64_t eval_rows;  /* 0: all test rows */
    int64_t log_every;  /* steps between "step" records; 0: about 100 per run */
    int64_t profile;    /* steps of which spans are recorded, for RUN/profile; 0: none */
    int report;         /* PACE_REPORT_*: report.html at the end */
    const char
        *dashboard; /* where a page shows the run (docs/watching.md): "auto", "ADDRESS:PORT"; NULL: nowhere */
} pace_train_records;

/* Checkpoints, and what happens when something goes wrong. */
typedef struct pace_train_faults {
    int64_t checkpoint_every;  /* steps; 0: none */
    double checkpoint_seconds; /* besides, after so many seconds; 0: none but on interruption */
    int64_t keep;              /* checkpoints kept */
    int64_t max_restarts;      /* of a job that has lost a process, in a row without a new checkpoint */
    const char *inject;        /* faults on request; NULL: none */
} pace_train_faults;

/* Local copies of a data set that lies far away: docs/clusters.md. */
typedef struct pace_train_stage {
    const char *directory; /* NULL: none */
    uint64_t bytes;        /* of all copies there; 0: as the disk allows */
    uint64_t rate;         /* bytes a second at which a host copies; 0: no limit */
    bool clean;            /* remove them when the run has ended well */
} pace_train_stage;

typedef struct pace_train_config {
    const char *data, *run;
    double
        validation; /* fraction of the training rows, the last ones as they are stored, to validate on instead */
    int model;      /* PACE_MODEL_* */
    int mode;       /* PACE_MODE_* */
    int precision; /* PACE_PRECISION_* */
    int64_t seed;
    bool resume, dry_run, force;
    const char *init; /* a run or model file whose weights it begins with; NULL: none */
    bool init_state;  /* and with what the run's optimiser has kept of them */
    pace_train_cluster cluster;
    pace_train_length length;
    pace_train_optimiser optimiser;
    pace_train_records records;
    pace_train_faults faults;
    pace_train_stage stage;
    pace_model_options own;  /* of the kind that `model` says */
    const _Atomic int *stop; /* nonzero: write a checkpoint and return PACE_INTERRUPTED; may be NULL */
} pace_train_config;

/* Rows for every field but `own` and `stop`. */
extern const pace_option pace_train_options[];

/* What a kind takes where nobody says anything, on the rows that it is made for. */
void pace_train_defaults(int model, pace_train_config *config);

/* Is what it minimises a log-loss? */
bool pace_train_has_logloss(const pace_train_config *config);

/*
 * A command line may have the options of any kind: they are read into one struct for each, and when all is read
 * the one that config->model says becomes config->own. Options of other kinds are PACE_USAGE.
 *
 *     pace_options_create(pace_train_options, &config, log);
 *     pace_train_add_kinds(options, kinds);
 *     ... pace_options_parse ...
 *     pace_train_take_kind(&config, kinds, options, log);
 */
pace_status pace_train_add_kinds(pace_options *options, pace_model_options kinds[PACE_MODELS_MAX]);
pace_status pace_train_take_kind(pace_train_config *config, const pace_model_options kinds[PACE_MODELS_MAX],
                                 const pace_options *options, const pace_log *log);

#define PACE_BOTTLENECK_MAX  640
#define PACE_OVERFITTING_MAX 320

typedef struct pace_train_result {
    uint64_t steps, samples;
    double epochs;
    double seconds, samples_per_second;
    double train_loss; /* progressive loss of the last epoch: log-loss, or what an rnn was told to minimise */
    bool has_test, has_validation;
    pace_scores test, validation;
    uint64_t
        best_step; /* whose state the model is, if that was asked for; 0: of the last, without a choice */
    double best_logloss;
    char model_sha256[65];
    char bottleneck
        [PACE_BOTTLENECK_MAX]; /* "network: ...", what most of the time went to; "": too little is known */
    char advice[PACE_BOTTLENECK_MAX]; /* what would help */
    char overfitting
        [PACE_OVERFITTING_MAX]; /* training rows are known by heart, and what to try; "": they are not */
    bool elsewhere; /* this process was a rank other than the chief: nothing of the above is set */
} pace_train_result;

pace_status pace_train(const pace_train_config *config, const pace_log *log, pace_registry *registry,
                       pace_train_result *result);

/* summary.json of the run as text, to be freed by the caller. */
pace_status pace_train_summary(const char *run, const pace_log *log, char **json);

/* profile/ops.json of a run with `profile` (docs/profile.md says what is in it), likewise. PACE_NO_INPUT: it has none. */
pace_status pace_train_profile(const char *run, const pace_log *log, char **json);

#endif
