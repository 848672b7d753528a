/* The network of a cnn: which one, what of it is trained, and the values that it begins with. */
#include "model/cnn/pretrained.h"
#include "train/member.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What a network that begins with random weights sees: about unit size, whatever the pictures are. */
#define PIXEL_MEAN      127.5F
#define PIXEL_DEVIATION 63.75F
#define EPSILON         1e-5F
/* How much a step counts in the running statistics of batch norm. */
#define STATS_MOMENTUM 0.1F

bool pace__job_trains_top(const pace__job *job)
{
    return job->config->model == PACE_MODEL_CNN && job->config->own.cnn.train &&
           strcmp(job->config->own.cnn.train, "top") == 0;
}

static pace_status configure(pace__job *job, pace__cnn_config *cnn)
{
    const pace_train_config *config = job->config;
    const pace__encoding *encoding = &job->store.info.encoding;

    *cnn = (pace__cnn_config){.arch = config->own.cnn.arch,
                              .width = (float)config->own.cnn.width,
                              .height = encoding->height,
                              .side = encoding->width,
                              .channels = encoding->channels,
                              .classes = encoding->classes,
                              .epsilon = EPSILON,
                              .momentum = STATS_MOMENTUM,
                              .dropout = (float)config->optimiser.dropout,
                              .smoothing = (float)config->own.cnn.smoothing,
                              .seed = config->seed};
    for (unsigned i = 0; i < 3; i++) {
        cnn->mean[i] = PIXEL_MEAN;
        cnn->deviation[i] = PIXEL_DEVIATION;
    }
    if (encoding->kind == PACE__FEATURES && !pace__job_trains_top(job))
        return pace_fail(job->log, PACE_USAGE,
                         "%s: is a feature cache: give --data the pictures it was made of", config->data);
    if (config->own.cnn.head == PACE_HEAD_LOGIT && encoding->classes != 2)
        return pace_fail(job->log, PACE_USAGE, "%s: has %u classes, and --head logit is for two",
                         config->data, encoding->classes);
    if (config->optimiser.class_weight && encoding->classes != 2)
        return pace_fail(job->log, PACE_USAGE, "%s: has %u classes, and --class-weight is for two",
                         config->data, encoding->classes);
    cnn->one_logit = encoding->classes == 2 && config->own.cnn.head != PACE_HEAD_SOFTMAX;
    job->settled.own.cnn.head = cnn->one_logit ? PACE_HEAD_LOGIT : PACE_HEAD_SOFTMAX;
    pace_status status = pace__job_class_weights(job, cnn->weight);

    return status ? status : pace__parse_augment(config->own.cnn.augment, job->log, cnn);
}

/* What --train says. */
static pace_status choose_trained(const pace__job *job, const pace__cnn_net *net, uint32_t *first)
{
    const char *train = job->config->own.cnn.train;

    *first = 0;
    if (strcmp(train, "top") == 0)
        *first = net->units;
    if (strncmp(train, "from:", 5) != 0)
        return PACE_OK;
    *first = pace__cnn_find_unit(net, train + 5);
    if (*first != UINT32_MAX)
        return PACE_OK;
    return pace_fail(job->log, PACE_USAGE,
                     "--train %s: this network has no such layer; its layers are %s, %s ... %s, and head",
                     train, net->unit[0].name, net->unit[1].name, net->unit[net->units - 1].name);
}

static void say_taken(const pace__job *job, const pace__pretrained *file,
                      const pace__pretrained_report *report)
{
    pace_say(job->log, PACE_INFO, "%s: %u tensors taken (%s names); the head %s%s",
             job->config->own.cnn.pretrained, report->tensors, pace__pretrained_layout(file),
             report->head ? "is its own" : "begins anew",
             report->grey ? "; colours of its first layer added up for grey pictures" : "");
    if (report->missing_count > 0)
        pace_say(job->log, PACE_WARN, "%s: lacks %u tensors, which begin at random, like %s",
                 job->config->own.cnn.pretrained, report->missing_count, report->missing);
}

static pace_status make_values(pace__job *job, pace__pretrained *file)
{
    pace__network *network = &job->network;
    const pace__cnn_net *net = &network->net;
    pace__pretrained_report report = {0};

    network->weights = malloc((net->weights + net->stats) * sizeof *network->weights);
    if (!network->weights)
        return pace_fail(job->log, PACE_FAILED, "out of memory: the network needs %zu bytes",
                         (net->weights + net->stats) * sizeof *network->weights);
    network->stats = network->weights + net->weights;
    pace__cnn_init(&job->model.cnn, net, network->weights, network->stats);
    if (!file)
        return PACE_OK;
    pace__pretrained_expect(file, job->store.info.encoding.class_names);
    pace_status status =
        pace__pretrained_load(file, &job->model.cnn, net, network->weights, network->stats, &report);

    if (!status)
        status = pace__pretrained_sha256(file, network->pretrained);
    if (!status && job->member->self.number == 0 && job->store.info.encoding.kind == PACE__IMAGE)
        say_taken(job, file, &report);
    return status;
}

/* A ps has no values: it knows the parameters only by their number. */
pace_status pace__job_plan_cnn(pace__job *job)
{
    const pace_train_config *config = job->config;
    pace__cnn_config *cnn = &job->model.cnn;
    pace__cnn_net *net = &job->network.net;
    pace__pretrained *file = NULL;
    bool computes = job->member->role != PACE__PS;
    pace_status status = configure(job, cnn);

    pace__job_release_network(job);
    if (!status && config->own.cnn.pretrained && computes)
        status = pace__pretrained_open(config->own.cnn.pretrained, config->own.cnn.name_map, job->log, &file);
    if (!status && file)
        status = pace__pretrained_settle(file, cnn);
    if (!status)
        status = pace__cnn_net_make(cnn, job->log, net);
    if (!status)
        status = choose_trained(job, net, &cnn->first_trained);
    if (!status && cnn->first_trained > 0) /* now it is known which part is trained */
        status = pace__cnn_net_make(cnn, job->log, net);
    if (!status && computes)
        status = make_values(job, file);
    pace__pretrained_close(file);
    job->model.net = net;
    job->model.net_weights = job->network.weights;
    job->model.net_stats = job->network.stats;
    job->model.decay = config->optimiser.l2;
    job->model.optim = pace__optim_make(config->optimiser.rule, job->lr, config->optimiser.momentum, 0, 0);
    return status;
}

uint64_t pace__job_network_memory(const pace__job *job)
{
    const pace__cnn_net *net = &job->network.net;

    return job->model.kind == PACE_MODEL_CNN ? (net->weights + net->stats) * sizeof(float) : 0;
}

void pace__job_release_network(pace__job *job)
{
    free(job->network.weights);
    job->network.weights = job->network.stats = NULL;
    job->network.pretrained[0] = '\0';
}
