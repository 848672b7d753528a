#include "model/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* --- what goes together --- */

pace_status pace__refuse_network_options(const pace_train_config *config, const char *own,
                                         const pace_log *log)
{
    const char *given = config->optimiser.dropout > 0    ? "--dropout"
                        : config->optimiser.class_weight ? "--class-weight"
                        : config->optimiser.clip > 0     ? "--clip"
                                                         : NULL;

    return given ? pace_fail(log, PACE_USAGE, "%s is for --model rnn or cnn, not for %s", given, own)
                 : PACE_OK;
}

void pace__settle_linear(pace_train_config *config)
{
    config->optimiser.dropout = config->optimiser.clip = 0;
}

pace_status pace__check_network(const pace_train_config *config, const char *own, const pace_log *log)
{
    if (config->optimiser.rule == PACE_FTRL)
        return pace_fail(log, PACE_USAGE,
                         "--optimizer ftrl computes weights anew from all gradients, which forgets what %s "
                         "begins with: take adam, adagrad, momentum or sgd",
                         own);
    if (config->optimiser.exact)
        return pace_fail(log, PACE_USAGE, "--exact: %s always has one update per step", own);
    if ((config->optimiser.dropout < 0 && config->optimiser.dropout != -1) ||
        (config->optimiser.clip < 0 && config->optimiser.clip != -1))
        return pace_fail(log, PACE_USAGE, "--dropout and --clip are 0 or more, or -1 for the default");
    return PACE_OK;
}

/* --- a model that another begins with --- */

pace_status pace__same_word(const pace__plan_request *request, const char *option, const char *here,
                            const char *there, const pace_log *log)
{
    if (strcmp(here, there) == 0)
        return PACE_OK;
    return pace_fail(log, PACE_USAGE,
                     "--init %s: was trained with --%s %s, and here it is %s: a model goes on with the sizes "
                     "that it has; give --%s %s",
                     request->begins->path, option, there, here, option, there);
}

pace_status pace__same_size(const pace__plan_request *request, const char *option, int64_t here,
                            int64_t there, const pace_log *log)
{
    char ours[24], theirs[24];

    snprintf(ours, sizeof ours, "%" PRId64, here);
    snprintf(theirs, sizeof theirs, "%" PRId64, there);
    return pace__same_word(request, option, ours, theirs, log);
}

/* --- defaults --- */

void pace__choose_integer(int64_t *field, int64_t open, int64_t value)
{
    if (*field == open)
        *field = value;
}

void pace__choose_real(double *field, double open, double value)
{
    if (*field == open)
        *field = value;
}

void pace__choose(int *field, int open, int value)
{
    if (*field == open)
        *field = value;
}

/* --- --class-weight --- */

/* A weight above 0, or 0 for "balanced"; false: neither. */
static bool parse_class_weight(const char *text, double *weight)
{
    char *end;

    *weight = 0;
    if (strcmp(text, "balanced") == 0)
        return true;
    *weight = strtod(text, &end);
    return end != text && !*end && *weight > 0 && *weight <= 1e6;
}

pace_status pace__check_class_weight(const char *text, const pace_log *log)
{
    double weight;

    return !text || parse_class_weight(text, &weight)
               ? PACE_OK
               : pace_fail(log, PACE_USAGE,
                           "--class-weight '%s': \"balanced\", or how much a positive row weighs against a "
                           "negative one, like 0.2",
                           text);
}

pace_status pace__class_weights(const pace__plan_request *request, float weight[2], const pace_log *log)
{
    const char *text = request->config->optimiser.class_weight;
    double rows = (double)request->data->rows, positives = (double)request->data->positives, positive;

    weight[0] = weight[1] = 1;
    if (!text)
        return PACE_OK;
    parse_class_weight(text, &positive);
    if (positive > 0) {
        weight[1] = (float)positive;
        return PACE_OK;
    }
    if (positives == 0 || positives >= rows)
        return pace_fail(log, PACE_BAD_DATA, "%s: --class-weight balanced needs rows of both classes",
                         request->config->data);
    weight[0] = (float)(rows / (2 * (rows - positives)));
    weight[1] = (float)(rows / (2 * positives));
    return PACE_OK;
}

double pace__row_weight_max(const float weight[2])
{
    return fmax(fmax((double)weight[0], (double)weight[1]), 1);
}
