#include "model/rnn/rnn.h"

#include "math/draws.h"
#include "math/softplus.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- parameters --- */

__attribute__((format(printf, 5, 6))) static void add_tensor(pace__rnn_tensor *tensors, unsigned *count,
                                                             uint64_t rows, uint64_t columns,
                                                             const char *format, ...)
{
    pace__rnn_tensor *tensor = &tensors[*count];
    va_list arguments;

    /* A bias, without columns, has rank 1. */
    *tensor = (pace__rnn_tensor){.rank = columns ? 2 : 1, .shape = {rows, columns}};
    tensor->size = (size_t)(rows * (columns ? columns : 1));
    tensor->at = *count ? tensor[-1].at + tensor[-1].size : 0;
    va_start(arguments, format);
    vsnprintf(tensor->name, sizeof tensor->name, format, arguments);
    va_end(arguments);
    ++*count;
}

unsigned pace__rnn_tensors(const pace__rnn_config *config, pace__rnn_tensor *tensors)
{
    uint64_t hidden = config->hidden, gates = (config->cell == PACE_CELL_LSTM ? 4 : 3) * hidden;
    uint64_t pooled = hidden * (config->both ? 2 : 1);
    unsigned count = 0;

    for (unsigned layer = 0; layer < config->layers; layer++) {
        for (int direction = 0; direction <= config->both; direction++) {
            const char *suffix = direction ? "_reverse" : "";

            add_tensor(tensors, &count, gates, layer ? pooled : config->embed, "rnn.weight_ih_l%u%s", layer,
                       suffix);
            add_tensor(tensors, &count, gates, hidden, "rnn.weight_hh_l%u%s", layer, suffix);
            add_tensor(tensors, &count, gates, 0, "rnn.bias_ih_l%u%s", layer, suffix);
            add_tensor(tensors, &count, gates, 0, "rnn.bias_hh_l%u%s", layer, suffix);
        }
    }
    if (config->dense) {
        add_tensor(tensors, &count, config->dense, pooled, "dense.weight");
        add_tensor(tensors, &count, config->dense, 0, "dense.bias");
    }
    add_tensor(tensors, &count, 1, config->dense ? config->dense : pooled, "out.weight");
    add_tensor(tensors, &count, 1, 0, "out.bias");
    return count;
}

size_t pace__rnn_dense(const pace__rnn_config *config)
{
    pace__rnn_tensor tensors[PACE__RNN_TENSORS_MAX];
    unsigned count = pace__rnn_tensors(config, tensors);

    return tensors[count - 1].at + tensors[count - 1].size;
}

static bool is_named(const pace__rnn_tensor *tensor, const char *prefix)
{
    return strncmp(tensor->name, prefix, strlen(prefix)) == 0;
}

static void init_bias(const pace__rnn_config *config, const pace__rnn_tensor *tensor, float *values)
{
    bool forgets = config->cell == PACE_CELL_LSTM && is_named(tensor, "rnn.bias_ih");

    for (size_t i = 0; i < tensor->size; i++)
        values[i] = forgets && i / config->hidden == 1 ? 1 : 0; /* gates i, f, g, o */
}

void pace__rnn_init_dense(const pace__rnn_config *config, float *dense)
{
    pace__rnn_tensor tensors[PACE__RNN_TENSORS_MAX];
    unsigned count = pace__rnn_tensors(config, tensors);

    for (unsigned t = 0; t < count; t++) {
        pace__random random = pace__draw(config->seed, PACE__DRAW_WEIGHTS, t);
        bool recurrent = is_named(&tensors[t], "rnn.");
        float *values = dense + tensors[t].at;
        double bound = 1 / sqrt((double)(recurrent ? config->hidden : tensors[t].shape[1]));

        if (tensors[t].rank == 1) {
            init_bias(config, &tensors[t], values);
            continue;
        }
        for (size_t i = 0; i < tensors[t].size; i++)
            values[i] = (float)(bound * (2 * pace__random_unit(&random) - 1));
    }
}

void pace__rnn_init_word(const pace__rnn_config *config, uint32_t word, float *row)
{
    pace__random random = pace__draw(config->seed, PACE__DRAW_WORDS, word);

    for (uint32_t i = 0; i < config->embed; i++)
        row[i] = word == 0 ? 0 : (float)(0.1 * pace__random_normal(&random));
}

bool pace__rnn_keeps(const pace__rnn_config *config, uint64_t place, uint32_t layer, uint32_t word,
                     uint32_t unit)
{
    uint64_t key = pace__drop_word_key(config->seed, place, layer, word);

    return pace__drop_bits(key, unit) >= pace__drop_limit(config->dropout);
}

/* --- losses --- */

/* The losses are functions of the margin, the logit times the label as +-1; so are the slopes. */
static double cross_entropy(double margin, double *slope)
{
    *slope = -1 / (1 + exp(margin));
    return pace__softplus(-margin);
}

/* With p = sigmoid(margin): -(1 - p)^gamma log p. Its slope is -(1 - p)^gamma (1 - p - gamma p log p). */
static double focal(double margin, double gamma, double *slope)
{
    double p = 1 / (1 + exp(-margin)), rest = 1 / (1 + exp(margin)), loss = pace__softplus(-margin);
    double factor = exp(-gamma * pace__softplus(margin)); /* (1 - p)^gamma, also where 1 - p is 0 in double */

    *slope = -factor * (rest + gamma * p * loss);
    return factor * loss;
}

/* What is no number stays no number. */
static double hinge(double margin, double *slope)
{
    *slope = margin >= 1 ? 0 : -1;
    return margin >= 1 ? 0 : 1 - margin;
}

double pace__rnn_loss_exact(const pace__rnn_config *config, double logit, uint8_t label, double *gradient)
{
    double sign = label ? 1 : -1, margin = sign * logit, weight = (double)config->weight[label != 0];
    double slope, loss;

    if (config->loss == PACE_LOSS_FOCAL)
        loss = focal(margin, (double)config->focal, &slope);
    else if (config->loss == PACE_LOSS_HINGE)
        loss = hinge(margin, &slope);
    else
        loss = cross_entropy(margin, &slope);
    *gradient = weight * sign * slope;
    return weight * loss;
}

double pace__rnn_loss(const pace__rnn_config *config, float logit, uint8_t label, float *gradient)
{
    double exact, loss = pace__rnn_loss_exact(config, (double)logit, label, &exact);

    *gradient = (float)exact;
    return loss;
}

/* --- one of the two implementations --- */

struct pace__rnn {
    pace__rnn_config config;
    uint64_t rows_max;
    const pace_log *log;
    pace__rnn_fast *fast; /* NULL: plain */
};

static void check_config(const pace__rnn_config *config)
{
    assert(config->layers >= 1 && config->layers <= PACE__RNN_LAYERS_MAX);
    assert(config->embed >= 1 && config->embed <= PACE__RNN_UNITS_MAX);
    assert(config->hidden >= 1 && config->hidden <= PACE__RNN_UNITS_MAX);
    assert(config->dense <= PACE__RNN_UNITS_MAX && config->length >= 1);
    assert(config->dropout >= 0 && config->dropout < 1);
}

pace_status pace__rnn_create(const pace__rnn_config *config, uint64_t rows_max, int threads, bool plain,
                             const pace_log *log, pace__rnn **rnn)
{
    check_config(config);
    pace__rnn *self = malloc(sizeof *self);

    if (!self)
        return pace_fail(log, PACE_FAILED, "out of memory");
    *self = (pace__rnn){.config = *config, .rows_max = rows_max, .log = log};
    pace_status status = plain ? PACE_OK : pace__rnn_fast_create(config, rows_max, threads, log, &self->fast);

    if (status)
        free(self);
    else
        *rnn = self;
    return status;
}

void pace__rnn_free(pace__rnn *rnn)
{
    if (rnn)
        pace__rnn_fast_free(rnn->fast);
    free(rnn);
}

uint64_t pace__rnn_memory(const pace__rnn_config *config, uint64_t rows_max, int threads)
{
    return sizeof(pace__rnn) + pace__rnn_fast_memory(config, rows_max, threads);
}

static void check_rows(const pace__rnn *rnn, const pace__rows *rows)
{
    assert(rows->rows <= rnn->rows_max && rows->columns == rnn->config.length);
    assert(rows->length || rows->rows == 0);
}

pace_status pace__rnn_gradient(pace__rnn *rnn, pace__rnn_batch *batch)
{
    check_rows(rnn, batch->rows);
    return rnn->fast ? pace__rnn_fast_gradient(rnn->fast, batch)
                     : pace__rnn_plain_gradient(&rnn->config, batch, rnn->log);
}

pace_status pace__rnn_logits(pace__rnn *rnn, const pace__rnn_batch *batch, float *logits)
{
    check_rows(rnn, batch->rows);
    return rnn->fast ? pace__rnn_fast_logits(rnn->fast, batch, logits)
                     : pace__rnn_plain_logits(&rnn->config, batch, logits, rnn->log);
}
