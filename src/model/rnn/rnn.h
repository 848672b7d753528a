/*
 * rnn.h - a recurrent network over the words of a text, with one logit at the end.
 *
 *     embedding -> 1 to 3 layers of LSTM or GRU, perhaps in both directions -> pooling over the real words
 *     -> [dense + ReLU] -> one logit
 *
 * Parameters come in two kinds. The embedding has a row of `embed` floats per word; a batch touches few of
 * them, and they are handed in and out by *slot*, a number that a word has in this batch alone (keys.h).
 * Everything else is *dense*: one flat array, whose tensors are listed by pace__rnn_tensors, in the order in
 * which the forward pass uses them. Tensors have the shapes and names of PyTorch's modules:
 *
 *     rnn.weight_ih_l0 (gates x hidden, inputs), rnn.weight_hh_l0 (gates x hidden, hidden),
 *     rnn.bias_ih_l0, rnn.bias_hh_l0 (gates x hidden); "_reverse" behind for the other direction;
 *     dense.weight (dense, pooled), dense.bias (dense); out.weight (1, dense or pooled), out.bias (1)
 *
 * with the gates of an LSTM in the order i, f, g, o, and of a GRU r, z, n (n = tanh(x + r * (h W + b_hh))).
 *
 * What is padding is not computed: a row's result is that of its `length` words, whatever is around them.
 * The other direction reads the real words from the last to the first. Pooling `last` takes the top layer's
 * state behind the last real word (of the other direction: behind the first). Pooling `max` takes the first
 * of equal values. With both directions a word's output is the forward one's units, then the other's.
 *
 * Dropout (training only, kept values divided by 1 - dropout) acts between the layers, on each word's
 * output, and on the pooled vector. Which values are dropped is a function of (seed, place of the row in the
 * order, layer, word, unit): pace__rnn_keeps (math/draws.h). Never of the batch, thread or worker.
 *
 * Two implementations compute the same: rnn_plain.c, row by row in plain loops, which is what the others are
 * tested against; and rnn_fast.c, which is what runs.
 *
 * The fast one computes rows in chunks of a fixed size, which threads share out between them, and sums in
 * the order of the chunks: the bits do not depend on the number of threads.
 */
#ifndef MODEL_RNN_RNN_H
#define MODEL_RNN_RNN_H

#include "math/batch.h"

#include <paceline/log.h>
#include <paceline/train.h>

#define PACE__RNN_LAYERS_MAX  3
#define PACE__RNN_UNITS_MAX   4096
#define PACE__RNN_TENSORS_MAX (8 * PACE__RNN_LAYERS_MAX + 4)

typedef struct pace__rnn_config {
    uint32_t words;  /* ids of the vocabulary */
    uint32_t length; /* columns of a row */
    uint32_t embed, hidden, layers;
    uint32_t dense;  /* units of the ReLU layer; 0: none */
    int cell;        /* PACE_CELL_LSTM, PACE_CELL_GRU */
    int pooling;     /* PACE_POOL_LAST, _MEAN, _MAX */
    bool both;       /* directions */
    float dropout;   /* 0 .. below 1 */
    int loss;        /* PACE_LOSS_BCE, _FOCAL, _HINGE */
    float focal;     /* the exponent of focal */
    float weight[2]; /* of a row by its label: its loss and gradient are multiplied */
    int64_t seed;
    bool bf16; /* gradients by products of bf16 (math/bf16.h); logits are computed in floats all the same */
} pace__rnn_config;

typedef struct pace__rnn_tensor {
    char name[40];
    unsigned rank;
    uint64_t shape[2];
    size_t at, size; /* in the dense array */
} pace__rnn_tensor;

/* How many; tensors has room for PACE__RNN_TENSORS_MAX. */
unsigned pace__rnn_tensors(const pace__rnn_config *config, pace__rnn_tensor *tensors);
/* Floats in the dense array. */
size_t pace__rnn_dense(const pace__rnn_config *config);

/*
 * First values, functions of (seed, place) alone. Recurrent and dense weights as PyTorch draws them: uniform
 * in +-1 / sqrt(hidden), or of the inputs of a dense layer; forget biases (of bias_ih) 1, the other biases 0.
 * Embeddings are nearly normal with deviation 0.1; that of the padding is 0.
 */
void pace__rnn_init_dense(const pace__rnn_config *config, float *dense);
void pace__rnn_init_word(const pace__rnn_config *config, uint32_t word, float *row);

/* Is unit `unit` of word `word` (counted from the first real one; UINT32_MAX: the pooled vector) of layer
 * `layer` of that row kept? The layer is the one whose output it is: of the pooled vector, the top one. */
bool pace__rnn_keeps(const pace__rnn_config *config, uint64_t place, uint32_t layer, uint32_t word,
                     uint32_t unit);

/* The loss of a row and its derivative by the logit, both times the row's weight. In double precision; safe
 * for every finite logit. A hinge has the logit 0 as its border, like the others. */
double pace__rnn_loss(const pace__rnn_config *config, float logit, uint8_t label, float *gradient);
/* The same, rounded nowhere. */
double pace__rnn_loss_exact(const pace__rnn_config *config, double logit, uint8_t label, double *gradient);

typedef struct pace__rnn pace__rnn;

/* Memory for batches of up to rows_max rows. `plain`: computes by rnn_plain.c. */
pace_status pace__rnn_create(const pace__rnn_config *config, uint64_t rows_max, int threads, bool plain,
                             const pace_log *log, pace__rnn **rnn);
void pace__rnn_free(pace__rnn *rnn); /* NULL is allowed */
uint64_t pace__rnn_memory(const pace__rnn_config *config, uint64_t rows_max, int threads);

typedef struct pace__rnn_batch {
    const pace__rows *rows; /* text; the ids are slots (of padding: anything) */
    uint64_t place;         /* of the first row in the order: place + i is row i's */
    uint32_t slots;         /* at most two more than words that the rows can have */
    const float *embedding; /* (slots, embed) */
    const float *dense;
    /* Set by gradient: sums over the rows. */
    float *embedding_sums; /* (slots, embed) */
    float *dense_sums;
    double loss;
    /*
     * Called on the calling thread when dense_sums[first ..] is complete, with `first` falling from the last
     * tensors to 0: what is there can be sent while the rest is computed. And now and then with the same
     * `first` again, as a chance to do something else. NULL: nobody wants to know. A status ends the
     * computation.
     */
    pace_status (*ready)(void *user, size_t first);
    void *user;
} pace__rnn_batch;

pace_status pace__rnn_gradient(pace__rnn *rnn, pace__rnn_batch *batch);

/* Logits of rows (at most rows_max), without dropout; reads rows, slots, embedding and dense. */
pace_status pace__rnn_logits(pace__rnn *rnn, const pace__rnn_batch *batch, float *logits);

/* --- behind --- */

pace_status pace__rnn_plain_gradient(const pace__rnn_config *config, pace__rnn_batch *batch,
                                     const pace_log *log);
pace_status pace__rnn_plain_logits(const pace__rnn_config *config, const pace__rnn_batch *batch,
                                   float *logits, const pace_log *log);

typedef struct pace__rnn_fast pace__rnn_fast;

pace_status pace__rnn_fast_create(const pace__rnn_config *config, uint64_t rows_max, int threads,
                                  const pace_log *log, pace__rnn_fast **fast);
void pace__rnn_fast_free(pace__rnn_fast *fast); /* NULL is allowed */
uint64_t pace__rnn_fast_memory(const pace__rnn_config *config, uint64_t rows_max, int threads);
pace_status pace__rnn_fast_gradient(pace__rnn_fast *fast, pace__rnn_batch *batch);
pace_status pace__rnn_fast_logits(pace__rnn_fast *fast, const pace__rnn_batch *batch, float *logits);

#endif
