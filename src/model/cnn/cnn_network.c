/* The network that the options ask for: which one, what of it is trained, and the values that it begins with. */
#include "model/cnn/kind.h"
#include "model/cnn/pretrained.h"
#include "model/settings.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a network that begins with random weights sees: about unit size, whatever the pictures are. */
#define PIXEL_MEAN      127.5F
#define PIXEL_DEVIATION 63.75F
#define EPSILON         1e-5F
/* How much a step counts in the running statistics of batch norm. */
#define STATS_MOMENTUM 0.1F

static pace_status refuse(const pace__plan_request *request, const pace_log *log)
{
    const pace_train_config *config = request->config;
    const pace__dataset *data = request->data;

    if (data->kind == PACE__ROWS_FEATURES && strcmp(config->own.cnn.train, "top") != 0)
        return pace_fail(log, PACE_USAGE, "%s: is a feature cache: give --data the pictures it was made of",
                         config->data);
    if (config->own.cnn.head == PACE_HEAD_LOGIT && data->classes != 2)
        return pace_fail(log, PACE_USAGE, "%s: has %u classes, and --head logit is for two", config->data,
                         data->classes);
    if (config->optimiser.class_weight && data->classes != 2)
        return pace_fail(log, PACE_USAGE, "%s: has %u classes, and --class-weight is for two", config->data,
                         data->classes);
    return PACE_OK;
}

static pace_status configure(const pace__plan_request *request, const pace_log *log, pace__cnn_config *cnn)
{
    const pace_train_config *config = request->config;
    const pace__dataset *data = request->data;
    pace_status status = refuse(request, log);

    *cnn = (pace__cnn_config){.arch = config->own.cnn.arch,
                              .width = (float)config->own.cnn.width,
                              .height = data->height,
                              .side = data->width,
                              .channels = data->channels,
                              .classes = data->classes,
                              .one_logit = data->classes == 2 && config->own.cnn.head != PACE_HEAD_SOFTMAX,
                              .epsilon = EPSILON,
                              .momentum = STATS_MOMENTUM,
                              .dropout = (float)config->optimiser.dropout,
                              .smoothing = (float)config->own.cnn.smoothing,
                              .seed = config->seed};
    for (unsigned i = 0; i < 3; i++) {
        cnn->mean[i] = PIXEL_MEAN;
        cnn->deviation[i] = PIXEL_DEVIATION;
    }
    if (!status)
        status = pace__class_weights(request, cnn->weight, log);
    return status ? status : pace__cnn_parse_augment(config->own.cnn.augment, log, cnn);
}

/* What --train says. */
static pace_status choose_trained(const char *train, const pace__cnn_net *net, const pace_log *log,
                                  uint32_t *first)
{
    *first = 0;
    if (strcmp(train, "top") == 0)
        *first = net->units;
    if (strncmp(train, "from:", 5) != 0)
        return PACE_OK;
    *first = pace__cnn_find_unit(net, train + 5);
    if (*first != UINT32_MAX)
        return PACE_OK;
    return pace_fail(log, PACE_USAGE,
                     "--train %s: this network has no such layer; its layers are %s, %s ... %s, and head",
                     train, net->unit[0].name, net->unit[1].name, net->unit[net->units - 1].name);
}

static void say_taken(const char *path, const pace__pretrained *file, const pace__pretrained_report *report,
                      const pace_log *log)
{
    pace_say(log, PACE_INFO, "%s: %u tensors taken (%s names); the head %s%s", path, report->tensors,
             pace__pretrained_layout(file), report->head ? "is its own" : "begins anew",
             report->grey ? "; colours of its first layer added up for grey pictures" : "");
    if (report->missing_count > 0)
        pace_say(log, PACE_WARN, "%s: lacks %u tensors, which begin at random, like %s", path,
                 report->missing_count, report->missing);
}

/* --- of a model that it begins with --- */

static const pace__cnn_own *forerunner_of(const pace__plan_request *request)
{
    return request->begins->model->plan.own;
}

pace_status pace__cnn_fits(const pace__plan_request *request, const pace_log *log)
{
    const pace__cnn_config *theirs = &forerunner_of(request)->config;
    const pace_cnn_options *own = &request->config->own.cnn;
    uint32_t channels = request->data->channels;
    char here[24], there[24];

    snprintf(here, sizeof here, "%.6g", (double)(float)own->width);
    snprintf(there, sizeof there, "%.6g", (double)theirs->width);
    pace_status status = pace__same_word(request, "arch", pace__cnn_arch_names[own->arch],
                                         pace__cnn_arch_names[theirs->arch], log);

    if (!status)
        status = pace__same_word(request, "width", here, there, log);
    if (!status && theirs->channels != channels)
        status = pace_fail(log, PACE_USAGE,
                           "--init %s: was trained on pictures of %u channel%s, and those of %s have %u",
                           request->begins->path, theirs->channels, theirs->channels == 1 ? "" : "s",
                           request->config->data, channels);
    return status;
}

/* What its weights are made for. */
static void settle_like(const pace__cnn_config *theirs, pace__cnn_config *cnn)
{
    cnn->same = theirs->same;
    cnn->epsilon = theirs->epsilon;
    memcpy(cnn->mean, theirs->mean, sizeof cnn->mean);
    memcpy(cnn->deviation, theirs->deviation, sizeof cnn->deviation);
}

/* All but the head: which of its rows belong to which class is not known here. */
static pace_status take_values(const pace__plan_request *request, const pace_log *log, pace__cnn_own *own)
{
    const pace__cnn_net *theirs = &forerunner_of(request)->net;
    float *values = malloc((theirs->weights + theirs->stats) * sizeof *values);

    if (!values)
        return pace_fail(log, PACE_FAILED, "out of memory");
    assert(theirs->head_weight_at == own->net.head_weight_at && theirs->stats == own->net.stats);
    pace__cnn_from_rows(theirs, request->begins->model->weights, values, values + theirs->weights);
    memcpy(own->weights, values, theirs->head_weight_at * sizeof *values);
    memcpy(own->stats, values + theirs->weights, theirs->stats * sizeof *values);
    free(values);
    snprintf(own->pretrained, sizeof own->pretrained, "%s", request->begins->sha256);
    return PACE_OK;
}

static pace_status make_values(const pace__plan_request *request, pace__pretrained *file, const pace_log *log,
                               pace__cnn_own *own)
{
    const pace__cnn_net *net = &own->net;
    pace__pretrained_report report = {0};

    own->weights = malloc((net->weights + net->stats) * sizeof *own->weights);
    if (!own->weights)
        return pace_fail(log, PACE_FAILED, "out of memory: the network needs %zu bytes",
                         (net->weights + net->stats) * sizeof *own->weights);
    own->stats = own->weights + net->weights;
    pace__cnn_init(&own->config, net, own->weights, own->stats);
    if (!file)
        return request->begins ? take_values(request, log, own) : PACE_OK;
    pace__pretrained_expect(file, request->data->class_names);
    pace_status status = pace__pretrained_load(file, &own->config, net, own->weights, own->stats, &report);

    if (!status)
        status = pace__pretrained_sha256(file, own->pretrained);
    if (!status && request->speaks && request->data->kind == PACE__ROWS_PICTURES)
        say_taken(request->config->own.cnn.pretrained, file, &report, log);
    return status;
}

/* A server has no values: it knows the parameters only by their number. */
pace_status pace__cnn_configure(const pace__plan_request *request, const pace_log *log, pace__cnn_own *own)
{
    const pace_train_config *config = request->config;
    pace__cnn_config *cnn = &own->config;
    pace__pretrained *file = NULL;
    pace_status status = configure(request, log, cnn);

    if (!status && config->own.cnn.pretrained && request->computes)
        status = pace__pretrained_open(config->own.cnn.pretrained, config->own.cnn.name_map,
                                       request->describe, log, &file);
    if (!status && file)
        status = pace__pretrained_settle(file, cnn);
    else if (!status && request->begins)
        settle_like(&forerunner_of(request)->config, cnn);
    if (!status)
        status = pace__cnn_net_make(cnn, log, &own->net);
    if (!status)
        status = choose_trained(config->own.cnn.train, &own->net, log, &cnn->first_trained);
    if (!status && cnn->first_trained > 0) /* now it is known which part is trained */
        status = pace__cnn_net_make(cnn, log, &own->net);
    if (!status && request->computes)
        status = make_values(request, file, log, own);
    pace__pretrained_close(file);
    own->decay = config->optimiser.l2;
    return status;
}
