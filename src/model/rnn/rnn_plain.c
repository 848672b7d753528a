/*
 * The recurrent network one row, one word, one number at a time: made to be read and to be compared with.
 * Parameters are floats; everything between them and the results is in double precision.
 */
#include "model/rnn/rnn.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GATES_MAX 4

/* Where one direction of one layer has its parameters, and the traces of its forward pass. */
typedef struct side {
    size_t weight_ih, weight_hh, bias_ih, bias_hh; /* in the dense array */
    double *gates; /* (words, GATES_MAX, hidden) behind their functions; of a GRU [3] is h W + b_hh of n */
    double *cell;  /* (words, hidden) of an LSTM */
} side;

typedef struct layer {
    uint32_t inputs;
    double *input, *d_input;   /* (words, inputs) what it reads: behind dropout */
    double *output, *d_output; /* (words, width) its states: before dropout */
    side sides[2];
} layer;

/* One row's way through the network, and back. */
typedef struct network {
    const pace__rnn_config *config;
    const float *dense; /* parameters */
    double *d_dense;    /* sums; NULL: logits only */
    uint32_t gates, sides, width, words;
    uint64_t place;
    bool training;
    layer layers[PACE__RNN_LAYERS_MAX];
    size_t dense_weight, dense_bias, out_weight, out_bias;
    double *pooled, *d_pooled; /* (width) behind dropout */
    uint32_t *largest;         /* (width) of pooling max: which word */
    double *relu;              /* (dense) */
    double *before;            /* (hidden) all 0: the state before the first word */
    double *d_state, *d_cell;  /* (hidden) what goes back from word to word */
    double *d_ih, *d_hh;       /* (gates x hidden) of the sums on both sides of a gate */
    void *memory;
} network;

/* --- memory --- */

/* Takes numbers off the memory, or, while there is none, counts them only. */
static double *take(double *memory, size_t *used, size_t count)
{
    double *taken = memory ? memory + *used : NULL;

    *used += count;
    return taken;
}

static size_t place_arrays(network *net, double *memory, size_t words)
{
    const pace__rnn_config *config = net->config;
    size_t used = 0, hidden = config->hidden;

    for (uint32_t l = 0; l < config->layers; l++) {
        layer *at = &net->layers[l];

        at->input = take(memory, &used, words * at->inputs);
        at->d_input = take(memory, &used, words * at->inputs);
        at->output = take(memory, &used, words * net->width);
        at->d_output = take(memory, &used, words * net->width);
        for (uint32_t s = 0; s < net->sides; s++) {
            at->sides[s].gates = take(memory, &used, words * GATES_MAX * hidden);
            at->sides[s].cell = take(memory, &used, words * hidden);
        }
    }
    net->pooled = take(memory, &used, net->width);
    net->d_pooled = take(memory, &used, net->width);
    net->largest = (uint32_t *)take(memory, &used, net->width);
    net->relu = take(memory, &used, config->dense);
    net->before = take(memory, &used, hidden);
    net->d_state = take(memory, &used, hidden);
    net->d_cell = take(memory, &used, hidden);
    net->d_ih = take(memory, &used, net->gates * hidden);
    net->d_hh = take(memory, &used, net->gates * hidden);
    return used;
}

/* Tensors come in the order of the forward pass. */
static void place_parameters(network *net)
{
    pace__rnn_tensor tensors[PACE__RNN_TENSORS_MAX], *next = tensors;

    pace__rnn_tensors(net->config, tensors);
    for (uint32_t l = 0; l < net->config->layers; l++) {
        for (uint32_t s = 0; s < net->sides; s++, next += 4) {
            side *at = &net->layers[l].sides[s];

            at->weight_ih = next[0].at;
            at->weight_hh = next[1].at;
            at->bias_ih = next[2].at;
            at->bias_hh = next[3].at;
        }
    }
    if (net->config->dense) {
        net->dense_weight = next[0].at;
        net->dense_bias = next[1].at;
        next += 2;
    }
    net->out_weight = next[0].at;
    net->out_bias = next[1].at;
}

static pace_status network_init(network *net, const pace__rnn_config *config, const pace__rnn_batch *batch,
                                const pace_log *log)
{
    *net = (network){.config = config, .dense = batch->dense, .sides = config->both ? 2 : 1};
    net->gates = config->cell == PACE_CELL_LSTM ? 4 : 3;
    net->width = net->sides * config->hidden;
    for (uint32_t l = 0; l < config->layers; l++)
        net->layers[l].inputs = l ? net->width : config->embed;
    place_parameters(net);
    size_t count = place_arrays(net, NULL, batch->rows->columns);

    net->memory = calloc(count, sizeof(double));
    if (!net->memory)
        return pace_fail(log, PACE_FAILED, "out of memory: a row's way through the network needs %zu bytes",
                         count * sizeof(double));
    place_arrays(net, net->memory, batch->rows->columns);
    return PACE_OK;
}

/* --- small parts --- */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* What is no number stays none. */
static double rectified(double x)
{
    return x < 0 ? 0 : x;
}

/* bias[row] + weight[row] . x */
static double affine(const float *weight, const float *bias, size_t row, const double *x, size_t inputs)
{
    double sum = (double)bias[row];

    for (size_t i = 0; i < inputs; i++)
        sum += (double)weight[row * inputs + i] * x[i];
    return sum;
}

/* The way back through affine, for the derivative d of its result; d_x may be NULL. */
static void affine_back(const network *net, size_t weight, size_t bias, size_t row, const double *x,
                        size_t inputs, double d, double *d_x)
{
    net->d_dense[bias + row] += d;
    for (size_t i = 0; i < inputs; i++) {
        net->d_dense[weight + row * inputs + i] += d * x[i];
        if (d_x)
            d_x[i] += d * (double)net->dense[weight + row * inputs + i];
    }
}

/* What dropout multiplies a value by: there and back. */
static double dropout_of(const network *net, uint32_t layer_index, uint32_t word, uint32_t unit)
{
    const pace__rnn_config *config = net->config;

    if (!net->training || config->dropout == 0)
        return 1;
    return pace__rnn_keeps(config, net->place, layer_index, word, unit) ? 1 / (1 - (double)config->dropout)
                                                                        : 0;
}

/* The word that a direction reads in its step-th step. */
static uint32_t word_at(const network *net, uint32_t s, uint32_t step)
{
    return s == 0 ? step : net->words - 1 - step;
}

/* The state before that step, of this side. */
static const double *state_before(const network *net, const layer *at, uint32_t s, uint32_t step)
{
    return step ? at->output + (size_t)word_at(net, s, step - 1) * net->width + s * net->config->hidden
                : net->before;
}

/* --- forward --- */

static void lstm_step(const network *net, layer *at, uint32_t s, uint32_t step)
{
    const side *self = &at->sides[s];
    size_t hidden = net->config->hidden, word = word_at(net, s, step);
    const double *x = at->input + word * at->inputs, *h = state_before(net, at, s, step);
    const double *c = step ? self->cell + word_at(net, s, step - 1) * hidden : net->before;
    double *gates = self->gates + word * GATES_MAX * hidden;

    for (size_t row = 0; row < 4 * hidden; row++) {
        double sum = affine(net->dense + self->weight_ih, net->dense + self->bias_ih, row, x, at->inputs) +
                     affine(net->dense + self->weight_hh, net->dense + self->bias_hh, row, h, hidden);

        gates[row] = row / hidden == 2 ? tanh(sum) : sigmoid(sum);
    }
    for (size_t u = 0; u < hidden; u++) {
        double i = gates[u], f = gates[hidden + u], g = gates[2 * hidden + u], o = gates[3 * hidden + u];
        double cell = f * c[u] + i * g;

        self->cell[word * hidden + u] = cell;
        at->output[word * net->width + s * hidden + u] = o * tanh(cell);
    }
}

static void gru_step(const network *net, layer *at, uint32_t s, uint32_t step)
{
    const side *self = &at->sides[s];
    size_t hidden = net->config->hidden, word = word_at(net, s, step);
    const double *x = at->input + word * at->inputs, *h = state_before(net, at, s, step);
    double *gates = self->gates + word * GATES_MAX * hidden;

    for (size_t row = 0; row < 3 * hidden; row++) {
        double ih = affine(net->dense + self->weight_ih, net->dense + self->bias_ih, row, x, at->inputs);
        double hh = affine(net->dense + self->weight_hh, net->dense + self->bias_hh, row, h, hidden);

        if (row < 2 * hidden) {
            gates[row] = sigmoid(ih + hh);
        } else {
            gates[row] = tanh(ih + gates[row - 2 * hidden] * hh);
            gates[row + hidden] = hh;
        }
    }
    for (size_t u = 0; u < hidden; u++) {
        double z = gates[hidden + u], n = gates[2 * hidden + u];

        at->output[word * net->width + s * hidden + u] = (1 - z) * n + z * h[u];
    }
}

static void forward_layers(network *net)
{
    for (uint32_t l = 0; l < net->config->layers; l++) {
        layer *at = &net->layers[l];

        for (uint32_t word = 0; l > 0 && word < net->words; word++) {
            for (uint32_t u = 0; u < net->width; u++)
                at->input[word * net->width + u] =
                    net->layers[l - 1].output[word * net->width + u] * dropout_of(net, l - 1, word, u);
        }
        for (uint32_t s = 0; s < net->sides; s++) {
            for (uint32_t step = 0; step < net->words; step++) {
                if (net->config->cell == PACE_CELL_LSTM)
                    lstm_step(net, at, s, step);
                else
                    gru_step(net, at, s, step);
            }
        }
    }
}

/* The word whose state is pooled by `last`: where the unit's direction ends. */
static uint32_t last_word(const network *net, uint32_t unit)
{
    return word_at(net, unit / net->config->hidden, net->words - 1);
}

static double pool_unit(network *net, const double *output, uint32_t unit)
{
    double sum = 0;
    uint32_t largest = 0;

    if (net->config->pooling == PACE_POOL_LAST)
        return output[(size_t)last_word(net, unit) * net->width + unit];
    for (uint32_t word = 0; word < net->words; word++) {
        sum += output[(size_t)word * net->width + unit];
        if (output[(size_t)word * net->width + unit] > output[(size_t)largest * net->width + unit])
            largest = word;
    }
    net->largest[unit] = largest;
    return net->config->pooling == PACE_POOL_MEAN ? sum / net->words
                                                  : output[(size_t)largest * net->width + unit];
}

static double forward(network *net)
{
    const pace__rnn_config *config = net->config;
    uint32_t top = config->layers - 1;

    forward_layers(net);
    for (uint32_t u = 0; u < net->width; u++)
        net->pooled[u] = pool_unit(net, net->layers[top].output, u) * dropout_of(net, top, UINT32_MAX, u);
    const float *out_weight = net->dense + net->out_weight, *out_bias = net->dense + net->out_bias;

    if (config->dense == 0)
        return affine(out_weight, out_bias, 0, net->pooled, net->width);
    for (uint32_t u = 0; u < config->dense; u++)
        net->relu[u] = rectified(
            affine(net->dense + net->dense_weight, net->dense + net->dense_bias, u, net->pooled, net->width));
    return affine(out_weight, out_bias, 0, net->relu, config->dense);
}

/* --- backward --- */

/* From the derivative of the state h' (in d_state) to those of the gates' sums, and of the cell before. */
static void lstm_step_back(const network *net, const layer *at, uint32_t s, uint32_t step)
{
    const side *self = &at->sides[s];
    size_t hidden = net->config->hidden, word = word_at(net, s, step);
    const double *gates = self->gates + word * GATES_MAX * hidden;
    const double *c = step ? self->cell + word_at(net, s, step - 1) * hidden : net->before;

    for (size_t u = 0; u < hidden; u++) {
        double i = gates[u], f = gates[hidden + u], g = gates[2 * hidden + u], o = gates[3 * hidden + u];
        double squashed = tanh(self->cell[word * hidden + u]);
        double d_cell = net->d_cell[u] + net->d_state[u] * o * (1 - squashed * squashed);

        net->d_ih[u] = d_cell * g * i * (1 - i);
        net->d_ih[hidden + u] = d_cell * c[u] * f * (1 - f);
        net->d_ih[2 * hidden + u] = d_cell * i * (1 - g * g);
        net->d_ih[3 * hidden + u] = net->d_state[u] * squashed * o * (1 - o);
        net->d_cell[u] = d_cell * f;
        net->d_state[u] = 0; /* the state before is used by the gates only */
    }
    memcpy(net->d_hh, net->d_ih, 4 * hidden * sizeof *net->d_hh);
}

static void gru_step_back(const network *net, const layer *at, uint32_t s, uint32_t step)
{
    const side *self = &at->sides[s];
    size_t hidden = net->config->hidden, word = word_at(net, s, step);
    const double *gates = self->gates + word * GATES_MAX * hidden, *h = state_before(net, at, s, step);

    for (size_t u = 0; u < hidden; u++) {
        double r = gates[u], z = gates[hidden + u], n = gates[2 * hidden + u], hh = gates[3 * hidden + u];
        double d_state = net->d_state[u], d_n = d_state * (1 - z) * (1 - n * n);

        net->d_ih[u] = net->d_hh[u] = d_n * hh * r * (1 - r);
        net->d_ih[hidden + u] = net->d_hh[hidden + u] = d_state * (h[u] - n) * z * (1 - z);
        net->d_ih[2 * hidden + u] = d_n;
        net->d_hh[2 * hidden + u] = d_n * r;
        net->d_state[u] = d_state * z;
    }
}

/* Steps of one direction from its last to its first. */
static void backward_side(const network *net, const layer *at, uint32_t s)
{
    const side *self = &at->sides[s];
    size_t hidden = net->config->hidden;

    memset(net->d_state, 0, hidden * sizeof *net->d_state);
    memset(net->d_cell, 0, hidden * sizeof *net->d_cell);
    for (uint32_t step = net->words; step-- > 0;) {
        size_t word = word_at(net, s, step);
        const double *x = at->input + word * at->inputs, *h = state_before(net, at, s, step);

        for (size_t u = 0; u < hidden; u++)
            net->d_state[u] += at->d_output[word * net->width + s * hidden + u];
        if (net->config->cell == PACE_CELL_LSTM)
            lstm_step_back(net, at, s, step);
        else
            gru_step_back(net, at, s, step);
        for (size_t row = 0; row < net->gates * hidden; row++) {
            affine_back(net, self->weight_ih, self->bias_ih, row, x, at->inputs, net->d_ih[row],
                        at->d_input + word * at->inputs);
            affine_back(net, self->weight_hh, self->bias_hh, row, h, hidden, net->d_hh[row], net->d_state);
        }
    }
}

/* From the pooled vector to the top layer's outputs. */
static void backward_pooling(const network *net)
{
    uint32_t top = net->config->layers - 1;
    double *d_output = net->layers[top].d_output;

    memset(d_output, 0, (size_t)net->words * net->width * sizeof *d_output);
    for (uint32_t u = 0; u < net->width; u++) {
        double d = net->d_pooled[u] * dropout_of(net, top, UINT32_MAX, u);

        if (net->config->pooling == PACE_POOL_LAST)
            d_output[(size_t)last_word(net, u) * net->width + u] = d;
        else if (net->config->pooling == PACE_POOL_MAX)
            d_output[(size_t)net->largest[u] * net->width + u] = d;
        else
            for (uint32_t word = 0; word < net->words; word++)
                d_output[(size_t)word * net->width + u] = d / net->words;
    }
}

/* From the logit to the pooled vector. */
static void backward_head(const network *net, double d_logit)
{
    uint32_t dense = net->config->dense;

    memset(net->d_pooled, 0, net->width * sizeof *net->d_pooled);
    if (dense == 0) {
        affine_back(net, net->out_weight, net->out_bias, 0, net->pooled, net->width, d_logit, net->d_pooled);
        return;
    }
    affine_back(net, net->out_weight, net->out_bias, 0, net->relu, dense, d_logit, NULL);
    for (uint32_t u = 0; u < dense; u++) {
        double d = net->relu[u] > 0 ? d_logit * (double)net->dense[net->out_weight + u] : 0;

        affine_back(net, net->dense_weight, net->dense_bias, u, net->pooled, net->width, d, net->d_pooled);
    }
}

/* Leaves the derivatives of the words' embeddings in d_input of layer 0. */
static void backward(const network *net, double d_logit)
{
    backward_head(net, d_logit);
    backward_pooling(net);
    for (uint32_t l = net->config->layers; l-- > 0;) {
        const layer *at = &net->layers[l];

        memset(at->d_input, 0, (size_t)net->words * at->inputs * sizeof *at->d_input);
        for (uint32_t s = 0; s < net->sides; s++)
            backward_side(net, at, s);
        for (uint32_t word = 0; l > 0 && word < net->words; word++) {
            for (uint32_t u = 0; u < net->width; u++)
                net->layers[l - 1].d_output[word * net->width + u] =
                    at->d_input[word * net->width + u] * dropout_of(net, l - 1, word, u);
        }
    }
}

/* --- rows --- */

static void set_row(network *net, const pace__rnn_batch *batch, size_t row)
{
    const uint32_t *words = pace__row_words(batch->rows, row);
    uint32_t embed = net->config->embed;

    net->words = batch->rows->length[row];
    net->place = batch->place + row;
    assert(net->words >= 1 && net->words <= batch->rows->columns);
    for (uint32_t word = 0; word < net->words; word++) {
        assert(words[word] < batch->slots);
        for (uint32_t i = 0; i < embed; i++)
            net->layers[0].input[word * embed + i] =
                (double)batch->embedding[(size_t)words[word] * embed + i];
    }
}

static void add_embeddings(const network *net, const pace__rnn_batch *batch, size_t row, double *sums)
{
    const uint32_t *words = pace__row_words(batch->rows, row);
    uint32_t embed = net->config->embed;

    for (uint32_t word = 0; word < net->words; word++) {
        for (uint32_t i = 0; i < embed; i++)
            sums[(size_t)words[word] * embed + i] += net->layers[0].d_input[word * embed + i];
    }
}

static void sum_rows(network *net, pace__rnn_batch *batch, double *d_embedding)
{
    batch->loss = 0;
    for (size_t row = 0; row < batch->rows->rows; row++) {
        double d_logit;

        set_row(net, batch, row);
        batch->loss += pace__rnn_loss_exact(net->config, forward(net), batch->rows->label[row], &d_logit);
        backward(net, d_logit);
        add_embeddings(net, batch, row, d_embedding);
    }
}

pace_status pace__rnn_plain_gradient(const pace__rnn_config *config, pace__rnn_batch *batch,
                                     const pace_log *log)
{
    size_t dense = pace__rnn_dense(config), embedding = (size_t)batch->slots * config->embed;
    double *sums = calloc(dense + embedding, sizeof *sums);
    network net = {0};
    pace_status status = sums ? network_init(&net, config, batch, log)
                              : pace_fail(log, PACE_FAILED, "out of memory: %zu sums", dense + embedding);

    if (!status) {
        net.training = true;
        net.d_dense = sums;
        sum_rows(&net, batch, sums + dense);
        for (size_t i = 0; i < dense; i++)
            batch->dense_sums[i] = (float)sums[i];
        for (size_t i = 0; i < embedding; i++)
            batch->embedding_sums[i] = (float)sums[dense + i];
        status = batch->ready ? batch->ready(batch->user, 0) : PACE_OK;
    }
    free(net.memory);
    free(sums);
    return status;
}

pace_status pace__rnn_plain_logits(const pace__rnn_config *config, const pace__rnn_batch *batch,
                                   float *logits, const pace_log *log)
{
    network net;
    pace_status status = network_init(&net, config, batch, log);

    for (size_t row = 0; !status && row < batch->rows->rows; row++) {
        set_row(&net, batch, row);
        logits[row] = (float)forward(&net);
    }
    free(net.memory);
    return status;
}
