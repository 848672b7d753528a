/*
 * The convolutional network layer after layer, one number at a time: made to be read and to be compared with.
 * Parameters are floats, and so is what workers add up between them; everything else between parameters and
 * results is in double precision.
 */
#include "model/convnet/cnn_plain_layers.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A unit's parameters, and the traces of its forward pass. */
typedef struct layer {
    const pace__cnn_unit *unit;
    bool trained;
    const float *weight, *gamma, *beta, *mean, *variance;
    double *x_hat; /* (rows, channels, height, width) the normalised z */
    double *y, *d_y;
    double *scale; /* (channels) 1 / sqrt(variance + epsilon) */
} layer;

typedef struct network {
    const pace__cnn_config *config;
    const pace__cnn_net *net;
    const pace_log *log;
    pace__cnn_batch *batch; /* NULL: logits only */
    size_t rows;
    layer layers[PACE__CNN_UNITS_MAX];
    const float *head_weight, *head_bias;
    double *pixels;                /* (rows, channels, height, width) */
    double *features, *d_features; /* (rows, features) behind dropout */
    double *logits, *d_logits;     /* (outputs) of one row */
    double *channel[3];            /* (widest) numbers per channel */
    double *d_z;                   /* as large as the largest y */
    double *d_weight; /* as large as the largest weight, gamma with beta, or the head's with its bias */
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

static size_t larger(size_t left, size_t right)
{
    return left > right ? left : right;
}

static size_t place_arrays(network *self, double *memory)
{
    const pace__cnn_net *net = self->net;
    size_t used = 0, rows = self->rows, widest = 0, largest = 0;
    size_t heaviest = ((size_t)net->features + 1) * net->outputs;

    for (uint32_t u = 0; u < net->units; u++) {
        layer *at = &self->layers[u];
        size_t size = rows * at->unit->channels * at->unit->height * at->unit->width;

        at->x_hat = take(memory, &used, size);
        at->y = take(memory, &used, size);
        at->d_y = take(memory, &used, size);
        at->scale = take(memory, &used, at->unit->channels);
        widest = larger(widest, at->unit->channels);
        largest = larger(largest, size);
        heaviest = larger(heaviest, at->unit->gamma_at - at->unit->weight_at);
        heaviest = larger(heaviest, 2 * (size_t)at->unit->channels);
    }
    self->pixels =
        take(memory, &used, rows * self->config->channels * self->config->height * self->config->side);
    self->features = take(memory, &used, rows * net->features);
    self->d_features = take(memory, &used, rows * net->features);
    self->logits = take(memory, &used, net->outputs);
    self->d_logits = take(memory, &used, net->outputs);
    for (int i = 0; i < 3; i++)
        self->channel[i] = take(memory, &used, widest);
    self->d_z = take(memory, &used, largest);
    self->d_weight = take(memory, &used, heaviest);
    return used;
}

/* The units below the first trained one have their values in the plan, the others in what the caller gave. */
static void place_parameters(network *self, const pace__cnn_plan *plan, const float *weights,
                             const float *stats)
{
    const pace__cnn_net *net = self->net;

    for (uint32_t u = 0; u < net->units; u++) {
        const pace__cnn_unit *unit = &net->unit[u];
        layer *at = &self->layers[u];
        bool trained = u >= self->config->first_trained;
        const float *values = trained ? weights : plan->frozen_weights;
        const float *moments = trained ? stats : plan->frozen_stats;
        size_t first = trained ? net->trained_at : 0, first_stats = trained ? net->stats_trained_at : 0;

        *at = (layer){.unit = unit, .trained = trained};
        if (!values || !moments)
            continue; /* features only: no unit is computed */
        at->weight = values + (unit->weight_at - first);
        at->gamma = values + (unit->gamma_at - first);
        at->beta = values + (unit->beta_at - first);
        at->mean = moments + (unit->mean_at - first_stats);
        at->variance = moments + (unit->variance_at - first_stats);
    }
    if (weights) {
        self->head_weight = weights + (net->head_weight_at - net->trained_at);
        self->head_bias = weights + (net->head_bias_at - net->trained_at);
    }
}

static pace_status network_init(network *self, size_t rows)
{
    self->rows = rows;
    size_t count = place_arrays(self, NULL);

    self->memory = calloc(count, sizeof(double));
    if (!self->memory)
        return pace_fail(self->log, PACE_FAILED,
                         "out of memory: %zu pictures' way through the network needs %zu bytes", rows,
                         count * sizeof(double));
    place_arrays(self, self->memory);
    return PACE_OK;
}

/* --- forward --- */

static void read_pixels(network *self, const pace__rows *rows)
{
    const pace__cnn_config *config = self->config;
    size_t area = (size_t)config->height * config->side;

    assert(self->rows == 0 || rows->columns == area * config->channels);
    for (size_t row = 0; row < self->rows; row++) {
        const uint8_t *from = rows->pixels + row * rows->columns;

        for (size_t i = 0; i < rows->columns; i++) {
            size_t channel = i % config->channels;

            self->pixels[(row * config->channels + channel) * area + i / config->channels] =
                ((double)from[i] - (double)config->mean[channel]) / (double)config->deviation[channel];
        }
    }
}

/* Adds up over the workers, if there are others. */
static pace_status sum_up(network *self, double *values, size_t count)
{
    float rounded[PACE__CNN_SUM_MAX];

    if (!self->batch->sum)
        return PACE_OK;
    assert(count <= PACE__CNN_SUM_MAX);
    for (size_t i = 0; i < count; i++)
        rounded[i] = (float)values[i];
    pace_status status = self->batch->sum(self->batch->user, rounded, count);

    for (size_t i = 0; i < count; i++)
        values[i] = (double)rounded[i];
    return status;
}

static pace_status say_ready(network *self, size_t first)
{
    return self->batch->ready ? self->batch->ready(self->batch->user, first) : PACE_OK;
}

/* Values per channel that statistics are of: those of all workers, or of this one. */
static double values_per_channel(const network *self, const pace__cnn_unit *unit)
{
    uint64_t rows = self->batch->sum ? self->batch->step_rows : self->rows;

    return (double)rows * unit->height * unit->width;
}

/* What is to be subtracted from the running statistics: this worker's share of it. */
static void move_stats(const network *self, const layer *at, const double *mean, const double *variance)
{
    const pace__cnn_batch *batch = self->batch;
    const pace__cnn_unit *unit = at->unit;
    double count = values_per_channel(self, unit), unbiased = count > 1 ? count / (count - 1) : 1;
    double share = (double)self->rows / (double)batch->step_rows * (double)self->config->momentum;
    float *means = batch->stats_sums + (unit->mean_at - self->net->stats_trained_at);
    float *variances = batch->stats_sums + (unit->variance_at - self->net->stats_trained_at);

    for (uint32_t c = 0; c < unit->channels; c++) {
        means[c] = (float)(share * ((double)at->mean[c] - mean[c]));
        variances[c] = (float)(share * ((double)at->variance[c] - unbiased * variance[c]));
    }
}

/* Mean and biased variance of z over the whole step. */
static pace_status measure(network *self, const layer *at, double *mean, double *variance)
{
    const pace__cnn_unit *unit = at->unit;
    double count = values_per_channel(self, unit);

    memset(variance, 0, unit->channels * sizeof *variance);
    pace__cnn_plain_sums(unit, self->rows, at->x_hat, variance, false, mean);
    pace_status status = sum_up(self, mean, unit->channels);

    if (status)
        return status;
    for (uint32_t c = 0; c < unit->channels; c++)
        mean[c] /= count;
    pace__cnn_plain_sums(unit, self->rows, at->x_hat, mean, true, variance);
    status = sum_up(self, variance, unit->channels);
    for (uint32_t c = 0; c < unit->channels; c++)
        variance[c] /= count;
    return status;
}

static pace_status forward_unit(network *self, layer *at)
{
    const pace__cnn_unit *unit = at->unit;
    const double *x = unit->from == PACE__CNN_PIXELS ? self->pixels : self->layers[unit->from].y;
    const double *added = unit->add == PACE__CNN_NOTHING ? NULL : self->layers[unit->add].y;
    double *mean = self->channel[0], *variance = self->channel[1];

    pace__cnn_plain_conv(unit, self->rows, x, at->weight, at->x_hat);
    if (self->batch && at->trained) {
        pace_status status = measure(self, at, mean, variance);

        if (status)
            return status;
        move_stats(self, at, mean, variance);
    } else {
        for (uint32_t c = 0; c < unit->channels; c++) {
            mean[c] = (double)at->mean[c];
            variance[c] = (double)at->variance[c];
        }
    }
    for (uint32_t c = 0; c < unit->channels; c++)
        at->scale[c] = 1 / sqrt(variance[c] + (double)self->config->epsilon);
    pace__cnn_plain_normalise(unit, self->rows, mean, at->scale, at->x_hat);
    pace__cnn_plain_act(unit, self->rows, at->x_hat, at->gamma, at->beta, added, at->y);
    return PACE_OK;
}

/* The mean over the picture. */
static void pool(network *self)
{
    const layer *last = &self->layers[self->net->units - 1];
    size_t area = (size_t)last->unit->height * last->unit->width;

    for (size_t i = 0; i < self->rows * self->net->features; i++) {
        double sum = 0;

        for (size_t pixel = 0; pixel < area; pixel++)
            sum += last->y[i * area + pixel];
        self->features[i] = sum / (double)area;
    }
}

/* What goes into the head, before dropout. */
static pace_status forward(network *self, const pace__rows *rows)
{
    if (rows->features) {
        assert(rows->columns == self->net->features);
        for (size_t i = 0; i < self->rows * self->net->features; i++)
            self->features[i] = (double)rows->features[i];
        return PACE_OK;
    }
    read_pixels(self, rows);
    /* Without rows there are only others to add up with. */
    for (uint32_t u = self->rows ? 0 : self->config->first_trained; u < self->net->units; u++) {
        pace_status status = forward_unit(self, &self->layers[u]);

        if (!status && self->batch)
            status = say_ready(self, self->net->weights - self->net->trained_at);
        if (status)
            return status;
    }
    pool(self);
    return PACE_OK;
}

/* What dropout multiplies a feature by: there and back. */
static double dropout_of(const network *self, size_t row, uint32_t feature)
{
    const pace__cnn_config *config = self->config;

    if (!self->batch || config->dropout == 0)
        return 1;
    return pace__cnn_keeps(config, self->batch->place + row, feature) ? 1 / (1 - (double)config->dropout) : 0;
}

static void find_logits(network *self, size_t row)
{
    const double *features = self->features + row * self->net->features;

    for (uint32_t o = 0; o < self->net->outputs; o++) {
        double sum = (double)self->head_bias[o];

        for (uint32_t f = 0; f < self->net->features; f++)
            sum += (double)self->head_weight[(size_t)o * self->net->features + f] * features[f];
        self->logits[o] = sum;
    }
}

/* --- backward --- */

/* Results leave as floats, for the tensor at that place of all weights. */
static void put_sums(const network *self, size_t at, const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        self->batch->sums[at - self->net->trained_at + i] = (float)values[i];
}

static void head_row(network *self, size_t row, uint16_t label)
{
    uint32_t outputs = self->net->outputs, count = self->net->features;
    double *features = self->features + row * count, *d_features = self->d_features + row * count;
    double *d_weight = self->d_weight, *d_bias = d_weight + (size_t)outputs * count;

    for (uint32_t f = 0; f < count; f++)
        features[f] *= dropout_of(self, row, f);
    find_logits(self, row);
    self->batch->loss += pace__cnn_loss_exact(self->config, self->logits, label, self->d_logits);
    for (uint32_t o = 0; o < outputs; o++) {
        const float *weight = self->head_weight + (size_t)o * count;

        d_bias[o] += self->d_logits[o];
        for (uint32_t f = 0; f < count; f++) {
            d_weight[(size_t)o * count + f] += self->d_logits[o] * features[f];
            d_features[f] += self->d_logits[o] * (double)weight[f];
        }
    }
    for (uint32_t f = 0; f < count; f++)
        d_features[f] *= dropout_of(self, row, f);
}

/* Loss, and the way back to the features. */
static pace_status head(network *self)
{
    const pace__cnn_net *net = self->net;
    size_t count = net->weights - net->head_weight_at;

    memset(self->d_weight, 0, count * sizeof *self->d_weight);
    for (size_t row = 0; row < self->rows; row++)
        head_row(self, row, self->batch->rows->classes[row]);
    put_sums(self, net->head_weight_at, self->d_weight, count);
    return say_ready(self, net->head_weight_at - net->trained_at);
}

static void pool_back(network *self)
{
    layer *last = &self->layers[self->net->units - 1];
    size_t area = (size_t)last->unit->height * last->unit->width;

    for (size_t i = 0; i < self->rows * self->net->features * area; i++)
        last->d_y[i] = self->d_features[i / area] / (double)area;
}

static bool is_trained(const network *self, uint32_t u)
{
    return u < self->net->units && u >= self->config->first_trained;
}

/* d_y of the unit is complete: everything that reads it comes later and has been here. */
static pace_status backward_unit(network *self, layer *at)
{
    const pace__cnn_unit *unit = at->unit;
    const double *x = unit->from == PACE__CNN_PIXELS ? self->pixels : self->layers[unit->from].y;
    double *d_x = is_trained(self, unit->from) ? self->layers[unit->from].d_y : NULL;
    double *both = self->d_weight, *d_gamma = both, *d_beta = both + unit->channels;
    size_t size = self->rows * unit->channels * unit->height * unit->width;
    size_t weights = unit->gamma_at - unit->weight_at;

    pace__cnn_plain_act_back(unit, self->rows, at->y, at->d_y);
    if (is_trained(self, unit->add)) {
        for (size_t i = 0; i < size; i++)
            self->layers[unit->add].d_y[i] += at->d_y[i];
    }
    pace__cnn_plain_norm_sums(unit, self->rows, at->x_hat, at->d_y, d_gamma, d_beta);
    put_sums(self, unit->gamma_at, both, 2 * (size_t)unit->channels); /* beta is right behind gamma */
    pace_status status = sum_up(self, both, 2 * (size_t)unit->channels);

    if (status)
        return status;
    pace__cnn_plain_norm_back(unit, self->rows, at->x_hat, at->d_y, at->gamma, at->scale, d_gamma, d_beta,
                              values_per_channel(self, unit), self->d_z);
    memset(self->d_weight, 0, weights * sizeof *self->d_weight);
    pace__cnn_plain_conv_back(unit, self->rows, x, at->weight, self->d_z, self->d_weight, d_x);
    put_sums(self, unit->weight_at, self->d_weight, weights);
    return say_ready(self, unit->weight_at - self->net->trained_at);
}

static pace_status backward(network *self)
{
    pace_status status = PACE_OK;

    pool_back(self);
    for (uint32_t u = self->net->units; u-- > self->config->first_trained && !status;)
        status = backward_unit(self, &self->layers[u]);
    return status;
}

/* --- the two ways to use it --- */

pace_status pace__cnn_plain_gradient(const pace__cnn_plan *plan, const pace__cnn_net *net,
                                     pace__cnn_batch *batch, const pace_log *log)
{
    network self = {.config = plan->config, .net = net, .log = log, .batch = batch};

    assert(!batch->rows->features || plan->config->first_trained == net->units);
    place_parameters(&self, plan, batch->weights, batch->stats);
    pace_status status = network_init(&self, batch->rows->rows);

    batch->loss = 0;
    if (!status)
        status = forward(&self, batch->rows);
    if (!status)
        status = head(&self);
    if (!status)
        status = backward(&self);
    free(self.memory);
    return status;
}

/* Row by row: without training none depends on another. */
pace_status pace__cnn_plain_logits(const pace__cnn_plan *plan, const pace__cnn_net *net,
                                   const pace__rows *rows, const float *weights, const float *stats,
                                   bool features, float *found, const pace_log *log)
{
    network self = {.config = plan->config, .net = net, .log = log};
    uint32_t count = features ? net->features : net->outputs;

    place_parameters(&self, plan, weights, stats);
    pace_status status = network_init(&self, 1);

    for (size_t row = 0; row < rows->rows && !status; row++) {
        pace__rows one = {.rows = 1, .columns = rows->columns};
        const double *values = features ? self.features : self.logits;

        one.pixels = rows->pixels ? rows->pixels + row * rows->columns : NULL;
        one.features = rows->features ? rows->features + row * rows->columns : NULL;
        status = forward(&self, &one);
        if (!features)
            find_logits(&self, 0);
        for (uint32_t i = 0; i < count; i++)
            found[row * count + i] = (float)values[i];
    }
    free(self.memory);
    return status;
}
