#include "model/convnet/cnn.h"

#include "math/draws.h"
#include "math/softplus.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

bool pace__cnn_keeps(const pace__cnn_config *config, uint64_t place, uint32_t feature)
{
    uint64_t key = pace__drop_features_key(config->seed, place);

    return pace__drop_bits(key, feature) >= pace__drop_limit(config->dropout);
}

/* --- loss --- */

/* Logits of either precision. */
typedef struct logits_view {
    const float *rounded;
    const double *exact; /* NULL: those */
} logits_view;

static double logit_at(logits_view logits, uint32_t output)
{
    return logits.exact ? logits.exact[output] : (double)logits.rounded[output];
}

static double weight_of(const pace__cnn_config *config, uint16_t label)
{
    return config->classes == 2 ? (double)config->weight[label != 0] : 1;
}

/* Of one logit: cross entropy with a target that smoothing draws towards 1/2. Sets the derivative. */
static double loss_of_one(const pace__cnn_config *config, double logit, uint16_t label, double *gradient)
{
    double smoothing = (double)config->smoothing, weight = weight_of(config, label);
    double target = (label ? 1 - smoothing : 0) + smoothing / 2;

    *gradient = weight * (1 / (1 + exp(-logit)) - target);
    return weight * (pace__softplus(logit) - target * logit);
}

/* log of the sum of exp(logit). What is no number stays none. */
static double log_sum(logits_view logits, uint32_t outputs)
{
    double largest = logit_at(logits, 0), sum = 0;

    for (uint32_t o = 1; o < outputs; o++)
        largest = logit_at(logits, o) > largest ? logit_at(logits, o) : largest;
    for (uint32_t o = 0; o < outputs; o++)
        sum += exp(logit_at(logits, o) - largest);
    return largest + log(sum);
}

/* What the softmax of an output is to be: smoothing spreads over all classes. */
static double target_of(const pace__cnn_config *config, uint16_t label, uint32_t output)
{
    double smoothing = (double)config->smoothing;

    return (output == label ? 1 - smoothing : 0) + smoothing / config->classes;
}

static double softmax_loss(const pace__cnn_config *config, logits_view logits, uint16_t label,
                           double log_of_sum)
{
    double loss = 0;

    /* Targets add up to 1: every logit is taken from the logarithm, so that large ones do not cancel. */
    for (uint32_t o = 0; o < config->classes; o++)
        loss += target_of(config, label, o) * (log_of_sum - logit_at(logits, o));
    return weight_of(config, label) * loss;
}

static double softmax_slope(const pace__cnn_config *config, logits_view logits, uint16_t label,
                            double log_of_sum, uint32_t output)
{
    return weight_of(config, label) *
           (exp(logit_at(logits, output) - log_of_sum) - target_of(config, label, output));
}

double pace__cnn_loss(const pace__cnn_config *config, const float *logits, uint16_t label, float *gradient)
{
    logits_view view = {.rounded = logits};

    if (config->one_logit) {
        double slope, loss = loss_of_one(config, (double)logits[0], label, &slope);

        gradient[0] = (float)slope;
        return loss;
    }
    double log_of_sum = log_sum(view, config->classes);

    for (uint32_t o = 0; o < config->classes; o++)
        gradient[o] = (float)softmax_slope(config, view, label, log_of_sum, o);
    return softmax_loss(config, view, label, log_of_sum);
}

double pace__cnn_loss_exact(const pace__cnn_config *config, const double *logits, uint16_t label,
                            double *gradient)
{
    logits_view view = {.exact = logits};

    if (config->one_logit)
        return loss_of_one(config, logits[0], label, gradient);
    double log_of_sum = log_sum(view, config->classes);

    for (uint32_t o = 0; o < config->classes; o++)
        gradient[o] = softmax_slope(config, view, label, log_of_sum, o);
    return softmax_loss(config, view, label, log_of_sum);
}

/* --- one of the two implementations --- */

struct pace__cnn {
    pace__cnn_plan plan;
    pace__cnn_config config; /* what plan.config points to */
    pace__cnn_net net;
    const pace_log *log;
    pace__cnn_fast *fast; /* NULL: plain */
};

static void check_plan(const pace__cnn_plan *plan)
{
    const pace__cnn_config *config = plan->config;

    assert(plan->rows_max >= 1 && plan->threads >= 1);
    assert(config->dropout >= 0 && config->dropout < 1 && config->smoothing >= 0 && config->smoothing < 1);
    assert(config->epsilon >= 0 && config->deviation[0] != 0 && config->deviation[config->channels - 1] != 0);
}

pace_status pace__cnn_create(const pace__cnn_plan *plan, const pace_log *log, pace__cnn **cnn)
{
    check_plan(plan);
    pace__cnn *self = malloc(sizeof *self);

    if (!self)
        return pace_fail(log, PACE_FAILED, "out of memory");
    *self = (pace__cnn){.plan = *plan, .config = *plan->config, .log = log};
    self->plan.config = &self->config;
    pace_status status = pace__cnn_net_make(&self->config, log, &self->net);

    if (!status && !plan->plain)
        status = pace__cnn_fast_create(&self->plan, &self->net, log, &self->fast);
    if (status)
        free(self);
    else
        *cnn = self;
    return status;
}

void pace__cnn_free(pace__cnn *cnn)
{
    if (cnn)
        pace__cnn_fast_free(cnn->fast);
    free(cnn);
}

/* The plain one takes its memory anew for each batch; it is not for jobs that count theirs. */
uint64_t pace__cnn_memory(const pace__cnn_plan *plan)
{
    pace__cnn_net net;
    bool known = pace__cnn_net_make(plan->config, NULL, &net) == PACE_OK;

    return sizeof(pace__cnn) + (known && !plan->plain ? pace__cnn_fast_memory(plan, &net) : 0);
}

static void check_rows(const pace__cnn *cnn, const pace__rows *rows)
{
    const pace__cnn_config *config = &cnn->config;

    assert(rows->rows == 0 || rows->pixels || rows->features);
    assert(rows->rows == 0 || rows->features ||
           rows->columns == config->height * config->side * config->channels);
    assert(!rows->features || rows->columns == cnn->net.features);
}

pace_status pace__cnn_gradient(pace__cnn *cnn, pace__cnn_batch *batch)
{
    check_rows(cnn, batch->rows);
    assert(batch->rows->rows <= cnn->plan.rows_max && batch->step_rows >= batch->rows->rows);
    assert(cnn->plan.trains && (!batch->rows->features || cnn->config.first_trained == cnn->net.units));
    return cnn->fast ? pace__cnn_fast_gradient(cnn->fast, batch)
                     : pace__cnn_plain_gradient(&cnn->plan, &cnn->net, batch, cnn->log);
}

/* By pieces of rows_max. Classes are not asked for, and need not be there. */
static pace_status compute(pace__cnn *cnn, const pace__rows *rows, const float *weights, const float *stats,
                           bool features, float *found)
{
    size_t columns = rows->columns, piece = (size_t)cnn->plan.rows_max;
    size_t width = features ? cnn->net.features : cnn->net.outputs;
    pace_status status = PACE_OK;

    check_rows(cnn, rows);
    for (size_t first = 0; first < rows->rows && !status; first += piece) {
        pace__rows slice = {.columns = rows->columns};

        slice.rows = rows->rows - first < piece ? rows->rows - first : piece;
        slice.pixels = rows->pixels ? rows->pixels + first * columns : NULL;
        slice.features = rows->features ? rows->features + first * columns : NULL;
        status = cnn->fast ? pace__cnn_fast_logits(cnn->fast, &slice, weights, stats, features,
                                                   found + first * width)
                           : pace__cnn_plain_logits(&cnn->plan, &cnn->net, &slice, weights, stats, features,
                                                    found + first * width, cnn->log);
    }
    return status;
}

pace_status pace__cnn_logits(pace__cnn *cnn, const pace__rows *rows, const float *weights, const float *stats,
                             float *logits)
{
    return compute(cnn, rows, weights, stats, false, logits);
}

pace_status pace__cnn_features(pace__cnn *cnn, const pace__rows *rows, float *features)
{
    const pace__cnn_plan *plan = &cnn->plan;

    assert(cnn->config.first_trained == cnn->net.units && !rows->features);
    return compute(cnn, rows, plan->frozen_weights + cnn->net.trained_at,
                   plan->frozen_stats + cnn->net.stats_trained_at, true, features);
}
