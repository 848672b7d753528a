/*
 * cnn.h - a convolutional network over pictures, with a logit per class (or one of two classes) at the end.
 *
 *     pixels -> units -> mean over the picture -> dropout -> dense head -> logits
 *
 * A *unit* is a convolution without bias, a batch norm, perhaps the output of another unit added, and an
 * activation:
 *
 *     z = conv(input of the unit)
 *     y = act(gamma (z - mean) / sqrt(variance + epsilon) + beta [+ y of `add`])
 *
 * Units stand in the order in which they are computed. The input of a unit is the pixels or the y of an
 * earlier one. That is enough for all four architectures (cnn_arch.c).
 *
 * Values lie in two flat arrays. *weights*: for each unit its convolution, (out, in / groups, kernel, kernel)
 * as in PyTorch, gamma, beta; behind the last unit head.weight (outputs, features), head.bias. *stats*: for
 * each unit the running mean and variance of z. The units below `first_trained` are frozen: batch norm uses
 * their running statistics, and nothing of them changes. So what is trained is the tail of both arrays, from
 * pace__cnn_net.trained_at and stats_trained_at on.
 *
 * Names. Each unit has one, which --train from:NAME takes; tensors are NAME.weight, NAME.gamma, NAME.beta,
 * NAME.mean, NAME.variance, head.weight, head.bias.
 *     small          conv1 .. conv4
 *     resnet20       conv0, stageS.blockB.conv1, .conv2, and .shortcut where the shape changes
 *     mobilenet-v1   conv0, dw1, pw1 .. dw13, pw13
 *     mobilenet-v2   conv0, blockB.expand, .depthwise, .project (block0 has no expand), last
 *
 * Batch norm in training uses mean and (biased) variance over all rows of the batch and all pixels; with
 * several workers over those of all of them, through batch->sum. The running ones move by `momentum` towards
 * the mean and the unbiased variance.
 *
 * What is left to chance (dropout, augmentation) is a function of (seed, place of the row in the order).
 *
 * Two implementations compute the same: cnn_plain.c in plain loops, which is what the other is tested
 * against, and cnn_fast.c, which is what runs: convolutions by oneDNN on blocks of 16 channels, everything
 * else by kernels of our own. The fast one computes rows in chunks of fixed size, which threads share out
 * between them, and sums in the order of the chunks: the bits do not depend on the number of threads.
 */
#ifndef MODEL_CONVNET_CNN_H
#define MODEL_CONVNET_CNN_H

#include "math/batch.h"

#include <paceline/log.h>
#include <paceline/train.h>

#define PACE__CNN_UNITS_MAX 64
#define PACE__CNN_PIXELS    UINT32_MAX /* input of a unit: the picture itself */
#define PACE__CNN_NOTHING   UINT32_MAX /* added to a unit: nothing */

typedef struct pace__cnn_config {
    int arch;    /* PACE_ARCH_* */
    float width; /* channels are multiplied with it; those of the mobilenets rounded to multiples of 8 */
    uint32_t height, side, channels; /* of a picture: rows, columns, 1 or 3 */
    uint32_t classes;
    bool one_logit; /* two classes: the head has one output, the logit of class 1; else one for each class */
    bool same;      /* padding as TensorFlow's SAME: what does not divide goes behind and below */
    float epsilon;  /* of batch norm */
    float momentum; /* of its running statistics: how much a step counts */
    float mean[3], deviation[3]; /* a pixel becomes (pixel - mean) / deviation, by channel */
    uint32_t first_trained;      /* unit; the number of units: only the head is trained */
    /* Of training. */
    float dropout;   /* 0 .. below 1, of what goes into the head */
    float smoothing; /* of labels: 0 .. below 1 */
    float weight[2]; /* of a row of two classes, by its class; 1 with more classes */
    bool flip;       /* mirror half of the pictures, left to right */
    uint32_t
        crop; /* move pictures by up to so many pixels in each direction; what comes in repeats the edge */
    float colour; /* brightness and contrast vary by up to this part, of colours saturation, too; 0: not */
    int64_t seed;
} pace__cnn_config;

typedef enum pace__cnn_act { PACE__ACT_NONE, PACE__ACT_RELU, PACE__ACT_RELU6 } pace__cnn_act;

typedef struct pace__cnn_unit {
    char name[32];
    uint32_t from; /* unit, or PACE__CNN_PIXELS */
    uint32_t add;  /* unit, or PACE__CNN_NOTHING; of the same shape */
    uint32_t in_channels, in_height, in_width;
    uint32_t channels, height, width; /* of z and y */
    uint32_t kernel, stride;
    uint32_t pad_top, pad_left, pad_bottom, pad_right;
    bool depthwise; /* channels == in_channels, each by itself */
    pace__cnn_act act;
    size_t weight_at, gamma_at, beta_at; /* in weights */
    size_t mean_at, variance_at;         /* in stats */
} pace__cnn_unit;

/* The network that a configuration stands for. */
typedef struct pace__cnn_net {
    uint32_t units;
    pace__cnn_unit unit[PACE__CNN_UNITS_MAX];
    uint32_t features; /* channels of the last unit: what goes into the head */
    uint32_t outputs;  /* of the head */
    size_t head_weight_at, head_bias_at;
    size_t weights, stats;               /* floats in all */
    size_t trained_at, stats_trained_at; /* the tails that are trained */
} pace__cnn_net;

/* "small", "resnet20", "mobilenet-v1", "mobilenet-v2", by PACE_ARCH_*. */
extern const char *const pace__cnn_arch_names[4];

/* PACE_USAGE with a message if the picture is too small for the architecture, or the width makes no sense. */
pace_status pace__cnn_net_make(const pace__cnn_config *config, const pace_log *log, pace__cnn_net *net);

/* The unit of that name; the number of units for "head"; UINT32_MAX: none. */
uint32_t pace__cnn_find_unit(const pace__cnn_net *net, const char *name);

typedef struct pace__cnn_tensor {
    char name[48];
    unsigned rank;
    uint64_t shape[4];
    bool stats;      /* in stats, else in weights */
    bool decays;     /* weights of convolutions and of the head: what --l2 is for */
    size_t at, size; /* in its array */
} pace__cnn_tensor;

/* How many: two per unit at most 5, and 2; tensors has room for PACE__CNN_TENSORS_MAX. */
#define PACE__CNN_TENSORS_MAX (5 * PACE__CNN_UNITS_MAX + 2)
unsigned pace__cnn_tensors(const pace__cnn_net *net, pace__cnn_tensor *tensors);

/* First values of everything, functions of (seed, place) alone: convolutions normal with variance 2 /
 * (kernel^2 x channels / groups) as He's, gamma 1, beta 0, mean 0, variance 1; gamma of units that end a
 * branch to which something is added: 0 for resnet20. The head is uniform in +-1 / sqrt(features), its bias
 * 0. */
void pace__cnn_init(const pace__cnn_config *config, const pace__cnn_net *net, float *weights, float *stats);

/*
 * A picture as training sees it: turned, moved and coloured by what (seed, place) draws. `to` may not be
 * `from`; both (height, side, channels) bytes. Pure.
 */
void pace__cnn_augment(const pace__cnn_config *config, uint64_t place, const uint8_t *from, uint8_t *to);
bool pace__cnn_augments(const pace__cnn_config *config);

/* Is feature `feature` of the row at that place kept by dropout (math/draws.h)? */
bool pace__cnn_keeps(const pace__cnn_config *config, uint64_t place, uint32_t feature);

/* The loss of a row from its `outputs` logits, and its derivatives by them; both times the row's weight. In
 * double precision; safe for every finite logit. */
double pace__cnn_loss(const pace__cnn_config *config, const float *logits, uint16_t label, float *gradient);
/* The same, rounded nowhere. */
double pace__cnn_loss_exact(const pace__cnn_config *config, const double *logits, uint16_t label,
                            double *gradient);

/* --- computing --- */

typedef struct pace__cnn pace__cnn;

typedef struct pace__cnn_plan {
    const pace__cnn_config *config; /* is copied */
    /* All values of the network; of these only the frozen ones count, and must stay in place. May be NULL if
     * nothing is frozen. */
    const float *frozen_weights, *frozen_stats;
    uint64_t rows_max;
    int threads;
    bool trains; /* gradients are wanted; else only logits and features */
    bool plain;  /* computes by cnn_plain.c */
    /* Convolutions that are trained round what they read, and multiply by these; NULL: all is in floats. */
    const struct pace__bf16_kernels *bf16;
} pace__cnn_plan;

pace_status pace__cnn_create(const pace__cnn_plan *plan, const pace_log *log, pace__cnn **cnn);
void pace__cnn_free(pace__cnn *cnn); /* NULL is allowed */
uint64_t pace__cnn_memory(const pace__cnn_plan *plan);

typedef struct pace__cnn_batch {
    /* Pictures, after augmentation; or, if only the head is trained, perhaps features. May have no rows where
     * there is `sum`. */
    const pace__rows *rows;
    uint64_t place;       /* of the first row in the order */
    const float *weights; /* what is trained: the tails of the arrays */
    const float *stats;
    uint64_t step_rows; /* rows of the whole step, this worker's and all others' */
    /* Set by gradient: */
    float *sums;       /* gradients of the tail of weights, summed over the rows */
    float *stats_sums; /* what is to be subtracted from the tail of stats: rows / step_rows x momentum x
                          (stats - those of the batch); over all workers that adds up to the whole */
    double loss;
    /*
     * Called on the calling thread when sums[first ..] is complete, with `first` falling to 0: what is there
     * can be sent while the rest is computed. And now and then with the same `first` again (in the forward
     * pass, with the number of floats), as a chance to do something else. May be NULL. A status ends the
     * computation.
     */
    pace_status (*ready)(void *user, size_t first);
    /* Adds up `values` over all workers, which all call it equally often with equal counts; NULL: the
     * statistics are those of the rows here. A status ends the computation. At most PACE__CNN_SUM_MAX
     * floats. */
    pace_status (*sum)(void *user, float *values, size_t count);
    void *user;
} pace__cnn_batch;

#define PACE__CNN_SUM_MAX 8192

pace_status pace__cnn_gradient(pace__cnn *cnn, pace__cnn_batch *batch);

/* Logits (rows, outputs) as of a network that is not in training, of any number of rows (pictures; or
 * features). `weights` and `stats` are the tails. */
pace_status pace__cnn_logits(pace__cnn *cnn, const pace__rows *rows, const float *weights, const float *stats,
                             float *logits);

/* What goes into the head, (rows, features). Only if all units are frozen. */
pace_status pace__cnn_features(pace__cnn *cnn, const pace__rows *rows, float *features);

/* --- behind --- */

pace_status pace__cnn_plain_gradient(const pace__cnn_plan *plan, const pace__cnn_net *net,
                                     pace__cnn_batch *batch, const pace_log *log);
/* `features`: what goes into the head, instead of logits. */
pace_status pace__cnn_plain_logits(const pace__cnn_plan *plan, const pace__cnn_net *net,
                                   const pace__rows *rows, const float *weights, const float *stats,
                                   bool features, float *found, const pace_log *log);

typedef struct pace__cnn_fast pace__cnn_fast;

pace_status pace__cnn_fast_create(const pace__cnn_plan *plan, const pace__cnn_net *net, const pace_log *log,
                                  pace__cnn_fast **fast);
void pace__cnn_fast_free(pace__cnn_fast *fast); /* NULL is allowed */
uint64_t pace__cnn_fast_memory(const pace__cnn_plan *plan, const pace__cnn_net *net);
pace_status pace__cnn_fast_gradient(pace__cnn_fast *fast, pace__cnn_batch *batch);
pace_status pace__cnn_fast_logits(pace__cnn_fast *fast, const pace__rows *rows, const float *weights,
                                  const float *stats, bool features, float *found);

#endif
