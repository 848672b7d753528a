/*
 * model.h - a model as those see it who spread its training: rows of parameters with keys, and a gradient.
 *
 * Parameters are `keys` rows of `dim` floats. Whoever computes on some rows of data needs only some of them:
 * find() says which, and numbers them by *slot* (keys.h). Weights and gradients then go by slot.
 *
 *     pace__model_find(model, &rows, &batch);                     // batch.keys, batch.count
 *     weights[slot] = ...                                         // fetched by key, `dim` floats each
 *     pace__model_gradient(model, &task);                         // sets task.sums by slot, task.loss
 *
 * The *dense* parameters, those that every row of data needs, are rows, too: their floats one behind the
 * other, cut into rows of `dim`, which have the last `dense_rows` keys, and the last slots of every batch. So
 * by slot they lie in one piece. (Where gradients are summed by all-reduce they are taken from that piece,
 * and never travel by key.)
 *
 * The first of the dense rows may be *statistics*, like the running means of batch norm: what is summed for
 * them is not a gradient but the change itself, which is subtracted.
 *
 *     logreg   dim 1; a key per feature, and the bias
 *     rnn      dim is the embedding's; a key per word, then the dense ones
 *     cnn      all dense: statistics, then weights; what is frozen is no parameter
 *
 * For scoring, a model can also be given the weights of all keys at once: use() and logits().
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "data/store/store.h"
#include "files/sha256.h"
#include "model/cnn/cnn.h"
#include "model/keys.h"
#include "model/linear/ngrams.h"
#include "model/rnn/rnn.h"
#include "optim/optim.h"

typedef struct pace__model_plan {
    int kind;                     /* PACE_MODEL_* */
    const pace__store_info *info; /* of the data set; outlives the model */
    unsigned ngram;               /* logreg on texts: words that a feature has at most */
    pace__rnn_config rnn;
    double word_dropout; /* rnn: fraction of words that are taken for unknown ones, in training */
    pace__cnn_config cnn;
    const pace__cnn_net *net; /* cnn: what the configuration makes; outlives the model */
    /* cnn: all values at the beginning, frozen ones included; NULL where nobody computes (a ps). */
    const float *net_weights, *net_stats;
    double
        decay; /* cnn: each row adds decay x w^2 / 2 to its loss, over the weights of convolutions and head */
    pace__optim optim; /* logreg: its kernels differ by rule */
    bool scores_only;  /* gradients are never asked for */
} pace__model_plan;

typedef struct pace__shape {
    uint64_t keys;
    unsigned dim;
    uint32_t dense_rows; /* the last keys */
    size_t dense;        /* floats of them; what is left of the last row means nothing and stays 0 */
    uint32_t
        stats_rows;   /* of the dense rows, the first: statistics. What is left of their last row stays 0 */
    uint32_t outputs; /* logits of a row of data: one, or one for each of more than two classes */
} pace__shape;

static inline uint64_t pace__shape_stats_first(const pace__shape *shape)
{
    return shape->keys - shape->dense_rows;
}

pace__shape pace__model_shape(const pace__model_plan *plan);
/* Keys that so many rows of data need at most. */
size_t pace__model_keys_max(const pace__model_plan *plan, uint64_t rows);
/* Entries of the longest row of data as the model sees it. */
uint32_t pace__model_entries_max(const pace__model_plan *plan);

/* --- one worker's --- */

typedef struct pace__model pace__model;

/* For batches of up to rows_max rows. */
pace_status pace__model_create(const pace__model_plan *plan, uint64_t rows_max, int threads,
                               const pace_log *log, pace__model **model);
void pace__model_free(pace__model *model); /* NULL is allowed */
uint64_t pace__model_memory(const pace__model_plan *plan, uint64_t rows_max, int threads);
/* Bytes of what find() makes of so many rows, besides keys and entries. */
uint64_t pace__model_batch_memory(const pace__model_plan *plan, uint64_t rows_max);

/* What find() made of some rows; zeroed before its first use. */
typedef struct pace__model_batch {
    pace__key_batch keys;  /* keys.count includes those of dense rows */
    uint32_t sparse;       /* keys that are not dense: the first slots */
    pace__ngram_rows text; /* logreg on texts: the rows as features */
    uint32_t *words;       /* rnn: the rows' ids with some of them dropped */
    size_t words_max;
    uint8_t *pixels; /* cnn: the pictures as training sees them; keys.rows has them, or the ones given */
    size_t pixels_max;
} pace__model_batch;

#define PACE__NO_PLACE UINT64_MAX

/* `place` is that of the first row in the order, for what is left to chance in training; NO_PLACE: nothing is.
 * The rows must stay in place until the gradient is computed. */
pace_status pace__model_find(pace__model *model, const pace__rows *rows, uint64_t place,
                             pace__model_batch *batch);
void pace__model_batch_release(pace__model_batch *batch);

typedef struct pace__task {
    const pace__model_batch *batch;
    uint64_t place;     /* of the first row in the order */
    float *weights;     /* (count + 1, dim) by slot; the last row is the model's own */
    float *sums;        /* (count + 1, dim) set: gradients summed over the rows */
    float *dense_sums;  /* where those of dense rows go; NULL: behind the others, in sums */
    double loss;        /* set: the sum over the rows */
    uint64_t step_rows; /* of the whole step: this worker's and all others' */
    /* Called on the calling thread now and then: dense_sums[first ..] is complete. See rnn.h. */
    pace_status (*ready)(void *user, size_t first);
    /* Adds up values over the workers of a step: pace__model_pools tells whether it is called. May be NULL:
     * the worker is alone, or goes by its own rows. See cnn.h. */
    pace_status (*sum)(void *user, float *values, size_t count);
    void *user;
} pace__task;

/* Do workers have to add up something in the middle of a step? */
bool pace__model_pools(const pace__model_plan *plan);

pace_status pace__model_gradient(pace__model *model, pace__task *task);

/* --- scoring --- */

/* Weights of all keys, (keys + 1, dim), which stay the caller's and in place; they may be changed. */
void pace__model_use(pace__model *model, float *weights);
pace_status pace__model_logits(pace__model *model, const pace__rows *rows, float *logits);

/* --- first values --- */

/* Are they anything but 0? */
bool pace__model_begins_random(const pace__model_plan *plan);
/* The weights of all keys at the beginning, into rows that are `stride` floats apart. */
pace_status pace__model_first_weights(const pace__model_plan *plan, size_t stride, float *rows,
                                      const pace_log *log);

/* --- the file --- */

/* model.safetensors, from the weights of all keys, (keys, dim). */
pace_status pace__model_write(const pace__model_plan *plan, const pace__store *store, const float *weights,
                              const char *path, char sha256[PACE__SHA256_HEX], const pace_log *log);

/* --- behind: one of these per kind --- */

typedef struct pace__model_kind {
    pace__shape (*shape)(const pace__model_plan *plan);
    uint32_t (*entries_max)(const pace__model_plan *plan);
    pace_status (*open)(pace__model *model);
    void (*close)(pace__model *model);
    uint64_t (*memory)(const pace__model_plan *plan, uint64_t rows_max, int threads);
    pace_status (*find)(pace__model *model, const pace__rows *rows, uint64_t place, pace__model_batch *batch);
    pace_status (*gradient)(pace__model *model, pace__task *task);
    pace_status (*logits)(pace__model *model, const pace__rows *rows, float *logits);
    pace_status (*first_weights)(const pace__model_plan *plan, size_t stride, float *rows,
                                 const pace_log *log); /* NULL: all 0 */
    pace_status (*write)(const pace__model_plan *plan, const pace__store *store, const float *weights,
                         const char *path, char sha256[PACE__SHA256_HEX], const pace_log *log);
} pace__model_kind;

struct pace__model {
    const pace__model_kind *kind;
    pace__model_plan plan;
    pace__shape shape;
    uint64_t rows_max;
    int threads;
    const pace_log *log;
    pace__key_finder finder;
    float *weights; /* of use() */
    void *own;      /* the kind's */
};

extern const pace__model_kind pace__model_logreg, pace__model_rnn, pace__model_cnn;

#endif
