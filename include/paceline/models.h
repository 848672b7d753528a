/*
 * models.h - the kinds of models, and the options that each of them alone has.
 *
 * A kind is known by its place in the list of kinds (PACE_MODEL_*, --model). What it alone can be told is a struct
 * of its own, which travels by value in pace_train_config.own; a table describes it for command lines and files.
 * Zero is always the default, where a comment does not say otherwise.
 */
#ifndef PACELINE_MODELS_H
#define PACELINE_MODELS_H

#include <paceline/options.h>

enum { PACE_MODEL_LOGREG, PACE_MODEL_RNN, PACE_MODEL_CNN, PACE_MODEL_FM };
#define PACE_MODELS_MAX 16

enum { PACE_CELL_LSTM, PACE_CELL_GRU };
enum { PACE_POOL_LAST, PACE_POOL_MEAN, PACE_POOL_MAX, PACE_POOL_AUTO };
enum { PACE_DIRECTIONS_ONE, PACE_DIRECTIONS_BOTH, PACE_DIRECTIONS_AUTO };
enum { PACE_LOSS_BCE, PACE_LOSS_FOCAL, PACE_LOSS_HINGE };
enum { PACE_PRESET_NONE, PACE_PRESET_REVIEWS_2019 };
enum { PACE_ARCH_SMALL, PACE_ARCH_RESNET20, PACE_ARCH_MOBILENET_V1, PACE_ARCH_MOBILENET_V2 };
enum { PACE_HEAD_AUTO, PACE_HEAD_SOFTMAX, PACE_HEAD_LOGIT };
enum { PACE_BN_GLOBAL, PACE_BN_LOCAL };

typedef struct pace_logreg_options {
    int64_t ngram; /* on texts: words that a feature has at most; 0: the default */
} pace_logreg_options;

typedef struct pace_rnn_options {
    int preset;             /* PACE_PRESET_* */
    int cell;               /* PACE_CELL_* */
    int pooling;            /* PACE_POOL_* */
    int loss;               /* PACE_LOSS_* */
    int64_t layers, hidden; /* 0: the default */
    int64_t embed;          /* numbers per word; 0: the default */
    int64_t dense;          /* units of the layer behind the cells; 0: none; -1: the default */
    int bidirectional;      /* PACE_DIRECTIONS_*: in which texts are read */
    double word_dropout;    /* -1: the default */
    double focal;           /* exponent of the focal loss */
    const char *embeddings; /* file of word vectors to begin with; NULL: random ones */
} pace_rnn_options;

typedef struct pace_cnn_options {
    int arch;                  /* PACE_ARCH_* */
    double width;              /* factor of its channels */
    const char *pretrained;    /* file of weights to begin with; NULL: random ones */
    const char *name_map;      /* file that says how its tensors are called; NULL: found by looking */
    const char *train;         /* "all", "top" or "from:LAYER" */
    const char *feature_cache; /* directory for what frozen layers make of pictures; NULL: in the run's */
    int bn;              /* PACE_BN_*: whose rows batch norm's statistics are of, in synchronous modes */
    int head;            /* PACE_HEAD_*; auto: one logit for two classes */
    double smoothing;    /* of labels */
    const char *augment; /* "auto", "none", or some of "flip,crop,colour" */
} pace_cnn_options;

typedef struct pace_fm_options {
    int64_t factors; /* numbers of each feature that are multiplied with those of others; 0: the default */
} pace_fm_options;

/* The options of one kind. Those that have no name here lie in the same place. */
typedef union pace_model_options {
    pace_logreg_options logreg;
    pace_rnn_options rnn;
    pace_cnn_options cnn;
    pace_fm_options fm;
    uint64_t others[32];
} pace_model_options;

typedef struct pace_model_info {
    const char *name;           /* "rnn" */
    const char *summary;        /* a line */
    const char *notes;          /* of --help: when its defaults are others; NULL: never */
    const pace_option *options; /* of its member of pace_model_options */
} pace_model_info;

/* NULL behind the last. */
const pace_model_info *pace_model_at(int model);

#endif
