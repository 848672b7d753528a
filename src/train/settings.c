/* The options that say what to train: what goes together, what they default to, and the model they make. */
#include "data/text/vocabulary.h"
#include "train/job.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NGRAM_DEFAULT     2
#define RNN_ADAM_RATE     0.004
#define CNN_ADAM_RATE     0.003
#define CNN_TOP_RATE      0.01
#define CNN_MOMENTUM_RATE 0.05

/* --- what goes together --- */

/* An option that only some models have, if it was given. */
typedef struct own_option {
    const char *name;
    bool given;
} own_option;

static pace_status refuse(const own_option *options, size_t count, const char *theirs, const char *own,
                          const pace_log *log)
{
    for (size_t i = 0; i < count; i++) {
        if (options[i].given)
            return pace_fail(log, PACE_USAGE, "%s is for --model %s, not for %s", options[i].name, theirs,
                             own);
    }
    return PACE_OK;
}

static pace_status check_logreg(const pace_train_config *config, const pace_log *log)
{
    own_option networks[] = {{"--dropout", config->optimiser.dropout > 0},
                             {"--class-weight", config->optimiser.class_weight != NULL},
                             {"--clip", config->optimiser.clip > 0}};

    return refuse(networks, sizeof networks / sizeof *networks, "rnn or cnn", "logreg", log);
}

/* What all networks have in common. */
static pace_status check_network(const pace_train_config *config, const char *own, const pace_log *log)
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

static pace_status check_rnn(const pace_train_config *config, const pace_log *log)
{
    if (config->optimiser.l1 > 0 || config->optimiser.l2 > 0)
        return pace_fail(log, PACE_USAGE, "--l1 and --l2 are for --model logreg; an rnn has --dropout");
    if (config->own.rnn.word_dropout < 0 && config->own.rnn.word_dropout != -1)
        return pace_fail(log, PACE_USAGE, "--word-dropout is 0 or more, or -1 for the default");
    return check_network(config, "an rnn", log);
}

/* The comma-separated words of --augment. */
pace_status pace__parse_augment(const char *text, const pace_log *log, pace__cnn_config *config)
{
    if (!text || strcmp(text, "auto") == 0 || strcmp(text, "none") == 0) /* auto: nothing to check */
        text = "";
    while (*text) {
        size_t size = strcspn(text, ",");

        if (size == 4 && strncmp(text, "flip", size) == 0)
            config->flip = true;
        else if (size == 4 && strncmp(text, "crop", size) == 0) /* an eighth in each direction */
            config->crop = (config->height < config->side ? config->height : config->side) / 8;
        else if ((size == 6 && strncmp(text, "colour", size) == 0) ||
                 (size == 5 && strncmp(text, "color", size) == 0))
            config->colour = 0.3F;
        else
            return pace_fail(log, PACE_USAGE, "--augment '%.*s': none, or some of flip,crop,colour",
                             (int)size, text);
        text += size;
        text += *text == ',';
    }
    return PACE_OK;
}

static pace_status check_cnn(const pace_train_config *config, const pace_log *log)
{
    const char *train = config->own.cnn.train;
    bool top = train && strcmp(train, "top") == 0, from = train && strncmp(train, "from:", 5) == 0;

    if (config->optimiser.l1 > 0)
        return pace_fail(log, PACE_USAGE, "--l1 is for --model logreg; a cnn has --l2 and --dropout");
    if (train && strcmp(train, "all") != 0 && !top && !from)
        return pace_fail(log, PACE_USAGE, "--train '%s': all, top, or from:LAYER, like from:pw12", train);
    if ((top || from) && !config->own.cnn.pretrained)
        return pace_fail(log, PACE_USAGE,
                         "--train %s leaves layers as they are: they need weights, by --pretrained FILE",
                         train);
    if (config->own.cnn.name_map && !config->own.cnn.pretrained)
        return pace_fail(log, PACE_USAGE, "--name-map is for the tensors of --pretrained");
    if (config->own.cnn.feature_cache && !top)
        return pace_fail(log, PACE_USAGE, "--feature-cache is for --train top");
    if (top && config->own.cnn.augment && strcmp(config->own.cnn.augment, "auto") != 0 &&
        strcmp(config->own.cnn.augment, "none") != 0)
        return pace_fail(
            log, PACE_USAGE,
            "--augment %s: --train top sees every picture once, as it is; --train from:LAYER can "
            "change them",
            config->own.cnn.augment);
    pace_status status = pace__parse_augment(config->own.cnn.augment, log, &(pace__cnn_config){0});

    return status ? status : check_network(config, "a cnn", log);
}

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

pace_status pace__check_settings(const pace_train_config *config, const pace_log *log)
{
    double weight;

    if (config->optimiser.class_weight && !parse_class_weight(config->optimiser.class_weight, &weight))
        return pace_fail(log, PACE_USAGE,
                         "--class-weight '%s': \"balanced\", or how much a positive row weighs against a "
                         "negative one, like 0.2",
                         config->optimiser.class_weight);
    return config->model == PACE_MODEL_CNN   ? check_cnn(config, log)
           : config->model == PACE_MODEL_RNN ? check_rnn(config, log)
                                             : check_logreg(config, log);
}

/* --- defaults --- */

static void choose_integer(int64_t *field, int64_t open, int64_t value)
{
    if (*field == open)
        *field = value;
}

static void choose_real(double *field, double open, double value)
{
    if (*field == open)
        *field = value;
}

static void choose(int *field, int open, int value)
{
    if (*field == open)
        *field = value;
}

/* The published settings: 128 rows on each worker, and a weight that makes both classes count the same. */
static void apply_reviews_2019(pace_train_config *config)
{
    choose_integer(&config->own.rnn.layers, 0, 2);
    choose_integer(&config->own.rnn.hidden, 0, 32);
    choose_integer(&config->own.rnn.embed, 0, 100);
    choose_integer(&config->own.rnn.dense, -1, 32);
    choose_real(&config->optimiser.dropout, -1, 0.5);
    choose_real(&config->own.rnn.word_dropout, -1, 0);
    choose_real(&config->optimiser.clip, -1, 0);
    choose(&config->own.rnn.pooling, PACE_POOL_AUTO, PACE_POOL_LAST);
    choose(&config->optimiser.rule, PACE_OPTIMIZER_AUTO, PACE_MOMENTUM);
    choose(&config->optimiser.schedule, PACE_SCHEDULE_AUTO, PACE_SCHEDULE_CONSTANT);
    if (config->optimiser.rule == PACE_MOMENTUM)
        choose_real(&config->optimiser.lr, 0, 0.1);
    choose_integer(&config->length.batch, 0, 128 * config->cluster.workers);
    choose_integer(&config->length.epochs, 0, 10);
    if (!config->optimiser.class_weight)
        config->optimiser.class_weight = "0.2";
}

static void settle_cnn(pace_train_config *config)
{
    if (!config->own.cnn.train)
        config->own.cnn.train = "all";
    bool top = strcmp(config->own.cnn.train, "top") == 0;
    bool mobile =
        config->own.cnn.arch == PACE_ARCH_MOBILENET_V1 || config->own.cnn.arch == PACE_ARCH_MOBILENET_V2;

    choose(&config->optimiser.rule, PACE_OPTIMIZER_AUTO, PACE_ADAM);
    choose(&config->optimiser.schedule, PACE_SCHEDULE_AUTO, PACE_SCHEDULE_COSINE);
    choose_integer(&config->length.batch, 0, mobile && !top ? 32 : 128);
    choose_integer(&config->length.epochs, 0, top ? 50 : 10);
    if (config->optimiser.rule == PACE_ADAM)
        choose_real(&config->optimiser.lr, 0, top ? CNN_TOP_RATE : CNN_ADAM_RATE);
    if (config->optimiser.rule == PACE_MOMENTUM)
        choose_real(&config->optimiser.lr, 0, CNN_MOMENTUM_RATE);
    choose_real(&config->optimiser.dropout, -1, mobile && !top ? 0.2 : 0);
    if (!config->own.cnn.augment || strcmp(config->own.cnn.augment, "auto") == 0)
        config->own.cnn.augment = top ? "none" : "flip,crop";
    choose_real(&config->optimiser.clip, -1, 0);
}

static void settle_rnn(pace_train_config *config)
{
    pace_rnn_options *own = &config->own.rnn;

    if (own->preset == PACE_PRESET_REVIEWS_2019)
        apply_reviews_2019(config);
    choose(&config->optimiser.rule, PACE_OPTIMIZER_AUTO, PACE_ADAM);
    choose(&config->optimiser.schedule, PACE_SCHEDULE_AUTO, PACE_SCHEDULE_LINEAR);
    choose_integer(&config->length.batch, 0, 128);
    choose_integer(&config->length.epochs, 0, 4);
    if (config->optimiser.rule == PACE_ADAM)
        choose_real(&config->optimiser.lr, 0, RNN_ADAM_RATE);
    choose_integer(&own->layers, 0, 1);
    choose_integer(&own->hidden, 0, 64);
    choose_integer(&own->embed, 0, 64);
    choose_integer(&own->dense, -1, 0);
    choose_real(&config->optimiser.dropout, -1, 0.5);
    choose_real(&own->word_dropout, -1, 0.2);
    choose_real(&config->optimiser.clip, -1, 5);
    choose(&own->pooling, PACE_POOL_AUTO, PACE_POOL_LAST);
}

static void settle_logreg(pace_train_config *config, bool text)
{
    choose(&config->optimiser.rule, PACE_OPTIMIZER_AUTO, PACE_ADAGRAD);
    choose(&config->optimiser.schedule, PACE_SCHEDULE_AUTO, PACE_SCHEDULE_CONSTANT);
    choose_integer(&config->length.batch, 0, text ? 128 : 512);
    choose_integer(&config->length.epochs, 0, text ? 10 : 1);
    choose_integer(&config->own.logreg.ngram, 0, NGRAM_DEFAULT);
}

void pace__settle_settings(pace_train_config *config, bool text)
{
    if (config->model == PACE_MODEL_CNN)
        settle_cnn(config);
    else if (config->model == PACE_MODEL_RNN)
        settle_rnn(config);
    else
        settle_logreg(config, text);
}

/* --- the model --- */

/* Weights of a row by its label: "balanced" gives both classes the same sum, and rows 1 on average. */
pace_status pace__job_class_weights(const pace__job *job, float weight[2])
{
    const pace__store_info *info = &job->store.info;
    double rows = (double)info->rows[PACE__TRAIN], positives = (double)info->positives[PACE__TRAIN], positive;

    weight[0] = weight[1] = 1;
    if (!job->config->optimiser.class_weight)
        return PACE_OK;
    parse_class_weight(job->config->optimiser.class_weight, &positive);
    if (positive > 0) {
        weight[1] = (float)positive;
        return PACE_OK;
    }
    if (positives == 0 || positives >= rows)
        return pace_fail(job->log, PACE_BAD_DATA, "%s: --class-weight balanced needs rows of both classes",
                         job->config->data);
    weight[0] = (float)(rows / (2 * (rows - positives)));
    weight[1] = (float)(rows / (2 * positives));
    return PACE_OK;
}

static pace_status plan_rnn(pace__job *job)
{
    const pace_train_config *config = job->config;
    const pace__store_info *info = &job->store.info;
    pace__rnn_config *rnn = &job->model.rnn;

    *rnn = (pace__rnn_config){.words = info->ids_seen,
                              .length = info->columns,
                              .embed = (uint32_t)config->own.rnn.embed,
                              .hidden = (uint32_t)config->own.rnn.hidden,
                              .layers = (uint32_t)config->own.rnn.layers,
                              .dense = (uint32_t)config->own.rnn.dense,
                              .cell = config->own.rnn.cell,
                              .pooling = config->own.rnn.pooling,
                              .both = config->own.rnn.bidirectional,
                              .dropout = (float)config->optimiser.dropout,
                              .loss = config->own.rnn.loss,
                              .focal = (float)config->own.rnn.focal,
                              .seed = config->seed};
    job->model.word_dropout = config->own.rnn.word_dropout;
    return pace__job_class_weights(job, rnn->weight);
}

bool pace__job_goes_by_columns(const pace__job *job)
{
    return job->mode == PACE_MODE_LOCAL && job->config->model == PACE_MODEL_LOGREG &&
           (job->store.info.encoding.kind == PACE__CRITEO || job->store.info.encoding.kind == PACE__NUMBERED);
}

static pace_status check_rows(const pace__job *job)
{
    static const char *const makers[] = {"clicks", "reviews", "images"};
    static const char *const kinds[] = {"rows of features", "texts", "pictures"};
    int kind = job->store.info.encoding.kind, model = job->config->model;
    int is = kind == PACE__IMAGE || kind == PACE__FEATURES ? 2 : kind == PACE__TEXT;
    int wants = model == PACE_MODEL_CNN ? 2 : model == PACE_MODEL_RNN ? 1 : is == 2 ? 0 : is;

    if (is == wants)
        return PACE_OK;
    if (model == PACE_MODEL_LOGREG)
        return pace_fail(job->log, PACE_USAGE, "%s: holds pictures: give --model cnn", job->config->data);
    return pace_fail(job->log, PACE_USAGE,
                     "%s: has no %s: --model %s needs a data set made by 'paceline prep %s'",
                     job->config->data, kinds[wants],
                     model == PACE_MODEL_CNN   ? "cnn"
                     : model == PACE_MODEL_RNN ? "rnn"
                                               : "logreg",
                     makers[wants]);
}

pace_status pace__job_plan_model(pace__job *job)
{
    const pace__store_info *info = &job->store.info;
    pace_status status = check_rows(job);

    if (status)
        return status;
    job->model = (pace__model_plan){.kind = job->config->model, .info = info, .optim = pace__job_optim(job)};
    if (job->config->model == PACE_MODEL_LOGREG)
        job->model.ngram = (unsigned)job->config->own.logreg.ngram;
    if (job->config->model == PACE_MODEL_RNN)
        status = plan_rnn(job);
    if (job->config->model == PACE_MODEL_CNN)
        status = pace__job_plan_cnn(job);
    if (status)
        return status;
    job->by_columns = pace__job_goes_by_columns(job);
    job->shape = pace__model_shape(&job->model);
    job->floats = (size_t)job->shape.dim * job->model.optim.width;
    return PACE_OK;
}
